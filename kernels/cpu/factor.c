/* Factorisations on LAPACK: Cholesky family and QR family (matrix -> factors). */
#include "lapack.h"

static const char *uplo_of(const rl_attrs *a) { return a->v[0].i ? "U" : "L"; }

/* t holds columns: what lies in the triangle that uplo does not name becomes 0, or (mirror) that of the other one. */
static void other_triangle(rl_tensor *t, bool upper, bool mirror) {
  int64_t n = t->size[0];
  for (int64_t c = 0; c < n; c++)
    for (int64_t r = 0; r < n; r++) {
      if (upper ? r <= c : r >= c) continue;
      if (t->dtype == RL_F64) LP_D(t)[c * n + r] = mirror ? LP_D(t)[r * n + c] : 0;
      else LP_S(t)[c * n + r] = mirror ? LP_S(t)[r * n + c] : 0;
    }
}

RL_KERNEL(potrf) {
  (void)nin;
  rl_dtype dt = lp_dtype(in[0]);
  int n = (int)in[0]->size[0], info = 0;
  if (n == 0) return RL_OK;
  rl_tensor *f = rl_lapack_columns(in[0], dt);
  if (!f) return RL_OOM;
  if (dt == RL_F64) dpotrf_(uplo_of(a), &n, LP_D(f), &n, &info, LP_LEN);
  else spotrf_(uplo_of(a), &n, LP_S(f), &n, &info, LP_LEN);
  rl_status s = rl_lapack_info(op, info, "the matrix is not positive definite: its leading minor of order % is not");
  other_triangle(f, a->v[0].i, false);
  if (s == RL_OK) s = rl_lapack_give(f, out[0]);
  rl_tensor_release(f);
  return s;
}

RL_KERNEL(potri) {
  (void)nin;
  rl_dtype dt = lp_dtype(in[0]);
  int n = (int)in[0]->size[0], info = 0;
  if (n == 0) return RL_OK;
  rl_tensor *f = rl_lapack_columns(in[0], dt);
  if (!f) return RL_OOM;
  if (dt == RL_F64) dpotri_(uplo_of(a), &n, LP_D(f), &n, &info, LP_LEN);
  else spotri_(uplo_of(a), &n, LP_S(f), &n, &info, LP_LEN);
  rl_status s = rl_lapack_info(op, info, "the factor is singular: element (%,%) is 0");
  other_triangle(f, a->v[0].i, true);
  if (s == RL_OK) s = rl_lapack_give(f, out[0]);
  rl_tensor_release(f);
  return s;
}

RL_KERNEL(potrs) {
  (void)nin;
  rl_dtype dt = lp_dtype(in[0]);
  rl_tensor *x = rl_lapack_columns(in[0], dt), *f = rl_lapack_columns(in[1], dt);
  int n = (int)in[1]->size[0], nrhs = (int)in[0]->size[1], ld = RL_MAX(1, n), info = 0;
  rl_status s = x && f ? RL_OK : RL_OOM;
  if (s == RL_OK && n > 0) {
    for (int i = 0; i < n; i++)
      if ((dt == RL_F64 ? LP_D(f)[(int64_t)i * n + i] : (double)LP_S(f)[(int64_t)i * n + i]) == 0) {
        s = rl_lapack_info(op, i + 1, "the factor is singular: element (%,%) is 0");
        break;
      }
  }
  if (s == RL_OK && n > 0) {
    if (dt == RL_F64) dpotrs_(uplo_of(a), &n, &nrhs, LP_D(f), &ld, LP_D(x), &ld, &info, LP_LEN);
    else spotrs_(uplo_of(a), &n, &nrhs, LP_S(f), &ld, LP_S(x), &ld, &info, LP_LEN);
    s = rl_lapack_info(op, info, "the factor is singular: element (%,%) is 0");
  }
  if (s == RL_OK) s = rl_lapack_give(x, out[0]);
  rl_tensor_release(x), rl_tensor_release(f);
  return s;
}

/* Cholesky with pivots, for semidefinite matrices: rows behind the rank are 0. */
static void clear_behind_rank(rl_tensor *f, bool upper, int64_t rank) {
  int64_t n = f->size[0];
  for (int64_t c = 0; c < n; c++)
    for (int64_t r = 0; r < n; r++)
      if (upper ? r >= rank : c >= rank) {
        if (f->dtype == RL_F64) LP_D(f)[c * n + r] = 0;
        else LP_S(f)[c * n + r] = 0;
      }
}

RL_KERNEL(pstrf) {
  (void)nin;
  rl_dtype dt = lp_dtype(in[0]);
  int n = (int)in[0]->size[0], info = 0, rank = 0;
  double tol = a->v[1].f;
  float tol1 = (float)tol;
  if (n == 0) return RL_OK;
  rl_tensor *f = rl_lapack_columns(in[0], dt), *work = rl_lapack_room(dt, 2 * (int64_t)n, -1), *pivot = rl_lapack_room(RL_I32, n, -1);
  rl_status s = f && work && pivot ? RL_OK : RL_OOM;
  if (s == RL_OK) {
    if (dt == RL_F64) dpstrf_(uplo_of(a), &n, LP_D(f), &n, rl_data(pivot), &rank, &tol, LP_D(work), &info, LP_LEN);
    else spstrf_(uplo_of(a), &n, LP_S(f), &n, rl_data(pivot), &rank, &tol1, LP_S(work), &info, LP_LEN);
    s = info < 0 ? rl_lapack_info(op, info, "") : RL_OK; /* 1: the rank is not full, which is what pivots are for */
    other_triangle(f, a->v[0].i, false);
    if (info > 0) clear_behind_rank(f, a->v[0].i, rank);
  }
  if (s == RL_OK) s = rl_lapack_give(f, out[0]);
  if (s == RL_OK) s = rl_lapack_give(pivot, out[1]);
  rl_tensor_release(f), rl_tensor_release(work), rl_tensor_release(pivot);
  return s;
}

static rl_status run_geqrf(rl_op op, rl_tensor *f, rl_tensor *tau, rl_tensor *work, int lwork) {
  int m = (int)f->size[1], n = (int)f->size[0], info = 0;
  if (f->dtype == RL_F64) dgeqrf_(&m, &n, LP_D(f), &m, LP_D(tau), LP_D(work), &lwork, &info);
  else sgeqrf_(&m, &n, LP_S(f), &m, LP_S(tau), LP_S(work), &lwork, &info);
  return rl_lapack_info(op, info, "failed");
}

/* Q of k reflectors, n <= m columns. */
static rl_status run_orgqr(rl_op op, rl_tensor *f, rl_tensor *tau, rl_tensor *work, int lwork) {
  int m = (int)f->size[1], n = (int)f->size[0], k = (int)tau->size[0], info = 0;
  if (f->dtype == RL_F64) dorgqr_(&m, &n, &k, LP_D(f), &m, LP_D(tau), LP_D(work), &lwork, &info);
  else sorgqr_(&m, &n, &k, LP_S(f), &m, LP_S(tau), LP_S(work), &lwork, &info);
  return rl_lapack_info(op, info, "failed");
}

RL_KERNEL(geqrf) {
  (void)nin, (void)a;
  rl_dtype dt = lp_dtype(in[0]);
  int64_t m = in[0]->size[0], n = in[0]->size[1], lwork = RL_MAX(1, n) * 64;
  if (m == 0 || n == 0) return RL_OK;
  rl_tensor *f = rl_lapack_columns(in[0], dt), *tau = rl_lapack_room(dt, RL_MIN(m, n), -1), *work = rl_lapack_room(dt, lwork, -1);
  rl_status s = f && tau && work ? run_geqrf(op, f, tau, work, (int)lwork) : RL_OOM;
  if (s == RL_OK) s = rl_lapack_give(f, out[0]);
  if (s == RL_OK) s = rl_lapack_give(tau, out[1]);
  rl_tensor_release(f), rl_tensor_release(tau), rl_tensor_release(work);
  return s;
}

RL_KERNEL(orgqr) {
  (void)nin, (void)a;
  rl_dtype dt = lp_dtype(in[0]);
  int64_t lwork = RL_MAX(1, in[0]->size[1]) * 64;
  if (!rl_numel(out[0])) return RL_OK;
  rl_tensor *f = rl_lapack_columns(in[0], dt), *tau = rl_working(in[1], dt), *work = rl_lapack_room(dt, lwork, -1);
  rl_status s = f && tau && work ? RL_OK : RL_OOM;
  if (s == RL_OK) {
    f->size[0] = out[0]->size[1];
    s = run_orgqr(op, f, tau, work, (int)lwork);
  }
  if (s == RL_OK) s = rl_lapack_give(f, out[0]);
  rl_tensor_release(f), rl_tensor_release(tau), rl_tensor_release(work);
  return s;
}

RL_KERNEL(ormqr) {
  (void)nin;
  rl_dtype dt = lp_dtype(in[0]);
  const char *side = a->v[0].i ? "L" : "R", *trans = a->v[1].i ? "T" : "N";
  int m = (int)in[2]->size[0], n = (int)in[2]->size[1], k = (int)in[1]->size[0], ld = (int)RL_MAX(1, in[0]->size[0]), ldc = RL_MAX(1, m), info = 0;
  int lwork = RL_MAX(1, RL_MAX(m, n)) * 64;
  if (!rl_numel(out[0])) return RL_OK;
  rl_tensor *f = rl_lapack_columns(in[0], dt), *tau = rl_working(in[1], dt), *c = rl_lapack_columns(in[2], dt);
  rl_tensor *work = rl_lapack_room(dt, (int64_t)lwork + 64 * 65, -1);
  rl_status s = f && tau && c && work ? RL_OK : RL_OOM;
  lwork += 64 * 65;
  if (s == RL_OK && k > 0) {
    if (dt == RL_F64) dormqr_(side, trans, &m, &n, &k, LP_D(f), &ld, LP_D(tau), LP_D(c), &ldc, LP_D(work), &lwork, &info, LP_LEN, LP_LEN);
    else sormqr_(side, trans, &m, &n, &k, LP_S(f), &ld, LP_S(tau), LP_S(c), &ldc, LP_S(work), &lwork, &info, LP_LEN, LP_LEN);
    s = rl_lapack_info(op, info, "failed");
  }
  if (s == RL_OK) s = rl_lapack_give(c, out[0]);
  rl_tensor_release(f), rl_tensor_release(tau), rl_tensor_release(c), rl_tensor_release(work);
  return s;
}

/* R (k, n): the upper triangle of what geqrf leaves in the columns f, held row by row. */
static void take_r(const rl_tensor *f, rl_tensor *r) {
  int64_t m = f->size[1], n = f->size[0], k = r->size[0];
  for (int64_t i = 0; i < k; i++)
    for (int64_t j = 0; j < n; j++) {
      if (f->dtype == RL_F64) LP_D(r)[i * n + j] = j >= i ? LP_D(f)[j * m + i] : 0;
      else LP_S(r)[i * n + j] = j >= i ? LP_S(f)[j * m + i] : 0;
    }
}

/* Thin: q (m, k), r (k, n) with k the smaller size. */
RL_KERNEL(qr) {
  (void)nin, (void)a;
  rl_dtype dt = lp_dtype(in[0]);
  int64_t m = in[0]->size[0], n = in[0]->size[1], k = RL_MIN(m, n), lwork = RL_MAX(1, n) * 64;
  if (k == 0) return RL_OK;
  rl_tensor *f = rl_lapack_columns(in[0], dt), *tau = rl_lapack_room(dt, k, -1), *work = rl_lapack_room(dt, lwork, -1), *r = rl_lapack_room(dt, k, n);
  rl_status s = f && tau && work && r ? run_geqrf(op, f, tau, work, (int)lwork) : RL_OOM;
  if (s == RL_OK) {
    take_r(f, r);
    s = rl_give(r, out[1]);
    f->size[0] = k;
  }
  if (s == RL_OK) s = run_orgqr(op, f, tau, work, (int)lwork);
  if (s == RL_OK) s = rl_lapack_give(f, out[0]);
  rl_tensor_release(f), rl_tensor_release(tau), rl_tensor_release(work), rl_tensor_release(r);
  return s;
}
