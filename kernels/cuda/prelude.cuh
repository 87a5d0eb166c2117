/* Prelude for CUDA: the functions of kernels/cpu/prelude.h under the same names, for NVRTC (no headers) and nvcc.
 * Compile with -fmad=false, so that the own polynomials round as on the CPU; the rest is CUDA's math library, 1 to 2 ulp. */
#ifndef RL_PRELUDE_CUH
#define RL_PRELUDE_CUH
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT64_MIN (-9223372036854775807LL - 1)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <math.h>
#include <stdint.h>
#endif
typedef struct {
  uint16_t bits;
} rl_f16;
typedef struct {
  uint16_t bits;
} rl_bf16;
#define RL_FN static __device__ __forceinline__
RL_FN float rl_fbits(uint32_t u) { return __uint_as_float(u); }
RL_FN uint32_t rl_bitsf(float f) { return __float_as_uint(f); }

/* Loads and stores: storage type <-> compute type. */
RL_FN float rl_ld_bf16(rl_bf16 b) { return rl_fbits((uint32_t)b.bits << 16); }
#ifdef __CUDA_ARCH__ /* the processor's own conversions */
RL_FN rl_bf16 rl_st_bf16(float f) {
  rl_bf16 b;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(f));
  return b;
}
RL_FN float rl_ld_f16(rl_f16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
  return f;
}
RL_FN rl_f16 rl_st_f16(float f) {
  rl_f16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
  return h;
}
#else
RL_FN rl_bf16 rl_st_bf16(float f) {
  uint32_t u = rl_bitsf(f), r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, q = (u >> 16) | 0x40u;
  rl_bf16 b = { (uint16_t)(f != f ? q : r) };
  return b;
}
RL_FN float rl_ld_f16(rl_f16 h) {
  uint32_t s = (uint32_t)(h.bits & 0x8000u) << 16, m = h.bits & 0x7fffu;
  float n = rl_fbits((m << 13) + 0x38000000u), d = (float)m * 0x1p-24f;
  float v = m >= 0x7c00u ? rl_fbits(0x7f800000u | (m << 13)) : m < 0x400u ? d : n;
  return rl_fbits(rl_bitsf(v) | s);
}
RL_FN rl_f16 rl_st_f16(float f) {
  uint32_t u = rl_bitsf(f), s = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  uint32_t n = (u + 0xfffu + ((u >> 13) & 1u) - 0x38000000u) >> 13, d = rl_bitsf(rl_fbits(u) + 0.5f) - 0x3f000000u;
  uint32_t r = u > 0x7f800000u ? 0x7e00u : u >= 0x477ff000u ? 0x7c00u : u < 0x38800000u ? d : n;
  rl_f16 h = { (uint16_t)(s | r) };
  return h;
}
#endif
#define RL_IDENTITY(S, T) \
  RL_FN T rl_ld_##S(T x) { return x; } \
  RL_FN T rl_st_##S(T x) { return x; }
RL_IDENTITY(u8, uint8_t)
RL_IDENTITY(i8, int8_t)
RL_IDENTITY(i16, int16_t)
RL_IDENTITY(i32, int32_t)
RL_IDENTITY(i64, int64_t)
RL_IDENTITY(f32, float)
RL_IDENTITY(f64, double)

/* Float to integer as Torch7's casts on x86-64 do it: through int64, out of range and NaN give the lowest int64, then the low bits. */
RL_FN int64_t rl_toint(double x) { return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN; }

/* ---- float ---- */
#if defined(RL_FAST) && defined(__CUDA_ARCH__) /* fused kernels: the processor's exponential */
RL_FN float rl_exp_f32(float x) { return __expf(x); }
RL_FN float rl_log_f32(float x) { return logf(x); }
RL_FN float rl_tanh_f32(float x) { return tanhf(x); }
RL_FN float rl_sigmoid_f32(float x) { return __fdividef(1.f, 1.f + __expf(-x)); }
RL_FN float rl_erf_f32(float x) { return erff(x); }
#else
RL_FN float rl_exp_f32(float x) {
  float c = x < -104.f ? -104.f : x;
  c = c > 89.f ? 89.f : c;
  float n = (c * 1.44269504f + 12582912.f) - 12582912.f;
  float r = c - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.f;
  int32_t i = (int32_t)n, h = i >> 1;
  return p * rl_fbits((uint32_t)(h + 127) << 23) * rl_fbits((uint32_t)(i - h + 127) << 23);
}
RL_FN float rl_log_f32(float x) {
  bool tiny = x < 1.17549435e-38f;
  uint32_t u = rl_bitsf(tiny ? x * 8388608.f : x);
  float m = rl_fbits((u & 0x7fffffu) | 0x3f000000u);
  bool low = m < 0.707106781f;
  float e = (float)((int32_t)(u >> 23) - 126) - (low ? 1.f : 0.f) - (tiny ? 23.f : 0.f);
  m = (low ? m + m : m) - 1.f;
  float z = m * m, y = 7.0376836292e-2f;
  y = y * m - 1.1514610310e-1f;
  y = y * m + 1.1676998740e-1f;
  y = y * m - 1.2420140846e-1f;
  y = y * m + 1.4249322787e-1f;
  y = y * m - 1.6668057665e-1f;
  y = y * m + 2.0000714765e-1f;
  y = y * m - 2.4999993993e-1f;
  y = y * m + 3.3333331174e-1f;
  y = y * m * z;
  y = y + e * -2.12194440e-4f - 0.5f * z;
  float r = m + y + e * 0.693359375f;
  r = x > 3.402823466e38f ? x : r;
  r = x == 0.f ? -INFINITY : r;
  return x < 0.f || x != x ? NAN : r;
}
RL_FN float rl_tanh_f32(float x) {
  float a = fabsf(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  p = p * z * x + x;
  float q = 1.f - 2.f / (rl_exp_f32(a + a) + 1.f);
  q = copysignf(q, x);
  return a < 0.625f ? p : q;
}
RL_FN float rl_sigmoid_f32(float x) { return 1.f / (1.f + rl_exp_f32(-x)); }
RL_FN float rl_erf_f32(float x) {
  float t = fabsf(x), s = x * x;
  float c = t > 4.f ? 4.f : t, d = c * c;
  float r = -1.72853470e-5f * c + 3.83197126e-4f, u = -3.88396438e-3f * c + 2.42546219e-2f;
  r = r * d + u;
  r = r * c - 1.06777877e-1f;
  r = r * c - 6.34846687e-1f;
  r = r * c - 1.28717512e-1f;
  r = r * c - c;
  float big = copysignf(1.f - rl_exp_f32(r), x);
  float q = -5.96761703e-4f;
  q = q * s + 4.99119423e-3f;
  q = q * s - 2.67681349e-2f;
  q = q * s + 1.12819925e-1f;
  q = q * s - 3.76125336e-1f;
  q = q * s + 1.28379166e-1f;
  q = q * x + x;
  return t > 0.921875f ? big : q;
}
#endif
RL_FN float rl_log1p_f32(float x) { return log1pf(x); }
RL_FN float rl_expm1_f32(float x) { return expm1f(x); }
RL_FN float rl_erfc_f32(float x) { return erfcf(x); }
#if defined(RL_FAST) && defined(__CUDA_ARCH__)
RL_FN float rl_rsqrt_f32(float x) { return rsqrtf(x); }
#else
RL_FN float rl_rsqrt_f32(float x) { return 1.f / sqrtf(x); }
#endif
RL_FN double rl_exp_f64(double x) { return exp(x); }
RL_FN double rl_log_f64(double x) { return log(x); }
RL_FN double rl_tanh_f64(double x) { return tanh(x); }
RL_FN double rl_sigmoid_f64(double x) { return 1. / (1. + exp(-x)); }
RL_FN double rl_erf_f64(double x) { return erf(x); }
RL_FN double rl_log1p_f64(double x) { return log1p(x); }
RL_FN double rl_expm1_f64(double x) { return expm1(x); }
RL_FN double rl_erfc_f64(double x) { return erfc(x); }
RL_FN double rl_rsqrt_f64(double x) { return 1. / sqrt(x); }
#define RL_LIBM(S, T, X) \
  RL_FN T rl_sqrt_##S(T x) { return sqrt##X(x); } \
  RL_FN T rl_sin_##S(T x) { return sin##X(x); } \
  RL_FN T rl_cos_##S(T x) { return cos##X(x); } \
  RL_FN T rl_tan_##S(T x) { return tan##X(x); } \
  RL_FN T rl_asin_##S(T x) { return asin##X(x); } \
  RL_FN T rl_acos_##S(T x) { return acos##X(x); } \
  RL_FN T rl_atan_##S(T x) { return atan##X(x); } \
  RL_FN T rl_sinh_##S(T x) { return sinh##X(x); } \
  RL_FN T rl_cosh_##S(T x) { return cosh##X(x); } \
  RL_FN T rl_lgamma_##S(T x) { return lgamma##X(x); } \
  RL_FN T rl_atan2_##S(T x, T y) { return atan2##X(x, y); } \
  RL_FN T rl_pow_##S(T x, T y) { return y == (T)2 ? x * x : pow##X(x, y); } \
  RL_FN T rl_fmod_##S(T x, T y) { return fmod##X(x, y); } \
  RL_FN T rl_floor_##S(T x) { return floor##X(x); } \
  RL_FN T rl_ceil_##S(T x) { return ceil##X(x); } \
  RL_FN T rl_trunc_##S(T x) { return trunc##X(x); } \
  RL_FN T rl_round_##S(T x) { \
    T t = trunc##X(x); \
    return fabs##X(x - t) >= (T)0.5 ? t + copysign##X((T)1, x) : t; \
  } \
  RL_FN T rl_abs_##S(T x) { return fabs##X(x); } \
  RL_FN T rl_div_##S(T x, T y) { return x / y; } \
  RL_FN T rl_remainder_##S(T x, T y) { return y == 0 ? (T)NAN : x - y * floor##X(x / y); } \
  RL_FN T rl_max_##S(T x, T y) { return x != x || x > y ? x : y; } \
  RL_FN T rl_min_##S(T x, T y) { return x != x || x < y ? x : y; } \
  RL_FN T rl_shl_##S(T x, T y) { return x * pow##X((T)2, y); } \
  RL_FN T rl_shr_##S(T x, T y) { return x / pow##X((T)2, y); }
RL_LIBM(f32, float, f)
RL_LIBM(f64, double, )
#define rl_K_f32(v) ((float)(v))
#define rl_K_f64(v) ((double)(v))

/* ---- integers ---- */
#define RL_INTS(S, T, U, MIN, BITS) \
  RL_FN T rl_abs_##S(T x) { return (T)(x < 0 ? -x : x); } \
  RL_FN T rl_floor_##S(T x) { return x; } \
  RL_FN T rl_ceil_##S(T x) { return x; } \
  RL_FN T rl_round_##S(T x) { return x; } \
  RL_FN T rl_trunc_##S(T x) { return x; } \
  RL_FN T rl_max_##S(T x, T y) { return x > y ? x : y; } \
  RL_FN T rl_min_##S(T x, T y) { return x < y ? x : y; } \
  RL_FN T rl_div_##S(T x, T y) { return y == 0 ? (T)0 : (MIN < 0 && y == (T)-1) ? (T)(0 - x) : (T)(x / y); } \
  RL_FN T rl_fmod_##S(T x, T y) { return y == 0 || (MIN < 0 && y == (T)-1) ? (T)0 : (T)(x % y); } \
  RL_FN T rl_remainder_##S(T x, T y) { \
    T r = rl_fmod_##S(x, y); \
    return (T)(r != 0 && ((r < 0) != (y < 0)) ? r + y : r); \
  } \
  RL_FN T rl_shl_##S(T x, T y) { return y < 0 || y >= (T)BITS ? (T)0 : (T)((U)x << y); } \
  RL_FN T rl_shr_##S(T x, T y) { return y < 0 || y >= (T)BITS ? (T)(x < 0 ? -1 : 0) : (T)(x >> y); } \
  RL_FN T rl_pow_##S(T x, T y) { \
    T r = 1; \
    if (y < 0) return (T)(x == 1 ? 1 : x == (T)-1 ? (y & 1 ? -1 : 1) : 0); \
    for (; y > 0; y >>= 1, x = (T)(x * x)) r = y & 1 ? (T)(r * x) : r; \
    return r; \
  }
RL_INTS(u8, uint8_t, uint8_t, 0, 8)
RL_INTS(i8, int8_t, uint8_t, -1, 8)
RL_INTS(i16, int16_t, uint16_t, -1, 16)
RL_INTS(i32, int32_t, uint32_t, -1, 32)
RL_INTS(i64, int64_t, uint64_t, -1, 64)
#define rl_K_u8(v) ((uint8_t)(v))
#define rl_K_i8(v) ((int8_t)(v))
#define rl_K_i16(v) ((int16_t)(v))
#define rl_K_i32(v) ((int32_t)(v))
#define rl_K_i64(v) ((int64_t)(v))

/* ---- random numbers: Philox4x32-10, rules in lib/tensor/random.h ---- */
typedef struct {
  uint32_t w[4];
} rl_words;
RL_FN rl_words rl_philox(uint64_t seed, uint64_t counter) {
  uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0, k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int i = 0; i < 10; i++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1, c3 = (uint32_t)p0, c0 = n0, c2 = n2;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  rl_words r = { { c0, c1, c2, c3 } };
  return r;
}
RL_FN uint32_t rl_word(uint64_t seed, uint64_t counter, int64_t i) {
  rl_words r = rl_philox(seed, counter + (uint64_t)i / 4);
  int l = (int)(i & 3);
  return l == 0 ? r.w[0] : l == 1 ? r.w[1] : l == 2 ? r.w[2] : r.w[3];
}
RL_FN float rl_unit_f32(uint32_t w) { return (float)(int32_t)(w >> 8) * 0x1p-24f; }
RL_FN double rl_unit_f64(uint32_t hi, uint32_t lo) { return (double)(int64_t)((((uint64_t)hi << 32) | lo) >> 11) * 0x1p-53; }
RL_FN float rl_rand_f32(uint64_t seed, uint64_t counter, int64_t i) { return rl_unit_f32(rl_word(seed, counter, i)); }
RL_FN double rl_rand_f64(uint64_t seed, uint64_t counter, int64_t i) {
  rl_words r = rl_philox(seed, counter + (uint64_t)i / 2);
  return i & 1 ? rl_unit_f64(r.w[2], r.w[3]) : rl_unit_f64(r.w[0], r.w[1]);
}
/* cos and sin of 2 pi u for u in [0, 1): the quarter turn is split off exactly, the rest is a polynomial (after Cephes). */
RL_FN float rl_turn_f32(float u, bool sine) {
  int32_t k = (int32_t)(u * 4.f + 0.5f);
  float t = (u - (float)k * 0.25f) * 6.283185307f, z = t * t;
  float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * t + t;
  float c = ((2.443315712e-5f * z - 1.388731625e-3f) * z + 4.166664568e-2f) * z * z - 0.5f * z + 1.f;
  k -= sine;
  float v = k & 1 ? s : c;
  return (k + 1) & 2 ? -v : v;
}
/* Box-Muller on uniforms u1 (0 moved to the smallest step) and u2. */
RL_FN float rl_randn_f32(uint64_t seed, uint64_t counter, int64_t i) {
  rl_words r = rl_philox(seed, counter + (uint64_t)i / 4);
  float u1 = 1.f - rl_unit_f32(i & 2 ? r.w[2] : r.w[0]), u2 = rl_unit_f32(i & 2 ? r.w[3] : r.w[1]);
  return sqrtf(-2.f * rl_log_f32(u1)) * rl_turn_f32(u2, i & 1);
}
RL_FN double rl_randn_f64(uint64_t seed, uint64_t counter, int64_t i) {
  uint64_t j = (uint64_t)i & ~(uint64_t)1;
  double u1 = 1. - rl_rand_f64(seed, counter, (int64_t)j), u2 = rl_rand_f64(seed, counter, (int64_t)j + 1);
  double m = sqrt(-2. * log(u1)), t = 6.28318530717958647692 * u2;
  return m * (i & 1 ? sin(t) : cos(t));
}
/* What one counter gives: four floats or two doubles. */
RL_FN void rl_rand_group(uint64_t seed, uint64_t counter, float *v) {
  rl_words r = rl_philox(seed, counter);
  for (int k = 0; k < 4; k++) v[k] = rl_unit_f32(r.w[k]);
}
RL_FN void rl_rand_group(uint64_t seed, uint64_t counter, double *v) {
  rl_words r = rl_philox(seed, counter);
  v[0] = rl_unit_f64(r.w[0], r.w[1]), v[1] = rl_unit_f64(r.w[2], r.w[3]);
}
RL_FN void rl_randn_group(uint64_t seed, uint64_t counter, float *v) {
  rl_words r = rl_philox(seed, counter);
  for (int k = 0; k < 4; k += 2) {
    float m = sqrtf(-2.f * rl_log_f32(1.f - rl_unit_f32(r.w[k]))), u = rl_unit_f32(r.w[k + 1]);
    v[k] = m * rl_turn_f32(u, false), v[k + 1] = m * rl_turn_f32(u, true);
  }
}
RL_FN void rl_randn_group(uint64_t seed, uint64_t counter, double *v) {
  v[0] = rl_randn_f64(seed, counter, 0), v[1] = rl_randn_f64(seed, counter, 1);
}
#endif
