/* Passes: the one ordered list (recorded graph -> functional primitive graph that a backend compiles). */
#include "impl.h"
#include <stdio.h>
#include <stdlib.h>

static const struct {
  const char *name;
  rl_graph *(*run)(const rl_graph *);
} pass_list[] = {
  { "functionalize", rl_pass_functionalize }, { "decompose", rl_pass_decompose }, { "fold", rl_pass_fold },
  { "assemble", rl_pass_assemble },           { "fold", rl_pass_fold }, /* a window known now may be what a rule before waited for */
};

static void pass_show(const char *name, const rl_graph *g) {
  char *text = rl_graph_print(g);
  if (text) fprintf(stderr, "-- %s (%d nodes)\n%s", name, g->n, text);
  free(text);
}

/* Prints under RELUME_DEBUG=5, verifies under RELUME_CHECK=1. */
static rl_status pass_check(const char *name, const rl_graph *g) {
  if (rl_env_int(RL_ENV_DEBUG) >= 5) pass_show(name, g);
  if (!rl_env_int(RL_ENV_CHECK)) return RL_OK;
  if (rl_graph_verify(g) == RL_OK) return RL_OK;
  char m[512];
  snprintf(m, sizeof m, "%s", rl_error_message());
  return rl_error("[%s] left a bad graph: %s", name, m);
}

/* What reaches a backend: rows of the closed set (a view is its geometry, whatever its name) and the graph's own kinds but write. */
static rl_status pass_closed(const rl_graph *g) {
  for (rl_ref r = 0; r < g->n; r++) {
    int op = g->nodes[r].op;
    bool row = op < RL_NOP && (rl_ops[op].kind == RL_K_VIEW || (rl_ops[op].flags & RL_OPF_PRIM));
    if (!row && (op < RL_NOP || op == RL_G_WRITE))
      return rl_error("[graph] %%%d = %s reaches the backend, which takes primitives", r, rl_node_name(op));
  }
  return RL_OK;
}

/* The functional primitive graph of a recorded graph, which stays as it is; NULL with a message when a pass fails. */
rl_graph *rl_pass_run(const rl_graph *g) {
  const rl_graph *at = g;
  if (pass_check("record", g) != RL_OK) return NULL;
  for (size_t i = 0; i < sizeof pass_list / sizeof *pass_list; i++) {
    rl_graph *next = pass_list[i].run(at);
    if (at != g) rl_graph_free((rl_graph *)at);
    if (!next) return NULL;
    if (pass_check(pass_list[i].name, next) != RL_OK) {
      rl_graph_free(next);
      return NULL;
    }
    at = next;
  }
  if (at != g && pass_closed(at) != RL_OK) {
    rl_graph_free((rl_graph *)at);
    return NULL;
  }
  return (rl_graph *)at;
}
