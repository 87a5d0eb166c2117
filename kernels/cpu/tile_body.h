/* Tile functions of one type: T, its suffix S and L lanes are defined by who includes this (tile_isa.c). */
typedef T RL_CAT(vec, S) __attribute__((vector_size(L * sizeof(T))));
typedef T RL_CAT(mem, S) __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef T RL_CAT(half, S) __attribute__((vector_size(L * sizeof(T) / 2), aligned(sizeof(T)), may_alias));
#define V RL_CAT(vec, S)
#define M RL_CAT(mem, S)

#define EACH(DO) \
  _Pragma("GCC unroll 12") for (int i = 0; i < m; i++) { \
    _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++) { DO; } \
  }
static inline __attribute__((always_inline)) void RL_CAT(store, S)(const int m, const int nv, const rl_tile *t, V acc[RL_TILE_ROWS][RL_TILE_VECS]) {
  const V zero = { 0 };
  const T *bias = t->bias;
  T *c = t->c;
  const int64_t ldc = t->ldc;
  if (t->add) EACH(acc[i][j] += *(const M *)(c + i * ldc + j * L))
  if (bias) EACH(acc[i][j] += bias[i])
  if (t->relu) EACH(acc[i][j] = (V)((RL_CAT(pick, S))acc[i][j] & ~(acc[i][j] <= zero)))
  EACH(*(M *)(c + i * ldc + j * L) = acc[i][j])
}

static inline __attribute__((always_inline)) void RL_CAT(product, S)(const int m, const int nv, const rl_tile *t) {
  V acc[RL_TILE_ROWS][RL_TILE_VECS];
#pragma GCC unroll 12
  for (int i = 0; i < m; i++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) acc[i][j] = (V){ 0 };
  const T *b = t->b;
  const int64_t ldb = t->ldb, step = t->ac;
  for (int64_t image = 0; image < t->images; image++)
    for (int64_t row = 0; row < t->rows; row++) {
      const int64_t at = image * t->ai + row * t->ar;
      const T *a[RL_TILE_ROWS];
#pragma GCC unroll 12
      for (int i = 0; i < m; i++) a[i] = (const T *)t->a[i] + at;
      for (int64_t k = 0, q = 0; k < t->cols; k++, q += step, b += ldb) {
        V x[RL_TILE_VECS];
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) x[j] = *(const M *)(b + j * L);
#pragma GCC unroll 12
        for (int i = 0; i < m; i++) {
          const T w = a[i][q];
#pragma GCC unroll 4
          for (int j = 0; j < nv; j++) acc[i][j] += x[j] * w;
        }
      }
    }
  RL_CAT(store, S)(m, nv, t, acc);
}

#define MUL(NV, R) \
  static void RL_CAT(mul##NV##_##R, S)(const rl_tile *t) { RL_CAT(product, S)(R, NV, t); }
TILES(MUL)
#undef MUL

/* A square of L by L: in step s, lanes whose number has bit s change places between rows i and i + s. */
static inline __attribute__((always_inline)) void RL_CAT(swap, S)(V *x, const int s, const RL_CAT(pick, S) lo, const RL_CAT(pick, S) hi) {
#pragma GCC unroll 16
  for (int i = 0; i < L; i++)
    if (!(i & s)) {
      V a = x[i], b = x[i + s];
      x[i] = __builtin_shuffle(a, b, lo);
      x[i + s] = __builtin_shuffle(a, b, hi);
    }
}
static inline void RL_CAT(square, S)(const T *x, int64_t ldx, T *r, int64_t ldr) {
  V v[L];
#pragma GCC unroll 16
  for (int i = 0; i < L; i++) v[i] = *(const M *)(x + i * ldx);
#define LOW(l, s) ((l) & (s) ? L + (l) - (s) : (l))
#define HIGH(l, s) ((l) & (s) ? L + (l) : (l) + (s))
#define STEP(s) \
  if (s < L) RL_CAT(swap, S)(v, s, (RL_CAT(pick, S)){ LANES(LOW, s) }, (RL_CAT(pick, S)){ LANES(HIGH, s) });
  STEP(1)
  STEP(2)
  STEP(4)
  STEP(8)
#undef STEP
#undef LOW
#undef HIGH
#pragma GCC unroll 16
  for (int i = 0; i < L; i++) *(M *)(r + i * ldr) = v[i];
}
static void RL_CAT(turn, S)(int64_t m, int64_t n, const void *xp, int64_t ldx, void *rp, int64_t ldr) {
  const T *x = xp;
  T *r = rp;
  int64_t i = 0, mm = m - m % L, nn = n - n % L;
  for (; i < mm; i += L) {
    for (int64_t j = 0; j < nn; j += L) RL_CAT(square, S)(x + i * ldx + j, ldx, r + j * ldr + i, ldr);
    for (int64_t j = nn; j < n; j++)
      for (int64_t k = i; k < i + L; k++) r[j * ldr + k] = x[k * ldx + j];
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t k = i; k < m; k++) r[j * ldr + k] = x[k * ldx + j];
}

static void RL_CAT(add, S)(int64_t rows, const char *x, int64_t ldx, char *r, int64_t ldr, int np, const rl_piece *p, int64_t step) {
  for (int64_t i = 0; i < rows; i++, x += ldx, r += ldr)
    for (int k = 0; k < np; k++) {
      const T *from = (const T *)(x + p[k].x);
      T *to = (T *)(r + p[k].r);
      int64_t j = 0, n = p[k].n / (int64_t)sizeof(T);
      if (step == 1) {
        for (; j + L <= n; j += L) *(M *)(to + j) += *(const M *)(from + j);
        if (j + L / 2 <= n) *(RL_CAT(half, S) *)(to + j) += *(const RL_CAT(half, S) *)(from + j), j += L / 2;
      }
      for (; j < n; j++) to[j * step] += from[j];
    }
}

#define ENTRY(NV, R) [NV][R] = RL_CAT(mul##NV##_##R, S),
static const rl_tile_fns RL_CAT(table, S) = {
  .lanes = L, .rows = TILE_ROWS, .mul = { TILES(ENTRY) }, .turn = RL_CAT(turn, S), .lay = RL_CAT(lay, S), .add = RL_CAT(add, S)
};
#undef ENTRY
#undef EACH
#undef V
#undef M
