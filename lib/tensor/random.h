/* Random numbers: Philox4x32-10, counter based. One stream for eager, compiled, CPU and CUDA.
 * A draw of n elements at counter c uses counters c .. c + ceil(n / per) - 1, where per is 4 elements a counter for draws of one
 * 32-bit word (float uniform: (w >> 8) * 2^-24) and 2 for draws of two words (double uniform: 53 bits of the word pair). Normal draws use
 * Box-Muller on neighbouring uniforms: elements 2j and 2j+1 are r cos and r sin of uniforms 2j and 2j+1, in the result's own precision.
 * Half and BFloat16 draw as float and round. Element i takes lane i % per of counter c + i / per. Element order is the contiguous order of the result. */
#ifndef RL_RANDOM_H
#define RL_RANDOM_H
#include "tensor.h"
typedef struct rl_generator {
  uint64_t seed, counter;
  uint64_t initial_seed;
} rl_generator;
RL_API rl_generator *rl_generator_default(void);
RL_API void rl_generator_seed(rl_generator *g, uint64_t seed);
/* Counters that a draw of n elements uses: four elements a counter, two when an element takes 64 bits (Double, Long). Every random op draws
 * for its first output, n = its element count, except where its row says otherwise. */
RL_API int64_t rl_random_counters(rl_dtype dt, int64_t n);
#endif
