/* Families: one text for several sizes (programs of one graph for other sizes -> C text with parameters, and their values).
 *
 * A program's text comes with sites: its numbers, and their literals for these sizes. Programs whose texts are the same but for the literals
 * share a template. A site that had one literal in all of them stays a literal; the others become variables that the kernel reads from its
 * parameters, sites that always had the same value one variable. A program that contradicts this makes the template finer, which costs one more
 * run of the C compiler; the choices that fusion makes by sizes are made once and then repeated (choice.c). */
#include "family.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 }; /* templates of a family; the oldest gives way */

typedef struct member {
  int cls; /* variable of the kernel, -1: a literal */
  char lit[44];
} member;

typedef struct template {
  cg_choices choices;
  char *skeleton, *text;
  member *site;
  int nsites;
}
template;

struct cg_family {
  template t[MOST];
  int n, texts;
};

cg_family *cg_family_new(void) { return calloc(1, sizeof(cg_family)); }
int cg_family_texts(const cg_family *f) { return f->texts; }

static void template_free(template *t) {
  free(t->choices.v);
  free(t->skeleton);
  free(t->text);
  free(t->site);
  memset(t, 0, sizeof *t);
}

void cg_family_free(cg_family *f) {
  for (int i = 0; f && i < f->n; i++) template_free(&f->t[i]);
  free(f);
}

/* ---- classes ---- */

/* Number of chunks and whether they run in parallel follow from all sizes of a kernel: variables wherever one of these is. */
static bool follows(const cg_site *s) { return s->kind == CG_SITE_CHUNKS || s->kind == CG_SITE_PARALLEL; }

static bool same_value(const cg_site *a, const cg_site *b) { return a->kind == b->kind && !strcmp(a->lit, b->lit); }

/* Sites of the kernel that the site at `from` belongs to end here. */
static int kernel_end(const cg_sites *l, int from) {
  int to = from;
  while (to < l->n && l->v[to].kernel == l->v[from].kernel) to++;
  return to;
}

/* First site of the kernel in the same class as site i. */
static int leader(const template *t, int from, int i) {
  int k = from;
  while (t->site[k].cls != t->site[i].cls) k++;
  return k;
}

static bool fits(const template *t, const cg_sites *l) {
  for (int from = 0, i = 0; i < l->n; i++) {
    if (l->v[i].kernel != l->v[from].kernel) from = i;
    if (t->site[i].cls < 0 ? strcmp(t->site[i].lit, l->v[i].lit) : !same_value(&l->v[i], &l->v[leader(t, from, i)])) return false;
  }
  return true;
}

static bool varies(const template *t, const cg_sites *l, int i) { return t->site[i].cls >= 0 || strcmp(t->site[i].lit, l->v[i].lit); }

/* Sites i and j were one before, and have one value now. */
static bool stay_together(const template *t, const cg_sites *l, int i, int j) {
  if (!same_value(&l->v[i], &l->v[j]) || t->site[i].cls != t->site[j].cls) return false;
  return t->site[i].cls >= 0 || !strcmp(t->site[i].lit, t->site[j].lit);
}

/* New classes of one kernel's sites. */
static void refine_kernel(const template *t, const cg_sites *l, int from, int to, int *cls) {
  bool any = false;
  int n = 0;
  for (int i = from; i < to; i++) any = any || (!follows(&l->v[i]) && varies(t, l, i));
  for (int i = from; i < to; i++) {
    cls[i] = -1;
    if (!any || !(follows(&l->v[i]) || varies(t, l, i))) continue;
    for (int j = from; j < i && cls[i] < 0; j++)
      if (cls[j] >= 0 && l->v[i].kind == l->v[j].kind && (follows(&l->v[i]) || stay_together(t, l, i, j))) cls[i] = cls[j];
    if (cls[i] < 0) cls[i] = n++;
  }
}

static rl_status refine(template *t, const cg_sites *l) {
  int *cls = malloc(sizeof(int) * (size_t)(l->n + 1));
  if (!cls) return rl_error_status(RL_OOM, "[compile] out of memory");
  for (int from = 0; from < l->n; from = kernel_end(l, from)) refine_kernel(t, l, from, kernel_end(l, from), cls);
  for (int i = 0; i < l->n; i++) {
    t->site[i].cls = cls[i];
    memcpy(t->site[i].lit, l->v[i].lit, sizeof t->site[i].lit);
  }
  free(cls);
  free(t->text);
  t->text = NULL;
  return RL_OK;
}

/* ---- text ---- */

static bool is_real(const cg_site *s) { return s->kind == CG_SITE_CONST && rl_dtypes[s->dt].is_float; }

static void put_site(cg_text *out, const template *t, const cg_site *s, int i) {
  int c = t->site[i].cls;
  if (s->kind == CG_SITE_PARALLEL) {
    if (c >= 0) cg_put(out, "_Pragma(\"omp parallel for schedule(static) if(q%d)\")", c);
    else if (strcmp(s->lit, "0")) cg_put(out, "_Pragma(\"omp parallel for schedule(static)\")");
  } else if (c < 0) cg_put(out, "%s", s->lit);
  else if (s->kind != CG_SITE_CONST) cg_put(out, "q%d", c);
  else if (!is_real(s)) cg_put(out, "(%s)q%d", cg_compute_type(s->dt), c);
  else cg_put(out, s->dt == RL_F64 ? "w%d" : "(float)w%d", c);
}

static void put_variables(cg_text *out, const template *t, const cg_sites *l, int kernel) {
  int from = 0, n = 0;
  while (from < l->n && l->v[from].kernel != kernel) from++;
  for (int i = from; i < l->n && l->v[i].kernel == kernel; i++) {
    if (t->site[i].cls != n) continue;
    if (is_real(&l->v[i])) cg_put(out, "const double w%d = w[%d]; ", n, n);
    else cg_put(out, "const int64_t q%d = q[%d]; ", n, n);
    n++;
  }
}

/* The template's C text; NULL when memory is out. */
static char *resolve(const template *t, const cg_sites *l) {
  cg_text out = { 0 };
  for (const char *s = t->skeleton; *s;) {
    size_t n = strcspn(s, "\1\3");
    cg_put(&out, "%.*s", (int)n, s);
    s += n;
    if (!*s) break;
    int number = atoi(s + 1);
    if (*s == '\1') put_site(&out, t, &l->v[number], number);
    else put_variables(&out, t, l, number);
    s = strchr(s, '\2') + 1;
  }
  if (out.bad) {
    free(out.p);
    return NULL;
  }
  return out.p ? out.p : strdup("");
}

/* What the kernels of this program are given. */
static rl_status set_parameters(const template *t, cg_program *p) {
  const cg_sites *l = &p->sites;
  for (int from = 0; from < l->n; from = kernel_end(l, from)) {
    int to = kernel_end(l, from);
    cg_launch *k = &p->launch[l->v[from].kernel];
    k->q = calloc((size_t)(to - from) + 1, sizeof *k->q);
    k->w = calloc((size_t)(to - from) + 1, sizeof *k->w);
    if (!k->q || !k->w) return rl_error_status(RL_OOM, "[compile] out of memory");
    for (int i = from; i < to; i++) {
      if (t->site[i].cls < 0) continue;
      k->q[t->site[i].cls] = l->v[i].i;
      k->w[t->site[i].cls] = l->v[i].f;
    }
  }
  return RL_OK;
}

/* ---- templates ---- */

static bool is_skeleton(const template *t, const cg_program *p) { return t->nsites == p->sites.n && !strcmp(t->skeleton, p->source); }

/* The program as the template's first one; the choices become the template's. */
static rl_status template_new(cg_family *f, cg_program *p, cg_choices *choices, template **out) {
  if (f->n == MOST) {
    template_free(&f->t[MOST - 1]);
    f->n--;
  }
  memmove(&f->t[1], &f->t[0], sizeof(template) * (size_t)f->n);
  f->n++;
  template *t = *out = &f->t[0];
  *t = (template){ .choices = *choices, .skeleton = strdup(p->source), .nsites = p->sites.n };
  *choices = (cg_choices){ 0 };
  t->site = calloc((size_t)p->sites.n + 1, sizeof *t->site);
  if (!t->site || !t->skeleton) return rl_error_status(RL_OOM, "[compile] out of memory");
  for (int i = 0; i < t->nsites; i++) {
    t->site[i].cls = -1;
    memcpy(t->site[i].lit, p->sites.v[i].lit, sizeof t->site[i].lit);
  }
  return RL_OK;
}

/* The program's choices made as those of a template: NULL when these sizes do not fit it. */
static template *repeat(cg_family *f, const rl_graph *g, bool strict, cg_program *out) {
  for (int i = 0; i < f->n; i++) {
    template *t = &f->t[i];
    cg_choices c = { .v = t->choices.v, .n = t->choices.n, .replay = true };
    if (cg_compile(g, strict, &c, out) != RL_OK) continue;
    if (!c.failed && c.at == c.n && is_skeleton(t, out)) return t;
    cg_program_free(out);
  }
  return NULL;
}

static rl_status choose(cg_family *f, const rl_graph *g, bool strict, cg_program *out, template **t) {
  cg_choices c = { 0 };
  rl_status s = cg_compile(g, strict, &c, out);
  if (s == RL_OK && c.failed) s = rl_error_status(RL_OOM, "[compile] out of memory");
  *t = NULL;
  for (int i = 0; s == RL_OK && i < f->n; i++)
    if (is_skeleton(&f->t[i], out)) *t = &f->t[i];
  if (s == RL_OK && !*t) s = template_new(f, out, &c, t);
  free(c.v);
  return s;
}

static rl_status take_text(cg_family *f, template *t, cg_program *p) {
  if (!t->text) {
    if (!(t->text = resolve(t, &p->sites))) return rl_error_status(RL_OOM, "[compile] out of memory");
    f->texts += *t->text != 0;
  }
  free(p->source);
  p->source = strdup(t->text);
  return p->source ? set_parameters(t, p) : rl_error_status(RL_OOM, "[compile] out of memory");
}

rl_status cg_family_compile(cg_family *f, const rl_graph *g, bool strict, bool probe, cg_program *out) {
  rl_status s = RL_OK;
  template *t = repeat(f, g, strict, out);
  if (!t) s = choose(f, g, strict, out, &t);
  if (s == RL_OK && !fits(t, &out->sites)) s = refine(t, &out->sites);
  if (s == RL_OK && !probe) s = take_text(f, t, out);
  if (s != RL_OK) cg_program_free(out);
  return s;
}
