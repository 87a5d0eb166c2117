/* Storages: constructors, elements, strings, resize, memory-mapped files.
 * torch.FloatStorage(...) -> rl_storage. */
#define _GNU_SOURCE
#include "bind.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char *at(const rl_storage *s, int64_t i) { return (char *)s->data + i * rl_dtypes[s->dtype].bytes; }

static rl_storage *fresh_on(lua_State *L, rl_dtype dt, rl_device dev, int64_t n) {
  if (n < 0) luaL_error(L, "[storage] negative size; got %d, need 0 or more", (int)n);
  struct rl_graph *g = rl_self.graph;
  rl_self.graph = NULL;
  rl_storage *s = rl_storage_new(dt, dev, n);
  if (!s) {
    lua_gc(L, LUA_GCCOLLECT, 0);
    s = rl_storage_new(dt, dev, n);
  }
  rl_self.graph = g;
  if (!s) bind_raise(L, RL_OOM);
  return s;
}

static rl_storage *fresh(lua_State *L, rl_dtype dt, int64_t n) { return fresh_on(L, dt, RL_CPU, n); }

static void unmap(rl_storage *s) { munmap(s->data, (size_t)s->size * (size_t)rl_dtypes[s->dtype].bytes); }

/* Shared memory by name goes with the storage that made or opened it. */
static void unmap_named(rl_storage *s) {
  unmap(s);
  shm_unlink((const char *)s->foreign);
  free(s->foreign);
}

/* torch.FloatStorage(filename [, shared [, size [, sharedMemory]]]): maps a file, or shared memory of that name; not shared means private
 * copy-on-write pages. */
static int storage_map(lua_State *L, rl_dtype dt, int i) {
  const char *name = lua_tostring(L, i);
  bool shared = lua_toboolean(L, i + 1), named = lua_toboolean(L, i + 3);
  int64_t n = lua_isnoneornil(L, i + 2) ? 0 : bind_int(L, i + 2), bytes;
  if (named && (!shared || n <= 0)) return luaL_error(L, "[storage] shared memory %s; got %d elements, need shared = true and a size", name, (int)n);
  int fd = named ? shm_open(name, O_RDWR | O_CREAT, 0600) : open(name, shared ? O_RDWR | O_CREAT : O_RDONLY, 0644);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0) {
    if (fd >= 0) close(fd);
    return luaL_error(L, "[storage] cannot open %s; got %s, need a readable file", name, strerror(errno));
  }
  if (n <= 0) n = st.st_size / rl_dtypes[dt].bytes;
  bytes = n * rl_dtypes[dt].bytes;
  if (bytes > st.st_size && (!shared || ftruncate(fd, bytes) != 0)) {
    close(fd);
    return luaL_error(L, "[storage] file %s too small; got %d bytes, need %d", name, (int)st.st_size, (int)bytes);
  }
  void *p = n ? mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0) : NULL;
  close(fd);
  if (p == MAP_FAILED) return luaL_error(L, "[storage] cannot map %s; got %s", name, strerror(errno));
  rl_storage *s = fresh(L, dt, 0);
  s->data = p;
  s->size = n;
  s->release = n ? unmap : NULL;
  if (named && (s->foreign = strdup(name))) s->release = unmap_named;
  return bind_push_storage(L, s);
}

/* Another storage's elements from an offset on, sharing memory. */
static void release_view(rl_storage *s) { rl_storage_release((rl_storage *)s->foreign); }

static int storage_view(lua_State *L, rl_storage *base, int i) {
  int64_t off = lua_isnoneornil(L, i + 1) ? 0 : bind_int(L, i + 1) - 1, n = lua_isnoneornil(L, i + 2) ? base->size - off : bind_int(L, i + 2);
  if (off < 0 || n < 0 || n > base->size - off)
    return luaL_error(L, "[storage] window out of range; got %d + %d, need at most %d", (int)off, (int)n, (int)base->size);
  rl_storage *s = fresh(L, (rl_dtype)base->dtype, 0);
  if (n) {
    s->data = at(base, off);
    s->size = n;
    s->foreign = rl_storage_retain(base);
    s->release = release_view;
  }
  return bind_push_storage(L, s);
}

static int storage_from_table(lua_State *L, rl_dtype dt, int i) {
  int64_t n = (int64_t)lua_objlen(L, i);
  rl_storage *s = fresh(L, dt, n);
  bind_push_storage(L, s);
  for (int64_t k = 0; k < n; k++) {
    lua_rawgeti(L, i, (int)k + 1);
    if (!lua_isnumber(L, -1)) return luaL_error(L, "[storage] table element %d; got %s, need number", (int)k + 1, luaL_typename(L, -1));
    bind_store_as(dt, at(s, k), lua_tonumber(L, -1));
    lua_pop(L, 1);
  }
  return 1;
}

static int new_storage(lua_State *L, rl_dtype dt, int i) {
  rl_storage *s = bind_tostorage(L, i);
  if (s) return s->dtype == dt ? storage_view(L, s, i) : bind_argerror(L, i, rl_dtypes[dt].name);
  if (lua_istable(L, i)) return storage_from_table(L, dt, i);
  if (lua_type(L, i) == LUA_TSTRING) return storage_map(L, dt, i);
  int64_t n = lua_isnoneornil(L, i) ? 0 : bind_int(L, i);
  return bind_push_storage(L, fresh(L, dt, n));
}

static int construct(lua_State *L) { return new_storage(L, (rl_dtype)lua_tointeger(L, lua_upvalueindex(1)), 1); }
static int storage_new(lua_State *L) { return new_storage(L, (rl_dtype)bind_storage(L, 1)->dtype, 2); }

static int64_t position(lua_State *L, rl_storage *s, int i) {
  lua_Number v = lua_tonumber(L, i);
  if (!(v >= 1 && v <= (lua_Number)s->size)) luaL_error(L, "[storage] index out of range; got %d, need 1 to %d", (int)v, (int)s->size);
  return (int64_t)v - 1;
}

/* torch.CudaStorage(n): upvalue 1 the dtype. Elements are reached through a tensor. */
int bind_cuda_storage(lua_State *L) {
  rl_dtype dt = (rl_dtype)lua_tointeger(L, lua_upvalueindex(1));
  return bind_push_storage(L, fresh_on(L, dt, RL_CUDA, lua_isnoneornil(L, 1) ? 0 : bind_int(L, 1)));
}

static int storage_index(lua_State *L) {
  if (lua_type(L, 2) == LUA_TNUMBER) {
    rl_storage *s = bind_storage(L, 1);
    int64_t k = position(L, s, 2);
    bind_real(L, s, "storage");
    lua_pushnumber(L, bind_load_as((rl_dtype)s->dtype, at(s, k)));
    return 1;
  }
  lua_settop(L, 2);
  lua_gettable(L, lua_upvalueindex(1));
  return 1;
}

static int storage_newindex(lua_State *L) {
  rl_storage *s = bind_storage(L, 1);
  if (lua_type(L, 2) != LUA_TNUMBER) return bind_argerror(L, 2, "index");
  int64_t k = position(L, s, 2);
  double v = bind_number(L, 3);
  bind_real(L, s, "storage");
  bind_store_as((rl_dtype)s->dtype, at(s, k), v);
  s->version++;
  return 0;
}

/* s == r: two Lua objects of one storage are equal. */
static int storage_eq(lua_State *L) {
  rl_storage *a = bind_tostorage(L, 1);
  lua_pushboolean(L, a && a == bind_tostorage(L, 2));
  return 1;
}

static int storage_size(lua_State *L) {
  lua_pushnumber(L, (lua_Number)bind_storage(L, 1)->size);
  return 1;
}

static int storage_resize(lua_State *L) {
  rl_storage *s = bind_storage(L, 1);
  BIND_TRY(L, rl_storage_resize(s, bind_int(L, 2)));
  lua_settop(L, 1);
  return 1;
}

static int storage_fill(lua_State *L) {
  rl_storage *s = bind_storage(L, 1);
  double v = bind_number(L, 2);
  bind_real(L, s, "fill");
  for (int64_t k = 0; k < s->size; k++) bind_store_as((rl_dtype)s->dtype, at(s, k), v);
  s->version++;
  lua_settop(L, 1);
  return 1;
}

/* With a storage in GPU memory on either side: as tensors over both. */
static int copy_devices(lua_State *L, rl_storage *s, rl_storage *u) {
  rl_geom g = { .ndim = 1, .size = { s->size }, .stride = { 1 } };
  rl_tensor *a = rl_tensor_with(s, &g), *b = rl_tensor_with(u, &g);
  rl_status r = a && b ? rl_copy(a, b) : RL_OOM;
  rl_tensor_release(a);
  rl_tensor_release(b);
  BIND_TRY(L, r);
  lua_settop(L, 1);
  return 1;
}

static int storage_copy(lua_State *L) {
  rl_storage *s = bind_storage(L, 1), *u = bind_storage(L, 2);
  if (s->size != u->size) return luaL_error(L, "[copy] storage sizes differ; got %d, need %d", (int)u->size, (int)s->size);
  if (s->device == RL_CUDA || u->device == RL_CUDA) return copy_devices(L, s, u);
  bind_real(L, s, "copy");
  bind_real(L, u, "copy");
  if (s->dtype == u->dtype && s->size) memmove(s->data, u->data, (size_t)s->size * (size_t)rl_dtypes[s->dtype].bytes);
  else
    for (int64_t k = 0; k < s->size; k++) bind_store_as((rl_dtype)s->dtype, at(s, k), bind_load_as((rl_dtype)u->dtype, at(u, k)));
  s->version++;
  lua_settop(L, 1);
  return 1;
}

static int storage_totable(lua_State *L) {
  rl_storage *s = bind_storage(L, 1);
  bind_real(L, s, "totable");
  lua_createtable(L, (int)s->size, 0);
  for (int64_t k = 0; k < s->size; k++) {
    lua_pushnumber(L, bind_load_as((rl_dtype)s->dtype, at(s, k)));
    lua_rawseti(L, -2, (int)k + 1);
  }
  return 1;
}

/* s:string() -> its bytes; s:string(str) takes the string's bytes. */
static int storage_string(lua_State *L) {
  rl_storage *s = bind_storage(L, 1);
  size_t n;
  bind_real(L, s, "string");
  if (rl_dtypes[s->dtype].bytes != 1) return bind_argerror(L, 1, "ByteStorage or CharStorage");
  if (lua_isnoneornil(L, 2)) {
    lua_pushlstring(L, s->data ? (const char *)s->data : "", (size_t)s->size);
    return 1;
  }
  const char *str = luaL_checklstring(L, 2, &n);
  BIND_TRY(L, rl_storage_resize(s, (int64_t)n));
  if (n) memcpy(s->data, str, n);
  s->version++;
  lua_settop(L, 1);
  return 1;
}

static int storage_element_size(lua_State *L) {
  lua_pushinteger(L, rl_dtypes[bind_storage(L, 1)->dtype].bytes);
  return 1;
}

static int storage_retain(lua_State *L) {
  rl_storage_retain(bind_storage(L, 1));
  return 0;
}
static int storage_free(lua_State *L) {
  rl_storage_release(bind_storage(L, 1));
  return 0;
}

static const bind_reg methods[] = { { "size", storage_size },
                                    { "__len", storage_size },
                                    { "__eq", storage_eq },
                                    { "resize", storage_resize },
                                    { "fill", storage_fill },
                                    { "copy", storage_copy },
                                    { "totable", storage_totable },
                                    { "new", storage_new },
                                    { "elementSize", storage_element_size },
                                    { "retain", storage_retain },
                                    { "free", storage_free },
                                    { "string", storage_string },
                                    { "__newindex", storage_newindex },
                                    { NULL, NULL } };

void bind_open_storage(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_newtable(L);
  lua_setfield(L, -2, "storages");
  lua_getfield(L, -1, "storages");
  for (int dt = 0; dt < RL_NDTYPE; dt++) {
    lua_pushinteger(L, dt);
    lua_pushcclosure(L, construct, 1);
    lua_pushfstring(L, "torch.%sStorage", rl_dtypes[dt].name);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
    lua_pop(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_MT_STORAGE(dt, RL_CPU));
    for (const bind_reg *r = methods; r->name; r++) {
      lua_pushcfunction(L, r->fn);
      lua_setfield(L, -2, r->name);
    }
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, storage_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
}
