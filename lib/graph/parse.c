/* Graph text, read back (text -> graph). The form is described in text.c. */
#include "impl.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parse_state {
  const char *text, *p;
  rl_graph *g;
  int32_t seen;
  bool failed;
} parse_state;

/* Records the first error with its line and column; every later step is then a no-op. */
static void fail(parse_state *s, const char *what) {
  if (s->failed) return;
  s->failed = true;
  int line = 1, col = 1;
  for (const char *q = s->text; q < s->p; q++)
    if (*q == '\n') {
      line++;
      col = 1;
    } else col++;
  char got[24];
  int n = 0;
  while (n < 20 && s->p[n] && s->p[n] != '\n') {
    got[n] = s->p[n];
    n++;
  }
  got[n] = 0;
  rl_error("[graphParse] line %d, column %d: %s; got '%s'", line, col, what, got);
}

static void blanks(parse_state *s) {
  while (*s->p == ' ' || *s->p == '\t' || *s->p == '\r') s->p++;
}
static void lines(parse_state *s) {
  while (isspace((unsigned char)*s->p)) s->p++;
}

/* Takes `lit` if it comes next. */
static bool accept(parse_state *s, const char *lit) {
  blanks(s);
  size_t n = strlen(lit);
  if (s->failed || strncmp(s->p, lit, n)) return false;
  if (isalnum((unsigned char)lit[n - 1]) && (isalnum((unsigned char)s->p[n]) || s->p[n] == '_')) return false;
  s->p += n;
  return true;
}

static void expect(parse_state *s, const char *lit) {
  char m[64];
  if (s->failed || accept(s, lit)) return;
  snprintf(m, sizeof m, "expected '%s'", lit);
  fail(s, m);
}

static int64_t integer(parse_state *s) {
  char *e;
  blanks(s);
  int64_t v = strtoll(s->p, &e, 10);
  if (e == s->p) fail(s, "expected an integer");
  s->p = e;
  return v;
}

static double number(parse_state *s) {
  char *e;
  blanks(s);
  double v = strtod(s->p, &e);
  if (e == s->p) fail(s, "expected a number");
  s->p = e;
  return v;
}

static void word(parse_state *s, char *out, size_t cap) {
  size_t n = 0;
  blanks(s);
  while ((isalnum((unsigned char)*s->p) || *s->p == '_') && n + 1 < cap) out[n++] = *s->p++;
  out[n] = 0;
  if (!n) fail(s, "expected a name");
}

static rl_ref reference(parse_state *s) {
  expect(s, "%");
  int64_t r = integer(s);
  if (r < 0 || r >= s->g->n) fail(s, "no such node before this line");
  return s->failed ? -1 : (rl_ref)r;
}

static int int_list(parse_state *s, const char *open, const char *close, int64_t *v) {
  int n = 0;
  expect(s, open);
  if (accept(s, close)) return 0;
  do {
    if (n == RL_MAXDIM) {
      fail(s, "list too long");
      return 0;
    }
    v[n++] = integer(s);
  } while (accept(s, ","));
  expect(s, close);
  return s->failed ? 0 : n;
}

static int dtype_of(const char *name) {
  for (int i = 0; i < RL_NDTYPE; i++)
    if (!strcmp(rl_dtypes[i].name, name)) return i;
  return -1;
}

static int dtype_word(parse_state *s) {
  char w[32];
  const char *at = s->p;
  word(s, w, sizeof w);
  int dt = dtype_of(w);
  if (dt < 0) {
    s->p = at;
    fail(s, "unknown dtype");
    return 0;
  }
  return dt;
}

static int op_of(const char *name) {
  for (int op = RL_NOP; op < RL_G_NOPS; op++)
    if (!strcmp(rl_node_name(op), name)) return op;
  int op = rl_op_find(name);
  return op == RL_NOP ? -1 : op;
}

static void attr_value(parse_state *s, const rl_attr_info *i, rl_attrs *a) {
  char w[32];
  switch (i->kind) {
  case 'l': a->nlist[i->slot] = int_list(s, "[", "]", a->list[i->slot]); break;
  case 'f': a->v[i->slot].f = number(s); break;
  case 'b':
    word(s, w, sizeof w);
    a->v[i->slot].i = !strcmp(w, "true");
    break;
  case 'd': a->v[i->slot].i = dtype_word(s); break;
  default: a->v[i->slot].i = integer(s);
  }
}

static const rl_attr_info parse_window[] = { { "sizes", 'l', 0, false, 0 }, { "strides", 'l', 1, false, 0 }, { "offset", 'i', 0, false, 0 } };
static const rl_attr_info parse_hint[] = { { "hint", 'f', 0, false, 0 } };

static bool attr_list(parse_state *s, int op, rl_attrs *a) {
  int n = op < RL_NOP ? rl_ops[op].nattrs : op == RL_G_SCATTER_WINDOW ? 3 : op == RL_G_NUMBER ? 1 : 0;
  const rl_attr_info *ai = op < RL_NOP ? rl_ops[op].attrs : op == RL_G_NUMBER ? parse_hint : parse_window;
  memset(a, 0, sizeof *a);
  if (op < RL_NOP && n) rl_attrs_default((rl_op)op, a);
  if (!accept(s, "{")) return false;
  do {
    char w[64];
    int k = 0;
    word(s, w, sizeof w);
    while (k < n && strcmp(ai[k].name, w)) k++;
    if (k == n) {
      fail(s, "no such attribute");
      return false;
    }
    expect(s, "=");
    attr_value(s, &ai[k], a);
  } while (accept(s, ","));
  expect(s, "}");
  return true;
}

static void type(parse_state *s, rl_type *t) {
  memset(t, 0, sizeof *t);
  expect(s, ":");
  t->weak = accept(s, "~");
  t->dtype = (uint8_t)dtype_word(s);
  if (accept(s, ".cuda")) t->device = RL_CUDA;
  t->ndim = (uint8_t)int_list(s, "[", "]", t->size);
}

static void storage(parse_state *s, const rl_type *t, int32_t *id, rl_geom *ge) {
  graph_dense(t->ndim, t->size, ge);
  *id = s->seen + 1;
  if (accept(s, "@")) {
    *id = (int32_t)integer(s);
    if (accept(s, "+")) ge->offset = integer(s);
    blanks(s);
    if (*s->p == '(' && int_list(s, "(", ")", ge->stride) != t->ndim) fail(s, "as many strides as sizes are needed");
  }
  if (*id < 0 || *id > 1 << 28) {
    *id = 0;
    fail(s, "bad storage id");
  }
  s->seen = RL_MAX(s->seen, *id);
  while (!s->failed && s->g->nstorages <= s->seen)
    if (graph_new_storage(s->g) < 0) s->failed = true;
}

static void element(parse_state *s, rl_dtype dt, char *p) {
  switch (dt) {
  case RL_U8: *(uint8_t *)p = (uint8_t)integer(s); break;
  case RL_I8: *(int8_t *)p = (int8_t)integer(s); break;
  case RL_I16: *(int16_t *)p = (int16_t)integer(s); break;
  case RL_I32: *(int32_t *)p = (int32_t)integer(s); break;
  case RL_I64: *(int64_t *)p = integer(s); break;
  case RL_F32: *(float *)p = (float)number(s); break;
  case RL_F64: *(double *)p = number(s); break;
  default: *(uint16_t *)p = (uint16_t)integer(s);
  }
}

static int64_t position(const rl_geom *ge, int64_t i) {
  int64_t p = ge->offset;
  for (int d = ge->ndim - 1; d >= 0; d--) {
    p += i % ge->size[d] * ge->stride[d];
    i /= ge->size[d];
  }
  return p;
}

/* Elements of a constant tensor; none given: the constant has no data and cannot be run. */
static rl_tensor *data(parse_state *s, const rl_type *t, const rl_geom *ge) {
  if (!accept(s, "=")) return NULL;
  rl_graph *rec = rl_self.graph;
  rl_self.graph = NULL;
  rl_storage *st = rl_storage_new((rl_dtype)t->dtype, (rl_device)t->device, graph_geom_last(ge) + 1);
  rl_tensor *x = st ? rl_tensor_with(st, ge) : NULL;
  rl_self.graph = rec;
  if (st) rl_storage_release(st);
  if (!x) {
    s->failed = true;
    return NULL;
  }
  expect(s, "{");
  for (int64_t i = 0, n = graph_numel(t); i < n && !s->failed; i++) {
    if (i) expect(s, ",");
    element(s, (rl_dtype)t->dtype, (char *)x->storage->data + position(ge, i) * rl_dtypes[t->dtype].bytes);
  }
  expect(s, "}");
  return x;
}

static int inputs(parse_state *s, rl_ref **out) {
  int32_t n = 0, cap = 0;
  *out = NULL;
  expect(s, "(");
  if (accept(s, ")")) return 0;
  do {
    rl_ref r = accept(s, "nil") ? -1 : reference(s);
    if (s->failed || !GRAPH_PUSH(*out, n, cap, r)) {
      s->failed = true;
      return n;
    }
  } while (accept(s, ","));
  expect(s, ")");
  return n;
}

static void leaf_push(parse_state *s, rl_ref r, const rl_node *n, int64_t whole, rl_tensor *value) {
  rl_graph *g = s->g;
  bool ok = true;
  if (n->op == RL_G_INPUT) {
    if (n->aux != g->ninputs) {
      fail(s, "inputs must count up from 0");
      return;
    }
    ok = graph_push_input(g, r, n->storage, whole);
  } else if (n->op == RL_G_NUMBER) {
    if (n->aux != g->nnumbers) {
      fail(s, "numbers must count up from 0");
      return;
    }
    ok = GRAPH_PUSH(g->numbers, g->nnumbers, g->capnumbers, r);
  } else if (n->op == RL_G_TENSOR) {
    if (n->aux != g->nconsts) {
      fail(s, "constant tensors must count up from 0");
      return;
    }
    ok = GRAPH_PUSH(g->consts, g->nconsts, g->capconsts, value);
  }
  if (!ok) {
    if (value) rl_tensor_release(value);
    s->failed = true;
  }
}

static void location(parse_state *s, rl_node *n) {
  if (!accept(s, "#")) return;
  blanks(s);
  char w[256];
  size_t k = 0;
  while (*s->p && *s->p != '\n') {
    if (k + 1 < sizeof w) w[k++] = *s->p;
    s->p++;
  }
  w[k] = 0;
  n->line = RL_MAX(graph_loc(s->g, w), 0);
}

static void node(parse_state *s) {
  rl_node n = { .nout = 1 };
  char w[64];
  rl_ref *in = NULL;
  int nin = 0;
  rl_attrs a;
  rl_type t;
  rl_geom ge;
  int64_t whole = 0;
  rl_tensor *value = NULL;
  if (integer(s) != s->g->n) {
    fail(s, "nodes must count up from %0");
    return;
  }
  expect(s, "=");
  word(s, w, sizeof w);
  int op = op_of(w);
  if (op < 0) {
    fail(s, "unknown op before this");
    return;
  }
  n.op = (uint16_t)op;
  if (op < RL_NOP) n.nout = rl_ops[op].nout;
  memset(&a, 0, sizeof a);
  const char *lit = s->p;
  if (op == RL_G_CONST) number(s);
  else if (op == RL_G_INPUT || op == RL_G_NUMBER || op == RL_G_TENSOR) n.aux = (int32_t)integer(s);
  else if (op != RL_G_EMPTY) nin = inputs(s, &in);
  if (op == RL_G_PROJ) n.aux = (int32_t)integer(s);
  bool has = op == RL_G_CONST ? true : attr_list(s, op, &a);
  if (!s->failed) type(s, &t);
  if (!s->failed) storage(s, &t, &n.storage, &ge);
  if (s->failed) {
    free(in);
    return;
  }
  if (op == RL_G_CONST) {
    if (t.dtype == RL_I64) a.v[0].i = strtoll(lit, NULL, 10);
    else a.v[0].f = strtod(lit, NULL);
  }
  if (op == RL_G_INPUT) {
    expect(s, "of");
    whole = integer(s);
  }
  if (accept(s, "rng=")) n.rng = integer(s);
  if (op == RL_G_TENSOR) value = data(s, &t, &ge);
  location(s, &n);
  n.type = graph_type(s->g, &t);
  n.geom = graph_geom(s->g, &ge);
  rl_ref r = s->failed ? -1 : graph_append(s->g, n, in, nin, has || (op < RL_NOP && rl_ops[op].nattrs) ? &a : NULL);
  free(in);
  if (r < 0) {
    s->failed = true;
    return;
  }
  leaf_push(s, r, &n, whole, value);
}

static void header(parse_state *s) {
  lines(s);
  expect(s, "graph");
  for (;;) {
    if (accept(s, "functional")) s->g->functional = true;
    else if (accept(s, "primitive")) s->g->primitive = true;
    else if (accept(s, "rng=")) s->g->rng_total = integer(s);
    else break;
  }
  expect(s, "{");
}

static void statement(parse_state *s) {
  rl_graph *g = s->g;
  if (accept(s, "output")) {
    rl_ref r = reference(s);
    if (!s->failed && !GRAPH_PUSH(g->outputs, g->noutputs, g->capoutputs, r)) s->failed = true;
  } else if (accept(s, "update")) {
    rl_update u;
    u.input = reference(s);
    expect(s, "<-");
    u.value = reference(s);
    if (!s->failed && !GRAPH_PUSH(g->updates, g->nupdates, g->capupdates, u)) s->failed = true;
  } else if (accept(s, "%")) node(s);
  else fail(s, "expected a node, 'output', 'update' or '}'");
}

/* The graph that the text describes; NULL when it is malformed: the message names line and column. */
rl_graph *rl_graph_parse(const char *text) {
  parse_state s = { .text = text, .p = text, .g = rl_graph_new(), .seen = -1 };
  if (!s.g) return NULL;
  header(&s);
  for (lines(&s); !s.failed && !accept(&s, "}"); lines(&s)) statement(&s);
  if (!s.failed) {
    lines(&s);
    if (*s.p) fail(&s, "text after the closing '}'");
  }
  if (s.failed) {
    rl_graph_free(s.g);
    return NULL;
  }
  return s.g;
}
