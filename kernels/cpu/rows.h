/* Row functions: contiguous loops of the hand-written kernels, compiled once per instruction set (rows_isa.c) and picked at run time. */
#ifndef RL_ROWS_H
#define RL_ROWS_H
#include "../../lib/tensor/op.h"
#include "prelude.h"

#define RL_ROW_FNS(S, T) \
  void (*softmax_##S)(int64_t n, const T *x, T *r); \
  void (*log_softmax_##S)(int64_t n, const T *x, T *r); \
  void (*softmax_dx_##S)(int64_t n, const T *g, const T *r, T *dx); \
  void (*log_softmax_dx_##S)(int64_t n, const T *g, const T *r, T *dx); \
  double (*sum_##S)(int64_t n, const T *x); \
  double (*sumsq_##S)(int64_t n, const T *x, double mean);                                                      /* sum of (x - mean)^2 */ \
  void (*dots_##S)(int64_t n, const T *g, const T *x, const T *w, double mean, double *sg, double *sgx);        /* sums of g w and g w (x - mean) */ \
  void (*scale_##S)(int64_t n, const T *x, double a, double b, T *r);                                           /* a x + b */ \
  void (*affine_##S)(int64_t n, const T *x, double mean, double rstd, const T *w, const T *b, T *r);            /* (x - mean) rstd w + b */ \
  void (*back_##S)(int64_t n, const T *g, const T *x, const T *w, double a, double b, double c, T *r);          /* a g w + b x + c */ \
  void (*gather_back_##S)(int64_t n, const T *g, const T *x, double mean, double rstd, double *dw, double *db); /* dw += g h, db += g */ \
  void (*maxpool_##S)(int64_t n, const T *x, int64_t step, int64_t pos, T *best, \
                      int64_t *at); /* x[i step] at pos + i step replaces best[i]; at < 0: none yet */ \
  void (*maxpool2_##S)(int64_t oh, int64_t ow, int64_t w, const T *x, T *r, int64_t *at); /* a plane in windows of 2 by 2, rows w apart */ \
  void (*addstep_##S)(int64_t n, const T *x, int64_t step, T *r);                         /* r[i] += x[i step] */

typedef struct rl_row_fns {
  RL_ROW_FNS(f32, float)
  RL_ROW_FNS(f64, double)
  void (*draw[2][RL_NDTYPE])(int64_t i, int64_t n, void *out, uint64_t seed, uint64_t counter); /* uniform, normal */
} rl_row_fns;
const rl_row_fns *rl_rows(void);
#endif
