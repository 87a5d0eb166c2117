/* Plans, between plan.c and plan_cuda.c. */
#ifndef RL_PLAN_IMPL_H
#define RL_PLAN_IMPL_H
#include "../codegen/build.h"
#include "../codegen/codegen.h"
#include "../tensor/random.h"
#include "plan.h"

typedef int (*plan_kernel)(void *const *b, const double *num, uint64_t seed, uint64_t ctr, const int64_t *q, const double *w);

typedef struct plan_call {
  rl_op op;
  int nin, nout;
  rl_tensor *in, *out;     /* headers */
  rl_tensor **inp, **outp; /* pointers to them, NULL for absent inputs */
  const rl_attrs *at;
  rl_kernel_fn direct; /* the eager kernel, when dispatch has nothing to add */
  bool random;
  int64_t rng;
} plan_call;

enum { REUSE_BYTES = 1 << 16 }; /* smaller outputs are always new */
enum { REPORT_RUNS = 10 };      /* RELUME_DEBUG=2 reports launch times after so many runs, and when the plan is freed */

typedef struct plan_step {
  plan_kernel kernel;
  struct plan_grid *grid; /* CUDA kernel */
  const int64_t *q;       /* sizes and constants of a kernel that serves several sizes */
  const double *w;
  plan_call *call;
  double seconds;
  int64_t runs;
} plan_step;

struct rl_plan {
  rl_graph *g;
  cg_program prog;
  bool interpreted;
  rl_built built;
  void **ptr;         /* by buffer */
  rl_storage *store;  /* by buffer: what call headers point at */
  rl_storage **fresh; /* by output: storage made in this run */
  char *arena;        /* of the last run; on a GPU of all runs */
  plan_step *step;
  int nstep;
  plan_call *calls;
  int ncalls;
  uint8_t *written; /* by input: the plan updates its storage */
  bool sequential;  /* draws in program order, as its generator at compile time needs */
  bool cuda;        /* its memory and kernels are on a GPU */
  struct plan_cuda *dev;
  rl_plan_info info;
};

void plan_report_times(const rl_plan *p); /* what launches took, on stderr */
rl_status plan_make_outputs(rl_plan *p, rl_tensor *const *in, rl_tensor *const *target);
rl_status plan_run_call(const plan_call *k, rl_generator *gen, uint64_t base);

/* plan_cuda.c */
rl_status plan_cuda_bind(rl_plan *p); /* after the launches are known: modules, entries, arguments */
rl_status plan_cuda_run(rl_plan *p, rl_tensor *const *in, const double *numbers);
void plan_cuda_free(rl_plan *p);
#endif
