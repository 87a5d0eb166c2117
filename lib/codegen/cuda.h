/* Printing CUDA: what cuda.c makes of a kernel in loop form, and what a launch needs. */
#ifndef RL_CODEGEN_CUDA_H
#define RL_CODEGEN_CUDA_H
#include "loop.h"

/* Arguments of an entry, in order: the buffers, the numbers, seed and counter, the error words, one counter offset for each random row. */
typedef struct cg_grid {
  char name[40];
  int nbuf, nrng;
  int *buf;
  int64_t *rng;
  int64_t blocks, columns, finish; /* finish: blocks of the second entry, which ends reductions over all rows; 0: none */
  int threads;
} cg_grid;

/* Decides how threads share the kernel, which also sizes its scratch. */
typedef enum cg_share { CG_FLAT, CG_ROWS, CG_COLS } cg_share;
typedef struct cg_plan {
  cg_share share;
  int vec, tpr, ne, threads,
      ty; /* elements a thread takes at once, threads of a row, groups a thread has of it, of a block, lanes of rows (CG_COLS) */
  int64_t blocks, columns, parts, cparts;
  int cluster;                  /* blocks that share a row and each other's sums (CG_ROWS on GPUs that have clusters); 1: a row is a block's */
  bool small, exact, registers; /* 32-bit positions; every thread has all its groups; column sums stay in registers */
} cg_plan;
void cg_cuda_plan(cg *c, lp_kernel *k, cg_plan *p);
void cg_print_cuda_prologue(cg_text *t, bool strict);
/* Appends the kernel unless one with the same text is in t already. */
rl_status cg_print_cuda(cg_text *t, const cg *c, lp_kernel *k, const cg_plan *p, cg_grid *out);
#endif
