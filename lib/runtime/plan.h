/* Plans: a compiled graph as a flat list of launches and library calls, run by one C call without Lua. */
#ifndef RL_PLAN_H
#define RL_PLAN_H
#include "../graph/graph.h"

typedef struct rl_plan rl_plan;
/* Plans of one graph for several sizes, which share the text of their kernels, so that the C compiler does not run for each of them. */
typedef struct cg_family rl_family;
typedef struct rl_compile_opts {
  bool strict;
  int device;
  const char *mode;
  rl_family *family; /* NULL: the plan's kernels are for these sizes alone */
} rl_compile_opts;

/* Compiles a functional primitive graph (rl_pass_run's result): fuse, schedule, codegen, build or load from the cache. */
RL_API rl_plan *rl_plan_compile(const rl_graph *g, const rl_compile_opts *o);
RL_API void rl_plan_free(rl_plan *p);
RL_API bool rl_plan_compiles(void);                     /* a C compiler was found: plans are no interpreters */
RL_API const rl_graph *rl_plan_graph(const rl_plan *p); /* what it computes */
RL_API rl_family *rl_family_new(void);
RL_API void rl_family_free(rl_family *f); /* its plans stay good */
/* Shows the family the graph for other sizes: what differs becomes a parameter of the kernels that are made from now on. */
RL_API rl_status rl_family_probe(rl_family *f, const rl_graph *g, bool strict);
RL_API int rl_family_texts(const rl_family *f); /* different kernel texts so far */
/* in: the graph's inputs in order, geometry as captured (the caller's guards hold); numbers: the graph's number inputs.
 * Mutated inputs are updated in their storage. out[i] gets a new reference: fresh memory, or a view of an input's storage when the
 * graph says so. Random ops draw from this thread's default generator, which advances by the graph's total.
 * target (or NULL): by output, the tensor that the caller will set to it, or NULL; large outputs are written where their targets were, when
 * nobody else has that memory. */
RL_API rl_status rl_plan_run(rl_plan *p, rl_tensor *const *in, const double *numbers, rl_tensor *const *target, rl_tensor **out);
typedef struct rl_plan_info {
  int inputs, outputs, numbers, launches, kernels, calls;
  int64_t arena_bytes, flops, bytes;
  double build_s;
  bool from_cache;
} rl_plan_info;
RL_API void rl_plan_get_info(const rl_plan *p, rl_plan_info *out);
RL_API const char *rl_plan_source(const rl_plan *p); /* generated C */
RL_API char *rl_plan_describe(const rl_plan *p);     /* one line per launch: kernel, ops fused, bytes, flops; malloc'ed */
#endif
