/* Loops: inner loops of elementwise and reduction kernels (generated per row and dtype) and the drivers that call them.
 * An inner loop gets byte strides and has two bodies: everything contiguous, or strided. Scalars (stride 0) come through a small
 * buffer that the driver fills, so that they use the contiguous body too. */
#ifndef RL_LOOP_H
#define RL_LOOP_H
#include "../../lib/tensor/op.h"
#include "prelude.h"

/* p[0] result, p[1..] inputs; s their byte strides. */
typedef void (*rl_ew_fn)(int64_t n, char *const *p, const int64_t *s, const rl_attrs *a);

/* A reduction: accumulators of acc_bytes each. inner folds n elements (stride s) into one; outer folds m rows (byte stride sm) of n
 * contiguous elements into n; merge folds n accumulators into n others. */
typedef struct rl_red_fns {
  int acc_bytes;
  void (*init)(int64_t n, void *acc);
  void (*inner)(int64_t n, const char *x, int64_t s, void *acc);
  void (*outer)(int64_t m, int64_t n, const char *x, int64_t sm, void *acc);
  void (*merge)(int64_t n, void *acc, const void *other);
  void (*store)(int64_t n, const void *acc, char *out, int64_t so);
} rl_red_fns;

#define RL_IVDEP _Pragma("GCC ivdep")
#define RL_CAT2(a, b) a##_##b
#define RL_CAT(a, b) RL_CAT2(a, b)

/* NAME(storage and load of each input, result and store, attribute declarations, expression) */
#define RL_EW1(NAME, S1, C1, L1, SR, ST, ATTRS, EXPR) \
  static void NAME(int64_t n, char *const *p, const int64_t *s, const rl_attrs *a) { \
    (void)a; \
    ATTRS \
    if (n == 1 || (s[0] == sizeof(SR) && s[1] == sizeof(S1))) { \
      SR *r = (SR *)p[0]; \
      const S1 *p1 = (const S1 *)p[1]; \
      RL_IVDEP for (int64_t i = 0; i < n; i++) { \
        const C1 x = L1(p1[i]); \
        r[i] = ST(EXPR); \
      } \
      return; \
    } \
    char *r = p[0]; \
    const char *p1 = p[1]; \
    const int64_t s0 = s[0], s1 = s[1]; \
    for (int64_t i = 0; i < n; i++, r += s0, p1 += s1) { \
      const C1 x = L1(*(const S1 *)p1); \
      *(SR *)r = ST(EXPR); \
    } \
  }
#define RL_EW2(NAME, S1, C1, L1, S2, C2, L2, SR, ST, ATTRS, EXPR) \
  static void NAME(int64_t n, char *const *p, const int64_t *s, const rl_attrs *a) { \
    (void)a; \
    ATTRS \
    if (n == 1 || (s[0] == sizeof(SR) && s[1] == sizeof(S1) && s[2] == sizeof(S2))) { \
      SR *r = (SR *)p[0]; \
      const S1 *p1 = (const S1 *)p[1]; \
      const S2 *p2 = (const S2 *)p[2]; \
      RL_IVDEP for (int64_t i = 0; i < n; i++) { \
        const C1 x = L1(p1[i]); \
        const C2 y = L2(p2[i]); \
        r[i] = ST(EXPR); \
      } \
      return; \
    } \
    char *r = p[0]; \
    const char *p1 = p[1], *p2 = p[2]; \
    const int64_t s0 = s[0], s1 = s[1], s2 = s[2]; \
    for (int64_t i = 0; i < n; i++, r += s0, p1 += s1, p2 += s2) { \
      const C1 x = L1(*(const S1 *)p1); \
      const C2 y = L2(*(const S2 *)p2); \
      *(SR *)r = ST(EXPR); \
    } \
  }
#define RL_EW3(NAME, S1, C1, L1, S2, C2, L2, S3, C3, L3, SR, ST, ATTRS, EXPR) \
  static void NAME(int64_t n, char *const *p, const int64_t *s, const rl_attrs *a) { \
    (void)a; \
    ATTRS \
    if (n == 1 || (s[0] == sizeof(SR) && s[1] == sizeof(S1) && s[2] == sizeof(S2) && s[3] == sizeof(S3))) { \
      SR *r = (SR *)p[0]; \
      const S1 *p1 = (const S1 *)p[1]; \
      const S2 *p2 = (const S2 *)p[2]; \
      const S3 *p3 = (const S3 *)p[3]; \
      RL_IVDEP for (int64_t i = 0; i < n; i++) { \
        const C1 x = L1(p1[i]); \
        const C2 y = L2(p2[i]); \
        const C3 z = L3(p3[i]); \
        r[i] = ST(EXPR); \
      } \
      return; \
    } \
    char *r = p[0]; \
    const char *p1 = p[1], *p2 = p[2], *p3 = p[3]; \
    const int64_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3]; \
    for (int64_t i = 0; i < n; i++, r += s0, p1 += s1, p2 += s2, p3 += s3) { \
      const C1 x = L1(*(const S1 *)p1); \
      const C2 y = L2(*(const S2 *)p2); \
      const C3 z = L3(*(const S3 *)p3); \
      *(SR *)r = ST(EXPR); \
    } \
  }
#define RL_EW4(NAME, S1, C1, L1, S2, C2, L2, S3, C3, L3, S4, C4, L4, SR, ST, ATTRS, EXPR) \
  static void NAME(int64_t n, char *const *p, const int64_t *s, const rl_attrs *a) { \
    (void)a; \
    ATTRS \
    if (n == 1 || (s[0] == sizeof(SR) && s[1] == sizeof(S1) && s[2] == sizeof(S2) && s[3] == sizeof(S3) && s[4] == sizeof(S4))) { \
      SR *r = (SR *)p[0]; \
      const S1 *p1 = (const S1 *)p[1]; \
      const S2 *p2 = (const S2 *)p[2]; \
      const S3 *p3 = (const S3 *)p[3]; \
      const S4 *p4 = (const S4 *)p[4]; \
      RL_IVDEP for (int64_t i = 0; i < n; i++) { \
        const C1 x = L1(p1[i]); \
        const C2 y = L2(p2[i]); \
        const C3 z = L3(p3[i]); \
        const C4 w = L4(p4[i]); \
        r[i] = ST(EXPR); \
      } \
      return; \
    } \
    char *r = p[0]; \
    const char *p1 = p[1], *p2 = p[2], *p3 = p[3], *p4 = p[4]; \
    for (int64_t i = 0; i < n; i++, r += s[0], p1 += s[1], p2 += s[2], p3 += s[3], p4 += s[4]) { \
      const C1 x = L1(*(const S1 *)p1); \
      const C2 y = L2(*(const S2 *)p2); \
      const C3 z = L3(*(const S3 *)p3); \
      const C4 w = L4(*(const S4 *)p4); \
      *(SR *)r = ST(EXPR); \
    } \
  }

/* Reductions. S storage, C compute, A accumulator type; COMBC folds x into a in C, COMBA in A. Blocks of 32 rows (outer) or 64 lanes
 * (inner) are folded in C and then into A, so float sums keep double's accuracy at float's speed; the order depends on sizes alone. */
#define RL_RED(NAME, S, C, A, L, ST, INITC, INITA, COMBC, COMBA) \
  static void NAME##_init(int64_t n, void *acc) { \
    for (int64_t i = 0; i < n; i++) ((A *)acc)[i] = INITA; \
  } \
  static inline A NAME##_comb(A a, A x) { return (A)(COMBA); } \
  static void NAME##_inner(int64_t n, const char *px, int64_t s, void *acc) { \
    A total = *(A *)acc; \
    if (s == sizeof(S)) { \
      const S *p = (const S *)px; \
      int64_t i = 0; \
      while (n - i >= 64) { \
        C lane[64]; \
        int64_t rows = (n - i) / 64; \
        rows = rows > 32 ? 32 : rows; \
        for (int k = 0; k < 64; k++) lane[k] = L(p[i + k]); \
        for (int64_t j = 1; j < rows; j++) RL_IVDEP for (int k = 0; k < 64; k++) { \
            const C a = lane[k], x = L(p[i + j * 64 + k]); \
            lane[k] = (C)(COMBC); \
          } \
        for (int h = 32; h >= 8; h >>= 1) RL_IVDEP for (int k = 0; k < h; k++) { \
            const C a = lane[k], x = lane[k + h]; \
            lane[k] = (C)(COMBC); \
          } \
        for (int k = 0; k < 8; k++) total = NAME##_comb(total, (A)lane[k]); \
        i += rows * 64; \
      } \
      for (; i < n; i++) total = NAME##_comb(total, (A)L(p[i])); \
    } else \
      for (int64_t i = 0; i < n; i++) total = NAME##_comb(total, (A)L(*(const S *)(px + i * s))); \
    *(A *)acc = total; \
  } \
  static void NAME##_outer(int64_t m, int64_t n, const char *px, int64_t sm, void *acc) { \
    A *t = (A *)acc; \
    C row[512]; \
    for (int64_t i = 0; i < m; i += 32) { \
      int64_t e = i + 32 < m ? i + 32 : m; \
      const S *p = (const S *)(px + i * sm); \
      for (int64_t k = 0; k < n; k++) row[k] = L(p[k]); \
      for (int64_t j = i + 1; j < e; j++) { \
        const S *q = (const S *)(px + j * sm); \
        RL_IVDEP for (int64_t k = 0; k < n; k++) { \
          const C a = row[k], x = L(q[k]); \
          row[k] = (C)(COMBC); \
        } \
      } \
      RL_IVDEP for (int64_t k = 0; k < n; k++) t[k] = NAME##_comb(t[k], (A)row[k]); \
    } \
  } \
  static void NAME##_merge(int64_t n, void *acc, const void *o) { \
    for (int64_t i = 0; i < n; i++) ((A *)acc)[i] = NAME##_comb(((A *)acc)[i], ((const A *)o)[i]); \
  } \
  static void NAME##_store(int64_t n, const void *acc, char *out, int64_t so) { \
    for (int64_t i = 0; i < n; i++) *(S *)(out + i * so) = ST((C)((const A *)acc)[i]); \
  }
#define RL_RED_FNS(NAME, A) \
  { sizeof(A), NAME##_init, NAME##_inner, NAME##_outer, NAME##_merge, NAME##_store }
#endif
