/* Tape nodes, shared by the recorder (tape.c) and the backward engine (engine.c). */
#ifndef RL_NODE_H
#define RL_NODE_H
#include "tape.h"

typedef enum tape_kind { TAPE_OP, TAPE_CUSTOM, TAPE_WINDOW /* base with a window replaced: inputs base, value */ } tape_kind;

/* Where an input's gradient goes: output `out` of fn, or a leaf; neither: nowhere. */
typedef struct tape_edge {
  struct rl_tape_node *fn;
  int out;
  rl_tensor *leaf;
} tape_edge;

/* A value kept for the gradient; without `full` only its shape (a tensor without storage). */
typedef struct tape_saved {
  rl_tensor *t;
  uint32_t version;
  bool full;
} tape_saved;

typedef struct rl_tape_node {
  int32_t refs;
  uint16_t op;
  uint8_t kind, nout;
  bool freed;  /* saved values went after a backward pass without retain */
  bool sparse; /* custom: gradients that nobody gave stay NULL instead of zeros */
  int nin;
  uint32_t need; /* inputs that want a gradient (the first 32) */
  uint64_t seq;  /* rises with time: a node's inputs come before it */
  tape_edge *edges;
  tape_saved *in, *out;
  rl_meta *meta; /* shapes of the outputs */
  rl_attrs *attrs;
  rl_custom_fn apply;
  void (*release)(void *);
  void *ud;
  struct rl_tape_node *next; /* list of nodes waiting to be freed */
  size_t bytes;
} rl_tape_node;

void rl_node_retain(rl_tape_node *n);
void rl_node_release(rl_tape_node *n);
void rl_node_free_saved(rl_tape_node *n);
const char *rl_node_label(const rl_tape_node *n);
#endif
