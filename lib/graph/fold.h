/* Fold internals: the state of one run and the rules' interface. */
#ifndef RL_FOLD_H
#define RL_FOLD_H
#include "impl.h"

enum { FOLD_KEEP = -2 }; /* no rule applies: rebuild the node as it is */

typedef struct fold_entry {
  uint32_t hash;
  rl_ref ref;
  int32_t next;
  bool window;
} fold_entry;
typedef struct fold {
  const rl_graph *old;
  rl_graph *g;
  rl_ref *map;
  int32_t *sid, *head;
  uint32_t mask;
  fold_entry *entry;
  int32_t nentry, capentry;
} fold;

/* Emits that return a node already known for the same value. */
rl_ref fold_window_raw(fold *f, rl_ref x, const rl_geom *ge);
rl_ref fold_copy(fold *f, rl_ref x);
rl_ref fold_dense(fold *f, rl_ref x);
rl_ref fold_view(fold *f, int op, rl_ref x, const rl_attrs *a);
rl_ref fold_const(fold *f, rl_dtype dt, rl_device dev, double v, int64_t i);
rl_ref fold_cast(fold *f, rl_ref x, rl_dtype dt);
rl_ref fold_broadcast(fold *f, rl_ref x, const rl_type *t);
rl_ref fold_op(fold *f, int op, const rl_type *t, const rl_ref *in, int nin);
rl_ref fold_scatter_emit(fold *f, rl_ref base, rl_ref v, const rl_type *t, const rl_attrs *a);
rl_ref fold_cat_emit(fold *f, const rl_ref *in, int n, const rl_type *t, const rl_attrs *a);

bool fold_is_copy(const rl_graph *g, rl_ref r);       /* a cast to its input's own dtype */
rl_ref fold_constant_of(const rl_graph *g, rl_ref x); /* the constant that all elements of x are, or -1 */

/* Rules (fold_view.c, fold_ew.c): the value of the node on folded inputs, FOLD_KEEP, or -1 with a message. */
rl_ref fold_view_node(fold *f, int op, rl_ref x, const rl_attrs *a);
rl_ref fold_window(fold *f, rl_ref x, const rl_geom *ge); /* ge absolute in x's storage */
rl_ref fold_reshape(fold *f, rl_ref x, const rl_attrs *a);
rl_ref fold_full(fold *f, rl_ref r);
rl_ref fold_reduction(fold *f, rl_ref r, rl_ref x);
rl_ref fold_scatter(fold *f, const rl_ref *in, const rl_attrs *a);
rl_ref fold_cat(fold *f, rl_ref r, rl_ref *in);
rl_ref fold_elementwise(fold *f, rl_ref r, const rl_ref *in);
#endif
