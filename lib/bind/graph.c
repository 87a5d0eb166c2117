/* Graphs in Lua: recording, passes, text, interpreter, and nodes as tables for backends written in Lua.
 * Node references count from 0, as in the text. */
#include "graph.h"
#include <stdlib.h>
#include <string.h>

rl_graph *bind_graph(lua_State *L, int i) { return *(rl_graph **)luaL_checkudata(L, i, BIND_GRAPH); }

int bind_push_graph(lua_State *L, rl_graph *g) {
  if (!g) return bind_raise(L, RL_ERR);
  rl_graph **box = (rl_graph **)lua_newuserdata(L, sizeof *box);
  *box = g;
  luaL_getmetatable(L, BIND_GRAPH);
  lua_setmetatable(L, -2);
  return 1;
}

static int graph_gc(lua_State *L) {
  rl_graph **box = (rl_graph **)lua_touserdata(L, 1);
  rl_graph_free(*box);
  *box = NULL;
  return 0;
}

/* ---- recording ---- */

/* C.graphBegin() -> graph that records this thread's ops on its fakes until stop. */
static int graph_begin(lua_State *L) {
  bind_push_graph(L, rl_graph_new());
  BIND_TRY(L, rl_graph_begin(bind_graph(L, -1)));
  return 1;
}

/* g:input(tensor [, {sizes} or true]) -> fake with the tensor's geometry; dense of these sizes; or (true) as if its storage began with it. */
static int graph_input(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 2);
  int64_t size[RL_MAXDIM] = { 0 };
  if (lua_isnoneornil(L, 3)) return bind_push_tensor(L, rl_graph_input(bind_graph(L, 1), t));
  if (lua_isboolean(L, 3) && lua_toboolean(L, 3)) return bind_push_tensor(L, rl_graph_input_window(bind_graph(L, 1), t));
  luaL_argcheck(L, lua_istable(L, 3) && (int)lua_objlen(L, 3) == t->ndim, 3, "table of the sizes expected");
  for (int d = 0; d < t->ndim; d++) {
    lua_rawgeti(L, 3, d + 1);
    size[d] = (int64_t)lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  return bind_push_tensor(L, rl_graph_input_sized(bind_graph(L, 1), t, size));
}

/* C.unrecorded(f, ...) -> what f returns, run while nothing is recorded. */
static int unrecorded(lua_State *L) {
  rl_graph *g = rl_self.graph;
  rl_self.graph = NULL;
  int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  rl_self.graph = g;
  return status ? lua_error(L) : lua_gettop(L);
}

/* g:number(hint) -> fake number of rank 0 that every run is given. */
static int graph_number(lua_State *L) { return bind_push_tensor(L, rl_graph_number(bind_graph(L, 1), luaL_optnumber(L, 2, 0))); }

/* g:constant(tensor) -> fake of a tensor that the graph keeps. */
static int graph_constant(lua_State *L) { return bind_push_tensor(L, rl_graph_constant(bind_graph(L, 1), bind_tensor(L, 2))); }

/* g:cotangent(fake) -> fake: a new input for the gradient of a result. */
static int graph_cotangent(lua_State *L) { return bind_push_tensor(L, rl_graph_cotangent(bind_graph(L, 1), bind_tensor(L, 2))); }

/* g:loc('file.lua:12'): source position of the nodes that follow. */
static int graph_set_loc(lua_State *L) {
  rl_graph_loc(bind_graph(L, 1), luaL_optstring(L, 2, ""));
  return 0;
}

/* g:output(fake). */
static int graph_output(lua_State *L) {
  BIND_TRY(L, rl_graph_output(bind_graph(L, 1), bind_tensor(L, 2)));
  return 0;
}

/* g:stop(): recording is off; a second call does nothing. */
static int graph_stop(lua_State *L) {
  rl_graph_end(bind_graph(L, 1));
  lua_settop(L, 1);
  return 1;
}

/* ---- text and checks ---- */

static int graph_print(lua_State *L) {
  char *text = rl_graph_print(bind_graph(L, 1));
  if (!text) return bind_raise(L, RL_OOM);
  lua_pushstring(L, text);
  free(text);
  return 1;
}

/* C.graphParse(text) -> graph; an error names line and column. */
static int graph_parse(lua_State *L) { return bind_push_graph(L, rl_graph_parse(luaL_checkstring(L, 1))); }

/* g:verify() -> true; raises the first broken rule. */
static int graph_verify(lua_State *L) {
  BIND_TRY(L, rl_graph_verify(bind_graph(L, 1)));
  lua_pushboolean(L, 1);
  return 1;
}

static int graph_count(lua_State *L) {
  lua_pushinteger(L, bind_graph(L, 1)->n);
  return 1;
}

/* g:ops() -> {name = count}. */
static int graph_ops(lua_State *L) {
  const rl_graph *g = bind_graph(L, 1);
  lua_newtable(L);
  for (rl_ref r = 0; r < g->n; r++) {
    const char *name = rl_node_name(g->nodes[r].op);
    lua_getfield(L, -1, name);
    lua_Integer k = lua_tointeger(L, -1);
    lua_pop(L, 1);
    lua_pushinteger(L, k + 1);
    lua_setfield(L, -2, name);
  }
  return 1;
}

/* ---- passes ---- */

/* g:passes() -> the functional primitive graph; g:passes('functionalize' | 'decompose' | 'fold' | 'assemble') runs that pass alone. */
static int graph_passes(lua_State *L) {
  static const char *const names[] = { "all", "functionalize", "decompose", "fold", "assemble", NULL };
  const rl_graph *g = bind_graph(L, 1);
  switch (luaL_checkoption(L, 2, "all", names)) {
  case 1: return bind_push_graph(L, rl_pass_functionalize(g));
  case 2: return bind_push_graph(L, rl_pass_decompose(g));
  case 3: return bind_push_graph(L, rl_pass_fold(g));
  case 4: return bind_push_graph(L, rl_pass_assemble(g));
  default: return bind_push_graph(L, rl_pass_run(g));
  }
}

/* g:backward{ref, ...} -> joint graph: the outputs, then the gradients for those nodes; cotangents are new inputs. */
static int graph_backward(lua_State *L) {
  const rl_graph *g = bind_graph(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  int n = (int)lua_objlen(L, 2);
  rl_ref *wrt = (rl_ref *)lua_newuserdata(L, sizeof *wrt * (size_t)(n + 1));
  for (int k = 0; k < n; k++) {
    lua_rawgeti(L, 2, k + 1);
    wrt[k] = (rl_ref)lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return bind_push_graph(L, rl_pass_backward(g, wrt, n));
}

/* The booleans of a table at i as bytes; NULL when there is no table. */
static char *flags(lua_State *L, int i, int n) {
  if (!lua_istable(L, i)) return NULL;
  char *v = (char *)lua_newuserdata(L, (size_t)n + 1);
  for (int k = 0; k < n; k++) {
    lua_rawgeti(L, i, k + 1);
    v[k] = (char)lua_toboolean(L, -1);
    lua_pop(L, 1);
  }
  return v;
}

static bool option(lua_State *L, int i, const char *name) {
  if (!lua_istable(L, i)) return false;
  lua_getfield(L, i, name);
  bool on = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return on;
}

/* g:partition(outputs, cotangents [, {keep by input}, {keep by output}, {replay =, live =}]) -> forward graph (outputs, then saved values), backward graph, list of the
 * saved values: the number of the input that it is, or 0. Without keep an input or output is saved as a copy. replay: random ops are computed again; live: inputs are
 * read as they are then. */
static int graph_partition(lua_State *L) {
  rl_graph *fwd, *bwd;
  const rl_graph *g = bind_graph(L, 1);
  int32_t *saved, n;
  lua_settop(L, 6);
  int how = (option(L, 6, "replay") ? CUT_REPLAY : 0) | (option(L, 6, "live") ? CUT_LIVE : 0);
  char *in = flags(L, 4, g->ninputs), *out = flags(L, 5, g->noutputs);
  BIND_TRY(L, rl_pass_partition(g, (int)luaL_checkinteger(L, 2), (int)luaL_checkinteger(L, 3), in, out, how, &fwd, &bwd, &saved, &n));
  bind_push_graph(L, fwd);
  bind_push_graph(L, bwd);
  lua_createtable(L, n, 0);
  for (int32_t k = 0; k < n; k++) {
    lua_pushinteger(L, saved[k] + 1);
    lua_rawseti(L, -2, k + 1);
  }
  free(saved);
  return 3;
}

/* g:absent(first, {missing by input}) -> the graph without those cotangents (inputs from `first` on), by output whether it is gone. */
static int graph_absent(lua_State *L) {
  const rl_graph *g = bind_graph(L, 1);
  luaL_checktype(L, 3, LUA_TTABLE);
  char *missing = flags(L, 3, g->ninputs), *gone = (char *)lua_newuserdata(L, (size_t)g->noutputs + 1);
  bind_push_graph(L, rl_pass_absent(g, (int)luaL_checkinteger(L, 2) - 1, missing, gone));
  lua_createtable(L, g->noutputs, 0);
  for (int32_t k = 0; k < g->noutputs; k++) {
    lua_pushboolean(L, gone[k]);
    lua_rawseti(L, -2, k + 1);
  }
  return 2;
}

/* g:sizes() -> inputs, outputs, updates, counters drawn. */
static int graph_sizes(lua_State *L) {
  const rl_graph *g = bind_graph(L, 1);
  lua_pushinteger(L, g->ninputs);
  lua_pushinteger(L, g->noutputs);
  lua_pushinteger(L, g->nupdates);
  lua_pushnumber(L, (lua_Number)g->rng_total);
  return 4;
}

/* ---- interpreter ---- */

static void read_run(lua_State *L, const rl_graph *g, rl_tensor **in, double *numbers) {
  luaL_argcheck(L, (g->ninputs == 0 && lua_isnoneornil(L, 2)) || lua_istable(L, 2), 2, "table of input tensors expected");
  luaL_argcheck(L, g->nnumbers == 0 || lua_istable(L, 3), 3, "table of numbers expected");
  for (int32_t k = 0; k < g->ninputs; k++) {
    lua_rawgeti(L, 2, k + 1);
    if (!(in[k] = bind_totensor(L, -1))) luaL_error(L, "[graphRun] input %d; got %s, need tensor", k + 1, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  for (int32_t k = 0; k < g->nnumbers; k++) {
    lua_rawgeti(L, 3, k + 1);
    if (!lua_isnumber(L, -1)) luaL_error(L, "[graphRun] number %d; got %s, need number", k + 1, luaL_typename(L, -1));
    numbers[k] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
}

#define GRAPH_MARK "relume.mark"

static const rl_generator *mark_at(lua_State *L, int i) { return (const rl_generator *)luaL_checkudata(L, i, GRAPH_MARK); }

int bind_push_mark(lua_State *L, const rl_generator *g) {
  memcpy(lua_newuserdata(L, rl_generator_bytes(g)), g, rl_generator_bytes(g));
  luaL_newmetatable(L, GRAPH_MARK);
  lua_setmetatable(L, -2);
  return 1;
}

/* C.randomMark() -> the state of the default generator, for run and randomSwap. */
static int random_mark(lua_State *L) { return bind_push_mark(L, rl_generator_default()); }

/* C.randomSwap(mark) -> what the state was; it is the mark's now. */
static int random_swap(lua_State *L) {
  const rl_generator *m = mark_at(L, 1);
  random_mark(L);
  memcpy(rl_generator_default(), m, rl_generator_bytes(m));
  return 1;
}

/* C.randomSequential() -> whether draws have to run in program order. */
static int random_sequential(lua_State *L) {
  lua_pushboolean(L, rl_random_sequential());
  return 1;
}

/* g:used() -> by input whether something reads it. */
static int graph_used(lua_State *L) {
  const rl_graph *g = bind_graph(L, 1);
  char *hit = (char *)lua_newuserdata(L, (size_t)g->n + 1);
  memset(hit, 0, (size_t)g->n + 1);
  for (rl_ref r = 0; r < g->n; r++)
    for (int k = 0; k < g->nodes[r].nin; k++)
      if (rl_node_in(g, r, k) >= 0) hit[rl_node_in(g, r, k)] = 1;
  for (int32_t i = 0; i < g->noutputs; i++) hit[g->outputs[i]] = 1;
  lua_createtable(L, g->ninputs, 0);
  for (int32_t i = 0; i < g->ninputs; i++) {
    lua_pushboolean(L, hit[g->inputs[i]]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* g:inline({fakes, false where nothing reads}, {numbers as fakes}) -> outputs, recorded into the graph at hand. */
static int graph_inline(lua_State *L) {
  const rl_graph *g = bind_graph(L, 1);
  lua_settop(L, 3);
  rl_tensor **in = (rl_tensor **)lua_newuserdata(L, sizeof *in * (size_t)(g->ninputs + g->nnumbers + g->noutputs + 1));
  rl_tensor **numbers = in + g->ninputs, **out = numbers + g->nnumbers;
  for (int32_t k = 0; k < g->ninputs + g->nnumbers; k++) {
    lua_rawgeti(L, k < g->ninputs ? 2 : 3, k < g->ninputs ? k + 1 : k - g->ninputs + 1);
    in[k] = bind_totensor(L, -1);
    lua_pop(L, 1);
  }
  memset(out, 0, sizeof *out * (size_t)g->noutputs);
  rl_status s = rl_graph_inline(g, in, numbers, out);
  for (int32_t k = 0; s != RL_OK && k < g->noutputs; k++)
    if (out[k]) rl_tensor_release(out[k]);
  if (s != RL_OK) return bind_raise(L, s);
  luaL_checkstack(L, g->noutputs + 4, "too many outputs");
  for (int32_t k = 0; k < g->noutputs; k++) bind_push_tensor(L, out[k]);
  return g->noutputs;
}

/* g:run({tensors}, {numbers} [, mark]) -> outputs, by the interpreter. With a mark on the tape: outputs have a history, random ops draw as at the
 * mark, no input is updated. */
static int graph_run(lua_State *L) {
  const rl_graph *g = bind_graph(L, 1);
  lua_settop(L, 4);
  const rl_generator *mark = lua_isnil(L, 4) ? NULL : mark_at(L, 4);
  rl_tensor **in = (rl_tensor **)lua_newuserdata(L, sizeof *in * (size_t)(g->ninputs + g->noutputs + 1)), **out = in + g->ninputs;
  double *numbers = (double *)lua_newuserdata(L, sizeof *numbers * (size_t)(g->nnumbers + 1));
  read_run(L, g, in, numbers);
  memset(out, 0, sizeof *out * (size_t)g->noutputs);
  rl_status s = mark ? rl_graph_run_taped(g, in, numbers, mark, out) : rl_graph_run(g, in, numbers, out);
  if (s != RL_OK) {
    for (int32_t k = 0; k < g->noutputs; k++)
      if (out[k]) rl_tensor_release(out[k]);
    return bind_raise(L, s);
  }
  luaL_checkstack(L, g->noutputs + 4, "too many outputs");
  for (int32_t k = 0; k < g->noutputs; k++) bind_push_tensor(L, out[k]);
  return g->noutputs;
}

/* ---- nodes as tables ---- */

static void push_ints(lua_State *L, const int64_t *v, int n) {
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushnumber(L, (lua_Number)v[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

static void push_refs(lua_State *L, const rl_ref *v, int n) {
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    if (v[i] < 0) lua_pushboolean(L, 0);
    else lua_pushinteger(L, v[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

static void push_attr(lua_State *L, const rl_attr_info *i, const rl_attrs *a) {
  switch (i->kind) {
  case 'l': push_ints(L, a->list[i->slot], a->nlist[i->slot]); break;
  case 'f': lua_pushnumber(L, a->v[i->slot].f); break;
  case 'b': lua_pushboolean(L, a->v[i->slot].i != 0); break;
  case 'd': lua_pushstring(L, rl_dtypes[a->v[i->slot].i].name); break;
  default: lua_pushnumber(L, (lua_Number)a->v[i->slot].i);
  }
}

/* Attributes by name; those of a window are sizes, strides, offset. */
static void push_attrs(lua_State *L, const rl_graph *g, const rl_node *n) {
  lua_newtable(L);
  if (n->attrs < 0) return;
  const rl_attrs *a = &g->attrs[n->attrs];
  if (n->op == RL_G_SCATTER_WINDOW) {
    push_ints(L, a->list[0], a->nlist[0]);
    lua_setfield(L, -2, "sizes");
    push_ints(L, a->list[1], a->nlist[1]);
    lua_setfield(L, -2, "strides");
    lua_pushnumber(L, (lua_Number)a->v[0].i);
    lua_setfield(L, -2, "offset");
  }
  for (int i = 0; n->op < RL_NOP && i < rl_ops[n->op].nattrs; i++) {
    push_attr(L, &rl_ops[n->op].attrs[i], a);
    lua_setfield(L, -2, rl_ops[n->op].attrs[i].name);
  }
}

static void set_number(lua_State *L, const char *k, lua_Number v) {
  lua_pushnumber(L, v);
  lua_setfield(L, -2, k);
}

static void push_leaf(lua_State *L, const rl_graph *g, const rl_node *n) {
  if (n->op == RL_G_CONST) {
    const rl_attrs *a = &g->attrs[n->attrs];
    set_number(L, "value", g->types[n->type].dtype == RL_I64 ? (lua_Number)a->v[0].i : a->v[0].f);
  }
  if (n->op == RL_G_INPUT || n->op == RL_G_NUMBER) set_number(L, "index", n->aux + 1);
  if (n->op == RL_G_TENSOR && g->consts[n->aux]) {
    bind_push_tensor(L, rl_tensor_retain(g->consts[n->aux]));
    lua_setfield(L, -2, "tensor");
  }
  if (n->op == RL_G_PROJ) set_number(L, "output", n->aux + 1);
}

static void push_node(lua_State *L, const rl_graph *g, rl_ref r) {
  const rl_node *n = &g->nodes[r];
  const rl_type *t = &g->types[n->type];
  const rl_geom *ge = &g->geoms[n->geom];
  lua_createtable(L, 0, 12);
  set_number(L, "ref", r);
  lua_pushstring(L, rl_node_name(n->op));
  lua_setfield(L, -2, "op");
  push_refs(L, &g->refs[n->in], n->nin);
  lua_setfield(L, -2, "inputs");
  push_attrs(L, g, n);
  lua_setfield(L, -2, "attrs");
  lua_pushstring(L, rl_dtypes[t->dtype].name);
  lua_setfield(L, -2, "dtype");
  lua_pushboolean(L, t->weak);
  lua_setfield(L, -2, "weak");
  push_ints(L, t->size, t->ndim);
  lua_setfield(L, -2, "sizes");
  push_ints(L, ge->stride, ge->ndim);
  lua_setfield(L, -2, "strides");
  set_number(L, "offset", (lua_Number)ge->offset);
  set_number(L, "storage", n->storage);
  if (n->op < RL_NOP && (rl_ops[n->op].flags & RL_OPF_RANDOM)) set_number(L, "rng", (lua_Number)n->rng);
  if (n->line) {
    lua_pushstring(L, g->locs[n->line]);
    lua_setfield(L, -2, "line");
  }
  push_leaf(L, g, n);
}

static void push_updates(lua_State *L, const rl_graph *g) {
  lua_createtable(L, g->nupdates, 0);
  for (int32_t i = 0; i < g->nupdates; i++) {
    lua_createtable(L, 0, 2);
    set_number(L, "input", g->updates[i].input);
    set_number(L, "value", g->updates[i].value);
    lua_rawseti(L, -2, i + 1);
  }
}

/* g:walk() -> nodes, ends. nodes is a list in order of {ref, op, inputs = {ref or false}, attrs = {name = value}, dtype, weak, sizes, strides,
 * offset, storage, rng, line, value (const), index (input, number), tensor (tensor), output (proj)}; ends has the references
 * {inputs, numbers, outputs, updates = {{input, value}}}. */
static int graph_walk(lua_State *L) {
  const rl_graph *g = bind_graph(L, 1);
  lua_createtable(L, g->n, 0);
  for (rl_ref r = 0; r < g->n; r++) {
    push_node(L, g, r);
    lua_rawseti(L, -2, r + 1);
  }
  lua_createtable(L, 0, 4);
  push_refs(L, g->inputs, g->ninputs);
  lua_setfield(L, -2, "inputs");
  push_refs(L, g->numbers, g->nnumbers);
  lua_setfield(L, -2, "numbers");
  push_refs(L, g->outputs, g->noutputs);
  lua_setfield(L, -2, "outputs");
  push_updates(L, g);
  lua_setfield(L, -2, "updates");
  return 2;
}

/* Registers the graph functions in C and their metatable. */
void bind_open_graph(lua_State *L) {
  static const luaL_Reg methods[] = { { "input", graph_input },
                                      { "number", graph_number },
                                      { "constant", graph_constant },
                                      { "loc", graph_set_loc },
                                      { "output", graph_output },
                                      { "stop", graph_stop },
                                      { "print", graph_print },
                                      { "verify", graph_verify },
                                      { "count", graph_count },
                                      { "ops", graph_ops },
                                      { "passes", graph_passes },
                                      { "backward", graph_backward },
                                      { "partition", graph_partition },
                                      { "run", graph_run },
                                      { "cotangent", graph_cotangent },
                                      { "absent", graph_absent },
                                      { "sizes", graph_sizes },
                                      { "used", graph_used },
                                      { "inline", graph_inline },
                                      { "walk", graph_walk },
                                      { "__gc", graph_gc },
                                      { "__tostring", graph_print },
                                      { NULL, NULL } };
  static const bind_reg functions[] = { { "graphBegin", graph_begin },
                                        { "graphParse", graph_parse },
                                        { "unrecorded", unrecorded },
                                        { "randomMark", random_mark },
                                        { "randomSwap", random_swap },
                                        { "randomSequential", random_sequential },
                                        { NULL, NULL } };
  luaL_newmetatable(L, BIND_GRAPH);
  luaL_register(L, NULL, methods);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  bind_core(L, functions);
}
