/* Absent: a backward graph without the cotangents that nobody gave (graph, inputs that are absent -> smaller graph).
 * What depends on cotangents is linear in them, so a node all of whose cotangents are absent is zero. It is left out, as eager leaves it out: computing
 * it would give NaN where a derivative is infinite. Zeros stand for it only where it meets a gradient that is there. */
#include "impl.h"
#include <stdlib.h>

typedef struct absent {
  const rl_graph *old;
  rl_graph *g;
  char *tangent, *zero;
  rl_ref *map;
  int32_t *sid;
} absent;

static void absent_marks(absent *a, int first, const char *gone) {
  const rl_graph *o = a->old;
  for (int32_t i = first; i < o->ninputs; i++) {
    a->tangent[o->inputs[i]] = 1;
    a->zero[o->inputs[i]] = gone[i];
  }
  for (rl_ref r = 0; r < o->n; r++) {
    bool any = false;
    for (int k = 0; k < o->nodes[r].nin; k++) {
      rl_ref i = rl_node_in(o, r, k);
      if (i < 0 || !a->tangent[i]) continue;
      a->tangent[r] = 1;
      any |= !a->zero[i];
    }
    if (o->nodes[r].op != RL_G_INPUT) a->zero[r] = a->tangent[r] && !any;
  }
}

static rl_ref absent_zeros(absent *a, rl_ref r) {
  const rl_type *t = rl_node_type(a->old, r);
  return graph_emit_copy(a->g, graph_emit_expand(a->g, graph_emit_const(a->g, (rl_dtype)t->dtype, (rl_device)t->device, 0, 0), t->ndim, t->size));
}

static bool absent_node(absent *a, rl_ref r) {
  const rl_graph *o = a->old;
  if (a->zero[r]) return true;
  for (int k = 0; k < o->nodes[r].nin; k++) {
    rl_ref i = rl_node_in(o, r, k);
    if (i >= 0 && a->map[i] < 0 && (a->map[i] = absent_zeros(a, i)) < 0) return false;
  }
  return graph_copy_node(a->g, o, r, a->map, a->sid);
}

static bool absent_ends(absent *a, char *gone) {
  const rl_graph *o = a->old;
  for (int32_t i = 0; i < o->noutputs; i++) {
    gone[i] = a->zero[o->outputs[i]];
    if (!gone[i] && !GRAPH_PUSH(a->g->outputs, a->g->noutputs, a->g->capoutputs, a->map[o->outputs[i]])) return false;
  }
  a->g->functional = true;
  a->g->rng_total = o->rng_total;
  a->g->primitive = o->primitive;
  return true;
}

/* The smaller graph, which updates nothing; NULL with a message when memory is out. */
rl_graph *rl_pass_absent(const rl_graph *g, int first, const char *missing, char *gone) {
  absent a = { .old = g, .g = rl_graph_new() };
  a.tangent = calloc((size_t)g->n + 1, 1);
  a.zero = calloc((size_t)g->n + 1, 1);
  a.map = graph_ref_array(g->n, -1);
  a.sid = graph_ref_array(g->nstorages, -1);
  bool ok = a.g && a.tangent && a.zero && a.map && a.sid;
  if (ok) absent_marks(&a, first, missing);
  for (rl_ref r = 0; ok && r < g->n; r++) ok = absent_node(&a, r);
  ok = ok && absent_ends(&a, gone);
  free(a.tangent);
  free(a.zero);
  free(a.map);
  free(a.sid);
  rl_graph *out = ok ? graph_prune(a.g) : NULL;
  rl_graph_free(a.g);
  return out;
}
