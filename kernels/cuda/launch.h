/* Launching: the argument blocks of the generated and hand-written kernels, filled from tensors. */
#ifndef RL_CUDA_LAUNCH_H
#define RL_CUDA_LAUNCH_H
#include "../../lib/runtime/cuda.h"

typedef struct cuda_ew {
  int64_t n;
  int32_t nd, pad;
  int64_t size[12];
  int64_t st[5][12];
  void *p[5];
  uint64_t imm[5];
  double f[10];
  int64_t i[10], *err;
} cuda_ew;
typedef struct cuda_red {
  int64_t nout, m, splits;
  int32_t nk, nr;
  int64_t ksize[12], kin[12], kout[12], rsize[12], rin[12];
  const void *x;
  void *r, *part;
} cuda_red;

/* Walks `shape`; t[k]'s strides (missing tensors NULL), dimension `skip` left out (-1: none). */
void cuda_ew_init(cuda_ew *e, const rl_tensor *shape, int skip, int nt, const rl_tensor *const *t);
void cuda_red_init(cuda_red *r, const rl_tensor *x, const rl_attrs *a, const rl_tensor *out);
rl_cuda_fn *cuda_row_fn(rl_op op, rl_dtype dt, const char *entry);
rl_cuda_fn *cuda_prim_fn(rl_dtype dt, const char *file, const char *entry);
rl_status cuda_run_ew(rl_cuda_fn *f, rl_op op, cuda_ew *e);
rl_status rl_cuda_move(rl_tensor *dst, const rl_tensor *src); /* same shape and dtype, any strides */
rl_status rl_cuda_fill(rl_tensor *dst, double v);
rl_status cuda_base(rl_tensor *r, const rl_tensor *base); /* what is written over: base, or zeros for NULL */
/* r (n positions along dim, each at most once a line) takes src at the places that idx names, in the order of idx. */
rl_status cuda_sorted_write(rl_op op, const rl_tensor *idx, const rl_tensor *src, rl_tensor *r, int dim, bool add);
static inline int64_t cuda_dim_size(const rl_tensor *t, int d) { return t->ndim ? t->size[d] : 1; }
static inline int64_t cuda_dim_stride(const rl_tensor *t, int d) { return t->ndim ? t->stride[d] : 0; }

#define RL_CUDA_KERNEL(NAME) \
  rl_status rl_k_##NAME##_cuda(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out); \
  rl_status rl_k_##NAME##_cuda(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out)
#endif
