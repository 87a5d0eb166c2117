/* Order: sort, topk, kthvalue, mode and running sums along one dimension. Stable; NaN counts as largest. */
#include <stdlib.h>
#include "walk.h"

/* Lines along dim are read into keys (compute type) with positions, sorted by merging, and written back. */
#define DEFINE_SORT(NAME, C) \
  typedef struct { C v; int64_t i; } pair_##NAME; \
  static inline bool after_##NAME(C a, C b, bool desc) { return desc ? (b > a || (b != b && a == a)) : (a > b || (a != a && b == b)); } \
  static void merge_##NAME(pair_##NAME *p, pair_##NAME *tmp, int64_t n, bool desc) { \
    if (n <= 16) { \
      for (int64_t i = 1; i < n; i++) { \
        pair_##NAME x = p[i]; \
        int64_t j = i; \
        for (; j > 0 && after_##NAME(p[j - 1].v, x.v, desc); j--) p[j] = p[j - 1]; \
        p[j] = x; \
      } \
      return; \
    } \
    int64_t m = n / 2, i = 0, j = m, k = 0; \
    merge_##NAME(p, tmp, m, desc), merge_##NAME(p + m, tmp, n - m, desc); \
    if (!after_##NAME(p[m - 1].v, p[m].v, desc)) return; \
    memcpy(tmp, p, (size_t)m * sizeof *p); \
    while (i < m && j < n) p[k++] = after_##NAME(tmp[i].v, p[j].v, desc) ? p[j++] : tmp[i++]; \
    while (i < m) p[k++] = tmp[i++]; \
  }
DEFINE_SORT(u8, uint8_t)
DEFINE_SORT(i8, int8_t)
DEFINE_SORT(i16, int16_t)
DEFINE_SORT(i32, int32_t)
DEFINE_SORT(i64, int64_t)
DEFINE_SORT(f32, float)
DEFINE_SORT(f64, double)

#define BY_SORT(dt, BODY) \
  switch (dt) { \
  case RL_U8: BODY(u8, uint8_t, uint8_t, LD_ID, LD_ID) break; \
  case RL_I8: BODY(i8, int8_t, int8_t, LD_ID, LD_ID) break; \
  case RL_I16: BODY(i16, int16_t, int16_t, LD_ID, LD_ID) break; \
  case RL_I32: BODY(i32, int32_t, int32_t, LD_ID, LD_ID) break; \
  case RL_I64: BODY(i64, int64_t, int64_t, LD_ID, LD_ID) break; \
  case RL_F16: BODY(f32, rl_f16, float, rl_half_to_float, rl_float_to_half) break; \
  case RL_BF16: BODY(f32, rl_bf16, float, rl_bfloat_to_float, rl_float_to_bfloat) break; \
  case RL_F32: BODY(f32, float, float, LD_ID, LD_ID) break; \
  default: BODY(f64, double, double, LD_ID, LD_ID) break; \
  }

/* Sorts each line of x along dim and writes elements from .. from+len-1 of it (values and positions). */
static rl_status sorted_part(const rl_tensor *x, int dim, bool desc, int64_t from, int64_t len, rl_tensor *const *out) {
  const rl_tensor *t[] = {x, out[0], out[1]};
  int64_t n = x->ndim ? x->size[dim] : 1, sx = x->ndim ? x->stride[dim] : 0;
  int64_t so = x->ndim ? out[0]->stride[dim] : 0, si = x->ndim ? out[1]->stride[dim] : 0;
  if (!rl_numel(out[0])) return RL_OK;
  void *buf = rl_alloc((size_t)n * 32);
  if (!buf) return RL_OOM;
  int64_t *pi = rl_data(out[1]);
  walk w = walk_start(x, x->ndim ? dim : -1, 3, t);
#define SORT(N, S, C, LD, ST) for (; !w.done; walk_next(&w)) { \
    pair_##N *p = buf; \
    const S *s = (const S *)rl_data(x) + w.off[0]; \
    for (int64_t i = 0; i < n; i++) p[i].v = LD(s[i * sx]), p[i].i = i; \
    merge_##N(p, p + n, n, desc); \
    for (int64_t i = 0; i < len; i++) ((S *)rl_data(out[0]))[w.off[1] + i * so] = ST(p[from + i].v), pi[w.off[2] + i * si] = p[from + i].i; }
  BY_SORT(x->dtype, SORT)
#undef SORT
  rl_free(buf, (size_t)n * 32);
  return RL_OK;
}

RL_KERNEL(sort) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  return sorted_part(in[0], dim, a->v[1].i, 0, in[0]->ndim ? in[0]->size[dim] : 1, out);
}
RL_KERNEL(topk) {
  RL_KERNEL_UNUSED;
  return sorted_part(in[0], (int)a->v[1].i, a->v[2].i, 0, a->v[0].i, out);
}
RL_KERNEL(kthvalue) {
  RL_KERNEL_UNUSED;
  return sorted_part(in[0], (int)a->v[1].i, false, a->v[0].i, 1, out);
}

RL_KERNEL(mode) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  const rl_tensor *x = in[0], *t[] = {x, out[0], out[1]};
  int64_t n = x->ndim ? x->size[dim] : 1, sx = x->ndim ? x->stride[dim] : 0;
  if (!rl_numel(out[0])) return RL_OK;
  void *buf = rl_alloc((size_t)n * 32);
  if (!buf) return RL_OOM;
  int64_t *pi = rl_data(out[1]);
  walk w = walk_start(x, x->ndim ? dim : -1, 3, t);
#define MODE(N, S, C, LD, ST) for (; !w.done; walk_next(&w)) { \
    pair_##N *p = buf; \
    const S *s = (const S *)rl_data(x) + w.off[0]; \
    int64_t best = 0, count = 0, run = 0; \
    for (int64_t i = 0; i < n; i++) p[i].v = LD(s[i * sx]), p[i].i = i; \
    merge_##N(p, p + n, n, false); \
    for (int64_t i = 0; i < n; i++) { \
      run = i && p[i].v == p[i - 1].v ? run + 1 : 1; \
      if (run > count) count = run, best = i; \
    } \
    ((S *)rl_data(out[0]))[w.off[1]] = ST(p[best].v), pi[w.off[2]] = p[best].i; }
  BY_SORT(x->dtype, MODE)
#undef MODE
  rl_free(buf, (size_t)n * 32);
  return RL_OK;
}

static void scan(const rl_tensor *x, rl_tensor *r, int dim, bool product) {
  const rl_tensor *t[] = {x, r};
  int64_t n = x->ndim ? x->size[dim] : 1, sx = x->ndim ? x->stride[dim] : 0, sr = x->ndim ? r->stride[dim] : 0;
  if (!rl_numel(x)) return;
  walk w = walk_start(x, x->ndim ? dim : -1, 2, t);
#define SCAN(S, C, LD, ST) for (; !w.done; walk_next(&w)) { \
    const S *s = (const S *)rl_data(x) + w.off[0]; \
    S *d = (S *)rl_data(r) + w.off[1]; \
    C acc = product ? (C)1 : (C)0; \
    for (int64_t i = 0; i < n; i++) { acc = product ? (C)(acc * LD(s[i * sx])) : (C)(acc + LD(s[i * sx])); d[i * sr] = ST(acc); } }
  BY_DTYPE(x->dtype, SCAN)
#undef SCAN
}
RL_KERNEL(cumsum) { RL_KERNEL_UNUSED; scan(in[0], out[0], (int)a->v[0].i, false); return RL_OK; }
RL_KERNEL(cumprod) { RL_KERNEL_UNUSED; scan(in[0], out[0], (int)a->v[0].i, true); return RL_OK; }
