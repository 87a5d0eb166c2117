/* Computing again (nodes -> nodes): a large value that kernels behind a library call want is made there from what is in memory anyway.
 *
 * The softmax of attention is wanted before the product with the values and again by its gradient; GELU's derivative is made with GELU and wanted by
 * the backward pass. Between the two stands a call, so one kernel cannot hold both, and the value would be written and read. Its operands (the
 * scores, a row's largest element and sum) lie in memory either way and are no larger:
 *
 *   1. A user is far when a path from the value to it leads through a call. There must be a near one as well: else nothing is computed twice.
 *   2. Leaves are what is in memory (inputs, results of calls, outputs), reductions and what is small beside the value. Together they are at most
 *      as large as the value, and at most OPS operations lead from them to it.
 *   3. A value that a call or an output reads is in memory itself and stays. */
#include <stdlib.h>
#include <string.h>
#include "../graph/impl.h"
#include "cg.h"

enum { LEAST = 1 << 18, SMALL = 64, OPS = 24 };

typedef struct again {
  cg *c;
  int *copy;   /* by node: its copy for the users in question, -1 */
  char *state; /* by node: 1 depends on the value, 2 through a call */
  int64_t whole, bytes;
  int ops;
} again;

static bool is_output(const cg *c, int buf) {
  for (int i = 0; i < c->g->noutputs; i++)
    if (c->node[c->g->outputs[i]].buf == buf) return true;
  return false;
}

static int64_t bytes_of(const cg_node *n) { return cg_numel(&n->type) * rl_dtypes[n->type.dtype].bytes; }

static bool repeats(const cg_node *n) {
  return n->kind == CG_PW && n->nout == 1 && !n->ndep && n->nin > 0 && !graph_is_random(n->op) && !cg_is_gather(n) && n->op != CG_OP_PICK;
}

/* Counts what value i costs; false when it cannot be had. */
static bool cost(again *a, int i) {
  const cg *c = a->c;
  int r = cg_root(c, i);
  const cg_node *n = &c->node[r];
  if (n->uniform || (n->kind == CG_SRC && n->op != RL_G_INPUT)) return true;
  if (n->kind == CG_NONE || n->kind == CG_STORE) return false;
  if (n->kind != CG_PW || is_output(c, n->buf) || cg_numel(&n->type) <= a->whole / SMALL) {
    a->bytes += bytes_of(n);
    return a->bytes <= a->whole * 4 + a->whole / SMALL * 8;
  }
  if (r != i || !repeats(n) || ++a->ops > OPS) return false;
  for (int k = 0; k < n->nin; k++)
    if (n->in[k] >= 0 && !cost(a, n->in[k])) return false;
  return true;
}

static int copied(again *a, int i) {
  cg *c = a->c;
  int r = cg_root(c, i), in[8], m;
  const cg_node *n = &c->node[r];
  if (n->uniform || n->kind != CG_PW || is_output(c, n->buf) || cg_numel(&n->type) <= a->whole / SMALL) return i;
  if (a->copy[r] >= 0) return a->copy[r];
  int nin = n->nin;
  if (nin > 8) return -1;
  for (int k = 0; k < nin; k++) {
    in[k] = c->node[r].in[k];
    if (in[k] >= 0 && (in[k] = copied(a, in[k])) < 0) return -1;
  }
  if ((m = cg_repeat(c, r, in)) >= 0) a->copy[r] = m;
  return m;
}

static void reach(again *a, int value) {
  const cg *c = a->c;
  bool more = true;
  memset(a->state, 0, (size_t)c->n);
  a->state[value] = 1;
  for (int sweep = 0; more && sweep < 8; sweep++) {
    more = false;
    for (int i = 0; i < c->n; i++) {
      const cg_node *n = &c->node[i];
      char s = a->state[i];
      if (n->absent || i == value) continue;
      for (int k = 0; k < n->nin; k++) s = (char)(n->in[k] >= 0 ? RL_MAX(s, a->state[n->in[k]]) : s);
      for (int k = 0; k < n->ndep; k++) s = RL_MAX(s, a->state[n->dep[k]]);
      if (s && n->kind == CG_CALL) s = 2;
      more = more || s != a->state[i];
      a->state[i] = s;
    }
  }
}

/* Whether the users of value i are such that copies for the far ones save its memory. */
static bool worthwhile(const again *a, int i) {
  const cg *c = a->c;
  int near = 0, far = 0;
  for (int k = 0; k < c->n; k++) {
    const cg_node *n = &c->node[k];
    if (n->absent || n->kind == CG_VIEW) continue;
    for (int q = 0; q < n->nin; q++) {
      if (n->in[q] < 0 || cg_root(c, n->in[q]) != i) continue;
      if (n->kind != CG_PW && n->kind != CG_RED && n->kind != CG_STORE) return false;
      if (a->state[k] == 2 && n->in[q] != i) return false;
      *(a->state[k] == 2 ? &far : &near) += 1;
    }
  }
  return near && far;
}

/* The first call on a path from the value to its far user k: no other far user stands before it. */
static int call_before(const again *a, int k) {
  const cg *c = a->c;
  for (int next = k; next >= 0;) {
    const cg_node *n = &c->node[k = next];
    next = -1;
    for (int q = 0; q < n->nin; q++)
      if (n->in[q] >= 0 && a->state[n->in[q]] == 2) next = n->in[q];
    for (int q = 0; q < n->ndep; q++)
      if (a->state[n->dep[q]] == 2) next = n->dep[q];
  }
  return k;
}

static rl_status consider(again *a, int i) {
  cg *c = a->c;
  const cg_node *n = &c->node[i];
  int last = c->n, call = -1, m;
  if (n->absent || !repeats(n) || n->uniform || n->type.dtype != RL_F32 || cg_numel(&n->type) < LEAST || is_output(c, n->buf)) return RL_OK;
  a->whole = cg_numel(&n->type), a->bytes = 0, a->ops = 1;
  for (int k = 0; k < n->nin; k++)
    if (n->in[k] >= 0 && !cost(a, n->in[k])) return RL_OK;
  reach(a, i);
  if (!worthwhile(a, i)) return RL_OK;
  for (int k = 0; k < last; k++) a->copy[k] = -1;
  if ((m = copied(a, i)) < 0) return RL_OOM;
  for (int k = 0; k < last; k++)
    for (int q = 0; q < c->node[k].nin && a->state[k] == 2 && !c->node[k].absent; q++)
      if (c->node[k].in[q] == i) {
        if (call < 0) call = call_before(a, k);
        c->node[k].in[q] = m;
      }
  /* They wait for the call: what shares their operands before it is not their kernel. */
  for (int k = last; k < c->n && call >= 0; k++)
    if (!cg_add_dep(c, k, call)) return RL_OOM;
  return RL_OK;
}

rl_status cg_compute_again(cg *c) {
  int n = c->n;
  rl_status s = RL_OK;
  for (int i = n - 1; i >= 0 && s == RL_OK; i--) {
    again a = { .c = c, .copy = malloc(sizeof(int) * (size_t)c->n), .state = malloc((size_t)c->n) };
    s = a.copy && a.state ? consider(&a, i) : rl_error_status(RL_OOM, "[compile] out of memory");
    free(a.copy);
    free(a.state);
  }
  return s;
}
