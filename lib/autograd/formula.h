/* Formula support: the few C names that generated formulas and gradients are written in. */
#ifndef RL_FORMULA_H
#define RL_FORMULA_H
#include <math.h>
#include <string.h>
#include "../tensor/op.h"

/* A list of sizes or dimensions, by value. */
typedef struct rl_ints {
  int n;
  int64_t v[RL_MAXDIM];
} rl_ints;

static inline rl_ints rl_ints_of(int n, const int64_t *v) {
  rl_ints l = { .n = RL_MIN(n, RL_MAXDIM) };
  memcpy(l.v, v, (size_t)l.n * sizeof *v);
  return l;
}
static inline rl_ints rl_ints_empty(void) { return (rl_ints){ .n = 0 }; }
static inline rl_ints rl_ints_join(rl_ints a, rl_ints b) {
  for (int i = 0; i < b.n && a.n < RL_MAXDIM; i++) a.v[a.n++] = b.v[i];
  return a;
}
static inline rl_ints rl_attr_ints(const rl_attrs *a, int j) { return rl_ints_of(a->nlist[j], a->list[j]); }
static inline void rl_attr_set_ints(rl_attrs *a, int j, rl_ints l) {
  a->nlist[j] = l.n;
  memcpy(a->list[j], l.v, (size_t)l.n * sizeof *l.v);
}
static inline rl_ints rl_sizes(const rl_tensor *t) { return rl_ints_of(t->ndim, t->size); }
static inline int64_t rl_dim(const rl_tensor *t, int64_t d) { return d < 0 ? d + t->ndim : d; }
static inline rl_ints rl_dims(const rl_tensor *t, rl_ints l) {
  for (int i = 0; i < l.n; i++) l.v[i] = rl_dim(t, l.v[i]);
  return l;
}
static inline int64_t rl_size(const rl_tensor *t, int64_t d) {
  d = rl_dim(t, d);
  return d >= 0 && d < t->ndim ? t->size[d] : 1;
}
static inline rl_ints rl_all_dims(const rl_tensor *t) {
  rl_ints l = { .n = t->ndim };
  for (int d = 0; d < l.n; d++) l.v[d] = d;
  return l;
}
static inline void rl_release_all(rl_tensor **t, int n) {
  for (int i = 0; i < n; i++) rl_tensor_release(t[i]);
}
#endif
