/* Elements: one value of a storage <-> double, for indexing, totable and printing.
 * (dtype, address) <-> Lua number. */
#include "bind.h"
#include "../runtime/cuda.h"
#include <string.h>

static double half_to_double(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 1023u, bits;
  float f;
  if (e == 31) bits = sign | 0x7f800000u | m << 13;
  else if (e) bits = sign | (e + 112) << 23 | m << 13;
  else {
    f = (float)m * 5.9604644775390625e-8f; /* 2^-24 */
    return sign ? -f : f;
  }
  memcpy(&f, &bits, 4);
  return f;
}

/* Round to nearest even. The double goes through float, as the kernels' conversions do. */
static uint16_t double_to_half(double d) {
  float f = (float)d;
  uint32_t x;
  memcpy(&x, &f, 4);
  uint32_t sign = x >> 16 & 0x8000u, a = x & 0x7fffffffu;
  if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
  if (a >= 0x38800000u) return (uint16_t)(sign | (((a + 0xfffu + (a >> 13 & 1)) >> 13) - 0x1c000u));
  if (a < 0x33000000u) return (uint16_t)sign;
  uint32_t shift = 126 - (a >> 23), m = (a & 0x7fffffu) | 0x800000u;
  uint32_t q = m >> shift, rest = m & ((1u << shift) - 1), half = 1u << (shift - 1);
  return (uint16_t)(sign | (q + (rest > half || (rest == half && (q & 1)))));
}

static double bf16_to_double(uint16_t h) {
  uint32_t bits = (uint32_t)h << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

static uint16_t double_to_bf16(double d) {
  float f = (float)d;
  uint32_t x;
  memcpy(&x, &f, 4);
  if ((x & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(x >> 16 | 0x40u);
  return (uint16_t)((x + 0x7fffu + (x >> 16 & 1)) >> 16);
}

double bind_load_as(rl_dtype dt, const void *p) {
  switch (dt) {
  case RL_U8: return *(const uint8_t *)p;
  case RL_I8: return *(const int8_t *)p;
  case RL_I16: return *(const int16_t *)p;
  case RL_I32: return *(const int32_t *)p;
  case RL_I64: return (double)*(const int64_t *)p;
  case RL_F16: return half_to_double(((const rl_f16 *)p)->bits);
  case RL_BF16: return bf16_to_double(((const rl_bf16 *)p)->bits);
  case RL_F32: return *(const float *)p;
  default: return *(const double *)p;
  }
}

/* Truncates toward zero for integers, wrapping; NaN and what is out of 64 bits become INT64_MIN as on x86. */
static int64_t to_int(double v) { return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? (int64_t)v : INT64_MIN; }

void bind_store_as(rl_dtype dt, void *p, double v) {
  switch (dt) {
  case RL_U8: *(uint8_t *)p = (uint8_t)to_int(v); break;
  case RL_I8: *(int8_t *)p = (int8_t)to_int(v); break;
  case RL_I16: *(int16_t *)p = (int16_t)to_int(v); break;
  case RL_I32: *(int32_t *)p = (int32_t)to_int(v); break;
  case RL_I64: *(int64_t *)p = to_int(v); break;
  case RL_F16: ((rl_f16 *)p)->bits = double_to_half(v); break;
  case RL_BF16: ((rl_bf16 *)p)->bits = double_to_bf16(v); break;
  case RL_F32: *(float *)p = (float)v; break;
  default: *(double *)p = v; break;
  }
}

static double cuda_load(const rl_tensor *t, int64_t offset) {
  uint64_t word = 0;
  size_t bytes = (size_t)rl_dtypes[t->dtype].bytes;
  rl_cuda_read(&word, (char *)t->storage->data + (size_t)offset * bytes, bytes);
  return bind_load_as((rl_dtype)t->dtype, &word);
}

static void cuda_store(rl_tensor *t, int64_t offset, double v) {
  uint64_t word = 0;
  size_t bytes = (size_t)rl_dtypes[t->dtype].bytes;
  bind_store_as((rl_dtype)t->dtype, &word, v);
  rl_cuda_write((char *)t->storage->data + (size_t)offset * bytes, &word, bytes);
}

double bind_load(const rl_tensor *t, int64_t offset) {
  if (t->device == RL_CUDA) return cuda_load(t, offset);
  return bind_load_as((rl_dtype)t->dtype, (char *)t->storage->data + offset * rl_dtypes[t->dtype].bytes);
}

void bind_store(rl_tensor *t, int64_t offset, double v) {
  if (t->device == RL_CUDA) {
    cuda_store(t, offset, v);
    return;
  }
  bind_store_as((rl_dtype)t->dtype, (char *)t->storage->data + offset * rl_dtypes[t->dtype].bytes, v);
}

bind_walk bind_walk_start(const rl_tensor *t) {
  bind_walk w = { .t = t, .off = t->offset, .left = t->storage ? rl_numel(t) : 0 };
  return w;
}

void bind_walk_next(bind_walk *w) {
  const rl_tensor *t = w->t;
  w->left--;
  for (int d = t->ndim - 1; d >= 0; d--) {
    w->off += t->stride[d];
    if (++w->idx[d] < t->size[d]) return;
    w->off -= t->stride[d] * t->size[d];
    w->idx[d] = 0;
  }
}

/* Raises a graph break when the elements do not exist yet. */
void bind_values(lua_State *L, const rl_tensor *t, const char *what) {
  if (rl_is_fake(t)) luaL_error(L, "[capture] needs values: [%s] reads elements; got a fake tensor, need data", what);
}

void bind_real(lua_State *L, const rl_storage *s, const char *what) {
  if (s->device == RL_CUDA) luaL_error(L, "[%s] storage in GPU memory; got a CUDA storage, need a CPU storage (copy its tensor first)", what);
  if (s->graph) luaL_error(L, "[capture] needs values: [%s] reads a storage; got a fake one, need data", what);
}

void bind_wrote(rl_tensor *t) {
  if (t->storage) t->storage->version++;
}
