/* Backward: gradients appended to a functional graph (graph -> joint graph).
 * The graph runs again on fakes with the tape on, so the gradients are those of eager mode. Each output that requires grad gets a cotangent
 * as a new input, in order; the gradients follow the outputs, in the order of `wrt`, zeros where nothing reaches. */
#include "impl.h"
#include "../autograd/tape.h"
#include <stdlib.h>
#include <string.h>

typedef struct bw {
  const rl_graph *old;
  rl_graph *g;
  rl_ref *map;
  int32_t *sid;
  rl_tensor **v;
  const rl_ref *wrt;
  int nwrt;
} bw;

/* ---- scatter_window has no row: its gradient is a custom node ---- */

typedef struct bw_window {
  rl_geom w;
  rl_type base;
} bw_window;

static rl_status bw_window_zeros(const bw_window *s, rl_tensor *dy, rl_tensor **dx) {
  rl_graph *g = rl_self.graph;
  rl_type t = s->base;
  t.ndim = (uint8_t)s->w.ndim;
  memcpy(t.size, s->w.size, sizeof(int64_t) * s->w.ndim);
  rl_ref d = rl_graph_ref(g, dy),
         z = d < 0 ? -1 : graph_emit_expand(g, graph_emit_const(g, (rl_dtype)t.dtype, (rl_device)t.device, 0, 0), t.ndim, t.size);
  rl_ref r = graph_emit_scatter(g, d, z, &s->w);
  *dx = r < 0 ? NULL : graph_fake(g, r);
  return *dx ? RL_OK : RL_ERR;
}

static rl_status bw_window_apply(void *ud, rl_tensor *const *dy, int ny, rl_tensor **dx, int nx) {
  const bw_window *s = ud;
  rl_tensor *d = NULL;
  rl_attrs a;
  (void)ny;
  (void)nx;
  if (!dy[0]) return RL_OK;
  RL_TRY(rl_contiguous(dy[0], &d));
  graph_strided_attrs(&s->w, &a);
  a.v[0].i += d->offset;
  rl_status st = bw_window_zeros(s, d, &dx[0]);
  if (st == RL_OK) st = rl_call(RL_OP_AS_STRIDED, &d, 1, &a, &dx[1]);
  rl_tensor_release(d);
  return st;
}

static bool bw_scatter(bw *b, rl_ref r) {
  const rl_node *n = &b->old->nodes[r];
  rl_tensor *in[2] = { b->v[b->old->refs[n->in]], b->v[b->old->refs[n->in + 1]] };
  bw_window *s = malloc(sizeof *s);
  if (!s) {
    rl_error_status(RL_OOM, "[backward] out of memory");
    return false;
  }
  graph_strided_geom(graph_node_attrs(b->old, r), &s->w);
  s->base = *rl_node_type(b->old, r);
  s->base.weak = 0;
  rl_ref x = rl_graph_ref(b->g, in[0]), v = rl_graph_ref(b->g, in[1]), y = graph_emit_scatter(b->g, x, v, &s->w);
  if (y < 0 || !(b->v[r] = graph_fake(b->g, y))) {
    free(s);
    return false;
  }
  if (!rl_requires_grad(in[0]) && !rl_requires_grad(in[1])) {
    free(s);
    return true;
  }
  return rl_tape_custom(in, 2, &b->v[r], 1, bw_window_apply, free, s, false) == RL_OK;
}

/* ---- forward again ---- */

static bool bw_leaf(bw *b, rl_ref r) {
  if (!graph_copy_node(b->g, b->old, r, b->map, b->sid)) return false;
  return (b->v[r] = graph_fake(b->g, b->map[r])) != NULL;
}

static bool bw_row(bw *b, rl_ref r, int op, const rl_attrs *a) {
  const rl_node *n = &b->old->nodes[r];
  rl_tensor **in = calloc((size_t)n->nin + 1, sizeof *in), *out[RL_MAXOUT] = { 0 };
  if (!in) {
    rl_error_status(RL_OOM, "[backward] out of memory");
    return false;
  }
  for (int k = 0; k < n->nin; k++) in[k] = b->old->refs[n->in + k] < 0 ? NULL : b->v[b->old->refs[n->in + k]];
  if (graph_is_random(op)) b->g->rng_total = n->rng;
  bool ok = rl_call((rl_op)op, in, n->nin, a, out) == RL_OK;
  for (int k = 0; k < n->nout; k++) b->v[r + k] = out[k];
  free(in);
  return ok;
}

static bool bw_node(bw *b, rl_ref r) {
  const rl_node *n = &b->old->nodes[r];
  rl_attrs a;
  b->g->curloc = n->line ? graph_loc(b->g, b->old->locs[n->line]) : 0;
  if (n->op == RL_G_PROJ) return true;
  if (n->op >= RL_NOP && n->nin == 0) return bw_leaf(b, r);
  if (n->op == RL_G_SCATTER_WINDOW) return bw_scatter(b, r);
  if (n->op != RL_G_CAST) return bw_row(b, r, n->op, graph_node_attrs(b->old, r));
  rl_attrs_default(RL_OP_CAST, &a);
  a.v[0].i = rl_node_type(b->old, r)->dtype;
  return bw_row(b, r, RL_OP_CAST, &a);
}

static bool bw_forward(bw *b) {
  for (rl_ref r = 0; r < b->old->n; r++) {
    if (!bw_node(b, r)) return false;
    for (int k = 0; k < b->nwrt; k++)
      if (b->wrt[k] == r && !rl_requires_grad(b->v[r]) && rl_set_requires_grad(b->v[r], true) != RL_OK) return false;
  }
  b->g->rng_total = b->old->rng_total;
  return true;
}

/* ---- cotangents and gradients ---- */

static rl_tensor *bw_cotangent(bw *b, const rl_tensor *y) {
  rl_type t;
  graph_type_of(y, &t);
  t.weak = 0;
  rl_ref r = graph_emit(b->g, RL_G_INPUT, &t, NULL, 0, NULL);
  if (r < 0) return NULL;
  b->g->nodes[r].aux = b->g->ninputs;
  return graph_push_input(b->g, r, b->g->nodes[r].storage, graph_numel(&t)) ? graph_fake(b->g, r) : NULL;
}

static bool bw_outputs(bw *b) {
  const rl_graph *o = b->old;
  rl_ref *out = graph_ref_array(o->noutputs, -1);
  bool ok = out != NULL;
  for (int32_t i = 0; ok && i < o->noutputs; i++) {
    rl_ref first = o->storage_node[o->nodes[o->outputs[i]].storage];
    ok = (out[i] = rl_graph_ref(b->g, b->v[o->outputs[i]])) >= 0 && (b->map[first] = rl_graph_ref(b->g, b->v[first])) >= 0;
  }
  for (int32_t i = 0; ok && i < o->nupdates; i++) {
    rl_update u = { rl_graph_ref(b->g, b->v[o->updates[i].input]), rl_graph_ref(b->g, b->v[o->updates[i].value]) };
    ok = u.input >= 0 && u.value >= 0 && GRAPH_PUSH(b->g->updates, b->g->nupdates, b->g->capupdates, u);
  }
  ok = ok && graph_set_outputs(b->g, o, out, b->sid, b->map);
  free(out);
  return ok;
}

/* A gradient as an output of its own: a copy when it lies in an input's or an earlier output's memory. */
static bool bw_gradient(bw *b, rl_tensor *x, rl_tensor *dx) {
  rl_graph *g = b->g;
  rl_ref r;
  if (dx) r = rl_graph_ref(g, dx);
  else {
    rl_type t;
    graph_type_of(x, &t);
    r = graph_emit_copy(g, graph_emit_expand(g, graph_emit_const(g, (rl_dtype)t.dtype, (rl_device)t.device, 0, 0), t.ndim, t.size));
  }
  if (r < 0) return false;
  bool shared = graph_input_of_storage(g, g->nodes[r].storage) >= 0 || !graph_geom_dense(graph_node_geom(g, r));
  for (int32_t i = 0; i < g->noutputs; i++) shared |= g->nodes[g->outputs[i]].storage == g->nodes[r].storage;
  if (shared) r = graph_emit_copy(g, r);
  return r >= 0 && GRAPH_PUSH(g->outputs, g->noutputs, g->capoutputs, r);
}

static bool bw_gradients(bw *b) {
  const rl_graph *o = b->old;
  rl_tensor **buf = calloc((size_t)(2 * o->noutputs + 2 * b->nwrt) + 1, sizeof *buf);
  if (!buf) {
    rl_error_status(RL_OOM, "[backward] out of memory");
    return false;
  }
  rl_tensor **ys = buf, **dys = ys + o->noutputs, **xs = dys + o->noutputs, **dx = xs + b->nwrt;
  int ny = 0;
  bool ok = true;
  for (int32_t i = 0; ok && i < o->noutputs; i++) {
    rl_tensor *y = b->v[o->outputs[i]];
    if (!rl_requires_grad(y)) continue;
    ys[ny] = y;
    ok = (dys[ny++] = bw_cotangent(b, y)) != NULL;
  }
  for (int k = 0; k < b->nwrt; k++) xs[k] = b->v[b->wrt[k]];
  if (ok && ny) ok = rl_grad(ys, dys, ny, xs, b->nwrt, false, false, false, dx) == RL_OK;
  for (int k = 0; ok && k < b->nwrt; k++) ok = bw_gradient(b, xs[k], dx[k]);
  for (int k = 0; k < ny; k++)
    if (dys[k]) rl_tensor_release(dys[k]);
  for (int k = 0; k < b->nwrt; k++)
    if (dx[k]) rl_tensor_release(dx[k]);
  free(buf);
  return ok;
}

static bool bw_start(bw *b) {
  b->g = rl_graph_new();
  b->map = graph_ref_array(b->old->n, -1);
  b->sid = graph_ref_array(b->old->nstorages, -1);
  b->v = calloc((size_t)b->old->n + 1, sizeof *b->v);
  return b->g && b->map && b->sid && b->v;
}

static bool bw_all(bw *b) {
  struct rl_graph *outer = rl_self.graph;
  bool grad = rl_self.grad_disabled;
  rl_self.graph = b->g;
  rl_self.grad_disabled = false;
  bool ok = bw_forward(b) && bw_outputs(b) && bw_gradients(b);
  for (rl_ref r = 0; r < b->old->n; r++)
    if (b->v[r]) rl_tensor_release(b->v[r]);
  rl_self.graph = outer;
  rl_self.grad_disabled = grad;
  return ok;
}

/* The joint graph of g and of d(outputs)/d(wrt); NULL with a message when g is not functional or an op has no gradient. */
rl_graph *rl_pass_backward(const rl_graph *g, const rl_ref *wrt, int nwrt) {
  bw b = { .old = g, .wrt = wrt, .nwrt = nwrt };
  if (!g->functional) {
    rl_error("[backward] the graph has writes: functionalize it first");
    return NULL;
  }
  for (int k = 0; k < nwrt; k++)
    if (wrt[k] < 0 || wrt[k] >= g->n) {
      rl_error("[backward] no node %%%d", wrt[k]);
      return NULL;
    }
  bool ok = bw_start(&b) && bw_all(&b);
  free(b.map);
  free(b.sid);
  free(b.v);
  if (ok) b.g->functional = true;
  rl_graph *pruned = ok ? graph_prune(b.g) : NULL;
  rl_graph_free(b.g);
  return pruned;
}
