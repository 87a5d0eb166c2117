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
enum { NAMES = sizeof names / sizeof *names, MOST = (size_t)1 << 30, CHOICES = 5, CALLS = 4, TRIES = 3 };
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

static void *operand(const plan *p, int k, void *x, void *w, void *y) {
  return k == 0 ? (p->what == 1 ? w : x) : k == 1 ? (p->what == 0 ? w : y) : p->what == 0 ? y : p->what == 1 ? x : w;
}

static int call(const plan *p, void *h, void *x, void *w, void *y, void *work) {
  static const float one = 1, zero = 0;
  static const double one64 = 1, zero64 = 0;
  bool wide = p->v.dt == RL_F64;
  return dnn.run[p->what](h, wide ? (const void *)&one64 : &one, operand(p, 0, p->x, p->w, p->y), operand(p, 0, x, w, y),
                          operand(p, 1, p->x, p->w, p->y), operand(p, 1, x, w, y), p->conv, p->algo, work, p->memory,
                          wide ? (const void *)&zero64 : &zero, operand(p, 2, p->x, p->w, p->y), operand(p, 2, x, w, y));
}

/* ms of a call on the GPU alone: a few are recorded as a graph, as the library takes longer on the host than a small convolution. Negative: it fails. */
static double time_of(const plan *p, void *h, char *const *room, void *const *mark) {
  void *work = p->memory ? rl_cuda_workspace(p->memory) : NULL, *graph = NULL;
  double best = -1, ms;
  int bad = p->memory && !work;
  if (bad || call(p, h, room[0], room[1], room[2], work)) return -1;
  if (cuda_capture_begin() != RL_OK) return -1;
  for (int i = 0; i < CALLS && !bad; i++) bad = call(p, h, room[0], room[1], room[2], work);
  if (cuda_capture_end(!bad, &graph) != RL_OK || !graph) return -1;
  for (int i = 0; i < TRIES; i++) {
    if (rl_cuda_event_record(mark[0]) != RL_OK || cuda_graph_launch(graph) != RL_OK || rl_cuda_event_record(mark[1]) != RL_OK) break;
    if (rl_cuda_event_sync(mark[1]) != RL_OK || rl_cuda_event_elapsed(mark[0], mark[1], &ms) != RL_OK) break;
    if (best < 0 || ms < best) best = ms;
  }
  cuda_graph_free(graph);
  return best / CALLS;
}

static void take(plan *p, const perf *f, double ms) {
  p->algo = f->algo, p->memory = f->memory, p->time = (float)ms;
  dnn.math(p->conv, f->math);
}

static size_t bytes_of(const int *n, int dt) { return (size_t)n[0] * (size_t)n[1] * (size_t)n[2] * (size_t)n[3] * (size_t)rl_dtypes[dt].bytes; }

/* Of the algorithms that the library found the fastest, on memory of their own. */
static void compare(plan *p, void *h, const perf *list, int n) {
  const size_t bytes[3] = { bytes_of(p->v.x, p->v.dt), bytes_of(p->v.w, p->v.dt), bytes_of(p->v.y, p->v.dt) };
  char *room[3];
  void *mark[2] = { rl_cuda_event_new(), rl_cuda_event_new() };
  bool ready = mark[0] && mark[1];
  int best = -1;
  double least = -1;
  for (int k = 0; k < 3; k++) ready = (room[k] = rl_cuda_alloc(bytes[k])) && rl_cuda_zero_bytes(room[k], bytes[k]) == RL_OK && ready;
  for (int i = 0, tried = 0; i < n && ready && tried < CHOICES; i++) {
    if (list[i].status || list[i].memory > (size_t)MOST) continue;
    if (list[i].time > 2 * list[0].time + 0.1f) break; /* in order of time, which includes the host's */
    tried++;
    take(p, &list[i], 0);
    double ms = time_of(p, h, room, mark);
    if (ms >= 0 && (least < 0 || ms < least)) best = i, least = ms;
  }
  for (int k = 0; k < 3; k++)
    if (room[k]) rl_cuda_free(room[k], bytes[k], rl_cuda_place());
  for (int i = 0; i < 2; i++)
    if (mark[i]) rl_cuda_event_free(mark[i]);
  for (int i = 0; i < n && best < 0; i++)
    if (!list[i].status && list[i].memory <= (size_t)MOST) best = i;
  if (best >= 0) take(p, &list[best], least);
}

static void report(const plan *p, const perf *f) {
  const cuda_conv *v = &p->v;
  fprintf(stderr, "[cudnn] %s (%d, %d, %d, %d) %dx%d of %d%s: algorithm %d math %d, found %.3f ms, %zu bytes, status %d\n",
          p->what == 0   ? "conv2d"
          : p->what == 1 ? "conv2d_dx"
                         : "conv2d_dw",
          v->x[0], v->x[1], v->x[2], v->x[3], v->w[2], v->w[3], v->w[0], v->last ? " channels last" : "", f->algo, f->math, (double)f->time,
          f->memory, f->status);
}

/* Tries the algorithms; while a graph is recorded, when results may not depend on a clock, or when trying fails, the library's guess. */
static rl_status choose(plan *p, void *h) {
  perf list[16];
  int n = 0, r = 1;
  bool tries = !cuda_capturing() && !rl_cuda_deterministic();
  void *a = operand(p, 0, p->x, p->w, p->y), *b = operand(p, 1, p->x, p->w, p->y), *c = operand(p, 2, p->x, p->w, p->y);
  p->algo = -1;
  if (tries) r = dnn.find[p->what](h, a, b, p->conv, c, 16, &n, list);
  if (!r) compare(p, h, list, n);
  for (int i = 0; i < n && !r && rl_env_int(RL_ENV_DEBUG) >= 3; i++) report(p, &list[i]);
  if (p->algo >= 0) {
    if (rl_env_int(RL_ENV_DEBUG) >= 3) fprintf(stderr, "[cudnn] algorithm %d taken, %.4f ms\n", p->algo, (double)p->time);
    return RL_OK;
  }
  r = dnn.guess[p->what](h, a, b, p->conv, c, 16, &n, list);
  for (int i = 0; i < n && !r && p->algo < 0; i++)
    if (!list[i].status && list[i].memory <= (size_t)MOST) take(p, &list[i], 0);
  return p->algo >= 0 ? RL_OK : bad("has no algorithm for these sizes", r);
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
  void *h = NULL;
  *last = false;
  turned.last = 1;
  if (v->dt == RL_F64) return RL_OK;
  RL_TRY(handle_here(&h));
  /* Tensor cores take half types by eight channels that lie together; other orders only turn them first. */
  if (v->dt != RL_F32 && v->groups == 1 && v->x[1] % 8 == 0 && v->y[1] % 8 == 0 && plan_for(&turned, what, h, &other) == RL_OK)
    return *last = true, RL_OK;
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
  void *h = NULL;
  RL_TRY(handle_here(&h));
  RL_TRY(plan_for(v, what, h, &p));
  void *work = p->memory ? rl_cuda_workspace(p->memory) : NULL;
  if (p->memory && !work) return RL_OOM;
  int r = call(p, h, x, w, y, work);
  return r ? bad("failed", r) : RL_OK;
}
