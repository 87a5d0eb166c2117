/* Assemble: sums of slices' gradients side by side become one cat (graph -> graph).
 *
 * The gradient of a slice is the slice's in zeros of the whole's size. A recurrent layer adds one for every step, a layer with gates one for
 * every gate: as many wholes as there are pieces. Pieces that do not meet are laid next to each other instead, zeros where there is none. */
#include "impl.h"
#include <stdlib.h>
#include <string.h>

typedef struct assemble {
  const rl_graph *old;
  rl_graph *g;
  rl_ref *map, *user, *leaf, *stack;
  int32_t *sid, *uses;
} assemble;

typedef struct piece {
  int64_t start, len;
  rl_ref x;
} piece;

static void count_uses(assemble *s) {
  const rl_graph *o = s->old;
  for (rl_ref r = 0; r < o->n; r++)
    for (int k = 0; k < o->nodes[r].nin; k++) {
      rl_ref p = o->refs[o->nodes[r].in + k];
      if (p >= 0) s->uses[p]++, s->user[p] = r;
    }
  for (int32_t i = 0; i < o->noutputs; i++) s->uses[o->outputs[i]] += 2;
  for (int32_t i = 0; i < o->nupdates; i++) s->uses[o->updates[i].value] += 2;
}

static bool is_sum(const assemble *s, rl_ref r, const rl_type *t) {
  return s->old->nodes[r].op == RL_OP_ADD && graph_type_same(rl_node_type(s->old, r), t);
}

/* Whether the sum is a term of another one alone. */
static bool is_term(const assemble *s, rl_ref r) { return s->uses[r] == 1 && is_sum(s, s->user[r], rl_node_type(s->old, r)); }

/* The terms of sum r in order; returns their number. */
static int terms(assemble *s, rl_ref r) {
  const rl_type *t = rl_node_type(s->old, r);
  int n = 0, k = 0;
  s->stack[k++] = r;
  while (k) {
    rl_ref p = s->stack[--k];
    if (p == r || (is_sum(s, p, t) && s->uses[p] == 1)) {
      s->stack[k++] = rl_node_in(s->old, p, 1);
      s->stack[k++] = rl_node_in(s->old, p, 0);
    } else s->leaf[n++] = p;
  }
  return n;
}

/* The piece that a term is along dimension dim (any while *dim < 0), false: none. */
static bool piece_of(const assemble *s, rl_ref r, const rl_type *t, int *dim, piece *p) {
  const rl_attrs *a = graph_node_attrs(s->old, r);
  if (s->old->nodes[r].op != RL_OP_SLICE_GRAD || !a || a->v[2].i != 1 || !graph_type_same(rl_node_type(s->old, r), t)) return false;
  if (*dim >= 0 && a->v[0].i != *dim) return false;
  *dim = (int)a->v[0].i;
  *p = (piece){ a->v[1].i, rl_node_type(s->old, rl_node_in(s->old, r, 0))->size[*dim], rl_node_in(s->old, r, 0) };
  return p->len > 0;
}

static bool meets(const piece *p, int n, const piece *q) {
  for (int i = 0; i < n; i++)
    if (p[i].start < q->start + q->len && q->start < p[i].start + p[i].len) return true;
  return false;
}

static int by_start(const void *a, const void *b) {
  const piece *x = a, *y = b;
  return x->start < y->start ? -1 : x->start > y->start;
}

static rl_ref zeros(assemble *s, rl_type t, int dim, int64_t len) {
  rl_ref z = graph_emit_const(s->g, (rl_dtype)t.dtype, (rl_device)t.device, 0, 0);
  t.size[dim] = len;
  return z < 0 ? -1 : graph_emit_expand(s->g, z, t.ndim, t.size);
}

/* Pieces in order -> cat. */
static rl_ref lay(assemble *s, const rl_type *t, int dim, piece *p, int n) {
  rl_ref *in = graph_ref_array(2 * n + 1, -1), r = -1;
  int64_t at = 0;
  int k = 0;
  bool ok = in != NULL;
  qsort(p, (size_t)n, sizeof *p, by_start);
  for (int i = 0; ok && i <= n; i++) {
    int64_t next = i < n ? p[i].start : t->size[dim];
    if (next > at) ok = (in[k++] = zeros(s, *t, dim, next - at)) >= 0;
    if (i < n) in[k++] = s->map[p[i].x], at = p[i].start + p[i].len;
  }
  if (ok) {
    rl_attrs a;
    rl_type whole = *t;
    whole.weak = 0;
    rl_attrs_default(RL_OP_CAT, &a);
    a.v[0].i = dim;
    r = graph_emit(s->g, RL_OP_CAT, &whole, in, k, &a);
  }
  free(in);
  return r;
}

/* Sum r of n terms with its pieces laid together: *out -1 when fewer than two lie side by side. */
static bool rebuild(assemble *s, rl_ref r, int n, rl_ref *out) {
  const rl_type *t = rl_node_type(s->old, r);
  piece *p = malloc(sizeof *p * (size_t)n);
  int dim = -1, np = 0, rest = 0;
  *out = -1;
  if (!p) return false;
  for (int i = 0; i < n; i++) {
    int d = dim;
    piece q;
    if (piece_of(s, s->leaf[i], t, &d, &q) && !meets(p, np, &q)) dim = d, p[np++] = q;
    else s->leaf[rest++] = s->leaf[i];
  }
  bool ok = true;
  if (np > 1) {
    *out = lay(s, t, dim, p, np);
    for (int i = 0; i < rest && *out >= 0; i++) {
      rl_ref in[2] = { *out, s->map[s->leaf[i]] };
      rl_type whole = *t;
      *out = graph_emit(s->g, RL_OP_ADD, &whole, in, 2, graph_node_attrs(s->old, r));
    }
    ok = *out >= 0;
  }
  free(p);
  return ok;
}

static bool node(assemble *s, rl_ref r) {
  const rl_type *t = rl_node_type(s->old, r);
  if (is_sum(s, r, t) && !is_term(s, r)) {
    rl_ref out;
    if (!rebuild(s, r, terms(s, r), &out)) return false;
    if (out >= 0) return s->map[r] = out, true;
  }
  return graph_copy_node(s->g, s->old, r, s->map, s->sid);
}

static bool ends(assemble *s) {
  const rl_graph *o = s->old;
  bool ok = true;
  for (int32_t i = 0; ok && i < o->noutputs; i++) ok = GRAPH_PUSH(s->g->outputs, s->g->noutputs, s->g->capoutputs, s->map[o->outputs[i]]);
  for (int32_t i = 0; ok && i < o->nupdates; i++) {
    rl_update u = { s->map[o->updates[i].input], s->map[o->updates[i].value] };
    ok = GRAPH_PUSH(s->g->updates, s->g->nupdates, s->g->capupdates, u);
  }
  s->g->rng_total = o->rng_total;
  s->g->functional = o->functional;
  s->g->primitive = o->primitive;
  return ok;
}

/* The graph with such sums as cats; NULL with a message when it fails. */
rl_graph *rl_pass_assemble(const rl_graph *old) {
  assemble s = { .old = old, .g = rl_graph_new() };
  size_t n = (size_t)old->n + 1;
  s.map = graph_ref_array(old->n, -1), s.user = graph_ref_array(old->n, -1), s.sid = graph_ref_array(old->nstorages, -1);
  s.leaf = graph_ref_array(2 * old->n + 2, -1), s.stack = graph_ref_array(2 * old->n + 2, -1), s.uses = calloc(n, sizeof *s.uses);
  bool ok = s.g && s.map && s.user && s.sid && s.leaf && s.stack && s.uses;
  if (ok) count_uses(&s);
  for (rl_ref r = 0; ok && r < old->n; r++) ok = node(&s, r);
  ok = ok && ends(&s);
  rl_graph *pruned = ok ? graph_prune(s.g) : NULL;
  free(s.map);
  free(s.user);
  free(s.sid);
  free(s.leaf);
  free(s.stack);
  free(s.uses);
  rl_graph_free(s.g);
  return pruned;
}
