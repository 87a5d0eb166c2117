/* Codegen: a functional primitive graph to generated C and a list of launches (graph -> program).
 * What lib/runtime sees of lib/codegen. */
#ifndef RL_CODEGEN_H
#define RL_CODEGEN_H
#include "cuda.h"

typedef struct cg_launch {
  bool call;
  int kernel; /* number of the generated function */
  int node;   /* call: its node */
  int64_t flops, bytes;
  char *label; /* ops fused */
  int64_t *q;  /* what a kernel that serves several sizes is given */
  double *w;
  cg_plan plan; /* CUDA kernels */
  cg_grid grid;
} cg_launch;

typedef struct cg_program {
  cg c;
  cg_launch *launch;
  int nlaunch;
  char *source;
  cg_sites sites;
  bool cuda; /* the graph is about CUDA tensors: source is CUDA C */
} cg_program;

/* choices: NULL, or decisions by size to make again or to write down; the source then has sites for its numbers. */
rl_status cg_compile(const rl_graph *g, bool strict, cg_choices *choices, cg_program *out);
bool cg_on_gpu(const rl_graph *g); /* programs for a GPU serve one geometry each */
void cg_program_free(cg_program *p);
#endif
