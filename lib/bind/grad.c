/* Gradients from Lua: requiresGrad, grad, backward, torch.autograd.grad, custom functions.
 * Lua tensors -> rl_backward / rl_grad; the engine returns to Lua through custom_apply. */
#include "bind.h"
#include <string.h>

/* x:requiresGrad() -> boolean; x:requiresGrad(bool) -> x. */
static int m_requires_grad(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  if (lua_isnoneornil(L, 2)) {
    lua_pushboolean(L, rl_requires_grad(t));
    return 1;
  }
  BIND_TRY(L, rl_set_requires_grad(t, lua_toboolean(L, 2)));
  lua_settop(L, 1);
  return 1;
}

/* x:grad() -> the accumulated gradient, or nil. */
static int m_grad(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  if (!t->ag || !t->ag->grad) {
    lua_pushnil(L);
    return 1;
  }
  return bind_push_tensor(L, rl_tensor_retain(t->ag->grad));
}

static int m_set_grad(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1), *g = lua_isnoneornil(L, 2) ? NULL : bind_tensor(L, 2);
  if (!t->ag) {
    if (!g) {
      lua_settop(L, 1);
      return 1;
    }
    return luaL_error(L, "[setGrad] tensor without gradient; got one that does not require grad, need x:requiresGrad(true) first");
  }
  if (g && !rl_same_shape(t, g)) return bind_argerror(L, 2, "gradient of the tensor's shape");
  rl_tensor *old = t->ag->grad;
  t->ag->grad = g ? rl_tensor_retain(g) : NULL;
  if (old) rl_tensor_release(old);
  lua_settop(L, 1);
  return 1;
}

static int m_detach(lua_State *L) { return bind_push_tensor(L, rl_detach(bind_tensor(L, 1))); }

static int m_is_leaf(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  lua_pushboolean(L, !t->ag || !t->ag->fn);
  return 1;
}

static bool option(lua_State *L, int i, const char *name) {
  bool on = false;
  if (!lua_istable(L, i)) return false;
  lua_getfield(L, i, name);
  on = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return on;
}

/* A Lua error inside a custom function travels through the engine as a status and is raised again here. */
static int raise_engine(lua_State *L, rl_status s) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_getfield(L, -1, "pending");
  if (lua_isnil(L, -1)) return bind_raise(L, s);
  lua_pushnil(L);
  lua_setfield(L, -3, "pending");
  return lua_error(L);
}

/* y:backward([dy [, {retain =, createGraph =}]]) */
static int m_backward(lua_State *L) {
  rl_tensor *y = bind_tensor(L, 1), *dy = bind_totensor(L, 2);
  int o = lua_istable(L, 2) ? 2 : 3;
  bool create = option(L, o, "createGraph");
  rl_status s = rl_backward(&y, dy ? &dy : NULL, 1, create || option(L, o, "retain"), create);
  if (s == RL_OOM) lua_gc(L, LUA_GCCOLLECT, 0);
  return s == RL_OK ? 0 : raise_engine(L, s);
}

/* Tensors of a table (or one tensor) at i as an array kept alive on the stack; NULL entries stay NULL. */
static rl_tensor **tensors(lua_State *L, int i, int *n, int need) {
  bool one = bind_totensor(L, i) != NULL;
  if (!one && !lua_istable(L, i)) bind_argerror(L, i, "tensor or table of tensors");
  *n = need >= 0 ? need : one ? 1 : (int)lua_objlen(L, i);
  rl_tensor **v = (rl_tensor **)lua_newuserdata(L, sizeof *v * (size_t)RL_MAX(*n, 1));
  for (int k = 0; k < *n; k++) {
    if (one) {
      v[k] = k == 0 ? bind_totensor(L, i) : NULL;
      continue;
    }
    lua_rawgeti(L, i, k + 1);
    v[k] = bind_totensor(L, -1);
    if (!v[k] && need < 0) luaL_error(L, "[grad] entry %d; got %s, need tensor", k + 1, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  return v;
}

/* torch.autograd.grad(ys, xs [, dys [, {retain =, createGraph =, allowUnused =, unchecked =, stop =}]]) -> {dxs}
 * stop: what one x gets does not go through another x. unchecked: saved values that were changed in place since are used as they are, as Torch7's modules do. */
static int autograd_grad(lua_State *L) {
  int ny, nx;
  lua_settop(L, 4);
  rl_tensor **ys = tensors(L, 1, &ny, -1), **xs = tensors(L, 2, &nx, -1), **dys = NULL;
  if (!lua_isnil(L, 3)) dys = tensors(L, 3, &ny, ny);
  bool create = option(L, 4, "createGraph"), unused = option(L, 4, "allowUnused");
  rl_tensor **dx = (rl_tensor **)lua_newuserdata(L, sizeof *dx * (size_t)RL_MAX(nx, 1));
  memset(dx, 0, sizeof *dx * (size_t)nx);
  rl_self.grad_unchecked = option(L, 4, "unchecked");
  rl_status s = rl_grad(ys, dys, ny, xs, nx, create || option(L, 4, "retain"), create, option(L, 4, "stop"), dx);
  rl_self.grad_unchecked = false;
  if (s != RL_OK) return raise_engine(L, s);
  lua_createtable(L, nx, 0);
  for (int k = 0; k < nx; k++) {
    if (dx[k]) bind_push_tensor(L, dx[k]);
    else if (unused) lua_pushboolean(L, false);
    else return luaL_error(L, "[grad] input %d was not used; got no path to it from the outputs, need {allowUnused = true}", k + 1);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* C.setGradEnabled(bool) -> what it was. */
static int set_grad_enabled(lua_State *L) {
  bool was = !rl_self.grad_disabled;
  rl_self.grad_disabled = !lua_toboolean(L, 1);
  lua_pushboolean(L, was);
  return 1;
}

/* C.setAutocast('BFloat16' or nil) -> what it was. */
static int set_autocast(lua_State *L) {
  uint8_t was = rl_self.autocast;
  rl_dtype dt = lua_isnoneornil(L, 1) ? RL_F32 : bind_dtype(L, 1);
  if (dt != RL_F32 && dt != RL_F16 && dt != RL_BF16) return luaL_error(L, "[autocast] dtype; got %s, need Half or BFloat16", rl_dtypes[dt].name);
  rl_self.autocast = dt == RL_F32 ? 0 : (uint8_t)(1 + dt);
  if (was) lua_pushstring(L, rl_dtypes[was - 1].name);
  else lua_pushnil(L);
  return 1;
}

static int grad_enabled(lua_State *L) {
  lua_pushboolean(L, !rl_self.grad_disabled);
  return 1;
}

static int with_grad(lua_State *L, bool disabled) {
  bool was = rl_self.grad_disabled;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  rl_self.grad_disabled = disabled;
  int rc = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  rl_self.grad_disabled = was;
  return rc ? lua_error(L) : lua_gettop(L);
}

/* torch.noGrad(f, ...) and torch.enableGrad(f, ...): f's results; the mode is restored when f raises. */
static int no_grad(lua_State *L) { return with_grad(L, true); }
static int enable_grad(lua_State *L) { return with_grad(L, false); }

/* Custom functions -------------------------------------------------------------------------------------------------------------- */

typedef struct custom {
  lua_State *L;
  int ref;
} custom;

/* Main-thread state: coroutines may be dead when backward runs. */
static lua_State *main_state(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_getfield(L, -1, "mainState");
  lua_State *m = (lua_State *)lua_touserdata(L, -1);
  lua_pop(L, 2);
  return m ? m : L;
}

static rl_status custom_fail(lua_State *L, int top) { /* error value on top */
  rl_status s = rl_error("[backward] custom function: %s", lua_tostring(L, -1) ? lua_tostring(L, -1) : "error without a message");
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "pending");
  lua_settop(L, top);
  return s;
}

static int custom_body(lua_State *L) { /* ud, dy, ny, dx, nx as lightuserdata and integers */
  custom *c = (custom *)lua_touserdata(L, 1);
  rl_tensor *const *dy = (rl_tensor *const *)lua_touserdata(L, 2);
  rl_tensor **dx = (rl_tensor **)lua_touserdata(L, 4);
  int ny = (int)lua_tointeger(L, 3), nx = (int)lua_tointeger(L, 5);
  luaL_checkstack(L, ny + nx + 4, "too many gradients");
  lua_rawgeti(L, LUA_REGISTRYINDEX, c->ref);
  for (int k = 0; k < ny; k++) {
    if (dy[k]) bind_push_tensor(L, rl_tensor_retain(dy[k]));
    else lua_pushnil(L);
  }
  int base = lua_gettop(L) - ny;
  lua_call(L, ny, nx);
  for (int k = 0; k < nx; k++) {
    rl_tensor *t = bind_totensor(L, base + k);
    if (!t && lua_toboolean(L, base + k))
      luaL_error(L, "[backward] gradient %d of the function; got %s, need tensor or nil", k + 1, luaL_typename(L, base + k));
    dx[k] = t ? rl_tensor_retain(t) : NULL;
  }
  return 0;
}

static rl_status custom_apply(void *ud, rl_tensor *const *dy, int ny, rl_tensor **dx, int nx) {
  custom *c = (custom *)ud;
  lua_State *L = c->L;
  int top = lua_gettop(L);
  if (!lua_checkstack(L, 8)) return rl_error("[backward] Lua stack full; got no room, need 8 slots");
  lua_pushcfunction(L, custom_body);
  lua_pushlightuserdata(L, ud);
  lua_pushlightuserdata(L, (void *)dy);
  lua_pushinteger(L, ny);
  lua_pushlightuserdata(L, dx);
  lua_pushinteger(L, nx);
  return lua_pcall(L, 5, 0, 0) ? custom_fail(L, top) : RL_OK;
}

static void custom_release(void *ud) {
  custom *c = (custom *)ud;
  luaL_unref(c->L, LUA_REGISTRYINDEX, c->ref);
  rl_free(c, sizeof *c);
}

/* C.custom({inputs}, {outputs}, backward [, sparse]): outputs get a history whose gradient is backward(dy1, ...) -> dx1, ...; sparse: nil
 * stands for an output that got none, instead of zeros. */
static int core_custom(lua_State *L) {
  int nx, ny;
  luaL_checktype(L, 3, LUA_TFUNCTION);
  lua_settop(L, 4);
  rl_tensor **in = tensors(L, 1, &nx, -1), **out = tensors(L, 2, &ny, -1);
  custom *c = (custom *)rl_alloc(sizeof *c);
  if (!c) return bind_raise(L, RL_OOM);
  lua_pushvalue(L, 3);
  c->ref = luaL_ref(L, LUA_REGISTRYINDEX);
  c->L = main_state(L);
  rl_status s = rl_tape_custom(in, nx, out, ny, custom_apply, custom_release, c, lua_toboolean(L, 4));
  return s == RL_OK ? 0 : bind_raise(L, s);
}

static const bind_reg methods[] = {
  { "requiresGrad", m_requires_grad }, { "grad", m_grad }, { "setGrad", m_set_grad }, { "detach", m_detach }, { "isLeaf", m_is_leaf },
  { "backward", m_backward },          { NULL, NULL }
};
static const bind_reg core[] = { { "setGradEnabled", set_grad_enabled },
                                 { "setAutocast", set_autocast },
                                 { "gradEnabled", grad_enabled },
                                 { "grad", autograd_grad },
                                 { "custom", core_custom },
                                 { NULL, NULL } };
static const bind_reg functions[] = { { "noGrad", no_grad }, { "enableGrad", enable_grad }, { NULL, NULL } };

static void main_thread(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_pushlightuserdata(L, L); /* the state that loads the module outlives its coroutines */
  lua_setfield(L, -2, "mainState");
  lua_pop(L, 1);
}

void bind_open_grad(lua_State *L) {
  bind_methods(L, methods, true);
  bind_core(L, core);
  bind_functions(L, functions, false);
  main_thread(L);
}
