/* Helpers: what formulas and gradients cannot say as text, in terms of rl_call (declared as HELPER in ops.def). */
#include "op_call.h"
#include "../tensor/random.h"

static rl_status keep(rl_tensor *x, rl_tensor **out) {
  *out = rl_tensor_keep(x);
  return *out ? RL_OK : RL_OOM;
}

rl_status rl_h_reshape(rl_tensor *x, rl_ints sizes, rl_tensor **out) { return rl_reshape(x, sizes.n, sizes.v, out); }
rl_status rl_h_contiguous(rl_tensor *x, rl_tensor **out) { return rl_contiguous(x, out); }
rl_status rl_h_mT(rl_tensor *x, rl_tensor **out) { return rl_op_transpose(x, -2, -1, out); }
rl_status rl_h_view_flat(rl_tensor *x, rl_tensor **out) { return rl_reshape(x, 1, (int64_t[]){ rl_numel(x) }, out); }

/* Dimensions of dy that broadcasting made out of nothing or out of size 1. */
static rl_ints expanded_dims(const rl_tensor *dy, const rl_tensor *x) {
  rl_ints dims = rl_ints_empty();
  int lead = dy->ndim - x->ndim;
  for (int d = 0; d < dy->ndim; d++)
    if (d < lead || (x->size[d - lead] == 1 && dy->size[d] != 1)) dims.v[dims.n++] = d;
  return dims;
}

rl_status rl_h_reduce_like(rl_tensor *dy, const rl_tensor *x, rl_tensor **out) {
  rl_tensor *sum = NULL, *shaped = NULL;
  if (rl_same_shape(dy, x)) shaped = rl_tensor_keep(dy);
  else {
    rl_ints dims = dy->ndim >= x->ndim && rl_numel(dy) != rl_numel(x) ? expanded_dims(dy, x) : rl_ints_empty();
    if (dims.n) RL_TRY(rl_op_sum(dy, dims, true, &sum));
    rl_status s = rl_reshape(sum ? sum : dy, x->ndim, x->size, &shaped);
    rl_tensor_release(sum);
    RL_TRY(s);
  }
  if (shaped->dtype == x->dtype || (x->flags & RL_T_WEAK)) {
    *out = shaped;
    return RL_OK;
  }
  rl_status s = rl_op_cast(shaped, (rl_dtype)x->dtype, out);
  rl_tensor_release(shaped);
  return s;
}

rl_status rl_h_unreduce(rl_tensor *r, const rl_tensor *x, rl_ints dims, bool keepdim, rl_tensor **out) {
  rl_tensor *kept = NULL;
  if (rl_same_shape(r, x)) return keep(r, out);
  if (!keepdim) {
    rl_ints size = rl_sizes(x);
    if (!dims.n) dims = rl_all_dims(x);
    for (int i = 0; i < dims.n; i++) size.v[dims.v[i]] = 1;
    RL_TRY(rl_reshape(r, size.n, size.v, &kept));
  }
  rl_status s = rl_op_expand(kept ? kept : r, rl_sizes(x), out);
  rl_tensor_release(kept);
  return s;
}

rl_status rl_h_drop_dims(rl_tensor *x, rl_ints dims, rl_tensor **out) {
  rl_ints size = rl_ints_empty();
  for (int d = 0; d < x->ndim; d++) {
    bool drop = dims.n == 0;
    for (int i = 0; i < dims.n; i++) drop |= dims.v[i] == d;
    if (!drop) size.v[size.n++] = x->size[d];
  }
  return rl_reshape(x, size.n, size.v, out);
}

rl_status rl_h_cat_grad(rl_tensor *dr, rl_tensor *const *xs, int n, int64_t dim, rl_tensor **out) {
  int64_t at = 0;
  for (int i = 0; i < n; i++) {
    int64_t len = xs[i]->size[dim];
    RL_TRY(rl_op_slice(dr, dim, at, len, 1, &out[i]));
    at += len;
  }
  return RL_OK;
}

rl_status rl_h_unsqueeze_all(rl_tensor *const *xs, int n, int64_t dim, rl_tensor **out) {
  for (int i = 0; i < n; i++) RL_TRY(rl_op_unsqueeze(xs[i], dim, &out[i]));
  return RL_OK;
}

/* (a, b) tiled (p, q) times: (1, a, 1, b) expanded to (p, a, q, b), then merged. */
rl_status rl_h_repeat_by_expand(rl_tensor *x, rl_ints times, rl_tensor **out) {
  rl_ints split = rl_ints_empty(), wide = rl_ints_empty(), merged = rl_ints_empty();
  int lead = times.n - x->ndim;
  if (2 * times.n > RL_MAXDIM) return rl_error("[repeat] dimensions; got %d, need at most %d", times.n, RL_MAXDIM / 2);
  for (int d = 0; d < times.n; d++) {
    int64_t n = d < lead ? 1 : x->size[d - lead];
    split.v[split.n++] = 1;
    split.v[split.n++] = n;
    wide.v[wide.n++] = times.v[d];
    wide.v[wide.n++] = n;
    merged.v[merged.n++] = times.v[d] * n;
  }
  rl_tensor *s = NULL, *w = NULL;
  rl_status st = rl_reshape(x, split.n, split.v, &s);
  if (st == RL_OK) st = rl_op_expand(s, wide, &w);
  if (st == RL_OK) st = rl_op_reshape(w, merged, out);
  rl_tensor_release(s);
  rl_tensor_release(w);
  return st;
}

rl_status rl_h_pad_grad(rl_tensor *dr, rl_ints before, rl_ints after, rl_tensor **out) {
  for (int d = 0; d < before.n; d++) before.v[d] = -before.v[d];
  for (int d = 0; d < after.n; d++) after.v[d] = -after.v[d];
  return rl_op_pad(dr, before, after, 0, out);
}

rl_status rl_h_channel(rl_tensor *b, const rl_tensor *x, rl_tensor **out) {
  rl_ints size = rl_sizes(x);
  for (int d = 0; d < size.n; d++)
    if (d != 1) size.v[d] = 1;
  return rl_reshape(b, size.n, size.v, out);
}

rl_status rl_h_reshape_cat(rl_tensor *rows, const rl_tensor *idx, const rl_tensor *w, rl_tensor **out) {
  rl_ints size = rl_ints_join(rl_sizes(idx), rl_ints_of(w->ndim - 1, w->size + 1));
  return rl_reshape(rows, size.n, size.v, out);
}

rl_status rl_h_masked_scatter_grad(rl_tensor *dr, rl_tensor *mask, const rl_tensor *src, rl_tensor **out) {
  rl_tensor *picked = NULL, *padded = NULL;
  rl_status s = rl_op_masked_select(dr, mask, &picked);
  if (s == RL_OK) s = rl_op_pad(picked, rl_ints_of(1, (int64_t[]){ 0 }), rl_ints_of(1, (int64_t[]){ rl_numel(src) - picked->size[0] }), 0, &padded);
  if (s == RL_OK) s = rl_reshape(padded, src->ndim, src->size, out);
  rl_tensor_release(picked);
  rl_tensor_release(padded);
  return s;
}

rl_status rl_h_causal_mask(const rl_tensor *s, rl_tensor **out) {
  rl_tensor *full = NULL;
  rl_status st = rl_op_full(rl_ints_of(2, s->size + s->ndim - 2), -INFINITY, (rl_dtype)s->dtype, &full);
  if (st == RL_OK) st = rl_op_triu(full, 1, out);
  rl_tensor_release(full);
  return st;
}

/* dr has in_sizes; laid out with in_strides (a contiguous base), the window of it is the gradient. */
rl_status rl_h_window_grad(rl_tensor *dr, rl_ints in_sizes, rl_ints in_strides, int64_t in_offset, rl_ints sizes, rl_ints strides, int64_t offset,
                           rl_tensor **out) {
  int64_t n = 1;
  for (int d = in_sizes.n - 1; d >= 0; d--) {
    if (in_sizes.v[d] > 1 && in_strides.v[d] != n) return rl_error("[as_strided] second gradient of a window of a tensor that is not contiguous");
    n *= in_sizes.v[d];
  }
  rl_tensor *flat = NULL;
  RL_TRY(rl_op_cast(dr, (rl_dtype)dr->dtype, &flat));
  rl_status s = rl_op_as_strided(flat, sizes, strides, offset - in_offset, out);
  rl_tensor_release(flat);
  return s;
}

int64_t rl_h_count(const rl_tensor *x, rl_ints dims) {
  if (!dims.n) return rl_numel(x);
  int64_t n = 1;
  for (int i = 0; i < dims.n; i++) n *= rl_size(x, dims.v[i]);
  return n;
}

rl_ints rl_h_inverse_perm(rl_ints p) {
  rl_ints r = { .n = p.n };
  for (int i = 0; i < p.n; i++) r.v[p.v[i]] = i;
  return r;
}

rl_ints rl_h_swap_perm(int64_t n, int64_t i, int64_t j) {
  rl_ints p = { .n = (int)n };
  for (int d = 0; d < p.n; d++) p.v[d] = d == i ? j : d == j ? i : d;
  return p;
}

static rl_ints dims_from_to(int from, int to) {
  rl_ints l = rl_ints_empty();
  for (int d = RL_MAX(from, 0); d < to; d++) l.v[l.n++] = d;
  return l;
}

rl_ints rl_h_other_dims(const rl_tensor *x, int64_t but) { return rl_ints_join(dims_from_to(0, (int)but), dims_from_to((int)but + 1, x->ndim)); }
rl_ints rl_h_first_dims(const rl_tensor *x, int64_t n) { return dims_from_to(0, x->ndim - (int)n); }
rl_ints rl_h_last_dims(const rl_tensor *x, int64_t n) { return dims_from_to(x->ndim - (int)n, x->ndim); }
rl_ints rl_h_strides(const rl_tensor *x) { return rl_ints_of(x->ndim, x->stride); }
int64_t rl_h_offset(const rl_tensor *x) { return x->offset; }
int64_t rl_h_max_int(int64_t a, int64_t b) { return RL_MAX(a, b); }
double rl_h_sqrt_of(double x) { return sqrt(x); }
double rl_h_log_of(double x) { return log(x); }

/* The original draws and scales in double and rounds once. */
rl_dtype rl_h_wide(rl_dtype dt) { return rl_random_sequential() ? RL_F64 : dt; }

/* The original's draws are below a chance that they equal; Philox' are not, so that chance 0 never comes. */
rl_status rl_h_below(rl_tensor *u, rl_tensor *p, rl_tensor **out) { return rl_random_sequential() ? rl_op_le(u, p, out) : rl_op_lt(u, p, out); }
