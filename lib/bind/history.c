/* History of tensors for compiled functions: what made a tensor, which storages its gradient reads, and results put on the tape.
 * (tensors -> facts about the tape). */
#include "bind.h"
#include <string.h>

/* C.history(t) -> the tape node that made t (light userdata) or nil, address of t, number of the node's output, address of the tensor that t is a
 * view of or nil, that tensor. */
static int history(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  rl_requires_grad(t); /* a view catches up with its base */
  if (t->ag && t->ag->fn) lua_pushlightuserdata(L, t->ag->fn);
  else lua_pushnil(L);
  lua_pushlightuserdata(L, t);
  lua_pushinteger(L, t->ag ? t->ag->out : 0);
  rl_tensor *base = t->ag ? t->ag->base : NULL;
  if (!base || base->storage != t->storage) return 3;
  lua_pushlightuserdata(L, base);
  return 4 + bind_push_tensor(L, rl_tensor_retain(base));
}

/* C.viewOf(base, t): t, over the storage of base, is a view of it: later writes of values with a history reach both. */
static int view_of(lua_State *L) {
  rl_tensor *base = bind_tensor(L, 1), *t = bind_tensor(L, 2);
  if (t != base && !(t->ag && t->ag->base) && t->storage == base->storage) BIND_TRY(L, rl_tape_view(base, t));
  return 0;
}

static rl_tensor **tensors(lua_State *L, int i, int *n) {
  luaL_checktype(L, i, LUA_TTABLE);
  *n = (int)lua_objlen(L, i);
  rl_tensor **v = (rl_tensor **)lua_newuserdata(L, sizeof *v * (size_t)(*n + 1));
  for (int k = 0; k < *n; k++) {
    lua_rawgeti(L, i, k + 1);
    v[k] = bind_tensor(L, -1);
    lua_pop(L, 1);
  }
  return v;
}

/* C.reaches(y, {xs}) -> by x whether y's history runs through it. */
static int reaches(lua_State *L) {
  int n;
  rl_tensor *y = bind_tensor(L, 1), **xs = tensors(L, 2, &n);
  bool *hit = (bool *)lua_newuserdata(L, sizeof *hit * (size_t)(n + 1));
  BIND_TRY(L, rl_tape_reaches(y, xs, n, hit));
  lua_createtable(L, n, 0);
  for (int k = 0; k < n; k++) {
    lua_pushboolean(L, hit[k]);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* C.historyGroups({ys}, {stops}) -> a number by y, the same for those that share a part of their history, which ends at ys and stops. */
static int history_groups(lua_State *L) {
  int n, nstops;
  rl_tensor **ys = tensors(L, 1, &n), **stops = tensors(L, 2, &nstops);
  int *group = (int *)lua_newuserdata(L, sizeof *group * (size_t)(n + 1));
  BIND_TRY(L, rl_tape_groups(ys, n, stops, nstops, group));
  lua_createtable(L, n, 0);
  for (int k = 0; k < n; k++) {
    lua_pushinteger(L, group[k]);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

typedef struct held {
  rl_tensor **x;
  bool *yes;
  int n;
} held;

/* Offset of the last element, in front of the first where there is none. */
static int64_t last_of(const rl_tensor *t) {
  int64_t last = t->offset;
  for (int d = 0; d < t->ndim; d++) {
    if (t->size[d] == 0) return t->offset - 1;
    last += (t->size[d] - 1) * t->stride[d];
  }
  return last;
}

static void held_visit(void *ud, const rl_tensor *t) {
  held *h = (held *)ud;
  for (int i = 0; i < h->n; i++)
    if (h->x[i]->storage == t->storage && h->x[i]->offset <= last_of(t) && t->offset <= last_of(h->x[i])) h->yes[i] = true;
}

/* C.heldOf({ys}, {xs}) -> by x whether the gradients of ys read memory of it. */
static int held_of(lua_State *L) {
  int n;
  held h;
  rl_tensor **ys = tensors(L, 1, &n);
  h.x = tensors(L, 2, &h.n);
  h.yes = (bool *)lua_newuserdata(L, sizeof *h.yes * (size_t)(h.n + 1));
  memset(h.yes, 0, sizeof *h.yes * (size_t)h.n);
  BIND_TRY(L, rl_tape_saved(ys, n, held_visit, &h));
  lua_createtable(L, h.n, 0);
  for (int k = 0; k < h.n; k++) {
    lua_pushboolean(L, h.yes[k]);
    lua_rawseti(L, -2, k + 1);
  }
  return 1;
}

/* C.recordWrite(x, value): x, whose elements are value's already, takes value's history, as after an op in place. */
static int record_write(lua_State *L) {
  BIND_TRY(L, rl_tape_record_write(bind_tensor(L, 1), bind_tensor(L, 2)));
  return 0;
}

/* Watch: storages and how often they had been written. */
#define BIND_WATCH "relume.watch"
typedef struct watch {
  int n;
  struct {
    rl_storage *s;
    uint32_t version;
  } at[];
} watch;

/* C.watch(t1, ...) -> watch on the storages of the tensors as they are now. */
static int watch_new(lua_State *L) {
  int n = lua_gettop(L);
  watch *w = (watch *)lua_newuserdata(L, sizeof *w + (size_t)n * sizeof w->at[0]);
  w->n = 0;
  luaL_getmetatable(L, BIND_WATCH);
  lua_setmetatable(L, -2);
  for (int k = 0; k < n; k++) {
    rl_storage *s = bind_tensor(L, k + 1)->storage;
    if (s) rl_storage_retain(s);
    w->at[w->n].s = s;
    w->at[w->n++].version = s ? s->version : 0;
  }
  return 1;
}

/* watch([list]) -> number of the first tensor (in the list of numbers) that was written since, version then, version now; nothing: none. */
static int watch_call(lua_State *L) {
  const watch *w = (const watch *)luaL_checkudata(L, 1, BIND_WATCH);
  int n = lua_istable(L, 2) ? (int)lua_objlen(L, 2) : w->n;
  for (int i = 0; i < n; i++) {
    int k = i;
    if (lua_istable(L, 2)) {
      lua_rawgeti(L, 2, i + 1);
      k = (int)lua_tointeger(L, -1) - 1;
      lua_pop(L, 1);
    }
    if (k < 0 || k >= w->n || !w->at[k].s || w->at[k].s->version == w->at[k].version) continue;
    lua_pushinteger(L, k + 1);
    lua_pushnumber(L, (lua_Number)w->at[k].version);
    lua_pushnumber(L, (lua_Number)w->at[k].s->version);
    return 3;
  }
  return 0;
}

static int watch_gc(lua_State *L) {
  watch *w = (watch *)luaL_checkudata(L, 1, BIND_WATCH);
  for (int k = 0; k < w->n; k++)
    if (w->at[k].s) rl_storage_release(w->at[k].s);
  w->n = 0;
  return 0;
}

static const bind_reg core[] = {
  { "history", history }, { "viewOf", view_of },           { "reaches", reaches }, { "heldOf", held_of }, { "historyGroups", history_groups },
  { "watch", watch_new }, { "recordWrite", record_write }, { NULL, NULL }
};

void bind_open_history(lua_State *L) {
  static const luaL_Reg methods[] = { { "__call", watch_call }, { "__gc", watch_gc }, { NULL, NULL } };
  luaL_newmetatable(L, BIND_WATCH);
  luaL_register(L, NULL, methods);
  lua_pop(L, 1);
  bind_core(L, core);
}
