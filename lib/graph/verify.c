/* Verifier: every rule that a graph must obey, checked node by node. Passes run it under RELUME_CHECK=1.
 *
 * Inputs come before their users; arity, attributes and types are what the op table's rules give; a view shares its input's storage and has
 * the geometry of its rule; every other op has a storage of its own; n-output nodes are followed by their projections; `functional` graphs
 * have no writes; in `primitive` graphs elementwise inputs agree in shape and dtype. */
#include "impl.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAD(g, r, ...) return verify_error(g, r, __VA_ARGS__)

RL_PRINTF(3, 4) static rl_status verify_error(const rl_graph *g, rl_ref r, const char *fmt, ...) {
  char m[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(m, sizeof m, fmt, ap);
  va_end(ap);
  return rl_error("[graphVerify] %%%d = %s: %s", r, rl_node_name(g->nodes[r].op), m);
}

static rl_status verify_indices(const rl_graph *g, rl_ref r) {
  const rl_node *n = &g->nodes[r];
  if (n->op >= RL_G_NOPS) return rl_error("[graphVerify] %%%d: unknown node kind %d", r, n->op);
  if (n->type < 0 || n->type >= g->ntypes || n->geom < 0 || n->geom >= g->ngeoms || n->attrs >= g->nattrs || n->line < 0 || n->line >= g->nlocs)
    BAD(g, r, "type, geometry, attributes or line out of range");
  if (n->storage < 0 || n->storage >= g->nstorages) BAD(g, r, "no storage %d; got %d storages", n->storage, g->nstorages);
  if (n->nin < 0 || n->in < 0 || n->in + n->nin > g->nrefs) BAD(g, r, "inputs out of range");
  for (int k = 0; k < n->nin; k++) {
    rl_ref i = g->refs[n->in + k];
    if (i >= r || i < -1) BAD(g, r, "input %d comes before what makes it; got %%%d", k, i);
    if (i < 0 && n->op >= RL_NOP) BAD(g, r, "input %d is missing", k);
  }
  return RL_OK;
}

static rl_status verify_geom(const rl_graph *g, rl_ref r) {
  const rl_type *t = rl_node_type(g, r);
  const rl_geom *ge = graph_node_geom(g, r);
  if (t->dtype >= RL_NDTYPE || t->device >= RL_NDEVICE || t->ndim > RL_MAXDIM) BAD(g, r, "bad type");
  if (ge->ndim != t->ndim || memcmp(ge->size, t->size, sizeof(int64_t) * t->ndim)) BAD(g, r, "geometry and type disagree");
  if (ge->offset < 0) BAD(g, r, "offset below 0; got %lld", (long long)ge->offset);
  for (int d = 0; d < t->ndim; d++)
    if (t->size[d] < 0 || ge->stride[d] < 0) BAD(g, r, "size or stride below 0 in dimension %d", d);
  int i = graph_input_of_storage(g, g->nodes[r].storage);
  if (i >= 0 && graph_geom_last(ge) >= g->input_storage_size[i])
    BAD(g, r, "reaches beyond its storage; got %lld elements, need %lld", (long long)g->input_storage_size[i], (long long)graph_geom_last(ge) + 1);
  return RL_OK;
}

static rl_status verify_arity(const rl_graph *g, rl_ref r) {
  const rl_node *n = &g->nodes[r];
  const rl_op_info *o = &rl_ops[n->op];
  if (n->nin < (o->nin == 255 ? 1 : o->nmin) || (o->nin != 255 && n->nin > o->nin))
    BAD(g, r, "wrong number of inputs; got %d, need %d", n->nin, o->nmin);
  for (int k = 0; k < n->nin; k++)
    if (g->refs[n->in + k] < 0 && (o->nin == 255 || !(o->optional >> k & 1))) BAD(g, r, "input %d is missing", k);
  if (o->nattrs && n->attrs < 0) BAD(g, r, "attributes are missing");
  if (n->nout != o->nout) BAD(g, r, "wrong number of outputs; got %d, need %d", n->nout, o->nout);
  if (r + n->nout > g->n) BAD(g, r, "projections are missing");
  for (int k = 1; k < n->nout; k++) {
    const rl_node *p = &g->nodes[r + k];
    if (p->op != RL_G_PROJ || p->aux != k || p->nin != 1 || g->refs[p->in] != r) BAD(g, r, "%%%d is not its projection %d", r + k, k);
  }
  return RL_OK;
}

static rl_status verify_meta(const rl_graph *g, rl_ref r, const rl_meta *m) {
  const rl_type *t = rl_node_type(g, r);
  if (t->dtype != m->dtype || t->device != m->device || t->ndim != m->ndim || memcmp(t->size, m->size, sizeof(int64_t) * m->ndim))
    BAD(g, r, "type is not what its inputs give; got %s with %d dimensions, need %s with %d", rl_dtypes[t->dtype].name, t->ndim,
        rl_dtypes[m->dtype].name, m->ndim);
  return RL_OK;
}

/* Elements that a storage has; a functional graph resizes none. */
static int64_t verify_room(const rl_graph *g, int32_t storage) {
  rl_ref first = g->storage_node[storage];
  int64_t room = 0;
  if (!g->functional || first < 0 || g->nodes[first].op == RL_G_TENSOR) return INT64_MAX;
  for (int32_t i = 0; i < g->ninputs; i++)
    if (g->input_storage[i] == storage) room = RL_MAX(room, g->input_storage_size[i]);
  return graph_input_of_storage(g, storage) >= 0 ? room : graph_geom_last(graph_node_geom(g, first)) + 1;
}

static rl_status verify_view(const rl_graph *g, rl_ref r) {
  const rl_node *n = &g->nodes[r];
  rl_ref x = g->refs[n->in];
  rl_type t;
  rl_geom ge;
  if (n->storage != g->nodes[x].storage) BAD(g, r, "a view has another storage than its input; got %d, need %d", n->storage, g->nodes[x].storage);
  if (graph_view_geom(n->op, rl_node_type(g, x), graph_node_geom(g, x), graph_node_attrs(g, r), &t, &ge) != RL_OK)
    BAD(g, r, "not a view: %s", rl_error_message());
  if (t.dtype != rl_node_type(g, r)->dtype || !graph_geom_same(&ge, graph_node_geom(g, r))) BAD(g, r, "geometry is not what its rule gives");
  int64_t last = graph_geom_last(&ge), room = verify_room(g, n->storage);
  if (last >= ge.offset && last >= room) BAD(g, r, "reaches beyond its storage; got %lld elements, need %lld", (long long)room, (long long)last + 1);
  return RL_OK;
}

static rl_status verify_row(const rl_graph *g, rl_ref r) {
  enum { STACK = 32 };
  const rl_node *n = &g->nodes[r];
  RL_TRY(verify_arity(g, r));
  if (rl_ops[n->op].kind == RL_K_VIEW) return verify_view(g, r);
  rl_tensor ghosts[STACK], *in[STACK], *const *args = in;
  rl_meta meta[RL_MAXOUT];
  if (n->nin > STACK) return RL_OK; /* long cat: checked when recorded */
  for (int k = 0; k < n->nin; k++) {
    rl_ref i = g->refs[n->in + k];
    in[k] = i < 0 ? NULL : &ghosts[k];
    if (i >= 0) graph_ghost(g, i, &ghosts[k]);
  }
  if (rl_infer((rl_op)n->op, args, n->nin, graph_node_attrs(g, r), meta) != RL_OK) BAD(g, r, "%s", rl_error_message());
  for (int k = 0; k < n->nout; k++) RL_TRY(verify_meta(g, r + k, &meta[k]));
  return RL_OK;
}

static rl_status verify_prim(const rl_graph *g, rl_ref r) {
  const rl_node *n = &g->nodes[r];
  if (n->op >= RL_NOP) return RL_OK;
  if (rl_ops[n->op].kind != RL_K_VIEW && !(rl_ops[n->op].flags & RL_OPF_PRIM)) BAD(g, r, "not a primitive");
  if (rl_ops[n->op].kind != RL_K_EW) return RL_OK;
  rl_dtype dt = RL_NDTYPE;
  for (int k = 0; k < n->nin; k++) {
    const rl_type *t = rl_node_type(g, g->refs[n->in + k]);
    int want = rl_ops[n->op].in_dtypes[k];
    if (t->ndim != rl_node_type(g, r)->ndim || memcmp(t->size, rl_node_type(g, r)->size, sizeof(int64_t) * t->ndim))
      BAD(g, r, "input %d broadcasts in a primitive graph", k);
    if (want == 255) continue;
    if (want) {
      if (t->dtype != want - 1) BAD(g, r, "input %d has another dtype; got %s, need %s", k, rl_dtypes[t->dtype].name, rl_dtypes[want - 1].name);
    } else if (dt == RL_NDTYPE) dt = (rl_dtype)t->dtype;
    else if (t->dtype != dt)
      BAD(g, r, "inputs of several dtypes in a primitive graph; got %s, need %s", rl_dtypes[t->dtype].name, rl_dtypes[dt].name);
  }
  return RL_OK;
}

static rl_status verify_window(const rl_graph *g, rl_ref r) {
  const rl_node *n = &g->nodes[r];
  if (n->nin != 2 || n->attrs < 0) BAD(g, r, "needs a base, a value and a window");
  const rl_type *b = rl_node_type(g, g->refs[n->in]), *v = rl_node_type(g, g->refs[n->in + 1]), *t = rl_node_type(g, r);
  rl_geom w;
  graph_strided_geom(&g->attrs[n->attrs], &w);
  if (!graph_type_same(b, t)) BAD(g, r, "result differs from the base in type");
  if (v->dtype != b->dtype || v->ndim != w.ndim || memcmp(v->size, w.size, sizeof(int64_t) * w.ndim)) BAD(g, r, "value and window disagree");
  if (w.offset < 0 || graph_geom_last(&w) >= graph_numel(b)) BAD(g, r, "window reaches beyond the base");
  return RL_OK;
}

static rl_status verify_write(const rl_graph *g, rl_ref r) {
  const rl_node *n = &g->nodes[r];
  if (g->functional) BAD(g, r, "a write in a functional graph");
  if (n->nin != 2) BAD(g, r, "needs a destination and a source");
  rl_ref d = g->refs[n->in], s = g->refs[n->in + 1];
  if (n->storage != g->nodes[d].storage || !graph_geom_same(graph_node_geom(g, d), graph_node_geom(g, r)))
    BAD(g, r, "is not the window of its destination");
  if (rl_node_type(g, d)->dtype != rl_node_type(g, s)->dtype || rl_node_type(g, d)->ndim != rl_node_type(g, s)->ndim ||
      memcmp(rl_node_type(g, d)->size, rl_node_type(g, s)->size, sizeof(int64_t) * rl_node_type(g, d)->ndim))
    BAD(g, r, "destination and source disagree");
  return RL_OK;
}

static rl_status verify_kind(const rl_graph *g, rl_ref r) {
  const rl_node *n = &g->nodes[r];
  int32_t want = n->op == RL_G_INPUT ? g->ninputs : n->op == RL_G_NUMBER ? g->nnumbers : n->op == RL_G_TENSOR ? g->nconsts : -1;
  if (want >= 0 && (n->aux < 0 || n->aux >= want)) BAD(g, r, "index out of range; got %d, need below %d", n->aux, want);
  switch (n->op) {
  case RL_G_INPUT:
    if (g->inputs[n->aux] != r || g->input_storage[n->aux] != n->storage) BAD(g, r, "is not the graph's input %d", n->aux);
    break;
  case RL_G_NUMBER:
    if (g->numbers[n->aux] != r || rl_node_type(g, r)->ndim) BAD(g, r, "is not the graph's number %d", n->aux);
    break;
  case RL_G_CONST:
    if (n->attrs < 0 || rl_node_type(g, r)->ndim) BAD(g, r, "needs rank 0 and a value");
    break;
  case RL_G_WRITE: return verify_write(g, r);
  case RL_G_SCATTER_WINDOW: return verify_window(g, r);
  case RL_G_PROJ:
    if (n->nin != 1 || g->refs[n->in] + n->aux != r) BAD(g, r, "does not follow its node");
    break;
  case RL_G_CAST:
    if (n->nin != 1 || rl_node_type(g, r)->ndim != rl_node_type(g, g->refs[n->in])->ndim) BAD(g, r, "changes the shape");
    break;
  }
  return RL_OK;
}

static bool verify_leaf(int op) { return op == RL_G_INPUT || op == RL_G_TENSOR; }

/* Nodes that are neither views nor writes nor leaves make a storage that no earlier node has. */
static rl_status verify_fresh(const rl_graph *g, rl_ref r, char *taken) {
  const rl_node *n = &g->nodes[r];
  bool shares = graph_is_view(n->op) || n->op == RL_G_WRITE || verify_leaf(n->op);
  if (taken[n->storage] && !shares) BAD(g, r, "storage %d is taken", n->storage);
  taken[n->storage] = 1;
  return RL_OK;
}

static rl_status verify_ends(const rl_graph *g) {
  for (int32_t i = 0; i < g->noutputs; i++)
    if (g->outputs[i] < 0 || g->outputs[i] >= g->n) return rl_error("[graphVerify] output %d: no node %%%d", i, g->outputs[i]);
  for (int32_t i = 0; i < g->nupdates; i++) {
    rl_ref d = g->updates[i].input, v = g->updates[i].value;
    if (d < 0 || d >= g->n || v < 0 || v >= g->n) return rl_error("[graphVerify] update %d: no such node", i);
    if (graph_input_of_storage(g, g->nodes[d].storage) < 0) BAD(g, d, "updated, but no view of an input");
    const rl_type *a = rl_node_type(g, d), *b = rl_node_type(g, v);
    if (a->dtype != b->dtype || a->ndim != b->ndim || memcmp(a->size, b->size, sizeof(int64_t) * a->ndim))
      BAD(g, d, "updated with a value of another type");
  }
  return RL_OK;
}

static rl_status verify_nodes(const rl_graph *g, char *taken) {
  for (rl_ref r = 0; r < g->n; r++) {
    RL_TRY(verify_indices(g, r));
    RL_TRY(verify_geom(g, r));
    RL_TRY(g->nodes[r].op < RL_NOP ? verify_row(g, r) : verify_kind(g, r));
    RL_TRY(verify_fresh(g, r, taken));
    if (graph_is_random(g->nodes[r].op) && (g->nodes[r].rng < 0 || g->nodes[r].rng > g->rng_total)) BAD(g, r, "counter outside the graph's");
    if (g->primitive) RL_TRY(verify_prim(g, r));
  }
  return RL_OK;
}

/* RL_OK, or the first rule that the graph breaks as the message. */
rl_status rl_graph_verify(const rl_graph *g) {
  char *taken = calloc((size_t)g->nstorages + 1, 1);
  if (!taken) return rl_error_status(RL_OOM, "[graphVerify] out of memory");
  rl_status s = verify_nodes(g, taken);
  free(taken);
  return s == RL_OK ? verify_ends(g) : s;
}
