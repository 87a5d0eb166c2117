/* Core of the binding: module entry, boxes, errors, arguments, results, the collector's share of native memory.
 * Lua values -> rl_tensor pointers -> rl_call -> Lua values. */
#include "bind.h"
#include "../runtime/cuda.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

const char bind_tag_tensor = 't', bind_tag_storage = 's', bind_tag_gen = 'g';

/* Errors ---------------------------------------------------------------------------------------------------------------------- */

/* Raises the core's message at the caller's line; a missing value of a fake tensor gets the prefix that capture looks for. */
int bind_raise(lua_State *L, rl_status s) { return luaL_error(L, s == RL_NODATA ? "[capture] needs values: %s" : "%s", rl_error_message()); }

static const char *describe(lua_State *L, int i, char buf[256]) {
  rl_tensor *t = bind_totensor(L, i);
  if (t) {
    rl_shape_str(t, buf);
    return buf;
  }
  if (bind_tostorage(L, i)) return "storage";
  return lua_isnone(L, i) ? "no value" : luaL_typename(L, i);
}

/* Name of the running function: as it was called, or as it was registered (in tail calls and under pcall nothing names it). */
static const char *running(lua_State *L) {
  lua_Debug ar;
  if (!lua_getstack(L, 0, &ar) || !lua_getinfo(L, "nf", &ar)) return "?";
  if (ar.name) return ar.name;
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CAPTURABLE);
  lua_pushvalue(L, -2);
  lua_rawget(L, -2);
  const char *name = lua_tostring(L, -1);
  return name ? name : "?";
}

/* Raises "[op] argument i; got A, need B". */
int bind_argerror(lua_State *L, int i, const char *need) {
  char buf[256];
  const char *got = describe(L, i, buf);
  return luaL_error(L, "[%s] argument %d; got %s, need %s", running(L), i, got, need);
}

/* Arguments ------------------------------------------------------------------------------------------------------------------- */

rl_tensor *bind_tensor(lua_State *L, int i) {
  rl_tensor *t = bind_totensor(L, i);
  if (!t) bind_argerror(L, i, "tensor");
  return t;
}

rl_storage *bind_storage(lua_State *L, int i) {
  rl_storage *s = bind_tostorage(L, i);
  if (!s) bind_argerror(L, i, "storage");
  return s;
}

bool bind_isnumber(lua_State *L, int i) { return lua_type(L, i) == LUA_TNUMBER; }

bool bind_isscalar(lua_State *L, int i) {
  rl_tensor *t;
  return bind_isnumber(L, i) || ((t = bind_totensor(L, i)) && t->ndim == 0);
}

/* The tensor at i, or the number at i as a weak tensor kept in n. */
rl_tensor *bind_operand(lua_State *L, int i, rl_number *n) {
  if (lua_type(L, i) == LUA_TNUMBER) return rl_number_set(n, lua_tonumber(L, i));
  rl_tensor *t = bind_totensor(L, i);
  if (!t) bind_argerror(L, i, "tensor or number");
  return t;
}

double bind_number(lua_State *L, int i) {
  double v = 0;
  rl_tensor *t;
  if (lua_isnumber(L, i)) return lua_tonumber(L, i); /* strings of digits too, as Lua's own functions take them */
  if ((t = bind_totensor(L, i))) {
    BIND_TRY(L, rl_tensor_item(t, &v));
    return v;
  }
  bind_argerror(L, i, "number");
  return 0;
}

int64_t bind_int(lua_State *L, int i) { return (int64_t)bind_number(L, i); }

int bind_dim(lua_State *L, int i, const rl_tensor *t) {
  double number = bind_number(L, i);
  if (!(fabs(number) < 2147483648.0) || number != floor(number)) luaL_error(L, "[%s] dimension; got %f, need a whole number", running(L), number);
  int64_t d = (int64_t)number;
  int nd = t->ndim;
  if (d < 0) d += nd + 1;
  if (d < 1 || d > RL_MAX(nd, 1)) {
    char buf[256];
    int got = (int)bind_int(L, i);
    luaL_error(L, "[%s] dimension out of range; got %d for %s, need 1 to %d", running(L), got, rl_shape_str(t, buf), bind_ndim(t));
  }
  return (int)d - 1;
}

static int sizes_check(lua_State *L, int64_t n) {
  if (n > RL_MAXDIM) luaL_error(L, "[size] too many dimensions; got %d, need at most %d", (int)n, RL_MAXDIM);
  return (int)n;
}

/* Sizes: numbers from argument i on, or one LongStorage, or one table. No sizes at all give {0}. */
int bind_sizes(lua_State *L, int i, int64_t *size) {
  rl_storage *s = bind_tostorage(L, i);
  int n = 0, top = lua_gettop(L);
  if (s) {
    if (s->dtype != RL_I64) bind_argerror(L, i, "LongStorage");
    bind_real(L, s, "size");
    n = sizes_check(L, s->size);
    if (n) memcpy(size, s->data, (size_t)n * sizeof *size);
  } else if (lua_istable(L, i)) {
    n = sizes_check(L, (int64_t)lua_objlen(L, i));
    for (int k = 0; k < n; k++) {
      lua_rawgeti(L, i, k + 1);
      if (!lua_isnumber(L, -1)) bind_argerror(L, i, "table of sizes");
      size[k] = (int64_t)lua_tonumber(L, -1);
      lua_pop(L, 1);
    }
  } else {
    n = sizes_check(L, RL_MAX(top - i + 1, 0));
    for (int k = 0; k < n; k++) size[k] = bind_int(L, i + k);
  }
  if (n == 0) {
    size[0] = 0;
    n = 1;
  }
  return n;
}

static const struct {
  const char *name;
  rl_dtype dt;
  rl_device dev;
} cuda_names[] = { { "CudaByte", RL_U8, RL_CUDA },       { "CudaChar", RL_I8, RL_CUDA },  { "CudaShort", RL_I16, RL_CUDA },
                   { "CudaInt", RL_I32, RL_CUDA },       { "CudaLong", RL_I64, RL_CUDA }, { "CudaHalf", RL_F16, RL_CUDA },
                   { "CudaBFloat16", RL_BF16, RL_CUDA }, { "Cuda", RL_F32, RL_CUDA },     { "CudaDouble", RL_F64, RL_CUDA } };

/* 'Float', 'float', 'torch.FloatTensor' or 'torch.FloatStorage' -> dtype and device; false: no such type. */
bool bind_parse_dtype(const char *s, rl_dtype *dt, rl_device *dev, bool *storage) {
  char base[32];
  if (strncmp(s, "torch.", 6) == 0) s += 6;
  size_t n = strlen(s);
  bool st = n > 7 && strcmp(s + n - 7, "Storage") == 0;
  if (storage) *storage = st;
  if (st) n -= 7;
  else if (n > 6 && strcmp(s + n - 6, "Tensor") == 0) n -= 6;
  if (n == 0 || n >= sizeof base) return false;
  memcpy(base, s, n);
  base[n] = 0;
  if (base[0] >= 'a' && base[0] <= 'z') base[0] = (char)(base[0] - 'a' + 'A');
  if (strcmp(base, "Bfloat16") == 0) strcpy(base, "BFloat16");
  for (int k = 0; k < RL_NDTYPE; k++)
    if (strcmp(base, rl_dtypes[k].name) == 0) {
      *dt = (rl_dtype)k;
      *dev = RL_CPU;
      return true;
    }
  for (size_t k = 0; k < sizeof cuda_names / sizeof *cuda_names; k++)
    if (strcmp(base, cuda_names[k].name) == 0) {
      *dt = cuda_names[k].dt;
      *dev = cuda_names[k].dev;
      return true;
    }
  return false;
}

void bind_type_name(char buf[64], rl_dtype dt, rl_device dev, const char *kind) {
  bool plain = dev == RL_CUDA && dt == RL_F32; /* torch.CudaTensor holds floats */
  snprintf(buf, 64, "torch.%s%s%s", dev == RL_CUDA ? "Cuda" : "", plain ? "" : rl_dtypes[dt].name, kind);
}

rl_dtype bind_dtype(lua_State *L, int i) {
  rl_dtype dt = RL_F64;
  rl_device dev;
  if (lua_isnumber(L, i)) return (rl_dtype)lua_tointeger(L, i);
  if (!lua_isstring(L, i) || !bind_parse_dtype(lua_tostring(L, i), &dt, &dev, NULL)) bind_argerror(L, i, "name of a tensor type");
  return dt;
}

/* Results --------------------------------------------------------------------------------------------------------------------- */

static int push_box(lua_State *L, const char *tag, void *p, int key) {
  bind_box *b = (bind_box *)lua_newuserdata(L, sizeof *b);
  b->tag = tag;
  b->p = p;
  lua_rawgeti(L, LUA_REGISTRYINDEX, key);
  lua_setmetatable(L, -2);
  return 1;
}

int bind_push_result(lua_State *L, rl_tensor *t) {
  if (!t) return bind_raise(L, RL_ERR);
  int64_t bytes = 256;
  if (t->storage && __atomic_load_n(&t->storage->refs, __ATOMIC_RELAXED) == 1) bytes += t->storage->size * rl_dtypes[t->dtype].bytes;
  push_box(L, &bind_tag_tensor, t, BIND_MT_TENSOR(t->dtype, t->device));
  bind_debt(bytes);
  return 1;
}

int bind_push_tensor(lua_State *L, rl_tensor *t) {
  bind_push_result(L, t);
  bind_pressure(L, 0);
  return 1;
}

int bind_push_storage(lua_State *L, rl_storage *s) {
  if (!s) return bind_raise(L, RL_ERR);
  push_box(L, &bind_tag_storage, s, BIND_MT_STORAGE(s->dtype, s->device));
  bind_pressure(L, __atomic_load_n(&s->refs, __ATOMIC_RELAXED) == 1 ? s->size * rl_dtypes[s->dtype].bytes + 64 : 64);
  return 1;
}

/* A full reduction's result: a number; on the tape or while recording the rank-0 tensor. */
int bind_push_scalar(lua_State *L, rl_tensor *t) {
  double v;
  if (rl_is_fake(t)) t->flags |= RL_T_NUMBER;
  else if (!rl_requires_grad(t)) {
    rl_status s = rl_tensor_item(t, &v);
    rl_tensor_release(t);
    if (s != RL_OK) return bind_raise(L, s);
    lua_pushnumber(L, v);
    return 1;
  }
  return bind_push_tensor(L, t);
}

/* New LongStorage with the n values; never fake, whatever is being recorded. */
int bind_push_sizes(lua_State *L, int n, const int64_t *v) {
  struct rl_graph *g = rl_self.graph;
  rl_self.graph = NULL;
  rl_storage *s = rl_storage_new(RL_I64, RL_CPU, n);
  rl_self.graph = g;
  if (!s) return bind_raise(L, RL_OOM);
  if (n) memcpy(s->data, v, (size_t)n * sizeof *v);
  return bind_push_storage(L, s);
}

static rl_tensor *empty_once(rl_dtype dt, rl_device dev, int ndim, const int64_t *size) { return rl_tensor_empty(dt, dev, ndim, size); }

/* New contiguous tensor; out of memory collects and tries once more. */
rl_tensor *bind_new(lua_State *L, rl_dtype dt, rl_device dev, int ndim, const int64_t *size) {
  for (int d = 0; d < ndim; d++)
    if (size[d] < 0) luaL_error(L, "[new] negative size; got %d for dimension %d, need 0 or more", (int)size[d], d + 1);
  rl_tensor *t = empty_once(dt, dev, ndim, size);
  if (!t) {
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCCOLLECT, 0);
    t = empty_once(dt, dev, ndim, size);
  }
  if (!t) bind_raise(L, RL_OOM);
  return t;
}

/* Ops ------------------------------------------------------------------------------------------------------------------------- */

void bind_call(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out) {
  rl_status s = rl_call(op, in, nin, a, out);
  if (s == RL_OOM) {
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCCOLLECT, 0);
    s = rl_call(op, in, nin, a, out);
  }
  if (s != RL_OK) bind_raise(L, s);
}

rl_tensor *bind_op(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a) {
  rl_tensor *out[RL_MAXOUT] = { NULL };
  bind_call(L, op, in, nin, a, out);
  for (int k = 1; k < rl_ops[op].nout; k++)
    if (out[k]) rl_tensor_release(out[k]);
  return out[0];
}

static bool same_meta(const rl_tensor *t, const rl_meta *m) {
  if (t->ndim != m->ndim || !t->storage || t->dtype != m->dtype) return false;
  return m->ndim == 0 || memcmp(t->size, m->size, (size_t)m->ndim * sizeof *m->size) == 0;
}

static bool shares(rl_tensor *t, rl_tensor *const *in, int nin) {
  for (int k = 0; k < nin; k++)
    if (in[k] && in[k]->storage && in[k]->storage == t->storage) return true;
  return false;
}

/* The result goes to res[k] by way of a new tensor: res is an input of another shape, or of another type. */
static void into_by_copy(lua_State *L, rl_tensor *res, rl_tensor *v) {
  rl_status s = rl_same_shape(res, v) && res->storage ? RL_OK : rl_tensor_resize(res, v->ndim, v->size);
  if (s == RL_OK) {
    bind_push_tensor(L, v);
    bind_copy(L, res, v);
    lua_pop(L, 1);
  } else {
    rl_tensor_release(v);
    bind_raise(L, s);
  }
}

/* Writes the op's results into res[0 .. nout-1], resized to what the shape rule says. */
void bind_into(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *res) {
  rl_meta m[RL_MAXOUT];
  int nout = rl_ops[op].nout;
  rl_tensor *out[RL_MAXOUT] = { NULL };
  if (!rl_ops[op].shape && !rl_ops[op].view) { /* expanded when called: shapes are known afterwards */
    bind_call(L, op, in, nin, a, out);
    for (int k = 0; k < nout; k++) into_by_copy(L, res[k], out[k]);
    return;
  }
  BIND_TRY(L, rl_infer(op, in, nin, a, m));
  bool tmp[RL_MAXOUT];
  for (int k = 0; k < nout; k++) {
    tmp[k] = res[k]->dtype != m[k].dtype || (!same_meta(res[k], &m[k]) && shares(res[k], in, nin));
    if (!tmp[k] && !same_meta(res[k], &m[k])) BIND_TRY(L, rl_tensor_resize(res[k], m[k].ndim, m[k].size));
    if (!tmp[k]) out[k] = res[k];
  }
  bind_call(L, op, in, nin, a, out);
  for (int k = 0; k < nout; k++)
    if (tmp[k]) into_by_copy(L, res[k], out[k]);
}

/* The collector --------------------------------------------------------------------------------------------------------------- */

/* The collector sees 16 bytes a tensor. Native bytes made since the last cycle are its work order: a whole cycle's worth of steps for every
 * `budget` bytes, a full collection when live memory still grew by twice that. The budget is what was live after the last cycle, but 32 MB at
 * least, and from 64 MB on a quarter of it: a cycle costs some milliseconds, garbage as large as a big model would cost its memory again. */
static RL_TLS int64_t gc_debt, gc_since, gc_live;

/* Bytes that live tensors hold, on the host and on GPUs. */
static int64_t live_bytes(void) {
  rl_mem_stats st;
  rl_cuda_stats there;
  rl_mem_get(&st);
  rl_cuda_mem_get(&there);
  return st.live + there.live;
}

static void pressure_step(lua_State *L) {
  int64_t budget = RL_MAX(gc_live / 4, RL_MAX(RL_MIN(gc_live, (int64_t)64 << 20), (int64_t)32 << 20)), heap = lua_gc(L, LUA_GCCOUNT, 0);
  gc_since += gc_debt;
  bool full = live_bytes() - gc_live > budget * 2;
  int64_t work = (int64_t)((double)heap * 2 * (double)gc_debt / (double)budget) + 1;
  gc_debt = 0;
  if (full) lua_gc(L, LUA_GCCOLLECT, 0);
  else if (!lua_gc(L, LUA_GCSTEP, (int)RL_MIN(work, 1 << 20))) return;
  gc_live = live_bytes();
  gc_since = 0;
}

/* Native bytes behind new boxes; negative: they are gone already. */
void bind_debt(int64_t bytes) { gc_debt = RL_MAX(0, gc_debt + bytes); }

/* Called for every new box with the native bytes behind it. */
void bind_pressure(lua_State *L, int64_t bytes) {
  gc_debt += bytes;
  if (gc_debt >= (4 << 20)) pressure_step(L);
}

/* Registration ---------------------------------------------------------------------------------------------------------------- */

static void capturable(lua_State *L, const char *name) { /* function on top */
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CAPTURABLE);
  lua_pushvalue(L, -2);
  lua_pushstring(L, name);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

/* Pops a function and stores it as torch.<name>, or as a method of every tensor type. */
void bind_put(lua_State *L, const char *name, bool method, bool cap) {
  int fn = lua_gettop(L);
  if (cap) capturable(L, name);
  if (method) {
    for (int dt = 0; dt < RL_NDTYPE; dt++) {
      lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_MT_TENSOR(dt, RL_CPU));
      lua_pushvalue(L, fn);
      lua_setfield(L, -2, name);
      lua_pop(L, 1);
    }
  } else {
    lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
    lua_getfield(L, -1, "torch");
    lua_pushvalue(L, fn);
    lua_setfield(L, -2, name);
    lua_pop(L, 2);
  }
  lua_pop(L, 1);
}

void bind_functions(lua_State *L, const bind_reg *r, bool cap) {
  for (; r->name; r++) {
    lua_pushcfunction(L, r->fn);
    bind_put(L, r->name, false, cap);
  }
}

void bind_methods(lua_State *L, const bind_reg *r, bool cap) {
  for (; r->name; r++) {
    lua_pushcfunction(L, r->fn);
    bind_put(L, r->name, true, cap);
  }
}

void bind_core(lua_State *L, const bind_reg *r) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  for (; r->name; r++) {
    lua_pushcfunction(L, r->fn);
    lua_setfield(L, -2, r->name);
  }
  lua_pop(L, 1);
}

/* Metatables ------------------------------------------------------------------------------------------------------------------ */

static int tensor_gc(lua_State *L) {
  bind_box *b = (bind_box *)lua_touserdata(L, 1);
  if (b->p) rl_tensor_release((rl_tensor *)b->p);
  b->p = NULL;
  b->tag = NULL;
  return 0;
}

static int storage_gc(lua_State *L) {
  bind_box *b = (bind_box *)lua_touserdata(L, 1);
  if (b->p) rl_storage_release((rl_storage *)b->p);
  b->p = NULL;
  b->tag = NULL;
  return 0;
}

/* Metatable of one type: C.metatables[name] and the fixed registry key. The table of metatables is on top. */
static void new_metatable(lua_State *L, const char *suffix, int dt, int key, lua_CFunction gc) {
  lua_newtable(L);
  lua_pushfstring(L, "torch.%s%s", rl_dtypes[dt].name, suffix);
  lua_setfield(L, -2, "__typename");
  lua_pushcfunction(L, gc);
  lua_setfield(L, -2, "__gc");
  lua_pushinteger(L, 1);
  lua_setfield(L, -2, "__version");
  lua_pushfstring(L, "torch.%s%s", rl_dtypes[dt].name, suffix);
  lua_pushvalue(L, -2);
  lua_rawset(L, -4);
  lua_rawseti(L, LUA_REGISTRYINDEX, key);
}

static void open_metatables(lua_State *L) { /* C on top */
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "metatables");
  for (int dt = 0; dt < RL_NDTYPE; dt++) {
    new_metatable(L, "Tensor", dt, BIND_MT_TENSOR(dt, RL_CPU), tensor_gc);
    new_metatable(L, "Storage", dt, BIND_MT_STORAGE(dt, RL_CPU), storage_gc);
  }
  lua_pop(L, 1);
}

#pragma weak bind_open_graph
#pragma weak bind_open_plan

RL_API int luaopen_relume_core(lua_State *L) {
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawseti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_newtable(L);
  lua_setfield(L, -2, "torch");
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawseti(L, LUA_REGISTRYINDEX, BIND_KEY_CAPTURABLE);
  lua_setfield(L, -2, "capturable");
  open_metatables(L);
  bind_open_tensor(L);
  bind_open_storage(L);
  bind_open_index(L);
  bind_open_view(L);
  bind_open_create(L);
  bind_open_forms(L);
  bind_open_raw(L);
  bind_open_multi(L);
  bind_open_random(L);
  bind_open_grad(L);
  bind_open_facts(L);
  bind_open_guard(L);
  bind_open_history(L);
  bind_open_file(L);
  bind_open_os(L);
  bind_open_thread(L);
  bind_open_cuda(L);
  if (bind_open_graph) bind_open_graph(L);
  if (bind_open_plan) bind_open_plan(L);
  lua_settop(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  return 1;
}
