/* Matrix products: panels of b, laid out for the second cache, times rows of a on register tiles (a, b -> c). */
#include <omp.h>
#include <string.h>
#include "gemm.h"
#include "tile.h"

#define WIDE 3 /* vectors of a panel */
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* How the work is cut. The chunk of k depends on sizes alone, and nothing else changes the order of a sum. */
typedef struct cut {
  const rl_tile_fns *f;
  int64_t bytes, width, chunk, panels, groups, rows, parts; /* panels of a task, tasks of panels; rows of a task, tasks of rows */
  size_t abuf, bbuf, out;
} cut;
static cut gemm_cut(const rl_gemm *g, bool shares) {
  cut q = { .f = rl_tiles(g->dt), .bytes = rl_dtypes[g->dt].bytes };
  int64_t tall, total, threads = shares ? omp_get_max_threads() : 1;
  q.width = WIDE * q.f->lanes;
  tall = q.f->rows[WIDE];
  total = ceil_div(g->n, q.width);
  q.chunk = ceil_div(g->k, ceil_div(g->k, 320));
  q.panels = RL_MAX(1, RL_MIN(600000 / (q.chunk * q.width * q.bytes), ceil_div(total, threads)));
  q.groups = ceil_div(total, q.panels);
  q.panels = ceil_div(total, q.groups);
  q.parts = 1;
  while (q.groups * q.parts < 2 * threads && g->m > 8 * tall * q.parts) q.parts++;
  q.rows = ceil_div(ceil_div(g->m, q.parts), tall) * tall;
  q.parts = ceil_div(g->m, q.rows);
  q.abuf = g->ak == 1 ? 0 : (size_t)(q.chunk * tall * q.bytes);
  q.bbuf = (size_t)(q.panels * q.chunk * q.width * q.bytes);
  q.out = g->n % q.f->lanes ? (size_t)(RL_MIN(q.rows, g->m) * q.width * q.bytes) : 0;
  return q;
}

/* Rows k0..k1 of columns j.. of b -> panel (k, width), times alpha. */
static void pack(const rl_gemm *g, const cut *q, int64_t j, int64_t n, int64_t k0, int64_t k1, char *r) {
  const char *b = g->b + (k0 * g->bk + j * g->bn) * q->bytes;
  int64_t row = q->width * q->bytes;
  if (g->bn == 1) {
    rl_piece p = { 0, 0, n * q->bytes };
    q->f->lay(k1 - k0, b, g->bk * q->bytes, r, row, 1, &p, 1, n % q->f->lanes ? ceil_div(n, q->f->lanes) * q->f->lanes * q->bytes : 0);
  } else {
    if (n % q->f->lanes) memset(r, 0, (size_t)((k1 - k0) * row));
    q->f->turn(n, k1 - k0, b, g->bn, r, q->width);
  }
  if (g->alpha == 1) return;
  for (int64_t i = 0; i < (k1 - k0) * q->width; i++)
    if (g->dt == RL_F64) ((double *)r)[i] *= g->alpha;
    else ((float *)r)[i] *= (float)g->alpha;
}

/* Rows m.. of a for a tile: as they lie when k is dense, else (k, rows) in abuf. */
static void take_rows(const rl_gemm *g, const cut *q, int64_t m, int64_t rows, int64_t k0, int64_t k1, char *abuf, rl_tile *t) {
  const char *a = g->a + (m * g->am + k0 * g->ak) * q->bytes;
  t->ac = 1;
  if (g->ak != 1) {
    rl_piece p = { 0, 0, rows * q->bytes };
    q->f->lay(k1 - k0, a, g->ak * q->bytes, abuf, rows * q->bytes, 1, &p, 1, 0);
    t->ac = rows;
  }
  for (int64_t i = 0; i < rows; i++) t->a[i] = g->ak == 1 ? a + i * g->am * q->bytes : abuf + i * q->bytes;
}

/* The part of the last panel that fills no vector: out (rows, width) -> c. */
static void finish(const rl_gemm *g, const cut *q, int64_t m0, int64_t m1, int64_t j, const char *out) {
  int64_t n = g->n - j;
  for (int64_t i = m0; i < m1; i++, out += q->width * q->bytes) {
    char *c = g->c + (i * g->ldc + j) * q->bytes;
    if (!g->add) memcpy(c, out, (size_t)(n * q->bytes));
    else if (g->dt == RL_F64)
      for (int64_t k = 0; k < n; k++) ((double *)c)[k] += ((const double *)out)[k];
    else
      for (int64_t k = 0; k < n; k++) ((float *)c)[k] += ((const float *)out)[k];
  }
}

static void task(const rl_gemm *g, const cut *q, int64_t at, char *abuf, char *bbuf, char *out) {
  int64_t p0 = at % q->groups * q->panels, p1 = RL_MIN(ceil_div(g->n, q->width), p0 + q->panels), tall = q->f->rows[WIDE];
  int64_t m0 = at / q->groups * q->rows, m1 = RL_MIN(g->m, m0 + q->rows), size = q->chunk * q->width * q->bytes;
  bool ragged = p1 * q->width > g->n && g->n % q->f->lanes;
  for (int64_t k0 = 0; k0 < g->k; k0 += q->chunk) {
    int64_t k1 = RL_MIN(g->k, k0 + q->chunk);
    for (int64_t p = p0; p < p1; p++) pack(g, q, p * q->width, RL_MIN(q->width, g->n - p * q->width), k0, k1, bbuf + (p - p0) * size);
    for (int64_t m = m0, rows; m < m1; m += rows) {
      rl_tile t = { .images = 1, .rows = 1, .cols = k1 - k0, .ldb = q->width };
      rows = ceil_div(m1 - m, ceil_div(m1 - m, tall));
      take_rows(g, q, m, rows, k0, k1, abuf, &t);
      for (int64_t p = p0; p < p1; p++) {
        bool aside = ragged && p == p1 - 1;
        t.b = bbuf + (p - p0) * size;
        t.c = aside ? out + (m - m0) * q->width * q->bytes : g->c + (m * g->ldc + p * q->width) * q->bytes;
        t.ldc = aside ? q->width : g->ldc;
        t.add = k0 > 0 || (g->add && !aside);
        q->f->mul[ceil_div(RL_MIN(q->width, g->n - p * q->width), q->f->lanes)][rows](&t);
      }
    }
  }
  if (ragged) finish(g, q, m0, m1, (p1 - 1) * q->width, out);
}

/* All tasks, or this thread's share of them. */
static bool run(const rl_gemm *g, const cut *q, bool shares) {
  size_t bytes = q->abuf + q->bbuf + q->out;
  char *buf = rl_alloc(bytes);
  if (shares) {
#pragma omp for schedule(dynamic)
    for (int64_t t = 0; t < q->groups * q->parts; t++)
      if (buf) task(g, q, t, buf + q->bbuf, buf, buf + q->bbuf + q->abuf);
  } else
    for (int64_t t = 0; t < q->groups * q->parts && buf; t++) task(g, q, t, buf + q->bbuf, buf, buf + q->bbuf + q->abuf);
  if (buf) rl_free(buf, bytes);
  return buf;
}

rl_status rl_gemm_run(const rl_gemm *g, bool shares) {
  cut q = gemm_cut(g, shares);
  if (!shares || q.groups * q.parts == 1) return run(g, &q, false) ? RL_OK : RL_OOM;
  bool failed = false;
#pragma omp parallel
  if (!run(g, &q, true)) failed = true;
  return failed ? RL_OOM : RL_OK;
}
