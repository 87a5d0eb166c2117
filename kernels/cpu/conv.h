/* Convolution, two dimensions: what its kernels share; the correlation that result and input gradient are made of (conv_panel.c). */
#ifndef RL_CONV_H
#define RL_CONV_H
#include "walk.h"
#include "tile.h"

typedef struct conv {
  int64_t n, c, h, w, o, kh, kw, oh, ow, groups; /* c, o over all groups */
  int64_t sh, sw, ph, pw, dh, dw;
  rl_dtype dt; /* computed in: float or double */
  int bytes;
  const char *bias; /* conv2d only: added to the result, or NULL */
  bool relu;        /* and then max(x, 0) */
} conv;

/* Attribute lists from `at`: stride, pad, dilation; x, w, g are the tensors that have the shapes of input, weight and result. */
void rl_conv_fill(conv *v, const rl_attrs *a, int at, const rl_tensor *x, const rl_tensor *w, const rl_tensor *g);
/* Runs body on working copies of two inputs and the result. */
typedef rl_status (*conv_body)(conv *v, rl_tensor *p, rl_tensor *q, rl_tensor *r);
rl_status rl_conv_run(conv *v, rl_tensor *p, rl_tensor *q, rl_tensor *out, conv_body body);
/* Whether threads are worth it. */
static inline bool conv_shares(const conv *v) { return v->n * v->o * (v->c / v->groups) * v->kh * v->kw * v->oh * v->ow > 100000; }
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* r[i, m, y, x] = sum over channels c and taps t of w[m, c, t] x[i, c, y sh + ty[t], x sw + tx[t]], 0 outside: one group. */
typedef struct tap {
  int64_t y, x, lo, hi, at; /* lo <= x < hi: the columns of the grid whose place is inside; at: where column 0 of the grid is in a row of x */
} tap;
typedef struct corr {
  int64_t n, c, h, w, m, oh, ow, sh, sw;
  int64_t step, pitch, plane; /* elements of x between columns of the grid, rows, channels */
  int64_t xi, ri, rc, ry, rx; /* strides in elements: image of x; image, channel, row, column of r */
  int nt;
  tap *tap;
  int64_t groups, xg, rg, wg; /* and groups with their strides */
  const char *x, *wt, *bias;
  bool relu;
  char *r;
  const rl_tile_fns *f;
  int bytes;
} corr;
/* Sets the columns of the grid at which tap k is inside, and where it reads. */
void rl_corr_tap(const corr *c, tap *k);
/* Computes r; threads share the work if `shares`. */
rl_status rl_corr_run(const corr *c, bool shares);
/* One group whose grid is one image: products (m, place) are added to the input of a convolution instead of stored (see rl_fold). */
typedef struct fold {
  const conv *v;
  const tap *tap; /* of the convolution: columns of the grid whose place is inside */
  char *r;        /* planes of the group's input channels */
} fold;
/* Bytes of working memory of rl_corr_fold. */
size_t rl_corr_fold_size(const corr *c);
/* Rows m of c are (channel, tap) of a convolution; adds each to the places of the image that its tap reads. */
void rl_corr_fold(const corr *c, const fold *f, char *work);
#endif
