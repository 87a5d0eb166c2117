/* What dispatch, shape rules and views share inside lib/tensor. */
#ifndef RL_DISPATCH_H
#define RL_DISPATCH_H
#include "half.h"
#include "op.h"

/* Dtype that a row's inputs agree on: that of the first that is no number. */
rl_status rl_op_dtype(rl_op op, rl_tensor *const *in, int nin, rl_dtype *dt);
/* Whether sizes a expand to sizes b. */
bool rl_broadcasts(int na, const int64_t *a, int nb, const int64_t *b);
/* Dimensions that list 0 of a reduction's attributes names (none: all). */
rl_status rl_reduced_dims(const rl_tensor *x, const rl_attrs *a, bool hit[RL_MAXDIM]);
/* Strides of a view of x with other sizes over the same elements; false: not without a copy. */
bool rl_view_strides(const rl_tensor *x, int ndim, const int64_t *size, int64_t *stride);

static inline rl_status rl_check_dim(rl_op op, const rl_tensor *x, int64_t d) {
  if (d >= 0 && d < x->ndim) return RL_OK;
  return rl_error("[%s] dimension out of range; got %lld, need 1 to %d", rl_ops[op].name, (long long)d + 1, x->ndim);
}
#endif
