/* CUDA libraries opened at run time: NVRTC (source -> machine code, no GPU needed), cuBLASLt, cuDNN. */
#define _GNU_SOURCE
#include "cuda.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda_api.h"
#include "cuda_impl.h"

static nvrtc_api rtc;
static char nvrtc_missing[256];
static bool nvrtc_tried, nvrtc_ok;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* NVRTC. */
static void open_nvrtc(void) {
#define CU_FN(name, sym, args) sym,
  static const char *const names[] = { NVRTC_FUNCTIONS };
#undef CU_FN
  static const char *const libs[] = {
    "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so", "/usr/local/cuda-13.0/lib/libnvrtc.so.13", NULL
  };
  nvrtc_tried = true;
  void *h = cuda_open_any(libs);
  if (!h) snprintf(nvrtc_missing, sizeof nvrtc_missing, "libnvrtc.so was not found; install CUDA's NVRTC (cuda-nvrtc-13-0)");
  else nvrtc_ok = cuda_load_all(h, (void **)&rtc, names, sizeof names / sizeof *names, nvrtc_missing, "NVRTC");
}
rl_status rl_nvrtc_need(void) {
  pthread_mutex_lock(&lock);
  if (!nvrtc_tried) open_nvrtc();
  pthread_mutex_unlock(&lock);
  return nvrtc_ok ? RL_OK : rl_error("[cuda] kernels cannot be compiled: %s", nvrtc_missing);
}

rl_status rl_cuda_compile(const char *src, const char *arch, char **image, size_t *bytes) {
  nvrtc_prog p;
  char opt[32];
  RL_TRY(rl_nvrtc_need());
  snprintf(opt, sizeof opt, "-arch=%s", arch);
  bool fast = !strncmp(src, "#define RL_FAST", 15); /* fused kernels: contraction, division and roots to two units in the last place */
  const char *opts[] = { opt, "-default-device", "-w", fast ? "-fmad=true" : "-fmad=false", "--prec-div=false", "--prec-sqrt=false" };
  if (rtc.create(&p, src, "relume.cu", 0, NULL, NULL)) return rl_error("[cuda] NVRTC cannot start a program");
  int r = rtc.compile(p, fast ? 6 : 4, opts);
  if (r) {
    size_t n = 0;
    rtc.log_size(p, &n);
    char *log = calloc(n + 1, 1);
    if (log) rtc.log(p, log);
    rl_error("[cuda] NVRTC for %s: %.900s", arch, log ? log : "out of memory");
    free(log);
    rtc.destroy(&p);
    return RL_ERR;
  }
  rtc.cubin_size(p, bytes);
  *image = malloc(*bytes + 1);
  if (*image) r = rtc.cubin(p, *image);
  rtc.destroy(&p);
  return *image && !r ? RL_OK : rl_error("[cuda] NVRTC gave no code");
}

typedef struct lib {
  const char *const names[6];
  const char *missing;
  void *handle;
  bool tried;
} lib;

static void *function_of(lib *l, const char *op, const char *fn) {
  pthread_mutex_lock(&lock);
  if (!l->tried) l->handle = cuda_open_any(l->names);
  l->tried = true;
  pthread_mutex_unlock(&lock);
  void *f = l->handle ? dlsym(l->handle, fn) : NULL;
  if (!f) rl_error("[%s] %s%s", op, l->handle ? "too old: it lacks " : "", l->handle ? fn : l->missing);
  return f;
}

void *rl_cublaslt(const char *fn) {
  static lib l = { { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so", "/usr/local/cuda/lib64/libcublasLt.so", NULL },
                   "libcublasLt.so was not found; install cuBLAS (libcublas-13-0)",
                   NULL,
                   false };
  return function_of(&l, "matmul", fn);
}

void *rl_cudnn(const char *fn) {
  static lib l = { { "libcudnn.so.9", "libcudnn.so", NULL }, "libcudnn.so.9 was not found; install cuDNN (libcudnn9-cuda-13)", NULL, false };
  return function_of(&l, "conv2d", fn);
}
