/* Tiles: register-blocked products on vectors, what convolution (and small products) are made of; once per instruction set (tile_isa.c). */
#ifndef RL_TILE_H
#define RL_TILE_H
#include "../../lib/tensor/op.h"

#define RL_TILE_ROWS 12 /* rows of a tile at most */
#define RL_TILE_VECS 4  /* vectors of a tile's row at most */

/* c[i][j] = sum over steps of a[i][step] b[step][j] (+ c[i][j] if add) (+ bias[i]), then relu. Steps run over images, rows and columns:
 * a's element is at image * ai + row * ar + col * ac, b's row follows the last one, ldb elements on. */
typedef struct rl_tile {
  const void *a[RL_TILE_ROWS];
  int64_t images, rows, cols, ai, ar, ac;
  const void *b;
  int64_t ldb;
  void *c;
  int64_t ldc;
  const void *bias;
  bool add, relu;
} rl_tile;

/* A piece of a row: where in r and x, and n, in bytes. */
typedef struct rl_piece {
  int64_t r, x, n;
} rl_piece;

typedef struct rl_tile_fns {
  int lanes;                                                                            /* of a vector */
  int rows[RL_TILE_VECS + 1];                                                           /* of a tile with so many vectors, at most */
  void (*mul[RL_TILE_VECS + 1][RL_TILE_ROWS + 1])(const rl_tile *);                     /* by vectors, by rows */
  void (*turn)(int64_t m, int64_t n, const void *x, int64_t ldx, void *r, int64_t ldr); /* r[j][i] = x[i][j] */
  /* Pieces of rows of x, their elements step apart, to rows of r; first clears so many bytes of each row. Pitches in bytes. */
  void (*lay)(int64_t rows, const char *x, int64_t ldx, char *r, int64_t ldr, int np, const rl_piece *p, int64_t step, int64_t clear);
  /* Adds pieces of rows of x to elements of rows of r that are step apart. */
  void (*add)(int64_t rows, const char *x, int64_t ldx, char *r, int64_t ldr, int np, const rl_piece *p, int64_t step);
} rl_tile_fns;
/* Functions for float or double of the best instruction set. */
const rl_tile_fns *rl_tiles(rl_dtype dt);
#endif
