/* Memory: a caching allocator (size -> 64-byte aligned block), with statistics.
 *
 * Blocks are grouped in size classes, four per doubling, so at most a fifth of a block is unused. A freed block goes to its class's list
 * and the next request of the class takes it: a training step repeats the same sizes, so after the first step nothing reaches malloc.
 * One lock guards the lists; it is held for a few instructions. Blocks up to 256 bytes (tensor and storage headers, scalars) come from lists
 * of the thread's own, which take and give in batches, and whose bytes are added to the statistics in batches too. Large blocks are mapped,
 * in huge pages where the system has them: what is given back leaves the process at once, and first touches cost less. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "rl.h"

#define ALLOC_MIN 64
#define ALLOC_CLASSES (4 * 48)
#define ALLOC_CACHE_MIN ((int64_t)256 << 20) /* bytes that may always stay cached */

typedef struct alloc_block {
  struct alloc_block *next;
} alloc_block;

static alloc_block *alloc_lists[ALLOC_CLASSES];
static rl_mem_stats alloc_stats;
static char alloc_locked;

static void alloc_lock(void) {
  while (__atomic_test_and_set(&alloc_locked, __ATOMIC_ACQUIRE))
    while (__atomic_load_n(&alloc_locked, __ATOMIC_RELAXED)) {}
}
static void alloc_unlock(void) { __atomic_clear(&alloc_locked, __ATOMIC_RELEASE); }

/* Class of a request, and in *size the bytes of the class's blocks: 64 * (4 + q) / 4 * 2^e. */
static int alloc_class(size_t bytes, size_t *size) {
  if (bytes <= ALLOC_MIN) {
    *size = ALLOC_MIN;
    return 0;
  }
  size_t n = (bytes + ALLOC_MIN - 1) / ALLOC_MIN;            /* in units of 64 bytes, at least 2 */
  int e = 63 - __builtin_clzll((unsigned long long)(n - 1)); /* 2^e <= n-1 < 2^(e+1) */
  if (e < 2) {
    *size = n * ALLOC_MIN;
    return (int)n - 1;
  }
  size_t quarter = (size_t)1 << (e - 2);
  size_t q = (n - ((size_t)1 << e) + quarter - 1) / quarter; /* 1..4 */
  *size = (((size_t)1 << e) + q * quarter) * ALLOC_MIN;
  return 4 * (e - 1) - 1 + (int)q;
}

/* Bytes of a block of class c: alloc_class the other way. */
static size_t alloc_size(int c) {
  if (c < 4) return (size_t)(c + 1) * ALLOC_MIN;
  size_t whole = (size_t)1 << (c / 4 + 1);
  return (whole + (size_t)(c % 4 + 1) * (whole / 4)) * ALLOC_MIN;
}

#if defined(__SANITIZE_ADDRESS__)
#define MAP_BYTES SIZE_MAX
#else
#define MAP_BYTES ((size_t)1 << 18)
#endif
#define HUGE_PAGE ((uintptr_t)1 << 21)

/* Memory of the system. */
static void *system_take(size_t size) {
  if (size < MAP_BYTES) return aligned_alloc(64, size);
  char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
  uintptr_t lo = ((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1), hi = ((uintptr_t)p + size) & ~(HUGE_PAGE - 1);
  if (hi > lo) madvise((void *)lo, hi - lo, MADV_HUGEPAGE);
#endif
  return p;
}

static void system_give(void *p, size_t size) {
  if (size < MAP_BYTES) free(p);
  else munmap(p, size);
}

/* Small blocks of one thread. */
#define SMALL_CLASSES 4
#define SMALL_BATCH 64
#define SMALL_SLACK 65536 /* bytes of `live` not yet told to the statistics */
typedef struct alloc_small {
  alloc_block *list[SMALL_CLASSES];
  int count[SMALL_CLASSES];
  bool registered;
  int64_t live;
  int64_t allocs;
} alloc_small;
static RL_TLS __attribute__((tls_model("initial-exec"))) alloc_small small;
static pthread_key_t small_key;
static pthread_once_t small_once = PTHREAD_ONCE_INIT;

/* Tells the statistics. The lock is held. */
static void small_settle(void) {
  alloc_stats.live += small.live;
  alloc_stats.allocs += small.allocs;
  alloc_stats.hits += small.allocs;
  if (alloc_stats.live > alloc_stats.peak) alloc_stats.peak = alloc_stats.live;
  small.live = small.allocs = 0;
}

/* Moves blocks of class c to the shared list until `keep` are left. */
static void small_give(int c, int keep) {
  alloc_lock();
  while (small.count[c] > keep) {
    alloc_block *b = small.list[c];
    small.list[c] = b->next;
    small.count[c]--;
    b->next = alloc_lists[c];
    alloc_lists[c] = b;
    alloc_stats.cached += (int64_t)(c + 1) * ALLOC_MIN;
  }
  small_settle();
  alloc_unlock();
}

static void small_exit(void *unused) {
  (void)unused;
  for (int c = 0; c < SMALL_CLASSES; c++) small_give(c, 0);
  small.registered = false;
}
static void small_make_key(void) { pthread_key_create(&small_key, small_exit); }

/* Once per thread: its lists go to the shared ones when it ends. */
static void small_register(void) {
  pthread_once(&small_once, small_make_key);
  pthread_setspecific(small_key, &small);
  small.registered = true;
}

/* Fills the list of class c from the shared one, else from malloc. */
static void *small_refill(int c) {
  size_t size = (size_t)(c + 1) * ALLOC_MIN;
  if (!small.registered) small_register();
  alloc_lock();
  while (alloc_lists[c] && small.count[c] < SMALL_BATCH) {
    alloc_block *b = alloc_lists[c];
    alloc_lists[c] = b->next;
    b->next = small.list[c];
    small.list[c] = b;
    small.count[c]++;
    alloc_stats.cached -= (int64_t)size;
  }
  small_settle();
  alloc_unlock();
  alloc_block *b = small.list[c];
  if (!b) return aligned_alloc(64, size);
  small.list[c] = b->next;
  small.count[c]--;
  return b;
}

static inline void *small_alloc(int c) {
  alloc_block *b = small.list[c];
  if (b) {
    small.list[c] = b->next;
    small.count[c]--;
  } else if (!(b = small_refill(c))) {
    return NULL;
  }
  small.allocs++;
  if ((small.live += (int64_t)(c + 1) * ALLOC_MIN) > SMALL_SLACK) small_give(c, small.count[c]);
  return b;
}

static inline void small_free(void *p, int c) {
  alloc_block *b = p;
  b->next = small.list[c];
  small.list[c] = b;
  small.live -= (int64_t)(c + 1) * ALLOC_MIN;
  if (++small.count[c] > 4 * SMALL_BATCH || small.live < -SMALL_SLACK) small_give(c, RL_MIN(small.count[c], 2 * SMALL_BATCH));
}

#if defined(__SANITIZE_ADDRESS__)
#define SMALL_MAX 0 /* nothing is cached, so that AddressSanitizer sees every use after free */
#else
#define SMALL_MAX (SMALL_CLASSES * ALLOC_MIN)
#endif

static inline int small_class(size_t bytes) { return bytes ? (int)((bytes - 1) / ALLOC_MIN) : 0; }

static void *alloc_pop(int c, size_t size) {
  alloc_lock();
  alloc_block *b = alloc_lists[c];
  alloc_stats.allocs++;
  if (b) {
    alloc_lists[c] = b->next;
    alloc_stats.hits++;
    alloc_stats.cached -= (int64_t)size;
    alloc_stats.live += (int64_t)size;
    if (alloc_stats.live > alloc_stats.peak) alloc_stats.peak = alloc_stats.live;
  }
  alloc_unlock();
  return b;
}

static void alloc_count(int64_t size) {
  alloc_lock();
  alloc_stats.live += size;
  if (alloc_stats.live > alloc_stats.peak) alloc_stats.peak = alloc_stats.live;
  alloc_unlock();
}

/* Bytes that may stay cached whatever the peak was. */
static int64_t alloc_limit(void) { return RL_MAX(ALLOC_CACHE_MIN, alloc_stats.live); }

/* Whether more is cached than that: it goes back before the process grows. */
static bool alloc_hoards(void) {
  alloc_lock();
  bool more = alloc_stats.cached > alloc_limit();
  alloc_unlock();
  return more;
}

void *rl_alloc(size_t bytes) {
  size_t size;
  if (bytes <= SMALL_MAX && SMALL_MAX) {
    void *b = small_alloc(small_class(bytes));
    if (!b) rl_error("[memory] out of memory; need %zu bytes", bytes);
    return b;
  }
  if (bytes > (size_t)1 << 46) {
    rl_error("[memory] request too large; got %zu bytes", bytes);
    return NULL;
  }
  int c = alloc_class(bytes, &size);
  void *p = alloc_pop(c, size);
  if (p) return p;
  if (size >= MAP_BYTES && alloc_hoards()) rl_mem_release_cache();
  p = system_take(size);
  if (!p) {
    rl_mem_release_cache();
    p = system_take(size);
  }
  if (!p) {
    rl_error("[memory] out of memory; need %zu bytes", bytes);
    return NULL;
  }
  alloc_count((int64_t)size);
  return p;
}

/* Cached are as many bytes as are in use, and all that fits below the peak or a little above, as not all that is cached was in use at the peak: a
 * plan whose arena is larger than everything else finds it again.
 * Under AddressSanitizer nothing is cached, so that it sees every use after free. */
static bool alloc_keeps(size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  (void)size;
  return false;
#else
  int64_t cached = alloc_stats.cached + (int64_t)size;
  return cached <= alloc_limit() || alloc_stats.live + cached <= alloc_stats.peak + alloc_stats.peak / 4;
#endif
}

void rl_free(void *p, size_t bytes) {
  if (!p) return;
  if (bytes <= SMALL_MAX && SMALL_MAX) {
    small_free(p, small_class(bytes));
    return;
  }
  size_t size;
  int c = alloc_class(bytes, &size);
  alloc_lock();
  alloc_stats.live -= (int64_t)size;
  bool keep = alloc_keeps(size);
  if (keep) {
    alloc_block *b = p;
    b->next = alloc_lists[c];
    alloc_lists[c] = b;
    alloc_stats.cached += (int64_t)size;
  }
  alloc_unlock();
  if (!keep) system_give(p, size);
}

void rl_mem_get(rl_mem_stats *out) {
  alloc_lock();
  small_settle();
  *out = alloc_stats;
  alloc_unlock();
}

void rl_mem_reset_peak(void) {
  alloc_lock();
  small_settle();
  alloc_stats.peak = alloc_stats.live;
  alloc_unlock();
}

void rl_mem_release_cache(void) {
  for (int c = 0; c < SMALL_CLASSES; c++) small_give(c, 0);
  for (int c = 0; c < ALLOC_CLASSES; c++) {
    alloc_lock();
    alloc_block *all = alloc_lists[c];
    alloc_lists[c] = NULL;
    for (alloc_block *b = all; b; b = b->next) alloc_stats.cached -= (int64_t)alloc_size(c);
    alloc_unlock();
    while (all) {
      alloc_block *next = all->next;
      system_give(all, alloc_size(c));
      all = next;
    }
  }
}
