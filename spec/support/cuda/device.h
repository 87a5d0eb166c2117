// What a CUDA compiler knows by itself, for g++: qualifiers, built-in variables, barriers, shuffles, atomics. Put in front of every kernel.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <utility>
#define __global__ __emu_global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __constant__ static const
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct emu_dim {
  unsigned x, y, z;
};
struct emu_state { // lives in the emulator
  emu_dim thread, block, block_dim, grid_dim;
  void (*barrier)();
  void (*warp_barrier)();
  uint64_t *slots; // one for each lane of this thread's warp
};
static emu_state *emu;
extern "C" void emu_bind(emu_state *s) { emu = s; }
#define threadIdx (emu->thread)
#define blockIdx (emu->block)
#define blockDim (emu->block_dim)
#define gridDim (emu->grid_dim)
#define warpSize 32

static inline void __syncthreads() { emu->barrier(); }
static inline void __syncwarp(unsigned = ~0u) { emu->warp_barrier(); }
static inline void __threadfence() {}
template <class T> static T emu_exchange(T v, int from) {
  static_assert(sizeof(T) <= 8, "shuffles move at most eight bytes");
  uint64_t w = 0;
  T r;
  memcpy(&w, &v, sizeof v);
  emu->slots[emu->thread.x & 31] = w;
  emu->warp_barrier();
  w = emu->slots[from & 31];
  memcpy(&r, &w, sizeof r);
  emu->warp_barrier();
  return r;
}
template <class T> static T __shfl_sync(unsigned, T v, int lane, int = 32) { return emu_exchange(v, lane); }
template <class T> static T __shfl_xor_sync(unsigned, T v, int m, int = 32) { return emu_exchange(v, (emu->thread.x & 31) ^ m); }
template <class T> static T __shfl_down_sync(unsigned, T v, unsigned d, int = 32) {
  int l = emu->thread.x & 31;
  return emu_exchange(v, l + (int)d < 32 ? l + (int)d : l);
}
template <class T> static T __shfl_up_sync(unsigned, T v, unsigned d, int = 32) {
  int l = emu->thread.x & 31;
  return emu_exchange(v, l - (int)d >= 0 ? l - (int)d : l);
}
static inline unsigned __ballot_sync(unsigned, int p) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (unsigned)(emu_exchange(p != 0, i) & 1) << i;
  return r;
}
template <class T> static T emu_swap(T *p, T v) {
  T old = *p;
  *p = v;
  return old;
}
template <class T, class U> static T atomicAdd(T *p, U v) { return emu_swap(p, (T)(*p + (T)v)); }
template <class T, class U> static T atomicMin(T *p, U v) { return emu_swap(p, (T)v < *p ? (T)v : *p); }
template <class T, class U> static T atomicMax(T *p, U v) { return emu_swap(p, (T)v > *p ? (T)v : *p); }
template <class T, class U> static T atomicOr(T *p, U v) { return emu_swap(p, (T)(*p | (T)v)); }
template <class T, class U> static T atomicExch(T *p, U v) { return emu_swap(p, (T)v); }
template <class T, class U, class V> static T atomicCAS(T *p, U c, V v) { return emu_swap(p, *p == (T)c ? (T)v : *p); }
template <class T> static T __ldg(const T *p) { return *p; }

static inline float __uint_as_float(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static inline uint32_t __float_as_uint(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}
static inline float __int_as_float(int i) { return __uint_as_float((uint32_t)i); }
static inline int __float_as_int(float f) { return (int)__float_as_uint(f); }
static inline long long __double_as_longlong(double f) {
  long long u;
  memcpy(&u, &f, 8);
  return u;
}
static inline double __longlong_as_double(long long u) {
  double f;
  memcpy(&f, &u, 8);
  return f;
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
static inline float4 make_float4(float x, float y, float z, float w) { return { x, y, z, w }; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return { x, y, z, w }; }

// Entries: emu_call_<name>(args) and emu_sizes_<name>(out) for a kernel with any parameters.
template <class... A, size_t... I> static void emu_apply(void (*f)(A...), void **a, std::index_sequence<I...>) {
  f(*(typename std::remove_const<A>::type *)a[I]...);
}
template <class... A> static void emu_apply(void (*f)(A...), void **a) { emu_apply(f, a, std::index_sequence_for<A...>()); }
template <class... A> static int emu_sizes(void (*)(A...), int *out) {
  int n = 0;
  (void)std::initializer_list<int>{ (out[n++] = (int)sizeof(A))... };
  return n;
}
