/* Dispatch: rl_call, the one entry for every op (inputs -> kernel, formula or graph node -> outputs, tape).
 *
 * 1. A view makes a tensor on the same storage. 2. A composite without a shape rule is expanded. 3. A result given by the caller is written
 * directly when nothing watches it; else the op runs into a fresh tensor first, which is then copied and taped as a write. 4. Kernels see
 * inputs in their final form: numbers converted, elementwise inputs broadcast by stride 0. */
#include <string.h>
#include "../autograd/tape.h"
#include "../graph/graph.h"
#include "../runtime/cuda.h"
#include "dispatch.h"
#include "random.h"

#pragma weak rl_graph_record
#pragma weak rl_graph_record_view
#pragma weak rl_graph_record_write

rl_op rl_op_find(const char *name) {
  for (int op = 0; op < RL_NOP; op++)
    if (!strcmp(rl_ops[op].name, name)) return (rl_op)op;
  return RL_NOP;
}

void rl_attrs_default(rl_op op, rl_attrs *a) {
  memset(a, 0, sizeof *a);
  for (int i = 0; i < rl_ops[op].nattrs; i++) {
    const rl_attr_info *t = &rl_ops[op].attrs[i];
    if (t->kind == 'f') a->v[t->slot].f = t->def;
    else if (t->kind != 'l') a->v[t->slot].i = (int64_t)t->def;
  }
}

/* A rank-0 tensor on the stack with a given dtype. */
typedef struct call_scalar {
  rl_tensor t;
  rl_storage s;
  uint64_t bits;
} call_scalar;

static void scalar_store(void *p, rl_dtype dt, double f, int64_t i) {
  switch (dt) {
  case RL_U8: *(uint8_t *)p = (uint8_t)i; break;
  case RL_I8: *(int8_t *)p = (int8_t)i; break;
  case RL_I16: *(int16_t *)p = (int16_t)i; break;
  case RL_I32: *(int32_t *)p = (int32_t)i; break;
  case RL_I64: *(int64_t *)p = i; break;
  case RL_F16: *(rl_f16 *)p = rl_float_to_half((float)f); break;
  case RL_BF16: *(rl_bf16 *)p = rl_float_to_bfloat((float)f); break;
  case RL_F32: *(float *)p = (float)f; break;
  case RL_F64: *(double *)p = f; break;
  case RL_NDTYPE: break;
  }
}

static int64_t scalar_to_int(double f) {
  if (f >= 9223372036854775808.0 || f < -9223372036854775808.0 || f != f) return INT64_MIN;
  return (int64_t)f;
}

static rl_status scalar_convert(call_scalar *c, const rl_tensor *x, rl_dtype dt) {
  double f;
  RL_TRY(rl_tensor_item(x, &f));
  c->t = *x;
  c->t.dtype = dt;
  c->t.flags = RL_T_WEAK | RL_T_STACK;
  c->t.offset = 0;
  c->t.storage = &c->s;
  c->s = (rl_storage){ .refs = 1 << 30, .dtype = dt, .size = 1, .data = &c->bits, .id = -1 };
  scalar_store(&c->bits, dt, f, x->dtype == RL_I64 && x->device == RL_CPU ? *(const int64_t *)rl_data(x) : scalar_to_int(f));
  return RL_OK;
}

/* Dtype that input i must have, RL_NDTYPE: any. */
static rl_dtype input_dtype(const rl_op_info *o, int i, rl_dtype opdt) {
  int c = o->in_dtypes[o->nin == 255 ? 0 : i];
  return c == 0 ? opdt : c == 255 ? RL_NDTYPE : (rl_dtype)(c - 1);
}

/* Kernel arguments: numbers converted, and for elementwise rows every input in the shape of `shape`. */
typedef struct call_args {
  rl_tensor *in[RL_MAXIN], wide[RL_MAXIN];
  call_scalar num[RL_MAXIN];
  rl_tensor *made[RL_MAXIN]; /* reshaped copies, released afterwards */
} call_args;

static rl_status args_expand(call_args *c, int i, const rl_tensor *shape) {
  rl_tensor *x = c->in[i];
  if (rl_same_shape(x, shape)) return RL_OK;
  if (!rl_broadcasts(x->ndim, x->size, shape->ndim, shape->size)) { /* as many elements, read in order */
    RL_TRY(rl_reshape(x, shape->ndim, shape->size, &c->made[i]));
    c->in[i] = c->made[i];
    return RL_OK;
  }
  rl_tensor *w = &c->wide[i];
  *w = *x;
  w->ag = NULL;
  w->ndim = shape->ndim;
  int lead = shape->ndim - x->ndim;
  for (int d = 0; d < shape->ndim; d++) {
    w->size[d] = shape->size[d];
    w->stride[d] = d < lead || (x->size[d - lead] == 1 && shape->size[d] != 1) ? 0 : x->stride[d - lead];
  }
  c->in[i] = w;
  return RL_OK;
}

static rl_status args_prepare(call_args *c, rl_op op, rl_tensor *const *in, int nin, const rl_tensor *shape) {
  const rl_op_info *o = &rl_ops[op];
  rl_dtype opdt;
  RL_TRY(rl_op_dtype(op, in, nin, &opdt));
  for (int i = 0; i < nin; i++) {
    c->in[i] = in[i];
    c->made[i] = NULL;
    if (!in[i]) continue;
    rl_dtype dt = input_dtype(o, i, opdt);
    if (dt != RL_NDTYPE && in[i]->dtype != dt && in[i]->ndim == 0) {
      RL_TRY(scalar_convert(&c->num[i], in[i], dt));
      c->in[i] = &c->num[i].t;
    }
    if (o->kind == RL_K_EW) RL_TRY(args_expand(c, i, shape));
  }
  return RL_OK;
}

static rl_kernel_fn find_kernel(const rl_op_info *o, int device) { return o->kernel[device]; }

/* Device of a call: a CUDA input, else that of the results. Formulas make their constants there. */
static rl_device call_device(rl_tensor *const *in, int nin, rl_tensor *const *out) {
  for (int i = 0; i < nin; i++)
    if (in[i] && in[i]->device == RL_CUDA) return RL_CUDA;
  return nin == 0 && out[0] ? (rl_device)out[0]->device : nin ? RL_CPU : rl_self.default_device;
}

static rl_status no_kernel(const rl_op_info *o) { return rl_error("[%s] no kernel on this device", o->name); }

/* Reductions always get an explicit sorted list of dimensions. */
static const rl_attrs *reduce_attrs(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_attrs *copy) {
  if (rl_ops[op].kind != RL_K_RED) return a;
  *copy = *a;
  bool hit[RL_MAXDIM];
  rl_reduced_dims(x, a, hit);
  copy->nlist[0] = 0;
  for (int d = 0; d < x->ndim; d++)
    if (hit[d]) copy->list[0][copy->nlist[0]++] = d;
  return copy;
}

static rl_status cast_to_host(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  return rl_cuda_transfer(out[0], in[0]);
}

static rl_status run_kernel(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  const rl_op_info *o = &rl_ops[op];
  rl_kernel_fn k = find_kernel(o, out[0]->device);
  if (op == RL_OP_CAST && in[0]->device == RL_CUDA && out[0]->device == RL_CPU) k = cast_to_host;
  if (!k && out[0]->device == RL_CUDA) k = rl_cuda_host_op;
  if (!k) return no_kernel(o);
  rl_attrs copy;
  rl_status s;
  if (o->nin == 255) {
    s = k(op, in, nin, a, out);
  } else {
    call_args c;
    s = args_prepare(&c, op, in, nin, out[0]);
    if (s == RL_OK) s = k(op, c.in, nin, nin ? reduce_attrs(op, in[0], a, &copy) : a, out);
    for (int i = 0; i < nin; i++)
      if (s == RL_OK && in[i]) rl_tensor_release(c.made[i]);
  }
  if (s == RL_OK && (o->flags & RL_OPF_RANDOM)) rl_generator_default()->counter += (uint64_t)rl_random_counters(out[0]->dtype, rl_numel(out[0]));
  return s;
}

static rl_status alloc_outputs(int nout, const rl_meta *m, rl_tensor **out) {
  for (int k = 0; k < nout; k++)
    if (!(out[k] = rl_tensor_empty(m[k].dtype, m[k].device, m[k].ndim, m[k].size))) return RL_OOM;
  return RL_OK;
}

static void drop_outputs(int nout, rl_tensor **out) {
  for (int k = 0; k < nout; k++) {
    rl_tensor_release(out[k]);
    out[k] = NULL;
  }
}

rl_status rl_expand(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out) {
  rl_device before = rl_self.default_device;
  rl_self.default_device = call_device(in, nin, out);
  rl_status s = rl_ops[op].formula(in, nin, a, out);
  rl_self.default_device = before;
  if (s != RL_OK) drop_outputs(rl_ops[op].nout, out);
  return s;
}

/* The formula of an op whose own node goes on the tape, if any. */
static rl_status expand_quietly(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out) {
  bool before = rl_self.grad_disabled;
  rl_self.grad_disabled = true;
  rl_status s = rl_expand(op, in, nin, a, out);
  rl_self.grad_disabled = before;
  return s;
}

static bool all_weak(rl_op op, rl_tensor *const *in, int nin) {
  if (rl_ops[op].kind != RL_K_EW || rl_ops[op].out_dtype) return false;
  for (int i = 0; i < nin; i++)
    if (!in[i] || !(in[i]->flags & RL_T_WEAK)) return false;
  return nin > 0;
}

static rl_status run_real(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, const rl_meta *m, rl_tensor **out) {
  const rl_op_info *o = &rl_ops[op];
  if (!find_kernel(o, m->device)) {
    if (o->formula) return expand_quietly(op, in, nin, a, out);
    if (m->device != RL_CUDA) return no_kernel(o);
  }
  rl_status s = alloc_outputs(o->nout, m, out);
  if (s == RL_OK) s = run_kernel(op, in, nin, a, out);
  if (s == RL_OK && all_weak(op, in, nin)) out[0]->flags |= RL_T_WEAK;
  if (s != RL_OK) drop_outputs(o->nout, out);
  return s;
}

static bool any_fake(rl_tensor *const *in, int nin) {
  if (rl_self.graph) return true;
  for (int i = 0; i < nin; i++)
    if (in[i] && rl_is_fake(in[i])) return true;
  return false;
}

static bool wants_grad(const rl_op_info *o, rl_tensor *const *in, int nin) {
  if (rl_self.grad_disabled || (o->flags & RL_OPF_NODIFF)) return false;
  for (int i = 0; i < nin; i++)
    if (in[i] && in[i]->ag && rl_requires_grad(in[i])) return true;
  return false;
}

/* The commonest call, told in a few compares: one or two dense tensors of one shape and dtype, nothing recorded. Shape rules and argument
 * preparation would change nothing, so the kernel runs at once. */
static bool plain(const rl_op_info *o, rl_tensor *const *in, int nin) {
  const rl_tensor *x = in[0], *y = in[nin - 1];
  if (o->kind != RL_K_EW || nin > 2 || o->nin != nin || o->out_dtype || o->in_dtypes[0] || rl_self.graph) return false;
  if (x->dtype != y->dtype || x->ndim != y->ndim || x->ndim == 0 || x->ag || y->ag || !x->storage || !y->storage) return false;
  if (x->storage->graph || y->storage->graph || x->device != y->device || !o->kernel[x->device]) return false;
  if (o->dtypes && (o->dtypes == 1) != rl_dtypes[x->dtype].is_float) return false;
  for (int d = 0; d < x->ndim; d++)
    if (x->size[d] != y->size[d]) return false;
  return rl_is_contiguous(x) && rl_is_contiguous(y);
}

static rl_status call_plain(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out) {
  if (!(out[0] = rl_tensor_empty(in[0]->dtype, in[0]->device, in[0]->ndim, in[0]->size))) return RL_OOM;
  rl_status s = rl_ops[op].kernel[in[0]->device](op, in, nin, a, out);
  if (s != RL_OK) drop_outputs(1, out);
  return s;
}

static rl_status call_fresh(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out) {
  const rl_op_info *o = &rl_ops[op];
  if (nin > 0 && plain(o, in, nin)) return call_plain(op, in, nin, a, out);
  bool record = wants_grad(o, in, nin);
  if (o->flags & RL_OPF_INLINE) return (o->flags & RL_OPF_NODIFF) ? expand_quietly(op, in, nin, a, out) : rl_expand(op, in, nin, a, out);
  rl_meta m[RL_MAXOUT];
  RL_TRY(rl_infer(op, in, nin, a, m));
  if (record && !o->grad) return rl_expand(op, in, nin, a, out);
  if (any_fake(in, nin)) RL_TRY(rl_graph_record(op, in, nin, a, m, out));
  else RL_TRY(run_real(op, in, nin, a, m, out));
  return record ? rl_tape_record(op, in, nin, a, out, o->nout) : RL_OK;
}

static rl_status call_view(rl_op op, rl_tensor *x, const rl_attrs *a, rl_tensor **out) {
  const rl_op_info *o = &rl_ops[op];
  rl_geom g;
  if (*out) return rl_error("[%s] a view takes no result", o->name);
  RL_TRY(o->view(op, x, a, &g));
  if (any_fake(&x, 1)) RL_TRY(rl_graph_record_view(op, x, a, &g, out));
  else if (!(*out = rl_tensor_window(x, &g))) return RL_ERR;
  if (rl_self.grad_disabled || !rl_dtypes[x->dtype].is_float) return RL_OK;
  if (wants_grad(o, &x, 1)) RL_TRY(rl_tape_record(op, &x, 1, a, out, 1));
  return rl_tape_view(x, *out);
}

/* dst takes v's elements (same shape and dtype). */
static rl_status write_value(rl_tensor *dst, rl_tensor *v) {
  if (any_fake(&dst, 1)) RL_TRY(rl_graph_record_write(dst, v));
  else {
    rl_attrs a = { .v = { { .i = dst->dtype } } };
    RL_TRY(run_kernel(RL_OP_CAST, &v, 1, &a, &dst));
  }
  dst->storage->version++;
  return rl_tape_record_write(dst, v);
}

/* v in the shape of dst: expanded, or read in order when only the counts agree. */
static rl_status shape_like(const char *name, rl_tensor *v, const rl_tensor *dst, bool inorder, rl_tensor **out) {
  char b1[256], b2[256];
  if (rl_same_shape(v, dst)) {
    *out = rl_tensor_keep(v);
    return RL_OK;
  }
  bool fits = rl_broadcasts(v->ndim, v->size, dst->ndim, dst->size), same = rl_numel(v) == rl_numel(dst);
  if (same && (inorder || !fits)) return rl_reshape(v, dst->ndim, dst->size, out);
  if (!fits) return rl_error("[%s] shape of the result; got %s, need %s", name, rl_shape_str(dst, b1), rl_shape_str(v, b2));
  rl_attrs a = { .nlist = { dst->ndim } };
  memcpy(a.list[0], dst->size, dst->ndim * sizeof *dst->size);
  return rl_call(RL_OP_EXPAND, &v, 1, &a, out);
}

static rl_status assign_result(const char *name, rl_tensor *dst, rl_tensor *v) {
  rl_tensor *w = NULL;
  if (v->dtype != dst->dtype) return rl_error("[%s] result; got %s, need %s", name, rl_dtypes[dst->dtype].name, rl_dtypes[v->dtype].name);
  RL_TRY(shape_like(name, v, dst, false, &w));
  rl_status s = write_value(dst, w);
  rl_tensor_release(w);
  return s;
}

static bool dst_watched(const rl_tensor *t) { return t->ag && !rl_self.grad_disabled; }

/* The caller's results can be the kernel's: nothing is recorded, geometry fits, no harmful overlap. */
static bool direct_ok(rl_op op, rl_tensor *const *in, int nin, const rl_meta *m, rl_tensor *const *out) {
  const rl_op_info *o = &rl_ops[op];
  for (int k = 0; k < o->nout; k++) {
    const rl_tensor *r = out[k];
    if (!r || !r->storage || dst_watched(r) || r->dtype != m[k].dtype || (r->device != m[k].device && nin)) return false;
    bool same = r->ndim == m[k].ndim && !memcmp(r->size, m[k].size, r->ndim * sizeof *r->size);
    if (o->kind != RL_K_EW && (!same || !rl_is_contiguous(r))) return false;
    if (!same && !rl_broadcasts(m[k].ndim, m[k].size, r->ndim, r->size)) return false;
    for (int i = 0; i < nin; i++)
      if (in[i] && in[i]->storage == r->storage && !(o->kind == RL_K_EW && rl_is_set_to(in[i], r)) && rl_overlaps(in[i], r)) return false;
  }
  return true;
}

static bool all_given(rl_op op, rl_tensor *const *out) {
  for (int k = 0; k < rl_ops[op].nout; k++)
    if (!out[k]) return false;
  return true;
}

static rl_status call_direct(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out) {
  RL_TRY(run_kernel(op, in, nin, a, out));
  for (int k = 0; k < rl_ops[op].nout; k++) out[k]->storage->version++;
  return RL_OK;
}

/* An input that the gradient reads and the result overwrites is copied first (x:mul(y) where y wants a gradient). */
static rl_status protect_inputs(rl_op op, rl_tensor **in, int nin, rl_tensor *const *out) {
  uint32_t saved = rl_tape_saved_inputs(op, in, nin);
  for (int i = 0; i < nin; i++) {
    rl_tensor_retain(in[i]);
    for (int k = 0; k < rl_ops[op].nout && in[i]; k++) {
      if (!out[k] || !(saved >> i & 1) || in[i]->storage != out[k]->storage) continue;
      rl_attrs a = { .v = { { .i = in[i]->dtype } } };
      rl_tensor *c = NULL;
      RL_TRY(rl_call(RL_OP_CAST, &in[i], 1, &a, &c));
      rl_tensor_release(in[i]);
      in[i] = c;
    }
  }
  return RL_OK;
}

static rl_status call_then_write(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out) {
  const rl_op_info *o = &rl_ops[op];
  rl_tensor *tmp[RL_MAXOUT] = { 0 }, *use[RL_MAXIN] = { 0 };
  for (int k = 0; k < o->nout; k++)
    if (out[k]) RL_TRY(rl_tape_check_write(o->name, out[k]));
  bool protect = o->nin != 255 && wants_grad(o, in, nin);
  rl_status s = RL_OK;
  if (protect) {
    memcpy(use, in, (size_t)nin * sizeof *in);
    s = protect_inputs(op, use, nin, out);
  }
  rl_device before = rl_self.default_device;
  if (nin == 0 && out[0]) rl_self.default_device = (rl_device)out[0]->device;
  if (s == RL_OK) s = call_fresh(op, protect ? use : in, nin, a, tmp);
  rl_self.default_device = before;
  for (int k = 0; k < o->nout && s == RL_OK; k++) {
    if (out[k]) s = assign_result(o->name, out[k], tmp[k]);
    else {
      out[k] = tmp[k];
      tmp[k] = NULL;
    }
  }
  drop_outputs(o->nout, tmp);
  if (protect)
    for (int i = 0; i < nin; i++) rl_tensor_release(use[i]);
  return s;
}

static rl_status check_inputs(const rl_op_info *o, rl_tensor *const *in, int nin) {
  int min = o->nin == 255 ? 1 : o->nmin;
  if (nin < min || (o->nin != 255 && nin > o->nin)) return rl_error("[%s] inputs; got %d, need %d", o->name, nin, min);
  for (int i = 0; i < nin; i++)
    if (!in[i] && (i >= RL_MAXIN || o->nin == 255 || !(o->optional >> i & 1))) return rl_error("[%s] input %d is missing", o->name, i + 1);
  return RL_OK;
}

/* Products and convolutions of Float tensors, as torch.autocast runs them: inputs are narrowed, the result is Float again, and both casts are on
 * the tape, so that gradients are narrow too. */
static bool autocast_takes(rl_op op, rl_tensor *const *in, int nin) {
  switch (op) {
  case RL_OP_MATMUL:
  case RL_OP_MM:
  case RL_OP_BMM:
  case RL_OP_LINEAR:
  case RL_OP_CONV2D:
  case RL_OP_CONV2D_DX:
  case RL_OP_CONV2D_DW: break;
  default: return false;
  }
  for (int i = 0; i < nin; i++)
    if (in[i] && in[i]->dtype != RL_F32) return false;
  return true;
}

static rl_status call_autocast(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out) {
  rl_tensor *low[RL_MAXIN] = { 0 }, *r = NULL;
  uint8_t mode = rl_self.autocast;
  rl_attrs narrow = { .v = { { .i = mode - 1 } } }, wide = { .v = { { .i = RL_F32 } } };
  rl_status s = RL_OK;
  rl_self.autocast = 0;
  for (int i = 0; i < nin && s == RL_OK; i++)
    if (in[i]) s = rl_call(RL_OP_CAST, &in[i], 1, &narrow, &low[i]);
  if (s == RL_OK) s = rl_call(op, low, nin, a, &r);
  if (s == RL_OK) s = rl_call(RL_OP_CAST, &r, 1, &wide, out);
  for (int i = 0; i < nin; i++) rl_tensor_release(low[i]);
  rl_tensor_release(r);
  rl_self.autocast = mode;
  return s;
}

rl_status rl_call(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out) {
  const rl_op_info *o = &rl_ops[op];
  rl_attrs defaults;
  if (!a && o->nattrs) {
    rl_attrs_default(op, &defaults);
    a = &defaults;
  }
  RL_TRY(check_inputs(o, in, nin));
  if (o->kind == RL_K_VIEW) return call_view(op, in[0], a, out);
  if (rl_self.autocast && autocast_takes(op, in, nin)) return call_autocast(op, in, nin, a, out);
  if (nin > 0 && out[0] && plain(o, in, nin) && out[0] == in[0]) { /* x:add(y) */
    RL_TRY(o->kernel[in[0]->device](op, in, nin, a, out));
    in[0]->storage->version++;
    return RL_OK;
  }
  bool given = false;
  for (int k = 0; k < o->nout; k++) given |= out[k] != NULL;
  if (!given) return call_fresh(op, in, nin, a, out);
  if (!(o->flags & RL_OPF_INLINE) && all_given(op, out) && !any_fake(in, nin) && !any_fake(out, o->nout) && !wants_grad(o, in, nin) &&
      find_kernel(o, out[0]->device)) {
    rl_meta m[RL_MAXOUT];
    RL_TRY(rl_infer(op, in, nin, a, m));
    if (direct_ok(op, in, nin, m, out)) return call_direct(op, in, nin, a, out);
  }
  return call_then_write(op, in, nin, a, out);
}

rl_status rl_copy(rl_tensor *dst, rl_tensor *src) {
  rl_tensor *v = NULL;
  if (!dst->storage || !src->storage) return rl_numel(dst) == 0 ? RL_OK : rl_error("[copy] the tensor has no storage");
  if (dst == src) return RL_OK;
  RL_TRY(shape_like("copy", src, dst, true, &v));
  rl_attrs a = { .v = { { .i = dst->dtype } } };
  bool quiet = !any_fake(&dst, 1) && !rl_is_fake(v) && !dst_watched(dst) && !(v->ag && !rl_self.grad_disabled);
  rl_status s;
  if (quiet || v->dtype != dst->dtype || (!any_fake(&dst, 1) && rl_overlaps(dst, v))) s = rl_call(RL_OP_CAST, &v, 1, &a, &dst);
  else if ((s = rl_tape_check_write("copy", dst)) == RL_OK) s = write_value(dst, v);
  rl_tensor_release(v);
  return s;
}

rl_status rl_fill(rl_tensor *dst, double x) {
  rl_number n;
  rl_tensor *v = rl_number_set(&n, x);
  rl_attrs a = { .v = { { .i = dst->dtype } } };
  if (!dst->storage) return RL_OK;
  if (!any_fake(&dst, 1)) return rl_call(RL_OP_CAST, &v, 1, &a, &dst);
  a.v[0].f = x;
  a.v[1].i = dst->dtype;
  a.nlist[0] = dst->ndim;
  memcpy(a.list[0], dst->size, dst->ndim * sizeof *dst->size);
  return rl_call(RL_OP_FULL, NULL, 0, &a, &dst);
}
