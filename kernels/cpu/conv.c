/* Convolution, two dimensions: columns of patches and OpenBLAS, images in parallel (x, w -> result and both gradients). */
#include <cblas.h>
#include "walk.h"

typedef struct conv {
  int64_t n, c, h, w, o, kh, kw, oh, ow, groups; /* c, o over all groups */
  int64_t sh, sw, ph, pw, dh, dw;
  rl_dtype dt;
  int bytes;
} conv;

/* attrs lists from `at`: stride, pad, dilation. */
static void conv_params(conv *v, const rl_attrs *a, int at) {
  v->sh = a->list[at][0], v->sw = a->list[at][1];
  v->ph = a->list[at + 1][0], v->pw = a->list[at + 1][1];
  v->dh = a->list[at + 2][0], v->dw = a->list[at + 2][1];
  v->groups = a->v[0].i;
}
static void conv_sizes(conv *v, const rl_tensor *x, const rl_tensor *w, const rl_tensor *g) {
  v->n = x->size[0], v->c = x->size[1], v->h = x->size[2], v->w = x->size[3];
  v->o = w->size[0], v->kh = w->size[2], v->kw = w->size[3];
  v->oh = g->size[2], v->ow = g->size[3];
  v->dt = x->dtype, v->bytes = esize(x);
}
static bool pointwise(const conv *v) { return v->kh == 1 && v->kw == 1 && v->sh == 1 && v->sw == 1 && v->ph == 0 && v->pw == 0; }

/* x (c, h, w) of one group -> col (c kh kw, oh ow); outside is 0. */
#define IM2COL(T) \
  static void im2col_##T(const conv *v, int64_t c, const T *x, T *col) { \
    for (int64_t k = 0; k < c * v->kh * v->kw; k++) { \
      int64_t j = k % v->kw, i = k / v->kw % v->kh, x0 = j * v->dw - v->pw; \
      const T *plane = x + k / (v->kh * v->kw) * v->h * v->w; \
      for (int64_t y = 0; y < v->oh; y++, col += v->ow) { \
        int64_t iy = y * v->sh - v->ph + i * v->dh; \
        if (iy < 0 || iy >= v->h) { \
          memset(col, 0, (size_t)v->ow * sizeof(T)); \
          continue; \
        } \
        const T *row = plane + iy * v->w; \
        int64_t lo = 0, hi = v->ow; \
        while (lo < hi && x0 + lo * v->sw < 0) col[lo++] = 0; \
        while (hi > lo && x0 + (hi - 1) * v->sw >= v->w) col[--hi] = 0; \
        if (v->sw == 1) { \
          if (hi > lo) memcpy(col + lo, row + x0 + lo, (size_t)(hi - lo) * sizeof(T)); \
        } else \
          for (int64_t q = lo; q < hi; q++) col[q] = row[x0 + q * v->sw]; \
      } \
    } \
  } \
  static void col2im_##T(const conv *v, int64_t c, const T *col, T *x) { \
    memset(x, 0, (size_t)(c * v->h * v->w) * sizeof(T)); \
    for (int64_t k = 0; k < c * v->kh * v->kw; k++) { \
      int64_t j = k % v->kw, i = k / v->kw % v->kh, x0 = j * v->dw - v->pw; \
      T *plane = x + k / (v->kh * v->kw) * v->h * v->w; \
      for (int64_t y = 0; y < v->oh; y++, col += v->ow) { \
        int64_t iy = y * v->sh - v->ph + i * v->dh, lo = 0, hi = v->ow; \
        if (iy < 0 || iy >= v->h) continue; \
        T *row = plane + iy * v->w; \
        while (lo < hi && x0 + lo * v->sw < 0) lo++; \
        while (hi > lo && x0 + (hi - 1) * v->sw >= v->w) hi--; \
        for (int64_t q = lo; q < hi; q++) row[x0 + q * v->sw] += col[q]; \
      } \
    } \
  }
IM2COL(float)
IM2COL(double)

static void im2col(const conv *v, int64_t c, const char *x, char *col) {
  if (v->dt == RL_F64) im2col_double(v, c, (const double *)x, (double *)col);
  else im2col_float(v, c, (const float *)x, (float *)col);
}
static void col2im(const conv *v, int64_t c, const char *col, char *x) {
  if (v->dt == RL_F64) col2im_double(v, c, (const double *)col, (double *)x);
  else col2im_float(v, c, (const float *)col, (float *)x);
}
static void gemm(rl_dtype dt, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const char *a, int64_t la, const char *b, int64_t lb, double beta,
                 char *c, int64_t lc) {
  CBLAS_TRANSPOSE x = ta ? CblasTrans : CblasNoTrans, y = tb ? CblasTrans : CblasNoTrans;
  if (dt == RL_F64)
    cblas_dgemm(CblasRowMajor, x, y, (int)m, (int)n, (int)k, 1, (const double *)a, (int)la, (const double *)b, (int)lb, beta, (double *)c, (int)lc);
  else
    cblas_sgemm(CblasRowMajor, x, y, (int)m, (int)n, (int)k, 1, (const float *)a, (int)la, (const float *)b, (int)lb, (float)beta, (float *)c,
                (int)lc);
}

typedef rl_status (*conv_body)(conv *v, rl_tensor *p, rl_tensor *q, rl_tensor *r);
/* Runs body on working copies of two inputs and the result. */
static rl_status conv_run(conv *v, rl_tensor *p, rl_tensor *q, rl_tensor *out, conv_body body) {
  rl_dtype dt = p->dtype == RL_F64 ? RL_F64 : RL_F32;
  v->dt = dt, v->bytes = rl_dtypes[dt].bytes;
  bool direct = out->dtype == dt && rl_is_contiguous(out);
  rl_tensor *a = rl_working(p, dt), *b = rl_working(q, dt), *r = direct ? rl_tensor_retain(out) : rl_tensor_empty(dt, RL_CPU, out->ndim, out->size);
  rl_status s = a && b && r ? body(v, a, b, r) : RL_OOM;
  if (s == RL_OK) s = rl_give(r, out);
  if (a) rl_tensor_release(a);
  if (b) rl_tensor_release(b);
  if (r) rl_tensor_release(r);
  return s;
}

/* Threads share the images where there is enough to do; each has its own columns. */
static bool shares(const conv *v) { return v->n > 1 && v->n * v->o * (v->c / v->groups) * v->kh * v->kw * v->oh * v->ow > 200000; }
static size_t col_bytes(const conv *v) { return (size_t)(v->c / v->groups * v->kh * v->kw * v->oh * v->ow * v->bytes); }

static rl_status forward(conv *v, rl_tensor *x, rl_tensor *w, rl_tensor *r) {
  int64_t cg = v->c / v->groups, og = v->o / v->groups, k = cg * v->kh * v->kw, l = v->oh * v->ow;
  const char *px = rl_data(x), *pw = rl_data(w);
  char *pr = rl_data(r);
  bool direct = pointwise(v), failed = false;
#pragma omp parallel if (shares(v))
  {
    char *col = direct ? NULL : rl_alloc(col_bytes(v));
    if (!direct && !col) failed = true;
#pragma omp for schedule(static)
    for (int64_t t = 0; t < v->n * v->groups; t++) {
      int64_t i = t / v->groups, g = t % v->groups;
      const char *xi = px + (i * v->c + g * cg) * v->h * v->w * v->bytes;
      if (failed) continue;
      if (!direct) im2col(v, cg, xi, col);
      gemm(v->dt, false, false, og, l, k, pw + g * og * k * v->bytes, k, direct ? xi : col, l, 0, pr + (i * v->o + g * og) * l * v->bytes, l);
    }
    if (col) rl_free(col, col_bytes(v));
  }
  return failed ? RL_OOM : RL_OK;
}

RL_KERNEL(conv2d) {
  RL_KERNEL_UNUSED;
  conv v;
  conv_params(&v, a, 0);
  conv_sizes(&v, in[0], in[1], out[0]);
  if (!rl_numel(out[0])) return RL_OK;
  if (!rl_numel(in[1])) RL_TRY(rl_move_zero(out[0]));
  else RL_TRY(conv_run(&v, in[0], in[1], out[0], forward));
  if (nin < 3 || !in[2]) return RL_OK;
  rl_tensor b = *in[2], *io[] = { out[0], &b };
  b.ndim = 4;
  for (int d = 0; d < 4; d++) b.size[d] = out[0]->size[d], b.stride[d] = d == 1 ? in[2]->stride[0] : 0;
  return rl_ops[RL_OP_ADD].kernel[RL_CPU](RL_OP_ADD, io, 2, NULL, out);
}

static rl_status input_gradient(conv *v, rl_tensor *g, rl_tensor *w, rl_tensor *r) {
  int64_t cg = v->c / v->groups, og = v->o / v->groups, k = cg * v->kh * v->kw, l = v->oh * v->ow;
  const char *pg = rl_data(g), *pw = rl_data(w);
  char *pr = rl_data(r);
  bool direct = pointwise(v), failed = false;
#pragma omp parallel if (shares(v))
  {
    char *col = direct ? NULL : rl_alloc(col_bytes(v));
    if (!direct && !col) failed = true;
#pragma omp for schedule(static)
    for (int64_t t = 0; t < v->n * v->groups; t++) {
      int64_t i = t / v->groups, gr = t % v->groups;
      char *ri = pr + (i * v->c + gr * cg) * v->h * v->w * v->bytes;
      if (failed) continue;
      gemm(v->dt, true, false, k, l, og, pw + gr * og * k * v->bytes, k, pg + (i * v->o + gr * og) * l * v->bytes, l, 0, direct ? ri : col, l);
      if (!direct) col2im(v, cg, col, ri);
    }
    if (col) rl_free(col, col_bytes(v));
  }
  return failed ? RL_OOM : RL_OK;
}

RL_KERNEL(conv2d_dx) {
  RL_KERNEL_UNUSED;
  conv v;
  conv_params(&v, a, 1);
  conv_sizes(&v, out[0], in[1], in[0]);
  if (!rl_numel(out[0])) return RL_OK;
  if (!rl_numel(in[0]) || !rl_numel(in[1])) return rl_move_zero(out[0]);
  return conv_run(&v, in[0], in[1], out[0], input_gradient);
}

#define PARTS 8 /* weight gradients summed apart, then in order: the same result for any number of threads */
static rl_status weight_gradient(conv *v, rl_tensor *g, rl_tensor *x, rl_tensor *r) {
  int64_t cg = v->c / v->groups, og = v->o / v->groups, k = cg * v->kh * v->kw, l = v->oh * v->ow, nw = rl_numel(r);
  int64_t parts = RL_MIN(PARTS, v->n);
  const char *px = rl_data(x), *pg = rl_data(g);
  char *sum = rl_alloc((size_t)(parts * nw * v->bytes));
  bool direct = pointwise(v), failed = !sum;
#pragma omp parallel for schedule(static) if (shares(v))
  for (int64_t p = 0; p < parts; p++) {
    char *col = direct ? NULL : rl_alloc(col_bytes(v));
    if (!direct && !col) failed = true;
    int64_t from = p * v->n / parts, to = (p + 1) * v->n / parts;
    for (int64_t i = from; i < to && !failed; i++)
      for (int64_t gr = 0; gr < v->groups; gr++) {
        const char *xi = px + (i * v->c + gr * cg) * v->h * v->w * v->bytes;
        if (!direct) im2col(v, cg, xi, col);
        gemm(v->dt, false, true, og, k, l, pg + (i * v->o + gr * og) * l * v->bytes, l, direct ? xi : col, l, i == from ? 0 : 1,
             sum + (p * nw + gr * og * k) * v->bytes, k);
      }
    if (col) rl_free(col, col_bytes(v));
  }
  for (int64_t p = 1; p < parts && !failed; p++) {
    if (v->dt == RL_F64)
      for (int64_t i = 0; i < nw; i++) ((double *)sum)[i] += ((double *)sum)[p * nw + i];
    else
      for (int64_t i = 0; i < nw; i++) ((float *)sum)[i] += ((float *)sum)[p * nw + i];
  }
  if (!failed) memcpy(rl_data(r), sum, (size_t)(nw * v->bytes));
  if (sum) rl_free(sum, (size_t)(parts * nw * v->bytes));
  return failed ? RL_OOM : RL_OK;
}

RL_KERNEL(conv2d_dw) {
  RL_KERNEL_UNUSED;
  conv v;
  conv_params(&v, a, 1);
  conv_sizes(&v, in[1], out[0], in[0]);
  if (!rl_numel(out[0])) return RL_OK;
  if (!rl_numel(in[0]) || !rl_numel(in[1])) return rl_move_zero(out[0]);
  return conv_run(&v, in[0], in[1], out[0], weight_gradient);
}
