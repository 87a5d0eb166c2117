/* Access arithmetic: linear positions over loops, their split into indices by dimension, and loops cut in two.
 * (loops, strides) -> (loops, strides) */
#include "cg.h"
#include <string.h>

int64_t cg_numel(const rl_type *t) {
  int64_t n = 1;
  for (int d = 0; d < t->ndim; d++) n *= t->size[d];
  return n;
}

bool cg_dense(const rl_geom *ge) {
  int64_t s = 1;
  for (int d = 0; d < ge->ndim; d++)
    if (ge->size[d] == 0) return true;
  for (int d = ge->ndim - 1; d >= 0; d--) {
    if (ge->size[d] != 1 && ge->stride[d] != s) return false;
    s *= ge->size[d];
  }
  return true;
}

void cg_acc_dense(const rl_type *t, rl_geom *out) {
  memset(out, 0, sizeof *out);
  out->ndim = t->ndim;
  int64_t s = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    out->size[d] = t->size[d];
    out->stride[d] = s;
    s *= t->size[d] ? t->size[d] : 1;
  }
}

/* Adds one loop's stride, in digits of the dense strides, to the indices. */
static bool split_digits(int64_t s, const rl_type *t, const rl_geom *dense, int64_t *digit) {
  memset(digit, 0, sizeof(int64_t) * RL_MAXDIM);
  if (s < 0) return false;
  for (int d = 0; d < t->ndim && s; d++) {
    if (t->size[d] == 1) continue;
    digit[d] = s / dense->stride[d];
    s -= digit[d] * dense->stride[d];
  }
  return s == 0;
}

/* A loop that runs over the end of dimension d may be cut where it does. */
static void split_want(const cg_space *sp, const cg_index *idx, int64_t size, int want[2]) {
  for (int l = sp->n - 1; l >= 0; l--) {
    int64_t st = idx->st[l];
    if (!st || size % st) continue;
    int64_t inner = size / st;
    if (inner > 1 && inner < sp->size[l] && sp->size[l] % inner == 0) {
      want[0] = l;
      want[1] = (int)inner;
      return;
    }
  }
}

bool cg_split(const cg_space *sp, const cg_acc *a, const rl_type *t, cg_index *idx, int want[2]) {
  rl_geom dense;
  int64_t digit[RL_MAXDIM];
  want[0] = -1;
  cg_acc_dense(t, &dense);
  memset(idx, 0, sizeof(cg_index) * RL_MAXDIM);
  if (!split_digits(a->off, t, &dense, digit)) return false;
  for (int d = 0; d < t->ndim; d++) idx[d].off = digit[d];
  for (int l = 0; l < sp->n; l++) {
    if (sp->size[l] <= 1 || !a->st[l]) continue;
    if (!split_digits(a->st[l], t, &dense, digit)) return false;
    for (int d = 0; d < t->ndim; d++) idx[d].st[l] = digit[d];
  }
  for (int d = t->ndim - 1; d >= 0; d--) {
    int64_t top = idx[d].off;
    for (int l = 0; l < sp->n; l++) top += idx[d].st[l] * (sp->size[l] - 1);
    if (top < t->size[d]) continue;
    split_want(sp, &idx[d], t->size[d], want);
    return false;
  }
  return true;
}

void cg_through(const cg_index *idx, const rl_geom *ge, int nloop, cg_acc *out) {
  memset(out, 0, sizeof *out);
  out->off = ge->offset;
  for (int d = 0; d < ge->ndim; d++) {
    if (ge->size[d] == 1) continue;
    out->off += ge->stride[d] * idx[d].off;
    for (int l = 0; l < nloop; l++) out->st[l] += ge->stride[d] * idx[d].st[l];
  }
}

bool cg_acc_same(const cg_space *sp, const cg_acc *a, const cg_acc *b) {
  if (a->off != b->off) return false;
  for (int l = 0; l < sp->n; l++)
    if (sp->size[l] > 1 && a->st[l] != b->st[l]) return false;
  return true;
}

bool cg_space_split(cg_space *sp, int loop, int64_t inner) {
  if (sp->n == CG_MAXLOOP) return false;
  for (int l = sp->n; l > loop; l--) {
    sp->size[l] = sp->size[l - 1];
    sp->red[l] = sp->red[l - 1];
  }
  sp->size[loop] /= inner;
  sp->size[loop + 1] = inner;
  sp->n++;
  return true;
}

void cg_acc_cut(cg_acc *a, int loop, int nloop, int64_t inner) {
  for (int l = nloop; l > loop; l--) a->st[l] = a->st[l - 1];
  a->st[loop] *= inner;
}
