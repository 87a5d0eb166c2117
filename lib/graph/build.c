/* Building: node-level tools of the passes (old graph -> new graph by a map of references). */
#include "impl.h"
#include "../tensor/random.h"
#include <stdlib.h>
#include <string.h>

rl_ref *graph_ref_array(int32_t n, rl_ref fill) {
  rl_ref *p = malloc(sizeof *p * ((size_t)n + 1));
  if (!p) {
    rl_error_status(RL_OOM, "[graph] out of memory");
    return NULL;
  }
  for (int32_t i = 0; i <= n; i++) p[i] = fill;
  return p;
}

rl_ref graph_emit(rl_graph *g, int op, const rl_type *t, const rl_ref *in, int nin, const rl_attrs *a) {
  for (int i = 0; i < nin; i++)
    if (in[i] < -1 || in[i] >= g->n) return -1;
  return rl_graph_node(g, op, t, in, nin, a);
}

static rl_ref build_view(rl_graph *g, int op, rl_ref x, const rl_attrs *a, const rl_type *t, const rl_geom *ge) {
  rl_node n = {
    .op = (uint16_t)op, .nout = 1, .type = graph_type(g, t), .geom = graph_geom(g, ge), .storage = g->nodes[x].storage, .line = g->curloc
  };
  return graph_append(g, n, &x, 1, a);
}

rl_ref graph_emit_view(rl_graph *g, int op, rl_ref x, const rl_attrs *a) {
  rl_type t;
  rl_geom ge;
  if (x < 0 || graph_view_geom(op, rl_node_type(g, x), graph_node_geom(g, x), a, &t, &ge) != RL_OK) return -1;
  return build_view(g, op, x, a, &t, &ge);
}

rl_ref graph_emit_window(rl_graph *g, rl_ref x, const rl_geom *ge) {
  if (x < 0) return -1;
  if (graph_geom_same(graph_node_geom(g, x), ge)) return x;
  rl_attrs a;
  rl_type t = *rl_node_type(g, x);
  t.weak = 0;
  t.ndim = (uint8_t)ge->ndim;
  memset(t.size, 0, sizeof t.size);
  memcpy(t.size, ge->size, sizeof(int64_t) * ge->ndim);
  graph_strided_attrs(ge, &a);
  return build_view(g, RL_OP_AS_STRIDED, x, &a, &t, ge);
}

rl_ref graph_emit_broadcast(rl_graph *g, rl_ref x, const rl_geom *ge) {
  rl_attrs a;
  rl_type t = *rl_node_type(g, x);
  t.weak = 0;
  t.ndim = (uint8_t)ge->ndim;
  memset(t.size, 0, sizeof t.size);
  memcpy(t.size, ge->size, sizeof(int64_t) * ge->ndim);
  rl_attrs_default(RL_OP_EXPAND, &a);
  a.nlist[0] = ge->ndim;
  memcpy(a.list[0], ge->size, sizeof(int64_t) * ge->ndim);
  return build_view(g, RL_OP_EXPAND, x, &a, &t, ge);
}

rl_ref graph_emit_copy(rl_graph *g, rl_ref x) {
  if (x < 0) return -1;
  rl_type t = *rl_node_type(g, x);
  t.weak = 0;
  return graph_emit(g, RL_G_CAST, &t, &x, 1, NULL);
}

rl_ref graph_emit_dense(rl_graph *g, rl_ref x) { return x < 0 || graph_geom_dense(graph_node_geom(g, x)) ? x : graph_emit_copy(g, x); }

rl_ref graph_emit_scatter(rl_graph *g, rl_ref base, rl_ref v, const rl_geom *w) {
  rl_attrs a;
  if (base < 0 || v < 0) return -1;
  rl_ref in[2] = { base, v };
  rl_type t = *rl_node_type(g, base);
  graph_strided_attrs(w, &a);
  return graph_emit(g, RL_G_SCATTER_WINDOW, &t, in, 2, &a);
}

static bool build_leaf_tables(rl_graph *g, const rl_graph *old, const rl_node *o, rl_ref r) {
  rl_node *n = &g->nodes[r];
  if (o->op == RL_G_INPUT) {
    n->aux = g->ninputs;
    return graph_push_input(g, r, n->storage, old->input_storage_size[o->aux]);
  }
  if (o->op == RL_G_NUMBER) {
    n->aux = g->nnumbers;
    return GRAPH_PUSH(g->numbers, g->nnumbers, g->capnumbers, r);
  }
  if (o->op != RL_G_TENSOR) return true;
  n->aux = g->nconsts;
  rl_tensor *c = old->consts[o->aux];
  return GRAPH_PUSH(g->consts, g->nconsts, g->capconsts, c ? rl_tensor_retain(c) : NULL);
}

/* Storage of the copy: a view's is its new input's, a leaf's is shared as in the old graph, else fresh. */
static int32_t build_storage(rl_graph *g, const rl_node *o, const rl_ref *in, int32_t *sid) {
  if (graph_is_view(o->op) || o->op == RL_G_WRITE) return g->nodes[in[0]].storage;
  if (o->op != RL_G_INPUT && o->op != RL_G_TENSOR) return graph_new_storage(g);
  if (sid[o->storage] < 0) sid[o->storage] = graph_new_storage(g);
  return sid[o->storage];
}

static rl_ref build_copy(rl_graph *g, const rl_graph *old, const rl_node *o, const rl_ref *in, int32_t *sid) {
  rl_node n = *o;
  rl_type t = old->types[o->type];
  rl_geom ge = old->geoms[o->geom];
  if (graph_is_view(o->op) &&
      graph_view_geom(o->op, rl_node_type(g, in[0]), graph_node_geom(g, in[0]), graph_node_attrs(old, (rl_ref)(o - old->nodes)), &t, &ge) != RL_OK)
    return -1;
  n.type = graph_type(g, &t);
  n.geom = graph_geom(g, &ge);
  n.storage = build_storage(g, o, in, sid);
  n.line = o->line ? graph_loc(g, old->locs[o->line]) : 0;
  return graph_append(g, n, in, o->nin, o->attrs < 0 ? NULL : &old->attrs[o->attrs]);
}

bool graph_copy_node(rl_graph *g, const rl_graph *old, rl_ref r, rl_ref *map, int32_t *sid) {
  const rl_node *o = &old->nodes[r];
  if (o->op == RL_G_PROJ) return true; /* came with its node */
  rl_ref *in = graph_ref_array(o->nin, -1);
  if (!in) return false;
  for (int k = 0; k < o->nin; k++) {
    rl_ref i = old->refs[o->in + k];
    in[k] = i < 0 ? -1 : map[i];
  }
  map[r] = build_copy(g, old, o, in, sid);
  free(in);
  if (map[r] < 0 || !build_leaf_tables(g, old, o, map[r])) return false;
  for (int k = 1; k < o->nout; k++) {
    map[r + k] = build_copy(g, old, &old->nodes[r + k], &map[r], sid);
    if (map[r + k] < 0) return false;
  }
  return true;
}

/* Marks what outputs and updates need, from the end backwards. Inputs and numbers always stay. */
static char *prune_marks(const rl_graph *g) {
  char *live = calloc((size_t)g->n + 1, 1);
  if (!live) return NULL;
  for (int32_t i = 0; i < g->noutputs; i++) live[g->outputs[i]] = 1;
  for (int32_t i = 0; i < g->nupdates; i++) live[g->updates[i].input] = live[g->updates[i].value] = 1;
  for (rl_ref r = g->n - 1; r >= 0; r--) {
    const rl_node *n = &g->nodes[r];
    if (n->op == RL_G_INPUT || n->op == RL_G_NUMBER) live[r] = 1;
    if (n->op == RL_G_WRITE || (graph_is_random(n->op) && rl_random_sequential())) live[r] = 1;
    if (live[r])
      for (int k = 0; k < n->nin; k++)
        if (g->refs[n->in + k] >= 0) live[g->refs[n->in + k]] = 1;
  }
  return live;
}

rl_graph *graph_prune(const rl_graph *old) {
  rl_graph *g = rl_graph_new();
  char *live = prune_marks(old);
  rl_ref *map = graph_ref_array(old->n, -1), *sid = graph_ref_array(old->nstorages, -1);
  bool ok = g && live && map && sid;
  for (rl_ref r = 0; ok && r < old->n; r++)
    if (live[r]) ok = graph_copy_node(g, old, r, map, sid);
  for (int32_t i = 0; ok && i < old->noutputs; i++) ok = GRAPH_PUSH(g->outputs, g->noutputs, g->capoutputs, map[old->outputs[i]]);
  for (int32_t i = 0; ok && i < old->nupdates; i++) {
    rl_update u = { map[old->updates[i].input], map[old->updates[i].value] };
    ok = GRAPH_PUSH(g->updates, g->nupdates, g->capupdates, u);
  }
  if (ok) {
    g->rng_total = old->rng_total;
    g->functional = old->functional;
    g->primitive = old->primitive;
  }
  free(live);
  free(map);
  free(sid);
  if (!ok) {
    rl_graph_free(g);
    return NULL;
  }
  return g;
}

/* Elements up to the end of what first lies on a storage. */
static int64_t room_of(const rl_graph *g, int32_t storage) { return graph_geom_last(graph_node_geom(g, g->storage_node[storage])) + 1; }

/* Whether output i has to move to memory of its own: it lies in an input's, is a number, lies with another old storage's outputs, apart from those it
 * shared memory with, in another layout, or is alone in a part of larger memory. */
static bool outputs_misplaced(const rl_graph *g, const rl_graph *old, const rl_ref *value, int32_t i, const int32_t *sid) {
  int32_t s = old->nodes[old->outputs[i]].storage, t = g->nodes[value[i]].storage;
  rl_geom og = *graph_node_geom(old, old->outputs[i]), ng = *graph_node_geom(g, value[i]);
  int lead = g->nodes[g->storage_node[t]].op;
  bool alone = true;
  if (graph_input_of_storage(g, t) >= 0 || (lead == RL_G_TENSOR && sid[s] != t) || lead == RL_G_CONST || lead == RL_G_NUMBER) return true;
  for (int32_t j = 0; j < old->noutputs; j++) {
    bool same = old->nodes[old->outputs[j]].storage == s, shares = g->nodes[value[j]].storage == t;
    if (same != shares && (same || j < i)) return true;
    if (same && old->outputs[j] != old->outputs[i]) alone = false;
  }
  return !graph_geom_same(&og, &ng) || (alone && room_of(old, s) != room_of(g, t));
}

/* Moves all outputs on old storage s to a copy of what became of that storage, each with its old geometry. */
static bool outputs_move(rl_graph *g, const rl_graph *old, rl_ref *value, int32_t s, const rl_ref *map) {
  rl_ref copy = graph_emit_copy(g, map[old->storage_node[s]]);
  for (int32_t j = 0; j < old->noutputs; j++) {
    if (old->nodes[old->outputs[j]].storage != s) continue;
    rl_geom w = *graph_node_geom(old, old->outputs[j]);
    if ((value[j] = graph_emit_window(g, copy, &w)) < 0) return false;
  }
  return true;
}

bool graph_set_outputs(rl_graph *g, const rl_graph *old, rl_ref *value, const int32_t *sid, const rl_ref *map) {
  for (int32_t i = 0; i < old->noutputs; i++) {
    if (value[i] < 0) return false;
    int32_t s = old->nodes[old->outputs[i]].storage;
    bool view = graph_input_of_storage(old, s) >= 0; /* of an input: it stays one */
    if (!view && outputs_misplaced(g, old, value, i, sid) && !outputs_move(g, old, value, s, map)) return false;
  }
  for (int32_t i = 0; i < old->noutputs; i++)
    if (!GRAPH_PUSH(g->outputs, g->noutputs, g->capoutputs, value[i])) return false;
  return true;
}
