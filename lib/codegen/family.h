/* Families: programs of one graph for several sizes, which share the text of their kernels. */
#ifndef RL_FAMILY_H
#define RL_FAMILY_H
#include "codegen.h"

typedef struct cg_family cg_family;
cg_family *cg_family_new(void);
void cg_family_free(cg_family *f);

/* As cg_compile, of a graph that differs from the others of the family in sizes alone: where one of their texts serves, it is the source, and the
 * launches carry what their kernels are given. probe: only learns which numbers follow the sizes; the program is not to be run. */
rl_status cg_family_compile(cg_family *f, const rl_graph *g, bool strict, bool probe, cg_program *out);
int cg_family_texts(const cg_family *f); /* different texts so far, each a run of the C compiler at most */
#endif
