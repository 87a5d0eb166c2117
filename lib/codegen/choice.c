/* Choices: what fusion and the loop form decide by sizes, written down and made again for other sizes, so that all sizes have one structure.
 * (sizes -> choices; choices, other sizes -> the same structure, or: it does not fit) */
#include "cg.h"
#include <stdlib.h>
#include <string.h>

static int push(cg_choices *h, int v) {
  if (h->n == h->cap) {
    int cap = h->cap ? 2 * h->cap : 256;
    int *p = realloc(h->v, sizeof(int) * (size_t)cap);
    if (!p) {
      h->failed = true;
      return 0;
    }
    h->v = p;
    h->cap = cap;
  }
  h->v[h->n] = v;
  return h->n++;
}

/* The choice at this point: the one written down, else own, which is written down. */
int cg_choose(cg *c, int own) {
  cg_choices *h = c->choices;
  if (!h) return own;
  if (!h->replay) {
    push(h, own);
    return own;
  }
  if (h->at < h->n) return h->v[h->at++];
  h->failed = true;
  return own;
}

/* As cg_choose, for what is not allowed unless `own` holds: a choice that cannot be made again means that these sizes do not fit. */
bool cg_choose_if(cg *c, bool own) {
  bool want = cg_choose(c, own);
  if (want && !own) c->choices->failed = true;
  return want && own;
}

/* A choice whose outcome is known after others were made: place to give to cg_choice_end. In a replay *want is the outcome. */
int cg_choice_begin(cg *c, bool *want) {
  cg_choices *h = c->choices;
  *want = true;
  if (!h) return 0;
  if (!h->replay) return push(h, 0);
  *want = cg_choose(c, 0);
  return 0;
}

/* Choices made inside of one that came to nothing are forgotten: they are not made again. */
void cg_choice_end(cg *c, int place, bool ok) {
  cg_choices *h = c->choices;
  if (!h || h->failed) return;
  if (h->replay) {
    if (!ok) h->failed = true;
    return;
  }
  h->v[place] = ok;
  if (!ok) h->n = place + 1;
}

/* True when the sizes given do not have the structure that was written down. */
bool cg_choices_misfit(const cg *c) { return c->choices && c->choices->replay && c->choices->failed; }
