/* OpenBLAS's choice of kernels: a release older than the processor falls back to those of a 2004 core; this picks the newest that runs.
 * Left alone when OPENBLAS_CORETYPE is set or the library was built for one core. */
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
extern char *openblas_get_corename(void) __attribute__((weak));
extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));

static const char *newest_core(void) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "Haswell" : NULL;
}

__attribute__((constructor)) static void pick_core(void) {
  if (!openblas_get_corename || !gotoblas_dynamic_init || !gotoblas_dynamic_quit || getenv("OPENBLAS_CORETYPE")) return;
  const char *now = openblas_get_corename(), *want = newest_core();
  if (!want || (strcmp(now, "Prescott") && strcmp(now, "Core2") && strcmp(now, "Nehalem"))) return;
  setenv("OPENBLAS_CORETYPE", want, 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv("OPENBLAS_CORETYPE");
}
#endif
