/* Plans in Lua: compiling a graph, running it, looking at it. */
#include "../runtime/plan.h"
#include "graph.h"
#include <stdlib.h>
#include <string.h>

#define BIND_PLAN "relume.plan"
#define BIND_FAMILY "relume.family"
#define BIND_HELD "relume.held"

/* A plan with the arrays that a call fills in. */
typedef struct plan_box {
  rl_plan *plan;
  int inputs, outputs, numbers;
  rl_tensor **in, **out, **target;
  double *num;
  bool busy, marks; /* marks: a run that holds keeps the generator's state before it */
} plan_box;

/* What a run leaves for a backward outside: outputs without a Lua object each, numbers, and the generator as it was. */
typedef struct held {
  int n, numbers;
  size_t mark;    /* bytes of the generator, 0: none */
  rl_tensor *t[]; /* by output, NULL: not held; then the numbers, then the generator */
} held;

static plan_box *plan_at(lua_State *L, int i) {
  plan_box *b = (plan_box *)luaL_checkudata(L, i, BIND_PLAN);
  if (!b->plan) luaL_error(L, "[plan] the plan was freed");
  return b;
}

static int plan_gc(lua_State *L) {
  plan_box *b = (plan_box *)luaL_checkudata(L, 1, BIND_PLAN);
  rl_plan_free(b->plan);
  free(b->in);
  free(b->num);
  memset(b, 0, sizeof *b);
  return 0;
}

static int plan_push(lua_State *L, rl_plan *p) {
  rl_plan_info info;
  plan_box *b = (plan_box *)lua_newuserdata(L, sizeof *b);
  memset(b, 0, sizeof *b);
  b->plan = p;
  luaL_getmetatable(L, BIND_PLAN);
  lua_setmetatable(L, -2);
  rl_plan_get_info(p, &info);
  b->inputs = info.inputs;
  b->outputs = info.outputs;
  b->numbers = info.numbers;
  b->in = calloc((size_t)(info.inputs + 2 * info.outputs) + 1, sizeof *b->in);
  b->num = calloc((size_t)info.numbers + 1, sizeof *b->num);
  if (!b->in || !b->num) return luaL_error(L, "[plan] out of memory");
  b->out = b->in + info.inputs;
  b->target = b->out + info.outputs;
  return 1;
}

static bool option(lua_State *L, int i, const char *name) {
  if (!lua_istable(L, i)) return false;
  lua_getfield(L, i, name);
  bool on = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return on;
}

/* ---- families ---- */

static rl_family *family_at(lua_State *L, int i) { return *(rl_family **)luaL_checkudata(L, i, BIND_FAMILY); }

static bool is_plan(lua_State *L, int i) {
  if (!lua_isuserdata(L, i) || !lua_getmetatable(L, i)) return false;
  luaL_getmetatable(L, BIND_PLAN);
  bool yes = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return yes;
}

/* C.planCompiles() -> whether plans are compiled: a C compiler was found. */
static int plan_compiles(lua_State *L) {
  lua_pushboolean(L, rl_plan_compiles());
  return 1;
}

/* C.planFamily() -> family of the plans of one graph for several sizes. */
static int family_new(lua_State *L) {
  rl_family **box = (rl_family **)lua_newuserdata(L, sizeof *box);
  *box = NULL;
  luaL_getmetatable(L, BIND_FAMILY);
  lua_setmetatable(L, -2);
  if (!(*box = rl_family_new())) return luaL_error(L, "[planFamily] out of memory");
  return 1;
}

static int family_gc(lua_State *L) {
  rl_family **box = (rl_family **)luaL_checkudata(L, 1, BIND_FAMILY);
  rl_family_free(*box);
  *box = NULL;
  return 0;
}

/* family:texts() -> number of different kernel texts so far. */
static int family_texts(lua_State *L) {
  lua_pushinteger(L, rl_family_texts(family_at(L, 1)));
  return 1;
}

/* family:probe(graph or plan [, strict]): the graph for other sizes; what differs becomes a parameter of kernels made from now on. */
static int family_probe(lua_State *L) {
  rl_family *f = family_at(L, 1);
  if (is_plan(L, 2)) {
    BIND_TRY(L, rl_family_probe(f, rl_plan_graph(plan_at(L, 2)->plan), lua_toboolean(L, 3)));
    return 0;
  }
  rl_graph *g = bind_graph(L, 2), *done = g->functional && g->primitive ? NULL : rl_pass_run(g);
  if (!done && !(g->functional && g->primitive)) return bind_raise(L, RL_ERR);
  rl_status s = rl_family_probe(f, done ? done : g, lua_toboolean(L, 3));
  rl_graph_free(done);
  BIND_TRY(L, s);
  return 0;
}

static rl_family *family_option(lua_State *L, int i) {
  if (!lua_istable(L, i)) return NULL;
  lua_getfield(L, i, "family");
  rl_family *f = lua_isnil(L, -1) ? NULL : family_at(L, lua_gettop(L));
  lua_pop(L, 1);
  return f;
}

/* g:compile{strict = bool, passes = bool, family = family} -> plan. Runs the passes first unless the graph is primitive already (or passes is false). */
static int graph_compile(lua_State *L) {
  rl_graph *g = bind_graph(L, 1);
  rl_compile_opts o = { .strict = option(L, 2, "strict"), .family = family_option(L, 2) };
  rl_graph *done = g->functional && g->primitive ? NULL : rl_pass_run(g);
  if (!done && !(g->functional && g->primitive)) return bind_raise(L, RL_ERR);
  rl_plan *p = rl_plan_compile(done ? done : g, &o);
  rl_graph_free(done);
  if (!p) return bind_raise(L, RL_ERR);
  return plan_push(L, p);
}

static int plan_finish(lua_State *L, plan_box *b) {
  bind_pressure(L, 0); /* of the last run's results */
  memset(b->out, 0, sizeof *b->out * (size_t)b->outputs);
  luaL_checkstack(L, b->outputs + 4, "too many outputs");
  BIND_TRY(L, rl_plan_run(b->plan, b->in, b->num, NULL, b->out));
  int n = b->outputs;
  for (int i = 0; i < n; i++) bind_push_result(L, b->out[i]);
  return n;
}

/* plan:run({tensors}, {numbers}) -> outputs. */
static int plan_run(lua_State *L) {
  plan_box *b = plan_at(L, 1);
  luaL_argcheck(L, b->inputs == 0 || lua_istable(L, 2), 2, "table of tensors expected");
  luaL_argcheck(L, b->numbers == 0 || lua_istable(L, 3), 3, "table of numbers expected");
  for (int i = 0; i < b->inputs; i++) {
    lua_rawgeti(L, 2, i + 1);
    if (!(b->in[i] = bind_totensor(L, -1))) return luaL_error(L, "[plan] input %d; got %s, need tensor", i + 1, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  for (int i = 0; i < b->numbers; i++) {
    lua_rawgeti(L, 3, i + 1);
    if (!lua_isnumber(L, -1)) return luaL_error(L, "[plan] number %d; got %s, need number", i + 1, luaL_typename(L, -1));
    b->num[i] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  return plan_finish(L, b);
}

/* plan:call(t1, t2, ..., n1, ...) -> outputs: as run, without tables. */
static int plan_call(lua_State *L) {
  plan_box *b = plan_at(L, 1);
  for (int i = 0; i < b->inputs; i++)
    if (!(b->in[i] = bind_totensor(L, i + 2))) return luaL_error(L, "[plan] input %d; got %s, need tensor", i + 1, luaL_typename(L, i + 2));
  for (int i = 0; i < b->numbers; i++) b->num[i] = luaL_checknumber(L, b->inputs + i + 2);
  lua_settop(L, b->inputs + 1); /* the inputs stay referenced */
  return plan_finish(L, b);
}

/* Element k of the table at index i, a tensor. */
static rl_tensor *tensor_of(lua_State *L, int i, int k) {
  lua_rawgeti(L, i, k);
  rl_tensor *t = bind_totensor(L, -1);
  if (!t) luaL_error(L, "[plan] tensor %d; got %s, need tensor", k, luaL_typename(L, -1));
  lua_pop(L, 1);
  return t;
}

/* t is what the plan made; the reference to u is given up. */
static rl_status set_output(rl_tensor *t, rl_tensor *u) {
  rl_geom g = { .ndim = u->ndim, .offset = u->offset };
  memcpy(g.size, u->size, sizeof(int64_t) * u->ndim);
  memcpy(g.stride, u->stride, sizeof(int64_t) * u->ndim);
  rl_status s = rl_tensor_set(t, u->storage, &g);
  rl_tensor_release(u);
  return s;
}

/* ---- runs that hold ---- */

static double *held_numbers(held *h) { return (double *)(h->t + h->n); }
static rl_generator *held_mark(held *h) { return (rl_generator *)(held_numbers(h) + h->numbers); }

static int held_gc(lua_State *L) {
  held *h = (held *)luaL_checkudata(L, 1, BIND_HELD);
  for (int i = 0; i < h->n; i++)
    if (h->t[i]) rl_tensor_release(h->t[i]);
  h->n = 0;
  return 0;
}

/* C.dropHeld(old, new) -> new: what old (nil or a record that nobody reads any more) holds is released. */
static int plan_drop_held(lua_State *L) {
  if (!lua_isnil(L, 1) && !lua_rawequal(L, 1, 2)) {
    const held *h = (const held *)luaL_checkudata(L, 1, BIND_HELD);
    for (int i = 0; i < h->n; i++)
      if (h->t[i] && h->t[i]->storage) bind_debt(-h->t[i]->storage->size * rl_dtypes[h->t[i]->dtype].bytes);
    lua_pushcfunction(L, held_gc);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 0);
  }
  lua_settop(L, 2);
  return 1;
}

/* Pushes the record of the run that comes; it takes the numbers and the generator as they are. */
static held *held_push(lua_State *L, plan_box *b) {
  const rl_generator *g = b->marks ? rl_generator_default() : NULL;
  size_t mark = g ? rl_generator_bytes(g) : 0, bytes = sizeof(held) + sizeof(rl_tensor *) * (size_t)b->outputs + sizeof(double) * (size_t)b->numbers;
  held *h = (held *)lua_newuserdata(L, bytes + mark);
  memset(h, 0, bytes);
  h->n = b->outputs;
  h->numbers = b->numbers;
  h->mark = mark;
  if (b->numbers) memcpy(held_numbers(h), b->num, sizeof(double) * (size_t)b->numbers);
  if (mark) memcpy(held_mark(h), g, mark);
  luaL_getmetatable(L, BIND_HELD);
  lua_setmetatable(L, -2);
  lua_getfenv(L, 1);
  lua_setfenv(L, -2);
  return h;
}

/* plan:holds(owner, marks): runs leave records that belong to owner, a table. marks: they keep the generator's state. */
static int plan_holds(lua_State *L) {
  plan_box *b = plan_at(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  b->marks = lua_toboolean(L, 3);
  lua_pushvalue(L, 2);
  lua_setfenv(L, 1);
  return 0;
}

/* C.planHeld(record) -> owner, {outputs that it holds, by number}, {numbers}, generator's state or nil (as C.randomMark gives it). */
static int plan_held(lua_State *L) {
  held *h = (held *)luaL_checkudata(L, 1, BIND_HELD);
  lua_getfenv(L, 1);
  lua_createtable(L, h->n, 0);
  for (int i = 0; i < h->n; i++)
    if (h->t[i]) {
      bind_push_tensor(L, rl_tensor_retain(h->t[i]));
      lua_rawseti(L, -2, i + 1);
    }
  lua_createtable(L, h->numbers, 0);
  for (int k = 0; k < h->numbers; k++) {
    lua_pushnumber(L, held_numbers(h)[k]);
    lua_rawseti(L, -2, k + 1);
  }
  if (h->mark) bind_push_mark(L, held_mark(h));
  else lua_pushnil(L);
  return 4;
}

/* places[i + 1], -1 when it is no number. */
static int place_of(lua_State *L, int places, int i) {
  lua_rawgeti(L, places, i + 1);
  int place = lua_isnumber(L, -1) ? (int)lua_tointeger(L, -1) : -1;
  lua_pop(L, 1);
  return place;
}

/* Tensor number place of the table at index table, or, where that is 0, of the arguments from index first on. */
static rl_tensor *target_of(lua_State *L, int table, int first, int place) {
  return table ? tensor_of(L, table, place) : bind_tensor(L, first + place - 1);
}

/* Runs the plan whose arguments are in place and deals with the outputs by places[k]: 0 is pushed, > 0 is what that target (see target_of) is set
 * to, nil is held. With places[0] the record of what is held is pushed last. */
static int plan_finish_places(lua_State *L, plan_box *b, int table, int first, int places) {
  bind_pressure(L, 0);
  memset(b->out, 0, sizeof *b->out * (size_t)b->outputs);
  luaL_checkstack(L, b->outputs + 8, "too many outputs");
  int top = lua_gettop(L), pushed = 0;
  lua_rawgeti(L, places, 0);
  held *h = lua_toboolean(L, -1) ? held_push(L, b) : NULL;
  for (int i = 0; i < b->outputs; i++) {
    int place = place_of(L, places, i);
    b->target[i] = place > 0 ? target_of(L, table, first, place) : NULL;
  }
  BIND_TRY(L, rl_plan_run(b->plan, b->in, b->num, b->target, b->out));
  rl_status s = RL_OK;
  int64_t bytes = 0;
  for (int i = 0; i < b->outputs; i++) {
    int place = place_of(L, places, i);
    rl_tensor *t = b->out[i];
    if (place < 0 && !h) rl_tensor_release(t);
    else if (place < 0) {
      h->t[i] = t;
      bytes += 256 + (t->storage ? t->storage->size * rl_dtypes[t->dtype].bytes : 0); /* what the last record held is garbage now */
    } else if (!place) {
      bind_push_result(L, t);
      pushed++;
    } else if (s == RL_OK) s = set_output(b->target[i], t);
  }
  BIND_TRY(L, s);
  if (h) {
    lua_pushvalue(L, top + 2);
    bind_debt(bytes);
    pushed++;
  }
  return pushed;
}

/* plan:callSet({inputs, then numbers}, targets, places) -> outputs whose place is 0. places[k] > 0: targets[places[k]] is set to output k, which
 * then needs no Lua object of its own; no number: it is held. places[0]: the record of what is held comes last. */
static int plan_call_set(lua_State *L) {
  plan_box *b = plan_at(L, 1);
  for (int i = 2; i <= 4; i++) luaL_checktype(L, i, LUA_TTABLE);
  for (int i = 0; i < b->inputs; i++) b->in[i] = tensor_of(L, 2, i + 1);
  for (int i = 0; i < b->numbers; i++) {
    lua_rawgeti(L, 2, b->inputs + i + 1);
    b->num[i] = luaL_checknumber(L, -1);
    lua_pop(L, 1);
  }
  return plan_finish_places(L, b, 3, 0, 4);
}

/* plan:callTo(places, t1, ..., n1, ..., target1, ...) -> as callSet, without tables. */
static int plan_call_to(lua_State *L) {
  plan_box *b = plan_at(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  for (int i = 0; i < b->inputs; i++)
    if (!(b->in[i] = bind_totensor(L, i + 3))) return luaL_error(L, "[plan] input %d; got %s, need tensor", i + 1, luaL_typename(L, i + 3));
  for (int i = 0; i < b->numbers; i++) b->num[i] = luaL_checknumber(L, b->inputs + i + 3);
  return plan_finish_places(L, b, 0, b->inputs + b->numbers + 3, 2);
}

static void set_int(lua_State *L, const char *k, int64_t v) {
  lua_pushnumber(L, (lua_Number)v);
  lua_setfield(L, -2, k);
}

/* plan:info() -> {inputs, outputs, numbers, launches, kernels, calls, arenaBytes, flops, bytes, buildSeconds, fromCache}. */
static int plan_info(lua_State *L) {
  rl_plan_info f;
  rl_plan_get_info(plan_at(L, 1)->plan, &f);
  lua_createtable(L, 0, 11);
  set_int(L, "inputs", f.inputs);
  set_int(L, "outputs", f.outputs);
  set_int(L, "numbers", f.numbers);
  set_int(L, "launches", f.launches);
  set_int(L, "kernels", f.kernels);
  set_int(L, "calls", f.calls);
  set_int(L, "arenaBytes", f.arena_bytes);
  set_int(L, "flops", f.flops);
  set_int(L, "bytes", f.bytes);
  lua_pushnumber(L, f.build_s);
  lua_setfield(L, -2, "buildSeconds");
  lua_pushboolean(L, f.from_cache);
  lua_setfield(L, -2, "fromCache");
  return 1;
}

/* plan:source() -> the generated C. */
static int plan_source(lua_State *L) {
  lua_pushstring(L, rl_plan_source(plan_at(L, 1)->plan));
  return 1;
}

/* plan:describe() -> one line a launch. */
static int plan_describe(lua_State *L) {
  char *s = rl_plan_describe(plan_at(L, 1)->plan);
  lua_pushstring(L, s ? s : "");
  free(s);
  return 1;
}

/* Adds compile to graphs and registers plans. */
void bind_open_plan(lua_State *L) {
  static const luaL_Reg methods[] = {
    { "run", plan_run },   { "call", plan_call },     { "callSet", plan_call_set },  { "callTo", plan_call_to }, { "holds", plan_holds },
    { "info", plan_info }, { "source", plan_source }, { "describe", plan_describe }, { "__gc", plan_gc },        { "__tostring", plan_describe },
    { NULL, NULL }
  };
  static const luaL_Reg family[] = { { "probe", family_probe }, { "texts", family_texts }, { "__gc", family_gc }, { NULL, NULL } };
  static const bind_reg functions[] = {
    { "planFamily", family_new }, { "planCompiles", plan_compiles }, { "planHeld", plan_held }, { "dropHeld", plan_drop_held }, { NULL, NULL }
  };
  luaL_newmetatable(L, BIND_FAMILY);
  luaL_register(L, NULL, family);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  bind_core(L, functions);
  luaL_newmetatable(L, BIND_HELD);
  lua_pushcfunction(L, held_gc);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
  luaL_newmetatable(L, BIND_PLAN);
  luaL_register(L, NULL, methods);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  luaL_getmetatable(L, BIND_GRAPH);
  lua_pushcfunction(L, graph_compile);
  lua_setfield(L, -2, "compile");
  lua_pop(L, 1);
}
