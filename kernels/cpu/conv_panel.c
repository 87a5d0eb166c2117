/* Correlation: panels of patches times a weight on register tiles (x, w -> r), for every convolution's result and input gradient. */
#include <omp.h>
#include "conv.h"

/* Neighbouring places of the grid, over rows and images; a run is what lies in one row. */
#define WIDE 3 /* vectors of a panel */
#define WIDTH_MAX (WIDE * 16)
typedef struct run {
  int64_t at, image, y, x, n;
} run;
typedef struct panel {
  int nrun;
  run run[WIDTH_MAX];
  int64_t n;
  bool direct; /* the result takes whole vectors in place */
} panel;

static void panel_make(const corr *c, panel *p, int64_t first) {
  int64_t width = WIDE * c->f->lanes, plane = c->oh * c->ow, image = first / plane, y = first % plane / c->ow, x = first % c->ow;
  p->n = RL_MIN(width, c->n * plane - first), p->nrun = 0;
  p->direct = c->rx == 1 && c->ry == c->ow && p->n % c->f->lanes == 0 && (first + p->n - 1) / plane == image;
  for (int64_t at = 0; at < p->n;) {
    int64_t n = RL_MIN(c->ow - x, p->n - at);
    p->run[p->nrun++] = (run){ at, image, y, x, n };
    at += n, x = 0;
    if (++y == c->oh) y = 0, image++;
  }
}

/* Rows (channel, tap) of channels c0..c1 at the places of the panel. */
static void panel_fill(const corr *c, const panel *p, const char *x, int64_t c0, int64_t c1, char *buf) {
  int64_t width = WIDE * c->f->lanes, row = width * c->bytes, plane = c->plane * c->bytes;
  rl_piece piece[WIDTH_MAX];
  for (int t = 0; t < c->nt; t++) {
    const tap *k = &c->tap[t];
    int64_t full = 0;
    int np = 0;
    for (int i = 0; i < p->nrun; i++) {
      const run *r = &p->run[i];
      int64_t y = r->y * c->sh + k->y, lo = RL_MAX(r->x, k->lo), hi = RL_MIN(r->x + r->n, k->hi);
      if (y < 0 || y >= c->h || lo >= hi) continue;
      piece[np++] = (rl_piece){ (r->at + lo - r->x) * c->bytes, (r->image * c->xi + y * c->pitch + lo * c->step + k->at) * c->bytes,
                                (hi - lo) * c->bytes };
      full += hi - lo;
    }
    c->f->lay(c1 - c0, x + c0 * plane, plane, buf + t * row, c->nt * row, np, piece, c->step, full < width ? row : 0);
  }
}

/* out (m, width) -> the places of the panel in r. */
static void panel_store(const corr *c, const panel *p, int64_t m, const char *out, char *r) {
  int64_t width = WIDE * c->f->lanes;
  for (int64_t i = 0; i < m; i++, out += width * c->bytes)
    for (int k = 0; k < p->nrun; k++) {
      const run *q = &p->run[k];
      char *to = r + (q->image * c->ri + i * c->rc + q->y * c->ry + q->x * c->rx) * c->bytes;
      const char *from = out + q->at * c->bytes;
      if (c->rx == 1) memcpy(to, from, (size_t)(q->n * c->bytes));
      else if (c->bytes == 4)
        for (int64_t j = 0; j < q->n; j++) ((float *)to)[j * c->rx] = ((const float *)from)[j];
      else
        for (int64_t j = 0; j < q->n; j++) ((double *)to)[j * c->rx] = ((const double *)from)[j];
    }
}

/* How the work is cut: chunks of channels whose panel fits the first cache, several panels a pass where the weight is large. */
typedef struct cut {
  int64_t chunk, panels, pieces, rows, parts, tasks; /* channels; panels of a task, tasks of panels; result channels of a task, tasks of those */
  size_t buf, out;
} cut;
static cut corr_cut(const corr *c) {
  cut q;
  int64_t k = c->c * c->nt, width = WIDE * c->f->lanes, total = ceil_div(c->n * c->oh * c->ow, width), tall = c->f->rows[WIDE];
  q.chunk = ceil_div(c->c, RL_MAX(1, RL_MIN(c->c, ceil_div(k * c->bytes, 768))));
  q.panels = RL_MAX(1, RL_MIN(RL_MIN(12, total / (2 * omp_get_max_threads())), 500000 / (q.chunk * c->nt * width * c->bytes)));
  q.panels = RL_MAX(1, RL_MIN(q.panels, 1000000 / (c->m * width * c->bytes)));
  q.pieces = ceil_div(total, q.panels);
  q.parts = 1;
  while (q.pieces * q.parts * c->groups < 4 * omp_get_max_threads() && c->m > 4 * tall * q.parts) q.parts *= 2;
  q.rows = ceil_div(ceil_div(c->m, q.parts), tall) * tall;
  q.parts = ceil_div(c->m, q.rows);
  q.tasks = q.pieces * q.parts * c->groups;
  q.buf = (size_t)(q.panels * q.chunk * c->nt * width * c->bytes);
  q.out = (size_t)(q.panels * q.rows * width * c->bytes);
  return q;
}

/* Rows m0..m1 of channels c0..c1 at np panels: in place, or to out (panel, m, width). */
static void multiply(const corr *c, const panel *p, int64_t np, int64_t m0, int64_t m1, int64_t c0, int64_t c1, const char *wt, const char *bias,
                     const char *buf, int64_t bsize, char *out, int64_t osize, char *r) {
  int64_t width = WIDE * c->f->lanes, k = c->c * c->nt;
  for (int64_t m = m0, rows; m < m1; m += rows) {
    rows = ceil_div(m1 - m, ceil_div(m1 - m, c->f->rows[WIDE]));
    rl_tile t = { .images = 1, .rows = 1, .cols = (c1 - c0) * c->nt, .ac = 1, .ldb = width, .add = c0 > 0 };
    for (int64_t j = 0; j < rows; j++) t.a[j] = wt + ((m + j) * k + c0 * c->nt) * c->bytes;
    if (c1 == c->c) t.relu = c->relu, t.bias = bias ? bias + m * c->bytes : NULL;
    for (int64_t i = 0; i < np; i++) {
      const run *s = &p[i].run[0];
      t.b = buf + i * bsize;
      t.c = p[i].direct ? r + (s->image * c->ri + (m - m0) * c->rc + s->y * c->ry + s->x) * c->bytes : out + i * osize + (m - m0) * width * c->bytes;
      t.ldc = p[i].direct ? c->rc : width;
      c->f->mul[ceil_div(p[i].n, c->f->lanes)][rows](&t);
    }
  }
}

static void corr_task(const corr *c, const cut *q, int64_t task, panel *p, char *buf, char *out) {
  int64_t piece = task / q->parts % q->pieces, g = task / q->parts / q->pieces, m0 = task % q->parts * q->rows, m1 = RL_MIN(c->m, m0 + q->rows);
  int64_t width = WIDE * c->f->lanes, np = RL_MIN(q->panels, ceil_div(c->n * c->oh * c->ow, width) - piece * q->panels);
  int64_t bsize = q->chunk * c->nt * width * c->bytes, osize = q->rows * width * c->bytes;
  const char *wt = c->wt + g * c->wg * c->bytes, *x = c->x + g * c->xg * c->bytes;
  char *r = c->r + (g * c->rg + m0 * c->rc) * c->bytes;
  for (int64_t i = 0; i < np; i++) panel_make(c, &p[i], (piece * q->panels + i) * width);
  for (int64_t c0 = 0; c0 < c->c; c0 += q->chunk) {
    int64_t c1 = RL_MIN(c->c, c0 + q->chunk);
    for (int64_t i = 0; i < np; i++) panel_fill(c, &p[i], x, c0, c1, buf + i * bsize);
    multiply(c, p, np, m0, m1, c0, c1, wt, c->bias ? c->bias + g * c->m * c->bytes : NULL, buf, bsize, out, osize, r);
  }
  for (int64_t i = 0; i < np; i++)
    if (!p[i].direct) panel_store(c, &p[i], m1 - m0, out + i * osize, r);
}

rl_status rl_corr_run(const corr *c, bool shares) {
  cut q = corr_cut(c);
  bool failed = false;
#pragma omp parallel if (shares)
  {
    panel *p = rl_alloc((size_t)q.panels * sizeof *p);
    char *buf = rl_alloc(q.buf), *out = rl_alloc(q.out);
    if (!p || !buf || !out) failed = true;
#pragma omp for schedule(dynamic)
    for (int64_t t = 0; t < q.tasks; t++)
      if (p && buf && out) corr_task(c, &q, t, p, buf, out);
    if (p) rl_free(p, (size_t)q.panels * sizeof *p);
    if (buf) rl_free(buf, q.buf);
    if (out) rl_free(out, q.out);
  }
  return failed ? RL_OOM : RL_OK;
}

void rl_corr_tap(const corr *c, tap *k) {
  k->lo = k->x < 0 ? ceil_div(-k->x, c->sw) : 0;
  k->hi = k->x < c->w ? RL_MIN(c->ow, (c->w - 1 - k->x) / c->sw + 1) : 0;
  k->at = k->x;
}

/* Rows (channel, tap) at the places of a panel -> added to the planes of the input. */
static void panel_fold(const corr *c, const panel *p, const fold *f, const char *out) {
  const conv *v = f->v;
  int64_t width = WIDE * c->f->lanes, row = width * c->bytes, nt = v->kh * v->kw;
  rl_piece piece[WIDTH_MAX];
  for (int64_t t = 0; t < nt; t++) {
    const tap *k = &f->tap[t];
    int np = 0;
    for (int i = 0; i < p->nrun; i++) {
      const run *r = &p->run[i];
      int64_t y = r->y * v->sh + k->y, lo = RL_MAX(r->x, k->lo), hi = RL_MIN(r->x + r->n, k->hi);
      if (y < 0 || y >= v->h || lo >= hi) continue;
      piece[np++] = (rl_piece){ (y * v->w + lo * v->sw + k->x) * c->bytes, (r->at + lo - r->x) * c->bytes, (hi - lo) * c->bytes };
    }
    c->f->add(c->m / nt, out + t * row, nt * row, f->r, v->h * v->w * c->bytes, np, piece, v->sw);
  }
}

#define FOLD_PANELS 4
static int64_t fold_chunk(const corr *c) { return RL_MIN(c->c, 192); }
size_t rl_corr_fold_size(const corr *c) { return (size_t)(FOLD_PANELS * WIDE * c->f->lanes * c->bytes * (fold_chunk(c) + c->m)); }

void rl_corr_fold(const corr *c, const fold *f, char *work) {
  panel p[FOLD_PANELS];
  int64_t width = WIDE * c->f->lanes, chunk = fold_chunk(c), bsize = chunk * width * c->bytes, osize = c->m * width * c->bytes;
  char *out = work + FOLD_PANELS * bsize;
  for (int64_t at = 0, l = c->oh * c->ow; at < l; at += FOLD_PANELS * width) {
    int64_t np = RL_MIN(FOLD_PANELS, ceil_div(l - at, width));
    for (int64_t i = 0; i < np; i++) panel_make(c, &p[i], at + i * width), p[i].direct = false;
    for (int64_t c0 = 0; c0 < c->c; c0 += chunk) {
      int64_t c1 = RL_MIN(c->c, c0 + chunk);
      for (int64_t i = 0; i < np; i++) panel_fill(c, &p[i], c->x, c0, c1, work + i * bsize);
      multiply(c, p, np, 0, c->m, c0, c1, c->wt, NULL, work, bsize, out, osize, NULL);
    }
    for (int64_t i = 0; i < np; i++) panel_fold(c, &p[i], f, out + i * osize);
  }
}
