/* Graph internals: interning and appending for the files of lib/graph, and rebuilding (graph -> graph on fakes).
 * Nothing here is exported. */
#ifndef RL_GRAPH_IMPL_H
#define RL_GRAPH_IMPL_H
#include "graph.h"

/* Makes room for one more element of a growing array; false: out of memory, message set. */
bool graph_grow(void *array, int32_t n, int32_t *cap, size_t elem);
#define GRAPH_PUSH(a, n, cap, x) (graph_grow(&(a), (n), &(cap), sizeof(*(a))) ? ((a)[(n)++] = (x), true) : false)

/* Interned type and geometry, stored attributes: index, -1 when out of memory. */
int32_t graph_type(rl_graph *g, const rl_type *t);
int32_t graph_geom(rl_graph *g, const rl_geom *ge);
int32_t graph_attrs(rl_graph *g, const rl_attrs *a);
int32_t graph_loc(rl_graph *g, const char *text);
/* Appends a node: proto gives op, nout, type, storage, geom, aux, rng, line; in and attrs are filled in here. */
rl_ref graph_append(rl_graph *g, rl_node proto, const rl_ref *in, int nin, const rl_attrs *a);
int32_t graph_new_storage(rl_graph *g); /* next free storage id */
bool graph_push_input(rl_graph *g, rl_ref r, int32_t storage, int64_t whole);

/* Geometry of a dense value. */
void graph_dense(int ndim, const int64_t *size, rl_geom *out);
bool graph_geom_dense(const rl_geom *ge);                 /* contiguous, whatever the offset */
bool graph_geom_same(const rl_geom *a, const rl_geom *b); /* same elements in the same order; strides of size-1 dims are free */
bool graph_type_same(const rl_type *a, const rl_type *b);
int64_t graph_numel(const rl_type *t);
int64_t graph_geom_last(const rl_geom *ge); /* last element touched, offset - 1 when empty */
void graph_type_of(const rl_tensor *t, rl_type *out);
void graph_geom_of(const rl_tensor *t, rl_geom *out);
static inline const rl_geom *graph_node_geom(const rl_graph *g, rl_ref r) { return &g->geoms[g->nodes[r].geom]; }
static inline const rl_attrs *graph_node_attrs(const rl_graph *g, rl_ref r) { return g->nodes[r].attrs < 0 ? NULL : &g->attrs[g->nodes[r].attrs]; }

/* A tensor struct that stands for a node in shape rules: fake, no data, lives where the caller keeps it. */
void graph_ghost(const rl_graph *g, rl_ref r, rl_tensor *out);
/* Geometry that the view row `op` gives on x's geometry. */
rl_status graph_view_geom(int op, const rl_type *t, const rl_geom *x, const rl_attrs *a, rl_type *ot, rl_geom *out);
static inline bool graph_is_row(int op) { return op < RL_NOP; }
static inline bool graph_is_view(int op) { return op < RL_NOP && rl_ops[op].kind == RL_K_VIEW; }
static inline bool graph_is_random(int op) { return op < RL_NOP && (rl_ops[op].flags & RL_OPF_RANDOM); }
/* Counters that a random op draws for a result. */
int64_t graph_draws(int op, const rl_meta *m);
/* Input storage index: the input whose storage is `storage`, or -1. */
int graph_input_of_storage(const rl_graph *g, int32_t storage);

/* Attributes of as_strided and of SCATTER_WINDOW: sizes, strides, offset (absolute in the storage; in a dense base: from its start). */
void graph_strided_attrs(const rl_geom *ge, rl_attrs *out);
void graph_strided_geom(const rl_attrs *a, rl_geom *out);

/* A fake for any node of the graph being recorded: a new reference. */
rl_tensor *graph_fake(rl_graph *g, rl_ref r);

/* Node-level rebuilding (build.c): all return -1 with a message set when they fail. */
rl_ref graph_emit(rl_graph *g, int op, const rl_type *t, const rl_ref *in, int nin, const rl_attrs *a); /* fresh dense storage */
rl_ref graph_emit_view(rl_graph *g, int op, rl_ref x, const rl_attrs *a);                               /* geometry from the row's rule */
rl_ref graph_emit_window(rl_graph *g, rl_ref x, const rl_geom *ge);                    /* as_strided, absolute; x itself when nothing changes */
rl_ref graph_emit_copy(rl_graph *g, rl_ref x);                                         /* dense copy in fresh storage */
rl_ref graph_emit_dense(rl_graph *g, rl_ref x);                                        /* x, or a dense copy */
rl_ref graph_emit_scatter(rl_graph *g, rl_ref base, rl_ref v, const rl_geom *w);       /* w relative to the dense base */
rl_ref graph_emit_const(rl_graph *g, rl_dtype dt, rl_device dev, double f, int64_t i); /* typed constant of rank 0 */
rl_ref graph_emit_cast(rl_graph *g, rl_ref x, rl_dtype dt);
rl_ref graph_emit_expand(rl_graph *g, rl_ref x, int ndim, const int64_t *size);
rl_ref graph_emit_broadcast(rl_graph *g, rl_ref x, const rl_geom *ge); /* expand with a geometry already known */
/* Copies node r of `old`, its leaf tables and projections, with map[] giving the inputs; map[r ..] is set. Inputs keep storage sharing
 * through sid[] (old storage id -> new, -1 at first). */
bool graph_copy_node(rl_graph *g, const rl_graph *old, rl_ref r, rl_ref *map, int32_t *sid);
/* Graph without the nodes that nothing needs; inputs, numbers and counters stay. NULL: out of memory. */
rl_graph *graph_prune(const rl_graph *g);
/* Sets outputs so that they share storage exactly as `old`'s do, with the same geometry: not with an input, nor with each other, unless old's
 * did. map[] has the value of the first node of every storage that an output lies on. */
bool graph_set_outputs(rl_graph *g, const rl_graph *old, rl_ref *value, const int32_t *sid, const rl_ref *map);
rl_ref *graph_ref_array(int32_t n, rl_ref fill); /* malloc'ed */
#endif
