/* Tensors: constructors and the methods that are not ops (shape queries, resize, set, storage, conversion to Lua).
 * Lua arguments -> rl_tensor_* calls. */
#include "bind.h"
#include "../runtime/cuda.h"
#include "../graph/graph.h"
#include <string.h>

/* Constructors ---------------------------------------------------------------------------------------------------------------- */

typedef struct fill_ctx {
  rl_dtype dt;
  int ndim;
  int64_t size[RL_MAXDIM];
  char *p;
  int bytes;
} fill_ctx;

static void table_sizes(lua_State *L, int i, fill_ctx *c) {
  c->ndim = 0;
  lua_pushvalue(L, i);
  while (lua_istable(L, -1)) {
    if (c->ndim == RL_MAXDIM) luaL_error(L, "[new] table too deep; got more than %d levels, need at most %d", RL_MAXDIM, RL_MAXDIM);
    c->size[c->ndim++] = (int64_t)lua_objlen(L, -1);
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
  }
  lua_pop(L, 1);
}

static void table_fill(lua_State *L, int depth, fill_ctx *c) { /* table on top */
  if (!lua_istable(L, -1) || (int64_t)lua_objlen(L, -1) != c->size[depth])
    luaL_error(L, "[new] ragged table; got %s at level %d, need a table of %d", luaL_typename(L, -1), depth + 1, (int)c->size[depth]);
  for (int64_t k = 1; k <= c->size[depth]; k++) {
    lua_rawgeti(L, -1, (int)k);
    if (depth + 1 < c->ndim) table_fill(L, depth + 1, c);
    else {
      if (!lua_isnumber(L, -1)) luaL_error(L, "[new] table element; got %s, need number", luaL_typename(L, -1));
      bind_store_as(c->dt, c->p, lua_tonumber(L, -1));
      c->p += c->bytes;
    }
    lua_pop(L, 1);
  }
}

static int new_from_table(lua_State *L, rl_dtype dt, rl_device dev, int i) {
  fill_ctx c = { .dt = dt, .bytes = rl_dtypes[dt].bytes };
  table_sizes(L, i, &c);
  for (int d = 0; d < c.ndim; d++)
    if (c.size[d] == 0) {
      c.ndim = 1;
      c.size[0] = 0;
    }
  struct rl_graph *g = rl_self.graph;
  rl_self.graph = NULL;
  rl_tensor *t = rl_tensor_empty(dt, RL_CPU, c.ndim, c.size);
  rl_self.graph = g;
  bind_push_tensor(L, t);
  if (c.size[0]) {
    c.p = (char *)rl_data(t);
    lua_pushvalue(L, i);
    table_fill(L, 0, &c);
    lua_pop(L, 1);
  }
  if (dev != RL_CPU) return bind_push_tensor(L, rl_cuda_to(t, dt, dev));
  if (!g) return 1;
  rl_tensor *held = rl_graph_constant(g, t); /* held by the graph; the program may write to its copy */
  bind_push_tensor(L, held);
  return bind_push_tensor(L, bind_clone(L, held));
}

/* Geometry from (offset, sizes, strides) at i: LongStorages, or size/stride pairs. */
static void read_geom(lua_State *L, int i, const rl_storage *s, rl_geom *g) {
  int top = lua_gettop(L);
  rl_storage *sz = bind_tostorage(L, i + 1), *st = bind_tostorage(L, i + 2);
  bool tab = lua_istable(L, i + 1);
  g->offset = lua_isnoneornil(L, i) ? 0 : bind_int(L, i) - 1;
  g->ndim = 1;
  g->size[0] = s ? s->size - g->offset : 0;
  g->stride[0] = 1;
  if (lua_isnoneornil(L, i + 1)) return;
  if (sz || tab) {
    g->ndim = bind_sizes(L, i + 1, g->size);
    if (st || lua_istable(L, i + 2)) {
      if (bind_sizes(L, i + 2, g->stride) != g->ndim) bind_argerror(L, i + 2, "as many strides as sizes");
      return;
    }
    for (int d = 0; d < g->ndim; d++) g->stride[d] = -1;
  } else {
    for (g->ndim = 0; i + 1 + 2 * g->ndim <= top && g->ndim < RL_MAXDIM; g->ndim++) {
      int a = i + 1 + 2 * g->ndim;
      g->size[g->ndim] = bind_int(L, a);
      g->stride[g->ndim] = lua_isnoneornil(L, a + 1) ? -1 : bind_int(L, a + 1);
    }
  }
  int64_t step = 1;
  for (int d = g->ndim - 1; d >= 0; d--) {
    if (g->stride[d] < 0) g->stride[d] = step;
    step = g->size[d] * g->stride[d];
  }
}

static int new_from_storage(lua_State *L, rl_dtype dt, rl_device dev, int i, rl_storage *s) {
  rl_geom g;
  if (s->dtype != dt || s->device != dev)
    return luaL_error(L, "[new] storage of another type; got %s, need %s", rl_dtypes[s->dtype].name, rl_dtypes[dt].name);
  read_geom(L, i + 1, s, &g);
  return bind_push_tensor(L, rl_tensor_with(s, &g));
}

/* Pushes a new tensor from the arguments that start at i. */
static int new_tensor(lua_State *L, rl_dtype dt, rl_device dev, int i) {
  int64_t size[RL_MAXDIM], stride[RL_MAXDIM];
  rl_tensor *t = bind_totensor(L, i);
  rl_storage *s = bind_tostorage(L, i);
  if (t) {
    if (t->dtype != dt || t->device != dev) return bind_argerror(L, i, rl_dtypes[dt].name);
    return bind_push_tensor(L, rl_tensor_alias(t));
  }
  if (s && (s->dtype == dt || s->dtype != RL_I64)) return new_from_storage(L, dt, dev, i, s);
  if (s && bind_tostorage(L, i + 1)) { /* sizes and strides */
    rl_geom g = { .ndim = bind_sizes(L, i, size) };
    if (bind_sizes(L, i + 1, stride) != g.ndim) return bind_argerror(L, i + 1, "as many strides as sizes");
    int64_t span = 1;
    for (int d = 0; d < g.ndim; d++) {
      g.size[d] = size[d];
      g.stride[d] = stride[d];
      span += (size[d] - 1) * stride[d];
    }
    s = rl_storage_new(dt, dev, RL_MAX(span, 0));
    if (!s) return bind_raise(L, RL_OOM);
    t = rl_tensor_with(s, &g);
    rl_storage_release(s);
    return bind_push_tensor(L, t);
  }
  if (lua_istable(L, i)) return new_from_table(L, dt, dev, i);
  if (lua_isnil(L, i) && lua_gettop(L) == i) lua_settop(L, i - 1);
  if (lua_isstring(L, i) && !lua_isnumber(L, i)) return bind_argerror(L, i, "sizes, table, storage or tensor");
  int nd = bind_sizes(L, i, size);
  return bind_push_tensor(L, bind_new(L, dt, dev, nd, size));
}

/* torch.FloatTensor(...): upvalue 1 holds the type. */
static int construct(lua_State *L) {
  int code = (int)lua_tointeger(L, lua_upvalueindex(1));
  return new_tensor(L, (rl_dtype)(code & 31), (rl_device)(code >> 5), 1);
}

static int tensor_new(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  return new_tensor(L, (rl_dtype)t->dtype, (rl_device)t->device, 2);
}

/* Shape queries --------------------------------------------------------------------------------------------------------------- */

static int size_or_stride(lua_State *L, const int64_t *v) {
  rl_tensor *t = bind_tensor(L, 1);
  if (lua_isnoneornil(L, 2)) return bind_push_sizes(L, bind_ndim(t), v);
  lua_pushnumber(L, (lua_Number)v[bind_dim(L, 2, t)]);
  return 1;
}

static int tensor_size(lua_State *L) { return size_or_stride(L, bind_tensor(L, 1)->size); }
static int tensor_stride(lua_State *L) { return size_or_stride(L, bind_tensor(L, 1)->stride); }
static int tensor_len(lua_State *L) {
  lua_settop(L, 1);
  return tensor_size(L);
}

static int tensor_dim(lua_State *L) {
  lua_pushinteger(L, bind_ndim(bind_tensor(L, 1)));
  return 1;
}

static int tensor_numel(lua_State *L) {
  lua_pushnumber(L, (lua_Number)rl_numel(bind_tensor(L, 1)));
  return 1;
}

static int tensor_contiguous_p(lua_State *L) {
  lua_pushboolean(L, rl_is_contiguous(bind_tensor(L, 1)));
  return 1;
}

static int tensor_same_size(lua_State *L) {
  rl_tensor *a = bind_tensor(L, 1), *b = bind_tensor(L, 2);
  lua_pushboolean(L, rl_same_shape(a, b));
  return 1;
}

static int tensor_is_size(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  int64_t size[RL_MAXDIM];
  int nd = bind_sizes(L, 2, size);
  lua_pushboolean(L, nd == t->ndim && memcmp(size, t->size, (size_t)nd * sizeof *size) == 0);
  return 1;
}

static int tensor_is_set_to(lua_State *L) {
  lua_pushboolean(L, rl_is_set_to(bind_tensor(L, 1), bind_tensor(L, 2)));
  return 1;
}

static int tensor_element_size(lua_State *L) {
  lua_pushinteger(L, rl_dtypes[bind_tensor(L, 1)->dtype].bytes);
  return 1;
}

static int tensor_storage_offset(lua_State *L) {
  lua_pushnumber(L, (lua_Number)bind_tensor(L, 1)->offset + 1);
  return 1;
}

static int tensor_storage(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  if (!t->storage || (t->storage->size == 0 && bind_ndim(t) == 0)) {
    lua_pushnil(L);
    return 1;
  }
  return bind_push_storage(L, rl_storage_retain(t->storage));
}

/* Changing geometry ----------------------------------------------------------------------------------------------------------- */

static int tensor_resize(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  int64_t size[RL_MAXDIM];
  int nd = bind_sizes(L, 2, size);
  for (int d = 0; d < nd; d++)
    if (size[d] < 0) return luaL_error(L, "[resize] negative size; got %d for dimension %d, need 0 or more", (int)size[d], d + 1);
  rl_status s = rl_tensor_resize(t, nd, size);
  if (s == RL_OOM) {
    lua_gc(L, LUA_GCCOLLECT, 0);
    s = rl_tensor_resize(t, nd, size);
  }
  if (s != RL_OK) return bind_raise(L, s);
  lua_settop(L, 1);
  return 1;
}

static int tensor_resize_as(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1), *u = bind_tensor(L, 2);
  if (!rl_same_shape(t, u) || !t->storage) BIND_TRY(L, rl_tensor_resize(t, u->ndim, u->size));
  lua_settop(L, 1);
  return 1;
}

static void set_to_tensor(lua_State *L, rl_tensor *t, rl_tensor *u) {
  rl_geom g = { .ndim = u->ndim, .offset = u->offset };
  if (t->dtype != u->dtype || t->device != u->device) bind_argerror(L, 2, rl_dtypes[t->dtype].name);
  memcpy(g.size, u->size, sizeof g.size);
  memcpy(g.stride, u->stride, sizeof g.stride);
  BIND_TRY(L, rl_tensor_set(t, u->storage, &g));
}

/* x:set(tensor), x:set(storage, offset, sizes, strides), x:set(). */
static int tensor_set(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1), *u = bind_totensor(L, 2);
  rl_storage *s = bind_tostorage(L, 2);
  rl_geom g = { .ndim = 1 };
  if (u) {
    if (u != t) set_to_tensor(L, t, u);
  } else if (s) {
    if (s->dtype != t->dtype || s->device != t->device) return bind_argerror(L, 2, rl_dtypes[t->dtype].name);
    read_geom(L, 3, s, &g);
    BIND_TRY(L, rl_tensor_set(t, s, &g));
  } else {
    if (!lua_isnoneornil(L, 2)) return bind_argerror(L, 2, "tensor or storage");
    g.stride[0] = 1;
    BIND_TRY(L, rl_tensor_set(t, NULL, &g));
  }
  lua_settop(L, 1);
  return 1;
}

/* C.setAll(t1, y1, t2, y2, ...): t:set(y) for each pair, in one call after a plan has run. */
static int core_set_all(lua_State *L) {
  for (int k = 1, n = lua_gettop(L); k < n; k += 2) {
    rl_tensor *t = bind_tensor(L, k), *u = bind_tensor(L, k + 1);
    if (t != u) set_to_tensor(L, t, u);
  }
  return 0;
}

/* C.dropAll(y1, y2, ...): the tensors let go of their storages, unless C code shares them. */
static int core_drop_all(lua_State *L) {
  const rl_geom none = { .ndim = 1, .stride = { 1 } };
  for (int k = 1, n = lua_gettop(L); k <= n; k++) {
    rl_tensor *t = bind_tensor(L, k);
    if (t->refs != 1) continue;
    if (t->storage && t->storage->refs <= 2) bind_debt(-t->storage->size * rl_dtypes[t->dtype].bytes); /* what it replaced is free */
    BIND_TRY(L, rl_tensor_set(t, NULL, &none));
  }
  return 0;
}

/* Elements to Lua ------------------------------------------------------------------------------------------------------------- */

static int64_t totable_level(lua_State *L, const rl_tensor *t, int d, int64_t off) {
  luaL_checkstack(L, 3, "table too deep");
  lua_createtable(L, (int)t->size[d], 0);
  for (int64_t i = 0; i < t->size[d]; i++, off += t->stride[d]) {
    if (d + 1 < t->ndim) totable_level(L, t, d + 1, off);
    else lua_pushnumber(L, bind_load(t, off));
    lua_rawseti(L, -2, (int)i + 1);
  }
  return off;
}

/* Nested Lua tables of the elements. */
static int tensor_totable(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  bind_values(L, t, "totable");
  if (t->ndim == 0) {
    lua_pushnumber(L, bind_load(t, t->offset));
    return 1;
  }
  totable_level(L, t, 0, t->offset);
  return 1;
}

static int same_numel(lua_State *L, const rl_tensor *a, const rl_tensor *b, const char *what) {
  if (rl_numel(a) != rl_numel(b)) luaL_error(L, "[%s] element counts differ; got %d, need %d", what, (int)rl_numel(b), (int)rl_numel(a));
  return 1;
}

/* The function may have resized the tensor it is called for: every access is checked. */
static void inside(lua_State *L, const rl_tensor *t, int64_t off, const char *what) {
  if (!t->storage || !t->storage->data || off < 0 || off >= t->storage->size)
    luaL_error(L, "[%s] tensor changed by the function; got %d elements of storage, need it left alone", what,
               t->storage ? (int)t->storage->size : 0);
}

/* x:apply(f), x:map(y, f), x:map2(y, z, f): n tensors read, the first one written where f returns a number. */
static int map_n(lua_State *L, int n, const char *what) {
  rl_tensor *t[3];
  bind_walk w[3];
  for (int k = 0; k < n; k++) {
    t[k] = bind_tensor(L, k + 1);
    bind_values(L, t[k], what);
    same_numel(L, t[0], t[k], what);
    w[k] = bind_walk_start(t[k]);
  }
  if (!lua_isfunction(L, n + 1)) bind_argerror(L, n + 1, "function");
  for (; w[0].left > 0; bind_walk_next(&w[0])) {
    lua_pushvalue(L, n + 1);
    for (int k = 0; k < n; k++) {
      inside(L, t[k], w[k].off, what);
      lua_pushnumber(L, bind_load(t[k], w[k].off));
      if (k) bind_walk_next(&w[k]);
    }
    lua_call(L, n, 1);
    inside(L, t[0], w[0].off, what);
    if (lua_isnumber(L, -1)) bind_store(t[0], w[0].off, lua_tonumber(L, -1));
    else if (!lua_isnil(L, -1)) return luaL_error(L, "[%s] result of the function; got %s, need number or nil", what, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  bind_wrote(t[0]);
  lua_settop(L, 1);
  return 1;
}

static int tensor_apply(lua_State *L) { return map_n(L, 1, "apply"); }
static int tensor_map(lua_State *L) { return map_n(L, 2, "map"); }
static int tensor_map2(lua_State *L) { return map_n(L, 3, "map2"); }

/* True when shapes and all elements are equal. */
static int tensor_equal(lua_State *L) {
  rl_tensor *a = bind_tensor(L, 1), *b = bind_tensor(L, 2);
  bool eq = rl_same_shape(a, b);
  if (eq && a->dtype != b->dtype) return bind_argerror(L, 2, rl_dtypes[a->dtype].name);
  bind_values(L, a, "equal");
  bind_values(L, b, "equal");
  bind_walk w = bind_walk_start(a), v = bind_walk_start(b);
  for (; eq && w.left > 0; bind_walk_next(&w), bind_walk_next(&v)) eq = bind_load(a, w.off) == bind_load(b, v.off);
  lua_pushboolean(L, eq);
  return 1;
}

/* The address of the rl_tensor, as a number (Torch7's torch.pointer) or lightuserdata. */
static int core_pointer(lua_State *L) {
  const void *p = lua_topointer(L, 1);
  bind_box *b = (bind_box *)lua_touserdata(L, 1);
  if (b && lua_objlen(L, 1) == sizeof *b && (b->tag == &bind_tag_tensor || b->tag == &bind_tag_storage || b->tag == &bind_tag_gen)) p = b->p;
  if (!p && lua_type(L, 1) == LUA_TSTRING) p = lua_tostring(L, 1);
  if (!p) return bind_argerror(L, 1, "object");
  lua_pushnumber(L, (lua_Number)(uintptr_t)p);
  return 1;
}

/* C.data(t or s) -> lightuserdata of the first element, type name; C.cdata(t) -> lightuserdata of the core's object. */
static int core_data(lua_State *L) {
  rl_tensor *t = bind_totensor(L, 1);
  rl_storage *s = bind_tostorage(L, 1);
  if (!t && !s) return bind_argerror(L, 1, "tensor or storage");
  if (t) bind_values(L, t, "data");
  void *p = t ? rl_data(t) : s->data; /* most readers only look: the version stays, C.bumpVersion is there for writers */
  lua_pushlightuserdata(L, p);
  lua_pushstring(L, rl_dtypes[t ? t->dtype : s->dtype].ctype);
  return 2;
}

static int core_cdata(lua_State *L) {
  bind_box *b = (bind_box *)lua_touserdata(L, 1);
  if (!bind_totensor(L, 1) && !bind_tostorage(L, 1)) return bind_argerror(L, 1, "tensor or storage");
  lua_pushlightuserdata(L, b->p);
  return 1;
}

static int tensor_retain(lua_State *L) {
  rl_tensor_retain(bind_tensor(L, 1));
  return 0;
}
static int tensor_free(lua_State *L) {
  rl_tensor_release(bind_tensor(L, 1));
  return 0;
}

static const bind_reg shape_methods[] = { { "size", tensor_size },
                                          { "stride", tensor_stride },
                                          { "dim", tensor_dim },
                                          { "nDimension", tensor_dim },
                                          { "nElement", tensor_numel },
                                          { "numel", tensor_numel },
                                          { "isContiguous", tensor_contiguous_p },
                                          { "isSameSizeAs", tensor_same_size },
                                          { "isSize", tensor_is_size },
                                          { "isSetTo", tensor_is_set_to },
                                          { "elementSize", tensor_element_size },
                                          { "storageOffset", tensor_storage_offset },
                                          { "new", tensor_new },
                                          { "resize", tensor_resize },
                                          { "resizeAs", tensor_resize_as },
                                          { "set", tensor_set },
                                          { "__len", tensor_len },
                                          { NULL, NULL } };

static const bind_reg value_methods[] = { { "storage", tensor_storage }, { "totable", tensor_totable }, { "apply", tensor_apply },
                                          { "map", tensor_map },         { "map2", tensor_map2 },       { "equal", tensor_equal },
                                          { "retain", tensor_retain },   { "free", tensor_free },       { NULL, NULL } };

static const bind_reg functions[] = { { "numel", tensor_numel }, { NULL, NULL } };
static const bind_reg value_functions[] = { { "totable", tensor_totable }, { "equal", tensor_equal }, { NULL, NULL } };
static const bind_reg core[] = { { "pointer", core_pointer }, { "setAll", core_set_all }, { "dropAll", core_drop_all },
                                 { "data", core_data },       { "cdata", core_cdata },    { NULL, NULL } };

/* Pushes the constructor of a tensor type, which capture may call. */
void bind_push_constructor(lua_State *L, rl_dtype dt, rl_device dev) {
  lua_pushinteger(L, (int)dt | (int)dev << 5);
  lua_pushcclosure(L, construct, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CAPTURABLE);
  lua_pushvalue(L, -2);
  lua_pushstring(L, "new");
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

void bind_open_tensor(lua_State *L) {
  bind_methods(L, shape_methods, true);
  bind_methods(L, value_methods, false);
  bind_functions(L, functions, true);
  bind_functions(L, value_functions, false);
  bind_core(L, core);
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE); /* C.constructors['torch.FloatTensor'] = function */
  lua_newtable(L);
  for (int dt = 0; dt < RL_NDTYPE; dt++) {
    bind_push_constructor(L, (rl_dtype)dt, RL_CPU);
    lua_pushfstring(L, "torch.%sTensor", rl_dtypes[dt].name);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
    lua_pop(L, 1);
  }
  lua_setfield(L, -2, "constructors");
  lua_pop(L, 1);
}
