/* Recording: ops on fake tensors become nodes (rl_call -> graph).
 *
 * A recorded graph has program order: a node is a handle (storage, geometry) and reading it gives the elements at that moment. A fake
 * tensor remembers the node of its handle; when its storage or geometry has changed since (resize, set, a growing storage), the next use
 * appends a view that has the new geometry. Fake storages get their first node when first used, so a tensor that is only resized and then
 * filled leaves one EMPTY node behind. */
#include "impl.h"
#include <stdlib.h>
#include <string.h>

/* Starts recording into g in this thread; fails when another graph is being recorded. */
rl_status rl_graph_begin(rl_graph *g) {
  if (rl_self.graph && rl_self.graph != g) return rl_error("[graphBegin] another graph is being recorded in this thread");
  rl_self.graph = g;
  return RL_OK;
}

/* Stops recording. */
void rl_graph_end(rl_graph *g) {
  if (rl_self.graph == g) rl_self.graph = NULL;
  g->nreal = 0;
}

static rl_storage *record_storage(rl_graph *g, rl_dtype dt, rl_device dev, int64_t size, int32_t id) {
  rl_self.graph = NULL; /* the struct comes from rl_storage_new, so that rl_storage_release fits */
  rl_storage *s = rl_storage_new(dt, dev, 0);
  rl_self.graph = g;
  if (!s) return NULL;
  s->graph = g;
  s->id = id;
  s->size = size;
  s->data = NULL;
  g->storages[id] = rl_storage_retain(s);
  return s;
}

/* A fake storage with the next id; NULL when memory is out. */
rl_storage *rl_graph_storage_new(rl_graph *g, rl_dtype dt, rl_device dev, int64_t size) {
  if (size < 0) {
    rl_error("[storage] size below 0; got %lld", (long long)size);
    return NULL;
  }
  int32_t id = graph_new_storage(g);
  return id < 0 ? NULL : record_storage(g, dt, dev, size, id);
}

/* Appends a node on storage `id` with the given geometry. */
static rl_ref record_node(rl_graph *g, int op, const rl_type *t, int32_t id, const rl_geom *ge, const rl_ref *in, int nin, const rl_attrs *a) {
  rl_node n = { .op = (uint16_t)op, .nout = 1, .type = graph_type(g, t), .geom = graph_geom(g, ge), .storage = id, .line = g->curloc };
  if (op < RL_NOP) n.nout = rl_ops[op].nout;
  return graph_append(g, n, in, nin, a);
}

static rl_ref record_strided(rl_graph *g, rl_ref base, const rl_type *t, const rl_geom *ge) {
  rl_attrs a;
  rl_type ot = *t;
  ot.weak = 0;
  graph_strided_attrs(ge, &a);
  return record_node(g, RL_OP_AS_STRIDED, &ot, g->nodes[base].storage, ge, &base, 1, &a);
}

/* First node of a storage: a fresh one is EMPTY, of t's shape when t covers it. */
static rl_ref record_empty(rl_graph *g, const rl_storage *s, const rl_type *t, const rl_geom *ge) {
  rl_type et = *t;
  rl_geom eg = *ge;
  et.weak = 0;
  if (ge->offset || !graph_geom_dense(ge) || graph_numel(t) != s->size) {
    et.ndim = 1;
    et.size[0] = s->size;
    graph_dense(1, et.size, &eg);
  }
  return record_node(g, RL_G_EMPTY, &et, s->id, &eg, NULL, 0, NULL);
}

/* New id for a storage that grows: what it held is copied to the front of the new EMPTY. */
static rl_status record_grow(rl_graph *g, rl_storage *s, int64_t size) {
  rl_ref base = g->storage_node[s->id];
  rl_type t = { .dtype = s->dtype, .device = s->device, .ndim = 1, .size = { size } };
  rl_geom ge;
  int32_t id = graph_new_storage(g);
  if (id < 0) return RL_OOM;
  graph_dense(1, t.size, &ge);
  rl_ref e = record_node(g, RL_G_EMPTY, &t, id, &ge, NULL, 0, NULL);
  if (e < 0) return RL_OOM;
  if (s->size > 0) {
    t.size[0] = s->size;
    graph_dense(1, t.size, &ge);
    rl_ref io[2] = { record_strided(g, e, &t, &ge), record_strided(g, base, &t, &ge) };
    if (io[0] < 0 || io[1] < 0 || record_node(g, RL_G_WRITE, &t, id, &ge, io, 2, NULL) < 0) return RL_OOM;
  }
  g->storages[id] = rl_storage_retain(s);
  s->id = id;
  s->size = size;
  return RL_OK;
}

/* Resizes a fake storage. An input's cannot grow while recording, except an empty one, which gets a storage of its own: the input's real
 * tensor has to be set to the result afterwards. */
rl_status rl_graph_storage_resize(rl_storage *s, int64_t size) {
  rl_graph *g = s->graph;
  if (size < 0) return rl_error("[storage] size below 0; got %lld", (long long)size);
  if (g != rl_self.graph) return rl_error("[storage] a fake storage is resized outside its recording");
  if (size <= s->size || g->storage_node[s->id] < 0) {
    s->size = size;
    return RL_OK;
  }
  if (s->size > 0 && graph_input_of_storage(g, s->id) >= 0)
    return rl_error_status(RL_NODATA, "[resize] the storage of an input grows; got %lld elements, need %lld", (long long)s->size, (long long)size);
  return record_grow(g, s, size);
}

static rl_ref record_const(rl_graph *g, const rl_tensor *t) {
  rl_attrs a;
  rl_type ty;
  rl_geom ge;
  memset(&a, 0, sizeof a);
  if (t->dtype == RL_I64) a.v[0].i = *(const int64_t *)rl_data(t);
  else a.v[0].f = *(const double *)rl_data(t);
  graph_type_of(t, &ty);
  for (rl_ref r = g->n - 1; r >= 0 && r > g->n - 64; r--) /* neighbours often use the same number */
    if (g->nodes[r].op == RL_G_CONST && graph_type_same(rl_node_type(g, r), &ty) && graph_node_attrs(g, r)->v[0].i == a.v[0].i) return r;
  graph_dense(0, NULL, &ge);
  int32_t id = graph_new_storage(g);
  return id < 0 ? -1 : record_node(g, RL_G_CONST, &ty, id, &ge, NULL, 0, &a);
}

/* Fake storage id of a real storage that came in as input or constant. */
static int32_t record_real_id(rl_graph *g, const rl_storage *real) {
  int32_t cap = g->capreal;
  for (int32_t i = 0; real && i < g->nreal; i++)
    if (g->real[i] == real) return g->real_id[i];
  int32_t id = graph_new_storage(g);
  if (id < 0 || !graph_grow(&g->real_id, g->nreal, &cap, sizeof *g->real_id)) return -1;
  if (!GRAPH_PUSH(g->real, g->nreal, g->capreal, real)) return -1;
  g->real_id[g->nreal - 1] = id;
  return id;
}

static rl_storage *record_storage_of(rl_graph *g, const rl_tensor *real) {
  int32_t id = record_real_id(g, real->storage);
  if (id < 0) return NULL;
  if (g->storages[id]) return rl_storage_retain(g->storages[id]);
  return record_storage(g, (rl_dtype)real->dtype, (rl_device)real->device, real->storage ? real->storage->size : 0, id);
}

/* A leaf node with real's geometry on the fake storage that stands for real's; the caller registers it. */
static rl_ref record_leaf(rl_graph *g, int op, const rl_tensor *real, rl_storage *s, int32_t aux) {
  rl_type t;
  rl_geom ge;
  graph_type_of(real, &t);
  graph_geom_of(real, &ge);
  t.weak = 0;
  rl_node n = {
    .op = (uint16_t)op, .nout = 1, .type = graph_type(g, &t), .geom = graph_geom(g, &ge), .storage = s->id, .aux = aux, .line = g->curloc
  };
  return graph_append(g, n, NULL, 0, NULL);
}

/* Elements of a storage that a pass made: an input's or a constant's whole storage, else those of its first node, which is dense. */
static int64_t record_extent(const rl_graph *g, int32_t id) {
  int i = graph_input_of_storage(g, id);
  rl_ref first = g->storage_node[id];
  if (i >= 0) return g->input_storage_size[i];
  if (g->nodes[first].op != RL_G_TENSOR) return graph_numel(rl_node_type(g, first));
  const rl_tensor *c = g->consts[g->nodes[first].aux];
  return c && c->storage ? c->storage->size : graph_geom_last(graph_node_geom(g, first)) + 1;
}

rl_tensor *graph_fake(rl_graph *g, rl_ref r) {
  int32_t id = g->nodes[r].storage;
  const rl_type *ty = rl_node_type(g, r);
  if (!g->storages[id]) { /* the node was appended by a pass */
    rl_storage *s = record_storage(g, (rl_dtype)ty->dtype, (rl_device)ty->device, record_extent(g, id), id);
    if (!s) return NULL;
    rl_storage_release(s);
  }
  rl_tensor *t = rl_tensor_with(g->storages[id], graph_node_geom(g, r));
  if (!t) return NULL;
  t->node = r;
  if (rl_node_type(g, r)->weak) t->flags |= RL_T_WEAK;
  return t;
}

static rl_tensor *record_input(rl_graph *g, const rl_tensor *t, rl_storage *s) {
  if (!s) return NULL;
  rl_ref r = record_leaf(g, RL_G_INPUT, t, s, g->ninputs);
  bool ok = r >= 0 && graph_push_input(g, r, s->id, s->size);
  rl_storage_release(s);
  return ok ? graph_fake(g, r) : NULL;
}

/* A new input of y's shape and type, dense: the gradient that a backward is given for y. */
rl_tensor *rl_graph_cotangent(rl_graph *g, const rl_tensor *y) {
  rl_type t;
  rl_geom ge;
  graph_type_of(y, &t);
  t.weak = 0;
  graph_dense(t.ndim, t.size, &ge);
  rl_storage *s = rl_graph_storage_new(g, (rl_dtype)t.dtype, (rl_device)t.device, graph_numel(&t));
  if (!s) return NULL;
  rl_ref r = record_node(g, RL_G_INPUT, &t, s->id, &ge, NULL, 0, NULL);
  bool ok = r >= 0;
  if (ok) {
    g->nodes[r].aux = g->ninputs;
    ok = graph_push_input(g, r, s->id, s->size);
  }
  rl_storage_release(s);
  return ok ? graph_fake(g, r) : NULL;
}

/* The fake that stands for an input tensor; inputs that share a storage have fakes that do. */
rl_tensor *rl_graph_input(rl_graph *g, rl_tensor *real) {
  if (!rl_is_fake(real)) return record_input(g, real, record_storage_of(g, real));
  rl_error("[graphInput] the tensor is a fake");
  return NULL;
}

/* As rl_graph_input, of a tensor t that stands for real and has a storage of its own size; fails when real's is another input's too. */
static rl_tensor *record_input_as(rl_graph *g, const rl_tensor *real, const rl_tensor *t, int64_t size) {
  int32_t id = record_real_id(g, real->storage);
  if (id < 0 || rl_is_fake(real) || g->storages[id]) {
    rl_error("[graphInput] window; got a tensor that shares its storage, need one that does not");
    return NULL;
  }
  return record_input(g, t, record_storage(g, (rl_dtype)t->dtype, (rl_device)t->device, size, id));
}

rl_tensor *rl_graph_input_sized(rl_graph *g, rl_tensor *real, const int64_t *size) {
  rl_tensor t = *real;
  rl_geom ge;
  graph_dense(t.ndim, size, &ge);
  memcpy(t.size, ge.size, sizeof(int64_t) * t.ndim);
  memcpy(t.stride, ge.stride, sizeof(int64_t) * t.ndim);
  t.offset = 0;
  return record_input_as(g, real, &t, rl_numel(&t));
}

rl_tensor *rl_graph_input_window(rl_graph *g, rl_tensor *real) {
  rl_tensor t = *real;
  rl_geom ge;
  t.offset = 0;
  graph_geom_of(&t, &ge);
  return record_input_as(g, real, &t, rl_numel(&t) ? graph_geom_last(&ge) + 1 : 0);
}

static rl_ref record_tensor(rl_graph *g, rl_tensor *real) {
  for (int32_t r = 0; r < g->n; r++)
    if (g->nodes[r].op == RL_G_TENSOR && rl_is_set_to(g->consts[g->nodes[r].aux], real)) return r;
  rl_storage *s = record_storage_of(g, real);
  rl_ref r = s ? record_leaf(g, RL_G_TENSOR, real, s, g->nconsts) : -1;
  if (s) rl_storage_release(s);
  if (r < 0) return -1;
  if (!GRAPH_PUSH(g->consts, g->nconsts, g->capconsts, rl_tensor_keep(real))) return -1;
  return r;
}

/* The fake that stands for a real tensor that the graph keeps. */
rl_tensor *rl_graph_constant(rl_graph *g, rl_tensor *real) {
  if (rl_is_fake(real)) {
    rl_error("[graphConstant] the tensor is a fake");
    return NULL;
  }
  rl_ref r = record_tensor(g, real);
  return r < 0 ? NULL : graph_fake(g, r);
}

/* A weak number that every run is given; `hint` is its value at capture. */
rl_tensor *rl_graph_number(rl_graph *g, double hint) {
  rl_type t = { .dtype = RL_F64, .weak = 1 };
  rl_attrs a;
  rl_geom ge;
  memset(&a, 0, sizeof a);
  a.v[0].f = hint;
  graph_dense(0, NULL, &ge);
  rl_storage *s = rl_graph_storage_new(g, RL_F64, RL_CPU, 1);
  if (!s) return NULL;
  rl_ref r = record_node(g, RL_G_NUMBER, &t, s->id, &ge, NULL, 0, &a);
  rl_storage_release(s);
  if (r < 0 || !GRAPH_PUSH(g->numbers, g->nnumbers, g->capnumbers, r)) return NULL;
  g->nodes[r].aux = g->nnumbers - 1;
  return graph_fake(g, r);
}

static bool record_handle_fits(const rl_graph *g, const rl_tensor *t, const rl_type *ty, const rl_geom *ge, rl_ref r) {
  if (r < 0 || r >= g->n || g->nodes[r].storage != t->storage->id) return false;
  const rl_type *nt = rl_node_type(g, r);
  return nt->dtype == ty->dtype && graph_geom_same(graph_node_geom(g, r), ge);
}

static rl_ref record_fake_ref(rl_graph *g, rl_tensor *t) {
  rl_type ty;
  rl_geom ge;
  graph_type_of(t, &ty);
  graph_geom_of(t, &ge);
  if (record_handle_fits(g, t, &ty, &ge, t->node)) return t->node;
  if (g->storage_node[t->storage->id] < 0) {
    rl_ref e = record_empty(g, t->storage, &ty, &ge);
    if (e < 0) return -1;
    g->storage_node[t->storage->id] = e;
  }
  rl_ref base = g->storage_node[t->storage->id];
  if (!record_handle_fits(g, t, &ty, &ge, base)) base = record_strided(g, base, &ty, &ge);
  return t->node = base;
}

rl_ref rl_graph_ref(rl_graph *g, rl_tensor *t) {
  if (rl_is_fake(t)) {
    if (t->storage->graph == g) return record_fake_ref(g, t);
    rl_error("[graph] a fake tensor is used outside its recording");
    return -1;
  }
  if ((t->flags & RL_T_WEAK) && t->ndim == 0) return record_const(g, t);
  return record_tensor(g, t);
}

/* References of all inputs (-1: absent); more than `stack` has room for are allocated. */
static rl_ref *record_refs(rl_graph *g, rl_tensor *const *in, int nin, rl_ref *stack, int room) {
  rl_ref *refs = nin <= room ? stack : malloc(sizeof *refs * (size_t)nin);
  if (!refs) {
    rl_error_status(RL_OOM, "[graph] out of memory");
    return NULL;
  }
  for (int i = 0; i < nin; i++) {
    refs[i] = in[i] ? rl_graph_ref(g, in[i]) : -1;
    if (in[i] && refs[i] < 0) {
      if (refs != stack) free(refs);
      return NULL;
    }
  }
  return refs;
}

/* The graph that an op on these inputs belongs to. */
static rl_graph *record_graph(void) {
  if (!rl_self.graph) rl_error("[graph] a fake tensor is used outside its recording");
  return rl_self.graph;
}

static void record_meta_type(const rl_meta *m, bool weak, rl_type *t) {
  memset(t, 0, sizeof *t);
  t->dtype = m->dtype;
  t->device = m->device;
  t->weak = weak;
  t->ndim = (uint8_t)m->ndim;
  memcpy(t->size, m->size, sizeof(int64_t) * m->ndim);
}

/* Elementwise arithmetic on numbers alone gives a number. */
static bool record_weak(rl_op op, rl_tensor *const *in, int nin) {
  if (rl_ops[op].kind != RL_K_EW || !nin || rl_ops[op].out_dtype) return false;
  for (int i = 0; i < nin; i++)
    if (!in[i] || !(in[i]->flags & RL_T_WEAK) || in[i]->ndim) return false;
  return true;
}

static rl_status record_result(rl_graph *g, rl_ref r, rl_tensor **out) {
  rl_tensor *t = graph_fake(g, r);
  if (!t) return RL_ERR;
  if (!*out) {
    *out = t;
    return RL_OK;
  }
  rl_status s = rl_graph_record_write(*out, t);
  rl_tensor_release(t);
  return s;
}

/* One node and its projections: fresh storages, dense geometry. */
static rl_ref record_op(rl_graph *g, rl_op op, const rl_ref *refs, int nin, const rl_attrs *a, const rl_meta *meta, bool weak) {
  rl_attrs none;
  rl_ref first = -1;
  if (!a && rl_ops[op].nattrs) {
    rl_attrs_default(op, &none);
    a = &none;
  }
  if (!rl_ops[op].nattrs) a = NULL;
  for (int k = 0; k < rl_ops[op].nout; k++) {
    rl_type t;
    rl_geom ge;
    record_meta_type(&meta[k], weak, &t);
    graph_dense(t.ndim, t.size, &ge);
    rl_storage *s = rl_graph_storage_new(g, (rl_dtype)t.dtype, (rl_device)t.device, graph_numel(&t));
    if (!s) return -1;
    rl_ref r = k ? record_node(g, RL_G_PROJ, &t, s->id, &ge, &first, 1, NULL) : record_node(g, op, &t, s->id, &ge, refs, nin, a);
    rl_storage_release(s);
    if (r < 0) return -1;
    g->nodes[r].aux = k;
    if (!k) first = r;
  }
  return first;
}

/* Appends the node of an op and leaves fakes in out[]; a result given by the caller is written. */
rl_status rl_graph_record(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, const rl_meta *meta, rl_tensor **out) {
  rl_graph *g = record_graph();
  if (!g) return RL_ERR;
  rl_ref stack[RL_MAXIN], *refs = record_refs(g, in, nin, stack, RL_MAXIN);
  if (!refs) return RL_ERR;
  rl_ref r = record_op(g, op, refs, nin, a, meta, record_weak(op, in, nin));
  if (refs != stack) free(refs);
  if (r < 0) return RL_OOM;
  if (graph_is_random(op)) {
    g->nodes[r].rng = g->rng_total;
    g->rng_total += graph_draws(op, &meta[0]);
  }
  for (int k = 0; k < rl_ops[op].nout; k++) RL_TRY(record_result(g, r + k, &out[k]));
  return RL_OK;
}

/* Appends a view node; *out becomes a fake on x's storage. */
rl_status rl_graph_record_view(rl_op op, rl_tensor *x, const rl_attrs *a, const rl_geom *ge, rl_tensor **out) {
  rl_graph *g = record_graph();
  if (!g) return RL_ERR;
  rl_ref in = rl_graph_ref(g, x);
  if (in < 0) return RL_ERR;
  rl_type t = *rl_node_type(g, in);
  t.weak = 0;
  t.ndim = (uint8_t)ge->ndim;
  memcpy(t.size, ge->size, sizeof(int64_t) * ge->ndim);
  rl_ref r = record_node(g, op, &t, g->nodes[in].storage, ge, &in, 1, rl_ops[op].nattrs ? a : NULL);
  if (r < 0) return RL_OOM;
  return record_result(g, r, out);
}

/* Appends a write of src's elements to dst's window; dst's handle becomes the new node. */
rl_status rl_graph_record_write(rl_tensor *dst, rl_tensor *src) {
  rl_graph *g = record_graph();
  if (!g) return RL_ERR;
  if (!rl_is_fake(dst)) return rl_error_status(RL_NODATA, "[graph] a recorded value is written to a tensor that is no input of the graph");
  rl_ref io[2] = { rl_graph_ref(g, dst), rl_graph_ref(g, src) };
  if (io[0] < 0 || io[1] < 0) return RL_ERR;
  if (g->nodes[g->storage_node[dst->storage->id]].op == RL_G_TENSOR) return rl_error_status(RL_NODATA, "[graph] a constant of the graph is written");
  if (dst->dtype != src->dtype || !rl_same_shape(dst, src)) {
    char a[256], b[256];
    return rl_error("[write] shapes or dtypes differ; got %s, need %s", rl_shape_str(src, a), rl_shape_str(dst, b));
  }
  rl_type t = *rl_node_type(g, io[0]);
  rl_geom ge = *graph_node_geom(g, io[0]);
  rl_ref r = record_node(g, RL_G_WRITE, &t, dst->storage->id, &ge, io, 2, NULL);
  if (r < 0) return RL_OOM;
  dst->node = r;
  return RL_OK;
}

/* Makes a fake (or a real tensor, as a constant) an output. */
rl_status rl_graph_output(rl_graph *g, rl_tensor *fake) {
  rl_ref r = rl_graph_ref(g, fake);
  if (r < 0) return RL_ERR;
  return GRAPH_PUSH(g->outputs, g->noutputs, g->capoutputs, r) ? RL_OK : RL_OOM;
}
