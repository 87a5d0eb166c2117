/* Shape rules: linear systems, factorisations, spectra. */
#include "dispatch.h"
#include "rules.h"

#define RULE(name) rl_status rl_shape_##name(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out)

static rl_status need_matrix(rl_op op, const rl_tensor *x) {
  char b[256];
  if (x->ndim != 2) return rl_error("[%s] dimensions; got %s, need a matrix", rl_ops[op].name, rl_shape_str(x, b));
  if (x->size[0] > INT32_MAX / 128 || x->size[1] > INT32_MAX / 128)
    return rl_error("[%s] sizes; got %s, need at most 2^24 rows and columns", rl_ops[op].name, rl_shape_str(x, b));
  return RL_OK;
}

static rl_status need_square(rl_op op, const rl_tensor *x) {
  char b[256];
  RL_TRY(need_matrix(op, x));
  return x->size[0] == x->size[1] ? RL_OK : rl_error("[%s] sizes; got %s, need a square matrix", rl_ops[op].name, rl_shape_str(x, b));
}

/* b has as many rows as a. */
static rl_status need_rows(rl_op op, const rl_tensor *b, const rl_tensor *a) {
  char b1[256], b2[256];
  RL_TRY(need_matrix(op, b));
  if (b->size[0] == a->size[0]) return RL_OK;
  return rl_error("[%s] rows of the right-hand side; got %s, need those of %s", rl_ops[op].name, rl_shape_str(b, b1), rl_shape_str(a, b2));
}

static void sizes2(rl_meta *m, int64_t r, int64_t c) { m->ndim = 2, m->size[0] = r, m->size[1] = c; }
static void sizes1(rl_meta *m, int64_t n) { m->ndim = 1, m->size[0] = n; }

/* One square matrix to one of the same sizes. */
RULE(square)
{
  (void)nin, (void)a;
  RL_TRY(need_square(op, in[0]));
  rl_rule_like(out, in[0]);
  return RL_OK;
}

/* (b, a) -> x, and the factors of a where the row has a second result. */
RULE(solve)
{
  (void)nin, (void)a;
  RL_TRY(need_square(op, in[1]));
  RL_TRY(need_rows(op, in[0], in[1]));
  rl_rule_like(&out[0], in[0]);
  if (rl_ops[op].nout > 1) rl_rule_like(&out[1], in[1]);
  return RL_OK;
}

RULE(gels)
{
  (void)nin, (void)a;
  RL_TRY(need_matrix(op, in[1]));
  RL_TRY(need_rows(op, in[0], in[1]));
  sizes2(&out[0], in[1]->size[1], in[0]->size[1]);
  rl_rule_like(&out[1], in[1]);
  return RL_OK;
}

RULE(pstrf)
{
  (void)nin, (void)a;
  RL_TRY(need_square(op, in[0]));
  rl_rule_like(&out[0], in[0]);
  sizes1(&out[1], in[0]->size[0]);
  out[1].dtype = RL_I32;
  return RL_OK;
}

RULE(geqrf)
{
  (void)nin, (void)a;
  RL_TRY(need_matrix(op, in[0]));
  rl_rule_like(&out[0], in[0]);
  sizes1(&out[1], RL_MIN(in[0]->size[0], in[0]->size[1]));
  return RL_OK;
}

RULE(qr)
{
  (void)nin, (void)a;
  RL_TRY(need_matrix(op, in[0]));
  int64_t m = in[0]->size[0], n = in[0]->size[1], k = RL_MIN(m, n);
  sizes2(&out[0], m, k);
  sizes2(&out[1], k, n);
  return RL_OK;
}

/* tau names at most as many reflectors as a has columns and rows. */
static rl_status need_tau(rl_op op, const rl_tensor *x, const rl_tensor *tau) {
  char b1[256], b2[256];
  RL_TRY(need_matrix(op, x));
  if (tau->ndim == 1 && tau->size[0] <= RL_MIN(x->size[0], x->size[1])) return RL_OK;
  return rl_error("[%s] tau; got %s, need a vector that fits %s", rl_ops[op].name, rl_shape_str(tau, b1), rl_shape_str(x, b2));
}

RULE(orgqr)
{
  (void)nin, (void)a;
  RL_TRY(need_tau(op, in[0], in[1]));
  sizes2(out, in[0]->size[0], RL_MIN(in[0]->size[0], in[0]->size[1]));
  return RL_OK;
}

RULE(ormqr)
{
  (void)nin;
  char b1[256], b2[256];
  RL_TRY(need_tau(op, in[0], in[1]));
  RL_TRY(need_matrix(op, in[2]));
  if (in[2]->size[a->v[0].i ? 0 : 1] != in[0]->size[0])
    return rl_error("[%s] sizes do not match; got %s and %s", rl_ops[op].name, rl_shape_str(in[0], b1), rl_shape_str(in[2], b2));
  rl_rule_like(out, in[2]);
  return RL_OK;
}

/* Vectors that were not asked for are empty. */
RULE(symeig)
{
  (void)nin;
  RL_TRY(need_square(op, in[0]));
  sizes1(&out[0], in[0]->size[0]);
  if (a->v[0].i) rl_rule_like(&out[1], in[0]);
  else sizes1(&out[1], 0);
  return RL_OK;
}

RULE(eig)
{
  RL_TRY(rl_shape_symeig(op, in, nin, a, out));
  sizes2(&out[0], in[0]->size[0], 2);
  return RL_OK;
}

RULE(svd)
{
  (void)nin;
  RL_TRY(need_matrix(op, in[0]));
  int64_t m = in[0]->size[0], n = in[0]->size[1], k = RL_MIN(m, n);
  if (!a->v[0].i && k == 0)
    return rl_error("[%s] sizes; got %lldx%lld, need elements for square factors", rl_ops[op].name, (long long)m, (long long)n);
  sizes2(&out[0], m, a->v[0].i ? k : m);
  sizes1(&out[1], k);
  sizes2(&out[2], n, a->v[0].i ? k : n);
  return RL_OK;
}
