/* Random numbers: generators, seeds, draws in place, draws of one number.
 * ([generator,] [tensor,] parameters) -> tensor filled, or a number. All draws go through the thread's current generator. */
#include "bind.h"
#include <string.h>
#include <time.h>

static rl_generator *bind_togen(lua_State *L, int i) {
  bind_box *b = (bind_box *)lua_touserdata(L, i);
  return b && lua_objlen(L, i) == sizeof *b && b->tag == &bind_tag_gen ? (rl_generator *)b->p : NULL;
}

/* Runs f with the generator given as first argument, or behind the tensor (taken out), or the default one, restored also when f raises. */
static int with_generator(lua_State *L, lua_CFunction f) {
  int at = bind_togen(L, 1) ? 1 : bind_togen(L, 2) ? 2 : 0;
  if (!at) return f(L);
  rl_generator *g = bind_togen(L, at), *was = rl_generator_default();
  int top = lua_gettop(L);
  if (rl_self.graph && g != was) return luaL_error(L, "[capture] needs values: draws of a generator that is not the default one");
  lua_pushcfunction(L, f);
  for (int i = 1; i <= top; i++)
    if (i != at) lua_pushvalue(L, i);
  rl_self.gen = g;
  int rc = lua_pcall(L, top - 1, LUA_MULTRET, 0);
  rl_self.gen = was;
  return rc ? lua_error(L) : lua_gettop(L) - top;
}

/* Draws ------------------------------------------------------------------------------------------------------------------------- */

/* Fills res with the op's draws; sizes are list 0, the dtype attribute is v[slot]. Integer tensors take truncated doubles. */
static void draw_into(lua_State *L, rl_op op, rl_attrs *a, int slot, rl_tensor *res) {
  a->nlist[0] = res->ndim;
  memcpy(a->list[0], res->size, (size_t)res->ndim * sizeof *res->size);
  if (!res->storage || rl_numel(res) == 0) return;
  a->v[slot].i = rl_dtypes[res->dtype].is_float ? res->dtype : RL_F64;
  if (rl_dtypes[res->dtype].is_float) {
    bind_call(L, op, NULL, 0, a, &res);
    return;
  }
  rl_tensor *t = bind_op(L, op, NULL, 0, a);
  bind_push_tensor(L, t);
  bind_copy(L, res, t);
  lua_pop(L, 1);
}

static int draw_number(lua_State *L, rl_op op, rl_attrs *a, int slot) {
  a->nlist[0] = 0;
  a->v[slot].i = RL_F64;
  return bind_push_scalar(L, bind_op(L, op, NULL, 0, a));
}

/* Raises when the parameters are none of the distribution's; those of the original that take any stay so. */
static void check_params(lua_State *L, rl_op op, double p1, double p2) {
  if (op == RL_OP_BERNOULLI && !(p1 >= 0 && p1 <= 1)) luaL_error(L, "[bernoulli] probability; got %f, need 0 to 1", p1);
  if (op == RL_OP_GEOMETRIC && !(p1 > 0 && p1 < 1)) luaL_error(L, "[geometric] probability; got %f, need more than 0, less than 1", p1);
  if (op == RL_OP_NORMAL && !(p2 >= 0)) luaL_error(L, "[normal] standard deviation; got %f, need 0 or more", p2);
  if (op == RL_OP_LOG_NORMAL && !(p2 >= 0)) luaL_error(L, "[logNormal] standard deviation; got %f, need 0 or more", p2);
}

/* One distribution: f([x,] p1, p2); without x one number. */
static int draw(lua_State *L, rl_op op, int params, double d1, double d2, int slot) {
  rl_tensor *x = bind_totensor(L, 1);
  int i = x ? 2 : 1;
  rl_attrs a;
  rl_attrs_default(op, &a);
  if (params >= 1) a.v[0].f = lua_isnoneornil(L, i) ? d1 : bind_number(L, i);
  if (params >= 2) a.v[1].f = lua_isnoneornil(L, i + 1) ? d2 : bind_number(L, i + 1);
  check_params(L, op, params >= 1 ? a.v[0].f : 0, params >= 2 ? a.v[1].f : 0);
  if (!x) return draw_number(L, op, &a, slot);
  draw_into(L, op, &a, slot, x);
  lua_settop(L, 1);
  return 1;
}

static int do_uniform(lua_State *L) { return draw(L, RL_OP_UNIFORM, 2, 0, 1, 2); }
static int do_normal(lua_State *L) { return draw(L, RL_OP_NORMAL, 2, 0, 1, 2); }
static int do_exponential(lua_State *L) { return draw(L, RL_OP_EXPONENTIAL, 1, 1, 0, 1); }
static int do_cauchy(lua_State *L) { return draw(L, RL_OP_CAUCHY, 2, 0, 1, 2); }
static int do_log_normal(lua_State *L) { return draw(L, RL_OP_LOG_NORMAL, 2, 1, 2, 2); }
static int do_geometric(lua_State *L) { return draw(L, RL_OP_GEOMETRIC, 1, 0.5, 0, 1); }

/* bernoulli([x,] p): p a number, or a tensor of probabilities of x's size. */
static int do_bernoulli(lua_State *L) {
  rl_tensor *x = bind_totensor(L, 1), *p = bind_totensor(L, 2), *t;
  if (!x || !p || p->ndim == 0) return draw(L, RL_OP_BERNOULLI, 1, 0.5, 0, 1);
  bind_push_tensor(L, t = bind_op(L, RL_OP_BERNOULLI_LIKE, &p, 1, NULL));
  bind_copy(L, x, t);
  lua_settop(L, 1);
  return 1;
}

static rl_tensor *draw_uniform(lua_State *L, const rl_tensor *x, double lo, double hi) {
  rl_attrs a;
  rl_attrs_default(RL_OP_UNIFORM, &a);
  a.v[0].f = lo;
  a.v[1].f = hi;
  a.v[2].i = RL_F64;
  a.nlist[0] = x ? x->ndim : 0;
  if (x) memcpy(a.list[0], x->size, (size_t)x->ndim * sizeof *x->size);
  rl_tensor *t = bind_op(L, RL_OP_UNIFORM, NULL, 0, &a);
  bind_push_tensor(L, t);
  return t;
}

/* Integers from lo up to end - 1, for Philox: a uniform number rounded down. */
static rl_tensor *draw_integers(lua_State *L, const rl_tensor *x, double lo, double end) {
  rl_tensor *t = draw_uniform(L, x, lo, end);
  bind_call(L, RL_OP_FLOOR, &t, 1, NULL, &t);
  return t;
}

/* The same for mt19937, as the original draws them: the remainder of a 32-bit word. */
static rl_tensor *draw_words(lua_State *L, const rl_tensor *x, double lo, double end) {
  rl_number range, first;
  rl_tensor *t = draw_uniform(L, x, 0, 4294967296.0);
  bind_call(L, RL_OP_FMOD, (rl_tensor *[]){ t, rl_number_set(&range, end - lo) }, 2, NULL, &t);
  bind_call(L, RL_OP_ADD, (rl_tensor *[]){ t, rl_number_set(&first, lo) }, 2, NULL, &t);
  return t;
}

/* Largest value of random() without bounds: what the type holds exactly, one more for the original's floats. */
static double most_of(const rl_tensor *x) {
  static const double most[RL_NDTYPE] = { 255, 127, 32767, 2147483647, 9007199254740992.0, 2048, 256, 16777216, 9007199254740992.0 };
  return x ? most[x->dtype] : 4294967295.0;
}

/* random([x,] [first,] last): integers; without bounds up to what the type holds exactly. */
static int do_random(lua_State *L) {
  rl_tensor *x = bind_totensor(L, 1), *t;
  int i = x ? 2 : 1, n = lua_gettop(L);
  bool free_range = n < i || lua_isnil(L, i);
  double lo = free_range ? 0 : n > i ? bind_number(L, i) : 1, hi = free_range ? most_of(x) : bind_number(L, n > i ? i + 1 : i);
  if (!free_range && hi < lo) return luaL_error(L, "[random] bounds; got %f to %f, need first <= last", lo, hi);
  if (x && (!x->storage || rl_numel(x) == 0)) {
    lua_settop(L, 1);
    return 1;
  }
  t = rl_random_sequential() ? draw_words(L, x, lo, hi + 1) : draw_integers(L, x, lo, hi + 1);
  if (!x) return bind_push_scalar(L, rl_tensor_retain(t));
  bind_copy(L, x, t);
  lua_settop(L, 1);
  return 1;
}

#define WITH_GEN(name) \
  static int f_##name(lua_State *L) { return with_generator(L, do_##name); }
WITH_GEN(uniform)
WITH_GEN(normal)
WITH_GEN(exponential)
WITH_GEN(cauchy)
WITH_GEN(log_normal)
WITH_GEN(geometric)
WITH_GEN(bernoulli)
WITH_GEN(random)

/* rand([res,] sizes), randn, randperm([res,] n) */
static int sized(lua_State *L, rl_op op) {
  rl_tensor *res = bind_totensor(L, 1);
  int64_t size[RL_MAXDIM];
  int nd = bind_sizes(L, res ? 2 : 1, size);
  rl_attrs a;
  rl_attrs_default(op, &a);
  if (res) {
    BIND_TRY(L, rl_tensor_resize(res, nd, size));
    draw_into(L, op, &a, 0, res);
    lua_settop(L, 1);
    return 1;
  }
  a.nlist[0] = nd;
  memcpy(a.list[0], size, (size_t)nd * sizeof *size);
  a.v[0].i = rl_dtypes[rl_self.default_dtype].is_float ? rl_self.default_dtype : RL_F64;
  return bind_push_tensor(L, bind_op(L, op, NULL, 0, &a));
}

static int do_rand(lua_State *L) { return sized(L, RL_OP_RAND); }
static int do_randn(lua_State *L) { return sized(L, RL_OP_RANDN); }

static int do_randperm(lua_State *L) {
  rl_tensor *res = bind_totensor(L, 1), *t;
  rl_attrs a;
  int64_t n = bind_int(L, res ? 2 : 1);
  if (n < 1) return luaL_error(L, "[randperm] length; got %d, need 1 or more", (int)n);
  rl_attrs_default(RL_OP_RANDPERM, &a);
  a.v[0].i = n;
  a.v[1].i = res ? res->dtype : rl_self.default_dtype;
  if (res) {
    bind_into(L, RL_OP_RANDPERM, NULL, 0, &a, &res);
    lua_settop(L, 1);
    t = res;
  } else bind_push_tensor(L, t = bind_op(L, RL_OP_RANDPERM, NULL, 0, &a));
  bind_shift(L, t, 1);
  return 1;
}

/* multinomial([res,] p, n [, replacement]) -> Long indices from 1. */
static int do_multinomial(lua_State *L) {
  int i = bind_totensor(L, 2) ? 2 : 1;
  rl_tensor *p = bind_tensor(L, i), *res = i == 2 ? bind_tensor(L, 1) : NULL;
  rl_attrs a;
  rl_attrs_default(RL_OP_MULTINOMIAL, &a);
  a.v[0].i = bind_int(L, i + 1);
  a.v[1].i = lua_toboolean(L, i + 2);
  if (!rl_dtypes[p->dtype].is_float) bind_push_tensor(L, p = bind_cast(L, p, RL_F64));
  if (res) {
    bind_into(L, RL_OP_MULTINOMIAL, &p, 1, &a, &res);
    lua_settop(L, 1);
  } else bind_push_tensor(L, res = bind_op(L, RL_OP_MULTINOMIAL, &p, 1, &a));
  bind_shift(L, res, 1);
  return 1;
}

WITH_GEN(rand)
WITH_GEN(randn)
WITH_GEN(randperm)
WITH_GEN(multinomial)

/* Generators -------------------------------------------------------------------------------------------------------------------- */

static rl_generator *current(lua_State *L) {
  rl_generator *g = bind_togen(L, 1);
  return g ? g : rl_generator_default();
}

static int after_gen(lua_State *L) { return bind_togen(L, 1) ? 2 : 1; }

/* torch.manualSeed([gen,] n) -> n */
static int f_manual_seed(lua_State *L) {
  int i = after_gen(L);
  double v = bind_number(L, i);
  rl_generator_seed(current(L), (uint64_t)(int64_t)v);
  lua_pushnumber(L, v);
  return 1;
}

static uint64_t clock_seed(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return ((uint64_t)t.tv_sec * 1000003u ^ (uint64_t)t.tv_nsec ^ (uint64_t)(uintptr_t)L) & 0xffffffffffffu; /* exact in a double */
}

/* torch.seed([gen]) -> a seed from the clock. */
static int f_seed(lua_State *L) {
  uint64_t s = clock_seed(L);
  rl_generator_seed(current(L), s);
  lua_pushnumber(L, (lua_Number)s);
  return 1;
}

static int f_initial_seed(lua_State *L) {
  lua_pushnumber(L, (lua_Number)current(L)->initial_seed);
  return 1;
}

/* torch.getRNGState([gen]) -> ByteTensor: seed and counter of Philox (24 bytes), or mt19937's state in the original's layout (5048).
 * setRNGState([gen,] state): the state's size tells the kind. */
static int f_get_state(lua_State *L) {
  rl_generator *g = current(L);
  bool mt = g->kind == RL_GEN_MT19937;
  int64_t n = mt ? (int64_t)sizeof g->mt : (int64_t)RL_PHILOX_STATE;
  struct rl_graph *rec = rl_self.graph;
  rl_self.graph = NULL;
  rl_tensor *t = rl_tensor_empty(RL_U8, RL_CPU, 1, &n);
  rl_self.graph = rec;
  if (t) memcpy(rl_data(t), mt ? (const void *)&g->mt : (const void *)g, (size_t)n);
  return bind_push_tensor(L, t);
}

static bool mt_valid(const rl_mt19937 *m) {
  for (int i = 0; i < RL_MT_WORDS; i++)
    if (m->state[i] > 0xffffffffu) return false;
  return m->seeded == 1 && m->left > 0 && m->left <= RL_MT_WORDS && m->next <= RL_MT_WORDS &&
         (m->left == 1 || m->next + (uint64_t)m->left <= RL_MT_WORDS + 1);
}

static int f_set_state(lua_State *L) {
  int i = after_gen(L);
  rl_tensor *t = bind_tensor(L, i);
  bind_values(L, t, "setRNGState");
  rl_generator *g = current(L);
  int64_t n = rl_numel(t);
  bool ok = t->dtype == RL_U8 && rl_is_contiguous(t) && (n == (int64_t)RL_PHILOX_STATE || n == (int64_t)sizeof g->mt);
  rl_mt19937 m;
  if (ok && n == (int64_t)sizeof m) {
    memcpy(&m, rl_data(t), sizeof m);
    ok = mt_valid(&m);
  }
  if (!ok) return bind_argerror(L, i, "state from torch.getRNGState");
  if (n == (int64_t)sizeof m) {
    *g = (rl_generator){ .seed = m.initial_seed, .initial_seed = m.initial_seed, .kind = RL_GEN_MT19937, .mt = m };
  } else {
    g->kind = RL_GEN_PHILOX;
    memcpy(g, rl_data(t), RL_PHILOX_STATE);
  }
  lua_settop(L, i);
  return 1;
}

static int push_gen(lua_State *L, rl_generator *g) {
  bind_box *b = (bind_box *)lua_newuserdata(L, sizeof *b);
  b->tag = &bind_tag_gen;
  b->p = g;
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_GEN);
  lua_setmetatable(L, -2);
  return 1;
}

static rl_gen_kind kind_arg(lua_State *L, int i) {
  const char *name = luaL_checkstring(L, i);
  int kind = rl_generator_kind_of(name);
  if (kind < 0) luaL_error(L, "[Generator] kind; got '%s', need 'philox' or 'mt19937'", name);
  return (rl_gen_kind)kind;
}

/* torch.Generator([kind]) -> a generator of that kind (the default generator's), seeded by the clock. */
static int gen_new(lua_State *L) {
  rl_gen_kind kind = lua_isnoneornil(L, 1) ? rl_generator_default()->kind : kind_arg(L, 1);
  rl_generator *g = (rl_generator *)rl_alloc(sizeof *g);
  if (!g) return bind_raise(L, RL_OOM);
  g->kind = kind;
  rl_generator_seed(g, clock_seed(L));
  return push_gen(L, g);
}

/* The thread's default generator, as a value. */
static int gen_default(lua_State *L) { return push_gen(L, rl_generator_default()); }

/* torch.setdefaultgenerator(kind): draws come from a generator of that kind from now on, at the start of its stream for the current seed. */
static int gen_set_default(lua_State *L) {
  rl_generator_set_kind(rl_generator_default(), kind_arg(L, 1));
  return 0;
}

static int gen_get_default(lua_State *L) {
  lua_pushstring(L, rl_generator_default()->kind == RL_GEN_MT19937 ? "mt19937" : "philox");
  return 1;
}

static int gen_copy(lua_State *L) {
  rl_generator *g = bind_togen(L, 1), *from = bind_togen(L, 2);
  if (!g || !from) return bind_argerror(L, g ? 2 : 1, "generator");
  *g = *from;
  lua_settop(L, 1);
  return 1;
}

static int gen_gc(lua_State *L) {
  bind_box *b = (bind_box *)lua_touserdata(L, 1);
  if (b->p && b->p != rl_generator_default()) rl_free(b->p, sizeof(rl_generator));
  b->p = NULL;
  b->tag = NULL;
  return 0;
}

static const bind_reg draws[] = { { "uniform", f_uniform },
                                  { "normal", f_normal },
                                  { "exponential", f_exponential },
                                  { "cauchy", f_cauchy },
                                  { "logNormal", f_log_normal },
                                  { "geometric", f_geometric },
                                  { "bernoulli", f_bernoulli },
                                  { "random", f_random },
                                  { "rand", f_rand },
                                  { "randn", f_randn },
                                  { "randperm", f_randperm },
                                  { "multinomial", f_multinomial },
                                  { NULL, NULL } };
static const bind_reg seeds[] = { { "manualSeed", f_manual_seed },   { "seed", f_seed },
                                  { "initialSeed", f_initial_seed }, { "getRNGState", f_get_state },
                                  { "setRNGState", f_set_state },    { NULL, NULL } };

void bind_open_random(lua_State *L) {
  static const bind_reg meta[] = { { "__gc", gen_gc }, { "copy", gen_copy }, { NULL, NULL } };
  bind_functions(L, draws, true);
  bind_methods(L, draws, true);
  bind_functions(L, seeds, false);
  lua_newtable(L);
  for (const bind_reg *r = meta; r->name; r++) {
    lua_pushcfunction(L, r->fn);
    lua_setfield(L, -2, r->name);
  }
  lua_pushliteral(L, "torch.Generator");
  lua_setfield(L, -2, "__typename");
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pushinteger(L, 1);
  lua_setfield(L, -2, "__version");
  lua_pushvalue(L, -1);
  lua_rawseti(L, LUA_REGISTRYINDEX, BIND_KEY_GEN);
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_getfield(L, -1, "metatables");
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, "torch.Generator");
  static const bind_reg makers[] = { { "newGenerator", gen_new },
                                     { "defaultGenerator", gen_default },
                                     { "setDefaultGenerator", gen_set_default },
                                     { "getDefaultGenerator", gen_get_default },
                                     { NULL, NULL } };
  for (const bind_reg *r = makers; r->name; r++) {
    lua_pushcfunction(L, r->fn);
    lua_setfield(L, -3, r->name);
  }
  lua_pop(L, 3);
}
