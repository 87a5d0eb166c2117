/* Walks: odometer over the elements of several strided tensors, one dimension left out, for the hand-written kernels. */
#ifndef RL_WALK_H
#define RL_WALK_H
#include <string.h>
#include "../../lib/tensor/op.h"
#include "../../lib/tensor/half.h"

#define RL_KERNEL(name) rl_status rl_k_##name##_cpu(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out)
#define RL_KERNEL_UNUSED (void)op, (void)in, (void)nin, (void)a, (void)out

#define WALK_MAX 4
typedef struct walk {
  int ndim, nt;
  bool done;
  int64_t size[RL_MAXDIM], stride[WALK_MAX][RL_MAXDIM], pos[RL_MAXDIM], off[WALK_MAX];
} walk;

/* Starts over the sizes of `shape` without dimension skip (-1: none); tensors t[k] contribute their strides (by dimension). */
static inline walk walk_start(const rl_tensor *shape, int skip, int nt, const rl_tensor *const *t) {
  walk w;
  w.ndim = 0, w.nt = nt, w.done = false;
  for (int k = 0; k < nt; k++) w.off[k] = 0;
  for (int d = 0; d < shape->ndim; d++) {
    if (d == skip) continue;
    if (shape->size[d] == 0) w.done = true;
    w.size[w.ndim] = shape->size[d], w.pos[w.ndim] = 0;
    for (int k = 0; k < nt; k++) w.stride[k][w.ndim] = t[k]->stride[d];
    w.ndim++;
  }
  return w;
}
static inline void walk_next(walk *w) {
  int d = w->ndim - 1;
  for (; d >= 0; d--) {
    for (int k = 0; k < w->nt; k++) w->off[k] += w->stride[k][d];
    if (++w->pos[d] < w->size[d]) return;
    for (int k = 0; k < w->nt; k++) w->off[k] -= w->stride[k][d] * w->size[d];
    w->pos[d] = 0;
  }
  w->done = true;
}

/* Bodies by element size (moves) and by dtype (arithmetic, S storage type, LD/ST conversions to the compute type C). */
#define BY_BYTES(bytes, BODY) \
  switch (bytes) { \
  case 1: BODY(uint8_t) break; \
  case 2: BODY(uint16_t) break; \
  case 4: BODY(uint32_t) break; \
  default: BODY(uint64_t) break; \
  }
#define LD_ID(x) (x)
#define BY_DTYPE(dt, BODY) \
  switch (dt) { \
  case RL_U8: BODY(uint8_t, uint8_t, LD_ID, LD_ID) break; \
  case RL_I8: BODY(int8_t, int8_t, LD_ID, LD_ID) break; \
  case RL_I16: BODY(int16_t, int16_t, LD_ID, LD_ID) break; \
  case RL_I32: BODY(int32_t, int32_t, LD_ID, LD_ID) break; \
  case RL_I64: BODY(int64_t, int64_t, LD_ID, LD_ID) break; \
  case RL_F16: BODY(rl_f16, float, rl_half_to_float, rl_float_to_half) break; \
  case RL_BF16: BODY(rl_bf16, float, rl_bfloat_to_float, rl_float_to_bfloat) break; \
  case RL_F32: BODY(float, float, LD_ID, LD_ID) break; \
  default: BODY(double, double, LD_ID, LD_ID) break; \
  }

static inline int esize(const rl_tensor *t) { return rl_dtypes[t->dtype].bytes; }
static inline int64_t numel_but(const rl_tensor *t, int dim) {
  int64_t n = 1;
  for (int d = 0; d < t->ndim; d++)
    if (d != dim) n *= t->size[d];
  return n;
}
/* The elementwise driver as a copy of the same dtype: joined dimensions, tiles, threads. */
void rl_ew_move(rl_tensor *dst, const rl_tensor *src);
/* Copies src's elements to dst of the same shape and dtype. */
rl_status rl_move(rl_tensor *dst, const rl_tensor *src);
rl_status rl_move_zero(rl_tensor *dst);
/* x itself (retained) when it is contiguous and of this dtype, else a copy. NULL: out of memory. */
rl_tensor *rl_working(const rl_tensor *x, rl_dtype dt);
/* Writes a working tensor to the result it stands for. */
rl_status rl_give(rl_tensor *t, rl_tensor *out);
/* A working result for out: itself (retained), or a new tensor. */
rl_tensor *rl_working_out(rl_tensor *out, rl_dtype dt);
#endif
