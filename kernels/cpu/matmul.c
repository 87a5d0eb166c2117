/* Matrix products (x, y -> x y): transposed operands and row windows without copies, half types through float, integers by plain loops.
 * Products with a vector are OpenBLAS's, the others our own: their sums do not depend on the number of threads. */
#include <cblas.h>
#include "walk.h"
#include "gemm.h"

/* One operand for BLAS: a (rows, cols) matrix with unit stride in one direction. */
typedef struct mat {
  const char *p;
  CBLAS_TRANSPOSE t;
  int64_t ld;
  rl_tensor *copy;
} mat;

static rl_tensor *float_copy(const rl_tensor *x, rl_dtype dt) {
  rl_tensor *c = rl_tensor_empty(dt, RL_CPU, x->ndim, x->size);
  if (!c) return NULL;
  rl_attrs a = { 0 };
  a.v[0].i = dt;
  rl_tensor *in[] = { (rl_tensor *)x }, *out[] = { c };
  if (rl_ops[RL_OP_CAST].kernel[RL_CPU](RL_OP_CAST, in, 1, &a, out) != RL_OK) {
    rl_tensor_release(c);
    return NULL;
  }
  return c;
}

/* Rows r and columns c are the last two dimensions. */
static bool mat_direct(const rl_tensor *x, mat *m) {
  int d = x->ndim - 2;
  int64_t r = x->size[d], c = x->size[d + 1], sr = x->stride[d], sc = x->stride[d + 1];
  m->copy = NULL;
  m->p = rl_data(x);
  if ((sc == 1 || c == 1) && (sr >= RL_MAX(1, c) || r == 1)) return m->t = CblasNoTrans, m->ld = RL_MAX(RL_MAX(1, c), r == 1 ? c : sr), true;
  if ((sr == 1 || r == 1) && (sc >= RL_MAX(1, r) || c == 1)) return m->t = CblasTrans, m->ld = RL_MAX(RL_MAX(1, r), c == 1 ? r : sc), true;
  return false;
}

static rl_gemm tiles(rl_dtype dt, const mat *a, const mat *b, char *c, int64_t ldc, bool ct, int64_t m, int64_t n, int64_t k, double alpha) {
  bool at = a->t == CblasTrans, bt = b->t == CblasTrans;
  if (ct) /* the transposed product */
    return (rl_gemm){ dt, n, m, k, b->p, a->p, bt ? b->ld : 1, bt ? 1 : b->ld, at ? a->ld : 1, at ? 1 : a->ld, c, ldc, alpha, false };
  return (rl_gemm){ dt, m, n, k, a->p, b->p, at ? 1 : a->ld, at ? a->ld : 1, bt ? 1 : b->ld, bt ? b->ld : 1, c, ldc, alpha, false };
}
static bool same_numbers(double beta) { return beta == 0 || beta == 1; }

static void gemm(rl_dtype dt, const mat *a, const mat *b, char *c, int64_t ldc, bool ct, int64_t m, int64_t n, int64_t k, double alpha, double beta) {
  CBLAS_ORDER o = ct ? CblasColMajor : CblasRowMajor;
  /* A column-major result takes the operands as they lie: their row-major description is flipped. */
  CBLAS_TRANSPOSE ta = ct ? (a->t == CblasNoTrans ? CblasTrans : CblasNoTrans) : a->t;
  CBLAS_TRANSPOSE tb = ct ? (b->t == CblasNoTrans ? CblasTrans : CblasNoTrans) : b->t;
  if (dt == RL_F64)
    cblas_dgemm(o, ta, tb, (int)m, (int)n, (int)k, alpha, (const double *)a->p, (int)a->ld, (const double *)b->p, (int)b->ld, beta, (double *)c,
                (int)ldc);
  else
    cblas_sgemm(o, ta, tb, (int)m, (int)n, (int)k, (float)alpha, (const float *)a->p, (int)a->ld, (const float *)b->p, (int)b->ld, (float)beta,
                (float *)c, (int)ldc);
}

static rl_status plain_matmul(const rl_tensor *x, const rl_tensor *y, rl_tensor *r, int64_t ox, int64_t oy, int64_t or_) {
  int d = x->ndim - 2;
  int64_t m = x->size[d], k = x->size[d + 1], n = y->size[d + 1];
  const int64_t *sx = x->stride + d, *sy = y->stride + d, *sr = r->stride + d;
#define MM(S, C, LD, ST) \
  for (int64_t i = 0; i < m; i++) \
    for (int64_t j = 0; j < n; j++) { \
      C s = 0; \
      for (int64_t l = 0; l < k; l++) \
        s = (C)(s + LD(((S *)rl_data(x))[ox + i * sx[0] + l * sx[1]]) * LD(((S *)rl_data(y))[oy + l * sy[0] + j * sy[1]])); \
      ((S *)rl_data(r))[or_ + i * sr[0] + j * sr[1]] = ST(s); \
    }
  BY_DTYPE(x->dtype, MM)
#undef MM
  return RL_OK;
}

/* r = beta r + alpha x y over the last two dimensions, batched over the first when there are three. r has unit stride in a direction. */
static rl_status float_matmul(const rl_tensor *x, const rl_tensor *y, rl_tensor *r, double alpha, double beta) {
  int d = x->ndim - 2;
  int64_t m = x->size[d], k = x->size[d + 1], n = y->size[d + 1], batch = d ? x->size[0] : 1;
  int bytes = esize(x);
  mat a, b, c;
  if (!mat_direct(r, &c)) return rl_error("[matmul] result without a unit stride");
  if (!mat_direct(x, &a)) {
    if (!(a.copy = float_copy(x, x->dtype))) return RL_OOM;
    rl_status s = float_matmul(a.copy, y, r, alpha, beta);
    rl_tensor_release(a.copy);
    return s;
  }
  if (!mat_direct(y, &b)) {
    if (!(b.copy = float_copy(y, y->dtype))) return RL_OOM;
    rl_status s = float_matmul(x, b.copy, r, alpha, beta);
    rl_tensor_release(b.copy);
    return s;
  }
  bool own = m > 1 && n > 1 && same_numbers(beta), alone = batch > 1 && m * n * k < (1 << 24), failed = false;
#pragma omp parallel for schedule(static) if (batch > 1 && m * n * k < (1 << 24) && batch * m * n * k > (1 << 18))
  for (int64_t i = 0; i < batch; i++) {
    mat ai = a, bi = b;
    ai.p += d ? i * x->stride[0] * bytes : 0;
    bi.p += d ? i * y->stride[0] * bytes : 0;
    char *ci = (char *)c.p + (d ? i * r->stride[0] * bytes : 0);
    if (own) {
      rl_gemm g = tiles(x->dtype, &ai, &bi, ci, c.ld, c.t == CblasTrans, m, n, k, alpha);
      g.add = beta == 1;
      if (rl_gemm_run(&g, !alone && m * n * k > (1 << 18)) != RL_OK) failed = true;
    } else gemm(x->dtype, &ai, &bi, ci, c.ld, c.t == CblasTrans, m, n, k, alpha, beta);
  }
  return failed ? RL_OOM : RL_OK;
}

/* Any dtype and strides; beta != 0 accumulates into r. */
static rl_status any_matmul(const rl_tensor *x, const rl_tensor *y, rl_tensor *r, double alpha, double beta) {
  int d = x->ndim - 2;
  mat m;
  if (!rl_numel(r)) return RL_OK;
  if (x->size[d + 1] == 0) return beta == 0 ? rl_move_zero(r) : RL_OK;
  if ((x->dtype == RL_F32 || x->dtype == RL_F64) && mat_direct(r, &m)) return float_matmul(x, y, r, alpha, beta);
  if (!rl_dtypes[x->dtype].is_float) {
    for (int64_t i = 0; i < (d ? x->size[0] : 1); i++)
      RL_TRY(plain_matmul(x, y, r, d ? i * x->stride[0] : 0, d ? i * y->stride[0] : 0, d ? i * r->stride[0] : 0));
    return RL_OK;
  }
  rl_dtype dt = x->dtype == RL_F64 ? RL_F64 : RL_F32;
  rl_tensor *a = float_copy(x, dt), *b = float_copy(y, dt), *c = float_copy(r, dt);
  rl_status s = a && b && c ? float_matmul(a, b, c, alpha, beta) : RL_OOM;
  if (s == RL_OK) {
    rl_attrs at = { 0 };
    at.v[0].i = r->dtype;
    s = rl_ops[RL_OP_CAST].kernel[RL_CPU](RL_OP_CAST, &c, 1, &at, &r);
  }
  if (a) rl_tensor_release(a);
  if (b) rl_tensor_release(b);
  if (c) rl_tensor_release(c);
  return s;
}

RL_KERNEL(matmul) {
  RL_KERNEL_UNUSED;
  return any_matmul(in[0], in[1], out[0], 1, 0);
}

static rl_tensor transposed(const rl_tensor *w) {
  rl_tensor t = *w;
  t.size[0] = w->size[1], t.size[1] = w->size[0], t.stride[0] = w->stride[1], t.stride[1] = w->stride[0];
  return t;
}

/* x (..., in), w (out, in), b (out): the bias is laid into the result first and the product added to it. */
RL_KERNEL(linear) {
  RL_KERNEL_UNUSED;
  rl_tensor x = *in[0], r = *out[0], wt = transposed(in[1]);
  bool vector = x.ndim == 1;
  if (vector) {
    x.ndim = r.ndim = 2;
    x.size[1] = x.size[0], x.stride[1] = x.stride[0], x.size[0] = 1, x.stride[0] = x.size[1];
    r.size[1] = r.size[0], r.stride[1] = r.stride[0], r.size[0] = 1, r.stride[0] = r.size[1];
  }
  double beta = 0;
  if (nin > 2 && in[2]) {
    rl_tensor b = *in[2];
    b.ndim = r.ndim;
    for (int d = 0; d < r.ndim; d++) b.size[d] = r.size[d], b.stride[d] = d == r.ndim - 1 ? in[2]->stride[0] : 0;
    RL_TRY(rl_move(&r, &b));
    beta = 1;
  }
  return any_matmul(&x, &wt, &r, 1, beta);
}

static double number_or(rl_tensor *t, double def) {
  double v = def;
  if (t) rl_tensor_item(t, &v);
  return v;
}

RL_KERNEL(addmm) {
  RL_KERNEL_UNUSED;
  double beta = number_or(nin > 3 ? in[3] : NULL, 1), alpha = number_or(nin > 4 ? in[4] : NULL, 1);
  const rl_tensor *m = in[0], *x = in[1], *y = in[2];
  rl_tensor b = *m;
  if (rl_dtypes[x->dtype].is_float) {
    b.ndim = 2;
    for (int d = 0; d < 2; d++) { /* the matrix may broadcast */
      int k = d - (2 - m->ndim);
      b.size[d] = out[0]->size[d];
      b.stride[d] = k < 0 || m->size[k] == 1 ? 0 : m->stride[k];
    }
    if (beta != 0) RL_TRY(rl_move(out[0], &b));
    return any_matmul(x, y, out[0], alpha, beta);
  }
  RL_TRY(any_matmul(x, y, out[0], 1, 0));
  const rl_tensor *t[] = { out[0], m };
  if (!rl_numel(out[0])) return RL_OK;
#define COMBINE(S, C, LD, ST) \
  for (walk w = walk_start(out[0], -1, 2, t); !w.done; walk_next(&w)) { \
    S *p = (S *)rl_data(out[0]) + w.off[0]; \
    *p = ST((C)((C)beta * LD(((S *)rl_data(m))[w.off[1]]) + (C)alpha * LD(*p))); \
  }
  BY_DTYPE(out[0]->dtype, COMBINE)
#undef COMBINE
  return RL_OK;
}
