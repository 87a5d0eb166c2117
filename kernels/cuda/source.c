/* Source of the generated CUDA kernels: rows of the op table -> CUDA C (prelude.cuh in front), one module per row and dtype.
 * Names in an expression become the prelude's: tanh(x) -> rl_tanh_f32(x). */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "launch.h"

extern const char rl_cuda_prelude_text[];

static const char *compute(rl_dtype dt) { return dt == RL_F16 || dt == RL_BF16 ? "f32" : rl_dtypes[dt].suffix; }

void cuda_put_expr(FILE *o, const char *e, const char *suffix) {
  while (*e) {
    if (!isalpha((unsigned char)*e) && *e != '_') {
      fputc(*e++, o);
      continue;
    }
    size_t n = 0;
    while (isalnum((unsigned char)e[n]) || e[n] == '_') n++;
    if (e[n] == '(') fprintf(o, "rl_%.*s_%s", (int)n, e, suffix);
    else fwrite(e, 1, n, o);
    e += n;
  }
}

static const char ew_struct[] =
    "struct rl_ew { int64_t n; int32_t nd, pad; int64_t size[12]; int64_t st[5][12]; void *p[5]; uint64_t imm[5]; double f[10]; int64_t i[10], *err; "
    "};\n"
    "// A note for the host: op, value, element, bound of the first index out of range.\n"
    "static __device__ void rl_bad(int64_t *err, int64_t op, int64_t v, int64_t at, int64_t n) {\n"
    "  if (atomicCAS((unsigned long long *)err, 0ULL, (unsigned long long)(op + 1)) == 0ULL) err[1] = v, err[2] = at, err[3] = n;\n"
    "}\n"
    "#define RL_EW_LOOP for (int64_t t = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; t < a.n; t += gridDim.x * (int64_t)blockDim.x)\n"
    "template <int N> static __device__ __forceinline__ void rl_place(const rl_ew &a, int64_t t, int64_t *o) {\n"
    "  if (a.nd <= 1) { for (int k = 0; k < N; k++) o[k] = a.nd ? t * a.st[k][0] : 0; return; }\n"
    "  for (int k = 0; k < N; k++) o[k] = 0;\n"
    "  if (a.n < 2147483647LL) {\n"
    "    uint32_t r = (uint32_t)t;\n"
    "    for (int d = a.nd - 1; d >= 0; d--) { uint32_t s = (uint32_t)a.size[d], q = r / s, m = r - q * s; r = q; for (int k = 0; k < N; k++) o[k] "
    "+= (int64_t)m * a.st[k][d]; }\n"
    "  } else {\n"
    "    int64_t r = t;\n"
    "    for (int d = a.nd - 1; d >= 0; d--) { int64_t s = a.size[d], q = r / s, m = r - q * s; r = q; for (int k = 0; k < N; k++) o[k] += m * "
    "a.st[k][d]; }\n"
    "  }\n}\n";

static void put_input(FILE *o, int k, rl_dtype dt, char name) {
  const rl_dtype_info *d = &rl_dtypes[dt];
  fprintf(o, "    const %s %c = rl_ld_%s(a.p[%d] ? ((const %s *)a.p[%d])[o[%d]] : *(const %s *)&a.imm[%d]);\n", d->compute, name, d->suffix, k,
          d->ctype, k, k, d->ctype, k);
}

static void put_ew(FILE *o, rl_op op, rl_dtype dt) {
  const rl_op_info *r = &rl_ops[op];
  rl_dtype out = r->out_dtype ? (rl_dtype)(r->out_dtype - 1) : dt;
  fprintf(o, "extern \"C\" __global__ void ew_%s_%s(const rl_ew a) {\n", r->name, rl_dtypes[dt].suffix);
  for (int i = 0; i < r->nattrs; i++) {
    const rl_attr_info *t = &r->attrs[i];
    if (t->kind == 'f') fprintf(o, "  const %s %s = (%s)a.f[%d];\n", rl_dtypes[dt].compute, t->name, rl_dtypes[dt].compute, t->slot);
    if (t->kind == 'i' || t->kind == 'b') fprintf(o, "  const int64_t %s = a.i[%d];\n", t->name, t->slot);
  }
  fprintf(o, "  RL_EW_LOOP {\n    int64_t o[%d];\n    rl_place<%d>(a, t, o);\n", r->nin + 1, r->nin + 1);
  for (int i = 0; i < r->nin; i++) put_input(o, i + 1, r->in_dtypes[i] ? (rl_dtype)(r->in_dtypes[i] - 1) : dt, "xyzw"[i]);
  fprintf(o, "    ((%s *)a.p[0])[o[0]] = rl_st_%s((%s)(", rl_dtypes[out].ctype, rl_dtypes[out].suffix, rl_dtypes[out].compute);
  cuda_put_expr(o, r->expr, compute(dt));
  fprintf(o, "));\n  }\n}\n");
}

static void put_cast(FILE *o, rl_dtype f, rl_dtype t) {
  fprintf(o, "extern \"C\" __global__ void cast_%s_%s(const rl_ew a) {\n  RL_EW_LOOP {\n    int64_t o[2];\n    rl_place<2>(a, t, o);\n",
          rl_dtypes[f].suffix, rl_dtypes[t].suffix);
  if (f == t) {
    static const char *const bits[] = { "", "uint8_t", "uint16_t", "", "uint32_t", "", "", "", "uint64_t" };
    const char *b = bits[rl_dtypes[f].bytes];
    fprintf(o, "    ((%s *)a.p[0])[o[0]] = a.p[1] ? ((const %s *)a.p[1])[o[1]] : *(const %s *)&a.imm[1];\n  }\n}\n", b, b, b);
    return;
  }
  put_input(o, 1, f, 'x');
  bool toint = rl_dtypes[f].is_float && !rl_dtypes[t].is_float;
  fprintf(o, "    ((%s *)a.p[0])[o[0]] = rl_st_%s((%s)%s);\n  }\n}\n", rl_dtypes[t].ctype, rl_dtypes[t].suffix, rl_dtypes[t].compute,
          toint ? "rl_toint((double)x)" : "x");
}

static const char red_struct[] = "struct rl_red { int64_t nout, m, splits; int32_t nk, nr; int64_t ksize[12], kin[12], kout[12], rsize[12], rin[12]; "
                                 "const void *x; void *r, *part; };\n"
                                 "static __device__ __forceinline__ int64_t rl_off(int n, const int64_t *size, const int64_t *st, int64_t i) {\n"
                                 "  if (n == 1) return i * st[0];\n"
                                 "  int64_t off = 0;\n"
                                 "  for (int d = n - 1; d >= 0; d--) { int64_t q = i < 2147483647LL ? (int64_t)((uint32_t)i / (uint32_t)size[d]) : i "
                                 "/ size[d]; off += (i - q * size[d]) * st[d]; i = q; }\n"
                                 "  return off;\n}\n";

static const char *const low[] = { "0", "-128", "-32768", "(-2147483647-1)", "INT64_MIN", "-INFINITY", "-INFINITY", "-INFINITY", "-INFINITY" };
static const char *const high[] = { "255", "127", "32767", "2147483647", "9223372036854775807LL", "INFINITY", "INFINITY", "INFINITY", "INFINITY" };

/* Sums of floats fold in double and of integers in int64, as on the CPU; largest and smallest in the type itself. */
static void put_red(FILE *o, rl_op op, rl_dtype dt) {
  const rl_op_info *r = &rl_ops[op];
  const rl_dtype_info *d = &rl_dtypes[dt];
  bool lowest = !strcmp(r->init, "lowest"), minmax = lowest || !strcmp(r->init, "highest");
  const char *A = minmax ? d->compute : d->is_float ? "double" : "int64_t", *as = minmax ? compute(dt) : d->is_float ? "f64" : "i64";
  const char *init = lowest ? low[dt] : minmax ? high[dt] : r->init;
  char n[64];
  snprintf(n, sizeof n, "%s_%s", r->name, d->suffix);
  fprintf(o, "static __device__ __forceinline__ %s comb_%s(%s a, %s x) { return (%s)(", A, n, A, A, A);
  cuda_put_expr(o, r->expr, as);
  fprintf(o, "); }\n#define PUT_%s(o, v) ((%s *)a.r)[rl_off(a.nk, a.ksize, a.kout, o)] = rl_st_%s((%s)(v))\n", n, d->ctype, d->suffix, d->compute);
  fprintf(o,
          "extern \"C\" __global__ void rows_%s(const rl_red a) {\n  __shared__ %s sh[256];\n"
          "  int64_t o = blockIdx.x / a.splits, s = blockIdx.x %% a.splits, per = (a.m + a.splits - 1) / a.splits, hi = (s + 1) * per;\n"
          "  const %s *p = (const %s *)a.x + rl_off(a.nk, a.ksize, a.kin, o);\n  %s acc = %s;\n  hi = hi < a.m ? hi : a.m;\n"
          "  for (int64_t j = s * per + threadIdx.x; j < hi; j += 256) acc = comb_%s(acc, (%s)rl_ld_%s(p[rl_off(a.nr, a.rsize, a.rin, j)]));\n"
          "  sh[threadIdx.x] = acc;\n  for (int h = 128; h > 0; h >>= 1) {\n    __syncthreads();\n"
          "    if (threadIdx.x < h) sh[threadIdx.x] = comb_%s(sh[threadIdx.x], sh[threadIdx.x + h]);\n  }\n"
          "  if (threadIdx.x) return;\n  if (a.splits == 1) PUT_%s(o, sh[0]);\n  else ((%s *)a.part)[blockIdx.x] = sh[0];\n}\n",
          n, A, d->ctype, d->ctype, A, init, n, A, d->suffix, n, n, A);
  fprintf(
      o,
      "extern \"C\" __global__ void last_%s(const rl_red a) {\n  int64_t o = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;\n  if (o >= a.nout) "
      "return;\n"
      "  %s acc = %s;\n  for (int64_t s = 0; s < a.splits; s++) acc = comb_%s(acc, ((const %s *)a.part)[o * a.splits + s]);\n  PUT_%s(o, acc);\n}\n",
      n, A, init, n, A, n);
  fprintf(
      o,
      "extern \"C\" __global__ void cols_%s(const rl_red a) {\n"
      "  for (int64_t o = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; o < a.nout; o += gridDim.x * (int64_t)blockDim.x) {\n"
      "    const %s *p = (const %s *)a.x + rl_off(a.nk, a.ksize, a.kin, o);\n    %s acc = %s;\n"
      "    for (int64_t j = 0; j < a.m; j++) acc = comb_%s(acc, (%s)rl_ld_%s(p[rl_off(a.nr, a.rsize, a.rin, j)]));\n    PUT_%s(o, acc);\n  }\n}\n",
      n, d->ctype, d->ctype, A, init, n, A, d->suffix, n);
}

static bool allowed(const rl_op_info *r, rl_dtype dt) { return !r->dtypes || (r->dtypes == 1) == rl_dtypes[dt].is_float; }

static bool put_row(FILE *o, rl_op op, rl_dtype dt) {
  const rl_op_info *r = &rl_ops[op];
  if (!allowed(r, dt)) return false;
  if (r->kind == RL_K_RED && strncmp(r->expr, "arg", 3)) put_red(o, op, dt);
  else if (op == RL_OP_CAST)
    for (int t = 0; t < RL_NDTYPE; t++) put_cast(o, dt, (rl_dtype)t);
  else if (r->kind == RL_K_EW) put_ew(o, op, dt);
  else return false;
  return true;
}

/* op == RL_NOP: every row, as the check without a device compiles them. */
char *rl_cuda_source(rl_op op, rl_dtype dt) {
  char *text = NULL;
  size_t n = 0;
  FILE *o = open_memstream(&text, &n);
  if (!o) return NULL;
  fprintf(o, "%s%s%s", rl_cuda_prelude_text, ew_struct, red_struct);
  bool any = false;
  for (int k = op == RL_NOP ? 0 : (int)op; k < (op == RL_NOP ? RL_NOP : (int)op + 1); k++) any = put_row(o, (rl_op)k, dt) || any;
  fclose(o);
  if (any) return text;
  free(text);
  return NULL;
}

/* The hand-written kernels of one file for one dtype. NULL: no such file. */
extern const char rl_cuda_prims_text[], rl_cuda_order_text[], rl_cuda_plane_text[], rl_cuda_rows_text[];
char *rl_cuda_prim_source(rl_dtype dt, const char *file) {
  static const struct {
    const char *name, *text;
  } files[] = { { "prims", rl_cuda_prims_text }, { "order", rl_cuda_order_text }, { "plane", rl_cuda_plane_text }, { "rows", rl_cuda_rows_text } };
  const rl_dtype_info *d = &rl_dtypes[dt];
  char *text = NULL;
  const char *body = NULL;
  size_t n = 0;
  for (size_t k = 0; k < sizeof files / sizeof *files; k++)
    if (!strcmp(files[k].name, file)) body = files[k].text;
  FILE *o = body ? open_memstream(&text, &n) : NULL;
  if (!o) return NULL;
  fprintf(o,
          "%s%s%s#define S %s\n#define C %s\n#define LD rl_ld_%s\n#define ST rl_st_%s\n#define RL_IS_FLOAT %d\n#define RL_RAND rl_rand_%s\n#define "
          "RL_RANDN rl_randn_%s\n#define K extern \"C\" __global__ void\n%s",
          rl_cuda_prelude_text, ew_struct, red_struct, d->ctype, d->compute, d->suffix, d->suffix, d->is_float, compute(dt), compute(dt), body);
  fclose(o);
  return text;
}
