/* Codegen: the stages in order: nodes, fuse, order, loop form, places, text (graph -> program). */
#include "codegen.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "add,mul,sum" of a group's members, counts for repeats. */
static char *group_label(const cg *c, const cg_group *g) {
  char text[400] = "";
  size_t n = 0;
  for (int i = 0; i < g->n && n < sizeof text - 40; i++) {
    const cg_node *k = &c->node[g->node[i]];
    const char *name = cg_name(k);
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? "," : "", name);
  }
  if (n >= sizeof text - 40) strcat(text, ",...");
  return strdup(text);
}

static int64_t call_flops(const cg *c, const cg_node *n) {
  const char *name = rl_node_name(n->op);
  int64_t out = cg_numel(&n->type);
  if (!strcmp(name, "matmul")) return 2 * out * c->node[n->in[0]].type.size[c->node[n->in[0]].type.ndim - 1];
  if (!strcmp(name, "conv2d")) {
    const rl_type *w = &c->node[n->in[1]].type;
    return 2 * out * w->size[1] * w->size[2] * w->size[3];
  }
  if (!strcmp(name, "conv2d_dx") || !strcmp(name, "conv2d_dw")) {
    const rl_type *g = &c->node[n->in[0]].type, *w = !strcmp(name, "conv2d_dx") ? &c->node[n->in[1]].type : &n->type;
    return 2 * cg_numel(g) * w->size[1] * w->size[2] * w->size[3];
  }
  return out;
}

static int64_t call_bytes(const cg *c, const cg_node *n) {
  int64_t b = cg_numel(&n->type) * rl_dtypes[n->type.dtype].bytes;
  for (int k = 0; k < n->nin; k++)
    if (n->in[k] >= 0) b += cg_numel(&c->node[n->in[k]].type) * rl_dtypes[c->node[n->in[k]].type.dtype].bytes;
  return b;
}

static rl_status make_launch(cg_program *p, int o, lp_kernel *k) {
  cg *c = &p->c;
  const cg_group *g = &c->group[c->order[o]];
  cg_launch *l = &p->launch[p->nlaunch++];
  memset(l, 0, sizeof *l);
  l->call = g->call;
  if (g->call) {
    l->node = g->node[0];
    l->label = strdup(cg_name(&c->node[l->node]));
    l->flops = call_flops(c, &c->node[l->node]);
    l->bytes = call_bytes(c, &c->node[l->node]);
    return RL_OK;
  }
  RL_TRY(lp_build(c, c->order[o], k));
  k->id = l->kernel = o;
  if (p->cuda) cg_cuda_plan(c, k, &l->plan);
  l->flops = k->flops;
  l->bytes = k->bytes;
  l->label = group_label(c, g);
  return RL_OK;
}

static rl_status print_cuda(cg_program *p, lp_kernel *k) {
  cg_text t = { 0 };
  cg_print_cuda_prologue(&t, p->c.strict);
  for (int o = 0; o < p->nlaunch; o++)
    if (!p->launch[o].call) RL_TRY(cg_print_cuda(&t, &p->c, &k[o], &p->launch[o].plan, &p->launch[o].grid));
  p->source = t.bad ? NULL : t.p;
  return RL_OK;
}

static void print_source(cg_program *p, const lp_kernel *k) {
  cg_text t = { .sites = p->c.sized ? &p->sites : NULL };
  bool any = false;
  cg_print_prologue(&t);
  for (int o = 0; o < p->nlaunch; o++) {
    if (p->launch[o].call) continue;
    cg_put(&t, "\n\f/* %s */\n", p->launch[o].label);
    cg_print_kernel(&t, &p->c, &k[o]);
    any = true;
  }
  if (!any) {
    free(t.p);
    p->source = strdup("");
    return;
  }
  p->source = t.bad ? NULL : t.p;
  if (t.bad) free(t.p);
}

static rl_status compile_all(cg_program *p, lp_kernel **kernels) {
  cg *c = &p->c;
  RL_TRY(cg_nodes(c));
  RL_TRY(cg_fuse(c));
  RL_TRY(cg_order(c));
  p->launch = calloc((size_t)c->norder + 1, sizeof *p->launch);
  *kernels = calloc((size_t)c->norder + 1, sizeof **kernels);
  if (!p->launch || !*kernels) return rl_error_status(RL_OOM, "[compile] out of memory");
  for (int o = 0; o < c->norder; o++) {
    RL_TRY(make_launch(p, o, &(*kernels)[o]));
    if (cg_choices_misfit(c)) return rl_error("[compile] other sizes");
  }
  RL_TRY(cg_arena(c));
  if (p->cuda) RL_TRY(print_cuda(p, *kernels));
  else print_source(p, *kernels);
  return p->source ? RL_OK : rl_error_status(RL_OOM, "[compile] out of memory");
}

/* Where the graph's tensors are; numbers and single elements of the host go along with a GPU. */
static rl_status find_device(const rl_graph *g, bool *cuda) {
  bool host = false;
  for (int i = 0; i < g->ninputs; i++) {
    const rl_type *t = rl_node_type(g, g->inputs[i]);
    if (t->device == RL_CUDA) *cuda = true;
    else host = true;
  }
  for (int i = 0; i < g->n && !g->ninputs; i++) *cuda = *cuda || rl_node_type(g, i)->device == RL_CUDA;
  for (int i = 0; i < g->nconsts && *cuda; i++) host = host || g->consts[i]->device == RL_CPU;
  if (*cuda && host) return rl_error("[compile] tensors on two devices; got CPU and CUDA tensors, need one device");
  return RL_OK;
}

bool cg_on_gpu(const rl_graph *g) {
  bool cuda = false;
  return find_device(g, &cuda) != RL_OK || cuda;
}

/* Compiles the graph to C or CUDA C; the graph must outlive the program. */
rl_status cg_compile(const rl_graph *g, bool strict, cg_choices *choices, cg_program *out) {
  lp_kernel *k = NULL;
  memset(out, 0, sizeof *out);
  RL_TRY(find_device(g, &out->cuda));
  out->c.g = g;
  out->c.strict = strict;
  out->c.cuda = out->cuda;
  out->c.choices = choices;
  out->c.sized = choices != NULL;
  rl_status s = compile_all(out, &k);
  out->c.choices = NULL;
  for (int i = 0; k && i < out->c.norder; i++) lp_free(&k[i]);
  free(k);
  if (s != RL_OK) cg_program_free(out);
  return s;
}

void cg_program_free(cg_program *p) {
  for (int i = 0; i < p->nlaunch; i++) {
    free(p->launch[i].label);
    free(p->launch[i].q);
    free(p->launch[i].w);
    free(p->launch[i].grid.buf);
    free(p->launch[i].grid.rng);
  }
  free(p->sites.v);
  free(p->launch);
  free(p->source);
  cg_free(&p->c);
  memset(p, 0, sizeof *p);
}
