/* CUDA runtime: the driver opened at run time, devices, streams, events, copies, launches, errors.
 * dlopen("libcuda.so.1") -> primary context of each device -> streams made here (0 is the one that everything uses at first). */
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

typedef struct device {
  cu_ctx ctx;
  cu_device dev;
  int cc, sms, nstream, clusters;
  cu_stream stream[CUDA_STREAMS];
  cu_stream side; /* of copies to the host that run beside a graph */
  int64_t *error; /* in host memory that kernels reach: op + 1, value, element, bound */
} device;

cu_api cu;
static device devs[CUDA_DEVICES];
static int ndev = -1;
static char driver_missing[256];
static int64_t pinned; /* live blocks of pinned memory */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner;
static RL_TLS int current;
static RL_TLS int bound = -1;       /* device whose context this thread has set */
static RL_TLS int on[CUDA_DEVICES]; /* current stream of each device */
static RL_TLS bool capturing;
static const char *last_op = "";

bool cuda_load_all(void *h, void **table, const char *const *names, int n, char *why, const char *lib) {
  for (int i = 0; i < n; i++)
    if (!(table[i] = dlsym(h, names[i]))) {
      snprintf(why, 256, "%s is too old: it has no %s", lib, names[i]);
      return false;
    }
  return true;
}

/* Opens the first of several names, with the toolkit's usual folder tried last. */
void *cuda_open_any(const char *const *names) {
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
  void *h = cuda_open_any(libs);
  if (!h) {
    snprintf(driver_missing, sizeof driver_missing, "libcuda.so.1 was not found; install the NVIDIA driver");
    return;
  }
  if (!cuda_load_all(h, (void **)&cu, names, sizeof names / sizeof *names, driver_missing, "the NVIDIA driver")) return;
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
  for (int i = 0; i < RL_MIN(n, CUDA_DEVICES); i++) {
    int major = 0, minor = 0;
    cu.device_get(&devs[i].dev, i);
    cu.device_attr(&major, 75, devs[i].dev);
    cu.device_attr(&minor, 76, devs[i].dev);
    devs[i].cc = major * 10 + minor;
    cu.device_attr(&devs[i].sms, 16, devs[i].dev);
    if (devs[i].cc >= 90) cu.device_attr(&devs[i].clusters, 120, devs[i].dev);
  }
  ndev = RL_MIN(n, CUDA_DEVICES);
}

int rl_cuda_count(void) {
  pthread_mutex_lock(&lock);
  if (ndev < 0) open_driver();
  pthread_mutex_unlock(&lock);
  if (ndev == 0) rl_error("[cuda] no GPU can be used: %s", driver_missing);
  return ndev;
}

rl_status cuda_fail(int r, const char *what) {
  return rl_error_status(r == 2 ? RL_OOM : RL_ERR, "[cuda] %s: %s (last op launched: %s)", what, cu_text(r), *last_op ? last_op : "none");
}
rl_status rl_cuda_need(void) {
  if (bound == current && ndev > 0) return RL_OK;
  if (rl_cuda_count() == 0) return RL_ERR;
  if (owner != getpid()) return rl_error("[cuda] CUDA was started before fork(); a child process cannot use it");
  if (current >= ndev) return rl_error("[cuda] device out of range; got %d, need 1 to %d", current + 1, ndev);
  device *d = &devs[current];
  pthread_mutex_lock(&lock);
  cu_result r = d->ctx ? 0 : cu.ctx_retain(&d->ctx, d->dev);
  if (r == 0) r = cu.ctx_set(d->ctx);
  if (r == 0 && !d->nstream) r = cu.stream_create(&d->stream[0], 1);
  if (r == 0 && !d->error) r = cu.host_alloc((void **)&d->error, 64, 3);
  if (r == 0 && !d->nstream) memset(d->error, 0, 64), d->nstream = 1;
  pthread_mutex_unlock(&lock);
  if (r) return cuda_fail(r, "cannot start the device");
  bound = current;
  return RL_OK;
}

int rl_cuda_device(void) { return current; }
static bool deterministic;
void rl_cuda_set_deterministic(bool on) { deterministic = on; }
bool rl_cuda_deterministic(void) { return deterministic; }
int cuda_cc(void) { return devs[current].cc; }
bool rl_cuda_clusters(void) { return devs[current].clusters; }
int rl_cuda_processors(void) { return RL_MAX(1, devs[current].sms); }
void *cuda_stream(void) { return devs[current].stream[on[current]]; }
int cuda_stream_index(void) { return on[current]; }
int64_t *cuda_error_words(void) { return devs[current].error; }

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

/* A kernel that met an index out of range left a note; it is told at the first wait after it. */
static rl_status told(void) {
  int64_t *e = devs[current].error, op = e[0] - 1, v = e[1], at = e[2], n = e[3];
  if (op < 0) return RL_OK;
  memset(e, 0, 64);
  if (n == -1) return rl_error("[%s] weights must be finite and not negative; element %lld is not", rl_ops[op].name, (long long)v + 1);
  if (n == -2) return rl_error("[%s] too few positive weights; got %lld, need more", rl_ops[op].name, (long long)v);
  if (op == RL_OP_MASKED_SCATTER)
    return rl_error("[masked_scatter] source has too few elements; got %lld, need one for each 1 of the mask", (long long)n);
  if (op >= RL_NOP) return rl_error("[plan] index out of range in a compiled kernel; got %lld, need 1 to %lld", (long long)v + 1, (long long)n);
  return rl_error("[%s] index out of range; got %lld at element %lld, need 1 to %lld", rl_ops[op].name, (long long)v + 1, (long long)at + 1,
                  (long long)n);
}

rl_status rl_cuda_sync(void) {
  RL_TRY(rl_cuda_need());
  CU(cu.ctx_sync(), "an earlier operation failed");
  return told();
}

rl_status rl_cuda_mem_info(int64_t *free_bytes, int64_t *total) {
  size_t f = 0, t = 0;
  RL_TRY(rl_cuda_need());
  CU(cu.mem_info(&f, &t), "memory information");
  *free_bytes = (int64_t)f;
  *total = (int64_t)t;
  return RL_OK;
}

/* Streams and events. */
int rl_cuda_streams(void) { return rl_cuda_need() == RL_OK ? devs[current].nstream - 1 : 0; }
rl_status rl_cuda_reserve_streams(int n) {
  RL_TRY(rl_cuda_need());
  device *d = &devs[current];
  if (n < 0 || n >= CUDA_STREAMS) return rl_error("[reserveStreams] streams; got %d, need 0 to %d", n, CUDA_STREAMS - 1);
  for (; d->nstream <= n; d->nstream++) CU(cu.stream_create(&d->stream[d->nstream], 1), "stream");
  return RL_OK;
}
static rl_status known(const char *fn, int s) {
  RL_TRY(rl_cuda_need());
  if (s < 0 || s >= devs[current].nstream) return rl_error("[%s] stream; got %d, need 0 to %d (reserveStreams)", fn, s, devs[current].nstream - 1);
  return RL_OK;
}
rl_status rl_cuda_set_stream(int s) {
  RL_TRY(known("setStream", s));
  on[current] = s;
  return RL_OK;
}
int rl_cuda_stream(void) { return on[current]; }
rl_status rl_cuda_stream_sync(int s) {
  RL_TRY(known("streamSynchronize", s));
  CU(cu.stream_sync(devs[current].stream[s]), "an earlier operation failed");
  return told();
}
/* Work given to `waiter` from now on runs after what `other` has been given. */
rl_status rl_cuda_stream_wait(int waiter, int other) {
  cu_event e;
  RL_TRY(known("streamWaitFor", waiter));
  RL_TRY(known("streamWaitFor", other));
  CU(cu.event_create(&e, 2), "event");
  cu_result r = cu.event_record(e, devs[current].stream[other]);
  if (!r) r = cu.stream_wait(devs[current].stream[waiter], e, 0);
  cu.event_destroy(e);
  return r ? cuda_fail(r, "waiting for a stream") : RL_OK;
}
void *rl_cuda_event_new(void) {
  cu_event e = NULL;
  if (rl_cuda_need() != RL_OK) return NULL;
  cu_result r = cu.event_create(&e, 0);
  if (r) cuda_fail(r, "event");
  return r ? NULL : e;
}
void rl_cuda_event_free(void *e) { cu.event_destroy(e); }
rl_status rl_cuda_event_record(void *e) {
  RL_TRY(rl_cuda_need());
  CU(cu.event_record(e, cuda_stream()), "event");
  return RL_OK;
}
rl_status rl_cuda_event_wait(void *e) {
  RL_TRY(rl_cuda_need());
  CU(cu.stream_wait(cuda_stream(), e, 0), "event");
  return RL_OK;
}
rl_status rl_cuda_event_sync(void *e) {
  RL_TRY(rl_cuda_need());
  CU(cu.event_sync(e), "an earlier operation failed");
  return told();
}
rl_status rl_cuda_event_elapsed(void *a, void *b, double *ms) {
  float t = 0;
  RL_TRY(rl_cuda_need());
  CU(cu.event_elapsed(&t, a, b), "time between events");
  *ms = t;
  return RL_OK;
}

/* Copies. What the host has to wait for cannot be in a recorded graph. */
static rl_status may_wait(void) {
  RL_TRY(rl_cuda_need());
  return capturing ? rl_error_status(RL_NODATA, "[cuda] a graph that is being recorded waits for the device") : RL_OK;
}
rl_status rl_cuda_read(void *host, const void *dev, size_t bytes) {
  RL_TRY(may_wait());
  if (!bytes) return RL_OK;
  CU(cu.dtoh(host, (cu_ptr)(uintptr_t)dev, bytes, cuda_stream()), "copy to the host");
  CU(cu.stream_sync(cuda_stream()), "an earlier operation failed");
  return told();
}
/* From memory that is not pinned the driver has taken the bytes when it returns. */
rl_status rl_cuda_write(void *dev, const void *host, size_t bytes) {
  RL_TRY(may_wait());
  if (!bytes) return RL_OK;
  CU(cu.htod((cu_ptr)(uintptr_t)dev, host, bytes, cuda_stream()), "copy to the device");
  if (pinned) CU(cu.stream_sync(cuda_stream()), "copy to the device");
  return RL_OK;
}
rl_status rl_cuda_copy_async(void *to, const void *from, size_t bytes, bool to_device) {
  RL_TRY(rl_cuda_need());
  if (!bytes) return RL_OK;
  CU(to_device ? cu.htod((cu_ptr)(uintptr_t)to, from, bytes, cuda_stream()) : cu.dtoh(to, (cu_ptr)(uintptr_t)from, bytes, cuda_stream()), "copy");
  return RL_OK;
}
rl_status rl_cuda_move_bytes(void *to, const void *from, size_t bytes) {
  RL_TRY(rl_cuda_need());
  if (bytes) CU(cu.dtod((cu_ptr)(uintptr_t)to, (cu_ptr)(uintptr_t)from, bytes, cuda_stream()), "copy");
  return RL_OK;
}
rl_status rl_cuda_zero_bytes(void *to, size_t bytes) {
  RL_TRY(rl_cuda_need());
  if (bytes) CU(cu.memset8((cu_ptr)(uintptr_t)to, 0, bytes, cuda_stream()), "fill");
  return RL_OK;
}
/* Host memory that copies to and from the device need not stage. */
void *rl_cuda_pinned_alloc(size_t bytes) {
  void *p = NULL;
  if (rl_cuda_need() != RL_OK) return NULL;
  cu_result r = cu.host_alloc(&p, RL_MAX(bytes, 1), 3);
  if (r) return cuda_fail(r, "pinned memory"), NULL;
  __atomic_add_fetch(&pinned, 1, __ATOMIC_RELAXED);
  return p;
}
void rl_cuda_pinned_free(void *p) {
  cu.host_free(p);
  __atomic_sub_fetch(&pinned, 1, __ATOMIC_RELAXED);
}

/* Modules and launches (cuda_build.c compiles). */
rl_status cuda_load_module(const void *image, void **module) {
  cu_mod m;
  RL_TRY(rl_cuda_need());
  CU(cu.mod_load(&m, image), "loading a kernel");
  *module = m;
  return RL_OK;
}
rl_status cuda_entry(void *module, const char *entry, void **fn) {
  cu_fn f;
  CU(cu.mod_fn(&f, module, entry), entry);
  *fn = f;
  return RL_OK;
}

rl_status cuda_start(void *fn, const char *op, int64_t blocks, int64_t columns, int threads, void **args) {
  RL_TRY(rl_cuda_need());
  last_op = op;
  __atomic_add_fetch(&cuda_stats.launches, 1, __ATOMIC_RELAXED);
  CU(cu.launch((cu_fn)fn, (unsigned)blocks, (unsigned)columns, 1, (unsigned)threads, 1, 1, 0, cuda_stream(), args, NULL), op);
  if (rl_env_int(RL_ENV_CHECK) && !capturing) return rl_cuda_sync();
  return RL_OK;
}

/* Graphs: what the current stream is given between begin and end is recorded, not run. */
rl_status cuda_capture_begin(void) {
  RL_TRY(rl_cuda_need());
  CU(cu.capture_begin(cuda_stream(), 2), "recording a graph");
  capturing = true;
  return RL_OK;
}
bool cuda_capturing(void) { return capturing; }
/* *exec NULL: nothing came of it. */
rl_status cuda_capture_end(bool keep, void **exec) {
  cu_graph g = NULL;
  cu_exec x = NULL;
  capturing = false;
  cu_result r = cu.capture_end(cuda_stream(), &g);
  *exec = NULL;
  if (!r && g && keep) r = cu.graph_make(&x, g, 0);
  if (g) cu.graph_free(g);
  if (r && keep) return cuda_fail(r, "recording a graph");
  *exec = x;
  return RL_OK;
}
/* Makes stream `to` wait for what `from` has been given so far, inside a recording. */
static rl_status branch(cu_stream from, cu_stream to) {
  cu_event e;
  CU(cu.event_create(&e, 2), "event");
  cu_result r = cu.event_record(e, from);
  if (!r) r = cu.stream_wait(to, e, 0);
  cu.event_destroy(e);
  return r ? cuda_fail(r, "recording a graph") : RL_OK;
}
rl_status cuda_note_record(rl_cuda_note *n, const void *dev, size_t bytes) {
  device *d = &devs[current];
  if (!d->side) CU(cu.stream_create(&d->side, 1), "stream");
  if (!n->event) CU(cu.event_create((cu_event *)&n->event, 2), "event");
  RL_TRY(branch(cuda_stream(), d->side));
  CU(cu.dtoh(n->host, (cu_ptr)(uintptr_t)dev, bytes, d->side), "recording a graph");
  CU(cu.event_record_flags((cu_event)n->event, d->side, 1), "recording a graph"); /* 1: each replay records it */
  return RL_OK;
}
rl_status rl_cuda_note_read(const rl_cuda_note *n, void *to, size_t bytes) {
  RL_TRY(may_wait());
  CU(cu.event_sync((cu_event)n->event), "an earlier operation failed");
  memcpy(to, n->host, bytes);
  __atomic_add_fetch(&cuda_stats.early, 1, __ATOMIC_RELAXED);
  return told();
}
rl_status cuda_note_join(void) { return branch(devs[current].side, cuda_stream()); }
rl_status cuda_graph_launch(void *exec) {
  RL_TRY(rl_cuda_need());
  __atomic_add_fetch(&cuda_stats.launches, 1, __ATOMIC_RELAXED);
  last_op = "graph";
  CU(cu.graph_launch(exec, cuda_stream()), "graph");
  return RL_OK;
}
void cuda_graph_free(void *exec) { cu.exec_free(exec); }
