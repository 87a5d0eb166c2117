/* Schedule: order of the groups, lifetimes of buffers, one arena with fixed offsets (groups -> order, places).
 * Groups run as early in graph order as their inputs allow; a buffer's bytes are free again after its last reader. */
#include "cg.h"
#include <stdlib.h>
#include <string.h>

typedef struct sched {
  cg *c;
  uint8_t *state;
  bool bad;
} sched;

static void visit(sched *s, int g);

static void visit_preds(sched *s, int i, int own, int depth) {
  cg *c = s->c;
  const cg_node *n = &c->node[i];
  for (int k = 0; k < n->nin + n->ndep; k++) {
    int p = k < n->nin ? n->in[k] : n->dep[k - n->nin];
    if (p < 0) continue;
    p = cg_root(c, p);
    int g = c->node[p].group;
    if (g >= 0) {
      if (g != own) visit(s, g);
    } else if ((c->node[p].kind == CG_JOIN || c->node[p].kind == CG_NONE) && depth < 64) visit_preds(s, p, own, depth + 1);
  }
}

static void visit(sched *s, int g) {
  if (s->state[g] == 2) return;
  if (s->state[g] == 1) {
    s->bad = true;
    return;
  }
  s->state[g] = 1;
  const cg_group *gr = &s->c->group[g];
  for (int i = 0; i < gr->n; i++) visit_preds(s, gr->node[i], g, 0);
  s->state[g] = 2;
  s->c->group[g].order = s->c->norder;
  s->c->order[s->c->norder++] = g;
}

/* Depth first from the groups in graph order: a group runs just after what it needs. */
static rl_status make_order(cg *c) {
  sched s = { c, calloc((size_t)c->ngroup + 1, 1), false };
  c->order = malloc(sizeof(int) * (size_t)(c->ngroup + 1));
  if (!s.state || !c->order) {
    free(s.state);
    return rl_error_status(RL_OOM, "[compile] out of memory");
  }
  for (int k = 0; k < c->n; k++) {
    int g = c->node[c->topo[k]].group;
    if (g >= 0 && !c->group[g].dead) visit(&s, g);
  }
  free(s.state);
  return s.bad ? rl_error("[compile] the groups depend on each other in a circle") : RL_OK;
}

static void touch(cg *c, int buf, int at) {
  cg_buf *b = &c->buf[buf];
  if (b->first < 0 || at < b->first) b->first = at;
  if (at > b->last) b->last = at;
}

static void touch_node(cg *c, int i, int at) {
  const cg_node *n = &c->node[i];
  if (n->kind == CG_STORE) touch(c, n->buf, at);
  else if ((n->mat || n->kind == CG_CALL) && n->op != RL_G_WRITE) touch(c, n->pbuf, at);
  for (int k = 0; k < n->nin; k++) {
    if (n->in[k] < 0) continue;
    const cg_node *p = &c->node[cg_root(c, n->in[k])];
    if (p->group != n->group || p->group < 0) touch(c, p->kind == CG_SRC ? p->buf : p->pbuf, at);
  }
}

static void lifetimes(cg *c) {
  for (int o = 0; o < c->norder; o++) {
    const cg_group *g = &c->group[c->order[o]];
    for (int i = 0; i < g->n; i++) touch_node(c, g->node[i], o);
  }
  for (int i = 0; i < c->n; i++)
    if (c->node[i].op == RL_G_PROJ && !c->node[i].absent && c->node[i].group >= 0) touch(c, c->node[i].pbuf, c->group[c->node[i].group].order);
}

typedef struct span {
  int64_t lo, hi;
} span;

static int by_size(const void *a, const void *b) {
  const cg_buf *x = *(cg_buf *const *)a, *y = *(cg_buf *const *)b;
  int64_t s = x->size * rl_dtypes[x->dt].bytes, t = y->size * rl_dtypes[y->dt].bytes;
  if (s != t) return s < t ? 1 : -1;
  return x < y ? -1 : x > y;
}

static int by_lo(const void *a, const void *b) {
  const span *x = a, *y = b;
  return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static int64_t bytes_of(const cg_buf *b) { return (b->size * rl_dtypes[b->dt].bytes + 63) & ~(int64_t)63; }

/* Lowest offset free among the buffers that live at the same time. */
static int64_t find_gap(cg_buf **done, int n, const cg_buf *b, span *tmp) {
  int k = 0;
  for (int i = 0; i < n; i++)
    if (done[i]->first <= b->last && b->first <= done[i]->last) tmp[k++] = (span){ done[i]->offset, done[i]->offset + bytes_of(done[i]) };
  qsort(tmp, (size_t)k, sizeof *tmp, by_lo);
  int64_t at = 0;
  for (int i = 0; i < k; i++) {
    if (tmp[i].lo - at >= bytes_of(b)) break;
    if (tmp[i].hi > at) at = tmp[i].hi;
  }
  return at;
}

static rl_status place_arena(cg *c) {
  cg_buf **list = malloc(sizeof(cg_buf *) * (size_t)(c->nbuf + 1));
  span *tmp = malloc(sizeof(span) * (size_t)(c->nbuf + 1));
  int n = 0;
  if (!list || !tmp) {
    free(list);
    free(tmp);
    return rl_error_status(RL_OOM, "[compile] out of memory");
  }
  for (int i = 0; i < c->nbuf; i++) {
    cg_buf *b = &c->buf[i];
    if (b->place != CG_P_NONE || b->first < 0) continue;
    b->place = CG_P_ARENA;
    list[n++] = b;
  }
  qsort(list, (size_t)n, sizeof *list, by_size);
  for (int i = 0; i < n; i++) {
    list[i]->offset = find_gap(list, i, list[i], tmp);
    c->arena = RL_MAX(c->arena, list[i]->offset + bytes_of(list[i]));
  }
  free(list);
  free(tmp);
  return RL_OK;
}

rl_status cg_order(cg *c) { return make_order(c); }

rl_status cg_arena(cg *c) {
  lifetimes(c);
  return place_arena(c);
}
