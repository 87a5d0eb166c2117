/* Small steps that shape rules are written in. */
#ifndef RL_RULES_H
#define RL_RULES_H
#include <string.h>
#include "op.h"

static inline void rl_rule_like(rl_meta *m, const rl_tensor *t) {
  m->ndim = t->ndim;
  memcpy(m->size, t->size, t->ndim * sizeof *t->size);
}
static inline rl_status rl_rule_sizes(rl_op op, int n, const int64_t *size, rl_meta *m) {
  if (n > RL_MAXDIM) return rl_error("[%s] dimensions; got %d, need at most %d", rl_ops[op].name, n, RL_MAXDIM);
  m->ndim = n;
  for (int d = 0; d < n; d++) {
    if (size[d] < 0) return rl_error("[%s] size; got %lld, need 0 or more", rl_ops[op].name, (long long)size[d]);
    m->size[d] = size[d];
  }
  return RL_OK;
}
#endif
