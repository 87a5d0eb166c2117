/* Nodes: what each graph node is to the code generator, windows as stores, updates as stores (graph -> nodes).
 *
 * scatter_window and cat become CG_STORE nodes that write windows, and a CG_JOIN that stands for the result. An update is a CG_STORE into an
 * input's storage that must run after every reader of the old content. A matmul whose whole result is stored is placed there instead. */
#include "cg.h"
#include "../graph/impl.h"
#include "../tensor/random.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(void *array, int n, int *cap, size_t elem) {
  if (n < *cap) return true;
  int want = *cap ? *cap * 2 : 64;
  void *old, *p;
  memcpy(&old, array, sizeof old);
  p = realloc(old, (size_t)want * elem);
  if (!p) {
    rl_error_status(RL_OOM, "[compile] out of memory");
    return false;
  }
  memset((char *)p + (size_t)*cap * elem, 0, (size_t)(want - *cap) * elem);
  memcpy(array, &p, sizeof p);
  *cap = want;
  return true;
}

void cg_note(cg *c, const char *fmt, ...) {
  char line[512];
  if (rl_env_int(RL_ENV_DEBUG) < 3) return;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  size_t have = c->why ? strlen(c->why) : 0;
  char *p = realloc(c->why, have + strlen(line) + 2);
  if (!p) return;
  c->why = p;
  sprintf(p + have, "%s\n", line);
}

bool cg_add_dep(cg *c, int node, int before) {
  cg_node *n = &c->node[node];
  for (int i = 0; i < n->ndep; i++)
    if (n->dep[i] == before) return true;
  if (!grow(&n->dep, n->ndep, &n->capdep, sizeof(int))) return false;
  n->dep[n->ndep++] = before;
  return true;
}

/* The node that makes the elements a node shows. */
int cg_root(const cg *c, int i) { return c->node[i].kind == CG_VIEW ? c->buf[c->node[i].buf].root : i; }

static int add_buf(cg *c, rl_dtype dt, int64_t size, int root) {
  if (!grow(&c->buf, c->nbuf, &c->capbuf, sizeof(cg_buf))) return -1;
  c->buf[c->nbuf] = (cg_buf){ .dt = dt, .size = size, .root = root, .index = -1, .first = -1, .last = -1 };
  return c->nbuf++;
}

/* Appends a node of our own: geometry dense in a new buffer unless buf is given. The type may be that of a node, which moves when the array grows. */
static int add_node(cg *c, int op, cg_kind kind, const rl_type *of, const int *in, int nin, int buf) {
  const rl_type own = *of, *t = &own;
  if (!grow(&c->node, c->n, &c->cap, sizeof(cg_node))) return -1;
  cg_node *n = &c->node[c->n];
  memset(n, 0, sizeof *n);
  n->op = (uint16_t)op;
  n->kind = (uint8_t)kind;
  n->nout = 1;
  n->type = *t;
  n->type.weak = 0;
  n->group = -1;
  n->ref = -1;
  n->in = malloc(sizeof(int) * (size_t)(nin + 1));
  if (!n->in) {
    rl_error_status(RL_OOM, "[compile] out of memory");
    return -1;
  }
  memcpy(n->in, in, sizeof(int) * (size_t)nin);
  n->nin = nin;
  cg_acc_dense(t, &n->geom);
  n->buf = buf >= 0 ? buf : add_buf(c, (rl_dtype)t->dtype, cg_numel(t), c->n);
  if (n->buf < 0) return -1;
  n->pbuf = n->buf;
  n->pgeom = n->geom;
  return c->n++;
}

int cg_repeat(cg *c, int i, const int *in) {
  int m = add_node(c, c->node[i].op, CG_PW, &c->node[i].type, in, c->node[i].nin, -1);
  if (m < 0) return -1;
  c->node[m].at = c->node[i].at;
  c->node[m].rng = c->node[i].rng;
  c->node[m].aux = c->node[i].aux;
  return m;
}

bool cg_named(int op, const char *name) { return op < RL_NOP && !strcmp(rl_ops[op].name, name); }
#define is_op cg_named

const char *cg_name(const cg_node *n) {
  return n->relu ? "conv2d,relu" : n->kind == CG_STORE ? "store" : n->op == CG_OP_PICK ? "pick" : rl_node_name(n->op);
}

/* Counter-based draws are elementwise; draws that must run in program order are calls. */
static bool is_random_pw(int op) { return (is_op(op, "rand") || is_op(op, "randn")) && !rl_random_sequential(); }

static cg_kind kind_of(const rl_node *n) {
  switch (n->op) {
  case RL_G_INPUT:
  case RL_G_NUMBER:
  case RL_G_CONST:
  case RL_G_TENSOR:
  case RL_G_EMPTY: return CG_SRC;
  case RL_G_PROJ: return CG_CALL;
  case RL_G_CAST: return CG_PW;
  case RL_G_SCATTER_WINDOW: return CG_JOIN;
  case RL_G_WRITE: return CG_CALL;
  default: break;
  }
  if (is_op(n->op, "cat")) return CG_JOIN;
  if (is_random_pw(n->op)) return CG_PW;
  if (is_op(n->op, "full") || is_op(n->op, "iota") || is_op(n->op, "reshape")) return CG_PW;
  if (is_op(n->op, "gather") || is_op(n->op, "index_select")) return CG_PW;
  if (is_op(n->op, "argmax") || is_op(n->op, "argmin")) return CG_CALL;
  switch (rl_ops[n->op].kind) {
  case RL_K_EW: return rl_ops[n->op].expr ? CG_PW : CG_CALL;
  case RL_K_RED: return rl_ops[n->op].expr ? CG_RED : CG_CALL;
  case RL_K_VIEW: return CG_VIEW;
  default: return CG_CALL;
  }
}

static rl_status check_root(const cg *c, const cg_node *n) {
  (void)c;
  if (n->kind == CG_VIEW || n->kind == CG_SRC) return RL_OK;
  if (!cg_dense(&n->geom) || n->geom.offset) return rl_error("[compile] %s has a result that is not dense", rl_node_name(n->op));
  return RL_OK;
}

static rl_status copy_node(cg *c, rl_ref r) {
  const rl_graph *g = c->g;
  const rl_node *gn = &g->nodes[r];
  if (gn->op == RL_G_WRITE) return rl_error("[compile] the graph is not functional: node %d writes", r);
  int in[64], *list = in;
  if (gn->nin > 64 && !(list = malloc(sizeof(int) * (size_t)gn->nin))) return rl_error_status(RL_OOM, "[compile] out of memory");
  for (int k = 0; k < gn->nin; k++) list[k] = g->refs[gn->in + k];
  int i = add_node(c, gn->op, kind_of(gn), rl_node_type(g, r), list, gn->nin, gn->storage);
  if (list != in) free(list);
  if (i < 0) return RL_OOM;
  cg_node *n = &c->node[i];
  n->type.weak = rl_node_type(g, r)->weak;
  n->geom = n->pgeom = g->geoms[gn->geom];
  n->nout = gn->nout;
  n->at = gn->attrs < 0 ? NULL : &g->attrs[gn->attrs];
  n->rng = gn->rng;
  n->aux = gn->aux;
  n->ref = r;
  if (n->kind != CG_SRC && n->kind != CG_VIEW && cg_numel(&n->type) == 0 && n->op != RL_G_PROJ && n->nout == 1) n->kind = CG_NONE;
  if (n->kind == CG_RED && cg_numel(&c->node[n->in[0]].type) == 0) {
    n->kind = CG_PW;
    n->nin = 0;
  } /* nothing to combine: the initial value */
  cg_buf *b = &c->buf[n->buf];
  if (b->root < 0 && n->kind != CG_VIEW) {
    b->root = i;
    b->dt = (rl_dtype)n->type.dtype;
    b->size = cg_numel(&n->type);
  }
  return check_root(c, n);
}

static rl_status source_places(cg *c) {
  const rl_graph *g = c->g;
  for (int i = 0; i < c->n; i++) {
    cg_node *n = &c->node[i];
    cg_buf *b = &c->buf[n->buf];
    if (n->op == RL_G_INPUT) {
      b->place = CG_P_INPUT;
      if (b->index < 0) b->index = n->aux;
      b->size = g->input_storage_size[n->aux];
    } else if (n->op == RL_G_TENSOR) {
      rl_tensor *t = g->consts[n->aux];
      b->place = CG_P_CONST;
      b->real = t;
      b->size = t->storage ? t->storage->size : 0;
      n->geom.offset = t->offset;
      memcpy(n->geom.stride, t->stride, sizeof(int64_t) * (size_t)t->ndim);
      n->pgeom = n->geom;
    }
  }
  return RL_OK;
}

/* ---- order ---- */

/* Nodes that must have run before i, with joins and empty stores looked through. */
static void preds_visit(const cg *c, int i, bool *seen, void (*f)(void *ud, int p), void *ud) {
  const cg_node *n = &c->node[i];
  for (int k = 0; k < n->nin + n->ndep; k++) {
    int p = k < n->nin ? n->in[k] : n->dep[k - n->nin];
    if (p < 0) continue;
    p = cg_root(c, p);
    if (seen[p]) continue;
    seen[p] = true;
    f(ud, p);
  }
}

typedef struct walk {
  const cg *c;
  bool *seen;
  int *stack;
  int n;
} walk;
static void walk_push(void *ud, int p) {
  walk *w = ud;
  w->stack[w->n++] = p;
}

/* Whether `to` needs `from` to have run. */
bool cg_reaches(const cg *c, int from, int to) {
  walk w = { c, calloc((size_t)c->n, 1), malloc(sizeof(int) * (size_t)(c->n + 1)), 0 };
  bool found = false;
  if (w.seen && w.stack) {
    w.stack[w.n++] = to;
    w.seen[to] = true;
    while (w.n && !found) {
      int i = w.stack[--w.n];
      if (i == from) found = true;
      else preds_visit(c, i, w.seen, walk_push, &w);
    }
  }
  free(w.seen);
  free(w.stack);
  return found;
}

/* ---- windows ---- */

static int64_t geom_last(const rl_geom *ge) {
  int64_t last = ge->offset;
  for (int d = 0; d < ge->ndim; d++) {
    if (!ge->size[d]) return ge->offset - 1;
    last += (ge->size[d] - 1) * ge->stride[d];
  }
  return last;
}

static bool windows_overlap(const rl_geom *a, const rl_geom *b) { return a->offset <= geom_last(b) && b->offset <= geom_last(a); }

static int add_store(cg *c, int value, int buf, const rl_geom *win) {
  rl_type t = c->node[value].type;
  const rl_geom window = *win; /* it may be a node's, which moves when the array grows */
  if (cg_numel(&t) == 0) return -2;
  t.dtype = (uint8_t)c->buf[buf].dt;
  int s = add_node(c, RL_G_CAST, CG_STORE, &t, &value, 1, buf);
  if (s < 0) return -1;
  c->node[s].geom = window;
  return s;
}

static rl_status join_store(cg *c, int join, int value, const rl_geom *win, int after) {
  int s = add_store(c, value, c->node[join].buf, win);
  if (s == -1) return RL_OOM;
  if (s == -2) return RL_OK;
  if (after >= 0 && !cg_add_dep(c, s, after)) return RL_OOM;
  return cg_add_dep(c, join, s) ? RL_OK : RL_OOM;
}

static rl_status lower_cat(cg *c, int j) {
  int nin = c->node[j].nin;
  int dim = c->node[j].at ? (int)c->node[j].at->v[0].i : 0;
  rl_geom whole = c->node[j].geom;
  int64_t at = 0;
  if (dim < 0) dim += whole.ndim;
  for (int k = 0; k < nin; k++) {
    int v = c->node[j].in[k];
    rl_geom win = whole;
    if (c->node[v].type.ndim != whole.ndim) continue; /* Torch7's empty tensor */
    win.offset = at * whole.stride[dim];
    win.size[dim] = c->node[v].type.size[dim];
    at += win.size[dim];
    RL_TRY(join_store(c, j, v, &win, -1));
  }
  c->node[j].nin = 0;
  return RL_OK;
}

static rl_status lower_scatter(cg *c, int j) {
  int base = c->node[j].in[0], value = c->node[j].in[1];
  rl_geom win = { .ndim = c->node[j].at->nlist[0], .offset = c->node[j].at->v[0].i };
  memcpy(win.size, c->node[j].at->list[0], sizeof(int64_t) * (size_t)win.ndim);
  memcpy(win.stride, c->node[j].at->list[1], sizeof(int64_t) * (size_t)win.ndim);
  rl_geom whole = c->node[j].geom;
  int first = add_store(c, base, c->node[j].buf, &whole);
  if (first == -1) return RL_OOM;
  if (first >= 0 && !cg_add_dep(c, j, first)) return RL_OOM;
  RL_TRY(join_store(c, j, value, &win, first));
  c->node[j].nin = 0;
  return RL_OK;
}

static rl_status lower_windows(cg *c) {
  int n = c->n;
  for (int i = 0; i < n; i++) {
    if (c->node[i].kind != CG_JOIN || c->node[i].absent) continue;
    if (c->node[i].op == RL_G_SCATTER_WINDOW) RL_TRY(lower_scatter(c, i));
    else RL_TRY(lower_cat(c, i));
  }
  return RL_OK;
}

/* ---- updates ---- */

static bool reads_buf(const cg *c, int i, int buf, const rl_geom *win) {
  const cg_node *n = &c->node[i];
  for (int k = 0; k < n->nin; k++) {
    int p = n->in[k];
    if (p < 0 || c->node[p].buf != buf) continue;
    if (windows_overlap(&c->node[p].geom, win)) return true;
  }
  return false;
}

static bool is_compute(const cg_node *n) {
  return !n->absent && (n->kind == CG_PW || n->kind == CG_RED || n->kind == CG_STORE || n->kind == CG_CALL);
}

static bool is_target(const cg *c, int buf) {
  for (int i = 0; i < c->g->nupdates; i++)
    if (c->node[c->g->updates[i].input].buf == buf) return true;
  return false;
}

static rl_status lower_update(cg *c, const rl_update *u) {
  int value = u->value, target = u->input;
  rl_geom win = c->node[target].geom;
  if (c->node[value].buf == c->node[target].buf && !memcmp(&c->node[value].geom, &win, sizeof win)) return RL_OK;
  int root = cg_root(c, value);
  if (c->node[root].op == RL_G_INPUT && is_target(c, c->node[root].buf)) { /* values are those before any update */
    value = add_node(c, RL_G_CAST, CG_PW, &c->node[value].type, &value, 1, -1);
    if (value < 0) return RL_OOM;
  }
  if (cg_numel(&c->node[value].type) != cg_numel(&c->node[target].type)) return rl_error("[compile] update of another size");
  /* the target's window takes the value's elements in row-major order; same shape by construction */
  int s = add_store(c, value, c->node[target].buf, &win);
  if (s == -1) return RL_OOM;
  if (s >= 0) c->node[s].inplace = true;
  return RL_OK;
}

/* Readers of the old content run before the store; overlapping stores keep their order. */
static rl_status update_order(cg *c, int s) {
  int n = c->n;
  for (int i = 0; i < n; i++) {
    if (i == s || !is_compute(&c->node[i])) continue;
    if (c->node[i].inplace && c->node[i].buf == c->node[s].buf && i < s && windows_overlap(&c->node[i].geom, &c->node[s].geom))
      if (!cg_add_dep(c, s, i)) return RL_OOM;
    if (!reads_buf(c, i, c->node[s].buf, &c->node[s].geom)) continue;
    if (!cg_add_dep(c, s, i)) return RL_OOM;
  }
  return RL_OK;
}

/* The update whose store has the value v at the window a cat piece needs; -1: none. */
static int matching_store(const cg *c, int piece, int buf, int64_t base) {
  const cg_node *p = &c->node[piece];
  for (int i = 0; i < c->n; i++) {
    const cg_node *n = &c->node[i];
    if (n->kind != CG_STORE || !n->inplace || (buf >= 0 && n->buf != buf)) continue;
    const cg_node *a = &c->node[n->in[0]], *b = &c->node[p->in[0]];
    if (a->buf != b->buf || a->geom.offset != b->geom.offset || !cg_dense(&a->geom) || !cg_dense(&b->geom)) continue;
    if (cg_numel(&a->type) != cg_numel(&b->type) || !cg_dense(&n->geom) || !cg_dense(&p->geom)) continue;
    if (buf >= 0 && n->geom.offset != base + p->geom.offset) continue;
    return i;
  }
  return -1;
}

static bool old_reader_follows(const cg *c, int join, int buf) {
  for (int i = 0; i < c->n; i++) {
    if (!is_compute(&c->node[i])) continue;
    for (int k = 0; k < c->node[i].nin; k++) {
      int p = c->node[i].in[k];
      if (p >= 0 && c->node[p].buf == buf && cg_reaches(c, join, i)) return true;
    }
  }
  return false;
}

/* A cat of pieces that updates write side by side into an input is read from that input. */
static rl_status alias_join(cg *c, int j) {
  cg_node *n = &c->node[j];
  if (n->ndep < 1 || n->op == RL_G_SCATTER_WINDOW) return RL_OK;
  for (int i = 0; i < c->g->noutputs; i++)
    if (c->node[c->g->outputs[i]].buf == n->buf) return RL_OK;
  int first = matching_store(c, n->dep[0], -1, 0);
  if (first < 0) return RL_OK;
  int buf = c->node[first].buf;
  int64_t base = c->node[first].geom.offset - c->node[n->dep[0]].geom.offset;
  if (c->buf[buf].dt != c->buf[n->buf].dt) return RL_OK;
  for (int k = 0; k < n->ndep; k++)
    if (matching_store(c, n->dep[k], buf, base) < 0) return RL_OK;
  if (old_reader_follows(c, j, buf)) return RL_OK;
  for (int k = 0; k < n->ndep; k++) {
    int s = matching_store(c, n->dep[k], buf, base);
    c->node[n->dep[k]].kind = CG_NONE;
    c->node[n->dep[k]].nin = 0;
    n->dep[k] = s;
  }
  n->pbuf = buf;
  n->pgeom.offset = base;
  cg_note(c, "cat %%%d is read from the input it updates", n->ref);
  return RL_OK;
}

/* ---- placement of whole results ---- */

static bool is_output_buf(const cg *c, int buf) {
  for (int i = 0; i < c->g->noutputs; i++)
    if (c->node[c->g->outputs[i]].buf == buf) return true;
  return false;
}

static bool store_conflicts(const cg *c, int s, int call) {
  const cg_node *n = &c->node[s];
  for (int i = 0; i < c->n; i++)
    if (i != s && c->node[i].kind == CG_STORE && c->node[i].buf == n->buf && windows_overlap(&c->node[i].geom, &n->geom)) return true;
  for (int k = 0; k < n->ndep; k++)
    if (cg_reaches(c, call, n->dep[k])) return true;
  return false;
}

/* A call's whole result that is stored once is computed there. */
static rl_status place_call(cg *c, int s) {
  cg_node *n = &c->node[s];
  int v = n->in[0], r = cg_root(c, v);
  const cg_node *rn = &c->node[r];
  if (rn->kind != CG_CALL || rn->placed || rn->type.dtype != n->type.dtype || is_output_buf(c, rn->buf)) return RL_OK;
  if (!cg_dense(&c->node[v].geom) || c->node[v].geom.offset || cg_numel(&c->node[v].type) != cg_numel(&rn->type)) return RL_OK;
  int call = rn->op == RL_G_PROJ ? rn->in[0] : r;
  if (!cg_dense(&n->geom) || store_conflicts(c, s, call)) return RL_OK;
  for (int k = 0; k < n->ndep; k++)
    if (n->dep[k] != call && !cg_add_dep(c, call, n->dep[k])) return RL_OOM;
  cg_node *m = &c->node[r];
  m->placed = true;
  m->pbuf = c->node[s].buf;
  m->pgeom.offset = c->node[s].geom.offset;
  c->node[s].kind = CG_NONE;
  return RL_OK;
}

/* ---- uniform values, liveness ---- */

static void mark_live(cg *c) {
  const rl_graph *g = c->g;
  for (int i = 0; i < c->n; i++) c->node[i].absent = true;
  for (int i = 0; i < g->noutputs; i++) c->node[g->outputs[i]].absent = false;
  for (int i = 0; i < g->nupdates; i++) c->node[g->updates[i].value].absent = false;
  for (int i = 0; i < c->n && rl_random_sequential(); i++)
    if (graph_is_random(c->node[i].op)) c->node[i].absent = false;
  for (int i = c->n - 1; i >= 0; i--) {
    cg_node *n = &c->node[i];
    if (n->op == RL_G_PROJ && !n->absent) c->node[n->in[0]].absent = false;
    if (n->absent) continue;
    for (int k = 0; k < n->nin; k++)
      if (n->in[k] >= 0) c->node[n->in[k]].absent = false;
    int r = cg_root(c, i);
    if (r >= 0) c->node[r].absent = false;
  }
  for (int i = 0; i < c->n; i++)
    if (c->node[i].op == RL_G_PROJ && !c->node[c->node[i].in[0]].absent) c->node[i].absent = false;
}

/* A value computed from nothing but numbers is one number at any size. */
static bool same_everywhere(const cg *c, const cg_node *n) {
  if (!n->nin) return false;
  for (int k = 0; k < n->nin; k++) {
    const cg_node *p = &c->node[cg_root(c, n->in[k])];
    if (p->op != RL_G_NUMBER && p->op != RL_G_CONST && !(p->uniform && !is_op(p->op, "iota"))) return false;
  }
  return true;
}

/* Draws in program order: each waits for the one before. */
static rl_status chain_draws(cg *c) {
  int before = -1;
  for (int i = 0; i < c->n && rl_random_sequential(); i++) {
    if (!graph_is_random(c->node[i].op)) continue;
    if (before >= 0 && !cg_add_dep(c, i, before)) return RL_OOM;
    before = i;
  }
  return RL_OK;
}

static void mark_uniform(cg *c) {
  for (int i = 0; i < c->n; i++) {
    cg_node *n = &c->node[i];
    if (n->kind != CG_PW || is_output_buf(c, n->buf) || is_random_pw(n->op)) continue;
    if (is_op(n->op, "gather") || is_op(n->op, "index_select")) continue;
    bool ok = cg_numel(&n->type) == 1 || is_op(n->op, "full") || is_op(n->op, "iota") || same_everywhere(c, n);
    for (int k = 0; k < n->nin; k++) {
      const cg_node *p = &c->node[cg_root(c, n->in[k])];
      ok = ok && (p->uniform || (p->kind == CG_SRC && !(p->op == RL_G_INPUT && is_target(c, p->buf))));
    }
    n->uniform = ok;
  }
}

/* ---- sums with zero ---- */

static bool is_clear(double f) { return f == 0 && !signbit(f); }
static bool is_zero(const cg *c, int i) {
  for (int depth = 0; depth < 8; depth++) {
    const cg_node *n = &c->node[cg_root(c, i)];
    if (n->op == RL_G_CONST) return n->type.dtype == RL_I64 ? n->at->v[0].i == 0 : is_clear(n->at->v[0].f);
    if (is_op(n->op, "full")) return is_clear(n->at->v[0].f);
    if (!n->uniform || n->nin != 1 || (n->op != RL_G_CAST && !is_op(n->op, "cast"))) return false;
    i = n->in[0];
  }
  return false;
}

/* x + 0, as gradients added to a cleared buffer are, shows x itself. */
static void drop_zero_add(cg *c, int i) {
  cg_node *n = &c->node[i];
  if (!is_op(n->op, "add") || n->uniform || n->kind != CG_PW || is_output_buf(c, n->buf)) return;
  int x = is_zero(c, n->in[1]) ? n->in[0] : is_zero(c, n->in[0]) ? n->in[1] : -1;
  if (x < 0) return;
  const cg_node *v = &c->node[x], *r = &c->node[cg_root(c, x)];
  if (r->kind == CG_SRC || r->uniform || !cg_dense(&v->geom) || v->type.dtype != n->type.dtype || cg_numel(&v->type) != cg_numel(&n->type)) return;
  int old = n->buf;
  int64_t off = v->geom.offset;
  n->kind = CG_VIEW;
  for (int k = 0; k < c->n; k++) {
    cg_node *m = &c->node[k];
    if (m->buf != old || m->kind != CG_VIEW) continue;
    m->buf = m->pbuf = v->buf;
    m->geom.offset += off;
  }
}

/* The one node that reads node i, with its views; -1: none or several. */
static int only_user(const cg *c, int i, int but) {
  int user = -1;
  for (int k = 0; k < c->n; k++) {
    if (c->node[k].absent || c->node[k].kind == CG_VIEW || k == but) continue;
    for (int q = 0; q < c->node[k].nin; q++) {
      if (c->node[k].in[q] < 0 || cg_root(c, c->node[k].in[q]) != i) continue;
      if (user >= 0 && user != k) return -1;
      user = k;
    }
  }
  return user;
}

/* n becomes the call that v is; its type stays. */
static rl_status take_call(cg_node *n, const cg_node *v) {
  int *in = malloc(sizeof(int) * (size_t)(v->nin + 1));
  if (!in) return rl_error_status(RL_OOM, "[compile] out of memory");
  memcpy(in, v->in, sizeof(int) * (size_t)v->nin);
  free(n->in);
  n->in = in;
  n->nin = v->nin;
  n->op = v->op;
  n->at = v->at;
  n->kind = CG_CALL;
  return RL_OK;
}

/* where(le(x, 0), 0, x) of a convolution x that nobody else reads is computed where the convolution stores. */
static rl_status fold_relu(cg *c, int r) {
  cg_node *n = &c->node[r];
  if (n->absent || n->kind != CG_PW || n->uniform || !is_op(n->op, "where")) return RL_OK;
  int le = n->in[0], x = n->in[2];
  const cg_node *m = &c->node[le], *v = &c->node[x];
  if (m->kind != CG_PW || !is_op(m->op, "le") || m->in[0] != x || !is_zero(c, n->in[1]) || !is_zero(c, m->in[1])) return RL_OK;
  if (v->kind != CG_CALL || !is_op(v->op, "conv2d") || v->placed || v->type.dtype != n->type.dtype || is_output_buf(c, v->buf) ||
      is_output_buf(c, m->buf))
    return RL_OK;
  if (v->type.dtype != RL_F32 && v->type.dtype != RL_F64) return RL_OK; /* half types round before they are compared */
  if (only_user(c, le, -1) != r || only_user(c, x, le) != r) return RL_OK;
  RL_TRY(take_call(n, v));
  n->relu = true;
  c->node[x].absent = c->node[le].absent = true;
  return RL_OK;
}

/* A convolution's bias is added where its result is read: cuDNN would leave it to a kernel of its own. */
static rl_status split_bias(cg *c, int i) {
  const cg_node *n = &c->node[i];
  if (n->absent || n->kind != CG_CALL || !is_op(n->op, "conv2d") || n->nin < 3 || n->in[2] < 0 || c->node[n->in[2]].type.ndim != 1) return RL_OK;
  const rl_type t = n->type;
  int xw[2] = { n->in[0], n->in[1] }, b = n->in[2];
  int y = add_node(c, n->op, CG_CALL, &t, xw, 2, -1);
  if (y < 0) return RL_OOM;
  c->node[y].at = c->node[i].at;
  int v = add_node(c, RL_G_CAST, CG_VIEW, &t, &b, 1, c->node[b].buf);
  if (v < 0) return RL_OOM;
  rl_geom *ge = &c->node[v].geom;
  ge->offset = c->node[b].geom.offset;
  for (int d = 0; d < t.ndim; d++) ge->stride[d] = d == 1 ? c->node[b].geom.stride[0] : 0;
  cg_node *sum = &c->node[i];
  sum->op = RL_OP_ADD;
  sum->kind = CG_PW;
  sum->nin = 2;
  sum->in[0] = y, sum->in[1] = v;
  return RL_OK;
}

/* A product of half types that is only stored as floats is computed as such: the library accumulates in float and can leave it so. */
static rl_status fold_cast(cg *c, int i) {
  cg_node *s = &c->node[i];
  if (s->absent || s->kind != CG_STORE || s->nin < 1 || s->in[0] < 0) return RL_OK;
  int r = s->in[0], x = c->node[r].nin ? c->node[r].in[0] : -1;
  cg_node *n = &c->node[r];
  if (x < 0 || n->absent || n->kind != CG_PW || n->uniform || !is_op(n->op, "cast") || n->type.dtype != RL_F32 || is_output_buf(c, n->buf))
    return RL_OK;
  const cg_node *v = &c->node[x];
  if (v->kind != CG_CALL || !is_op(v->op, "matmul") || (v->type.dtype != RL_F16 && v->type.dtype != RL_BF16) || is_output_buf(c, v->buf))
    return RL_OK;
  if (only_user(c, r, -1) != i || only_user(c, x, -1) != r) return RL_OK;
  RL_TRY(take_call(n, v));
  c->node[x].absent = true;
  return RL_OK;
}

/* Whether operand k of a call is what it writes its elements over, and all of it is 0. */
static bool cleared_base(const cg *c, const cg_node *n, int k) {
  return n->kind == CG_CALL && !k && n->op < RL_NOP && (rl_ops[n->op].flags & RL_OPF_CLEARS) && is_zero(c, n->in[0]);
}

/* Calls read memory: a number that one reads is copied there. */
static rl_status calls_read_memory(cg *c) {
  int n = c->n;
  for (int i = 0; i < n; i++) {
    bool indexed = c->node[i].kind == CG_PW && (is_op(c->node[i].op, "gather") || is_op(c->node[i].op, "index_select"));
    if ((c->node[i].kind != CG_CALL && !indexed) || c->node[i].absent || c->node[i].op == RL_G_PROJ) continue;
    for (int k = 0; k < (indexed ? 1 : c->node[i].nin); k++) {
      int v = c->node[i].in[k];
      if (v < 0) continue;
      int r = cg_root(c, v);
      if (cleared_base(c, &c->node[i], k)) {
        c->node[i].in[k] = -1;
        continue;
      }
      if (c->node[r].op != RL_G_NUMBER && c->node[r].op != RL_G_CONST && !c->node[r].uniform) continue;
      int m = add_node(c, RL_G_CAST, CG_PW, &c->node[v].type, &v, 1, -1);
      if (m < 0) return RL_OOM;
      c->node[i].in[k] = m;
    }
  }
  return RL_OK;
}

/* Outputs that are numbers need memory too. */
static bool number_output(const cg *c, int i) { return c->node[i].op == RL_G_NUMBER || c->node[i].op == RL_G_CONST; }

static rl_status outputs_in_memory(cg *c) {
  for (int i = 0; i < c->g->noutputs; i++) {
    int r = cg_root(c, c->g->outputs[i]);
    if (!number_output(c, r) || c->buf[c->node[r].buf].place == CG_P_OUTPUT) continue;
    int s = add_store(c, r, c->node[r].buf, &c->node[r].geom);
    if (s < 0) return RL_OOM;
  }
  return RL_OK;
}

static void place_outputs(cg *c) {
  for (int i = 0; i < c->g->noutputs; i++) {
    cg_buf *b = &c->buf[c->node[c->g->outputs[i]].buf];
    if (b->place == CG_P_NONE) {
      b->place = CG_P_OUTPUT;
      b->index = i;
    }
  }
}

/* A gather of one element a row from a computed value is a masked sum over the row, which fuses with what computes it. */
static rl_status lower_gather(cg *c, int i) {
  cg_node *n = &c->node[i];
  if (!is_op(n->op, "gather") || n->absent) return RL_OK;
  const cg_node *x = &c->node[n->in[0]];
  int dim = (int)n->at->v[0].i, root = cg_root(c, n->in[0]);
  if (c->node[root].kind != CG_PW || n->type.size[dim] != 1 || x->type.size[dim] < 2 || x->type.size[dim] > 8192) return RL_OK;
  for (int d = 0; d < x->type.ndim; d++)
    if (d != dim && x->type.size[d] != n->type.size[d]) return RL_OK;
  rl_type t = x->type;
  int idx = n->in[1], in[2] = { n->in[0], 0 };
  int e = add_node(c, RL_G_CAST, CG_VIEW, &t, &idx, 1, c->node[idx].buf);
  if (e < 0) return RL_OOM;
  c->node[e].type.dtype = c->node[idx].type.dtype;
  c->node[e].geom = c->node[idx].geom;
  c->node[e].geom.size[dim] = t.size[dim];
  c->node[e].geom.stride[dim] = 0;
  in[1] = e;
  int p = add_node(c, CG_OP_PICK, CG_PW, &t, in, 2, -1);
  if (p < 0) return RL_OOM;
  c->node[p].aux = dim;
  n = &c->node[i];
  if (!(c->pick_attrs = realloc(c->pick_attrs, sizeof(rl_attrs *) * (size_t)(c->npick + 1)))) return RL_OOM;
  rl_attrs *a = calloc(1, sizeof *a);
  if (!a) return RL_OOM;
  c->pick_attrs[c->npick++] = a;
  a->nlist[0] = 1;
  a->list[0][0] = dim;
  a->v[0].i = 1;
  n->op = (uint16_t)rl_op_find("sum");
  n->kind = CG_RED;
  n->at = a;
  n->nin = 1;
  n->in[0] = p;
  return RL_OK;
}

static void rank_visit(cg *c, int i, int *next) {
  if (c->rank[i] != -1) return;
  c->rank[i] = -2;
  const cg_node *n = &c->node[i];
  for (int k = 0; k < n->nin + n->ndep; k++) {
    int p = k < n->nin ? n->in[k] : n->dep[k - n->nin];
    if (p < 0) continue;
    rank_visit(c, p, next);
    rank_visit(c, cg_root(c, p), next);
  }
  c->rank[i] = *next;
  c->topo[(*next)++] = i;
}

static rl_status rank_nodes(cg *c) {
  int next = 0;
  c->rank = malloc(sizeof(int) * (size_t)(c->n + 1));
  c->topo = malloc(sizeof(int) * (size_t)(c->n + 1));
  if (!c->rank || !c->topo) return rl_error_status(RL_OOM, "[compile] out of memory");
  for (int i = 0; i < c->n; i++) c->rank[i] = -1;
  for (int i = 0; i < c->n; i++) rank_visit(c, i, &next);
  return RL_OK;
}

/* Makes the nodes of the graph. */
rl_status cg_nodes(cg *c) {
  const rl_graph *g = c->g;
  for (int i = 0; i < g->nstorages; i++)
    if (add_buf(c, RL_F32, 0, -1) < 0) return RL_OOM;
  for (rl_ref r = 0; r < g->n; r++) {
    if (g->nodes[r].storage >= c->nbuf || g->nodes[r].storage < 0) return rl_error("[compile] node %d has no storage", r);
    RL_TRY(copy_node(c, r));
  }
  RL_TRY(source_places(c));
  mark_live(c);
  RL_TRY(chain_draws(c));
  place_outputs(c);
  RL_TRY(outputs_in_memory(c));
  for (int i = 0, n = c->n; i < n; i++) RL_TRY(lower_gather(c, i));
  RL_TRY(lower_windows(c));
  for (int i = 0; i < g->nupdates; i++) RL_TRY(lower_update(c, &g->updates[i]));
  for (int i = 0, n = c->n; i < n && c->cuda; i++) RL_TRY(split_bias(c, i));
  mark_uniform(c);
  for (int i = 0; i < c->n; i++)
    if (!c->node[i].absent) drop_zero_add(c, i);
  for (int i = 0; i < c->n && !c->cuda; i++) RL_TRY(fold_relu(c, i));
  for (int i = 0; i < c->n && c->cuda && !c->strict; i++) RL_TRY(fold_cast(c, i));
  if (c->cuda) RL_TRY(cg_compute_again(c));
  RL_TRY(calls_read_memory(c));
  int n = c->n;
  for (int i = 0; i < n; i++)
    if (c->node[i].kind == CG_JOIN && !c->node[i].absent) RL_TRY(alias_join(c, i));
  for (int i = 0; i < n; i++)
    if (c->node[i].kind == CG_STORE && c->node[i].inplace) RL_TRY(update_order(c, i));
  for (int i = 0; i < n; i++)
    if (c->node[i].kind == CG_STORE) RL_TRY(place_call(c, i));
  return rank_nodes(c);
}

void cg_free(cg *c) {
  for (int i = 0; i < c->n; i++) {
    free(c->node[i].in);
    free(c->node[i].dep);
  }
  for (int i = 0; i < c->ngroup; i++) {
    cg_group *g = &c->group[i];
    free(g->node);
    free(g->acc);
    free(g->xacc);
    free(g->rk);
    free(g->phase);
  }
  for (int i = 0; i < c->npick; i++) free(c->pick_attrs[i]);
  free(c->pick_attrs);
  free(c->rank);
  free(c->topo);
  free(c->node);
  free(c->group);
  free(c->buf);
  free(c->order);
  free(c->why);
}
