/* Order: sort, topk, kthvalue, mode and running sums along one dimension. Stable; NaN counts as largest. */
#include <stdlib.h>
#include "walk.h"

/* Lines along dim are read into keys (compute type) with positions, sorted by merging, and written back. */
#define DEFINE_SORT(NAME, C) \
  typedef struct { \
    C v; \
    int64_t i; \
  } pair_##NAME; \
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

/* Radix sort for long lines: an unsigned key in the same order (equal values have equal keys, NaN is largest), digits of 8 bits, stable. */
static inline uint32_t key_f32(float x) {
  uint32_t u = rl_float_bits(x == 0 ? 0.f : x);
  return x != x ? UINT32_MAX : u >> 31 ? ~u : u | 0x80000000u;
}
static inline uint64_t key_f64(double x) {
  uint64_t u;
  x = x == 0 ? 0. : x;
  memcpy(&u, &x, 8);
  return x != x ? UINT64_MAX : u >> 63 ? ~u : u | (UINT64_C(1) << 63);
}
static inline uint32_t key_u8(uint8_t x) { return x; }
static inline uint32_t key_i8(int8_t x) { return (uint8_t)(x ^ 0x80); }
static inline uint32_t key_i16(int16_t x) { return (uint16_t)(x ^ 0x8000); }
static inline uint32_t key_i32(int32_t x) { return (uint32_t)x ^ 0x80000000u; }
static inline uint64_t key_i64(int64_t x) { return (uint64_t)x ^ (UINT64_C(1) << 63); }

#define RADIX_MIN 256
#define DEFINE_RADIX(K) \
  typedef struct { \
    K k; \
    K i; \
  } radix_##K; \
  /* Sorts n entries of p with q as the other half of the room; returns where the result lies. Digits that all share are left out. */ \
  static radix_##K *radix_sort_##K(radix_##K *p, radix_##K *q, int64_t n) { \
    int64_t count[sizeof(K)][256] = { { 0 } }; \
    for (int64_t i = 0; i < n; i++) \
      for (unsigned b = 0; b < sizeof(K); b++) count[b][p[i].k >> 8 * b & 255]++; \
    for (unsigned b = 0; b < sizeof(K); b++) { \
      int64_t at = 0, *c = count[b]; \
      if (c[p[0].k >> 8 * b & 255] == n) continue; \
      for (int d = 0; d < 256; d++) { \
        int64_t m = c[d]; \
        c[d] = at, at += m; \
      } \
      for (int64_t i = 0; i < n; i++) q[c[p[i].k >> 8 * b & 255]++] = p[i]; \
      radix_##K *t = p; \
      p = q, q = t; \
    } \
    return p; \
  }
DEFINE_RADIX(uint32_t)
DEFINE_RADIX(uint64_t)

#define BY_SORT(dt, BODY) \
  switch (dt) { \
  case RL_U8: BODY(u8, uint32_t, uint8_t, uint8_t, LD_ID, LD_ID) break; \
  case RL_I8: BODY(i8, uint32_t, int8_t, int8_t, LD_ID, LD_ID) break; \
  case RL_I16: BODY(i16, uint32_t, int16_t, int16_t, LD_ID, LD_ID) break; \
  case RL_I32: BODY(i32, uint32_t, int32_t, int32_t, LD_ID, LD_ID) break; \
  case RL_I64: BODY(i64, uint64_t, int64_t, int64_t, LD_ID, LD_ID) break; \
  case RL_F16: BODY(f32, uint32_t, rl_f16, float, rl_half_to_float, rl_float_to_half) break; \
  case RL_BF16: BODY(f32, uint32_t, rl_bf16, float, rl_bfloat_to_float, rl_float_to_bfloat) break; \
  case RL_F32: BODY(f32, uint32_t, float, float, LD_ID, LD_ID) break; \
  default: BODY(f64, uint64_t, double, double, LD_ID, LD_ID) break; \
  }

/* One line: s with stride sx to elements from .. from+len-1 of its order (values r, positions p). buf has 32 n bytes. A few first
 * elements are kept in order while the line is read; long lines go by radix, short ones by merging. */
typedef void (*line_fn)(const char *s, int64_t sx, int64_t n, bool desc, int64_t from, int64_t len, char *r, int64_t so, int64_t *p, int64_t si,
                        void *buf);
#define DEFINE_LINE(N, K, S, C, LD, ST) \
  static void line_##S(const char *ps, int64_t sx, int64_t n, bool desc, int64_t from, int64_t len, char *pr, int64_t so, int64_t *p, int64_t si, \
                       void *buf) { \
    const S *s = (const S *)ps; \
    S *r = (S *)pr; \
    pair_##N *e = buf; \
    if (from == 0 && len <= 64 && len < n / 4) { \
      int64_t m = 0; \
      for (int64_t i = 0; i < n && len; i++) { \
        C v = LD(s[i * sx]); \
        int64_t j = m; \
        if (m == len && !after_##N(e[m - 1].v, v, desc)) continue; \
        j = m < len ? m++ : m - 1; \
        for (; j > 0 && after_##N(e[j - 1].v, v, desc); j--) e[j] = e[j - 1]; \
        e[j].v = v, e[j].i = i; \
      } \
    } else if (n >= RADIX_MIN && n < UINT32_MAX) { \
      radix_##K *q = buf; \
      for (int64_t i = 0; i < n; i++) q[i].k = desc ? ~key_##N(LD(s[i * sx])) : key_##N(LD(s[i * sx])), q[i].i = (K)i; \
      q = radix_sort_##K(q, q + n, n); \
      for (int64_t i = 0; i < len; i++) r[i * so] = s[(int64_t)q[from + i].i * sx], p[i * si] = (int64_t)q[from + i].i; \
      return; \
    } else { \
      for (int64_t i = 0; i < n; i++) e[i].v = LD(s[i * sx]), e[i].i = i; \
      merge_##N(e, e + n, n, desc); \
      e += from; \
    } \
    for (int64_t i = 0; i < len; i++) r[i * so] = ST(e[i].v), p[i * si] = e[i].i; \
  }
DEFINE_LINE(u8, uint32_t, uint8_t, uint8_t, LD_ID, LD_ID)
DEFINE_LINE(i8, uint32_t, int8_t, int8_t, LD_ID, LD_ID)
DEFINE_LINE(i16, uint32_t, int16_t, int16_t, LD_ID, LD_ID)
DEFINE_LINE(i32, uint32_t, int32_t, int32_t, LD_ID, LD_ID)
DEFINE_LINE(i64, uint64_t, int64_t, int64_t, LD_ID, LD_ID)
DEFINE_LINE(f32, uint32_t, rl_f16, float, rl_half_to_float, rl_float_to_half)
DEFINE_LINE(f32, uint32_t, rl_bf16, float, rl_bfloat_to_float, rl_float_to_bfloat)
DEFINE_LINE(f32, uint32_t, float, float, LD_ID, LD_ID)
DEFINE_LINE(f64, uint64_t, double, double, LD_ID, LD_ID)
static const line_fn line_fns[RL_NDTYPE] = {
  [RL_U8] = line_uint8_t, [RL_I8] = line_int8_t,    [RL_I16] = line_int16_t, [RL_I32] = line_int32_t, [RL_I64] = line_int64_t,
  [RL_F16] = line_rl_f16, [RL_BF16] = line_rl_bf16, [RL_F32] = line_float,   [RL_F64] = line_double
};

/* Offset of line number i of t along dim. */
static int64_t line_at(const rl_tensor *t, const rl_tensor *shape, int dim, int64_t i) {
  int64_t off = 0;
  for (int d = shape->ndim - 1; d >= 0; d--) {
    if (d == dim) continue;
    off += i % shape->size[d] * t->stride[d], i /= shape->size[d];
  }
  return off;
}

static rl_status sorted_part(const rl_tensor *x, int dim, bool desc, int64_t from, int64_t len, rl_tensor *const *out) {
  int64_t n = x->ndim ? x->size[dim] : 1, sx = x->ndim ? x->stride[dim] : 0;
  int64_t so = x->ndim ? out[0]->stride[dim] : 0, si = x->ndim ? out[1]->stride[dim] : 0;
  if (!rl_numel(out[0])) return RL_OK;
  int64_t lines = rl_numel(x) / n;
  int bytes = esize(x);
  line_fn fn = line_fns[x->dtype];
  bool failed = false;
#pragma omp parallel if (lines > 1 && lines * n > 8192)
  {
    void *buf = rl_alloc((size_t)n * 32);
    if (!buf) failed = true;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < lines; i++) {
      if (!buf) continue;
      fn((const char *)rl_data(x) + line_at(x, x, dim, i) * bytes, sx, n, desc, from, len,
         (char *)rl_data(out[0]) + line_at(out[0], x, dim, i) * bytes, so, (int64_t *)rl_data(out[1]) + line_at(out[1], x, dim, i), si, buf);
    }
    if (buf) rl_free(buf, (size_t)n * 32);
  }
  return failed ? RL_OOM : RL_OK;
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
  const rl_tensor *x = in[0], *t[] = { x, out[0], out[1] };
  int64_t n = x->ndim ? x->size[dim] : 1, sx = x->ndim ? x->stride[dim] : 0;
  if (!rl_numel(out[0])) return RL_OK;
  void *buf = rl_alloc((size_t)n * 32);
  if (!buf) return RL_OOM;
  int64_t *pi = rl_data(out[1]);
  walk w = walk_start(x, x->ndim ? dim : -1, 3, t);
#define MODE(N, K, S, C, LD, ST) \
  for (; !w.done; walk_next(&w)) { \
    pair_##N *p = buf; \
    const S *s = (const S *)rl_data(x) + w.off[0]; \
    int64_t best = 0, count = 0, run = 0; \
    for (int64_t i = 0; i < n; i++) p[i].v = LD(s[i * sx]), p[i].i = i; \
    merge_##N(p, p + n, n, false); \
    for (int64_t i = 0; i < n; i++) { \
      run = i && p[i].v == p[i - 1].v ? run + 1 : 1; \
      if (run > count) count = run, best = i; \
    } \
    ((S *)rl_data(out[0]))[w.off[1]] = ST(p[best].v), pi[w.off[2]] = p[best].i; \
  }
  BY_SORT(x->dtype, MODE)
#undef MODE
  rl_free(buf, (size_t)n * 32);
  return RL_OK;
}

static void scan(const rl_tensor *x, rl_tensor *r, int dim, bool product) {
  const rl_tensor *t[] = { x, r };
  int64_t n = x->ndim ? x->size[dim] : 1, sx = x->ndim ? x->stride[dim] : 0, sr = x->ndim ? r->stride[dim] : 0;
  if (!rl_numel(x)) return;
  walk w = walk_start(x, x->ndim ? dim : -1, 2, t);
#define SCAN(S, C, LD, ST) \
  for (; !w.done; walk_next(&w)) { \
    const S *s = (const S *)rl_data(x) + w.off[0]; \
    S *d = (S *)rl_data(r) + w.off[1]; \
    C acc = product ? (C)1 : (C)0; \
    for (int64_t i = 0; i < n; i++) { \
      acc = product ? (C)(acc * LD(s[i * sx])) : (C)(acc + LD(s[i * sx])); \
      d[i * sr] = ST(acc); \
    } \
  }
  BY_DTYPE(x->dtype, SCAN)
#undef SCAN
}
RL_KERNEL(cumsum) {
  RL_KERNEL_UNUSED;
  scan(in[0], out[0], (int)a->v[0].i, false);
  return RL_OK;
}
RL_KERNEL(cumprod) {
  RL_KERNEL_UNUSED;
  scan(in[0], out[0], (int)a->v[0].i, true);
  return RL_OK;
}
