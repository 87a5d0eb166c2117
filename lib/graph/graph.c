/* Graph: nodes in one array, interned types and geometries, names.
 * Building by hand is rl_graph_node; recording is record.c. */
#include "impl.h"
#include "../tensor/random.h"
#include <stdlib.h>
#include <string.h>

/* An empty graph; NULL when memory is out. */
rl_graph *rl_graph_new(void) {
  rl_graph *g = calloc(1, sizeof *g);
  if (!g) {
    rl_error_status(RL_OOM, "[graph] out of memory");
    return NULL;
  }
  if (graph_loc(g, "") < 0) {
    free(g);
    return NULL;
  }
  return g;
}

/* Tensors that outlive their graph point here, so that using one is an error and not a crash. */
static rl_graph graph_dead;

/* Frees the graph and its references to storages and constants. Fakes that outlive it can only be released. */
void rl_graph_free(rl_graph *g) {
  if (!g) return;
  if (rl_self.graph == g) rl_graph_end(g);
  for (int32_t i = 0; i < g->nstorages; i++) {
    if (!g->storages[i]) continue;
    if (g->storages[i]->graph == g) g->storages[i]->graph = &graph_dead;
    rl_storage_release(g->storages[i]);
  }
  for (int32_t i = 0; i < g->nconsts; i++)
    if (g->consts[i]) rl_tensor_release(g->consts[i]);
  for (int32_t i = 0; i < g->nlocs; i++) free(g->locs[i]);
  void *parts[] = { g->nodes,
                    g->refs,
                    g->types,
                    g->attrs,
                    g->geoms,
                    g->inputs,
                    g->numbers,
                    g->outputs,
                    g->updates,
                    g->consts,
                    g->storages,
                    g->input_storage,
                    g->input_storage_size,
                    g->locs,
                    g->storage_node,
                    g->real,
                    g->real_id };
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
  free(g);
}

bool graph_grow(void *array, int32_t n, int32_t *cap, size_t elem) {
  if (n < *cap) return true;
  int32_t c = *cap ? *cap * 2 : 16;
  void *old, *p;
  memcpy(&old, array, sizeof old);
  p = realloc(old, (size_t)c * elem);
  if (!p) {
    rl_error_status(RL_OOM, "[graph] out of memory");
    return false;
  }
  memcpy(array, &p, sizeof p);
  *cap = c;
  return true;
}

bool graph_type_same(const rl_type *a, const rl_type *b) {
  return a->dtype == b->dtype && a->device == b->device && a->weak == b->weak && a->ndim == b->ndim &&
         memcmp(a->size, b->size, sizeof(int64_t) * a->ndim) == 0;
}

static bool geom_equal(const rl_geom *a, const rl_geom *b) {
  return a->ndim == b->ndim && a->offset == b->offset && memcmp(a->size, b->size, sizeof(int64_t) * a->ndim) == 0 &&
         memcmp(a->stride, b->stride, sizeof(int64_t) * a->ndim) == 0;
}

bool graph_geom_same(const rl_geom *a, const rl_geom *b) {
  if (a->ndim != b->ndim || a->offset != b->offset) return false;
  for (int d = 0; d < a->ndim; d++)
    if (a->size[d] != b->size[d] || (a->size[d] > 1 && a->stride[d] != b->stride[d])) return false;
  return true;
}

int32_t graph_type(rl_graph *g, const rl_type *t) {
  for (int32_t i = g->ntypes - 1; i >= 0; i--)
    if (graph_type_same(&g->types[i], t)) return i;
  return GRAPH_PUSH(g->types, g->ntypes, g->captypes, *t) ? g->ntypes - 1 : -1;
}

int32_t graph_geom(rl_graph *g, const rl_geom *ge) {
  for (int32_t i = g->ngeoms - 1; i >= 0; i--)
    if (geom_equal(&g->geoms[i], ge)) return i;
  return GRAPH_PUSH(g->geoms, g->ngeoms, g->capgeoms, *ge) ? g->ngeoms - 1 : -1;
}

int32_t graph_attrs(rl_graph *g, const rl_attrs *a) { return GRAPH_PUSH(g->attrs, g->nattrs, g->capattrs, *a) ? g->nattrs - 1 : -1; }

int32_t graph_loc(rl_graph *g, const char *text) {
  for (int32_t i = g->nlocs - 1; i >= 0; i--)
    if (!strcmp(g->locs[i], text)) return i;
  size_t n = strlen(text) + 1;
  char *copy = malloc(n);
  if (!copy) {
    rl_error_status(RL_OOM, "[graph] out of memory");
    return -1;
  }
  memcpy(copy, text, n);
  return GRAPH_PUSH(g->locs, g->nlocs, g->caplocs, copy) ? g->nlocs - 1 : -1;
}

int32_t graph_new_storage(rl_graph *g) {
  if (!graph_grow(&g->storage_node, g->nstorages, &g->capstorage_node, sizeof *g->storage_node)) return -1;
  if (!GRAPH_PUSH(g->storages, g->nstorages, g->capstorages, (rl_storage *)NULL)) return -1;
  g->storage_node[g->nstorages - 1] = -1;
  return g->nstorages - 1;
}

bool graph_push_input(rl_graph *g, rl_ref r, int32_t storage, int64_t whole) {
  int32_t n = g->ninputs, c1 = g->capinputs, c2 = g->capinputs; /* the three arrays grow together */
  if (!graph_grow(&g->input_storage, n, &c1, sizeof *g->input_storage)) return false;
  if (!graph_grow(&g->input_storage_size, n, &c2, sizeof *g->input_storage_size)) return false;
  if (!GRAPH_PUSH(g->inputs, g->ninputs, g->capinputs, r)) return false;
  g->input_storage[n] = storage;
  g->input_storage_size[n] = whole;
  return true;
}

rl_ref graph_append(rl_graph *g, rl_node proto, const rl_ref *in, int nin, const rl_attrs *a) {
  proto.nin = nin;
  proto.in = g->nrefs;
  for (int i = 0; i < nin; i++)
    if (!GRAPH_PUSH(g->refs, g->nrefs, g->caprefs, in[i])) return -1;
  proto.attrs = a ? graph_attrs(g, a) : -1;
  if ((a && proto.attrs < 0) || proto.type < 0 || proto.geom < 0 || proto.storage < 0) return -1;
  if (!GRAPH_PUSH(g->nodes, g->n, g->cap, proto)) return -1;
  if (g->storage_node[proto.storage] < 0) g->storage_node[proto.storage] = g->n - 1;
  return g->n - 1;
}

/* Appends a node with a fresh dense storage and returns its reference; -1 when memory is out. */
rl_ref rl_graph_node(rl_graph *g, int op, const rl_type *t, const rl_ref *in, int nin, const rl_attrs *a) {
  rl_geom ge;
  graph_dense(t->ndim, t->size, &ge);
  rl_node n = {
    .op = (uint16_t)op, .nout = 1, .type = graph_type(g, t), .geom = graph_geom(g, &ge), .storage = graph_new_storage(g), .line = g->curloc
  };
  return graph_append(g, n, in, nin, a);
}

/* Source position of the nodes that follow. */
void rl_graph_loc(rl_graph *g, const char *file_line) {
  int32_t i = graph_loc(g, file_line ? file_line : "");
  g->curloc = i < 0 ? 0 : i;
}

void graph_dense(int ndim, const int64_t *size, rl_geom *out) {
  memset(out, 0, sizeof *out);
  out->ndim = ndim;
  int64_t s = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    out->size[d] = size[d];
    out->stride[d] = s;
    s *= RL_MAX(size[d], 1);
  }
}

bool graph_geom_dense(const rl_geom *ge) {
  int64_t s = 1;
  for (int d = 0; d < ge->ndim; d++)
    if (ge->size[d] == 0) return true;
  for (int d = ge->ndim - 1; d >= 0; d--) {
    if (ge->size[d] != 1 && ge->stride[d] != s) return false;
    s *= ge->size[d];
  }
  return true;
}

int64_t graph_numel(const rl_type *t) {
  int64_t n = 1;
  for (int d = 0; d < t->ndim; d++) n *= t->size[d];
  return n;
}

int64_t graph_geom_last(const rl_geom *ge) {
  int64_t last = ge->offset;
  for (int d = 0; d < ge->ndim; d++) {
    if (ge->size[d] == 0) return ge->offset - 1;
    last += (ge->size[d] - 1) * ge->stride[d];
  }
  return last;
}

void graph_type_of(const rl_tensor *t, rl_type *out) {
  memset(out, 0, sizeof *out);
  out->dtype = t->dtype;
  out->device = t->device;
  out->weak = (t->flags & RL_T_WEAK) != 0;
  out->ndim = t->ndim;
  memcpy(out->size, t->size, sizeof(int64_t) * t->ndim);
}

void graph_geom_of(const rl_tensor *t, rl_geom *out) {
  memset(out, 0, sizeof *out);
  out->ndim = t->ndim;
  out->offset = t->offset;
  memcpy(out->size, t->size, sizeof(int64_t) * t->ndim);
  memcpy(out->stride, t->stride, sizeof(int64_t) * t->ndim);
}

/* The storage of ghosts: marks them as fake; never read, never released. */
static rl_storage graph_ghost_storage = { .refs = 1 << 30, .size = INT64_MAX, .graph = &graph_dead };

static void ghost_set(const rl_type *t, const rl_geom *ge, rl_tensor *out) {
  memset(out, 0, sizeof *out);
  out->refs = 1 << 30;
  out->dtype = t->dtype;
  out->device = t->device;
  out->ndim = t->ndim;
  out->flags = t->weak ? RL_T_WEAK : 0;
  out->node = -1;
  out->storage = &graph_ghost_storage;
  out->offset = ge->offset;
  memcpy(out->size, t->size, sizeof(int64_t) * t->ndim);
  memcpy(out->stride, ge->stride, sizeof(int64_t) * t->ndim);
}

void graph_ghost(const rl_graph *g, rl_ref r, rl_tensor *out) { ghost_set(rl_node_type(g, r), graph_node_geom(g, r), out); }

rl_status graph_view_geom(int op, const rl_type *t, const rl_geom *x, const rl_attrs *a, rl_type *ot, rl_geom *out) {
  rl_tensor ghost;
  ghost_set(t, x, &ghost);
  memset(out, 0, sizeof *out);
  RL_TRY(rl_ops[op].view((rl_op)op, &ghost, a, out));
  *ot = *t;
  memset(ot->size, 0, sizeof ot->size);
  ot->weak = 0;
  ot->ndim = (uint8_t)out->ndim;
  memcpy(ot->size, out->size, sizeof(int64_t) * out->ndim);
  return RL_OK;
}

int graph_input_of_storage(const rl_graph *g, int32_t storage) {
  for (int32_t i = 0; i < g->ninputs; i++)
    if (g->input_storage[i] == storage) return i;
  return -1;
}

void graph_strided_attrs(const rl_geom *ge, rl_attrs *out) {
  memset(out, 0, sizeof *out);
  out->nlist[0] = out->nlist[1] = ge->ndim;
  memcpy(out->list[0], ge->size, sizeof(int64_t) * ge->ndim);
  memcpy(out->list[1], ge->stride, sizeof(int64_t) * ge->ndim);
  out->v[0].i = ge->offset;
}

void graph_strided_geom(const rl_attrs *a, rl_geom *out) {
  memset(out, 0, sizeof *out);
  out->ndim = a->nlist[0];
  memcpy(out->size, a->list[0], sizeof(int64_t) * out->ndim);
  memcpy(out->stride, a->list[1], sizeof(int64_t) * out->ndim);
  out->offset = a->v[0].i;
}

static const char *const graph_names[] = { "input", "number", "const", "tensor", "empty", "write", "proj", "cast_to", "scatter_window" };

/* Name of a node kind: an op's row name, or that of a kind of the graph's own. */
const char *rl_node_name(int op) {
  if (op < 0 || op >= RL_G_NOPS) return "?";
  return op < RL_NOP ? rl_ops[op].name : graph_names[op - RL_NOP];
}

/* Whether a backend must know this kind. */
bool rl_node_is_prim(int op) { return op >= RL_NOP ? op < RL_G_NOPS && op != RL_G_WRITE : (rl_ops[op].flags & RL_OPF_PRIM) != 0; }

int64_t graph_draws(int op, const rl_meta *m) {
  int64_t n = 1;
  (void)op;
  for (int d = 0; d < m->ndim; d++) n *= m->size[d];
  return rl_random_counters((rl_dtype)m->dtype, n);
}
