/* Lines as wholes: softmax, log-softmax and their gradients, a block a line. S, C, LD, ST as in prims.cuh.
 * p: result, first and second input; i: n, strides of result, first, second. Sums in C; the largest value is taken out first. */
#if RL_IS_FLOAT
RL_FN C rl_all(C v, bool largest) {
  __shared__ C sh[33];
  for (int d = 16; d; d /= 2) {
    C o = __shfl_xor_sync(0xffffffffu, v, d);
    v = largest ? (v != v || v > o ? v : o) : (C)(v + o);
  }
  __syncthreads();
  if ((threadIdx.x & 31) == 0) sh[threadIdx.x / 32] = v;
  __syncthreads();
  v = sh[0];
  for (int k = 1; k < blockDim.x / 32; k++) v = largest ? (v != v || v > sh[k] ? v : sh[k]) : (C)(v + sh[k]);
  return v;
}
RL_FN float rl_e(float x) { return rl_exp_f32(x); }
RL_FN double rl_e(double x) { return rl_exp_f64(x); }
RL_FN float rl_l(float x) { return rl_log_f32(x); }
RL_FN double rl_l(double x) { return rl_log_f64(x); }
K softmax(const rl_ew a) {
  int64_t o[3], n = a.i[0];
  rl_place<3>(a, blockIdx.x, o);
  S *r = (S *)a.p[0] + o[0];
  const S *x = (const S *)a.p[1] + o[1];
  C top = (C)-INFINITY, sum = 0;
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
    C v = LD(x[j * a.i[2]]);
    top = v != v || v > top ? v : top;
  }
  top = rl_all(top, true);
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) sum += rl_e(LD(x[j * a.i[2]]) - top);
  sum = rl_all(sum, false);
  C l = a.i[4] ? rl_l(sum) : (C)0;
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
    C d = LD(x[j * a.i[2]]) - top;
    r[j * a.i[1]] = ST(a.i[4] ? d - l : rl_e(d) / sum);
  }
}
K softmax_dx(const rl_ew a) {
  int64_t o[3], n = a.i[0];
  rl_place<3>(a, blockIdx.x, o);
  S *r = (S *)a.p[0] + o[0];
  const S *g = (const S *)a.p[1] + o[1], *y = (const S *)a.p[2] + o[2];
  C sum = 0;
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) sum += a.i[4] ? LD(g[j * a.i[2]]) : LD(g[j * a.i[2]]) * LD(y[j * a.i[3]]);
  sum = rl_all(sum, false);
  for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
    C v = LD(g[j * a.i[2]]), w = LD(y[j * a.i[3]]);
    r[j * a.i[1]] = ST(a.i[4] ? v - rl_e(w) * sum : w * (v - sum));
  }
}
#endif
