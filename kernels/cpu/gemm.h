/* Matrix products on register tiles: one order of every sum, whatever the number of threads. */
#ifndef RL_GEMM_H
#define RL_GEMM_H
#include "../../lib/tensor/op.h"

/* c (m, n) = alpha a b (+ c if add); c's rows are ldc apart and dense; a and b have unit stride in one direction each. Strides in elements. */
typedef struct rl_gemm {
  rl_dtype dt; /* float or double */
  int64_t m, n, k;
  const char *a, *b;
  int64_t am, ak, bk, bn;
  char *c;
  int64_t ldc;
  double alpha;
  bool add;
} rl_gemm;
/* Computes c; threads share the work if `shares`. */
rl_status rl_gemm_run(const rl_gemm *g, bool shares);
#endif
