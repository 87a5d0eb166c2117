/* Hand-written kernels, one module per dtype: S storage type, C compute type, LD and ST between them (prelude and argument blocks are in front).
 * Writes at computed positions run one thread per line, in order, so that results do not depend on scheduling. */
K iota(const rl_ew a) { RL_EW_LOOP((S *)a.p[0])[t * a.st[0][0]] = ST((C)t); }
#if RL_IS_FLOAT
/* n counts groups that share a counter: four elements, two of double. i: seed, counter, normal, elements. */
K draw(const rl_ew a) {
  RL_EW_LOOP {
    C v[4];
    int per = sizeof(C) == 8 ? 2 : 4;
    if (a.i[2]) rl_randn_group((uint64_t)a.i[0], (uint64_t)a.i[1] + (uint64_t)t, v);
    else rl_rand_group((uint64_t)a.i[0], (uint64_t)a.i[1] + (uint64_t)t, v);
    for (int k = 0; k < per; k++)
      if (t * per + k < a.i[3]) ((S *)a.p[0])[t * per + k] = ST(v[k]);
  }
}
#endif
/* size: (outer..., rows, cols) as walked, with rows and columns told by i[1], i[2] = sizes. */
K tri(const rl_ew a) {
  RL_EW_LOOP {
    int64_t o[2], c = t % a.i[2], r = t / a.i[2] % a.i[1];
    rl_place<2>(a, t, o);
    S zero = ST((C)0);
    bool keep = a.i[3] ? c - r <= a.i[0] : c - r >= a.i[0];
    ((S *)a.p[0])[o[0]] = keep ? ((const S *)a.p[1])[o[1]] : zero;
  }
}
/* An index that is checked: out of range becomes 0 and a note (i[8] = op, i[9] = bound). */
RL_FN int64_t checked(const rl_ew &a, int64_t v, int64_t at) {
  if ((uint64_t)v < (uint64_t)a.i[9]) return v;
  rl_bad(a.err, a.i[8], v, at, a.i[9]);
  return 0;
}
/* out, x, idx over the shape of idx: i[0] = stride of x along dim, i[1] = elements of out that share an index. */
K gather(const rl_ew a) {
  RL_EW_LOOP {
    int64_t o[3];
    rl_place<3>(a, t, o);
    ((S *)a.p[0])[o[0]] = ((const S *)a.p[1])[o[1] + checked(a, ((const int64_t *)a.p[2])[o[2]], t / a.i[1] % a.i[2]) * a.i[0]];
  }
}
/* out, src, idx over the lines of idx: i = n, stride of out, src, idx along dim, mode (0 write, 1 add, 2 one value). */
K scatter(const rl_ew a) {
  RL_EW_LOOP {
    int64_t o[3];
    rl_place<3>(a, t, o);
    S *d = (S *)a.p[0] + o[0];
    const S *s = (const S *)a.p[1] + o[1];
    const int64_t *p = (const int64_t *)a.p[2] + o[2];
    for (int64_t i = 0; i < a.i[0]; i++) {
      if ((uint64_t)p[i * a.i[3]] >= (uint64_t)a.i[9]) {
        rl_bad(a.err, a.i[8], p[i * a.i[3]], a.i[5] ? i : t * a.i[0] + i, a.i[9]);
        continue;
      }
      S *e = d + p[i * a.i[3]] * a.i[1];
      if (a.i[4] == 1) *e = ST((C)(LD(*e) + LD(s[i * a.i[2]])));
      else *e = a.i[4] == 2 ? *(const S *)&a.imm[1] : s[i * a.i[2]];
    }
  }
}
/* out, src, idx over src: out at idx along the dimension that out's walk leaves out takes src too, in any order; i[0] = stride of out there. */
RL_FN void rl_add_any(float *p, float v) { atomicAdd(p, v); }
RL_FN void rl_add_any(double *p, double v) { atomicAdd(p, v); }
template <class T, class V> static __device__ void rl_add_any(T *, V) {} /* never launched: order.cuh adds other types in order */
K index_add_any(const rl_ew a) {
  RL_EW_LOOP {
    int64_t o[3];
    rl_place<3>(a, t, o);
    const int64_t row = ((const int64_t *)a.p[2])[o[2]];
    if ((uint64_t)row >= (uint64_t)a.i[9]) rl_bad(a.err, a.i[8], row, t / a.i[1] % a.i[2], a.i[9]);
    else rl_add_any((S *)a.p[0] + o[0] + row * a.i[0], LD(((const S *)a.p[1])[o[1]]));
  }
}
/* out, x at positions of x in order (x contiguous). */
K take(const rl_ew a) {
  RL_EW_LOOP {
    int64_t o[2];
    rl_place<2>(a, t, o);
    ((S *)a.p[0])[o[0]] = ((const S *)a.p[2])[checked(a, ((const int64_t *)a.p[1])[o[1]], t)];
  }
}
/* Position of the first largest (splits = 1) or smallest value; NaN is best. */
K arg(const rl_red a) {
  __shared__ C best[128];
  __shared__ int64_t at[128];
  const S *p = (const S *)a.x + rl_off(a.nk, a.ksize, a.kin, blockIdx.x);
  int64_t where = -1;
  C b = (C)0;
  for (int64_t j = threadIdx.x; j < a.m; j += 128) {
    C v = LD(p[rl_off(a.nr, a.rsize, a.rin, j)]);
    bool wins = where < 0 || (a.splits ? v > b : v < b) || (v != v && b == b);
    if (wins) b = v, where = j;
  }
  best[threadIdx.x] = b, at[threadIdx.x] = where;
  for (int h = 64; h > 0; h >>= 1) {
    __syncthreads();
    if (threadIdx.x < h && at[threadIdx.x + h] >= 0) {
      C v = best[threadIdx.x + h], w = best[threadIdx.x];
      int64_t i = at[threadIdx.x + h], j = at[threadIdx.x];
      bool same = v == w || (v != v && w != w);
      bool wins = j < 0 || (same ? i < j : (a.splits ? v > w : v < w) || (v != v && w == w));
      if (wins) best[threadIdx.x] = v, at[threadIdx.x] = i;
    }
  }
  if (threadIdx.x == 0) ((int64_t *)a.r)[rl_off(a.nk, a.ksize, a.kout, blockIdx.x)] = at[0];
}
/* out (b, m, n) = x (b, m, k) y (b, k, n): sizes are out's; i[0] = k, i[1], i[2] = strides along k. x and y have stride 0 where they do not vary. */
K mm(const rl_ew a) {
  RL_EW_LOOP {
    int64_t o[3];
    rl_place<3>(a, t, o);
    C s = (C)0;
    for (int64_t l = 0; l < a.i[0]; l++) s = (C)(s + LD(((const S *)a.p[1])[o[1] + l * a.i[1]]) * LD(((const S *)a.p[2])[o[2] + l * a.i[2]]));
    ((S *)a.p[0])[o[0]] = ST(s);
  }
}
