/* Tensors: storage + offset + sizes + strides, reference counted; views share storage.
 * A *fake* tensor has no data: its storage belongs to a graph being recorded, and an op on it becomes a node. */
#ifndef RL_TENSOR_H
#define RL_TENSOR_H
#include "../base/rl.h"

typedef struct {
  uint16_t bits;
} rl_f16;
typedef struct {
  uint16_t bits;
} rl_bf16;

#define RL_DTYPE(id, lua, st, ct, suf, bytes, isfloat, npy) RL_##id,
typedef enum rl_dtype {
#include "../dtypes.def"
  RL_NDTYPE
} rl_dtype;
#undef RL_DTYPE
typedef enum rl_device { RL_CPU, RL_CUDA, RL_NDEVICE } rl_device;

typedef struct rl_dtype_info {
  const char *name, *ctype, *compute, *suffix, *npy;
  int bytes;
  bool is_float;
} rl_dtype_info;
RL_API extern const rl_dtype_info rl_dtypes[RL_NDTYPE];

#define RL_MAXDIM 12

struct rl_graph;
typedef struct rl_storage {
  int32_t refs; /* atomic */
  uint8_t dtype, device, flags, device_index;
  uint32_t version;                      /* counts writes; the tape compares it */
  int64_t size;                          /* elements */
  void *data;                            /* NULL when size is 0 or the storage is fake */
  struct rl_graph *graph;                /* owner of a fake storage, else NULL */
  int32_t id;                            /* number of a fake storage in its graph */
  void (*release)(struct rl_storage *s); /* frees foreign memory (mmap, shared); NULL: rl_free */
  void *foreign;                         /* what release needs; of CUDA memory without release: NULL or a number's rl_cuda_note */
} rl_storage;

enum {
  RL_T_WEAK = 1,  /* a Lua number: rank 0, takes the dtype of what it meets */
  RL_T_STACK = 2, /* lives on a C stack: rl_tensor_keep copies it */
  RL_T_NUMBER = 4 /* the binding would have returned a Lua number (full reduction of a fake) */
};

struct rl_ag; /* autograd metadata: lib/autograd/tape.h */
typedef struct rl_tensor {
  int32_t refs; /* atomic */
  uint8_t dtype, device, ndim, flags;
  int32_t node;        /* fake: reference of the graph node that made the value, else -1 */
  rl_storage *storage; /* NULL: no storage yet (torch.Tensor() before its first resize) */
  int64_t offset;      /* elements */
  int64_t size[RL_MAXDIM], stride[RL_MAXDIM];
  struct rl_ag *ag; /* NULL: does not require grad, no history */
} rl_tensor;
/* Rank and emptiness. A rank-0 tensor with storage is one element (a scalar). Torch7's empty tensor
 * (`torch.Tensor()`, dim() == 0, no elements) is rank 1 with size {0}; the binding prints it as no dimension. */

typedef struct rl_geom {
  int ndim;
  int64_t offset, size[RL_MAXDIM], stride[RL_MAXDIM];
} rl_geom;

static inline bool rl_is_fake(const rl_tensor *t) { return t->storage && t->storage->graph; }
static inline int64_t rl_numel(const rl_tensor *t) {
  int64_t n = 1;
  for (int d = 0; d < t->ndim; d++) n *= t->size[d];
  return n;
}
static inline void *rl_data(const rl_tensor *t) {
  return t->storage && t->storage->data ? (char *)t->storage->data + t->offset * rl_dtypes[t->dtype].bytes : NULL;
}

/* Storages. New ones have refs = 1; contents undefined. While a graph is recorded (rl_self.graph) new storages are fake. */
RL_API rl_storage *rl_storage_new(rl_dtype dt, rl_device dev, int64_t size); /* NULL: out of memory or bad size */
RL_API rl_status rl_storage_resize(rl_storage *s, int64_t size);             /* keeps the common prefix */
RL_API rl_storage *rl_storage_retain(rl_storage *s);
RL_API void rl_storage_release(rl_storage *s);

/* Tensors. */
RL_API rl_tensor *rl_tensor_empty(rl_dtype dt, rl_device dev, int ndim, const int64_t *size); /* contiguous */
RL_API rl_tensor *rl_tensor_with(rl_storage *s, const rl_geom *g);                            /* retains s; checks the geometry against it */
RL_API rl_tensor *rl_tensor_window(const rl_tensor *x, const rl_geom *g);                     /* of x's storage, also where x:set() left none */
RL_API rl_tensor *rl_tensor_alias(const rl_tensor *t);                                        /* same storage and geometry, no autograd history */
RL_API rl_tensor *rl_tensor_retain(rl_tensor *t);
RL_API rl_tensor *rl_tensor_keep(rl_tensor *t); /* retain; a stack number is copied to the heap */
RL_API void rl_tensor_release(rl_tensor *t);
RL_API rl_status rl_tensor_resize(rl_tensor *t, int ndim, const int64_t *size); /* Torch7's resize: contiguous, grows the storage */
RL_API rl_status rl_tensor_set(rl_tensor *t, rl_storage *s, const rl_geom *g);  /* Torch7's set */
RL_API bool rl_is_contiguous(const rl_tensor *t);
RL_API bool rl_same_shape(const rl_tensor *a, const rl_tensor *b);
RL_API bool rl_is_set_to(const rl_tensor *a, const rl_tensor *b);
RL_API int64_t rl_span(const rl_tensor *t);                      /* elements of storage touched, from offset: 1 + sum((size-1)*stride), 0 if empty */
RL_API bool rl_overlaps(const rl_tensor *a, const rl_tensor *b); /* may share memory (conservative) */
RL_API const char *rl_shape_str(const rl_tensor *t, char buf[256]); /* "3x4 Float" for messages */

/* A number as a tensor on the C stack: `rl_number n; rl_call(RL_OP_ADD, (rl_tensor*[]){x, rl_number_set(&n, 3.0)}, ...)`. */
typedef struct rl_number {
  rl_tensor t;
  rl_storage s;
  union {
    double f;
    int64_t i;
  } v;
} rl_number;
RL_API rl_tensor *rl_number_set(rl_number *n, double v);          /* weak F64 */
RL_API rl_tensor *rl_number_seti(rl_number *n, int64_t v);        /* weak I64, exact beyond 2^53 */
RL_API rl_status rl_tensor_item(const rl_tensor *t, double *out); /* the one element; RL_NODATA on a fake */

/* Per-thread state: a Lua state runs in one thread, so nothing here is shared. */
struct rl_generator;
typedef struct rl_state {
  bool grad_disabled;
  uint8_t autocast;         /* 1 + dtype that products and convolutions of Float run in; 0: off */
  bool grad_unchecked;      /* backward uses saved values as they are now, changed or not (Torch7's modules) */
  struct rl_graph *graph;   /* graph being recorded, or NULL */
  struct rl_generator *gen; /* default generator (created at first use) */
  rl_dtype default_dtype;   /* F64 at start */
  rl_device default_device;
} rl_state;
extern RL_API RL_TLS rl_state rl_self RL_TLS_FAST;
#endif
