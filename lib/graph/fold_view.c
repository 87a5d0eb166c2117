/* Fold, the rules on windows: views, scatter_window, concatenation. */
#include "fold.h"
#include <string.h>

static rl_ref root_of(const rl_graph *g, rl_ref r) {
  while (graph_is_view(g->nodes[r].op)) r = rl_node_in(g, r, 0);
  return r;
}

static bool inside(const rl_geom *w, int64_t lo, int64_t hi) { return w->offset >= lo && graph_geom_last(w) < hi; }

/* Window `ge` (relative to value v in row-major order, starting at `lo`) of v. */
static rl_ref window_of(fold *f, rl_ref v, const rl_geom *ge, int64_t lo) {
  rl_geom w = *ge;
  v = fold_dense(f, v);
  if (v < 0) return -1;
  w.offset += graph_node_geom(f->g, v)->offset - lo;
  return fold_window(f, v, &w);
}

/* Window of scatter_window node s: the value put there, or a window of the base. */
static rl_ref window_of_scatter(fold *f, rl_ref s, const rl_geom *ge) {
  rl_geom w;
  graph_strided_geom(graph_node_attrs(f->g, s), &w);
  rl_ref base = rl_node_in(f->g, s, 0), v = rl_node_in(f->g, s, 1);
  if (graph_geom_same(&w, ge)) return v;
  if (graph_geom_dense(&w) && inside(ge, w.offset, graph_geom_last(&w) + 1)) return window_of(f, v, ge, w.offset);
  if (graph_geom_last(ge) < w.offset || graph_geom_last(&w) < ge->offset) return window_of(f, base, ge, 0);
  return FOLD_KEEP;
}

/* Window of a flat concatenation that lies in one part. */
static rl_ref window_of_cat(fold *f, rl_ref c, const rl_geom *ge) {
  const rl_node *n = &f->g->nodes[c];
  if (rl_node_type(f->g, c)->ndim != 1) return FOLD_KEEP;
  for (int64_t k = 0, lo = 0; k < n->nin; k++) {
    rl_ref part = f->g->refs[n->in + k];
    int64_t hi = lo + graph_numel(rl_node_type(f->g, part));
    if (inside(ge, lo, hi)) return window_of(f, part, ge, lo);
    lo = hi;
  }
  return FOLD_KEEP;
}

static rl_ref emit_reshape(fold *f, rl_ref x, const rl_geom *ge) {
  rl_attrs a;
  rl_attrs_default(RL_OP_VIEW, &a);
  a.nlist[0] = ge->ndim;
  memcpy(a.list[0], ge->size, sizeof(int64_t) * ge->ndim);
  return fold_view(f, RL_OP_VIEW, x, &a);
}

static bool same_numel(const rl_geom *a, const rl_geom *b) {
  int64_t n = 1, m = 1;
  for (int d = 0; d < a->ndim; d++) n *= a->size[d];
  for (int d = 0; d < b->ndim; d++) m *= b->size[d];
  return n == m && n > 0;
}

rl_ref fold_window(fold *f, rl_ref x, const rl_geom *ge) {
  rl_ref root = root_of(f->g, x), r = FOLD_KEEP;
  const rl_geom *rg = graph_node_geom(f->g, root);
  if (graph_geom_last(ge) < ge->offset) return fold_window_raw(f, root, ge);
  if (graph_geom_same(rg, ge)) return root;
  if (f->g->nodes[root].op == RL_G_SCATTER_WINDOW) r = window_of_scatter(f, root, ge);
  if (f->g->nodes[root].op == RL_OP_CAT) r = window_of_cat(f, root, ge);
  if (r != FOLD_KEEP) return r;
  if (graph_geom_dense(rg) && graph_geom_dense(ge) && rg->offset == ge->offset && same_numel(rg, ge)) return emit_reshape(f, root, ge);
  return fold_window_raw(f, root, ge);
}

/* permute(permute(x)): one permutation of x. */
static rl_ref merge_permutes(fold *f, rl_ref x, const rl_attrs *a) {
  const rl_attrs *b = graph_node_attrs(f->g, x);
  rl_attrs c = *a;
  for (int d = 0; d < a->nlist[0]; d++) c.list[0][d] = b->list[0][a->list[0][d]];
  return fold_view(f, RL_OP_PERMUTE, rl_node_in(f->g, x, 0), &c);
}

/* A view of a copy that needs no dense layout looks at the original. */
static rl_ref view_source(fold *f, int op, rl_ref x, const rl_attrs *a) {
  rl_type t;
  rl_geom ge;
  if (!fold_is_copy(f->g, x) || op == RL_OP_AS_STRIDED) return x;
  rl_ref in = rl_node_in(f->g, x, 0);
  return graph_view_geom(op, rl_node_type(f->g, in), graph_node_geom(f->g, in), a, &t, &ge) == RL_OK ? in : x;
}

rl_ref fold_view_node(fold *f, int op, rl_ref x, const rl_attrs *a) {
  rl_type t;
  rl_geom ge;
  x = view_source(f, op, x, a);
  if (graph_view_geom(op, rl_node_type(f->g, x), graph_node_geom(f->g, x), a, &t, &ge) != RL_OK) { /* a rule replaced x by one laid out differently */
    x = fold_copy(f, x);
    if (x < 0 || graph_view_geom(op, rl_node_type(f->g, x), graph_node_geom(f->g, x), a, &t, &ge) != RL_OK) return -1;
  }
  rl_ref c = fold_constant_of(f->g, x);
  if (c >= 0 && !rl_node_type(f->g, c)->weak && graph_numel(&t)) return fold_broadcast(f, c, &t);
  if (graph_geom_same(&ge, graph_node_geom(f->g, x))) return x;
  rl_ref root = root_of(f->g, x);
  int rop = f->g->nodes[root].op;
  if (op == RL_OP_AS_STRIDED || rop == RL_G_SCATTER_WINDOW || rop == RL_OP_CAT) return fold_window(f, root, &ge);
  if (graph_geom_same(&ge, graph_node_geom(f->g, root))) return root;
  if (op == RL_OP_PERMUTE && f->g->nodes[x].op == RL_OP_PERMUTE) return merge_permutes(f, x, a);
  const rl_geom *rg = graph_node_geom(f->g, root);
  if (root != x && graph_geom_dense(rg) && graph_geom_dense(&ge) && rg->offset == ge.offset && same_numel(rg, &ge)) return emit_reshape(f, root, &ge);
  return fold_view(f, op, x, a);
}

/* reshape is a copy: a view where the layout allows one (outputs that must not alias are seen to at the end). */
rl_ref fold_reshape(fold *f, rl_ref x, const rl_attrs *a) {
  rl_type t;
  rl_geom ge;
  if (graph_view_geom(RL_OP_VIEW, rl_node_type(f->g, x), graph_node_geom(f->g, x), a, &t, &ge) != RL_OK) return FOLD_KEEP;
  return fold_view_node(f, RL_OP_VIEW, x, a);
}

static bool covers(const rl_geom *w, int64_t n) { return graph_geom_dense(w) && w->offset == 0 && graph_geom_last(w) == n - 1; }

rl_ref fold_scatter(fold *f, const rl_ref *in, const rl_attrs *a) {
  rl_geom w, u;
  const rl_type *t = rl_node_type(f->g, in[0]);
  rl_attrs copy = *a;
  rl_ref base = in[0];
  graph_strided_geom(a, &w);
  if (graph_geom_last(&w) < w.offset) return base;
  if (covers(&w, graph_numel(t))) {
    rl_geom whole;
    graph_dense(t->ndim, t->size, &whole);
    return window_of(f, in[1], &whole, 0);
  }
  while (f->g->nodes[base].op == RL_G_SCATTER_WINDOW) { /* the same window written twice: the first is lost */
    graph_strided_geom(graph_node_attrs(f->g, base), &u);
    if (!graph_geom_same(&u, &w)) break;
    base = rl_node_in(f->g, base, 0);
  }
  rl_type bt = *t;
  return fold_scatter_emit(f, base, in[1], &bt, &copy);
}

/* Neighbouring windows of one storage are one window. */
static bool adjacent(const rl_graph *g, rl_ref a, rl_ref b) {
  const rl_geom *x = graph_node_geom(g, a), *y = graph_node_geom(g, b);
  return g->nodes[a].storage == g->nodes[b].storage && x->ndim == 1 && graph_geom_dense(x) && graph_geom_dense(y) &&
         x->offset + x->size[0] == y->offset;
}

rl_ref fold_cat(fold *f, rl_ref r, rl_ref *in) {
  const rl_node *n = &f->old->nodes[r];
  rl_type t = *rl_node_type(f->old, r);
  int32_t k = 0;
  if (t.ndim != 1) return n->nin == 1 ? in[0] : FOLD_KEEP;
  for (int32_t i = 0; i < n->nin; i++) {
    if (graph_numel(rl_node_type(f->g, in[i])) == 0) continue;
    if (k && adjacent(f->g, in[k - 1], in[i])) {
      rl_geom ge = *graph_node_geom(f->g, in[k - 1]);
      ge.stride[0] = 1;
      ge.size[0] += graph_node_geom(f->g, in[i])->size[0];
      if ((in[k - 1] = fold_window(f, in[k - 1], &ge)) < 0) return -1;
    } else in[k++] = in[i];
  }
  if (k == 1) return in[0];
  if (k == n->nin || k == 0) return FOLD_KEEP;
  return fold_cat_emit(f, in, k, &t, graph_node_attrs(f->old, r));
}
