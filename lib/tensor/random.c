/* Random: the default generator of a thread, the number of Philox counters a draw uses, and the mt19937 stream.
 * Kernels draw at the generator's counter; dispatch advances it afterwards, so eager and compiled code see the same counters. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "random.h"

static pthread_key_t random_key;
static pthread_once_t random_once = PTHREAD_ONCE_INIT;
static void random_make_key(void) { pthread_key_create(&random_key, free); }

static uint64_t random_entropy(void) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  uint64_t x = (uint64_t)ts.tv_nsec ^ ((uint64_t)ts.tv_sec << 20) ^ (uint64_t)(uintptr_t)&ts;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return (x ^ (x >> 27)) & 0xffffffffu;
}

/* Seeds the state of Matsumoto and Nishimura's mt19937 (2002 initialisation). */
static void mt_seed(rl_mt19937 *g, uint64_t seed) {
  memset(g, 0, sizeof *g);
  g->initial_seed = seed;
  g->state[0] = seed & 0xffffffffu;
  for (uint32_t i = 1; i < RL_MT_WORDS; i++) g->state[i] = (uint32_t)(1812433253u * (uint32_t)(g->state[i - 1] ^ (g->state[i - 1] >> 30)) + i);
  g->left = 1;
  g->seeded = 1;
}

void rl_generator_seed(rl_generator *g, uint64_t seed) {
  g->seed = g->initial_seed = seed;
  g->counter = 0;
  if (g->kind == RL_GEN_MT19937) mt_seed(&g->mt, seed);
}

void rl_generator_set_kind(rl_generator *g, rl_gen_kind kind) {
  if (g->kind == kind) return;
  g->kind = kind;
  rl_generator_seed(g, g->initial_seed);
}

int rl_generator_kind_of(const char *name) { return !strcmp(name, "philox") ? RL_GEN_PHILOX : !strcmp(name, "mt19937") ? RL_GEN_MT19937 : -1; }

/* The next 624 words of the state. */
static void mt_refill(rl_mt19937 *g) {
  uint64_t *s = g->state;
  for (int i = 0; i < RL_MT_WORDS; i++) {
    uint64_t y = (s[i] & 0x80000000u) | (s[(i + 1) % RL_MT_WORDS] & 0x7fffffffu);
    s[i] = s[(i + 397) % RL_MT_WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
  }
  g->left = RL_MT_WORDS;
  g->next = 0;
}

uint32_t rl_mt_word(rl_mt19937 *g) {
  if (--g->left == 0) mt_refill(g);
  uint32_t y = (uint32_t)g->state[g->next++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

double rl_mt_uniform(rl_mt19937 *g) { return rl_mt_word(g) * (1.0 / 4294967296.0); }

/* Box-Muller: cosine first, the sine of the same pair at the next call. */
double rl_mt_normal(rl_mt19937 *g) {
  g->normal_is_valid = !g->normal_is_valid;
  if (!g->normal_is_valid) return g->normal_rho * sin(2. * M_PI * g->normal_x);
  g->normal_x = rl_mt_uniform(g);
  g->normal_y = rl_mt_uniform(g);
  g->normal_rho = sqrt(-2. * log(1.0 - g->normal_y));
  return g->normal_rho * cos(2. * M_PI * g->normal_x);
}

/* The thread's own generator: its memory belongs to the thread, not to Lua. */
static rl_generator *random_own(void) {
  rl_generator *g = calloc(1, sizeof *g);
  static rl_generator spare; /* only when five kilobytes cannot be had at the start of a thread */
  if (!g) return &spare;
  pthread_once(&random_once, random_make_key);
  pthread_setspecific(random_key, g);
  g->kind = rl_generator_kind_of(rl_env_str(RL_ENV_GENERATOR)) == RL_GEN_MT19937 ? RL_GEN_MT19937 : RL_GEN_PHILOX;
  rl_generator_seed(g, random_entropy());
  return g;
}

rl_generator *rl_generator_default(void) {
  if (!rl_self.gen) rl_self.gen = random_own();
  return rl_self.gen;
}

bool rl_random_sequential(void) { return rl_generator_default()->kind != RL_GEN_PHILOX; }

int64_t rl_random_counters(rl_dtype dt, int64_t n) {
  int64_t per = dt == RL_F64 || dt == RL_I64 ? 2 : 4;
  return (n + per - 1) / per;
}
