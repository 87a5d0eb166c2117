/* Sharing a kernel among threads on CUDA (loop form -> geometry).
 *
 *   CG_FLAT  nothing is reduced inside a row: a thread takes a few neighbouring elements of the whole space
 *   CG_ROWS  a warp, a block or a cluster of blocks takes a row at a time; what later passes need again stays in registers
 *   CG_COLS  sums over the rows, nothing along them: threads lie along the row and walk down, lanes of rows are added at the end
 *
 * The numbers depend on sizes alone, so results are the same on every GPU that has clusters, and on every other. */
#include "cuda.h"
#include "../runtime/cuda.h"
#include <stdlib.h>
#include <string.h>

enum { CLUSTER = 8, CLUSTER_THREADS = 512, FLAT_PARTS = 528, ROW_PARTS = 264, WARP_PARTS = 1056, REGISTERS = 64 };

/* A kernel of single elements has its one loop inside the row. */
static void turn_rowless(lp_kernel *k) {
  if (k->nrow != k->sp.n || k->sp.n > 1) return;
  if (k->sp.n == 1) k->sp.red[0] = true;
  k->nrow = 0;
  k->inner = k->rows;
  k->rows = 1;
  for (int i = 0; i < k->n; i++) {
    lp_ins *p = &k->ins[i];
    if (p->op == LP_RED && p->phase) p->rk = CG_RK_ALL;
    else if (p->level == LP_ROW && !p->phase) p->level = LP_ELEM;
    p->keep = p->fill = false;
  }
}

static bool has(const lp_kernel *k, bool rows, bool columns) {
  for (int i = 0; i < k->n; i++) {
    const lp_ins *p = &k->ins[i];
    if (p->op != LP_RED) continue;
    if (rows && p->rk == CG_RK_ROW) return true;
    if (columns && p->phase && p->level == LP_ELEM) return true;
  }
  return false;
}

static bool positioned(const lp_ins *p) {
  return p->op == LP_LOAD || p->op == LP_STORE || p->op == LP_GATHER || p->op == LP_RAND || p->op == LP_INDEX;
}

static bool is_small(const cg *c, const lp_kernel *k) {
  if (k->rows * k->inner >= INT32_MAX) return false;
  for (int i = 0; i < k->n; i++) {
    const lp_ins *p = &k->ins[i];
    int64_t most = p->acc.off;
    if (!positioned(p)) continue;
    for (int l = 0; l < k->sp.n; l++) most += llabs(p->acc.st[l]) * (k->sp.size[l] - 1);
    if (p->op == LP_GATHER) most = c->buf[p->buf].size;
    if (most >= INT32_MAX) return false;
  }
  return true;
}

/* Elements of the last loop at p's places lie side by side, n at a time, on a boundary of n. */
static bool lines_up(const lp_kernel *k, const lp_ins *p, int n) {
  int last = k->sp.n - 1;
  if (p->level != LP_ELEM || p->phase || p->acc.st[last] != 1 || p->acc.off % n) return false;
  for (int l = 0; l < last; l++)
    if (p->acc.st[l] % n) return false;
  return true;
}

static int width(const lp_kernel *k) {
  int good = 0, other = 0;
  if (k->sp.n == 0 || k->sp.size[k->sp.n - 1] % 4 || k->rows * k->inner < 1 << 15) return 1;
  for (int i = 0; i < k->n; i++) {
    const lp_ins *p = &k->ins[i];
    if (p->op != LP_LOAD && p->op != LP_STORE && p->op != LP_RAND) continue;
    if (lines_up(k, p, 4)) good++;
    else if (p->level == LP_ELEM && p->acc.st[k->sp.n - 1] != 0) other++;
  }
  return good > other ? 4 : 1;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int pow2_above(int64_t n, int low, int high) {
  int r = low;
  while (r < high && r < n) r *= 2;
  return r;
}

/* Few long rows would leave most of the GPU idle: blocks of a cluster share each. */
static bool plan_clusters(lp_kernel *k, cg_plan *p, int64_t ng) {
  if (k->nscalar || k->ncol || k->rows >= 264 || !rl_cuda_clusters()) return false;
  while (p->cluster < CLUSTER && k->rows * p->cluster < 264 && ng > p->cluster * CLUSTER_THREADS) p->cluster *= 2;
  if (p->cluster == 1) return false;
  p->threads = CLUSTER_THREADS;
  p->tpr = p->cluster * CLUSTER_THREADS;
  p->ne = (int)ceil_div(ng, p->tpr);
  p->exact = ng % p->tpr == 0;
  p->blocks = p->parts = p->cparts = k->rows;
  p->registers = true;
  return true;
}

static void plan_rows(lp_kernel *k, cg_plan *p) {
  int64_t ng = k->inner / p->vec;
  bool sums = k->nscalar || k->ncol;
  if (plan_clusters(k, p, ng)) return;
  int t = 32;
  while (t < 1024 && ng > t * (k->n > 60 ? 1 : 4)) t *= 2; /* long kernels: few elements a thread, as registers are what they run out of */
  while (t < 1024 && ng > t && k->rows * t < 132 * 1024) t *= 2;
  p->tpr = t;
  p->ne = (int)ceil_div(ng, t);
  p->exact = ng % t == 0;
  p->threads = t > 32 ? t : k->rows >= 528 ? 128 : 32;
  int64_t groups = p->threads / t; /* rows at once in a block */
  p->blocks = ceil_div(k->rows, groups);
  if (sums) p->blocks = RL_MIN(p->blocks, t > 32 ? ROW_PARTS : WARP_PARTS / groups);
  p->blocks = RL_MIN(p->blocks, 1 << 20);
  p->parts = p->cparts = p->blocks * groups;
  p->registers = p->ne * p->vec * RL_MAX(1, k->ncol) <= REGISTERS;
}

static void plan_columns(lp_kernel *k, cg_plan *p) {
  int64_t ng = k->inner / p->vec;
  p->tpr = pow2_above(ng, 1, 256);
  p->ty = 256 / p->tpr;
  p->threads = 256;
  p->ne = 1;
  p->exact = ng % p->tpr == 0;
  p->blocks = ceil_div(ng, p->tpr);
  p->columns = RL_MAX(1, RL_MIN(RL_MIN(ceil_div(k->rows, p->ty * 4), ceil_div(1056, p->blocks)), 256));
  p->cparts = p->columns;
  p->parts = p->blocks * p->columns;
  p->registers = true;
}

static void plan_flat(lp_kernel *k, cg_plan *p) {
  int64_t n = k->rows * k->inner / p->vec;
  p->threads = 256;
  p->blocks = RL_MAX(1, ceil_div(n, 256));
  if (k->nscalar) p->blocks = RL_MIN(p->blocks, FLAT_PARTS);
  p->blocks = RL_MIN(p->blocks, 1 << 30);
  p->parts = p->blocks;
  p->exact = n % 256 == 0;
}

/* Values are kept between passes where a thread's part of the row fits its registers. */
static void keep_fits(lp_kernel *k, const cg_plan *p) {
  int used = 0;
  for (int i = 0; i < k->n; i++) {
    lp_ins *q = &k->ins[i];
    q->fill = false;
    if (!q->keep) continue;
    used += p->ne * p->vec * (rl_dtypes[q->dt].bytes == 8 ? 2 : 1);
    if (p->share != CG_ROWS || used > REGISTERS) q->keep = false;
  }
}

void cg_cuda_plan(cg *c, lp_kernel *k, cg_plan *p) {
  memset(p, 0, sizeof *p);
  turn_rowless(k);
  p->columns = p->cluster = 1;
  p->vec = width(k);
  p->small = is_small(c, k);
  p->share = has(k, true, false) ? CG_ROWS : has(k, false, true) ? CG_COLS : CG_FLAT;
  if (p->share == CG_ROWS) plan_rows(k, p);
  else if (p->share == CG_COLS) plan_columns(k, p);
  else plan_flat(k, p);
  keep_fits(k, p);
  if (k->scratch >= 0) c->buf[k->scratch].size = p->parts * k->nscalar + p->cparts * k->ncol * k->inner;
}
