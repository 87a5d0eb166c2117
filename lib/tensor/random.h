/* Random numbers: Philox4x32-10, counter based. One stream for eager, compiled, CPU and CUDA.
 * A draw of n elements at counter c uses counters c .. c + ceil(n / per) - 1, where per is 4 elements a counter for draws of one
 * 32-bit word (float uniform: (w >> 8) * 2^-24) and 2 for draws of two words (double uniform: 53 bits of the word pair). Normal draws use
 * Box-Muller on neighbouring uniforms: elements 2j and 2j+1 are r cos and r sin of uniforms 2j and 2j+1, in the result's own precision.
 * Half and BFloat16 draw as float and round. Element i takes lane i % per of counter c + i / per. Element order is the contiguous order of the result. */
#ifndef RL_RANDOM_H
#define RL_RANDOM_H
#include <stddef.h>
#include "tensor.h"
typedef enum { RL_GEN_PHILOX, RL_GEN_MT19937 } rl_gen_kind;
#define RL_MT_WORDS 624

/* The second generator, mt19937, repeats the original's streams: words are drawn one after the other, so a draw has no counter of its own and draws
 * must run in program order. The layout is that of the original's saved states. normal_*: the pair of a Box-Muller draw whose second half is due. */
typedef struct rl_mt19937 {
  uint64_t initial_seed;
  int32_t left, seeded;
  uint64_t next, state[RL_MT_WORDS];
  double normal_x, normal_y, normal_rho;
  int32_t normal_is_valid;
} rl_mt19937;

typedef struct rl_generator {
  uint64_t seed, counter;
  uint64_t initial_seed;
  rl_gen_kind kind;
  rl_mt19937 mt; /* kind RL_GEN_MT19937 */
} rl_generator;
#define RL_PHILOX_STATE offsetof(rl_generator, kind) /* bytes of a Philox state */
/* Bytes of a generator that its kind uses. */
static inline size_t rl_generator_bytes(const rl_generator *g) { return g->kind == RL_GEN_PHILOX ? offsetof(rl_generator, mt) : sizeof *g; }

RL_API rl_generator *rl_generator_default(void);
RL_API void rl_generator_seed(rl_generator *g, uint64_t seed);
/* Changes the kind; the new stream starts at the initial seed. */
RL_API void rl_generator_set_kind(rl_generator *g, rl_gen_kind kind);
/* Kind by name; -1 for an unknown one. */
RL_API int rl_generator_kind_of(const char *name);
/* Whether draws of the thread's generator must run in program order. */
RL_API bool rl_random_sequential(void);
/* Next 32-bit word, uniform number on [0, 1) and normal number of an mt19937 stream, as the original draws them. */
RL_API uint32_t rl_mt_word(rl_mt19937 *g);
RL_API double rl_mt_uniform(rl_mt19937 *g);
RL_API double rl_mt_normal(rl_mt19937 *g);
/* Counters that a draw of n elements uses: four elements a counter, two when an element takes 64 bits (Double, Long). Every random op draws
 * for its first output, n = its element count, except where its row says otherwise. */
RL_API int64_t rl_random_counters(rl_dtype dt, int64_t n);
#endif
