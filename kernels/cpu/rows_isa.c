/* Row functions for one instruction set (RL_ISA): softmax, normalisation, random draws over contiguous rows. */
#include "loop.h"
#include "rows.h"
#include "row.h"
#include <string.h>

#define LANES 16
#define FOLD_SUM(EXPR) \
  double total = 0; \
  for (int64_t at = 0; at < n; at += 4096) { \
    int64_t e = n - at < 4096 ? n : at + 4096, i = at; \
    T lane[LANES] = { 0 }; \
    for (; i + LANES <= e; i += LANES) RL_IVDEP for (int k = 0; k < LANES; k++) { \
        const int64_t q = i + k; \
        lane[k] += EXPR; \
      } \
    for (; i < e; i++) { \
      const int64_t q = i; \
      lane[0] += EXPR; \
    } \
    for (int k = 0; k < LANES; k++) total += (double)lane[k]; \
  }

/* Whether y replaces the largest so far, x: greater, or the first NaN. */
#define BEATS(S, T) \
  static inline bool rl_beats_##S(T y, T x) { return !(y <= x) & (x == x); }
BEATS(f32, float)
BEATS(f64, double)

#define ROWS(S, TT) \
  typedef TT T_##S; \
  static TT max_##S(int64_t n, const TT *x) { \
    TT lane[LANES], m = x[0]; \
    int64_t i = 0; \
    for (int k = 0; k < LANES; k++) lane[k] = m; \
    for (; i + LANES <= n; i += LANES) RL_IVDEP for (int k = 0; k < LANES; k++) lane[k] = rl_max_##S(lane[k], x[i + k]); \
    for (; i < n; i++) m = rl_max_##S(m, x[i]); \
    for (int k = 0; k < LANES; k++) m = rl_max_##S(m, lane[k]); \
    return m; \
  } \
  static double sum_##S(int64_t n, const TT *x) { \
    typedef TT T; \
    FOLD_SUM(x[q]) return total; \
  } \
  static double sumsq_##S(int64_t n, const TT *x, double mean) { \
    typedef TT T; \
    const T m = (T)mean; \
    FOLD_SUM((x[q] - m) * (x[q] - m)) return total; \
  } \
  static double dot_##S(int64_t n, const TT *x, const TT *y) { \
    typedef TT T; \
    FOLD_SUM(x[q] * y[q]) return total; \
  } \
  static void softmax_##S(int64_t n, const TT *x, TT *r) { \
    const TT m = max_##S(n, x); \
    RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] = rl_exp_##S(x[i] - m); \
    const TT s = (TT)(1 / sum_##S(n, r)); \
    RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] *= s; \
  } \
  static void log_softmax_##S(int64_t n, const TT *x, TT *r) { \
    const TT m = max_##S(n, x); \
    RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] = rl_exp_##S(x[i] - m); \
    const TT s = (TT)log(sum_##S(n, r)); \
    RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] = x[i] - m - s; \
  } \
  static void softmax_dx_##S(int64_t n, const TT *g, const TT *r, TT *d) { \
    const TT s = (TT)dot_##S(n, g, r); \
    RL_IVDEP for (int64_t i = 0; i < n; i++) d[i] = r[i] * (g[i] - s); \
  } \
  static void log_softmax_dx_##S(int64_t n, const TT *g, const TT *r, TT *d) { \
    const TT s = (TT)sum_##S(n, g); \
    RL_IVDEP for (int64_t i = 0; i < n; i++) d[i] = g[i] - rl_exp_##S(r[i]) * s; \
  } \
  static void dots_##S(int64_t n, const TT *g, const TT *x, const TT *w, double mean, double *sg, double *sgx) { \
    typedef TT T; \
    const T m = (T)mean; \
    if (w) { \
      { FOLD_SUM(g[q] * w[q]) *sg = total; } \
      { FOLD_SUM(g[q] * w[q] * (x[q] - m)) *sgx = total; } \
    } else { \
      { FOLD_SUM(g[q]) *sg = total; } \
      { FOLD_SUM(g[q] * (x[q] - m)) *sgx = total; } \
    } \
  } \
  static void scale_##S(int64_t n, const TT *x, double a, double b, TT *r) { \
    const TT c = (TT)a, d = (TT)b; \
    RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] = x[i] * c + d; \
  } \
  static void affine_##S(int64_t n, const TT *x, double mean, double rstd, const TT *w, const TT *b, TT *r) { \
    const TT m = (TT)mean, s = (TT)rstd; \
    if (w && b) RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] = (x[i] - m) * s * w[i] + b[i]; \
    else if (w) RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] = (x[i] - m) * s * w[i]; \
    else if (b) RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] = (x[i] - m) * s + b[i]; \
    else RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] = (x[i] - m) * s; \
  } \
  static void back_##S(int64_t n, const TT *g, const TT *x, const TT *w, double a, double b, double c, TT *r) { \
    const TT p = (TT)a, q = (TT)b, s = (TT)c; \
    if (w) RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] = g[i] * w[i] * p + x[i] * q + s; \
    else RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] = g[i] * p + x[i] * q + s; \
  } \
  static void gather_back_##S(int64_t n, const TT *g, const TT *x, double mean, double rstd, double *dw, double *db) { \
    RL_IVDEP for (int64_t i = 0; i < n; i++) { \
      dw[i] += (double)g[i] * (((double)x[i] - mean) * rstd); \
      db[i] += (double)g[i]; \
    } \
  } \
  static inline __attribute__((always_inline)) void take_##S(int64_t n, const TT *x, int64_t step, int64_t pos, TT *best, int64_t *at) { \
    RL_IVDEP for (int64_t i = 0; i < n; i++) { \
      const TT e = x[i * step], b = best[i]; \
      const bool take = (at[i] < 0) | (e > b) | ((e != e) & (b == b)); \
      best[i] = take ? e : b; \
      at[i] = take ? pos + i * step : at[i]; \
    } \
  } \
  static void maxpool_##S(int64_t n, const TT *x, int64_t step, int64_t pos, TT *best, int64_t *at) { \
    if (step == 1) take_##S(n, x, 1, pos, best, at); \
    else if (step == 2) take_##S(n, x, 2, pos, best, at); \
    else take_##S(n, x, step, pos, best, at); \
  } \
  static void maxpool2_##S(int64_t oh, int64_t ow, int64_t w, const TT *x, TT *r, int64_t *at) { \
    TT a[64] = { 0 }, b[64] = { 0 }, c[64] = { 0 }, d[64] = { 0 }; \
    int32_t pos[64] = { 0 }, kb[64], kd[64], low[64]; \
    const int32_t below = (int32_t)w; \
    int64_t row = 0, col = 0; \
    for (int64_t o = 0, n = oh * ow; o < n; o += 64) { \
      const int64_t m = n - o < 64 ? n - o : 64; \
      for (int64_t i = 0; i < m; i++) { \
        const int64_t q = 2 * (row * w + col); \
        a[i] = x[q], b[i] = x[q + 1], c[i] = x[q + w], d[i] = x[q + w + 1]; \
        pos[i] = (int32_t)q; \
        if (++col == ow) col = 0, row++; \
      } \
      /* one choice a loop: compilers make branches of several, and these are not predictable */ \
      RL_IVDEP for (int i = 0; i < 64; i++) kb[i] = rl_beats_##S(b[i], a[i]); \
      RL_IVDEP for (int i = 0; i < 64; i++) kd[i] = rl_beats_##S(d[i], c[i]); \
      RL_IVDEP for (int i = 0; i < 64; i++) a[i] = kb[i] ? b[i] : a[i]; \
      RL_IVDEP for (int i = 0; i < 64; i++) c[i] = kd[i] ? d[i] : c[i]; \
      RL_IVDEP for (int i = 0; i < 64; i++) low[i] = rl_beats_##S(c[i], a[i]); \
      RL_IVDEP for (int i = 0; i < 64; i++) a[i] = low[i] ? c[i] : a[i]; \
      RL_IVDEP for (int i = 0; i < 64; i++) pos[i] += low[i] ? below + kd[i] : kb[i]; \
      memcpy(r + o, a, (size_t)m * sizeof(TT)); \
      for (int64_t i = 0; i < m; i++) at[o + i] = pos[i]; \
    } \
  } \
  static void addstep_##S(int64_t n, const TT *x, int64_t step, TT *r) { \
    if (step == 1) RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] += x[i]; \
    else if (step == 2) RL_IVDEP for (int64_t i = 0; i < n; i++) r[i] += x[2 * i]; \
    else \
      for (int64_t i = 0; i < n; i++) r[i] += x[i * step]; \
  }
ROWS(f32, float)
ROWS(f64, double)

static void rand_f32(int64_t i, int64_t n, void *o, uint64_t s, uint64_t c) { rl_rand_row_f32(o, s, c, i, n); }
static void rand_f64(int64_t i, int64_t n, void *o, uint64_t s, uint64_t c) { rl_rand_row_f64(o, s, c, i, n); }
static void randn_f32(int64_t i, int64_t n, void *o, uint64_t s, uint64_t c) { rl_randn_row_f32(o, s, c, i, n); }
static void randn_f64(int64_t i, int64_t n, void *o, uint64_t s, uint64_t c) { rl_randn_row_f64(o, s, c, i, n); }
/* Half types: float draws in runs, rounded. */
#define HALF_DRAW(NAME, S, T) \
  static void NAME##_##S(int64_t i, int64_t n, void *o, uint64_t s, uint64_t c) { \
    float b[512]; \
    T *r = o; \
    for (int64_t at = 0; at < n; at += 512) { \
      int64_t m = n - at < 512 ? n - at : 512; \
      NAME##_f32(i + at, m, b, s, c); \
      for (int64_t k = 0; k < m; k++) r[at + k] = rl_st_##S(b[k]); \
    } \
  }
HALF_DRAW(rand, f16, rl_f16)
HALF_DRAW(rand, bf16, rl_bf16)
HALF_DRAW(randn, f16, rl_f16)
HALF_DRAW(randn, bf16, rl_bf16)

#define TABLE(S) \
  .softmax_##S = softmax_##S, .log_softmax_##S = log_softmax_##S, .softmax_dx_##S = softmax_dx_##S, .log_softmax_dx_##S = log_softmax_dx_##S, \
  .sum_##S = sum_##S, .sumsq_##S = sumsq_##S, .dots_##S = dots_##S, .scale_##S = scale_##S, .affine_##S = affine_##S, .back_##S = back_##S, \
  .gather_back_##S = gather_back_##S, .maxpool_##S = maxpool_##S, .maxpool2_##S = maxpool2_##S, .addstep_##S = addstep_##S
const rl_row_fns RL_CAT(rl_row_table, RL_ISA) = {
  TABLE(f32),
  TABLE(f64),
  .draw = { { [RL_F32] = rand_f32, [RL_F64] = rand_f64, [RL_F16] = rand_f16, [RL_BF16] = rand_bf16 },
            { [RL_F32] = randn_f32, [RL_F64] = randn_f64, [RL_F16] = randn_f16, [RL_BF16] = randn_bf16 } },
};
