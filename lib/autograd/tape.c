/* Tape: records what made a tensor (ops -> nodes).
 *
 * 1. A tensor's ag says which output of which node it is; without a node it is a leaf. 2. A node holds edges to where its inputs came
 * from and the values that the gradient reads; of other inputs it holds the shape only. 3. A saved input is an alias without history plus
 * its edge, a saved output an alias without history: nothing points back, so reference counts free everything. 4. A view knows its base.
 * A write to a view gives the base a new node (TAPE_WINDOW) and raises the base's view_version; every view of it, when next used, becomes
 * an as_strided of the base as it is now. 5. Every write raises the storage's version, which the engine compares with that of saved values. */
#include <string.h>
#include "node.h"

static uint64_t tape_clock;
static RL_TLS rl_tape_node *tape_dead;
static RL_TLS bool tape_freeing;

const char *rl_node_label(const rl_tape_node *n) { return n->kind == TAPE_OP ? rl_ops[n->op].name : n->kind == TAPE_WINDOW ? "copy" : "function"; }

void rl_node_retain(rl_tape_node *n) {
  if (n) __atomic_add_fetch(&n->refs, 1, __ATOMIC_RELAXED);
}

void rl_node_free_saved(rl_tape_node *n) {
  for (int i = 0; i < n->nin; i++) {
    rl_tensor_release(n->in[i].t);
    n->in[i].t = NULL;
  }
  for (int k = 0; k < n->nout; k++) {
    rl_tensor_release(n->out[k].t);
    n->out[k].t = NULL;
  }
  if (n->release) n->release(n->ud);
  n->release = NULL;
  n->freed = true;
}

static void node_destroy(rl_tape_node *n) {
  rl_node_free_saved(n);
  for (int i = 0; i < n->nin; i++) {
    rl_node_release(n->edges[i].fn);
    rl_tensor_release(n->edges[i].leaf);
  }
  rl_free(n, n->bytes);
}

/* A long history is freed in a loop, not by recursion. */
void rl_node_release(rl_tape_node *n) {
  if (!n || __atomic_sub_fetch(&n->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  n->next = tape_dead;
  tape_dead = n;
  if (tape_freeing) return;
  tape_freeing = true;
  while ((n = tape_dead)) {
    tape_dead = n->next;
    node_destroy(n);
  }
  tape_freeing = false;
}

static size_t align8(size_t n) { return (n + 7) & ~(size_t)7; }

static rl_tape_node *node_new(tape_kind kind, int nin, int nout, const rl_attrs *a) {
  size_t at[6] = { align8(sizeof(rl_tape_node)) };
  at[1] = at[0] + align8((size_t)nin * sizeof(tape_edge));
  at[2] = at[1] + align8((size_t)nin * sizeof(tape_saved));
  at[3] = at[2] + align8((size_t)nout * sizeof(tape_saved));
  at[4] = at[3] + align8((size_t)nout * sizeof(rl_meta));
  at[5] = at[4] + (a ? sizeof(rl_attrs) : 0);
  char *p = rl_alloc(at[5]);
  if (!p) return NULL;
  memset(p, 0, at[4]);
  rl_tape_node *n = (rl_tape_node *)p;
  n->refs = 1;
  n->kind = kind;
  n->nin = nin;
  n->nout = (uint8_t)nout;
  n->edges = (tape_edge *)(p + at[0]);
  n->in = (tape_saved *)(p + at[1]);
  n->out = (tape_saved *)(p + at[2]);
  n->meta = (rl_meta *)(p + at[3]);
  n->bytes = at[5];
  n->seq = __atomic_add_fetch(&tape_clock, 1, __ATOMIC_RELAXED);
  if (a) {
    n->attrs = (rl_attrs *)(p + at[4]);
    *n->attrs = *a;
  }
  return n;
}

static rl_ag *tape_ag(rl_tensor *t) {
  if (!t->ag && (t->ag = rl_alloc(sizeof *t->ag))) memset(t->ag, 0, sizeof *t->ag);
  return t->ag;
}

void rl_ag_free(rl_tensor *t) {
  rl_ag *ag = t->ag;
  if (!ag) return;
  t->ag = NULL;
  rl_node_release(ag->fn);
  rl_tensor_release(ag->grad);
  rl_tensor_release(ag->base);
  rl_free(ag, sizeof *ag);
}

/* t is now output k of n. */
static rl_status tape_attach(rl_tensor *t, rl_tape_node *n, int k) {
  rl_ag *ag = tape_ag(t);
  if (!ag) return RL_OOM;
  rl_node_retain(n);
  rl_node_release(ag->fn);
  ag->fn = n;
  ag->out = k;
  ag->requires_grad = true;
  return RL_OK;
}

static void tape_edge_to(rl_tape_node *n, int i, rl_tensor *x) {
  if (!x || !rl_requires_grad(x)) return;
  if (i < 32) n->need |= 1u << i;
  if (x->ag->fn) {
    n->edges[i] = (tape_edge){ .fn = x->ag->fn, .out = x->ag->out };
    rl_node_retain(x->ag->fn);
  } else {
    n->edges[i].leaf = rl_tensor_retain(x);
  }
}

/* A tensor with x's shape and no storage. */
static rl_tensor *tape_stub(const rl_tensor *x) {
  rl_tensor *t = rl_tensor_alias(x);
  if (!t) return NULL;
  if (!(x->flags & RL_T_STACK)) rl_storage_release(t->storage);
  t->storage = NULL;
  return t;
}

static rl_status tape_save(tape_saved *s, rl_tensor *x, bool full) {
  if (!x) return RL_OK;
  s->full = full;
  s->version = x->storage ? x->storage->version : 0;
  if (!full) s->t = tape_stub(x);
  else if (x->flags & RL_T_STACK) s->t = rl_tensor_keep(x);
  else s->t = rl_tensor_alias(x);
  if (full && x->flags & RL_T_STACK && s->t) s->version = s->t->storage->version;
  return s->t ? RL_OK : RL_OOM;
}

static void tape_meta(rl_meta *m, const rl_tensor *t) {
  m->dtype = t->dtype;
  m->device = t->device;
  m->ndim = t->ndim;
  memcpy(m->size, t->size, t->ndim * sizeof *t->size);
}

static void saved_masks(const rl_op_info *o, uint32_t need, uint32_t *in, uint32_t *out) {
  *in = *out = 0;
  if (o->nin == 255) return;
  for (int i = 0; i < o->nin; i++)
    if (need >> i & 1) {
      *in |= o->need_in[i];
      *out |= o->need_out[i];
    }
}

uint32_t rl_tape_saved_inputs(rl_op op, rl_tensor *const *in, int nin) {
  uint32_t need = 0, si, so;
  for (int i = 0; i < nin; i++)
    if (in[i] && rl_requires_grad(in[i])) need |= 1u << i;
  saved_masks(&rl_ops[op], need, &si, &so);
  return si;
}

static rl_status tape_fill(rl_tape_node *n, rl_tensor *const *in, rl_tensor *const *out, uint32_t si, uint32_t so) {
  for (int i = 0; i < n->nin; i++) RL_TRY(tape_save(&n->in[i], in[i], i < 32 && (si >> i & 1)));
  for (int k = 0; k < n->nout; k++) {
    if (!out[k]) continue;
    tape_meta(&n->meta[k], out[k]);
    RL_TRY(tape_save(&n->out[k], out[k], so >> k & 1));
  }
  return RL_OK;
}

rl_status rl_tape_record(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out, int nout) {
  rl_tape_node *n = node_new(TAPE_OP, nin, nout, a);
  if (!n) return RL_OOM;
  uint32_t si, so;
  n->op = op;
  for (int i = 0; i < nin; i++) tape_edge_to(n, i, in[i]);
  saved_masks(&rl_ops[op], n->need, &si, &so);
  rl_status s = tape_fill(n, in, out, si, so);
  for (int k = 0; k < nout && s == RL_OK; k++)
    if (out[k] && rl_dtypes[out[k]->dtype].is_float && (rl_ops[op].save_grad >> k & 1)) s = tape_attach(out[k], n, k);
  rl_node_release(n);
  return s;
}

rl_status rl_tape_custom(rl_tensor *const *in, int nin, rl_tensor *const *out, int nout, rl_custom_fn apply, void (*release)(void *), void *ud,
                         bool sparse) {
  rl_tape_node *n = node_new(TAPE_CUSTOM, nin, nout, NULL);
  if (!n) return RL_OOM;
  n->apply = apply;
  n->release = release;
  n->ud = ud;
  n->sparse = sparse;
  for (int i = 0; i < nin; i++) tape_edge_to(n, i, in[i]);
  rl_status s = tape_fill(n, in, out, 0, 0);
  for (int k = 0; k < nout && s == RL_OK; k++)
    if (rl_dtypes[out[k]->dtype].is_float) s = tape_attach(out[k], n, k);
  rl_node_release(n);
  return s;
}

/* The base of a view, while the view still lies on its storage. */
static rl_tensor *tape_base(const rl_tensor *t) { return t->ag && t->ag->base && t->ag->base->storage == t->storage ? t->ag->base : NULL; }

rl_status rl_tape_view(rl_tensor *x, rl_tensor *view) {
  rl_tensor *base = tape_base(x);
  if (!base) base = x;
  rl_ag *ag = tape_ag(view);
  if (!ag) return RL_OOM;
  ag->base = rl_tensor_retain(base);
  ag->view_version = base->ag ? base->ag->view_version : 0;
  return RL_OK;
}

static void window_attrs(const rl_tensor *v, int64_t offset, rl_attrs *a) {
  memset(a, 0, sizeof *a);
  a->nlist[0] = a->nlist[1] = v->ndim;
  memcpy(a->list[0], v->size, v->ndim * sizeof *v->size);
  memcpy(a->list[1], v->stride, v->ndim * sizeof *v->stride);
  a->v[0].i = offset;
}

/* The base was written since the view was made: the view is now a window of the base's new value. */
static rl_status tape_sync_view(rl_tensor *t) {
  rl_tensor *base = tape_base(t);
  if (!base || !base->ag || base->ag->view_version == t->ag->view_version) return RL_OK;
  t->ag->view_version = base->ag->view_version;
  if (!base->ag->requires_grad) {
    rl_node_release(t->ag->fn);
    t->ag->fn = NULL;
    t->ag->requires_grad = false;
    return RL_OK;
  }
  rl_attrs a;
  window_attrs(t, t->offset, &a);
  return rl_tape_record(RL_OP_AS_STRIDED, &base, 1, &a, &t, 1);
}

bool rl_requires_grad(const rl_tensor *t) {
  if (!t->ag) return false;
  if (t->ag->base) tape_sync_view((rl_tensor *)t);
  return t->ag->requires_grad;
}

rl_status rl_set_requires_grad(rl_tensor *t, bool on) {
  if (on && !rl_dtypes[t->dtype].is_float) return rl_error("[requiresGrad] type; got %s, need a floating point type", rl_dtypes[t->dtype].name);
  if (!on && (!t->ag || !rl_requires_grad(t))) return RL_OK;
  if (!on && t->ag->fn) return rl_error("[requiresGrad] the tensor is the result of an op; detach it first");
  rl_ag *ag = tape_ag(t);
  if (!ag) return RL_OOM;
  ag->requires_grad = on;
  return RL_OK;
}

rl_status rl_tape_check_write(const char *name, const rl_tensor *dst) {
  if (rl_self.grad_disabled || !dst->ag) return RL_OK;
  const rl_tensor *base = tape_base(dst);
  if (rl_requires_grad(dst) && !dst->ag->fn) return rl_error("[%s] a leaf that requires grad is written in place; do it inside torch.noGrad", name);
  if (base && rl_requires_grad(base) && !base->ag->fn)
    return rl_error("[%s] a view of a leaf that requires grad is written in place; do it inside torch.noGrad", name);
  return RL_OK;
}

/* dst's history becomes value's. */
static rl_status write_all(rl_tensor *dst, rl_tensor *value, bool vg) {
  rl_ag *ag = tape_ag(dst);
  if (!ag) return RL_OOM;
  ag->view_version++;
  if (vg && value->ag->fn) return tape_attach(dst, value->ag->fn, value->ag->out);
  if (vg) {
    rl_attrs a = { .v = { { .i = dst->dtype } } };
    return rl_tape_record(RL_OP_CAST, &value, 1, &a, &dst, 1);
  }
  rl_node_release(ag->fn);
  ag->fn = NULL;
  ag->requires_grad = false;
  return RL_OK;
}

/* base's window `dst` was replaced by value: base gets a node, dst becomes a window of it. */
static rl_status write_window(rl_tensor *base, rl_tensor *dst, rl_tensor *value) {
  if (!rl_is_contiguous(base)) return rl_error("[copy] a view of a tensor that is not contiguous is written in place; no gradient for that");
  rl_attrs a;
  window_attrs(dst, dst->offset - base->offset, &a);
  rl_tape_node *n = node_new(TAPE_WINDOW, 2, 1, &a);
  if (!n || !tape_ag(base)) return RL_OOM;
  tape_edge_to(n, 0, base);
  tape_edge_to(n, 1, value);
  rl_status s = tape_fill(n, (rl_tensor *[]){ base, value }, &base, 0, 0);
  if (s == RL_OK) s = tape_attach(base, n, 0);
  rl_node_release(n);
  RL_TRY(s);
  base->ag->view_version++;
  return tape_sync_view(dst);
}

rl_status rl_tape_record_write(rl_tensor *dst, rl_tensor *value) {
  if (rl_self.grad_disabled || !rl_dtypes[dst->dtype].is_float) return RL_OK;
  rl_tensor *base = tape_base(dst);
  bool vg = rl_requires_grad(value), dg = rl_requires_grad(dst) || (base && rl_requires_grad(base));
  if (!vg && !dg) return RL_OK;
  return base ? write_window(base, dst, value) : write_all(dst, value, vg);
}

rl_tensor *rl_detach(const rl_tensor *t) { return rl_tensor_alias(t); }
