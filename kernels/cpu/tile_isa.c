/* Tile functions for one instruction set (RL_ISA): as many accumulators as its registers hold. */
#include "tile.h"
#include "loop.h" /* RL_CAT */

#include <string.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif

#define UPTO4(X, NV) X(NV, 1) X(NV, 2) X(NV, 3) X(NV, 4)
#define UPTO6(X, NV) UPTO4(X, NV) X(NV, 5) X(NV, 6)
#define UPTO8(X, NV) UPTO6(X, NV) X(NV, 7) X(NV, 8)
#define UPTO12(X, NV) UPTO8(X, NV) X(NV, 9) X(NV, 10) X(NV, 11) X(NV, 12)
#if defined(__AVX512F__) || defined(__aarch64__) /* 32 registers */
#define TILE_ROWS \
  { 0, 12, 12, 8, 6 }
#define TILES(X) UPTO12(X, 1) UPTO12(X, 2) UPTO8(X, 3) UPTO6(X, 4)
#else
#define TILE_ROWS \
  { 0, 12, 6, 4, 0 }
#define TILES(X) UPTO12(X, 1) UPTO6(X, 2) UPTO4(X, 3)
#endif

#define LANES2(F, s) F(0, s), F(1, s)
#define LANES4(F, s) LANES2(F, s), F(2, s), F(3, s)
#define LANES8(F, s) LANES4(F, s), F(4, s), F(5, s), F(6, s), F(7, s)
#define LANES16(F, s) LANES8(F, s), F(8, s), F(9, s), F(10, s), F(11, s), F(12, s), F(13, s), F(14, s), F(15, s)

static inline __attribute__((always_inline)) void copy(char *r, const char *x, int64_t n) {
#define TWICE(B) memcpy(r, x, B), memcpy(r + n - B, x + n - B, B)
  if (n > 128)
    for (; n > 128; n -= 64, r += 64, x += 64) memcpy(r, x, 64);
  if (n >= 64) TWICE(64);
  else if (n >= 32) TWICE(32);
  else if (n >= 16) TWICE(16);
  else if (n >= 8) TWICE(8);
  else memcpy(r, x, 4);
#undef TWICE
}
#define LAY(N) \
  for (int64_t i = 0; i < rows; i++, x += ldx, r += ldr) { \
    if (clear) memset(r, 0, (size_t)clear); \
    for (int k = 0; k < np; k++) copy(r + p[k].r, x + p[k].x, N); \
  }
static void lay(int64_t rows, const char *x, int64_t ldx, char *r, int64_t ldr, int np, const rl_piece *p, int64_t clear) {
  int64_t n = np ? p[0].n : 0;
  for (int k = 1; k < np; k++)
    if (p[k].n != n) n = 0;
  if (n == 16) LAY(16)
  else if (n == 32) LAY(32)
  else if (n == 64) LAY(64)
  else LAY(p[k].n)
}
#define LAY_STEP(S, T) \
  static void lay_##S(int64_t rows, const char *x, int64_t ldx, char *r, int64_t ldr, int np, const rl_piece *p, int64_t step, int64_t clear) { \
    if (step == 1) { \
      lay(rows, x, ldx, r, ldr, np, p, clear); \
      return; \
    } \
    for (int64_t i = 0; i < rows; i++, x += ldx, r += ldr) { \
      if (clear) memset(r, 0, (size_t)clear); \
      for (int k = 0; k < np; k++) { \
        const T *from = (const T *)(x + p[k].x); \
        T *to = (T *)(r + p[k].r); \
        for (int64_t j = 0, n = p[k].n / (int64_t)sizeof(T); j < n; j++) to[j] = from[j * step]; \
      } \
    } \
  }
LAY_STEP(f32, float)
LAY_STEP(f64, double)

typedef int32_t pick_f32 __attribute__((vector_size(BYTES)));
typedef int64_t pick_f64 __attribute__((vector_size(BYTES)));

#define T float
#define S f32
#if BYTES == 64
#define L 16
#define LANES LANES16
#elif BYTES == 32
#define L 8
#define LANES LANES8
#else
#define L 4
#define LANES LANES4
#endif
#include "tile_body.h"
#undef T
#undef S
#undef L
#undef LANES

#define T double
#define S f64
#if BYTES == 64
#define L 8
#define LANES LANES8
#elif BYTES == 32
#define L 4
#define LANES LANES4
#else
#define L 2
#define LANES LANES2
#endif
#include "tile_body.h"

const rl_tile_fns *const RL_CAT(rl_tile_table, RL_ISA)[2] = { &table_f32, &table_f64 };
