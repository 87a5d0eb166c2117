/* Shape rules: indexing, ordering, sampling. */
#include "dispatch.h"
#include "rules.h"

#define RULE(name) rl_status rl_shape_##name(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out)

static rl_status index_error(rl_op op, const char *what, const rl_tensor *got, const rl_tensor *need) {
  char b1[256], b2[256];
  return rl_error("[%s] sizes of %s; got %s, need them to fit %s", rl_ops[op].name, what, rl_shape_str(got, b1), rl_shape_str(need, b2));
}

/* i lies inside x but along dim. */
static bool index_fits(const rl_tensor *i, const rl_tensor *x, int64_t dim) {
  if (i->ndim != x->ndim) return false;
  for (int d = 0; d < x->ndim; d++)
    if (d != dim && i->size[d] > x->size[d]) return false;
  return true;
}

RULE(gather)
{
  (void)nin;
  RL_TRY(rl_check_dim(op, in[0], a->v[0].i));
  if (!index_fits(in[1], in[0], a->v[0].i)) return index_error(op, "the index", in[1], in[0]);
  rl_rule_like(out, in[1]);
  return RL_OK;
}

RULE(scatter)
{
  (void)nin;
  RL_TRY(rl_check_dim(op, in[0], a->v[0].i));
  if (!index_fits(in[1], in[0], a->v[0].i)) return index_error(op, "the index", in[1], in[0]);
  if (!index_fits(in[1], in[2], -1)) return index_error(op, "the index", in[1], in[2]);
  rl_rule_like(out, in[0]);
  return RL_OK;
}

static rl_status index_vector(rl_op op, const rl_tensor *i) {
  return i->ndim <= 1 ? RL_OK : rl_error("[%s] the index; got %d dimensions, need 1", rl_ops[op].name, i->ndim);
}

RULE(index_select)
{
  (void)nin;
  RL_TRY(rl_check_dim(op, in[0], a->v[0].i));
  RL_TRY(index_vector(op, in[1]));
  rl_rule_like(out, in[0]);
  out->size[a->v[0].i] = rl_numel(in[1]);
  return RL_OK;
}

RULE(index_write)
{
  (void)nin;
  int64_t dim = a->v[0].i;
  RL_TRY(rl_check_dim(op, in[0], dim));
  RL_TRY(index_vector(op, in[1]));
  rl_rule_like(out, in[0]);
  bool ok = in[2]->ndim == in[0]->ndim;
  for (int d = 0; ok && d < in[0]->ndim; d++) ok = in[2]->size[d] == (d == dim ? rl_numel(in[1]) : in[0]->size[d]);
  return ok ? RL_OK : index_error(op, "the source", in[2], in[0]);
}

RULE(index_fill)
{
  (void)nin;
  RL_TRY(rl_check_dim(op, in[0], a->v[0].i));
  RL_TRY(index_vector(op, in[1]));
  if (in[2]->ndim != 0) return rl_error("[%s] the value; got %d dimensions, need a number", rl_ops[op].name, in[2]->ndim);
  rl_rule_like(out, in[0]);
  return RL_OK;
}

RULE(like_idx)
{
  (void)op;
  (void)nin;
  (void)a;
  rl_rule_like(out, in[1]);
  return RL_OK;
}

/* Number of elements of x that are not 0. */
static rl_status count_nonzero(rl_op op, rl_tensor *x, int64_t *n) {
  if (rl_self.graph || rl_is_fake(x))
    return rl_error_status(RL_NODATA, "[%s] the size of the result depends on values that are being captured", rl_ops[op].name);
  rl_number zero;
  rl_tensor *mask = NULL, *wide = NULL, *sum = NULL;
  rl_attrs dt = { .v = { { .i = RL_I64 } } }, all = { .nlist = { 0 } };
  double v = 0;
  rl_status s = rl_call(RL_OP_NE, (rl_tensor *[]){ x, rl_number_set(&zero, 0) }, 2, NULL, &mask);
  if (s == RL_OK) s = rl_call(RL_OP_CAST, &mask, 1, &dt, &wide);
  if (s == RL_OK) s = rl_call(RL_OP_SUM, &wide, 1, &all, &sum);
  if (s == RL_OK) s = rl_tensor_item(sum, &v);
  rl_tensor_release(mask);
  rl_tensor_release(wide);
  rl_tensor_release(sum);
  *n = (int64_t)v;
  return s;
}

RULE(nonzero)
{
  (void)nin;
  (void)a;
  int64_t n;
  RL_TRY(count_nonzero(op, in[0], &n));
  return rl_rule_sizes(op, 2, (int64_t[]){ n, in[0]->ndim }, out);
}

RULE(masked_select)
{
  (void)nin;
  (void)a;
  int64_t n;
  if (rl_numel(in[0]) != rl_numel(in[1])) return index_error(op, "the mask", in[1], in[0]);
  RL_TRY(count_nonzero(op, in[1], &n));
  return rl_rule_sizes(op, 1, &n, out);
}

static void both(const rl_tensor *x, rl_meta *out) {
  rl_rule_like(&out[0], x);
  rl_rule_like(&out[1], x);
  out[1].dtype = RL_I64;
}

RULE(sort)
{
  (void)nin;
  RL_TRY(rl_check_dim(op, in[0], a->v[0].i));
  both(in[0], out);
  return RL_OK;
}

RULE(topk)
{
  (void)nin;
  int64_t k = a->v[0].i, dim = a->v[1].i;
  RL_TRY(rl_check_dim(op, in[0], dim));
  if (k < 0 || k > in[0]->size[dim])
    return rl_error("[%s] k; got %lld, need at most %lld", rl_ops[op].name, (long long)k, (long long)in[0]->size[dim]);
  both(in[0], out);
  out[0].size[dim] = out[1].size[dim] = k;
  return RL_OK;
}

/* kthvalue (k, dim) and mode (dim): dim stays with size 1. */
RULE(keep1)
{
  (void)nin;
  bool kth = rl_ops[op].nattrs == 2;
  int64_t dim = a->v[kth ? 1 : 0].i;
  RL_TRY(rl_check_dim(op, in[0], dim));
  if (in[0]->size[dim] == 0) return rl_error("[%s] an empty dimension has no such element", rl_ops[op].name);
  if (kth && (a->v[0].i < 0 || a->v[0].i >= in[0]->size[dim]))
    return rl_error("[%s] rank out of range; got %lld, need 1 to %lld", rl_ops[op].name, (long long)a->v[0].i + 1, (long long)in[0]->size[dim]);
  both(in[0], out);
  out[0].size[dim] = out[1].size[dim] = 1;
  return RL_OK;
}

RULE(multinomial)
{
  (void)nin;
  int64_t n = a->v[0].i;
  const rl_tensor *p = in[0];
  if (p->ndim != 1 && p->ndim != 2) return rl_error("[%s] weights; got %d dimensions, need 1 or 2", rl_ops[op].name, p->ndim);
  if (n < 1 || (!a->v[1].i && n > p->size[p->ndim - 1]))
    return rl_error("[%s] draws; got %lld, need 1 to %lld without replacement", rl_ops[op].name, (long long)n, (long long)p->size[p->ndim - 1]);
  rl_rule_like(out, p);
  out->size[p->ndim - 1] = n;
  return RL_OK;
}
