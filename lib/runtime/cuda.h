/* CUDA runtime: driver, NVRTC and cuBLASLt opened at run time, devices, memory, kernels.
 * Nothing here needs CUDA to build; without a GPU every entry returns an error that names the missing piece. */
#ifndef RL_CUDA_RT_H
#define RL_CUDA_RT_H
#include "../tensor/op.h"

typedef struct rl_cuda_stats {
  int64_t live, peak, cached, allocs, hits, launches, host_ops, early; /* early: numbers read while a graph still ran */
} rl_cuda_stats;

RL_API int rl_cuda_count(void);      /* devices that can be used; 0: the reason is in rl_error_message */
RL_API rl_status rl_cuda_need(void); /* opens the driver and the current device, or says what is missing */
RL_API int rl_cuda_device(void);     /* current device of this thread, from 0 */
RL_API rl_status rl_cuda_set_device(int dev);
/* Whether blocks of the current device can form clusters (9.0 and up). */
RL_API bool rl_cuda_clusters(void);
RL_API rl_status rl_cuda_name(int dev, char *buf, int n, int *cc, int64_t *total);
RL_API rl_status rl_cuda_sync(void); /* waits; an error of an earlier kernel is told with its op */
RL_API rl_status rl_cuda_mem_info(int64_t *free_bytes, int64_t *total);
RL_API void rl_cuda_mem_get(rl_cuda_stats *out);
RL_API void rl_cuda_mem_release_cache(void);
RL_API void rl_cuda_mem_reset_peak(void);
RL_API int rl_cuda_processors(void); /* multiprocessors of the current device */
RL_API void rl_cuda_set_tf32(bool on);
RL_API bool rl_cuda_tf32(void);
/* On: sums in one order, algorithms that do not depend on a clock. Off at first. */
RL_API void rl_cuda_set_deterministic(bool on);
RL_API bool rl_cuda_deterministic(void);
RL_API int rl_cuda_streams(void); /* reserved streams of the current device, beside stream 0 */
RL_API rl_status rl_cuda_reserve_streams(int n);
RL_API rl_status rl_cuda_set_stream(int s);
RL_API int rl_cuda_stream(void);
RL_API rl_status rl_cuda_stream_sync(int s);
RL_API rl_status rl_cuda_stream_wait(int waiter, int other);
/* The host's copy of a number that a graph computes: it is there when the event has passed, while later parts of the graph may still run. */
typedef struct rl_cuda_note {
  void *host, *event;
  uint32_t version; /* of the storage that it is a copy of */
} rl_cuda_note;
rl_status rl_cuda_note_read(const rl_cuda_note *n, void *to, size_t bytes);
RL_API void *rl_cuda_event_new(void);
RL_API void rl_cuda_event_free(void *e);
RL_API rl_status rl_cuda_event_record(void *e);
RL_API rl_status rl_cuda_event_wait(void *e);
RL_API rl_status rl_cuda_event_sync(void *e);
RL_API rl_status rl_cuda_event_elapsed(void *a, void *b, double *ms);
RL_API void *rl_cuda_pinned_alloc(size_t bytes);
RL_API void rl_cuda_pinned_free(void *p);
RL_API rl_status rl_cuda_copy_async(void *to, const void *from, size_t bytes, bool to_device);
RL_API void rl_cuda_set_host_ops(bool on); /* ops without a CUDA kernel: through the host, or an error */

void *rl_cuda_alloc(size_t bytes); /* NULL: out of memory, message set */
void rl_cuda_free(void *p, size_t bytes, int where);
int rl_cuda_place(void);                                                  /* device and stream of an allocation made now, for rl_cuda_free */
RL_API rl_status rl_cuda_read(void *host, const void *dev, size_t bytes); /* after all work before it */
RL_API rl_status rl_cuda_write(void *dev, const void *host, size_t bytes);
rl_status rl_cuda_move_bytes(void *to, const void *from, size_t bytes);
rl_status rl_cuda_zero_bytes(void *to, size_t bytes);

/* Kernels. rl_cuda_kernel compiles src (or takes it from the caches) and finds the entry; NULL: message set. */
typedef struct rl_cuda_fn rl_cuda_fn;
rl_cuda_fn *rl_cuda_kernel(const char *key, const char *src, const char *entry);
rl_cuda_fn *rl_cuda_find(const char *key); /* one that was made before, or NULL */
rl_status rl_cuda_launch(rl_cuda_fn *f, const char *op, int64_t blocks, int threads, void **args);
rl_status rl_cuda_launch2(rl_cuda_fn *f, const char *op, int64_t blocks, int64_t columns, int threads, void **args);
/* Compiles for an architecture ("sm_90") without a device; NULL: message set. The image is malloc'ed. */
RL_API rl_status rl_cuda_compile(const char *src, const char *arch, char **image, size_t *bytes);
RL_API rl_status rl_nvrtc_need(void);
void *rl_cublaslt(const char *fn);     /* a function of cuBLASLt, NULL: message set */
void *rl_cudnn(const char *fn);        /* a function of cuDNN, NULL: message set */
void *rl_cuda_workspace(size_t bytes); /* scratch of the current device, valid until the next launch that asks for it */

/* Tensors. */
rl_status rl_cuda_transfer(rl_tensor *dst, rl_tensor *src);             /* same shape, any types, different devices */
RL_API rl_tensor *rl_cuda_to(rl_tensor *t, rl_dtype dt, rl_device dev); /* contiguous copy on a device, new reference */
rl_status rl_cuda_host_op(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);
/* Source of one EW or RED row for a dtype; NULL: the row has none. malloc'ed. */
RL_API char *rl_cuda_source(rl_op op, rl_dtype dt);
RL_API char *rl_cuda_prim_source(rl_dtype dt, const char *file);
#endif
