/* Tape autograd over the op table's gradients: runs on real tensors, and on fakes (capture and the backward pass), where each
 * gradient op becomes a node. */
#ifndef RL_TAPE_H
#define RL_TAPE_H
#include "../tensor/op.h"

struct rl_tape_node;
typedef struct rl_ag {
  bool requires_grad;      /* leaf flag, or history present */
  struct rl_tape_node *fn; /* what made it; NULL: leaf */
  int out;                 /* which output of fn */
  rl_tensor *grad;         /* leaf gradient, created by backward */
  rl_tensor *base;         /* views of a differentiable tensor: in-place ops on either follow */
  uint32_t view_version;
} rl_ag;

RL_API bool rl_requires_grad(const rl_tensor *t);
RL_API rl_status rl_set_requires_grad(rl_tensor *t, bool on);
/* rl_call's hooks. */
RL_API rl_status rl_tape_record(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out, int nout);
RL_API rl_status rl_tape_record_write(rl_tensor *dst, rl_tensor *value); /* dst took value's elements in place; value carries the history */
/* Fails when dst may not be written in place: a leaf that requires grad (or a view of one) while grad mode is on. */
RL_API rl_status rl_tape_check_write(const char *name, const rl_tensor *dst);
RL_API rl_status rl_tape_view(rl_tensor *x, rl_tensor *view);                  /* view follows in-place writes to x's base, and the other way round */
RL_API uint32_t rl_tape_saved_inputs(rl_op op, rl_tensor *const *in, int nin); /* bits of the inputs whose values would be saved */
/* dx[i] = sum_k d ys[k] / d xs[i] applied to dys[k] (NULL: ones, ys[k] must have one element). NULL result: xs[i] not reached. stop: what one x
 * gets does not go through another x. */
RL_API rl_status rl_grad(rl_tensor *const *ys, rl_tensor *const *dys, int ny, rl_tensor *const *xs, int nx, bool retain, bool create_graph, bool stop,
                         rl_tensor **dx);
/* Accumulates into the leaves' grad. */
RL_API rl_status rl_backward(rl_tensor *const *ys, rl_tensor *const *dys, int ny, bool retain, bool create_graph);
RL_API rl_tensor *rl_detach(const rl_tensor *t);
/* Node made by a binding (custom functions in Lua): apply is called with the output gradients during backward; the engine returns to
 * the binding through it, never the other way round. Gradients that nobody gave are zeros, or NULL when sparse. The node lets go of ud
 * after a backward pass without retain. */
typedef rl_status (*rl_custom_fn)(void *ud, rl_tensor *const *dy, int ny, rl_tensor **dx, int nx);
RL_API rl_status rl_tape_custom(rl_tensor *const *in, int nin, rl_tensor *const *out, int nout, rl_custom_fn apply, void (*release)(void *), void *ud,
                                bool sparse);
/* hit[i]: the history of y runs through xs[i], which another op made. */
RL_API rl_status rl_tape_reaches(rl_tensor *y, rl_tensor *const *xs, int nx, bool *hit);
/* Calls visit for every storage whose values the history of ys holds. */
/* group[i]: the same for ys that share a node, where histories end at what made a y or a stop. */
RL_API rl_status rl_tape_groups(rl_tensor *const *ys, int ny, rl_tensor *const *stops, int nstops, int *group);
RL_API rl_status rl_tape_saved(rl_tensor *const *ys, int ny, void (*visit)(void *ud, const rl_tensor *t), void *ud);
RL_API void rl_ag_free(rl_tensor *t);
#endif
