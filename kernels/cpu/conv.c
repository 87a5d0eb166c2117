/* Convolution, two dimensions: panels of patches times the weight on register tiles (x, w -> result; g, w -> input gradient). */
#include "conv.h"

void rl_conv_fill(conv *v, const rl_attrs *a, int at, const rl_tensor *x, const rl_tensor *w, const rl_tensor *g) {
  v->sh = a->list[at][0], v->sw = a->list[at][1];
  v->ph = a->list[at + 1][0], v->pw = a->list[at + 1][1];
  v->dh = a->list[at + 2][0], v->dw = a->list[at + 2][1];
  v->groups = a->v[0].i;
  v->n = x->size[0], v->c = x->size[1], v->h = x->size[2], v->w = x->size[3];
  v->o = w->size[0], v->kh = w->size[2], v->kw = w->size[3];
  v->oh = g->size[2], v->ow = g->size[3];
  v->dt = x->dtype == RL_F64 ? RL_F64 : RL_F32;
  v->bytes = rl_dtypes[v->dt].bytes;
  v->bias = NULL, v->relu = false;
}

rl_status rl_conv_run(conv *v, rl_tensor *p, rl_tensor *q, rl_tensor *out, conv_body body) {
  bool direct = out->dtype == v->dt && rl_is_contiguous(out);
  rl_tensor *a = rl_working(p, v->dt), *b = rl_working(q, v->dt),
            *r = direct ? rl_tensor_retain(out) : rl_tensor_empty(v->dt, RL_CPU, out->ndim, out->size);
  rl_status s = a && b && r ? body(v, a, b, r) : RL_OOM;
  if (s == RL_OK) s = rl_give(r, out);
  if (a) rl_tensor_release(a);
  if (b) rl_tensor_release(b);
  if (r) rl_tensor_release(r);
  return s;
}

/* Rows of x with the columns that are sw apart next to each other: (row, column mod sw, column / sw). */
#define SPLIT(T) \
  static void split_##T(const conv *v, const T *x, T *r) { \
    int64_t q = ceil_div(v->w, v->sw); \
    _Pragma("omp parallel for if (conv_shares(v))") for (int64_t y = 0; y < v->n * v->c * v->h; y++) for (int64_t b = 0; b < v->sw; b++) { \
      const T *from = x + y * v->w + b; \
      T *to = r + (y * v->sw + b) * q; \
      int64_t n = b < v->w ? ceil_div(v->w - b, v->sw) : 0; \
      for (int64_t j = 0; j < n; j++) to[j] = from[j * v->sw]; \
    } \
  }
SPLIT(float)
SPLIT(double)

/* Column x of the grid reads x sw + tap: with columns split, the one of class tap mod sw at x + tap / sw. */
static void split(const conv *v, corr *c, const char *x, char *r) {
  int64_t q = ceil_div(v->w, v->sw), ratio = q * v->sw;
  if (v->dt == RL_F64) split_double(v, (const double *)x, (double *)r);
  else split_float(v, (const float *)x, (float *)r);
  c->x = r, c->step = 1, c->pitch = ratio, c->plane = v->h * ratio, c->xi = v->c * c->plane, c->xg = c->c * c->plane;
  for (int t = 0; t < c->nt; t++) {
    int64_t at = c->tap[t].x, class = (at % v->sw + v->sw) % v->sw;
    c->tap[t].at = class * q + (at - class) / v->sw;
  }
}

static rl_status forward(conv *v, rl_tensor *x, rl_tensor *w, rl_tensor *r) {
  int64_t cg = v->c / v->groups, og = v->o / v->groups, nt = v->kh * v->kw, l = v->oh * v->ow, plane = v->h * v->w;
  corr c = { .n = v->n,
             .c = cg,
             .h = v->h,
             .w = v->w,
             .m = og,
             .oh = v->oh,
             .ow = v->ow,
             .sh = v->sh,
             .sw = v->sw,
             .step = v->sw,
             .pitch = v->w,
             .plane = plane,
             .xi = v->c * plane,
             .ri = v->o * l,
             .rc = l,
             .ry = v->ow,
             .rx = 1,
             .nt = (int)nt,
             .groups = v->groups,
             .xg = cg * plane,
             .rg = og * l,
             .wg = og * cg * nt,
             .x = rl_data(x),
             .wt = rl_data(w),
             .r = rl_data(r),
             .bias = v->bias,
             .relu = v->relu,
             .f = rl_tiles(v->dt),
             .bytes = v->bytes };
  size_t bytes = v->sw > 1 && v->kw > 1 ? (size_t)(v->n * v->c * v->h * ceil_div(v->w, v->sw) * v->sw * v->bytes) : 0;
  char *columns = bytes ? rl_alloc(bytes) : NULL;
  c.tap = rl_alloc((size_t)nt * sizeof(tap));
  rl_status s = c.tap && (columns || !bytes) ? RL_OK : RL_OOM;
  if (s == RL_OK) {
    for (int64_t t = 0; t < nt; t++) {
      c.tap[t] = (tap){ .y = t / v->kw * v->dh - v->ph, .x = t % v->kw * v->dw - v->pw };
      rl_corr_tap(&c, &c.tap[t]);
    }
    if (columns) split(v, &c, c.x, columns);
    s = rl_corr_run(&c, conv_shares(v));
  }
  if (columns) rl_free(columns, bytes);
  if (c.tap) rl_free(c.tap, (size_t)nt * sizeof(tap));
  return s;
}

static rl_status add_bias(rl_tensor *bias, rl_tensor *out) {
  rl_tensor b = *bias, *io[] = { out, &b };
  b.ndim = 4;
  for (int d = 0; d < 4; d++) b.size[d] = out->size[d], b.stride[d] = d == 1 ? bias->stride[0] : 0;
  return rl_ops[RL_OP_ADD].kernel[RL_CPU](RL_OP_ADD, io, 2, NULL, &out);
}

static rl_status relu_in_place(rl_tensor *r) { return rl_ops[RL_OP_RELU].kernel[RL_CPU](RL_OP_RELU, &r, 1, NULL, &r); }

static rl_status convolve(rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *out, bool relu) {
  conv v;
  rl_conv_fill(&v, a, 0, in[0], in[1], out);
  if (!rl_numel(out)) return RL_OK;
  rl_tensor *bias = nin > 2 ? in[2] : NULL;
  bool any = rl_numel(in[1]), fused = bias && bias->dtype == v.dt && rl_is_contiguous(bias) && any;
  if (fused) v.bias = rl_data(bias);
  v.relu = relu && any && (fused || !bias);
  if (any) RL_TRY(rl_conv_run(&v, in[0], in[1], out, forward));
  else RL_TRY(rl_move_zero(out));
  if (bias && !fused) RL_TRY(add_bias(bias, out));
  return relu && !v.relu ? relu_in_place(out) : RL_OK;
}

RL_KERNEL(conv2d) {
  RL_KERNEL_UNUSED;
  return convolve(in, nin, a, out[0], false);
}

/* Plans fold the ReLU behind a convolution into it. */
RL_KERNEL(conv2d_relu) {
  RL_KERNEL_UNUSED;
  return convolve(in, nin, a, out[0], true);
}

/* One phase of the input gradient: the places (a + i sh, b + j sw), whose taps are those that step on them. Returns their number. */
static int phase_taps(const conv *v, int64_t a, int64_t b, tap *k, int *which) {
  int n = 0;
  for (int64_t t = 0; t < v->kh * v->kw; t++) {
    int64_t y = a + v->ph - t / v->kw * v->dh, x = b + v->pw - t % v->kw * v->dw;
    if (y % v->sh || x % v->sw) continue;
    k[n] = (tap){ .y = y / v->sh, .x = x / v->sw };
    which[n++] = (int)t;
  }
  return n;
}

/* w (o, c, taps) -> r (c, o, chosen taps), by group and 32 of o. */
static void turn_weight(const conv *v, const char *w, const int *which, int nt, char *r) {
  int64_t cg = v->c / v->groups, og = v->o / v->groups, kk = v->kh * v->kw, blocks = ceil_div(og, 32);
  bool all = nt == kk;
#pragma omp parallel for if (v->o * cg * kk > 20000)
  for (int64_t q = 0; q < v->groups * blocks; q++) {
    int64_t g = q / blocks, o0 = q % blocks * 32, n = RL_MIN(og - o0, 32);
    for (int64_t c = 0; c < cg; c++) {
      const char *from = w + ((g * og + o0) * cg + c) * kk * v->bytes;
      char *to = r + ((g * cg + c) * og + o0) * nt * v->bytes;
      for (int t = 0; t < (all ? 1 : nt); t++) {
        rl_piece p = { 0, which[t] * v->bytes, (all ? nt : 1) * v->bytes };
        rl_tiles(v->dt)->lay(n, from, cg * kk * v->bytes, to + t * v->bytes, nt * v->bytes, 1, &p, 1, 0);
      }
    }
  }
}

static corr phase_corr(const conv *v, const char *g, const char *wt, char *r, tap *k) {
  int64_t cg = v->c / v->groups, og = v->o / v->groups, l = v->oh * v->ow, plane = v->h * v->w;
  return (corr){ .n = v->n,
                 .c = og,
                 .h = v->oh,
                 .w = v->ow,
                 .m = cg,
                 .sh = 1,
                 .sw = 1,
                 .step = 1,
                 .pitch = v->ow,
                 .plane = l,
                 .xi = v->o * l,
                 .ri = v->c * plane,
                 .rc = plane,
                 .ry = v->sh * v->w,
                 .rx = v->sw,
                 .tap = k,
                 .groups = v->groups,
                 .xg = og * l,
                 .rg = cg * plane,
                 .x = g,
                 .wt = wt,
                 .r = r,
                 .f = rl_tiles(v->dt),
                 .bytes = v->bytes };
}

/* The input gradient phase by phase; buf holds the turned weight. */
static rl_status phases(const conv *v, const char *g, const char *w, char *r, char *buf, tap *k, int *which) {
  for (int64_t p = 0; p < v->sh * v->sw; p++)
    if (!phase_taps(v, p / v->sw, p % v->sw, k, which)) {
      memset(r, 0, (size_t)(v->n * v->c * v->h * v->w * v->bytes));
      break;
    }
  for (int64_t a = 0; a < RL_MIN(v->sh, v->h); a++)
    for (int64_t b = 0; b < RL_MIN(v->sw, v->w); b++) {
      corr c = phase_corr(v, g, buf, r + (a * v->w + b) * v->bytes, k);
      c.nt = phase_taps(v, a, b, k, which);
      c.oh = ceil_div(v->h - a, v->sh), c.ow = ceil_div(v->w - b, v->sw), c.wg = c.m * c.c * c.nt;
      if (!c.nt) continue;
      for (int t = 0; t < c.nt; t++) rl_corr_tap(&c, &k[t]);
      turn_weight(v, w, which, c.nt, buf);
      RL_TRY(rl_corr_run(&c, conv_shares(v)));
    }
  return RL_OK;
}

/* The input gradient as products (channel, tap) by place, added where their taps read: image by image. */
static rl_status folds(const conv *v, const char *g, const char *w, char *r, char *buf, tap *k) {
  int64_t cg = v->c / v->groups, og = v->o / v->groups, nt = v->kh * v->kw, l = v->oh * v->ow, rows = cg * nt;
  tap one = { .hi = v->ow };
  corr c = phase_corr(v, g, buf, NULL, &one), range = { .w = v->w, .ow = v->ow, .sw = v->sw };
  bool failed = false;
  c.n = 1, c.nt = 1, c.m = rows, c.oh = v->oh, c.ow = v->ow;
  for (int64_t t = 0; t < nt; t++) {
    k[t] = (tap){ .y = t / v->kw * v->dh - v->ph, .x = t % v->kw * v->dw - v->pw };
    rl_corr_tap(&range, &k[t]);
  }
  for (int64_t q = 0; q < v->groups; q++) c.f->turn(og, rows, w + q * og * rows * v->bytes, rows, buf + q * og * rows * v->bytes, og);
#pragma omp parallel if (conv_shares(v))
  {
    char *work = rl_alloc(rl_corr_fold_size(&c));
    if (!work) failed = true;
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < v->n * v->groups; i++) {
      int64_t q = i % v->groups, plane = cg * v->h * v->w * v->bytes;
      corr d = c;
      fold f = { v, k, r + i * plane };
      if (!work) continue;
      d.x = g + i * og * l * v->bytes, d.wt = buf + q * og * rows * v->bytes;
      memset(f.r, 0, (size_t)plane);
      rl_corr_fold(&d, &f, work);
    }
    if (work) rl_free(work, rl_corr_fold_size(&c));
  }
  return failed ? RL_OOM : RL_OK;
}

/* Whether folding beats phases: vector operations of both, laid-out and added elements counted with products (measured on AVX-512). */
static bool prefers_fold(const conv *v) {
  double cg = (double)(v->c / v->groups), og = (double)(v->o / v->groups), nt = (double)(v->kh * v->kw), s = (double)(v->sh * v->sw);
  double add = v->sw > 1 ? 1.2 : 3. / (double)RL_MIN(16, v->ow);
  double phases = (double)(v->h * v->w) * og * nt / s * (cg / 32 + 3. / (double)RL_MIN(16, v->ow));
  return (double)(v->oh * v->ow) * cg * nt * (og / 32 + add) < 0.9 * phases;
}

static rl_status input_gradient(conv *v, rl_tensor *g, rl_tensor *w, rl_tensor *r) {
  int64_t nt = v->kh * v->kw;
  size_t bytes = (size_t)(rl_numel(w) * v->bytes);
  char *buf = rl_alloc(bytes);
  tap *k = rl_alloc((size_t)nt * sizeof(tap));
  int *which = rl_alloc((size_t)nt * sizeof(int));
  rl_status s = RL_OOM;
  if (buf && k && which)
    s = prefers_fold(v) ? folds(v, rl_data(g), rl_data(w), rl_data(r), buf, k) : phases(v, rl_data(g), rl_data(w), rl_data(r), buf, k, which);
  if (buf) rl_free(buf, bytes);
  if (k) rl_free(k, (size_t)nt * sizeof(tap));
  if (which) rl_free(which, (size_t)nt * sizeof(int));
  return s;
}

RL_KERNEL(conv2d_dx) {
  RL_KERNEL_UNUSED;
  conv v;
  rl_conv_fill(&v, a, 1, out[0], in[1], in[0]);
  if (!rl_numel(out[0])) return RL_OK;
  if (!rl_numel(in[0]) || !rl_numel(in[1])) return rl_move_zero(out[0]);
  return rl_conv_run(&v, in[0], in[1], out[0], input_gradient);
}
