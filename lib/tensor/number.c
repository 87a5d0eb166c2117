/* Numbers: Lua numbers as rank-0 tensors on the C stack, and the one element of a tensor as a number. */
#include <string.h>
#include "../runtime/cuda.h"
#include "tensor.h"
#include "half.h"

static void number_init(rl_number *n, rl_dtype dt) {
  n->t.refs = n->s.refs = 1 << 30;
  n->t.dtype = n->s.dtype = dt;
  n->t.device = n->s.device = RL_CPU;
  n->t.ndim = 0;
  n->t.flags = RL_T_WEAK | RL_T_STACK;
  n->t.node = -1;
  n->t.storage = &n->s;
  n->t.offset = 0;
  n->t.ag = NULL;
  n->s.flags = n->s.device_index = 0;
  n->s.version = 0;
  n->s.size = 1;
  n->s.data = &n->v;
  n->s.graph = NULL;
  n->s.id = -1;
  n->s.release = NULL;
  n->s.foreign = NULL;
}

rl_tensor *rl_number_set(rl_number *n, double v) {
  number_init(n, RL_F64);
  n->v.f = v;
  return &n->t;
}

rl_tensor *rl_number_seti(rl_number *n, int64_t v) {
  number_init(n, RL_I64);
  n->v.i = v;
  return &n->t;
}

rl_status rl_tensor_item(const rl_tensor *t, double *out) {
  char buf[256];
  if (rl_is_fake(t)) return rl_error_status(RL_NODATA, "[item] the value of a tensor that is being captured");
  if (rl_numel(t) != 1) return rl_error("[item] one element needed; got %s", rl_shape_str(t, buf));
  const void *p = rl_data(t);
  uint64_t word = 0;
  if (t->device == RL_CUDA) {
    const rl_cuda_note *n = t->storage->release ? NULL : (const rl_cuda_note *)t->storage->foreign;
    size_t bytes = (size_t)rl_dtypes[t->dtype].bytes;
    if (n && n->version == t->storage->version && t->storage->size == 1) {
      RL_TRY(rl_cuda_note_read(n, &word, bytes));
    } else RL_TRY(rl_cuda_read(&word, p, bytes));
    p = &word;
  }
  switch ((rl_dtype)t->dtype) {
  case RL_U8: *out = *(const uint8_t *)p; break;
  case RL_I8: *out = *(const int8_t *)p; break;
  case RL_I16: *out = *(const int16_t *)p; break;
  case RL_I32: *out = *(const int32_t *)p; break;
  case RL_I64: *out = (double)*(const int64_t *)p; break;
  case RL_F16: *out = rl_half_to_float(*(const rl_f16 *)p); break;
  case RL_BF16: *out = rl_bfloat_to_float(*(const rl_bf16 *)p); break;
  case RL_F32: *out = *(const float *)p; break;
  case RL_F64: *out = *(const double *)p; break;
  case RL_NDTYPE: break;
  }
  return RL_OK;
}
