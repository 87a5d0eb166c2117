/* Between host and device: copies of tensors, and ops that run on the host: linear algebra (LAPACK), and what has no CUDA kernel when asked for.
 * (CPU tensor) <-> (CUDA tensor) */
#include <string.h>
#include "../../lib/runtime/cuda_impl.h"
#include "launch.h"

static bool host_ops;
void rl_cuda_set_host_ops(bool on) { host_ops = on; }

static rl_status convert(rl_tensor *dst, rl_tensor *src) {
  rl_attrs a = { .v = { { .i = dst->dtype } } };
  return rl_ops[RL_OP_CAST].kernel[dst->device](RL_OP_CAST, &src, 1, &a, &dst);
}

/* src in dst's dtype, contiguous, on src's own device; itself when it is that already. */
static rl_status packed(rl_tensor *src, rl_dtype dt, rl_tensor **out) {
  if (src->dtype == dt && rl_is_contiguous(src)) {
    *out = rl_tensor_retain(src);
    return RL_OK;
  }
  if (!(*out = rl_tensor_empty(dt, src->device, src->ndim, src->size))) return RL_OOM;
  return convert(*out, src);
}

rl_status rl_cuda_transfer(rl_tensor *dst, rl_tensor *src) {
  rl_tensor *s = NULL, *d = dst;
  struct rl_graph *g = rl_self.graph;
  if (rl_numel(dst) == 0) return RL_OK;
  rl_self.graph = NULL;
  rl_status r = packed(src, (rl_dtype)dst->dtype, &s);
  bool direct = rl_is_contiguous(dst);
  if (r == RL_OK && !direct && !(d = rl_tensor_empty((rl_dtype)dst->dtype, (rl_device)dst->device, dst->ndim, dst->size))) r = RL_OOM;
  size_t bytes = (size_t)(rl_numel(dst) * rl_dtypes[dst->dtype].bytes);
  if (r == RL_OK) r = dst->device == RL_CUDA ? rl_cuda_write(rl_data(d), rl_data(s), bytes) : rl_cuda_read(rl_data(d), rl_data(s), bytes);
  if (r == RL_OK && !direct) r = convert(dst, d);
  if (!direct) rl_tensor_release(d);
  rl_tensor_release(s);
  rl_self.graph = g;
  return r;
}

rl_tensor *rl_cuda_to(rl_tensor *t, rl_dtype dt, rl_device dev) {
  if (rl_is_fake(t)) {
    rl_error_status(RL_NODATA, "[cuda] a tensor that is being captured changes its device");
    return NULL;
  }
  rl_tensor *r = rl_tensor_empty(dt, dev, t->ndim, t->size);
  if (!r) return NULL;
  if (!t->storage || (t->device == dev ? convert(r, t) : rl_cuda_transfer(r, t)) == RL_OK) return r;
  rl_tensor_release(r);
  return NULL;
}

/* Kernel on copies in the host's memory. */
static rl_status host_copies(rl_op op, rl_tensor *const *in, int nin, rl_tensor **h) {
  for (int i = 0; i < nin; i++) {
    h[i] = NULL;
    if (!in[i]) continue;
    h[i] = in[i]->device == RL_CPU ? rl_tensor_retain(in[i]) : rl_cuda_to(in[i], (rl_dtype)in[i]->dtype, RL_CPU);
    if (!h[i]) return RL_ERR;
  }
  return RL_OK;
}

rl_status rl_cuda_host_op(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  const rl_op_info *o = &rl_ops[op];
  rl_tensor *h[RL_MAXIN] = { 0 }, *r[RL_MAXOUT] = { 0 };
  bool lapack = op >= RL_OP_INVERSE && op <= RL_OP_SVD;
  if (!(host_ops || lapack) || !o->kernel[RL_CPU] || nin > RL_MAXIN)
    return rl_error("[%s] no CUDA kernel yet; got a CUDA tensor, need a CPU tensor (x:float()) or cutorch.setHostOps(true)", o->name);
  cuda_count_host_op();
  rl_status s = host_copies(op, in, nin, h);
  for (int k = 0; k < o->nout && s == RL_OK; k++)
    if (!(r[k] = rl_tensor_empty((rl_dtype)out[k]->dtype, RL_CPU, out[k]->ndim, out[k]->size))) s = RL_OOM;
  if (s == RL_OK) s = o->kernel[RL_CPU](op, h, nin, a, r);
  for (int k = 0; k < o->nout && s == RL_OK; k++) s = rl_cuda_transfer(out[k], r[k]);
  for (int k = 0; k < o->nout; k++) rl_tensor_release(r[k]);
  for (int i = 0; i < nin; i++) rl_tensor_release(h[i]);
  return s;
}
