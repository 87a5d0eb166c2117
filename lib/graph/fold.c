/* Fold: constants, identities, windows, common subexpressions, dead code (functional graph -> smaller functional graph).
 *
 * Every node is rebuilt on its folded inputs and then either replaced by something known or entered in the table of values.
 *  1. Elementwise ops on constants are computed by the eager kernels, so both give the same bits.
 *     So are reductions of constants.
 *  2. x+0, x-0, x*1, x/1, x^1, --x, where(constant) and x^2 = x*x. x+0 may lose the sign of a zero. x*0 is 0 for integers only: NaN and
 *     infinity must survive in floats.
 *  3. cast of cast is one cast when the middle dtype holds every value of the first exactly; any other cast rounds on purpose and stays.
 *  4. Views are known by (storage, geometry): whatever chain leads to the same window is the same value. reshape of reshape and permute of
 *     permute are one view.
 *  5. A window of scatter_window or of a concatenation is the value put there, or a window of the base, when it lies in one of them.
 *  6. Copies into dense storage stay only where a view needs the dense layout (and for outputs, which graph_set_outputs sees to).
 *  7. Equal ops on equal inputs are one, random ops only when they draw the same counters. EMPTY is never merged. */
#include "fold.h"
#include <stdlib.h>
#include <string.h>

/* ---- the table of values ---- */

typedef struct fold_mark {
  int32_t n, nrefs, nattrs, nstorages;
} fold_mark;

static fold_mark fold_here(const rl_graph *g) { return (fold_mark){ g->n, g->nrefs, g->nattrs, g->nstorages }; }

static void fold_rollback(rl_graph *g, fold_mark m) {
  g->n = m.n;
  g->nrefs = m.nrefs;
  g->nattrs = m.nattrs;
  g->nstorages = m.nstorages;
}

static uint32_t mix(uint32_t h, uint64_t v) {
  h ^= (uint32_t)(v ^ (v >> 32));
  h *= 0x9e3779b1u;
  return h ^ (h >> 15);
}

static uint32_t fold_hash_window(const rl_graph *g, rl_ref r) {
  const rl_geom *ge = graph_node_geom(g, r);
  uint32_t h = mix(mix(17, (uint64_t)g->nodes[r].storage), (uint64_t)ge->offset);
  for (int d = 0; d < ge->ndim; d++) h = mix(h, (uint64_t)ge->size[d]);
  return h;
}

static uint32_t fold_hash_op(const rl_graph *g, rl_ref r) {
  const rl_node *n = &g->nodes[r];
  uint32_t h = mix(mix(n->op, (uint64_t)n->type), (uint64_t)n->rng);
  for (int k = 0; k < n->nin; k++) h = mix(h, (uint64_t)(uint32_t)g->refs[n->in + k]);
  return h;
}

static bool fold_same_attr(const rl_attr_info *i, const rl_attrs *a, const rl_attrs *b) {
  if (i->kind != 'l') return a->v[i->slot].i == b->v[i->slot].i;
  return a->nlist[i->slot] == b->nlist[i->slot] && !memcmp(a->list[i->slot], b->list[i->slot], sizeof(int64_t) * a->nlist[i->slot]);
}

static bool fold_same_attrs(int op, const rl_attrs *a, const rl_attrs *b) {
  if (!a || !b) return a == b;
  if (op == RL_G_CONST) return a->v[0].i == b->v[0].i;
  if (op == RL_G_SCATTER_WINDOW) {
    rl_geom x, y;
    graph_strided_geom(a, &x);
    graph_strided_geom(b, &y);
    return graph_geom_same(&x, &y);
  }
  for (int i = 0; op < RL_NOP && i < rl_ops[op].nattrs; i++)
    if (!fold_same_attr(&rl_ops[op].attrs[i], a, b)) return false;
  return true;
}

static bool fold_same_op(const rl_graph *g, rl_ref a, rl_ref b) {
  const rl_node *x = &g->nodes[a], *y = &g->nodes[b];
  return x->op == y->op && x->type == y->type && x->nin == y->nin && x->rng == y->rng &&
         (!x->nin || !memcmp(&g->refs[x->in], &g->refs[y->in], sizeof(rl_ref) * (size_t)x->nin)) &&
         fold_same_attrs(x->op, graph_node_attrs(g, a), graph_node_attrs(g, b));
}

static bool fold_same_window(const rl_graph *g, rl_ref a, rl_ref b) {
  return g->nodes[a].storage == g->nodes[b].storage && rl_node_type(g, a)->dtype == rl_node_type(g, b)->dtype &&
         rl_node_type(g, a)->weak == rl_node_type(g, b)->weak && graph_geom_same(graph_node_geom(g, a), graph_node_geom(g, b));
}

static rl_ref fold_find(const fold *f, uint32_t h, rl_ref r, bool window) {
  for (int32_t e = f->head[h & f->mask]; e >= 0; e = f->entry[e].next) {
    const fold_entry *x = &f->entry[e];
    if (x->hash != h || x->window != window || x->ref == r) continue;
    if (window ? fold_same_window(f->g, x->ref, r) : fold_same_op(f->g, x->ref, r)) return x->ref;
  }
  return -1;
}

static bool fold_enter(fold *f, uint32_t h, rl_ref r, bool window) {
  fold_entry e = { h, r, f->head[h & f->mask], window };
  if (!GRAPH_PUSH(f->entry, f->nentry, f->capentry, e)) return false;
  f->head[h & f->mask] = f->nentry - 1;
  return true;
}

static bool fold_mergeable(int op) { return op != RL_G_EMPTY && op != RL_G_INPUT && op != RL_G_NUMBER && op != RL_G_TENSOR && op != RL_G_PROJ; }

/* Enters the nodes appended since the mark under their values, or takes them back when their first is known already. */
static rl_ref fold_commit(fold *f, fold_mark m) {
  rl_graph *g = f->g;
  rl_ref r = m.n;
  bool view = graph_is_view(g->nodes[r].op);
  uint32_t hw = fold_hash_window(g, r), ho = fold_hash_op(g, r);
  rl_ref known = view ? fold_find(f, hw, r, true) : fold_mergeable(g->nodes[r].op) ? fold_find(f, ho, r, false) : -1;
  if (known >= 0) {
    fold_rollback(g, m);
    return known;
  }
  bool ok = view || !fold_mergeable(g->nodes[r].op) || fold_enter(f, ho, r, false);
  for (rl_ref k = r; ok && k < g->n; k++) ok = fold_enter(f, fold_hash_window(g, k), k, true);
  return ok ? r : -1;
}

/* Runs an emit and enters what it appended. */
#define FOLD_EMIT(f, call) \
  do { \
    fold_mark m_ = fold_here((f)->g); \
    rl_ref r_ = (call); \
    return r_ < 0 || (f)->g->n == m_.n ? r_ : (f)->g->n == r_ + 1 && r_ == m_.n ? fold_commit(f, m_) : r_; \
  } while (0)

rl_ref fold_window_raw(fold *f, rl_ref x, const rl_geom *ge) { FOLD_EMIT(f, graph_emit_window(f->g, x, ge)); }
rl_ref fold_copy(fold *f, rl_ref x) { FOLD_EMIT(f, graph_emit_copy(f->g, x)); }
rl_ref fold_view(fold *f, int op, rl_ref x, const rl_attrs *a) { FOLD_EMIT(f, graph_emit_view(f->g, op, x, a)); }
rl_ref fold_const(fold *f, rl_dtype dt, rl_device dev, double v, int64_t i) { FOLD_EMIT(f, graph_emit_const(f->g, dt, dev, v, i)); }
rl_ref fold_cast(fold *f, rl_ref x, rl_dtype dt) { FOLD_EMIT(f, graph_emit_cast(f->g, x, dt)); }
rl_ref fold_broadcast(fold *f, rl_ref x, const rl_type *t) { FOLD_EMIT(f, graph_emit_expand(f->g, x, t->ndim, t->size)); }
rl_ref fold_op(fold *f, int op, const rl_type *t, const rl_ref *in, int nin) { FOLD_EMIT(f, graph_emit(f->g, op, t, in, nin, NULL)); }
rl_ref fold_cat_emit(fold *f, const rl_ref *in, int n, const rl_type *t, const rl_attrs *a) {
  FOLD_EMIT(f, graph_emit(f->g, RL_OP_CAT, t, in, n, a));
}
rl_ref fold_scatter_emit(fold *f, rl_ref base, rl_ref v, const rl_type *t, const rl_attrs *a) {
  rl_ref in[2] = { base, v };
  FOLD_EMIT(f, graph_emit(f->g, RL_G_SCATTER_WINDOW, t, in, 2, a));
}
rl_ref fold_dense(fold *f, rl_ref x) { return x < 0 || graph_geom_dense(graph_node_geom(f->g, x)) ? x : fold_copy(f, x); }

/* ---- the walk ---- */

bool fold_is_copy(const rl_graph *g, rl_ref r) {
  if (r < 0 || (g->nodes[r].op != RL_G_CAST && g->nodes[r].op != RL_OP_CAST)) return false;
  const rl_type *t = rl_node_type(g, rl_node_in(g, r, 0));
  return rl_node_type(g, r)->dtype == t->dtype && !t->weak;
}

/* Ops that read elements and not layouts take the original of a copy. */
static rl_ref fold_original(const rl_graph *g, rl_ref r) { return fold_is_copy(g, r) ? rl_node_in(g, r, 0) : r; }

/* Commuting inputs in order of reference, so that a+b and b+a are one. */
static void fold_order(int op, rl_ref *in, int nin) {
  if (op >= RL_NOP || nin != 2 || !(rl_ops[op].flags & RL_OPF_COMMUTES) || in[0] <= in[1]) return;
  rl_ref t = in[0];
  in[0] = in[1];
  in[1] = t;
}

static bool fold_plain(fold *f, rl_ref r, rl_ref *in) {
  const rl_node *o = &f->old->nodes[r];
  rl_graph *g = f->g;
  fold_mark m = fold_here(g);
  rl_node n = *o;
  rl_type t = f->old->types[o->type];
  rl_geom ge;
  fold_order(o->op, in, o->nin);
  for (int k = 0; k < o->nout; k++) {
    const rl_node *ok = &f->old->nodes[r + k];
    n = *ok;
    t = f->old->types[ok->type];
    graph_dense(t.ndim, t.size, &ge);
    n.type = graph_type(g, &t);
    n.geom = graph_geom(g, &ge);
    n.storage = graph_new_storage(g);
    n.line = ok->line ? graph_loc(g, f->old->locs[ok->line]) : 0;
    rl_ref first = m.n;
    if (graph_append(g, n, k ? &first : in, ok->nin, ok->attrs < 0 ? NULL : &f->old->attrs[ok->attrs]) < 0) return false;
  }
  rl_ref got = fold_commit(f, m);
  for (int k = 0; k < o->nout; k++) f->map[r + k] = got + k;
  return got >= 0;
}

static bool fold_leaf(fold *f, rl_ref r) {
  fold_mark m = fold_here(f->g);
  if (!graph_copy_node(f->g, f->old, r, f->map, f->sid)) return false;
  return (f->map[r] = fold_commit(f, m)) >= 0;
}

/* Dense from the start of its storage, as the result of an op is. */
static bool fold_at_start(const rl_graph *g, rl_ref r) {
  const rl_geom *ge = graph_node_geom(g, r);
  return ge->offset == 0 && graph_geom_dense(ge);
}

/* as_strided counts in the storage of the old graph: it looks at what became of that storage's root, laid out as it was. */
static rl_ref fold_strided(fold *f, rl_ref r, const rl_attrs *a) {
  rl_ref root = r;
  while (graph_is_view(f->old->nodes[root].op)) root = rl_node_in(f->old, root, 0);
  rl_ref x = f->map[root];
  if (!graph_geom_same(graph_node_geom(f->g, x), graph_node_geom(f->old, root)) && !fold_at_start(f->g, x)) x = fold_copy(f, x);
  return x < 0 ? -1 : fold_view_node(f, RL_OP_AS_STRIDED, x, a);
}

static rl_ref fold_other(fold *f, rl_ref r, rl_ref *in) {
  const rl_node *n = &f->old->nodes[r];
  const rl_attrs *a = graph_node_attrs(f->old, r);
  if (n->op == RL_OP_AS_STRIDED) return fold_strided(f, r, a);
  if (graph_is_view(n->op)) return fold_view_node(f, n->op, in[0], a);
  if ((n->op == RL_G_CAST || n->op == RL_OP_CAST) && f->old->types[n->type].dtype == rl_node_type(f->g, in[0])->dtype &&
      !rl_node_type(f->g, in[0])->weak)
    return fold_at_start(f->g, in[0]) || fold_constant_of(f->g, in[0]) >= 0 ? in[0] : fold_copy(f, in[0]);
  for (int k = 0; k < n->nin; k++) in[k] = fold_original(f->g, in[k]);
  if (n->op == RL_OP_RESHAPE) return fold_reshape(f, in[0], a);
  if (n->op == RL_OP_FULL) return fold_full(f, r);
  if (n->op == RL_G_SCATTER_WINDOW) return fold_scatter(f, in, a);
  if (n->op == RL_OP_CAT) return fold_cat(f, r, in);
  if (n->op < RL_NOP && rl_ops[n->op].kind == RL_K_RED) return fold_reduction(f, r, in[0]);
  if (n->op < RL_NOP && rl_ops[n->op].kind == RL_K_EW) return fold_elementwise(f, r, in);
  return FOLD_KEEP;
}

static bool fold_node(fold *f, rl_ref r) {
  const rl_node *n = &f->old->nodes[r];
  if (n->op == RL_G_PROJ) return true;
  if (n->op >= RL_NOP && n->nin == 0) return fold_leaf(f, r);
  f->g->curloc = n->line ? graph_loc(f->g, f->old->locs[n->line]) : 0;
  rl_ref *in = graph_ref_array(n->nin, -1);
  if (!in) return false;
  for (int k = 0; k < n->nin; k++) in[k] = f->old->refs[n->in + k] < 0 ? -1 : f->map[f->old->refs[n->in + k]];
  rl_ref got = fold_other(f, r, in);
  bool ok = got == FOLD_KEEP ? fold_plain(f, r, in) : got >= 0;
  if (got != FOLD_KEEP) f->map[r] = got;
  free(in);
  return ok;
}

static bool fold_start(fold *f) {
  uint32_t size = 64;
  while (size < (uint32_t)f->old->n * 4) size *= 2;
  f->g = rl_graph_new();
  f->map = graph_ref_array(f->old->n, -1);
  f->sid = graph_ref_array(f->old->nstorages, -1);
  f->head = graph_ref_array((int32_t)size, -1);
  f->mask = size - 1;
  return f->g && f->map && f->sid && f->head;
}

static bool fold_ends(fold *f) {
  const rl_graph *o = f->old;
  rl_ref *out = graph_ref_array(o->noutputs, -1);
  bool ok = out != NULL;
  for (int32_t i = 0; ok && i < o->noutputs; i++) out[i] = f->map[o->outputs[i]];
  for (int32_t i = 0; ok && i < o->nupdates; i++) {
    rl_update u = { f->map[o->updates[i].input], fold_original(f->g, f->map[o->updates[i].value]) };
    if (u.input == u.value) continue; /* the window keeps its content */
    ok = GRAPH_PUSH(f->g->updates, f->g->nupdates, f->g->capupdates, u);
  }
  ok = ok && graph_set_outputs(f->g, o, out, f->sid, f->map);
  f->g->functional = o->functional;
  f->g->primitive = o->primitive;
  f->g->rng_total = o->rng_total;
  free(out);
  return ok;
}

/* A smaller graph with the same results; NULL with a message when it fails. */
rl_graph *rl_pass_fold(const rl_graph *old) {
  fold f = { .old = old };
  if (!old->functional) {
    rl_error("[fold] the graph has writes: functionalize it first");
    return NULL;
  }
  bool ok = fold_start(&f);
  for (rl_ref r = 0; ok && r < old->n; r++) ok = fold_node(&f, r);
  ok = ok && fold_ends(&f);
  free(f.map);
  free(f.sid);
  free(f.head);
  free(f.entry);
  rl_graph *pruned = ok ? graph_prune(f.g) : NULL;
  rl_graph_free(f.g);
  return pruned;
}
