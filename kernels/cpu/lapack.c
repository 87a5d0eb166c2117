/* Linear systems on LAPACK: gesv, gels, inverse, triangular solves and what all LAPACK kernels share (matrices -> columns -> matrices). */
#include "lapack.h"
#include <math.h>
#include <stdio.h>

static rl_status convert(rl_tensor *x, rl_tensor *out) {
  rl_attrs a = { 0 };
  a.v[0].i = out->dtype;
  return rl_ops[RL_OP_CAST].kernel[RL_CPU](RL_OP_CAST, &x, 1, &a, &out);
}

/* x with its two dimensions swapped; a vector is one column. */
static rl_tensor *turned(const rl_tensor *x) {
  rl_tensor *t = rl_tensor_alias(x);
  if (!t) return NULL;
  if (t->ndim == 2) {
    int64_t n = t->size[0], s = t->stride[0];
    t->size[0] = t->size[1], t->stride[0] = t->stride[1], t->size[1] = n, t->stride[1] = s;
  }
  return t;
}

rl_tensor *rl_lapack_room(rl_dtype dt, int64_t a, int64_t b) { return rl_tensor_empty(dt, RL_CPU, b < 0 ? 1 : 2, (int64_t[]){ a, b }); }

rl_tensor *rl_lapack_columns(const rl_tensor *x, rl_dtype dt) {
  rl_tensor *t = turned(x);
  rl_tensor *c = t ? rl_tensor_empty(dt, RL_CPU, t->ndim, t->size) : NULL;
  if (c && convert(t, c) != RL_OK) rl_tensor_release(c), c = NULL;
  rl_tensor_release(t);
  return c;
}

rl_status rl_lapack_give(rl_tensor *t, rl_tensor *out) {
  rl_tensor *c = turned(t);
  if (!c) return RL_OOM;
  rl_status s = convert(c, out);
  rl_tensor_release(c);
  return s;
}

rl_status rl_lapack_info(rl_op op, int info, const char *what) {
  if (info == 0) return RL_OK;
  if (info < 0) return rl_error("[%s] LAPACK refuses argument %d", rl_ops[op].name, -info);
  char text[200];
  int at = 0;
  for (const char *p = what; *p && at < 180; p++) {
    if (*p == '%') at += snprintf(text + at, sizeof text - (size_t)at, "%d", info);
    else text[at++] = *p;
  }
  text[at] = 0;
  return rl_error("[%s] %s", rl_ops[op].name, text);
}

rl_status rl_lapack_finite(rl_op op, const rl_tensor *t) {
  int64_t n = rl_numel(t);
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(t->dtype == RL_F64 ? LP_D(t)[i] : LP_S(t)[i]))
      return rl_error("[%s] elements; got NaN or an infinity, need finite numbers", rl_ops[op].name);
  return RL_OK;
}

static int rows_of(const rl_tensor *t) { return (int)RL_MAX(1, t->size[0]); }

/* x of a x = b, and the factors of a (L without its diagonal of ones, U). */
RL_KERNEL(gesv) {
  (void)nin, (void)a;
  rl_dtype dt = lp_dtype(in[0]);
  rl_tensor *x = rl_lapack_columns(in[0], dt), *f = rl_lapack_columns(in[1], dt);
  int n = (int)in[1]->size[0], nrhs = (int)in[0]->size[1], ld = rows_of(in[1]), info = 0;
  int *pivot = rl_alloc(sizeof(int) * (size_t)ld);
  rl_status s = x && f && pivot ? RL_OK : RL_OOM;
  if (s == RL_OK && n > 0) {
    if (dt == RL_F64) dgesv_(&n, &nrhs, LP_D(f), &ld, pivot, LP_D(x), &ld, &info);
    else sgesv_(&n, &nrhs, LP_S(f), &ld, pivot, LP_S(x), &ld, &info);
    s = rl_lapack_info(op, info, "the matrix is singular: U(%,%) is 0");
  }
  if (s == RL_OK) s = rl_lapack_give(x, out[0]);
  if (s == RL_OK) s = rl_lapack_give(f, out[1]);
  if (pivot) rl_free(pivot, sizeof(int) * (size_t)ld);
  rl_tensor_release(x), rl_tensor_release(f);
  return s;
}

static void invert(rl_dtype dt, rl_tensor *f, int n, int *pivot, rl_tensor *work, int lwork, int *info) {
  if (dt == RL_F64) {
    dgetrf_(&n, &n, LP_D(f), &n, pivot, info);
    if (*info == 0) dgetri_(&n, LP_D(f), &n, pivot, LP_D(work), &lwork, info);
  } else {
    sgetrf_(&n, &n, LP_S(f), &n, pivot, info);
    if (*info == 0) sgetri_(&n, LP_S(f), &n, pivot, LP_S(work), &lwork, info);
  }
}

RL_KERNEL(inverse) {
  (void)nin, (void)a;
  rl_dtype dt = lp_dtype(in[0]);
  int n = (int)in[0]->size[0], info = 0;
  if (n == 0) return RL_OK;
  rl_tensor *f = rl_lapack_columns(in[0], dt), *work = rl_lapack_room(dt, 64 * (int64_t)n, -1);
  int *pivot = rl_alloc(sizeof(int) * (size_t)n);
  rl_status s = f && work && pivot ? RL_OK : RL_OOM;
  if (s == RL_OK) {
    invert(dt, f, n, pivot, work, 64 * n, &info);
    s = rl_lapack_info(op, info, "the matrix is singular: U(%,%) is 0");
  }
  if (s == RL_OK) s = rl_lapack_give(f, out[0]);
  if (pivot) rl_free(pivot, sizeof(int) * (size_t)n);
  rl_tensor_release(f), rl_tensor_release(work);
  return s;
}

/* Least squares (more rows than columns) or the solution of smallest norm, and the QR or LQ factors of a. */
RL_KERNEL(gels) {
  (void)nin, (void)a;
  rl_dtype dt = lp_dtype(in[0]);
  int m = (int)in[1]->size[0], n = (int)in[1]->size[1], nrhs = (int)in[0]->size[1], ld = RL_MAX(1, m), ldb = RL_MAX(1, RL_MAX(m, n)), info = 0;
  int lwork = RL_MAX(1, RL_MIN(m, n) + RL_MAX(RL_MIN(m, n), nrhs) * 64);
  if (m == 0 || n == 0 || nrhs == 0) {
    RL_TRY(rl_move_zero(out[0]));
    return convert(in[1], out[1]);
  }
  rl_tensor *b = rl_lapack_columns(in[0], dt), *f = rl_lapack_columns(in[1], dt);
  rl_tensor *x = rl_lapack_room(dt, nrhs, ldb), *work = rl_lapack_room(dt, lwork, -1);
  rl_status s = b && f && x && work ? RL_OK : RL_OOM;
  if (s == RL_OK) {
    size_t e = (size_t)esize(b);
    memset(rl_data(x), 0, e * (size_t)ldb * (size_t)nrhs);
    for (int j = 0; j < nrhs; j++)
      memcpy((char *)rl_data(x) + e * (size_t)ldb * (size_t)j, (char *)rl_data(b) + e * (size_t)m * (size_t)j, e * (size_t)m);
    if (dt == RL_F64) dgels_("N", &m, &n, &nrhs, LP_D(f), &ld, LP_D(x), &ldb, LP_D(work), &lwork, &info, LP_LEN);
    else sgels_("N", &m, &n, &nrhs, LP_S(f), &ld, LP_S(x), &ldb, LP_S(work), &lwork, &info, LP_LEN);
    s = rl_lapack_info(op, info, "the matrix has not full rank: element % of the triangle's diagonal is 0");
  }
  if (s == RL_OK) { /* the first n rows are the solution */
    x->size[1] = n;
    s = rl_lapack_give(x, out[0]);
  }
  if (s == RL_OK) s = rl_lapack_give(f, out[1]);
  rl_tensor_release(b), rl_tensor_release(f), rl_tensor_release(x), rl_tensor_release(work);
  return s;
}

RL_KERNEL(trtrs) {
  (void)nin;
  rl_dtype dt = lp_dtype(in[0]);
  rl_tensor *x = rl_lapack_columns(in[0], dt), *f = rl_lapack_columns(in[1], dt);
  int n = (int)in[1]->size[0], nrhs = (int)in[0]->size[1], ld = rows_of(in[1]), info = 0;
  const char *uplo = a->v[0].i ? "U" : "L", *trans = a->v[1].i ? "T" : "N", *diag = a->v[2].i ? "U" : "N";
  rl_status s = x && f ? RL_OK : RL_OOM;
  if (s == RL_OK && n > 0) {
    if (dt == RL_F64) dtrtrs_(uplo, trans, diag, &n, &nrhs, LP_D(f), &ld, LP_D(x), &ld, &info, LP_LEN, LP_LEN, LP_LEN);
    else strtrs_(uplo, trans, diag, &n, &nrhs, LP_S(f), &ld, LP_S(x), &ld, &info, LP_LEN, LP_LEN, LP_LEN);
    s = rl_lapack_info(op, info, "the matrix is singular: element (%,%) is 0");
  }
  if (s == RL_OK) s = rl_lapack_give(x, out[0]);
  rl_tensor_release(x), rl_tensor_release(f);
  return s;
}
