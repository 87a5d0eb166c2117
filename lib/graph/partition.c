/* Partition: cuts a joint graph into forward and backward so that what is kept between them is small (joint -> forward, backward).
 *
 * Nodes that depend on a cotangent run backward; of the others, those that backward reads are saved or computed again. Each such node is an
 * edge in -> out with its bytes as capacity; the source feeds graph inputs and nodes that are not worth computing twice (matmul, convolution,
 * random, reductions to less than a quarter, anything opaque), the sink is what backward reads directly. The minimal cut is what is saved.
 * Lua numbers and constants go to both sides for free. With CUT_REPLAY random ops are computed again (from the generator's state then); with CUT_LIVE inputs are
 * read as they are when backward runs, and nothing is computed again from one that forward changes. An input that may be saved as it is costs nothing; one that forward changes, or that the
 * program may change without harm in eager mode, is saved as a copy, and so is a value that lies in such an output's memory. */
#include "impl.h"
#include <stdlib.h>
#include <string.h>

typedef struct cut_edge {
  int32_t to, next;
  int64_t cap;
} cut_edge;
typedef struct cut {
  const rl_graph *g;
  int nout, ncot;
  char *tangent; /* depends on a cotangent */
  char *back;    /* needed by backward's outputs */
  char *saved;
  char *copy;    /* by storage: what is saved of it is a copy */
  char *copy_in; /* by input: the same */
  char *updated; /* by storage: forward changes it */
  rl_ref *live;  /* by node: the kept input that has this value after forward, -1: none */
  char *out;     /* leaves forward as it is */
  int flags;
  int32_t *head, *level, *iter, *queue;
  cut_edge *e;
  int32_t ne, cape, nv;
} cut;

enum { CUT_SOURCE, CUT_SINK, CUT_FIRST };
#define CUT_INF (INT64_MAX / 4)
static int32_t cut_in(rl_ref r) { return CUT_FIRST + 2 * r; }
static int32_t cut_out(rl_ref r) { return CUT_FIRST + 2 * r + 1; }

static bool cut_edge_add(cut *c, int32_t from, int32_t to, int64_t cap) {
  cut_edge f = { to, c->head[from], cap }, b = { from, c->head[to], 0 };
  if (!GRAPH_PUSH(c->e, c->ne, c->cape, f)) return false;
  c->head[from] = c->ne - 1;
  if (!GRAPH_PUSH(c->e, c->ne, c->cape, b)) return false;
  c->head[to] = c->ne - 1;
  return true;
}

/* ---- maximal flow (Dinic 1970): levels by breadth, then blocking flows by depth ---- */

static bool cut_levels(cut *c) {
  int32_t n = 0, at = 0;
  for (int32_t i = 0; i < c->nv; i++) c->level[i] = -1;
  c->level[CUT_SOURCE] = 0;
  c->queue[n++] = CUT_SOURCE;
  while (at < n) {
    int32_t v = c->queue[at++];
    for (int32_t i = c->head[v]; i >= 0; i = c->e[i].next) {
      if (c->e[i].cap <= 0 || c->level[c->e[i].to] >= 0) continue;
      c->level[c->e[i].to] = c->level[v] + 1;
      c->queue[n++] = c->e[i].to;
    }
  }
  return c->level[CUT_SINK] >= 0;
}

/* One augmenting path along the levels, found with an explicit stack of edges (graphs are deep). */
static int64_t cut_path(cut *c) {
  int32_t depth = 0, v = CUT_SOURCE;
  for (;;) {
    if (v == CUT_SINK) {
      int64_t flow = CUT_INF;
      for (int32_t i = 0; i < depth; i++) flow = RL_MIN(flow, c->e[c->queue[i]].cap);
      for (int32_t i = 0; i < depth; i++) {
        c->e[c->queue[i]].cap -= flow;
        c->e[c->queue[i] ^ 1].cap += flow;
      }
      return flow;
    }
    int32_t i = c->iter[v];
    while (i >= 0 && (c->e[i].cap <= 0 || c->level[c->e[i].to] != c->level[v] + 1)) i = c->e[i].next;
    c->iter[v] = i;
    if (i >= 0) {
      c->queue[depth++] = i;
      v = c->e[i].to;
      continue;
    }
    if (v == CUT_SOURCE) return 0;
    c->level[v] = -1;
    v = c->e[c->queue[--depth] ^ 1].to;
  }
}

static void cut_flow(cut *c) {
  while (cut_levels(c)) {
    memcpy(c->iter, c->head, sizeof *c->iter * (size_t)c->nv);
    while (cut_path(c) > 0) {}
  }
}

/* ---- the network ---- */

static bool cut_free_leaf(int op) { return op == RL_G_NUMBER || op == RL_G_CONST || op == RL_G_TENSOR || op == RL_G_EMPTY; }

/* Whether a node reads an input that forward changes. */
static bool cut_stale(const cut *c, rl_ref r) {
  const rl_node *n = &c->g->nodes[r];
  if (!(c->flags & CUT_LIVE) || graph_is_view(n->op)) return false;
  for (int k = 0; k < n->nin; k++)
    if (rl_node_in(c->g, r, k) >= 0 && c->updated[c->g->nodes[rl_node_in(c->g, r, k)].storage]) return true;
  return false;
}

/* A saved input that stays where it is; everything else that is saved is dense. */
static bool cut_as_is(const cut *c, rl_ref r) {
  const rl_node *n = &c->g->nodes[r];
  return n->op == RL_G_INPUT && !c->copy[n->storage] && !c->copy_in[n->aux];
}

/* The input whose memory a saved value is read from when backward runs, -1: none. */
static rl_ref cut_input(const cut *c, rl_ref r) { return cut_as_is(c, r) ? r : c->live[r]; }

/* Whether a node reads memory around its operand, which a saved copy of that would lack. */
static bool cut_around(const cut *c, rl_ref r) {
  if (c->g->nodes[r].op != RL_OP_AS_STRIDED) return false;
  rl_ref i = rl_node_in(c->g, r, 0);
  int op = c->g->nodes[i].op;
  return !cut_as_is(c, i) && (op == RL_G_INPUT || graph_is_view(op) || !graph_geom_dense(graph_node_geom(c->g, i)));
}

/* Whether a node is not computed twice. */
static bool cut_banned(const cut *c, rl_ref r) {
  const rl_graph *g = c->g;
  const rl_node *n = &g->nodes[r];
  if (n->op == RL_G_INPUT || cut_stale(c, r) || cut_around(c, r)) return true;
  if (n->op >= RL_NOP) return false;
  if (rl_ops[n->op].flags & RL_OPF_RANDOM) return !(c->flags & CUT_REPLAY);
  switch (rl_ops[n->op].kind) {
  case RL_K_EW:
  case RL_K_VIEW: return false;
  case RL_K_RED: return graph_numel(rl_node_type(g, rl_node_in(g, r, 0))) >= 4 * graph_numel(rl_node_type(g, r));
  default: return n->op != RL_OP_CAT && n->op != RL_OP_RESHAPE && n->op != RL_OP_FULL && n->op != RL_OP_IOTA;
  }
}

static int64_t cut_bytes(const cut *c, rl_ref r) {
  const rl_type *t = rl_node_type(c->g, r);
  if (cut_input(c, r) >= 0 || c->out[r]) return 1;
  return 1 + graph_numel(t) * rl_dtypes[t->dtype].bytes;
}

static bool cut_node(cut *c, rl_ref r) {
  const rl_graph *g = c->g;
  const rl_node *n = &g->nodes[r];
  bool ok = cut_edge_add(c, cut_in(r), cut_out(r), cut_bytes(c, r));
  if (ok && cut_banned(c, r)) ok = cut_edge_add(c, CUT_SOURCE, cut_in(r), CUT_INF);
  for (int k = 0; ok && k < n->nin; k++) {
    rl_ref i = g->refs[n->in + k];
    if (i < 0 || cut_free_leaf(g->nodes[i].op)) continue;
    ok = cut_edge_add(c, n->op == RL_G_PROJ ? cut_in(i) : cut_out(i), cut_in(r), CUT_INF); /* a projection comes with its node: saving the first
                                                                                              result does not give it */
  }
  return ok;
}

/* Edges from what backward reads to the sink. Projections are read through their own edges. */
static bool cut_reads(cut *c, rl_ref r) {
  const rl_node *n = &c->g->nodes[r];
  for (int k = 0; k < n->nin; k++) {
    rl_ref i = c->g->refs[n->in + k];
    if (i >= 0 && !c->tangent[i] && !cut_free_leaf(c->g->nodes[i].op) && !cut_edge_add(c, cut_out(i), CUT_SINK, CUT_INF)) return false;
  }
  return true;
}

static void cut_copies(cut *c, const char *keep_in, const char *keep_out) {
  const rl_graph *g = c->g;
  for (int32_t i = 0; keep_in && i < g->ninputs; i++)
    if (!keep_in[i]) c->copy_in[i] = 1;
  for (int i = 0; keep_out && i < c->nout; i++)
    if (!keep_out[i]) c->copy[g->nodes[g->outputs[i]].storage] = 1;
  for (int32_t i = 0; i < g->nupdates; i++) {
    if (c->tangent[g->updates[i].value]) continue;
    c->updated[g->nodes[g->updates[i].input].storage] = 1;
    if (!(c->flags & CUT_LIVE)) c->copy[g->nodes[g->updates[i].input].storage] = 1;
  }
  for (int i = 0; i < c->nout; i++)
    if (!graph_is_view(g->nodes[g->outputs[i]].op) && !c->copy[g->nodes[g->outputs[i]].storage]) c->out[g->outputs[i]] = 1;
}

/* Updates of inputs that eager's tape holds: what reads their new values reads the input of then. */
static void cut_lives(cut *c, const char *keep_in) {
  const rl_graph *g = c->g;
  for (int32_t i = 0; keep_in && (c->flags & CUT_LIVE) && i < g->nupdates; i++) {
    rl_update u = g->updates[i];
    if (c->tangent[u.value] || !cut_as_is(c, u.input) || !graph_geom_dense(graph_node_geom(g, u.value))) continue;
    if (graph_is_view(g->nodes[u.value].op) || !graph_type_same(rl_node_type(g, u.input), rl_node_type(g, u.value))) continue;
    if (graph_geom_dense(graph_node_geom(g, u.input))) c->live[u.value] = u.input;
  }
}

static void cut_marks(cut *c) {
  const rl_graph *g = c->g;
  for (int i = 0; i < c->ncot; i++) c->tangent[g->inputs[g->ninputs - 1 - i]] = 1;
  for (rl_ref r = 0; r < g->n; r++)
    for (int k = 0; k < g->nodes[r].nin; k++) {
      rl_ref i = rl_node_in(g, r, k);
      if (i >= 0 && c->tangent[i]) c->tangent[r] = 1;
    }
  for (int32_t i = c->nout; i < g->noutputs; i++) c->back[g->outputs[i]] = 1;
  for (int32_t i = 0; i < g->nupdates; i++)
    if (c->tangent[g->updates[i].value]) c->back[g->updates[i].value] = 1;
  for (rl_ref r = g->n - 1; r >= 0; r--)
    for (int k = 0; c->back[r] && k < g->nodes[r].nin; k++)
      if (rl_node_in(g, r, k) >= 0) c->back[rl_node_in(g, r, k)] = 1;
}

static bool cut_network(cut *c) {
  const rl_graph *g = c->g;
  bool ok = true;
  for (rl_ref r = 0; ok && r < g->n; r++) {
    if (!c->back[r]) continue;
    if (c->tangent[r]) ok = cut_reads(c, r);
    else if (!cut_free_leaf(g->nodes[r].op)) ok = cut_node(c, r);
  }
  for (int32_t i = c->nout; ok && i < g->noutputs; i++) /* a gradient that needs no cotangent */
    if (!c->tangent[g->outputs[i]] && !cut_free_leaf(g->nodes[g->outputs[i]].op)) ok = cut_edge_add(c, cut_out(g->outputs[i]), CUT_SINK, CUT_INF);
  return ok;
}

static void cut_choose(cut *c) {
  cut_levels(c); /* what the source still reaches */
  for (rl_ref r = 0; r < c->g->n; r++)
    if (c->back[r] && !c->tangent[r] && c->level[cut_in(r)] >= 0 && c->level[cut_out(r)] < 0) c->saved[r] = 1;
}

/* ---- the two graphs ---- */

typedef struct half {
  rl_graph *g;
  rl_ref *map;
  int32_t *sid;
} half;

static bool half_start(half *h, const rl_graph *old) {
  h->g = rl_graph_new();
  h->map = graph_ref_array(old->n, -1);
  h->sid = graph_ref_array(old->nstorages, -1);
  return h->g && h->map && h->sid;
}

static rl_graph *half_finish(half *h, const rl_graph *old, bool ok) {
  rl_graph *out = NULL;
  if (ok) {
    h->g->functional = true;
    h->g->primitive = old->primitive;
    out = graph_prune(h->g);
  }
  rl_graph_free(h->g);
  free(h->map);
  free(h->sid);
  return out;
}

static bool half_output(half *h, rl_ref value) { return value >= 0 && GRAPH_PUSH(h->g->outputs, h->g->noutputs, h->g->capoutputs, value); }

static bool half_updates(half *h, const cut *c, bool back) {
  for (int32_t i = 0; i < c->g->nupdates; i++) {
    rl_update u = c->g->updates[i];
    if ((bool)c->tangent[u.value] != back) continue;
    rl_update v = { h->map[u.input], h->map[u.value] };
    if (v.input < 0 || v.value < 0) {
      rl_error("[partition] an update in the backward part changes a tensor that is not saved");
      return false;
    }
    if (!GRAPH_PUSH(h->g->updates, h->g->nupdates, h->g->capupdates, v)) return false;
  }
  return true;
}

/* Whether a saved value leaves forward as it is: an input, or a dense value in memory of its own. */
static bool cut_own(const cut *c, rl_ref r) {
  const rl_node *n = &c->g->nodes[r];
  return cut_as_is(c, r) || (n->op != RL_G_INPUT && !graph_is_view(n->op) && !c->copy[n->storage] && graph_geom_dense(graph_node_geom(c->g, r)));
}

static rl_graph *cut_forward(const cut *c) {
  half h;
  const rl_graph *g = c->g;
  bool ok = half_start(&h, g);
  for (rl_ref r = 0; ok && r < g->n; r++)
    if (!c->tangent[r]) ok = graph_copy_node(h.g, g, r, h.map, h.sid);
  for (int i = 0; ok && i < c->nout; i++) ok = half_output(&h, h.map[g->outputs[i]]);
  for (rl_ref r = 0; ok && r < g->n; r++) {
    if (!c->saved[r]) continue;
    if (c->live[r] >= 0) ok = half_output(&h, h.map[c->live[r]]);
    else ok = half_output(&h, cut_own(c, r) ? h.map[r] : graph_emit_copy(h.g, h.map[r]));
  }
  ok = ok && half_updates(&h, c, false);
  if (ok) h.g->rng_total = g->rng_total;
  return half_finish(&h, g, ok);
}

/* A saved value comes back as an input: an input keeps its geometry, everything else is dense. */
static bool cut_saved_input(const cut *c, half *h, rl_ref r) {
  const rl_graph *g = c->g;
  rl_type t = *rl_node_type(g, r);
  rl_geom ge;
  int64_t whole = graph_numel(&t);
  int32_t storage;
  t.weak = 0;
  graph_dense(t.ndim, t.size, &ge);
  rl_ref in = cut_input(c, r);
  if (in >= 0) {
    const rl_node *n = &g->nodes[in];
    ge = *graph_node_geom(g, in);
    whole = g->input_storage_size[n->aux];
    if (h->sid[n->storage] < 0) h->sid[n->storage] = graph_new_storage(h->g);
    storage = h->sid[n->storage];
  } else storage = graph_new_storage(h->g);
  rl_node n = { .op = RL_G_INPUT, .nout = 1, .type = graph_type(h->g, &t), .geom = graph_geom(h->g, &ge), .storage = storage, .aux = h->g->ninputs };
  h->map[r] = graph_append(h->g, n, NULL, 0, NULL);
  return h->map[r] >= 0 && graph_push_input(h->g, h->map[r], storage, whole);
}

/* What backward computes: everything that depends on a cotangent, and again what the cut left out. */
static char *cut_again(const cut *c) {
  const rl_graph *g = c->g;
  char *need = calloc((size_t)g->n + 1, 1);
  if (!need) {
    rl_error_status(RL_OOM, "[partition] out of memory");
    return NULL;
  }
  for (int32_t i = c->nout; i < g->noutputs; i++) need[g->outputs[i]] = 1;
  for (int32_t i = 0; i < g->nupdates; i++)
    if (c->tangent[g->updates[i].value]) need[g->updates[i].value] = 1;
  for (rl_ref r = g->n - 1; r >= 0; r--) {
    if (!need[r] || c->saved[r]) continue;
    for (int k = 0; k < g->nodes[r].nin; k++)
      if (rl_node_in(g, r, k) >= 0) need[rl_node_in(g, r, k)] = 1;
  }
  return need;
}

static rl_graph *cut_backward(const cut *c) {
  half h;
  const rl_graph *g = c->g;
  char *need = cut_again(c);
  bool ok = half_start(&h, g) && need;
  for (rl_ref r = 0; ok && r < g->n; r++)
    if (c->saved[r]) ok = cut_saved_input(c, &h, r);
  for (int i = c->ncot; ok && i > 0; i--) ok = graph_copy_node(h.g, g, g->inputs[g->ninputs - i], h.map, h.sid);
  for (rl_ref r = 0; ok && r < g->n; r++) {
    bool number = g->nodes[r].op == RL_G_NUMBER;
    if (h.map[r] < 0 && (need[r] || number)) ok = graph_copy_node(h.g, g, r, h.map, h.sid);
  }
  for (int32_t i = c->nout; ok && i < g->noutputs; i++) ok = half_output(&h, h.map[g->outputs[i]]);
  ok = ok && half_updates(&h, c, true);
  if (ok && (c->flags & CUT_REPLAY)) h.g->rng_total = g->rng_total;
  free(need);
  return half_finish(&h, g, ok);
}

static bool cut_start(cut *c) {
  size_t n = (size_t)c->g->n + 1, v = 2 * n + CUT_FIRST;
  c->nv = (int32_t)v;
  c->tangent = calloc(n, 1);
  c->back = calloc(n, 1);
  c->saved = calloc(n, 1);
  c->copy = calloc((size_t)c->g->nstorages + 1, 1);
  c->copy_in = calloc((size_t)c->g->ninputs + 1, 1);
  c->updated = calloc((size_t)c->g->nstorages + 1, 1);
  c->out = calloc(n, 1);
  c->live = graph_ref_array(c->g->n + 1, -1);
  c->head = graph_ref_array(c->nv, -1);
  c->level = graph_ref_array(c->nv, -1);
  c->iter = graph_ref_array(c->nv, -1);
  c->queue = graph_ref_array(c->nv, -1);
  return c->tangent && c->back && c->saved && c->copy && c->copy_in && c->updated && c->out && c->live && c->head && c->level && c->iter && c->queue;
}

/* By saved value: the input that it is, -1 for others. */
static int32_t *cut_list(const cut *c, int32_t *n) {
  int32_t *list = malloc(sizeof *list * ((size_t)c->g->n + 1));
  *n = 0;
  for (rl_ref r = 0; list && r < c->g->n; r++)
    if (c->saved[r]) list[(*n)++] = cut_input(c, r) >= 0 ? c->g->nodes[cut_input(c, r)].aux : -1;
  return list;
}

/* Splits a joint graph; fails when it has writes or fewer outputs or inputs than said. */
rl_status rl_pass_partition(const rl_graph *joint, int nout, int ncot, const char *keep_in, const char *keep_out, int flags, rl_graph **fwd,
                            rl_graph **bwd, int32_t **saved, int32_t *nsaved) {
  cut c = { .g = joint, .nout = nout, .ncot = ncot, .flags = flags };
  if (!joint->functional) return rl_error("[partition] the graph has writes: functionalize it first");
  if (nout < 0 || nout > joint->noutputs || ncot < 0 || ncot > joint->ninputs)
    return rl_error("[partition] got %d outputs and %d cotangents, need at most %d and %d", nout, ncot, joint->noutputs, joint->ninputs);
  *fwd = *bwd = NULL;
  bool ok = cut_start(&c);
  if (ok) {
    cut_marks(&c);
    cut_copies(&c, keep_in, keep_out);
    cut_lives(&c, keep_in);
    ok = cut_network(&c);
  }
  if (ok) {
    cut_flow(&c);
    cut_choose(&c);
  }
  ok = ok && (*fwd = cut_forward(&c)) && (*bwd = cut_backward(&c)) && (!saved || (*saved = cut_list(&c, nsaved)));
  if (!ok) {
    rl_graph_free(*bwd);
    *bwd = NULL;
    rl_graph_free(*fwd);
    *fwd = NULL;
  }
  void *parts[] = { c.tangent, c.back, c.saved, c.copy, c.copy_in, c.updated, c.out, c.live, c.head, c.level, c.iter, c.queue, c.e };
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
  return ok ? RL_OK : RL_ERR;
}
