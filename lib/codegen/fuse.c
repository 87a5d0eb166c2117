/* Fusion: merges nodes into groups that one loop nest computes (nodes -> groups).
 *
 * Vertical first, in graph order: a node joins the group of each of its producers when the map finds one space for both and no path leaves the
 * group and comes back. Then horizontal: groups that read the same memory, or have the same space. Numbers computed from numbers belong to no
 * group: each kernel computes them again. */
#include "cg.h"
#include <stdlib.h>
#include <string.h>

static cg_group *group_new(cg *c, int cap) {
  if (c->ngroup == c->capgroup) {
    int want = c->capgroup ? c->capgroup * 2 : 64;
    cg_group *p = realloc(c->group, sizeof(cg_group) * (size_t)want);
    if (!p) return NULL;
    c->group = p;
    c->capgroup = want;
  }
  cg_group *g = &c->group[c->ngroup];
  memset(g, 0, sizeof *g);
  g->node = malloc(sizeof(int) * (size_t)cap);
  g->acc = malloc(sizeof(cg_acc) * (size_t)cap);
  g->xacc = malloc(sizeof(cg_acc) * (size_t)cap);
  g->rk = malloc((size_t)cap);
  g->phase = malloc((size_t)cap);
  if (!g->node || !g->acc || !g->xacc || !g->rk || !g->phase) return NULL;
  c->ngroup++;
  return g;
}

static bool is_loop(const cg_node *n) { return n->kind == CG_PW || n->kind == CG_RED || n->kind == CG_STORE; }

/* Groups that must run before node i. */
static void pred_groups(const cg *c, int i, bool *mark, int depth) {
  const cg_node *n = &c->node[i];
  for (int k = 0; k < n->nin + n->ndep; k++) {
    int p = k < n->nin ? n->in[k] : n->dep[k - n->nin];
    if (p < 0) continue;
    p = cg_root(c, p);
    if (c->node[p].group >= 0) mark[c->node[p].group] = true;
    else if ((c->node[p].kind == CG_JOIN || c->node[p].kind == CG_NONE) && depth < 64) pred_groups(c, p, mark, depth + 1);
  }
}

static void group_preds(const cg *c, const cg_group *g, bool *mark) {
  for (int i = 0; i < g->n; i++) pred_groups(c, g->node[i], mark, 0);
}

/* bits[g]: groups that must run just before g; pos: place of a group in an order where what must run before comes first. */
typedef struct fuse {
  cg *c;
  bool *seen, *row;
  int *stack, *pos;
  uint64_t *bits;
  int words;
  bool stale; /* pos is of before a merge */
} fuse;

static uint64_t *bits_of(const fuse *f, int g) { return f->bits + (size_t)g * (size_t)f->words; }
static bool has_bit(const uint64_t *b, int i) { return b[i >> 6] >> (i & 63) & 1; }
static void set_bit(uint64_t *b, int i) { b[i >> 6] |= 1ull << (i & 63); }
static void clear_bit(uint64_t *b, int i) { b[i >> 6] &= ~(1ull << (i & 63)); }

static void reach_build(fuse *f) {
  cg *c = f->c;
  memset(f->bits, 0, sizeof(uint64_t) * (size_t)f->words * (size_t)c->ngroup);
  for (int a = 0; a < c->ngroup; a++) {
    if (c->group[a].dead) continue;
    memset(f->row, 0, (size_t)c->ngroup);
    group_preds(c, &c->group[a], f->row);
    for (int b = 0; b < c->ngroup; b++)
      if (f->row[b] && b != a) set_bit(bits_of(f, a), b);
  }
  f->stale = true;
}

/* Group b has become part of a. */
static void reach_merge(fuse *f, int a, int b) {
  uint64_t *to = bits_of(f, a), *from = bits_of(f, b);
  for (int w = 0; w < f->words; w++) to[w] |= from[w], from[w] = 0;
  for (int g = 0; g < f->c->ngroup; g++) {
    uint64_t *row = bits_of(f, g);
    if (!has_bit(row, b)) continue;
    clear_bit(row, b);
    set_bit(row, a);
  }
  clear_bit(to, a);
  f->stale = true;
}

/* The lowest group that must run before g and has no place yet, -1: none. */
static int next_pred(const fuse *f, int g) {
  for (int w = 0; w < f->words; w++)
    for (uint64_t b = bits_of(f, g)[w]; b; b &= b - 1) {
      int p = w * 64 + __builtin_ctzll(b);
      if (f->pos[p] < 0) return p;
    }
  return -1;
}

static void order_groups(fuse *f) {
  int next = 0;
  for (int g = 0; g < f->c->ngroup; g++) f->pos[g] = -1;
  for (int g = 0; g < f->c->ngroup; g++) {
    int n = 0;
    if (f->pos[g] < 0) f->stack[n++] = g;
    while (n) {
      int p = next_pred(f, f->stack[n - 1]);
      if (p >= 0 && n < f->c->ngroup) f->stack[n++] = p;
      else f->pos[f->stack[--n]] = next++;
    }
  }
  f->stale = false;
}

/* Whether some path from `from` to `to` goes through a third group. */
static bool outside_path(fuse *f, int from, int to) {
  int n = 0;
  if (f->stale) order_groups(f);
  if (f->pos[from] > f->pos[to]) return false;
  memset(f->seen, 0, (size_t)f->c->ngroup);
  f->stack[n++] = to;
  while (n) {
    int g = f->stack[--n];
    for (int w = 0; w < f->words; w++)
      for (uint64_t b = bits_of(f, g)[w]; b; b &= b - 1) {
        int p = w * 64 + __builtin_ctzll(b);
        if (p == from && g != to) return true;
        if (f->seen[p] || f->pos[p] <= f->pos[from]) continue;
        f->seen[p] = true;
        f->stack[n++] = p;
      }
  }
  return false;
}

static void merge_nodes(const cg *c, const cg_group *a, const cg_group *b, int *out) {
  int i = 0, j = 0, k = 0;
  while (i < a->n || j < b->n) out[k++] = j == b->n || (i < a->n && c->rank[a->node[i]] < c->rank[b->node[j]]) ? a->node[i++] : b->node[j++];
}

/* A member that reads memory written by another member through a join cannot be in one loop. */
static bool reads_own_join(const cg *c, const cg_group *g, int ga, int gb) {
  for (int i = 0; i < g->n; i++) {
    const cg_node *n = &c->node[g->node[i]];
    for (int k = 0; k < n->nin; k++) {
      if (n->in[k] < 0) continue;
      const cg_node *r = &c->node[cg_root(c, n->in[k])];
      if (r->kind != CG_JOIN) continue;
      for (int d = 0; d < r->ndep; d++) {
        int w = c->node[r->dep[d]].group;
        if (w >= 0 && (w == ga || w == gb)) return true;
      }
    }
  }
  return false;
}

static int64_t row_length(const cg_space *sp) {
  int64_t n = 1;
  for (int l = 0; l < sp->n; l++)
    if (sp->red[l]) n *= sp->size[l];
  return n;
}

/* Stores to windows of one buffer that depend on each other stay apart. */
static bool store_order(const cg *c, const cg_group *g, int ga, int gb) {
  for (int i = 0; i < g->n; i++) {
    const cg_node *n = &c->node[g->node[i]];
    if (n->kind != CG_STORE) continue;
    for (int k = 0; k < n->ndep; k++) {
      const cg_node *p = &c->node[n->dep[k]];
      if (p->kind == CG_STORE && (p->group == ga || p->group == gb)) return false;
    }
  }
  return true;
}

static bool try_merge(fuse *f, int a, int b) {
  cg *c = f->c;
  cg_group *ga = &c->group[a], *gb = &c->group[b];
  if (a == b || ga->dead || gb->dead || ga->call || gb->call || ga->n + gb->n > CG_MAXNODES) return false;
  bool want;
  int place = cg_choice_begin(c, &want);
  if (!want) return false;
  bool apart = outside_path(f, a, b) || outside_path(f, b, a);
  cg_group *m = apart ? NULL : group_new(c, ga->n + gb->n);
  if (!m) {
    cg_choice_end(c, place, false);
    return false;
  }
  ga = &c->group[a];
  gb = &c->group[b];
  m->n = ga->n + gb->n;
  merge_nodes(c, ga, gb, m->node);
  bool ok = store_order(c, m, a, b) && !reads_own_join(c, m, a, b) && cg_map(c, m, false);
  if (ok && row_length(&m->sp) > (1 << 16) && m->n > 24 && !(c->choices && c->choices->replay)) ok = false;
  cg_choice_end(c, place, ok);
  cg_group tmp = *m;
  c->ngroup--;
  if (!ok) tmp.dead = true;
  else {
    cg_group old = *ga;
    *ga = tmp;
    tmp = old;
    gb->dead = true;
    reach_merge(f, a, b);
  }
  if (ok)
    for (int i = 0; i < c->group[a].n; i++) c->node[c->group[a].node[i]].group = a;
  free(tmp.node);
  free(tmp.acc);
  free(tmp.xacc);
  free(tmp.rk);
  free(tmp.phase);
  return ok;
}

static const char *node_label(const cg *c, int i) { return cg_name(&c->node[i]); }

static bool merge_producers(fuse *f, int i) {
  cg *c = f->c;
  bool any = false;
  for (int k = 0; k < c->node[i].nin; k++) {
    if (c->node[i].in[k] < 0) continue;
    int p = cg_root(c, c->node[i].in[k]), a = c->node[p].group, b = c->node[i].group;
    if (a < 0 || a == b || c->group[a].call) continue;
    bool ok = try_merge(f, a, b);
    if (!ok) cg_note(c, "keep %s (node %d) apart from %s (node %d)", node_label(c, p), p, node_label(c, i), i);
    any = any || ok;
  }
  return any;
}

/* Whether a node has loops of its own. */
static bool map_alone(cg *c, cg_group *g) {
  bool want;
  int place = cg_choice_begin(c, &want);
  if (!want) return false;
  bool ok = cg_map(c, g, false);
  cg_choice_end(c, place, ok);
  return ok;
}

static rl_status first_groups(cg *c) {
  for (int i = 0; i < c->n; i++) {
    cg_node *n = &c->node[i];
    if (n->absent || n->uniform) continue;
    if (n->op == RL_G_PROJ) {
      n->group = c->node[n->in[0]].group;
      continue;
    }
    if (!is_loop(n) && n->kind != CG_CALL) continue;
    cg_group *g = group_new(c, 1);
    if (!g) return rl_error_status(RL_OOM, "[compile] out of memory");
    g->n = 1;
    g->node[0] = i;
    g->call = n->kind == CG_CALL;
    n->group = c->ngroup - 1;
    if (!g->call && !map_alone(c, g)) { /* sizes that share no loop, as of a transposed reshape: the eager kernel */
      if (n->op >= RL_NOP || !rl_ops[n->op].kernel[RL_CPU]) return rl_error("[compile] no loops for %s (node %d)", node_label(c, i), n->ref);
      n->kind = CG_CALL;
      g->call = true;
    }
  }
  return RL_OK;
}

static int64_t group_numel(const cg_group *g) {
  int64_t n = 1;
  for (int l = 0; l < g->sp.n; l++) n *= g->sp.size[l];
  return n;
}

static bool share_reads(const cg *c, const cg_group *a, const cg_group *b) {
  for (int i = 0; i < a->n; i++)
    for (int k = 0; k < c->node[a->node[i]].nin; k++) {
      int p = c->node[a->node[i]].in[k];
      if (p < 0 || cg_numel(&c->node[p].type) <= 1) continue;
      for (int j = 0; j < b->n; j++)
        for (int q = 0; q < c->node[b->node[j]].nin; q++) {
          int r = c->node[b->node[j]].in[q];
          if (r >= 0 && c->node[r].buf == c->node[p].buf) return true;
        }
    }
  return false;
}

static bool worth_joining(const cg *c, const cg_group *a, const cg_group *b) {
  if (c->choices && c->choices->replay) return false; /* decided already */
  return group_numel(a) == group_numel(b) && (group_numel(a) <= 4096 || share_reads(c, a, b));
}

static bool horizontal(fuse *f) {
  cg *c = f->c;
  bool any = false;
  for (int a = 0; a < c->ngroup; a++) {
    if (c->group[a].dead || c->group[a].call) continue;
    for (int b = a + 1; b < c->ngroup; b++) {
      if (c->group[b].dead || c->group[b].call) continue;
      if (!cg_choose(c, worth_joining(c, &c->group[a], &c->group[b]))) continue;
      any = try_merge(f, a, b) || any;
    }
  }
  return any;
}

static bool vertical(fuse *f) {
  bool any = false;
  for (int k = 0; k < f->c->n; k++) {
    int i = f->c->topo[k];
    const cg_node *n = &f->c->node[i];
    if (is_loop(n) && n->group >= 0) any = merge_producers(f, i) || any;
  }
  return any;
}

/* Values that others read, or that leave the plan, go to memory. */
static void mark_memory(cg *c) {
  for (int i = 0; i < c->n; i++) {
    const cg_node *n = &c->node[i];
    if (n->absent || n->uniform || n->group < 0) continue;
    for (int k = 0; k < n->nin; k++) {
      if (n->in[k] < 0) continue;
      cg_node *p = &c->node[cg_root(c, n->in[k])];
      if (p->group != n->group && p->group >= 0) p->mat = true;
    }
  }
  for (int i = 0; i < c->n; i++)
    if (c->buf[c->node[i].buf].place == CG_P_OUTPUT && is_loop(&c->node[i])) c->node[i].mat = true;
}

rl_status cg_fuse(cg *c) {
  RL_TRY(first_groups(c));
  if (cg_choices_misfit(c)) return rl_error("[compile] other sizes");
  fuse f = { .c = c, .words = (c->ngroup + 64) / 64 };
  size_t n = (size_t)c->ngroup + 1;
  f.seen = malloc(n);
  f.row = malloc(n);
  f.stack = malloc(sizeof(int) * n);
  f.pos = malloc(sizeof(int) * n);
  f.bits = malloc(sizeof(uint64_t) * (size_t)f.words * n);
  bool ok = f.seen && f.row && f.stack && f.pos && f.bits;
  if (ok) reach_build(&f);
  for (int round = 0; ok && round < 3 && !cg_choices_misfit(c); round++) {
    bool any = vertical(&f);
    any = horizontal(&f) || any;
    if (!any) break;
  }
  free(f.seen);
  free(f.row);
  free(f.stack);
  free(f.pos);
  free(f.bits);
  if (!ok) return rl_error_status(RL_OOM, "[compile] out of memory");
  mark_memory(c);
  return cg_choices_misfit(c) ? rl_error("[compile] other sizes") : RL_OK;
}
