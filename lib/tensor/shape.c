/* Shape rules: elementwise, reductions, movement, creation, matrices (inputs, attributes -> shapes and dtypes).
 * rl_infer settles dtype and device of every output; a rule sets the sizes, and the dtype where an output differs. */
#include <string.h>
#include "dispatch.h"
#include "rules.h"

static bool dtype_is_free(const rl_tensor *t) { return t->flags & RL_T_WEAK; }

/* How strongly an input decides the dtype: number, scalar tensor, tensor. */
static int dtype_rank(const rl_tensor *t) { return dtype_is_free(t) ? 1 : t->ndim == 0 ? 2 : 3; }

rl_status rl_op_dtype(rl_op op, rl_tensor *const *in, int nin, rl_dtype *dt) {
  const rl_op_info *o = &rl_ops[op];
  int best = 0;
  *dt = rl_self.default_dtype;
  for (int i = 0; i < nin; i++) {
    if (!in[i] || o->in_dtypes[o->nin == 255 ? 0 : i]) continue;
    int r = dtype_rank(in[i]);
    if (r > best || (r == 1 && best == 1 && in[i]->dtype == RL_F64)) *dt = (rl_dtype)in[i]->dtype;
    best = RL_MAX(best, r);
  }
  bool isfloat = rl_dtypes[*dt].is_float;
  if (best == 1 && o->dtypes == 1 && !isfloat) *dt = RL_F64;
  else if (best && ((o->dtypes == 1 && !isfloat) || (o->dtypes == 2 && isfloat)))
    return rl_error("[%s] type; got %s, need %s", o->name, rl_dtypes[*dt].name, isfloat ? "an integer type" : "a floating point type");
  return RL_OK;
}

static rl_status infer_check_input(rl_op op, const rl_tensor *t, int i, rl_dtype opdt) {
  const rl_op_info *o = &rl_ops[op];
  int c = o->in_dtypes[o->nin == 255 ? 0 : i];
  rl_dtype need = c ? (rl_dtype)(c - 1) : opdt;
  if (c == 255 || t->dtype == need || dtype_is_free(t) || (o->kind == RL_K_EW && t->ndim == 0)) return RL_OK;
  return rl_error("[%s] type of %s; got %s, need %s", o->name, o->nin == 255 ? "an input" : o->in_names[i], rl_dtypes[t->dtype].name,
                  rl_dtypes[need].name);
}

static rl_dtype infer_attr_dtype(const rl_op_info *o, const rl_attrs *a) {
  for (int i = 0; i < o->nattrs; i++)
    if (o->attrs[i].kind == 'd') return (rl_dtype)a->v[o->attrs[i].slot].i;
  return rl_self.default_dtype;
}

/* Device of the results: that of the inputs that are no numbers. */
static rl_status infer_device(const rl_op_info *o, rl_tensor *const *in, int nin, uint8_t *dev) {
  *dev = nin && in[0] ? in[0]->device : (uint8_t)rl_self.default_device;
  for (int i = 1; i < nin; i++) {
    if (!in[i] || in[i]->device == *dev) continue;
    if (*dev == RL_CPU && in[0]->ndim == 0) *dev = in[i]->device;
    else if (in[i]->device != RL_CPU || in[i]->ndim)
      return rl_error("[%s] tensors on two devices; got a CPU and a CUDA tensor, need one device", o->name);
  }
  return RL_OK;
}

rl_status rl_infer(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  const rl_op_info *o = &rl_ops[op];
  rl_dtype dt;
  RL_TRY(rl_op_dtype(op, in, nin, &dt));
  for (int i = 0; i < nin; i++)
    if (in[i]) RL_TRY(infer_check_input(op, in[i], i, dt));
  if (o->out_dtype == 255) dt = infer_attr_dtype(o, a);
  else if (o->out_dtype) dt = (rl_dtype)(o->out_dtype - 1);
  if ((unsigned)dt >= RL_NDTYPE) return rl_error("[%s] bad type", o->name);
  uint8_t dev;
  RL_TRY(infer_device(o, in, nin, &dev));
  for (int k = 0; k < o->nout; k++) {
    out[k].dtype = dt;
    out[k].device = dev;
    out[k].ndim = 0;
  }
  if (!o->shape) return rl_error("[%s] is expanded when called", o->name);
  return o->shape(op, in, nin, a, out);
}

bool rl_broadcasts(int na, const int64_t *a, int nb, const int64_t *b) {
  if (na > nb) return false;
  for (int i = 1; i <= na; i++)
    if (a[na - i] != b[nb - i] && a[na - i] != 1) return false;
  return true;
}

static int64_t shape_numel(int n, const int64_t *s) {
  int64_t k = 1;
  for (int d = 0; d < n; d++) k *= s[d];
  return k;
}

/* m becomes the shape that m and t broadcast to (as NumPy); false: they do not. */
static bool shape_join(rl_meta *m, const rl_tensor *t) {
  int n = RL_MAX(m->ndim, t->ndim);
  int64_t s[RL_MAXDIM];
  for (int i = 1; i <= n; i++) {
    int64_t p = i <= m->ndim ? m->size[m->ndim - i] : 1, q = i <= t->ndim ? t->size[t->ndim - i] : 1;
    if (p != q && p != 1 && q != 1) return false;
    s[n - i] = p == 1 ? q : p;
  }
  m->ndim = n;
  memcpy(m->size, s, (size_t)n * sizeof *s);
  return true;
}

rl_status rl_shape_ew(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)a;
  char b1[256], b2[256];
  rl_rule_like(&out[0], in[0]);
  for (int i = 1; i < nin; i++) {
    if (out->ndim == in[i]->ndim && !memcmp(out->size, in[i]->size, in[i]->ndim * sizeof *in[i]->size)) continue;
    if (shape_join(out, in[i])) continue;
    if (shape_numel(out->ndim, out->size) == rl_numel(in[i])) continue; /* Torch7: as many elements, read in order */
    return rl_error("[%s] sizes; got %s, need those of %s", rl_ops[op].name, rl_shape_str(in[i], b1), rl_shape_str(in[0], b2));
  }
  return RL_OK;
}

rl_status rl_reduced_dims(const rl_tensor *x, const rl_attrs *a, bool hit[RL_MAXDIM]) {
  memset(hit, a->nlist[0] == 0, RL_MAXDIM * sizeof *hit);
  for (int i = 0; i < a->nlist[0]; i++) {
    int64_t d = a->list[0][i];
    if (d < 0 || d >= x->ndim) return RL_ERR;
    hit[d] = true;
  }
  return RL_OK;
}

static rl_status shape_reduced(rl_op op, const rl_tensor *x, const rl_attrs *a, bool keepdim, rl_meta *out) {
  bool hit[RL_MAXDIM];
  for (int i = 0; i < a->nlist[0]; i++) RL_TRY(rl_check_dim(op, x, a->list[0][i]));
  RL_TRY(rl_reduced_dims(x, a, hit));
  int n = 0;
  for (int d = 0; d < x->ndim; d++) {
    if (!hit[d]) out->size[n++] = x->size[d];
    else if (keepdim) out->size[n++] = 1;
  }
  out->ndim = n;
  return RL_OK;
}

rl_status rl_shape_red(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)nin;
  const char *init = rl_ops[op].init;
  RL_TRY(shape_reduced(op, in[0], a, a->v[0].i, out));
  bool hit[RL_MAXDIM];
  RL_TRY(rl_reduced_dims(in[0], a, hit));
  if (strcmp(init, "lowest") && strcmp(init, "highest")) return RL_OK;
  for (int d = 0; d < in[0]->ndim; d++)
    if (hit[d] && in[0]->size[d] == 0) return rl_error("[%s] an empty dimension has no such element", rl_ops[op].name);
  return RL_OK;
}

rl_status rl_shape_reduce(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)nin;
  return shape_reduced(op, in[0], a, a->v[0].i, out);
}

rl_status rl_shape_view(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)nin;
  rl_geom g;
  RL_TRY(rl_ops[op].view(op, in[0], a, &g));
  return rl_rule_sizes(op, g.ndim, g.size, out);
}

rl_status rl_shape_same(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)nin;
  const rl_op_info *o = &rl_ops[op];
  for (int i = 0; i < o->nattrs; i++) {
    if (!strcmp(o->attrs[i].name, "dim")) RL_TRY(rl_check_dim(op, in[0], a->v[o->attrs[i].slot].i));
    if (!strcmp(o->attrs[i].name, "dims"))
      for (int j = 0; j < a->nlist[o->attrs[i].slot]; j++) RL_TRY(rl_check_dim(op, in[0], a->list[o->attrs[i].slot][j]));
  }
  if ((op == RL_OP_TRIL || op == RL_OP_TRIU) && in[0]->ndim < 2) return rl_error("[%s] need a matrix; got %d dimensions", o->name, in[0]->ndim);
  rl_rule_like(out, in[0]);
  return RL_OK;
}

/* Sizes given in list 0. */
rl_status rl_shape_sizes(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)in;
  (void)nin;
  return rl_rule_sizes(op, a->nlist[0], a->list[0], out);
}
rl_status rl_shape_sizes0(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) { return rl_shape_sizes(op, in, nin, a, out); }

rl_status rl_shape_random(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  if (rl_ops[op].dtypes == 1 && !rl_dtypes[out->dtype].is_float)
    return rl_error("[%s] type; got %s, need a floating point type", rl_ops[op].name, rl_dtypes[out->dtype].name);
  return rl_shape_sizes(op, in, nin, a, out);
}

rl_status rl_shape_iota(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)in;
  (void)nin;
  return rl_rule_sizes(op, 1, &a->v[0].i, out);
}

rl_status rl_shape_reshape(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)nin;
  RL_TRY(rl_rule_sizes(op, a->nlist[0], a->list[0], out));
  int64_t n = shape_numel(out->ndim, out->size);
  if (n != rl_numel(in[0]))
    return rl_error("[%s] number of elements; got %lld, need %lld", rl_ops[op].name, (long long)n, (long long)rl_numel(in[0]));
  return RL_OK;
}

static rl_status cat_check(rl_op op, const rl_tensor *first, const rl_tensor *t, int64_t dim) {
  char b1[256], b2[256];
  bool ok = t->ndim == first->ndim;
  for (int d = 0; ok && d < t->ndim; d++) ok = d == dim || t->size[d] == first->size[d];
  return ok ? RL_OK
            : rl_error("[%s] sizes; got %s, need those of %s but along dimension %lld", rl_ops[op].name, rl_shape_str(t, b1), rl_shape_str(first, b2),
                       (long long)dim + 1);
}

rl_status rl_shape_cat(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  int64_t dim = a->v[0].i;
  RL_TRY(rl_check_dim(op, in[0], dim));
  rl_rule_like(out, in[0]);
  for (int i = 1; i < nin; i++) {
    RL_TRY(cat_check(op, in[0], in[i], dim));
    out->size[dim] += in[i]->size[dim];
  }
  return RL_OK;
}

rl_status rl_shape_pad(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)nin;
  rl_rule_like(out, in[0]);
  if (a->nlist[0] != in[0]->ndim || a->nlist[1] != in[0]->ndim)
    return rl_error("[%s] amounts; got %d and %d, need %d", rl_ops[op].name, a->nlist[0], a->nlist[1], in[0]->ndim);
  for (int d = 0; d < out->ndim; d++) {
    out->size[d] += a->list[0][d] + a->list[1][d];
    if (out->size[d] < 0)
      return rl_error("[%s] cuts more than there is; dimension %d of size %lld", rl_ops[op].name, d + 1, (long long)in[0]->size[d]);
  }
  return RL_OK;
}

rl_status rl_shape_repeat(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)nin;
  int n = a->nlist[0], lead = n - in[0]->ndim;
  if (lead < 0) return rl_error("[%s] repeats; got %d, need at least %d", rl_ops[op].name, n, in[0]->ndim);
  out->ndim = n;
  for (int d = 0; d < n; d++) out->size[d] = a->list[0][d] * (d < lead ? 1 : in[0]->size[d - lead]);
  return rl_rule_sizes(op, n, out->size, out);
}

rl_status rl_shape_matmul(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)nin;
  (void)a;
  const rl_tensor *x = in[0], *y = in[1];
  char b1[256], b2[256];
  int n = x->ndim;
  if ((n != 2 && n != 3) || y->ndim != n || x->size[n - 1] != y->size[n - 2] || (n == 3 && x->size[0] != y->size[0]))
    return rl_error("[%s] sizes do not match; got %s and %s", rl_ops[op].name, rl_shape_str(x, b1), rl_shape_str(y, b2));
  rl_rule_like(out, x);
  out->size[n - 1] = y->size[n - 1];
  return RL_OK;
}

rl_status rl_shape_addmm(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  char b1[256];
  RL_TRY(rl_shape_matmul(op, in + 1, nin - 1, a, out));
  if (!rl_broadcasts(in[0]->ndim, in[0]->size, out->ndim, out->size))
    return rl_error("[%s] sizes; got %s, need %lldx%lld", rl_ops[op].name, rl_shape_str(in[0], b1), (long long)out->size[0], (long long)out->size[1]);
  return RL_OK;
}

rl_status rl_shape_linear(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out) {
  (void)a;
  const rl_tensor *x = in[0], *w = in[1];
  char b1[256], b2[256];
  if (x->ndim != 2 || w->ndim != 2 || x->size[1] != w->size[1])
    return rl_error("[%s] sizes do not match; got %s and weight %s", rl_ops[op].name, rl_shape_str(x, b1), rl_shape_str(w, b2));
  if (nin > 2 && in[2] && (in[2]->ndim != 1 || in[2]->size[0] != w->size[0]))
    return rl_error("[%s] bias; got %s, need %lld", rl_ops[op].name, rl_shape_str(in[2], b1), (long long)w->size[0]);
  rl_rule_like(out, x);
  out->size[1] = w->size[0];
  return RL_OK;
}
