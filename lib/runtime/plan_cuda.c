/* Plans on a GPU: kernels built by NVRTC, a run on the current stream, and whole runs as recorded CUDA graphs (program -> launches).
 *
 * The first run launches step by step, which compiles and tunes what the calls need. Later runs replay a graph. Numbers, seed and counter
 * are read from device memory, which every run fills in. A graph holds addresses: an input whose address changes between runs gets a place of its
 * own that it is copied to; two graphs take turns, and an output
 * that a caller keeps is moved out of the way of the next run. What cannot be recorded (a call that waits for the device or
 * draws at a counter of the host) leaves the plan to run step by step. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../graph/impl.h"
#include "cuda_impl.h"
#include "plan_impl.h"

enum { GRAPHS = 4, GRAPH_STEPS = 3 };

typedef struct plan_grid {
  const cg_grid *g;
  rl_cuda_fn *fn, *finish;
  void **args;
} plan_grid;
typedef struct recorded {
  void *exec;
  void **in; /* by input: the address it was recorded with */
  cuda_pool *pool;
  rl_storage **kept;  /* by output: where it writes it; callers get this storage */
  rl_cuda_note *note; /* by output: of single numbers, which the host reads while the rest still runs */
  uint64_t used;
} recorded;
typedef struct plan_cuda {
  int dev, where;
  char *data; /* numbers, then seed and counter */
  size_t bytes;
  void *num, *rng;
  int64_t *err;
  plan_grid *grid;
  recorded graph[GRAPHS];
  void **stage;        /* by input: memory of its own for a window of it */
  size_t *stage_bytes; /* of that window */
  int64_t *lo;         /* first byte of the window in the storage */
  bool *moves;         /* by input: its address changes */
  uint64_t *words;     /* of all notes, pinned: by graph and output */
  recorded *noting;    /* the graph that is being recorded */
  int64_t runs, misses, replays;
  bool never, second, noted;
} plan_cuda;

/* ---- compiling ---- */

extern const char rl_cuda_prelude_text[];

static char *whole_source(const rl_plan *p) {
  const char *s = p->prog.source, *end = strchr(s, '\n');
  bool fast = !strncmp(s, "#define RL_FAST", 15);
  size_t head = fast && end ? (size_t)(end - s) + 1 : 0;
  char *text = malloc(strlen(s) + strlen(rl_cuda_prelude_text) + 2);
  if (text) sprintf(text, "%.*s%s%s", (int)head, s, rl_cuda_prelude_text, s + head);
  return text;
}

static rl_status bind_grid(rl_plan *p, plan_grid *t, const cg_grid *g, const char *src) {
  plan_cuda *d = p->dev;
  char finish[48];
  t->g = g;
  snprintf(finish, sizeof finish, "%s_f", g->name);
  t->fn = rl_cuda_find(g->name);
  if (!t->fn && !(t->fn = rl_cuda_kernel(g->name, src, g->name))) return RL_ERR;
  t->finish = g->finish ? rl_cuda_find(finish) : NULL;
  if (g->finish && !t->finish && !(t->finish = rl_cuda_kernel(finish, src, finish))) return RL_ERR;
  t->args = malloc(sizeof(void *) * (size_t)(g->nbuf + g->nrng + 4));
  if (!t->args) return rl_error_status(RL_OOM, "[compile] out of memory");
  int n = 0;
  for (int i = 0; i < g->nbuf; i++) t->args[n++] = &p->ptr[g->buf[i]];
  t->args[n++] = &d->num;
  t->args[n++] = &d->rng;
  t->args[n++] = &d->err;
  for (int i = 0; i < g->nrng; i++) t->args[n++] = &g->rng[i];
  return RL_OK;
}

rl_status plan_cuda_bind(rl_plan *p) {
  plan_cuda *d = p->dev = calloc(1, sizeof *d);
  RL_TRY(rl_cuda_need());
  if (!d) return rl_error_status(RL_OOM, "[compile] out of memory");
  size_t n = (size_t)p->g->ninputs + 1;
  d->dev = rl_cuda_device(), d->where = rl_cuda_place();
  d->bytes = (size_t)(p->g->nnumbers + 2) * 8;
  d->data = rl_cuda_alloc(d->bytes);
  d->err = cuda_error_words();
  d->grid = calloc((size_t)p->nstep + 1, sizeof *d->grid);
  d->stage = calloc(n, sizeof *d->stage);
  d->stage_bytes = calloc(n, sizeof *d->stage_bytes);
  d->lo = calloc(n, sizeof *d->lo);
  d->moves = calloc(n, sizeof *d->moves);
  if (!d->data || !d->grid || !d->stage || !d->stage_bytes || !d->lo || !d->moves) return rl_error_status(RL_OOM, "[compile] out of memory");
  d->num = d->data, d->rng = d->data + (size_t)p->g->nnumbers * 8;
  char *src = whole_source(p);
  rl_status s = src ? RL_OK : rl_error_status(RL_OOM, "[compile] out of memory");
  for (int i = 0; i < p->nstep && s == RL_OK; i++) {
    if (p->step[i].call) continue;
    s = bind_grid(p, &d->grid[i], &p->prog.launch[i].grid, src);
    p->step[i].grid = &d->grid[i];
  }
  free(src);
  d->never = p->nstep < GRAPH_STEPS;
  for (int i = 0; i < p->ncalls; i++) d->never = d->never || p->calls[i].random;
  return s;
}

static void drop_graph(const rl_plan *p, recorded *g) {
  plan_cuda *d = p->dev;
  if (g->exec) cuda_graph_free(g->exec);
  for (int i = 0; g->kept && i < p->g->noutputs; i++) {
    if (g->kept[i] && g->note && g->kept[i]->foreign == &g->note[i]) g->kept[i]->foreign = NULL;
    rl_storage_release(g->kept[i]);
    if (g->note && g->note[i].event) rl_cuda_event_free(g->note[i].event);
  }
  free(g->kept);
  free(g->note);
  cuda_pool_free(g->pool, d->where);
  free(g->in);
  memset(g, 0, sizeof *g);
}

void plan_cuda_free(rl_plan *p) {
  plan_cuda *d = p->dev;
  if (!d) return;
  for (int i = 0; i < GRAPHS; i++) drop_graph(p, &d->graph[i]);
  if (p->arena) rl_cuda_free(p->arena, (size_t)p->prog.c.arena, d->where);
  if (d->data) rl_cuda_free(d->data, d->bytes, d->where);
  for (int i = 0; d->stage && i < p->g->ninputs; i++)
    if (d->stage[i]) rl_cuda_free(d->stage[i], d->stage_bytes[i], d->where);
  for (int i = 0; d->grid && i < p->nstep; i++) free(d->grid[i].args);
  if (d->words) cu.host_free(d->words);
  free(d->grid);
  free(d->stage);
  free(d->stage_bytes);
  free(d->lo);
  free(d->moves);
  free(d);
}

/* ---- running ---- */

static rl_status launch(const plan_grid *t, const char *label) {
  RL_TRY(rl_cuda_launch2(t->fn, label, t->g->blocks, t->g->columns, t->g->threads, t->args));
  return t->finish ? rl_cuda_launch(t->finish, label, t->g->finish, 256, t->args) : RL_OK;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Numbers that step i of a recording made. */
static rl_status note_step(const rl_plan *p, int i) {
  recorded *g = p->dev->noting;
  for (int o = 0; o < p->g->noutputs; o++) {
    int buf = p->prog.c.node[p->g->outputs[o]].buf;
    if (!g->kept[o] || !g->note[o].host || p->prog.c.buf[buf].first != i) continue;
    p->dev->noted = true;
    RL_TRY(cuda_note_record(&g->note[o], g->kept[o]->data, (size_t)rl_dtypes[g->kept[o]->dtype].bytes));
  }
  return RL_OK;
}

static rl_status run_steps(rl_plan *p, rl_generator *gen) {
  uint64_t base = gen->counter;
  bool timed = rl_env_int(RL_ENV_DEBUG) >= 2 && !cuda_capturing();
  for (int i = 0; i < p->nstep; i++) {
    plan_step *s = &p->step[i];
    double t = timed ? now() : 0;
    RL_TRY(s->grid ? launch(s->grid, p->prog.launch[i].label) : plan_run_call(s->call, gen, base));
    if (p->dev->noting) RL_TRY(note_step(p, i));
    if (!timed) continue;
    RL_TRY(rl_cuda_sync());
    s->seconds += now() - t;
    s->runs++;
  }
  gen->counter = base;
  if (timed && p->nstep && p->step[0].runs == REPORT_RUNS) plan_report_times(p);
  return RL_OK;
}

static rl_status upload(const rl_plan *p, const double *numbers, const rl_generator *gen) {
  uint64_t few[64], *all = few;
  size_t n = (size_t)p->g->nnumbers;
  if (n + 2 > 64 && !(all = malloc((n + 2) * 8))) return rl_error_status(RL_OOM, "[plan] out of memory");
  if (n) memcpy(all, numbers, n * 8);
  all[n] = gen->seed, all[n + 1] = gen->counter;
  rl_status s = rl_cuda_write(p->dev->data, all, (n + 2) * 8);
  if (all != few) free(all);
  return s;
}

/* ---- graphs ---- */

static int input_buffer(const rl_plan *p, int i) { return p->prog.c.node[p->g->inputs[i]].buf; }
/* The input that stands for its storage: the first of those that share it. */
static bool is_first(const rl_plan *p, int i) { return p->prog.c.buf[input_buffer(p, i)].index == i; }
static void set_pointer(rl_plan *p, int buf, void *at) { p->store[buf].data = p->ptr[buf] = at; }

/* Bytes of input i's storage that inputs of this storage show. */
static void window_of(const rl_plan *p, int i, int64_t *lo, int64_t *hi) {
  int buf = input_buffer(p, i);
  *lo = INT64_MAX, *hi = 0;
  for (int k = 0; k < p->g->ninputs; k++) {
    const cg_node *n = &p->prog.c.node[p->g->inputs[k]];
    if (n->buf != buf) continue;
    int64_t last = n->geom.offset + 1;
    for (int d = 0; d < n->type.ndim; d++) last = n->type.size[d] ? last + (n->type.size[d] - 1) * n->geom.stride[d] : n->geom.offset;
    *lo = RL_MIN(*lo, n->geom.offset), *hi = RL_MAX(*hi, last);
  }
  int64_t bytes = rl_dtypes[p->prog.c.buf[buf].dt].bytes;
  *lo = *lo * bytes / 256 * 256, *hi *= bytes; /* what lines up in the storage does so in its copy */
}

static rl_status make_stage(rl_plan *p, int i) {
  plan_cuda *d = p->dev;
  int64_t lo, hi;
  d->moves[i] = true;
  window_of(p, i, &lo, &hi);
  d->lo[i] = lo, d->stage_bytes[i] = (size_t)RL_MAX(256, hi - lo);
  return (d->stage[i] = rl_cuda_alloc(d->stage_bytes[i])) ? RL_OK : RL_OOM;
}

/* Inputs with a place of their own are read from there. */
static void point_to_stages(rl_plan *p) {
  for (int i = 0; i < p->g->ninputs; i++)
    if (p->dev->moves[i] && is_first(p, i)) set_pointer(p, input_buffer(p, i), (char *)p->dev->stage[i] - p->dev->lo[i]);
}
static rl_status copy_stages(rl_plan *p, rl_tensor *const *in, bool back) {
  plan_cuda *d = p->dev;
  for (int i = 0; i < p->g->ninputs; i++) {
    if (!d->moves[i] || !is_first(p, i) || !in[i]->storage || (back && !p->written[i])) continue;
    int64_t lo, hi;
    window_of(p, i, &lo, &hi);
    char *there = (char *)in[i]->storage->data + lo;
    if (hi > lo) RL_TRY(rl_cuda_move_bytes(back ? there : d->stage[i], back ? d->stage[i] : there, (size_t)(hi - lo)));
  }
  return RL_OK;
}

static bool matches(const rl_plan *p, const recorded *g) {
  for (int i = 0; i < p->g->ninputs; i++)
    if (is_first(p, i) && !p->dev->moves[i] && g->in[i] != p->ptr[input_buffer(p, i)]) return false;
  return true;
}

/* Nobody but the graph holds what it wrote last. */
static bool is_free(const rl_plan *p, const recorded *g) {
  for (int i = 0; i < p->g->noutputs; i++)
    if (g->kept[i] && __atomic_load_n(&g->kept[i]->refs, __ATOMIC_ACQUIRE) > 1) return false;
  return true;
}

/* The graph for these addresses whose outputs are free; of two that are not, the older one. A second is recorded while there is only one: the
 * caller's modules hold one graph's outputs while the other runs. */
static recorded *find_graph(rl_plan *p) {
  plan_cuda *d = p->dev;
  recorded *oldest = NULL;
  int n = 0;
  for (int k = 0; k < GRAPHS; k++) {
    recorded *g = &d->graph[k];
    if (!g->exec || !matches(p, g)) continue;
    if (is_free(p, g)) return g;
    n++;
    if (!oldest || g->used < oldest->used) oldest = g;
  }
  d->second = n == 1;
  return n >= 2 ? oldest : NULL;
}

/* Outputs that a caller still holds move out of the graph's memory: their storage takes a copy, the graph a storage of its own again. */
static rl_status free_outputs(rl_plan *p, recorded *g) {
  for (int i = 0; i < p->g->noutputs; i++) {
    rl_storage *s = g->kept[i];
    if (!s || __atomic_load_n(&s->refs, __ATOMIC_ACQUIRE) == 1) continue;
    rl_storage *copy = rl_storage_new((rl_dtype)s->dtype, RL_CUDA, s->size);
    if (!copy) return RL_OOM;
    RL_TRY(rl_cuda_move_bytes(copy->data, s->data, (size_t)(s->size * rl_dtypes[s->dtype].bytes)));
    void *mine = s->data;
    uint8_t where = s->device_index;
    s->data = copy->data, s->device_index = copy->device_index;
    copy->data = mine, copy->device_index = where;
    copy->foreign = s->foreign;
    s->foreign = NULL;
    g->kept[i] = copy;
    rl_storage_release(s);
  }
  return RL_OK;
}

/* Addresses that were others before: those inputs get a place of their own, and graphs recorded with the old ones go. */
static rl_status settle_inputs(rl_plan *p) {
  plan_cuda *d = p->dev;
  const recorded *last = NULL;
  for (int k = 0; k < GRAPHS; k++)
    if (d->graph[k].exec && (!last || d->graph[k].used > last->used)) last = &d->graph[k];
  if (!last || ++d->misses < 2) return RL_OK;
  bool any = false;
  for (int i = 0; i < p->g->ninputs; i++) {
    if (!is_first(p, i) || d->moves[i] || last->in[i] == p->ptr[input_buffer(p, i)]) continue;
    RL_TRY(make_stage(p, i));
    any = true;
  }
  for (int k = 0; any && k < GRAPHS; k++) drop_graph(p, &d->graph[k]);
  return RL_OK;
}

/* Places on the host for the outputs that are one number: the program may ask for them at once. True when there is one. */
static bool keep_notes(const rl_plan *p, recorded *g) {
  plan_cuda *d = p->dev;
  int n = p->g->noutputs, numbers = 0;
  for (int i = 0; i < n; i++) numbers += g->kept[i] && g->kept[i]->size == 1;
  if (!numbers || !(g->note = calloc((size_t)n, sizeof *g->note))) return false;
  if (!d->words && cu.host_alloc((void **)&d->words, sizeof *d->words * GRAPHS * (size_t)n, 0)) return false;
  for (int i = 0; i < n; i++)
    if (g->kept[i] && g->kept[i]->size == 1) g->note[i].host = &d->words[(g - d->graph) * n + i];
  return true;
}

/* Places for the outputs of a graph that is about to be recorded. */
static rl_status keep_outputs(rl_plan *p, recorded *g) {
  const cg *c = &p->prog.c;
  if (!(g->kept = calloc((size_t)p->g->noutputs + 1, sizeof *g->kept))) return rl_error_status(RL_OOM, "[plan] out of memory");
  for (int i = 0; i < p->g->noutputs; i++) {
    int buf = c->node[p->g->outputs[i]].buf;
    const cg_buf *b = &c->buf[buf];
    if (b->place != CG_P_OUTPUT || b->index != i) continue;
    if (!(g->kept[i] = rl_storage_new(b->dt, RL_CUDA, b->size))) return RL_OOM;
    set_pointer(p, buf, g->kept[i]->data);
  }
  return RL_OK;
}
static void give_outputs(rl_plan *p, const recorded *g) {
  for (int i = 0; i < p->g->noutputs; i++) {
    if (!g->kept[i]) continue;
    p->fresh[i] = rl_storage_retain(g->kept[i]);
    p->fresh[i]->version++;
    if (!g->note || !g->note[i].event) continue;
    g->note[i].version = p->fresh[i]->version;
    p->fresh[i]->foreign = &g->note[i];
  }
}

static rl_status record(rl_plan *p, rl_generator *gen, recorded **out) {
  plan_cuda *d = p->dev;
  recorded *g = &d->graph[0];
  for (int k = 1; k < GRAPHS; k++)
    if (g->exec && (!d->graph[k].exec || d->graph[k].used < g->used)) g = &d->graph[k];
  drop_graph(p, g);
  RL_TRY(keep_outputs(p, g));
  g->in = malloc(sizeof(void *) * (size_t)(p->g->ninputs + 1));
  if (!g->in || !(g->pool = cuda_pool_begin())) return rl_error_status(RL_OOM, "[plan] out of memory");
  for (int i = 0; i < p->g->ninputs; i++) g->in[i] = p->ptr[input_buffer(p, i)];
  uint64_t base = gen->counter;
  bool noting = keep_notes(p, g);
  rl_status s = cuda_capture_begin(), e = s;
  if (s == RL_OK) {
    d->noting = noting ? g : NULL;
    s = run_steps(p, gen);
    if (s == RL_OK && d->noted) s = cuda_note_join();
    d->noting = NULL, d->noted = false;
    e = cuda_capture_end(s == RL_OK, &g->exec);
  }
  cuda_pool_end();
  gen->counter = base;
  if (s == RL_OK && e == RL_OK) {
    *out = g;
    if (rl_env_int(RL_ENV_DEBUG) >= 1) fprintf(stderr, "[plan] %d steps recorded as a CUDA graph\n", p->nstep);
    return RL_OK;
  }
  if (rl_env_int(RL_ENV_DEBUG) >= 1) fprintf(stderr, "[plan] not recorded as a CUDA graph: %s\n", rl_error_message());
  drop_graph(p, g);
  d->never = true;
  return RL_OK;
}

static rl_status replay(rl_plan *p, rl_tensor *const *in, rl_generator *gen, bool *done) {
  plan_cuda *d = p->dev;
  recorded *g = find_graph(p);
  if (!g && !d->second) RL_TRY(settle_inputs(p));
  point_to_stages(p);
  if (!g) RL_TRY(record(p, gen, &g));
  if (!g) return RL_OK;
  RL_TRY(free_outputs(p, g));
  g->used = (uint64_t)++d->replays;
  RL_TRY(copy_stages(p, in, false));
  RL_TRY(cuda_graph_launch(g->exec));
  RL_TRY(copy_stages(p, in, true));
  *done = true;
  give_outputs(p, g);
  return RL_OK;
}

/* Inputs are bound; outputs are made here. */
rl_status plan_cuda_run(rl_plan *p, rl_tensor *const *in, const double *numbers) {
  plan_cuda *d = p->dev;
  rl_generator *gen = rl_generator_default();
  bool done = false;
  RL_TRY(rl_cuda_need());
  if (rl_cuda_device() != d->dev) return rl_error("[plan] compiled for GPU %d; got GPU %d", d->dev + 1, rl_cuda_device() + 1);
  RL_TRY(upload(p, numbers, gen));
  if (!d->never && d->runs > 0 && rl_env_int(RL_ENV_DEBUG) < 2) RL_TRY(replay(p, in, gen, &done));
  if (!done) {
    for (int i = 0; i < p->g->ninputs; i++)
      if (d->moves[i] && is_first(p, i)) set_pointer(p, input_buffer(p, i), in[i]->storage ? in[i]->storage->data : NULL);
    RL_TRY(plan_make_outputs(p, in, NULL));
    RL_TRY(run_steps(p, gen));
  }
  d->runs++;
  gen->counter += (uint64_t)p->g->rng_total;
  return RL_OK;
}
