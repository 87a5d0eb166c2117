/* Graph: the one IR from capture to fusion. Nodes in one array, 32-bit references, types interned.
 *
 * Value model. Every op is pure. The one node with an effect is `write(dst, src)`: the elements of src replace those of dst's window of
 * its storage; its value is the new dst. Recording x:add(y) gives  %3 = add(%1, %2); %4 = write(%1, %3).  Views are nodes whose storage
 * is their input's. functionalize removes write nodes and leaves, per mutated input storage, one copy-back in g->updates.
 * A node with n outputs is followed by n-1 `proj` nodes, so output k of node r is r+k. */
#ifndef RL_GRAPH_H
#define RL_GRAPH_H
#include "../tensor/op.h"

typedef int32_t rl_ref; /* -1: none */

/* Node kinds that are not rows of ops.def. They live above RL_NOP in rl_node.op. */
enum {
  RL_G_INPUT = RL_NOP, /* tensor argument; aux = index among inputs */
  RL_G_NUMBER,         /* Lua number argument (learning rate, step counter), weak rank-0 F64; aux = index among numbers */
  RL_G_CONST,          /* number known at capture: attrs v[0] (f, or i when dtype is I64); weak, or typed after decompose (rank 0) */
  RL_G_TENSOR,         /* constant tensor held by the graph; aux = index in g->consts */
  RL_G_EMPTY,          /* fresh storage, contents undefined */
  RL_G_WRITE,
  RL_G_PROJ,
  RL_G_CAST,           /* to the node's dtype; with its input's dtype it is a copy into fresh storage (outputs must not alias inputs) */
  RL_G_SCATTER_WINDOW, /* functional write: base with the window (attrs as as_strided, relative to base) replaced by input 1 */
  RL_G_NOPS
};

typedef struct rl_type {
  uint8_t dtype, device, weak;
  uint8_t ndim;
  int64_t size[RL_MAXDIM];
} rl_type; /* a size below 0 is reserved for symbolic dimensions */

typedef struct rl_node {
  uint16_t op;
  uint8_t nout, flags;
  int32_t type;    /* index in g->types */
  int32_t nin, in; /* inputs are g->refs[in .. in+nin-1]; -1 for an absent optional one */
  int32_t attrs;   /* index in g->attrs, -1: none */
  int32_t storage; /* fake storage id: views share it */
  int32_t geom;    /* index in g->geoms: offset and strides inside the storage */
  int32_t aux;
  int64_t rng;  /* random ops: counters drawn before this node since the graph's start */
  int32_t line; /* source position (index in g->locs), 0: unknown */
} rl_node;

/* After the run: the storage window of `input` takes `value`. `input` is an input node or a view of one (as_strided, whose offset and
 * strides are absolute in the storage, so a window may lie outside the input's own). Values are those before any update is applied. */
typedef struct rl_update {
  rl_ref input, value;
} rl_update;
/* Outputs: a node whose storage is an input's is returned as a view of that input, taken after the updates. Outputs that share another
 * storage are returned as views of one new buffer. */

typedef struct rl_graph {
  rl_node *nodes;
  int32_t n, cap;
  rl_ref *refs;
  int32_t nrefs, caprefs;
  rl_type *types;
  int32_t ntypes, captypes;
  rl_attrs *attrs;
  int32_t nattrs, capattrs;
  rl_geom *geoms;
  int32_t ngeoms, capgeoms;
  rl_ref *inputs;
  int32_t ninputs, capinputs;
  rl_ref *numbers;
  int32_t nnumbers, capnumbers;
  rl_ref *outputs;
  int32_t noutputs, capoutputs;
  rl_update *updates;
  int32_t nupdates, capupdates;
  rl_tensor **consts;
  int32_t nconsts, capconsts;
  rl_storage **storages;
  int32_t nstorages, capstorages; /* fake storage by id (refs held while recording) */
  rl_ref *storage_node;
  int32_t capstorage_node; /* by storage id: first node on it, -1: none yet (recording) */
  const rl_storage **real;
  int32_t nreal, capreal;
  int32_t *real_id; /* while recording: real storages of inputs and constants, their ids */
  int32_t *input_storage;
  int64_t *input_storage_size; /* by input: fake storage id, elements of the whole storage */
  char **locs;
  int32_t nlocs, caplocs, curloc; /* locs[0] is "" */
  int64_t rng_total;              /* counters the whole graph draws */
  bool functional;                /* no write nodes */
  bool primitive;                 /* only RL_OPF_PRIM rows and RL_G_* kinds */
} rl_graph;

/* Building and recording. */
RL_API rl_graph *rl_graph_new(void);
RL_API void rl_graph_free(rl_graph *g);
RL_API rl_status rl_graph_begin(rl_graph *g); /* rl_self.graph = g; ops on fakes and new tensors become nodes */
RL_API void rl_graph_end(rl_graph *g);        /* stops recording; fakes stay valid as long as the graph */
RL_API rl_tensor *rl_graph_input_sized(rl_graph *g, rl_tensor *real, const int64_t *size); /* as if real were dense and of these sizes */
RL_API rl_tensor *rl_graph_input_window(rl_graph *g, rl_tensor *real); /* as if its storage began with it: a plan takes it at any offset */
RL_API rl_tensor *rl_graph_input(rl_graph *g, rl_tensor *real);        /* fake with real's geometry; tensors that share a storage share a fake one */
RL_API rl_tensor *rl_graph_number(rl_graph *g, double hint);
RL_API rl_tensor *rl_graph_constant(rl_graph *g, rl_tensor *real);
RL_API rl_tensor *rl_graph_cotangent(rl_graph *g, const rl_tensor *fake); /* a new input: a dense gradient of the fake */
RL_API rl_status rl_graph_output(rl_graph *g, rl_tensor *fake);
RL_API void rl_graph_loc(rl_graph *g, const char *file_line); /* source position of the nodes that follow */
/* Called by rl_call for fake inputs (real inputs that meet fakes are lifted to constants). Writes out[] with fakes. */
RL_API rl_status rl_graph_record(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, const rl_meta *meta, rl_tensor **out);
RL_API rl_status rl_graph_record_view(rl_op op, rl_tensor *x, const rl_attrs *a, const rl_geom *g, rl_tensor **out);
RL_API rl_status rl_graph_record_write(rl_tensor *dst, rl_tensor *src);
/* Called by lib/tensor: rl_storage_new while recording, and rl_storage_resize of a fake storage (growing an input's gives RL_NODATA). */
RL_API rl_storage *rl_graph_storage_new(rl_graph *g, rl_dtype dt, rl_device dev, int64_t size);
RL_API rl_status rl_graph_storage_resize(rl_storage *s, int64_t size);
/* Node whose value the tensor is: a fresh EMPTY, or an as_strided of its storage's first node, is appended where the fake's geometry has
 * no node yet; a real tensor becomes a constant, a number a CONST. -1: message set. */
RL_API rl_ref rl_graph_ref(rl_graph *g, rl_tensor *t);
RL_API rl_ref rl_graph_node(rl_graph *g, int op, const rl_type *t, const rl_ref *in, int nin, const rl_attrs *a); /* append by hand */

/* Text: prints and parses back to an equal graph. */
RL_API char *rl_graph_print(const rl_graph *g);    /* malloc'ed */
RL_API rl_graph *rl_graph_parse(const char *text); /* NULL: message names line and column */
RL_API rl_status rl_graph_verify(const rl_graph *g);

/* Passes: graph -> new graph, the input stays as it is. pass.c holds the one ordered list. */
RL_API rl_graph *rl_pass_functionalize(const rl_graph *g);
RL_API rl_graph *rl_pass_decompose(const rl_graph *g); /* -> primitives; no broadcasting, no promotion left */
RL_API rl_graph *rl_pass_assemble(const rl_graph *g);  /* sums of slices' gradients side by side as cat */
RL_API rl_graph *rl_pass_fold(const rl_graph *g);      /* constants, identities, CSE, casts, windows, dead code */
/* Joint graph: appends d(outputs)/d(wrt) for cotangents that become new inputs. */
RL_API rl_graph *rl_pass_backward(const rl_graph *g, const rl_ref *wrt, int nwrt);
RL_API rl_graph *rl_pass_run(const rl_graph *g); /* the list, with RELUME_CHECK and RELUME_DEBUG=5 */
/* Splits a joint graph at a minimal cut: fwd gives the first nout outputs and then the saved values; bwd takes the saved values, then the
 * last ncot inputs, and gives the other outputs. keep_in and keep_out (NULL: all) say by input and output whether what backward needs of its
 * memory may be saved without a copy. saved (may be NULL; freed by the caller): by saved value the input that it is, -1 for others. */
enum { CUT_REPLAY = 1, CUT_LIVE = 2 }; /* see partition.c */
RL_API rl_status rl_pass_partition(const rl_graph *joint, int nout, int ncot, const char *keep_in, const char *keep_out, int flags, rl_graph **fwd,
                                   rl_graph **bwd, int32_t **saved, int32_t *nsaved);
/* Backward without the cotangents (inputs from `first` on) that absent[] marks: what depends on those alone is left out, its outputs are marked in
 * gone[] and left out too. */
RL_API rl_graph *rl_pass_absent(const rl_graph *g, int first, const char *absent, char *gone);

/* Interpreter: runs any graph on real tensors through rl_call. Inputs have the captured geometry. out[i] gets a new reference. */
RL_API rl_status rl_graph_run(const rl_graph *g, rl_tensor *const *in, const double *numbers, rl_tensor **out);
/* The same on the tape: outputs carry their history to the inputs, nothing is updated, random ops draw what they drew when the generator was `at`. */
struct rl_generator;
RL_API rl_status rl_graph_run_taped(const rl_graph *g, rl_tensor *const *in, const double *numbers, const struct rl_generator *at, rl_tensor **out);
/* Ops of g on the fakes of the graph that is being recorded. An input that nothing reads may be NULL; g updates and draws nothing. */
RL_API rl_status rl_graph_inline(const rl_graph *g, rl_tensor *const *in, rl_tensor *const *numbers, rl_tensor **out);

static inline const rl_type *rl_node_type(const rl_graph *g, rl_ref r) { return &g->types[g->nodes[r].type]; }
static inline rl_ref rl_node_in(const rl_graph *g, rl_ref r, int k) { return g->refs[g->nodes[r].in + k]; }
RL_API const char *rl_node_name(int op);
RL_API bool rl_node_is_prim(int op);
#endif
