/* CUDA runtime: libraries opened at run time, devices, the caching allocator, copies, synchronisation.
 * dlopen("libcuda.so.1") -> primary context of each device -> one stream per device (its default stream), so that freed memory can be
 * given out again at once: whoever gets it is queued behind its last reader. */
#define _GNU_SOURCE
#include "cuda.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cuda_api.h"
#include "cuda_impl.h"

#define MAXDEV 16
#define CLASSES 160 /* up to 2^49 bytes */

typedef struct block {
  struct block *next;
  void *p;
} block;
typedef struct device {
  cu_ctx ctx;
  cu_device dev;
  int cc;
  block *free[CLASSES];
  void *work;
  size_t work_bytes;
} device;

static cu_api cu;
static nvrtc_api rtc;
static device devs[MAXDEV];
static int ndev = -1;
static char driver_missing[256], nvrtc_missing[256], lt_missing[256];
static bool nvrtc_tried, nvrtc_ok;
static void *lt;
static bool lt_tried;
static rl_cuda_stats stats;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner;
static RL_TLS int current;
static RL_TLS int bound = -1; /* device whose context this thread has set */
static const char *last_op = "";

static bool load_all(void *h, void **table, const char *const *names, int n, char *why, const char *lib) {
  for (int i = 0; i < n; i++)
    if (!(table[i] = dlsym(h, names[i]))) {
      snprintf(why, 256, "%s is too old: it has no %s", lib, names[i]);
      return false;
    }
  return true;
}

/* Opens the first of several names, with the toolkit's usual folder tried last. */
static void *open_any(const char *const *names) {
  for (; *names; names++) {
    void *h = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    if (h) return h;
  }
  return NULL;
}

static const char *cu_text(cu_result r) {
  const char *s = NULL;
  if (cu.error_string) cu.error_string(r, &s);
  return s ? s : "unknown error";
}

static void open_driver(void) {
#define CU_FN(name, sym, args) sym,
  static const char *const names[] = { CU_FUNCTIONS };
#undef CU_FN
  static const char *const libs[] = { "libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1", NULL };
  int n = 0, version = 0;
  ndev = 0;
  owner = getpid();
  void *h = open_any(libs);
  if (!h) {
    snprintf(driver_missing, sizeof driver_missing, "libcuda.so.1 was not found; install the NVIDIA driver");
    return;
  }
  if (!load_all(h, (void **)&cu, names, sizeof names / sizeof *names, driver_missing, "the NVIDIA driver")) return;
  cu_result r = cu.init(0);
  if (r == 0) r = cu.device_count(&n);
  if (r || n == 0) {
    snprintf(driver_missing, sizeof driver_missing, "the driver finds no GPU (%s)", r ? cu_text(r) : "none present");
    return;
  }
  cu.driver_version(&version);
  if (version < 12000) {
    snprintf(driver_missing, sizeof driver_missing, "the driver is too old; got CUDA %d.%d, need 12.0", version / 1000, version % 1000 / 10);
    return;
  }
  for (int i = 0; i < RL_MIN(n, MAXDEV); i++) {
    int major = 0, minor = 0;
    cu.device_get(&devs[i].dev, i);
    cu.device_attr(&major, 75, devs[i].dev);
    cu.device_attr(&minor, 76, devs[i].dev);
    devs[i].cc = major * 10 + minor;
  }
  ndev = RL_MIN(n, MAXDEV);
}

int rl_cuda_count(void) {
  pthread_mutex_lock(&lock);
  if (ndev < 0) open_driver();
  pthread_mutex_unlock(&lock);
  if (ndev == 0) rl_error("[cuda] no GPU can be used: %s", driver_missing);
  return ndev;
}

static rl_status fail(cu_result r, const char *what) {
  return rl_error_status(r == 2 ? RL_OOM : RL_ERR, "[cuda] %s: %s (last op launched: %s)", what, cu_text(r), *last_op ? last_op : "none");
}
#define CU(call, what) \
  do { \
    cu_result r_ = (call); \
    if (r_) return fail(r_, what); \
  } while (0)

rl_status rl_cuda_need(void) {
  if (bound == current && ndev > 0) return RL_OK;
  if (rl_cuda_count() == 0) return RL_ERR;
  if (owner != getpid()) return rl_error("[cuda] CUDA was started before fork(); a child process cannot use it");
  if (current >= ndev) return rl_error("[cuda] device out of range; got %d, need 1 to %d", current + 1, ndev);
  device *d = &devs[current];
  pthread_mutex_lock(&lock);
  cu_result r = d->ctx ? 0 : cu.ctx_retain(&d->ctx, d->dev);
  pthread_mutex_unlock(&lock);
  if (r == 0) r = cu.ctx_set(d->ctx);
  if (r) return fail(r, "cannot start the device");
  bound = current;
  return RL_OK;
}

int rl_cuda_device(void) { return current; }
int cuda_cc(void) { return devs[current].cc; }

rl_status rl_cuda_set_device(int dev) {
  int n = rl_cuda_count();
  if (n == 0) return RL_ERR;
  if (dev < 0 || dev >= n) return rl_error("[setDevice] device out of range; got %d, need 1 to %d", dev + 1, n);
  current = dev;
  return rl_cuda_need();
}

rl_status rl_cuda_name(int dev, char *buf, int n, int *cc, int64_t *total) {
  size_t bytes = 0;
  if (dev < 0 || dev >= rl_cuda_count()) return rl_error("[cuda] device out of range; got %d, need 1 to %d", dev + 1, RL_MAX(ndev, 0));
  CU(cu.device_name(buf, n, devs[dev].dev), "device name");
  CU(cu.device_mem(&bytes, devs[dev].dev), "device memory");
  *cc = devs[dev].cc;
  *total = (int64_t)bytes;
  return RL_OK;
}

rl_status rl_cuda_sync(void) {
  RL_TRY(rl_cuda_need());
  CU(cu.ctx_sync(), "an earlier operation failed");
  return RL_OK;
}

rl_status rl_cuda_mem_info(int64_t *free_bytes, int64_t *total) {
  size_t f = 0, t = 0;
  RL_TRY(rl_cuda_need());
  CU(cu.mem_info(&f, &t), "memory information");
  *free_bytes = (int64_t)f;
  *total = (int64_t)t;
  return RL_OK;
}

/* Memory: size classes of a quarter power of two from 512 bytes up, free lists per device. */
static size_t class_bytes(int c) {
  size_t base = (size_t)512 << (c / 4);
  return base + base / 4 * (size_t)(c % 4);
}
static int class_of(size_t bytes) {
  int c = 0;
  while (c < CLASSES - 1 && class_bytes(c) < bytes) c++;
  return c;
}

static void *pool_take(int c) {
  pthread_mutex_lock(&lock);
  block *b = devs[current].free[c];
  void *p = b ? b->p : NULL;
  if (b) {
    devs[current].free[c] = b->next;
    stats.cached -= (int64_t)class_bytes(c);
    stats.hits++;
    free(b);
  }
  pthread_mutex_unlock(&lock);
  return p;
}

void rl_cuda_mem_release_cache(void) {
  if (ndev <= 0 || rl_cuda_sync() != RL_OK) return;
  pthread_mutex_lock(&lock);
  for (int c = 0; c < CLASSES; c++)
    for (block *b = devs[current].free[c], *next; b; b = next) {
      next = b->next;
      cu.mem_free((cu_ptr)(uintptr_t)b->p);
      stats.cached -= (int64_t)class_bytes(c);
      free(b);
      devs[current].free[c] = NULL;
    }
  pthread_mutex_unlock(&lock);
}

void *rl_cuda_alloc(size_t bytes) {
  if (rl_cuda_need() != RL_OK) return NULL;
  int c = class_of(bytes);
  cu_ptr fresh = 0;
  void *p = pool_take(c);
  if (!p) {
    cu_result r = cu.mem_alloc(&fresh, class_bytes(c));
    if (r == 2) {
      rl_cuda_mem_release_cache();
      r = cu.mem_alloc(&fresh, class_bytes(c));
    }
    if (r) {
      fail(r, "allocation");
      return NULL;
    }
    p = (void *)(uintptr_t)fresh;
  }
  pthread_mutex_lock(&lock);
  stats.allocs++;
  stats.live += (int64_t)class_bytes(c);
  stats.peak = RL_MAX(stats.peak, stats.live);
  pthread_mutex_unlock(&lock);
  return p;
}

void rl_cuda_free(void *p, size_t bytes, int dev) {
  if (!p) return;
  int c = class_of(bytes);
  block *b = malloc(sizeof *b);
  pthread_mutex_lock(&lock);
  stats.live -= (int64_t)class_bytes(c);
  if (b) {
    *b = (block){ devs[dev].free[c], p };
    devs[dev].free[c] = b;
    stats.cached += (int64_t)class_bytes(c);
  }
  pthread_mutex_unlock(&lock);
}

void rl_cuda_mem_get(rl_cuda_stats *out) { *out = stats; }
void cuda_count_host_op(void) { stats.host_ops++; }

void *rl_cuda_workspace(size_t bytes) {
  device *d = &devs[current];
  if (rl_cuda_need() != RL_OK) return NULL;
  if (bytes <= d->work_bytes) return d->work;
  void *p = rl_cuda_alloc(bytes);
  if (!p) return NULL;
  if (d->work) rl_cuda_free(d->work, d->work_bytes, current);
  d->work_bytes = bytes;
  return d->work = p;
}

/* Copies. */
rl_status rl_cuda_read(void *host, const void *dev, size_t bytes) {
  RL_TRY(rl_cuda_need());
  if (!bytes) return RL_OK;
  CU(cu.dtoh(host, (cu_ptr)(uintptr_t)dev, bytes, NULL), "copy to the host");
  CU(cu.stream_sync(NULL), "an earlier operation failed");
  return RL_OK;
}
rl_status rl_cuda_write(void *dev, const void *host, size_t bytes) {
  RL_TRY(rl_cuda_need());
  if (!bytes) return RL_OK;
  CU(cu.htod((cu_ptr)(uintptr_t)dev, host, bytes, NULL), "copy to the device");
  CU(cu.stream_sync(NULL), "copy to the device"); /* the caller may reuse its memory */
  return RL_OK;
}
rl_status rl_cuda_move_bytes(void *to, const void *from, size_t bytes) {
  RL_TRY(rl_cuda_need());
  if (bytes) CU(cu.dtod((cu_ptr)(uintptr_t)to, (cu_ptr)(uintptr_t)from, bytes, NULL), "copy");
  return RL_OK;
}
rl_status rl_cuda_zero_bytes(void *to, size_t bytes) {
  RL_TRY(rl_cuda_need());
  if (bytes) CU(cu.memset8((cu_ptr)(uintptr_t)to, 0, bytes, NULL), "fill");
  return RL_OK;
}

/* Modules and launches (cuda_build.c compiles). */
rl_status cuda_load(const void *image, const char *entry, void **fn) {
  cu_mod m;
  cu_fn f;
  RL_TRY(rl_cuda_need());
  CU(cu.mod_load(&m, image), "loading a kernel");
  CU(cu.mod_fn(&f, m, entry), entry);
  *fn = f;
  return RL_OK;
}

rl_status cuda_start(void *fn, const char *op, int64_t blocks, int threads, void **args) {
  RL_TRY(rl_cuda_need());
  last_op = op;
  __atomic_add_fetch(&stats.launches, 1, __ATOMIC_RELAXED);
  CU(cu.launch((cu_fn)fn, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, NULL, args, NULL), op);
  if (rl_env_int(RL_ENV_CHECK)) return rl_cuda_sync();
  return RL_OK;
}

/* NVRTC. */
static void open_nvrtc(void) {
#define CU_FN(name, sym, args) sym,
  static const char *const names[] = { NVRTC_FUNCTIONS };
#undef CU_FN
  static const char *const libs[] = {
    "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so", "/usr/local/cuda-13.0/lib/libnvrtc.so.13", NULL
  };
  nvrtc_tried = true;
  void *h = open_any(libs);
  if (!h) snprintf(nvrtc_missing, sizeof nvrtc_missing, "libnvrtc.so was not found; install CUDA's NVRTC (cuda-nvrtc-13-0)");
  else nvrtc_ok = load_all(h, (void **)&rtc, names, sizeof names / sizeof *names, nvrtc_missing, "NVRTC");
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
  const char *opts[] = { opt, "-fmad=false", "-default-device", "-w" };
  if (rtc.create(&p, src, "relume.cu", 0, NULL, NULL)) return rl_error("[cuda] NVRTC cannot start a program");
  int r = rtc.compile(p, 4, opts);
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

void *rl_cublaslt(const char *fn) {
  static const char *const libs[] = { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so", "/usr/local/cuda/lib64/libcublasLt.so", NULL };
  pthread_mutex_lock(&lock);
  if (!lt_tried) {
    lt_tried = true;
    if (!(lt = open_any(libs))) snprintf(lt_missing, sizeof lt_missing, "libcublasLt.so was not found; install cuBLAS (libcublas-13-0)");
  }
  pthread_mutex_unlock(&lock);
  void *f = lt ? dlsym(lt, fn) : NULL;
  if (!f) rl_error("[matmul] cuBLASLt: %s", lt ? fn : lt_missing);
  return f;
}
