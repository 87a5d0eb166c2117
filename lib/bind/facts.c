/* Facts about tensors for capture: fakes, sizes, storages; memory and settings
 * (tensor -> facts). */
#include "bind.h"
#include <string.h>
#include <strings.h>

static int is_fake(lua_State *L) {
  rl_tensor *t = bind_totensor(L, 1);
  rl_storage *s = bind_tostorage(L, 1);
  lua_pushboolean(L, t ? rl_is_fake(t) : s && s->graph);
  return 1;
}

static int is_number_result(lua_State *L) {
  rl_tensor *t = bind_totensor(L, 1);
  lua_pushboolean(L, t && (t->flags & (RL_T_NUMBER | RL_T_WEAK)));
  return 1;
}

static void push_ints(lua_State *L, int n, const int64_t *v) {
  lua_createtable(L, n, 0);
  for (int d = 0; d < n; d++) {
    lua_pushnumber(L, (lua_Number)v[d]);
    lua_rawseti(L, -2, d + 1);
  }
}

/* C.tensorFacts(t) -> typename, requiresGrad, {sizes}, {strides}, offset (from 0), storage pointer, storage size. */
static int tensor_facts(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  char name[64];
  bind_type_name(name, (rl_dtype)t->dtype, (rl_device)t->device, "Tensor");
  lua_pushstring(L, name);
  lua_pushboolean(L, rl_requires_grad(t));
  push_ints(L, t->ndim, t->size);
  push_ints(L, t->ndim, t->stride);
  lua_pushnumber(L, (lua_Number)t->offset);
  lua_pushlightuserdata(L, t->storage);
  lua_pushnumber(L, (lua_Number)(t->storage ? t->storage->size : 0));
  return 7;
}

/* Memory ------------------------------------------------------------------------------------------------------------------------ */

/* C.memory() -> {live, peak, cached, allocs, hits} in bytes and counts. */
static int memory(lua_State *L) {
  rl_mem_stats s;
  rl_mem_get(&s);
  lua_newtable(L);
  lua_pushnumber(L, (lua_Number)s.live), lua_setfield(L, -2, "live");
  lua_pushnumber(L, (lua_Number)s.peak), lua_setfield(L, -2, "peak");
  lua_pushnumber(L, (lua_Number)s.cached), lua_setfield(L, -2, "cached");
  lua_pushnumber(L, (lua_Number)s.allocs), lua_setfield(L, -2, "allocs");
  lua_pushnumber(L, (lua_Number)s.hits), lua_setfield(L, -2, "hits");
  return 1;
}

static int reset_peak(lua_State *L) {
  (void)L;
  rl_mem_reset_peak();
  return 0;
}
static int release_cache(lua_State *L) {
  (void)L;
  rl_mem_release_cache();
  return 0;
}

/* C.setDefaultDtype('torch.FloatTensor') */
static int set_default(lua_State *L) {
  rl_device dev = RL_CPU;
  rl_dtype dt = bind_dtype(L, 1);
  if (lua_type(L, 1) == LUA_TSTRING) bind_parse_dtype(lua_tostring(L, 1), &dt, &dev, NULL);
  rl_self.default_dtype = dt;
  rl_self.default_device = dev;
  return 0;
}

static int get_default(lua_State *L) {
  char name[64];
  bind_type_name(name, rl_self.default_dtype, rl_self.default_device, "Tensor");
  lua_pushstring(L, name);
  return 1;
}

/* C.bumpVersion(t): its elements were written through a pointer. */
static int bump(lua_State *L) {
  bind_wrote(bind_tensor(L, 1));
  return 0;
}

/* C.item(t) -> the value of a one-element tensor. */
static int item(lua_State *L) {
  lua_pushnumber(L, bind_number(L, 1));
  return 1;
}

static int recording(lua_State *L) {
  lua_pushboolean(L, rl_self.graph != NULL);
  return 1;
}

/* C.env(name of a row in env.def, lower case) is read by jit and the specs. */
static int env(lua_State *L) {
  static const char *const names[] = {
#define RL_ENV(id, name, kind, def, doc) #id,
#include "../env.def"
#undef RL_ENV
    NULL
  };
  static const char *const kinds[] = {
#define RL_ENV(id, name, kind, def, doc) #kind,
#include "../env.def"
#undef RL_ENV
    NULL
  };
  const char *want = luaL_checkstring(L, 1);
  for (int k = 0; names[k]; k++) {
    if (strcasecmp(names[k], want) != 0) continue;
    if (strcmp(kinds[k], "int") == 0) lua_pushinteger(L, rl_env_int((rl_env_id)k));
    else lua_pushstring(L, rl_env_str((rl_env_id)k));
    return 1;
  }
  return luaL_error(L, "[env] no such setting; got %s, need a row of lib/env.def", want);
}

static const bind_reg core[] = { { "isFake", is_fake },
                                 { "isNumberResult", is_number_result },
                                 { "tensorFacts", tensor_facts },
                                 { "memory", memory },
                                 { "resetPeak", reset_peak },
                                 { "releaseCache", release_cache },
                                 { "setDefaultDtype", set_default },
                                 { "getDefaultDtype", get_default },
                                 { "bumpVersion", bump },
                                 { "recording", recording },
                                 { "item", item },
                                 { "env", env },
                                 { NULL, NULL } };

void bind_open_facts(lua_State *L) { bind_core(L, core); }
