/* Drivers: strided tensors -> collapsed loops -> inner loops of the best instruction set, in parallel above a threshold.
 * Pieces have fixed sizes, so results do not depend on the number of threads. */
#include <stdlib.h>
#include "loop.h"
#include "walk.h"
#include "rows.h"
#include "tile.h"

#define ISA(I) \
  extern const rl_ew_fn rl_ew_table_##I[RL_NOP][RL_NDTYPE], rl_cast_table_##I[RL_NDTYPE][RL_NDTYPE]; \
  extern const rl_red_fns rl_red_table_##I[RL_NOP][RL_NDTYPE]; \
  extern const rl_row_fns rl_row_table_##I; \
  extern const rl_tile_fns *const rl_tile_table_##I[2];
#ifdef RL_HAVE_base
ISA(base)
#endif
#ifdef RL_HAVE_v3
ISA(v3)
#endif
#ifdef RL_HAVE_v4
ISA(v4)
#endif

typedef struct isa {
  const rl_ew_fn (*ew)[RL_NDTYPE], (*cast)[RL_NDTYPE];
  const rl_red_fns (*red)[RL_NDTYPE];
  const rl_row_fns *rows;
  const rl_tile_fns *const *tiles;
} isa;
static isa best;
__attribute__((constructor)) static void pick_isa(void) {
#ifdef RL_HAVE_base
  best = (isa){ rl_ew_table_base, rl_cast_table_base, rl_red_table_base, &rl_row_table_base, rl_tile_table_base };
#endif
#ifdef RL_HAVE_v3
#ifndef RL_HAVE_base
  best = (isa){ rl_ew_table_v3, rl_cast_table_v3, rl_red_table_v3, &rl_row_table_v3, rl_tile_table_v3 };
#endif
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
    best = (isa){ rl_ew_table_v3, rl_cast_table_v3, rl_red_table_v3, &rl_row_table_v3, rl_tile_table_v3 };
#endif
#ifdef RL_HAVE_v4
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
    best = (isa){ rl_ew_table_v4, rl_cast_table_v4, rl_red_table_v4, &rl_row_table_v4, rl_tile_table_v4 };
#endif
}

const rl_row_fns *rl_rows(void) { return best.rows; }
const rl_tile_fns *rl_tiles(rl_dtype dt) { return best.tiles[dt == RL_F64]; }

/* ---- elementwise ---- */

#define EW_MAX 5     /* result and four inputs */
#define PIECE 16384  /* elements of one parallel piece */
#define PAR 65536    /* elements from which threads are worth it */
#define SCALARS 1024 /* elements of a scalar's buffer */

typedef struct ew_loop {
  int nt, ndim;
  int64_t size[RL_MAXDIM], stride[EW_MAX][RL_MAXDIM]; /* bytes */
  char *p[EW_MAX];
  int bytes[EW_MAX];
} ew_loop;

static void swap_dims(ew_loop *l, int i, int j) {
  int64_t t = l->size[i];
  l->size[i] = l->size[j], l->size[j] = t;
  for (int k = 0; k < l->nt; k++) t = l->stride[k][i], l->stride[k][i] = l->stride[k][j], l->stride[k][j] = t;
}
/* Dimensions by the result's strides, largest first; then neighbours that every operand walks as one are joined. */
static void ew_collapse(ew_loop *l) {
  int n = 0;
  for (int d = 0; d < l->ndim; d++) {
    if (l->size[d] == 1) continue;
    if (n != d) {
      l->size[n] = l->size[d];
      for (int k = 0; k < l->nt; k++) l->stride[k][n] = l->stride[k][d];
    }
    n++;
  }
  l->ndim = n;
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && llabs(l->stride[0][j]) > llabs(l->stride[0][j - 1]); j--) swap_dims(l, j, j - 1);
  int w = 0;
  for (int d = 1; d < n; d++) {
    bool join = true;
    for (int k = 0; k < l->nt; k++) join = join && l->stride[k][w] == l->stride[k][d] * l->size[d];
    if (join) {
      l->size[w] *= l->size[d];
      for (int k = 0; k < l->nt; k++) l->stride[k][w] = l->stride[k][d];
    } else {
      w++;
      l->size[w] = l->size[d];
      for (int k = 0; k < l->nt; k++) l->stride[k][w] = l->stride[k][d];
    }
  }
  l->ndim = n ? w + 1 : 0;
}

/* One inner run: scalars are repeated into buffers and the run is cut to their length. */
static void ew_inner(const ew_loop *l, rl_ew_fn fn, const rl_attrs *a, int64_t n, char *const *p0, const int64_t *st) {
  char buf[EW_MAX][SCALARS * 8] __attribute__((aligned(64)));
  char *p[EW_MAX];
  int64_t s[EW_MAX];
  bool scalar = false;
  for (int k = 0; k < l->nt; k++) p[k] = p0[k], s[k] = st[k];
  for (int k = 1; k < l->nt && n >= 8; k++) {
    if (s[k] != 0) continue;
    int64_t m = RL_MIN(n, SCALARS);
    int b = l->bytes[k];
#define REPEAT(T) \
  { \
    T v = *(const T *)p[k]; \
    for (int64_t i = 0; i < m; i++) ((T *)buf[k])[i] = v; \
  }
    BY_BYTES(b, REPEAT)
#undef REPEAT
    p[k] = buf[k], s[k] = b, scalar = true;
  }
  if (!scalar) {
    fn(n, p, s, a);
    return;
  }
  for (int64_t i = 0; i < n; i += SCALARS) {
    char *q[EW_MAX];
    for (int k = 0; k < l->nt; k++) q[k] = p[k] == buf[k] ? p[k] : p[k] + i * s[k];
    fn(RL_MIN(SCALARS, n - i), q, s, a);
  }
}

/* Pieces first .. last-1 of the loop: piece number = outer position * pieces per row + piece in the row. */
static void ew_pieces(const ew_loop *l, rl_ew_fn fn, const rl_attrs *a, int64_t first, int64_t last, int64_t per_row) {
  int in = l->ndim - 1;
  int64_t n = in < 0 ? 1 : l->size[in], st[EW_MAX];
  for (int k = 0; k < l->nt; k++) st[k] = in < 0 ? 0 : l->stride[k][in];
  for (int64_t t = first; t < last; t++) {
    int64_t row = t / per_row, at = t % per_row * PIECE;
    char *p[EW_MAX];
    for (int k = 0; k < l->nt; k++) p[k] = l->p[k] + at * st[k];
    for (int d = in - 1; d >= 0; d--) {
      int64_t i = row % l->size[d];
      row /= l->size[d];
      for (int k = 0; k < l->nt; k++) p[k] += i * l->stride[k][d];
    }
    ew_inner(l, fn, a, RL_MIN(PIECE, n - at), p, st);
  }
}

/* A transposed copy: the result runs along its last dimension, an input along dimension across. Square tiles of the two, for every
 * position of the others. */
#define TILE 32
static int ew_across(const ew_loop *l) {
  int in = l->ndim - 1, best_d = -1;
  if (in < 1 || l->size[in] < 8) return -1;
  for (int k = 1; k < l->nt; k++)
    for (int d = 0; d < in; d++)
      if (l->size[d] >= 8 && l->stride[k][d] != 0 && llabs(l->stride[k][d]) < llabs(l->stride[k][in]) && llabs(l->stride[k][d]) <= 2 * l->bytes[k])
        best_d = d;
  return best_d;
}
static void ew_tiles(const ew_loop *l, int across, rl_ew_fn fn, const rl_attrs *a) {
  int in = l->ndim - 1;
  int64_t r = l->size[across], c = l->size[in], tiles = (r + TILE - 1) / TILE, outer = 1;
  for (int d = 0; d < in; d++) outer *= d == across ? 1 : l->size[d];
#pragma omp parallel for schedule(static) if (outer * r * c >= PAR)
  for (int64_t t = 0; t < outer * tiles; t++) {
    int64_t rest = t / tiles, b = t % tiles;
    char *q[EW_MAX];
    for (int k = 0; k < l->nt; k++) q[k] = l->p[k];
    for (int d = in - 1; d >= 0; d--) {
      if (d == across) continue;
      int64_t i = rest % l->size[d];
      rest /= l->size[d];
      for (int k = 0; k < l->nt; k++) q[k] += i * l->stride[k][d];
    }
    for (int64_t j = 0; j < c; j += TILE)
      for (int64_t i = b * TILE; i < RL_MIN(r, (b + 1) * TILE); i++) {
        char *p[EW_MAX];
        int64_t st[EW_MAX];
        for (int k = 0; k < l->nt; k++) p[k] = q[k] + i * l->stride[k][across] + j * l->stride[k][in], st[k] = l->stride[k][in];
        fn(RL_MIN(TILE, c - j), p, st, a);
      }
  }
}

static void ew_go(ew_loop *l, rl_ew_fn fn, const rl_attrs *a) {
  ew_collapse(l);
  int in = l->ndim - 1;
  int64_t n = in < 0 ? 1 : l->size[in], per_row = (n + PIECE - 1) / PIECE, outer = 1;
  for (int d = 0; d < in; d++) outer *= l->size[d];
  int across = ew_across(l);
  if (across >= 0) {
    ew_tiles(l, across, fn, a);
    return;
  }
  int64_t pieces = outer * per_row;
  if (outer * n < PAR) {
    ew_pieces(l, fn, a, 0, pieces, per_row);
    return;
  }
  int64_t groups = RL_MIN(pieces, 1024), each = (pieces + groups - 1) / groups;
#pragma omp parallel for schedule(static)
  for (int64_t g = 0; g < groups; g++) ew_pieces(l, fn, a, g * each, RL_MIN(pieces, (g + 1) * each), per_row);
}

static rl_status ew_start(rl_tensor *const *in, int nin, rl_tensor *out, rl_ew_fn fn, const rl_attrs *a) {
  ew_loop l;
  bool flat = rl_is_contiguous(out);
  int64_t n = rl_numel(out);
  if (n == 0) return RL_OK;
  l.nt = nin + 1;
  for (int k = 0; k <= nin; k++) {
    const rl_tensor *t = k ? in[k - 1] : out;
    l.p[k] = rl_data(t), l.bytes[k] = esize(t);
    flat = flat && (k == 0 || rl_is_contiguous(t));
  }
  if (flat || n == 1) {
    l.ndim = 1, l.size[0] = n;
    for (int k = 0; k <= nin; k++) l.stride[k][0] = l.bytes[k];
    if (n <= PIECE) {
      int64_t s[EW_MAX];
      for (int k = 0; k <= nin; k++) s[k] = l.bytes[k];
      fn(n, l.p, s, a);
      return RL_OK;
    }
  } else {
    l.ndim = out->ndim;
    for (int d = 0; d < l.ndim; d++) l.size[d] = out->size[d];
    for (int k = 0; k <= nin; k++)
      for (int d = 0; d < l.ndim; d++) l.stride[k][d] = (k ? in[k - 1] : out)->stride[d] * l.bytes[k];
  }
  ew_go(&l, fn, a);
  return RL_OK;
}

rl_status rl_ew_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);
rl_status rl_ew_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  rl_dtype dt = in[0]->dtype;
  for (int k = 0; k < nin; k++)
    if (!rl_ops[op].in_dtypes[k]) {
      dt = in[k]->dtype;
      break;
    }
  rl_ew_fn fn = best.ew[op][dt];
  if (!fn) return rl_error("[%s] no kernel for %s tensors", rl_ops[op].name, rl_dtypes[dt].name);
  return ew_start(in, nin, out[0], fn, a);
}

rl_status rl_cast_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);
rl_status rl_cast_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  (void)op, (void)nin;
  return ew_start(in, 1, out[0], best.cast[in[0]->dtype][out[0]->dtype], a);
}

void rl_ew_move(rl_tensor *dst, const rl_tensor *src) {
  rl_tensor *in[] = { (rl_tensor *)src };
  ew_start(in, 1, dst, best.cast[dst->dtype][dst->dtype], NULL);
}

/* ---- reductions ---- */

#define ROW 512 /* columns of one outer run */

typedef struct red_loop {
  const rl_red_fns *f;
  int nk, nr;                                                                                  /* kept and reduced dimensions */
  int64_t ksize[RL_MAXDIM], kin[RL_MAXDIM], kout[RL_MAXDIM], rsize[RL_MAXDIM], rin[RL_MAXDIM]; /* byte strides */
  char *x, *r;
} red_loop;

/* Joins neighbouring reduced (or kept) dimensions that are walked as one. */
static int join_dims(int n, int64_t *size, int64_t *s1, int64_t *s2) {
  int w = 0;
  for (int d = 0; d < n; d++) {
    if (size[d] == 1) continue;
    if (w && s1[w - 1] == s1[d] * size[d] && (!s2 || s2[w - 1] == s2[d] * size[d])) {
      size[w - 1] *= size[d], s1[w - 1] = s1[d];
      if (s2) s2[w - 1] = s2[d];
    } else {
      size[w] = size[d], s1[w] = s1[d];
      if (s2) s2[w] = s2[d];
      w++;
    }
  }
  return w;
}

static void red_setup(red_loop *l, const rl_tensor *x, const rl_attrs *a, const rl_tensor *r) {
  int bx = esize(x), o = 0;
  bool keep = a->v[0].i;
  l->nk = l->nr = 0;
  l->x = rl_data(x), l->r = rl_data(r);
  for (int d = 0; d < x->ndim; d++) {
    bool red = false;
    for (int k = 0; k < a->nlist[0]; k++) red = red || a->list[0][k] == d;
    if (red) l->rsize[l->nr] = x->size[d], l->rin[l->nr++] = x->stride[d] * bx;
    else l->ksize[l->nk] = x->size[d], l->kin[l->nk] = x->stride[d] * bx, l->kout[l->nk++] = r->stride[o] * esize(r);
    o += !red || keep;
  }
  l->nk = join_dims(l->nk, l->ksize, l->kin, l->kout);
  l->nr = join_dims(l->nr, l->rsize, l->rin, NULL);
}

static int64_t product(int n, const int64_t *size) {
  int64_t p = 1;
  for (int d = 0; d < n; d++) p *= size[d];
  return p;
}
static int64_t offset_of(int n, const int64_t *size, const int64_t *st, int64_t i) {
  int64_t off = 0;
  for (int d = n - 1; d >= 0; d--) off += i % size[d] * st[d], i /= size[d];
  return off;
}

/* One result element from reduced positions lo .. hi-1 of the outer reduced dimensions; the last reduced dimension is the inner run. */
static void red_one(const red_loop *l, const char *x, void *acc) {
  int in = l->nr - 1;
  if (in < 0) {
    l->f->inner(1, x, 0, acc);
    return;
  }
  int64_t outer = product(in, l->rsize);
  for (int64_t i = 0; i < outer; i++) l->f->inner(l->rsize[in], x + offset_of(in, l->rsize, l->rin, i), l->rin[in], acc);
}

/* A large reduction to one element: fixed pieces, each its own accumulator, merged in order. */
static void red_all(const red_loop *l) {
  int in = l->nr - 1;
  int64_t n = l->rsize[in], outer = product(in, l->rsize), per = (n + PIECE - 1) / PIECE, pieces = outer * per;
  char acc[16], *part = rl_alloc((size_t)(pieces * l->f->acc_bytes));
  l->f->init(1, acc);
  if (!part) {
    red_one(l, l->x, acc);
  } else {
    l->f->init(pieces, part);
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < pieces; t++) {
      int64_t at = t % per * PIECE;
      l->f->inner(RL_MIN(PIECE, n - at), l->x + offset_of(in, l->rsize, l->rin, t / per) + at * l->rin[in], l->rin[in], part + t * l->f->acc_bytes);
    }
    for (int64_t t = 0; t < pieces; t++) l->f->merge(1, acc, part + t * l->f->acc_bytes);
    rl_free(part, (size_t)(pieces * l->f->acc_bytes));
  }
  l->f->store(1, acc, l->r, 0);
}

/* Kept dimension innermost: rows of up to ROW results at a time. */
static void red_columns(const red_loop *l, int bx) {
  int in = l->nk - 1;
  int64_t n = l->ksize[in], per = (n + ROW - 1) / ROW, outer = product(in, l->ksize), work = product(l->nr, l->rsize) * n * outer;
  int last = l->nr - 1;
#pragma omp parallel for schedule(static) if (work >= PAR)
  for (int64_t t = 0; t < outer * per; t++) {
    char acc[ROW * 8] __attribute__((aligned(64)));
    int64_t at = t % per * ROW, m = RL_MIN(ROW, n - at);
    const char *x = l->x + offset_of(in, l->ksize, l->kin, t / per) + at * bx;
    l->f->init(m, acc);
    if (last < 0) l->f->outer(1, m, x, 0, acc);
    else {
      int64_t ro = product(last, l->rsize);
      for (int64_t i = 0; i < ro; i++) l->f->outer(l->rsize[last], m, x + offset_of(last, l->rsize, l->rin, i), l->rin[last], acc);
    }
    l->f->store(m, acc, l->r + offset_of(in, l->ksize, l->kout, t / per) + at * l->kout[in], l->kout[in]);
  }
}

static void red_rows(const red_loop *l) {
  int64_t n = product(l->nk, l->ksize), work = n * product(l->nr, l->rsize);
#pragma omp parallel for schedule(static) if (work >= PAR)
  for (int64_t i = 0; i < n; i++) {
    char acc[16] __attribute__((aligned(16)));
    l->f->init(1, acc);
    red_one(l, l->x + offset_of(l->nk, l->ksize, l->kin, i), acc);
    l->f->store(1, acc, l->r + offset_of(l->nk, l->ksize, l->kout, i), 0);
  }
}

static rl_status red_empty(rl_op op, const rl_red_fns *f, rl_tensor *r) {
  char acc[16] __attribute__((aligned(16)));
  if (op == RL_OP_AMAX || op == RL_OP_AMIN) return rl_error("[%s] of an empty tensor has no value", rl_ops[op].name);
  f->init(1, acc);
  const rl_tensor *t[] = { r };
  for (walk w = walk_start(r, -1, 1, t); !w.done; walk_next(&w)) f->store(1, acc, (char *)rl_data(r) + w.off[0] * esize(r), 0);
  return RL_OK;
}

rl_status rl_red_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);
rl_status rl_red_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  (void)nin;
  red_loop l;
  const rl_tensor *x = in[0];
  l.f = &best.red[op][x->dtype];
  if (!l.f->inner) return rl_error("[%s] no kernel for %s tensors", rl_ops[op].name, rl_dtypes[x->dtype].name);
  if (rl_numel(out[0]) == 0) return RL_OK;
  if (rl_numel(x) == 0) return red_empty(op, l.f, out[0]);
  red_setup(&l, x, a, out[0]);
  int bx = esize(x);
  bool columns = l.nk && l.kin[l.nk - 1] == bx && (!l.nr || l.rin[l.nr - 1] != bx);
  if (l.nk == 0 && l.nr && rl_numel(x) >= PAR) red_all(&l);
  else if (columns) red_columns(&l, bx);
  else red_rows(&l);
  return RL_OK;
}

/* argmax and argmin: the first best position within the reduced dimensions in order; NaN is best. */
rl_status rl_arg_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);
rl_status rl_arg_run(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) {
  (void)nin;
  static const rl_red_fns none;
  red_loop l = { .f = &none };
  const rl_tensor *x = in[0];
  bool max = op == RL_OP_ARGMAX;
  if (rl_numel(out[0]) == 0) return RL_OK;
  if (rl_numel(x) == 0) return rl_error("[%s] of an empty tensor has no value", rl_ops[op].name);
  red_setup(&l, x, a, out[0]);
  int64_t n = product(l.nk, l.ksize), m = product(l.nr, l.rsize), last = l.nr ? l.rsize[l.nr - 1] : 1, step = l.nr ? l.rin[l.nr - 1] : 0;
  const rl_red_fns *f = &best.red[max ? RL_OP_AMAX : RL_OP_AMIN][x->dtype];
  if (l.nr == 1 && step == esize(x) && m >= 32) { /* the value by vectors, then its first position */
#define FIRST(S, C, LD, ST) \
  _Pragma("omp parallel for schedule(static) if (n * m >= PAR)") for (int64_t i = 0; i < n; i++) { \
    const S *p = (const S *)(l.x + offset_of(l.nk, l.ksize, l.kin, i)); \
    char acc[16] __attribute__((aligned(16))); \
    S b; \
    f->init(1, acc); \
    f->inner(m, (const char *)p, step, acc); \
    f->store(1, acc, (char *)&b, 0); \
    int64_t j = 0; \
    const C e = LD(b); \
    if (e == e) \
      for (; j + 16 <= m; j += 16) { \
        int hit = 0; \
        for (int h = 0; h < 16; h++) hit |= LD(p[j + h]) == e; \
        if (hit) break; \
      } \
    for (; j < m - 1; j++) { \
      const C v = LD(p[j]); \
      if (v == e || v != v) break; \
    } \
    *(int64_t *)(l.r + offset_of(l.nk, l.ksize, l.kout, i)) = j; \
  }
    BY_DTYPE(x->dtype, FIRST)
#undef FIRST
    return RL_OK;
  }
#define ARG(S, C, LD, ST) \
  _Pragma("omp parallel for schedule(static) if (n * m >= PAR)") for (int64_t i = 0; i < n; i++) { \
    const char *p = l.x + offset_of(l.nk, l.ksize, l.kin, i); \
    int64_t at = 0, where = 0; \
    C b = LD(*(const S *)p); \
    for (int64_t o = 0; o < m / last; o++) { \
      const char *q = p + offset_of(l.nr - 1, l.rsize, l.rin, o); \
      for (int64_t j = 0; j < last; j++, at++) { \
        C v = LD(*(const S *)(q + j * step)); \
        if (max ? (v > b || (v != v && b == b)) : (v < b || (v != v && b == b))) b = v, where = at; \
      } \
    } \
    *(int64_t *)(l.r + offset_of(l.nk, l.ksize, l.kout, i)) = where; \
  }
  BY_DTYPE(x->dtype, ARG)
#undef ARG
  return RL_OK;
}
