/* Functionalize: removes writes (graph in program order -> pure graph with updates).
 *
 * Rules.
 * 1. Storages that are never written keep their nodes as they are: a view there is a view.
 * 2. A written storage is cut into variables. A variable is a run of storage that windows of inputs and as_strided views connect; a fresh
 *    storage is one variable. Its elements have coordinates: storage positions from its start, or, when one input window is all that reaches
 *    it, positions in that window's row-major order (so a strided input behaves like a dense one).
 * 3. A variable's content is a list of disjoint pieces, each a run of coordinates with the value that it holds, or "original". A write to a
 *    dense window cuts the pieces there and puts its value in: overwriting one window of a flat parameter buffer touches nothing else.
 *    A write to a strided window becomes scatter_window on the pieces that it spans.
 * 4. Reading a handle: where all is original, the view of the input; where one piece is the whole window, its value; else a window of the
 *    piece, or of the concatenated pieces.
 * 5. At the end each written piece of an input becomes an update; outputs on fresh written storages are windows of its whole content, so that
 *    outputs that shared memory still do. An output on an input's storage is a view of the input, which the updates will have changed. */
#include "impl.h"
#include <stdlib.h>
#include <string.h>

typedef struct fz_piece {
  int64_t lo, hi;
  rl_ref ref;
} fz_piece; /* ref -1: original content of an input */
typedef struct fz_var {
  int32_t storage;
  rl_ref input;   /* an input node on the storage (old reference), -1: fresh storage */
  bool logical;   /* coordinates are row-major positions in that input's window */
  int64_t lo, hi; /* storage positions covered (not logical), or 0 and the element count */
  fz_piece *p;
  int32_t np, capp;
  uint32_t version, memo_version;
  int64_t memo_lo, memo_hi;
  rl_ref memo; /* last concatenation, while memo_version == version */
} fz_var;

typedef struct fz {
  const rl_graph *old;
  rl_graph *g;
  rl_ref *map;        /* old node -> the same node on original content */
  int32_t *sid, *var; /* old storage -> new; old node -> variable or -1 */
  rl_geom *coord;     /* old node -> geometry in its variable's coordinates */
  char *written;      /* by old storage */
  fz_var *v;
  int32_t nv, capv;
} fz;

/* ---- variables ---- */

static int fz_compare(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return x[0] < y[0] ? -1 : x[0] > y[0];
}

static bool fz_add_var(fz *f, fz_var v) {
  fz_piece whole = { 0, v.hi - v.lo, -1 };
  if (whole.hi > 0 && !GRAPH_PUSH(v.p, v.np, v.capp, whole)) return false;
  return GRAPH_PUSH(f->v, f->nv, f->capv, v);
}

/* The only input window in [lo, hi] of a storage, or -1 when there are several that differ, or as_strided views. */
static rl_ref fz_only_window(const fz *f, int32_t storage, int64_t lo, int64_t hi) {
  rl_ref only = -1;
  for (rl_ref r = 0; r < f->old->n; r++) {
    const rl_node *n = &f->old->nodes[r];
    const rl_geom *ge = graph_node_geom(f->old, r);
    if (n->storage != storage || (n->op != RL_G_INPUT && n->op != RL_OP_AS_STRIDED)) continue;
    if (graph_geom_last(ge) < lo || ge->offset > hi) continue;
    if (n->op == RL_OP_AS_STRIDED || (only >= 0 && !graph_geom_same(ge, graph_node_geom(f->old, only)))) return -1;
    only = r;
  }
  return only;
}

/* Whether every view that leads from that window has a geometry in its row-major order, too: merging dimensions of a transposed input does
 * not. Uses coord[] and var[] as scratch; fz_place sets them again. */
static bool fz_logical(fz *f, rl_ref only) {
  const rl_graph *o = f->old;
  bool ok = true;
  rl_type t;
  for (rl_ref r = 0; r < o->n; r++) {
    const rl_node *n = &o->nodes[r];
    f->var[r] = -1;
    if (n->storage != o->nodes[only].storage) continue;
    if (n->op == RL_G_INPUT) {
      f->var[r] = graph_geom_same(graph_node_geom(o, r), graph_node_geom(o, only)) ? 0 : -1;
      graph_dense(rl_node_type(o, r)->ndim, rl_node_type(o, r)->size, &f->coord[r]);
      continue;
    }
    rl_ref x = rl_node_in(o, r, 0);
    if ((f->var[r] = f->var[x]) < 0) continue;
    if (n->op == RL_G_WRITE) f->coord[r] = f->coord[x];
    else ok = ok && graph_view_geom(n->op, rl_node_type(o, x), &f->coord[x], graph_node_attrs(o, r), &t, &f->coord[r]) == RL_OK;
  }
  for (rl_ref r = 0; r < o->n; r++) f->var[r] = -1;
  return ok;
}

static bool fz_input_var(fz *f, int32_t storage, rl_ref any, int64_t lo, int64_t hi) {
  fz_var v = { .storage = storage, .input = any, .lo = lo, .hi = hi + 1, .memo = -1 };
  rl_ref only = fz_only_window(f, storage, lo, hi);
  if (only >= 0 && fz_logical(f, only)) {
    v.input = only;
    v.logical = true;
    v.lo = 0;
    v.hi = graph_numel(rl_node_type(f->old, only));
  }
  return fz_add_var(f, v);
}

/* Cuts a written input storage at the gaps between the windows that reach it. */
static bool fz_input_vars(fz *f, int32_t storage) {
  int64_t(*w)[2] = malloc(sizeof *w * (size_t)(f->old->n + 1));
  int32_t n = 0;
  rl_ref any = f->old->inputs[graph_input_of_storage(f->old, storage)];
  if (!w) {
    rl_error_status(RL_OOM, "[graph] out of memory");
    return false;
  }
  for (rl_ref r = 0; r < f->old->n; r++) {
    const rl_geom *ge = graph_node_geom(f->old, r);
    int op = f->old->nodes[r].op;
    if (f->old->nodes[r].storage != storage || (op != RL_G_INPUT && op != RL_OP_AS_STRIDED) || graph_geom_last(ge) < ge->offset) continue;
    w[n][0] = ge->offset;
    w[n++][1] = graph_geom_last(ge);
  }
  qsort(w, (size_t)n, sizeof *w, fz_compare);
  bool ok = true;
  for (int32_t i = 0, j; i < n && ok; i = j) {
    int64_t hi = w[i][1];
    for (j = i + 1; j < n && w[j][0] <= hi; j++) hi = RL_MAX(hi, w[j][1]);
    ok = fz_input_var(f, storage, any, w[i][0], hi);
  }
  free(w);
  return ok;
}

/* The variable of a node on a written storage and its geometry there. Views and writes follow their input. */
static bool fz_place(fz *f, rl_ref r) {
  const rl_node *n = &f->old->nodes[r];
  rl_geom ge = *graph_node_geom(f->old, r);
  rl_type t;
  bool derived = graph_is_view(n->op) || n->op == RL_G_WRITE;
  f->var[r] = -1;
  if (derived && n->op != RL_OP_AS_STRIDED) {
    rl_ref x = rl_node_in(f->old, r, 0);
    f->var[r] = f->var[x];
    if (f->var[x] < 0) return true;
    if (n->op == RL_G_WRITE) {
      f->coord[r] = f->coord[x];
      return true;
    }
    return graph_view_geom(n->op, rl_node_type(f->old, x), &f->coord[x], graph_node_attrs(f->old, r), &t, &f->coord[r]) == RL_OK;
  }
  for (int32_t i = 0; i < f->nv; i++) {
    const fz_var *v = &f->v[i];
    if (v->storage != n->storage) continue;
    if (v->logical ? !graph_geom_same(&ge, graph_node_geom(f->old, v->input)) : ge.offset < v->lo || graph_geom_last(&ge) >= v->hi) continue;
    f->var[r] = i;
    if (v->logical) graph_dense(ge.ndim, ge.size, &f->coord[r]);
    else {
      f->coord[r] = ge;
      f->coord[r].offset -= v->lo;
    }
    return true;
  }
  return true; /* an empty window */
}

/* ---- values ---- */

static rl_ref fz_flat(fz *f, rl_ref x, int64_t lo, int64_t hi) {
  x = graph_emit_dense(f->g, x);
  if (x < 0) return -1;
  rl_geom ge = { .ndim = 1, .offset = graph_node_geom(f->g, x)->offset + lo, .size = { hi - lo }, .stride = { 1 } };
  return graph_emit_window(f->g, x, &ge);
}

/* Original elements lo .. hi-1 of an input variable, flat. */
static rl_ref fz_original(fz *f, const fz_var *v, int64_t lo, int64_t hi) {
  rl_ref in = f->map[v->input];
  if (v->logical) return fz_flat(f, in, lo, hi);
  rl_geom ge = { .ndim = 1, .offset = v->lo + lo, .size = { hi - lo }, .stride = { 1 } };
  return graph_emit_window(f->g, in, &ge);
}

static rl_ref fz_piece_flat(fz *f, const fz_var *v, const fz_piece *p) {
  return p->ref < 0 ? fz_original(f, v, p->lo, p->hi) : fz_flat(f, p->ref, 0, p->hi - p->lo);
}

static int32_t fz_first(const fz_var *v, int64_t at) {
  int32_t i = 0;
  while (i < v->np && v->p[i].hi <= at) i++;
  return i;
}

/* Pieces first .. last as one flat value. */
static rl_ref fz_concat(fz *f, fz_var *v, int32_t first, int32_t last) {
  int64_t lo = v->p[first].lo, hi = v->p[last].hi;
  if (first == last) return fz_piece_flat(f, v, &v->p[first]);
  if (v->memo >= 0 && v->memo_version == v->version && v->memo_lo == lo && v->memo_hi == hi) return v->memo;
  int32_t n = last - first + 1;
  rl_ref *in = graph_ref_array(n, -1), r = -1;
  bool ok = in != NULL;
  for (int32_t i = 0; ok && i < n; i++) ok = (in[i] = fz_piece_flat(f, v, &v->p[first + i])) >= 0;
  if (ok) {
    rl_type t = *rl_node_type(f->g, in[0]);
    rl_attrs a;
    memset(&a, 0, sizeof a);
    t.size[0] = hi - lo;
    r = graph_emit(f->g, RL_OP_CAT, &t, in, n, &a);
  }
  free(in);
  v->memo = r;
  v->memo_version = v->version;
  v->memo_lo = lo;
  v->memo_hi = hi;
  return r;
}

/* Window `w` (row-major strides) of a dense value x. */
static rl_ref fz_window(fz *f, rl_ref x, rl_geom w) {
  if (x < 0) return -1;
  w.offset += graph_node_geom(f->g, x)->offset;
  return graph_emit_window(f->g, x, &w);
}

static bool fz_whole(const rl_geom *c, const fz_piece *p) { return graph_geom_dense(c) && c->offset == p->lo && graph_geom_last(c) == p->hi - 1; }

static bool fz_shape_is(const rl_graph *g, rl_ref r, const rl_geom *c) {
  const rl_type *t = rl_node_type(g, r);
  return t->ndim == c->ndim && !memcmp(t->size, c->size, sizeof(int64_t) * t->ndim);
}

/* Current value of a handle. */
static rl_ref fz_read(fz *f, rl_ref r) {
  if (r < 0 || f->var[r] < 0 || graph_numel(rl_node_type(f->old, r)) == 0) return r < 0 ? -1 : f->map[r];
  fz_var *v = &f->v[f->var[r]];
  rl_geom c = f->coord[r];
  int32_t first = fz_first(v, c.offset), last = fz_first(v, graph_geom_last(&c));
  bool original = v->input >= 0;
  for (int32_t i = first; i <= last; i++)
    if (v->p[i].ref >= 0) original = false;
  if (original) return f->map[r];
  fz_piece *p = &v->p[first];
  if (first == last && fz_whole(&c, p) && fz_shape_is(f->g, p->ref, &c)) return p->ref;
  c.offset -= p->lo;
  if (first != last) return fz_window(f, fz_concat(f, v, first, last), c);
  p->ref = graph_emit_dense(f->g, p->ref);
  return fz_window(f, p->ref, c);
}

/* ---- writes ---- */

/* Cuts pieces at coordinate `at`, so that one begins there. */
static bool fz_cut(fz *f, fz_var *v, int64_t at) {
  int32_t i = fz_first(v, at);
  if (i == v->np || v->p[i].lo >= at) return true;
  fz_piece p = v->p[i], left = { p.lo, at, -1 }, right = { at, p.hi, -1 };
  if (p.ref >= 0) {
    left.ref = fz_flat(f, p.ref, 0, at - p.lo);
    right.ref = fz_flat(f, p.ref, at - p.lo, p.hi - p.lo);
    if (left.ref < 0 || right.ref < 0) return false;
  }
  if (!GRAPH_PUSH(v->p, v->np, v->capp, p)) return false;
  memmove(v->p + i + 1, v->p + i, sizeof p * (size_t)(v->np - 1 - i));
  v->p[i] = left;
  v->p[i + 1] = right;
  return true;
}

/* Replaces pieces first .. last by one with value `ref`. */
static void fz_replace(fz_var *v, int32_t first, int32_t last, rl_ref ref) {
  fz_piece p = { v->p[first].lo, v->p[last].hi, ref };
  memmove(v->p + first + 1, v->p + last + 1, sizeof p * (size_t)(v->np - last - 1));
  v->np -= last - first;
  v->p[first] = p;
  v->version++;
}

/* A dimension of stride 0 writes its elements onto one place: the last stays. */
static rl_ref fz_collapse(fz *f, rl_geom *c, rl_ref s) {
  bool any = false;
  for (int d = 0; d < c->ndim; d++) any |= c->size[d] > 1 && c->stride[d] == 0;
  if (!any || s < 0) return s;
  rl_geom w = *graph_node_geom(f->g, s);
  for (int d = 0; d < c->ndim; d++) {
    if (c->size[d] <= 1 || c->stride[d]) continue;
    w.offset += (c->size[d] - 1) * w.stride[d];
    c->size[d] = w.size[d] = 1;
  }
  return graph_emit_window(f->g, s, &w);
}

/* A window that is dense in another order of its dimensions (a transposed view of all) is the dense window of the permuted value. */
static rl_ref fz_unpermute(fz *f, rl_geom *c, rl_ref s) {
  rl_attrs a;
  rl_geom p = *c;
  if (s < 0 || graph_geom_dense(c)) return s;
  rl_attrs_default(RL_OP_PERMUTE, &a);
  a.nlist[0] = c->ndim;
  for (int d = 0; d < c->ndim; d++) { /* insertion by falling stride */
    int at = d;
    for (; at > 0 && p.stride[at - 1] < c->stride[d]; at--) {
      p.stride[at] = p.stride[at - 1];
      p.size[at] = p.size[at - 1];
      a.list[0][at] = a.list[0][at - 1];
    }
    p.stride[at] = c->stride[d];
    p.size[at] = c->size[d];
    a.list[0][at] = d;
  }
  if (!graph_geom_dense(&p)) return s;
  *c = p;
  return graph_emit_view(f->g, RL_OP_PERMUTE, s, &a);
}

static bool fz_write_strided(fz *f, fz_var *v, rl_geom c, rl_ref s) {
  int64_t lo = c.offset, hi = graph_geom_last(&c) + 1;
  if (v->p[fz_first(v, lo)].ref < 0 && !fz_cut(f, v, lo)) return false;
  if (v->p[fz_first(v, hi - 1)].ref < 0 && !fz_cut(f, v, hi)) return false;
  int32_t first = fz_first(v, lo), last = fz_first(v, hi - 1);
  rl_ref base = first == last && v->p[first].ref >= 0 ? graph_emit_dense(f->g, v->p[first].ref) : fz_concat(f, v, first, last);
  c.offset -= v->p[first].lo;
  rl_ref r = graph_emit_scatter(f->g, base, s, &c);
  if (r < 0) return false;
  fz_replace(v, first, last, r);
  return true;
}

static bool fz_write(fz *f, rl_ref r) {
  rl_ref d = rl_node_in(f->old, r, 0), s = fz_read(f, rl_node_in(f->old, r, 1));
  f->map[r] = f->map[d];
  if (s < 0) return false;
  if (f->var[d] < 0 || graph_numel(rl_node_type(f->old, d)) == 0) return true;
  fz_var *v = &f->v[f->var[d]];
  rl_geom c = f->coord[d];
  s = fz_unpermute(f, &c, fz_collapse(f, &c, s));
  if (s < 0) return false;
  if (!graph_geom_dense(&c)) return fz_write_strided(f, v, c, s);
  int64_t lo = c.offset, hi = graph_geom_last(&c) + 1;
  if (!fz_cut(f, v, lo) || !fz_cut(f, v, hi)) return false;
  fz_replace(v, fz_first(v, lo), fz_first(v, hi - 1), s);
  return true;
}

/* ---- the walk ---- */

/* Copies an op onto the current values of its inputs: graph_copy_node reads map[], so that holds them for the moment. */
static bool fz_op(fz *f, rl_ref r) {
  const rl_node *n = &f->old->nodes[r];
  const rl_ref *old = &f->old->refs[n->in];
  if (n->op == RL_G_PROJ) return true;
  rl_ref *value = graph_ref_array(2 * n->nin, -1), *keep = value + n->nin;
  bool ok = value != NULL;
  for (int k = 0; ok && k < n->nin; k++)
    if (old[k] >= 0) ok = (value[k] = fz_read(f, old[k])) >= 0;
  for (int k = 0; ok && k < n->nin; k++)
    if (old[k] >= 0) keep[k] = f->map[old[k]];
  for (int k = 0; ok && k < n->nin; k++)
    if (old[k] >= 0) f->map[old[k]] = value[k];
  ok = ok && graph_copy_node(f->g, f->old, r, f->map, f->sid);
  for (int k = 0; ok && k < n->nin; k++)
    if (old[k] >= 0) f->map[old[k]] = keep[k];
  free(value);
  return ok;
}

/* A fresh written storage becomes a variable whose one piece is the node that made it. */
static bool fz_fresh_var(fz *f, rl_ref r) {
  const rl_node *n = &f->old->nodes[r];
  if (!f->written[n->storage] || n->op == RL_G_INPUT || graph_is_view(n->op) || n->op == RL_G_WRITE) return true;
  fz_var v = { .storage = n->storage, .input = -1, .lo = 0, .hi = graph_numel(rl_node_type(f->old, r)), .memo = -1 };
  if (!fz_add_var(f, v)) return false;
  if (v.hi > 0) f->v[f->nv - 1].p[0].ref = f->map[r];
  return true;
}

static bool fz_node(fz *f, rl_ref r) {
  const rl_node *n = &f->old->nodes[r];
  if (n->op == RL_G_WRITE) return fz_place(f, r) && fz_write(f, r);
  if (graph_is_view(n->op) && !f->written[n->storage]) return graph_copy_node(f->g, f->old, r, f->map, f->sid);
  if (graph_is_view(n->op)) return graph_copy_node(f->g, f->old, r, f->map, f->sid) && fz_place(f, r);
  if (!fz_op(f, r)) return false;
  for (int k = 0; k < n->nout; k++) {
    if (n->op == RL_G_PROJ) break;
    if (!fz_fresh_var(f, r + k)) return false;
    if (f->written[f->old->nodes[r + k].storage] && !fz_place(f, r + k)) return false;
  }
  return true;
}

/* ---- the end ---- */

static bool fz_update(fz *f, rl_ref input, rl_ref value) {
  rl_update u = { input, value };
  if (input < 0 || value < 0) return false;
  return GRAPH_PUSH(f->g->updates, f->g->nupdates, f->g->capupdates, u);
}

/* An input whose dense window is exactly coordinates lo .. hi-1; -1: none. */
static rl_ref fz_input_at(const fz *f, const fz_var *v, int64_t lo, int64_t hi) {
  for (int32_t i = 0; i < f->old->ninputs; i++) {
    rl_ref r = f->old->inputs[i];
    if (f->var[r] < 0 || &f->v[f->var[r]] != v) continue;
    const rl_geom *c = &f->coord[r];
    if (graph_geom_dense(c) && c->offset == lo && graph_geom_last(c) == hi - 1) return r;
  }
  return -1;
}

static bool fz_update_piece(fz *f, const fz_var *v, const fz_piece *p) {
  rl_ref in = fz_input_at(f, v, p->lo, p->hi);
  if (in >= 0) {
    if (fz_shape_is(f->g, p->ref, &f->coord[in])) return fz_update(f, f->map[in], p->ref);
    rl_geom w = f->coord[in];
    w.offset = 0;
    return fz_update(f, f->map[in], fz_window(f, graph_emit_dense(f->g, p->ref), w));
  }
  int64_t start = v->logical ? graph_node_geom(f->old, v->input)->offset : v->lo;
  rl_geom w = { .ndim = 1, .offset = start + p->lo, .size = { p->hi - p->lo }, .stride = { 1 } };
  return fz_update(f, graph_emit_window(f->g, f->map[v->input], &w), fz_flat(f, p->ref, 0, p->hi - p->lo));
}

/* One update per written piece; a strided input is updated as a whole. */
static bool fz_update_var(fz *f, fz_var *v) {
  bool dirty = false;
  for (int32_t i = 0; i < v->np; i++) dirty |= v->p[i].ref >= 0;
  if (!dirty) return true;
  if (v->logical && v->np > 1 && !graph_geom_dense(graph_node_geom(f->old, v->input))) {
    rl_ref all = fz_concat(f, v, 0, v->np - 1);
    if (all < 0) return false;
    fz_replace(v, 0, v->np - 1, all);
  }
  for (int32_t i = 0; i < v->np; i++)
    if (v->p[i].ref >= 0 && !fz_update_piece(f, v, &v->p[i])) return false;
  return true;
}

/* Whole content of a fresh variable, dense; map[] of the storage's first node becomes it, so that outputs can be laid out as they were. */
static rl_ref fz_content(fz *f, fz_var *v) {
  if (v->np > 1) {
    rl_ref all = fz_concat(f, v, 0, v->np - 1);
    if (all < 0) return -1;
    fz_replace(v, 0, v->np - 1, all);
  }
  v->p[0].ref = graph_emit_dense(f->g, v->p[0].ref);
  if (v->p[0].ref < 0) return -1;
  rl_geom ge;
  rl_ref first = f->old->storage_node[v->storage];
  graph_dense(rl_node_type(f->old, first)->ndim, rl_node_type(f->old, first)->size, &ge);
  return f->map[first] = fz_window(f, v->p[0].ref, ge);
}

static rl_ref fz_output(fz *f, rl_ref r) {
  int32_t s = f->old->nodes[r].storage;
  if (!f->written[s] || graph_input_of_storage(f->old, s) >= 0 || f->var[r] < 0 || !graph_numel(rl_node_type(f->old, r))) return f->map[r];
  fz_var *v = &f->v[f->var[r]];
  const rl_geom *c = &f->coord[r];
  if (fz_content(f, v) < 0) return -1;
  if (fz_whole(c, &v->p[0]) && fz_shape_is(f->g, v->p[0].ref, c)) return v->p[0].ref;
  return fz_window(f, v->p[0].ref, *c);
}

static bool fz_ends(fz *f) {
  rl_ref *out = graph_ref_array(f->old->noutputs, -1);
  bool ok = out != NULL;
  for (int32_t i = 0; ok && i < f->nv; i++)
    if (f->v[i].input >= 0) ok = fz_update_var(f, &f->v[i]);
  for (int32_t i = 0; ok && i < f->old->noutputs; i++) ok = (out[i] = fz_output(f, f->old->outputs[i])) >= 0;
  ok = ok && graph_set_outputs(f->g, f->old, out, f->sid, f->map);
  free(out);
  f->g->functional = true;
  f->g->rng_total = f->old->rng_total;
  return ok;
}

static bool fz_start(fz *f) {
  const rl_graph *o = f->old;
  f->g = rl_graph_new();
  f->map = graph_ref_array(o->n, -1);
  f->var = graph_ref_array(o->n, -1);
  f->sid = graph_ref_array(o->nstorages, -1);
  f->written = calloc((size_t)o->nstorages + 1, 1);
  f->coord = calloc((size_t)o->n + 1, sizeof *f->coord);
  if (!f->g || !f->map || !f->var || !f->sid || !f->written || !f->coord) return false;
  for (rl_ref r = 0; r < o->n; r++)
    if (o->nodes[r].op == RL_G_WRITE) f->written[o->nodes[r].storage] = 1;
  for (int32_t s = 0; s < o->nstorages; s++)
    if (f->written[s] && graph_input_of_storage(o, s) >= 0 && !fz_input_vars(f, s)) return false;
  return true;
}

static void fz_finish(fz *f) {
  for (int32_t i = 0; i < f->nv; i++) free(f->v[i].p);
  free(f->v);
  free(f->map);
  free(f->var);
  free(f->sid);
  free(f->written);
  free(f->coord);
}

/* The same computation without write nodes; NULL with a message when it fails. */
rl_graph *rl_pass_functionalize(const rl_graph *old) {
  fz f = { .old = old };
  bool ok = fz_start(&f);
  for (rl_ref r = 0; ok && r < old->n; r++) ok = fz_node(&f, r);
  ok = ok && fz_ends(&f);
  fz_finish(&f);
  rl_graph *pruned = ok ? graph_prune(f.g) : NULL;
  rl_graph_free(f.g);
  return pruned;
}
