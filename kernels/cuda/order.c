/* Order on CUDA tensors: sort, topk, kthvalue, mode, running sums, selection by masks, writes at sorted positions, weighted draws.
 * (tensors, attributes) -> argument block -> kernels of order.cuh. */
#include <string.h>
#include "../../lib/tensor/random.h"
#include "launch.h"

#define UNUSED (void)op, (void)in, (void)nin, (void)a
#define FILE_OF "order"

typedef struct sorted {
  void *keys, *order;
  size_t bytes; /* of both, twice: merges go to and fro */
  char *room;
} sorted;

static size_t key_bytes(rl_dtype dt) { return rl_dtypes[dt].bytes == 8 ? 8 : 4; }

/* Sorts every line of e (p[1] = x, i[1] = stride) of n elements; room is the caller's to free. */
static rl_status sort_lines(rl_op op, rl_dtype dt, cuda_ew *e, int64_t n, bool desc, sorted *s) {
  int64_t lines = e->n, all = lines * n, tiles = (n + 1023) / 1024;
  size_t part = ((size_t)all * key_bytes(dt) + 255) & ~(size_t)255, whole = part + (((size_t)all * 4 + 255) & ~(size_t)255);
  s->bytes = 2 * whole;
  if (n >= INT64_C(1) << 32) return rl_error("[%s] line too long; got %lld elements, need fewer than 2^32", rl_ops[op].name, (long long)n);
  if (!(s->room = rl_cuda_alloc(s->bytes))) return RL_OOM;
  s->keys = s->room, s->order = s->room + part;
  char *other = s->room + whole;
  rl_cuda_fn *tile = cuda_prim_fn(dt, FILE_OF, "sort_tile"), *merge = n > 1024 ? cuda_prim_fn(dt, FILE_OF, "sort_merge") : NULL;
  if (!tile || (n > 1024 && !merge)) return RL_ERR;
  e->i[0] = n, e->i[2] = desc, e->i[3] = tiles, e->p[3] = s->keys, e->p[4] = s->order;
  RL_TRY(rl_cuda_launch(tile, rl_ops[op].name, lines * tiles, 256, (void *[]){ e }));
  for (int64_t w = 1024; w < n; w *= 2) {
    cuda_ew m = { .n = all, .p = { s->keys, s->order, other, other + part }, .i = { n, w } };
    RL_TRY(cuda_run_ew(merge, op, &m));
    char *t = s->keys;
    s->keys = other, s->order = other + part, other = t;
  }
  return RL_OK;
}

static rl_status sorted_part(rl_op op, const rl_tensor *x, int dim, bool desc, int64_t from, int64_t len, rl_tensor *const *out, bool mode) {
  cuda_ew e;
  sorted s = { 0 };
  int where = rl_cuda_place();
  if (!rl_numel(out[0])) return RL_OK;
  cuda_ew_init(&e, x, x->ndim ? dim : -1, 3, (const rl_tensor *[]){ out[0], x, out[1] });
  e.i[1] = cuda_dim_stride(x, dim);
  rl_status r = sort_lines(op, (rl_dtype)x->dtype, &e, cuda_dim_size(x, dim), desc, &s);
  if (r == RL_OK) {
    e.i[2] = cuda_dim_stride(out[0], dim), e.i[5] = cuda_dim_stride(out[1], dim), e.i[3] = from, e.i[4] = len, e.i[6] = e.n, e.p[4] = s.order;
    rl_cuda_fn *f = cuda_prim_fn((rl_dtype)x->dtype, FILE_OF, mode ? "mode" : "sort_take");
    r = !f ? RL_ERR : rl_cuda_launch(f, rl_ops[op].name, RL_MIN((e.n * (mode ? 1 : len) + 255) / 256, 1 << 16), 256, (void *[]){ &e });
  }
  rl_cuda_free(s.room, s.bytes, where);
  return r;
}

RL_CUDA_KERNEL(sort) {
  UNUSED;
  int dim = (int)a->v[0].i;
  return sorted_part(op, in[0], dim, a->v[1].i, 0, cuda_dim_size(in[0], dim), out, false);
}
RL_CUDA_KERNEL(topk) {
  UNUSED;
  return sorted_part(op, in[0], (int)a->v[1].i, a->v[2].i, 0, a->v[0].i, out, false);
}
RL_CUDA_KERNEL(kthvalue) {
  UNUSED;
  return sorted_part(op, in[0], (int)a->v[1].i, false, a->v[0].i, 1, out, false);
}
RL_CUDA_KERNEL(mode) {
  UNUSED;
  return sorted_part(op, in[0], (int)a->v[0].i, false, 0, 1, out, true);
}

static rl_status scan(rl_op op, const rl_tensor *x, rl_tensor *r, int dim, bool product) {
  cuda_ew e;
  if (!rl_numel(x)) return RL_OK;
  cuda_ew_init(&e, x, x->ndim ? dim : -1, 2, (const rl_tensor *[]){ r, x });
  e.i[0] = cuda_dim_size(x, dim), e.i[1] = cuda_dim_stride(x, dim), e.i[2] = cuda_dim_stride(r, dim), e.i[3] = product;
  if (e.i[0] <= 32 || e.n >= 1 << 15) return cuda_run_ew(cuda_prim_fn((rl_dtype)x->dtype, FILE_OF, "scan_lines"), op, &e);
  rl_cuda_fn *f = cuda_prim_fn((rl_dtype)x->dtype, FILE_OF, "scan_block");
  return f ? rl_cuda_launch(f, rl_ops[op].name, e.n, 256, (void *[]){ &e }) : RL_ERR;
}
RL_CUDA_KERNEL(cumsum) {
  UNUSED;
  return scan(op, in[0], out[0], (int)a->v[0].i, false);
}
RL_CUDA_KERNEL(cumprod) {
  UNUSED;
  return scan(op, in[0], out[0], (int)a->v[0].i, true);
}

/* Counts what is chosen by blocks, then places it. e: over x, p[1] = x, p[2] = mask or NULL. */
static rl_status select_elements(rl_op op, rl_dtype dt, cuda_ew *e, const rl_tensor *x, int mode) {
  int64_t blocks = (e->n + 1023) / 1024;
  cuda_red d = { .nk = x->ndim };
  rl_cuda_fn *count = cuda_prim_fn(dt, FILE_OF, "select_count"), *sum = cuda_prim_fn(dt, FILE_OF, "select_scan"),
             *put = cuda_prim_fn(dt, FILE_OF, "select_put");
  memcpy(d.ksize, x->size, sizeof x->size);
  e->p[3] = rl_cuda_workspace((size_t)blocks * 8);
  e->i[0] = blocks, e->i[1] = mode, e->i[8] = op;
  if (!e->p[3]) return RL_OOM;
  if (!count || !sum || !put) return RL_ERR;
  RL_TRY(rl_cuda_launch(count, rl_ops[op].name, blocks, 256, (void *[]){ e }));
  RL_TRY(rl_cuda_launch(sum, rl_ops[op].name, 1, 256, (void *[]){ e }));
  return rl_cuda_launch(put, rl_ops[op].name, blocks, 256, (void *[]){ e, &d });
}

RL_CUDA_KERNEL(masked_select) {
  UNUSED;
  cuda_ew e;
  rl_tensor *mask = NULL, m;
  if (!rl_numel(out[0])) return RL_OK;
  RL_TRY(rl_same_shape(in[0], in[1]) ? RL_OK : rl_contiguous(in[1], &mask));
  m = mask ? *mask : *in[1];
  for (int d = in[0]->ndim - 1, st = 1; mask && d >= 0; d--) m.stride[d] = st, st *= (int)in[0]->size[d]; /* as many elements, read in order */
  cuda_ew_init(&e, in[0], -1, 3, (const rl_tensor *[]){ NULL, in[0], &m });
  e.p[0] = rl_data(out[0]), e.i[2] = out[0]->ndim ? out[0]->stride[0] : 1;
  rl_status s = select_elements(op, (rl_dtype)in[0]->dtype, &e, in[0], 0);
  rl_tensor_release(mask);
  return s;
}
RL_CUDA_KERNEL(nonzero) {
  UNUSED;
  cuda_ew e;
  cuda_ew_init(&e, in[0], -1, 3, (const rl_tensor *[]){ NULL, in[0], NULL });
  e.p[0] = rl_data(out[0]), e.i[2] = out[0]->stride[0], e.i[3] = out[0]->stride[1];
  return rl_numel(out[0]) ? select_elements(op, (rl_dtype)in[0]->dtype, &e, in[0], 1) : RL_OK;
}
RL_CUDA_KERNEL(masked_scatter) {
  UNUSED;
  cuda_ew e;
  rl_tensor *src = NULL;
  RL_TRY(rl_cuda_move(out[0], in[0]));
  if (!rl_numel(in[1])) return RL_OK;
  RL_TRY(rl_contiguous(in[2], &src));
  cuda_ew_init(&e, in[1], -1, 3, (const rl_tensor *[]){ out[0], out[0], in[1] });
  e.p[4] = rl_data(src), e.i[4] = rl_numel(src);
  rl_status s = select_elements(op, (rl_dtype)src->dtype, &e, in[1], 2);
  rl_tensor_release(src);
  return s;
}

rl_status cuda_sorted_write(rl_op op, const rl_tensor *idx, const rl_tensor *src, rl_tensor *r, int dim, bool add) {
  cuda_ew e;
  sorted s = { 0 };
  int where = rl_cuda_place();
  int64_t n = rl_numel(idx), si = idx->ndim ? idx->stride[idx->ndim - 1] : 0;
  cuda_ew one = { .n = 1, .p = { NULL, rl_data(idx) }, .i = { n, si } };
  rl_status st = sort_lines(op, RL_I64, &one, n, false, &s);
  if (st == RL_OK) {
    cuda_ew_init(&e, r, r->ndim ? dim : -1, 2, (const rl_tensor *[]){ r, src });
    e.p[2] = rl_data(idx), e.p[3] = s.keys, e.p[4] = s.order;
    e.i[0] = n, e.i[1] = cuda_dim_stride(r, dim), e.i[2] = cuda_dim_stride(src, dim), e.i[3] = si, e.i[4] = add, e.i[8] = op,
    e.i[9] = cuda_dim_size(r, dim);
    rl_cuda_fn *f = cuda_prim_fn((rl_dtype)r->dtype, FILE_OF, "sorted_write");
    st = !f ? RL_ERR : rl_cuda_launch(f, rl_ops[op].name, RL_MIN((e.n * n + 127) / 128, 1 << 20), 128, (void *[]){ &e });
  }
  rl_cuda_free(s.room, s.bytes, where);
  return st;
}

RL_CUDA_KERNEL(put_add) {
  UNUSED;
  rl_tensor *idx = NULL, *src = NULL, *r = NULL;
  bool direct = rl_is_contiguous(out[0]);
  if (!direct && !(r = rl_tensor_empty((rl_dtype)out[0]->dtype, RL_CUDA, out[0]->ndim, out[0]->size))) return RL_OOM;
  rl_status s = cuda_base(direct ? out[0] : r, in[0]);
  if (s == RL_OK) s = rl_contiguous(in[1], &idx);
  if (s == RL_OK) s = rl_contiguous(in[2], &src);
  if (s == RL_OK && rl_numel(idx) && rl_numel(out[0])) {
    rl_tensor fi = *idx, fs = *src, fr = direct ? *out[0] : *r;
    fi.ndim = fs.ndim = fr.ndim = 1;
    fi.stride[0] = fs.stride[0] = fr.stride[0] = 1;
    fi.size[0] = fs.size[0] = rl_numel(idx), fr.size[0] = rl_numel(out[0]);
    s = cuda_sorted_write(op, &fi, &fs, &fr, 0, true);
  }
  if (s == RL_OK && !direct) s = rl_cuda_move(out[0], r);
  rl_tensor_release(idx);
  rl_tensor_release(src);
  rl_tensor_release(r);
  return s;
}

/* Adds windows of len elements every step along dim; x (…, windows at dim, …, len). Lines do not meet. */
RL_CUDA_KERNEL(unfold_grad) {
  UNUSED;
  int dim = (int)a->v[0].i, last = in[0]->ndim - 1;
  rl_tensor x = *in[0], r = *out[0];
  cuda_ew e;
  RL_TRY(rl_cuda_fill(out[0], 0));
  if (!rl_numel(in[0])) return RL_OK;
  x.ndim = last;
  cuda_ew_init(&e, &x, dim, 2, (const rl_tensor *[]){ &r, &x });
  e.i[0] = x.size[dim], e.i[1] = r.stride[dim] * a->v[2].i, e.i[2] = x.stride[dim], e.i[3] = in[0]->size[last], e.i[4] = r.stride[dim],
  e.i[5] = in[0]->stride[last];
  return cuda_run_ew(cuda_prim_fn((rl_dtype)r.dtype, FILE_OF, "add_lines"), op, &e);
}

/* As kernels/cpu/move.c: a buffer of the touched range takes the window, then is read through the input's own geometry. One thread adds the
 * elements of a window whose places meet; windows that do not meet are moved. */
RL_CUDA_KERNEL(as_strided_grad) {
  UNUSED;
  int64_t lo = RL_MIN(a->v[0].i, a->v[1].i), e1 = a->v[0].i, e2 = a->v[1].i;
  for (int k = 0; k < a->nlist[0]; k++) e1 += RL_MAX(0, a->list[0][k] - 1) * a->list[1][k];
  for (int k = 0; k < a->nlist[2]; k++) e2 += RL_MAX(0, a->list[2][k] - 1) * a->list[3][k];
  int64_t hi = RL_MAX(e1, e2) + 1;
  rl_tensor *buf = rl_tensor_empty((rl_dtype)in[0]->dtype, RL_CUDA, 1, &(int64_t){ hi - lo }), *at = NULL, *sum = NULL;
  if (!buf) return RL_OOM;
  rl_tensor w = *buf, g = *buf;
  w.ndim = a->nlist[2], g.ndim = a->nlist[0];
  w.offset = a->v[1].i - lo, g.offset = a->v[0].i - lo;
  for (int k = 0; k < w.ndim; k++) w.size[k] = a->list[2][k], w.stride[k] = a->list[3][k];
  for (int k = 0; k < g.ndim; k++) g.size[k] = a->list[0][k], g.stride[k] = a->list[1][k];
  /* places of the window's elements: the window of 0, 1, 2 ... */
  rl_attrs n = { .v = { { .i = hi - lo }, { .i = RL_I64 } } };
  rl_device before = rl_self.default_device;
  rl_self.default_device = RL_CUDA;
  rl_status s = rl_cuda_fill(buf, 0);
  if (s == RL_OK) s = rl_call(RL_OP_IOTA, NULL, 0, &n, &at);
  rl_self.default_device = before;
  if (s == RL_OK && rl_numel(in[0])) {
    rl_tensor v = w;
    v.storage = at->storage, v.dtype = RL_I64;
    s = rl_call(RL_OP_PUT_ADD, (rl_tensor *[]){ buf, &v, in[0] }, 3, NULL, &sum);
    g.storage = sum ? sum->storage : buf->storage;
  }
  if (s == RL_OK) s = rl_cuda_move(out[0], &g);
  rl_tensor_release(buf);
  rl_tensor_release(at);
  rl_tensor_release(sum);
  return s;
}

/* The order is made on the host, swap by swap, as on the CPU. */
RL_CUDA_KERNEL(randperm) {
  UNUSED;
  rl_tensor *h = rl_tensor_empty((rl_dtype)out[0]->dtype, RL_CPU, 1, out[0]->size);
  if (!h) return RL_OOM;
  rl_status s = rl_ops[op].kernel[RL_CPU](op, in, nin, a, &h);
  if (s == RL_OK) s = rl_cuda_transfer(out[0], h);
  rl_tensor_release(h);
  return s;
}

RL_CUDA_KERNEL(multinomial) {
  UNUSED;
  rl_generator *g = rl_generator_default();
  const rl_tensor *p = in[0];
  int last = p->ndim - 1;
  int64_t n = p->size[last], rows = p->ndim == 2 ? p->size[0] : 1;
  cuda_ew e;
  if (!rows) return RL_OK;
  cuda_ew_init(&e, p, last, 2, (const rl_tensor *[]){ out[0], p });
  if (!(e.p[3] = rl_cuda_workspace((size_t)(rows * n) * 8))) return RL_OOM;
  e.i[0] = n, e.i[1] = a->v[0].i, e.i[2] = p->stride[last], e.i[3] = out[0]->stride[last], e.i[4] = a->v[1].i;
  e.i[5] = (int64_t)g->seed, e.i[6] = (int64_t)g->counter, e.i[8] = op;
  return cuda_run_ew(cuda_prim_fn((rl_dtype)p->dtype, FILE_OF, "weighted"), op, &e);
}
