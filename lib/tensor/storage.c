/* Storage: typed memory, reference counted, shared by the tensors that view it.
 * While a graph is recorded in this thread new storages are fake: they have a size and no memory. */
#include <string.h>
#include "../graph/graph.h"
#include "../runtime/cuda.h"

#pragma weak rl_graph_storage_new
#pragma weak rl_graph_storage_resize

const rl_dtype_info rl_dtypes[RL_NDTYPE] = {
#define RL_DTYPE(id, lua, st, ct, suf, bytes, isfloat, npy) { lua, #st, #ct, #suf, npy, bytes, isfloat },
#include "../dtypes.def"
#undef RL_DTYPE
};

RL_TLS rl_state rl_self RL_TLS_FAST = { .default_dtype = RL_F64, .default_device = RL_CPU };

static void *device_alloc(rl_device dev, size_t bytes) { return dev == RL_CUDA ? rl_cuda_alloc(bytes) : rl_alloc(bytes); }

static size_t storage_bytes(const rl_storage *s) { return (size_t)s->size * (size_t)rl_dtypes[s->dtype].bytes; }

/* A few elements lie behind the header in one block: half the allocations of a scalar. */
enum { STORAGE_HEAD = 64, STORAGE_SMALL = 64, STORAGE_INLINE = 0x80 };
_Static_assert(sizeof(rl_storage) <= STORAGE_HEAD, "the header fits its part of the block");
static void *storage_inside(rl_storage *s) { return (char *)s + STORAGE_HEAD; }

rl_storage *rl_storage_new(rl_dtype dt, rl_device dev, int64_t size) {
  if (size < 0 || size > INT64_MAX / 16) {
    rl_error("[storage] bad size; got %lld", (long long)size);
    return NULL;
  }
  if (rl_self.graph) return rl_graph_storage_new(rl_self.graph, dt, dev, size);
  size_t bytes = (size_t)size * (size_t)rl_dtypes[dt].bytes;
  bool small = dev == RL_CPU && bytes && bytes <= STORAGE_SMALL;
  rl_storage *s = rl_alloc(small ? STORAGE_HEAD + STORAGE_SMALL : sizeof *s);
  if (!s) return NULL;
  *s = (rl_storage){ .refs = 1, .dtype = dt, .device = dev, .size = size, .id = -1, .flags = small ? STORAGE_INLINE : 0 };
  if (small) {
    s->data = storage_inside(s);
    return s;
  }
  if (dev == RL_CUDA) s->device_index = (uint8_t)rl_cuda_place();
  if (size && !(s->data = device_alloc(dev, storage_bytes(s)))) {
    rl_free(s, sizeof *s);
    return NULL;
  }
  return s;
}

static void storage_drop(rl_storage *s) {
  if (s->release) s->release(s);
  else if (s->device == RL_CUDA && !s->graph) rl_cuda_free(s->data, storage_bytes(s), s->device_index);
  else if (!s->graph && !((s->flags & STORAGE_INLINE) && s->data == storage_inside(s))) rl_free(s->data, storage_bytes(s));
}

rl_status rl_storage_resize(rl_storage *s, int64_t size) {
  if (s->graph) return rl_graph_storage_resize(s, size);
  if (size == s->size) return RL_OK;
  if (size < 0 || size > INT64_MAX / 16) return rl_error("[storage] bad size; got %lld", (long long)size);
  rl_storage next = { .dtype = s->dtype, .size = size };
  void *p = size ? device_alloc((rl_device)s->device, storage_bytes(&next)) : NULL;
  if (size && !p) return RL_OOM;
  size_t keep = RL_MIN(storage_bytes(s), storage_bytes(&next));
  if (keep && s->device == RL_CUDA) RL_TRY(rl_cuda_move_bytes(p, s->data, keep));
  else if (keep) memcpy(p, s->data, keep);
  storage_drop(s);
  s->release = NULL;
  s->foreign = NULL;
  s->data = p;
  s->size = size;
  s->version++;
  return RL_OK;
}

rl_storage *rl_storage_retain(rl_storage *s) {
  if (s) __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
  return s;
}

void rl_storage_release(rl_storage *s) {
  if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  storage_drop(s);
  rl_free(s, s->flags & STORAGE_INLINE ? STORAGE_HEAD + STORAGE_SMALL : sizeof *s);
}
