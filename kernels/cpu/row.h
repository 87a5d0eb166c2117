/* Rows of random numbers: rl_rand_row_f32 writes n neighbouring elements of a draw, four from each Philox counter.
 * Same numbers as rl_rand_f32, element by element; generated code fills row buffers with it. */
#ifndef RL_ROW_H
#define RL_ROW_H
#include "prelude.h"
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { RL_ROW_LANES = 16 };
#define RL_ROW_MUL(A, M, HI, LO) \
  do { \
    __m512i e_ = _mm512_mul_epu32(A, M), o_ = _mm512_mul_epu32(_mm512_srli_epi64(A, 32), M); \
    HI = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(e_, 32), o_); \
    LO = _mm512_mask_blend_epi32(0xAAAA, e_, _mm512_slli_epi64(o_, 32)); \
  } while (0)
/* Words of 16 counters from c on; the low half must not wrap among them. */
RL_FN void rl_row_words(uint64_t seed, uint64_t c, uint32_t (*w)[16]) {
  __m512i c0 = _mm512_add_epi32(_mm512_set1_epi32((int)(uint32_t)c), _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  __m512i c1 = _mm512_set1_epi32((int)(uint32_t)(c >> 32)), c2 = _mm512_setzero_si512(), c3 = c2;
  __m512i a = _mm512_set1_epi64(0xD2511F53), b = _mm512_set1_epi64(0xCD9E8D57);
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int i = 0; i < 10; i++) {
    __m512i h0, l0, h1, l1;
    RL_ROW_MUL(c0, a, h0, l0);
    RL_ROW_MUL(c2, b, h1, l1);
    c0 = _mm512_ternarylogic_epi32(h1, c1, _mm512_set1_epi32((int)k0), 0x96);
    c2 = _mm512_ternarylogic_epi32(h0, c3, _mm512_set1_epi32((int)k1), 0x96);
    c1 = l1, c3 = l0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  _mm512_storeu_si512(w[0], c0), _mm512_storeu_si512(w[1], c1), _mm512_storeu_si512(w[2], c2), _mm512_storeu_si512(w[3], c3);
}
#elif defined(__AVX2__)
enum { RL_ROW_LANES = 8 };
#define RL_ROW_MUL(A, M, HI, LO) \
  do { \
    __m256i e_ = _mm256_mul_epu32(A, M), o_ = _mm256_mul_epu32(_mm256_srli_epi64(A, 32), M); \
    HI = _mm256_blend_epi32(_mm256_srli_epi64(e_, 32), o_, 0xAA); \
    LO = _mm256_blend_epi32(e_, _mm256_slli_epi64(o_, 32), 0xAA); \
  } while (0)
RL_FN void rl_row_words(uint64_t seed, uint64_t c, uint32_t (*w)[16]) {
  __m256i c0 = _mm256_add_epi32(_mm256_set1_epi32((int)(uint32_t)c), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
  __m256i c1 = _mm256_set1_epi32((int)(uint32_t)(c >> 32)), c2 = _mm256_setzero_si256(), c3 = c2;
  __m256i a = _mm256_set1_epi64x(0xD2511F53), b = _mm256_set1_epi64x(0xCD9E8D57);
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int i = 0; i < 10; i++) {
    __m256i h0, l0, h1, l1;
    RL_ROW_MUL(c0, a, h0, l0);
    RL_ROW_MUL(c2, b, h1, l1);
    c0 = _mm256_xor_si256(_mm256_xor_si256(h1, c1), _mm256_set1_epi32((int)k0));
    c2 = _mm256_xor_si256(_mm256_xor_si256(h0, c3), _mm256_set1_epi32((int)k1));
    c1 = l1, c3 = l0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  _mm256_storeu_si256((__m256i *)w[0], c0), _mm256_storeu_si256((__m256i *)w[1], c1);
  _mm256_storeu_si256((__m256i *)w[2], c2), _mm256_storeu_si256((__m256i *)w[3], c3);
}
#else
enum { RL_ROW_LANES = 4 };
RL_FN void rl_row_words(uint64_t seed, uint64_t c, uint32_t (*w)[16]) {
  for (int j = 0; j < RL_ROW_LANES; j++) {
    rl_words r = rl_philox(seed, c + (uint64_t)j);
    for (int l = 0; l < 4; l++) w[l][j] = r.w[l];
  }
}
#endif

/* Elements i .. i + n - 1 of the draw at counter. */
RL_FN void rl_rand_row_f32(float *restrict out, uint64_t seed, uint64_t counter, int64_t i, int64_t n) {
  int64_t at = 0;
  uint32_t w[4][16];
  for (; at < n && ((i + at) & 3); at++) out[at] = rl_rand_f32(seed, counter, i + at);
  while (n - at >= 4 * RL_ROW_LANES) {
    uint64_t c = counter + (uint64_t)(i + at) / 4;
    if ((uint32_t)c > 0xffffffffu - RL_ROW_LANES) break;
    rl_row_words(seed, c, w);
    float *o = out + at;
    for (int j = 0; j < RL_ROW_LANES; j++) {
      o[4 * j] = rl_unit_f32(w[0][j]), o[4 * j + 1] = rl_unit_f32(w[1][j]);
      o[4 * j + 2] = rl_unit_f32(w[2][j]), o[4 * j + 3] = rl_unit_f32(w[3][j]);
    }
    at += 4 * RL_ROW_LANES;
  }
  for (; at < n; at++) out[at] = rl_rand_f32(seed, counter, i + at);
}

/* The same for normal draws: two uniforms give two neighbours. */
RL_FN void rl_randn_row_f32(float *restrict out, uint64_t seed, uint64_t counter, int64_t i, int64_t n) {
  int64_t at = 0;
  uint32_t w[4][16];
  float o[4][16];
  for (; at < n && ((i + at) & 3); at++) out[at] = rl_randn_f32(seed, counter, i + at);
  while (n - at >= 4 * RL_ROW_LANES) {
    uint64_t c = counter + (uint64_t)(i + at) / 4;
    if ((uint32_t)c > 0xffffffffu - RL_ROW_LANES) break;
    rl_row_words(seed, c, w);
    for (int p = 0; p < 4; p += 2)
      for (int j = 0; j < RL_ROW_LANES; j++) {
        float m = sqrtf(-2.f * rl_log_f32(1.f - rl_unit_f32(w[p][j]))), u = rl_unit_f32(w[p + 1][j]);
        o[p][j] = m * rl_turn_f32(u, false), o[p + 1][j] = m * rl_turn_f32(u, true);
      }
    float *q = out + at;
    for (int j = 0; j < RL_ROW_LANES; j++) q[4 * j] = o[0][j], q[4 * j + 1] = o[1][j], q[4 * j + 2] = o[2][j], q[4 * j + 3] = o[3][j];
    at += 4 * RL_ROW_LANES;
  }
  for (; at < n; at++) out[at] = rl_randn_f32(seed, counter, i + at);
}
/* Doubles: one counter gives two uniforms, or two normals. Runs of 64 counters. */
RL_FN void rl_rand_row_f64(double *restrict out, uint64_t seed, uint64_t counter, int64_t i, int64_t n) {
  int64_t at = 0;
  uint32_t w[4][16];
  if (n > 0 && (i & 1)) out[at++] = rl_rand_f64(seed, counter, i);
  while (n - at >= 2 * RL_ROW_LANES) {
    uint64_t c = counter + (uint64_t)(i + at) / 2;
    if ((uint32_t)c > 0xffffffffu - RL_ROW_LANES) break;
    rl_row_words(seed, c, w);
    for (int j = 0; j < RL_ROW_LANES; j++) out[at + 2 * j] = rl_unit_f64(w[0][j], w[1][j]), out[at + 2 * j + 1] = rl_unit_f64(w[2][j], w[3][j]);
    at += 2 * RL_ROW_LANES;
  }
  for (; at < n; at++) out[at] = rl_rand_f64(seed, counter, i + at);
}
RL_FN void rl_randn_row_f64(double *restrict out, uint64_t seed, uint64_t counter, int64_t i, int64_t n) {
  double u[128], v[128];
  int64_t at = 0;
  if (n > 0 && (i & 1)) out[at++] = rl_randn_f64(seed, counter, i);
  while (n - at >= 2) {
    int64_t m = n - at < 128 ? (n - at) / 2 * 2 : 128, h = m / 2;
    rl_rand_row_f64(u, seed, counter, i + at, m);
    for (int64_t j = 0; j < h; j++) v[j] = sqrt(-2. * log(1. - u[2 * j])), v[64 + j] = 6.28318530717958647692 * u[2 * j + 1];
    for (int64_t j = 0; j < h; j++) u[j] = v[j] * cos(v[64 + j]), u[64 + j] = v[j] * sin(v[64 + j]);
    for (int64_t j = 0; j < h; j++) out[at + 2 * j] = u[j], out[at + 2 * j + 1] = u[64 + j];
    at += m;
  }
  if (at < n) out[at] = rl_randn_f64(seed, counter, i + at);
}
#endif
