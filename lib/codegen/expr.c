/* Text of expressions: types, numbers and the op table's expressions, the same for C and CUDA (loop form -> text). */
#include "loop.h"
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cg_put(cg_text *t, const char *fmt, ...) {
  va_list ap, aq;
  va_start(ap, fmt);
  va_copy(aq, ap);
  int k = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  if (!t->bad && t->n + (size_t)k + 1 > t->cap) {
    size_t cap = (t->n + (size_t)k + 1) * 2;
    char *p = realloc(t->p, cap);
    if (p) {
      t->p = p;
      t->cap = cap;
    } else t->bad = true;
  }
  if (!t->bad) t->n += (size_t)vsnprintf(t->p + t->n, (size_t)k + 1, fmt, aq);
  va_end(aq);
}

/* ---- numbers that may be others for other sizes ---- */

/* Adds a site for the number, returns its place; 0 when memory is out. */
int cg_site_add(cg_text *t, cg_site s) {
  cg_sites *l = t->sites;
  if (l->n == l->cap) {
    int cap = l->cap ? 2 * l->cap : 128;
    cg_site *p = realloc(l->v, sizeof(cg_site) * (size_t)cap);
    if (!p) {
      t->bad = true;
      return 0;
    }
    l->v = p;
    l->cap = cap;
  }
  s.kernel = l->kernel;
  l->v[l->n] = s;
  return l->n++;
}

/* The number's text for t, in out: its literal, or a site of this kind. */
const char *cg_number_text(cg_text *t, int kind, int64_t v, char *out, size_t n) {
  cg_site s = { .kind = (uint8_t)kind, .dt = RL_I64, .i = v };
  if (!t->sites) {
    snprintf(out, n, "%" PRId64, v);
    return out;
  }
  snprintf(s.lit, sizeof s.lit, "%" PRId64, v);
  snprintf(out, n, "\1%d\2", cg_site_add(t, s));
  return out;
}

/* Prints a size, stride, offset or count. */
void cg_put_size(cg_text *t, int64_t v) {
  char s[24];
  cg_put(t, "%s", cg_number_text(t, CG_SITE_SIZE, v, s, sizeof s));
}

/* ---- types and expressions ---- */

const char *cg_compute_type(int dt) {
  static const char *const ct[RL_NDTYPE] = {
    [RL_U8] = "uint8_t", [RL_I8] = "int8_t",  [RL_I16] = "int16_t", [RL_I32] = "int32_t", [RL_I64] = "int64_t",
    [RL_F16] = "float",  [RL_BF16] = "float", [RL_F32] = "float",   [RL_F64] = "double"
  };
  return ct[dt];
}

const char *cg_storage_type(int dt) { return dt == RL_F16 ? "rl_f16" : dt == RL_BF16 ? "rl_bf16" : cg_compute_type(dt); }

const char *cg_compute_suffix(int dt) { return dt == RL_F16 || dt == RL_BF16 ? "f32" : rl_dtypes[dt].suffix; }
bool cg_is_half(int dt) { return dt == RL_F16 || dt == RL_BF16; }

static void put_literal(cg_text *t, int dt, double f, int64_t i) {
  const char *ct = cg_compute_type(dt);
  if (!rl_dtypes[dt].is_float) {
    if (i == INT64_MIN) cg_put(t, "INT64_MIN");
    else cg_put(t, "(%s)%" PRId64 "LL", ct, i);
    return;
  }
  if (isnan(f)) cg_put(t, "(%s)NAN", ct);
  else if (isinf(f)) cg_put(t, "(%s)%sINFINITY", ct, f < 0 ? "-" : "");
  else {
    char s[64];
    snprintf(s, sizeof s, dt == RL_F64 ? "%.17g" : "%.9g", f);
    if (!strpbrk(s, ".e")) strcat(s, ".0");
    cg_put(t, "%s%s%s%s", f < 0 ? "(" : "", s, dt == RL_F64 ? "" : "f", f < 0 ? ")" : "");
  }
}

void cg_put_number(cg_text *t, int dt, double f, int64_t i) {
  if (!t->sites) {
    put_literal(t, dt, f, i);
    return;
  }
  cg_text lit = { 0 };
  cg_site s = { .kind = CG_SITE_CONST, .dt = (uint8_t)dt, .f = f, .i = i };
  put_literal(&lit, dt, f, i);
  snprintf(s.lit, sizeof s.lit, "%s", lit.p ? lit.p : "0");
  free(lit.p);
  cg_put(t, "\1%d\2", cg_site_add(t, s));
}

static void put_limit(cg_text *t, int dt, bool low) {
  static const char *const hi[RL_NDTYPE] = { [RL_U8] = "255", [RL_I8] = "127", [RL_I16] = "32767", [RL_I32] = "INT32_MAX", [RL_I64] = "INT64_MAX" };
  static const char *const lo[RL_NDTYPE] = { [RL_U8] = "0", [RL_I8] = "-128", [RL_I16] = "-32768", [RL_I32] = "INT32_MIN", [RL_I64] = "INT64_MIN" };
  if (rl_dtypes[dt].is_float) cg_put(t, low ? "-INFINITY" : "INFINITY");
  else cg_put(t, "%s", low ? lo[dt] : hi[dt]);
}

void cg_put_init(cg_text *t, int row, int dt) {
  const char *s = rl_ops[row].init;
  if (!strcmp(s, "lowest")) put_limit(t, dt, true);
  else if (!strcmp(s, "highest")) put_limit(t, dt, false);
  else cg_put(t, "%s", s);
}

static const rl_attr_info *find_attr(int row, const char *name, size_t n) {
  for (int i = 0; i < rl_ops[row].nattrs; i++)
    if (strlen(rl_ops[row].attrs[i].name) == n && !memcmp(rl_ops[row].attrs[i].name, name, n)) return &rl_ops[row].attrs[i];
  return NULL;
}

static int input_named(int row, const char *s, size_t n) {
  if (n != 1) return -1;
  return *s == 'x' ? 0 : *s == 'y' ? 1 : *s == 'z' ? 2 : *s == 'w' && rl_ops[row].nin > 3 ? 3 : -1;
}

static void put_attr(cg_text *t, const rl_attr_info *ai, const rl_attrs *at, int dt) {
  if (ai->kind == 'f') cg_put_number(t, rl_dtypes[dt].is_float ? dt : RL_F64, at ? at->v[ai->slot].f : ai->def, 0);
  else cg_put_size(t, at ? at->v[ai->slot].i : (int64_t)ai->def);
}

/* A row's expression with its operands' names in place: functions get the suffix of the compute type, decimal literals its precision. */
void cg_put_expr(cg_text *t, int row, int dt, const char *const *names, const char *acc, const rl_attrs *at) {
  const char *suf = cg_compute_suffix(dt);
  for (const char *s = rl_ops[row].expr; *s;) {
    if (isalpha((unsigned char)*s) || *s == '_') {
      const char *e = s;
      while (isalnum((unsigned char)*e) || *e == '_') e++;
      size_t n = (size_t)(e - s);
      const rl_attr_info *ai;
      int in = input_named(row, s, n);
      if (*e == '(') cg_put(t, "rl_%.*s_%s", (int)n, s, suf);
      else if (acc && n == 1 && *s == 'a') cg_put(t, "%s", acc);
      else if (in >= 0) cg_put(t, "%s", names[in]);
      else if ((ai = find_attr(row, s, n))) put_attr(t, ai, at, dt);
      else cg_put(t, "%.*s", (int)n, s);
      s = e;
    } else if (isdigit((unsigned char)*s)) {
      char *e;
      strtod(s, &e);
      bool real = false;
      for (const char *q = s; q < e; q++) real = real || *q == '.' || *q == 'e';
      cg_put(t, "%.*s%s", (int)(e - s), s, real && !strcmp(suf, "f32") && *e != 'f' ? "f" : "");
      s = e;
    } else cg_put(t, "%c", *s++);
  }
}
