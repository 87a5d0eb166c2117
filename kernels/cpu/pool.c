/* Pooling and upsampling over planes (n, c, h, w): results and gradients. */
#include <math.h>
#include "walk.h"
#include "rows.h"

typedef struct pool {
  int64_t planes, c, h, w, oh, ow;
  const int64_t *k, *s, *p, *d;
} pool;

static pool pool_of(const rl_tensor *x, const rl_tensor *r) {
  pool q = { .planes = x->size[0] * x->size[1], .c = x->size[1], .h = x->size[2], .w = x->size[3], .oh = r->size[2], .ow = r->size[3] };
  return q;
}
/* Offset of plane i of t. */
static int64_t plane(const rl_tensor *t, const pool *q, int64_t i) { return i / q->c * t->stride[0] + i % q->c * t->stride[1]; }
static int64_t first_in(int64_t from, int64_t step) { return from >= 0 ? 0 : (-from + step - 1) / step; } /* first k with from + k step >= 0 */

/* Outputs of a row whose window column v lies inside the plane: [*lo, *hi). */
static void span(const pool *q, int64_t v, int64_t d, int64_t *lo, int64_t *hi) {
  int64_t o = v * d - q->p[1], s = q->s[1];
  *lo = o >= 0 ? 0 : RL_MIN(q->ow, (-o + s - 1) / s);
  *hi = q->w > o ? RL_MIN(q->ow, (q->w - 1 - o) / s + 1) : 0;
  *hi = RL_MAX(*hi, *lo);
}
/* Windows of 2 by 2, side by side, all of them inside the plane. */
static bool halves(const pool *q) {
  bool two = q->k[0] == 2 && q->k[1] == 2 && q->s[0] == 2 && q->s[1] == 2 && q->d[0] == 1 && q->d[1] == 1;
  return two && !q->p[0] && !q->p[1] && 2 * q->oh <= q->h && 2 * q->ow <= q->w && q->h * q->w < INT32_MAX;
}
/* Contiguous float or double planes: one row function a window position. */
#define MAX_ROWS(S, T) \
  static void max_rows_##S(const pool *q, const T *x, T *r, int64_t *at) { \
    if (halves(q)) { \
      rl_rows()->maxpool2_##S(q->oh, q->ow, q->w, x, r, at); \
      return; \
    } \
    for (int64_t i = 0; i < q->oh; i++, r += q->ow, at += q->ow) { \
      for (int64_t j = 0; j < q->ow; j++) r[j] = -INFINITY, at[j] = -1; \
      int64_t y0 = i * q->s[0] - q->p[0], lo, hi; \
      for (int64_t u = first_in(y0, q->d[0]); u < q->k[0] && y0 + u * q->d[0] < q->h; u++) \
        for (int64_t v = 0; v < q->k[1]; v++) { \
          span(q, v, q->d[1], &lo, &hi); \
          int64_t p = (y0 + u * q->d[0]) * q->w + lo * q->s[1] + v * q->d[1] - q->p[1]; \
          if (hi > lo) rl_rows()->maxpool_##S(hi - lo, x + p, q->s[1], p, r + lo, at + lo); \
        } \
      for (int64_t j = 0; j < q->ow; j++) at[j] = RL_MAX(at[j], 0); \
    } \
  }
MAX_ROWS(f32, float)
MAX_ROWS(f64, double)

RL_KERNEL(max_pool2d) {
  RL_KERNEL_UNUSED;
  const rl_tensor *x = in[0];
  pool q = pool_of(x, out[0]);
  q.k = a->list[0], q.s = a->list[1], q.p = a->list[2], q.d = a->list[3];
  if (!rl_numel(out[0])) return RL_OK;
  const int64_t *sx = x->stride, *sr = out[0]->stride, *si = out[1]->stride;
  if ((x->dtype == RL_F32 || x->dtype == RL_F64) && rl_is_contiguous(x) && rl_is_contiguous(out[0]) && rl_is_contiguous(out[1])) {
    int64_t *at = rl_data(out[1]), m = q.oh * q.ow;
#pragma omp parallel for schedule(static) if (q.planes * m * q.k[0] * q.k[1] > 32768)
    for (int64_t t = 0; t < q.planes; t++) {
      if (x->dtype == RL_F32) max_rows_f32(&q, (float *)rl_data(x) + t * q.h * q.w, (float *)rl_data(out[0]) + t * m, at + t * m);
      else max_rows_f64(&q, (double *)rl_data(x) + t * q.h * q.w, (double *)rl_data(out[0]) + t * m, at + t * m);
    }
    return RL_OK;
  }
#define MAXP(S, C, LD, ST) \
  _Pragma("omp parallel for schedule(static) if (q.planes * q.oh * q.ow * q.k[0] * q.k[1] > 32768)") for (int64_t t = 0; t < q.planes; t++) { \
    const S *px = (const S *)rl_data(x) + plane(x, &q, t); \
    S *pr = (S *)rl_data(out[0]) + plane(out[0], &q, t); \
    int64_t *pi = (int64_t *)rl_data(out[1]) + plane(out[1], &q, t); \
    for (int64_t i = 0; i < q.oh; i++) \
      for (int64_t j = 0; j < q.ow; j++) { \
        int64_t y0 = i * q.s[0] - q.p[0], x0 = j * q.s[1] - q.p[1], at = -1; \
        C best = 0; \
        for (int64_t u = first_in(y0, q.d[0]); u < q.k[0] && y0 + u * q.d[0] < q.h; u++) \
          for (int64_t v = first_in(x0, q.d[1]); v < q.k[1] && x0 + v * q.d[1] < q.w; v++) { \
            int64_t yy = y0 + u * q.d[0], xx = x0 + v * q.d[1]; \
            C e = LD(px[yy * sx[2] + xx * sx[3]]); \
            if (at < 0 || e > best || (e != e && best == best)) best = e, at = yy * q.w + xx; \
          } \
        pr[i * sr[2] + j * sr[3]] = ST(at < 0 ? (C)-INFINITY : best); \
        pi[i * si[2] + j * si[3]] = RL_MAX(at, 0); \
      } \
  }
  BY_DTYPE(x->dtype, MAXP)
#undef MAXP
  return RL_OK;
}

/* Contiguous planes: positions need no division. */
#define MAX_BACK(S, T) \
  static bool max_back_##S(const pool *q, const T *g, const int64_t *at, T *r) { \
    int64_t n = q->oh * q->ow, size = q->h * q->w; \
    bool bad = false; \
    memset(r, 0, (size_t)size * sizeof(T)); \
    for (int64_t i = 0; i < n; i++) { \
      if ((uint64_t)at[i] < (uint64_t)size) r[at[i]] += g[i]; \
      else bad = true; \
    } \
    return bad; \
  }
MAX_BACK(f32, float)
MAX_BACK(f64, double)

static bool max_back(const pool *q, const rl_tensor *g, const rl_tensor *idx, rl_tensor *r) {
  const int64_t *at = rl_data(idx), n = q->oh * q->ow, m = q->h * q->w;
  bool bad = false;
#pragma omp parallel for schedule(static) reduction(|| : bad) if (q->planes * n > 16384)
  for (int64_t t = 0; t < q->planes; t++)
    bad = (g->dtype == RL_F32 ? max_back_f32(q, (const float *)rl_data(g) + t * n, at + t * n, (float *)rl_data(r) + t * m)
                              : max_back_f64(q, (const double *)rl_data(g) + t * n, at + t * n, (double *)rl_data(r) + t * m)) ||
          bad;
  return bad;
}

static rl_status outside(const pool *q) {
  return rl_error("[max_pool2d_dx] a position lies outside its plane of %lldx%lld", (long long)q->h, (long long)q->w);
}

RL_KERNEL(max_pool2d_dx) {
  RL_KERNEL_UNUSED;
  const rl_tensor *g = in[0], *idx = in[1];
  pool q = pool_of(out[0], g);
  bool bad = false, dense = rl_is_contiguous(g) && rl_is_contiguous(idx) && rl_is_contiguous(out[0]);
  if (dense && (g->dtype == RL_F32 || g->dtype == RL_F64) && rl_numel(g)) return max_back(&q, g, idx, out[0]) ? outside(&q) : RL_OK;
  RL_TRY(rl_move_zero(out[0]));
  if (!rl_numel(g)) return RL_OK;
  const int64_t *sr = out[0]->stride, *sg = g->stride, *si = idx->stride;
#define MAXB(S, C, LD, ST) \
  _Pragma("omp parallel for schedule(static) if (q.planes * q.oh * q.ow > 16384)") for (int64_t t = 0; t < q.planes; t++) { \
    S *pr = (S *)rl_data(out[0]) + plane(out[0], &q, t); \
    const S *pg = (const S *)rl_data(g) + plane(g, &q, t); \
    const int64_t *pi = (const int64_t *)rl_data(idx) + plane(idx, &q, t); \
    for (int64_t i = 0; i < q.oh; i++) \
      for (int64_t j = 0; j < q.ow; j++) { \
        int64_t p = pi[i * si[2] + j * si[3]]; \
        if ((uint64_t)p >= (uint64_t)(q.h * q.w)) { \
          bad = true; \
          continue; \
        } \
        S *e = pr + p / q.w * sr[2] + p % q.w * sr[3]; \
        *e = ST((C)(LD(*e) + LD(pg[i * sg[2] + j * sg[3]]))); \
      } \
  }
  BY_DTYPE(g->dtype, MAXB)
#undef MAXB
  return bad ? outside(&q) : RL_OK;
}

/* Window of output position i: [*lo, *hi) inside the plane; returns what to divide by along this axis (padding counted or not). */
static int64_t window(int64_t i, int64_t k, int64_t s, int64_t p, int64_t n, bool count_pad, int64_t *lo, int64_t *hi) {
  int64_t a = i * s - p, b = RL_MIN(a + k, n + p), size = b - a;
  *lo = RL_MAX(a, 0), *hi = RL_MIN(b, n);
  return count_pad ? size : *hi - *lo;
}

#define AVG_ROWS(S, T) \
  static void avg_rows_##S(const pool *q, bool cp, const T *x, T *r) { \
    for (int64_t i = 0; i < q->oh; i++, r += q->ow) { \
      int64_t y0, y1, x0, x1, lo, hi, dy = window(i, q->k[0], q->s[0], q->p[0], q->h, cp, &y0, &y1); \
      for (int64_t j = 0; j < q->ow; j++) r[j] = 0; \
      for (int64_t y = y0; y < y1; y++) \
        for (int64_t v = 0; v < q->k[1]; v++) { \
          span(q, v, 1, &lo, &hi); \
          if (hi > lo) rl_rows()->addstep_##S(hi - lo, x + y * q->w + lo * q->s[1] + v - q->p[1], q->s[1], r + lo); \
        } \
      for (int64_t j = 0; j < q->ow; j++) r[j] /= (T)(dy * window(j, q->k[1], q->s[1], q->p[1], q->w, cp, &x0, &x1)); \
    } \
  }
AVG_ROWS(f32, float)
AVG_ROWS(f64, double)

RL_KERNEL(avg_pool2d) {
  RL_KERNEL_UNUSED;
  const rl_tensor *x = in[0];
  pool q = pool_of(x, out[0]);
  q.k = a->list[0], q.s = a->list[1], q.p = a->list[2];
  bool cp = a->v[1].i;
  if (!rl_numel(out[0])) return RL_OK;
  const int64_t *sx = x->stride, *sr = out[0]->stride;
  if ((x->dtype == RL_F32 || x->dtype == RL_F64) && rl_is_contiguous(x) && rl_is_contiguous(out[0])) {
    int64_t m = q.oh * q.ow;
#pragma omp parallel for schedule(static) if (q.planes * m * q.k[0] * q.k[1] > 32768)
    for (int64_t t = 0; t < q.planes; t++) {
      if (x->dtype == RL_F32) avg_rows_f32(&q, cp, (float *)rl_data(x) + t * q.h * q.w, (float *)rl_data(out[0]) + t * m);
      else avg_rows_f64(&q, cp, (double *)rl_data(x) + t * q.h * q.w, (double *)rl_data(out[0]) + t * m);
    }
    return RL_OK;
  }
#define AVG(S, C, LD, ST) \
  _Pragma("omp parallel for schedule(static) if (q.planes * q.oh * q.ow * q.k[0] * q.k[1] > 32768)") for (int64_t t = 0; t < q.planes; t++) { \
    const S *px = (const S *)rl_data(x) + plane(x, &q, t); \
    S *pr = (S *)rl_data(out[0]) + plane(out[0], &q, t); \
    for (int64_t i = 0; i < q.oh; i++) \
      for (int64_t j = 0; j < q.ow; j++) { \
        int64_t y0, y1, x0, x1, d = window(i, q.k[0], q.s[0], q.p[0], q.h, cp, &y0, &y1) * window(j, q.k[1], q.s[1], q.p[1], q.w, cp, &x0, &x1); \
        C sum = 0; \
        for (int64_t y = y0; y < y1; y++) \
          for (int64_t z = x0; z < x1; z++) sum += LD(px[y * sx[2] + z * sx[3]]); \
        pr[i * sr[2] + j * sr[3]] = ST((C)(sum / (C)d)); \
      } \
  }
  BY_DTYPE(x->dtype, AVG)
#undef AVG
  return RL_OK;
}

RL_KERNEL(avg_pool2d_dx) {
  RL_KERNEL_UNUSED;
  const rl_tensor *g = in[0];
  pool q = pool_of(out[0], g);
  q.k = a->list[1], q.s = a->list[2], q.p = a->list[3];
  bool cp = a->v[1].i;
  RL_TRY(rl_move_zero(out[0]));
  if (!rl_numel(g)) return RL_OK;
  const int64_t *sr = out[0]->stride, *sg = g->stride;
#define AVGB(S, C, LD, ST) \
  _Pragma("omp parallel for schedule(static) if (q.planes * q.oh * q.ow * q.k[0] * q.k[1] > 32768)") for (int64_t t = 0; t < q.planes; t++) { \
    S *pr = (S *)rl_data(out[0]) + plane(out[0], &q, t); \
    const S *pg = (const S *)rl_data(g) + plane(g, &q, t); \
    for (int64_t i = 0; i < q.oh; i++) \
      for (int64_t j = 0; j < q.ow; j++) { \
        int64_t y0, y1, x0, x1, d = window(i, q.k[0], q.s[0], q.p[0], q.h, cp, &y0, &y1) * window(j, q.k[1], q.s[1], q.p[1], q.w, cp, &x0, &x1); \
        C e = (C)(LD(pg[i * sg[2] + j * sg[3]]) / (C)d); \
        for (int64_t y = y0; y < y1; y++) \
          for (int64_t z = x0; z < x1; z++) { \
            S *f = pr + y * sr[2] + z * sr[3]; \
            *f = ST((C)(LD(*f) + e)); \
          } \
      } \
  }
  BY_DTYPE(g->dtype, AVGB)
#undef AVGB
  return RL_OK;
}

/* Adaptive window i of o over n: from floor(i n / o) to ceil((i + 1) n / o). */
static int64_t part_lo(int64_t i, int64_t n, int64_t o) { return i * n / o; }
static int64_t part_hi(int64_t i, int64_t n, int64_t o) { return ((i + 1) * n + o - 1) / o; }

RL_KERNEL(adaptive_avg_pool2d) {
  RL_KERNEL_UNUSED;
  const rl_tensor *x = in[0];
  pool q = pool_of(x, out[0]);
  const int64_t *sx = x->stride, *sr = out[0]->stride;
  if (!rl_numel(out[0])) return RL_OK;
#define ADA(S, C, LD, ST) \
  _Pragma("omp parallel for schedule(static) if (rl_numel(x) > 32768)") for (int64_t t = 0; t < q.planes; \
                                                                             t++) for (int64_t i = 0; i < q.oh; i++) for (int64_t j = 0; j < q.ow; \
                                                                                                                          j++) { \
    const S *px = (const S *)rl_data(x) + plane(x, &q, t); \
    int64_t y0 = part_lo(i, q.h, q.oh), y1 = part_hi(i, q.h, q.oh), x0 = part_lo(j, q.w, q.ow), x1 = part_hi(j, q.w, q.ow); \
    C sum = 0; \
    for (int64_t y = y0; y < y1; y++) \
      for (int64_t z = x0; z < x1; z++) sum += LD(px[y * sx[2] + z * sx[3]]); \
    ((S *)rl_data(out[0]))[plane(out[0], &q, t) + i * sr[2] + j * sr[3]] = ST((C)(sum / (C)((y1 - y0) * (x1 - x0)))); \
  }
  BY_DTYPE(x->dtype, ADA)
#undef ADA
  return RL_OK;
}

RL_KERNEL(adaptive_avg_pool2d_dx) {
  RL_KERNEL_UNUSED;
  const rl_tensor *g = in[0];
  pool q = pool_of(out[0], g);
  const int64_t *sr = out[0]->stride, *sg = g->stride;
  RL_TRY(rl_move_zero(out[0]));
  if (!rl_numel(g)) return RL_OK;
#define ADAB(S, C, LD, ST) \
  _Pragma("omp parallel for schedule(static) if (rl_numel(out[0]) > 32768)") for (int64_t t = 0; t < q.planes; t++) for (int64_t i = 0; i < q.oh; \
                                                                                                                         i++) for (int64_t j = 0; \
                                                                                                                                   j < q.ow; j++) { \
    S *pr = (S *)rl_data(out[0]) + plane(out[0], &q, t); \
    int64_t y0 = part_lo(i, q.h, q.oh), y1 = part_hi(i, q.h, q.oh), x0 = part_lo(j, q.w, q.ow), x1 = part_hi(j, q.w, q.ow); \
    C e = (C)(LD(((const S *)rl_data(g))[plane(g, &q, t) + i * sg[2] + j * sg[3]]) / (C)((y1 - y0) * (x1 - x0))); \
    for (int64_t y = y0; y < y1; y++) \
      for (int64_t z = x0; z < x1; z++) { \
        S *f = pr + y * sr[2] + z * sr[3]; \
        *f = ST((C)(LD(*f) + e)); \
      } \
  }
  BY_DTYPE(g->dtype, ADAB)
#undef ADAB
  return RL_OK;
}

RL_KERNEL(upsample_nearest2d) {
  RL_KERNEL_UNUSED;
  const rl_tensor *x = in[0];
  int64_t k = a->v[0].i;
  pool q = pool_of(x, out[0]);
  const int64_t *sx = x->stride, *sr = out[0]->stride;
  if (!rl_numel(out[0])) return RL_OK;
#define UP(T) \
  _Pragma("omp parallel for schedule(static) if (q.planes * q.oh * q.ow > 32768)") for (int64_t t = 0; t < q.planes; \
                                                                                        t++) for (int64_t i = 0; i < q.oh; i++) for (int64_t j = 0; \
                                                                                                                                     j < q.ow; \
                                                                                                                                     j++)(( \
      T *)rl_data(out[0]))[plane(out[0], &q, t) + i * sr[2] + j * sr[3]] = ((const T *)rl_data(x))[plane(x, &q, t) + i / k * sx[2] + j / k * sx[3]];
  BY_BYTES(esize(x), UP)
#undef UP
  return RL_OK;
}
