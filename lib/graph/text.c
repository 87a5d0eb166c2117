/* Graph text: one node a line, printed and parsed back to an equal graph (graph <-> text).
 *
 *   graph functional rng=8 {
 *     %0 = input 0 : Float[4,3] of 12             # an input names the size of its whole storage
 *     %1 = number 0 {hint=0.1} : ~Double[]        # ~ weak: a Lua number
 *     %2 = const 0.5 : ~Double[]
 *     %3 = permute(%0) {dims=[1,0]} : Float[3,4] @0(1,3)
 *     %4 = sum(%3) {dims=[0], keepdim=true} : Float[1,4]
 *     output %4
 *     update %0 <- %3
 *   }
 *
 * `@id+offset(strides)` is written where the storage is not a new one with a dense tensor at its start; new storages count up. After `#`
 * comes the source position. A constant tensor of up to 4096 elements carries its elements (`= {1, 2}`, half types as bits). */
#include "impl.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAXDATA = 4096 };

typedef struct text_buf {
  char *p;
  size_t n, cap;
  bool bad;
} text_buf;

RL_PRINTF(2, 3) static void put(text_buf *b, const char *fmt, ...) {
  va_list ap, aq;
  va_start(ap, fmt);
  va_copy(aq, ap);
  int k = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  if (!b->bad && b->n + (size_t)k + 1 > b->cap) {
    size_t cap = (b->n + (size_t)k + 1) * 2;
    char *p = realloc(b->p, cap);
    if (p) {
      b->p = p;
      b->cap = cap;
    } else b->bad = true;
  }
  if (!b->bad) b->n += (size_t)vsnprintf(b->p + b->n, (size_t)k + 1, fmt, aq);
  va_end(aq);
}

static void put_list(text_buf *b, const char *open, const int64_t *v, int n, const char *close) {
  put(b, "%s", open);
  for (int i = 0; i < n; i++) put(b, "%s%" PRId64, i ? "," : "", v[i]);
  put(b, "%s", close);
}

static void put_type(text_buf *b, const rl_type *t) {
  put(b, " : %s%s%s", t->weak ? "~" : "", rl_dtypes[t->dtype].name, t->device == RL_CUDA ? ".cuda" : "");
  put_list(b, "[", t->size, t->ndim, "]");
}

static void put_float(text_buf *b, double v) {
  char s[40];
  snprintf(s, sizeof s, "%.15g", v);
  if (strtod(s, NULL) != v) snprintf(s, sizeof s, "%.17g", v);
  put(b, "%s", s);
}

/* The value of one attribute, by the kind its row declares. */
static void put_attr(text_buf *b, const rl_attr_info *i, const rl_attrs *a) {
  put(b, "%s=", i->name);
  switch (i->kind) {
  case 'l': put_list(b, "[", a->list[i->slot], a->nlist[i->slot], "]"); break;
  case 'f': put_float(b, a->v[i->slot].f); break;
  case 'b': put(b, "%s", a->v[i->slot].i ? "true" : "false"); break;
  case 'd': put(b, "%s", a->v[i->slot].i >= 0 && a->v[i->slot].i < RL_NDTYPE ? rl_dtypes[a->v[i->slot].i].name : "none"); break;
  default: put(b, "%" PRId64, a->v[i->slot].i);
  }
}

static const rl_attr_info text_window_attrs[] = { { "sizes", 'l', 0, false, 0 }, { "strides", 'l', 1, false, 0 }, { "offset", 'i', 0, false, 0 } };
static const rl_attr_info text_number_attrs[] = { { "hint", 'f', 0, false, 0 } };

/* Attributes that a node kind declares. */
static const rl_attr_info *text_attrs(int op, int *n) {
  if (op < RL_NOP) {
    *n = rl_ops[op].nattrs;
    return rl_ops[op].attrs;
  }
  *n = op == RL_G_SCATTER_WINDOW ? 3 : op == RL_G_NUMBER ? 1 : 0;
  return op == RL_G_NUMBER ? text_number_attrs : text_window_attrs;
}

static void put_attrs(text_buf *b, const rl_graph *g, const rl_node *n) {
  int k;
  const rl_attr_info *ai = text_attrs(n->op, &k);
  if (!k || n->attrs < 0) return;
  put(b, " {");
  for (int i = 0; i < k; i++) {
    if (i) put(b, ", ");
    put_attr(b, &ai[i], &g->attrs[n->attrs]);
  }
  put(b, "}");
}

static bool text_default_geom(const rl_geom *ge) {
  rl_geom d;
  graph_dense(ge->ndim, ge->size, &d);
  return ge->offset == 0 && memcmp(d.stride, ge->stride, sizeof(int64_t) * ge->ndim) == 0;
}

static void put_storage(text_buf *b, const rl_node *n, const rl_geom *ge, int32_t *seen) {
  if (n->storage != *seen + 1 || !text_default_geom(ge)) {
    put(b, " @%d", n->storage);
    if (ge->offset) put(b, "+%" PRId64, ge->offset);
    if (!text_default_geom(ge)) put_list(b, "(", ge->stride, ge->ndim, ")");
  }
  *seen = RL_MAX(*seen, n->storage);
}

/* One element of a real tensor as text that parses back exactly. */
static void put_element(text_buf *b, rl_dtype dt, const char *p) {
  switch (dt) {
  case RL_U8: put(b, "%d", *(const uint8_t *)p); break;
  case RL_I8: put(b, "%d", *(const int8_t *)p); break;
  case RL_I16: put(b, "%d", *(const int16_t *)p); break;
  case RL_I32: put(b, "%d", *(const int32_t *)p); break;
  case RL_I64: put(b, "%" PRId64, *(const int64_t *)p); break;
  case RL_F32: put(b, "%.9g", (double)*(const float *)p); break;
  case RL_F64: put(b, "%.17g", *(const double *)p); break;
  default: put(b, "%d", *(const uint16_t *)p);
  }
}

/* Storage position of element i in row-major order. */
static int64_t text_position(const rl_geom *ge, int64_t i) {
  int64_t p = ge->offset;
  for (int d = ge->ndim - 1; d >= 0; d--) {
    p += i % ge->size[d] * ge->stride[d];
    i /= ge->size[d];
  }
  return p;
}

static void put_data(text_buf *b, const rl_tensor *t) {
  rl_geom ge;
  if (!t || t->device != RL_CPU || rl_numel(t) > TEXT_MAXDATA || (rl_numel(t) && !rl_data(t))) return;
  graph_geom_of(t, &ge);
  put(b, " = {");
  for (int64_t i = 0; i < rl_numel(t); i++) {
    if (i) put(b, ", ");
    put_element(b, (rl_dtype)t->dtype, (const char *)t->storage->data + text_position(&ge, i) * rl_dtypes[t->dtype].bytes);
  }
  put(b, "}");
}

static void put_const(text_buf *b, const rl_graph *g, const rl_node *n) {
  if (g->types[n->type].dtype == RL_I64) put(b, " %" PRId64, g->attrs[n->attrs].v[0].i);
  else {
    put(b, " ");
    put_float(b, g->attrs[n->attrs].v[0].f);
  }
}

static void put_inputs(text_buf *b, const rl_graph *g, const rl_node *n) {
  put(b, "(");
  for (int k = 0; k < n->nin; k++) {
    rl_ref r = g->refs[n->in + k];
    if (k) put(b, ", ");
    if (r < 0) put(b, "nil");
    else put(b, "%%%d", r);
  }
  put(b, ")");
}

static void put_node(text_buf *b, const rl_graph *g, rl_ref r, int32_t *seen) {
  const rl_node *n = &g->nodes[r];
  bool leaf = n->op == RL_G_INPUT || n->op == RL_G_NUMBER || n->op == RL_G_CONST || n->op == RL_G_TENSOR;
  put(b, "  %%%d = %s", r, rl_node_name(n->op));
  if (n->op == RL_G_CONST) put_const(b, g, n);
  else if (leaf) put(b, " %d", n->aux);
  else if (n->op != RL_G_EMPTY) put_inputs(b, g, n);
  if (n->op == RL_G_PROJ) put(b, " %d", n->aux);
  put_attrs(b, g, n);
  put_type(b, &g->types[n->type]);
  put_storage(b, n, &g->geoms[n->geom], seen);
  if (n->op == RL_G_INPUT) put(b, " of %" PRId64, g->input_storage_size[n->aux]);
  if (graph_is_random(n->op)) put(b, " rng=%" PRId64, n->rng);
  if (n->op == RL_G_TENSOR) put_data(b, g->consts[n->aux]);
  if (n->line) put(b, "  # %s", g->locs[n->line]);
  put(b, "\n");
}

/* The graph as text, to be freed with free; NULL when memory is out. */
char *rl_graph_print(const rl_graph *g) {
  text_buf b = { 0 };
  int32_t seen = -1;
  put(&b, "graph%s%s", g->functional ? " functional" : "", g->primitive ? " primitive" : "");
  if (g->rng_total) put(&b, " rng=%" PRId64, g->rng_total);
  put(&b, " {\n");
  for (rl_ref r = 0; r < g->n; r++) put_node(&b, g, r, &seen);
  for (int32_t i = 0; i < g->noutputs; i++) put(&b, "  output %%%d\n", g->outputs[i]);
  for (int32_t i = 0; i < g->nupdates; i++) put(&b, "  update %%%d <- %%%d\n", g->updates[i].input, g->updates[i].value);
  put(&b, "}\n");
  if (b.bad) {
    free(b.p);
    rl_error_status(RL_OOM, "[graph] out of memory");
    return NULL;
  }
  return b.p;
}
