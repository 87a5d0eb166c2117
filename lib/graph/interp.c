/* Interpreter: runs a graph on real tensors through rl_call, node by node (the reference for backends, and what runs without a compiler).
 * Recorded graphs run too: views are views and writes copy. */
#include "impl.h"
#include "../tensor/random.h"
#include <stdlib.h>
#include <string.h>

typedef struct interp {
  const rl_graph *g;
  rl_tensor *const *in;
  const double *numbers;
  rl_tensor **v;              /* by node */
  rl_ref *last;               /* last reader of a node; g->n when it is needed at the end */
  uint64_t counter;           /* generator's counter at the start */
  bool taped;                 /* results keep their history, nothing is updated */
  bool inlined;               /* ops go into the graph that is being recorded; an input that nothing reads may be missing */
  rl_tensor *const *numbered; /* numbers as tensors */
} interp;

static rl_status interp_fail(const interp *p, rl_ref r) {
  const rl_node *n = &p->g->nodes[r];
  char m[512];
  strncpy(m, rl_error_message(), sizeof m - 1);
  m[sizeof m - 1] = 0;
  return rl_error("[graphRun] %%%d = %s%s%s: %s", r, rl_node_name(n->op), n->line ? " at " : "", n->line ? p->g->locs[n->line] : "", m);
}

static rl_status interp_input(interp *p, rl_ref r) {
  int k = p->g->nodes[r].aux;
  rl_tensor *t = p->in[k];
  rl_geom ge;
  char a[256];
  if (!t && p->inlined && p->last[r] < 0) return RL_OK;
  if (!t) return rl_error("input %d is missing", k + 1);
  graph_geom_of(t, &ge);
  if (t->dtype != rl_node_type(p->g, r)->dtype || !graph_geom_same(&ge, graph_node_geom(p->g, r)))
    return rl_error("input %d is not as captured; got %s at offset %lld", k + 1, rl_shape_str(t, a), (long long)t->offset);
  p->v[r] = rl_tensor_retain(t);
  return RL_OK;
}

static rl_status interp_cast(rl_tensor *x, rl_dtype dt, rl_tensor **out) {
  rl_attrs a;
  rl_attrs_default(RL_OP_CAST, &a);
  a.v[0].i = dt;
  return rl_call(RL_OP_CAST, &x, 1, &a, out);
}

static rl_status interp_const(interp *p, rl_ref r) {
  rl_number n;
  const rl_type *t = rl_node_type(p->g, r);
  const rl_attrs *a = graph_node_attrs(p->g, r);
  rl_tensor *w = t->dtype == RL_I64 ? rl_number_seti(&n, a->v[0].i) : rl_number_set(&n, a->v[0].f);
  if (!t->weak) return interp_cast(w, (rl_dtype)t->dtype, &p->v[r]);
  p->v[r] = rl_tensor_keep(w);
  return p->v[r] ? RL_OK : RL_OOM;
}

static rl_status interp_empty(interp *p, rl_ref r) {
  const rl_type *t = rl_node_type(p->g, r);
  p->v[r] = rl_tensor_empty((rl_dtype)t->dtype, (rl_device)t->device, t->ndim, t->size);
  if (p->inlined) return p->v[r] ? RL_OK : RL_OOM;
  return p->v[r] ? rl_fill(p->v[r], 0) : RL_OOM; /* undefined in the graph; here always the same */
}

static rl_status interp_scatter(interp *p, rl_ref r) {
  rl_tensor *base = p->v[rl_node_in(p->g, r, 0)], *src = p->v[rl_node_in(p->g, r, 1)];
  rl_geom w;
  RL_TRY(interp_cast(base, (rl_dtype)base->dtype, &p->v[r]));
  graph_strided_geom(graph_node_attrs(p->g, r), &w);
  w.offset += p->v[r]->offset;
  rl_attrs a;
  rl_tensor *window = NULL;
  graph_strided_attrs(&w, &a);
  RL_TRY(rl_call(RL_OP_AS_STRIDED, &p->v[r], 1, &a, &window));
  rl_status s = rl_copy(window, src);
  rl_tensor_release(window);
  return s;
}

static rl_status interp_row(interp *p, rl_ref r) {
  const rl_node *n = &p->g->nodes[r];
  rl_tensor *stack[RL_MAXIN], **in = n->nin <= RL_MAXIN ? stack : malloc(sizeof *in * (size_t)n->nin), *out[RL_MAXOUT] = { 0 };
  if (!in) return rl_error_status(RL_OOM, "[graphRun] out of memory");
  for (int k = 0; k < n->nin; k++) in[k] = p->g->refs[n->in + k] < 0 ? NULL : p->v[p->g->refs[n->in + k]];
  if (graph_is_random(n->op) && !p->inlined) rl_generator_default()->counter = p->counter + (uint64_t)n->rng;
  rl_status s = rl_call((rl_op)n->op, in, n->nin, graph_node_attrs(p->g, r), out);
  for (int k = 0; s == RL_OK && k < n->nout; k++) p->v[r + k] = out[k];
  if (in != stack) free(in);
  return s;
}

static rl_status interp_kind(interp *p, rl_ref r) {
  const rl_node *n = &p->g->nodes[r];
  rl_number num;
  switch (n->op) {
  case RL_G_INPUT: return interp_input(p, r);
  case RL_G_NUMBER:
    if (p->numbered) {
      p->v[r] = rl_tensor_retain(p->numbered[n->aux]);
      return RL_OK;
    }
    p->v[r] = rl_tensor_keep(rl_number_set(&num, p->numbers[n->aux]));
    return p->v[r] ? RL_OK : RL_OOM;
  case RL_G_CONST: return interp_const(p, r);
  case RL_G_EMPTY: return interp_empty(p, r);
  case RL_G_PROJ: return RL_OK;
  case RL_G_CAST: return interp_cast(p->v[rl_node_in(p->g, r, 0)], (rl_dtype)rl_node_type(p->g, r)->dtype, &p->v[r]);
  case RL_G_SCATTER_WINDOW: return interp_scatter(p, r);
  case RL_G_WRITE:
    RL_TRY(rl_copy(p->v[rl_node_in(p->g, r, 0)], p->v[rl_node_in(p->g, r, 1)]));
    p->v[r] = rl_tensor_retain(p->v[rl_node_in(p->g, r, 0)]);
    return RL_OK;
  case RL_G_TENSOR:
    if (!p->g->consts[n->aux]) return rl_error("the constant has no data");
    p->v[r] = rl_tensor_retain(p->g->consts[n->aux]);
    return RL_OK;
  default: return interp_row(p, r);
  }
}

static void interp_lives(interp *p) {
  const rl_graph *g = p->g;
  for (rl_ref r = 0; r < g->n; r++) {
    const rl_node *n = &g->nodes[r];
    for (int k = 0; k < n->nin; k++)
      if (g->refs[n->in + k] >= 0) p->last[g->refs[n->in + k]] = r;
  }
  for (int32_t i = 0; i < g->noutputs; i++) p->last[g->outputs[i]] = g->n;
  for (int32_t i = 0; i < g->nupdates; i++) p->last[g->updates[i].input] = p->last[g->updates[i].value] = g->n;
}

static void interp_drop(interp *p, rl_ref r) {
  if (p->v[r]) rl_tensor_release(p->v[r]);
  p->v[r] = NULL;
}

static rl_status interp_nodes(interp *p) {
  for (rl_ref r = 0; r < p->g->n; r++) {
    const rl_node *n = &p->g->nodes[r];
    if (interp_kind(p, r) != RL_OK) return interp_fail(p, r);
    for (int k = 0; k < n->nin; k++) {
      rl_ref i = p->g->refs[n->in + k];
      if (i >= 0 && p->last[i] == r) interp_drop(p, i);
    }
  }
  return RL_OK;
}

/* Values of updates are those before any update: what lies in an input's memory is copied first. */
static rl_status interp_update_values(interp *p, rl_tensor **value) {
  const rl_graph *g = p->g;
  for (int32_t i = 0; i < g->nupdates; i++) {
    rl_tensor *v = p->v[g->updates[i].value];
    bool shared = false;
    for (int32_t k = 0; k < g->ninputs; k++) shared |= p->in[k]->storage == v->storage;
    if (shared) RL_TRY(interp_cast(v, (rl_dtype)v->dtype, &value[i]));
    else value[i] = rl_tensor_retain(v);
  }
  return RL_OK;
}

static rl_status interp_updates(interp *p) {
  const rl_graph *g = p->g;
  rl_tensor **value = calloc((size_t)g->nupdates + 1, sizeof *value);
  if (!value) return rl_error_status(RL_OOM, "[graphRun] out of memory");
  rl_status s = interp_update_values(p, value);
  for (int32_t i = 0; s == RL_OK && i < g->nupdates; i++) s = rl_copy(p->v[g->updates[i].input], value[i]);
  for (int32_t i = 0; i < g->nupdates; i++)
    if (value[i]) rl_tensor_release(value[i]);
  free(value);
  return s;
}

static rl_status interp_outputs(interp *p, rl_tensor **out) {
  for (int32_t i = 0; i < p->g->noutputs; i++) {
    rl_tensor *v = p->v[p->g->outputs[i]];
    out[i] = p->taped ? rl_tensor_retain(v) : rl_tensor_alias(v);
    if (!out[i]) return RL_OOM;
    if (p->taped) continue;
    out[i]->flags &= (uint8_t)~RL_T_WEAK;
  }
  return RL_OK;
}

static rl_status interp_all(interp *p, rl_tensor **out) {
  interp_lives(p);
  rl_status s = interp_nodes(p);
  if (s == RL_OK && !p->taped) s = interp_updates(p);
  if (s == RL_OK) s = interp_outputs(p, out);
  for (rl_ref r = 0; r < p->g->n; r++) interp_drop(p, r);
  return s;
}

static rl_status interp_run(interp *p, rl_tensor **out) {
  struct rl_graph *rec = rl_self.graph;
  bool grad = rl_self.grad_disabled;
  p->v = calloc((size_t)p->g->n + 1, sizeof *p->v);
  p->last = graph_ref_array(p->g->n, -1);
  rl_status s = RL_OOM;
  if (p->v && p->last) {
    rl_generator *gen = rl_generator_default();
    if (!p->inlined) rl_self.graph = NULL;
    rl_self.grad_disabled = !p->taped;
    p->counter = gen->counter;
    s = interp_all(p, out);
    if (!p->inlined) gen->counter = p->counter + (s == RL_OK ? (uint64_t)p->g->rng_total : 0);
    rl_self.graph = rec;
    rl_self.grad_disabled = grad;
  }
  free(p->v);
  free(p->last);
  return s;
}

/* Runs the graph; input tensors are updated, the default generator advances by the graph's total. */
rl_status rl_graph_run(const rl_graph *g, rl_tensor *const *in, const double *numbers, rl_tensor **out) {
  interp p = { .g = g, .in = in, .numbers = numbers };
  return interp_run(&p, out);
}

/* Runs the graph on the tape; the default generator is put back afterwards. */
rl_status rl_graph_run_taped(const rl_graph *g, rl_tensor *const *in, const double *numbers, const rl_generator *at, rl_tensor **out) {
  interp p = { .g = g, .in = in, .numbers = numbers, .taped = true };
  rl_generator *gen = rl_generator_default(), before;
  memcpy(&before, gen, rl_generator_bytes(gen));
  memcpy(gen, at, rl_generator_bytes(at));
  rl_status s = interp_run(&p, out);
  memcpy(gen, &before, rl_generator_bytes(&before));
  return s;
}

/* Records the graph's ops into the graph that is being recorded. */
rl_status rl_graph_inline(const rl_graph *g, rl_tensor *const *in, rl_tensor *const *numbers, rl_tensor **out) {
  interp p = { .g = g, .in = in, .numbered = numbers, .inlined = true };
  if (g->nupdates || g->rng_total) return rl_error("[inline] the graph changes an input or draws random numbers");
  return interp_run(&p, out);
}
