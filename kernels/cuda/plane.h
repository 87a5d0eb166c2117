/* Planes on CUDA: the argument block of plane.cuh, filled from tensors. */
#ifndef RL_CUDA_PLANE_H
#define RL_CUDA_PLANE_H
#include "launch.h"
typedef struct cuda_plane {
  int64_t n, c, h, w, oh, ow, k[2], s[2], p[2], d[2], sx[4], sr[4], si[4], flag, first, *err, op;
  const void *x;
  void *r;
  int64_t *idx;
} cuda_plane;
/* x and r are (n, c, height, width); h, w those of `plane`, oh, ow those of `windows`. */
void cuda_plane_init(cuda_plane *a, rl_op op, const rl_tensor *x, const rl_tensor *r, const rl_tensor *plane, const rl_tensor *windows);
rl_status cuda_plane_run(rl_dtype dt, const char *entry, cuda_plane *a, int64_t n);
#endif
