/* Engine: the backward pass (tape nodes -> gradients).
 *
 * The nodes that the outputs depend on are collected and run from the newest to the oldest: a node's inputs are older than the node, so
 * its output gradients are complete when its turn comes. Each gradient is one call of the row's formula, which calls ops again: with
 * create_graph they are taped themselves, on fakes they become graph nodes. */
#include <stdlib.h>
#include <string.h>
#include "op_call.h"
#include "node.h"

typedef struct engine_slot {
  rl_tape_node *node;
  rl_tensor **grads;
  bool *owned;
  bool needed;
} engine_slot;

typedef struct engine {
  engine_slot *slots;
  int n, cap;
  int *map; /* hash of node pointers -> slot, -1: free */
  int mapcap;
  rl_tensor *const *xs; /* wanted tensors; NULL: accumulate in the leaves */
  int nx;
  rl_tensor **dx;
  bool create_graph, retain, stop;
} engine;

static unsigned engine_hash(const engine *e, const void *p) {
  return (unsigned)(((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 32) & (unsigned)(e->mapcap - 1);
}

static int *engine_place(const engine *e, const rl_tape_node *n) {
  unsigned h = engine_hash(e, n);
  while (e->map[h] >= 0 && e->slots[e->map[h]].node != n) h = (h + 1) & (unsigned)(e->mapcap - 1);
  return &e->map[h];
}

static rl_status engine_rehash(engine *e) {
  free(e->map);
  e->mapcap = e->mapcap ? 2 * e->mapcap : 64;
  e->map = malloc((size_t)e->mapcap * sizeof *e->map);
  if (!e->map) return rl_error_status(RL_OOM, "[backward] out of memory");
  memset(e->map, -1, (size_t)e->mapcap * sizeof *e->map);
  for (int i = 0; i < e->n; i++) *engine_place(e, e->slots[i].node) = i;
  return RL_OK;
}

/* Adds a node once. */
static rl_status engine_add(engine *e, rl_tape_node *node) {
  if (!node) return RL_OK;
  if (2 * e->n >= e->mapcap) RL_TRY(engine_rehash(e));
  int *p = engine_place(e, node);
  if (*p >= 0) return RL_OK;
  if (e->n == e->cap) {
    int cap = e->cap ? 2 * e->cap : 32;
    engine_slot *s = realloc(e->slots, (size_t)cap * sizeof *s);
    if (!s) return rl_error_status(RL_OOM, "[backward] out of memory");
    e->slots = s;
    e->cap = cap;
  }
  rl_tensor **g = calloc(node->nout, sizeof *g);
  bool *o = calloc(node->nout, sizeof *o);
  if (!g || !o) {
    free(g);
    free(o);
    return rl_error_status(RL_OOM, "[backward] out of memory");
  }
  rl_node_retain(node);
  *p = e->n;
  e->slots[e->n++] = (engine_slot){ .node = node, .grads = g, .owned = o };
  return RL_OK;
}

static int engine_newest_first(const void *a, const void *b) {
  uint64_t p = ((const engine_slot *)a)->node->seq, q = ((const engine_slot *)b)->node->seq;
  return p < q ? 1 : p > q ? -1 : 0;
}

/* Everything that the outputs depend on, newest first. */
static rl_status engine_collect(engine *e, rl_tensor *const *ys, int ny) {
  RL_TRY(engine_rehash(e));
  for (int k = 0; k < ny; k++)
    if (ys[k]->ag) RL_TRY(engine_add(e, ys[k]->ag->fn));
  for (int i = 0; i < e->n; i++)
    for (int j = 0; j < e->slots[i].node->nin; j++) RL_TRY(engine_add(e, e->slots[i].node->edges[j].fn));
  if (e->n) qsort(e->slots, (size_t)e->n, sizeof *e->slots, engine_newest_first);
  memset(e->map, -1, (size_t)e->mapcap * sizeof *e->map);
  for (int i = 0; i < e->n; i++) *engine_place(e, e->slots[i].node) = i;
  return RL_OK;
}

static bool engine_is_target(const engine *e, const tape_edge *edge) {
  for (int i = 0; i < e->nx; i++) {
    const rl_ag *ag = e->xs[i]->ag;
    if (edge->leaf ? edge->leaf == e->xs[i] : ag && ag->fn && ag->fn == edge->fn && ag->out == edge->out) return true;
  }
  return false;
}

static bool engine_edge_needed(const engine *e, const tape_edge *edge) {
  if (!edge->fn && !edge->leaf) return false;
  if (!e->xs) return true;
  if (edge->fn && e->slots[*engine_place(e, edge->fn)].needed) return true;
  return engine_is_target(e, edge);
}

/* Oldest first: a node is needed when an input of it is. */
static void engine_mark(engine *e) {
  for (int i = e->n - 1; i >= 0; i--) {
    rl_tape_node *n = e->slots[i].node;
    for (int j = 0; j < n->nin && !e->slots[i].needed; j++) e->slots[i].needed = engine_edge_needed(e, &n->edges[j]);
  }
}

/* *slot takes g, or slot + g. Adds in place when the sum is this pass's own. */
static rl_status engine_sum(const engine *e, rl_tensor **slot, bool *owned, rl_tensor *g) {
  if (!*slot) {
    *slot = rl_tensor_retain(g);
    return RL_OK;
  }
  if (*owned && !e->create_graph && !rl_is_fake(*slot)) return rl_call(RL_OP_ADD, (rl_tensor *[]){ *slot, g }, 2, NULL, slot);
  rl_tensor *sum = NULL;
  RL_TRY(rl_call(RL_OP_ADD, (rl_tensor *[]){ *slot, g }, 2, NULL, &sum));
  rl_tensor_release(*slot);
  *slot = sum;
  *owned = true;
  return RL_OK;
}

/* Nobody else holds the memory of g (a graph holds one reference of its fake storages). */
static bool engine_exclusive(const rl_tensor *g) { return g->refs == 1 && g->storage->refs <= (rl_is_fake(g) ? 2 : 1) && rl_is_contiguous(g); }

static rl_status engine_leaf(const engine *e, rl_tensor *leaf, rl_tensor *g, bool last) {
  char b1[256], b2[256];
  if (!leaf->ag) return RL_OK;
  if (!rl_same_shape(leaf, g)) return rl_error("[backward] gradient of a leaf; got %s, need %s", rl_shape_str(g, b1), rl_shape_str(leaf, b2));
  rl_tensor **slot = &leaf->ag->grad;
  if (*slot) {
    if (!e->create_graph) return rl_call(RL_OP_ADD, (rl_tensor *[]){ *slot, g }, 2, NULL, slot);
    bool owned = false;
    return engine_sum(e, slot, &owned, g);
  }
  if (e->create_graph || (last && engine_exclusive(g))) {
    *slot = rl_tensor_retain(g);
    return RL_OK;
  }
  return rl_op_cast(g, (rl_dtype)g->dtype, slot);
}

static rl_status engine_want(const engine *e, int i, rl_tensor *g) {
  bool owned = false;
  return engine_sum(e, &e->dx[i], &owned, g);
}

/* Hands a gradient along an edge. */
static rl_status engine_send(const engine *e, const tape_edge *edge, rl_tensor *g) {
  if (edge->fn) {
    engine_slot *s = &e->slots[*engine_place(e, edge->fn)];
    return engine_sum(e, &s->grads[edge->out], &s->owned[edge->out], g);
  }
  if (!edge->leaf) return RL_OK;
  if (!e->xs) return engine_leaf(e, edge->leaf, g, true);
  for (int i = 0; i < e->nx; i++)
    if (e->xs[i] == edge->leaf) RL_TRY(engine_want(e, i, g));
  return RL_OK;
}

static rl_status engine_check_version(const rl_tape_node *n, const tape_saved *s) {
  if (!s->full || !s->t->storage || s->t->storage->version == s->version || rl_self.grad_unchecked) return RL_OK;
  return rl_error("[%s] a value saved for the gradient was changed in place; got version %u, need version %u", rl_node_label(n),
                  s->t->storage->version, s->version);
}

/* A saved input as the formula sees it: with its history when the gradient is itself differentiated. */
static rl_status engine_unpack(const engine *e, const rl_tape_node *n, int i, rl_tensor **out) {
  const tape_saved *s = &n->in[i];
  const tape_edge *edge = &n->edges[i];
  *out = NULL;
  if (!s->t) return RL_OK;
  RL_TRY(engine_check_version(n, s));
  if (!s->full || !e->create_graph || (!edge->fn && !edge->leaf)) {
    *out = rl_tensor_retain(s->t);
    return RL_OK;
  }
  if (edge->leaf && rl_is_set_to(edge->leaf, s->t)) {
    *out = rl_tensor_retain(edge->leaf);
    return RL_OK;
  }
  *out = rl_tensor_alias(s->t);
  if (!*out) return RL_OOM;
  if (!edge->fn) return RL_OK;
  RL_TRY(rl_set_requires_grad(*out, true));
  rl_node_retain(edge->fn);
  (*out)->ag->fn = edge->fn;
  (*out)->ag->out = edge->out;
  return RL_OK;
}

static rl_status engine_unpack_out(const engine *e, rl_tape_node *n, int k, rl_tensor **out) {
  const tape_saved *s = &n->out[k];
  *out = NULL;
  if (!s->t) return RL_OK;
  RL_TRY(engine_check_version(n, s));
  if (!s->full || !e->create_graph) {
    *out = rl_tensor_retain(s->t);
    return RL_OK;
  }
  *out = rl_tensor_alias(s->t);
  if (!*out) return RL_OOM;
  if (!rl_dtypes[s->t->dtype].is_float) return RL_OK;
  RL_TRY(rl_set_requires_grad(*out, true));
  rl_node_retain(n);
  (*out)->ag->fn = n;
  (*out)->ag->out = k;
  return RL_OK;
}

static rl_status engine_zeros(const rl_meta *m, rl_tensor **out) {
  rl_device before = rl_self.default_device;
  rl_self.default_device = (rl_device)m->device;
  rl_status s = rl_op_full(rl_ints_of(m->ndim, m->size), 0, (rl_dtype)m->dtype, out);
  rl_self.default_device = before;
  return s;
}

static uint32_t engine_need(const engine *e, const rl_tape_node *n) {
  uint32_t need = 0;
  for (int i = 0; i < n->nin && i < 32; i++)
    if (engine_edge_needed(e, &n->edges[i])) need |= 1u << i;
  return need;
}

/* The row's gradient; constants that it makes are on the device of the op. */
static rl_status engine_call(const rl_op_info *o, rl_tape_node *n, rl_tensor **in, rl_tensor **y, rl_tensor **dy, uint32_t need, rl_tensor **dx) {
  rl_device before = rl_self.default_device;
  if (n->nout) rl_self.default_device = (rl_device)n->meta[0].device;
  rl_status s = o->grad(in, n->nin, n->attrs, y, dy, need, dx);
  rl_self.default_device = before;
  return s;
}

static rl_status engine_op(const engine *e, rl_tape_node *n, rl_tensor **dy, rl_tensor **dx) {
  const rl_op_info *o = &rl_ops[n->op];
  rl_tensor *y[RL_MAXOUT] = { 0 }, **in = calloc((size_t)n->nin + 1, sizeof *in);
  rl_status s = in ? RL_OK : rl_error_status(RL_OOM, "[backward] out of memory");
  for (int i = 0; i < n->nin && s == RL_OK; i++) s = engine_unpack(e, n, i, &in[i]);
  for (int k = 0; k < n->nout && s == RL_OK; k++) {
    s = engine_unpack_out(e, n, k, &y[k]);
    if (s == RL_OK && !dy[k] && ((o->save_grad & ~o->maybe_grad) >> k & 1)) s = engine_zeros(&n->meta[k], &dy[k]);
  }
  if (s == RL_OK) s = engine_call(o, n, in, y, dy, engine_need(e, n), dx);
  for (int i = 0; in && i < n->nin; i++) rl_tensor_release(in[i]);
  rl_release_all(y, n->nout);
  free(in);
  return s;
}

/* d base: dy with zeros in the window; d value: the window of dy. */
static rl_status engine_window(const engine *e, rl_tape_node *n, rl_tensor *dy, rl_tensor **dx) {
  uint32_t need = engine_need(e, n);
  rl_tensor *copy = NULL, *w = NULL;
  rl_ints size = rl_attr_ints(n->attrs, 0), stride = rl_attr_ints(n->attrs, 1);
  RL_TRY(rl_op_cast(dy, (rl_dtype)dy->dtype, &copy));
  rl_status s = RL_OK;
  if (need & 2u) {
    s = rl_op_as_strided(copy, size, stride, n->attrs->v[0].i, &w);
    if (s == RL_OK) s = rl_op_cast(w, (rl_dtype)w->dtype, &dx[1]);
  }
  if (s == RL_OK && need & 1u) {
    rl_tensor *v = NULL;
    s = rl_op_as_strided(copy, size, stride, n->attrs->v[0].i, &v);
    if (s == RL_OK) s = rl_fill(v, 0);
    rl_tensor_release(v);
    if (s == RL_OK) dx[0] = rl_tensor_retain(copy);
  }
  rl_tensor_release(w);
  rl_tensor_release(copy);
  return s;
}

static rl_status engine_custom(rl_tape_node *n, rl_tensor **dy, rl_tensor **dx) {
  for (int k = 0; k < n->nout && !n->sparse; k++)
    if (!dy[k]) RL_TRY(engine_zeros(&n->meta[k], &dy[k]));
  return n->apply(n->ud, dy, n->nout, dx, n->nin);
}

static rl_status engine_apply(const engine *e, rl_tape_node *n, rl_tensor **dy, rl_tensor **dx) {
  if (n->freed) return rl_error("[%s] the saved values were freed by an earlier backward; pass retain = true to it", rl_node_label(n));
  if (n->kind == TAPE_OP) return engine_op(e, n, dy, dx);
  if (n->kind == TAPE_WINDOW) return engine_window(e, n, dy[0], dx);
  return engine_custom(n, dy, dx);
}

/* Gradients that were asked for at a node's outputs; with stop they go no further. */
static rl_status engine_capture(const engine *e, const engine_slot *s) {
  for (int i = 0; e->xs && i < e->nx; i++) {
    const rl_ag *ag = e->xs[i]->ag;
    if (ag && ag->fn == s->node && s->grads[ag->out]) RL_TRY(engine_want(e, i, s->grads[ag->out]));
  }
  for (int i = 0; e->stop && i < e->nx; i++) {
    const rl_ag *ag = e->xs[i]->ag;
    if (!ag || ag->fn != s->node) continue;
    rl_tensor_release(s->grads[ag->out]);
    s->grads[ag->out] = NULL;
  }
  return RL_OK;
}

static rl_status engine_step(const engine *e, engine_slot *s) {
  bool any = false;
  RL_TRY(engine_capture(e, s));
  for (int k = 0; k < s->node->nout; k++) any |= s->grads[k] != NULL;
  if (!any || !s->needed) return RL_OK;
  rl_tensor **dx = calloc((size_t)s->node->nin + 1, sizeof *dx);
  if (!dx) return rl_error_status(RL_OOM, "[backward] out of memory");
  rl_status st = engine_apply(e, s->node, s->grads, dx);
  for (int k = 0; k < s->node->nout; k++) {
    rl_tensor_release(s->grads[k]);
    s->grads[k] = NULL;
  }
  if (st == RL_OK && !e->retain) rl_node_free_saved(s->node);
  for (int i = 0; i < s->node->nin; i++) {
    if (dx[i] && st == RL_OK && engine_edge_needed(e, &s->node->edges[i])) st = engine_send(e, &s->node->edges[i], dx[i]);
    rl_tensor_release(dx[i]);
  }
  free(dx);
  return st;
}

/* The gradient that the pass starts with. */
static rl_status engine_seed(const engine *e, rl_tensor *y, rl_tensor *dy, int k) {
  char b1[256], b2[256];
  rl_tensor *g = NULL;
  if (!rl_requires_grad(y)) return rl_error("[backward] output %d does not require grad", k + 1);
  if (dy) {
    if (!rl_same_shape(y, dy) && rl_numel(y) == rl_numel(dy)) RL_TRY(rl_reshape(dy, y->ndim, y->size, &g));
    else g = rl_tensor_keep(dy);
    if (!rl_same_shape(y, g) || y->dtype != g->dtype) {
      rl_error("[backward] gradient of output %d; got %s, need %s", k + 1, rl_shape_str(g, b1), rl_shape_str(y, b2));
      rl_tensor_release(g);
      return RL_ERR;
    }
  } else {
    if (rl_numel(y) != 1) return rl_error("[backward] gradient of output %d is missing; got %s, need one element", k + 1, rl_shape_str(y, b1));
    rl_device before = rl_self.default_device;
    rl_self.default_device = (rl_device)y->device;
    rl_status s = rl_op_full(rl_sizes(y), 1, (rl_dtype)y->dtype, &g);
    rl_self.default_device = before;
    RL_TRY(s);
  }
  tape_edge edge = { .fn = y->ag->fn, .out = y->ag->out, .leaf = y->ag->fn ? NULL : y };
  rl_status s = !e->xs && edge.leaf ? engine_leaf(e, edge.leaf, g, !dy) : engine_send(e, &edge, g);
  rl_tensor_release(g);
  return s;
}

static void engine_free(engine *e) {
  for (int i = 0; i < e->n; i++) {
    rl_release_all(e->slots[i].grads, e->slots[i].node->nout);
    free(e->slots[i].grads);
    free(e->slots[i].owned);
    rl_node_release(e->slots[i].node);
  }
  free(e->slots);
  free(e->map);
}

static rl_status engine_run(engine *e, rl_tensor *const *ys, rl_tensor *const *dys, int ny) {
  for (int k = 0; k < ny; k++) rl_requires_grad(ys[k]); /* views catch up with their bases */
  for (int i = 0; i < e->nx; i++) rl_requires_grad(e->xs[i]);
  rl_status s = engine_collect(e, ys, ny);
  if (s == RL_OK) engine_mark(e);
  bool before = rl_self.grad_disabled;
  rl_self.grad_disabled = !e->create_graph;
  for (int k = 0; k < ny && s == RL_OK; k++) s = engine_seed(e, ys[k], dys ? dys[k] : NULL, k);
  for (int i = 0; i < e->n && s == RL_OK; i++) s = engine_step(e, &e->slots[i]);
  rl_self.grad_disabled = before;
  engine_free(e);
  return s;
}

rl_status rl_grad(rl_tensor *const *ys, rl_tensor *const *dys, int ny, rl_tensor *const *xs, int nx, bool retain, bool create_graph, bool stop,
                  rl_tensor **dx) {
  engine e = { .xs = xs, .nx = nx, .dx = dx, .retain = retain || create_graph, .create_graph = create_graph, .stop = stop };
  for (int i = 0; i < nx; i++) dx[i] = NULL;
  if (!nx) return RL_OK;
  rl_status s = engine_run(&e, ys, dys, ny);
  if (s == RL_OK) return s;
  for (int i = 0; i < nx; i++) {
    rl_tensor_release(dx[i]);
    dx[i] = NULL;
  }
  return s;
}

rl_status rl_backward(rl_tensor *const *ys, rl_tensor *const *dys, int ny, bool retain, bool create_graph) {
  engine e = { .retain = retain || create_graph, .create_graph = create_graph };
  return engine_run(&e, ys, dys, ny);
}

rl_status rl_tape_reaches(rl_tensor *y, rl_tensor *const *xs, int nx, bool *hit) {
  engine e = { 0 };
  rl_requires_grad(y);
  rl_status s = engine_collect(&e, &y, 1);
  for (int i = 0; s == RL_OK && i < nx; i++) {
    const rl_ag *ag = xs[i]->ag;
    hit[i] = ag && ag->fn && y->ag && ag->fn != y->ag->fn && *engine_place(&e, ag->fn) >= 0;
  }
  engine_free(&e);
  return s;
}

static int group_root(const int *up, int i) {
  while (up[i] != i) i = up[i];
  return i;
}

static void group_stop(const engine *e, rl_tensor *const *t, int n, char *stop) {
  for (int i = 0; i < n; i++) {
    int at = t[i]->ag && t[i]->ag->fn ? *engine_place(e, t[i]->ag->fn) : -1;
    if (at >= 0) stop[at] = 1;
  }
}

rl_status rl_tape_groups(rl_tensor *const *ys, int ny, rl_tensor *const *stops, int nstops, int *group) {
  engine e = { 0 };
  rl_status s = engine_collect(&e, ys, ny);
  int *up = calloc((size_t)e.n + 1, sizeof *up);
  char *stop = calloc((size_t)e.n + 1, 1);
  if (s == RL_OK && (!up || !stop)) s = rl_error_status(RL_OOM, "[backward] out of memory");
  if (s == RL_OK) {
    group_stop(&e, ys, ny, stop);
    group_stop(&e, stops, nstops, stop);
    for (int i = 0; i < e.n; i++) up[i] = i;
    for (int i = 0; i < e.n; i++)
      for (int j = 0; j < e.slots[i].node->nin; j++) {
        const rl_tape_node *fn = e.slots[i].node->edges[j].fn;
        int at = fn ? *engine_place(&e, fn) : -1;
        if (at >= 0 && !stop[at]) up[group_root(up, at)] = group_root(up, i);
      }
    for (int k = 0; k < ny; k++) group[k] = ys[k]->ag && ys[k]->ag->fn ? group_root(up, *engine_place(&e, ys[k]->ag->fn)) : -1;
  }
  free(up);
  free(stop);
  engine_free(&e);
  return s;
}

rl_status rl_tape_saved(rl_tensor *const *ys, int ny, void (*visit)(void *ud, const rl_tensor *t), void *ud) {
  engine e = { 0 };
  rl_status s = engine_collect(&e, ys, ny);
  for (int i = 0; s == RL_OK && i < e.n; i++) {
    const rl_tape_node *n = e.slots[i].node;
    for (int k = 0; k < n->nin; k++)
      if (n->in[k].full && n->in[k].t && n->in[k].t->storage) visit(ud, n->in[k].t);
    for (int k = 0; k < n->nout; k++)
      if (n->out[k].full && n->out[k].t && n->out[k].t->storage) visit(ud, n->out[k].t);
  }
  engine_free(&e);
  return s;
}
