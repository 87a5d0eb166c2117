/* Raw spelling: C.op.NAME(inputs..., attributes...) for every row of the op table, dimensions counted from 0.
 * (Lua arguments, rl_op_info) -> rl_call. What modules of nn and the specs use. */
#include "bind.h"
#include <string.h>

static void read_list(lua_State *L, int i, rl_attrs *a, int slot) {
  rl_storage *s = bind_tostorage(L, i);
  if (s) {
    if (s->dtype != RL_I64 || s->size > RL_MAXDIM) bind_argerror(L, i, "LongStorage of at most 12");
    bind_real(L, s, "size");
    a->nlist[slot] = (int)s->size;
    if (s->size) memcpy(a->list[slot], s->data, (size_t)s->size * sizeof(int64_t));
  } else if (lua_istable(L, i)) {
    int n = (int)lua_objlen(L, i);
    if (n > RL_MAXDIM) bind_argerror(L, i, "at most 12 integers");
    a->nlist[slot] = n;
    for (int k = 0; k < n; k++) {
      lua_rawgeti(L, i, k + 1);
      a->list[slot][k] = (int64_t)lua_tonumber(L, -1);
      lua_pop(L, 1);
    }
  } else {
    a->nlist[slot] = 1;
    a->list[slot][0] = bind_int(L, i);
  }
}

static void read_attr(lua_State *L, int i, const rl_attr_info *r, rl_attrs *a) {
  switch (r->kind) {
  case 'l': read_list(L, i, a, r->slot); break;
  case 'b': a->v[r->slot].i = lua_toboolean(L, i); break;
  case 'f': a->v[r->slot].f = bind_number(L, i); break;
  case 'd': a->v[r->slot].i = bind_dtype(L, i); break;
  default: a->v[r->slot].i = bind_int(L, i); break;
  }
}

static void read_attrs(lua_State *L, int first, rl_op op, rl_attrs *a) {
  const rl_op_info *o = &rl_ops[op];
  memset(a, 0, sizeof *a);
  rl_attrs_default(op, a);
  for (int k = 0; k < o->nattrs; k++) {
    if (!lua_isnoneornil(L, first + k)) read_attr(L, first + k, &o->attrs[k], a);
    else if (!o->attrs[k].optional) luaL_error(L, "[%s] attribute %s; got %s, need a value", o->name, o->attrs[k].name, luaL_typename(L, first + k));
  }
}

static int push_all(lua_State *L, rl_op op, rl_tensor **out) {
  int n = rl_ops[op].nout;
  luaL_checkstack(L, n + 2, "too many results");
  for (int k = 0; k < n; k++) bind_push_tensor(L, out[k]);
  return n;
}

static int call_variadic(lua_State *L, rl_op op) {
  rl_attrs a;
  rl_tensor *out[RL_MAXOUT] = { NULL };
  if (!lua_istable(L, 1)) return bind_argerror(L, 1, "table of tensors");
  int n = (int)lua_objlen(L, 1);
  rl_tensor **in = (rl_tensor **)lua_newuserdata(L, sizeof *in * (size_t)RL_MAX(n, 1));
  lua_insert(L, 1); /* keeps the array alive; the arguments move up by one */
  for (int k = 0; k < n; k++) {
    lua_rawgeti(L, 2, k + 1);
    if (!(in[k] = bind_totensor(L, -1))) return luaL_error(L, "[%s] entry %d; got %s, need tensor", rl_ops[op].name, k + 1, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  read_attrs(L, 3, op, &a);
  bind_call(L, op, in, n, &a, out);
  return push_all(L, op, out);
}

static int raw_call(lua_State *L) {
  rl_op op = (rl_op)lua_tointeger(L, lua_upvalueindex(1));
  const rl_op_info *o = &rl_ops[op];
  if (o->nin == 255) return call_variadic(L, op);
  rl_tensor *in[RL_MAXIN] = { NULL }, *out[RL_MAXOUT] = { NULL };
  rl_number num[RL_MAXIN];
  rl_attrs a;
  for (int k = 0; k < o->nin; k++) {
    if (k >= o->nmin && lua_isnoneornil(L, k + 1)) continue;
    in[k] = bind_operand(L, k + 1, &num[k]);
  }
  read_attrs(L, o->nin + 1, op, &a);
  bind_call(L, op, in, o->nin, &a, out);
  return push_all(L, op, out);
}

/* C.opInfo(name) -> {nin, nmin, nout, kind, dtypes, flags, attrs = {names}, doc}: what the op spec and the manual read. */
static int op_info(lua_State *L) {
  rl_op op = rl_op_find(luaL_checkstring(L, 1));
  if (op == RL_NOP) return 0;
  const rl_op_info *o = &rl_ops[op];
  lua_newtable(L);
  lua_pushinteger(L, o->nin), lua_setfield(L, -2, "nin");
  lua_pushinteger(L, o->nmin), lua_setfield(L, -2, "nmin");
  lua_pushinteger(L, o->nout), lua_setfield(L, -2, "nout");
  lua_pushinteger(L, o->kind), lua_setfield(L, -2, "kind");
  lua_pushinteger(L, o->dtypes), lua_setfield(L, -2, "dtypes");
  lua_pushinteger(L, o->flags), lua_setfield(L, -2, "flags");
  lua_pushboolean(L, o->grad || (!(o->flags & RL_OPF_NODIFF) && o->formula)), lua_setfield(L, -2, "differentiable");
  lua_pushstring(L, o->doc), lua_setfield(L, -2, "doc");
  lua_pushstring(L, o->expr), lua_setfield(L, -2, "expr");
  lua_newtable(L);
  for (int k = 0; k < o->nattrs; k++) {
    lua_pushstring(L, o->attrs[k].name);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "attrs");
  return 1;
}

void bind_open_raw(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_pushcfunction(L, op_info);
  lua_setfield(L, -2, "opInfo");
  lua_newtable(L);
  for (int op = 0; op < RL_NOP; op++) {
    lua_pushinteger(L, op);
    lua_pushcclosure(L, raw_call, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CAPTURABLE);
    lua_pushvalue(L, -2);
    lua_pushstring(L, rl_ops[op].name);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    lua_setfield(L, -2, rl_ops[op].name);
  }
  lua_setfield(L, -2, "op");
  lua_pop(L, 1);
}
