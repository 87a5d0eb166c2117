/* Printing CUDA: one entry a kernel, a second one where reductions over all rows are finished (loop form, geometry -> CUDA C).
 *
 * Entries are named by the hash of their text, and what differs between layers of a model (buffers, counter offsets) is an argument: a
 * network of twelve equal layers compiles each kernel once. */
#include "cuda.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct print {
  cg_text *t;
  const cg *c;
  lp_kernel *k;
  const cg_plan *g;
  cg_grid *out;
  bool *done, *need;
  int depth, nrng;
  const char *idx; /* type of positions */
} print;

static void line(print *p, const char *fmt, ...) RL_PRINTF(2, 3);
static void line(print *p, const char *fmt, ...) {
  char text[2048];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  cg_put(p->t, "%*s%s\n", 2 * p->depth, "", text);
}
static void open_block(print *p, const char *head) {
  line(p, "%s{", head);
  p->depth++;
}
static void close_block(print *p) {
  p->depth--;
  line(p, "}");
}

/* ---- places ---- */

static int local(print *p, int buf) {
  cg_grid *o = p->out;
  for (int i = 0; i < o->nbuf; i++)
    if (o->buf[i] == buf) return i;
  o->buf[o->nbuf] = buf;
  return o->nbuf++;
}

static void put_position(print *p, const cg_acc *a) {
  const char *suffix = p->g->small ? "" : "LL";
  bool any = false;
  if (a->off) {
    cg_put(p->t, "%" PRId64 "%s", a->off, suffix);
    any = true;
  }
  for (int l = 0; l < p->k->sp.n; l++) {
    if (!a->st[l] || p->k->sp.size[l] == 1) continue;
    if (a->st[l] == 1) cg_put(p->t, "%si%d", any ? " + " : "", l);
    else cg_put(p->t, "%s%" PRId64 "%s * i%d", any ? " + " : "", a->st[l], suffix, l);
    any = true;
  }
  if (!any) cg_put(p->t, "0");
}

/* i<l> of the loops lo .. hi - 1 from a number in row-major order; the last one's is the base of a few neighbours. */
static void decode(print *p, const char *from, int lo, int hi, bool base) {
  const lp_kernel *k = p->k;
  int64_t s = 1;
  for (int l = hi - 1; l >= lo; l--) {
    const char *name = base && l == k->sp.n - 1 ? "b" : "i";
    if (l == lo && s == 1) line(p, "const %s %s%d = %s;", p->idx, name, l, from);
    else if (l == lo) line(p, "const %s %s%d = %s / %" PRId64 ";", p->idx, name, l, from, s);
    else if (s == 1) line(p, "const %s %s%d = %s %% %" PRId64 ";", p->idx, name, l, from, k->sp.size[l]);
    else line(p, "const %s %s%d = %s / %" PRId64 " %% %" PRId64 ";", p->idx, name, l, from, s, k->sp.size[l]);
    s *= k->sp.size[l];
  }
}

static bool lines_up(const print *p, const lp_ins *i, int n) {
  int last = p->k->sp.n - 1;
  if (i->level != LP_ELEM || i->phase || last < 0 || i->acc.st[last] != 1 || i->acc.off % n) return false;
  for (int l = 0; l < last; l++)
    if (i->acc.st[l] % n) return false;
  return true;
}
static bool wide(const print *p, const lp_ins *i) { return p->g->vec > 1 && (i->op == LP_LOAD || i->op == LP_STORE) && lines_up(p, i, p->g->vec); }
/* A random row whose neighbours share counters is drawn by fours. */
static bool drawn(const print *p, const lp_ins *i) { return p->g->vec == 4 && i->op == LP_RAND && i->dt != RL_F64 && lines_up(p, i, 4); }

/* ---- values ---- */

static bool is_mask(const lp_ins *i) { return i->op == LP_EW && i->dt == RL_U8 && rl_ops[i->row].out_dtype == 1 + RL_U8; }
static const char *var_type(const lp_ins *i) { return is_mask(i) ? "int" : cg_compute_type(i->dt); }
static bool is_sum(const lp_ins *i) { return !strcmp(rl_ops[i->row].expr, "a + x"); }
static const char *sum_type(const lp_ins *i) { return is_sum(i) && rl_dtypes[i->dt].is_float ? "double" : cg_compute_type(i->dt); }
static bool rounds(const print *p, const lp_ins *i) { return p->c->strict && cg_is_half(i->dt); }
static void put_round(print *p, const lp_ins *i) {
  if (rounds(p, i)) cg_put(p->t, "rl_ld_%s(rl_st_%s(", rl_dtypes[i->dt].suffix, rl_dtypes[i->dt].suffix);
}
static const char *end_round(const print *p, const lp_ins *i) { return rounds(p, i) ? "))" : ""; }

static void put_ew(print *p, const lp_ins *i) {
  char name[8][16];
  const char *names[8] = { 0 };
  for (int a = 0; a < i->narg; a++) {
    snprintf(name[a], sizeof name[a], "v%d", i->arg[a]);
    names[a] = name[a];
  }
  cg_put_expr(p->t, i->row, i->narg ? p->k->ins[i->arg[i->narg - 1]].dt : i->dt, names, NULL, i->at);
}

static int rng_slot(print *p, int64_t rng) {
  p->out->rng[p->nrng] = rng;
  return p->nrng++;
}

static void put_load(print *p, int n) {
  const lp_ins *i = &p->k->ins[n];
  const char *s = rl_dtypes[p->c->buf[i->buf].dt].suffix;
  if (wide(p, i)) cg_put(p->t, "rl_ld_%s(l%d.v[v])", s, n);
  else {
    cg_put(p->t, "rl_ld_%s(p%d[", s, local(p, i->buf));
    put_position(p, &i->acc);
    cg_put(p->t, "])");
  }
}

static void put_value(print *p, int n) {
  const lp_ins *i = &p->k->ins[n], *x = i->narg ? &p->k->ins[i->arg[0]] : NULL;
  cg_text *t = p->t;
  switch (i->op) {
  case LP_CONST: cg_put_number(t, i->dt, i->f, i->i); break;
  case LP_NUM: cg_put(t, "(%s)num[%" PRId64 "]", cg_compute_type(i->dt), i->i); break;
  case LP_LOAD: put_load(p, n); break;
  case LP_INDEX: put_position(p, &i->acc); break;
  case LP_CAST:
    if (cg_is_half(i->dt)) cg_put(t, "rl_ld_%s(rl_st_%s((float)v%d))", rl_dtypes[i->dt].suffix, rl_dtypes[i->dt].suffix, i->arg[0]);
    else if (!rl_dtypes[i->dt].is_float && rl_dtypes[x->dt].is_float) cg_put(t, "(%s)rl_toint((double)v%d)", cg_compute_type(i->dt), i->arg[0]);
    else cg_put(t, "(%s)v%d", cg_compute_type(i->dt), i->arg[0]);
    break;
  case LP_RAND:
    put_round(p, i);
    if (drawn(p, i)) cg_put(t, "l%d[v]", n);
    else {
      cg_put(t, "rl_%s_%s(seed, ctr + r%d, (int64_t)(", rl_ops[i->row].name, cg_compute_suffix(i->dt), rng_slot(p, i->rng));
      put_position(p, &i->acc);
      cg_put(t, "))");
    }
    cg_put(t, "%s", end_round(p, i));
    break;
  case LP_CHECK: cg_put(t, "v%d", i->arg[0]); break;
  case LP_GATHER:
    cg_put(t, "rl_ld_%s(p%d[", rl_dtypes[p->c->buf[i->buf].dt].suffix, local(p, i->buf));
    put_position(p, &i->acc);
    cg_put(t, " + ((uint64_t)v%d < %" PRId64 "u ? (%s)v%d : 0) * %" PRId64 "])", i->arg[0], i->bound, p->idx, i->arg[0], i->stride);
    break;
  case LP_EW:
    put_round(p, i);
    cg_put(t, "(%s)(", var_type(i));
    put_ew(p, i);
    cg_put(t, ")%s", end_round(p, i));
    break;
  default: cg_put(t, "0");
  }
}

static void define(print *p, int n) {
  const lp_ins *i = &p->k->ins[n];
  if (i->op == LP_CHECK || i->op == LP_GATHER)
    line(p, "if ((uint64_t)v%d >= %" PRId64 "u) rl_bad(err, 1 << 20, v%d, 0, %" PRId64 ");", i->arg[0], i->bound, i->arg[0], i->bound);
  cg_put(p->t, "%*sconst %s v%d = ", 2 * p->depth, "", var_type(i), n);
  put_value(p, n);
  cg_put(p->t, ";\n");
}

static void kept_place(print *p, char *s, size_t n) { snprintf(s, n, p->g->vec > 1 ? "e * %d + v" : "e", p->g->vec); }

static bool kept(const lp_ins *i, int pass) { return i->keep && i->pass < pass; }

/* What an element value needs in this pass. */
static void mark(print *p, int n, int pass) {
  const lp_ins *i = &p->k->ins[n];
  if (i->level != LP_ELEM || p->need[n]) return;
  p->need[n] = true;
  if (kept(i, pass)) return;
  for (int a = 0; a < i->narg; a++) mark(p, i->arg[a], pass);
}

/* Emits what an element value needs in this pass, itself last. */
static void pull(print *p, int n, int pass) {
  const lp_ins *i = &p->k->ins[n];
  char at[32];
  if (i->level != LP_ELEM || p->done[n]) return;
  p->done[n] = true;
  kept_place(p, at, sizeof at);
  if (kept(i, pass)) {
    line(p, "const %s v%d = t%d[%s];", var_type(i), n, n, at);
    return;
  }
  for (int a = 0; a < i->narg; a++) pull(p, i->arg[a], pass);
  if (i->op == LP_RED) line(p, "const %s v%d = v%d;", cg_compute_type(i->dt), n, i->arg[0]);
  else define(p, n);
  if (i->keep) line(p, "t%d[%s] = v%d;", n, at, n);
}

static void put_store(print *p, int n, bool vector) {
  const lp_ins *i = &p->k->ins[n];
  int dt = p->c->buf[i->buf].dt;
  if (vector) cg_put(p->t, "%*so%d.v[v] = ", 2 * p->depth, "", n);
  else {
    cg_put(p->t, "%*sp%d[", 2 * p->depth, "", local(p, i->buf));
    put_position(p, &i->acc);
    cg_put(p->t, "] = ");
  }
  cg_put(p->t, "rl_st_%s((%s)v%d);\n", rl_dtypes[dt].suffix, cg_compute_type(dt), i->arg[0]);
}

/* ---- reductions ---- */

static void combine(print *p, const lp_ins *i, const char *acc, const char *x) {
  const char *names[3] = { x, x, x };
  cg_put(p->t, "%*s%s = ", 2 * p->depth, "", acc);
  cg_put_expr(p->t, i->row, i->dt, names, acc, i->at);
  cg_put(p->t, ";\n");
}
static void combine_named(print *p, const lp_ins *i, const char *kind, int n, const char *fmt, ...) {
  char a[24], x[160];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(x, sizeof x, fmt, ap);
  va_end(ap);
  snprintf(a, sizeof a, "%s%d", kind, n);
  combine(p, i, a, x);
}
static void declare(print *p, const lp_ins *i, const char *type, const char *kind, int n, const char *more) {
  cg_put(p->t, "%*s%s %s%d%s = ", 2 * p->depth, "", type, kind, n, more);
  cg_put_init(p->t, i->row, i->dt);
  cg_put(p->t, ";\n");
}

static bool reduces_in(const lp_ins *i, int pass) { return i->op == LP_RED && i->pass == pass && i->rk != CG_RK_NONE; }
static bool is_column(const lp_ins *i) { return i->op == LP_RED && i->phase && i->level == LP_ELEM; }
static bool is_total(const lp_ins *i) { return i->op == LP_RED && i->phase && i->level != LP_ELEM; }
static bool by_element(const lp_ins *i) { return i->rk != CG_RK_COL || i->level == LP_ELEM; }

/* acc of every thread of a warp, and of a block of more, becomes that of all of them. h: shared words, one a warp. */
static void across_warp(print *p, const lp_ins *i, const char *type, const char *kind, int n) {
  bool narrow = rl_dtypes[i->dt].bytes < 4 && !rl_dtypes[i->dt].is_float;
  open_block(p, "for (int d = 16; d; d >>= 1) ");
  line(p, "const %s y = (%s)__shfl_xor_sync(0xffffffffu, %s%s%d, d);", type, type, narrow ? "(int)" : "", kind, n);
  combine_named(p, i, kind, n, "y");
  close_block(p);
}
static void to_shared(print *p, const char *kind, int n) { line(p, "if ((threadIdx.x & 31) == 0) h%d[threadIdx.x >> 5] = %s%d;", n, kind, n); }
static void from_shared(print *p, const lp_ins *i, const char *kind, int n, int warps) {
  line(p, "%s%d = h%d[0];", kind, n, n);
  line(p, "#pragma unroll");
  cg_put(p->t, "%*sfor (int w = 1; w < %d; w++)", 2 * p->depth, "", warps);
  int d = p->depth;
  p->depth = 1;
  combine_named(p, i, kind, n, "h%d[w]", n);
  p->depth = d;
}

static void put_reduced(print *p, int n, const char *kind) {
  const lp_ins *i = &p->k->ins[n];
  cg_put(p->t, "%*sconst %s v%d = ", 2 * p->depth, "", cg_compute_type(i->dt), n);
  put_round(p, i);
  cg_put(p->t, "(%s)%s%d%s;\n", cg_compute_type(i->dt), kind, n, end_round(p, i));
}

/* ---- bodies ---- */

static bool stores_in(const lp_ins *i, int pass) { return i->op == LP_STORE && !i->phase && i->level == LP_ELEM && i->pass == pass; }

static void load_groups(print *p) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!p->need[n]) continue;
    if (wide(p, i)) {
      const char *st = cg_storage_type(p->c->buf[i->buf].dt);
      cg_put(p->t, "%*sconst rl_vec<%s, %d> l%d = *(const rl_vec<%s, %d> *)(p%d + ", 2 * p->depth, "", st, p->g->vec, n, st, p->g->vec,
             local(p, i->buf));
      put_position(p, &i->acc);
      cg_put(p->t, ");\n");
    } else if (drawn(p, i)) {
      line(p, "float l%d[4];", n);
      cg_put(p->t, "%*srl_%s_group(seed, ctr + r%d + (uint64_t)((", 2 * p->depth, "", rl_ops[i->row].name, rng_slot(p, i->rng));
      put_position(p, &i->acc);
      cg_put(p->t, ") / 4), l%d);\n", n);
    }
  }
}

static void element_reduce(print *p, int n, int pass) {
  const lp_ins *i = &p->k->ins[n];
  char at[32];
  pull(p, i->arg[0], pass);
  kept_place(p, at, sizeof at);
  if (!is_column(i)) combine_named(p, i, "s", n, "v%d", i->arg[0]);
  else {
    char acc[64], x[24];
    if (p->g->registers) snprintf(acc, sizeof acc, "c%d[%s]", n, at);
    else snprintf(acc, sizeof acc, p->g->vec > 1 ? "c%d[j + v]" : "c%d[j]", n);
    snprintf(x, sizeof x, "v%d", i->arg[0]);
    combine(p, i, acc, x);
  }
}

/* Everything that the elements of one group do in a pass. i<l> of all loops but the last are known, b<last> is its base. */
static void group_body(print *p, int pass) {
  lp_kernel *k = p->k;
  int last = k->sp.n - 1, vec = p->g->vec;
  memset(p->done, 0, (size_t)k->n);
  memset(p->need, 0, (size_t)k->n);
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if ((reduces_in(i, pass) && by_element(i)) || stores_in(i, pass)) mark(p, i->arg[0], pass);
    if (i->keep && i->pass == pass && !i->phase) mark(p, n, pass);
  }
  if (vec > 1) {
    open_block(p, "");
    line(p, "const %s i%d = b%d;", p->idx, last, last);
  }
  int depth = p->depth;
  if (vec > 1) load_groups(p);
  for (int n = 0; n < k->n; n++)
    if (stores_in(&k->ins[n], pass) && wide(p, &k->ins[n])) line(p, "rl_vec<%s, %d> o%d;", cg_storage_type(p->c->buf[k->ins[n].buf].dt), vec, n);
  if (vec > 1) {
    line(p, "#pragma unroll");
    cg_put(p->t, "%*sfor (int v = 0; v < %d; v++) {\n", 2 * p->depth, "", vec);
    p->depth++;
    line(p, "const %s i%d = b%d + v;", p->idx, last, last);
  } else if (last >= 0 && last >= k->nrow) line(p, "const %s i%d = b%d;", p->idx, last, last);
  for (int n = 0; n < k->n; n++)
    if (reduces_in(&k->ins[n], pass) && by_element(&k->ins[n])) element_reduce(p, n, pass);
  for (int n = 0; n < k->n; n++)
    if (stores_in(&k->ins[n], pass) || (k->ins[n].keep && k->ins[n].pass == pass && !k->ins[n].phase))
      pull(p, stores_in(&k->ins[n], pass) ? k->ins[n].arg[0] : n, pass);
  for (int n = 0; n < k->n; n++)
    if (stores_in(&k->ins[n], pass)) put_store(p, n, wide(p, &k->ins[n]));
  while (p->depth > depth) close_block(p);
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (!stores_in(i, pass) || !wide(p, i)) continue;
    cg_put(p->t, "%*s*(rl_vec<%s, %d> *)(p%d + ", 2 * p->depth, "", cg_storage_type(p->c->buf[i->buf].dt), vec, local(p, i->buf));
    put_position(p, &i->acc);
    cg_put(p->t, ") = o%d;\n", n);
  }
  if (vec > 1) close_block(p);
}

static bool pass_has_elements(const print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (i->phase && i->op != LP_RED) continue;
    if ((reduces_in(i, pass) && by_element(i)) || stores_in(i, pass) || (i->keep && i->pass == pass)) return true;
  }
  return false;
}

static void row_values(print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (i->level != LP_ROW || i->phase || i->pass != pass || i->op == LP_STORE || (i->op == LP_RED && i->rk == CG_RK_ROW)) continue;
    if (i->op == LP_RED) line(p, "const %s v%d = v%d;", cg_compute_type(i->dt), n, i->arg[0]);
    else define(p, n);
  }
}

/* Reductions over all rows of what the row has once. */
static void row_totals(print *p, int pass) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (reduces_in(i, pass) && !by_element(i)) combine_named(p, i, "s", n, "v%d", i->arg[0]);
  }
}
static bool any_row_total(const print *p) {
  for (int n = 0; n < p->k->n; n++)
    if (p->k->ins[n].op == LP_RED && p->k->ins[n].rk != CG_RK_NONE && !by_element(&p->k->ins[n])) return true;
  return false;
}

static bool any_row_store(const print *p) {
  for (int n = 0; n < p->k->n; n++)
    if (p->k->ins[n].op == LP_STORE && !p->k->ins[n].phase && p->k->ins[n].level != LP_ELEM) return true;
  return false;
}
static void row_stores(print *p, const char *who) {
  if (!any_row_store(p)) return;
  open_block(p, who);
  for (int n = 0; n < p->k->n; n++)
    if (p->k->ins[n].op == LP_STORE && !p->k->ins[n].phase && p->k->ins[n].level != LP_ELEM) put_store(p, n, false);
  close_block(p);
}

/* ---- accumulators that outlive a row ---- */

static int64_t column_at(const print *p, const lp_ins *i) { return p->g->parts * p->k->nscalar + (int64_t)i->slot * p->g->cparts * p->k->inner; }

static void open_totals(print *p, const char *part) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    const char *ct = cg_compute_type(i->dt);
    if (is_total(i)) declare(p, i, ct, "s", n, "");
    if (!is_column(i)) continue;
    int room = p->g->ne * p->g->vec;
    if (p->g->registers) {
      line(p, "%s c%d[%d];", ct, n, room);
      line(p, "#pragma unroll");
      cg_put(p->t, "%*sfor (int q = 0; q < %d; q++) c%d[q] = ", 2 * p->depth, "", room, n);
    } else {
      line(p, "%s *__restrict__ c%d = (%s *)(scratch + %" PRId64 "LL + (int64_t)%s * %" PRId64 ");", ct, n, ct, column_at(p, i), part, p->k->inner);
      cg_put(p->t, "%*sfor (int q = lane; q < %" PRId64 " / %d; q += %d) for (int v = 0; v < %d; v++) c%d[q * %d + v] = ", 2 * p->depth, "",
             p->k->inner, p->g->vec, p->g->tpr, p->g->vec, n, p->g->vec);
    }
    cg_put_init(p->t, i->row, i->dt);
    cg_put(p->t, ";\n");
  }
}

/* Totals of the threads of a group, in the sum's own type, to scratch. */
static void close_totals(print *p, int threads, const char *part, const char *leader) {
  bool any = false;
  for (int n = 0; n < p->k->n; n++) any = any || is_total(&p->k->ins[n]);
  if (!any) return;
  bool rows = p->g->share == CG_ROWS;
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!is_total(i)) continue;
    line(p, "%s a%d = s%d;", sum_type(i), n, n);
    if (rows && !by_element(i)) continue; /* every thread has the whole */
    across_warp(p, i, sum_type(i), "a", n);
    if (threads > 32) line(p, "__shared__ %s h%d[%d];", sum_type(i), n, threads / 32);
    if (threads > 32) to_shared(p, "a", n);
  }
  if (threads > 32) line(p, "__syncthreads();");
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!is_total(i)) continue;
    if (threads > 32 && !(rows && !by_element(i))) from_shared(p, i, "a", n, threads / 32);
    line(p, "if (%s) *(%s *)(scratch + %" PRId64 "LL + %s) = a%d;", leader, sum_type(i), (int64_t)i->slot * p->g->parts, part, n);
  }
}

/* ---- rows ---- */

/* Sums of this block's threads, then of the cluster's blocks, each read from that block's shared memory: all come to the same number. */
static void across_cluster(print *p, int pass, int warps) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!reduces_in(i, pass) || i->rk != CG_RK_ROW) continue;
    from_shared(p, i, "s", n, warps);
    line(p, "__shared__ %s q%d;", cg_compute_type(i->dt), n);
    line(p, "if (threadIdx.x == 0) q%d = s%d;", n, n);
  }
  line(p, "rl_cluster_wait();");
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!reduces_in(i, pass) || i->rk != CG_RK_ROW) continue;
    line(p, "s%d = rl_cluster_get(&q%d, 0);", n, n);
    line(p, "#pragma unroll");
    cg_put(p->t, "%*sfor (int w = 1; w < %d; w++)", 2 * p->depth, "", p->g->cluster);
    int d = p->depth;
    p->depth = 1;
    combine_named(p, i, "s", n, "rl_cluster_get(&q%d, w)", n);
    p->depth = d;
  }
}

static void reduce_rows(print *p, int pass) {
  const cg_plan *g = p->g;
  bool any = false, block = g->tpr > 32;
  int warps = RL_MIN(g->tpr, g->threads) / 32;
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!reduces_in(i, pass) || i->rk != CG_RK_ROW) continue;
    any = true;
    across_warp(p, i, cg_compute_type(i->dt), "s", n);
    if (block) line(p, "__shared__ %s h%d[%d];", cg_compute_type(i->dt), n, warps);
    if (block) to_shared(p, "s", n);
  }
  if (any && block) line(p, "__syncthreads();");
  if (any && g->cluster > 1) across_cluster(p, pass, warps);
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (!reduces_in(i, pass) || i->rk != CG_RK_ROW) continue;
    if (block && g->cluster == 1) from_shared(p, i, "s", n, warps);
    put_reduced(p, n, "s");
  }
  if (any && block) line(p, g->cluster > 1 ? "rl_cluster_wait();" : "__syncthreads();");
}

static bool keeps(const print *p) {
  for (int n = 0; n < p->k->n; n++)
    if ((p->k->ins[n].keep && !p->k->ins[n].phase) || (is_column(&p->k->ins[n]) && p->g->registers)) return true;
  return false;
}

static void row_elements(print *p, int pass) {
  const lp_kernel *k = p->k;
  const cg_plan *g = p->g;
  int depth = p->depth;
  if (g->ne > 1) {
    line(p, keeps(p) || g->ne <= 4 ? "#pragma unroll" : "#pragma unroll 2");
    cg_put(p->t, "%*sfor (int e = 0; e < %d; e++) {\n", 2 * p->depth, "", g->ne);
    p->depth++;
    line(p, "const %s j = (lane + e * %d) * %d;", p->idx, g->tpr, g->vec);
  } else {
    open_block(p, "");
    line(p, "const int e = 0;");
    line(p, "const %s j = (%s)lane * %d;", p->idx, p->idx, g->vec);
  }
  if (!g->exact) {
    cg_put(p->t, "%*sif (j < %" PRId64 ") {\n", 2 * p->depth, "", k->inner);
    p->depth++;
  }
  decode(p, "j", k->nrow, k->sp.n, true);
  group_body(p, pass);
  while (p->depth > depth) close_block(p);
}

static void rows_entry(print *p) {
  lp_kernel *k = p->k;
  const cg_plan *g = p->g;
  int groups = RL_MAX(1, g->threads / g->tpr);
  char text[160];
  if (g->cluster > 1) {
    line(p, "const int lane = blockIdx.x %% %d * %d + threadIdx.x; (void)lane;", g->cluster, g->threads);
    line(p, "const int part = blockIdx.x / %d;", g->cluster);
  } else {
    line(p, "const int lane = threadIdx.x %% %d; (void)lane;", g->tpr);
    line(p, groups > 1 ? "const int part = blockIdx.x * %d + threadIdx.x / %d;" : "const int part = blockIdx.x;", groups, g->tpr);
  }
  open_totals(p, "part");
  if (g->blocks * groups >= k->rows) snprintf(text, sizeof text, "if (part < %" PRId64 ") ", k->rows);
  else snprintf(text, sizeof text, "for (%s row = part; row < %" PRId64 "; row += %" PRId64 ") ", p->idx, k->rows, g->blocks * groups);
  open_block(p, g->blocks * groups == k->rows ? "" : text);
  if (g->blocks * groups >= k->rows) line(p, "const %s row = part; (void)row;", p->idx);
  if (k->nrow) decode(p, "row", 0, k->nrow, false);
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].keep && !k->ins[n].phase) line(p, "%s t%d[%d];", var_type(&k->ins[n]), n, g->ne * g->vec);
  for (int pass = 0; pass < k->npass; pass++) {
    row_values(p, pass);
    row_totals(p, pass);
    if (!pass_has_elements(p, pass)) continue;
    for (int n = 0; n < k->n; n++)
      if (reduces_in(&k->ins[n], pass) && k->ins[n].rk == CG_RK_ROW) declare(p, &k->ins[n], cg_compute_type(k->ins[n].dt), "s", n, "");
    row_elements(p, pass);
    reduce_rows(p, pass);
  }
  if (any_row_store(p)) line(p, g->tpr > 32 ? "__syncthreads();" : "__syncwarp();");
  row_stores(p, "if (lane == 0) ");
  close_block(p);
  close_totals(p, g->tpr, "part", "lane == 0");
  for (int n = 0; n < k->n; n++) { /* column sums from registers */
    if (!is_column(&k->ins[n]) || !g->registers) continue;
    line(p, "#pragma unroll");
    cg_put(p->t, "%*sfor (int e = 0; e < %d; e++) for (int v = 0; v < %d; v++) if ((lane + e * %d) * %d < %" PRId64 ")\n", 2 * p->depth, "", g->ne,
           g->vec, g->tpr, g->vec, k->inner);
    line(p, "  ((%s *)(scratch + %" PRId64 "LL + (int64_t)part * %" PRId64 "))[(lane + e * %d) * %d + v] = c%d[e * %d + v];",
         cg_compute_type(k->ins[n].dt), column_at(p, &k->ins[n]), k->inner, g->tpr, g->vec, n, g->vec);
  }
}

/* ---- columns ---- */

static void fold_lanes(print *p) {
  const cg_plan *g = p->g;
  line(p, "__shared__ double sh[256];");
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    const char *ct = cg_compute_type(i->dt);
    if (!is_column(i)) continue;
    cg_put(p->t, "%*sfor (int v = 0; v < %d; v++) {\n", 2 * p->depth, "", g->vec);
    p->depth++;
    if (g->ty > 1) {
      line(p, "%s *h = (%s *)sh;", ct, ct);
      line(p, "h[threadIdx.x] = c%d[v];", n);
      line(p, "__syncthreads();");
      cg_put(p->t, "%*sfor (int d = %d; d; d >>= 1) {\n", 2 * p->depth, "", g->ty / 2);
      p->depth++;
      cg_put(p->t, "%*sif (ty < d)", 2 * p->depth, "");
      char x[48];
      snprintf(x, sizeof x, "h[threadIdx.x + d * %d]", g->tpr);
      int d = p->depth;
      p->depth = 1;
      combine(p, i, "h[threadIdx.x]", x);
      p->depth = d;
      line(p, "__syncthreads();");
      close_block(p);
      line(p, "c%d[v] = h[threadIdx.x %% %d];", n, g->tpr);
      line(p, "__syncthreads();");
    }
    line(p, "if (ty == 0 && inside) ((%s *)(scratch + %" PRId64 "LL + (int64_t)blockIdx.y * %" PRId64 "))[j + v] = c%d[v];", ct, column_at(p, i),
         p->k->inner, n);
    close_block(p);
  }
}

static void columns_entry(print *p) {
  lp_kernel *k = p->k;
  const cg_plan *g = p->g;
  char text[160];
  line(p, "const int lane = threadIdx.x %% %d, ty = threadIdx.x / %d, e = 0; (void)e;", g->tpr, g->tpr);
  line(p, "const %s j = ((%s)blockIdx.x * %d + lane) * %d;", p->idx, p->idx, g->tpr, g->vec);
  line(p, "const bool inside = j < %" PRId64 ";", k->inner);
  open_totals(p, "blockIdx.y");
  decode(p, "j", k->nrow, k->sp.n, true);
  snprintf(text, sizeof text, "for (%s row = (%s)blockIdx.y * %d + ty; row < %" PRId64 " && inside; row += %" PRId64 ") ", p->idx, p->idx, g->ty,
           k->rows, g->columns * g->ty);
  line(p, "#pragma unroll 4");
  open_block(p, text);
  if (k->nrow) decode(p, "row", 0, k->nrow, false);
  row_values(p, 0);
  if (any_row_total(p)) {
    open_block(p, "if (j == 0) ");
    row_totals(p, 0);
    close_block(p);
  }
  open_block(p, "");
  group_body(p, 0);
  close_block(p);
  row_stores(p, "if (j == 0) ");
  close_block(p);
  fold_lanes(p);
  close_totals(p, g->threads, "(blockIdx.y * (int64_t)gridDim.x + blockIdx.x)", "threadIdx.x == 0");
}

/* ---- flat ---- */

static void flat_entry(print *p) {
  lp_kernel *k = p->k;
  const cg_plan *g = p->g;
  int64_t n = k->rows * k->inner / g->vec;
  char text[200];
  open_totals(p, "blockIdx.x");
  line(p, "const int e = 0; (void)e;");
  if (g->blocks * 256 >= n) {
    line(p, "const %s w = (%s)blockIdx.x * 256 + threadIdx.x;", p->idx, p->idx);
    snprintf(text, sizeof text, "if (w < %" PRId64 ") ", n);
  } else
    snprintf(text, sizeof text, "for (%s w = (%s)blockIdx.x * 256 + threadIdx.x; w < %" PRId64 "; w += %" PRId64 ") ", p->idx, p->idx, n,
             g->blocks * 256);
  open_block(p, text);
  line(p, "const %s j = w * %d %% %" PRId64 ", row = w * %d / %" PRId64 "; (void)row; (void)j;", p->idx, g->vec, k->inner, g->vec, k->inner);
  if (k->nrow) decode(p, "row", 0, k->nrow, false);
  decode(p, "j", k->nrow, k->sp.n, true);
  for (int pass = 0; pass < k->npass; pass++) {
    row_values(p, pass);
    if (any_row_total(p)) {
      open_block(p, "if (j == 0) ");
      row_totals(p, pass);
      close_block(p);
    }
    if (!pass_has_elements(p, pass)) continue;
    open_block(p, "");
    group_body(p, pass);
    close_block(p);
  }
  row_stores(p, "if (j == 0) ");
  close_block(p);
  close_totals(p, g->threads, "blockIdx.x", "threadIdx.x == 0");
}

/* ---- finish: reductions over all rows ---- */

static void finish_totals(print *p, int threads) {
  const lp_kernel *k = p->k;
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (!is_total(i)) continue;
    const char *wt = sum_type(i);
    declare(p, i, wt, "f", n, "");
    cg_put(p->t, "%*sfor (int q = threadIdx.x; q < %" PRId64 "; q += %d)", 2 * p->depth, "", p->g->parts, threads);
    int d = p->depth;
    p->depth = 1;
    combine_named(p, i, "f", n, "*(const %s *)(scratch + %" PRId64 "LL + q)", wt, (int64_t)i->slot * p->g->parts);
    p->depth = d;
    across_warp(p, i, wt, "f", n);
    if (threads > 32) {
      line(p, "__shared__ %s g%d[%d];", wt, n, threads / 32);
      line(p, "if ((threadIdx.x & 31) == 0) g%d[threadIdx.x >> 5] = f%d;", n, n);
      line(p, "__syncthreads();");
      line(p, "f%d = g%d[0];", n, n);
      cg_put(p->t, "%*sfor (int w = 1; w < %d; w++)", 2 * p->depth, "", threads / 32);
      p->depth = 1;
      combine_named(p, i, "f", n, "g%d[w]", n);
      p->depth = d;
    }
    put_reduced(p, n, "f");
  }
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (!i->phase || i->level == LP_ELEM || i->op == LP_RED || i->op == LP_STORE) continue;
    define(p, n);
  }
}

static void finish_stores(print *p) {
  bool any = false;
  for (int n = 0; n < p->k->n; n++) any = any || (p->k->ins[n].phase && p->k->ins[n].op == LP_STORE && p->k->ins[n].level != LP_ELEM);
  if (!any) return;
  line(p, "__syncthreads();");
  open_block(p, "if (blockIdx.x == 0 && threadIdx.x == 0) ");
  for (int n = 0; n < p->k->n; n++)
    if (p->k->ins[n].phase && p->k->ins[n].op == LP_STORE && p->k->ins[n].level != LP_ELEM) put_store(p, n, false);
  close_block(p);
}

static void column_pull(print *p, int n) {
  const lp_ins *i = &p->k->ins[n];
  if (i->level != LP_ELEM || p->done[n]) return;
  p->done[n] = true;
  if (i->op == LP_RED && i->phase) {
    cg_put(p->t, "%*sconst %s v%d = ", 2 * p->depth, "", cg_compute_type(i->dt), n);
    put_round(p, i);
    cg_put(p->t, "c%d%s;\n", n, end_round(p, i));
    return;
  }
  for (int a = 0; a < i->narg; a++) column_pull(p, i->arg[a]);
  define(p, n);
}

static void finish_columns(print *p, int threads) {
  lp_kernel *k = p->k;
  bool any = false;
  int lanes = threads / 32;
  for (int n = 0; n < k->n; n++) any = any || (k->ins[n].phase && k->ins[n].op == LP_STORE && k->ins[n].level == LP_ELEM);
  if (!any) return;
  line(p, "const int cx = threadIdx.x & 31, cy = threadIdx.x >> 5; (void)cy;");
  cg_put(p->t, "%*sfor (%s jb = (%s)blockIdx.x * 32; jb < %" PRId64 "; jb += (%s)gridDim.x * 32) {\n", 2 * p->depth, "", p->idx, p->idx, k->inner,
         p->idx);
  p->depth++;
  line(p, "const %s j = jb + cx;", p->idx);
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (!is_column(i)) continue;
    const char *ct = cg_compute_type(i->dt);
    declare(p, i, ct, "c", n, "");
    line(p, "#pragma unroll 4");
    cg_put(p->t, "%*sif (j < %" PRId64 ") for (int q = cy; q < %" PRId64 "; q += %d)", 2 * p->depth, "", k->inner, p->g->cparts, lanes);
    int d = p->depth;
    p->depth = 1;
    combine_named(p, i, "c", n, "((const %s *)(scratch + %" PRId64 "LL + (int64_t)q * %" PRId64 "))[j]", ct, column_at(p, i), k->inner);
    p->depth = d;
    if (lanes == 1) continue;
    line(p, "__shared__ %s k%d[%d];", ct, n, threads);
    line(p, "__syncthreads();");
    line(p, "k%d[threadIdx.x] = c%d;", n, n);
    line(p, "__syncthreads();");
    cg_put(p->t, "%*sif (cy == 0) for (int w = 1; w < %d; w++)", 2 * p->depth, "", lanes);
    p->depth = 1;
    combine_named(p, i, "c", n, "k%d[cx + w * 32]", n);
    p->depth = d;
  }
  cg_put(p->t, "%*sif (cy == 0 && j < %" PRId64 ") {\n", 2 * p->depth, "", k->inner);
  p->depth++;
  decode(p, "j", k->nrow, k->sp.n, false);
  memset(p->done, 0, (size_t)k->n);
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].phase && k->ins[n].op == LP_STORE && k->ins[n].level == LP_ELEM) column_pull(p, k->ins[n].arg[0]);
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].phase && k->ins[n].op == LP_STORE && k->ins[n].level == LP_ELEM) put_store(p, n, false);
  close_block(p);
  close_block(p);
}

static bool has_finish(const lp_kernel *k) {
  for (int n = 0; n < k->n; n++)
    if (k->ins[n].phase && k->ins[n].op == LP_STORE) return true;
  return false;
}
static bool finish_alone(const lp_kernel *k) {
  bool scalar = false, columns = false;
  for (int n = 0; n < k->n; n++) {
    const lp_ins *i = &k->ins[n];
    if (!i->phase || i->op != LP_STORE) continue;
    if (i->level == LP_ELEM) columns = true;
    else scalar = scalar || i->inplace;
  }
  return scalar || !columns;
}

/* ---- entries ---- */

static void uniforms(print *p) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (i->level == LP_UNIFORM && !i->phase && i->op != LP_STORE && i->op != LP_RED) define(p, n);
  }
}
static void draws(print *p) {
  for (int n = 0; n < p->k->n; n++)
    if (p->k->ins[n].op == LP_RAND) {
      line(p, "const uint64_t seed = rng[0], ctr = rng[1];");
      return;
    }
}

/* Buffers in order of first use: known before the text is printed, since arguments come first. */
static void collect(print *p) {
  for (int n = 0; n < p->k->n; n++) {
    const lp_ins *i = &p->k->ins[n];
    if (i->op == LP_LOAD || i->op == LP_STORE || i->op == LP_GATHER) local(p, i->buf);
  }
  if (p->k->scratch >= 0) local(p, p->k->scratch);
}

static void put_arguments(print *p, cg_text *t) {
  const cg_grid *o = p->out;
  for (int a = 0; a < o->nbuf; a++) {
    bool written = false;
    if (o->buf[a] == p->k->scratch) {
      cg_put(t, "double *__restrict__ scratch, ");
      continue;
    }
    for (int n = 0; n < p->k->n; n++) written = written || (p->k->ins[n].op == LP_STORE && p->k->ins[n].buf == o->buf[a]);
    cg_put(t, "%s%s *__restrict__ p%d, ", written ? "" : "const ", cg_storage_type(p->c->buf[o->buf[a]].dt), a);
  }
  cg_put(t, "const double *__restrict__ num, const uint64_t *__restrict__ rng, int64_t *err");
  for (int r = 0; r < o->nrng; r++) cg_put(t, ", uint64_t r%d", r);
}

void cg_print_cuda_prologue(cg_text *t, bool strict) {
  cg_put(t, "%s#define INT32_MAX 2147483647\n#define INT32_MIN (-2147483647 - 1)\n#define INT64_MAX 9223372036854775807LL\n",
         strict ? "" : "#define RL_FAST 1\n");
}

/* What stands between the prelude and the first kernel. */
static const char support[] =
    "template <class T, int N> struct __align__(sizeof(T) * N < 16 ? sizeof(T) * N : 16) rl_vec { T v[N]; };\n"
    "static __device__ __noinline__ void rl_bad(int64_t *err, int64_t op, int64_t v, int64_t at, int64_t n) {\n"
    "  if (atomicCAS((unsigned long long *)err, 0ULL, (unsigned long long)(op + 1)) == 0ULL) err[1] = v, err[2] = at, err[3] = n;\n"
    "}\n"
    "#if __CUDA_ARCH__ >= 900 /* clusters: all wait for all, which orders shared memory; a number from another block's */\n"
    "RL_FN void rl_cluster_wait() { asm volatile(\"barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;\" ::: "
    "\"memory\"); }\n"
    "template <class T> static __device__ T rl_cluster_get(const T *p, unsigned block) {\n"
    "  unsigned at = (unsigned)__cvta_generic_to_shared(p);\n"
    "  unsigned long long w = 0;\n"
    "  T v;\n"
    "  asm(\"mapa.shared::cluster.u32 %0, %0, %1;\" : \"+r\"(at) : \"r\"(block));\n"
    "  if (sizeof(T) == 8) asm volatile(\"ld.shared::cluster.u64 %0, [%1];\" : \"=l\"(w) : \"r\"(at) : \"memory\");\n"
    "  else {\n"
    "    unsigned u;\n"
    "    if (sizeof(T) == 4) asm volatile(\"ld.shared::cluster.u32 %0, [%1];\" : \"=r\"(u) : \"r\"(at) : \"memory\");\n"
    "    else if (sizeof(T) == 2) {\n"
    "      unsigned short h;\n"
    "      asm volatile(\"ld.shared::cluster.u16 %0, [%1];\" : \"=h\"(h) : \"r\"(at) : \"memory\");\n"
    "      u = h;\n"
    "    } else asm volatile(\"ld.shared::cluster.u8 %0, [%1];\" : \"=r\"(u) : \"r\"(at) : \"memory\");\n"
    "    w = u;\n"
    "  }\n"
    "  memcpy(&v, &w, sizeof v);\n"
    "  return v;\n"
    "}\n"
    "#endif\n";

static uint64_t hash(const char *s, size_t n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
  return h ^ h >> 29;
}

static void print_entry(print *p, cg_text *t, const char *tail, int threads, const cg_text *body) {
  char cluster[40] = "";
  if (p->g->cluster > 1 && !*tail) snprintf(cluster, sizeof cluster, "__cluster_dims__(%d, 1, 1) ", p->g->cluster);
  cg_put(t, "extern \"C\" __global__ void %s__launch_bounds__(%d) %s%s(", cluster, threads, p->out->name, tail);
  put_arguments(p, t);
  cg_put(t, ") {\n%s}\n", body->p ? body->p : "");
}

rl_status cg_print_cuda(cg_text *t, const cg *c, lp_kernel *k, const cg_plan *g, cg_grid *out) {
  size_t room = (size_t)k->n * 2 + 2;
  cg_text main = { 0 }, last = { 0 }, whole = { 0 };
  print p = { &main, c, k, g, out, calloc((size_t)k->n + 1, 1), calloc((size_t)k->n + 1, 1), 1, 0, g->small ? "int" : "int64_t" };
  *out = (cg_grid){ .buf = calloc(room, sizeof *out->buf),
                    .rng = calloc(room * 4, sizeof *out->rng),
                    .blocks = g->blocks * g->cluster,
                    .columns = g->columns,
                    .threads = g->threads };
  if (!p.done || !p.need || !out->buf || !out->rng) return rl_error_status(RL_OOM, "[compile] out of memory");
  if (!strstr(t->p ? t->p : "", "struct __align__")) cg_put(t, "%s", support);
  collect(&p);
  draws(&p);
  uniforms(&p);
  if (g->share == CG_ROWS) rows_entry(&p);
  else if (g->share == CG_COLS) columns_entry(&p);
  else flat_entry(&p);
  bool finish = has_finish(k), inside = finish && g->blocks * g->columns * g->cluster == 1;
  if (finish && !inside) {
    p.t = &last;
    draws(&p);
    uniforms(&p);
    out->finish = finish_alone(k) ? 1 : RL_MIN((k->inner + 31) / 32, 1056);
  }
  if (finish) {
    if (inside) line(&p, "__syncthreads();");
    finish_totals(&p, inside ? g->threads : 256);
    finish_columns(&p, inside ? g->threads : 256);
    finish_stores(&p);
  }
  out->nrng = p.nrng;
  put_arguments(&p, &whole);
  cg_put(&whole, "%s|%s|%d|%d|%d", main.p ? main.p : "", last.p ? last.p : "", g->threads, g->cluster, c->strict);
  snprintf(out->name, sizeof out->name, "rl_%016llx", (unsigned long long)hash(whole.p ? whole.p : "", whole.n));
  if (!strstr(t->p ? t->p : "", out->name)) {
    print_entry(&p, t, "", g->threads, &main);
    if (out->finish) print_entry(&p, t, "_f", 256, &last);
  }
  t->bad = t->bad || main.bad || last.bad || whole.bad;
  free(main.p);
  free(last.p);
  free(whole.p);
  free(p.done);
  free(p.need);
  return RL_OK;
}
