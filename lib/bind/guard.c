/* Guards: the check of many tensors in one call, and tables of plans by geometry
 * (captured facts, tensors -> boolean or number of a plan). */
#include "bind.h"
#include <string.h>

/* Rows -------------------------------------------------------------------------------------------------------------------------- */

typedef struct guard_row {
  uint8_t dtype, device, ndim;
  uint16_t flags;
  int64_t offset, storage_size, size[RL_MAXDIM], stride[RL_MAXDIM];
  int64_t low[RL_MAXDIM], high[RL_MAXDIM]; /* of free sizes, which are -1 in size */
} guard_row;
/* leader[k]: the first tensor that shares k's storage. seen: open hash of the leaders' storages, as they must all differ. */
typedef struct guard {
  int n, mask, numbers, width; /* width: numbers of a key, 0: no key */
  bool grad_disabled;
  uint8_t default_dtype, generator, autocast;
  guard_row *rows;
  int *leader;
  const void **seen;
} guard;
enum {
  G_OFFSET = 1,
  G_STORAGE = 2,
  G_GRAD = 4,
  G_NEEDS_GRAD = 8,
  G_STRIDES = 16,
  G_PARTIAL = 32, /* no sizes given: type and requiresGrad only */
  G_KEYED = 64,   /* free sizes, strides, offset and storage size are part of the key */
  G_LEAF = 128,   /* what requires a gradient is a leaf; else, with G_HISTORY, another op made it */
  G_HISTORY = 256,
  G_WINDOW = 512, /* keyed, but for offset and storage size */
  G_BASED = 1024, /* a view of what requires a gradient: a write reaches that as well */
  G_FREE = 2048   /* no such view */
};
/* Keys of the plans that a guard chooses from: numbers of the tensors' geometries and of program numbers. */
typedef struct guard_keys {
  int n, cap, last;
  uint64_t tick;
  struct {
    uint64_t hash, tick;
  } slot[];
} guard_keys;

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
  if (!lua_isnil(L, -1)) r->flags |= (uint16_t)(G_GRAD | (lua_toboolean(L, -1) ? G_NEEDS_GRAD : 0));
  lua_getfield(L, -2, "history");
  if (!lua_isnil(L, -1)) r->flags |= lua_toboolean(L, -1) ? G_HISTORY : G_LEAF;
  lua_getfield(L, -3, "based");
  if (!lua_isnil(L, -1)) r->flags |= lua_toboolean(L, -1) ? G_BASED : G_FREE;
  lua_pop(L, 3);
}

/* free = {{dim, low, high}, ...}: sizes that are part of the key. */
static void read_free(lua_State *L, guard_row *r) { /* table on top */
  lua_getfield(L, -1, "free");
  int n = lua_istable(L, -1) ? (int)lua_objlen(L, -1) : -1;
  lua_getfield(L, -2, "window");
  if (n >= 0) r->flags = (uint16_t)((r->flags & ~(G_STRIDES | G_OFFSET | G_STORAGE)) | G_KEYED | (lua_toboolean(L, -1) ? G_WINDOW : 0));
  lua_pop(L, 1);
  for (int k = 1; k <= n; k++) {
    int64_t v[3] = { 0, 0, 0 };
    lua_rawgeti(L, -1, k);
    for (int i = 0; i < 3; i++) {
      lua_rawgeti(L, -1, i + 1);
      v[i] = (int64_t)lua_tonumber(L, -1);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
    if (v[0] < 1 || v[0] > r->ndim) luaL_error(L, "[guardNew] free size %d; got dimension %d, need 1 to %d", k, (int)v[0], (int)r->ndim);
    r->size[v[0] - 1] = -1;
    r->low[v[0] - 1] = v[1];
    r->high[v[0] - 1] = v[2];
  }
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
  r->flags = (uint16_t)((ns == nd ? G_STRIDES : 0) | (read_int(L, "offset", &r->offset) ? G_OFFSET : 0) |
                        (read_int(L, "storageSize", &r->storage_size) ? G_STORAGE : 0));
  read_grad(L, r);
  read_free(L, r);
}

static bool size_holds(const guard_row *r, int d, int64_t size) {
  if (r->size[d] >= 0) return size == r->size[d];
  return !(r->flags & G_KEYED) || (size >= r->low[d] && size <= r->high[d]); /* a negative size is free */
}

static bool row_based(const guard_row *r, const rl_tensor *t) {
  const rl_tensor *base = t->ag ? t->ag->base : NULL;
  bool based = base && base->storage == t->storage && rl_requires_grad(base);
  return based == ((r->flags & G_BASED) != 0);
}

static bool row_grad(const guard_row *r, const rl_tensor *t) {
  if ((r->flags & (G_BASED | G_FREE)) && !row_based(r, t)) return false;
  if (!(r->flags & G_GRAD)) return true;
  if (rl_requires_grad(t) != ((r->flags & G_NEEDS_GRAD) != 0)) return false;
  if (!(r->flags & G_NEEDS_GRAD) || !(r->flags & (G_LEAF | G_HISTORY))) return true;
  return (t->ag->fn != NULL) == ((r->flags & G_HISTORY) != 0);
}

static bool row_holds(const guard_row *r, const rl_tensor *t) {
  if (t->dtype != r->dtype || t->device != r->device || rl_is_fake(t)) return false;
  if (r->flags & G_PARTIAL) return row_grad(r, t);
  if (t->ndim != r->ndim) return false;
  for (int d = 0; d < r->ndim; d++)
    if (!size_holds(r, d, t->size[d])) return false;
  if ((r->flags & G_STRIDES) && memcmp(t->stride, r->stride, sizeof(int64_t) * r->ndim) != 0) return false;
  if ((r->flags & G_OFFSET) && t->offset != r->offset) return false;
  if ((r->flags & G_STORAGE) && (t->storage ? t->storage->size : 0) != r->storage_size) return false;
  return row_grad(r, t);
}

static int64_t *write_geometry(int64_t *key, const guard_row *r, const rl_tensor *t) {
  for (int d = 0; d < t->ndim; d++) {
    *key++ = t->size[d];
    *key++ = t->stride[d];
  }
  if (r->flags & G_WINDOW) return key;
  *key++ = t->offset;
  *key++ = t->storage ? t->storage->size : 0;
  return key;
}

/* Calls ------------------------------------------------------------------------------------------------------------------------- */

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

/* Checks the tensors from stack index base on; writes the key. */
static bool guard_check(lua_State *L, const guard *g, int base, int64_t *key) {
  bool ok = lua_gettop(L) >= base + g->n + g->numbers - 1 && g->grad_disabled == rl_self.grad_disabled && g->default_dtype == rl_self.default_dtype &&
            g->autocast == rl_self.autocast && g->generator == rl_generator_default()->kind;
  memset(g->seen, 0, sizeof *g->seen * (size_t)(g->mask + 1));
  for (int k = 0; ok && k < g->n; k++) {
    const guard_row *r = &g->rows[k];
    const rl_tensor *t = bind_totensor(L, base + k);
    ok = t && row_holds(r, t);
    if (!ok) break;
    if (r->flags & G_KEYED) key = write_geometry(key, r, t);
    if (!t->storage || (r->flags & G_PARTIAL)) continue;
    ok = g->leader[k] == k ? first_meeting(g, t->storage) : t->storage == bind_totensor(L, base + g->leader[k])->storage;
  }
  for (int k = 0; ok && k < g->numbers; k++) {
    lua_Number x = lua_tonumber(L, base + g->n + k);
    ok = lua_type(L, base + g->n + k) == LUA_TNUMBER;
    memcpy(key++, &x, sizeof x);
  }
  return ok;
}

static uint64_t key_hash(const int64_t *key, int n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (int i = 0; i < n; i++) {
    h = (h ^ (uint64_t)key[i]) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h;
}

/* Keys lie behind the slots; the first place is room for the key of a call. */
static int64_t *key_at(guard_keys *t, int width, int slot) { return (int64_t *)(void *)&t->slot[t->cap] + (size_t)width * (size_t)(slot + 1); }

static bool key_is(guard_keys *t, int width, int slot, uint64_t hash, const int64_t *key) {
  return t->slot[slot].hash == hash && !memcmp(key_at(t, width, slot), key, sizeof *key * (size_t)width);
}

/* Slot of the key, -1 when it has none. */
static int key_find(guard_keys *t, int width, const int64_t *key) {
  uint64_t h = key_hash(key, width);
  if (t->last < t->n && key_is(t, width, t->last, h, key)) return t->last;
  for (int i = 0; i < t->n; i++)
    if (key_is(t, width, i, h, key)) return t->last = i;
  return -1;
}

/* guard(t1, t2, ..., n1, ...) -> true when all tensors are as captured. A guard with keys gives the number of the plan instead, 0 when it has
 * none for these tensors and numbers yet. */
static int guard_call(lua_State *L) {
  const guard *g = (const guard *)lua_touserdata(L, lua_upvalueindex(1));
  guard_keys *t = (guard_keys *)lua_touserdata(L, lua_upvalueindex(2));
  int64_t *key = g->width ? key_at(t, g->width, -1) : NULL;
  bool ok = guard_check(L, g, 1, key);
  if (ok && g->width) {
    int slot = key_find(t, g->width, key);
    if (slot >= 0) t->slot[slot].tick = ++t->tick;
    lua_pushinteger(L, slot + 1);
  } else lua_pushboolean(L, ok);
  return 1;
}

/* The slot that was used longest ago, or a new one. */
static int key_take(guard_keys *t) {
  if (t->n < t->cap) return t->n++;
  int old = 0;
  for (int i = 1; i < t->n; i++)
    if (t->slot[i].tick < t->slot[old].tick) old = i;
  return old;
}

/* C.guardKey(guard, t1, ..., n1, ...) -> number of the plan that these tensors and numbers have from now on, and how often plans were asked for
 * so far; false when the guard does not hold.
 * It is that of the plan that was used longest ago when there are too many. */
static int guard_key(lua_State *L) {
  luaL_argcheck(L, lua_iscfunction(L, 1) && lua_getupvalue(L, 1, 1) && lua_getupvalue(L, 1, 2), 1, "guard with keys expected");
  const guard *g = (const guard *)lua_touserdata(L, -2);
  guard_keys *t = (guard_keys *)lua_touserdata(L, -1);
  luaL_argcheck(L, g && t && g->width, 1, "guard with keys expected");
  lua_pop(L, 2);
  int64_t *key = key_at(t, g->width, -1);
  if (!guard_check(L, g, 2, key)) {
    lua_pushboolean(L, 0);
    return 1;
  }
  int slot = key_find(t, g->width, key);
  if (slot < 0) {
    slot = key_take(t);
    memcpy(key_at(t, g->width, slot), key, sizeof *key * (size_t)g->width);
    t->slot[slot].hash = key_hash(key, g->width);
  }
  t->slot[slot].tick = ++t->tick;
  lua_pushinteger(L, slot + 1);
  lua_pushnumber(L, (lua_Number)t->tick);
  return 2;
}

static guard *guard_alloc(lua_State *L, int n) {
  int slots = 4;
  while (slots < 2 * n) slots *= 2;
  guard *g = (guard *)lua_newuserdata(L, sizeof *g + sizeof(guard_row) * (size_t)n + sizeof(void *) * (size_t)slots + sizeof(int) * (size_t)n);
  g->n = n;
  g->mask = slots - 1;
  g->numbers = g->width = 0;
  g->grad_disabled = rl_self.grad_disabled;
  g->default_dtype = (uint8_t)rl_self.default_dtype;
  g->autocast = rl_self.autocast;
  g->generator = (uint8_t)rl_generator_default()->kind;
  g->rows = (guard_row *)(g + 1);
  g->seen = (const void **)(g->rows + n);
  g->leader = (int *)(g->seen + slots);
  memset(g->rows, 0, sizeof(guard_row) * (size_t)n);
  for (int k = 0; k < n; k++) g->leader[k] = k;
  return g;
}

/* Keys for a guard whose rows were read; nil when nothing is free. */
static void push_keys(lua_State *L, guard *g, int cap) {
  for (int k = 0; k < g->n; k++)
    if (g->rows[k].flags & G_KEYED) g->width += 2 * g->rows[k].ndim + (g->rows[k].flags & G_WINDOW ? 0 : 2);
  g->width += g->numbers;
  if (!g->width) {
    lua_pushnil(L);
    return;
  }
  guard_keys *t = NULL;
  size_t bytes = sizeof *t + sizeof t->slot[0] * (size_t)cap + sizeof(int64_t) * (size_t)g->width * (size_t)(cap + 1);
  t = (guard_keys *)lua_newuserdata(L, bytes);
  memset(t, 0, bytes);
  t->cap = cap;
}

/* C.guardNew({facts...} [, {{i, j}...} [, numbers [, plans]]]) -> function. Tensors i and j share a storage; all that are not listed have
 * separate ones. Facts without sizes hold for every shape and take no part in sharing. Gradient mode and the default type must be as they are
 * now. Facts with free = {{dim, low, high}, ...} hold for all sizes in these ranges, all strides and offsets; these and `numbers` numbers behind
 * the tensors choose one of at most `plans` plans (see guardKey). */
static int guard_new(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 4);
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
  g->numbers = (int)luaL_optinteger(L, 3, 0);
  push_keys(L, g, RL_MAX(1, (int)luaL_optinteger(L, 4, 64)));
  lua_pushcclosure(L, guard_call, 2);
  return 1;
}

static const bind_reg core[] = { { "guardNew", guard_new }, { "guardKey", guard_key }, { NULL, NULL } };

void bind_open_guard(lua_State *L) { bind_core(L, core); }
