// cuDNN's convolutions for the emulated GPU: the few functions that kernels/cuda/cudnn.c calls, in the plainest loops (memory -> memory).
// Channels innermost says that it is the faster order, so that copies which turn tensors are tried. The library starts under EMU_CUDNN=1 alone, as
// its calls run at once and cannot be recorded in a graph.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define API extern "C"

struct perf {
  int algo, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
};
struct tensor {
  int last, dt, n[4];
};
struct conv {
  int p[2], s[2], d[2], groups;
};

static double load(const tensor *t, const void *at, int64_t i) {
  if (t->dt == 0) return ((const float *)at)[i];
  if (t->dt == 1) return ((const double *)at)[i];
  uint16_t h = ((const uint16_t *)at)[i];
  uint32_t w = (uint32_t)h << 16;
  float f;
  if (t->dt == 9) return memcpy(&f, &w, 4), f;
  _Float16 x;
  return memcpy(&x, &h, 2), (float)x;
}
static void store(const tensor *t, void *at, int64_t i, double v) {
  float f = (float)v;
  if (t->dt == 0) ((float *)at)[i] = f;
  else if (t->dt == 1) ((double *)at)[i] = v;
  else if (t->dt == 9) {
    uint32_t w;
    memcpy(&w, &f, 4);
    ((uint16_t *)at)[i] = (uint16_t)((w + 0x7fff + (w >> 16 & 1)) >> 16);
  } else {
    _Float16 x = (_Float16)f;
    memcpy((uint16_t *)at + i, &x, 2);
  }
}
static int64_t place(const tensor *t, int a, int b, int c, int d) {
  return t->last ? (((int64_t)a * t->n[2] + c) * t->n[3] + d) * t->n[1] + b : (((int64_t)a * t->n[1] + b) * t->n[2] + c) * t->n[3] + d;
}

// Calls f(x's place, w's place, y's place) for every product.
template <class F> static void products(const tensor *x, const tensor *w, const tensor *y, const conv *v, F f) {
  int og = y->n[1] / v->groups;
  for (int n = 0; n < y->n[0]; n++)
    for (int o = 0; o < y->n[1]; o++)
      for (int i = 0; i < y->n[2]; i++)
        for (int j = 0; j < y->n[3]; j++)
          for (int c = 0; c < w->n[1]; c++)
            for (int k = 0; k < w->n[2]; k++)
              for (int l = 0; l < w->n[3]; l++) {
                int h = i * v->s[0] - v->p[0] + k * v->d[0], u = j * v->s[1] - v->p[1] + l * v->d[1];
                if (h < 0 || h >= x->n[2] || u < 0 || u >= x->n[3]) continue;
                f(place(x, n, o / og * w->n[1] + c, h, u), place(w, o, c, k, l), place(y, n, o, i, j));
              }
}
static int64_t count(const tensor *t) { return (int64_t)t->n[0] * t->n[1] * t->n[2] * t->n[3]; }
static int finish(const tensor *t, void *to, double *sum) {
  for (int64_t i = 0; i < count(t); i++) store(t, to, i, sum[i]);
  free(sum);
  return 0;
}
static double *zeros(const tensor *t) { return (double *)calloc((size_t)count(t) + 1, sizeof(double)); }

API int cudnnCreate(void **h) {
  const char *on = getenv("EMU_CUDNN");
  *h = h;
  return !on || *on != '1';
}
API int cudnnSetStream(void *, void *) { return 0; }
API int cudnnCreateTensorDescriptor(void **t) { return *t = calloc(1, sizeof(tensor)), 0; }
API int cudnnCreateFilterDescriptor(void **t) { return *t = calloc(1, sizeof(tensor)), 0; }
API int cudnnCreateConvolutionDescriptor(void **c) { return *c = calloc(1, sizeof(conv)), 0; }
API int cudnnSetTensor4dDescriptor(tensor *t, int last, int dt, int a, int b, int c, int d) { return *t = { last, dt, { a, b, c, d } }, 0; }
API int cudnnSetFilter4dDescriptor(tensor *t, int dt, int last, int a, int b, int c, int d) { return *t = { last, dt, { a, b, c, d } }, 0; }
API int cudnnSetConvolution2dDescriptor(conv *v, int ph, int pw, int sh, int sw, int dh, int dw, int, int) {
  return *v = { { ph, pw }, { sh, sw }, { dh, dw }, 1 }, 0;
}
API int cudnnSetConvolutionGroupCount(conv *v, int g) { return v->groups = g, 0; }
API int cudnnSetConvolutionMathType(conv *, int) { return 0; }
static int found(const tensor *x, int *n, perf *list) {
  memset(list, 0, sizeof *list);
  list->time = x->last ? 1e-3f : 1e3f;
  return *n = 1, 0;
}
#define FIND(NAME) \
  API int NAME(void *, const tensor *a, const tensor *, const conv *, const tensor *, int, int *n, perf *list) { return found(a, n, list); }
FIND(cudnnFindConvolutionForwardAlgorithm)
FIND(cudnnFindConvolutionBackwardDataAlgorithm)
FIND(cudnnFindConvolutionBackwardFilterAlgorithm)
FIND(cudnnGetConvolutionForwardAlgorithm_v7)
FIND(cudnnGetConvolutionBackwardDataAlgorithm_v7)
FIND(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
API int cudnnConvolutionForward(void *, const void *, const tensor *x, const void *px, const tensor *w, const void *pw, const conv *v, int, void *, size_t,
                                const void *, const tensor *y, void *py) {
  double *sum = zeros(y);
  products(x, w, y, v, [&](int64_t i, int64_t k, int64_t o) { sum[o] += (double)load(x, px, i) * load(w, pw, k); });
  return finish(y, py, sum);
}
API int cudnnConvolutionBackwardData(void *, const void *, const tensor *w, const void *pw, const tensor *y, const void *py, const conv *v, int, void *,
                                     size_t, const void *, const tensor *x, void *px) {
  double *sum = zeros(x);
  products(x, w, y, v, [&](int64_t i, int64_t k, int64_t o) { sum[i] += (double)load(y, py, o) * load(w, pw, k); });
  return finish(x, px, sum);
}
API int cudnnConvolutionBackwardFilter(void *, const void *, const tensor *x, const void *px, const tensor *y, const void *py, const conv *v, int, void *,
                                       size_t, const void *, const tensor *w, void *pw) {
  double *sum = zeros(w);
  products(x, w, y, v, [&](int64_t i, int64_t k, int64_t o) { sum[k] += (double)load(y, py, o) * load(x, px, i); });
  return finish(w, pw, sum);
}
