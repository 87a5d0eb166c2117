/* cuDNN: handles, descriptors, and the fastest algorithm of each convolution, found by trying at its first use.
 * RELUME needs no header of it: the functions and numbers used are declared here (cuDNN 9). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../lib/runtime/cuda_impl.h"
#include "conv.h"

typedef struct perf {
  int algo, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
} perf;
typedef struct api {
  int (*create)(void **);
  int (*stream)(void *, void *);
  int (*tensor)(void **);
  int (*tensor_set)(void *, int, int, int, int, int, int);
  int (*filter)(void **);
  int (*filter_set)(void *, int, int, int, int, int, int);
  int (*conv)(void **);
  int (*conv_set)(void *, int, int, int, int, int, int, int, int);
  int (*groups)(void *, int);
  int (*math)(void *, int);
  int (*find[3])(void *, void *, void *, void *, void *, int, int *, perf *);
  int (*guess[3])(void *, void *, void *, void *, void *, int, int *, perf *);
  int (*run[3])(void *, const void *, void *, const void *, void *, const void *, void *, int, void *, size_t, const void *, void *, void *);
} api;
typedef struct plan {
  struct plan *next;
  cuda_conv v;
  int what, dev, algo;
  float time; /* ms, when algorithms were tried; else 0 */
  size_t memory;
  void *x, *w, *y, *conv;
} plan;

static const char *const names[] = { "cudnnCreate",
                                     "cudnnSetStream",
                                     "cudnnCreateTensorDescriptor",
                                     "cudnnSetTensor4dDescriptor",
                                     "cudnnCreateFilterDescriptor",
                                     "cudnnSetFilter4dDescriptor",
                                     "cudnnCreateConvolutionDescriptor",
                                     "cudnnSetConvolution2dDescriptor",
                                     "cudnnSetConvolutionGroupCount",
                                     "cudnnSetConvolutionMathType",
                                     "cudnnFindConvolutionForwardAlgorithm",
                                     "cudnnFindConvolutionBackwardDataAlgorithm",
                                     "cudnnFindConvolutionBackwardFilterAlgorithm",
                                     "cudnnGetConvolutionForwardAlgorithm_v7",
                                     "cudnnGetConvolutionBackwardDataAlgorithm_v7",
                                     "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
                                     "cudnnConvolutionForward",
                                     "cudnnConvolutionBackwardData",
                                     "cudnnConvolutionBackwardFilter" };
enum { NAMES = sizeof names / sizeof *names, MOST = (size_t)1 << 30 };
static api dnn;
static void *handles[CUDA_DEVICES];
static plan *plans;
static int there = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool cuda_cudnn_there(void) {
  void *f[NAMES], *h = NULL;
  pthread_mutex_lock(&lock);
  if (there < 0) {
    there = 1;
    for (int i = 0; i < NAMES && there; i++) there = (f[i] = rl_cudnn(names[i])) != NULL;
    if (there) memcpy(&dnn, f, sizeof dnn);
    there = there && dnn.create(&h) == 0; /* one that does not start is as good as none */
    handles[rl_cuda_device()] = h;
  }
  pthread_mutex_unlock(&lock);
  return there == 1;
}

static rl_status bad(const char *what, int status) { return rl_error("[conv2d] cuDNN %s; status %d", what, status); }

static int data_type(int dt) { return dt == RL_F64 ? 1 : dt == RL_F16 ? 2 : dt == RL_BF16 ? 9 : 0; }

static rl_status describe(plan *p) {
  const cuda_conv *v = &p->v;
  int dt = data_type(v->dt), compute = v->dt == RL_F64 ? 1 : 0, math = v->dt == RL_F32 ? (v->tf32 ? 0 : 3) : v->dt == RL_F64 ? 0 : 1;
  int r = dnn.tensor(&p->x) | dnn.tensor(&p->y) | dnn.filter(&p->w) | dnn.conv(&p->conv);
  if (!r) r = dnn.tensor_set(p->x, v->last, dt, v->x[0], v->x[1], v->x[2], v->x[3]);
  if (!r) r = dnn.tensor_set(p->y, v->last, dt, v->y[0], v->y[1], v->y[2], v->y[3]);
  if (!r) r = dnn.filter_set(p->w, dt, v->last, v->w[0], v->w[1], v->w[2], v->w[3]);
  if (!r) r = dnn.conv_set(p->conv, v->p[0], v->p[1], v->s[0], v->s[1], v->d[0], v->d[1], 1, compute);
  if (!r) r = dnn.groups(p->conv, v->groups);
  if (!r) r = dnn.math(p->conv, math);
  return r ? bad("refuses the sizes", r) : RL_OK;
}

/* Tries the algorithms; while a graph is recorded, or when trying fails, the library's guess. */
static rl_status choose(plan *p, void *h) {
  perf list[16];
  int n = 0, r = 1;
  void *a = p->what == 1 ? p->w : p->x, *b = p->what == 0 ? p->w : p->y, *c = p->what == 0 ? p->y : p->what == 1 ? p->x : p->w;
  for (int k = 0; k < 2; k++) {
    if (k == 0 && (cuda_capturing() || rl_cuda_deterministic())) continue;
    r = (k ? dnn.guess : dnn.find)[p->what](h, a, b, p->conv, c, 16, &n, list);
    for (int i = 0; i < n && !r && rl_env_int(RL_ENV_DEBUG) >= 3; i++) {
      const cuda_conv *v = &p->v;
      fprintf(stderr, "[cudnn] %s (%d, %d, %d, %d) %dx%d of %d%s: algorithm %d math %d, %.3f ms, %zu bytes, status %d\n",
              p->what == 0   ? "conv2d"
              : p->what == 1 ? "conv2d_dx"
                             : "conv2d_dw",
              v->x[0], v->x[1], v->x[2], v->x[3], v->w[2], v->w[3], v->w[0], v->last ? " channels last" : "", list[i].algo, list[i].math,
              (double)list[i].time, list[i].memory, list[i].status);
    }
    for (int i = 0; i < n && !r; i++) {
      if (list[i].status || list[i].memory > (size_t)MOST) continue;
      p->algo = list[i].algo, p->memory = list[i].memory, p->time = k ? 0 : list[i].time;
      dnn.math(p->conv, list[i].math);
      return RL_OK;
    }
  }
  return bad("has no algorithm for these sizes", r);
}

static rl_status plan_for(const cuda_conv *v, int what, void *h, plan **out) {
  int dev = rl_cuda_device();
  for (plan *p = plans; p; p = p->next)
    if (p->what == what && p->dev == dev && !memcmp(&p->v, v, sizeof *v)) {
      *out = p;
      return p->algo < 0 ? bad("has no algorithm for these sizes", 0) : RL_OK;
    }
  plan *p = calloc(1, sizeof *p);
  if (!p) return rl_error_status(RL_OOM, "[conv2d] out of memory");
  p->v = *v, p->what = what, p->dev = dev;
  rl_status s = describe(p);
  if (s == RL_OK) s = choose(p, h);
  if (s != RL_OK) p->algo = -1; /* not asked again */
  pthread_mutex_lock(&lock);
  p->next = plans;
  plans = p;
  pthread_mutex_unlock(&lock);
  *out = p;
  return s;
}

static rl_status handle_here(void **h) {
  int dev = rl_cuda_device();
  RL_TRY(rl_cuda_need());
  if (!handles[dev]) {
    int r = dnn.create(&handles[dev]);
    if (r) return bad("cannot start", r);
  }
  *h = handles[dev];
  dnn.stream(*h, cuda_stream());
  return RL_OK;
}

/* What a copy that turns n elements around takes, ms: launch, read and written at about 2 TB/s. */
static float copy_time(const int *size, int dt) {
  return 0.003f + 2e-9f * (float)size[0] * (float)size[1] * (float)size[2] * (float)size[3] * (float)rl_dtypes[dt].bytes / 2;
}

rl_status cuda_cudnn_prefers_last(const cuda_conv *v, int what, const bool *copies, bool *last) {
  const int *size[3] = { v->x, v->w, v->y };
  cuda_conv turned = *v;
  plan *plain = NULL, *other = NULL;
  void *h;
  *last = false;
  turned.last = 1;
  if (v->dt == RL_F64) return RL_OK;
  RL_TRY(handle_here(&h));
  RL_TRY(plan_for(v, what, h, &plain));
  if (plan_for(&turned, what, h, &other) != RL_OK) return RL_OK; /* not supported: as it is */
  if (!plain->time || !other->time) return *last = v->dt != RL_F32, RL_OK;
  float t = other->time;
  for (int k = 0; k < 3; k++) t += copies[k] ? copy_time(size[k], v->dt) : 0;
  *last = t < plain->time;
  return RL_OK;
}

rl_status cuda_cudnn_run(const cuda_conv *v, int what, void *x, void *w, void *y) {
  plan *p = NULL;
  float one = 1, zero = 0;
  double one64 = 1, zero64 = 0;
  bool wide = v->dt == RL_F64;
  void *h;
  RL_TRY(handle_here(&h));
  RL_TRY(plan_for(v, what, h, &p));
  void *work = p->memory ? rl_cuda_workspace(p->memory) : NULL;
  if (p->memory && !work) return RL_OOM;
  const void *alpha = wide ? (void *)&one64 : &one, *beta = wide ? (void *)&zero64 : &zero;
  void *a = what == 1 ? w : x, *da = what == 1 ? p->w : p->x, *b = what == 0 ? w : y, *db = what == 0 ? p->w : p->y;
  void *c = what == 0 ? y : what == 1 ? x : w, *dc = what == 0 ? p->y : what == 1 ? p->x : p->w;
  int r = dnn.run[what](h, alpha, da, a, db, b, p->conv, p->algo, work, p->memory, beta, dc, c);
  return r ? bad("failed", r) : RL_OK;
}
