/* CUDA runtime, between its own files. */
#ifndef RL_CUDA_IMPL_H
#define RL_CUDA_IMPL_H
#include "cuda.h"
int cuda_cc(void); /* compute capability of the current device, 90 for 9.0 */
rl_status cuda_load(const void *image, const char *entry, void **fn);
rl_status cuda_start(void *fn, const char *op, int64_t blocks, int threads, void **args);
void cuda_count_host_op(void);
#endif
