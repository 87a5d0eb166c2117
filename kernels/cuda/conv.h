/* Convolution on CUDA: what conv.c, cudnn.c and matmul.c share. */
#ifndef RL_CUDA_CONV_H
#define RL_CUDA_CONV_H
#include "launch.h"
typedef struct cuda_conv {                                        /* compared as bytes: cleared before it is filled in */
  int x[4], w[4], y[4], s[2], p[2], d[2], groups, dt, tf32, last; /* last: channels are innermost in memory (NHWC) */
} cuda_conv;
bool cuda_cudnn_there(void);
/* what: 0 the result y, 1 the gradient of x, 2 that of w; dense memory, in the order that v->last says. */
rl_status cuda_cudnn_run(const cuda_conv *v, int what, void *x, void *w, void *y);
/* Whether channels innermost is faster, the copies that turn NCHW tensors counted in; copies: which of x, w, y need one. */
rl_status cuda_cudnn_prefers_last(const cuda_conv *v, int what, const bool *copies, bool *last);
/* r = alpha x y + beta r for matrices or batches of them; r has unit stride along its rows. */
rl_status cuda_multiply(rl_op op, rl_tensor *x, rl_tensor *y, rl_tensor *r, double alpha, double beta);
#endif
