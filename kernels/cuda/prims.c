/* Primitive rows on CUDA tensors: creation, draws, moves, indexing. Moves share kernels/cpu/move.c, which works through rl_move.
 * (tensors, attributes) -> argument block -> kernel of prims.cuh. */
#include <string.h>
#include "../../lib/tensor/random.h"
#include "launch.h"

#define UNUSED (void)op, (void)in, (void)nin, (void)a
/* Rows whose CPU code only calls rl_move, rl_move_zero and a fill, all of which know the device. */
#define SHARED(NAME) \
  rl_status rl_k_##NAME##_cpu(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out); \
  RL_CUDA_KERNEL(NAME) { return rl_k_##NAME##_cpu(op, in, nin, a, out); }
SHARED(cat)
SHARED(flip)
SHARED(roll)
SHARED(pad)
SHARED(reshape)
SHARED(slice_grad)
SHARED(diagonal_grad)
SHARED(full)

RL_CUDA_KERNEL(iota) {
  UNUSED;
  cuda_ew e;
  cuda_ew_init(&e, out[0], -1, 1, (const rl_tensor *[]){ out[0] });
  e.st[0][0] = out[0]->stride[0];
  return e.n ? cuda_run_ew(cuda_prim_fn(out[0]->dtype, "prims", "iota"), op, &e) : RL_OK;
}

static rl_status draw(rl_op op, rl_tensor *r, bool normal) {
  rl_generator *g = rl_generator_default();
  cuda_ew e;
  if (rl_numel(r) == 0) return RL_OK;
  if (!rl_dtypes[r->dtype].is_float) return rl_error("[rand] needs a float type; got %s", rl_dtypes[r->dtype].name);
  if (!rl_is_contiguous(r)) {
    rl_tensor *t = rl_tensor_empty(r->dtype, RL_CUDA, r->ndim, r->size);
    if (!t) return RL_OOM;
    rl_status s = draw(op, t, normal);
    if (s == RL_OK) s = rl_cuda_move(r, t);
    rl_tensor_release(t);
    return s;
  }
  cuda_ew_init(&e, r, -1, 1, (const rl_tensor *[]){ r });
  int per = r->dtype == RL_F64 ? 2 : 4;
  e.i[0] = (int64_t)g->seed, e.i[1] = (int64_t)g->counter, e.i[2] = normal, e.i[3] = e.n;
  e.n = (e.n + per - 1) / per;
  return cuda_run_ew(cuda_prim_fn(r->dtype, "prims", "draw"), op, &e);
}
RL_CUDA_KERNEL(rand) {
  UNUSED;
  return draw(op, out[0], false);
}
RL_CUDA_KERNEL(randn) {
  UNUSED;
  return draw(op, out[0], true);
}

static rl_status triangle(rl_op op, const rl_tensor *x, rl_tensor *r, int64_t k, bool lower) {
  cuda_ew e;
  cuda_ew_init(&e, r, -1, 2, (const rl_tensor *[]){ r, x });
  e.i[0] = k, e.i[1] = x->size[x->ndim - 2], e.i[2] = x->size[x->ndim - 1], e.i[3] = lower;
  return e.n ? cuda_run_ew(cuda_prim_fn(x->dtype, "prims", "tri"), op, &e) : RL_OK;
}
RL_CUDA_KERNEL(tril) {
  UNUSED;
  return triangle(op, in[0], out[0], a->v[0].i, true);
}
RL_CUDA_KERNEL(triu) {
  UNUSED;
  return triangle(op, in[0], out[0], a->v[0].i, false);
}

/* Indices are checked where they are used; one out of range is told when the host next waits for the device. */
static rl_status index_here(rl_op op, const rl_tensor *idx, int64_t n, cuda_ew *e) {
  e->i[8] = op, e->i[9] = n;
  if (idx->device != RL_CUDA) return rl_error("[%s] index is on the host; got a CPU tensor, need a CudaLongTensor", rl_ops[op].name);
  if (n == 0 && rl_numel(idx)) return rl_error("[%s] index out of range; got an index into 0 elements", rl_ops[op].name);
  return RL_OK;
}
#define dim_size cuda_dim_size
#define dim_stride cuda_dim_stride

RL_CUDA_KERNEL(gather) {
  UNUSED;
  int dim = (int)a->v[0].i;
  rl_tensor x = *in[0];
  cuda_ew e;
  if (x.ndim) x.stride[dim] = 0;
  cuda_ew_init(&e, in[1], -1, 3, (const rl_tensor *[]){ out[0], &x, in[1] });
  RL_TRY(index_here(op, in[1], dim_size(in[0], dim), &e));
  e.i[0] = dim_stride(in[0], dim), e.i[1] = 1, e.i[2] = RL_MAX(1, e.n);
  return e.n ? cuda_run_ew(cuda_prim_fn(x.dtype, "prims", "gather"), op, &e) : RL_OK;
}

static rl_status scatter(rl_op op, rl_tensor *const *in, const rl_attrs *a, rl_tensor *r, int mode) {
  int dim = (int)a->v[0].i;
  const rl_tensor *idx = in[1], *src = in[2];
  cuda_ew e;
  RL_TRY(index_here(op, idx, dim_size(r, dim), &e));
  RL_TRY(cuda_base(r, in[0]));
  if (!rl_numel(idx)) return RL_OK;
  if (idx->ndim == 1 && src->device == RL_CUDA && rl_numel(idx) > 64) return cuda_sorted_write(op, idx, src, r, dim, mode == 1);
  cuda_ew_init(&e, idx, idx->ndim ? dim : -1, 3, (const rl_tensor *[]){ r, src, idx });
  e.i[0] = dim_size(idx, dim), e.i[1] = dim_stride(r, dim), e.i[2] = dim_stride(src, dim), e.i[3] = dim_stride(idx, dim), e.i[4] = mode;
  RL_TRY(index_here(op, idx, dim_size(r, dim), &e));
  return cuda_run_ew(cuda_prim_fn(r->dtype, "prims", "scatter"), op, &e);
}
RL_CUDA_KERNEL(scatter) {
  UNUSED;
  return scatter(op, in, a, out[0], 0);
}
RL_CUDA_KERNEL(scatter_add) {
  UNUSED;
  return scatter(op, in, a, out[0], 1);
}

/* A 1-D index seen along dim with stride 0 elsewhere, in the shape of `like`. */
static rl_tensor index_along(const rl_tensor *idx, const rl_tensor *like, int dim) {
  rl_tensor w = *idx;
  w.ndim = like->ndim;
  for (int d = 0; d < w.ndim; d++) w.size[d] = d == dim ? rl_numel(idx) : like->size[d], w.stride[d] = d == dim && idx->ndim ? idx->stride[0] : 0;
  return w;
}

RL_CUDA_KERNEL(index_select) {
  UNUSED;
  int dim = (int)a->v[0].i;
  rl_tensor x = *in[0], w = index_along(in[1], out[0], dim);
  cuda_ew e;
  int64_t inner = 1;
  for (int d = dim + 1; d < x.ndim; d++) inner *= x.size[d];
  if (x.ndim) x.stride[dim] = 0;
  cuda_ew_init(&e, out[0], -1, 3, (const rl_tensor *[]){ out[0], &x, &w });
  RL_TRY(index_here(op, in[1], dim_size(in[0], dim), &e));
  e.i[0] = dim_stride(in[0], dim), e.i[1] = RL_MAX(1, inner), e.i[2] = RL_MAX(1, rl_numel(in[1]));
  return e.n ? cuda_run_ew(cuda_prim_fn(x.dtype, "prims", "gather"), op, &e) : RL_OK;
}

/* Each element of src is added where its index points, atomically. */
static rl_status add_any(rl_op op, const rl_tensor *idx, const rl_tensor *src, rl_tensor *r, int dim) {
  rl_tensor w = index_along(idx, src, dim), to = *r;
  int64_t inner = 1;
  cuda_ew e;
  for (int d = dim + 1; d < src->ndim; d++) inner *= src->size[d];
  to.stride[dim] = 0;
  for (int d = 0; d < src->ndim; d++) to.size[d] = src->size[d];
  cuda_ew_init(&e, src, -1, 3, (const rl_tensor *[]){ &to, src, &w });
  RL_TRY(index_here(op, idx, dim_size(r, dim), &e));
  e.i[0] = dim_stride(r, dim), e.i[1] = RL_MAX(1, inner), e.i[2] = rl_numel(idx);
  return cuda_run_ew(cuda_prim_fn((rl_dtype)r->dtype, "prims", "index_add_any"), op, &e);
}

static rl_status index_write(rl_op op, rl_tensor *const *in, const rl_attrs *a, rl_tensor *r, int mode) {
  int dim = (int)a->v[0].i;
  rl_tensor w = index_along(in[1], r, dim), src = *in[2];
  cuda_ew e;
  RL_TRY(index_here(op, in[1], dim_size(r, dim), &e));
  RL_TRY(cuda_base(r, in[0]));
  if (!rl_numel(in[1]) || !rl_numel(r)) return RL_OK;
  bool wide = r->dtype == RL_F32 || r->dtype == RL_F64;
  if (mode == 1 && wide && !rl_cuda_deterministic() && r->ndim && src.device == RL_CUDA && rl_numel(in[1]) > 8)
    return add_any(op, in[1], &src, r, dim);
  if (mode != 2 && rl_numel(in[1]) > 8) return cuda_sorted_write(op, in[1], in[2], r, dim, mode == 1);
  if (mode == 2)
    for (int d = 0; d < r->ndim; d++) src.stride[d] = 0;
  cuda_ew_init(&e, r, r->ndim ? dim : -1, 3, (const rl_tensor *[]){ r, &src, &w });
  e.i[0] = rl_numel(in[1]), e.i[1] = dim_stride(r, dim), e.i[2] = mode == 2 ? 0 : dim_stride(&src, dim), e.i[3] = dim_stride(&w, dim);
  e.i[4] = mode == 2 && src.device == RL_CUDA ? 0 : mode, e.i[5] = 1;
  RL_TRY(index_here(op, in[1], dim_size(r, dim), &e));
  return cuda_run_ew(cuda_prim_fn(r->dtype, "prims", "scatter"), op, &e);
}
RL_CUDA_KERNEL(index_add) {
  UNUSED;
  return index_write(op, in, a, out[0], 1);
}
RL_CUDA_KERNEL(index_copy) {
  UNUSED;
  return index_write(op, in, a, out[0], 0);
}
RL_CUDA_KERNEL(index_fill) {
  UNUSED;
  return index_write(op, in, a, out[0], 2);
}

RL_CUDA_KERNEL(take) {
  UNUSED;
  cuda_ew e;
  rl_tensor *x = NULL;
  RL_TRY(rl_contiguous(in[0], &x));
  cuda_ew_init(&e, in[1], -1, 2, (const rl_tensor *[]){ out[0], in[1] });
  e.p[2] = rl_data(x);
  rl_status s = index_here(op, in[1], rl_numel(in[0]), &e);
  if (s == RL_OK) s = e.n ? cuda_run_ew(cuda_prim_fn(x->dtype, "prims", "take"), op, &e) : RL_OK;
  rl_tensor_release(x);
  return s;
}

/* A line a block, of as many warps as the line can use. */
static rl_status lines(rl_op op, const rl_tensor *x, const rl_tensor *y, rl_tensor *r, int dim, const char *entry, bool logs) {
  cuda_ew e;
  int64_t n = cuda_dim_size(x, dim), threads = 32;
  if (!rl_numel(x)) return RL_OK;
  cuda_ew_init(&e, r, r->ndim ? dim : -1, 3, (const rl_tensor *[]){ r, x, y });
  e.i[0] = n, e.i[1] = cuda_dim_stride(r, dim), e.i[2] = cuda_dim_stride(x, dim), e.i[3] = y ? cuda_dim_stride(y, dim) : 0, e.i[4] = logs;
  while (threads < 1024 && threads * 4 < n) threads *= 2;
  rl_cuda_fn *f = cuda_prim_fn((rl_dtype)x->dtype, "rows", entry);
  return f ? rl_cuda_launch(f, rl_ops[op].name, e.n, (int)threads, (void *[]){ &e }) : RL_ERR;
}
RL_CUDA_KERNEL(softmax) {
  UNUSED;
  return lines(op, in[0], NULL, out[0], (int)a->v[0].i, "softmax", false);
}
RL_CUDA_KERNEL(log_softmax) {
  UNUSED;
  return lines(op, in[0], NULL, out[0], (int)a->v[0].i, "softmax", true);
}
RL_CUDA_KERNEL(softmax_dx) {
  UNUSED;
  return lines(op, in[0], in[1], out[0], (int)a->v[0].i, "softmax_dx", false);
}
RL_CUDA_KERNEL(log_softmax_dx) {
  UNUSED;
  return lines(op, in[0], in[1], out[0], (int)a->v[0].i, "softmax_dx", true);
}
