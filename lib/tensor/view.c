/* Views: geometry of movement ops (tensor, attributes -> offset, sizes, strides on the same storage). */
#include <string.h>
#include "dispatch.h"

static void geom_of(const rl_tensor *x, rl_geom *g) {
  g->ndim = x->ndim;
  g->offset = x->offset;
  memcpy(g->size, x->size, x->ndim * sizeof *x->size);
  memcpy(g->stride, x->stride, x->ndim * sizeof *x->stride);
}

static void geom_remove(rl_geom *g, int64_t d) {
  g->ndim--;
  memmove(g->size + d, g->size + d + 1, (size_t)(g->ndim - d) * sizeof *g->size);
  memmove(g->stride + d, g->stride + d + 1, (size_t)(g->ndim - d) * sizeof *g->stride);
}

rl_status rl_view_expand(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  int n = a->nlist[0], lead = n - x->ndim;
  if (lead < 0) return rl_error("[%s] dimensions; got %d, need at least %d", rl_ops[op].name, n, x->ndim);
  g->ndim = n;
  g->offset = x->offset;
  for (int d = 0; d < n; d++) {
    int64_t have = d < lead ? 1 : x->size[d - lead], want = a->list[0][d];
    if (want == -1 && d >= lead) want = have;
    if (want < 0 || (have != 1 && have != want))
      return rl_error("[%s] dimension %d; got %lld, need 1 or %lld", rl_ops[op].name, d + 1, (long long)have, (long long)want);
    g->size[d] = want;
    g->stride[d] = have == want && d >= lead ? x->stride[d - lead] : 0;
  }
  return RL_OK;
}

rl_status rl_view_permute(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  uint32_t seen = 0;
  if (a->nlist[0] != x->ndim) return rl_error("[%s] dimensions; got %d, need %d", rl_ops[op].name, a->nlist[0], x->ndim);
  g->ndim = x->ndim;
  g->offset = x->offset;
  for (int i = 0; i < x->ndim; i++) {
    int64_t d = a->list[0][i];
    RL_TRY(rl_check_dim(op, x, d));
    if (seen >> d & 1) return rl_error("[%s] dimension %lld appears twice", rl_ops[op].name, (long long)d + 1);
    seen |= 1u << d;
    g->size[i] = x->size[d];
    g->stride[i] = x->stride[d];
  }
  return RL_OK;
}

rl_status rl_view_transpose(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  int64_t i = a->v[0].i, j = a->v[1].i;
  RL_TRY(rl_check_dim(op, x, i));
  RL_TRY(rl_check_dim(op, x, j));
  geom_of(x, g);
  g->size[i] = x->size[j];
  g->stride[i] = x->stride[j];
  g->size[j] = x->size[i];
  g->stride[j] = x->stride[i];
  return RL_OK;
}

rl_status rl_view_select(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  int64_t d = a->v[0].i, i = a->v[1].i;
  RL_TRY(rl_check_dim(op, x, d));
  if (i < 0 || i >= x->size[d])
    return rl_error("[%s] index out of range; got %lld, need 1 to %lld", rl_ops[op].name, (long long)i + 1, (long long)x->size[d]);
  geom_of(x, g);
  g->offset += i * x->stride[d];
  geom_remove(g, d);
  return RL_OK;
}

rl_status rl_view_slice(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  int64_t d = a->v[0].i, start = a->v[1].i, len = a->v[2].i, step = a->v[3].i;
  RL_TRY(rl_check_dim(op, x, d));
  if (step < 1) return rl_error("[%s] step; got %lld, need 1 or more", rl_ops[op].name, (long long)step);
  if (start < 0 || len < 0 || start + (len > 0 ? (len - 1) * step + 1 : 0) > x->size[d])
    return rl_error("[%s] range out of bounds; got %lld elements from %lld, need a range in 1 to %lld", rl_ops[op].name, (long long)len,
                    (long long)start + 1, (long long)x->size[d]);
  geom_of(x, g);
  if (len > 0) g->offset += start * x->stride[d];
  g->size[d] = len;
  g->stride[d] *= step;
  return RL_OK;
}

rl_status rl_view_squeeze(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  int64_t d = a->v[0].i;
  RL_TRY(rl_check_dim(op, x, d));
  if (x->size[d] != 1) return rl_error("[%s] dimension %lld; got size %lld, need 1", rl_ops[op].name, (long long)d + 1, (long long)x->size[d]);
  geom_of(x, g);
  geom_remove(g, d);
  return RL_OK;
}

rl_status rl_view_unsqueeze(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  int64_t d = a->v[0].i;
  if (d < 0 || d > x->ndim || x->ndim == RL_MAXDIM)
    return rl_error("[%s] dimension out of range; got %lld, need 1 to %d", rl_ops[op].name, (long long)d + 1, x->ndim + 1);
  geom_of(x, g);
  memmove(g->size + d + 1, g->size + d, (size_t)(x->ndim - d) * sizeof *g->size);
  memmove(g->stride + d + 1, g->stride + d, (size_t)(x->ndim - d) * sizeof *g->stride);
  g->stride[d] = d < x->ndim ? x->size[d] * x->stride[d] : 1;
  g->size[d] = 1;
  g->ndim++;
  return RL_OK;
}

/* Walks both shapes from the end: a run of x's dimensions that lies evenly in memory can be cut into any sizes with that product. */
bool rl_view_strides(const rl_tensor *x, int ndim, const int64_t *size, int64_t *stride) {
  if (rl_numel(x) == 0) {
    int64_t n = 1;
    for (int d = ndim - 1; d >= 0; d--) {
      stride[d] = n;
      n *= RL_MAX(size[d], 1);
    }
    return true;
  }
  int v = ndim - 1;
  int64_t base = 1, run = 1, cut = 1;
  if (x->ndim) base = x->stride[x->ndim - 1];
  for (int d = x->ndim - 1; d >= 0; d--) {
    run *= x->size[d];
    bool last = d == 0 || (x->size[d - 1] != 1 && x->stride[d - 1] != run * base);
    if (!last) continue;
    while (v >= 0 && (cut < run || size[v] == 1)) {
      stride[v] = cut * base;
      cut *= size[v--];
    }
    if (cut != run) return false;
    if (d > 0) base = x->stride[d - 1];
    run = cut = 1;
  }
  while (v >= 0 && size[v] == 1) stride[v--] = base;
  return v < 0;
}

/* Sizes with a -1 filled in; checks the element count. */
static rl_status view_sizes(rl_op op, const rl_tensor *x, int n, const int64_t *size, int64_t *out) {
  int64_t known = 1, total = rl_numel(x);
  int hole = -1;
  for (int d = 0; d < n; d++) {
    out[d] = size[d];
    if (size[d] == -1 && hole < 0) hole = d;
    else if (size[d] < 0) return rl_error("[%s] size; got %lld, need 0 or more", rl_ops[op].name, (long long)size[d]);
    else known *= size[d];
  }
  if (hole >= 0) out[hole] = known ? total / known : 0;
  if (hole >= 0) known *= out[hole];
  if (known != total) return rl_error("[%s] number of elements; got %lld, need %lld", rl_ops[op].name, (long long)known, (long long)total);
  return RL_OK;
}

rl_status rl_view_view(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  char buf[256];
  g->ndim = a->nlist[0];
  g->offset = x->offset;
  RL_TRY(view_sizes(op, x, a->nlist[0], a->list[0], g->size));
  if (!rl_view_strides(x, g->ndim, g->size, g->stride))
    return rl_error("[%s] the strides of a tensor %s do not allow these sizes; make it contiguous first", rl_ops[op].name, rl_shape_str(x, buf));
  return RL_OK;
}

rl_status rl_reshape(rl_tensor *x, int ndim, const int64_t *size, rl_tensor **out) {
  rl_attrs a = { .nlist = { ndim } };
  int64_t stride[RL_MAXDIM];
  if (ndim > RL_MAXDIM) return rl_error("[reshape] dimensions; got %d, need at most %d", ndim, RL_MAXDIM);
  RL_TRY(view_sizes(RL_OP_RESHAPE, x, ndim, size, a.list[0]));
  if (x->ndim == ndim && !memcmp(x->size, a.list[0], (size_t)ndim * sizeof *size)) {
    *out = rl_tensor_keep(x);
    return *out ? RL_OK : RL_OOM;
  }
  return rl_call(rl_view_strides(x, ndim, a.list[0], stride) ? RL_OP_VIEW : RL_OP_RESHAPE, &x, 1, &a, out);
}

rl_status rl_contiguous(rl_tensor *x, rl_tensor **out) {
  if (rl_is_contiguous(x)) {
    *out = rl_tensor_keep(x);
    return *out ? RL_OK : RL_OOM;
  }
  rl_attrs a = { .v = { { .i = x->dtype } } };
  return rl_call(RL_OP_CAST, &x, 1, &a, out);
}

rl_status rl_view_as_strided(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  (void)x;
  if (a->nlist[0] != a->nlist[1]) return rl_error("[%s] strides; got %d, need %d", rl_ops[op].name, a->nlist[1], a->nlist[0]);
  g->ndim = a->nlist[0];
  g->offset = a->v[0].i;
  memcpy(g->size, a->list[0], (size_t)g->ndim * sizeof *g->size);
  memcpy(g->stride, a->list[1], (size_t)g->ndim * sizeof *g->stride);
  return RL_OK;
}

rl_status rl_view_diagonal(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  int64_t k = a->v[0].i;
  if (x->ndim != 2) return rl_error("[%s] dimensions; got %d, need 2", rl_ops[op].name, x->ndim);
  int64_t rows = x->size[0] - (k < 0 ? -k : 0), cols = x->size[1] - (k > 0 ? k : 0), n = RL_MIN(rows, cols);
  g->ndim = 1;
  g->size[0] = RL_MAX(n, 0);
  g->stride[0] = x->stride[0] + x->stride[1];
  g->offset = x->offset + (n > 0 ? (k < 0 ? -k * x->stride[0] : k * x->stride[1]) : 0);
  return RL_OK;
}

rl_status rl_view_unfold(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *g) {
  int64_t d = a->v[0].i, len = a->v[1].i, step = a->v[2].i;
  RL_TRY(rl_check_dim(op, x, d));
  if (len < 1 || len > x->size[d] || step < 1 || x->ndim == RL_MAXDIM)
    return rl_error("[%s] window; got %lld every %lld, need at most %lld", rl_ops[op].name, (long long)len, (long long)step, (long long)x->size[d]);
  geom_of(x, g);
  g->size[x->ndim] = len;
  g->stride[x->ndim] = x->stride[d];
  g->ndim++;
  g->size[d] = (x->size[d] - len) / step + 1;
  g->stride[d] = x->stride[d] * step;
  return RL_OK;
}
