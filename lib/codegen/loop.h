/* Loop form: a kernel as rows, passes inside a row, and instructions; the same for C and CUDA (groups -> loop form -> text).
 *
 *   uniform instructions
 *   for each row:                     loops with red = false; rows are dealt to chunks in order
 *     pass 0: row instructions, then for each element of the row: element instructions
 *     pass 1: what needs the row reductions of pass 0 ...
 *   phase 1: reductions over all rows are finished; instructions on scalars and on one row of them
 *
 * Instructions are in single assignment; an element value that a later pass needs again is computed again or kept in a row buffer. */
#ifndef RL_LOOP_H
#define RL_LOOP_H
#include "cg.h"

typedef enum lp_op {
  LP_CONST,  /* f or i */
  LP_NUM,    /* number argument i */
  LP_LOAD,   /* buf at acc */
  LP_INDEX,  /* the linear position acc itself */
  LP_EW,     /* row of the op table on args */
  LP_CAST,   /* to dt */
  LP_RAND,   /* row of the op table: draw number acc of the stream at counter rng */
  LP_RED,    /* row reduction of arg 0 */
  LP_GATHER, /* buf at acc + arg 0 * stride; arg 0 checked against bound */
  LP_CHECK,  /* arg 0, an index that must be in 0 .. bound - 1 */
  LP_STORE   /* arg 0 to buf at acc */
} lp_op;

typedef enum lp_level { LP_UNIFORM, LP_ROW, LP_ELEM } lp_level;

typedef struct lp_ins {
  uint8_t op, level, phase, rk, dt;
  bool inplace, keep, fill; /* keep: lives in a row buffer; fill: a random row, drawn into its buffer before the loop */
  uint16_t row;
  int narg, arg[8];
  const rl_attrs *at;
  int buf, pass;    /* pass: where a row value or a reduction belongs; elements: first pass that may compute it */
  cg_acc acc, xacc; /* position of the value; LP_RED: xacc of the operand */
  double f;
  int64_t i, rng, stride, bound;
  int slot; /* reductions over rows: which partial */
} lp_ins;

typedef struct lp_kernel {
  cg_space sp; /* row loops first */
  int nrow;    /* how many of them are row loops */
  int64_t rows, inner;
  lp_ins *ins;
  int n, cap;
  int npass, chunks;
  int nscalar, ncol; /* partials: scalars (8 bytes each a chunk) and rows */
  int scratch;       /* buffer of the partials, -1: none */
  int64_t work;      /* element operations */
  int64_t flops, bytes;
  int id;
} lp_kernel;

rl_status lp_build(cg *c, int group, lp_kernel *k);
void lp_free(lp_kernel *k);
bool lp_associative(int row);    /* partial results may be combined with the row's own step */
double lp_cost(const lp_ins *i); /* weight of one instruction */
static inline bool lp_uses_row_buffer(const lp_ins *i) { return i->keep; }

/* c.c */
/* A number in a text that may be another for other sizes: printed as "\1<number of the site>\2", and with its literal beside the text. */
typedef enum cg_site_kind { CG_SITE_SIZE, CG_SITE_CONST, CG_SITE_CHUNKS, CG_SITE_PARALLEL } cg_site_kind;
typedef struct cg_site {
  uint8_t kind, dt;
  int kernel;
  char lit[44];
  int64_t i;
  double f;
} cg_site;
typedef struct cg_sites {
  cg_site *v;
  int n, cap, kernel;
} cg_sites;

typedef struct cg_text {
  char *p;
  size_t n, cap;
  bool bad;
  cg_sites *sites; /* NULL: numbers are literals */
} cg_text;
/* expr.c */
int cg_site_add(cg_text *t, cg_site s);
const char *cg_number_text(cg_text *t, int kind, int64_t v, char *out, size_t n);
void cg_put_size(cg_text *t, int64_t v);
void cg_put(cg_text *t, const char *fmt, ...) RL_PRINTF(2, 3);
const char *cg_compute_type(int dt);
const char *cg_storage_type(int dt);
const char *cg_compute_suffix(int dt);
bool cg_is_half(int dt);
void cg_put_number(cg_text *t, int dt, double f, int64_t i);
void cg_put_init(cg_text *t, int row, int dt);
void cg_put_expr(cg_text *t, int row, int dt, const char *const *names, const char *acc, const rl_attrs *at);
void cg_print_prologue(cg_text *t);
void cg_print_kernel(cg_text *t, const cg *c, const lp_kernel *k);
#endif
