/* CUDA runtime, between its own files. */
#ifndef RL_CUDA_IMPL_H
#define RL_CUDA_IMPL_H
#include "cuda.h"
#include "cuda_api.h"

enum { CUDA_DEVICES = 16, CUDA_STREAMS = 16 };
extern cu_api cu;
extern rl_cuda_stats cuda_stats;
#define CU(call, what) \
  do { \
    int r_ = (call); \
    if (r_) return cuda_fail(r_, what); \
  } while (0)

int cuda_cc(void); /* compute capability of the current device, 90 for 9.0 */
rl_status cuda_fail(int result, const char *what);
bool cuda_load_all(void *h, void **table, const char *const *names, int n, char *why, const char *lib);
void *cuda_open_any(const char *const *names);
void *cuda_stream(void);
int cuda_stream_index(void);
int64_t *cuda_error_words(void);
rl_status cuda_load_module(const void *image, void **module);
rl_status cuda_entry(void *module, const char *entry, void **fn);
rl_status cuda_start(void *fn, const char *op, int64_t blocks, int64_t columns, int threads, void **args);
void cuda_count_host_op(void);

rl_status cuda_capture_begin(void);
rl_status cuda_capture_end(bool keep, void **exec);
bool cuda_capturing(void);
rl_status cuda_graph_launch(void *exec);
void cuda_graph_free(void *exec);
rl_status cuda_note_record(rl_cuda_note *n, const void *dev, size_t bytes); /* while recording: a copy beside what follows */
rl_status cuda_note_join(void);                                             /* before the end of a recording that has notes */
typedef struct cuda_pool cuda_pool;
cuda_pool *cuda_pool_begin(void); /* allocations of this thread come from a pool of its own */
void cuda_pool_end(void);
void cuda_pool_free(cuda_pool *p, int where);
#endif
