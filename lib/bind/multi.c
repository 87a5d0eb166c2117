/* Irregular argument lists: cat, sort, topk, gather, scatter, the index and mask families, statistics, products of vectors.
 * Lua indices count from 1, the core's from 0: index tensors are shifted here. */
#include "bind.h"
#include <math.h>
#include <string.h>

static int is_res(lua_State *L, int i) { return bind_totensor(L, i) != NULL; }

/* Result of one op into `res` (argument index, 0: new), pushed. */
static int give(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, int res) {
  if (!res) return bind_push_tensor(L, bind_op(L, op, in, nin, a));
  rl_tensor *out = bind_tensor(L, res);
  bind_into(L, op, in, nin, a, &out);
  lua_pushvalue(L, res);
  return 1;
}

/* In place: self becomes the op's result. */
static int in_place(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a) {
  rl_tensor *self = bind_tensor(L, 1);
  bind_call(L, op, in, nin, a, &self);
  lua_settop(L, 1);
  return 1;
}

/* Positions from 1 in a Long tensor (other integer and float types convert) -> from 0, kept on the stack. */
static rl_tensor *indices(lua_State *L, int i) {
  rl_number one;
  rl_tensor *t = bind_tensor(L, i);
  if (t->dtype != RL_I64) bind_push_tensor(L, t = bind_cast(L, t, RL_I64));
  rl_tensor *in[2] = { t, rl_number_seti(&one, 1) };
  bind_push_tensor(L, t = bind_op(L, RL_OP_SUB, in, 2, NULL));
  return t;
}

static rl_tensor *mask(lua_State *L, int i, const rl_tensor *x) {
  rl_tensor *m = bind_tensor(L, i);
  if (m->dtype != RL_U8) bind_push_tensor(L, m = bind_cast(L, m, RL_U8));
  if (!rl_same_shape(m, x) && rl_numel(m) == rl_numel(x)) bind_push_tensor(L, m = bind_reshape(L, m, x->ndim, x->size));
  return m;
}

static int opt_dim(lua_State *L, int i, const rl_tensor *t, int def) { return lua_isnoneornil(L, i) ? def : bind_dim(L, i, t); }

/* cat ---------------------------------------------------------------------------------------------------------------------------- */

/* x with ones appended to its sizes, for joining along a dimension it does not have. */
static rl_tensor *padded(lua_State *L, rl_tensor *t, int nd) {
  int64_t size[RL_MAXDIM];
  for (int d = 0; d < nd; d++) size[d] = d < t->ndim ? t->size[d] : 1;
  rl_tensor *v = bind_reshape(L, t, nd, size);
  bind_push_tensor(L, v);
  return v;
}

/* Joins n tensors (array on the Lua heap), empty ones left out. */
static int cat_list(lua_State *L, rl_tensor **in, int n, int dim_arg, int res) {
  int most = 0, kept = 0, dim;
  rl_attrs a;
  for (int k = 0; k < n; k++)
    if (bind_ndim(in[k]) || in[k]->ndim == 0) in[kept++] = in[k];
  if (kept == 0)
    return n ? (res ? (lua_pushvalue(L, res), 1) : bind_push_tensor(L, bind_clone(L, in[0])))
             : luaL_error(L, "[cat] tensors; got none, need at least one");
  for (int k = 0; k < kept; k++) most = RL_MAX(most, RL_MAX(in[k]->ndim, 1));
  dim = lua_isnoneornil(L, dim_arg) ? most - 1 : (int)bind_int(L, dim_arg) - 1;
  if (dim < 0 && !lua_isnoneornil(L, dim_arg)) dim += most + 1;
  if (dim < 0 || dim >= RL_MAXDIM) return luaL_error(L, "[cat] dimension out of range; got %d, need 1 to %d", dim + 1, most + 1);
  most = RL_MAX(most, dim + 1);
  luaL_checkstack(L, kept + 4, "too many tensors");
  for (int k = 0; k < kept; k++)
    if (in[k]->ndim != most) in[k] = padded(L, in[k], most);
  rl_attrs_default(RL_OP_CAT, &a);
  a.v[0].i = dim;
  return give(L, RL_OP_CAT, in, kept, &a, res);
}

/* cat([res,] {tensors} [, dim]), cat([res,] a, b [, dim]) */
static int f_cat(lua_State *L) {
  bool list = lua_istable(L, 1) || lua_istable(L, 2);
  int res = list ? lua_istable(L, 2) : is_res(L, 1) && is_res(L, 2) && is_res(L, 3), at = res ? 2 : 1;
  int top = lua_gettop(L);
  int n = list ? (int)lua_objlen(L, at) : 2;
  rl_tensor **in = (rl_tensor **)lua_newuserdata(L, sizeof *in * (size_t)RL_MAX(n, 1));
  for (int k = 0; k < n; k++) {
    if (list) lua_rawgeti(L, at, k + 1);
    else lua_pushvalue(L, at + k);
    if (!(in[k] = bind_totensor(L, -1))) return luaL_error(L, "[cat] entry %d; got %s, need tensor", k + 1, luaL_typename(L, -1));
    lua_pop(L, 1);
  }
  int dim = at + (list ? 1 : 2);
  if (dim > top) lua_pushnil(L), dim = lua_gettop(L);
  return cat_list(L, in, n, dim, res);
}

/* Values and positions ----------------------------------------------------------------------------------------------------------- */

static int pair_start(lua_State *L) { return is_res(L, 1) && is_res(L, 2) && is_res(L, 3) ? 3 : 1; }

/* sort([vals, inds,] x [, dim] [, descending]) */
static int f_sort(lua_State *L) {
  int x = pair_start(L), flag = x + 1;
  rl_tensor *t = bind_tensor(L, x);
  rl_attrs a;
  rl_attrs_default(RL_OP_SORT, &a);
  a.v[0].i = t->ndim - 1;
  if (bind_isnumber(L, flag)) a.v[0].i = bind_dim(L, flag++, t);
  else if (lua_isnil(L, flag)) flag++;
  a.v[1].i = lua_toboolean(L, flag);
  return bind_finish_pair(L, RL_OP_SORT, &t, 1, &a, x == 3);
}

/* topk([vals, inds,] x [, k = 1] [, dim] [, largest = false] [, sorted = false]) */
static int f_topk(lua_State *L) {
  int x = pair_start(L), i = x + 1;
  rl_tensor *t = bind_tensor(L, x);
  rl_attrs a;
  rl_attrs_default(RL_OP_TOPK, &a);
  a.v[0].i = 1;
  a.v[1].i = t->ndim - 1;
  if (bind_isscalar(L, i)) a.v[0].i = bind_int(L, i++);
  if (bind_isnumber(L, i)) a.v[1].i = bind_dim(L, i++, t);
  a.v[2].i = lua_toboolean(L, i);
  a.v[3].i = lua_toboolean(L, i + 1);
  if (a.v[0].i < 1 || a.v[0].i > t->size[a.v[1].i]) return luaL_error(L, "[topk] k; got %d, need 1 to %d", (int)a.v[0].i, (int)t->size[a.v[1].i]);
  return bind_finish_pair(L, RL_OP_TOPK, &t, 1, &a, x == 3);
}

static int kth(lua_State *L, int x, rl_tensor *t, int64_t k, int dim) {
  rl_attrs a;
  rl_attrs_default(RL_OP_KTHVALUE, &a);
  a.v[0].i = k;
  a.v[1].i = dim;
  return bind_finish_pair(L, RL_OP_KTHVALUE, &t, 1, &a, x == 3);
}

/* kthvalue([vals, inds,] x, k [, dim]) */
static int f_kthvalue(lua_State *L) {
  int x = pair_start(L);
  rl_tensor *t = bind_tensor(L, x);
  int64_t k = bind_int(L, x + 1);
  int d = opt_dim(L, x + 2, t, t->ndim - 1);
  if (k < 1 || k > t->size[d]) return luaL_error(L, "[kthvalue] rank; got %d, need 1 to %d", (int)k, (int)t->size[d]);
  return kth(L, x, t, k - 1, d);
}

/* median([vals, inds,] x [, dim]): the lower one of two; along the last dimension by default. */
static int f_median(lua_State *L) {
  int x = pair_start(L);
  rl_tensor *t = bind_tensor(L, x);
  if (rl_numel(t) == 0) return luaL_error(L, "[median] empty tensor; got no elements, need at least one");
  int d = opt_dim(L, x + 1, t, t->ndim - 1);
  return kth(L, x, t, (t->size[d] - 1) / 2, d);
}

/* mode([vals, inds,] x [, dim]) */
static int f_mode(lua_State *L) {
  int x = pair_start(L);
  rl_tensor *t = bind_tensor(L, x);
  rl_attrs a;
  rl_attrs_default(RL_OP_MODE, &a);
  a.v[0].i = opt_dim(L, x + 1, t, t->ndim - 1);
  return bind_finish_pair(L, RL_OP_MODE, &t, 1, &a, x == 3);
}

/* Index family -------------------------------------------------------------------------------------------------------------------- */

static void dim_attr(lua_State *L, rl_op op, int i, const rl_tensor *t, rl_attrs *a) {
  rl_attrs_default(op, a);
  a->v[0].i = bind_dim(L, i, t);
}

/* gather([res,] x, dim, idx) */
static int f_gather(lua_State *L) {
  int x = is_res(L, 2) ? 2 : 1;
  rl_attrs a;
  rl_tensor *in[2] = { bind_tensor(L, x) };
  dim_attr(L, RL_OP_GATHER, x + 1, in[0], &a);
  in[1] = indices(L, x + 2);
  return give(L, RL_OP_GATHER, in, 2, &a, x == 2);
}

/* v as a tensor of x's type and idx's sizes, pushed. */
static rl_tensor *filled(lua_State *L, const rl_tensor *x, const rl_tensor *like, double v) {
  rl_attrs a;
  rl_tensor *t;
  rl_attrs_default(RL_OP_FULL, &a);
  a.nlist[0] = like->ndim;
  memcpy(a.list[0], like->size, (size_t)like->ndim * sizeof *like->size);
  a.v[0].f = v;
  a.v[1].i = x->dtype;
  bind_push_tensor(L, t = bind_op(L, RL_OP_FULL, NULL, 0, &a));
  return t;
}

static int scatter_by(lua_State *L, rl_op op) {
  rl_attrs a;
  rl_tensor *in[3] = { bind_tensor(L, 1) };
  dim_attr(L, op, 2, in[0], &a);
  in[1] = indices(L, 3);
  in[2] = bind_isnumber(L, 4) ? filled(L, in[0], in[1], lua_tonumber(L, 4)) : bind_tensor(L, 4);
  if (in[2]->ndim == 0 && in[1]->ndim) {
    int64_t one[RL_MAXDIM];
    for (int d = 0; d < RL_MAXDIM; d++) one[d] = 1;
    bind_push_tensor(L, in[2] = bind_view(L, in[2], in[1]->ndim, one));
    bind_push_tensor(L, in[2] = bind_expand(L, in[2], in[1]->ndim, in[1]->size));
  }
  return in_place(L, op, in, 3, &a);
}

/* x:scatter(dim, idx, src or number); x:scatterAdd(dim, idx, src) */
static int f_scatter(lua_State *L) { return scatter_by(L, RL_OP_SCATTER); }
static int f_scatter_add(lua_State *L) { return scatter_by(L, RL_OP_SCATTER_ADD); }

/* index([res,] x, dim, idx) */
static int f_index(lua_State *L) {
  int x = is_res(L, 2) ? 2 : 1;
  rl_attrs a;
  rl_tensor *in[2] = { bind_tensor(L, x) };
  dim_attr(L, RL_OP_INDEX_SELECT, x + 1, in[0], &a);
  in[1] = indices(L, x + 2);
  return give(L, RL_OP_INDEX_SELECT, in, 2, &a, x == 2);
}

static int index_write(lua_State *L, rl_op op) {
  rl_attrs a;
  rl_number n;
  rl_tensor *in[3] = { bind_tensor(L, 1) };
  dim_attr(L, op, 2, in[0], &a);
  in[1] = indices(L, 3);
  in[2] = op == RL_OP_INDEX_FILL ? bind_operand(L, 4, &n) : bind_tensor(L, 4);
  return in_place(L, op, in, 3, &a);
}

static int f_index_copy(lua_State *L) { return index_write(L, RL_OP_INDEX_COPY); }
static int f_index_add(lua_State *L) { return index_write(L, RL_OP_INDEX_ADD); }
static int f_index_fill(lua_State *L) { return index_write(L, RL_OP_INDEX_FILL); }

/* maskedSelect([res,] x, mask) */
static int f_masked_select(lua_State *L) {
  int x = is_res(L, 3) ? 2 : 1;
  rl_tensor *in[2] = { bind_tensor(L, x) };
  in[1] = mask(L, x + 1, in[0]);
  return give(L, RL_OP_MASKED_SELECT, in, 2, NULL, x == 2);
}

/* x:maskedFill(mask, v) */
static int f_masked_fill(lua_State *L) {
  rl_number n;
  rl_tensor *in[3] = { bind_tensor(L, 1) };
  in[1] = mask(L, 2, in[0]);
  in[2] = bind_operand(L, 3, &n);
  return in_place(L, RL_OP_MASKED_FILL, in, 3, NULL);
}

/* x:maskedCopy(mask, src): src's elements in order. */
static int f_masked_copy(lua_State *L) {
  rl_tensor *in[3] = { bind_tensor(L, 1) };
  in[1] = mask(L, 2, in[0]);
  in[2] = bind_tensor(L, 3);
  return in_place(L, RL_OP_MASKED_SCATTER, in, 3, NULL);
}

/* nonzero([res,] x) -> Long (n, dims), from 1 */
static int f_nonzero(lua_State *L) {
  int x = is_res(L, 2) ? 2 : 1;
  rl_tensor *in[1] = { bind_tensor(L, x) };
  give(L, RL_OP_NONZERO, in, 1, NULL, x == 2);
  rl_tensor *t = bind_tensor(L, -1);
  if (rl_numel(t)) bind_shift(L, t, 1);
  return 1;
}

/* Statistics ---------------------------------------------------------------------------------------------------------------------- */

/* norm(x [, p]): number; norm([res,] x, p, dim) */
static int f_norm(lua_State *L) {
  int x = is_res(L, 2) && !bind_isscalar(L, 2) ? 2 : 1;
  rl_tensor *t = bind_tensor(L, x);
  rl_attrs a;
  rl_attrs_default(RL_OP_NORM, &a);
  a.nlist[0] = 0;
  a.v[0].f = lua_isnoneornil(L, x + 1) ? 2 : bind_number(L, x + 1);
  if (lua_isnoneornil(L, x + 2)) return bind_push_scalar(L, bind_op(L, RL_OP_NORM, &t, 1, &a));
  a.nlist[0] = 1;
  a.list[0][0] = bind_dim(L, x + 2, t);
  a.v[1].i = 1;
  return give(L, RL_OP_NORM, &t, 1, &a, x == 2);
}

/* var(x), std(x): number; f([res,] x, dim [, biased]) */
static int spread(lua_State *L, rl_op op) {
  int x = is_res(L, 2) ? 2 : 1;
  rl_tensor *t = bind_tensor(L, x);
  rl_attrs a;
  rl_attrs_default(op, &a);
  a.nlist[0] = 0;
  if (lua_isnoneornil(L, x + 1)) return bind_push_scalar(L, bind_op(L, op, &t, 1, &a));
  if (lua_isboolean(L, x + 1)) {
    a.v[1].i = lua_toboolean(L, x + 1);
    return bind_push_scalar(L, bind_op(L, op, &t, 1, &a));
  }
  a.nlist[0] = 1;
  a.list[0][0] = bind_dim(L, x + 1, t);
  a.v[0].i = 1;
  a.v[1].i = lua_toboolean(L, x + 2);
  return give(L, op, &t, 1, &a, x == 2);
}

static int f_var(lua_State *L) { return spread(L, RL_OP_VAR); }
static int f_std(lua_State *L) { return spread(L, RL_OP_STD); }

/* dist(a, b [, p]): number */
static int f_dist(lua_State *L) {
  rl_attrs a;
  rl_tensor *in[2] = { bind_tensor(L, 1), bind_tensor(L, 2) };
  rl_attrs_default(RL_OP_DIST, &a);
  a.v[0].f = lua_isnoneornil(L, 3) ? 2 : bind_number(L, 3);
  return bind_push_scalar(L, bind_op(L, RL_OP_DIST, in, 2, &a));
}

/* dot(a, b): number */
static int f_dot(lua_State *L) {
  rl_tensor *in[2] = { bind_tensor(L, 1), bind_tensor(L, 2) };
  char b1[256], b2[256];
  if (rl_numel(in[0]) != rl_numel(in[1]))
    return luaL_error(L, "[dot] element counts differ; got %s, need that of %s", rl_shape_str(in[1], b2), rl_shape_str(in[0], b1));
  return bind_push_scalar(L, bind_op(L, RL_OP_DOT, in, 2, NULL));
}

static int f_trace(lua_State *L) {
  rl_tensor *in[1] = { bind_tensor(L, 1) };
  return bind_push_scalar(L, bind_op(L, RL_OP_TRACE, in, 1, NULL));
}

/* lerp([res,] a, b, weight), lerp(number, number, weight); a:lerp(b, weight) in place */
static int lerp(lua_State *L, bool method) {
  int x = lua_gettop(L) >= 4 ? 2 : 1;
  rl_number w;
  if (!method && bind_isnumber(L, 1) && bind_isnumber(L, 2)) {
    double a = lua_tonumber(L, 1);
    lua_pushnumber(L, a + bind_number(L, 3) * (lua_tonumber(L, 2) - a));
    return 1;
  }
  rl_tensor *in[3] = { bind_tensor(L, x), bind_tensor(L, x + 1), bind_operand(L, x + 2, &w) };
  if (x == 1 && method) return in_place(L, RL_OP_LERP, in, 3, NULL);
  return give(L, RL_OP_LERP, in, 3, NULL, x == 2);
}

static int f_lerp(lua_State *L) { return lerp(L, false); }
static int m_lerp(lua_State *L) { return lerp(L, true); }

/* Operators ----------------------------------------------------------------------------------------------------------------------- */

static int ew2(lua_State *L, rl_op op) {
  rl_number a, b;
  rl_tensor *in[2] = { bind_operand(L, 1, &a), bind_operand(L, 2, &b) };
  return bind_push_tensor(L, bind_op(L, op, in, 2, NULL));
}

static int op_add(lua_State *L) { return ew2(L, RL_OP_ADD); }
static int op_sub(lua_State *L) { return ew2(L, RL_OP_SUB); }
static int op_div(lua_State *L) { return ew2(L, RL_OP_DIV); }
static int op_mod(lua_State *L) { return ew2(L, RL_OP_REMAINDER); }
static int op_pow(lua_State *L) { return ew2(L, RL_OP_POW); }

static int op_unm(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  return bind_push_tensor(L, bind_op(L, RL_OP_NEG, &t, 1, NULL));
}

/* a * b: scaling, dot of vectors, matrix times vector, matrix times matrix. */
static int op_mul(lua_State *L) {
  rl_tensor *in[2] = { bind_totensor(L, 1), bind_totensor(L, 2) };
  char b1[256], b2[256];
  if (!in[0] || !in[1] || in[0]->ndim == 0 || in[1]->ndim == 0) return ew2(L, RL_OP_MUL);
  int da = in[0]->ndim, db = in[1]->ndim;
  lua_settop(L, 2);
  if (da == 1 && db == 1) return f_dot(L);
  if (da == 2 && (db == 1 || db == 2)) return bind_push_tensor(L, bind_op(L, db == 1 ? RL_OP_MV : RL_OP_MM, in, 2, NULL));
  return luaL_error(L, "[*] product; got %s and %s, need a number, vectors or matrices (cmul multiplies elements)", rl_shape_str(in[0], b1),
                    rl_shape_str(in[1], b2));
}

static const bind_reg both[] = { { "cat", f_cat },
                                 { "sort", f_sort },
                                 { "topk", f_topk },
                                 { "kthvalue", f_kthvalue },
                                 { "median", f_median },
                                 { "mode", f_mode },
                                 { "gather", f_gather },
                                 { "scatter", f_scatter },
                                 { "scatterAdd", f_scatter_add },
                                 { "index", f_index },
                                 { "indexCopy", f_index_copy },
                                 { "indexAdd", f_index_add },
                                 { "indexFill", f_index_fill },
                                 { "maskedSelect", f_masked_select },
                                 { "maskedFill", f_masked_fill },
                                 { "maskedCopy", f_masked_copy },
                                 { "nonzero", f_nonzero },
                                 { "norm", f_norm },
                                 { "var", f_var },
                                 { "std", f_std },
                                 { "dist", f_dist },
                                 { "dot", f_dot },
                                 { "trace", f_trace },
                                 { NULL, NULL } };
static const bind_reg operators[] = { { "__add", op_add },   { "__sub", op_sub },   { "__mul", op_mul },   { "__div", op_div },
                                      { "__mod", op_mod },   { "__pow", op_pow },   { "__unm", op_unm },   { "__add__", op_add },
                                      { "__sub__", op_sub }, { "__mul__", op_mul }, { "__div__", op_div }, { "__mod__", op_mod },
                                      { "__unm__", op_unm }, { "lerp", m_lerp },    { NULL, NULL } };
static const bind_reg functions[] = { { "lerp", f_lerp }, { NULL, NULL } };

void bind_open_multi(lua_State *L) {
  bind_functions(L, both, true);
  bind_functions(L, functions, true);
  bind_methods(L, both, true);
  bind_methods(L, operators, true);
}
