/* Random: the default generator of a thread and the number of Philox counters a draw uses.
 * Kernels draw at the generator's counter; dispatch advances it afterwards, so eager and compiled code see the same counters. */
#include <time.h>
#include "random.h"

static RL_TLS rl_generator random_own;

static uint64_t random_entropy(void) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  uint64_t x = (uint64_t)ts.tv_nsec ^ ((uint64_t)ts.tv_sec << 20) ^ (uint64_t)(uintptr_t)&ts;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return (x ^ (x >> 27)) & 0xffffffffu;
}

void rl_generator_seed(rl_generator *g, uint64_t seed) { *g = (rl_generator){ .seed = seed, .initial_seed = seed }; }

rl_generator *rl_generator_default(void) {
  if (!rl_self.gen) {
    rl_generator_seed(&random_own, random_entropy());
    rl_self.gen = &random_own;
  }
  return rl_self.gen;
}

int64_t rl_random_counters(rl_dtype dt, int64_t n) {
  int64_t per = dt == RL_F64 || dt == RL_I64 ? 2 : 4;
  return (n + per - 1) / per;
}
