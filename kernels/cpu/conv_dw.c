/* Convolution: the weight gradient, on register tiles whose rows are places of the weight and whose vectors are channels (g, x -> dw). */
#include "conv.h"

typedef struct grad {
  const conv *v;
  const rl_tile_fns *f;
  int64_t c, o, k, l, op;       /* channels of a group, weights of one result channel, places; o in whole vectors */
  int64_t chunk, chunks, parts; /* channels of a task; tasks of channels, of images */
  int64_t hp, wp, images, rows; /* padded sizes; a block is rows of one image or several whole images */
  int64_t vecs;                 /* of o, whole */
  bool pads;
  const char *x, *g;
  char *sum; /* parts, groups, k, op */
  size_t xsize, gsize;
} grad;

#define PLACES 128 /* of a block, about */
/* Vectors of the tile that begins at vector o. */
static int64_t tile_vecs(const grad *d, int64_t o) { return ceil_div(d->vecs - o, ceil_div(d->vecs - o, d->f->rows[4] ? 4 : 3)); }

/* How the work is cut: by sizes alone, so that the sums are the same for any number of threads. */
static void grad_cut(grad *d) {
  const conv *v = d->v;
  int64_t nt = v->kh * v->kw;
  d->c = v->c / v->groups, d->o = v->o / v->groups, d->k = d->c * nt, d->l = v->oh * v->ow;
  d->vecs = ceil_div(d->o, d->f->lanes), d->op = d->vecs * d->f->lanes;
  d->chunk = ceil_div(d->c, RL_MIN(d->c, RL_MAX(1, d->k / 256)));
  d->chunks = ceil_div(d->c, d->chunk);
  d->parts = RL_MIN(v->n, RL_MAX(1, 32 / (d->chunks * v->groups)));
  d->hp = (v->oh - 1) * v->sh + (v->kh - 1) * v->dh + 1, d->wp = (v->ow - 1) * v->sw + (v->kw - 1) * v->dw + 1;
  d->pads = v->ph || v->pw;
  d->images = RL_MIN(v->n, RL_MAX(1, PLACES / d->l));
  d->rows = d->images > 1 ? v->oh : RL_MIN(v->oh, RL_MAX(1, PLACES / v->ow));
  d->xsize = d->pads ? (size_t)(d->images * d->chunk * d->hp * d->wp * v->bytes) : 0;
  d->gsize = (size_t)(d->images * d->rows * v->ow * d->op * v->bytes);
}

/* Channels c0..c1 of images i0..i1 with their padding. */
static void pad(const grad *d, const char *x, int64_t i0, int64_t i1, int64_t c0, int64_t c1, char *r) {
  const conv *v = d->v;
  int64_t row = d->wp * v->bytes, lo = RL_MIN(v->pw, d->wp), n = RL_MAX(0, RL_MIN(v->w, d->wp - v->pw));
  for (int64_t i = i0; i < i1; i++)
    for (int64_t c = c0; c < c1; c++)
      for (int64_t y = 0; y < d->hp; y++, r += row) {
        int64_t at = y - v->ph;
        if (at < 0 || at >= v->h) {
          memset(r, 0, (size_t)row);
          continue;
        }
        memset(r, 0, (size_t)(lo * v->bytes));
        memcpy(r + lo * v->bytes, x + (((i * v->c + c) * v->h + at) * v->w) * v->bytes, (size_t)(n * v->bytes));
        memset(r + (lo + n) * v->bytes, 0, (size_t)(row - (lo + n) * v->bytes));
      }
}

/* The gradient's places y.. of l in n images, from image i and channel o0, by tiles of channels: (tile, place, channel). */
static void turn(const grad *d, int64_t i, int64_t n, int64_t o0, int64_t y, int64_t l, char *gt) {
  const conv *v = d->v;
  int64_t lanes = d->f->lanes;
  for (int64_t o = 0, nv; o < d->vecs; o += nv) {
    nv = tile_vecs(d, o);
    for (int64_t j = 0; j < n; j++, gt += l * nv * lanes * v->bytes)
      d->f->turn(RL_MIN(nv * lanes, d->o - o * lanes), l, d->g + (((i + j) * v->o + o0 + o * lanes) * d->l + y * v->ow) * v->bytes, d->l, gt,
                 nv * lanes);
  }
}

/* x: the first place of the block in channel c0; pitches in elements. Adds the block's products to sum (k, op). */
static void block(const grad *d, rl_tile t, const char *x, int64_t plane, int64_t pitch, int64_t channels, const char *gt, char *sum) {
  const conv *v = d->v;
  int64_t nt = v->kh * v->kw, k = channels * nt, lanes = d->f->lanes;
  for (int64_t o = 0, nv; o < d->vecs; o += nv) {
    nv = tile_vecs(d, o);
    t.b = gt, t.ldb = nv * lanes;
    gt += t.images * t.rows * t.cols * nv * lanes * v->bytes;
    for (int64_t i = 0, rows; i < k; i += rows) {
      rows = ceil_div(k - i, ceil_div(k - i, d->f->rows[nv]));
      for (int64_t j = 0; j < rows; j++) {
        int64_t c = (i + j) / nt, q = (i + j) % nt;
        t.a[j] = x + (c * plane + q / v->kw * v->dh * pitch + q % v->kw * v->dw) * v->bytes;
      }
      t.c = sum + (i * d->op + o * lanes) * v->bytes;
      d->f->mul[nv][rows](&t);
    }
  }
}

static void grad_task(const grad *d, int64_t task, char *xp, char *gt) {
  const conv *v = d->v;
  int64_t chunk = task % d->chunks, part = task / d->chunks % d->parts, g = task / d->chunks / d->parts;
  int64_t c0 = g * d->c + chunk * d->chunk, c1 = RL_MIN(g * d->c + d->c, c0 + d->chunk), from = part * v->n / d->parts,
          to = (part + 1) * v->n / d->parts;
  int64_t plane = d->pads ? d->hp * d->wp : v->h * v->w, pitch = d->pads ? d->wp : v->w;
  char *sum = d->sum + ((part * v->groups + g) * d->k + chunk * d->chunk * v->kh * v->kw) * d->op * v->bytes;
  memset(gt, 0, d->gsize);
  memset(sum, 0, (size_t)((c1 - c0) * v->kh * v->kw * d->op * v->bytes));
  for (int64_t i = from; i < to; i += d->images) {
    int64_t n = RL_MIN(d->images, to - i);
    const char *x = d->pads ? xp : d->x + (i * v->c + c0) * plane * v->bytes;
    if (d->pads) pad(d, d->x, i, i + n, c0, c1, xp);
    for (int64_t y = 0; y < v->oh; y += d->rows) {
      int64_t rows = RL_MIN(d->rows, v->oh - y), l = rows * v->ow;
      turn(d, i, n, g * d->o, y, l, gt);
      rl_tile t = { .images = n,
                    .rows = rows,
                    .cols = v->ow,
                    .ai = (d->pads ? c1 - c0 : v->c) * plane,
                    .ar = v->sh * pitch,
                    .ac = v->sw,
                    .ldc = d->op,
                    .add = true };
      block(d, t, x + y * v->sh * pitch * v->bytes, plane, pitch, c1 - c0, gt, sum);
    }
  }
}

/* Parts in order, then (k, op) -> (o, k). */
static void finish(const grad *d, int64_t g, int64_t k0, int64_t k1, char *r) {
  const conv *v = d->v;
  int64_t from = (g * d->k + k0) * d->op, n = (k1 - k0) * d->op;
  for (int64_t p = 1; p < d->parts; p++) {
    int64_t part = p * v->groups * d->k * d->op;
    if (v->dt == RL_F64)
      for (int64_t i = from; i < from + n; i++) ((double *)d->sum)[i] += ((double *)d->sum)[part + i];
    else
      for (int64_t i = from; i < from + n; i++) ((float *)d->sum)[i] += ((float *)d->sum)[part + i];
  }
  d->f->turn(k1 - k0, d->o, d->sum + from * v->bytes, d->op, r + (g * d->o * d->k + k0) * v->bytes, d->k);
}

static rl_status weight_gradient(conv *v, rl_tensor *g, rl_tensor *x, rl_tensor *r) {
  grad d = { .v = v, .f = rl_tiles(v->dt), .x = rl_data(x), .g = rl_data(g) };
  grad_cut(&d);
  size_t bytes = (size_t)(d.parts * v->groups * d.k * d.op * v->bytes);
  int64_t pieces = ceil_div(d.k, 256);
  bool failed = false;
  d.sum = rl_alloc(bytes);
  if (!d.sum) return RL_OOM;
#pragma omp parallel if (conv_shares(v))
  {
    char *xp = d.pads ? rl_alloc(d.xsize) : NULL, *gt = rl_alloc(d.gsize);
    if (!gt || (d.pads && !xp)) failed = true;
#pragma omp for schedule(dynamic)
    for (int64_t t = 0; t < d.chunks * d.parts * v->groups; t++)
      if (gt && (!d.pads || xp)) grad_task(&d, t, xp, gt);
#pragma omp for schedule(static)
    for (int64_t t = 0; t < pieces * v->groups; t++)
      if (!failed) finish(&d, t / pieces, t % pieces * 256, RL_MIN(d.k, (t % pieces + 1) * 256), rl_data(r));
    if (xp) rl_free(xp, d.xsize);
    if (gt) rl_free(gt, d.gsize);
  }
  rl_free(d.sum, bytes);
  return failed ? RL_OOM : RL_OK;
}

RL_KERNEL(conv2d_dw) {
  RL_KERNEL_UNUSED;
  conv v;
  rl_conv_fill(&v, a, 1, in[1], out[0], in[0]);
  if (!rl_numel(out[0])) return RL_OK;
  if (!rl_numel(in[0]) || !rl_numel(in[1])) return rl_move_zero(out[0]);
  return rl_conv_run(&v, in[0], in[1], out[0], weight_gradient);
}
