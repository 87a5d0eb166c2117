/* Normalisation and losses: softmax family, batch and layer norm with their gradients, negative log likelihood. */
#include <math.h>
#include "walk.h"
#include "rows.h"

#define PAR 32768
#define BY_REAL(dt, BODY) \
  if ((dt) == RL_F64) { \
    BODY(f64, double) \
  } else { \
    BODY(f32, float) \
  }
static rl_dtype real(const rl_tensor *x) { return x->dtype == RL_F64 ? RL_F64 : RL_F32; }
static void drop(rl_tensor *t) {
  if (t) rl_tensor_release(t);
}

/* Lines of x along dim, with a second input or none, through row functions on buffers where the lines are not contiguous. */
typedef void (*line1)(int64_t n, const void *x, void *r);
typedef void (*line2)(int64_t n, const void *g, const void *y, void *r);

static rl_status lines(const rl_tensor *x, const rl_tensor *y, rl_tensor *out, int dim, line1 f1, line2 f2) {
  rl_dtype dt = real(x);
  int last = x->ndim - 1;
  if (!rl_numel(x)) return RL_OK;
  rl_tensor tx = *x, ty = y ? *y : *x, to = *out; /* dim moved last */
  for (int d = dim; d < last; d++) {
    tx.size[d] = x->size[d + 1], tx.stride[d] = x->stride[d + 1];
    ty.stride[d] = (y ? y : x)->stride[d + 1], ty.size[d] = tx.size[d];
    to.size[d] = tx.size[d], to.stride[d] = out->stride[d + 1];
  }
  if (last >= 0) {
    tx.size[last] = x->size[dim], tx.stride[last] = x->stride[dim];
    ty.size[last] = x->size[dim], ty.stride[last] = (y ? y : x)->stride[dim];
    to.size[last] = x->size[dim], to.stride[last] = out->stride[dim];
  }
  rl_tensor *a = rl_working(&tx, dt), *b = y ? rl_working(&ty, dt) : NULL, *r = rl_working_out(&to, dt);
  rl_status s = a && r && (!y || b) ? RL_OK : RL_OOM;
  if (s == RL_OK) {
    int64_t n = last < 0 ? 1 : x->size[dim], rows = rl_numel(x) / n, row = n * rl_dtypes[dt].bytes;
    const char *pa = rl_data(a), *pb = b ? rl_data(b) : NULL;
    char *pr = rl_data(r);
#pragma omp parallel for schedule(static) if (rows * n >= PAR)
    for (int64_t i = 0; i < rows; i++) {
      if (f2) f2(n, pa + i * row, pb + i * row, pr + i * row);
      else f1(n, pa + i * row, pr + i * row);
    }
    s = rl_give(r, &to);
  }
  if (a && a != &tx) drop(a);
  drop(b);
  drop(r);
  return s;
}

RL_KERNEL(softmax) {
  RL_KERNEL_UNUSED;
  return lines(in[0], NULL, out[0], (int)a->v[0].i, real(in[0]) == RL_F64 ? (line1)rl_rows()->softmax_f64 : (line1)rl_rows()->softmax_f32, NULL);
}
RL_KERNEL(log_softmax) {
  RL_KERNEL_UNUSED;
  return lines(in[0], NULL, out[0], (int)a->v[0].i, real(in[0]) == RL_F64 ? (line1)rl_rows()->log_softmax_f64 : (line1)rl_rows()->log_softmax_f32,
               NULL);
}
RL_KERNEL(softmax_dx) {
  RL_KERNEL_UNUSED;
  return lines(in[0], in[1], out[0], (int)a->v[0].i, NULL,
               real(in[0]) == RL_F64 ? (line2)rl_rows()->softmax_dx_f64 : (line2)rl_rows()->softmax_dx_f32);
}
RL_KERNEL(log_softmax_dx) {
  RL_KERNEL_UNUSED;
  return lines(in[0], in[1], out[0], (int)a->v[0].i, NULL,
               real(in[0]) == RL_F64 ? (line2)rl_rows()->log_softmax_dx_f64 : (line2)rl_rows()->log_softmax_dx_f32);
}

/* ---- batch norm: x (n, c, ...), one channel at a time ---- */

typedef struct bn {
  int64_t n, c, m;
} bn; /* m: elements of a plane */
static bn bn_of(const rl_tensor *x) {
  bn b = { x->size[0], x->size[1], 1 };
  for (int d = 2; d < x->ndim; d++) b.m *= x->size[d];
  return b;
}
/* Working copies of up to five inputs (NULL stays NULL). */
static bool take_inputs(rl_tensor *const *in, int nin, rl_dtype dt, rl_tensor **w) {
  bool ok = true;
  for (int k = 0; k < nin; k++) {
    w[k] = in[k] ? rl_working(in[k], dt) : NULL;
    ok = ok && (w[k] || !in[k]);
  }
  return ok;
}
static bool take_outputs(rl_tensor *const *out, int nout, rl_dtype dt, rl_tensor **r) {
  bool ok = true;
  for (int k = 0; k < nout; k++) ok = (r[k] = rl_working_out(out[k], dt)) && ok;
  return ok;
}
static rl_status finish(rl_tensor **w, int nin, rl_tensor **r, rl_tensor *const *out, int nout, bool ok) {
  rl_status s = ok ? RL_OK : RL_OOM;
  for (int k = 0; k < nout && s == RL_OK; k++) s = rl_give(r[k], out[k]);
  for (int k = 0; k < nin; k++) drop(w[k]);
  for (int k = 0; k < nout; k++) drop(r[k]);
  return s;
}

/* Strided channel of a matrix (n, c): plain loops; planes go through the row functions. */
#define BN_FORWARD(S, T) \
  const T *x = rl_data(w[0]), *g = w[1] ? rl_data(w[1]) : NULL, *h = w[2] ? rl_data(w[2]) : NULL; \
  T *y = rl_data(r[0]), *pm = rl_data(r[1]), *pv = rl_data(r[2]); \
  _Pragma("omp parallel for schedule(static) if (b.n * b.c * b.m >= PAR)") for (int64_t c = 0; c < b.c; c++) { \
    double sum = 0, sq = 0, k = (double)(b.n * b.m); \
    for (int64_t i = 0; i < b.n; i++) sum += b.m == 1 ? (double)x[i * b.c + c] : rl_rows()->sum_##S(b.m, x + (i * b.c + c) * b.m); \
    double mean = sum / k; \
    for (int64_t i = 0; i < b.n; i++) { \
      double d = (double)x[i * b.c + c] - mean; \
      sq += b.m == 1 ? d * d : rl_rows()->sumsq_##S(b.m, x + (i * b.c + c) * b.m, mean); \
    } \
    double var = sq / k, q = (g ? (double)g[c] : 1) / sqrt(var + eps), o = (h ? (double)h[c] : 0) - mean * q; \
    for (int64_t i = 0; i < b.n; i++) { \
      if (b.m == 1) y[i * b.c + c] = (T)((double)x[i * b.c + c] * q + o); \
      else rl_rows()->scale_##S(b.m, x + (i * b.c + c) * b.m, q, o, y + (i * b.c + c) * b.m); \
    } \
    pm[c] = (T)mean, pv[c] = (T)var; \
  }

RL_KERNEL(batch_norm) {
  RL_KERNEL_UNUSED;
  rl_dtype dt = real(in[0]);
  rl_tensor *w[3] = { 0 }, *r[3] = { 0 };
  double eps = a->v[0].f;
  bn b = bn_of(in[0]);
  bool ok = take_inputs(in, nin, dt, w) & take_outputs(out, 3, dt, r);
  if (ok && b.n * b.m > 0) { BY_REAL(dt, BN_FORWARD) }
  return finish(w, 3, r, out, 3, ok);
}

#define BN_BACK(S, T) \
  const T *g = rl_data(w[0]), *x = rl_data(w[1]), *wt = w[2] ? rl_data(w[2]) : NULL, *pm = rl_data(w[3]), *pv = rl_data(w[4]); \
  T *dx = rl_data(r[0]), *dw = rl_data(r[1]), *db = rl_data(r[2]); \
  _Pragma("omp parallel for schedule(static) if (b.n * b.c * b.m >= PAR)") for (int64_t c = 0; c < b.c; c++) { \
    double mean = (double)pm[c], rstd = 1 / sqrt((double)pv[c] + eps), sg = 0, sgx = 0, k = (double)(b.n * b.m); \
    for (int64_t i = 0; i < b.n; i++) { \
      double p = 0, q = 0; \
      int64_t at = (i * b.c + c) * b.m; \
      if (b.m == 1) p = (double)g[at], q = (double)g[at] * ((double)x[at] - mean); \
      else rl_rows()->dots_##S(b.m, g + at, x + at, NULL, mean, &p, &q); \
      sg += p, sgx += q; \
    } \
    double s = rstd * (wt ? (double)wt[c] : 1), bx = -s * rstd * rstd * sgx / k, b0 = -s * sg / k - bx * mean; \
    for (int64_t i = 0; i < b.n; i++) { \
      int64_t at = (i * b.c + c) * b.m; \
      rl_rows()->back_##S(b.m, g + at, x + at, NULL, s, bx, b0, dx + at); \
    } \
    dw[c] = (T)(sgx * rstd), db[c] = (T)sg; \
  }

RL_KERNEL(batch_norm_grad) {
  RL_KERNEL_UNUSED;
  rl_dtype dt = real(in[0]);
  rl_tensor *w[5] = { 0 }, *r[3] = { 0 };
  double eps = a->v[0].f;
  bn b = bn_of(in[0]);
  bool ok = take_inputs(in, nin, dt, w) & take_outputs(out, 3, dt, r);
  if (ok && b.n * b.m > 0) { BY_REAL(dt, BN_BACK) }
  return finish(w, 5, r, out, 3, ok);
}

#define BN_EVAL(S, T) \
  const T *x = rl_data(w[0]), *pm = rl_data(w[1]), *pv = rl_data(w[2]), *wt = w[3] ? rl_data(w[3]) : NULL, *bs = w[4] ? rl_data(w[4]) : NULL; \
  T *y = rl_data(r[0]); \
  _Pragma("omp parallel for schedule(static) if (b.n * b.c * b.m >= PAR)") for (int64_t t = 0; t < b.n * b.c; t++) { \
    int64_t c = t % b.c; \
    double q = (wt ? (double)wt[c] : 1) / sqrt((double)pv[c] + eps), o = (bs ? (double)bs[c] : 0) - (double)pm[c] * q; \
    rl_rows()->scale_##S(b.m, x + t * b.m, q, o, y + t * b.m); \
  }

RL_KERNEL(batch_norm_eval) {
  RL_KERNEL_UNUSED;
  rl_dtype dt = real(in[0]);
  rl_tensor *w[5] = { 0 }, *r[1] = { 0 };
  double eps = a->v[0].f;
  bn b = bn_of(in[0]);
  bool ok = take_inputs(in, nin, dt, w) & take_outputs(out, 1, dt, r);
  if (ok && rl_numel(in[0])) { BY_REAL(dt, BN_EVAL) }
  return finish(w, 5, r, out, 1, ok);
}

/* ---- layer norm: rows of the last ndims dimensions ---- */

static int64_t row_size(const rl_tensor *x, int64_t ndims) {
  int64_t n = 1;
  for (int d = x->ndim - (int)ndims; d < x->ndim; d++) n *= x->size[d];
  return n;
}

#define LN_FORWARD(S, T) \
  const T *x = rl_data(w[0]), *wt = w[1] ? rl_data(w[1]) : NULL, *bs = w[2] ? rl_data(w[2]) : NULL; \
  T *y = rl_data(r[0]), *pm = rl_data(r[1]), *ps = rl_data(r[2]); \
  _Pragma("omp parallel for schedule(static) if (rows * n >= PAR)") for (int64_t i = 0; i < rows; i++) { \
    double mean = rl_rows()->sum_##S(n, x + i * n) / (double)n; \
    double rstd = 1 / sqrt(rl_rows()->sumsq_##S(n, x + i * n, mean) / (double)n + eps); \
    rl_rows()->affine_##S(n, x + i * n, mean, rstd, wt, bs, y + i * n); \
    pm[i] = (T)mean, ps[i] = (T)rstd; \
  }

RL_KERNEL(layer_norm) {
  RL_KERNEL_UNUSED;
  rl_dtype dt = real(in[0]);
  rl_tensor *w[3] = { 0 }, *r[3] = { 0 };
  double eps = a->v[1].f;
  int64_t n = row_size(in[0], a->v[0].i), rows = n ? rl_numel(in[0]) / n : 0;
  bool ok = take_inputs(in, nin, dt, w) & take_outputs(out, 3, dt, r);
  if (ok && rows) { BY_REAL(dt, LN_FORWARD) }
  return finish(w, 3, r, out, 3, ok);
}

#define GROUPS 8 /* weight gradients summed apart in double, then in order */
#define LN_BACK(S, T) \
  const T *g = rl_data(w[0]), *x = rl_data(w[1]), *wt = w[2] ? rl_data(w[2]) : NULL, *pm = rl_data(w[3]), *ps = rl_data(w[4]); \
  T *dx = rl_data(r[0]), *dw = rl_data(r[1]), *db = rl_data(r[2]); \
  _Pragma("omp parallel for schedule(static) if (rows * n >= PAR)") for (int64_t t = 0; t < GROUPS; t++) { \
    double *sw = part + t * 2 * n, *sb = sw + n; \
    memset(sw, 0, (size_t)(2 * n) * sizeof(double)); \
    for (int64_t i = t * rows / GROUPS; i < (t + 1) * rows / GROUPS; i++) { \
      double mean = (double)pm[i], rstd = (double)ps[i], sg = 0, sgx = 0, k = (double)n; \
      const T *gi = g + i * n, *xi = x + i * n; \
      rl_rows()->dots_##S(n, gi, xi, wt, mean, &sg, &sgx); \
      double bx = -rstd * rstd * rstd * sgx / k, b0 = -rstd * sg / k - bx * mean; \
      rl_rows()->back_##S(n, gi, xi, wt, rstd, bx, b0, dx + i * n); \
      rl_rows()->gather_back_##S(n, gi, xi, mean, rstd, sw, sb); \
    } \
  } \
  for (int64_t i = 0; i < n; i++) { \
    double p = 0, q = 0; \
    for (int64_t t = 0; t < GROUPS; t++) p += part[t * 2 * n + i], q += part[t * 2 * n + n + i]; \
    dw[i] = (T)p, db[i] = (T)q; \
  }

RL_KERNEL(layer_norm_grad) {
  RL_KERNEL_UNUSED;
  rl_dtype dt = real(in[0]);
  rl_tensor *w[5] = { 0 }, *r[3] = { 0 };
  int64_t n = row_size(in[1], a->v[0].i), rows = n ? rl_numel(in[1]) / n : 0;
  size_t bytes = (size_t)(GROUPS * 2 * RL_MAX(1, n)) * sizeof(double);
  double *part = rl_alloc(bytes);
  bool ok = take_inputs(in, nin, dt, w) & take_outputs(out, 3, dt, r) & (part != NULL);
  if (ok && n) { BY_REAL(dt, LN_BACK) }
  if (part) rl_free(part, bytes);
  return finish(w, 5, r, out, 3, ok);
}

/* ---- negative log likelihood: x (n, c), classes y (n) of any dtype counted from base ---- */

static int64_t label_at(const rl_tensor *y, int64_t i) {
  int64_t v = 0;
#define LABEL(S, C, LD, ST) v = (int64_t)LD(((const S *)rl_data(y))[i * (y->ndim ? y->stride[0] : 0)]);
  BY_DTYPE(y->dtype, LABEL)
#undef LABEL
  return v;
}

RL_KERNEL(nll_loss) {
  RL_KERNEL_UNUSED;
  const rl_tensor *x = in[0], *y = in[1], *w = nin > 2 ? in[2] : NULL;
  int64_t n = x->size[0], c = x->size[1], base = a->v[1].i, ignore = a->v[2].i;
  double loss = 0, total = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t l = label_at(y, i);
    if (l == ignore) continue;
    if (l < base || l >= base + c)
      return rl_error("[nll_loss] class out of range; got %lld at element %lld, need %lld to %lld", (long long)l, (long long)i + 1, (long long)base,
                      (long long)(base + c - 1));
    double t = 1, v = 0;
#define AT(S, C, LD, ST) \
  v = (double)LD(((const S *)rl_data(x))[i * x->stride[0] + (l - base) * x->stride[1]]); \
  if (w) t = (double)LD(((const S *)rl_data(w))[(l - base) * w->stride[0]]);
    BY_DTYPE(x->dtype, AT)
#undef AT
    loss -= v * t, total += t;
  }
  if (a->v[0].i && total != 0) loss /= total; /* nothing counts: 0 */
#define PUT(S, C, LD, ST) \
  *(S *)rl_data(out[0]) = ST((C)loss); \
  *(S *)rl_data(out[1]) = ST((C)total);
  BY_DTYPE(x->dtype, PUT)
#undef PUT
  return RL_OK;
}
