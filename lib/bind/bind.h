/* Binding base: userdata boxes, argument readers, result pushers. Everything in lib/bind includes this.
 * A tensor is one 16-byte userdata (tag, pointer); its metatable is found by a fixed integer key of the registry. */
#ifndef RL_BIND_H
#define RL_BIND_H
#include <lauxlib.h>
#include <lua.h>
#include "../autograd/tape.h"
#include "../tensor/op.h"
#include "../tensor/random.h"

typedef struct bind_box {
  const char *tag;
  void *p;
} bind_box;
extern const char bind_tag_tensor, bind_tag_storage, bind_tag_gen;

/* Fixed keys of the registry: negative, so that luaL_ref never meets them. */
enum {
  BIND_KEY_TENSOR = -1000,
  BIND_KEY_STORAGE = -1200,
  BIND_KEY_GEN = -1300,
  BIND_KEY_CORE = -1301,
  BIND_KEY_PRINT = -1302,
  BIND_KEY_FILE = -1303,
  BIND_KEY_CAPTURABLE = -1304
};
#define BIND_MT_TENSOR(dt, dev) (BIND_KEY_TENSOR - (int)(dev)*32 - (int)(dt))
#define BIND_MT_STORAGE(dt, dev) (BIND_KEY_STORAGE - (int)(dev)*32 - (int)(dt))

/* The tensor at index i, or NULL. */
static inline rl_tensor *bind_totensor(lua_State *L, int i) {
  bind_box *b = (bind_box *)lua_touserdata(L, i);
  return b && lua_objlen(L, i) == sizeof(bind_box) && b->tag == &bind_tag_tensor ? (rl_tensor *)b->p : NULL;
}
static inline rl_storage *bind_tostorage(lua_State *L, int i) {
  bind_box *b = (bind_box *)lua_touserdata(L, i);
  return b && lua_objlen(L, i) == sizeof(bind_box) && b->tag == &bind_tag_storage ? (rl_storage *)b->p : NULL;
}

/* Errors, raised at the caller's line. */
int bind_raise(lua_State *L, rl_status s);
int bind_argerror(lua_State *L, int i, const char *need);
#define BIND_TRY(L, e) \
  do { \
    rl_status bind_s_ = (e); \
    if (bind_s_ != RL_OK) bind_raise(L, bind_s_); \
  } while (0)

/* Arguments. */
rl_tensor *bind_tensor(lua_State *L, int i);
rl_storage *bind_storage(lua_State *L, int i);
bool bind_isnumber(lua_State *L, int i);                    /* a Lua number or boolean, not a string */
bool bind_isscalar(lua_State *L, int i);                    /* number or rank-0 tensor */
rl_tensor *bind_operand(lua_State *L, int i, rl_number *n); /* tensor, or number put in n */
double bind_number(lua_State *L, int i);                    /* number or the value of a one-element tensor */
int64_t bind_int(lua_State *L, int i);
int bind_dim(lua_State *L, int i, const rl_tensor *t);                           /* 1-based, negative from the end -> from 0 */
int bind_sizes(lua_State *L, int i, int64_t *size);                              /* numbers from i on, or a LongStorage or table at i; -> ndim */
rl_dtype bind_dtype(lua_State *L, int i);                                        /* 'Float', 'torch.FloatTensor' */
void bind_type_name(char buf[64], rl_dtype dt, rl_device dev, const char *kind); /* kind: Tensor or Storage */
bool bind_parse_dtype(const char *s, rl_dtype *dt, rl_device *dev, bool *storage);

/* Results. The pushers take over the reference. */
int bind_push_tensor(lua_State *L, rl_tensor *t);
int bind_push_result(lua_State *L, rl_tensor *t); /* of a plan: the collector is not asked before the program has had it */
int bind_push_storage(lua_State *L, rl_storage *s);
int bind_push_scalar(lua_State *L, rl_tensor *t);           /* number, or the rank-0 tensor itself when on the tape or fake */
int bind_push_sizes(lua_State *L, int n, const int64_t *v); /* new LongStorage */
rl_tensor *bind_new(lua_State *L, rl_dtype dt, rl_device dev, int ndim, const int64_t *size);

/* Ops. bind_op returns output 0 as a new reference; bind_into writes into res, resized first. */
void bind_call(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out);
rl_tensor *bind_op(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a);
void bind_into(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *res);
void bind_copy(lua_State *L, rl_tensor *dst, rl_tensor *src);  /* equal element counts; converts */
rl_tensor *bind_cast(lua_State *L, rl_tensor *t, rl_dtype dt); /* new reference; t itself when the type is right */
rl_tensor *bind_contiguous(lua_State *L, rl_tensor *t);        /* new reference */

void bind_fill(lua_State *L, rl_tensor *dst, rl_tensor *v); /* v: rank 0 or one element */
rl_tensor *bind_clone(lua_State *L, rl_tensor *t);          /* contiguous copy, new reference */

void bind_shift(lua_State *L, rl_tensor *x, int by);                                                        /* indices: x + by in place */
int bind_finish_pair(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, bool given); /* (values, indices from 1) */

/* Views, new references; indices count from 0. */
rl_tensor *bind_select(lua_State *L, rl_tensor *t, int dim, int64_t index);
rl_tensor *bind_narrow(lua_State *L, rl_tensor *t, int dim, int64_t start, int64_t length);
rl_tensor *bind_view(lua_State *L, rl_tensor *t, int ndim, const int64_t *size);    /* contiguous t only */
rl_tensor *bind_reshape(lua_State *L, rl_tensor *t, int ndim, const int64_t *size); /* copies when it must */
rl_tensor *bind_expand(lua_State *L, rl_tensor *t, int ndim, const int64_t *size);
rl_tensor *bind_permute(lua_State *L, rl_tensor *t, const int *perm);
/* Nothing looks at this tensor's history: its geometry may be changed without rl_call. */
static inline bool bind_plain(const rl_tensor *t) { return !t->ag && !rl_self.graph && t->storage && !t->storage->graph; }

/* Tensors as Torch7 shows them: the empty tensor has no dimension. */
static inline int bind_ndim(const rl_tensor *t) { return t->ndim == 1 && t->size[0] == 0 ? 0 : t->ndim; }
double bind_load(const rl_tensor *t, int64_t offset); /* element at an offset of the storage */
void bind_store(rl_tensor *t, int64_t offset, double v);
double bind_load_as(rl_dtype dt, const void *p);
void bind_store_as(rl_dtype dt, void *p, double v);

/* Walks the elements in logical order: for (bind_walk w = bind_walk_start(t); w.left > 0; bind_walk_next(&w)) ... w.off */
typedef struct bind_walk {
  const rl_tensor *t;
  int64_t off, left, idx[RL_MAXDIM];
} bind_walk;
bind_walk bind_walk_start(const rl_tensor *t);
void bind_walk_next(bind_walk *w);
void bind_values(lua_State *L, const rl_tensor *t, const char *what); /* raises when t is fake */
void bind_real(lua_State *L, const rl_storage *s, const char *what);  /* the same for storages */
void bind_wrote(rl_tensor *t);                                        /* elements were written behind rl_call's back */

/* The collector's share of native memory. */
void bind_pressure(lua_State *L, int64_t bytes);
void bind_debt(int64_t bytes);

/* Registration. Module tables: functions go to C.torch, methods to every tensor metatable. */
typedef struct bind_reg {
  const char *name;
  lua_CFunction fn;
} bind_reg;
void bind_functions(lua_State *L, const bind_reg *r, bool capturable);       /* into C.torch */
void bind_methods(lua_State *L, const bind_reg *r, bool capturable);         /* into all tensor metatables */
void bind_core(lua_State *L, const bind_reg *r);                             /* into C */
void bind_put(lua_State *L, const char *name, bool method, bool capturable); /* pops a function */

void bind_open_tensor(lua_State *L);
void bind_open_storage(lua_State *L);
void bind_open_index(lua_State *L);
void bind_open_view(lua_State *L);
void bind_open_forms(lua_State *L);
void bind_open_raw(lua_State *L);
void bind_open_multi(lua_State *L);
void bind_open_create(lua_State *L);
void bind_open_random(lua_State *L);
void bind_open_grad(lua_State *L);
void bind_open_facts(lua_State *L);
void bind_open_guard(lua_State *L);
void bind_open_history(lua_State *L);
void bind_open_file(lua_State *L);
void bind_open_os(lua_State *L);
void bind_open_thread(lua_State *L);
int bind_cuda_storage(lua_State *L);
void bind_push_constructor(lua_State *L, rl_dtype dt, rl_device dev);
void bind_open_cuda(lua_State *L);
void bind_open_graph(lua_State *L); /* lib/bind/graph.c */
void bind_open_plan(lua_State *L);  /* lib/bind/plan.c */

int bind_index(lua_State *L); /* tensor __index for keys that are no strings */
int bind_newindex(lua_State *L);
#endif
