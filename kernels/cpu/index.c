/* Indexing: gather, scatter and the index family, with every position checked before it is used. */
#include "walk.h"

static rl_status bad_index(rl_op op, int64_t i, int64_t at, int64_t n) {
  return rl_error("[%s] index out of range; got %lld at element %lld, need 1 to %lld", rl_ops[op].name, (long long)i + 1, (long long)at + 1,
                  (long long)n);
}
/* Checks every element of idx against [0, n). */
static rl_status check_index(rl_op op, const rl_tensor *idx, int64_t n) {
  if (!rl_numel(idx)) return RL_OK;
  const rl_tensor *t[] = { idx };
  const int64_t *p = rl_data(idx);
  int64_t at = 0;
  if (rl_is_contiguous(idx)) {
    int64_t m = rl_numel(idx);
    uint64_t bad = 0;
    for (int64_t i = 0; i < m; i++) bad |= (uint64_t)p[i] >= (uint64_t)n;
    if (!bad) return RL_OK;
  }
  for (walk w = walk_start(idx, -1, 1, t); !w.done; walk_next(&w), at++)
    if ((uint64_t)p[w.off[0]] >= (uint64_t)n) return bad_index(op, p[w.off[0]], at, n);
  return RL_OK;
}
/* The content that indexed elements go over; a plan leaves it out where it is 0 everywhere. */
static rl_status lay_base(rl_tensor *out, const rl_tensor *base) { return base ? rl_move(out, base) : rl_move_zero(out); }
static int64_t dim_size(const rl_tensor *t, int d) { return t->ndim ? t->size[d] : 1; }
static int64_t dim_stride(const rl_tensor *t, int d) { return t->ndim ? t->stride[d] : 0; }

RL_KERNEL(gather) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  const rl_tensor *x = in[0], *idx = in[1], *t[] = { out[0], x, idx };
  RL_TRY(check_index(op, idx, dim_size(x, dim)));
  if (!rl_numel(idx)) return RL_OK;
  int64_t n = dim_size(idx, dim), so = dim_stride(out[0], dim), sx = dim_stride(x, dim), si = dim_stride(idx, dim);
  void *d = rl_data(out[0]);
  const void *s = rl_data(x);
  const int64_t *p = rl_data(idx);
  walk w = walk_start(idx, idx->ndim ? dim : -1, 3, t);
#define G(T) \
  for (; !w.done; walk_next(&w)) \
    for (int64_t i = 0; i < n; i++) ((T *)d)[w.off[0] + i * so] = ((const T *)s)[w.off[1] + p[w.off[2] + i * si] * sx];
  BY_BYTES(esize(x), G)
#undef G
  return RL_OK;
}

RL_KERNEL(scatter) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  const rl_tensor *idx = in[1], *src = in[2], *t[] = { out[0], src, idx };
  RL_TRY(check_index(op, idx, dim_size(out[0], dim)));
  RL_TRY(lay_base(out[0], in[0]));
  if (!rl_numel(idx)) return RL_OK;
  int64_t n = dim_size(idx, dim), so = dim_stride(out[0], dim), ss = dim_stride(src, dim), si = dim_stride(idx, dim);
  void *d = rl_data(out[0]);
  const void *s = rl_data(src);
  const int64_t *p = rl_data(idx);
  walk w = walk_start(idx, idx->ndim ? dim : -1, 3, t);
#define S(T) \
  for (; !w.done; walk_next(&w)) \
    for (int64_t i = 0; i < n; i++) ((T *)d)[w.off[0] + p[w.off[2] + i * si] * so] = ((const T *)s)[w.off[1] + i * ss];
  BY_BYTES(esize(src), S)
#undef S
  return RL_OK;
}

RL_KERNEL(scatter_add) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  const rl_tensor *idx = in[1], *src = in[2], *t[] = { out[0], src, idx };
  RL_TRY(check_index(op, idx, dim_size(out[0], dim)));
  RL_TRY(lay_base(out[0], in[0]));
  if (!rl_numel(idx)) return RL_OK;
  int64_t n = dim_size(idx, dim), so = dim_stride(out[0], dim), ss = dim_stride(src, dim), si = dim_stride(idx, dim);
  void *d = rl_data(out[0]);
  const void *s = rl_data(src);
  const int64_t *p = rl_data(idx);
  walk w = walk_start(idx, idx->ndim ? dim : -1, 3, t);
#define A(S, C, LD, ST) \
  for (; !w.done; walk_next(&w)) \
    for (int64_t i = 0; i < n; i++) { \
      S *e = (S *)d + w.off[0] + p[w.off[2] + i * si] * so; \
      *e = ST((C)(LD(*e) + LD(((const S *)s)[w.off[1] + i * ss]))); \
    }
  BY_DTYPE(src->dtype, A)
#undef A
  return RL_OK;
}

/* Header of one slice of t along dim. */
static rl_tensor slice_at(const rl_tensor *t, int dim, int64_t i) {
  rl_tensor s = *t;
  if (t->ndim == 0) return s;
  s.offset += i * t->stride[dim];
  for (int d = dim; d + 1 < t->ndim; d++) s.size[d] = t->size[d + 1], s.stride[d] = t->stride[d + 1];
  s.ndim--;
  return s;
}
static int64_t index_at(const rl_tensor *idx, int64_t i) { return ((const int64_t *)rl_data(idx))[i * (idx->ndim ? idx->stride[0] : 0)]; }

/* Rows of a contiguous matrix: one memcpy each. */
static bool rows_fast(const rl_tensor *x, const rl_tensor *r, int dim) {
  return dim == 0 && x->ndim >= 1 && rl_is_contiguous(x) && rl_is_contiguous(r);
}

RL_KERNEL(index_select) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  const rl_tensor *x = in[0], *idx = in[1];
  int64_t n = rl_numel(idx);
  RL_TRY(check_index(op, idx, dim_size(x, dim)));
  if (!rl_numel(out[0])) return RL_OK;
  if (rows_fast(x, out[0], dim)) {
    int64_t row = numel_but(x, 0) * esize(x);
#pragma omp parallel for if (n * row > (1 << 18))
    for (int64_t i = 0; i < n; i++) memcpy((char *)rl_data(out[0]) + i * row, (char *)rl_data(x) + index_at(idx, i) * row, (size_t)row);
    return RL_OK;
  }
  for (int64_t i = 0; i < n; i++) {
    rl_tensor d = slice_at(out[0], dim, i), s = slice_at(x, dim, index_at(idx, i));
    RL_TRY(rl_move(&d, &s));
  }
  return RL_OK;
}

RL_KERNEL(index_copy) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  int64_t n = rl_numel(in[1]);
  RL_TRY(check_index(op, in[1], dim_size(out[0], dim)));
  RL_TRY(lay_base(out[0], in[0]));
  for (int64_t i = 0; i < n; i++) {
    rl_tensor d = slice_at(out[0], dim, index_at(in[1], i)), s = slice_at(in[2], dim, i);
    RL_TRY(rl_move(&d, &s));
  }
  return RL_OK;
}

static void add_slice(rl_tensor *d, const rl_tensor *s) {
  if (!rl_numel(d)) return;
  const rl_tensor *t[] = { d, s };
  int last = d->ndim - 1;
  int64_t n = last < 0 ? 1 : d->size[last], sd = last < 0 ? 1 : d->stride[last], ss = last < 0 ? 1 : s->stride[last];
  void *pd = rl_data(d);
  const void *ps = rl_data(s);
  walk w = walk_start(d, last, 2, t);
#define ADD(S, C, LD, ST) \
  for (; !w.done; walk_next(&w)) { \
    S *e = (S *)pd + w.off[0]; \
    const S *f = (const S *)ps + w.off[1]; \
    if (sd == 1 && ss == 1) \
      for (int64_t i = 0; i < n; i++) e[i] = ST((C)(LD(e[i]) + LD(f[i]))); \
    else \
      for (int64_t i = 0; i < n; i++) e[i * sd] = ST((C)(LD(e[i * sd]) + LD(f[i * ss]))); \
  }
  BY_DTYPE(d->dtype, ADD)
#undef ADD
}

enum { ADD_PARTS = 16, ADD_SHARED = 1 << 17 };

/* Rows lo..hi of the contiguous result d take theirs from src, in the order of the indices. */
static void add_rows(rl_tensor *d, const rl_tensor *idx, const rl_tensor *src, int64_t lo, int64_t hi) {
  int64_t n = rl_numel(idx), row = numel_but(d, 0);
  void *pd = rl_data(d);
  const void *ps = rl_data(src);
#define ADD(S, C, LD, ST) \
  for (int64_t i = 0; i < n; i++) { \
    int64_t at = index_at(idx, i); \
    if (at < lo || at >= hi) continue; \
    S *e = (S *)pd + at * row; \
    const S *f = (const S *)ps + i * row; \
    for (int64_t k = 0; k < row; k++) e[k] = ST((C)(LD(e[k]) + LD(f[k]))); \
  }
  BY_DTYPE(d->dtype, ADD)
#undef ADD
}

/* Parts of the result, each by one thread: no sum depends on how many there are. */
static void index_add_rows(rl_tensor *d, bool clear, const rl_tensor *idx, const rl_tensor *src) {
  int64_t rows = d->size[0], row = numel_but(d, 0);
  bool shared = (clear ? rows : rl_numel(idx)) * row > ADD_SHARED;
#pragma omp parallel for schedule(static) if (shared)
  for (int p = 0; p < (shared ? ADD_PARTS : 1); p++) {
    int64_t lo = shared ? rows * p / ADD_PARTS : 0, hi = shared ? rows * (p + 1) / ADD_PARTS : rows;
    if (clear) memset((char *)rl_data(d) + lo * row * esize(d), 0, (size_t)((hi - lo) * row * esize(d)));
    add_rows(d, idx, src, lo, hi);
  }
}

RL_KERNEL(index_add) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  int64_t n = rl_numel(in[1]);
  RL_TRY(check_index(op, in[1], dim_size(out[0], dim)));
  bool rows = rows_fast(out[0], in[2], dim) && rl_numel(out[0]);
  if (!rows || in[0]) RL_TRY(lay_base(out[0], in[0]));
  if (rows) {
    index_add_rows(out[0], !in[0], in[1], in[2]);
    return RL_OK;
  }
  for (int64_t i = 0; i < n; i++) {
    rl_tensor d = slice_at(out[0], dim, index_at(in[1], i)), s = slice_at(in[2], dim, i);
    add_slice(&d, &s);
  }
  return RL_OK;
}

RL_KERNEL(index_fill) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  int64_t n = rl_numel(in[1]);
  RL_TRY(check_index(op, in[1], dim_size(out[0], dim)));
  RL_TRY(lay_base(out[0], in[0]));
  for (int64_t i = 0; i < n; i++) {
    rl_tensor d = slice_at(out[0], dim, index_at(in[1], i)), s = d;
    s.storage = in[2]->storage, s.offset = in[2]->offset;
    for (int k = 0; k < s.ndim; k++) s.stride[k] = 0;
    RL_TRY(rl_move(&d, &s));
  }
  return RL_OK;
}

/* Element number i (in order) of t. */
static int64_t element(const rl_tensor *t, int64_t i) {
  int64_t off = 0;
  for (int d = t->ndim - 1; d >= 0; d--) off += i % t->size[d] * t->stride[d], i /= t->size[d];
  return off;
}

RL_KERNEL(take) {
  RL_KERNEL_UNUSED;
  const rl_tensor *x = in[0], *idx = in[1], *t[] = { out[0], idx };
  RL_TRY(check_index(op, idx, rl_numel(x)));
  int bytes = esize(x);
  if (!rl_numel(idx)) return RL_OK;
  for (walk w = walk_start(idx, -1, 2, t); !w.done; walk_next(&w))
    memcpy((char *)rl_data(out[0]) + w.off[0] * bytes, (char *)rl_data(x) + element(x, ((int64_t *)rl_data(idx))[w.off[1]]) * bytes, (size_t)bytes);
  return RL_OK;
}

RL_KERNEL(put_add) {
  RL_KERNEL_UNUSED;
  const rl_tensor *idx = in[1];
  RL_TRY(check_index(op, idx, rl_numel(out[0])));
  RL_TRY(lay_base(out[0], in[0]));
  int64_t n = rl_numel(idx);
  void *d = rl_data(out[0]);
  const void *s = rl_data(in[2]);
#define P(S, C, LD, ST) \
  for (int64_t i = 0; i < n; i++) { \
    S *e = (S *)d + element(out[0], ((int64_t *)rl_data(idx))[element(idx, i)]); \
    *e = ST((C)(LD(*e) + LD(((const S *)s)[element(in[2], i)]))); \
  }
  BY_DTYPE(out[0]->dtype, P)
#undef P
  return RL_OK;
}

/* Planes: x (…, h, w), positions h * width + w. */
RL_KERNEL(gather_hw) {
  RL_KERNEL_UNUSED;
  const rl_tensor *x = in[0], *idx = in[1], *t[] = { out[0], idx, x };
  int d = x->ndim - 2, bytes = esize(x);
  int64_t wd = x->size[d + 1], plane = wd * x->size[d];
  RL_TRY(check_index(op, idx, plane));
  if (!rl_numel(idx)) return RL_OK;
  rl_tensor outer = *idx;
  outer.ndim = d;
  for (walk w = walk_start(&outer, -1, 3, t); !w.done; walk_next(&w))
    for (int64_t i = 0; i < idx->size[d]; i++)
      for (int64_t j = 0; j < idx->size[d + 1]; j++) {
        int64_t p = ((int64_t *)rl_data(idx))[w.off[1] + i * idx->stride[d] + j * idx->stride[d + 1]];
        memcpy((char *)rl_data(out[0]) + (w.off[0] + i * out[0]->stride[d] + j * out[0]->stride[d + 1]) * bytes,
               (char *)rl_data(x) + (w.off[2] + p / wd * x->stride[d] + p % wd * x->stride[d + 1]) * bytes, (size_t)bytes);
      }
  return RL_OK;
}

/* masked_select's result has as many elements as its shape rule counted. */
RL_KERNEL(masked_select) {
  RL_KERNEL_UNUSED;
  const rl_tensor *x = in[0], *m = in[1], *t[] = { x, m };
  int64_t at = 0, st = out[0]->ndim ? out[0]->stride[0] : 1;
  int bytes = esize(x);
  if (!rl_numel(x)) return RL_OK;
  if (rl_is_contiguous(x) && rl_is_contiguous(m) && st == 1) { /* always stores, moves on where the mask is set: no branch to mispredict */
    int64_t n = rl_numel(x), total = rl_numel(out[0]);
    const uint8_t *pm = rl_data(m);
#define PICK(T) \
  { \
    const T *s = rl_data(x); \
    T *d = rl_data(out[0]); \
    for (int64_t i = 0; i < n && at < total; i++) d[at] = s[i], at += pm[i] != 0; \
  }
    BY_BYTES(bytes, PICK)
#undef PICK
    return RL_OK;
  }
  for (walk w = walk_start(x, -1, 2, t); !w.done; walk_next(&w))
    if (((uint8_t *)rl_data(m))[w.off[1]]) memcpy((char *)rl_data(out[0]) + at++ * st * bytes, (char *)rl_data(x) + w.off[0] * bytes, (size_t)bytes);
  return RL_OK;
}

RL_KERNEL(masked_scatter) {
  RL_KERNEL_UNUSED;
  const rl_tensor *m = in[1], *src = in[2], *t[] = { out[0], m };
  int64_t at = 0, n = rl_numel(src);
  int bytes = esize(src);
  RL_TRY(rl_move(out[0], in[0]));
  if (!rl_numel(m)) return RL_OK;
  for (walk w = walk_start(m, -1, 2, t); !w.done; walk_next(&w)) {
    if (!((uint8_t *)rl_data(m))[w.off[1]]) continue;
    if (at == n) return rl_error("[masked_scatter] source has too few elements; got %lld, need one for each 1 of the mask", (long long)n);
    memcpy((char *)rl_data(out[0]) + w.off[0] * bytes, (char *)rl_data(src) + element(src, at++) * bytes, (size_t)bytes);
  }
  return RL_OK;
}

RL_KERNEL(nonzero) {
  RL_KERNEL_UNUSED;
  const rl_tensor *x = in[0], *t[] = { x };
  int64_t *d = rl_data(out[0]), at = 0;
  const void *s = rl_data(x);
  if (!rl_numel(x)) return RL_OK;
  walk w = walk_start(x, -1, 1, t);
#define N(S, C, LD, ST) \
  for (; !w.done; walk_next(&w)) \
    if (LD(((const S *)s)[w.off[0]]) != 0) { \
      for (int k = 0; k < w.ndim; k++) d[at * out[0]->stride[0] + k * out[0]->stride[1]] = w.pos[k]; \
      at++; \
    }
  BY_DTYPE(x->dtype, N)
#undef N
  return RL_OK;
}
