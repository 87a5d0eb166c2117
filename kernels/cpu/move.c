/* Moves: kernels that place elements without computing (cat, pad, flip, roll, windows and their gradients). */
#include "../cuda/launch.h"
#include "walk.h"

/* Sizes of dst are walked by rows of the last dimension. */
rl_status rl_move(rl_tensor *dst, const rl_tensor *src) {
  if (!rl_numel(dst)) return RL_OK;
  if (dst->device == RL_CUDA) return rl_cuda_move(dst, src);
  if (rl_numel(dst) > 2048) {
    rl_ew_move(dst, src);
    return RL_OK;
  }
  int last = dst->ndim - 1;
  const rl_tensor *t[] = { dst, src };
  walk w = walk_start(dst, last, 2, t);
  int64_t n = last < 0 ? 1 : dst->size[last], sd = last < 0 ? 1 : dst->stride[last], ss = last < 0 ? 1 : src->stride[last];
  void *d = rl_data(dst);
  const void *s = rl_data(src);
#define ROW(T) \
  for (; !w.done; walk_next(&w)) { \
    T *pd = (T *)d + w.off[0]; \
    const T *ps = (const T *)s + w.off[1]; \
    if (sd == 1 && ss == 1) memcpy(pd, ps, (size_t)n * sizeof(T)); \
    else \
      for (int64_t i = 0; i < n; i++) pd[i * sd] = ps[i * ss]; \
  }
  BY_BYTES(esize(dst), ROW)
#undef ROW
  return RL_OK;
}

rl_status rl_move_zero(rl_tensor *dst) {
  if (!rl_numel(dst)) return RL_OK;
  if (dst->device == RL_CUDA) return rl_cuda_fill(dst, 0);
  if (rl_is_contiguous(dst)) {
    memset(rl_data(dst), 0, (size_t)(rl_numel(dst) * esize(dst)));
    return RL_OK;
  }
  const rl_tensor *t[] = { dst };
  void *d = rl_data(dst);
  walk w = walk_start(dst, -1, 1, t);
#define ZERO(T) \
  for (; !w.done; walk_next(&w)) ((T *)d)[w.off[0]] = 0;
  BY_BYTES(esize(dst), ZERO)
#undef ZERO
  return RL_OK;
}

/* A window of t: a header on the C stack that shares its storage. */
static rl_tensor window(const rl_tensor *t, int dim, int64_t start, int64_t len, int64_t step) {
  rl_tensor w = *t;
  w.offset += start * t->stride[dim];
  w.size[dim] = len;
  w.stride[dim] *= step;
  return w;
}

RL_KERNEL(cat) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  int64_t at = 0;
  for (int k = 0; k < nin; k++) {
    if (in[k]->ndim != out[0]->ndim) continue; /* Torch7's empty tensor joins anything */
    rl_tensor w = window(out[0], dim, at, in[k]->size[dim], 1);
    RL_TRY(rl_move(&w, in[k]));
    at += in[k]->size[dim];
  }
  return RL_OK;
}

RL_KERNEL(flip) {
  RL_KERNEL_UNUSED;
  rl_tensor w = *in[0];
  for (int k = 0; k < a->nlist[0]; k++) {
    int d = (int)a->list[0][k];
    if (w.size[d] > 0) w.offset += (w.size[d] - 1) * w.stride[d];
    w.stride[d] = -w.stride[d];
  }
  return rl_move(out[0], &w);
}

RL_KERNEL(roll) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[1].i;
  const rl_tensor *x = in[0];
  int64_t n = x->ndim ? x->size[dim] : 1;
  if (!rl_numel(x)) return RL_OK;
  if (x->ndim == 0) return rl_move(out[0], x);
  int64_t s = ((a->v[0].i % n) + n) % n;
  rl_tensor d1 = window(out[0], dim, s, n - s, 1), s1 = window(x, dim, 0, n - s, 1);
  rl_tensor d2 = window(out[0], dim, 0, s, 1), s2 = window(x, dim, n - s, s, 1);
  RL_TRY(rl_move(&d1, &s1));
  return rl_move(&d2, &s2);
}

static rl_status fill_value(rl_tensor *t, double v) {
  const rl_tensor *ts[] = { t };
  void *d = rl_data(t);
  if (!rl_numel(t)) return RL_OK;
  if (t->device == RL_CUDA) return rl_cuda_fill(t, v);
  walk w = walk_start(t, -1, 1, ts);
#define FILL(S, C, LD, ST) \
  { \
    S s = ST((C)v); \
    for (; !w.done; walk_next(&w)) ((S *)d)[w.off[0]] = s; \
  }
  BY_DTYPE(t->dtype, FILL)
#undef FILL
  return RL_OK;
}

RL_KERNEL(pad) {
  RL_KERNEL_UNUSED;
  rl_tensor d = *out[0], s = *in[0];
  RL_TRY(fill_value(out[0], a->v[0].f));
  for (int k = 0; k < a->nlist[0] && k < s.ndim; k++) {
    int64_t before = a->list[0][k], after = a->list[1][k];
    int64_t from = RL_MAX(0, -before), to = s.size[k] - RL_MAX(0, -after);
    d = window(&d, k, RL_MAX(0, before), RL_MAX(0, to - from), 1);
    s = window(&s, k, from, RL_MAX(0, to - from), 1);
  }
  return rl_move(&d, &s);
}

RL_KERNEL(repeat) {
  RL_KERNEL_UNUSED;
  const rl_tensor *x = in[0];
  rl_tensor *r = out[0];
  if (!rl_numel(r)) return RL_OK;
  int lead = r->ndim - x->ndim;
  rl_tensor counts = { .ndim = r->ndim }, block = *r, src = *r;
  src.storage = x->storage, src.offset = x->offset;
  for (int d = 0; d < r->ndim; d++) {
    int64_t n = d < lead ? 1 : x->size[d - lead];
    block.size[d] = src.size[d] = n;
    src.stride[d] = d < lead ? 0 : x->stride[d - lead];
    counts.size[d] = r->size[d] / n;
    counts.stride[d] = r->stride[d] * n;
  }
  const rl_tensor *t[] = { &counts };
  for (walk w = walk_start(&counts, -1, 1, t); !w.done; walk_next(&w)) {
    block.offset = r->offset + w.off[0];
    RL_TRY(rl_move(&block, &src));
  }
  return RL_OK;
}

RL_KERNEL(reshape) {
  RL_KERNEL_UNUSED;
  rl_tensor flat = *out[0]; /* out is contiguous, or the caller's: then through the sizes of the input */
  if (!rl_is_contiguous(out[0])) {
    const rl_tensor *to[] = { out[0] }, *ti[] = { in[0] };
    walk wo = walk_start(out[0], -1, 1, to), wi = walk_start(in[0], -1, 1, ti);
    int bytes = esize(out[0]);
    for (; !wo.done && !wi.done; walk_next(&wo), walk_next(&wi))
      memcpy((char *)rl_data(out[0]) + wo.off[0] * bytes, (char *)rl_data(in[0]) + wi.off[0] * bytes, (size_t)bytes);
    return RL_OK;
  }
  flat.ndim = in[0]->ndim;
  int64_t st = 1;
  for (int d = flat.ndim - 1; d >= 0; d--) flat.size[d] = in[0]->size[d], flat.stride[d] = st, st *= in[0]->size[d];
  return rl_move(&flat, in[0]);
}

RL_KERNEL(slice_grad) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  RL_TRY(rl_move_zero(out[0]));
  rl_tensor w = window(out[0], dim, a->v[1].i, in[0]->size[dim], a->v[2].i);
  return rl_move(&w, in[0]);
}

RL_KERNEL(diagonal_grad) {
  RL_KERNEL_UNUSED;
  int64_t k = a->v[0].i;
  rl_tensor w = *out[0];
  RL_TRY(rl_move_zero(out[0]));
  w.ndim = 1;
  w.offset += k >= 0 ? k * out[0]->stride[1] : -k * out[0]->stride[0];
  w.size[0] = in[0]->size[0];
  w.stride[0] = out[0]->stride[0] + out[0]->stride[1];
  return rl_move(&w, in[0]);
}

/* Adds the elements of src (any strides, overlapping windows of dst allowed) one after the other. */
static void add_each(rl_tensor *dst, const rl_tensor *src) {
  if (!rl_numel(src)) return;
  const rl_tensor *t[] = { dst, src };
  walk w = walk_start(src, -1, 2, t);
  void *d = rl_data(dst);
  const void *s = rl_data(src);
#define ADD(S, C, LD, ST) \
  for (; !w.done; walk_next(&w)) { \
    S *p = (S *)d + w.off[0]; \
    *p = ST((C)(LD(*p) + LD(((const S *)s)[w.off[1]]))); \
  }
  BY_DTYPE(dst->dtype, ADD)
#undef ADD
}

RL_KERNEL(unfold_grad) {
  RL_KERNEL_UNUSED;
  int dim = (int)a->v[0].i;
  int64_t step = a->v[2].i;
  const rl_tensor *x = in[0]; /* (…, windows at dim, …, len) */
  RL_TRY(rl_move_zero(out[0]));
  rl_tensor w = *out[0];
  w.ndim = x->ndim;
  for (int d = 0; d < x->ndim; d++) w.size[d] = x->size[d];
  w.stride[dim] *= step;
  w.stride[x->ndim - 1] = out[0]->stride[dim];
  add_each(&w, x);
  return RL_OK;
}

/* Lists: in_sizes, in_strides, sizes, strides; v: in_offset, offset. A buffer of the touched storage range takes the window, then is read
 * through the input's own geometry. */
RL_KERNEL(as_strided_grad) {
  RL_KERNEL_UNUSED;
  int64_t lo = RL_MIN(a->v[0].i, a->v[1].i), hi = lo;
  int64_t e1 = a->v[0].i, e2 = a->v[1].i;
  for (int k = 0; k < a->nlist[0]; k++) e1 += RL_MAX(0, a->list[0][k] - 1) * a->list[1][k];
  for (int k = 0; k < a->nlist[2]; k++) e2 += RL_MAX(0, a->list[2][k] - 1) * a->list[3][k];
  hi = RL_MAX(e1, e2) + 1;
  rl_tensor *buf = rl_tensor_empty(in[0]->dtype, RL_CPU, 1, &(int64_t){ hi - lo });
  if (!buf) return RL_OOM;
  RL_TRY(rl_move_zero(buf));
  rl_tensor w = *buf, g = *buf;
  w.ndim = a->nlist[2], g.ndim = a->nlist[0];
  w.offset = a->v[1].i - lo, g.offset = a->v[0].i - lo;
  for (int k = 0; k < w.ndim; k++) w.size[k] = a->list[2][k], w.stride[k] = a->list[3][k];
  for (int k = 0; k < g.ndim; k++) g.size[k] = a->list[0][k], g.stride[k] = a->list[1][k];
  add_each(&w, in[0]);
  rl_status s = rl_move(out[0], &g);
  rl_tensor_release(buf);
  return s;
}

static void triangle(const rl_tensor *x, rl_tensor *r, int64_t k, bool lower) {
  int rows = x->ndim - 2, cols = x->ndim - 1, bytes = esize(x);
  const rl_tensor *t[] = { x, r };
  if (!rl_numel(x)) return;
  rl_tensor outer = *x;
  outer.ndim = rows;
  char *px = rl_data(x), *pr = rl_data(r);
  for (walk w = walk_start(&outer, -1, 2, t); !w.done; walk_next(&w))
    for (int64_t i = 0; i < x->size[rows]; i++)
      for (int64_t j = 0; j < x->size[cols]; j++) {
        char *d = pr + (w.off[1] + i * r->stride[rows] + j * r->stride[cols]) * bytes;
        if (lower ? j - i <= k : j - i >= k) memcpy(d, px + (w.off[0] + i * x->stride[rows] + j * x->stride[cols]) * bytes, (size_t)bytes);
        else memset(d, 0, (size_t)bytes);
      }
}
RL_KERNEL(tril) {
  RL_KERNEL_UNUSED;
  triangle(in[0], out[0], a->v[0].i, true);
  return RL_OK;
}
RL_KERNEL(triu) {
  RL_KERNEL_UNUSED;
  triangle(in[0], out[0], a->v[0].i, false);
  return RL_OK;
}

RL_KERNEL(full) {
  RL_KERNEL_UNUSED;
  return fill_value(out[0], a->v[0].f);
}

RL_KERNEL(iota) {
  RL_KERNEL_UNUSED;
  int64_t n = rl_numel(out[0]), st = out[0]->stride[0];
  void *d = rl_data(out[0]);
#define IOTA(S, C, LD, ST) \
  for (int64_t i = 0; i < n; i++) ((S *)d)[i * st] = ST((C)i);
  BY_DTYPE(out[0]->dtype, IOTA)
#undef IOTA
  return RL_OK;
}

static rl_status convert(rl_tensor *from, rl_tensor *to) {
  rl_attrs a = { 0 };
  a.v[0].i = to->dtype;
  return rl_ops[RL_OP_CAST].kernel[RL_CPU](RL_OP_CAST, &from, 1, &a, &to);
}
rl_tensor *rl_working(const rl_tensor *x, rl_dtype dt) {
  if (x->dtype == dt && rl_is_contiguous(x)) return rl_tensor_retain((rl_tensor *)x);
  rl_tensor *c = rl_tensor_empty(dt, RL_CPU, x->ndim, x->size);
  if (c && convert((rl_tensor *)x, c) != RL_OK) return rl_tensor_release(c), NULL;
  return c;
}
rl_tensor *rl_working_out(rl_tensor *out, rl_dtype dt) {
  if (out->dtype == dt && rl_is_contiguous(out)) return rl_tensor_retain(out);
  return rl_tensor_empty(dt, RL_CPU, out->ndim, out->size);
}
rl_status rl_give(rl_tensor *t, rl_tensor *out) { return t == out ? RL_OK : convert(t, out); }
