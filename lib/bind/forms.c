/* Argument forms: each way of calling an op from Lua, implemented once (README.md lists them).
 * (Lua arguments, op) -> inputs, attributes, result -> rl_call. op_lua.inc says which op has which form under which names.
 *
 * One C function a form serves torch.f and x:f. A function without a result argument makes a new tensor; a method without one writes to self.
 * With one more tensor in front, that tensor is the result, for both. */
#include "bind.h"
#include <string.h>

typedef struct form {
  rl_op op;
  bool method;
} form;

static inline form this_form(lua_State *L) {
  int code = (int)lua_tointeger(L, lua_upvalueindex(1));
  return (form){ (rl_op)(code & 0xffff), code >> 16 };
}

static bool fits(const rl_tensor *y, const rl_tensor *x) { /* y expands to x's sizes */
  if (y->ndim > x->ndim) return false;
  for (int d = 1; d <= y->ndim; d++)
    if (y->size[y->ndim - d] != 1 && y->size[y->ndim - d] != x->size[x->ndim - d]) return false;
  return true;
}

/* y in x's shape when x takes the result and only the numbers of elements agree, as Torch7 reads them: in order. */
static rl_tensor *in_order(lua_State *L, rl_tensor *x, rl_tensor *y) {
  if (!y || rl_same_shape(x, y) || rl_numel(x) != rl_numel(y) || fits(y, x)) return y;
  bind_push_tensor(L, y = bind_reshape(L, y, x->ndim, x->size));
  return y;
}

/* Result into argument `res` (0: a new tensor), pushed. */
static int finish(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, int res) {
  if (res == 0) return bind_push_tensor(L, bind_op(L, op, in, nin, a));
  rl_tensor *out = bind_tensor(L, res);
  if (out == in[0] && out->storage) { /* in place: no resize, the op checks the shape */
    rl_tensor *o[RL_MAXOUT] = { out }, *like[RL_MAXIN] = { out };
    if (rl_ops[op].kind == RL_K_EW && nin > 1) {
      for (int i = 1; i < nin; i++) like[i] = in_order(L, out, in[i]);
      in = like;
    }
    bind_call(L, op, in, nin, a, o);
  } else bind_into(L, op, in, nin, a, &out);
  lua_pushvalue(L, res);
  return 1;
}

/* f(number, ...) -> number. */
static int numbers(lua_State *L, form f) {
  rl_number v[3];
  rl_tensor *in[3];
  int n = lua_gettop(L);
  for (int i = 0; i < n; i++) {
    if (f.method || n > 3 || lua_type(L, i + 1) != LUA_TNUMBER) return bind_argerror(L, f.method || n == 1 ? 1 : i + 1, i ? "number" : "tensor");
    in[i] = rl_number_set(&v[i], lua_tonumber(L, i + 1));
  }
  return n ? bind_push_scalar(L, bind_op(L, f.op, in, n, NULL)) : bind_argerror(L, 1, "tensor");
}

static int number_unary(lua_State *L, rl_op op) {
  rl_number n;
  rl_tensor *in[1] = { rl_number_set(&n, lua_tonumber(L, 1)) };
  return bind_push_scalar(L, bind_op(L, op, in, 1, NULL));
}

/* f([res,] x), f(number); x:f([src]). */
static int form_unary(lua_State *L) {
  form f = this_form(L);
  int n = lua_gettop(L);
  if (!f.method && n == 1 && lua_type(L, 1) == LUA_TNUMBER) return number_unary(L, f.op);
  rl_tensor *in[1] = { bind_tensor(L, n >= 2 ? 2 : 1) };
  return finish(L, f.op, in, 1, NULL, n >= 2 || f.method ? 1 : 0);
}

/* f([res,] x, y), f(number, number); x:f([src,] y). y is a tensor, number or rank-0 tensor. */
static int form_binary(lua_State *L) {
  form f = this_form(L);
  int n = lua_gettop(L), x = n >= 3 ? 2 : 1;
  rl_number num;
  if (n == 2 && lua_type(L, 1) == LUA_TNUMBER) return numbers(L, f);
  rl_tensor *in[2] = { bind_tensor(L, x), bind_operand(L, x + 1, &num) };
  return finish(L, f.op, in, 2, NULL, n >= 3 || f.method ? 1 : 0);
}

/* f([res,] x, s); x:f([src,] s). */
static int form_scalar(lua_State *L) {
  int n = lua_gettop(L), x = n >= 3 ? 2 : 1;
  rl_tensor *y = bind_totensor(L, x + 1);
  if (y && y->ndim != 0) return bind_argerror(L, x + 1, "number");
  return form_binary(L);
}

/* A result is in front of an add form: (res, x, s), (res, x, y) or four arguments, but not (x, s, y) with a rank-0 s. */
static bool add_has_result(lua_State *L, int n) {
  rl_tensor *second = bind_totensor(L, 2), *third = bind_totensor(L, 3);
  if (n != 3 || !second) return n >= 4;
  return !(second->ndim == 0 && third && third->ndim > 0);
}

/* f([res,] x, s), f([res,] x, y), f([res,] x, s, y). The scaled form is x + s * y (or x - s * y). */
static int form_add(lua_State *L) {
  form f = this_form(L);
  int x = add_has_result(L, lua_gettop(L)) ? 2 : 1;
  int res = x == 2 || f.method ? 1 : 0;
  rl_number num, num2;
  rl_tensor *a = bind_tensor(L, x), *s = bind_operand(L, x + 1, &num);
  if (lua_isnoneornil(L, x + 2)) return finish(L, f.op, (rl_tensor *[]){ a, s }, 2, NULL, res);
  rl_tensor *y = bind_operand(L, x + 2, &num2);
  if (s->ndim != 0) return bind_argerror(L, x + 1, "number");
  if (f.op == RL_OP_SUB) {
    if (lua_type(L, x + 1) == LUA_TNUMBER) s = rl_number_set(&num, -lua_tonumber(L, x + 1));
    else bind_push_tensor(L, s = bind_op(L, RL_OP_NEG, &s, 1, NULL));
  }
  return finish(L, RL_OP_AXPY, (rl_tensor *[]){ a, y, s }, 3, NULL, res);
}

/* f([res,] x, s), f([res,] s, x), f(number, number). */
static int form_pow(lua_State *L) {
  form f = this_form(L);
  int n = lua_gettop(L), x = n >= 3 ? 2 : 1;
  rl_number a, b;
  if (n == 2 && lua_type(L, 1) == LUA_TNUMBER && lua_type(L, 2) == LUA_TNUMBER) return numbers(L, f);
  rl_tensor *in[2] = { bind_operand(L, x, &a), bind_operand(L, x + 1, &b) };
  return finish(L, f.op, in, 2, NULL, n >= 3 || f.method ? 1 : 0);
}

/* f([res,] x, y): 0 and 1 in a Byte tensor, or in res's type. x:f(y) makes a new Byte tensor. */
static int form_compare(lua_State *L) {
  form f = this_form(L);
  int n = lua_gettop(L), x = n >= 3 ? 2 : 1;
  rl_number num;
  rl_tensor *in[2] = { bind_tensor(L, x), bind_operand(L, x + 1, &num) };
  if (x == 1) return bind_push_tensor(L, bind_op(L, f.op, in, 2, NULL));
  rl_tensor *res = bind_tensor(L, 1);
  bind_into(L, f.op, in, 2, NULL, &res);
  lua_pushvalue(L, 1);
  return 1;
}

/* f(x), x:f(): a new Byte tensor; f(res, x). */
static int form_predicate(lua_State *L) {
  form f = this_form(L);
  int x = lua_gettop(L) >= 2 ? 2 : 1;
  rl_tensor *in[1] = { bind_tensor(L, x) };
  if (x == 1) return bind_push_tensor(L, bind_op(L, f.op, in, 1, NULL));
  rl_tensor *res = bind_tensor(L, 1);
  bind_into(L, f.op, in, 1, NULL, &res);
  lua_pushvalue(L, 1);
  return 1;
}

/* x + by for indices, in place. */
void bind_shift(lua_State *L, rl_tensor *x, int by) {
  rl_number n;
  rl_tensor *in[2] = { x, rl_number_seti(&n, by) };
  if (rl_numel(x)) bind_call(L, RL_OP_ADD, in, 2, NULL, &x);
}

/* Full reduction: number or rank 0. Narrow integers add up in Long, as Torch7's accumulate type. */
static int reduce_all(lua_State *L, rl_op op, rl_tensor *x, bool widen) {
  rl_attrs a;
  rl_tensor *w = x;
  rl_attrs_default(op, &a);
  a.nlist[0] = 0;
  rl_dtype wide = rl_ops[op].dtypes == 1 ? RL_F64 : RL_I64; /* mean of integers is a double */
  if (widen && !rl_dtypes[x->dtype].is_float && x->dtype != wide) bind_push_tensor(L, w = bind_cast(L, x, wide));
  return bind_push_scalar(L, bind_op(L, op, &w, 1, &a));
}

/* f(x): number; f([res,] x, d): dimension d becomes 1. */
static int form_reduce(lua_State *L) {
  form f = this_form(L);
  int n = lua_gettop(L), x = n >= 2 && bind_totensor(L, 2) ? 2 : 1;
  rl_tensor *in[1] = { bind_tensor(L, x) };
  rl_attrs a;
  if (lua_isnoneornil(L, x + 1)) return reduce_all(L, f.op, in[0], true);
  rl_attrs_default(f.op, &a);
  a.nlist[0] = 1;
  a.list[0][0] = bind_dim(L, x + 1, in[0]);
  a.v[0].i = 1;
  return finish(L, f.op, in, 1, &a, x == 2 ? 1 : 0);
}

/* f(x): boolean, for all and any. A boolean decides control flow, so a fake breaks the graph. */
static int form_test(lua_State *L) {
  form f = this_form(L);
  rl_tensor *in[1] = { bind_tensor(L, 1) };
  rl_attrs a;
  double v;
  bind_values(L, in[0], rl_ops[f.op].name);
  rl_attrs_default(f.op, &a);
  a.nlist[0] = 0;
  rl_tensor *t = bind_op(L, f.op, in, 1, &a);
  rl_status s = rl_tensor_item(t, &v);
  rl_tensor_release(t);
  if (s != RL_OK) return bind_raise(L, s);
  lua_pushboolean(L, v != 0);
  return 1;
}

static void deliver(lua_State *L, int res, rl_tensor *v) {
  rl_tensor *r = bind_tensor(L, res);
  if (!rl_same_shape(r, v) || !r->storage) BIND_TRY(L, rl_tensor_resize(r, v->ndim, v->size));
  bind_copy(L, r, v);
  lua_pushvalue(L, res);
}

/* Two results (values, Long indices from 1) into arguments 1 and 2, or new. The core's indices count from 0; they are saved for the
 * gradient, so the shift makes a new tensor. */
int bind_finish_pair(lua_State *L, rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, bool given) {
  rl_tensor *out[RL_MAXOUT] = { NULL };
  rl_number one;
  bind_call(L, op, in, nin, a, out);
  bind_push_tensor(L, out[0]);
  int top = lua_gettop(L);
  bind_push_tensor(L, out[1]);
  bind_push_tensor(L, bind_op(L, RL_OP_ADD, (rl_tensor *[]){ out[1], rl_number_seti(&one, 1) }, 2, NULL));
  lua_remove(L, top + 1);
  if (!given) return 2;
  rl_tensor *idx = bind_tensor(L, top + 1);
  deliver(L, 1, out[0]);
  deliver(L, 2, idx);
  return 2;
}

/* f(x): number; f([vals, inds,] x, d). */
static int form_minmax(lua_State *L) {
  form f = this_form(L);
  int x = bind_totensor(L, 2) && bind_totensor(L, 3) ? 3 : 1;
  rl_tensor *in[1] = { bind_tensor(L, x) };
  rl_attrs a;
  if (lua_isnoneornil(L, x + 1)) {
    if (rl_numel(in[0]) == 0) return luaL_error(L, "[%s] empty tensor; got no elements, need at least one", rl_ops[f.op].name);
    return reduce_all(L, f.op, in[0], false);
  }
  rl_op op = f.op == RL_OP_AMAX ? RL_OP_AMAX_DIM : RL_OP_AMIN_DIM;
  rl_attrs_default(op, &a);
  a.v[0].i = bind_dim(L, x + 1, in[0]);
  a.v[1].i = 1;
  return bind_finish_pair(L, op, in, 1, &a, x == 3);
}

/* f([res,] x [, d]), d = 1 by default; x:f([d]) makes a new tensor. */
static int form_scan(lua_State *L) {
  form f = this_form(L);
  int x = bind_totensor(L, 2) ? 2 : 1;
  rl_tensor *in[1] = { bind_tensor(L, x) };
  rl_attrs a;
  rl_attrs_default(f.op, &a);
  a.v[0].i = lua_isnoneornil(L, x + 1) ? 0 : bind_dim(L, x + 1, in[0]);
  return finish(L, f.op, in, 1, &a, x == 2 ? 1 : 0);
}

/* f([res,] x, lo, hi); x:f(lo, hi) in place. */
static int form_clamp(lua_State *L) {
  form f = this_form(L);
  int x = lua_gettop(L) >= 4 ? 2 : 1;
  rl_number lo, hi;
  rl_tensor *in[3] = { bind_tensor(L, x), bind_operand(L, x + 1, &lo), bind_operand(L, x + 2, &hi) };
  return finish(L, f.op, in, 3, NULL, x == 2 || f.method ? 1 : 0);
}

/* f([res,] x [, s], y, z); x:f([s,] y, z) in place. */
static int form_addcmul(lua_State *L) {
  form f = this_form(L);
  int n = lua_gettop(L), x = 1;
  bool scaled = n >= 5 || (n == 4 && bind_isscalar(L, 2) &&
                           !(bind_totensor(L, 4) && bind_totensor(L, 2) && bind_totensor(L, 3) && bind_totensor(L, 3)->ndim == 0));
  if (n - scaled >= 4) x = 2;
  if (x == 2 && scaled && n == 4) scaled = false;
  rl_number w, ny, nz;
  rl_tensor *in[4] = { bind_tensor(L, x) };
  int y = x + 1 + (scaled ? 1 : 0);
  in[3] = scaled ? bind_operand(L, x + 1, &w) : rl_number_set(&w, 1);
  in[1] = bind_operand(L, y, &ny);
  in[2] = bind_operand(L, y + 1, &nz);
  return finish(L, f.op, in, 4, NULL, x == 2 || f.method ? 1 : 0);
}

/* f([res,] a, b), res:f(a, b), a:f(b). */
static int form_matmul(lua_State *L) {
  form f = this_form(L);
  int x = lua_gettop(L) >= 3 ? 2 : 1;
  rl_tensor *in[2] = { bind_tensor(L, x), bind_tensor(L, x + 1) };
  return finish(L, f.op, in, 2, NULL, x == 2 ? 1 : 0);
}

/* f([res,] [beta,] M, [alpha,] A, B); M:f([beta,] [alpha,] A, B). A number in front of M is beta, one in front of A alpha. */
static int form_addmm(lua_State *L) {
  form f = this_form(L);
  int n = lua_gettop(L), at[4], nt = 0, nums[2], nn = 0;
  for (int i = 1; i <= n; i++) {
    if (!bind_isscalar(L, i) && bind_totensor(L, i) && nt < 4) at[nt++] = i;
    else if (bind_isscalar(L, i) && nn < 2) nums[nn++] = i;
    else return bind_argerror(L, i, "tensor or number");
  }
  if (nt < 3) return bind_argerror(L, n + 1, "tensors M, A and B");
  int m = nt == 4 ? 1 : 0, beta = 0, alpha = 0;
  for (int k = 0; k < nn; k++) {
    if (m == 0 && f.method && nn == 2) *(k ? &alpha : &beta) = nums[k];
    else if (nums[k] < at[m]) beta = nums[k];
    else alpha = nums[k];
  }
  rl_number b, a;
  rl_tensor *in[5] = { bind_tensor(L, at[m]), bind_tensor(L, at[m + 1]), bind_tensor(L, at[m + 2]), NULL, NULL };
  if (beta) in[3] = bind_operand(L, beta, &b);
  if (alpha) in[4] = bind_operand(L, alpha, &a);
  return finish(L, f.op, in, 5, NULL, m || f.method ? 1 : 0);
}

typedef struct lua_name {
  const char *name;
  lua_CFunction fn;
  rl_op op;
} lua_name;
#define RL_LUA(name, form, OP) { name, form_##form, RL_OP_##OP },
static const lua_name names[] = {
#include "op_lua.inc"
  { NULL, NULL, RL_NOP }
};

static void put(lua_State *L, const lua_name *r, bool method) {
  lua_pushinteger(L, (int)r->op | (int)method << 16);
  lua_pushcclosure(L, r->fn, 1);
  bind_put(L, r->name, method, true);
}

void bind_open_forms(lua_State *L) {
  for (const lua_name *r = names; r->name; r++) {
    put(L, r, false);
    put(L, r, true);
  }
}
