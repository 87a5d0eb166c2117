/* Views: select, narrow, transpose, permute, view, expand, squeeze, unfold, split, chunk, and what copies into a new layout.
 * (tensor, Lua arguments) -> tensor with the same storage. Tensors that nothing watches take the short way past rl_call. */
#include "bind.h"
#include "../runtime/cuda.h"
#include "../autograd/tape.h"
#include <string.h>

static rl_geom geom_of(const rl_tensor *t) {
  rl_geom g = { .ndim = t->ndim, .offset = t->offset };
  memcpy(g.size, t->size, sizeof g.size);
  memcpy(g.stride, t->stride, sizeof g.stride);
  return g;
}

static rl_tensor *direct(lua_State *L, rl_tensor *t, const rl_geom *g) {
  rl_tensor *v = rl_tensor_window(t, g);
  if (!v) bind_raise(L, RL_ERR);
  if (!rl_self.grad_disabled && rl_dtypes[t->dtype].is_float) rl_tape_view(t, v); /* a later write of a taped value reaches t */
  return v;
}

static rl_tensor *view_op(lua_State *L, rl_op op, rl_tensor *t, const rl_attrs *a) { return bind_op(L, op, &t, 1, a); }

rl_tensor *bind_select(lua_State *L, rl_tensor *t, int dim, int64_t index) {
  if (bind_plain(t)) {
    rl_geom g = geom_of(t);
    g.offset += index * g.stride[dim];
    g.ndim--;
    for (int d = dim; d < g.ndim; d++) {
      g.size[d] = g.size[d + 1];
      g.stride[d] = g.stride[d + 1];
    }
    return direct(L, t, &g);
  }
  rl_attrs a;
  rl_attrs_default(RL_OP_SELECT, &a);
  a.v[0].i = dim;
  a.v[1].i = index;
  return view_op(L, RL_OP_SELECT, t, &a);
}

rl_tensor *bind_narrow(lua_State *L, rl_tensor *t, int dim, int64_t start, int64_t length) {
  if (bind_plain(t)) {
    rl_geom g = geom_of(t);
    g.offset += start * g.stride[dim];
    g.size[dim] = length;
    return direct(L, t, &g);
  }
  rl_attrs a;
  rl_attrs_default(RL_OP_SLICE, &a);
  a.v[0].i = dim;
  a.v[1].i = start;
  a.v[2].i = length;
  a.v[3].i = 1;
  return view_op(L, RL_OP_SLICE, t, &a);
}

static void set_list(rl_attrs *a, int j, int n, const int64_t *v) {
  a->nlist[j] = n;
  if (n) memcpy(a->list[j], v, (size_t)n * sizeof *v);
}

rl_tensor *bind_permute(lua_State *L, rl_tensor *t, const int *perm) {
  rl_attrs a;
  rl_geom g = geom_of(t);
  for (int d = 0; d < t->ndim; d++) {
    g.size[d] = t->size[perm[d]];
    g.stride[d] = t->stride[perm[d]];
  }
  if (bind_plain(t)) return direct(L, t, &g);
  rl_attrs_default(RL_OP_PERMUTE, &a);
  a.nlist[0] = t->ndim;
  for (int d = 0; d < t->ndim; d++) a.list[0][d] = perm[d];
  return view_op(L, RL_OP_PERMUTE, t, &a);
}

/* t is contiguous and has as many elements. */
rl_tensor *bind_view(lua_State *L, rl_tensor *t, int ndim, const int64_t *size) {
  rl_attrs a;
  rl_geom g = { .ndim = ndim, .offset = t->offset };
  int64_t step = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    g.size[d] = size[d];
    g.stride[d] = step;
    step *= RL_MAX(size[d], 1);
  }
  if (bind_plain(t)) return direct(L, t, &g);
  rl_attrs_default(RL_OP_VIEW, &a);
  set_list(&a, 0, ndim, size);
  return view_op(L, RL_OP_VIEW, t, &a);
}

rl_tensor *bind_reshape(lua_State *L, rl_tensor *t, int ndim, const int64_t *size) {
  if (rl_is_contiguous(t)) return bind_view(L, t, ndim, size);
  rl_tensor *c = bind_clone(L, t), *v;
  bind_push_tensor(L, c);
  v = bind_view(L, c, ndim, size);
  lua_pop(L, 1);
  return v;
}

rl_tensor *bind_expand(lua_State *L, rl_tensor *t, int ndim, const int64_t *size) {
  rl_attrs a;
  rl_attrs_default(RL_OP_EXPAND, &a);
  set_list(&a, 0, ndim, size);
  return view_op(L, RL_OP_EXPAND, t, &a);
}

/* Contents ---------------------------------------------------------------------------------------------------------------------- */

rl_tensor *bind_cast(lua_State *L, rl_tensor *t, rl_dtype dt) {
  rl_attrs a;
  if (t->dtype == dt) return rl_tensor_retain(t);
  rl_attrs_default(RL_OP_CAST, &a);
  a.v[0].i = dt;
  return bind_op(L, RL_OP_CAST, &t, 1, &a);
}

rl_tensor *bind_clone(lua_State *L, rl_tensor *t) {
  if (!t->storage) return bind_new(L, (rl_dtype)t->dtype, (rl_device)t->device, t->ndim, t->size);
  rl_attrs a;
  rl_attrs_default(RL_OP_CAST, &a);
  a.v[0].i = t->dtype;
  return bind_op(L, RL_OP_CAST, &t, 1, &a);
}

rl_tensor *bind_contiguous(lua_State *L, rl_tensor *t) { return rl_is_contiguous(t) ? rl_tensor_retain(t) : bind_clone(L, t); }

/* Copies src's elements in logical order; element counts must be equal, types may differ. */
void bind_copy(lua_State *L, rl_tensor *dst, rl_tensor *src) {
  rl_attrs a;
  char b1[256], b2[256];
  if (dst == src) return;
  if (rl_numel(dst) != rl_numel(src)) luaL_error(L, "[copy] element counts differ; got %s, need %s", rl_shape_str(src, b1), rl_shape_str(dst, b2));
  if (rl_numel(dst) == 0) return;
  int top = lua_gettop(L);
  if (!rl_same_shape(dst, src)) bind_push_tensor(L, src = bind_reshape(L, src, dst->ndim, dst->size));
  rl_attrs_default(RL_OP_CAST, &a);
  a.v[0].i = dst->dtype;
  bind_call(L, RL_OP_CAST, &src, 1, &a, &dst);
  lua_settop(L, top);
}

/* Every element becomes v's one element. */
void bind_fill(lua_State *L, rl_tensor *dst, rl_tensor *v) {
  rl_attrs a;
  if (!dst->storage || rl_numel(dst) == 0) return;
  if (v->flags & RL_T_STACK) {
    rl_attrs_default(RL_OP_FULL, &a);
    set_list(&a, 0, dst->ndim, dst->size);
    a.v[0].f = ((rl_number *)v)->v.f;
    a.v[1].i = dst->dtype;
    bind_call(L, RL_OP_FULL, NULL, 0, &a, &dst);
    return;
  }
  int64_t one[RL_MAXDIM];
  int top = lua_gettop(L);
  for (int d = 0; d < RL_MAXDIM; d++) one[d] = 1;
  if (v->ndim != dst->ndim) bind_push_tensor(L, v = bind_view(L, v, dst->ndim, one));
  if (!rl_same_shape(v, dst)) bind_push_tensor(L, v = bind_expand(L, v, dst->ndim, dst->size));
  rl_attrs_default(RL_OP_CAST, &a);
  a.v[0].i = dst->dtype;
  bind_call(L, RL_OP_CAST, &v, 1, &a, &dst);
  lua_settop(L, top);
}

/* Lua methods ------------------------------------------------------------------------------------------------------------------- */

static int m_select(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  char buf[256];
  if (bind_ndim(t) == 0) return luaL_error(L, "[select] empty tensor; got %s, need at least one dimension", rl_shape_str(t, buf));
  int d = t->ndim == 1 ? 0 : bind_dim(L, 2, t); /* of a vector any dimension will do, as in Torch7 */
  int64_t k = bind_int(L, 3), n = t->size[d];
  if (k < 0) k += n + 1;
  if (k < 1 || k > n)
    return luaL_error(L, "[select] index out of range; got %d for dimension %d of %s, need 1 to %d", (int)bind_int(L, 3), d + 1, rl_shape_str(t, buf),
                      (int)n);
  if (t->ndim == 1) {
    lua_settop(L, 1);
    lua_pushnumber(L, (lua_Number)k);
    return bind_index(L);
  }
  return bind_push_tensor(L, bind_select(L, t, d, k - 1));
}

static int m_narrow(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  char buf[256];
  int d = bind_dim(L, 2, t);
  int64_t k = bind_int(L, 3), n = bind_int(L, 4);
  if (k < 0) k += t->size[d] + 1;
  if (k < 1 || n < 0 || k - 1 + n > t->size[d])
    return luaL_error(L, "[narrow] range out of bounds; got %d elements from %d in dimension %d of %s, need 1 to %d", (int)n, (int)k, d + 1,
                      rl_shape_str(t, buf), (int)t->size[d]);
  return bind_push_tensor(L, bind_narrow(L, t, d, k - 1, n));
}

/* x:sub(first1, last1 [, first2, last2 ...]) */
static int m_sub(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  int n = (lua_gettop(L) - 1) / 2;
  if (n < 1 || n > bind_ndim(t)) return luaL_error(L, "[sub] ranges; got %d, need 1 to %d", n, bind_ndim(t));
  bind_push_tensor(L, rl_tensor_retain(t));
  bind_box *b = (bind_box *)lua_touserdata(L, -1);
  for (int d = 0; d < n; d++) {
    int64_t lo = bind_int(L, 2 + 2 * d), hi = bind_int(L, 3 + 2 * d), size = t->size[d];
    if (lo < 0) lo += size + 1;
    if (hi < 0) hi += size + 1;
    if (lo < 1 || hi > size || lo > hi)
      return luaL_error(L, "[sub] range out of bounds; got %d to %d in dimension %d, need 1 to %d", (int)lo, (int)hi, d + 1, (int)size);
    t = bind_narrow(L, (rl_tensor *)b->p, d, lo - 1, hi - lo + 1);
    rl_tensor_release((rl_tensor *)b->p);
    b->p = t;
  }
  return 1;
}

static rl_tensor *swapped(lua_State *L, rl_tensor *t, int a, int b) {
  int perm[RL_MAXDIM];
  for (int d = 0; d < t->ndim; d++) perm[d] = d;
  perm[a] = b;
  perm[b] = a;
  return bind_permute(L, t, perm);
}

static int m_transpose(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  return bind_push_tensor(L, swapped(L, t, bind_dim(L, 2, t), bind_dim(L, 3, t)));
}

static int m_t(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  char buf[256];
  if (t->ndim != 2) return luaL_error(L, "[t] matrix needed; got %s, need 2 dimensions", rl_shape_str(t, buf));
  return bind_push_tensor(L, swapped(L, t, 0, 1));
}

static int m_permute(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  int64_t v[RL_MAXDIM];
  int perm[RL_MAXDIM], n = bind_sizes(L, 2, v);
  uint32_t seen = 0;
  char buf[256];
  for (int k = 0; k < n && n == t->ndim; k++) {
    if (v[k] < 0) v[k] += t->ndim + 1;
    if (v[k] >= 1 && v[k] <= t->ndim) seen |= 1u << (perm[k] = (int)v[k] - 1);
  }
  if (n != t->ndim || seen != (1u << n) - 1)
    return luaL_error(L, "[permute] not a permutation; got %d numbers for %s, need each dimension once", n, rl_shape_str(t, buf));
  return bind_push_tensor(L, bind_permute(L, t, perm));
}

static int m_unfold(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  rl_attrs a;
  int d = bind_dim(L, 2, t);
  int64_t size = bind_int(L, 3), step = bind_int(L, 4);
  if (size < 1 || size > t->size[d] || step < 1)
    return luaL_error(L, "[unfold] window; got size %d step %d for dimension of %d, need size within it and step 1 or more", (int)size, (int)step,
                      (int)t->size[d]);
  rl_attrs_default(RL_OP_UNFOLD, &a);
  a.v[0].i = d;
  a.v[1].i = size;
  a.v[2].i = step;
  return bind_push_tensor(L, view_op(L, RL_OP_UNFOLD, t, &a));
}

/* Sizes where one may be -1, made to hold n elements. */
static int view_sizes(lua_State *L, const char *what, int i, int64_t n, int64_t *size) {
  int nd = bind_sizes(L, i, size), hole = -1;
  int64_t known = 1;
  for (int d = 0; d < nd; d++) {
    if (size[d] == -1 && hole < 0) hole = d;
    else known *= size[d];
  }
  if (hole >= 0) size[hole] = known > 0 ? n / known : 0;
  if (hole >= 0) known *= size[hole];
  if (known != n) luaL_error(L, "[%s] element counts differ; got sizes for %d, need %d", what, (int)known, (int)n);
  return nd;
}

/* v goes to the result tensor at `res` (0: none), by reference to the same storage; pushes it. */
static int give_view(lua_State *L, int res, rl_tensor *v) {
  if (!res) return bind_push_tensor(L, v);
  rl_tensor *r = bind_tensor(L, res);
  rl_geom g = geom_of(v);
  rl_status s = rl_tensor_set(r, v->storage, &g);
  rl_tensor_release(v);
  if (s != RL_OK) return bind_raise(L, s);
  lua_pushvalue(L, res);
  return 1;
}

static void need_contiguous(lua_State *L, const rl_tensor *t) {
  char buf[256];
  if (!rl_is_contiguous(t)) luaL_error(L, "[view] contiguous tensor needed; got strided %s, need x:contiguous() first", rl_shape_str(t, buf));
}

/* x:view(sizes), res:view(x, sizes) */
static int m_view(lua_State *L) {
  int x = bind_totensor(L, 2) ? 2 : 1;
  rl_tensor *t = bind_tensor(L, x);
  int64_t size[RL_MAXDIM];
  int nd = view_sizes(L, "view", x + 1, rl_numel(t), size);
  need_contiguous(L, t);
  return give_view(L, x == 2, bind_view(L, t, nd, size));
}

static int m_view_as(lua_State *L) {
  int x = bind_totensor(L, 3) ? 2 : 1;
  rl_tensor *t = bind_tensor(L, x), *u = bind_tensor(L, x + 1);
  if (rl_numel(t) != rl_numel(u)) return luaL_error(L, "[viewAs] element counts differ; got %d, need %d", (int)rl_numel(t), (int)rl_numel(u));
  need_contiguous(L, t);
  return give_view(L, x == 2, bind_view(L, t, u->ndim, u->size));
}

/* torch.reshape([res,] x, sizes): always a copy, as in Torch7. */
static int m_reshape(lua_State *L) {
  int x = bind_totensor(L, 2) ? 2 : 1;
  rl_tensor *t = bind_tensor(L, x), *c, *v;
  int64_t size[RL_MAXDIM];
  int nd = view_sizes(L, "reshape", x + 1, rl_numel(t), size);
  if (x == 2) {
    rl_tensor *r = bind_tensor(L, 1);
    BIND_TRY(L, rl_tensor_resize(r, nd, size));
    bind_copy(L, r, t);
    lua_pushvalue(L, 1);
    return 1;
  }
  bind_push_tensor(L, c = bind_clone(L, t));
  v = bind_view(L, c, nd, size);
  return bind_push_tensor(L, v);
}

static int expand_to(lua_State *L, int res, rl_tensor *t, int nd, const int64_t *size) { return give_view(L, res, bind_expand(L, t, nd, size)); }

/* x:expand(sizes), res:expand(x, sizes) */
static int m_expand(lua_State *L) {
  int x = bind_totensor(L, 2) ? 2 : 1;
  rl_tensor *t = bind_tensor(L, x);
  int64_t size[RL_MAXDIM];
  int nd = bind_sizes(L, x + 1, size);
  for (int d = 0; d < nd; d++) /* -1 keeps a size */
    if (size[d] == -1 && nd - t->ndim <= d) size[d] = t->size[d - (nd - t->ndim)];
  return expand_to(L, x == 2, t, nd, size);
}

static int m_expand_as(lua_State *L) {
  int x = bind_totensor(L, 3) ? 2 : 1;
  rl_tensor *t = bind_tensor(L, x), *u = bind_tensor(L, x + 1);
  return expand_to(L, x == 2, t, u->ndim, u->size);
}

/* Without its dimensions of size 1 (or only that one); one of them stays when there is nothing else. */
static rl_tensor *squeezed(lua_State *L, rl_tensor *t, int only) {
  bind_push_tensor(L, rl_tensor_retain(t));
  bind_box *b = (bind_box *)lua_touserdata(L, -1);
  for (int d = t->ndim - 1; d >= 0; d--) {
    rl_tensor *u = (rl_tensor *)b->p;
    if (u->size[d] != 1 || u->ndim == 1 || (only >= 0 && only != d)) continue;
    b->p = bind_select(L, u, d, 0);
    rl_tensor_release(u);
  }
  rl_tensor *r = (rl_tensor *)b->p;
  rl_tensor_retain(r);
  lua_pop(L, 1);
  if (r == t && bind_plain(t)) {
    rl_tensor_release(r);
    r = rl_tensor_alias(t);
  }
  return r;
}

/* squeeze([res,] x [, dim]): one element left gives a number, as in Torch7. */
static int m_squeeze(lua_State *L) {
  int x = bind_totensor(L, 2) ? 2 : 1;
  rl_tensor *t = bind_tensor(L, x);
  bool all = lua_isnoneornil(L, x + 1);
  rl_tensor *v;
  if (x == 1 && rl_numel(t) == 1 && (all || t->ndim <= 1)) {
    bind_push_tensor(L, v = bind_reshape(L, t, 0, NULL));
    return bind_push_scalar(L, bind_clone(L, v));
  }
  v = squeezed(L, t, all ? -1 : bind_dim(L, x + 1, t));
  return give_view(L, x == 2, v);
}

/* x:unsqueeze(dim): a new dimension of size 1. */
static int m_unsqueeze(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  rl_attrs a;
  int64_t d = bind_int(L, 2);
  if (d < 0) d += t->ndim + 2;
  if (d < 1 || d > t->ndim + 1) return luaL_error(L, "[unsqueeze] dimension out of range; got %d, need 1 to %d", (int)d, t->ndim + 1);
  rl_attrs_default(RL_OP_UNSQUEEZE, &a);
  a.v[0].i = d - 1;
  return bind_push_tensor(L, view_op(L, RL_OP_UNSQUEEZE, t, &a));
}

/* repeatTensor([res,] x, repeats): (1, s1, 1, s2) expanded to (r1, s1, r2, s2), copied, merged. */
static int m_repeat(lua_State *L) {
  int x = bind_totensor(L, 2) ? 2 : 1;
  rl_tensor *t = bind_tensor(L, x), *v, *e;
  int64_t rep[RL_MAXDIM], from[RL_MAXDIM], to[RL_MAXDIM], size[RL_MAXDIM];
  int n = bind_sizes(L, x + 1, rep), k = 0;
  char buf[256];
  if (n < t->ndim || n + t->ndim > RL_MAXDIM)
    return luaL_error(L, "[repeatTensor] repeats; got %d for %s, need one a dimension", n, rl_shape_str(t, buf));
  for (int d = 0; d < n; d++) {
    int64_t s = d < n - t->ndim ? 1 : t->size[d - (n - t->ndim)];
    if (d >= n - t->ndim) {
      from[k] = 1;
      to[k++] = rep[d];
      from[k] = to[k] = s;
      k++;
    } else {
      from[k] = 1;
      to[k++] = rep[d];
    }
    size[d] = rep[d] * s;
  }
  bind_push_tensor(L, v = bind_reshape(L, t, k, from));
  bind_push_tensor(L, v = bind_expand(L, v, k, to));
  if (x == 2) {
    rl_tensor *r = bind_tensor(L, 1);
    BIND_TRY(L, rl_tensor_resize(r, n, size));
    bind_copy(L, r, v);
    lua_pushvalue(L, 1);
    return 1;
  }
  bind_push_tensor(L, e = bind_clone(L, v));
  return bind_push_tensor(L, bind_view(L, e, n, size));
}

static int pieces(lua_State *L, rl_tensor *t, int64_t step, int d) {
  int64_t n = t->size[d];
  int k = 0;
  lua_newtable(L);
  for (int64_t at = 0; at < n; at += step) {
    bind_push_tensor(L, bind_narrow(L, t, d, at, RL_MIN(step, n - at)));
    lua_rawseti(L, -2, ++k);
  }
  return 1;
}

/* split([res,] x, size [, dim]) and chunk([res,] x, n [, dim]) -> table of views; a table in front is filled and returned. */
static int split_by(lua_State *L, bool chunks, const char *what) {
  int x = lua_istable(L, 1) ? 2 : 1;
  rl_tensor *t = bind_tensor(L, x);
  int64_t k = bind_int(L, x + 1);
  int d = lua_isnoneornil(L, x + 2) ? 0 : bind_dim(L, x + 2, t);
  if (k < 1) return luaL_error(L, "[%s] count; got %d, need 1 or more", what, (int)k);
  pieces(L, t, chunks ? RL_MAX((t->size[d] + k - 1) / k, 1) : k, d);
  if (x == 1) return 1;
  int n = (int)lua_objlen(L, -1), old = (int)lua_objlen(L, 1);
  for (int i = 1; i <= RL_MAX(n, old); i++) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, 1, i);
  }
  lua_settop(L, 1);
  return 1;
}

static int m_split(lua_State *L) { return split_by(L, false, "split"); }
static int m_chunk(lua_State *L) { return split_by(L, true, "chunk"); }

static int m_contiguous(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  if (rl_is_contiguous(t)) {
    lua_settop(L, 1);
    return 1;
  }
  return bind_push_tensor(L, bind_clone(L, t));
}

static int m_clone(lua_State *L) { return bind_push_tensor(L, bind_clone(L, bind_tensor(L, 1))); }

static int m_copy(lua_State *L) {
  rl_number n;
  rl_tensor *t = bind_tensor(L, 1), *s = bind_operand(L, 2, &n);
  if (s->flags & RL_T_STACK) bind_fill(L, t, s);
  else bind_copy(L, t, s);
  lua_settop(L, 1);
  return 1;
}

/* x:type() -> name; x:type(name) -> converted, x itself when the type is the same. */
static int convert(lua_State *L, rl_tensor *t, rl_dtype dt, rl_device dev) {
  if (t->device != dev) return bind_push_tensor(L, rl_cuda_to(t, dt, dev));
  if (t->dtype == dt) {
    lua_settop(L, 1);
    return 1;
  }
  if (!t->storage) return bind_push_tensor(L, bind_new(L, dt, (rl_device)t->device, t->ndim, t->size));
  return bind_push_tensor(L, bind_cast(L, t, dt));
}

static int m_type(lua_State *L) {
  rl_tensor *t = bind_tensor(L, 1);
  char name[64];
  rl_dtype dt;
  rl_device dev = RL_CPU;
  if (!lua_isnoneornil(L, 2)) {
    dt = bind_dtype(L, 2);
    if (lua_type(L, 2) == LUA_TSTRING) bind_parse_dtype(lua_tostring(L, 2), &dt, &dev, NULL);
    return convert(L, t, dt, dev);
  }
  bind_type_name(name, (rl_dtype)t->dtype, (rl_device)t->device, "Tensor");
  lua_pushstring(L, name);
  return 1;
}

static int m_type_as(lua_State *L) {
  rl_tensor *u = bind_tensor(L, 2);
  return convert(L, bind_tensor(L, 1), (rl_dtype)u->dtype, (rl_device)u->device);
}
static int m_to(lua_State *L) { return convert(L, bind_tensor(L, 1), (rl_dtype)lua_tointeger(L, lua_upvalueindex(1)), RL_CPU); }

static int m_fill(lua_State *L) {
  rl_number n;
  rl_tensor *t = bind_tensor(L, 1);
  rl_tensor *v = bind_operand(L, 2, &n);
  if (rl_numel(v) != 1) return bind_argerror(L, 2, "number");
  bind_fill(L, t, v);
  lua_settop(L, 1);
  return 1;
}

static int m_zero(lua_State *L) {
  rl_number n;
  bind_fill(L, bind_tensor(L, 1), rl_number_set(&n, 0));
  lua_settop(L, 1);
  return 1;
}

static const bind_reg both[] = { { "select", m_select },
                                 { "narrow", m_narrow },
                                 { "transpose", m_transpose },
                                 { "permute", m_permute },
                                 { "unfold", m_unfold },
                                 { "view", m_view },
                                 { "viewAs", m_view_as },
                                 { "reshape", m_reshape },
                                 { "expand", m_expand },
                                 { "expandAs", m_expand_as },
                                 { "squeeze", m_squeeze },
                                 { "unsqueeze", m_unsqueeze },
                                 { "repeatTensor", m_repeat },
                                 { "split", m_split },
                                 { "chunk", m_chunk },
                                 { "fill", m_fill },
                                 { "zero", m_zero },
                                 { "t", m_t },
                                 { "contiguous", m_contiguous },
                                 { "clone", m_clone },
                                 { NULL, NULL } };
static const bind_reg methods[] = { { "sub", m_sub }, { "copy", m_copy }, { "type", m_type }, { "typeAs", m_type_as }, { NULL, NULL } };

void bind_open_view(lua_State *L) {
  bind_functions(L, both, true);
  bind_methods(L, both, true);
  bind_methods(L, methods, true);
  for (int dt = 0; dt < RL_NDTYPE; dt++) {
    char name[16];
    strncpy(name, rl_dtypes[dt].name, sizeof name - 1);
    name[sizeof name - 1] = 0;
    for (char *p = name; *p; p++)
      if (*p >= 'A' && *p <= 'Z') *p = (char)(*p - 'A' + 'a');
    lua_pushinteger(L, dt);
    lua_pushcclosure(L, m_to, 1);
    bind_put(L, name, true, true);
  }
}
