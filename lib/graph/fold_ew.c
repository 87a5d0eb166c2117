/* Fold, the rules on elementwise ops: constants, identities, casts. */
#include "fold.h"
#include <string.h>

/* The constant that every element of x is: x is a constant, or views and copies of one. */
rl_ref fold_constant_of(const rl_graph *g, rl_ref x) {
  while (graph_is_view(g->nodes[x].op) || fold_is_copy(g, x)) x = rl_node_in(g, x, 0);
  return g->nodes[x].op == RL_G_CONST ? x : -1;
}

static bool is_value(const rl_graph *g, rl_ref x, double v) {
  rl_ref c = fold_constant_of(g, x);
  if (c < 0) return false;
  const rl_attrs *a = graph_node_attrs(g, c);
  return rl_node_type(g, c)->dtype == RL_I64 ? a->v[0].i == (int64_t)v : a->v[0].f == v;
}

/* ---- constants, computed by the eager kernels ---- */

static rl_tensor *real_number(const rl_graph *g, rl_ref c) {
  rl_number n;
  rl_attrs a;
  rl_tensor *out = NULL;
  const rl_type *t = rl_node_type(g, c);
  rl_attrs_default(RL_OP_CAST, &a);
  a.v[0].i = t->dtype;
  rl_tensor *w = t->dtype == RL_I64 ? rl_number_seti(&n, graph_node_attrs(g, c)->v[0].i) : rl_number_set(&n, graph_node_attrs(g, c)->v[0].f);
  if (t->weak) return rl_tensor_keep(w);
  return rl_call(RL_OP_CAST, &w, 1, &a, &out) == RL_OK ? out : NULL;
}

static bool read_number(rl_tensor *t, double *f, int64_t *i) {
  rl_tensor *d = NULL;
  rl_attrs a;
  if (t->dtype == RL_I64) {
    *i = *(const int64_t *)rl_data(t);
    return true;
  }
  rl_attrs_default(RL_OP_CAST, &a);
  a.v[0].i = RL_F64;
  if (rl_call(RL_OP_CAST, &t, 1, &a, &d) != RL_OK) return false;
  *f = *(const double *)rl_data(d);
  rl_tensor_release(d);
  return true;
}

static bool compute(const rl_graph *g, int op, const rl_ref *in, int nin, const rl_attrs *a, double *f, int64_t *i) {
  rl_tensor *x[RL_MAXIN] = { 0 }, *out = NULL;
  bool ok = true;
  for (int k = 0; k < nin && ok; k++) ok = (x[k] = real_number(g, fold_constant_of(g, in[k]))) != NULL;
  ok = ok && rl_call((rl_op)op, x, nin, a, &out) == RL_OK && read_number(out, f, i);
  if (out) rl_tensor_release(out);
  for (int k = 0; k < nin; k++)
    if (x[k]) rl_tensor_release(x[k]);
  return ok;
}

/* Outside recording and without history, whatever this thread does at the moment. */
static bool compute_aside(const rl_graph *g, int op, const rl_ref *in, int nin, const rl_attrs *a, double *f, int64_t *i) {
  struct rl_graph *rec = rl_self.graph;
  bool grad = rl_self.grad_disabled;
  rl_self.graph = NULL;
  rl_self.grad_disabled = true;
  bool ok = compute(g, op, in, nin, a, f, i);
  rl_self.graph = rec;
  rl_self.grad_disabled = grad;
  return ok;
}

static rl_ref fold_constant(fold *f, rl_ref r, const rl_ref *in) {
  const rl_node *n = &f->old->nodes[r];
  rl_type t = *rl_node_type(f->old, r);
  double v = 0;
  int64_t i = 0;
  if (graph_numel(&t) == 0 || t.device != RL_CPU || t.weak) return FOLD_KEEP;
  for (int k = 0; k < n->nin; k++)
    if (in[k] < 0 || fold_constant_of(f->g, in[k]) < 0) return FOLD_KEEP;
  if (!compute_aside(f->g, n->op, in, n->nin, graph_node_attrs(f->old, r), &v, &i)) return FOLD_KEEP;
  return fold_broadcast(f, fold_const(f, (rl_dtype)t.dtype, RL_CPU, v, i), &t);
}

/* A reduction of one constant over n elements, by the eager kernel; n is limited, so that folding stays quick. */
static bool reduce_constant(const rl_graph *g, int op, rl_ref c, int64_t n, double *v, int64_t *i) {
  rl_tensor *x = real_number(g, c), *wide = NULL, *out = NULL;
  rl_attrs a;
  memset(&a, 0, sizeof a);
  a.nlist[0] = 1;
  a.list[0][0] = n;
  bool ok = x && rl_call(RL_OP_EXPAND, &x, 1, &a, &wide) == RL_OK;
  a.list[0][0] = 0;
  ok = ok && rl_call((rl_op)op, &wide, 1, &a, &out) == RL_OK && read_number(out, v, i);
  if (out) rl_tensor_release(out);
  if (wide) rl_tensor_release(wide);
  if (x) rl_tensor_release(x);
  return ok;
}

/* sum, amax ... of a constant: a constant. */
rl_ref fold_reduction(fold *f, rl_ref r, rl_ref x) {
  rl_ref c = fold_constant_of(f->g, x);
  rl_type t = *rl_node_type(f->old, r);
  int64_t n = graph_numel(rl_node_type(f->g, x)), m = graph_numel(&t), i = 0;
  double v = 0;
  if (c < 0 || n == 0 || m == 0 || n / m > 1 << 20 || t.device != RL_CPU || rl_node_type(f->g, c)->weak) return FOLD_KEEP;
  struct rl_graph *rec = rl_self.graph;
  bool grad = rl_self.grad_disabled;
  rl_self.graph = NULL;
  rl_self.grad_disabled = true;
  bool ok = reduce_constant(f->g, f->old->nodes[r].op, c, n / m, &v, &i);
  rl_self.graph = rec;
  rl_self.grad_disabled = grad;
  return ok ? fold_broadcast(f, fold_const(f, (rl_dtype)t.dtype, RL_CPU, v, i), &t) : FOLD_KEEP;
}

/* full: its value broadcast, when the dtype holds it as it is. */
rl_ref fold_full(fold *f, rl_ref r) {
  const rl_attrs *a = graph_node_attrs(f->old, r);
  rl_type t = *rl_node_type(f->old, r);
  double v = a->v[0].f;
  if (graph_numel(&t) == 0) return FOLD_KEEP;
  bool whole = v == (double)(int64_t)RL_MIN(RL_MAX(v, -1e9), 1e9) && v >= -128 && v <= 127 && !(v < 0 && t.dtype == RL_U8);
  if (t.dtype == RL_F32) v = (double)(float)v;
  else if (t.dtype != RL_F64 && !whole) return FOLD_KEEP;
  return fold_broadcast(f, fold_const(f, (rl_dtype)t.dtype, (rl_device)t.device, v, (int64_t)RL_MIN(RL_MAX(v, -1e9), 1e9)), &t);
}

/* ---- casts ---- */

static const struct {
  uint8_t bits;
  bool sign, flt;
} dtype_range[RL_NDTYPE] = { /* integer bits, or mantissa bits of a float */
                             [RL_U8] = { 8, false, false },  [RL_I8] = { 7, true, false },   [RL_I16] = { 15, true, false },
                             [RL_I32] = { 31, true, false }, [RL_I64] = { 63, true, false }, [RL_F16] = { 11, true, true },
                             [RL_BF16] = { 8, true, true },  [RL_F32] = { 24, true, true },  [RL_F64] = { 53, true, true }
};

/* Whether every value of `a` is one of `b`. */
static bool dtype_holds(rl_dtype b, rl_dtype a) {
  if (a == b) return true;
  if (dtype_range[a].flt) return dtype_range[b].flt && dtype_range[b].bits >= dtype_range[a].bits && !(a == RL_BF16 && b == RL_F16);
  if (dtype_range[b].flt) return dtype_range[b].bits >= dtype_range[a].bits;
  return dtype_range[b].bits >= dtype_range[a].bits && (dtype_range[b].sign || !dtype_range[a].sign);
}

static rl_ref fold_cast_node(fold *f, rl_ref r, rl_ref x) {
  rl_dtype to = (rl_dtype)rl_node_type(f->old, r)->dtype, via = (rl_dtype)rl_node_type(f->g, x)->dtype;
  if (f->g->nodes[x].op != RL_OP_CAST) return FOLD_KEEP;
  rl_ref in = rl_node_in(f->g, x, 0);
  rl_dtype from = (rl_dtype)rl_node_type(f->g, in)->dtype;
  if (!dtype_holds(via, from)) return FOLD_KEEP;
  if (from == to && !rl_node_type(f->g, in)->weak) return in;
  return fold_cast(f, in, to);
}

/* ---- identities ---- */

static bool is_integer(const rl_graph *g, rl_ref x) { return !rl_dtypes[rl_node_type(g, x)->dtype].is_float; }

static rl_ref fold_mul(fold *f, const rl_ref *in) {
  for (int k = 0; k < 2; k++) {
    if (is_value(f->g, in[k], 1)) return in[1 - k];
    if (is_value(f->g, in[k], 0) && is_integer(f->g, in[k])) return in[k];
  }
  return FOLD_KEEP;
}

static rl_ref fold_pow(fold *f, const rl_ref *in) {
  if (is_value(f->g, in[1], 1)) return in[0];
  if (!is_value(f->g, in[1], 2)) return FOLD_KEEP;
  rl_type t = *rl_node_type(f->g, in[0]);
  rl_ref xx[2] = { in[0], in[0] };
  return fold_op(f, RL_OP_MUL, &t, xx, 2);
}

static rl_ref fold_identity(fold *f, rl_ref r, const rl_ref *in) {
  const rl_graph *g = f->g;
  switch (f->old->nodes[r].op) {
  case RL_OP_ADD: return is_value(g, in[1], 0) ? in[0] : is_value(g, in[0], 0) ? in[1] : FOLD_KEEP;
  case RL_OP_SUB: return is_value(g, in[1], 0) ? in[0] : FOLD_KEEP;
  case RL_OP_MUL: return fold_mul(f, in);
  case RL_OP_DIV: return is_value(g, in[1], 1) ? in[0] : FOLD_KEEP;
  case RL_OP_POW: return fold_pow(f, in);
  case RL_OP_NEG: return g->nodes[in[0]].op == RL_OP_NEG ? rl_node_in(g, in[0], 0) : FOLD_KEEP;
  case RL_OP_WHERE: return fold_constant_of(g, in[0]) < 0 ? FOLD_KEEP : is_value(g, in[0], 0) ? in[2] : in[1];
  case RL_OP_CAST: return fold_cast_node(f, r, in[0]);
  default: return FOLD_KEEP;
  }
}

rl_ref fold_elementwise(fold *f, rl_ref r, const rl_ref *in) {
  rl_ref x = fold_constant(f, r, in);
  if (x != FOLD_KEEP) return x;
  x = fold_identity(f, r, in);
  /* before decompose an input may still broadcast: only a value of the result's own type may stand for it */
  if (x >= 0 && !graph_type_same(rl_node_type(f->g, x), rl_node_type(f->old, r))) return FOLD_KEEP;
  return x;
}
