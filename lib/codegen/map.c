/* Map: one loop space for a set of nodes, and where each node's value lies in it (nodes -> space, accesses; or: does not fit).
 *
 * 1. The template (a reduction's operand, else the largest value) gives the loops, one for each of its dimensions.
 * 2. Accesses spread over the edges until nothing changes: from a consumer to its producers through the view between them (down), from a
 *    producer to its consumers by solving the view (up). A loop that crosses a dimension's end is cut in two and the spreading starts again.
 * 3. A value that two consumers need in different orders does not fit; neither does one that is needed both before and after the end of the
 *    rows. Phase 0 runs for every row; phase 1 once, after the reductions over all rows. */
#include "cg.h"
#include <stdlib.h>
#include <string.h>

typedef struct map {
  cg *c;
  cg_group *g;
  bool known[CG_MAXNODES];
  bool cut; /* a loop was cut: spread again */
} map;

static int member(const cg *c, const cg_group *g, int node) {
  int lo = 0, hi = g->n - 1;
  while (lo <= hi) {
    int mid = (lo + hi) / 2;
    if (g->node[mid] == node) return mid;
    if (c->rank[g->node[mid]] < c->rank[node]) lo = mid + 1;
    else hi = mid - 1;
  }
  return -1;
}

static bool has_loop(const cg_space *sp, int l) { return sp->size[l] > 1; }

static bool cut_loop(map *m, const int want[2]) {
  cg_group *g = m->g;
  if (want[0] < 0) return false;
  int old = g->sp.n;
  if (!cg_space_split(&g->sp, want[0], want[1])) return false;
  for (int i = 0; i < g->n; i++) {
    if (!m->known[i]) continue;
    cg_acc_cut(&g->acc[i], want[0], old, want[1]);
    cg_acc_cut(&g->xacc[i], want[0], old, want[1]);
  }
  return m->cut = true;
}

/* Row-major position from an index by dimension. */
static void position(const cg_space *sp, const rl_type *t, const cg_index *idx, cg_acc *out) {
  rl_geom dense;
  cg_acc_dense(t, &dense);
  cg_through(idx, &dense, sp->n, out);
}

/* ---- reductions ---- */

static bool reduced(const rl_attrs *at, int ndim, int d) {
  if (!at || at->nlist[0] == 0) return true;
  for (int k = 0; k < at->nlist[0]; k++) {
    int v = (int)at->list[0][k];
    if ((v < 0 ? v + ndim : v) == d) return true;
  }
  return false;
}

/* Dimension of the result that dimension d of the operand becomes; -1: reduced. */
static int result_dim(const cg_node *r, const rl_type *x, int d) {
  int out = 0;
  if (reduced(r->at, x->ndim, d)) return -1;
  if (r->type.ndim == x->ndim) return d;
  for (int e = 0; e < d; e++) out += !reduced(r->at, x->ndim, e);
  return out;
}

static const rl_type *operand_type(const cg *c, const cg_node *n, int k) { return &c->node[n->in[k]].type; }

/* Operand's position known: the result's, and how the reduction lies in the space. */
static bool red_up(map *m, int i, const cg_acc *x) {
  cg_group *g = m->g;
  const cg_node *r = &m->c->node[g->node[i]];
  const rl_type *xt = operand_type(m->c, r, 0);
  cg_index idx[RL_MAXDIM], out[RL_MAXDIM];
  int want[2];
  memset(out, 0, sizeof out);
  if (!cg_split(&g->sp, x, xt, idx, want)) return cut_loop(m, want);
  for (int d = 0; d < xt->ndim; d++) {
    int e = result_dim(r, xt, d);
    if (e >= 0) {
      out[e] = idx[d];
      continue;
    }
    if (idx[d].off) return false;
    for (int l = 0; l < g->sp.n; l++) /* a loop may not serve both sides */
      if (idx[d].st[l])
        for (int f = 0; f < xt->ndim; f++)
          if (idx[f].st[l] && result_dim(r, xt, f) >= 0) return false;
  }
  position(&g->sp, &r->type, out, &g->acc[i]);
  g->xacc[i] = *x;
  m->known[i] = true;
  return true;
}

/* Takes unused loops in order for a dimension of this size. */
static bool take_loops(const cg_space *sp, bool *used, int64_t size, cg_index *idx) {
  int64_t have = 1;
  int first = -1, last = -1;
  memset(idx, 0, sizeof *idx);
  for (int l = 0; l < sp->n && have < size; l++) {
    if (used[l] || !has_loop(sp, l)) continue;
    if (first < 0) first = l;
    have *= sp->size[l];
    last = l;
  }
  if (have != size) return false;
  int64_t st = 1;
  for (int l = last; l >= first && first >= 0; l--) {
    if (used[l] || !has_loop(sp, l)) continue;
    idx->st[l] = st;
    st *= sp->size[l];
    used[l] = true;
  }
  return true;
}

static void mark_used(const cg_space *sp, const cg_acc *a, bool *used) {
  for (int l = 0; l < sp->n; l++) used[l] = a->st[l] != 0 || !has_loop(sp, l);
}

/* Result's position known (a row's value): the operand's, the reduced dimensions on the loops that are left. */
static bool red_down(map *m, int i, const cg_acc *a) {
  cg_group *g = m->g;
  const cg_node *r = &m->c->node[g->node[i]];
  const rl_type *xt = operand_type(m->c, r, 0);
  cg_index out[RL_MAXDIM], idx[RL_MAXDIM];
  bool used[CG_MAXLOOP];
  int want[2];
  memset(idx, 0, sizeof idx);
  if (!cg_split(&g->sp, a, &r->type, out, want)) return cut_loop(m, want);
  mark_used(&g->sp, a, used);
  for (int d = 0; d < xt->ndim; d++) {
    int e = result_dim(r, xt, d);
    if (e >= 0) idx[d] = out[e];
    else if (!take_loops(&g->sp, used, xt->size[d], &idx[d])) return false;
  }
  g->acc[i] = *a;
  position(&g->sp, xt, idx, &g->xacc[i]);
  m->known[i] = true;
  return true;
}

/* ---- spreading ---- */

static const cg_node *g_node(const map *m, int i) { return &m->c->node[m->g->node[i]]; }

bool cg_gather_position(const cg *c, const cg_space *sp, const cg_node *n, int k, const cg_acc *acc, cg_acc *out, int want[2]) {
  const cg_node *p = &c->node[n->in[k]];
  int dim = (int)n->at->v[0].i;
  cg_index idx[RL_MAXDIM];
  want[0] = -1;
  if (!cg_split(sp, acc, &n->type, idx, want)) return false;
  if (k == 1 && cg_named(n->op, "index_select")) {
    memset(out, 0, sizeof *out);
    out->off = p->geom.offset + p->geom.stride[0] * idx[dim].off;
    for (int l = 0; l < sp->n; l++) out->st[l] = p->geom.stride[0] * idx[dim].st[l];
    return true;
  }
  rl_geom ge = p->geom;
  if (k == 0) {
    ge.stride[dim] = 0;
    for (int d = 0; d < ge.ndim; d++) ge.size[d] = n->type.size[d];
  }
  cg_through(idx, &ge, sp->n, out);
  return true;
}

static bool set_position(map *m, int i, const cg_acc *a) {
  cg_group *g = m->g;
  if (m->c->node[g->node[i]].kind == CG_RED) return red_down(m, i, a);
  g->acc[i] = g->xacc[i] = *a;
  m->known[i] = true;
  return true;
}

static bool same_shape(const rl_type *a, const rl_type *b) { return a->ndim == b->ndim && !memcmp(a->size, b->size, sizeof(int64_t) * a->ndim); }

/* A gather's operands: the table without the gathered dimension, the index. */
static bool gather_position(map *m, int i, int k, cg_acc *out) {
  int want[2];
  if (cg_gather_position(m->c, &m->g->sp, g_node(m, i), k, &m->g->acc[i], out, want)) return true;
  return cut_loop(m, want);
}

/* Position of operand k in its root's dense value (or in its storage). */
static bool operand_position(map *m, int i, int k, cg_acc *out) {
  cg_group *g = m->g;
  const cg_node *n = &m->c->node[g->node[i]], *p = &m->c->node[n->in[k]];
  cg_index idx[RL_MAXDIM];
  int want[2];
  if (cg_is_gather(n)) return gather_position(m, i, k, out);
  if (cg_numel(&p->type) == 1) {
    memset(out, 0, sizeof *out);
    out->off = p->geom.offset;
    return true;
  }
  const rl_type *it = n->kind == CG_RED ? &p->type : &n->type;
  if (!same_shape(it, &p->type) && cg_numel(it) != cg_numel(&p->type)) return false;
  *out = g->xacc[i];
  if (cg_dense(&p->geom)) {
    out->off += p->geom.offset;
    return true;
  }
  if (!cg_split(&g->sp, &g->xacc[i], &p->type, idx, want)) {
    if (cut_loop(m, want)) return true;
    return false;
  }
  cg_through(idx, &p->geom, g->sp.n, out);
  return true;
}

/* Index of the view's dimensions, largest stride first, from the root's position: loops that the root does not use serve expanded dimensions. */
static bool solve_view(map *m, const rl_geom *ge, const cg_acc *root, cg_index *idx) {
  cg_space *sp = &m->g->sp;
  int ord[RL_MAXDIM], n = 0;
  rl_type t = { .ndim = 0 };
  cg_index flat[RL_MAXDIM];
  bool used[CG_MAXLOOP];
  int want[2];
  memset(idx, 0, sizeof(cg_index) * RL_MAXDIM);
  for (int d = 0; d < ge->ndim; d++)
    if (ge->size[d] > 1 && ge->stride[d]) ord[n++] = d;
  for (int a = 0; a < n; a++)
    for (int b = a + 1; b < n; b++)
      if (ge->stride[ord[b]] > ge->stride[ord[a]]) {
        int s = ord[a];
        ord[a] = ord[b];
        ord[b] = s;
      }
  for (int a = 0; a < n; a++) t.size[t.ndim++] = ge->size[ord[a]];
  rl_geom dense;
  cg_acc_dense(&t, &dense);
  for (int a = 0; a < n; a++)
    if (dense.stride[a] != ge->stride[ord[a]]) return false; /* a window: not all of the root */
  if (ge->offset) return false;
  if (!cg_split(sp, root, &t, flat, want)) return cut_loop(m, want);
  for (int a = 0; a < n; a++) idx[ord[a]] = flat[a];
  mark_used(sp, root, used);
  for (int d = 0; d < ge->ndim; d++)
    if (ge->size[d] > 1 && !ge->stride[d] && !take_loops(sp, used, ge->size[d], &idx[d])) return false;
  return true;
}

/* Consumer i reads the known producer p through operand k: finds i's position. */
static bool spread_up(map *m, int i, int k, int p) {
  cg_group *g = m->g;
  const cg_node *n = &m->c->node[g->node[i]], *v = &m->c->node[n->in[k]];
  cg_index idx[RL_MAXDIM];
  cg_acc x;
  if (cg_dense(&v->geom) && !v->geom.offset && cg_numel(&v->type) == cg_numel(&m->c->node[g->node[p]].type)) x = g->acc[p];
  else {
    if (!solve_view(m, &v->geom, &g->acc[p], idx)) return false;
    if (m->cut) return true;
    position(&g->sp, &v->type, idx, &x);
  }
  return n->kind == CG_RED ? red_up(m, i, &x) : set_position(m, i, &x);
}

static bool spread_node(map *m, int i, bool *changed) {
  cg_group *g = m->g;
  const cg_node *n = &m->c->node[g->node[i]];
  for (int k = 0; k < n->nin; k++) {
    if (n->in[k] < 0) continue;
    int p = member(m->c, g, cg_root(m->c, n->in[k]));
    if (p < 0) continue;
    if (cg_is_gather(n) && (k == 0 || cg_named(n->op, "index_select"))) return false;
    if (!m->known[i]) {
      if (!m->known[p]) continue;
      if (!spread_up(m, i, k, p)) return false;
      *changed = true;
      if (m->cut) return true;
    }
    if (!m->known[i]) continue;
    cg_acc need;
    if (!operand_position(m, i, k, &need)) return false;
    if (m->cut) return *changed = true;
    if (m->known[p]) {
      if (!cg_acc_same(&g->sp, &need, &g->acc[p])) return false;
      continue;
    }
    if (!set_position(m, p, &need)) return false;
    *changed = true;
    if (m->cut) return true;
  }
  return true;
}

/* Values that nothing ties to the rest take the whole space in order. */
static bool spread_rest(map *m, bool *changed) {
  cg_group *g = m->g;
  cg_acc a = { 0 };
  int64_t total = 1;
  for (int l = g->sp.n - 1; l >= 0; l--) {
    a.st[l] = has_loop(&g->sp, l) ? total : 0;
    total *= g->sp.size[l];
  }
  for (int i = 0; i < g->n; i++) {
    if (m->known[i]) continue;
    const cg_node *n = &m->c->node[g->node[i]];
    *changed = true;
    if (n->kind == CG_RED) {
      if (cg_numel(operand_type(m->c, n, 0)) != total) return false;
      return red_up(m, i, &a);
    }
    if (cg_numel(&n->type) != total) return false;
    return set_position(m, i, &a);
  }
  return true;
}

static bool spread(map *m) {
  for (int round = 0; round < 4 * CG_MAXNODES; round++) {
    bool changed = false;
    m->cut = false;
    for (int i = 0; i < m->g->n && !m->cut; i++)
      if (!spread_node(m, i, &changed)) return false;
    for (int i = m->g->n - 1; i >= 0 && !m->cut; i--)
      if (!spread_node(m, i, &changed)) return false;
    if (changed) continue;
    if (!spread_rest(m, &changed)) return false;
    if (!changed) return true;
  }
  return false;
}

/* ---- template ---- */

static bool template_loops(map *m, const rl_type *t) {
  cg_space *sp = &m->g->sp;
  memset(sp, 0, sizeof *sp);
  for (int d = 0; d < t->ndim; d++)
    if (t->size[d] > 1) sp->size[sp->n++] = t->size[d];
  return true;
}

static void template_acc(const cg_space *sp, cg_acc *a) {
  int64_t s = 1;
  memset(a, 0, sizeof *a);
  for (int l = sp->n - 1; l >= 0; l--) {
    a->st[l] = s;
    s *= sp->size[l];
  }
}

/* 3: rows of the last dimension; 2: last dimensions kept, all before reduced; 1: other; 0: everything is reduced. */
static int red_rank(const cg *c, const cg_node *r) {
  const rl_type *xt = operand_type(c, r, 0);
  bool all = true, any = false, last = false, prefix = true;
  for (int d = 0; d < xt->ndim; d++) {
    if (xt->size[d] == 1) continue;
    bool red = reduced(r->at, xt->ndim, d);
    if (red && !any && !all) prefix = false;
    if (red && !all) prefix = false;
    all = all && red;
    any = any || red;
    last = red;
  }
  if (!any) return -1;
  if (all) return 0;
  if (last) return 3;
  return prefix ? 2 : 1;
}

static int pick_template(map *m) {
  cg_group *g = m->g;
  int best = -1, rank = -1;
  int64_t size = -1;
  for (int i = 0; i < g->n; i++) {
    const cg_node *n = &m->c->node[g->node[i]];
    if (n->kind != CG_RED) continue;
    int k = red_rank(m->c, n);
    int64_t s = cg_numel(operand_type(m->c, n, 0));
    if (k < 0 || s < size || (s == size && k <= rank)) continue;
    best = i;
    rank = k;
    size = s;
  }
  for (int i = 0; i < g->n; i++) {
    const cg_node *n = &m->c->node[g->node[i]];
    if (n->kind == CG_RED || cg_numel(&n->type) <= size) continue;
    best = i;
    size = cg_numel(&n->type);
  }
  return best;
}

static bool start(map *m) {
  cg_group *g = m->g;
  int t = cg_choose(m->c, pick_template(m));
  cg_acc a;
  if (t < 0 || t >= g->n) t = g->n - 1;
  const cg_node *n = &m->c->node[g->node[t]];
  template_loops(m, n->kind == CG_RED ? operand_type(m->c, n, 0) : &n->type);
  template_acc(&g->sp, &a);
  if (n->kind != CG_RED) return set_position(m, t, &a);
  return red_up(m, t, &a);
}

/* ---- rows and phases ---- */

static bool uses(const cg_space *sp, const cg_acc *a, bool red, bool *partly) {
  bool some = false, every = true, any = false;
  for (int l = 0; l < sp->n; l++) {
    if (sp->red[l] != red || !has_loop(sp, l)) continue;
    any = true;
    if (a->st[l]) some = true;
    else every = false;
  }
  if (some && !every) *partly = true;
  return some || !any;
}

static bool loops_exist(const cg_space *sp, bool red) {
  for (int l = 0; l < sp->n; l++)
    if (sp->red[l] == red && has_loop(sp, l)) return true;
  return false;
}

/* The reduction that decides what a row is, -1: none; rank as red_rank has it. */
static int best_reduction(const map *m, int *rank) {
  int best = -1;
  *rank = 0;
  for (int i = 0; i < m->g->n; i++) {
    const cg_node *n = &m->c->node[m->g->node[i]];
    int k = n->kind == CG_RED ? red_rank(m->c, n) : 0;
    if (k > *rank) *rank = k, best = i;
  }
  return best;
}

/* Marks the loops inside a row from the best reduction: what it reduces, or (columns) what it keeps. */
static void mark_rows(map *m, bool columns) {
  cg_group *g = m->g;
  int rank, best = best_reduction(m, &rank);
  for (int l = 0; l < g->sp.n; l++) {
    g->sp.red[l] = false;
    if (best < 0) continue;
    bool in_x = g->xacc[best].st[l] != 0, in_r = g->acc[best].st[l] != 0;
    g->sp.red[l] = columns || rank == 2 ? in_r : in_x && !in_r;
  }
}

/* Whether memory runs along what the best reduction keeps: neighbours in a row would lie far apart, as behind a transpose. */
static bool prefers_columns(map *m) {
  cg_group *g = m->g;
  int rank, best = best_reduction(m, &rank), along = 0, across = 0;
  if (best < 0 || rank == 2 || cg_numel(&m->c->node[g->node[best]].type) < 16) return false;
  for (int i = 0; i < g->n; i++) {
    const cg_node *n = &m->c->node[g->node[i]];
    for (int k = 0; k < n->nin; k++) {
      cg_acc a;
      if (n->in[k] < 0 || cg_numel(&m->c->node[n->in[k]].type) < 4096 || member(m->c, g, cg_root(m->c, n->in[k])) >= 0) continue;
      if (!operand_position(m, i, k, &a) || m->cut) return m->cut = false;
      for (int l = 0; l < g->sp.n; l++) {
        if (a.st[l] != 1 || !has_loop(&g->sp, l)) continue;
        if (g->acc[best].st[l]) across++;
        else along++;
      }
    }
  }
  return across > along;
}

static bool red_kind(map *m, int i) {
  cg_group *g = m->g;
  bool rows = false, inner = false, rows_all = true, inner_all = true;
  for (int l = 0; l < g->sp.n; l++) {
    if (!has_loop(&g->sp, l)) continue;
    bool lr = g->xacc[i].st[l] && !g->acc[i].st[l];
    if (g->sp.red[l]) {
      inner = inner || lr;
      inner_all = inner_all && lr;
    } else {
      rows = rows || lr;
      rows_all = rows_all && lr;
    }
  }
  if ((rows && !rows_all) || (inner && !inner_all)) return false;
  g->rk[i] = rows ? (inner ? CG_RK_ALL : CG_RK_COL) : inner ? CG_RK_ROW : CG_RK_NONE;
  bool partly = false;
  bool o = uses(&g->sp, &g->xacc[i], false, &partly), r = uses(&g->sp, &g->xacc[i], true, &partly);
  (void)r;
  return !partly && o;
}

static bool node_phase(map *m, int i) {
  cg_group *g = m->g;
  const cg_node *n = &m->c->node[g->node[i]];
  bool partly = false;
  uint8_t in0 = 0, in1 = 0;
  for (int k = 0; k < n->nin; k++) {
    int p = n->in[k] < 0 ? -1 : member(m->c, g, cg_root(m->c, n->in[k]));
    if (p >= 0) {
      if (g->phase[p]) in1 = 1;
      else in0 = 1;
    }
  }
  if (n->kind == CG_RED) {
    if (!red_kind(m, i) || in1) return false;
    g->phase[i] = g->rk[i] == CG_RK_COL || g->rk[i] == CG_RK_ALL;
    return true;
  }
  bool o = uses(&g->sp, &g->acc[i], false, &partly);
  uses(&g->sp, &g->acc[i], true, &partly);
  if (partly) return false;
  g->phase[i] = !o;
  return g->phase[i] ? !in0 : !in1;
}

static int64_t last_of(const rl_geom *ge) {
  int64_t at = ge->offset;
  for (int d = 0; d < ge->ndim; d++) at += (ge->size[d] - 1) * ge->stride[d];
  return at;
}

static bool windows_meet(const rl_geom *a, const rl_geom *b) { return a->offset <= last_of(b) && b->offset <= last_of(a); }

/* Memory that the group both reads and writes in place: the same element at the same time. */
static bool inplace_aligned(map *m) {
  cg_group *g = m->g;
  for (int s = 0; s < g->n; s++) {
    const cg_node *st = &m->c->node[g->node[s]];
    if (st->kind != CG_STORE) continue;
    cg_index idx[RL_MAXDIM];
    cg_acc at;
    int want[2];
    if (cg_dense(&st->geom)) {
      at = g->acc[s];
      at.off += st->geom.offset;
    } else {
      if (!cg_split(&g->sp, &g->acc[s], &st->type, idx, want)) return cut_loop(m, want);
      cg_through(idx, &st->geom, g->sp.n, &at);
    }
    for (int i = 0; i < g->n; i++) {
      const cg_node *n = &m->c->node[g->node[i]];
      for (int k = 0; k < n->nin; k++) {
        if (n->in[k] < 0) continue;
        const cg_node *p = &m->c->node[n->in[k]];
        cg_acc rd;
        if (p->buf != st->buf || member(m->c, g, cg_root(m->c, n->in[k])) >= 0) continue;
        if (!st->inplace || !windows_meet(&p->geom, &st->geom)) continue;
        if (!g->phase[i] && g->phase[s]) continue; /* read for every row, written after the last */
        if (n->kind == CG_RED && g->phase[s]) continue;
        if (!operand_position(m, i, k, &rd) || m->cut) return m->cut;
        if (n->kind != CG_RED && g->phase[i] != g->phase[s]) return false;
        if (!cg_acc_same(&g->sp, &rd, &at)) return false;
      }
    }
  }
  return true;
}

/* Every operand that is read from memory needs its position too: cuts loops where a view asks for it. */
static bool externals(map *m) {
  cg_group *g = m->g;
  for (int i = 0; i < g->n; i++) {
    const cg_node *n = &m->c->node[g->node[i]];
    for (int k = 0; k < n->nin; k++) {
      cg_acc a;
      if (n->in[k] < 0) continue;
      if (!operand_position(m, i, k, &a)) return false;
      if (m->cut) return true;
    }
  }
  return true;
}

/* Whether every element of the value is visited, each by one place of the loops that it uses. */
static bool covers(const cg_space *sp, const cg_acc *a, const rl_type *t) {
  int64_t next = 1, total = cg_numel(t);
  if (a->off) return false;
  for (int step = 0; step < sp->n && next < total; step++) {
    int l = 0;
    while (l < sp->n && !(has_loop(sp, l) && a->st[l] == next)) l++;
    if (l == sp->n) return false;
    next *= sp->size[l];
  }
  if (next != total) return false;
  for (int l = 0; l < sp->n; l++)
    if (has_loop(sp, l) && a->st[l] >= total && total > 1) return false;
  int64_t used = 1;
  for (int l = 0; l < sp->n; l++)
    if (has_loop(sp, l) && a->st[l]) used *= sp->size[l];
  return used == total;
}

static bool all_covered(map *m) {
  for (int i = 0; i < m->g->n; i++)
    if (!covers(&m->g->sp, &m->g->acc[i], &m->c->node[m->g->node[i]].type)) return false;
  return true;
}

/* Rows and phases: false when a node fits neither. */
static bool phases(map *m, bool columns) {
  mark_rows(m, columns);
  for (int i = 0; i < m->g->n; i++)
    if (!node_phase(m, i)) return false;
  return true;
}

/* Finds the group's space and accesses; false: the nodes do not fit together. */
bool cg_map(cg *c, cg_group *g, bool final) {
  map m;
  (void) final;
  memset(&m, 0, sizeof m);
  if (g->n > CG_MAXNODES) return false;
  m.c = c;
  m.g = g;
  memset(m.known, 0, sizeof m.known);
  memset(g->acc, 0, sizeof(cg_acc) * (size_t)g->n);
  memset(g->xacc, 0, sizeof(cg_acc) * (size_t)g->n);
  memset(g->phase, 0, (size_t)g->n);
  memset(g->rk, 0, (size_t)g->n);
  m.cut = false;
  if (!start(&m)) return false;
  for (int round = 0; round < 64; round++) {
    if (!spread(&m)) return false;
    m.cut = false;
    if (!externals(&m)) return false;
    if (m.cut) continue;
    if (!all_covered(&m)) return false;
    if (!phases(&m, cg_choose(c, prefers_columns(&m))) && !phases(&m, false)) return false;
    if (!inplace_aligned(&m)) return false;
    if (!m.cut) return true;
  }
  return false;
}

bool cg_loops_exist(const cg_space *sp, bool red) { return loops_exist(sp, red); }
