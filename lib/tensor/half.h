/* Half types: IEEE half and bfloat16 to and from float, rounding to nearest even.
 * Kernels use the prelude's versions; this one serves single numbers. */
#ifndef RL_HALF_H
#define RL_HALF_H
#include <string.h>
#include "tensor.h"

static inline float rl_bits_float(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static inline uint32_t rl_float_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static inline float rl_bfloat_to_float(rl_bf16 b) { return rl_bits_float((uint32_t)b.bits << 16); }
static inline rl_bf16 rl_float_to_bfloat(float f) {
  uint32_t u = rl_float_bits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (rl_bf16){ (uint16_t)((u >> 16) | 0x40u) };
  return (rl_bf16){ (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16) };
}

static inline float rl_half_to_float(rl_f16 h) {
  uint32_t sign = (uint32_t)(h.bits & 0x8000u) << 16, e = (h.bits >> 10) & 31u, m = h.bits & 1023u;
  if (e == 31) return rl_bits_float(sign | 0x7f800000u | (m << 13));
  if (e) return rl_bits_float(sign | ((e + 112u) << 23) | (m << 13));
  float f = (float)m * 0x1p-24f;
  return sign ? -f : f;
}
static inline rl_f16 rl_float_to_half(float f) {
  uint32_t u = rl_float_bits(f), sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  if (u > 0x7f800000u) return (rl_f16){ (uint16_t)(sign | 0x7e00u) };
  if (u >= 0x477ff000u) return (rl_f16){ (uint16_t)(sign | 0x7c00u) };
  if (u < 0x38800000u) { /* subnormal: adding 0.5 puts the bits at the bottom of the mantissa, rounded */
    uint32_t r = rl_float_bits(rl_bits_float(u) + 0.5f) - 0x3f000000u;
    return (rl_f16){ (uint16_t)(sign | r) };
  }
  uint32_t r = u + 0xfffu + ((u >> 13) & 1u) - 0x38000000u;
  return (rl_f16){ (uint16_t)(sign | (r >> 13)) };
}
#endif
