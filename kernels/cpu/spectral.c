/* Spectra on LAPACK: eigenvalues and vectors, singular values (matrix -> values, vectors). */
#include "lapack.h"

/* Eigenvalues ascending; column i of v belongs to value i. */
RL_KERNEL(symeig) {
  (void)nin;
  rl_dtype dt = lp_dtype(in[0]);
  int n = (int)in[0]->size[0], info = 0, lwork = 66 * n;
  if (n == 0) return RL_OK;
  const char *job = a->v[0].i ? "V" : "N", *uplo = a->v[1].i ? "U" : "L";
  rl_tensor *v = rl_lapack_columns(in[0], dt), *e = rl_lapack_room(dt, n, -1), *work = rl_lapack_room(dt, lwork, -1);
  rl_status s = v && e && work ? rl_lapack_finite(op, v) : RL_OOM;
  if (s == RL_OK) {
    if (dt == RL_F64) dsyev_(job, uplo, &n, LP_D(v), &n, LP_D(e), LP_D(work), &lwork, &info, LP_LEN, LP_LEN);
    else ssyev_(job, uplo, &n, LP_S(v), &n, LP_S(e), LP_S(work), &lwork, &info, LP_LEN, LP_LEN);
    s = rl_lapack_info(op, info, "% elements did not converge");
  }
  if (s == RL_OK) s = rl_lapack_give(e, out[0]);
  if (s == RL_OK && a->v[0].i) s = rl_lapack_give(v, out[1]);
  rl_tensor_release(v), rl_tensor_release(e), rl_tensor_release(work);
  return s;
}

/* Values as rows (real, imaginary); a conjugate pair's vectors are columns i (real part) and i + 1 (imaginary part). */
RL_KERNEL(eig) {
  (void)nin;
  rl_dtype dt = lp_dtype(in[0]);
  int n = (int)in[0]->size[0], one = 1, info = 0, lwork = 66 * n;
  if (n == 0) return RL_OK;
  const char *job = a->v[0].i ? "V" : "N";
  rl_tensor *f = rl_lapack_columns(in[0], dt), *e = rl_lapack_room(dt, 2, n), *v = rl_lapack_room(dt, n, n), *work = rl_lapack_room(dt, lwork, -1);
  rl_status s = f && e && v && work ? rl_lapack_finite(op, f) : RL_OOM;
  if (s == RL_OK) {
    if (dt == RL_F64) dgeev_("N", job, &n, LP_D(f), &n, LP_D(e), LP_D(e) + n, NULL, &one, LP_D(v), &n, LP_D(work), &lwork, &info, LP_LEN, LP_LEN);
    else sgeev_("N", job, &n, LP_S(f), &n, LP_S(e), LP_S(e) + n, NULL, &one, LP_S(v), &n, LP_S(work), &lwork, &info, LP_LEN, LP_LEN);
    s = rl_lapack_info(op, info, "eigenvalues up to % did not converge");
  }
  if (s == RL_OK) s = rl_lapack_give(e, out[0]);
  if (s == RL_OK && a->v[0].i) s = rl_lapack_give(v, out[1]);
  rl_tensor_release(f), rl_tensor_release(e), rl_tensor_release(v), rl_tensor_release(work);
  return s;
}

/* x = u diag(s) v^T, values descending; `some`: u and v have as many columns as there are values, else they are square. */
RL_KERNEL(svd) {
  (void)nin;
  rl_dtype dt = lp_dtype(in[0]);
  int m = (int)in[0]->size[0], n = (int)in[0]->size[1], k = RL_MIN(m, n), info = 0;
  int uc = (int)out[0]->size[1], vc = (int)out[2]->size[1], lwork = RL_MAX(3 * k + RL_MAX(m, n), 5 * k) + 64 * (m + n);
  if (k == 0) return RL_OK;
  const char *job = a->v[0].i ? "S" : "A";
  rl_tensor *f = rl_lapack_columns(in[0], dt), *u = rl_lapack_room(dt, uc, m), *s = rl_lapack_room(dt, k, -1), *v = rl_lapack_room(dt, n, vc);
  rl_tensor *work = rl_lapack_room(dt, lwork, -1);
  rl_status st = f && u && s && v && work ? rl_lapack_finite(op, f) : RL_OOM;
  if (st == RL_OK) {
    if (dt == RL_F64) dgesvd_(job, job, &m, &n, LP_D(f), &m, LP_D(s), LP_D(u), &m, LP_D(v), &vc, LP_D(work), &lwork, &info, LP_LEN, LP_LEN);
    else sgesvd_(job, job, &m, &n, LP_S(f), &m, LP_S(s), LP_S(u), &m, LP_S(v), &vc, LP_S(work), &lwork, &info, LP_LEN, LP_LEN);
    st = rl_lapack_info(op, info, "% diagonals did not converge");
  }
  if (st == RL_OK) st = rl_lapack_give(u, out[0]);
  if (st == RL_OK) st = rl_lapack_give(s, out[1]);
  if (st == RL_OK) st = rl_give(v, out[2]); /* the columns of v^T are the rows of v */
  rl_tensor_release(f), rl_tensor_release(u), rl_tensor_release(s), rl_tensor_release(v), rl_tensor_release(work);
  return st;
}
