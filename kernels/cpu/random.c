/* Random draws: counter-based, so any piece of the result can be drawn by any thread (rules in lib/tensor/random.h). */
#include <math.h>
#include "walk.h"
#include "rows.h"
#include "../../lib/tensor/random.h"

/* The original's draws: one after the other, in double. */
static rl_status drawn_in_order(rl_mt19937 *g, rl_dtype dt, void *p, int64_t n, bool normal) {
#define FILL(S, C, LD, ST) \
  for (int64_t i = 0; i < n; i++) ((S *)p)[i] = ST((C)(normal ? rl_mt_normal(g) : rl_mt_uniform(g)));
  BY_DTYPE(dt, FILL)
#undef FILL
  return RL_OK;
}

/* Draws into a contiguous result; a strided one goes through a copy. */
static rl_status drawn(rl_tensor *r, bool normal) {
  rl_generator *g = rl_generator_default();
  uint64_t seed = g->seed, c = g->counter;
  int64_t n = rl_numel(r);
  if (n == 0) return RL_OK;
  if (!rl_is_contiguous(r)) {
    rl_tensor *t = rl_tensor_empty(r->dtype, RL_CPU, r->ndim, r->size);
    if (!t) return RL_OOM;
    rl_status s = drawn(t, normal);
    if (s == RL_OK) s = rl_move(r, t);
    rl_tensor_release(t);
    return s;
  }
  char *p = rl_data(r);
  if (g->kind == RL_GEN_MT19937) return drawn_in_order(&g->mt, r->dtype, p, n, normal);
  int bytes = esize(r);
  void (*draw)(int64_t, int64_t, void *, uint64_t, uint64_t) = rl_rows()->draw[normal][r->dtype];
  if (!draw) return rl_error("[rand] needs a float type; got %s", rl_dtypes[r->dtype].name);
#pragma omp parallel for schedule(static) if (n >= 16384)
  for (int64_t i = 0; i < n; i += 4096) draw(i, RL_MIN(4096, n - i), p + i * bytes, seed, c);
  return RL_OK;
}
RL_KERNEL(rand) {
  RL_KERNEL_UNUSED;
  return drawn(out[0], false);
}
RL_KERNEL(randn) {
  RL_KERNEL_UNUSED;
  return drawn(out[0], true);
}

/* Fisher-Yates: position i swaps with one drawn from i .. n-1 by word i (mt19937: by the remainder of the next word, the last position draws none). */
static int64_t swap_with(rl_generator *g, int64_t i, int64_t n) {
  if (g->kind == RL_GEN_MT19937) return i + 1 < n ? i + rl_mt_word(&g->mt) % (n - i) : i;
  return i + (int64_t)(((uint64_t)rl_word(g->seed, g->counter, i) * (uint64_t)(n - i)) >> 32);
}
RL_KERNEL(randperm) {
  RL_KERNEL_UNUSED;
  rl_generator *g = rl_generator_default();
  int64_t n = rl_numel(out[0]), st = out[0]->stride[0];
  int64_t *v = rl_alloc((size_t)RL_MAX(1, n) * 8);
  if (!v) return RL_OOM;
  for (int64_t i = 0; i < n; i++) v[i] = i;
  for (int64_t i = 0; i < n; i++) {
    int64_t j = swap_with(g, i, n), t = v[i];
    v[i] = v[j], v[j] = t;
  }
#define PUT(S, C, LD, ST) \
  for (int64_t i = 0; i < n; i++) ((S *)rl_data(out[0]))[i * st] = ST((C)v[i]);
  BY_DTYPE(out[0]->dtype, PUT)
#undef PUT
  rl_free(v, (size_t)RL_MAX(1, n) * 8);
  return RL_OK;
}

/* One row with replacement: w becomes its running sum, which each draw searches. */
static rl_status draw_again(double *w, int64_t n, int64_t k, uint64_t at, int64_t *r, int64_t sr) {
  rl_generator *g = rl_generator_default();
  int64_t last = -1;
  double total = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!(w[i] >= 0) || isinf(w[i]))
      return rl_error("[multinomial] weights must be finite and not negative; got %g at element %lld", w[i], (long long)i + 1);
    if (w[i] > 0) last = i;
    w[i] = total += w[i];
  }
  if (!(total > 0)) return rl_error("[multinomial] too few positive weights; got 0, need %lld", (long long)k);
  for (int64_t j = 0; j < k; j++) {
    double goal = rl_unit_f32(rl_word(g->seed, g->counter, (int64_t)at + j)) * total;
    int64_t lo = 0, hi = last; /* the first sum above goal */
    while (lo < hi) {
      int64_t mid = lo + (hi - lo) / 2;
      if (w[mid] > goal) hi = mid;
      else lo = mid + 1;
    }
    r[j * sr] = lo;
  }
  return RL_OK;
}

/* One row as the original draws it: the running sum is scaled to end at 1; a class drawn without replacement is cut out of it and the rest scaled to 1. */
static rl_status draw_original(rl_mt19937 *g, double *w, int64_t n, int64_t k, bool again, int64_t *r, int64_t sr) {
  double total = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!(w[i] >= 0) || isinf(w[i]))
      return rl_error("[multinomial] weights must be finite and not negative; got %g at element %lld", w[i], (long long)i + 1);
    w[i] = total += w[i];
  }
  if (!(total > 0)) return rl_error("[multinomial] too few positive weights; got 0, need %lld", (long long)k);
  for (int64_t i = 0; i < n; i++) w[i] /= total;
  for (int64_t j = 0; j < k; j++) {
    double goal = rl_mt_uniform(g);
    int64_t lo = 0, hi = n;
    w[n - 1] = 1;
    while (lo < hi) {
      int64_t mid = lo + (hi - lo) / 2;
      if (w[mid] < goal) lo = mid + 1;
      else hi = mid;
    }
    r[j * sr] = lo;
    if (again) continue;
    double mass = w[lo] - (lo ? w[lo - 1] : 0), left = 1.0 - mass;
    for (int64_t i = 0; i < n; i++) w[i] = (i >= lo ? w[i] - mass : w[i]) / left;
  }
  return RL_OK;
}

/* One row: inverse of the running sum; without replacement the drawn weight is taken out. */
static rl_status draw_row(double *w, int64_t n, int64_t k, bool again, uint64_t at, int64_t *r, int64_t sr) {
  rl_generator *g = rl_generator_default();
  if (g->kind == RL_GEN_MT19937) return draw_original(&g->mt, w, n, k, again, r, sr);
  if (again) return draw_again(w, n, k, at, r, sr);
  for (int64_t j = 0; j < k; j++) {
    double total = 0, u = rl_unit_f32(rl_word(g->seed, g->counter, (int64_t)at + j));
    int64_t pick = -1;
    for (int64_t i = 0; i < n; i++) {
      if (!(w[i] >= 0) || isinf(w[i]))
        return rl_error("[multinomial] weights must be finite and not negative; got %g at element %lld", w[i], (long long)i + 1);
      total += w[i];
    }
    if (!(total > 0)) return rl_error("[multinomial] too few positive weights; got %lld, need %lld", (long long)j, (long long)k);
    double goal = u * total, sum = 0;
    for (int64_t i = 0; i < n; i++) {
      sum += w[i];
      if (w[i] > 0) pick = i;
      if (sum > goal && w[i] > 0) break;
    }
    r[j * sr] = pick;
    w[pick] = 0;
  }
  return RL_OK;
}
RL_KERNEL(multinomial) {
  RL_KERNEL_UNUSED;
  const rl_tensor *p = in[0];
  int64_t rows = p->ndim == 2 ? p->size[0] : 1, n = p->size[p->ndim - 1], k = a->v[0].i;
  double *w = rl_alloc((size_t)RL_MAX(1, n) * 8);
  if (!w) return RL_OOM;
  rl_status s = RL_OK;
  for (int64_t i = 0; i < rows && s == RL_OK; i++) {
    int64_t off = p->ndim == 2 ? i * p->stride[0] : 0, st = p->stride[p->ndim - 1];
#define GET(S, C, LD, ST) \
  for (int64_t j = 0; j < n; j++) w[j] = (double)LD(((S *)rl_data(p))[off + j * st]);
    BY_DTYPE(p->dtype, GET)
#undef GET
    s = draw_row(w, n, k, a->v[1].i, (uint64_t)(i * k), (int64_t *)rl_data(out[0]) + (p->ndim == 2 ? i * out[0]->stride[0] : 0),
                 out[0]->stride[out[0]->ndim - 1]);
  }
  rl_free(w, (size_t)RL_MAX(1, n) * 8);
  return s;
}
