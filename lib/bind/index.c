/* Indexing: x[i], x[{a, {b, c}, {}}], x[mask], and assignment to them.
 * key -> view (or number) -> result or copy. */
#include "bind.h"

/* Position from 0 of a Lua index that may count from the end. */
static int64_t place(lua_State *L, const rl_tensor *t, int d, double v) {
  char buf[256];
  int64_t n = t->size[d], k = (int64_t)v;
  if (k < 0) k += n + 1;
  if (k < 1 || k > n || (double)(int64_t)v != v)
    luaL_error(L, "[index] index out of range; got %f in dimension %d of %s, need 1 to %d", v, d + 1, rl_shape_str(t, buf), (int)n);
  return k - 1;
}

static int need_dims(lua_State *L, const rl_tensor *t, int n) {
  char buf[256];
  if (bind_ndim(t) < n) luaL_error(L, "[index] too many indices; got %d for %s, need at most %d", n, rl_shape_str(t, buf), bind_ndim(t));
  return n;
}

/* The view under construction lives in the box on top of the stack: an error leaks nothing. */
static rl_tensor *replace(bind_box *b, rl_tensor *t) {
  rl_tensor_release((rl_tensor *)b->p);
  b->p = t;
  return t;
}

static bind_box *start(lua_State *L, rl_tensor *x) {
  bind_push_tensor(L, rl_tensor_retain(x));
  return (bind_box *)lua_touserdata(L, -1);
}

/* One entry {..} of a key table: all, one kept, or a range. */
static rl_tensor *apply_range(lua_State *L, bind_box *b, int d) { /* table on top */
  rl_tensor *t = (rl_tensor *)b->p;
  int n = (int)lua_objlen(L, -1);
  if (n == 0) return t;
  lua_rawgeti(L, -1, 1);
  lua_rawgeti(L, -2, n >= 2 ? 2 : 1);
  if (!lua_isnumber(L, -1) || !lua_isnumber(L, -2)) luaL_error(L, "[index] range; got %s, need numbers", luaL_typename(L, -1));
  int64_t lo = place(L, t, d, lua_tonumber(L, -2)), hi = place(L, t, d, lua_tonumber(L, -1));
  lua_pop(L, 2);
  if (hi < lo) luaL_error(L, "[index] empty range; got %d to %d, need first <= last", (int)lo + 1, (int)hi + 1);
  return replace(b, bind_narrow(L, t, d, lo, hi - lo + 1));
}

/* View for the table at index i, pushed; true when all dimensions were selected. */
static rl_tensor *table_view(lua_State *L, rl_tensor *x, int i) {
  int n = need_dims(L, x, (int)lua_objlen(L, i)), d = 0;
  bind_box *b = start(L, x);
  rl_tensor *t = x;
  for (int k = 1; k <= n; k++) {
    lua_rawgeti(L, i, k);
    if (lua_isnumber(L, -1)) t = replace(b, bind_select(L, t, d, place(L, t, d, lua_tonumber(L, -1))));
    else if (lua_istable(L, -1)) t = apply_range(L, b, d++);
    else luaL_error(L, "[index] entry %d of the table; got %s, need number or range", k, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  return t;
}

/* View for a LongStorage of indices, one a dimension, pushed. */
static rl_tensor *storage_view(lua_State *L, rl_tensor *x, const rl_storage *s) {
  bind_box *b = start(L, x);
  rl_tensor *t = x;
  if (s->dtype != RL_I64 || s->size != bind_ndim(x))
    luaL_error(L, "[index] storage key; got %d entries, need a LongStorage of %d", (int)s->size, bind_ndim(x));
  bind_real(L, s, "index");
  for (int64_t k = 0; k < s->size; k++) t = replace(b, bind_select(L, t, 0, place(L, t, 0, (double)((int64_t *)s->data)[k])));
  return t;
}

/* Pushes the view a key stands for; rank 0 when all dimensions were selected. */
static rl_tensor *key_view(lua_State *L, rl_tensor *x) {
  rl_storage *s;
  if (lua_type(L, 2) == LUA_TNUMBER) {
    need_dims(L, x, 1);
    rl_tensor *t = bind_select(L, x, 0, place(L, x, 0, lua_tonumber(L, 2)));
    bind_push_tensor(L, t);
    return t;
  }
  if (lua_istable(L, 2)) return table_view(L, x, 2);
  if ((s = bind_tostorage(L, 2))) return storage_view(L, x, s);
  bind_argerror(L, 2, "number, table, Byte mask or LongStorage");
  return NULL;
}

static int push_element(lua_State *L, rl_tensor *view) {
  if (bind_plain(view)) {
    lua_pushnumber(L, bind_load(view, view->offset));
    return 1;
  }
  return bind_push_scalar(L, bind_clone(L, view)); /* a number keeps its value when x changes later */
}

static rl_tensor *mask_at(lua_State *L, int i) {
  rl_tensor *m = bind_totensor(L, i);
  if (m && m->dtype != RL_U8) bind_argerror(L, i, "Byte mask");
  return m;
}

/* x[key] for keys that are no strings. */
int bind_index(lua_State *L) {
  rl_tensor *x = bind_tensor(L, 1);
  if (lua_type(L, 2) == LUA_TNUMBER && x->ndim == 1 && bind_plain(x)) {
    need_dims(L, x, 1);
    lua_pushnumber(L, bind_load(x, x->offset + place(L, x, 0, lua_tonumber(L, 2)) * x->stride[0]));
    return 1;
  }
  if (mask_at(L, 2)) {
    lua_getfield(L, 1, "maskedSelect");
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_call(L, 2, 1);
    return 1;
  }
  rl_tensor *t = key_view(L, x);
  return t->ndim == 0 && x->ndim > 0 ? push_element(L, t) : 1;
}

static int assign_mask(lua_State *L) {
  lua_getfield(L, 1, bind_isscalar(L, 3) ? "maskedFill" : "maskedCopy");
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 3);
  lua_call(L, 3, 0);
  return 0;
}

/* x[key] = number or tensor. */
int bind_newindex(lua_State *L) {
  rl_tensor *x = bind_tensor(L, 1), *v;
  rl_number n;
  if (lua_type(L, 2) == LUA_TNUMBER && x->ndim == 1 && lua_type(L, 3) == LUA_TNUMBER && bind_plain(x)) {
    need_dims(L, x, 1);
    bind_store(x, x->offset + place(L, x, 0, lua_tonumber(L, 2)) * x->stride[0], lua_tonumber(L, 3));
    x->storage->version++;
    return 0;
  }
  if (mask_at(L, 2)) return assign_mask(L);
  if (!bind_totensor(L, 3) && lua_type(L, 3) != LUA_TNUMBER) return bind_argerror(L, 3, "number or tensor");
  rl_tensor *t = key_view(L, x);
  v = bind_operand(L, 3, &n);
  if (v->ndim == 0 || (t->ndim == 0 && rl_numel(v) == 1)) bind_fill(L, t, v);
  else bind_copy(L, t, v);
  return 0;
}

/* __index: strings are methods (upvalue 1: the metatable), everything else an index. */
static int tensor_index(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return bind_index(L);
  lua_settop(L, 2);
  lua_gettable(L, lua_upvalueindex(1));
  return 1;
}

void bind_open_index(lua_State *L) {
  static const bind_reg put[] = { { "__newindex", bind_newindex }, { NULL, NULL } };
  bind_methods(L, put, true);
  for (int dt = 0; dt < RL_NDTYPE; dt++) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_MT_TENSOR(dt, RL_CPU));
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, tensor_index, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__index");
    lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CAPTURABLE);
    lua_insert(L, -2);
    lua_pushliteral(L, "__index");
    lua_rawset(L, -3);
    lua_pop(L, 2);
  }
}
