/* Creation: zeros, ones, rand, range, linspace, eye and the like.
 * ([generator,] [res,] arguments) -> new tensor of the default type, or res refilled. */
#include "bind.h"
#include <math.h>
#include <string.h>

/* Skips a generator at *i (it becomes current until bind_gen_restore) and reads a result tensor there, if any. */
static rl_tensor *leading(lua_State *L, int *i) {
  rl_tensor *res = bind_totensor(L, *i);
  if (res) ++*i;
  return res;
}

static void set_sizes(rl_attrs *a, int n, const int64_t *size) {
  a->nlist[0] = n;
  memcpy(a->list[0], size, (size_t)n * sizeof *size);
}

/* Runs an op without inputs whose dtype attribute is v[slot], into res (argument 1 or generator + 1) or a new tensor. */
static int make(lua_State *L, rl_op op, rl_attrs *a, int slot, rl_tensor *res, int at) {
  a->v[slot].i = res ? res->dtype : rl_self.default_dtype;
  if (!res) return bind_push_tensor(L, bind_op(L, op, NULL, 0, a));
  bind_into(L, op, NULL, 0, a, &res);
  lua_pushvalue(L, at);
  return 1;
}

static int constant(lua_State *L, double v) {
  int i = 1;
  rl_tensor *res = leading(L, &i);
  rl_attrs a;
  int64_t size[RL_MAXDIM];
  rl_attrs_default(RL_OP_FULL, &a);
  set_sizes(&a, bind_sizes(L, i, size), size);
  a.v[0].f = v;
  return make(L, RL_OP_FULL, &a, 1, res, 1);
}

static int f_zeros(lua_State *L) { return constant(L, 0); }
static int f_ones(lua_State *L) { return constant(L, 1); }

/* torch.full([res,] sizes, value): sizes as LongStorage or table. */
static int f_full(lua_State *L) {
  int i = 1;
  rl_tensor *res = leading(L, &i);
  rl_attrs a;
  int64_t size[RL_MAXDIM];
  if (!bind_tostorage(L, i) && !lua_istable(L, i)) return bind_argerror(L, i, "LongStorage or table of sizes");
  rl_attrs_default(RL_OP_FULL, &a);
  set_sizes(&a, bind_sizes(L, i, size), size);
  a.v[0].f = bind_number(L, i + 1);
  return make(L, RL_OP_FULL, &a, 1, res, 1);
}

/* start + i * step for i < n; a result of n elements keeps its sizes. */
static int sequence(lua_State *L, rl_tensor *res, double start, int64_t n, double step) {
  rl_attrs a;
  rl_attrs_default(RL_OP_ARANGE, &a);
  a.v[0].f = start;
  a.v[1].i = n;
  a.v[2].f = step;
  if (!res || res->ndim == 1 || rl_numel(res) != n) return make(L, RL_OP_ARANGE, &a, 3, res, 1);
  a.v[3].i = res->dtype;
  rl_tensor *t = bind_op(L, RL_OP_ARANGE, NULL, 0, &a);
  bind_push_tensor(L, t);
  bind_push_tensor(L, t = bind_reshape(L, t, res->ndim, res->size));
  bind_copy(L, res, t);
  lua_pushvalue(L, 1);
  return 1;
}

/* torch.range([res,] first, last [, step]): both ends belong to it. */
static int f_range(lua_State *L) {
  int i = 1;
  rl_tensor *res = leading(L, &i);
  double lo = bind_number(L, i), hi = bind_number(L, i + 1), step = lua_isnoneornil(L, i + 2) ? 1 : bind_number(L, i + 2);
  if (step == 0 || (hi - lo) / step < 0 || lo != lo || hi != hi)
    return luaL_error(L, "[range] bounds; got %f to %f by %f, need a step that leads from the first to the last", lo, hi, step);
  return sequence(L, res, lo, (int64_t)floor((hi - lo) / step * (1 + 1e-15)) + 1, step);
}

/* torch.linspace([res,] first, last [, n = 100]) */
static int f_linspace(lua_State *L) {
  int i = 1;
  rl_tensor *res = leading(L, &i);
  double lo = bind_number(L, i), hi = bind_number(L, i + 1);
  int64_t n = lua_isnoneornil(L, i + 2) ? 100 : bind_int(L, i + 2);
  if (n < 1 || (n == 1 && lo != hi)) return luaL_error(L, "[linspace] points; got %d, need 2 or more (1 when both ends are equal)", (int)n);
  return sequence(L, res, lo, n, n > 1 ? (hi - lo) / (double)(n - 1) : 0);
}

/* torch.logspace([res,] first, last [, n = 100]): 10 to the power of linspace. */
static int f_logspace(lua_State *L) {
  rl_number ten;
  f_linspace(L);
  rl_tensor *t = bind_tensor(L, -1), *in[2] = { rl_number_set(&ten, 10), t };
  bind_call(L, RL_OP_POW, in, 2, NULL, &t);
  return 1;
}

/* torch.eye([res,] n [, m]) */
static int f_eye(lua_State *L) {
  int i = 1;
  rl_tensor *res = leading(L, &i), *t, *d;
  rl_attrs a;
  rl_number one;
  int64_t n = bind_int(L, i), size[2] = { n, lua_isnoneornil(L, i + 1) ? n : bind_int(L, i + 1) };
  if (size[0] < 1 || size[1] < 1) return luaL_error(L, "[eye] sizes; got %dx%d, need 1 or more", (int)size[0], (int)size[1]);
  rl_attrs_default(RL_OP_FULL, &a);
  set_sizes(&a, 2, size);
  make(L, RL_OP_FULL, &a, 1, res, 1);
  t = bind_tensor(L, -1);
  rl_attrs_default(RL_OP_DIAGONAL, &a);
  bind_push_tensor(L, d = bind_op(L, RL_OP_DIAGONAL, &t, 1, &a));
  bind_fill(L, d, rl_number_set(&one, 1));
  lua_pop(L, 1);
  return 1;
}

/* torch.diag([res,] x [, k]): the diagonal of a matrix, or a matrix with the vector x on its diagonal. */
static int f_diag(lua_State *L) {
  int i = bind_totensor(L, 2) ? 2 : 1;
  rl_tensor *x = bind_tensor(L, i), *res = i == 2 ? bind_tensor(L, 1) : NULL, *t, *d;
  int64_t k = lua_isnoneornil(L, i + 1) ? 0 : bind_int(L, i + 1), n, size[2];
  rl_attrs a, f;
  char buf[256];
  rl_attrs_default(RL_OP_DIAGONAL, &a);
  a.v[0].i = k;
  if (x->ndim == 2) {
    bind_push_tensor(L, d = bind_op(L, RL_OP_DIAGONAL, &x, 1, &a));
    if (!res) return bind_push_tensor(L, bind_clone(L, d));
    BIND_TRY(L, rl_tensor_resize(res, d->ndim, d->size));
    bind_copy(L, res, d);
    lua_pushvalue(L, 1);
    return 1;
  }
  if (x->ndim != 1) return luaL_error(L, "[diag] matrix or vector needed; got %s, need 1 or 2 dimensions", rl_shape_str(x, buf));
  n = x->size[0] + (k < 0 ? -k : k);
  size[0] = size[1] = n;
  rl_attrs_default(RL_OP_FULL, &f);
  set_sizes(&f, 2, size);
  f.v[1].i = x->dtype;
  if (res) {
    bind_into(L, RL_OP_FULL, NULL, 0, &f, &res);
    lua_pushvalue(L, 1);
  } else bind_push_tensor(L, bind_op(L, RL_OP_FULL, NULL, 0, &f));
  t = bind_tensor(L, -1);
  bind_push_tensor(L, d = bind_op(L, RL_OP_DIAGONAL, &t, 1, &a));
  bind_copy(L, d, x);
  lua_pop(L, 1);
  return 1;
}

static int triangle(lua_State *L, rl_op op) {
  int i = bind_totensor(L, 2) ? 2 : 1;
  rl_tensor *x = bind_tensor(L, i), *res = i == 2 ? bind_tensor(L, 1) : NULL;
  rl_attrs a;
  rl_attrs_default(op, &a);
  a.v[0].i = lua_isnoneornil(L, i + 1) ? 0 : bind_int(L, i + 1);
  if (!res) return bind_push_tensor(L, bind_op(L, op, &x, 1, &a));
  bind_into(L, op, &x, 1, &a, &res);
  lua_pushvalue(L, 1);
  return 1;
}

static int f_tril(lua_State *L) { return triangle(L, RL_OP_TRIL); }
static int f_triu(lua_State *L) { return triangle(L, RL_OP_TRIU); }

static const bind_reg functions[] = { { "zeros", f_zeros },       { "ones", f_ones },         { "full", f_full }, { "range", f_range },
                                      { "linspace", f_linspace }, { "logspace", f_logspace }, { "eye", f_eye },   { "diag", f_diag },
                                      { "tril", f_tril },         { "triu", f_triu },         { NULL, NULL } };

void bind_open_create(lua_State *L) {
  bind_functions(L, functions, true);
  bind_methods(L, functions, true);
}
