/* Facts about tensors for capture: fakes, sizes, and guards that check many tensors in one call.
 * (captured facts, tensors) -> boolean. */
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
  lua_pushfstring(L, "torch.%sTensor", rl_dtypes[t->dtype].name);
  lua_pushboolean(L, rl_requires_grad(t));
  push_ints(L, t->ndim, t->size);
  push_ints(L, t->ndim, t->stride);
  lua_pushnumber(L, (lua_Number)t->offset);
  lua_pushlightuserdata(L, t->storage);
  lua_pushnumber(L, (lua_Number)(t->storage ? t->storage->size : 0));
  return 7;
}

/* Guards ------------------------------------------------------------------------------------------------------------------------ */

typedef struct guard_row {
  uint8_t dtype, device, ndim, flags;
  int64_t offset, storage_size, size[RL_MAXDIM], stride[RL_MAXDIM];
} guard_row;
/* leader[k]: the first tensor that shares k's storage. seen: open hash of the leaders' storages, as they must all differ. */
typedef struct guard {
  int n, mask;
  bool grad_disabled;
  uint8_t default_dtype, generator;
  guard_row *rows;
  int *leader;
  const void **seen;
} guard;
enum { G_OFFSET = 1, G_STORAGE = 2, G_GRAD = 4, G_NEEDS_GRAD = 8, G_STRIDES = 16, G_PARTIAL = 32 /* no sizes given: type and requiresGrad only */ };

static void read_ints(lua_State *L, const char *field, int64_t *v, int *n) { /* table on top */
  lua_getfield(L, -1, field);
  *n = 0;
  if (lua_istable(L, -1)) {
    *n = RL_MIN((int)lua_objlen(L, -1), RL_MAXDIM);
    for (int d = 0; d < *n; d++) {
      lua_rawgeti(L, -1, d + 1);
      v[d] = (int64_t)lua_tonumber(L, -1);
      lua_pop(L, 1);
    }
  }
  lua_pop(L, 1);
}

static bool read_int(lua_State *L, const char *field, int64_t *v) {
  lua_getfield(L, -1, field);
  bool have = lua_isnumber(L, -1);
  if (have) *v = (int64_t)lua_tonumber(L, -1);
  lua_pop(L, 1);
  return have;
}

static void read_grad(lua_State *L, guard_row *r) { /* table on top */
  lua_getfield(L, -1, "requiresGrad");
  if (!lua_isnil(L, -1)) r->flags |= (uint8_t)(G_GRAD | (lua_toboolean(L, -1) ? G_NEEDS_GRAD : 0));
  lua_pop(L, 1);
}

static void read_row(lua_State *L, guard_row *r) { /* table on top */
  rl_dtype dt = RL_F64;
  rl_device dev = RL_CPU;
  int nd, ns;
  lua_getfield(L, -1, "type");
  if (!lua_isstring(L, -1) || !bind_parse_dtype(lua_tostring(L, -1), &dt, &dev, NULL))
    luaL_error(L, "[guardNew] type; got %s, need name of a tensor type", luaL_typename(L, -1));
  lua_pop(L, 1);
  lua_getfield(L, -1, "sizes");
  bool partial = lua_isnil(L, -1);
  lua_pop(L, 1);
  read_ints(L, "sizes", r->size, &nd);
  read_ints(L, "strides", r->stride, &ns);
  r->dtype = (uint8_t)dt;
  r->device = (uint8_t)dev;
  r->ndim = (uint8_t)nd;
  if (partial) {
    r->flags = G_PARTIAL;
    read_grad(L, r);
    return;
  }
  r->flags = (uint8_t)((ns == nd ? G_STRIDES : 0) | (read_int(L, "offset", &r->offset) ? G_OFFSET : 0) |
                       (read_int(L, "storageSize", &r->storage_size) ? G_STORAGE : 0));
  read_grad(L, r);
}

static bool row_holds(const guard_row *r, const rl_tensor *t) {
  if (t->dtype != r->dtype || t->device != r->device || rl_is_fake(t)) return false;
  if (r->flags & G_PARTIAL) return !(r->flags & G_GRAD) || rl_requires_grad(t) == ((r->flags & G_NEEDS_GRAD) != 0);
  if (t->ndim != r->ndim) return false;
  for (int d = 0; d < r->ndim; d++)
    if (t->size[d] != r->size[d] && r->size[d] >= 0) return false; /* a negative size is free */
  if ((r->flags & G_STRIDES) && memcmp(t->stride, r->stride, sizeof(int64_t) * r->ndim) != 0) return false;
  if ((r->flags & G_OFFSET) && t->offset != r->offset) return false;
  if ((r->flags & G_STORAGE) && (t->storage ? t->storage->size : 0) != r->storage_size) return false;
  return !(r->flags & G_GRAD) || rl_requires_grad(t) == ((r->flags & G_NEEDS_GRAD) != 0);
}

/* False when the storage was met before. */
static bool first_meeting(const guard *g, const void *p) {
  uint32_t h = (uint32_t)((uintptr_t)p >> 4) * 2654435761u;
  for (uint32_t k = (h >> 8) & (uint32_t)g->mask;; k = (k + 1) & (uint32_t)g->mask) {
    if (g->seen[k] == p) return false;
    if (!g->seen[k]) {
      g->seen[k] = p;
      return true;
    }
  }
}

/* guard(t1, t2, ...) -> true when all tensors are as captured. */
static int guard_call(lua_State *L) {
  const guard *g = (const guard *)lua_touserdata(L, lua_upvalueindex(1));
  bool ok = lua_gettop(L) >= g->n && g->grad_disabled == rl_self.grad_disabled && g->default_dtype == rl_self.default_dtype &&
            g->generator == rl_generator_default()->kind;
  memset(g->seen, 0, sizeof *g->seen * (size_t)(g->mask + 1));
  for (int k = 0; ok && k < g->n; k++) {
    const rl_tensor *t = bind_totensor(L, k + 1);
    ok = t && row_holds(&g->rows[k], t);
    if (!ok || !t->storage || (g->rows[k].flags & G_PARTIAL)) continue;
    ok = g->leader[k] == k ? first_meeting(g, t->storage) : t->storage == bind_totensor(L, g->leader[k] + 1)->storage;
  }
  lua_pushboolean(L, ok);
  return 1;
}

static guard *guard_alloc(lua_State *L, int n) {
  int slots = 4;
  while (slots < 2 * n) slots *= 2;
  guard *g = (guard *)lua_newuserdata(L, sizeof *g + sizeof(guard_row) * (size_t)n + sizeof(void *) * (size_t)slots + sizeof(int) * (size_t)n);
  g->n = n;
  g->mask = slots - 1;
  g->grad_disabled = rl_self.grad_disabled;
  g->default_dtype = (uint8_t)rl_self.default_dtype;
  g->generator = (uint8_t)rl_generator_default()->kind;
  g->rows = (guard_row *)(g + 1);
  g->seen = (const void **)(g->rows + n);
  g->leader = (int *)(g->seen + slots);
  memset(g->rows, 0, sizeof(guard_row) * (size_t)n);
  for (int k = 0; k < n; k++) g->leader[k] = k;
  return g;
}

/* C.guardNew({facts...} [, {{i, j}...}]) -> function. Tensors i and j share a storage; all that are not listed have separate ones. Facts without
 * sizes hold for every shape and take no part in sharing. Gradient mode and the default type must be as they are now. */
static int guard_new(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  int n = (int)lua_objlen(L, 1);
  guard *g = guard_alloc(L, n);
  for (int k = 0; k < n; k++) {
    lua_rawgeti(L, 1, k + 1);
    read_row(L, &g->rows[k]);
    lua_pop(L, 1);
  }
  for (int k = 1; lua_istable(L, 2) && k <= (int)lua_objlen(L, 2); k++) {
    lua_rawgeti(L, 2, k);
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    int i = (int)lua_tointeger(L, -2) - 1, j = (int)lua_tointeger(L, -1) - 1;
    lua_pop(L, 3);
    if (i < 0 || j < 0 || i >= n || j >= n) return luaL_error(L, "[guardNew] pair %d; got %d and %d, need 1 to %d", k, i + 1, j + 1, n);
    int a = RL_MIN(g->leader[i], g->leader[j]), b = RL_MAX(g->leader[i], g->leader[j]);
    for (int m = 0; m < n; m++)
      if (g->leader[m] == b) g->leader[m] = a;
  }
  lua_pushcclosure(L, guard_call, 1);
  return 1;
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
                                 { "guardNew", guard_new },
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
