/* Planes (n, c, h, w): pooling and its gradients, elements at positions of a plane, patches of a convolution and back.
 * S, C, LD, ST as in prims.cuh. x and r have strides of their own: sx, sr. */
struct rl_plane {
  int64_t n, c, h, w, oh, ow, k[2], s[2], p[2], d[2], sx[4], sr[4], si[4], flag, first, *err, op;
  const void *x;
  void *r;
  int64_t *idx;
};
struct __align__(2 * sizeof(S)) rl_pair {
  S v[2];
};
#define RL_PLANE_LOOP(N) for (int64_t t = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; t < (N); t += gridDim.x * (int64_t)blockDim.x)
#define RL_OUTPUT_OF(H, W) int64_t j = t % (W), i = t / (W) % (H), q = t / ((W) * (H)), c = q % a.c, n = q / a.c
#define RL_X(I, J) LD(((const S *)a.x)[n * a.sx[0] + c * a.sx[1] + (I)*a.sx[2] + (J)*a.sx[3]])
#define RL_R(I, J) ((S *)a.r)[n * a.sr[0] + c * a.sr[1] + (I)*a.sr[2] + (J)*a.sr[3]]
/* n matrices of h rows and w columns, turned: the last two dimensions change places. 32 x 8 threads move a tile; half types by pairs. */
K turn(const rl_plane a) {
  enum { V = sizeof(S) == 2 ? 2 : 1, T = 32 * V };
  __shared__ S tile[T][T + V];
  const int64_t across = (a.w + T - 1) / T, down = (a.h + T - 1) / T, q = blockIdx.x / (across * down), at = blockIdx.x % (across * down);
  const int64_t i0 = at / across * T, j0 = at % across * T;
  const int lane = threadIdx.x % 32 * V, ty = threadIdx.x / 32;
  const S *x = (const S *)a.x + q * a.h * a.w;
  S *r = (S *)a.r + q * a.h * a.w;
  for (int i = ty; i < T && i0 + i < a.h; i += 8) {
    const S *from = x + (i0 + i) * a.w + j0 + lane;
    if (V == 2 && a.w % 2 == 0 && ((size_t)a.x & 3) == 0) {
      if (j0 + lane < a.w) *(rl_pair *)&tile[i][lane] = *(const rl_pair *)from;
    } else
      for (int v = 0; v < V; v++)
        if (j0 + lane + v < a.w) tile[i][lane + v] = from[v];
  }
  __syncthreads();
  for (int j = ty; j < T && j0 + j < a.w; j += 8) {
    S *to = r + (j0 + j) * a.h + i0 + lane;
    if (V == 2 && a.h % 2 == 0 && ((size_t)a.r & 3) == 0) {
      rl_pair p = { { tile[lane][j], tile[lane + V - 1][j] } };
      if (i0 + lane < a.h) *(rl_pair *)to = p;
    } else
      for (int v = 0; v < V; v++)
        if (i0 + lane + v < a.h) to[v] = tile[lane + v][j];
  }
}
#if RL_IS_FLOAT
K max_pool(const rl_plane a) {
  RL_PLANE_LOOP(a.n * a.c * a.oh * a.ow) {
    RL_OUTPUT_OF(a.oh, a.ow);
    C best = (C)-INFINITY;
    int64_t at = -1;
    for (int64_t u = 0; u < a.k[0]; u++)
      for (int64_t v = 0; v < a.k[1]; v++) {
        int64_t y = i * a.s[0] - a.p[0] + u * a.d[0], z = j * a.s[1] - a.p[1] + v * a.d[1];
        if (y < 0 || y >= a.h || z < 0 || z >= a.w) continue;
        C e = RL_X(y, z);
        if (at < 0 || e > best || (e != e && best == best)) best = e, at = y * a.w + z;
      }
    RL_R(i, j) = ST(best);
    a.idx[n * a.si[0] + c * a.si[1] + i * a.si[2] + j * a.si[3]] = at < 0 ? 0 : at;
  }
}
RL_FN void rl_add_at(double *p, double v) { atomicAdd(p, v); }
RL_FN void rl_add_at(float *p, float v) { atomicAdd(p, v); }
/* Half types: the word around the element is exchanged. */
template <class T> static __device__ void rl_add_at(T *p, float v) {
  unsigned *w = (unsigned *)((size_t)p & ~(size_t)3), old = *w, seen;
  bool high = ((size_t)p & 2) != 0;
  do {
    seen = old;
    S h;
    uint16_t b = (uint16_t)(high ? seen >> 16 : seen);
    memcpy(&h, &b, sizeof b);
    h = ST((C)(LD(h) + v));
    memcpy(&b, &h, sizeof b);
    old = atomicCAS(w, seen, high ? (seen & 0xffffu) | (unsigned)b << 16 : (seen & 0xffff0000u) | b);
  } while (old != seen);
}
/* x = gradient over the windows, r = gradient of the plane, cleared before. */
K max_pool_dx(const rl_plane a) {
  RL_PLANE_LOOP(a.n * a.c * a.oh * a.ow) {
    RL_OUTPUT_OF(a.oh, a.ow);
    int64_t p = a.idx[n * a.si[0] + c * a.si[1] + i * a.si[2] + j * a.si[3]];
    if ((uint64_t)p >= (uint64_t)(a.h * a.w)) rl_bad(a.err, a.op, p, t, a.h * a.w);
    else rl_add_at(&RL_R(p / a.w, p % a.w), RL_X(i, j));
  }
}
RL_FN int64_t rl_window(int64_t i, int64_t k, int64_t s, int64_t p, int64_t n, bool count_pad, int64_t *lo, int64_t *hi) {
  int64_t a = i * s - p, b = a + k < n + p ? a + k : n + p, size = b - a;
  *lo = a > 0 ? a : 0, *hi = b < n ? b : n;
  return count_pad ? size : *hi - *lo;
}
K avg_pool(const rl_plane a) {
  RL_PLANE_LOOP(a.n * a.c * a.oh * a.ow) {
    RL_OUTPUT_OF(a.oh, a.ow);
    int64_t y0, y1, x0, x1,
        d = rl_window(i, a.k[0], a.s[0], a.p[0], a.h, a.flag, &y0, &y1) * rl_window(j, a.k[1], a.s[1], a.p[1], a.w, a.flag, &x0, &x1);
    C sum = 0;
    for (int64_t y = y0; y < y1; y++)
      for (int64_t z = x0; z < x1; z++) sum += RL_X(y, z);
    RL_R(i, j) = ST((C)(sum / (C)d));
  }
}
/* Each element of the plane collects from the windows over it. */
K avg_pool_dx(const rl_plane a) {
  RL_PLANE_LOOP(a.n * a.c * a.h * a.w) {
    RL_OUTPUT_OF(a.h, a.w);
    int64_t i0 = i + a.p[0] - a.k[0] + 1, j0 = j + a.p[1] - a.k[1] + 1, i1 = (i + a.p[0]) / a.s[0] + 1, j1 = (j + a.p[1]) / a.s[1] + 1;
    i0 = i0 <= 0 ? 0 : (i0 + a.s[0] - 1) / a.s[0], j0 = j0 <= 0 ? 0 : (j0 + a.s[1] - 1) / a.s[1];
    i1 = i1 < a.oh ? i1 : a.oh, j1 = j1 < a.ow ? j1 : a.ow;
    C sum = 0;
    for (int64_t u = i0; u < i1; u++)
      for (int64_t v = j0; v < j1; v++) {
        int64_t y0, y1, x0, x1;
        int64_t d = rl_window(u, a.k[0], a.s[0], a.p[0], a.h, a.flag, &y0, &y1) * rl_window(v, a.k[1], a.s[1], a.p[1], a.w, a.flag, &x0, &x1);
        if (i >= y0 && i < y1 && j >= x0 && j < x1) sum += RL_X(u, v) / (C)d;
      }
    RL_R(i, j) = ST(sum);
  }
}
/* Adaptive windows: i of o over n from floor(i n / o) to ceil((i + 1) n / o). */
#define RL_LO(I, N, O) ((I) * (N) / (O))
#define RL_HI(I, N, O) ((((I) + 1) * (N) + (O)-1) / (O))
K adaptive_avg(const rl_plane a) {
  RL_PLANE_LOOP(a.n * a.c * a.oh * a.ow) {
    RL_OUTPUT_OF(a.oh, a.ow);
    int64_t y0 = RL_LO(i, a.h, a.oh), y1 = RL_HI(i, a.h, a.oh), x0 = RL_LO(j, a.w, a.ow), x1 = RL_HI(j, a.w, a.ow);
    C sum = 0;
    for (int64_t y = y0; y < y1; y++)
      for (int64_t z = x0; z < x1; z++) sum += RL_X(y, z);
    RL_R(i, j) = ST((C)(sum / (C)((y1 - y0) * (x1 - x0))));
  }
}
K adaptive_avg_dx(const rl_plane a) {
  RL_PLANE_LOOP(a.n * a.c * a.h * a.w) {
    RL_OUTPUT_OF(a.h, a.w);
    C sum = 0;
    for (int64_t u = i * a.oh / a.h; u < a.oh && RL_LO(u, a.h, a.oh) <= i; u++)
      for (int64_t v = j * a.ow / a.w; v < a.ow && RL_LO(v, a.w, a.ow) <= j; v++) {
        int64_t y0 = RL_LO(u, a.h, a.oh), y1 = RL_HI(u, a.h, a.oh), x0 = RL_LO(v, a.w, a.ow), x1 = RL_HI(v, a.w, a.ow);
        if (i < y1 && j < x1) sum += RL_X(u, v) / (C)((y1 - y0) * (x1 - x0));
      }
    RL_R(i, j) = ST(sum);
  }
}

/* x (n, c, h, w), contiguous -> r (n, c k k, oh ow), images from `first` on. */
K im2col(const rl_plane a) {
  int64_t l = a.oh * a.ow, m = a.c * a.k[0] * a.k[1];
  RL_PLANE_LOOP(a.n * m * l) {
    int64_t p = t % l, q = t / l % m, n = t / (l * m), i = p / a.ow, j = p % a.ow, v = q % a.k[1], u = q / a.k[1] % a.k[0], c = q / (a.k[0] * a.k[1]);
    int64_t y = i * a.s[0] - a.p[0] + u * a.d[0], z = j * a.s[1] - a.p[1] + v * a.d[1];
    bool in = y >= 0 && y < a.h && z >= 0 && z < a.w;
    S zero = ST((C)0);
    ((S *)a.r)[t] = in ? ((const S *)a.x)[(n + a.first) * a.sx[0] + c * a.sx[1] + y * a.sx[2] + z * a.sx[3]] : zero;
  }
}
/* The other way: every element of r collects from the patches over it. */
K col2im(const rl_plane a) {
  int64_t l = a.oh * a.ow;
  RL_PLANE_LOOP(a.n * a.c * a.h * a.w) {
    RL_OUTPUT_OF(a.h, a.w);
    C sum = 0;
    for (int64_t u = 0; u < a.k[0]; u++)
      for (int64_t v = 0; v < a.k[1]; v++) {
        int64_t y = i + a.p[0] - u * a.d[0], z = j + a.p[1] - v * a.d[1];
        if (y < 0 || z < 0 || y % a.s[0] || z % a.s[1]) continue;
        y /= a.s[0], z /= a.s[1];
        if (y < a.oh && z < a.ow) sum += LD(((const S *)a.x)[(((n * a.c + c) * a.k[0] + u) * a.k[1] + v) * l + y * a.ow + z]);
      }
    ((S *)a.r)[(n + a.first) * a.sr[0] + c * a.sr[1] + i * a.sr[2] + j * a.sr[3]] = ST(sum);
  }
}
K gather_plane(const rl_plane a) {
  RL_PLANE_LOOP(a.n * a.c * a.oh * a.ow) {
    RL_OUTPUT_OF(a.oh, a.ow);
    int64_t p = a.idx[n * a.si[0] + c * a.si[1] + i * a.si[2] + j * a.si[3]];
    if ((uint64_t)p >= (uint64_t)(a.h * a.w)) rl_bad(a.err, a.op, p, t, a.h * a.w), p = 0;
    RL_R(i, j) = ((const S *)a.x)[n * a.sx[0] + c * a.sx[1] + p / a.w * a.sx[2] + p % a.w * a.sx[3]];
  }
}
#endif
