/* Convolution on CUDA tensors (x, w -> result and both gradients): cuDNN where it is installed, else patches and cuBLASLt.
 * cudnn.c knows the library; here are contiguous working copies, the patches, and the products over them. */
#include <string.h>
#include "../../lib/runtime/cuda_impl.h"
#include "conv.h"
#include "plane.h"

#define UNUSED (void)op, (void)in, (void)nin, (void)a
enum { COLUMN_BYTES = 256 << 20 }; /* patches of so many images at a time */

static void params(cuda_conv *v, const rl_attrs *a, int list, const rl_tensor *x, const rl_tensor *w, const rl_tensor *g) {
  memset(v, 0, sizeof *v);
  for (int k = 0; k < 2; k++) {
    v->s[k] = (int)a->list[list][k], v->p[k] = (int)a->list[list + 1][k], v->d[k] = (int)a->list[list + 2][k];
    v->x[k + 2] = (int)x->size[k + 2], v->w[k + 2] = (int)w->size[k + 2], v->y[k + 2] = (int)g->size[k + 2];
    v->x[k] = (int)x->size[k], v->w[k] = (int)w->size[k], v->y[k] = (int)g->size[k];
  }
  v->groups = (int)a->v[0].i;
  v->dt = x->dtype;
  v->tf32 = rl_cuda_tf32();
}

/* (b, rows, cols) at `at` elements of t's memory, steps between batches and rows. */
static rl_tensor matrix(const rl_tensor *t, int64_t at, int64_t b, int64_t rows, int64_t cols, int64_t step, int64_t row) {
  rl_tensor m = *t;
  m.ag = NULL;
  m.ndim = 3;
  m.offset += at;
  m.size[0] = b, m.size[1] = rows, m.size[2] = cols;
  m.stride[0] = step, m.stride[1] = row, m.stride[2] = 1;
  return m;
}
static rl_tensor turned(rl_tensor m) {
  rl_tensor t = m;
  t.size[1] = m.size[2], t.size[2] = m.size[1], t.stride[1] = m.stride[2], t.stride[2] = m.stride[1];
  return t;
}

/* Patches of images [first, first + n) of x into col, or col back into them. */
static rl_status patches(rl_op op, const cuda_conv *v, rl_tensor *x, rl_tensor *col, int64_t first, int64_t n, bool back) {
  cuda_plane p;
  rl_tensor win = { .ndim = 4, .size = { 1, 1, v->y[2], v->y[3] } };
  cuda_plane_init(&p, op, x, x, x, &win);
  for (int k = 0; k < 2; k++) p.k[k] = v->w[k + 2], p.s[k] = v->s[k], p.p[k] = v->p[k], p.d[k] = v->d[k];
  p.n = n, p.first = first;
  p.x = rl_data(back ? col : x), p.r = rl_data(back ? x : col);
  return cuda_plane_run((rl_dtype)x->dtype, back ? "col2im" : "im2col", &p,
                        back ? n * v->x[1] * v->x[2] * v->x[3] : n * v->x[1] * v->w[2] * v->w[3] * v->y[2] * v->y[3]);
}

typedef enum { FORWARD, INPUT, WEIGHT } pass;

/* One group of a run of images. part: results of WEIGHT by image, summed afterwards. */
static rl_status group_product(rl_op op, const cuda_conv *v, pass what, rl_tensor *w, rl_tensor *y, rl_tensor *col, rl_tensor *part, int64_t first,
                               int64_t n, int64_t g) {
  int64_t og = v->y[1] / v->groups, k = (int64_t)v->x[1] / v->groups * v->w[2] * v->w[3], l = (int64_t)v->y[2] * v->y[3];
  rl_tensor mc = matrix(col, g * k * l, n, k, l, v->groups * k * l, l), my = matrix(y, (first * v->y[1] + g * og) * l, n, og, l, v->y[1] * l, l);
  rl_tensor mw = matrix(w, g * og * k, n, og, k, 0, k);
  if (what == FORWARD) return cuda_multiply(op, &mw, &mc, &my, 1, 0);
  if (what == INPUT) {
    rl_tensor t = turned(mw);
    return cuda_multiply(op, &t, &my, &mc, 1, 0);
  }
  rl_tensor t = turned(mc), r = matrix(part, g * og * k, n, og, k, v->y[1] * k, k);
  return cuda_multiply(op, &my, &t, &r, 1, 0);
}

static rl_status by_patches(rl_op op, const cuda_conv *v, pass what, rl_tensor *x, rl_tensor *w, rl_tensor *y) {
  int64_t each = (int64_t)v->x[1] * v->w[2] * v->w[3] * v->y[2] * v->y[3], nw = rl_numel(w), images = v->x[0];
  int64_t limit = COLUMN_BYTES / RL_MAX(1, rl_dtypes[v->dt].bytes * (what == WEIGHT ? RL_MAX(each, nw) : each));
  int64_t run = RL_MAX(1, RL_MIN(images, limit));
  rl_tensor *col = rl_tensor_empty((rl_dtype)v->dt, RL_CUDA, 2, (int64_t[]){ run, each });
  rl_tensor *part = what == WEIGHT ? rl_tensor_empty((rl_dtype)v->dt, RL_CUDA, 2, (int64_t[]){ run + 1, nw }) : NULL;
  rl_status s = col && (what != WEIGHT || part) ? RL_OK : RL_OOM;
  for (int64_t first = 0; first < images && s == RL_OK; first += run) {
    int64_t n = RL_MIN(run, images - first);
    if (what != INPUT) s = patches(op, v, x, col, first, n, false);
    for (int64_t g = 0; g < v->groups && s == RL_OK; g++) s = group_product(op, v, what, w, y, col, part, first, n, g);
    if (what == INPUT && s == RL_OK) s = patches(op, v, x, col, first, n, true);
    if (what != WEIGHT || s != RL_OK) continue;
    rl_tensor rows = *part, *in = &rows, *r = w, flat = *w; /* the sum so far is one row more */
    rl_attrs a = { .nlist = { 1 } };
    rows.size[0] = n + (first > 0);
    flat.ndim = 1, flat.size[0] = nw, flat.stride[0] = 1, r = &flat;
    if (first > 0) {
      rl_tensor last = *part;
      last.offset += n * nw, last.ndim = 1, last.size[0] = nw, last.stride[0] = 1;
      s = rl_cuda_move(&last, r);
    }
    if (s == RL_OK) s = rl_ops[RL_OP_SUM].kernel[RL_CUDA](RL_OP_SUM, &in, 1, &a, &r);
  }
  rl_tensor_release(col);
  rl_tensor_release(part);
  return s;
}

static bool lies_last(const rl_tensor *t) {
  int64_t step = 1;
  for (int k = 0, d; k < 4; k++) {
    d = k == 0 ? 1 : k == 3 ? 0 : 4 - k; /* 1, 3, 2, 0 from the innermost */
    if (t->size[d] != 1 && t->stride[d] != step) return false;
    step *= t->size[d];
  }
  return true;
}

/* The library's fast kernels read sixteen bytes at once. */
static bool lines_up(const rl_tensor *t) { return ((uintptr_t)rl_data(t) & 15) == 0; }

/* (n, c, h w) to (n, h w, c) between dense tensors of t's sizes, or back. */
static rl_status turn(rl_op op, const rl_tensor *t, void *from, void *to, bool back) {
  int64_t c = t->size[1], l = t->size[2] * t->size[3];
  cuda_plane p = { .n = t->size[0], .h = back ? l : c, .w = back ? c : l, .x = from, .r = to, .op = op, .err = cuda_error_words() };
  int64_t tile = rl_dtypes[t->dtype].bytes == 2 ? 64 : 32, blocks = p.n * ((p.h + tile - 1) / tile) * ((p.w + tile - 1) / tile);
  rl_cuda_fn *f = cuda_prim_fn((rl_dtype)t->dtype, "plane", "turn");
  return f ? rl_cuda_launch(f, rl_ops[op].name, blocks, 256, (void *[]){ &p }) : RL_ERR;
}

/* Dense memory with channels innermost: t's own where it lies so, else a copy. */
static rl_status last_copy(rl_op op, rl_tensor *t, bool target, rl_tensor **out) {
  rl_tensor *c = NULL;
  if (lies_last(t) && lines_up(t)) return *out = rl_tensor_retain(t), RL_OK;
  if (!(*out = rl_tensor_empty((rl_dtype)t->dtype, RL_CUDA, 4, t->size))) return RL_OOM;
  if (target) return RL_OK;
  RL_TRY(rl_contiguous(t, &c));
  rl_status s = turn(op, t, rl_data(c), rl_data(*out), false);
  rl_tensor_release(c);
  return s;
}

static rl_status run_last(rl_op op, const cuda_conv *v, pass what, rl_tensor *const *in, int target) {
  rl_tensor *c[3] = { NULL }, *r = in[target];
  cuda_conv last = *v;
  rl_status s = RL_OK;
  last.last = 1;
  for (int k = 0; k < 3 && s == RL_OK; k++) s = last_copy(op, in[k], k == target, &c[k]);
  if (s == RL_OK) s = cuda_cudnn_run(&last, what, rl_data(c[0]), rl_data(c[1]), rl_data(c[2]));
  if (s == RL_OK && c[target] != r) {
    rl_tensor *plain = rl_is_contiguous(r) ? rl_tensor_retain(r) : rl_tensor_empty((rl_dtype)v->dt, RL_CUDA, 4, r->size);
    s = plain ? turn(op, r, rl_data(c[target]), rl_data(plain), true) : RL_OOM;
    if (s == RL_OK && plain != r) s = rl_cuda_move(r, plain);
    rl_tensor_release(plain);
  }
  for (int k = 0; k < 3; k++) rl_tensor_release(c[k]);
  return s;
}

static rl_status run_plain(rl_op op, const cuda_conv *v, pass what, rl_tensor *const *in, int target) {
  rl_tensor *c[3] = { NULL };
  rl_status s = RL_OK;
  for (int k = 0; k < 3 && s == RL_OK; k++) {
    if (rl_is_contiguous(in[k]) && lines_up(in[k])) c[k] = rl_tensor_retain(in[k]);
    else if (!(c[k] = rl_tensor_empty((rl_dtype)v->dt, RL_CUDA, 4, in[k]->size))) s = RL_OOM;
    else if (k != target) s = rl_cuda_move(c[k], in[k]);
  }
  if (s == RL_OK && cuda_cudnn_there()) s = cuda_cudnn_run(v, what, rl_data(c[0]), rl_data(c[1]), rl_data(c[2]));
  else if (s == RL_OK) s = by_patches(op, v, what, c[0], c[1], c[2]);
  if (s == RL_OK && c[target] != in[target]) s = rl_cuda_move(in[target], c[target]);
  for (int k = 0; k < 3; k++) rl_tensor_release(c[k]);
  return s;
}

/* One of x, w, y from the other two, in the order of memory that is faster. */
static rl_status run(rl_op op, const cuda_conv *v, pass what, rl_tensor *x, rl_tensor *w, rl_tensor *y) {
  rl_tensor *in[3] = { x, w, y };
  int target = what == FORWARD ? 2 : what == INPUT ? 0 : 1;
  bool last = false, copies[3];
  if (!rl_numel(in[target])) return RL_OK;
  if (!rl_numel(x) || !rl_numel(w) || !rl_numel(y)) return rl_cuda_fill(in[target], 0);
  for (int k = 0; k < 3; k++) copies[k] = !lies_last(in[k]) || !lines_up(in[k]);
  if (cuda_cudnn_there()) RL_TRY(cuda_cudnn_prefers_last(v, what, copies, &last));
  return last ? run_last(op, v, what, in, target) : run_plain(op, v, what, in, target);
}

static rl_status here(rl_op op, rl_tensor *const *in) {
  if (in[0]->device == RL_CUDA && in[1]->device == RL_CUDA) return RL_OK;
  return rl_error("[%s] tensors on two devices; got a CPU tensor, need CUDA tensors", rl_ops[op].name);
}

RL_CUDA_KERNEL(conv2d) {
  UNUSED;
  cuda_conv v;
  RL_TRY(here(op, in));
  params(&v, a, 0, in[0], in[1], out[0]);
  RL_TRY(run(op, &v, FORWARD, in[0], in[1], out[0]));
  if (nin < 3 || !in[2] || !rl_numel(out[0])) return RL_OK;
  rl_tensor b = *in[2], *io[] = { out[0], &b };
  b.ndim = 4;
  for (int d = 0; d < 4; d++) b.size[d] = out[0]->size[d], b.stride[d] = d == 1 ? in[2]->stride[0] : 0;
  return rl_ops[RL_OP_ADD].kernel[RL_CUDA](RL_OP_ADD, io, 2, NULL, out);
}
RL_CUDA_KERNEL(conv2d_dx) {
  UNUSED;
  cuda_conv v;
  RL_TRY(here(op, in));
  params(&v, a, 1, out[0], in[1], in[0]);
  return run(op, &v, INPUT, out[0], in[1], in[0]);
}
RL_CUDA_KERNEL(conv2d_dw) {
  UNUSED;
  cuda_conv v;
  RL_TRY(here(op, in));
  params(&v, a, 1, in[1], out[0], in[0]);
  return run(op, &v, WEIGHT, in[1], out[0], in[0]);
}
