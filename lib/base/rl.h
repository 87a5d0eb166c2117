/* Base: status codes, the error message, memory, settings. Everything in lib/ includes this.
 * A function that can fail returns rl_status and leaves its message with rl_error. */
#ifndef RL_BASE_H
#define RL_BASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define RL_TLS thread_local
#else
#define RL_TLS _Thread_local
#endif
#define RL_TLS_FAST __attribute__((tls_model("initial-exec"))) /* for the few bytes that every op touches */
#define RL_API __attribute__((visibility("default")))
#define RL_PRINTF(a, b) __attribute__((format(printf, a, b)))
#define RL_MIN(a, b) ((a) < (b) ? (a) : (b))
#define RL_MAX(a, b) ((a) > (b) ? (a) : (b))

typedef enum rl_status {
  RL_OK = 0,
  RL_ERR,    /* bad argument or failed operation: message in rl_error_message() */
  RL_NODATA, /* the op needs the values of a fake tensor (capture turns this into a graph break) */
  RL_OOM     /* out of memory: the binding collects garbage and tries once more */
} rl_status;

#define RL_TRY(e) \
  do { \
    rl_status rl_s_ = (e); \
    if (rl_s_ != RL_OK) return rl_s_; \
  } while (0)

/* Sets this thread's message, "[op] what; got A, need B", and returns RL_ERR. */
RL_API rl_status rl_error(const char *fmt, ...) RL_PRINTF(1, 2);
RL_API rl_status rl_error_status(rl_status s, const char *fmt, ...) RL_PRINTF(2, 3);
RL_API const char *rl_error_message(void);

/* Caching allocator (64-byte aligned). rl_alloc returns NULL when memory is out and sets the message.
 * Statistics are per process; `live` is what the binding's collector pressure looks at. */
typedef struct rl_mem_stats {
  int64_t live, peak, cached, allocs, hits;
} rl_mem_stats;
RL_API void *rl_alloc(size_t bytes);
RL_API void rl_free(void *p, size_t bytes);
RL_API void rl_mem_get(rl_mem_stats *out);
RL_API void rl_mem_reset_peak(void);
RL_API void rl_mem_release_cache(void);

/* Settings: rows of lib/env.def, read once at first use. */
#define RL_ENV(id, name, kind, def, doc) RL_ENV_##id,
typedef enum rl_env_id {
#include "../env.def"
  RL_ENV_COUNT
} rl_env_id;
#undef RL_ENV
RL_API int rl_env_int(rl_env_id id);
RL_API const char *rl_env_str(rl_env_id id);
#endif
