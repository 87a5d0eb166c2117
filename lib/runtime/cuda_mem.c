/* CUDA memory: the caching allocator, scratch, pools of recorded graphs.
 * Size classes of a quarter power of two from 512 bytes up; free lists by device and stream: what is given out again on a stream is queued
 * behind its last reader there. */
#include "cuda.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "cuda_api.h"
#include "cuda_impl.h"

#define CLASSES 160 /* up to 2^49 bytes */

typedef struct block {
  struct block *next;
  void *p;
  int class;
} block;
typedef struct cuda_pool {
  block *free, *all;
} cuda_pool;
typedef struct scratch {
  void *p;
  size_t bytes;
} scratch;

rl_cuda_stats cuda_stats;
static block *lists[CUDA_DEVICES][CUDA_STREAMS][CLASSES];
static scratch works[CUDA_DEVICES][CUDA_STREAMS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static RL_TLS cuda_pool *pool; /* takes every allocation while a graph is recorded */

static size_t class_bytes(int c) {
  size_t base = (size_t)512 << (c / 4);
  return base + base / 4 * (size_t)(c % 4);
}
static int class_of(size_t bytes) {
  int c = bytes > 512 ? RL_MAX(0, (63 - __builtin_clzll(bytes >> 9)) * 4) : 0;
  while (c < CLASSES - 1 && class_bytes(c) < bytes) c++;
  return c;
}

static void *cached(int dev, int stream, int c) {
  pthread_mutex_lock(&lock);
  block *b = lists[dev][stream][c];
  void *p = b ? b->p : NULL;
  if (b) {
    lists[dev][stream][c] = b->next;
    cuda_stats.cached -= (int64_t)class_bytes(c);
    cuda_stats.hits++;
    free(b);
  }
  pthread_mutex_unlock(&lock);
  return p;
}

/* Gives the cached blocks of the current device back to the driver. */
void rl_cuda_mem_release_cache(void) {
  if (rl_cuda_count() <= 0 || cuda_capturing() || rl_cuda_sync() != RL_OK) return;
  int dev = rl_cuda_device();
  pthread_mutex_lock(&lock);
  for (int s = 0; s < CUDA_STREAMS; s++)
    for (int c = 0; c < CLASSES; c++) {
      for (block *b = lists[dev][s][c], *next; b; b = next) {
        next = b->next;
        cu.mem_free((cu_ptr)(uintptr_t)b->p);
        cuda_stats.cached -= (int64_t)class_bytes(c);
        free(b);
      }
      lists[dev][s][c] = NULL;
    }
  pthread_mutex_unlock(&lock);
}

/* Memory from the driver; when there is none, the cache goes back first. NULL: message set. */
static void *fresh(int c) {
  cu_ptr p = 0;
  cu_result r = cu.mem_alloc(&p, class_bytes(c));
  if (r == 2) {
    rl_cuda_mem_release_cache();
    r = cu.mem_alloc(&p, class_bytes(c));
  }
  if (!r) return (void *)(uintptr_t)p;
  cuda_fail(r, "allocation");
  return NULL;
}

static void count(int c, int sign) {
  cuda_stats.allocs += sign > 0;
  cuda_stats.live += sign * (int64_t)class_bytes(c);
  cuda_stats.peak = RL_MAX(cuda_stats.peak, cuda_stats.live);
}

/* ---- pools ---- */

static void *pool_take(int c) {
  for (block **at = &pool->free; *at; at = &(*at)->next)
    if ((*at)->class == c) {
      block *b = *at;
      *at = b->next;
      b->next = pool->all;
      pool->all = b;
      return b->p;
    }
  block *b = calloc(1, sizeof *b);
  void *p = b ? cached(rl_cuda_device(), cuda_stream_index(), c) : NULL;
  if (b && !p) p = fresh(c);
  if (!p) return free(b), NULL;
  *b = (block){ pool->all, p, c };
  pool->all = b;
  return p;
}
static bool pool_give(void *p) {
  for (block **at = &pool->all; *at; at = &(*at)->next)
    if ((*at)->p == p) {
      block *b = *at;
      *at = b->next;
      b->next = pool->free;
      pool->free = b;
      return true;
    }
  return false;
}
cuda_pool *cuda_pool_begin(void) { return pool = calloc(1, sizeof *pool); }
void cuda_pool_end(void) { pool = NULL; }
/* The graph that owned it is gone. */
void cuda_pool_free(cuda_pool *q, int dev) {
  for (int k = 0; q && k < 2; k++)
    for (block *b = k ? q->all : q->free, *next; b; b = next) {
      next = b->next;
      count(b->class, 1);
      rl_cuda_free(b->p, class_bytes(b->class), dev);
      free(b);
    }
  free(q);
}

/* ---- allocation ---- */

void *rl_cuda_alloc(size_t bytes) {
  if (rl_cuda_need() != RL_OK) return NULL;
  int c = class_of(bytes);
  void *p = pool ? pool_take(c) : cached(rl_cuda_device(), cuda_stream_index(), c);
  if (!p && !pool) p = fresh(c);
  if (!p) return NULL;
  pthread_mutex_lock(&lock);
  count(c, 1);
  pthread_mutex_unlock(&lock);
  return p;
}

/* where: what rl_cuda_place said when it was allocated. */
void rl_cuda_free(void *p, size_t bytes, int where) {
  if (!p) return;
  int c = class_of(bytes);
  block *b = NULL;
  bool mine = pool && pool_give(p);
  if (!mine) b = malloc(sizeof *b);
  pthread_mutex_lock(&lock);
  count(c, -1);
  if (b) {
    *b = (block){ lists[where & 15][where >> 4][c], p, c };
    lists[where & 15][where >> 4][c] = b;
    cuda_stats.cached += (int64_t)class_bytes(c);
  }
  pthread_mutex_unlock(&lock);
}
int rl_cuda_place(void) { return rl_cuda_device() | cuda_stream_index() << 4; }

void rl_cuda_mem_get(rl_cuda_stats *out) { *out = cuda_stats; }
void rl_cuda_mem_reset_peak(void) { cuda_stats.peak = cuda_stats.live; }
void cuda_count_host_op(void) { cuda_stats.host_ops++; }

/* Scratch grows and is never given back: recorded graphs hold its address. */
void *rl_cuda_workspace(size_t bytes) {
  if (rl_cuda_need() != RL_OK) return NULL;
  scratch *w = &works[rl_cuda_device()][cuda_stream_index()];
  if (bytes <= w->bytes) return w->p;
  cuda_pool *before = pool;
  pool = NULL;
  bytes = RL_MAX(bytes, 2 * w->bytes);
  void *p = rl_cuda_alloc(bytes);
  pool = before;
  if (!p) return NULL;
  *w = (scratch){ p, bytes };
  return p;
}
