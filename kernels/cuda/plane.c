/* Pooling on CUDA tensors: argument blocks of plane.cuh (tensors, attributes -> launches). */
#include "plane.h"
#include <string.h>
#include "../../lib/runtime/cuda_impl.h"

#define UNUSED (void)op, (void)in, (void)nin, (void)a

void cuda_plane_init(cuda_plane *a, rl_op op, const rl_tensor *x, const rl_tensor *r, const rl_tensor *plane, const rl_tensor *windows) {
  *a = (cuda_plane){ .n = x->size[0], .c = x->size[1], .h = plane->size[2], .w = plane->size[3], .oh = windows->size[2], .ow = windows->size[3] };
  memcpy(a->sx, x->stride, sizeof a->sx);
  memcpy(a->sr, r->stride, sizeof a->sr);
  a->x = rl_data(x);
  a->r = rl_data(r);
  a->op = op;
  a->err = cuda_error_words();
}

rl_status cuda_plane_run(rl_dtype dt, const char *entry, cuda_plane *a, int64_t n) {
  rl_cuda_fn *f = cuda_prim_fn(dt, "plane", entry);
  if (!f) return RL_ERR;
  return n ? rl_cuda_launch(f, entry, RL_MIN((n + 255) / 256, rl_cuda_processors() * 64), 256, (void *[]){ a }) : RL_OK;
}

static void pair(int64_t *to, const rl_attrs *a, int list) { to[0] = a->list[list][0], to[1] = a->list[list][1]; }

RL_CUDA_KERNEL(max_pool2d) {
  UNUSED;
  cuda_plane p;
  cuda_plane_init(&p, op, in[0], out[0], in[0], out[0]);
  pair(p.k, a, 0), pair(p.s, a, 1), pair(p.p, a, 2), pair(p.d, a, 3);
  memcpy(p.si, out[1]->stride, sizeof p.si);
  p.idx = rl_data(out[1]);
  return cuda_plane_run((rl_dtype)in[0]->dtype, "max_pool", &p, rl_numel(out[0]));
}
RL_CUDA_KERNEL(max_pool2d_dx) {
  UNUSED;
  cuda_plane p;
  RL_TRY(rl_cuda_fill(out[0], 0));
  cuda_plane_init(&p, op, in[0], out[0], out[0], in[0]);
  memcpy(p.si, in[1]->stride, sizeof p.si);
  p.idx = rl_data(in[1]);
  return cuda_plane_run((rl_dtype)in[0]->dtype, "max_pool_dx", &p, rl_numel(in[0]));
}
RL_CUDA_KERNEL(avg_pool2d) {
  UNUSED;
  cuda_plane p;
  cuda_plane_init(&p, op, in[0], out[0], in[0], out[0]);
  pair(p.k, a, 0), pair(p.s, a, 1), pair(p.p, a, 2);
  p.flag = a->v[1].i;
  return cuda_plane_run((rl_dtype)in[0]->dtype, "avg_pool", &p, rl_numel(out[0]));
}
RL_CUDA_KERNEL(avg_pool2d_dx) {
  UNUSED;
  cuda_plane p;
  cuda_plane_init(&p, op, in[0], out[0], out[0], in[0]);
  pair(p.k, a, 1), pair(p.s, a, 2), pair(p.p, a, 3);
  p.flag = a->v[1].i;
  return cuda_plane_run((rl_dtype)in[0]->dtype, "avg_pool_dx", &p, rl_numel(out[0]));
}
RL_CUDA_KERNEL(adaptive_avg_pool2d) {
  UNUSED;
  cuda_plane p;
  cuda_plane_init(&p, op, in[0], out[0], in[0], out[0]);
  return cuda_plane_run((rl_dtype)in[0]->dtype, "adaptive_avg", &p, rl_numel(out[0]));
}
RL_CUDA_KERNEL(adaptive_avg_pool2d_dx) {
  UNUSED;
  cuda_plane p;
  cuda_plane_init(&p, op, in[0], out[0], out[0], in[0]);
  return cuda_plane_run((rl_dtype)in[0]->dtype, "adaptive_avg_dx", &p, rl_numel(out[0]));
}
/* x (…, h, w): what lies before the plane counts as (n, c) = (1, all); strides must agree with that, else copies. */
RL_CUDA_KERNEL(gather_hw) {
  UNUSED;
  rl_tensor *x = NULL, *idx = NULL;
  if (!rl_numel(in[1])) return RL_OK;
  RL_TRY(rl_contiguous(in[0], &x));
  rl_status s = rl_contiguous(in[1], &idx);
  if (s == RL_OK) {
    int d = x->ndim - 2;
    int64_t m = rl_numel(x) / RL_MAX(1, x->size[d] * x->size[d + 1]), h = idx->size[d], w = idx->size[d + 1];
    cuda_plane p = { .n = 1, .c = m, .h = x->size[d], .w = x->size[d + 1], .oh = h, .ow = w, .op = op, .err = cuda_error_words() };
    int64_t sx[4] = { 0, x->size[d] * x->size[d + 1], x->size[d + 1], 1 }, so[4] = { 0, h * w, w, 1 };
    memcpy(p.sx, sx, sizeof sx), memcpy(p.sr, so, sizeof so), memcpy(p.si, so, sizeof so);
    bool direct = rl_is_contiguous(out[0]);
    rl_tensor *r = direct ? rl_tensor_retain(out[0]) : rl_tensor_empty((rl_dtype)x->dtype, RL_CUDA, out[0]->ndim, out[0]->size);
    s = r ? RL_OK : RL_OOM;
    if (r) {
      p.x = rl_data(x), p.r = rl_data(r), p.idx = rl_data(idx);
      s = cuda_plane_run((rl_dtype)x->dtype, "gather_plane", &p, rl_numel(idx));
      if (s == RL_OK && !direct) s = rl_cuda_move(out[0], r);
    }
    rl_tensor_release(r);
  }
  rl_tensor_release(x);
  rl_tensor_release(idx);
  return s;
}
