/* Printing C: one function a kernel (loop form -> C text).
 *
 * Inner loops are `omp simd` over contiguous memory, rows are dealt to a number of chunks that depends on sizes alone, and chunks run in
 * parallel: results do not depend on the number of threads. */
#include "loop.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARALLEL_WORK = 1 << 17, BLOCK = 4096 };

typedef struct print {
  cg_text *t;
  const cg *c;
  const lp_kernel *k;
  bool *done;
  int depth;
  bool rowless;
  char ring[8][24]; /* of the last numbers' texts */
  int nring;
} print;

static void line(print *p, const char *fmt, ...) RL_PRINTF(2, 3);
static void line(print *p, const char *fmt, ...) {
  char text[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  cg_put(p->t, "%*s%s\n", 2 * p->depth, "", text);
}

/* ---- numbers ---- */

/* A size, stride, offset or count as a text that stays good for seven more. */
static const char *size(print *p, int64_t v) { return cg_number_text(p->t, CG_SITE_SIZE, v, p->ring[p->nring++ & 7], sizeof p->ring[0]); }
static const char *chunks(print *p) { return cg_number_text(p->t, CG_SITE_CHUNKS, p->k->chunks, p->ring[p->nring++ & 7], sizeof p->ring[0]); }

/* ---- positions ---- */

static void put_position(cg_text *t, const lp_kernel *k, const cg_acc *a) {
  bool any = false;
  if (a->off) {
    cg_put_size(t, a->off);
    any = true;
  }
  for (int l = 0; l < k->sp.n; l++) {
    if (!a->st[l]) continue;
    if (a->st[l] == 1) cg_put(t, "%si%d", any ? " + " : "", l);
    else {
      cg_put(t, any ? " + " : "");
      cg_put_size(t, a->st[l]);
      cg_put(t, " * i%d", l);
    }
    any = true;
  }
  if (!any) cg_put(t, "0");
}

static void put_inner_position(cg_text *t, const lp_kernel *k) {
  int64_t s = 1;
  char text[512] = "";
  for (int l = k->sp.n - 1; l >= k->nrow; l--) {
    char part[64];
    char num[24];
    if (l == k->sp.n - 1) snprintf(part, sizeof part, "i%d", l);
    else snprintf(part, sizeof part, "%s * i%d + ", cg_number_text(t, CG_SITE_SIZE, s, num, sizeof num), l);
    char joined[512];
    snprintf(joined, sizeof joined, "%s%s", part, text);
    strcpy(text, joined);
    s *= k->sp.size[l];
  }
  cg_put(t, "%s", *text ? text : "0");
}

/* ---- instructions ---- */

static const char *rname(const lp_kernel *k, int i, char *buf, size_t n) {
  (void)k;
  snprintf(buf, n, "v%d", i);
  return buf;
}

static bool is_mask(const lp_ins *i) { return i->op == LP_EW && i->dt == RL_U8 && rl_ops[i->row].out_dtype == 1 + RL_U8; }

/* Type of an instruction's variable. A comparison's 0 or 1 is as wide as what it compares: lanes of one width vectorise, bytes among floats
 * do not. */
static const char *var_type(const lp_kernel *k, int n) {
  const lp_ins *i = &k->ins[n];
  while (is_mask(i) && i->narg && is_mask(&k->ins[i->arg[0]])) i = &k->ins[i->arg[0]];
  if (!is_mask(i) || !i->narg) return cg_compute_type(k->ins[n].dt);
  int dt = k->ins[i->arg[0]].dt;
  return rl_dtypes[dt].bytes == 8 ? "int64_t" : rl_dtypes[dt].bytes == 4 || cg_is_half(dt) ? "int32_t" : cg_compute_type(RL_U8);
}

static int ew_type(const lp_kernel *k, const lp_ins *p) { return p->narg ? k->ins[p->arg[p->narg - 1]].dt : p->dt; }

static void put_load(print *p, const lp_ins *i) {
  cg_text *t = p->t;
  int dt = p->c->buf[i->buf].dt;
  if (cg_is_half(dt)) cg_put(t, "rl_ld_%s(", rl_dtypes[dt].suffix);
  cg_put(t, "p%d[", i->buf);
  put_position(t, p->k, &i->acc);
  cg_put(t, cg_is_half(dt) ? "])" : "]");
}

/* Strict plans round a half value where eager stores it. */
static bool rounds(const print *p, const lp_ins *i) { return p->c->strict && cg_is_half(i->dt); }
static void put_round(print *p, const lp_ins *i) {
  if (rounds(p, i)) cg_put(p->t, "rl_ld_%s(rl_st_%s(", rl_dtypes[i->dt].suffix, rl_dtypes[i->dt].suffix);
}
static const char *end_round(const print *p, const lp_ins *i) { return rounds(p, i) ? "))" : ""; }

static void put_ew(print *p, const lp_ins *i) {
  char name[8][16];
  const char *names[8] = { 0 };
  for (int a = 0; a < i->narg; a++) names[a] = rname(p->k, i->arg[a], name[a], sizeof name[a]);
  cg_put_expr(p->t, i->row, ew_type(p->k, i), names, NULL, i->at);
}

static void put_value(print *p, int n) {
  const lp_ins *i = &p->k->ins[n];
  cg_text *t = p->t;
  switch (i->op) {
  case LP_CONST: cg_put_number(t, i->dt, i->f, i->i); break;
  case LP_NUM: cg_put(t, "(%s)num[%" PRId64 "]", cg_compute_type(i->dt), i->i); break;
  case LP_LOAD: put_load(p, i); break;
  case LP_INDEX: put_position(t, p->k, &i->acc); break;
  case LP_CAST:
    if (cg_is_half(i->dt)) cg_put(t, "rl_ld_%s(rl_st_%s((float)v%d))", rl_dtypes[i->dt].suffix, rl_dtypes[i->dt].suffix, i->arg[0]);
    else if (!rl_dtypes[i->dt].is_float && rl_dtypes[p->k->ins[i->arg[0]].dt].is_float)
      cg_put(t, "(%s)rl_toint((double)v%d)", cg_compute_type(i->dt), i->arg[0]);
    else cg_put(t, "(%s)v%d", cg_compute_type(i->dt), i->arg[0]);
    break;
  case LP_RAND:
    put_round(p, i);
    cg_put(t, "rl_%s_%s(seed, ctr + ", rl_ops[i->row].name, cg_compute_suffix(i->dt));
    cg_put_size(t, i->rng);
    cg_put(t, ", (int64_t)(");
    put_position(t, p->k, &i->acc);
    cg_put(t, "))%s", end_round(p, i));
    break;
  case LP_CHECK: cg_put(t, "v%d", i->arg[0]); break;
  case LP_GATHER:
    cg_put(t, "rl_ld_%s(p%d[", rl_dtypes[p->c->buf[i->buf].dt].suffix, i->buf);
    put_position(t, p->k, &i->acc);
    cg_put(t, " + ((uint64_t)v%d < (uint64_t)%s ? (int64_t)v%d : 0) * %s])", i->arg[0], size(p, i->bound), i->arg[0], size(p, i->stride));
    break;
  case LP_EW:
    put_round(p, i);
    cg_put(t, "(%s)(", var_type(p->k, n));
    put_ew(p, i);
    cg_put(t, ")%s", end_round(p, i));
    break;
  default: cg_put(t, "0");
  }
}

static void define(print *p, int n) {
  const lp_ins *i = &p->k->ins[n];
  if (i->op == LP_CHECK || i->op == LP_GATHER) line(p, "bad |= (uint64_t)v%d >= (uint64_t)%s;", i->arg[0], size(p, i->bound));
  cg_put(p->t, "%*sconst %s v%d = ", 2 * p->depth, "", var_type(p->k, n), n);
  put_value(p, n);
  cg_put(p->t, ";\n");
}

/* Emits what an element value needs in this pass, itself last. */
static void pull(print *p, int n, int pass) {
  const lp_ins *i = &p->k->ins[n];
  if (i->level != LP_ELEM || p->done[n]) return;
  p->done[n] = true;
  if (i->keep && (i->fill || i->pass < pass)) {
    cg_put(p->t, "%*sconst %s v%d = t%d[", 2 * p->depth, "", var_type(p->k, n), n, n);
    put_inner_position(p->t, p->k);
    cg_put(p->t, "];\n");
    return;
  }
  if (i->op == LP_RED && i->rk == CG_RK_NONE) {
    pull(p, i->arg[0], pass);
  } else
    for (int a = 0; a < i->narg; a++) pull(p, i->arg[a], pass);
  if (i->op == LP_RED && i->rk == CG_RK_NONE) cg_put(p->t, "%*sconst %s v%d = v%d;\n", 2 * p->depth, "", cg_compute_type(i->dt), n, i->arg[0]);
  else define(p, n);
  if (i->keep) {
    cg_put(p->t, "%*st%d[", 2 * p->depth, "", n);
    put_inner_position(p->t, p->k);
    cg_put(p->t, "] = v%d;\n", n);
  }
}

static void put_store(print *p, const lp_ins *i) {
  int dt = p->c->buf[i->buf].dt;
  cg_put(p->t, "%*sp%d[", 2 * p->depth, "", i->buf);
  put_position(p->t, p->k, &i->acc);
  if (cg_is_half(dt)) cg_put(p->t, "] = rl_st_%s((float)v%d);\n", rl_dtypes[dt].suffix, i->arg[0]);
  else cg_put(p->t, "] = (%s)v%d;\n", cg_compute_type(dt), i->arg[0]);
}

/* ---- reductions ---- */

static bool is_sum(const lp_ins *i) { return !strcmp(rl_ops[i->row].expr, "a + x"); }
/* Accumulator across blocks and chunks: sums of floats widen. */
static const char *wide_type(const lp_ins *i) { return is_sum(i) && rl_dtypes[i->dt].is_float ? "double" : cg_compute_type(i->dt); }

static void put_step(print *p, const lp_ins *i, const char *acc, const char *x) {
  const char *names[3] = { x, x, x };
  cg_put_expr(p->t, i->row, i->dt, names, acc, i->at);
}

/* acc = step(acc, x) as a statement */
static void combine(print *p, const lp_ins *i, const char *acc, const char *x) {
  cg_put(p->t, "%*s%s = ", 2 * p->depth, "", acc);
  put_step(p, i, acc, x);
  cg_put(p->t, ";\n");
}

static void put_reduction_name(cg_text *t, const lp_ins *i) { cg_put(t, "rlr_%s_%s", rl_ops[i->row].name, cg_compute_suffix(i->dt)); }

static bool reduces_in(const lp_ins *i, int pass) { return i->op == LP_RED && i->pass == pass && i->rk != CG_RK_NONE; }

/* Whether a reduction takes a step for each element of a row; the others take one a row. The operand may be the same for all of them. */
static bool by_element(const lp_ins *i) { return i->rk != CG_RK_COL || i->level == LP_ELEM; }

/* Row and all-rows reductions accumulate in s<n> inside a simd loop. */
static bool simd_reduced(const print *p, const lp_ins *i, int pass) {
  if (!reduces_in(i, pass) || i->level == LP_ELEM) return false;
  return p->rowless || by_element(i);
}

static bool simd_ok(const print *p, int pass) {
  for (int n = 0; n < p->k->n; n++)
    if (simd_reduced(p, &p->k->ins[n], pass) && !lp_associative(p->k->ins[n].row)) return false;
  return true;
}

static bool checks(const lp_kernel *k) {
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].op == LP_CHECK || k->ins[n].op == LP_GATHER) return true;
  return false;
}

static void simd_pragma(print *p, int pass) {
  if (!simd_ok(p, pass)) return;
  cg_put(p->t, "%*s_Pragma(\"omp simd%s", 2 * p->depth, "", checks(p->k) ? " reduction(|:bad)" : "");
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!simd_reduced(p, i, pass)) continue;
    cg_put(p->t, " reduction(");
    if (is_sum(i)) cg_put(p->t, "+");
    else put_reduction_name(p->t, i);
    cg_put(p->t, ":s%d)", n);
  }
  cg_put(p->t, "\")\n");
}

static void declare_partials(print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!simd_reduced(p, i, pass)) continue;
    cg_put(p->t, "%*s%s s%d = ", 2 * p->depth, "", cg_compute_type(i->dt), n);
    cg_put_init(p->t, i->row, i->dt);
    cg_put(p->t, ";\n");
  }
}

static void fold_partials(print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    char a[16], s[16];
    if (!simd_reduced(p, i, pass)) continue;
    snprintf(a, sizeof a, "a%d", n);
    snprintf(s, sizeof s, "s%d", n);
    combine(p, i, a, s);
  }
}

/* ---- bodies ---- */

/* Offset of a reduction's partials in the scratch buffer: factor times the number of chunks. */
static const char *partials(print *p, int64_t factor) {
  char n[24], c[24], *s = p->ring[p->nring++ & 7];
  if (!p->t->sites) return cg_number_text(p->t, CG_SITE_SIZE, factor * p->k->chunks, s, sizeof p->ring[0]);
  cg_number_text(p->t, CG_SITE_SIZE, factor, n, sizeof n);
  cg_number_text(p->t, CG_SITE_CHUNKS, p->k->chunks, c, sizeof c);
  snprintf(s, sizeof p->ring[0], "%.11s * %.9s", n, c);
  return s;
}

static const char *scalar_offset(print *p, const lp_ins *i) { return partials(p, i->slot); }
static const char *col_offset(print *p, const lp_ins *i) { return partials(p, p->k->nscalar + i->slot * p->k->inner); }

/* Everything that one element does in a pass. */
static void element_body(print *p, int pass) {
  const lp_kernel *k = p->k;
  memset(p->done, 0, (size_t)k->n);
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (!reduces_in(i, pass) || !by_element(i)) continue;
    char a[64], x[16];
    pull(p, i->arg[0], pass);
    snprintf(x, sizeof x, "v%d", i->arg[0]);
    if (i->level == LP_ELEM) {
      cg_text pos = { .sites = p->t->sites };
      put_inner_position(&pos, k);
      char acc[600];
      snprintf(acc, sizeof acc, "c%d[%s]", n, pos.p ? pos.p : "0");
      free(pos.p);
      combine(p, i, acc, x);
      continue;
    }
    snprintf(a, sizeof a, "s%d", n);
    combine(p, i, a, x);
  }
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].op == LP_STORE && !k->ins[n].phase && k->ins[n].level == LP_ELEM && k->ins[n].pass == pass) pull(p, k->ins[n].arg[0], pass);
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].op == LP_STORE && !k->ins[n].phase && k->ins[n].level == LP_ELEM && k->ins[n].pass == pass) put_store(p, &k->ins[n]);
}

static bool pass_has_elements(const print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (i->phase && i->op != LP_RED) continue;
    if (reduces_in(i, pass) && by_element(i)) return true;
    if (i->op == LP_STORE && i->level == LP_ELEM && i->pass == pass) return true;
    if (i->keep && i->pass == pass) return true;
  }
  return false;
}

static void inner_loops(print *p, int pass) {
  const lp_kernel *k = p->k;
  int last = k->sp.n - 1;
  int depth = p->depth;
  for (int l = k->nrow; l < last; l++, p->depth++) line(p, "for (int64_t i%d = 0; i%d < %s; i%d++) {", l, l, size(p, k->sp.size[l]), l);
  bool blocked = k->sp.size[last] > BLOCK || p->t->sites;
  if (blocked) {
    line(p, "for (int64_t lo%d = 0; lo%d < %s; lo%d += %d) {", last, last, size(p, k->sp.size[last]), last, BLOCK);
    p->depth++;
    line(p, "const int64_t hi%d = RLG_MIN(lo%d + %d, (int64_t)%s);", last, last, BLOCK, size(p, k->sp.size[last]));
  }
  declare_partials(p, pass);
  simd_pragma(p, pass);
  if (blocked) line(p, "for (int64_t i%d = lo%d; i%d < hi%d; i%d++) {", last, last, last, last, last);
  else line(p, "for (int64_t i%d = 0; i%d < %s; i%d++) {", last, last, size(p, k->sp.size[last]), last);
  p->depth++;
  element_body(p, pass);
  p->depth--;
  line(p, "}");
  fold_partials(p, pass);
  while (p->depth > depth) {
    p->depth--;
    line(p, "}");
  }
}

static void row_reductions_open(print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!reduces_in(i, pass) || i->rk != CG_RK_ROW) continue;
    cg_put(p->t, "%*s%s a%d = ", 2 * p->depth, "", wide_type(i), n);
    cg_put_init(p->t, i->row, i->dt);
    cg_put(p->t, ";\n");
  }
}

/* A finished reduction as the value it stands for. */
static void put_reduced(print *p, int n) {
  const lp_ins *i = &p->k->ins[n];
  cg_put(p->t, "%*sconst %s v%d = ", 2 * p->depth, "", cg_compute_type(i->dt), n);
  put_round(p, i);
  cg_put(p->t, "(%s)a%d%s;\n", cg_compute_type(i->dt), n, end_round(p, i));
}

static void row_reductions_close(print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!reduces_in(i, pass) || i->rk != CG_RK_ROW) continue;
    put_reduced(p, n);
  }
}

static void define_row(print *p, int n) {
  const lp_ins *i = &p->k->ins[n];
  if (i->fill) {
    line(p, "const float v%d = t%d[i0 - lb];", n, n);
    return;
  }
  if (i->op != LP_RED) {
    define(p, n);
    return;
  }
  line(p, "const %s v%d = v%d;", cg_compute_type(i->dt), n, i->arg[0]);
}

static void row_values(print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (i->level != LP_ROW || i->phase || i->pass != pass || i->op == LP_STORE || (i->op == LP_RED && i->rk == CG_RK_ROW)) continue;
    define_row(p, n);
  }
}

/* Reductions over all rows of a value that the row has once. */
static void row_into_chunk(print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    char a[16], x[16];
    if (!reduces_in(i, pass) || by_element(i)) continue;
    snprintf(a, sizeof a, "a%d", n);
    snprintf(x, sizeof x, "v%d", i->arg[0]);
    combine(p, i, a, x);
  }
}

static void decode_row(print *p, const char *row) {
  const lp_kernel *k = p->k;
  if (k->nrow == 1) {
    if (strcmp(row, "i0")) line(p, "const int64_t i0 = %s;", row);
    return;
  }
  int64_t s = 1;
  for (int l = k->nrow - 1; l >= 0; l--) {
    if (l == 0) line(p, "const int64_t i0 = %s / %s;", row, size(p, s));
    else line(p, "const int64_t i%d = %s / %s %% %s;", l, row, size(p, s), size(p, k->sp.size[l]));
    s *= k->sp.size[l];
  }
}

static void fill_rows(print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!i->fill || i->pass != pass) continue;
    cg_acc start = i->acc;
    start.st[p->k->sp.n - 1] = 0;
    cg_put(p->t, "%*srl_rand_row_f32(t%d, seed, ctr + %s, ", 2 * p->depth, "", n, size(p, i->rng));
    put_position(p->t, p->k, &start);
    if (p->rowless) cg_put(p->t, " + lb, he - lb);\n");
    else cg_put(p->t, ", %s);\n", size(p, p->k->inner));
  }
}

static void row_body(print *p) {
  const lp_kernel *k = p->k;
  for (int pass = 0; pass < k->npass; pass++) {
    row_values(p, pass);
    row_into_chunk(p, pass);
    if (!pass_has_elements(p, pass)) continue;
    fill_rows(p, pass);
    row_reductions_open(p, pass);
    line(p, "{");
    p->depth++;
    inner_loops(p, pass);
    p->depth--;
    line(p, "}");
    row_reductions_close(p, pass);
  }
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].op == LP_STORE && !k->ins[n].phase && k->ins[n].level == LP_ROW) put_store(p, &k->ins[n]);
}

/* A kernel whose rows are single elements: the row loop itself is the vector loop. */
static void rowless_body(print *p) {
  const lp_kernel *k = p->k;
  if (k->nrow == 0) line(p, "const int64_t lb = 0, he = 1; (void)lb;");
  else {
    line(p, "for (int64_t lb = lo; lb < hi; lb += %d) {", BLOCK);
    p->depth++;
    line(p, "const int64_t he = RLG_MIN(lb + %d, hi);", BLOCK);
  }
  fill_rows(p, 0);
  declare_partials(p, 0);
  simd_pragma(p, 0);
  line(p, k->nrow ? "for (int64_t i0 = lb; i0 < he; i0++) {" : "for (int64_t i0 = 0; i0 < he; i0++) {");
  p->depth++;
  row_values(p, 0);
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    char a[16], x[16];
    if (!reduces_in(i, 0)) continue;
    snprintf(a, sizeof a, "s%d", n);
    snprintf(x, sizeof x, "v%d", i->arg[0]);
    combine(p, i, a, x);
  }
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].op == LP_STORE && !k->ins[n].phase) put_store(p, &k->ins[n]);
  p->depth--;
  line(p, "}");
  fold_partials(p, 0);
  if (k->nrow) {
    p->depth--;
    line(p, "}");
  }
}

/* ---- chunks ---- */

static void chunk_open(print *p) {
  const lp_kernel *k = p->k;
  if (checks(k)) line(p, "int bad = 0;");
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (i->keep && p->rowless) line(p, "%s t%d[%d] __attribute__((aligned(64)));", var_type(k, n), n, BLOCK);
    else if (i->keep) line(p, "%s t%d[%s] __attribute__((aligned(64)));", var_type(k, n), n, size(p, k->inner));
    if (i->op != LP_RED || !i->phase) continue;
    if (i->level == LP_ELEM) {
      line(p, "%s *restrict c%d = (%s *)(scratch + %s + chunk * %s);", cg_compute_type(i->dt), n, cg_compute_type(i->dt), col_offset(p, i),
           size(p, k->inner));
      cg_put(p->t, "%*sfor (int64_t j = 0; j < %s; j++) c%d[j] = ", 2 * p->depth, "", size(p, k->inner), n);
    } else cg_put(p->t, "%*s%s a%d = ", 2 * p->depth, "", wide_type(i), n);
    cg_put_init(p->t, i->row, i->dt);
    cg_put(p->t, ";\n");
  }
}

static void chunk_close(print *p) {
  const lp_kernel *k = p->k;
  if (checks(k)) line(p, "if (bad) { _Pragma(\"omp atomic write\") failed = 1; }");
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (i->op != LP_RED || !i->phase || i->level == LP_ELEM) continue;
    line(p, "((%s *)(scratch + %s + chunk))[0] = a%d;", wide_type(i), scalar_offset(p, i), n);
  }
}

/* ---- phase 1 ---- */

static void scalar_results(print *p) {
  const lp_kernel *k = p->k;
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    char a[16], x[96];
    if (i->op != LP_RED || !i->phase || i->level == LP_ELEM) continue;
    line(p, "%s a%d = ((%s *)(scratch + %s))[0];", wide_type(i), n, wide_type(i), scalar_offset(p, i));
    if (k->chunks > 1 || p->t->sites) {
      snprintf(a, sizeof a, "a%d", n);
      snprintf(x, sizeof x, "((%s *)(scratch + %s + c))[0]", wide_type(i), scalar_offset(p, i));
      cg_put(p->t, "%*sfor (int64_t c = 1; c < %s; c++)", 2 * p->depth, "", chunks(p));
      int d = p->depth;
      p->depth = 1;
      combine(p, i, a, x);
      p->depth = d;
    }
    put_reduced(p, n);
  }
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (!i->phase || i->level == LP_ELEM || i->op == LP_RED) continue;
    if (i->op == LP_STORE) put_store(p, i);
    else define(p, n);
  }
}

static void fold_columns(print *p) {
  const lp_kernel *k = p->k;
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    char a[32], x[32];
    if (i->op != LP_RED || !i->phase || i->level != LP_ELEM) continue;
    const char *ct = cg_compute_type(i->dt);
    line(p, "%s *restrict c%d = (%s *)(scratch + %s);", ct, n, ct, col_offset(p, i));
    if (k->chunks == 1 && !p->t->sites) continue;
    line(p, "for (int64_t c = 1; c < %s; c++) {", chunks(p));
    p->depth++;
    line(p, "const %s *restrict d%d = (const %s *)(scratch + %s + c * %s);", ct, n, ct, col_offset(p, i), size(p, k->inner));
    line(p, "_Pragma(\"omp simd\")");
    line(p, "for (int64_t j = 0; j < %s; j++)", size(p, k->inner));
    snprintf(a, sizeof a, "c%d[j]", n);
    snprintf(x, sizeof x, "d%d[j]", n);
    p->depth++;
    combine(p, i, a, x);
    p->depth -= 2;
    line(p, "}");
  }
}

static void column_value(print *p, int n);
static void column_pull(print *p, int n) {
  const lp_ins *i = &p->k->ins[n];
  if (i->level != LP_ELEM || p->done[n]) return;
  p->done[n] = true;
  if (i->op != LP_RED)
    for (int a = 0; a < i->narg; a++) column_pull(p, i->arg[a]);
  column_value(p, n);
}

static void column_value(print *p, int n) {
  const lp_ins *i = &p->k->ins[n];
  if (i->op != LP_RED) {
    define(p, n);
    return;
  }
  cg_put(p->t, "%*sconst %s v%d = ", 2 * p->depth, "", cg_compute_type(i->dt), n);
  put_round(p, i);
  cg_put(p->t, "c%d[", n);
  put_inner_position(p->t, p->k);
  cg_put(p->t, "]%s;\n", end_round(p, i));
}

static void column_results(print *p) {
  const lp_kernel *k = p->k;
  bool any = false;
  for (int n = 0; n < k->n; n++) any = any || (k->ins[n].phase && k->ins[n].op == LP_STORE && k->ins[n].level == LP_ELEM);
  if (!any) return;
  fold_columns(p);
  int depth = p->depth;
  for (int l = k->nrow; l < k->sp.n; l++, p->depth++) {
    if (l == k->sp.n - 1) line(p, checks(k) ? "_Pragma(\"omp simd reduction(|:bad)\")" : "_Pragma(\"omp simd\")");
    line(p, "for (int64_t i%d = 0; i%d < %s; i%d++) {", l, l, size(p, k->sp.size[l]), l);
  }
  memset(p->done, 0, (size_t)k->n);
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].phase && k->ins[n].op == LP_STORE && k->ins[n].level == LP_ELEM) column_pull(p, k->ins[n].arg[0]);
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].phase && k->ins[n].op == LP_STORE && k->ins[n].level == LP_ELEM) put_store(p, &k->ins[n]);
  while (p->depth > depth) {
    p->depth--;
    line(p, "}");
  }
}

/* ---- kernel ---- */

static void pointers(print *p) {
  const lp_kernel *k = p->k;
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (i->op != LP_LOAD && i->op != LP_STORE && i->op != LP_GATHER) continue;
    bool first = true, written = false;
    for (int m = 0; m < k->n; m++) {
      const lp_ins *j = &k->ins[m];
      if ((j->op != LP_LOAD && j->op != LP_STORE && j->op != LP_GATHER) || j->buf != i->buf) continue;
      if (m < n) first = false;
      written = written || j->op == LP_STORE;
    }
    if (!first) continue;
    const char *st = cg_storage_type(p->c->buf[i->buf].dt);
    line(p, "%s%s *restrict p%d = (%s%s *)b[%d];", written ? "" : "const ", st, i->buf, written ? "" : "const ", st, i->buf);
  }
  if (k->scratch >= 0) line(p, "double *restrict scratch = (double *)b[%d];", k->scratch);
}

static void declare_reductions(cg_text *t, const lp_kernel *k) {
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (i->op != LP_RED || is_sum(i) || !lp_associative(i->row)) continue;
    const char *names[3] = { "omp_in", "omp_in", "omp_in" };
    cg_put(t, "#ifndef RLG_%s_%s\n#define RLG_%s_%s\n", rl_ops[i->row].name, cg_compute_suffix(i->dt), rl_ops[i->row].name, cg_compute_suffix(i->dt));
    cg_put(t, "#pragma omp declare reduction(");
    put_reduction_name(t, i);
    cg_put(t, " : %s : omp_out = ", cg_compute_type(i->dt));
    cg_put_expr(t, i->row, i->dt, names, "omp_out", i->at);
    cg_put(t, ") initializer(omp_priv = ");
    cg_put_init(t, i->row, i->dt);
    cg_put(t, ")\n#endif\n");
  }
}

/* What stands above the kernels of a unit, after the prelude. */
void cg_print_prologue(cg_text *t) { cg_put(t, "#include <stdint.h>\n#include <math.h>\n#define RLG_MIN(a, b) ((a) < (b) ? (a) : (b))\n"); }

void cg_print_kernel(cg_text *t, const cg *c, const lp_kernel *k) {
  print p = { .t = t, .c = c, .k = k, .done = calloc((size_t)k->n + 1, 1) };
  if (!p.done) {
    t->bad = true;
    return;
  }
  p.rowless = k->nrow == k->sp.n && k->sp.n <= 1;
  cg_sites *sites = t->sites;
  t->sites = NULL;
  declare_reductions(t, k);
  t->sites = sites;
  cg_put(t, "\nint rl_k%d(void *const *b, const double *num, uint64_t seed, uint64_t ctr, const int64_t *q, const double *w) {\n", k->id);
  p.depth = 1;
  line(&p, "(void)num; (void)seed; (void)ctr; (void)q; (void)w;");
  if (sites) {
    sites->kernel = k->id;
    line(&p, "\3%d\2", k->id); /* where the sites' variables are declared */
  }
  pointers(&p);
  if (checks(k)) line(&p, "int failed = 0, bad = 0;");
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].level == LP_UNIFORM && (!k->ins[n].phase) && k->ins[n].op != LP_STORE && k->ins[n].op != LP_RED) define(&p, n);
  bool par = k->chunks > 1 && k->work >= PARALLEL_WORK;
  if (sites) line(&p, "%s", cg_number_text(t, CG_SITE_PARALLEL, par, p.ring[0], sizeof p.ring[0]));
  else if (par) line(&p, "_Pragma(\"omp parallel for schedule(static)\")");
  line(&p, "for (int64_t chunk = 0; chunk < %s; chunk++) {", chunks(&p));
  p.depth++;
  line(&p, "const int64_t lo = %s * chunk / %s, hi = %s * (chunk + 1) / %s; (void)lo; (void)hi;", size(&p, k->rows), chunks(&p), size(&p, k->rows),
       chunks(&p));
  chunk_open(&p);
  if (p.rowless) rowless_body(&p);
  else {
    line(&p, "for (int64_t row = lo; row < hi; row++) {");
    p.depth++;
    if (k->nrow) decode_row(&p, "row");
    row_body(&p);
    p.depth--;
    line(&p, "}");
  }
  chunk_close(&p);
  p.depth--;
  line(&p, "}");
  scalar_results(&p);
  column_results(&p);
  line(&p, checks(k) ? "return failed | bad;" : "return 0;");
  cg_put(t, "}\n");
  free(p.done);
}
