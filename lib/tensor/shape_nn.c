/* Shape rules: convolution, pooling, normalisation, losses. x is (batch, channels, height, width); lists are {height, width}. */
#include "dispatch.h"
#include "rules.h"

#define RULE(name) rl_status rl_shape_##name(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out)

static rl_status need_4d(rl_op op, const char *what, const rl_tensor *x) {
  char b[256];
  return x->ndim == 4 ? RL_OK : rl_error("[%s] %s; got %s, need 4 dimensions", rl_ops[op].name, what, rl_shape_str(x, b));
}

static rl_status need_pairs(rl_op op, const rl_attrs *a, int n) {
  for (int j = 0; j < n; j++)
    if (a->nlist[j] != 2) return rl_error("[%s] list %d; got %d numbers, need height and width", rl_ops[op].name, j + 1, a->nlist[j]);
  return RL_OK;
}

/* Places that a window of k (dilated) takes over n + 2 p, every s; below 1: none. */
static int64_t window_count(int64_t n, int64_t k, int64_t s, int64_t p, int64_t d) {
  int64_t room = n + 2 * p - d * (k - 1) - 1;
  return room < 0 ? 0 : room / s + 1;
}

static rl_status conv_attrs(rl_op op, const rl_attrs *a, int first) {
  for (int i = 0; i < 2; i++)
    if (a->list[first][i] < 1 || a->list[first + 1][i] < 0 || a->list[first + 2][i] < 1)
      return rl_error("[%s] stride and dilation must be 1 or more, padding 0 or more", rl_ops[op].name);
  if (a->v[0].i < 1) return rl_error("[%s] groups; got %lld, need 1 or more", rl_ops[op].name, (long long)a->v[0].i);
  return RL_OK;
}

RULE(conv2d)
{
  const rl_tensor *x = in[0], *w = in[1];
  char b1[256], b2[256];
  RL_TRY(need_4d(op, "input", x));
  RL_TRY(need_4d(op, "weight", w));
  RL_TRY(need_pairs(op, a, 3));
  RL_TRY(conv_attrs(op, a, 0));
  int64_t groups = a->v[0].i;
  if (x->size[1] != w->size[1] * groups || w->size[0] % groups)
    return rl_error("[%s] channels do not match; got %s and weight %s in %lld groups", rl_ops[op].name, rl_shape_str(x, b1), rl_shape_str(w, b2),
                    (long long)groups);
  if (nin > 2 && in[2] && (in[2]->ndim != 1 || in[2]->size[0] != w->size[0]))
    return rl_error("[%s] bias; got %s, need %lld", rl_ops[op].name, rl_shape_str(in[2], b1), (long long)w->size[0]);
  out->ndim = 4;
  out->size[0] = x->size[0];
  out->size[1] = w->size[0];
  for (int i = 0; i < 2; i++) {
    out->size[2 + i] = window_count(x->size[2 + i], w->size[2 + i], a->list[0][i], a->list[1][i], a->list[2][i]);
    if (out->size[2 + i] < 1)
      return rl_error("[%s] the kernel is larger than the padded input; got %s and weight %s", rl_ops[op].name, rl_shape_str(x, b1),
                      rl_shape_str(w, b2));
  }
  return RL_OK;
}

/* g (n, out, h, w), weight (out, in / groups, kh, kw) -> (n, in, sizes). */
RULE(conv2d_dx)
{
  (void)nin;
  char b1[256], b2[256];
  RL_TRY(need_4d(op, "gradient", in[0]));
  RL_TRY(need_4d(op, "weight", in[1]));
  RL_TRY(need_pairs(op, a, 4));
  RL_TRY(conv_attrs(op, a, 1));
  if (in[0]->size[1] != in[1]->size[0])
    return rl_error("[%s] channels do not match; got %s and weight %s", rl_ops[op].name, rl_shape_str(in[0], b1), rl_shape_str(in[1], b2));
  for (int i = 0; i < 2; i++)
    if (window_count(a->list[0][i], in[1]->size[2 + i], a->list[1][i], a->list[2][i], a->list[3][i]) != in[0]->size[2 + i])
      return rl_error("[%s] sizes do not give this input; got %s from %lld", rl_ops[op].name, rl_shape_str(in[0], b1), (long long)a->list[0][i]);
  return rl_rule_sizes(op, 4, (int64_t[]){ in[0]->size[0], in[1]->size[1] * a->v[0].i, a->list[0][0], a->list[0][1] }, out);
}

/* g (n, out, h, w), x (n, in, ...) -> (out, in / groups, sizes). */
RULE(conv2d_dw)
{
  (void)nin;
  char b1[256], b2[256];
  RL_TRY(need_4d(op, "gradient", in[0]));
  RL_TRY(need_4d(op, "input", in[1]));
  RL_TRY(need_pairs(op, a, 4));
  RL_TRY(conv_attrs(op, a, 1));
  if (in[0]->size[0] != in[1]->size[0] || in[1]->size[1] % a->v[0].i)
    return rl_error("[%s] sizes do not match; got %s and %s", rl_ops[op].name, rl_shape_str(in[0], b1), rl_shape_str(in[1], b2));
  return rl_rule_sizes(op, 4, (int64_t[]){ in[0]->size[1], in[1]->size[1] / a->v[0].i, a->list[0][0], a->list[0][1] }, out);
}

/* Rounded up, a last window must still start inside the input or its left padding. */
static int64_t pool_count(int64_t n, int64_t k, int64_t s, int64_t p, int64_t d, bool ceil) {
  int64_t room = n + 2 * p - d * (k - 1) - 1;
  if (room < 0) return 0;
  int64_t o = (room + (ceil ? s - 1 : 0)) / s + 1;
  return p >= 0 && (o - 1) * s >= n + p ? o - 1 : o;
}

static rl_status pool_sizes(rl_op op, const rl_tensor *x, const rl_attrs *a, bool dilated, rl_meta *out) {
  RL_TRY(need_4d(op, "input", x));
  RL_TRY(need_pairs(op, a, dilated ? 4 : 3));
  rl_rule_like(out, x);
  for (int i = 0; i < 2; i++) {
    int64_t k = a->list[0][i], s = a->list[1][i], p = a->list[2][i], d = dilated ? a->list[3][i] : 1;
    if (k < 1 || s < 1 || d < 1 || p < 0 || p > k / 2)
      return rl_error("[%s] kernel, stride and dilation must be 1 or more, padding at most half the kernel", rl_ops[op].name);
    out->size[2 + i] = pool_count(x->size[2 + i], k, s, p, d, a->v[0].i);
    if (out->size[2 + i] < 1)
      return rl_error("[%s] the window is larger than the input; got %lld, need at most %lld", rl_ops[op].name, (long long)k,
                      (long long)(x->size[2 + i] + 2 * p));
  }
  return RL_OK;
}

RULE(max_pool2d)
{
  (void)nin;
  RL_TRY(pool_sizes(op, in[0], a, true, out));
  out[1] = out[0];
  out[1].dtype = RL_I64;
  return RL_OK;
}

RULE(avg_pool2d)
{
  (void)nin;
  return pool_sizes(op, in[0], a, false, out);
}

/* Planes of sizes. */
RULE(pool_dx)
{
  (void)nin;
  RL_TRY(need_4d(op, "input", in[0]));
  RL_TRY(need_pairs(op, a, 1));
  return rl_rule_sizes(op, 4, (int64_t[]){ in[0]->size[0], in[0]->size[1], a->list[0][0], a->list[0][1] }, out);
}

RULE(upsample2d)
{
  (void)nin;
  RL_TRY(need_4d(op, "input", in[0]));
  const int64_t *s = in[0]->size, k = a->v[0].i;
  if (k < 1) return rl_error("[%s] scale; got %lld, need 1 or more", rl_ops[op].name, (long long)k);
  return rl_rule_sizes(op, 4, (int64_t[]){ s[0], s[1], s[2] * k, s[3] * k }, out);
}

static rl_status channel_check(rl_op op, const rl_tensor *x, const rl_tensor *p) {
  char b[256];
  if (!p || (p->ndim == 1 && p->size[0] == x->size[1])) return RL_OK;
  return rl_error("[%s] channel parameter; got %s, need %lld", rl_ops[op].name, rl_shape_str(p, b), (long long)x->size[1]);
}

RULE(batch_norm)
{
  (void)a;
  char b[256];
  if (in[0]->ndim < 2) return rl_error("[%s] input; got %s, need at least 2 dimensions", rl_ops[op].name, rl_shape_str(in[0], b));
  for (int i = 1; i < nin; i++) RL_TRY(channel_check(op, in[0], in[i]));
  rl_rule_like(&out[0], in[0]);
  RL_TRY(rl_rule_sizes(op, 1, &in[0]->size[1], &out[1]));
  return rl_rule_sizes(op, 1, &in[0]->size[1], &out[2]);
}

/* g, x, w?, mean, var -> dx, dw, db. */
RULE(batch_norm_grad)
{ return rl_shape_batch_norm(op, in + 1, nin - 1, a, out); }

static rl_status last_dims(rl_op op, const rl_tensor *x, int64_t n) {
  return n >= 0 && n <= x->ndim ? RL_OK : rl_error("[%s] dimensions; got %lld, need at most %d", rl_ops[op].name, (long long)n, x->ndim);
}

RULE(layer_norm)
{
  (void)nin;
  int64_t n = a->v[0].i;
  RL_TRY(last_dims(op, in[0], n));
  for (int k = 0; k < 3; k++) rl_rule_like(&out[k], in[0]);
  for (int d = in[0]->ndim - (int)n; d < in[0]->ndim; d++) out[1].size[d] = out[2].size[d] = 1;
  return RL_OK;
}

RULE(layer_norm_grad)
{
  (void)nin;
  int n = (int)a->v[0].i;
  RL_TRY(last_dims(op, in[1], n));
  rl_rule_like(&out[0], in[1]);
  RL_TRY(rl_rule_sizes(op, n, in[1]->size + in[1]->ndim - n, &out[1]));
  return rl_rule_sizes(op, n, in[1]->size + in[1]->ndim - n, &out[2]);
}

RULE(nll_loss)
{
  (void)a;
  char b1[256], b2[256];
  if (in[0]->ndim != 2 || in[1]->ndim != 1 || in[0]->size[0] != in[1]->size[0])
    return rl_error("[%s] sizes; got %s and targets %s, need (batch, classes) and (batch)", rl_ops[op].name, rl_shape_str(in[0], b1),
                    rl_shape_str(in[1], b2));
  if (nin > 2) RL_TRY(channel_check(op, in[0], in[2]));
  out[0].ndim = out[1].ndim = 0;
  return RL_OK;
}
