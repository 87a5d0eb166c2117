/* LAPACK for the kernels: Fortran routines of OpenBLAS by compute type, matrices held column by column in a working tensor. */
#ifndef RL_LAPACK_H
#define RL_LAPACK_H
#include "walk.h"

/* Fortran passes the length of every character argument behind the others. */
#define LP_LEN (size_t)1
#define LP_DECLARE(p, T) \
  void p##gesv_(const int *n, const int *nrhs, T *a, const int *lda, int *ipiv, T *b, const int *ldb, int *info); \
  void p##getri_(const int *n, T *a, const int *lda, const int *ipiv, T *work, const int *lwork, int *info); \
  void p##getrf_(const int *m, const int *n, T *a, const int *lda, int *ipiv, int *info); \
  void p##gels_(const char *trans, const int *m, const int *n, const int *nrhs, T *a, const int *lda, T *b, const int *ldb, T *work, \
                const int *lwork, int *info, size_t l1); \
  void p##trtrs_(const char *uplo, const char *trans, const char *diag, const int *n, const int *nrhs, const T *a, const int *lda, T *b, \
                 const int *ldb, int *info, size_t l1, size_t l2, size_t l3); \
  void p##potrf_(const char *uplo, const int *n, T *a, const int *lda, int *info, size_t l1); \
  void p##potri_(const char *uplo, const int *n, T *a, const int *lda, int *info, size_t l1); \
  void p##potrs_(const char *uplo, const int *n, const int *nrhs, const T *a, const int *lda, T *b, const int *ldb, int *info, size_t l1); \
  void p##pstrf_(const char *uplo, const int *n, T *a, const int *lda, int *piv, int *rank, const T *tol, T *work, int *info, size_t l1); \
  void p##geqrf_(const int *m, const int *n, T *a, const int *lda, T *tau, T *work, const int *lwork, int *info); \
  void p##orgqr_(const int *m, const int *n, const int *k, T *a, const int *lda, const T *tau, T *work, const int *lwork, int *info); \
  void p##ormqr_(const char *side, const char *trans, const int *m, const int *n, const int *k, const T *a, const int *lda, const T *tau, T *c, \
                 const int *ldc, T *work, const int *lwork, int *info, size_t l1, size_t l2); \
  void p##syev_(const char *jobz, const char *uplo, const int *n, T *a, const int *lda, T *w, T *work, const int *lwork, int *info, size_t l1, \
                size_t l2); \
  void p##geev_(const char *jobvl, const char *jobvr, const int *n, T *a, const int *lda, T *wr, T *wi, T *vl, const int *ldvl, T *vr, \
                const int *ldvr, T *work, const int *lwork, int *info, size_t l1, size_t l2); \
  void p##gesvd_(const char *jobu, const char *jobvt, const int *m, const int *n, T *a, const int *lda, T *s, T *u, const int *ldu, T *vt, \
                 const int *ldvt, T *work, const int *lwork, int *info, size_t l1, size_t l2);
LP_DECLARE(s, float)
LP_DECLARE(d, double)

/* Half types are computed in float. */
static inline rl_dtype lp_dtype(const rl_tensor *x) { return x->dtype == RL_F64 ? RL_F64 : RL_F32; }
/* Elements of a working tensor. */
#define LP_D(t) ((double *)rl_data(t))
#define LP_S(t) ((float *)rl_data(t))

/* Copy of matrix x column by column: a contiguous tensor (columns, rows) of the working type. NULL: out of memory. */
rl_tensor *rl_lapack_columns(const rl_tensor *x, rl_dtype dt);
/* Writes columns held by t (columns, rows) to matrix out (rows, columns). */
rl_status rl_lapack_give(rl_tensor *t, rl_tensor *out);
/* Contiguous matrix (a, b) or vector (a; b < 0) of the working type. */
rl_tensor *rl_lapack_room(rl_dtype dt, int64_t a, int64_t b);
/* Error for the routine's info; ok when it is 0. `what` says what a positive one means (%d: its value). */
rl_status rl_lapack_info(rl_op op, int info, const char *what);
/* NaN and infinities make the iterative routines run on: an error that says so. */
rl_status rl_lapack_finite(rl_op op, const rl_tensor *t);
#endif
