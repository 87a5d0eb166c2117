/* Order along lines: sort by tiles and merges, mode, running sums, selection by masks, sums at sorted positions, weighted draws.
 * S, C, LD, ST as in prims.cuh. Keys are unsigned numbers in the order of the values: equal values have equal keys, NaN is largest. */
RL_FN uint32_t rl_key(float x) {
  uint32_t u = rl_bitsf(x == 0 ? 0.f : x);
  return x != x ? 0xffffffffu : u >> 31 ? ~u : u | 0x80000000u;
}
RL_FN uint64_t rl_key(double x) {
  uint64_t u = (uint64_t)__double_as_longlong(x == 0 ? 0. : x), top = (uint64_t)1 << 63;
  return x != x ? ~(uint64_t)0 : u & top ? ~u : u | top;
}
RL_FN uint32_t rl_key(uint8_t x) { return x; }
RL_FN uint32_t rl_key(int8_t x) { return (uint8_t)(x ^ 0x80); }
RL_FN uint32_t rl_key(int16_t x) { return (uint16_t)(x ^ 0x8000); }
RL_FN uint32_t rl_key(int32_t x) { return (uint32_t)x ^ 0x80000000u; }
RL_FN uint64_t rl_key(int64_t x) { return (uint64_t)x ^ ((uint64_t)1 << 63); }
typedef decltype(rl_key((C)0)) rl_key_t;
#define TILE 1024

/* Tiles of lines in order. p: -, x, -, keys, positions; i: n, stride of x, descending, tiles of a line. A block a tile. */
K sort_tile(const rl_ew a) {
  __shared__ rl_key_t k[TILE];
  __shared__ uint32_t x[TILE];
  int64_t n = a.i[0], line = blockIdx.x / a.i[3], first = blockIdx.x % a.i[3] * TILE, o[3];
  int top = 32;
  rl_place<3>(a, line, o);
  const S *s = (const S *)a.p[1] + o[1];
  while (top < TILE && top < n) top *= 2;
  for (int j = threadIdx.x; j < top; j += 256) {
    int64_t g = first + j;
    rl_key_t v = ~(rl_key_t)0;
    if (g < n) v = rl_key(LD(s[g * a.i[1]])), v = a.i[2] ? ~v : v;
    k[j] = v, x[j] = (uint32_t)g;
  }
  for (int w = 2; w <= top; w *= 2)
    for (int d = w / 2; d; d /= 2) {
      __syncthreads();
      for (int j = threadIdx.x; j < top / 2; j += 256) {
        int lo = (j & ~(d - 1)) * 2 + (j & (d - 1)), hi = lo + d;
        bool after = k[lo] > k[hi] || (k[lo] == k[hi] && x[lo] > x[hi]);
        if (after != !(lo & w)) continue;
        rl_key_t v = k[lo];
        uint32_t y = x[lo];
        k[lo] = k[hi], x[lo] = x[hi], k[hi] = v, x[hi] = y;
      }
    }
  __syncthreads();
  for (int j = threadIdx.x; j < top; j += 256)
    if (first + j < n) ((rl_key_t *)a.p[3])[line * n + first + j] = k[j], ((uint32_t *)a.p[4])[line * n + first + j] = x[j];
}
/* First place in [lo, hi) whose key is not below v (above: is above v). */
RL_FN int64_t sort_bound(const rl_key_t *k, int64_t lo, int64_t hi, rl_key_t v, bool above) {
  while (lo < hi) {
    int64_t m = lo + (hi - lo) / 2;
    if (above ? k[m] <= v : k[m] < v) lo = m + 1;
    else hi = m;
  }
  return lo;
}
/* Runs of i[1] are merged by pairs. p: keys, positions -> keys, positions; n: all elements; i[0]: length of a line. */
K sort_merge(const rl_ew a) {
  const rl_key_t *k = (const rl_key_t *)a.p[0];
  RL_EW_LOOP {
    int64_t n = a.i[0], w = a.i[1], g = t % n, line = t - g, lo = line + g / (2 * w) * 2 * w, mid = lo + w, hi = lo + 2 * w, to = t;
    mid = mid < line + n ? mid : line + n, hi = hi < line + n ? hi : line + n;
    if (t < mid) to = t + sort_bound(k, mid, hi, k[t], false) - mid;
    else to = sort_bound(k, lo, mid, k[t], true) + t - mid;
    ((rl_key_t *)a.p[2])[to] = k[t], ((uint32_t *)a.p[3])[to] = ((const uint32_t *)a.p[1])[t];
  }
}
/* Elements i[3] .. i[3] + i[4] - 1 of every line's order. p: values, x, positions, -, order; over lines; i: n, strides of x, values, -, -, positions. */
K sort_take(const rl_ew a) {
  for (int64_t t = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; t < a.i[6] * a.i[4]; t += gridDim.x * (int64_t)blockDim.x) {
    int64_t line = t / a.i[4], j = t % a.i[4], o[3], from = ((const uint32_t *)a.p[4])[line * a.i[0] + a.i[3] + j];
    rl_place<3>(a, line, o);
    ((S *)a.p[0])[o[0] + j * a.i[2]] = ((const S *)a.p[1])[o[1] + from * a.i[1]];
    ((int64_t *)a.p[2])[o[2] + j * a.i[5]] = from;
  }
}
/* The longest run of every sorted line, its last position. */
K mode(const rl_ew a) {
  RL_EW_LOOP {
    int64_t o[3], n = a.i[0], best = 0, count = 0, run = 0;
    rl_place<3>(a, t, o);
    const uint32_t *x = (const uint32_t *)a.p[4] + t * n;
    const S *s = (const S *)a.p[1] + o[1];
    for (int64_t j = 0; j < n; j++) {
      run = j && LD(s[x[j] * a.i[1]]) == LD(s[x[j - 1] * a.i[1]]) ? run + 1 : 1;
      if (run > count) count = run, best = j;
    }
    ((S *)a.p[0])[o[0]] = s[x[best] * a.i[1]];
    ((int64_t *)a.p[2])[o[2]] = x[best];
  }
}

/* Running sums or products, a thread a line: r, x; i: n, strides of x and r, product. */
K scan_lines(const rl_ew a) {
  RL_EW_LOOP {
    int64_t o[2];
    rl_place<2>(a, t, o);
    C acc = a.i[3] ? (C)1 : (C)0;
    for (int64_t j = 0; j < a.i[0]; j++) {
      C v = LD(((const S *)a.p[1])[o[1] + j * a.i[1]]);
      acc = a.i[3] ? (C)(acc * v) : (C)(acc + v);
      ((S *)a.p[0])[o[0] + j * a.i[2]] = ST(acc);
    }
  }
}
/* The same, a block a line. */
K scan_block(const rl_ew a) {
  __shared__ C sh[256];
  int64_t o[2], n = a.i[0];
  rl_place<2>(a, blockIdx.x, o);
  const S *s = (const S *)a.p[1] + o[1];
  S *r = (S *)a.p[0] + o[0];
  bool product = a.i[3];
  C carry = product ? (C)1 : (C)0;
  for (int64_t base = 0; base < n; base += 1024) {
    int64_t first = base + threadIdx.x * 4;
    C v[4], acc = product ? (C)1 : (C)0;
    for (int k = 0; k < 4; k++) {
      C e = first + k < n ? LD(s[(first + k) * a.i[1]]) : product ? (C)1 : (C)0;
      v[k] = acc = product ? (C)(acc * e) : (C)(acc + e);
    }
    sh[threadIdx.x] = acc;
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
      C e = threadIdx.x >= d ? sh[threadIdx.x - d] : product ? (C)1 : (C)0;
      __syncthreads();
      sh[threadIdx.x] = product ? (C)(e * sh[threadIdx.x]) : (C)(e + sh[threadIdx.x]);
      __syncthreads();
    }
    C before = carry;
    if (threadIdx.x) before = product ? (C)(carry * sh[threadIdx.x - 1]) : (C)(carry + sh[threadIdx.x - 1]);
    carry = product ? (C)(carry * sh[255]) : (C)(carry + sh[255]);
    for (int k = 0; k < 4; k++)
      if (first + k < n) r[(first + k) * a.i[2]] = ST(product ? (C)(before * v[k]) : (C)(before + v[k]));
    __syncthreads();
  }
}

/* Selection: p[1] = x, p[2] = mask (bytes) or NULL: x itself; p[3] = counts of blocks of 1024. */
RL_FN bool chosen(const rl_ew &a, int64_t t) {
  int64_t o[3];
  if (t >= a.n) return false;
  rl_place<3>(a, t, o);
  return a.p[2] ? ((const uint8_t *)a.p[2])[o[2]] != 0 : LD(((const S *)a.p[1])[o[1]]) != (C)0;
}
/* Sum over the block of 256 and, in *before, over the threads in front. */
static __device__ int block_sum(int v, int *before) {
  __shared__ int sh[256];
  sh[threadIdx.x] = v;
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    int e = threadIdx.x >= d ? sh[threadIdx.x - d] : 0;
    __syncthreads();
    sh[threadIdx.x] += e;
    __syncthreads();
  }
  int all = sh[255];
  *before = sh[threadIdx.x] - v;
  __syncthreads();
  return all;
}
K select_count(const rl_ew a) {
  int n = 0, before;
  for (int k = 0; k < 4; k++) n += chosen(a, blockIdx.x * (int64_t)1024 + threadIdx.x * 4 + k);
  n = block_sum(n, &before);
  if (threadIdx.x == 0) ((int64_t *)a.p[3])[blockIdx.x] = n;
}
/* Counts -> how many lie in front; one block. i[0]: blocks. */
K select_scan(const rl_ew a) {
  int64_t carry = 0, *c = (int64_t *)a.p[3];
  for (int64_t base = 0; base < a.i[0]; base += 256) {
    int before, v = base + threadIdx.x < a.i[0] ? (int)c[base + threadIdx.x] : 0, all = block_sum(v, &before);
    if (base + threadIdx.x < a.i[0]) c[base + threadIdx.x] = carry + before;
    carry += all;
  }
}
/* i[1]: 0 the chosen elements to p[0] (stride i[2]); 1 their coordinates (strides i[2], i[3]; sizes in d); 2 elements of p[4] to the chosen places of
 * p[0], of which there are i[4]. */
K select_put(const rl_ew a, const rl_red d) {
  int n = 0, before;
  int64_t first = blockIdx.x * (int64_t)1024 + threadIdx.x * 4;
  for (int k = 0; k < 4; k++) n += chosen(a, first + k);
  block_sum(n, &before);
  int64_t at = ((const int64_t *)a.p[3])[blockIdx.x] + before, o[3];
  for (int64_t t = first; t < first + 4; t++) {
    if (!chosen(a, t)) continue;
    rl_place<3>(a, t, o);
    if (a.i[1] == 0) ((S *)a.p[0])[at * a.i[2]] = ((const S *)a.p[1])[o[1]];
    else if (a.i[1] == 1) {
      int64_t r = t;
      for (int k = d.nk - 1; k >= 0; k--) ((int64_t *)a.p[0])[at * a.i[2] + k * a.i[3]] = r % d.ksize[k], r /= d.ksize[k];
    } else if (at < a.i[4]) ((S *)a.p[0])[o[0]] = ((const S *)a.p[4])[at];
    else rl_bad(a.err, a.i[8], at, t, a.i[4]);
    at++;
  }
}

/* Places named by a sorted index take what stands at its entries, one thread for each run and column, in the order of the index.
 * over the columns of p[0] and p[1]; p[2] = index, p[3] = its keys, sorted, p[4] = its order; i: entries, strides along dim of p[0], p[1], index; add. */
K sorted_write(const rl_ew a) {
  const uint64_t *key = (const uint64_t *)a.p[3];
  const uint32_t *x = (const uint32_t *)a.p[4];
  for (int64_t w = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; w < a.n * a.i[0]; w += gridDim.x * (int64_t)blockDim.x) {
    int64_t t = w % a.n, q = w / a.n, o[2], row;
    if (q && key[q - 1] == key[q]) continue;
    row = ((const int64_t *)a.p[2])[x[q] * a.i[3]];
    if ((uint64_t)row >= (uint64_t)a.i[9]) {
      rl_bad(a.err, a.i[8], row, x[q], a.i[9]);
      continue;
    }
    rl_place<2>(a, t, o);
    S *e = (S *)a.p[0] + o[0] + row * a.i[1];
    const S *s = (const S *)a.p[1] + o[1];
    S acc = *e;
    int64_t end = q + 1;
    while (end < a.i[0] && key[end] == key[q]) end++;
    if (!a.i[4]) acc = s[x[end - 1] * a.i[2]];
    else
#pragma unroll 4
      for (int64_t k = q; k < end; k++) acc = ST((C)(LD(acc) + LD(s[x[k] * a.i[2]])));
    *e = acc;
  }
}
/* Adds at computed places one after the other, a thread for each of the lines that do not meet. over lines: p[0] = r, p[1] = src; i: n, strides. */
K add_lines(const rl_ew a) {
  RL_EW_LOOP {
    int64_t o[2];
    rl_place<2>(a, t, o);
    for (int64_t k = 0; k < a.i[0]; k++)
      for (int64_t j = 0; j < a.i[3]; j++) {
        S *e = (S *)a.p[0] + o[0] + k * a.i[1] + j * a.i[4];
        *e = ST((C)(LD(*e) + LD(((const S *)a.p[1])[o[1] + k * a.i[2] + j * a.i[5]])));
      }
  }
}
#if RL_IS_FLOAT
/* Draws with weights, as kernels/cpu/random.c makes them: a thread a row. p[0] = positions, p[1] = weights, p[3] = n doubles a row;
 * i: n, draws, strides of weights and positions along the row, again, seed, counter. */
K weighted(const rl_ew a) {
  RL_EW_LOOP {
    int64_t o[2], n = a.i[0], last = -1, *r;
    rl_place<2>(a, t, o);
    double *w = (double *)a.p[3] + t * n, total = 0;
    r = (int64_t *)a.p[0] + o[0];
    for (int64_t i = 0; i < n; i++) {
      w[i] = (double)LD(((const S *)a.p[1])[o[1] + i * a.i[2]]);
      if (!(w[i] >= 0) || w[i] > 1.7976931348623157e308) rl_bad(a.err, a.i[8], i, 0, -1), w[i] = 0;
    }
    for (int64_t i = 0; a.i[4] && i < n; i++) {
      if (w[i] > 0) last = i;
      w[i] = total += w[i];
    }
    for (int64_t j = 0; j < a.i[1]; j++) {
      double u = rl_unit_f32(rl_word((uint64_t)a.i[5], (uint64_t)a.i[6], t * a.i[1] + j));
      int64_t pick = -1, lo = 0, hi = last;
      if (!a.i[4]) {
        double sum = 0;
        total = 0;
        for (int64_t i = 0; i < n; i++) total += w[i];
        for (int64_t i = 0; i < n; i++) {
          sum += w[i];
          if (w[i] > 0) pick = i;
          if (sum > u * total && w[i] > 0) break;
        }
        if (pick >= 0) w[pick] = 0;
      } else {
        while (lo < hi) {
          int64_t m = lo + (hi - lo) / 2;
          if (w[m] > u * total) hi = m;
          else lo = m + 1;
        }
        pick = lo;
      }
      if (!(total > 0)) rl_bad(a.err, a.i[8], j, 0, -2), pick = 0;
      r[j * a.i[3]] = pick;
    }
  }
}
#endif
