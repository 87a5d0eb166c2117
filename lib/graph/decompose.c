/* Decompose: composites through their formulas, then explicit casts and broadcasts (functional graph -> primitive graph).
 *
 * A formula is C that calls rl_call; on fakes of the new graph it appends nodes. Formulas may use composites: the walk repeats until none is
 * left. Afterwards every elementwise input has the result's shape (expand) and the dtype the op computes in (cast; a number known at
 * capture becomes a typed constant). */
#include "impl.h"
#include "../tensor/dispatch.h"
#include <stdlib.h>
#include <string.h>

typedef struct dec {
  const rl_graph *old;
  rl_graph *g;
  rl_ref *map;
  int32_t *sid;
} dec;

static bool dec_start(dec *d, const rl_graph *old) {
  d->old = old;
  d->g = rl_graph_new();
  d->map = graph_ref_array(old->n, -1);
  d->sid = graph_ref_array(old->nstorages, -1);
  return d->g && d->map && d->sid;
}

/* Outputs and updates of the new graph; frees the maps and, when something failed, the graph. */
static rl_graph *dec_finish(dec *d, bool ok) {
  const rl_graph *o = d->old;
  rl_ref *out = graph_ref_array(o->noutputs, -1);
  ok = ok && out;
  for (int32_t i = 0; ok && i < o->noutputs; i++) out[i] = d->map[o->outputs[i]];
  for (int32_t i = 0; ok && i < o->nupdates; i++) {
    rl_update u = { d->map[o->updates[i].input], d->map[o->updates[i].value] };
    ok = GRAPH_PUSH(d->g->updates, d->g->nupdates, d->g->capupdates, u);
  }
  ok = ok && graph_set_outputs(d->g, o, out, d->sid, d->map);
  free(out);
  free(d->map);
  free(d->sid);
  if (ok) {
    d->g->functional = o->functional;
    d->g->rng_total = o->rng_total;
  }
  rl_graph *pruned = ok ? graph_prune(d->g) : NULL;
  rl_graph_free(d->g);
  return pruned;
}

/* ---- composites ---- */

static bool dec_is_composite(int op) {
  return op < RL_NOP && rl_ops[op].formula && !(rl_ops[op].flags & RL_OPF_PRIM) && rl_ops[op].kind != RL_K_VIEW;
}

/* An elementwise composite of a half type computes in float and rounds once, as its kernel does. */
static bool dec_widens(const rl_graph *g, const rl_node *n) {
  rl_dtype dt = (rl_dtype)g->types[n->type].dtype;
  return (dt == RL_F16 || dt == RL_BF16) && rl_ops[n->op].kind == RL_K_EW;
}

/* The formula on fakes of the new graph. */
static rl_status dec_formula(dec *d, const rl_node *n, rl_tensor **in, rl_tensor **out) {
  const rl_attrs *a = n->attrs < 0 ? NULL : &d->old->attrs[n->attrs];
  for (int k = 0; k < n->nin; k++) {
    rl_ref i = d->old->refs[n->in + k];
    if (i < 0) continue;
    rl_ref x = d->map[i];
    const rl_type *t = rl_node_type(d->g, x);
    if (dec_widens(d->old, n) && t->dtype == d->old->types[n->type].dtype && !t->weak) x = graph_emit_cast(d->g, x, RL_F32);
    if (x < 0 || !(in[k] = graph_fake(d->g, x))) return RL_ERR;
  }
  return rl_expand((rl_op)n->op, in, n->nin, a, out);
}

/* Views of the composite's result expect it dense at the start of a storage. */
static rl_ref dec_at_start(rl_graph *g, rl_ref x) {
  if (x < 0) return -1;
  const rl_geom *ge = graph_node_geom(g, x);
  return ge->offset == 0 && graph_geom_dense(ge) ? x : graph_emit_copy(g, x);
}

/* The result as the new graph has it, in the composite's type. */
static rl_ref dec_result(dec *d, const rl_node *n, rl_tensor *out) {
  rl_ref x = rl_graph_ref(d->g, out);
  if (dec_widens(d->old, n)) x = graph_emit_cast(d->g, x, (rl_dtype)d->old->types[n->type].dtype);
  return dec_at_start(d->g, x);
}

static bool dec_expand(dec *d, rl_ref r) {
  const rl_node *n = &d->old->nodes[r];
  rl_tensor **in = calloc((size_t)n->nin + 1, sizeof *in), *out[RL_MAXOUT] = { 0 };
  if (!in) {
    rl_error_status(RL_OOM, "[graph] out of memory");
    return false;
  }
  int64_t drawn = d->g->rng_total;
  if (graph_is_random(n->op)) d->g->rng_total = n->rng; /* the formula draws where the composite would have */
  d->g->curloc = n->line ? graph_loc(d->g, d->old->locs[n->line]) : 0;
  bool ok = dec_formula(d, n, in, out) == RL_OK;
  d->g->rng_total = RL_MAX(drawn, d->g->rng_total);
  for (int k = 0; k < n->nout; k++) {
    if (ok && out[k]) ok = (d->map[r + k] = dec_result(d, n, out[k])) >= 0;
    if (out[k]) rl_tensor_release(out[k]);
  }
  for (int k = 0; k < n->nin; k++)
    if (in[k]) rl_tensor_release(in[k]);
  free(in);
  return ok;
}

/* One level of formulas; `more` tells whether there were any. */
static rl_graph *dec_level(const rl_graph *old, bool *more) {
  dec d;
  bool ok = dec_start(&d, old);
  rl_graph *outer = rl_self.graph;
  bool grad = rl_self.grad_disabled;
  rl_self.graph = d.g;
  rl_self.grad_disabled = true;
  *more = false;
  for (rl_ref r = 0; ok && r < old->n; r++) {
    bool composite = dec_is_composite(old->nodes[r].op);
    *more |= composite;
    ok = composite ? dec_expand(&d, r) : graph_copy_node(d.g, old, r, d.map, d.sid);
  }
  rl_self.graph = outer;
  rl_self.grad_disabled = grad;
  return dec_finish(&d, ok);
}

/* ---- explicit dtypes and shapes ---- */

rl_ref graph_emit_const(rl_graph *g, rl_dtype dt, rl_device dev, double f, int64_t i) {
  rl_type t = { .dtype = dt, .device = dev };
  rl_attrs a;
  memset(&a, 0, sizeof a);
  if (dt == RL_I64) a.v[0].i = i;
  else a.v[0].f = f;
  return graph_emit(g, RL_G_CONST, &t, NULL, 0, &a);
}

rl_ref graph_emit_cast(rl_graph *g, rl_ref x, rl_dtype dt) {
  if (x < 0) return -1;
  rl_type t = *rl_node_type(g, x);
  rl_attrs a;
  rl_attrs_default(RL_OP_CAST, &a);
  t.dtype = dt;
  t.weak = 0;
  a.v[0].i = dt;
  return graph_emit(g, RL_OP_CAST, &t, &x, 1, &a);
}

/* x as dtype dt: numbers known at capture become typed constants (those that need a kernel's rounding stay casts, which fold computes). */
static rl_ref dec_typed(rl_graph *g, rl_ref x, rl_dtype dt, rl_device dev) {
  const rl_node *n = &g->nodes[x];
  const rl_type *t = rl_node_type(g, x);
  if (n->op == RL_G_CONST && t->weak) {
    bool wide = t->dtype == RL_I64;
    int64_t i = graph_node_attrs(g, x)->v[0].i;
    double f = wide ? (double)i : graph_node_attrs(g, x)->v[0].f;
    if (dt == RL_F64) return graph_emit_const(g, dt, dev, f, 0);
    if (dt == RL_F32) return graph_emit_const(g, dt, dev, (double)(wide ? (float)i : (float)f), 0);
    if (wide && dt == RL_I64) return graph_emit_const(g, dt, dev, 0, i);
  }
  return t->dtype == dt && !t->weak ? x : graph_emit_cast(g, x, dt);
}

/* x broadcast to `size`: new leading dimensions, then size-1 dimensions repeated. */
rl_ref graph_emit_expand(rl_graph *g, rl_ref x, int ndim, const int64_t *size) {
  if (x < 0) return -1;
  const rl_type *t = rl_node_type(g, x);
  if (t->ndim == ndim && !memcmp(t->size, size, sizeof(int64_t) * ndim)) return x;
  const rl_geom *xg = graph_node_geom(g, x);
  rl_geom ge = { .ndim = ndim, .offset = xg->offset };
  int lead = ndim - xg->ndim;
  for (int d = 0; d < ndim; d++) {
    int64_t have = d < lead ? 1 : xg->size[d - lead];
    ge.size[d] = size[d];
    ge.stride[d] = have == 1 && size[d] != 1 ? 0 : d < lead ? 0 : xg->stride[d - lead];
  }
  return graph_emit_broadcast(g, x, &ge);
}

/* Dtype that the row computes in, by the rule of dispatch. */
static bool dec_op_dtype(const rl_graph *g, int op, const rl_ref *in, int nin, rl_dtype *dt) {
  rl_tensor ghosts[RL_MAXIN], *args[RL_MAXIN];
  for (int k = 0; k < nin; k++) {
    args[k] = in[k] < 0 ? NULL : &ghosts[k];
    if (in[k] >= 0) graph_ghost(g, in[k], &ghosts[k]);
  }
  return rl_op_dtype((rl_op)op, args, nin, dt) == RL_OK;
}

/* x in the shape of t: broadcast, or as many elements read in order. */
static rl_ref dec_shaped(rl_graph *g, rl_ref x, const rl_type *t) {
  if (x < 0) return -1;
  const rl_type *xt = rl_node_type(g, x);
  if (rl_broadcasts(xt->ndim, xt->size, t->ndim, t->size)) return graph_emit_expand(g, x, t->ndim, t->size);
  rl_type rt = *t;
  rl_attrs a;
  rt.dtype = xt->dtype;
  rt.weak = 0;
  rl_attrs_default(RL_OP_RESHAPE, &a);
  a.nlist[0] = t->ndim;
  memcpy(a.list[0], t->size, sizeof(int64_t) * t->ndim);
  return graph_emit(g, RL_OP_RESHAPE, &rt, &x, 1, &a);
}

static bool dec_explicit(dec *d, rl_ref r) {
  const rl_node *n = &d->old->nodes[r];
  const rl_type *t = rl_node_type(d->old, r);
  rl_ref in[RL_MAXIN];
  for (int k = 0; k < n->nin; k++) in[k] = d->old->refs[n->in + k] < 0 ? -1 : d->map[d->old->refs[n->in + k]];
  const uint8_t *want = rl_ops[n->op].in_dtypes;
  rl_dtype dt;
  if (!dec_op_dtype(d->g, n->op, in, n->nin, &dt)) return false;
  d->g->curloc = n->line ? graph_loc(d->g, d->old->locs[n->line]) : 0;
  for (int k = 0; k < n->nin; k++) {
    if (in[k] < 0) continue;
    if (n->op != RL_OP_CAST && want[k] != 255) in[k] = dec_typed(d->g, in[k], want[k] ? (rl_dtype)(want[k] - 1) : dt, (rl_device)t->device);
    in[k] = dec_shaped(d->g, in[k], t);
    if (in[k] < 0) return false;
  }
  rl_type nt = *t;
  nt.weak = 0;
  d->map[r] = graph_emit(d->g, n->op, &nt, in, n->nin, n->attrs < 0 ? NULL : &d->old->attrs[n->attrs]);
  if (d->map[r] >= 0) d->g->nodes[d->map[r]].rng = n->rng;
  return d->map[r] >= 0;
}

/* Numbers (and rank-0 tensors) that meet an op that is not elementwise take the dtype that its row wants there. */
static bool dec_numbers(dec *d, rl_ref r) {
  const rl_node *n = &d->old->nodes[r];
  const rl_op_info *o = &rl_ops[n->op];
  rl_ref keep[RL_MAXIN], in[RL_MAXIN];
  rl_dtype dt;
  if (o->nin == 255) return graph_copy_node(d->g, d->old, r, d->map, d->sid);
  for (int k = 0; k < n->nin; k++) keep[k] = in[k] = d->old->refs[n->in + k] < 0 ? -1 : d->map[d->old->refs[n->in + k]];
  if (!dec_op_dtype(d->g, n->op, in, n->nin, &dt)) return false;
  bool ok = true;
  for (int k = 0; ok && k < n->nin; k++) {
    int want = o->in_dtypes[k];
    if (in[k] < 0 || want == 255 || rl_node_type(d->g, in[k])->ndim) continue;
    ok = (d->map[d->old->refs[n->in + k]] = dec_typed(d->g, in[k], want ? (rl_dtype)(want - 1) : dt, (rl_device)rl_node_type(d->old, r)->device)) >=
         0;
  }
  ok = ok && graph_copy_node(d->g, d->old, r, d->map, d->sid);
  for (int k = n->nin - 1; k >= 0; k--)
    if (keep[k] >= 0) d->map[d->old->refs[n->in + k]] = keep[k];
  return ok;
}

static bool dec_node(dec *d, rl_ref r) {
  const rl_node *n = &d->old->nodes[r];
  if (n->op >= RL_NOP || n->nin == 0) return graph_copy_node(d->g, d->old, r, d->map, d->sid);
  if (rl_ops[n->op].kind == RL_K_EW) return dec_explicit(d, r);
  return dec_numbers(d, r);
}

static rl_graph *dec_explicit_graph(const rl_graph *old) {
  dec d;
  bool ok = dec_start(&d, old);
  for (rl_ref r = 0; ok && r < old->n; r++) ok = dec_node(&d, r);
  rl_graph *g = dec_finish(&d, ok);
  if (g) g->primitive = true;
  return g;
}

/* The graph in primitives; NULL with a message when a composite has no formula or a formula fails. */
rl_graph *rl_pass_decompose(const rl_graph *old) {
  if (!old->functional) {
    rl_error("[decompose] the graph has writes: functionalize it first");
    return NULL;
  }
  bool more = true;
  const rl_graph *g = old;
  for (int level = 0; more && level < 16; level++) {
    rl_graph *next = dec_level(g, &more);
    if (g != old) rl_graph_free((rl_graph *)g);
    if (!next) return NULL;
    g = next;
  }
  rl_graph *prim = dec_explicit_graph(g);
  if (g != old) rl_graph_free((rl_graph *)g);
  return prim;
}
