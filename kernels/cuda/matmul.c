/* Matrix products on cuBLASLt (float types; TF32 when switched on) and a plain kernel (integers).
 * Row-major C = A B is computed as the column-major C' = B' A', so nothing is transposed in memory. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "../../lib/runtime/cuda_impl.h"
#include "conv.h"

typedef struct {
  uint64_t algo[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} lt_result;
typedef struct lt_api {
  int (*create)(void **);
  int (*desc)(void **, int, int);
  int (*desc_set)(void *, int, const void *, size_t);
  int (*desc_free)(void *);
  int (*layout)(void **, int, uint64_t, uint64_t, int64_t);
  int (*layout_set)(void *, int, const void *, size_t);
  int (*layout_free)(void *);
  int (*pref)(void **);
  int (*pref_set)(void *, int, const void *, size_t);
  int (*pref_free)(void *);
  int (*heuristic)(void *, void *, void *, void *, void *, void *, void *, int, lt_result *, int *);
  int (*matmul)(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, void *, void *, void *,
                const void *, void *, size_t, void *);
} lt_api;
static lt_api lt;
static void *handle[16];
static bool tf32;
#define LT_WORK ((size_t)32 << 20)
enum { CHOICES = 8, TRIES = 3 };

void rl_cuda_set_tf32(bool on) { tf32 = on; }
bool rl_cuda_tf32(void) { return tf32; }

static rl_status lt_open(void) {
  static const char *const names[] = { "cublasLtCreate",
                                       "cublasLtMatmulDescCreate",
                                       "cublasLtMatmulDescSetAttribute",
                                       "cublasLtMatmulDescDestroy",
                                       "cublasLtMatrixLayoutCreate",
                                       "cublasLtMatrixLayoutSetAttribute",
                                       "cublasLtMatrixLayoutDestroy",
                                       "cublasLtMatmulPreferenceCreate",
                                       "cublasLtMatmulPreferenceSetAttribute",
                                       "cublasLtMatmulPreferenceDestroy",
                                       "cublasLtMatmulAlgoGetHeuristic",
                                       "cublasLtMatmul" };
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  int dev = rl_cuda_device();
  if (handle[dev]) return RL_OK;
  RL_TRY(rl_cuda_need());
  void *f[12];
  for (int i = 0; i < 12; i++)
    if (!(f[i] = rl_cublaslt(names[i]))) return RL_ERR;
  pthread_mutex_lock(&lock);
  memcpy(&lt, f, sizeof lt);
  int r = handle[dev] ? 0 : lt.create(&handle[dev]);
  pthread_mutex_unlock(&lock);
  return r ? rl_error("[matmul] cuBLASLt cannot start; status %d", r) : RL_OK;
}

/* One operand: a matrix with unit stride along its rows (plain) or columns (transposed). */
typedef struct mat {
  const rl_tensor *t;
  bool trans;
  int64_t rows, cols, ld;
} mat;

static bool mat_direct(const rl_tensor *x, mat *m) {
  int d = x->ndim - 2;
  int64_t r = x->size[d], c = x->size[d + 1], sr = x->stride[d], sc = x->stride[d + 1];
  *m = (mat){ x, false, r, c, 0 };
  if ((sc == 1 || c == 1) && (sr >= RL_MAX(1, c) || r == 1)) return m->ld = RL_MAX(RL_MAX(1, c), r == 1 ? c : sr), true;
  if ((sr == 1 || r == 1) && (sc >= RL_MAX(1, r) || c == 1)) return m->trans = true, m->ld = RL_MAX(RL_MAX(1, r), c == 1 ? r : sc), true;
  return false;
}

static int data_type(rl_dtype dt) { return dt == RL_F16 ? 2 : dt == RL_BF16 ? 14 : dt == RL_F64 ? 1 : 0; }

static void *layout_of(const mat *m, int64_t batch) {
  void *l = NULL;
  int32_t b = (int32_t)batch;
  int64_t step = m->t->ndim == 3 ? m->t->stride[0] : 0;
  if (lt.layout(&l, data_type(m->t->dtype), (uint64_t)(m->trans ? m->rows : m->cols), (uint64_t)(m->trans ? m->cols : m->rows), m->ld)) return NULL;
  if (batch > 1) {
    lt.layout_set(l, 5, &b, sizeof b);
    lt.layout_set(l, 6, &step, sizeof step);
  }
  return l;
}

/* Products that were made before: descriptors, layouts and the algorithm the library chose. */
typedef struct shape {
  int64_t rows[3], cols[3], ld[3], step[3], batch;
  int trans[3], align[3], dt, out, compute, dev;
} shape;
typedef struct made {
  struct made *next;
  shape key;
  void *desc, *a, *b, *c;
  lt_result best;
} made;
enum { BUCKETS = 512 };
static made *known[BUCKETS];
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned bucket(const shape *k) {
  uint64_t h = 0xcbf29ce484222325u;
  const int64_t *w = (const int64_t *)k;
  for (size_t i = 0; i < sizeof *k / 8; i++) h = (h ^ (uint64_t)w[i]) * 0x100000001b3u;
  return (unsigned)(h >> 32) % BUCKETS;
}

static int call(const made *m, const lt_result *how, const mat *x, const mat *y, void *to, double alpha, double beta) {
  const shape *k = &m->key;
  float fa = (float)alpha, fb = (float)beta;
  bool wide = k->dt == RL_F64;
  void *work = rl_cuda_workspace(LT_WORK);
  if (!work) return -1;
  return lt.matmul(handle[k->dev], m->desc, wide ? (void *)&alpha : &fa, rl_data(y->t), m->a, rl_data(x->t), m->b, wide ? (void *)&beta : &fb, to,
                   m->c, to, m->c, how->algo, work, LT_WORK, cuda_stream());
}

/* ms of a product, the best of a few; negative: it fails. */
static double time_of(const made *m, const lt_result *how, const mat *x, const mat *y, void *to, void *const *mark) {
  double best = -1, ms;
  for (int i = 0; i < TRIES; i++) {
    if (rl_cuda_event_record(mark[0]) != RL_OK || call(m, how, x, y, to, 1, 0)) return -1;
    if (rl_cuda_event_record(mark[1]) != RL_OK || rl_cuda_event_sync(mark[1]) != RL_OK) return -1;
    if (rl_cuda_event_elapsed(mark[0], mark[1], &ms) == RL_OK && (best < 0 || ms < best)) best = ms;
  }
  return best;
}

/* Of the library's proposals the fastest here, tried on the operands themselves with a result of their own. */
static void tune(made *m, const lt_result *all, int n, const mat *x, const mat *y, const mat *r) {
  size_t bytes = (size_t)(m->key.batch * RL_MAX(r->rows * r->ld, m->key.step[2])) * (size_t)rl_dtypes[m->key.out].bytes;
  size_t skew = (size_t)m->key.align[2] % 256; /* lined up as the result is */
  void *mark[2] = { rl_cuda_event_new(), rl_cuda_event_new() };
  char *to = rl_cuda_alloc(bytes + skew);
  double best = -1;
  for (int i = 0; i < n && to && mark[0] && mark[1]; i++) {
    double t = time_of(m, &all[i], x, y, to + skew, mark);
    if (t < 0 || (best >= 0 && t >= best)) continue;
    best = t;
    m->best = all[i];
  }
  if (to) rl_cuda_free(to, bytes + skew, rl_cuda_place());
  for (int i = 0; i < 2; i++)
    if (mark[i]) rl_cuda_event_free(mark[i]);
}

/* Parts of a list of parameters begin anywhere: kernels that read more at once than lines up are none for them. */
static int alignment(const void *p) {
  uintptr_t at = (uintptr_t)p | 256;
  return (int)(at & -at);
}

static rl_status make_product(const shape *k, const mat *x, const mat *y, const mat *r, made *m) {
  void *pref = NULL;
  int32_t ta = y->trans, tb = x->trans;
  size_t limit = LT_WORK;
  lt_result all[CHOICES];
  int found = 0, s = lt.desc(&m->desc, k->compute, k->dt == RL_F64 ? 1 : 0);
  m->a = layout_of(y, k->batch), m->b = layout_of(x, k->batch), m->c = layout_of(r, k->batch);
  if (!s) s = lt.desc_set(m->desc, 3, &ta, sizeof ta);
  if (!s) s = lt.desc_set(m->desc, 4, &tb, sizeof tb);
  if (!s) s = lt.pref(&pref);
  if (!s) s = lt.pref_set(pref, 1, &limit, sizeof limit);
  if (!s && !(m->a && m->b && m->c)) s = -1;
  for (int any = 0; any < 2 && !s && !found; any++) { /* it may know none that is safe by its own rules: then what it takes for lined up operands */
    const int lined[4] = { k->align[1], k->align[0], k->align[2], k->align[2] };
    for (int i = 0; i < 4 && !s; i++) {
      uint32_t bytes = any ? 256 : (uint32_t)lined[i];
      s = lt.pref_set(pref, 5 + i, &bytes, sizeof bytes);
    }
    int h = s ? s : lt.heuristic(handle[k->dev], m->desc, m->a, m->b, m->c, m->c, pref, CHOICES, all, &found);
    if (h) found = 0;
    if (any) s = h;
  }
  if (pref) lt.pref_free(pref);
  if (found) m->best = all[0];
  if (!s && found > 1 && !cuda_capturing() && !rl_cuda_deterministic()) tune(m, all, found, x, y, r);
  return s || !found ? rl_error("[matmul] cuBLASLt has no product for these matrices; status %d", s) : RL_OK;
}

static made *product_of(const shape *k, const mat *x, const mat *y, const mat *r) {
  unsigned b = bucket(k);
  for (made *m = known[b]; m; m = m->next)
    if (!memcmp(&m->key, k, sizeof *k)) return m;
  made *m = calloc(1, sizeof *m);
  if (!m) {
    rl_error_status(RL_OOM, "[matmul] out of memory");
    return NULL;
  }
  m->key = *k;
  if (make_product(k, x, y, r, m) != RL_OK) {
    if (m->a) lt.layout_free(m->a);
    if (m->b) lt.layout_free(m->b);
    if (m->c) lt.layout_free(m->c);
    if (m->desc) lt.desc_free(m->desc);
    free(m);
    return NULL;
  }
  pthread_mutex_lock(&known_lock);
  m->next = known[b];
  known[b] = m;
  pthread_mutex_unlock(&known_lock);
  return m;
}

/* r = x y; r is row-major with unit stride along its rows. Column-major: r' (n, m) = op(y') op(x'). */
static rl_status product(const mat *x, const mat *y, const mat *r, double alpha, double beta) {
  rl_dtype dt = (rl_dtype)x->t->dtype; /* r's, or a half type whose products are left as floats */
  shape k;
  const mat *each[3] = { x, y, r };
  memset(&k, 0, sizeof k);
  for (int i = 0; i < 3; i++) {
    k.rows[i] = each[i]->rows, k.cols[i] = each[i]->cols, k.ld[i] = each[i]->ld, k.trans[i] = each[i]->trans;
    k.step[i] = each[i]->t->ndim == 3 ? each[i]->t->stride[0] : 0;
    k.align[i] = alignment(rl_data(each[i]->t));
  }
  k.batch = r->t->ndim == 3 ? r->t->size[0] : 1;
  k.dt = dt, k.out = r->t->dtype, k.compute = dt == RL_F64 ? 70 : dt == RL_F32 && tf32 ? 77 : 68, k.dev = rl_cuda_device();
  made *m = product_of(&k, x, y, r);
  if (!m) return RL_ERR;
  int s = call(m, &m->best, x, y, rl_data(r->t), alpha, beta);
  return s ? rl_error("[matmul] cuBLASLt failed; status %d", s) : RL_OK;
}

static rl_status plain(rl_op op, const rl_tensor *x, const rl_tensor *y, rl_tensor *r) {
  int d = r->ndim - 2;
  rl_tensor wx = *x, wy = *y;
  cuda_ew e;
  for (int k = 0; k < r->ndim; k++) wx.size[k] = wy.size[k] = r->size[k];
  wx.stride[d + 1] = 0;
  wy.stride[d] = 0;
  cuda_ew_init(&e, r, -1, 3, (const rl_tensor *[]){ r, &wx, &wy });
  e.i[0] = x->size[d + 1], e.i[1] = x->stride[d + 1], e.i[2] = y->stride[d];
  return cuda_run_ew(cuda_prim_fn(x->dtype, "prims", "mm"), op, &e);
}

rl_status cuda_multiply(rl_op op, rl_tensor *x, rl_tensor *y, rl_tensor *r, double alpha, double beta) {
  mat a, b, c;
  rl_tensor *cx = NULL, *cy = NULL;
  if (rl_numel(r) == 0) return RL_OK;
  if (x->device != RL_CUDA || y->device != RL_CUDA)
    return rl_error("[%s] matrices on two devices; got a CPU tensor, need CUDA tensors", rl_ops[op].name);
  if (x->size[x->ndim - 1] == 0) return beta == 0 ? rl_cuda_fill(r, 0) : RL_OK;
  if (!rl_dtypes[x->dtype].is_float) return plain(op, x, y, r);
  RL_TRY(lt_open());
  RL_TRY(mat_direct(x, &a) ? RL_OK : rl_contiguous(x, &cx));
  if (cx) mat_direct(cx, &a);
  rl_status s = mat_direct(y, &b) ? RL_OK : rl_contiguous(y, &cy);
  if (cy) mat_direct(cy, &b);
  if (s == RL_OK)
    s = mat_direct(r, &c) && !c.trans ? product(&a, &b, &c, alpha, beta) : rl_error("[%s] result without a unit stride", rl_ops[op].name);
  rl_tensor_release(cx);
  rl_tensor_release(cy);
  return s;
}

RL_CUDA_KERNEL(matmul) {
  (void)nin, (void)a;
  return cuda_multiply(op, in[0], in[1], out[0], 1, 0);
}

/* x w^T + b: the bias is laid into the result first and the product added to it. */
RL_CUDA_KERNEL(linear) {
  (void)nin, (void)a;
  rl_tensor x = *in[0], r = *out[0], w = *in[1];
  if (x.ndim != 2 || !rl_dtypes[x.dtype].is_float) return rl_error("[linear] CUDA; got %d dimensions, need 2", x.ndim);
  w.size[0] = in[1]->size[1], w.size[1] = in[1]->size[0], w.stride[0] = in[1]->stride[1], w.stride[1] = in[1]->stride[0];
  if (!in[2]) return cuda_multiply(op, &x, &w, &r, 1, 0);
  rl_tensor b = r;
  b.storage = in[2]->storage, b.offset = in[2]->offset, b.stride[0] = 0, b.stride[1] = in[2]->stride[0];
  RL_TRY(rl_cuda_move(&r, &b));
  return cuda_multiply(op, &x, &w, &r, 1, 1);
}
