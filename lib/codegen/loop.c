/* Building the loop form: operands to instructions, loops joined and ordered, levels, passes, row buffers (group -> loop form). */
#include "loop.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_BUFFER_MAX = 16384, ROW_BUFFERS_BYTES = 768 << 10 };

typedef struct build {
  cg *c;
  const cg_group *g;
  lp_kernel *k;
  int *of;
  bool failed;
} build;

static int add(build *b, lp_ins i) {
  lp_kernel *k = b->k;
  if (k->n == k->cap) {
    int cap = k->cap ? k->cap * 2 : 64;
    lp_ins *p = realloc(k->ins, sizeof(lp_ins) * (size_t)cap);
    if (!p) {
      b->failed = true;
      return 0;
    }
    k->ins = p;
    k->cap = cap;
  }
  k->ins[k->n] = i;
  return k->n++;
}

static int member_of(const cg_group *g, int node) {
  for (int i = 0; i < g->n; i++)
    if (g->node[i] == node) return i;
  return -1;
}

static bool is_named(int op, const char *name) { return op < RL_NOP && !strcmp(rl_ops[op].name, name); }

bool lp_associative(int row) {
  static const char *const ok[] = { "a + x", "a * x", "max(a, x)", "min(a, x)", "a && x", "a || x", "a & x", "a | x" };
  const char *e = rl_ops[row].expr;
  for (size_t i = 0; i < sizeof ok / sizeof *ok; i++)
    if (!strcmp(e, ok[i])) return true;
  return false;
}

static int load(build *b, int buf, rl_dtype dt, const cg_acc *a, int phase) {
  lp_kernel *k = b->k;
  for (int i = 0; i < k->n; i++) {
    const lp_ins *p = &k->ins[i];
    if (p->op == LP_LOAD && p->buf == buf && p->phase == phase && p->dt == dt && cg_acc_same(&b->g->sp, &p->acc, a)) return i;
  }
  return add(b, (lp_ins){ .op = LP_LOAD, .dt = (uint8_t)dt, .buf = buf, .acc = *a, .phase = (uint8_t)phase });
}

static int const_ins(build *b, const cg_node *n) {
  lp_ins i = { .op = LP_CONST, .dt = n->type.dtype, .buf = -1 };
  if (n->type.dtype == RL_I64) {
    i.i = n->at->v[0].i;
    i.f = (double)i.i;
  } else {
    i.f = n->at->v[0].f;
    i.i = (int64_t)i.f;
  }
  return add(b, i);
}

static int pointwise(build *b, const cg_node *n, const int *arg, const cg_acc *acc, int phase);

static bool is_number(const cg_node *n) { return n->uniform || n->op == RL_G_CONST || n->op == RL_G_NUMBER; }

/* An operand of number r that is a number too and has no instruction yet, -1 when there is none. */
static int uniform_wants(const build *b, int r) {
  const cg_node *n = &b->c->node[r];
  if (n->op == RL_G_CONST || n->op == RL_G_NUMBER) return -1;
  for (int k = 0; k < n->nin && k < 8; k++) {
    int q = cg_root(b->c, n->in[k]);
    if (is_number(&b->c->node[q]) && b->of[q] < 0) return q;
  }
  return -1;
}

/* Instruction of number r, whose operands have theirs. */
static int uniform_emit(build *b, int r) {
  const cg_node *n = &b->c->node[r];
  cg_acc zero = { 0 };
  int arg[8] = { 0 };
  if (n->op == RL_G_CONST) return const_ins(b, n);
  if (n->op == RL_G_NUMBER) return add(b, (lp_ins){ .op = LP_NUM, .dt = n->type.dtype, .i = n->aux, .buf = -1 });
  for (int k = 0; k < n->nin && k < 8; k++) {
    int p = n->in[k], q = cg_root(b->c, p);
    const cg_node *pn = &b->c->node[q];
    if (is_number(pn)) arg[k] = b->of[q];
    else {
      zero.off = b->c->node[p].geom.offset;
      arg[k] = load(b, pn->buf, (rl_dtype)pn->type.dtype, &zero, 0);
      zero.off = 0;
    }
  }
  return pointwise(b, n, arg, &zero, 0);
}

/* Instruction of a number that every kernel computes for itself. Operands go first, by a list of our own: chains may be longer than the C
 * stack is deep. */
static int uniform(build *b, int r) {
  if (b->of[r] >= 0) return b->of[r];
  int *path = malloc((size_t)b->c->n * sizeof *path), n = 0;
  if (!path) {
    b->failed = true;
    return 0;
  }
  path[n++] = r;
  while (n) {
    int want = uniform_wants(b, path[n - 1]);
    if (want >= 0) path[n++] = want;
    else {
      b->of[path[n - 1]] = uniform_emit(b, path[n - 1]);
      n--;
    }
  }
  free(path);
  return b->of[r];
}

/* Position in memory of operand k of member m. */
static bool operand_acc(build *b, int m, int k, cg_acc *out) {
  const cg_node *n = &b->c->node[b->g->node[m]], *p = &b->c->node[n->in[k]];
  const cg_node *r = &b->c->node[cg_root(b->c, n->in[k])];
  cg_index idx[RL_MAXDIM];
  int want[2];
  memset(out, 0, sizeof *out);
  if (cg_is_gather(n)) {
    if (!cg_gather_position(b->c, &b->g->sp, n, k, &b->g->acc[m], out, want)) return false;
  } else if (cg_numel(&p->type) == 1) out->off = p->geom.offset;
  else if (cg_dense(&p->geom)) {
    *out = b->g->xacc[m];
    out->off += p->geom.offset;
  } else {
    if (!cg_split(&b->g->sp, &b->g->xacc[m], &p->type, idx, want)) return false;
    cg_through(idx, &p->geom, b->g->sp.n, out);
  }
  if (r->kind != CG_SRC) out->off += r->pgeom.offset;
  return true;
}

static int operand(build *b, int m, int k) {
  const cg_node *n = &b->c->node[b->g->node[m]];
  int q = cg_root(b->c, n->in[k]);
  const cg_node *r = &b->c->node[q];
  cg_acc a;
  if (r->uniform && is_named(r->op, "iota")) {
    if (!operand_acc(b, m, k, &a)) {
      b->failed = true;
      return 0;
    }
    a.off -= r->pgeom.offset;
    return add(b, (lp_ins){ .op = LP_INDEX, .dt = r->type.dtype, .acc = a, .phase = n->kind == CG_RED ? 0 : b->g->phase[m], .buf = -1 });
  }
  if (is_number(r)) return uniform(b, q);
  if (r->group >= 0 && r->group == n->group && member_of(b->g, q) >= 0) return b->of[q];
  if (r->kind == CG_NONE) return add(b, (lp_ins){ .op = LP_CONST, .dt = r->type.dtype, .buf = -1 });
  if (!operand_acc(b, m, k, &a)) {
    b->failed = true;
    return 0;
  }
  int phase = n->kind == CG_RED ? 0 : b->g->phase[m];
  return load(b, r->kind == CG_SRC ? r->buf : r->pbuf, b->c->buf[r->kind == CG_SRC ? r->buf : r->pbuf].dt, &a, phase);
}

static int pointwise(build *b, const cg_node *n, const int *arg, const cg_acc *acc, int phase) {
  lp_ins i = { .dt = n->type.dtype, .row = n->op, .narg = n->nin, .at = n->at, .acc = *acc, .phase = (uint8_t)phase, .buf = -1 };
  for (int k = 0; k < n->nin && k < 8; k++) i.arg[k] = arg[k];
  if (is_named(n->op, "full")) {
    i.op = LP_CONST;
    i.f = n->at->v[0].f;
    i.i = (int64_t)i.f;
    i.acc = (cg_acc){ 0 };
  } else if (n->op < RL_NOP && rl_ops[n->op].kind == RL_K_RED) {
    const char *init = rl_ops[n->op].init;
    bool low = !strcmp(init, "lowest"), high = !strcmp(init, "highest");
    i.op = LP_CONST;
    i.f = low ? -INFINITY : high ? INFINITY : strtod(init, NULL);
    i.i = low ? INT64_MIN : high ? INT64_MAX : (int64_t)i.f;
    i.acc = (cg_acc){ 0 };
  } else if (is_named(n->op, "iota")) i.op = LP_INDEX;
  else if (n->op == RL_G_CAST || is_named(n->op, "cast") || is_named(n->op, "reshape")) {
    if (b->k->ins[arg[0]].dt == n->type.dtype) return arg[0];
    i.op = LP_CAST;
  } else if (n->op < RL_NOP && rl_ops[n->op].kind == RL_K_RAND) {
    i.op = LP_RAND;
    i.rng = n->rng;
  } else i.op = LP_EW;
  return add(b, i);
}

static int ew(build *b, const char *name, int dt, const int *arg, int n, const cg_acc *acc, int phase) {
  lp_ins i = { .op = LP_EW, .dt = (uint8_t)dt, .row = (uint16_t)rl_op_find(name), .narg = n, .acc = *acc, .phase = (uint8_t)phase, .buf = -1 };
  for (int k = 0; k < n; k++) i.arg[k] = arg[k];
  return add(b, i);
}

/* x where the index along a dimension is idx, else 0. */
static int pick(build *b, int m, int x, int idx) {
  const cg_node *n = &b->c->node[b->g->node[m]];
  cg_index at[RL_MAXDIM];
  int want[2], phase = b->g->phase[m];
  if (!cg_split(&b->g->sp, &b->g->acc[m], &n->type, at, want)) {
    b->failed = true;
    return 0;
  }
  cg_acc pos = { .off = at[n->aux].off };
  memcpy(pos.st, at[n->aux].st, sizeof pos.st);
  int i = add(b, (lp_ins){ .op = LP_INDEX, .dt = RL_I64, .acc = pos, .phase = (uint8_t)phase, .buf = -1 });
  int k = add(b,
              (lp_ins){ .op = LP_CHECK, .dt = RL_I64, .narg = 1, .arg = { idx }, .bound = n->type.size[n->aux], .phase = (uint8_t)phase, .buf = -1 });
  int e = ew(b, "eq", RL_U8, (int[]){ i, k }, 2, &b->g->acc[m], phase);
  int z = add(b, (lp_ins){ .op = LP_CONST, .dt = n->type.dtype, .buf = -1 });
  return ew(b, "where", n->type.dtype, (int[]){ e, x, z }, 3, &b->g->acc[m], phase);
}

static int gather(build *b, int m, int idx) {
  const cg_node *n = &b->c->node[b->g->node[m]], *x = &b->c->node[n->in[0]], *r = &b->c->node[cg_root(b->c, n->in[0])];
  int dim = (int)n->at->v[0].i;
  lp_ins i = { .op = LP_GATHER,
               .dt = n->type.dtype,
               .narg = 1,
               .arg = { idx },
               .bound = x->type.size[dim],
               .stride = x->geom.stride[dim],
               .phase = b->g->phase[m],
               .buf = r->kind == CG_SRC ? r->buf : r->pbuf };
  if (!operand_acc(b, m, 0, &i.acc)) {
    b->failed = true;
    return 0;
  }
  return add(b, i);
}

static bool store_acc(build *b, int m, cg_acc *out) {
  const cg_node *n = &b->c->node[b->g->node[m]];
  cg_index idx[RL_MAXDIM];
  int want[2];
  *out = b->g->acc[m];
  if (n->kind != CG_STORE) {
    out->off += n->pgeom.offset;
    return true;
  }
  if (cg_dense(&n->geom)) {
    out->off += n->geom.offset;
    return true;
  }
  if (!cg_split(&b->g->sp, &b->g->acc[m], &n->type, idx, want)) return false;
  cg_through(idx, &n->geom, b->g->sp.n, out);
  return true;
}

static void add_store(build *b, int m, int value) {
  const cg_node *n = &b->c->node[b->g->node[m]];
  int buf = n->kind == CG_STORE ? n->buf : n->pbuf;
  lp_ins i = {
    .op = LP_STORE, .dt = (uint8_t)b->c->buf[buf].dt, .narg = 1, .arg = { value }, .buf = buf, .phase = b->g->phase[m], .inplace = n->inplace
  };
  if (!store_acc(b, m, &i.acc)) {
    b->failed = true;
    return;
  }
  add(b, i);
}

static void build_member(build *b, int m) {
  int node = b->g->node[m];
  const cg_node *n = &b->c->node[node];
  int arg[8] = { 0 };
  bool table = cg_is_gather(n);
  for (int k = table; k < n->nin && k < 8; k++)
    if (n->in[k] >= 0) arg[k] = operand(b, m, k);
  if (b->failed) return;
  if (n->kind == CG_STORE) {
    add_store(b, m, arg[0]);
    return;
  }
  if (n->kind == CG_RED)
    b->of[node] = add(b, (lp_ins){ .op = LP_RED,
                                   .dt = n->type.dtype,
                                   .row = n->op,
                                   .narg = 1,
                                   .arg = { arg[0] },
                                   .at = n->at,
                                   .acc = b->g->acc[m],
                                   .xacc = b->g->xacc[m],
                                   .rk = b->g->rk[m],
                                   .phase = b->g->phase[m],
                                   .buf = -1 });
  else if (table) b->of[node] = gather(b, m, arg[1]);
  else if (n->op == CG_OP_PICK) b->of[node] = pick(b, m, arg[0], arg[1]);
  else b->of[node] = pointwise(b, n, arg, &b->g->acc[m], b->g->phase[m]);
  if (n->mat) add_store(b, m, b->of[node]);
}

/* ---- loops ---- */

static bool positioned(const lp_ins *i) {
  return i->op == LP_LOAD || i->op == LP_STORE || i->op == LP_RAND || i->op == LP_INDEX || i->op == LP_GATHER;
}

static void swap_loops(lp_kernel *k, int a, int b) {
  int64_t s = k->sp.size[a];
  k->sp.size[a] = k->sp.size[b];
  k->sp.size[b] = s;
  bool r = k->sp.red[a];
  k->sp.red[a] = k->sp.red[b];
  k->sp.red[b] = r;
  for (int i = 0; i < k->n; i++) {
    lp_ins *p = &k->ins[i];
    s = p->acc.st[a];
    p->acc.st[a] = p->acc.st[b];
    p->acc.st[b] = s;
    s = p->xacc.st[a];
    p->xacc.st[a] = p->xacc.st[b];
    p->xacc.st[b] = s;
  }
}

static void drop_loop(lp_kernel *k, int l) {
  for (int j = l; j + 1 < k->sp.n; j++) swap_loops(k, j, j + 1);
  k->sp.n--;
  for (int i = 0; i < k->n; i++) k->ins[i].acc.st[k->sp.n] = k->ins[i].xacc.st[k->sp.n] = 0;
}

static bool can_join(const lp_kernel *k, int l) {
  if (k->sp.red[l] != k->sp.red[l + 1]) return false;
  for (int i = 0; i < k->n; i++) {
    const lp_ins *p = &k->ins[i];
    if (p->acc.st[l] != p->acc.st[l + 1] * k->sp.size[l + 1]) return false;
    if (p->op == LP_RED && p->xacc.st[l] != p->xacc.st[l + 1] * k->sp.size[l + 1]) return false;
  }
  return true;
}

static void join_loops(cg *c, lp_kernel *k) {
  for (int l = k->sp.n - 1; l >= 0; l--)
    if (cg_choose_if(c, k->sp.size[l] == 1)) drop_loop(k, l);
  for (int l = k->sp.n - 2; l >= 0; l--) {
    if (l + 1 >= k->sp.n || !cg_choose_if(c, can_join(k, l))) continue;
    k->sp.size[l + 1] *= k->sp.size[l];
    drop_loop(k, l);
  }
}

/* Row loops first; among the inner ones the loop with most unit strides last. */
static int unit_score(const lp_kernel *k, int l) {
  int s = 0;
  for (int i = 0; i < k->n; i++) {
    const lp_ins *p = &k->ins[i];
    if (!positioned(p)) continue;
    int64_t st = p->acc.st[l];
    if (st == 1) s += p->op == LP_STORE ? 3 : 2;
    else if (st > 1) s -= 1;
  }
  return k->sp.size[l] < 8 ? s - 2 : s;
}

static void to_end(lp_kernel *k, int l) {
  for (int j = l; j + 1 < k->sp.n; j++) swap_loops(k, j, j + 1);
}

static int best_loop(cg *c, const lp_kernel *k, bool red) {
  int best = -1, score = 0;
  for (int l = 0; l < k->sp.n; l++) {
    if (k->sp.red[l] != red) continue;
    int s = unit_score(k, l);
    if (best < 0 || s >= score) {
      best = l;
      score = s;
    }
  }
  int want = cg_choose(c, best);
  if (want >= 0 && want < k->sp.n && k->sp.red[want] == red) return want;
  if (want != best) c->choices->failed = true;
  return best;
}

static void order_loops(cg *c, lp_kernel *k) {
  for (int pass = 0; pass < k->sp.n; pass++)
    for (int l = 0; l + 1 < k->sp.n; l++)
      if (k->sp.red[l] && !k->sp.red[l + 1]) swap_loops(k, l, l + 1);
  bool any = false;
  for (int l = 0; l < k->sp.n; l++) any = any || k->sp.red[l];
  if (!any && k->sp.n > 1) {
    int l = best_loop(c, k, false);
    k->sp.red[l] = true;
    to_end(k, l);
  } else if (any) to_end(k, best_loop(c, k, true));
  k->nrow = 0;
  k->rows = k->inner = 1;
  for (int l = 0; l < k->sp.n; l++) {
    if (k->sp.red[l]) k->inner *= k->sp.size[l];
    else {
      k->nrow++;
      k->rows *= k->sp.size[l];
    }
  }
}

/* ---- levels and passes ---- */

static bool uses_any(const lp_kernel *k, const cg_acc *a, bool red) {
  for (int l = 0; l < k->sp.n; l++)
    if (k->sp.red[l] == red && a->st[l]) return true;
  return false;
}

static lp_level acc_level(const lp_kernel *k, const cg_acc *a) {
  if (uses_any(k, a, true)) return LP_ELEM;
  return uses_any(k, a, false) ? LP_ROW : LP_UNIFORM;
}

static void red_level(lp_kernel *k, lp_ins *p) {
  bool rows = false, inner = false;
  for (int l = 0; l < k->sp.n; l++) {
    bool lr = p->xacc.st[l] && !p->acc.st[l];
    if (k->sp.red[l]) inner = inner || lr;
    else rows = rows || lr;
  }
  if (p->phase) p->rk = inner ? CG_RK_ALL : CG_RK_COL;
  else p->rk = inner ? CG_RK_ROW : CG_RK_NONE;
  (void)rows;
  p->level = p->rk == CG_RK_ROW || p->rk == CG_RK_NONE ? LP_ROW : uses_any(k, &p->acc, true) ? LP_ELEM : LP_UNIFORM;
  if (p->rk == CG_RK_NONE && uses_any(k, &p->acc, true)) p->level = LP_ELEM;
}

static void set_level(lp_kernel *k, lp_ins *p) {
  if (p->op == LP_RED) {
    red_level(k, p);
    return;
  }
  int level = acc_level(k, &p->acc);
  for (int a = 0; a < p->narg; a++) level = RL_MAX(level, k->ins[p->arg[a]].level);
  if (!p->phase && p->op == LP_STORE && level == LP_UNIFORM) level = LP_ROW;
  p->level = (uint8_t)level;
}

/* Element values that later passes need: computed again when cheap, else kept for the row. */
static double remake_cost(const lp_kernel *k, int i, double *memo) {
  const lp_ins *p = &k->ins[i];
  if (p->level != LP_ELEM || p->op == LP_LOAD || p->keep) return p->level == LP_ELEM ? 1 : 0;
  if (memo[i] >= 0) return memo[i];
  double s = lp_cost(p);
  for (int a = 0; a < p->narg; a++) s += remake_cost(k, p->arg[a], memo);
  return memo[i] = s;
}

double lp_cost(const lp_ins *p) {
  static const char *const cheap[] = { "neg", "add", "sub",   "mul", "cast",    "lt",      "gt",     "le",  "ge",
                                       "eq",  "ne",  "where", "abs", "maximum", "minimum", "square", "relu" };
  if (p->op == LP_RAND) return 24;
  if (p->op == LP_EW) {
    for (size_t i = 0; i < sizeof cheap / sizeof *cheap; i++)
      if (!strcmp(rl_ops[p->row].name, cheap[i])) return 1;
    return strchr(rl_ops[p->row].expr, '(') ? 12 : 3;
  }
  return p->op == LP_CONST || p->op == LP_NUM ? 0 : 1;
}

static void set_passes(lp_kernel *k) {
  k->npass = 1;
  for (int i = 0; i < k->n; i++) {
    lp_ins *p = &k->ins[i];
    if (p->phase && p->op != LP_RED) continue;
    int pass = 0;
    for (int a = 0; a < p->narg; a++) {
      const lp_ins *q = &k->ins[p->arg[a]];
      int at = q->op == LP_RED && q->rk == CG_RK_ROW ? q->pass + 1 : q->pass;
      if (!q->phase) pass = RL_MAX(pass, at);
    }
    p->pass = pass;
    k->npass = RL_MAX(k->npass, pass + 1);
  }
  for (int i = 0; i < k->n; i++) { /* the old content is read until the last pass */
    lp_ins *p = &k->ins[i];
    if (p->op == LP_STORE && p->inplace && !p->phase && p->level == LP_ELEM) p->pass = k->npass - 1;
  }
}

/* Random rows whose elements are neighbours are drawn four from a counter. */
static void set_fills(cg *c, lp_kernel *k) {
  bool rowless = k->sp.n == 1 && k->nrow == 1;
  if (!cg_choose_if(c, rowless || (k->sp.n - k->nrow == 1 && k->inner <= ROW_BUFFER_MAX))) return;
  for (int i = 0; i < k->n; i++) {
    lp_ins *p = &k->ins[i];
    if (p->op != LP_RAND || p->dt != RL_F32 || p->phase || strcmp(rl_ops[p->row].name, "rand") || p->acc.st[k->sp.n - 1] != 1) continue;
    p->keep = p->fill = true;
  }
}

/* Last to first: what each pass needs, what is kept for later passes, and the pass that makes it. */
static bool set_buffers(cg *c, lp_kernel *k) {
  uint64_t *need = calloc((size_t)k->n + 1, sizeof *need);
  double *memo = malloc(sizeof(double) * (size_t)(k->n + 1));
  int64_t used = 0;
  if (!need || !memo) {
    free(need);
    free(memo);
    return false;
  }
  for (int j = 0; j < k->n; j++) memo[j] = -1;
  for (int i = k->n - 1; i >= 0; i--) {
    lp_ins *p = &k->ins[i];
    if (p->phase && p->op != LP_RED) continue;
    if (p->op == LP_RED || p->op == LP_STORE) need[i] |= 1ull << p->pass;
    if (!need[i]) continue;
    bool element = p->level == LP_ELEM && p->op != LP_RED && p->op != LP_STORE;
    if (element && (need[i] & (need[i] - 1)) && !p->keep && p->op != LP_LOAD && remake_cost(k, i, memo) >= 5) {
      int64_t bytes = k->inner * (rl_dtypes[p->dt].bytes == 8 ? 8 : 4);
      if (cg_choose_if(c, k->inner <= ROW_BUFFER_MAX && used + bytes <= ROW_BUFFERS_BYTES)) {
        p->keep = true;
        used += bytes;
      }
    }
    if (p->keep) {
      p->pass = __builtin_ctzll(need[i]);
      need[i] = 1ull << p->pass;
    }
    for (int a = 0; a < p->narg; a++)
      if (k->ins[p->arg[a]].level == LP_ELEM) need[p->arg[a]] |= need[i];
  }
  free(need);
  free(memo);
  return true;
}

/* ---- work ---- */

static void measure(cg *c, lp_kernel *k) {
  double w = 0;
  k->flops = k->bytes = 0;
  for (int i = 0; i < k->n; i++) {
    const lp_ins *p = &k->ins[i];
    int64_t n = p->level == LP_ELEM ? (p->phase && p->op != LP_RED ? k->inner : k->rows * k->inner) : p->level == LP_ROW && !p->phase ? k->rows : 1;
    if (p->op == LP_RED) n = p->rk != CG_RK_COL || p->level == LP_ELEM ? k->rows * k->inner : k->rows;
    w += lp_cost(p) * (double)n;
    if (p->op == LP_EW || p->op == LP_RED) k->flops += n;
    if (p->op == LP_LOAD || p->op == LP_STORE) {
      int64_t d = 1;
      for (int l = 0; l < k->sp.n; l++)
        if (p->acc.st[l]) d *= k->sp.size[l];
      k->bytes += d * rl_dtypes[c->buf[p->buf].dt].bytes;
    }
  }
  k->work = (int64_t)w;
}

static void set_chunks(lp_kernel *k) {
  bool over_rows = false, assoc = true;
  k->nscalar = k->ncol = 0;
  for (int i = 0; i < k->n; i++) {
    lp_ins *p = &k->ins[i];
    if (p->op != LP_RED || !p->phase) continue;
    over_rows = true;
    assoc = assoc && lp_associative(p->row);
    p->slot = p->level == LP_ELEM ? k->ncol++ : k->nscalar++;
  }
  int64_t most = over_rows ? 16 : 64;
  if (!assoc) most = 1;
  k->chunks = (int)RL_MAX(1, RL_MIN(RL_MIN(k->rows, most), k->work / 8192));
}

static rl_status make_scratch(cg *c, lp_kernel *k, int order) {
  int64_t n = (int64_t)k->chunks * (k->nscalar + k->ncol * k->inner);
  k->scratch = -1;
  if (!n) return RL_OK;
  cg_buf *p = realloc(c->buf, sizeof(cg_buf) * (size_t)(c->nbuf + 1));
  if (!p) return rl_error_status(RL_OOM, "[compile] out of memory");
  c->buf = p;
  c->capbuf = c->nbuf + 1;
  c->buf[c->nbuf] = (cg_buf){ .dt = RL_F64, .size = n, .root = -1, .index = -1, .first = order, .last = order };
  k->scratch = c->nbuf++;
  return RL_OK;
}

/* Builds the kernel of a group. */
rl_status lp_build(cg *c, int group, lp_kernel *k) {
  const cg_group *g = &c->group[group];
  memset(k, 0, sizeof *k);
  build b = { c, g, k, malloc(sizeof(int) * (size_t)(c->n + 1)), false };
  if (!b.of) return rl_error_status(RL_OOM, "[compile] out of memory");
  for (int i = 0; i < c->n; i++) b.of[i] = -1;
  for (int m = 0; m < g->n && !b.failed; m++) build_member(&b, m);
  free(b.of);
  if (b.failed) return rl_error("[compile] no loop form for a group of %d ops", g->n);
  k->sp = g->sp;
  join_loops(c, k);
  order_loops(c, k);
  join_loops(c, k);
  order_loops(c, k);
  for (int i = 0; i < k->n; i++) set_level(k, &k->ins[i]);
  set_passes(k);
  if (k->npass > 62) return rl_error("[compile] a kernel with %d passes", k->npass);
  set_fills(c, k);
  if (!set_buffers(c, k)) return rl_error_status(RL_OOM, "[compile] out of memory");
  measure(c, k);
  set_chunks(k);
  return make_scratch(c, k, g->order);
}

void lp_free(lp_kernel *k) {
  free(k->ins);
  memset(k, 0, sizeof *k);
}
