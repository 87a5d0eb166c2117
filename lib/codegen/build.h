/* Build: C text to a loaded library through the system compiler and an on-disk cache (text -> functions). */
#ifndef RL_BUILD_H
#define RL_BUILD_H
#include "../base/rl.h"

typedef struct rl_built {
  void *handle;
  bool from_cache;
  double seconds;
  char path[512];
} rl_built;

/* Compiles source (or takes it from the cache) and loads it. RL_ERR when there is no compiler, or it refuses. */
rl_status rl_build(const char *source, rl_built *out);
void *rl_build_symbol(const rl_built *b, const char *name);
bool rl_build_has_compiler(void);
char *rl_build_assembly(const char *source); /* malloc'ed; NULL: none */
extern const char rl_prelude_text[];         /* kernels/cpu/prelude.h, embedded when the library was built */
bool rl_build_folder(char *out, size_t n);   /* the on-disk cache of compiled kernels, made when it is missing; false: none */
#endif
