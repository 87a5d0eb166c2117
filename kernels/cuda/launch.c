/* Elementwise rows, casts and reductions on CUDA tensors: argument blocks, kernels by name, launches.
 * The kernels' text comes from source.c; each is compiled at its first use. */
#include "../../lib/runtime/cuda_impl.h"
#include "launch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rl_status rl_cuda_ew_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);
rl_status rl_cuda_cast_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);
rl_status rl_cuda_red_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);
rl_status rl_cuda_arg_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);

rl_cuda_fn *cuda_row_fn(rl_op op, rl_dtype dt, const char *entry) {
  rl_cuda_fn *f = rl_cuda_find(entry);
  if (f) return f;
  char *src = rl_cuda_source(op, dt);
  if (!src) {
    rl_error("[%s] no CUDA kernel for %s tensors", rl_ops[op].name, rl_dtypes[dt].name);
    return NULL;
  }
  f = rl_cuda_kernel(entry, src, entry);
  free(src);
  return f;
}

rl_cuda_fn *cuda_prim_fn(rl_dtype dt, const char *file, const char *entry) {
  char key[64];
  snprintf(key, sizeof key, "%s_%s_%s", file, entry, rl_dtypes[dt].suffix);
  rl_cuda_fn *f = rl_cuda_find(key);
  if (f) return f;
  char *src = rl_cuda_prim_source(dt, file);
  f = src ? rl_cuda_kernel(key, src, entry) : NULL;
  free(src);
  return f;
}

/* Joins neighbouring dimensions that every tensor walks as one. */
static void ew_join(cuda_ew *e, int nt) {
  int w = 0;
  for (int d = 0; d < e->nd; d++) {
    bool join = w > 0;
    if (e->size[d] == 1) continue;
    for (int k = 0; k < nt && join; k++) join = e->st[k][w - 1] == e->st[k][d] * e->size[d];
    if (join) e->size[w - 1] *= e->size[d];
    else e->size[w] = e->size[d];
    for (int k = 0; k < nt; k++) e->st[k][join ? w - 1 : w] = e->st[k][d];
    w += !join;
  }
  e->nd = w;
}

void cuda_ew_init(cuda_ew *e, const rl_tensor *shape, int skip, int nt, const rl_tensor *const *t) {
  memset(e, 0, sizeof *e);
  e->n = 1;
  e->err = cuda_error_words();
  for (int d = 0; d < shape->ndim; d++) {
    if (d == skip) continue;
    e->n *= e->size[e->nd] = shape->size[d];
    for (int k = 0; k < nt; k++) e->st[k][e->nd] = t[k] ? t[k]->stride[d] : 0;
    e->nd++;
  }
  for (int k = 0; k < nt; k++) {
    if (!t[k]) continue;
    if (t[k]->device == RL_CUDA) e->p[k] = rl_data(t[k]);
    else memcpy(&e->imm[k], rl_data(t[k]), (size_t)rl_dtypes[t[k]->dtype].bytes); /* a number */
  }
  ew_join(e, nt);
}

rl_status cuda_run_ew(rl_cuda_fn *f, rl_op op, cuda_ew *e) {
  if (!f) return RL_ERR;
  if (e->n == 0) return RL_OK;
  int64_t blocks = RL_MIN((e->n + 255) / 256, rl_cuda_processors() * 16);
  return rl_cuda_launch(f, rl_ops[op].name, blocks, 256, (void *[]){ e });
}

static bool number(const rl_tensor *t) {
  if (t->device != RL_CPU) return true;
  for (int d = 0; d < t->ndim; d++)
    if (t->stride[d] != 0 && t->size[d] > 1) return false;
  return true;
}

rl_status rl_cuda_ew_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  const rl_op_info *o = &rl_ops[op];
  const rl_tensor *t[5] = { out[0] };
  rl_dtype dt = RL_NDTYPE;
  char name[64];
  cuda_ew e;
  for (int k = 0; k < nin; k++) {
    t[k + 1] = in[k];
    if (!number(in[k])) return rl_error("[%s] input %d is on the host; got a CPU tensor, need a CUDA tensor or a number", o->name, k + 1);
    if (dt == RL_NDTYPE && o->in_dtypes[k] == 0) dt = in[k]->dtype;
  }
  if (rl_numel(out[0]) == 0) return RL_OK;
  cuda_ew_init(&e, out[0], -1, nin + 1, t);
  for (int k = 0; k < o->nattrs; k++) {
    if (o->attrs[k].kind == 'f') e.f[o->attrs[k].slot] = a->v[o->attrs[k].slot].f;
    else if (o->attrs[k].kind != 'l') e.i[o->attrs[k].slot] = a->v[o->attrs[k].slot].i;
  }
  snprintf(name, sizeof name, "ew_%s_%s", o->name, rl_dtypes[dt].suffix);
  return cuda_run_ew(cuda_row_fn(op, dt, name), op, &e);
}

static rl_status cast_to(rl_tensor *dst, const rl_tensor *src) {
  char name[64];
  cuda_ew e;
  if (rl_numel(dst) == 0) return RL_OK;
  if (src->device == dst->device && src->dtype == dst->dtype && rl_is_contiguous(src) && rl_is_contiguous(dst) && rl_same_shape(src, dst))
    return rl_cuda_move_bytes(rl_data(dst), rl_data(src), (size_t)(rl_numel(dst) * rl_dtypes[dst->dtype].bytes));
  cuda_ew_init(&e, dst, -1, 2, (const rl_tensor *[]){ dst, src });
  snprintf(name, sizeof name, "cast_%s_%s", rl_dtypes[src->dtype].suffix, rl_dtypes[dst->dtype].suffix);
  return cuda_run_ew(cuda_row_fn(RL_OP_CAST, src->dtype, name), RL_OP_CAST, &e);
}

rl_status rl_cuda_cast_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  (void)op, (void)nin, (void)a;
  if (!number(in[0])) return rl_cuda_transfer(out[0], in[0]);
  return cast_to(out[0], in[0]);
}

rl_status rl_cuda_move(rl_tensor *dst, const rl_tensor *src) { return cast_to(dst, src); }

rl_status rl_cuda_fill(rl_tensor *dst, double v) {
  rl_number n;
  rl_tensor *x = rl_number_set(&n, v), w = *x;
  w.ndim = dst->ndim;
  for (int d = 0; d < w.ndim; d++) w.size[d] = dst->size[d], w.stride[d] = 0;
  if (v == 0 && rl_is_contiguous(dst)) return rl_cuda_zero_bytes(rl_data(dst), (size_t)(rl_numel(dst) * rl_dtypes[dst->dtype].bytes));
  return cast_to(dst, &w);
}

rl_status cuda_base(rl_tensor *r, const rl_tensor *base) { return base ? rl_cuda_move(r, base) : rl_cuda_fill(r, 0); }

/* Reductions. */
static int join(int n, int64_t *size, int64_t *s1, int64_t *s2) {
  int w = 0;
  for (int d = 0; d < n; d++) {
    if (size[d] == 1) continue;
    if (w && s1[w - 1] == s1[d] * size[d] && (!s2 || s2[w - 1] == s2[d] * size[d])) {
      size[w - 1] *= size[d], s1[w - 1] = s1[d];
      if (s2) s2[w - 1] = s2[d];
    } else {
      size[w] = size[d], s1[w] = s1[d];
      if (s2) s2[w] = s2[d];
      w++;
    }
  }
  return w;
}

void cuda_red_init(cuda_red *l, const rl_tensor *x, const rl_attrs *a, const rl_tensor *r) {
  int o = 0;
  memset(l, 0, sizeof *l);
  l->nout = l->m = l->splits = 1;
  for (int d = 0; d < x->ndim; d++) {
    bool red = false;
    for (int k = 0; k < a->nlist[0]; k++) red = red || a->list[0][k] == d;
    *(red ? &l->m : &l->nout) *= x->size[d];
    if (red) l->rsize[l->nr] = x->size[d], l->rin[l->nr++] = x->stride[d];
    else l->ksize[l->nk] = x->size[d], l->kin[l->nk] = x->stride[d], l->kout[l->nk++] = r->stride[o];
    o += !red || a->v[0].i;
  }
  l->nk = join(l->nk, l->ksize, l->kin, l->kout);
  l->nr = join(l->nr, l->rsize, l->rin, NULL);
  l->x = rl_data(x);
  l->r = rl_data(r);
}

static rl_cuda_fn *red_fn(rl_op op, rl_dtype dt, const char *kind) {
  char name[64];
  snprintf(name, sizeof name, "%s_%s_%s", kind, rl_ops[op].name, rl_dtypes[dt].suffix);
  return cuda_row_fn(op, dt, name);
}

rl_status rl_cuda_red_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  (void)nin;
  const rl_tensor *x = in[0];
  const char *name = rl_ops[op].name;
  cuda_red l;
  rl_cuda_fn *f;
  if (rl_numel(out[0]) == 0) return RL_OK;
  if (rl_numel(x) == 0 && (op == RL_OP_AMAX || op == RL_OP_AMIN)) return rl_error("[%s] of an empty tensor has no value", name);
  cuda_red_init(&l, x, a, out[0]);
  bool dense_inner = l.nr && l.rin[l.nr - 1] == 1;
  if (l.m < 32 || (!dense_inner && l.nout >= 4096) || l.nout >= (1 << 24)) {
    if (!(f = red_fn(op, x->dtype, "cols"))) return RL_ERR;
    return rl_cuda_launch(f, name, RL_MIN((l.nout + 127) / 128, 1 << 20), 128, (void *[]){ &l });
  }
  if (l.nout < 264) l.splits = RL_MAX(1, RL_MIN(528 / l.nout, l.m / 2048));
  if (l.splits > 1 && !(l.part = rl_cuda_workspace((size_t)(l.nout * l.splits) * 8))) return RL_OOM;
  if (!(f = red_fn(op, x->dtype, "rows"))) return RL_ERR;
  RL_TRY(rl_cuda_launch(f, name, l.nout * l.splits, 256, (void *[]){ &l }));
  if (l.splits == 1) return RL_OK;
  if (!(f = red_fn(op, x->dtype, "last"))) return RL_ERR;
  return rl_cuda_launch(f, name, (l.nout + 127) / 128, 128, (void *[]){ &l });
}

rl_status rl_cuda_arg_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  (void)nin;
  cuda_red l;
  if (rl_numel(out[0]) == 0) return RL_OK;
  if (rl_numel(in[0]) == 0) return rl_error("[%s] of an empty tensor has no value", rl_ops[op].name);
  cuda_red_init(&l, in[0], a, out[0]);
  l.splits = op == RL_OP_ARGMAX;
  rl_cuda_fn *f = cuda_prim_fn(in[0]->dtype, "prims", "arg");
  return f ? rl_cuda_launch(f, rl_ops[op].name, l.nout, 128, (void *[]){ &l }) : RL_ERR;
}
