/* Codegen internals: nodes with their uses and places, loop spaces, groups (graph -> nodes -> groups -> loops -> C).
 *
 * Every value that is not a view is dense, so an access is a *linear* position in it: off + sum(st[l] * i[l]) over the loops of a space.
 * Views cost nothing: the graph gives their strides inside the storage, and an access through a view is the same sum with other strides. */
#ifndef RL_CG_H
#define RL_CG_H
#include "../graph/graph.h"

enum { CG_MAXLOOP = 16, CG_MAXNODES = 512 };

/* Kinds of nodes made here, beyond the graph's. pick(x, idx): x where the index along dimension aux is idx, else 0. */
enum { CG_OP_PICK = RL_G_NOPS };

typedef struct cg_acc {
  int64_t off, st[CG_MAXLOOP];
} cg_acc;
/* Loops of a group. red: the loop runs inside a row; the others number the rows. */
typedef struct cg_space {
  int n;
  int64_t size[CG_MAXLOOP];
  bool red[CG_MAXLOOP];
} cg_space;

typedef enum cg_kind {
  CG_SRC,   /* input, constant tensor, number, constant: no work */
  CG_VIEW,  /* alias of another node's storage */
  CG_PW,    /* one element from one element of each operand */
  CG_RED,   /* reduction */
  CG_STORE, /* writes its operand into a window of a buffer; no value */
  CG_JOIN,  /* value made of windows: the scatter_window chain's last */
  CG_CALL,  /* eager kernel */
  CG_NONE   /* nothing to do: no elements */
} cg_kind;

/* How a reduction lies in its group's space. */
enum { CG_RK_NONE, CG_RK_ROW, CG_RK_COL, CG_RK_ALL };

typedef struct cg_node {
  uint16_t op;
  uint8_t kind, nout;
  bool uniform; /* one element, computed from numbers and sources in every kernel that wants it */
  bool absent;  /* not reached from outputs or updates */
  rl_type type; /* iteration shape of a PW or STORE node */
  rl_geom geom; /* inside buffer buf */
  int buf;      /* storage id */
  const rl_attrs *at;
  int nin, *in;           /* node indices, -1 absent */
  int ndep, capdep, *dep; /* nodes that must run before, beyond the operands */
  int64_t rng;
  int aux, ref; /* ref: the graph's node */
  int group;    /* -1: none */
  bool mat;     /* must be in memory */
  bool placed;  /* a CALL whose result goes straight into place */
  bool inplace; /* STORE into an input's storage */
  bool relu;    /* a convolution that ends with max(x, 0) */
  int pbuf;
  rl_geom pgeom; /* where the value lives: buffer and dense geometry of it */
} cg_node;

typedef struct cg_group {
  bool call, dead;
  int n, *node; /* members, by rank */
  cg_space sp;
  cg_acc *acc, *xacc; /* by member: position of the result; RED and STORE: position of the operand, in its own dense shape */
  uint8_t *rk, *phase;
  int order;
} cg_group;

/* Buffers: one a storage id, plus those made here. */
typedef enum cg_place { CG_P_NONE, CG_P_INPUT, CG_P_CONST, CG_P_ARENA, CG_P_OUTPUT } cg_place;
typedef struct cg_buf {
  cg_place place;
  rl_dtype dt;
  int64_t size;    /* elements */
  int index;       /* input or output number */
  rl_tensor *real; /* constant */
  int64_t offset;  /* arena, bytes */
  int first, last; /* launches */
  int root;        /* node that owns the storage */
} cg_buf;

/* What was decided by sizes, in order. replay: it is decided so again; failed: these sizes do not fit. */
typedef struct cg_choices {
  int *v, n, cap, at;
  bool replay, failed;
} cg_choices;

typedef struct cg {
  const rl_graph *g;
  bool strict, sized, cuda; /* sized: the text is to serve other sizes too */
  cg_choices *choices;
  cg_node *node;
  int n, cap;
  int *rank, *topo; /* by node: place in an order where operands come first; nodes in that order */
  cg_group *group;
  int ngroup, capgroup;
  cg_buf *buf;
  int nbuf, capbuf;
  int *order;
  int norder; /* groups in launch order */
  int64_t arena;
  rl_attrs **pick_attrs;
  int npick;
  char *why; /* fusion notes under RELUME_DEBUG=3 */
} cg;

/* choice.c */
int cg_choose(cg *c, int own);
bool cg_choose_if(cg *c, bool own);
int cg_choice_begin(cg *c, bool *want);
void cg_choice_end(cg *c, int place, bool ok);
bool cg_choices_misfit(const cg *c);

/* access.c */
int64_t cg_numel(const rl_type *t);
bool cg_dense(const rl_geom *ge);                  /* row-major without gaps, whatever the offset */
void cg_acc_dense(const rl_type *t, rl_geom *out); /* dense geometry of a shape */
typedef struct cg_index {
  int64_t off, st[CG_MAXLOOP];
} cg_index;
/* Index along each dimension of a dense shape from the linear access: false when a loop crosses a dimension (want: loop to split, its inner size). */
bool cg_split(const cg_space *sp, const cg_acc *a, const rl_type *t, cg_index *idx, int want[2]);
void cg_through(const cg_index *idx, const rl_geom *ge, int nloop, cg_acc *out);
bool cg_acc_same(const cg_space *sp, const cg_acc *a, const cg_acc *b);
bool cg_space_split(cg_space *sp, int loop, int64_t inner);
void cg_acc_cut(cg_acc *a, int loop, int nloop, int64_t inner);

/* Position of a gather's operand: the table at index 0 along the gathered dimension (k = 0), or the index (k = 1). */
bool cg_gather_position(const cg *c, const cg_space *sp, const cg_node *n, int k, const cg_acc *acc, cg_acc *out, int want[2]);

/* fuse.c, nodes.c */
rl_status cg_nodes(cg *c);                  /* graph -> nodes */
rl_status cg_fuse(cg *c);                   /* nodes -> groups */
int cg_repeat(cg *c, int i, const int *in); /* pointwise node i once more, over other operands; -1: no memory */
rl_status cg_compute_again(cg *c);          /* again.c: large values behind calls are computed there */
bool cg_map(cg *c, cg_group *g, bool final);
int cg_root(const cg *c, int i);
bool cg_named(int op, const char *name);
const char *cg_name(const cg_node *n);
static inline bool cg_is_gather(const cg_node *n) { return cg_named(n->op, "gather") || cg_named(n->op, "index_select"); }
/* schedule.c */
rl_status cg_order(cg *c); /* order of the groups */
rl_status cg_arena(cg *c); /* lifetimes and the arena */
void cg_free(cg *c);
void cg_note(cg *c, const char *fmt, ...) RL_PRINTF(2, 3);
bool cg_add_dep(cg *c, int node, int before);
bool cg_reaches(const cg *c, int from, int to);
#endif
