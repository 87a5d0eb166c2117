/* CUDA in Lua: C.cuda.* (devices, memory, switches) and the CUDA tensor types, which are made when cutorch is required.
 * A CUDA type's metatable holds the metamethods of the CPU type of its dtype and finds the methods there. */
#include "bind.h"
#include "../runtime/cuda.h"
#include <stdlib.h>
#include <string.h>

static int f_count(lua_State *L) {
  int n = rl_cuda_count();
  lua_pushinteger(L, n);
  if (n) return 1;
  lua_pushstring(L, rl_error_message());
  return 2;
}
static int f_get_device(lua_State *L) {
  BIND_TRY(L, rl_cuda_need());
  lua_pushinteger(L, rl_cuda_device() + 1);
  return 1;
}
static int f_set_device(lua_State *L) {
  BIND_TRY(L, rl_cuda_set_device((int)bind_int(L, 1) - 1));
  return 0;
}
static int f_sync(lua_State *L) {
  BIND_TRY(L, rl_cuda_sync());
  return 0;
}
/* -> free bytes, total bytes */
static int f_memory(lua_State *L) {
  int64_t f, t;
  BIND_TRY(L, rl_cuda_mem_info(&f, &t));
  lua_pushnumber(L, (lua_Number)f);
  lua_pushnumber(L, (lua_Number)t);
  return 2;
}
static void put(lua_State *L, const char *k, int64_t v) {
  lua_pushnumber(L, (lua_Number)v);
  lua_setfield(L, -2, k);
}
static int f_stats(lua_State *L) {
  rl_cuda_stats s;
  rl_cuda_mem_get(&s);
  lua_newtable(L);
  put(L, "live", s.live);
  put(L, "peak", s.peak);
  put(L, "cached", s.cached);
  put(L, "allocs", s.allocs);
  put(L, "hits", s.hits);
  put(L, "launches", s.launches);
  put(L, "early", s.early);
  put(L, "hostOps", s.host_ops);
  return 1;
}
static int f_properties(lua_State *L) {
  char name[128];
  int cc = 0;
  int64_t total = 0;
  int dev = lua_isnoneornil(L, 1) ? rl_cuda_device() : (int)bind_int(L, 1) - 1;
  BIND_TRY(L, rl_cuda_name(dev, name, sizeof name, &cc, &total));
  lua_newtable(L);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "name");
  put(L, "major", cc / 10);
  put(L, "minor", cc % 10);
  put(L, "totalGlobalMem", total);
  return 1;
}
static int f_reset_peak(lua_State *L) {
  (void)L;
  rl_cuda_mem_reset_peak();
  return 0;
}
static int f_release(lua_State *L) {
  (void)L;
  rl_cuda_mem_release_cache();
  return 0;
}
static int f_deterministic(lua_State *L) {
  rl_cuda_set_deterministic(lua_toboolean(L, 1));
  return 0;
}
static int f_tf32(lua_State *L) {
  rl_cuda_set_tf32(lua_toboolean(L, 1));
  return 0;
}
static int f_host_ops(lua_State *L) {
  rl_cuda_set_host_ops(lua_toboolean(L, 1));
  return 0;
}
/* C.cuda.compile(source, 'sm_90') -> bytes of machine code, the machine code */
static int f_compile(lua_State *L) {
  char *image = NULL;
  size_t n = 0;
  BIND_TRY(L, rl_cuda_compile(luaL_checkstring(L, 1), luaL_checkstring(L, 2), &image, &n));
  lua_pushnumber(L, (lua_Number)n);
  lua_pushlstring(L, image, n);
  free(image);
  return 2;
}
/* C.cuda.source('Float' [, op]) -> text of every generated row (or one), or of a file of hand-written kernels ('prims', 'order' ...); nil: none */
static int f_source(lua_State *L) {
  rl_dtype dt = bind_dtype(L, 1);
  const char *op = luaL_optstring(L, 2, NULL);
  rl_op id = op ? rl_op_find(op) : RL_NOP;
  char *s = op ? rl_cuda_prim_source(dt, op) : NULL;
  if (op && !s && id == RL_NOP) return luaL_error(L, "[source] no such op; got %s", op);
  if (!s) s = rl_cuda_source(id, dt);
  if (s) lua_pushstring(L, s);
  else lua_pushnil(L);
  free(s);
  return 1;
}
static int f_nvrtc(lua_State *L) {
  bool ok = rl_nvrtc_need() == RL_OK;
  lua_pushboolean(L, ok);
  if (ok) return 1;
  lua_pushstring(L, rl_error_message());
  return 2;
}

/* x:cuda(), x:cudaHalf() ...: upvalue 1 the dtype. */
static int m_cuda(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  rl_dtype dt = (rl_dtype)lua_tointeger(L, lua_upvalueindex(1));
  if (t->dtype == dt && t->device == RL_CUDA) {
    lua_settop(L, 1);
    return 1;
  }
  if (t->device == RL_CUDA) return bind_push_tensor(L, bind_cast(L, t, dt));
  return bind_push_tensor(L, rl_cuda_to(t, dt, RL_CUDA));
}

static int by_name(lua_State *L) {
  lua_settop(L, 2);
  if (lua_type(L, 2) != LUA_TSTRING) return bind_index(L);
  lua_gettable(L, lua_upvalueindex(1));
  return 1;
}

/* Copies the raw fields of the table at -2 into the one on top. */
static void copy_fields(lua_State *L) {
  lua_pushnil(L);
  while (lua_next(L, -3)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -4);
  }
}

/* Metatable of a CUDA type from that of the CPU type; C.metatables[name] and the registry know it. */
static void metatable(lua_State *L, rl_dtype dt, bool storage) {
  char name[64];
  bind_type_name(name, dt, RL_CUDA, storage ? "Storage" : "Tensor");
  lua_rawgeti(L, LUA_REGISTRYINDEX, storage ? BIND_MT_STORAGE(dt, RL_CPU) : BIND_MT_TENSOR(dt, RL_CPU));
  lua_newtable(L);
  copy_fields(L);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__typename");
  if (!storage) {
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, by_name, 1);
    lua_setfield(L, -2, "__index");
  }
  lua_newtable(L); /* methods added later to the CPU type */
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_getfield(L, -1, "metatables");
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, name);
  lua_pop(L, 2);
  lua_rawseti(L, LUA_REGISTRYINDEX, storage ? BIND_MT_STORAGE(dt, RL_CUDA) : BIND_MT_TENSOR(dt, RL_CUDA));
  lua_pop(L, 1);
}

/* C.cuda.types() -> {name = constructor}; the methods x:cuda(), x:cudaDouble() ... are put on every type. Once. */
static int f_types(lua_State *L) {
  lua_newtable(L);
  for (int dt = 0; dt < RL_NDTYPE; dt++) {
    char name[64];
    metatable(L, (rl_dtype)dt, false);
    metatable(L, (rl_dtype)dt, true);
    bind_type_name(name, (rl_dtype)dt, RL_CUDA, "Tensor");
    bind_push_constructor(L, (rl_dtype)dt, RL_CUDA);
    lua_setfield(L, -2, name);
    bind_type_name(name, (rl_dtype)dt, RL_CUDA, "Storage");
    lua_pushinteger(L, dt);
    lua_pushcclosure(L, bind_cuda_storage, 1);
    lua_setfield(L, -2, name);
    lua_pushinteger(L, dt);
    lua_pushcclosure(L, m_cuda, 1);
    bind_type_name(name, (rl_dtype)dt, RL_CUDA, "");
    name[6] = 'c';
    bind_put(L, name + 6, true, false);
  }
  return 1;
}

/* ---- streams and events; stream 0 is the one in use at first ---- */

static int f_reserve_streams(lua_State *L) {
  BIND_TRY(L, rl_cuda_reserve_streams((int)bind_int(L, 1)));
  return 0;
}
static int f_streams(lua_State *L) {
  BIND_TRY(L, rl_cuda_need());
  lua_pushinteger(L, rl_cuda_streams());
  return 1;
}
static int f_set_stream(lua_State *L) {
  BIND_TRY(L, rl_cuda_set_stream((int)bind_int(L, 1)));
  return 0;
}
static int f_get_stream(lua_State *L) {
  lua_pushinteger(L, rl_cuda_stream());
  return 1;
}
static int f_stream_sync(lua_State *L) {
  BIND_TRY(L, rl_cuda_stream_sync((int)bind_int(L, 1)));
  return 0;
}
/* C.cuda.streamWait(waiter, other) */
static int f_stream_wait(lua_State *L) {
  BIND_TRY(L, rl_cuda_stream_wait((int)bind_int(L, 1), (int)bind_int(L, 2)));
  return 0;
}

#define EVENT "cutorch.Event"
static void *event_at(lua_State *L, int i) { return *(void **)luaL_checkudata(L, i, EVENT); }
static int f_event(lua_State *L) {
  void **e = (void **)lua_newuserdata(L, sizeof *e);
  *e = NULL;
  luaL_getmetatable(L, EVENT);
  lua_setmetatable(L, -2);
  *e = rl_cuda_event_new();
  return *e ? 1 : bind_raise(L, RL_ERR);
}
static int event_gc(lua_State *L) {
  if (event_at(L, 1)) rl_cuda_event_free(event_at(L, 1));
  *(void **)lua_touserdata(L, 1) = NULL;
  return 0;
}
/* e:record(), e:wait(), e:synchronize() -> e */
static int event_record(lua_State *L) {
  BIND_TRY(L, rl_cuda_event_record(event_at(L, 1)));
  lua_settop(L, 1);
  return 1;
}
static int event_wait(lua_State *L) {
  BIND_TRY(L, rl_cuda_event_wait(event_at(L, 1)));
  lua_settop(L, 1);
  return 1;
}
static int event_sync(lua_State *L) {
  BIND_TRY(L, rl_cuda_event_sync(event_at(L, 1)));
  lua_settop(L, 1);
  return 1;
}
/* first:elapsed(second) -> milliseconds between them */
static int event_elapsed(lua_State *L) {
  double ms;
  BIND_TRY(L, rl_cuda_event_elapsed(event_at(L, 1), event_at(L, 2), &ms));
  lua_pushnumber(L, ms);
  return 1;
}
static void event_class(lua_State *L) {
  static const luaL_Reg methods[] = {
    { "record", event_record }, { "wait", event_wait }, { "synchronize", event_sync }, { "elapsed", event_elapsed }
  };
  luaL_newmetatable(L, EVENT);
  lua_pushcfunction(L, event_gc);
  lua_setfield(L, -2, "__gc");
  lua_newtable(L);
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    lua_pushcfunction(L, methods[i].func);
    lua_setfield(L, -2, methods[i].name);
  }
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}

static const bind_reg functions[] = { { "count", f_count },
                                      { "getDevice", f_get_device },
                                      { "setDevice", f_set_device },
                                      { "synchronize", f_sync },
                                      { "memory", f_memory },
                                      { "stats", f_stats },
                                      { "properties", f_properties },
                                      { "releaseCache", f_release },
                                      { "resetPeak", f_reset_peak },
                                      { "setTF32", f_tf32 },
                                      { "setDeterministic", f_deterministic },
                                      { "setHostOps", f_host_ops },
                                      { "compile", f_compile },
                                      { "source", f_source },
                                      { "nvrtc", f_nvrtc },
                                      { "types", f_types },
                                      { "reserveStreams", f_reserve_streams },
                                      { "getNumStreams", f_streams },
                                      { "setStream", f_set_stream },
                                      { "getStream", f_get_stream },
                                      { "streamSynchronize", f_stream_sync },
                                      { "streamWait", f_stream_wait },
                                      { "event", f_event },
                                      { NULL, NULL } };

void bind_open_cuda(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_newtable(L);
  for (const bind_reg *r = functions; r->name; r++) {
    lua_pushcfunction(L, r->fn);
    lua_setfield(L, -2, r->name);
  }
  lua_setfield(L, -2, "cuda");
  lua_pop(L, 1);
  event_class(L);
}
