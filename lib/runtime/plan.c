/* Plans: a program bound to memory (program -> launches), and running them.
 *
 * Everything a run needs is made at compile time: the pointer table that kernels read, the tensor headers that library calls read, the arena.
 * A run fills in the pointers of inputs and outputs, then goes down the list. */
#include "plan_impl.h"
#include "../autograd/tape.h"
#include "../codegen/family.h"
#include "../graph/impl.h"
#include "cuda.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* conv2d, then max(x, 0) (kernels/cpu/conv.c). */
rl_status rl_k_conv2d_relu_cpu(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);

void plan_report_times(const rl_plan *p) {
  for (int i = 0; i < p->nstep; i++) {
    const plan_step *s = &p->step[i];
    const cg_launch *l = &p->prog.launch[i];
    if (!s->runs) continue;
    double t = s->seconds / (double)s->runs;
    fprintf(stderr, "[plan] %3d %8.1f us %7.2f GB/s %7.2f GFLOP/s  %s %s\n", i, t * 1e6, (double)l->bytes / t * 1e-9, (double)l->flops / t * 1e-9,
            l->call ? "call" : "kernel", l->label);
  }
}

/* ---- compiling ---- */

static void header(rl_plan *p, const cg_node *n, rl_tensor *out) {
  const cg *c = &p->prog.c;
  const cg_node *r = &c->node[n->kind == CG_VIEW ? c->buf[n->buf].root : (int)(n - c->node)];
  int buf = r->kind == CG_SRC ? r->buf : r->pbuf;
  memset(out, 0, sizeof *out);
  out->refs = 1 << 20;
  out->dtype = n->type.dtype;
  out->device = p->cuda ? RL_CUDA : RL_CPU;
  out->ndim = n->type.ndim;
  out->node = -1;
  out->storage = &p->store[buf];
  out->offset = n->geom.offset + (r->kind == CG_SRC ? 0 : r->pgeom.offset);
  memcpy(out->size, n->type.size, sizeof(int64_t) * n->type.ndim);
  memcpy(out->stride, n->geom.stride, sizeof(int64_t) * n->type.ndim);
}

static rl_status make_call(rl_plan *p, int node, plan_call *k) {
  const cg *c = &p->prog.c;
  const cg_node *n = &c->node[node];
  *k = (plan_call){ .op = (rl_op)n->op, .nin = n->nin, .nout = n->nout, .at = n->at, .rng = n->rng };
  k->in = calloc((size_t)n->nin + 1, sizeof *k->in);
  k->out = calloc((size_t)n->nout + 1, sizeof *k->out);
  k->inp = calloc((size_t)n->nin + 1, sizeof *k->inp);
  k->outp = calloc((size_t)n->nout + 1, sizeof *k->outp);
  if (!k->in || !k->out || !k->inp || !k->outp) return rl_error_status(RL_OOM, "[compile] out of memory");
  for (int i = 0; i < n->nin; i++) {
    if (n->in[i] < 0) continue;
    header(p, &c->node[n->in[i]], &k->in[i]);
    k->inp[i] = &k->in[i];
  }
  for (int i = 0; i < n->nout; i++) {
    header(p, &c->node[node + i], &k->out[i]);
    k->outp[i] = &k->out[i];
  }
  const rl_op_info *info = &rl_ops[n->op];
  k->random = (info->flags & RL_OPF_RANDOM) != 0;
  if (info->kind == RL_K_PRIM && !k->random) k->direct = info->kernel[p->cuda ? RL_CUDA : RL_CPU];
  if (n->relu) k->direct = rl_k_conv2d_relu_cpu;
  return RL_OK;
}

static rl_status bind_memory(rl_plan *p) {
  cg *c = &p->prog.c;
  p->ptr = calloc((size_t)c->nbuf + 1, sizeof *p->ptr);
  p->store = calloc((size_t)c->nbuf + 1, sizeof *p->store);
  p->fresh = calloc((size_t)c->g->noutputs + 1, sizeof *p->fresh);
  p->written = calloc((size_t)c->g->ninputs + 1, 1);
  if (!p->ptr || !p->store || !p->fresh || !p->written) return rl_error_status(RL_OOM, "[compile] out of memory");
  if (p->cuda && c->arena && !(p->arena = rl_cuda_alloc((size_t)c->arena))) return RL_OOM;
  for (int i = 0; i < c->nbuf; i++) {
    const cg_buf *b = &c->buf[i];
    if (b->place == CG_P_ARENA && p->cuda) p->ptr[i] = p->arena + b->offset;
    if (b->place == CG_P_CONST) p->ptr[i] = b->real->storage ? b->real->storage->data : NULL;
    p->store[i] = (rl_storage){ .refs = 1 << 20, .dtype = (uint8_t)b->dt, .device = p->cuda ? RL_CUDA : RL_CPU, .size = b->size, .data = p->ptr[i] };
  }
  for (int i = 0; i < c->g->nupdates; i++) {
    int buf = c->node[c->g->updates[i].input].buf;
    for (int k = 0; k < c->g->ninputs; k++)
      if (c->node[c->g->inputs[k]].buf == buf) {
        p->written[k] = 1;
        break;
      }
  }
  return RL_OK;
}

static rl_status bind_steps(rl_plan *p) {
  p->step = calloc((size_t)p->prog.nlaunch + 1, sizeof *p->step);
  p->calls = calloc((size_t)p->prog.nlaunch + 1, sizeof *p->calls);
  if (!p->step || !p->calls) return rl_error_status(RL_OOM, "[compile] out of memory");
  for (int i = 0; i < p->prog.nlaunch; i++) {
    const cg_launch *l = &p->prog.launch[i];
    plan_step *s = &p->step[p->nstep++];
    p->info.flops += l->flops;
    p->info.bytes += l->bytes;
    if (l->call) {
      s->call = &p->calls[p->ncalls++];
      RL_TRY(make_call(p, l->node, s->call));
      p->info.calls++;
      continue;
    }
    p->info.kernels++;
    if (p->cuda) continue;
    char name[32];
    snprintf(name, sizeof name, "rl_k%d", l->kernel);
    void *f = rl_build_symbol(&p->built, name);
    if (!f) return rl_error("[compile] built library lacks %s", name);
    memcpy(&s->kernel, &f, sizeof f);
    s->q = l->q;
    s->w = l->w;
  }
  p->info.launches = p->nstep;
  return p->cuda ? plan_cuda_bind(p) : RL_OK;
}

static void debug_compiled(const rl_plan *p) {
  int level = rl_env_int(RL_ENV_DEBUG);
  if (level >= 1)
    fprintf(stderr, "[compile] %d nodes: %d kernels, %d calls, arena %" PRId64 " bytes, %s in %.0f ms\n", p->g->n, p->info.kernels, p->info.calls,
            p->info.arena_bytes, p->built.from_cache ? "cached" : "built", p->built.seconds * 1e3);
  if (level >= 3) {
    char *d = rl_plan_describe(p);
    fprintf(stderr, "%s%s", p->prog.c.why ? p->prog.c.why : "", d ? d : "");
    free(d);
  }
  if (level >= 4) fprintf(stderr, "%s", p->prog.source);
  if (level >= 7 && !p->cuda) {
    char *a = rl_build_assembly(p->prog.source);
    if (a) fprintf(stderr, "%s", a);
    free(a);
  }
}

static void warn_interpreted(const char *why) {
  static bool warned;
  if (!__atomic_exchange_n(&warned, true, __ATOMIC_RELAXED)) fprintf(stderr, "relume: no compiled kernels, graphs run in the interpreter: %s\n", why);
}

static rl_status compile(rl_plan *p, const rl_compile_opts *o) {
  if (o->family && !cg_on_gpu(p->g)) RL_TRY(cg_family_compile(o->family, p->g, o->strict, false, &p->prog));
  else RL_TRY(cg_compile(p->g, o->strict, NULL, &p->prog));
  p->info.arena_bytes = p->prog.c.arena;
  p->cuda = p->prog.cuda;
  if (*p->prog.source && !p->cuda) {
    if (!rl_build_has_compiler()) {
      p->interpreted = true;
      warn_interpreted("no C compiler found");
      return RL_OK;
    }
    RL_TRY(rl_build(p->prog.source, &p->built));
  }
  RL_TRY(bind_memory(p));
  RL_TRY(bind_steps(p));
  if (!p->cuda) rl_mem_release_cache(); /* what making the program left is of other sizes than its runs need */
  p->info.build_s = p->built.seconds;
  p->info.from_cache = p->built.from_cache;
  debug_compiled(p);
  return RL_OK;
}

/* Compiles a functional primitive graph; NULL with a message when it cannot. */
rl_plan *rl_plan_compile(const rl_graph *g, const rl_compile_opts *o) {
  rl_plan *p = calloc(1, sizeof *p);
  if (!p) {
    rl_error_status(RL_OOM, "[compile] out of memory");
    return NULL;
  }
  p->g = graph_prune(g);
  p->sequential = rl_random_sequential();
  p->info = (rl_plan_info){ .inputs = g->ninputs, .outputs = g->noutputs, .numbers = g->nnumbers };
  const rl_compile_opts plain = { 0 };
  if (!p->g || compile(p, o ? o : &plain) != RL_OK) {
    rl_plan_free(p);
    return NULL;
  }
  return p;
}

bool rl_plan_compiles(void) { return rl_build_has_compiler(); }
const rl_graph *rl_plan_graph(const rl_plan *p) { return p->g; }
rl_family *rl_family_new(void) { return cg_family_new(); }
void rl_family_free(rl_family *f) { cg_family_free(f); }
int rl_family_texts(const rl_family *f) { return cg_family_texts(f); }

rl_status rl_family_probe(rl_family *f, const rl_graph *g, bool strict) {
  cg_program prog;
  rl_graph *pruned = graph_prune(g);
  if (!pruned) return RL_ERR;
  rl_status s = cg_family_compile(f, pruned, strict, true, &prog);
  if (s == RL_OK) cg_program_free(&prog);
  rl_graph_free(pruned);
  return s;
}

void rl_plan_free(rl_plan *p) {
  if (!p) return;
  if (rl_env_int(RL_ENV_DEBUG) >= 2 && p->step) plan_report_times(p);
  for (int i = 0; i < p->ncalls; i++) {
    free(p->calls[i].in);
    free(p->calls[i].out);
    free(p->calls[i].inp);
    free(p->calls[i].outp);
  }
  if (p->cuda) plan_cuda_free(p);
  free(p->calls);
  free(p->step);
  free(p->ptr);
  free(p->store);
  free(p->fresh);
  free(p->written);
  cg_program_free(&p->prog);
  if (p->g) rl_graph_free(p->g);
  free(p); /* the library stays loaded: other plans may share it */
}

/* ---- running ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

rl_status plan_run_call(const plan_call *k, rl_generator *gen, uint64_t base) {
  if (k->direct) return k->direct(k->op, k->inp, k->nin, k->at, k->outp);
  if (k->random) gen->counter = base + (uint64_t)k->rng;
  return rl_call(k->op, k->inp, k->nin, k->at, k->outp);
}

static rl_status run_steps(rl_plan *p, const double *numbers, rl_generator *gen) {
  uint64_t seed = gen->seed, base = gen->counter;
  if (p->g->rng_total && p->sequential != rl_random_sequential())
    return rl_error("[plan] the generator's kind; got another than when it was compiled");
  bool timed = rl_env_int(RL_ENV_DEBUG) >= 2;
  for (int i = 0; i < p->nstep; i++) {
    plan_step *s = &p->step[i];
    double t = timed ? now() : 0;
    if (s->kernel) {
      int e = s->kernel(p->ptr, numbers, seed, base, s->q, s->w);
      if (e) gen->counter = base;
      if (e) return rl_error("[plan] index out of range in %s", p->prog.launch[i].label);
    } else {
      rl_status st = plan_run_call(s->call, gen, base);
      if (st != RL_OK) gen->counter = base; /* eager may draw again */
      RL_TRY(st);
    }
    if (timed) {
      s->seconds += now() - t;
      s->runs++;
    }
  }
  gen->counter = base + (uint64_t)p->g->rng_total;
  if (timed && p->nstep && p->step[0].runs == REPORT_RUNS) plan_report_times(p);
  return RL_OK;
}

/* The arena is borrowed for a run: plans that take turns share its memory. The pointers follow when it is another one than in the last run. */
static rl_status take_arena(rl_plan *p, char **arena) {
  const cg *c = &p->prog.c;
  if (!c->arena) return RL_OK;
  *arena = rl_alloc((size_t)c->arena);
  if (!*arena) return RL_OOM;
  if (*arena == p->arena) return RL_OK;
  p->arena = *arena;
  for (int i = 0; i < c->nbuf; i++)
    if (c->buf[i].place == CG_P_ARENA) p->store[i].data = p->ptr[i] = *arena + c->buf[i].offset;
  return RL_OK;
}

/* How many targets lie in the storage, each counted once; -1 when an input of the run is one of them, or somebody else has one. */
static int targets_in(const rl_plan *p, rl_tensor *const *in, rl_tensor *const *target, const rl_storage *s) {
  int count = 0;
  for (int k = 0; k < p->g->noutputs; k++) {
    rl_tensor *t = target[k];
    if (!t || t->storage != s) continue;
    if (t->refs != 1) return -1;
    for (int i = 0; i < p->g->ninputs; i++)
      if (in[i] == t) return -1;
    bool again = false;
    for (int j = 0; j < k; j++) again = again || target[j] == t;
    count += !again;
  }
  return count;
}

/* The memory of what the output will replace, where nothing but targets of this run has it: the old content is gone either way. */
static rl_storage *replaced(const rl_plan *p, rl_tensor *const *in, rl_tensor *const *target, int i, const cg_buf *b) {
  rl_storage *s = target && target[i] ? target[i]->storage : NULL;
  if (!s || p->cuda || b->size * rl_dtypes[b->dt].bytes < REUSE_BYTES || s->device != RL_CPU || s->release || s->dtype != b->dt || s->size != b->size)
    return NULL;
  for (int k = 0; k < i; k++)
    if (p->fresh[k] == s) return NULL;
  return s->refs == targets_in(p, in, target, s) ? s : NULL;
}

rl_status plan_make_outputs(rl_plan *p, rl_tensor *const *in, rl_tensor *const *target) {
  const cg *c = &p->prog.c;
  for (int i = 0; i < p->g->noutputs; i++) {
    int buf = c->node[p->g->outputs[i]].buf;
    const cg_buf *b = &c->buf[buf];
    if (b->place != CG_P_OUTPUT || b->index != i) continue;
    rl_storage *old = replaced(p, in, target, i, b);
    if (old) old->version++;
    p->fresh[i] = old ? rl_storage_retain(old) : rl_storage_new(b->dt, p->cuda ? RL_CUDA : RL_CPU, b->size);
    if (!p->fresh[i]) return RL_OOM;
    p->store[buf].data = p->ptr[buf] = p->fresh[i]->data;
  }
  return RL_OK;
}

/* How far an input lies behind the place that it was captured at: only windows do (rl_graph_input_window). */
static int64_t input_shift(const rl_plan *p, rl_tensor *const *in, int i) { return in[i]->offset - p->prog.c.node[p->g->inputs[i]].geom.offset; }

static void bind_inputs(rl_plan *p, rl_tensor *const *in) {
  const cg *c = &p->prog.c;
  for (int i = 0; i < p->g->ninputs; i++) {
    int buf = c->node[p->g->inputs[i]].buf;
    rl_storage *s = in[i]->storage;
    int64_t shift = input_shift(p, in, i);
    p->ptr[buf] = s && s->data ? (char *)s->data + shift * rl_dtypes[s->dtype].bytes : NULL;
    p->store[buf].data = p->ptr[buf];
    p->store[buf].size = s ? s->size - shift : 0;
  }
}

static rl_status wrap_outputs(rl_plan *p, rl_tensor *const *in, rl_tensor **out) {
  const cg *c = &p->prog.c;
  for (int i = 0; i < p->g->noutputs; i++) {
    const cg_node *n = &c->node[p->g->outputs[i]];
    const cg_buf *b = &c->buf[n->buf];
    rl_storage *s = b->place == CG_P_INPUT ? in[b->index]->storage : b->place == CG_P_CONST ? b->real->storage : p->fresh[b->index];
    rl_geom ge = n->geom;
    ge.ndim = n->type.ndim;
    if (b->place == CG_P_INPUT) ge.offset += input_shift(p, in, b->index);
    memcpy(ge.size, n->type.size, sizeof(int64_t) * (size_t)ge.ndim);
    out[i] = s ? rl_tensor_with(s, &ge) : rl_tensor_window(b->place == CG_P_INPUT ? in[b->index] : b->real, &ge);
    if (!out[i]) return RL_OOM;
  }
  return RL_OK;
}

static rl_status run(rl_plan *p, rl_tensor *const *in, const double *numbers, rl_tensor *const *target, rl_tensor **out) {
  bind_inputs(p, in);
  if (p->cuda) RL_TRY(plan_cuda_run(p, in, numbers));
  else {
    char *arena = NULL;
    RL_TRY(plan_make_outputs(p, in, target));
    RL_TRY(take_arena(p, &arena));
    rl_status s = run_steps(p, numbers, rl_generator_default());
    rl_free(arena, (size_t)p->prog.c.arena);
    RL_TRY(s);
  }
  for (int i = 0; i < p->g->ninputs; i++)
    if (p->written[i] && in[i]->storage) in[i]->storage->version++;
  return wrap_outputs(p, in, out);
}

rl_status rl_plan_run(rl_plan *p, rl_tensor *const *in, const double *numbers, rl_tensor *const *target, rl_tensor **out) {
  if (p->interpreted) return rl_graph_run(p->g, in, numbers, out);
  struct rl_graph *rec = rl_self.graph;
  bool grad = rl_self.grad_disabled;
  rl_self.graph = NULL;
  rl_self.grad_disabled = true;
  for (int i = 0; i < p->g->noutputs; i++) out[i] = NULL;
  rl_status s = run(p, in, numbers, target, out);
  for (int i = 0; i < p->g->noutputs; i++)
    if (p->fresh[i]) {
      rl_storage_release(p->fresh[i]);
      p->fresh[i] = NULL;
    }
  if (s != RL_OK)
    for (int i = 0; i < p->g->noutputs; i++)
      if (out[i]) {
        rl_tensor_release(out[i]);
        out[i] = NULL;
      }
  rl_self.graph = rec;
  rl_self.grad_disabled = grad;
  return s;
}

/* ---- looking at a plan ---- */

void rl_plan_get_info(const rl_plan *p, rl_plan_info *out) { *out = p->info; }

const char *rl_plan_source(const rl_plan *p) { return p->prog.source ? p->prog.source : ""; }

char *rl_plan_describe(const rl_plan *p) {
  cg_text t = { 0 };
  cg_put(&t, "%d kernels, %d calls, arena %" PRId64 " bytes\n", p->info.kernels, p->info.calls, p->info.arena_bytes);
  for (int i = 0; i < p->prog.nlaunch; i++) {
    const cg_launch *l = &p->prog.launch[i];
    cg_put(&t, "%3d %s %s  %" PRId64 " bytes %" PRId64 " flops\n", i, l->call ? "call" : "kernel", l->label, l->bytes, l->flops);
  }
  return t.p;
}
