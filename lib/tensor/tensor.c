/* Tensor: a window (offset, sizes, strides) on a storage.
 * Numbers are tensors on the C stack, so that an op sees one kind of input. */
#include <stdio.h>
#include <string.h>
#include "../autograd/tape.h"

static rl_tensor *tensor_new(rl_dtype dt, rl_device dev) {
  rl_tensor *t = rl_alloc(sizeof *t);
  if (!t) return NULL;
  t->refs = 1;
  t->dtype = dt;
  t->device = dev;
  t->ndim = 0;
  t->flags = 0;
  t->node = -1;
  t->storage = NULL;
  t->offset = 0;
  t->ag = NULL;
  return t;
}

/* Contiguous strides; the stride of a size-1 or empty dimension is what it would be for size 1. -1: the element count overflows. */
static int64_t tensor_strides(int ndim, const int64_t *size, int64_t *stride) {
  int64_t n = 1;
  bool empty = false;
  for (int d = ndim - 1; d >= 0; d--) {
    stride[d] = n;
    if (size[d] < 0) return -1;
    if (size[d] == 0) empty = true;
    if (size[d] > 1 && __builtin_mul_overflow(n, size[d], &n)) return -1;
  }
  return empty ? 0 : n;
}

static rl_status tensor_check_rank(int ndim) {
  return ndim <= RL_MAXDIM ? RL_OK : rl_error("[tensor] too many dimensions; got %d, at most %d", ndim, RL_MAXDIM);
}

rl_tensor *rl_tensor_empty(rl_dtype dt, rl_device dev, int ndim, const int64_t *size) {
  if (tensor_check_rank(ndim) != RL_OK) return NULL;
  rl_tensor *t = tensor_new(dt, dev);
  if (!t) return NULL;
  int64_t n = tensor_strides(ndim, size, t->stride);
  if (n < 0) rl_error("[tensor] bad size");
  t->ndim = (uint8_t)ndim;
  if (ndim) memcpy(t->size, size, (size_t)ndim * sizeof *size);
  if (n < 0 || !(t->storage = rl_storage_new(dt, dev, n))) {
    rl_free(t, sizeof *t);
    return NULL;
  }
  return t;
}

/* First and last element touched, relative to offset. */
static int64_t geom_span(int ndim, const int64_t *size, const int64_t *stride) {
  int64_t n = 1;
  for (int d = 0; d < ndim; d++) {
    if (size[d] == 0) return 0;
    n += (size[d] - 1) * stride[d];
  }
  return n;
}

static rl_status geom_check(const rl_storage *s, const rl_geom *g) {
  RL_TRY(tensor_check_rank(g->ndim));
  if (g->offset < 0) return rl_error("[tensor] offset is negative; got %lld", (long long)g->offset);
  for (int d = 0; d < g->ndim; d++)
    if (g->size[d] < 0 || g->stride[d] < 0) return rl_error("[tensor] size and stride must not be negative; dimension %d", d + 1);
  int64_t span = geom_span(g->ndim, g->size, g->stride);
  if (span && g->offset + span > (s ? s->size : 0))
    return rl_error("[tensor] window exceeds the storage; got %lld elements, need %lld", (long long)(s ? s->size : 0), (long long)(g->offset + span));
  return RL_OK;
}

static void tensor_take_geom(rl_tensor *t, const rl_geom *g) {
  t->ndim = (uint8_t)g->ndim;
  t->offset = g->offset;
  memcpy(t->size, g->size, (size_t)g->ndim * sizeof *g->size);
  memcpy(t->stride, g->stride, (size_t)g->ndim * sizeof *g->stride);
}

static rl_tensor *tensor_window(rl_storage *s, rl_dtype dt, rl_device dev, const rl_geom *g) {
  if (geom_check(s, g) != RL_OK) return NULL;
  rl_tensor *t = tensor_new(dt, dev);
  if (!t) return NULL;
  tensor_take_geom(t, g);
  t->storage = rl_storage_retain(s);
  return t;
}

rl_tensor *rl_tensor_with(rl_storage *s, const rl_geom *g) { return tensor_window(s, s->dtype, s->device, g); }

rl_tensor *rl_tensor_window(const rl_tensor *x, const rl_geom *g) { return tensor_window(x->storage, x->dtype, x->device, g); }

rl_tensor *rl_tensor_alias(const rl_tensor *x) {
  rl_tensor *t = rl_alloc(sizeof *t);
  if (!t) return NULL;
  *t = *x;
  t->refs = 1;
  t->flags &= (uint8_t)~RL_T_STACK;
  t->ag = NULL;
  rl_storage_retain(t->storage);
  return t;
}

rl_tensor *rl_tensor_retain(rl_tensor *t) {
  if (t && !(t->flags & RL_T_STACK)) __atomic_add_fetch(&t->refs, 1, __ATOMIC_RELAXED);
  return t;
}

rl_tensor *rl_tensor_keep(rl_tensor *t) {
  if (!t || !(t->flags & RL_T_STACK)) return rl_tensor_retain(t);
  struct rl_graph *g = rl_self.graph; /* the copy is a real number also while a graph is recorded */
  rl_self.graph = NULL;
  rl_tensor *c = rl_tensor_empty(t->dtype, t->device, 0, NULL);
  rl_self.graph = g;
  if (!c) return NULL;
  memcpy(c->storage->data, t->storage->data, 8);
  c->flags = RL_T_WEAK;
  return c;
}

void rl_tensor_release(rl_tensor *t) {
  if (!t || (t->flags & RL_T_STACK) || __atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  if (t->ag) rl_ag_free(t);
  rl_storage_release(t->storage);
  rl_free(t, sizeof *t);
}

/* A tensor that is resized or set is a new value: its history goes. */
static void tensor_forget(rl_tensor *t) {
  if (t->ag && t->ag->fn) rl_ag_free(t);
  t->node = -1;
}

rl_status rl_tensor_resize(rl_tensor *t, int ndim, const int64_t *size) {
  rl_geom g = { .ndim = ndim, .offset = t->offset };
  RL_TRY(tensor_check_rank(ndim));
  int64_t n = tensor_strides(ndim, size, g.stride);
  if (n < 0) return rl_error("[resize] bad size");
  memcpy(g.size, size, (size_t)ndim * sizeof *size);
  if (t->storage && ndim == t->ndim && !memcmp(size, t->size, (size_t)ndim * sizeof *size) && rl_is_contiguous(t)) return RL_OK;
  if (!t->storage && !(t->storage = rl_storage_new(t->dtype, t->device, n))) return RL_OOM;
  if (n && g.offset + n > t->storage->size) RL_TRY(rl_storage_resize(t->storage, g.offset + n));
  tensor_forget(t);
  tensor_take_geom(t, &g);
  return RL_OK;
}

rl_status rl_tensor_set(rl_tensor *t, rl_storage *s, const rl_geom *g) {
  if (s && s->dtype != t->dtype) return rl_error("[set] storage type; got %s, need %s", rl_dtypes[s->dtype].name, rl_dtypes[t->dtype].name);
  RL_TRY(geom_check(s, g));
  rl_storage_retain(s);
  rl_storage_release(t->storage);
  t->storage = s;
  tensor_forget(t);
  tensor_take_geom(t, g);
  return RL_OK;
}

bool rl_is_contiguous(const rl_tensor *t) {
  int64_t n = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    if (t->size[d] == 0) return true;
    if (t->size[d] != 1 && t->stride[d] != n) {
      for (int e = 0; e < d; e++)
        if (t->size[e] == 0) return true;
      return false;
    }
    n *= t->size[d];
  }
  return true;
}

bool rl_same_shape(const rl_tensor *a, const rl_tensor *b) { return a->ndim == b->ndim && !memcmp(a->size, b->size, a->ndim * sizeof *a->size); }

bool rl_is_set_to(const rl_tensor *a, const rl_tensor *b) {
  return a->storage == b->storage && a->offset == b->offset && rl_same_shape(a, b) && !memcmp(a->stride, b->stride, a->ndim * sizeof *a->stride);
}

int64_t rl_span(const rl_tensor *t) { return geom_span(t->ndim, t->size, t->stride); }

bool rl_overlaps(const rl_tensor *a, const rl_tensor *b) {
  if (!a->storage || a->storage != b->storage) return false;
  return a->offset < b->offset + rl_span(b) && b->offset < a->offset + rl_span(a);
}

const char *rl_shape_str(const rl_tensor *t, char buf[256]) {
  int n = 0;
  for (int d = 0; d < t->ndim; d++) n += snprintf(buf + n, 256 - (size_t)n, "%s%lld", d ? "x" : "", (long long)t->size[d]);
  snprintf(buf + n, 256 - (size_t)n, "%s%s", t->ndim ? " " : "scalar ", rl_dtypes[t->dtype].name);
  return buf;
}
