/* Ops: one entry point for every row of ops.def, on real and on fake tensors.
 *
 *   rl_call ─ infer shapes and dtypes ─ (fake) rl_graph_record: a node
 *                                     └ (real) kernel of the device, or the composite's formula
 *           └ tape: when grad mode is on and an input requires grad, rl_tape_record
 */
#ifndef RL_OP_H
#define RL_OP_H
#include "tensor.h"

typedef enum rl_op {
#define RL_OPROW(ID) RL_OP_##ID,
#include "op_enum.inc" /* generated: one RL_OPROW(ID) per row of ops.def, in the table's order */
#undef RL_OPROW
  RL_NOP
} rl_op;

typedef enum rl_kind { RL_K_EW, RL_K_RED, RL_K_VIEW, RL_K_RAND, RL_K_COMP, RL_K_PRIM } rl_kind;

/* Attributes. A row declares them in order, `attrs = 'dims:ints, keepdim:bool, eps:float=1e-5'`. The i-th scalar attribute
 * (int, bool, float, dtype) is v[i]; the j-th list (ints) is list[j] with nlist[j] entries. Dimensions count from 0. */
#define RL_MAXATTR 10
#define RL_MAXLIST 4
typedef struct rl_attrs {
  union {
    int64_t i;
    double f;
  } v[RL_MAXATTR];
  int32_t nlist[RL_MAXLIST];
  int64_t list[RL_MAXLIST][RL_MAXDIM];
} rl_attrs;

#define RL_MAXIN 8 /* inputs of a row that is not variadic */
#define RL_MAXOUT 6

/* What a value will be: filled in by shape rules. */
typedef struct rl_meta {
  uint8_t dtype, device;
  int ndim;
  int64_t size[RL_MAXDIM];
} rl_meta;

typedef rl_status (*rl_shape_fn)(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out);
typedef rl_status (*rl_view_fn)(rl_op op, const rl_tensor *x, const rl_attrs *a, rl_geom *out);
/* Kernels: inputs and outputs are real, shapes checked, outputs allocated (contiguous, unless the caller's own). An output may be the
 * same tensor as an input only for EW rows (dispatch makes a temporary for every other overlap).
 * EW: every input has the output's shape already (stride 0 where it was broadcast) and its row's dtype: weak numbers arrive converted.
 * RED: dims is never empty; they are sorted; the output has the reduced shape (keepdim or not), contiguous.
 * PRIM, COMP: any strides; absent optional inputs are NULL. Random rows draw at rl_generator_default()->counter; dispatch advances it. */
typedef rl_status (*rl_kernel_fn)(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out);
/* Formulas return new references in out[]. Written by the generator from the row's text; they call rl_call. */
typedef rl_status (*rl_formula_fn)(rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out);
/* Gradients: need is a bit per input; dx[i] gets a new reference or stays NULL (no gradient). y[], dy[] may hold NULLs
 * (output not saved; no gradient came in for it). */
typedef rl_status (*rl_grad_fn)(rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *y, rl_tensor *const *dy, uint32_t need,
                                rl_tensor **dx);

typedef struct rl_attr_info {
  const char *name;
  char kind; /* i b f d(type) l(ist) */
  uint8_t slot;
  bool optional;
  double def;
} rl_attr_info;
typedef struct rl_op_info {
  const char *name, *doc, *expr; /* expr: scalar C expression of an EW row, over x y z; combine step of a RED row */
  const char *init;              /* RED: initial value as text */
  const char *const *in_names, *const *out_names;
  const rl_attr_info *attrs;
  uint8_t kind, nin, nmin, nout, nattrs; /* nin inputs, the first nmin required; nin == 255: variadic */
  uint8_t optional;                      /* bits of inputs that may be absent */
  uint8_t dtypes;                        /* 0 all, 1 float only, 2 integer only */
  uint8_t in_dtypes[RL_MAXIN];           /* by input: 0 the op's dtype (that of the first such input), 1 + rl_dtype, 255 any */
  uint8_t out_dtype;                     /* 0 the op's dtype, 1 + rl_dtype (byte for comparisons, long for indices), 255 the `dtype` attribute */
  uint32_t flags;                        /* RL_OPF_* */
  uint32_t save_in, save_out;            /* whose values the gradient reads: bits by input / output (of the others it gets shape and dtype only) */
  uint8_t need_in[RL_MAXIN], need_out[RL_MAXIN]; /* the same for the gradient of one input alone */
  uint32_t save_grad;                            /* which output gradients it reads: the tape passes zeros for those that did not come */
  uint32_t maybe_grad;                           /* of those, the ones that are passed as NULL when they did not come */
  rl_shape_fn shape;
  rl_view_fn view;
  rl_kernel_fn kernel[RL_NDEVICE];
  rl_formula_fn formula; /* COMP; for a PRIM a slow reference is allowed */
  rl_grad_fn grad;       /* NULL: composite differentiates through its formula, or not differentiable */
} rl_op_info;
enum {
  RL_OPF_NODIFF = 1, /* declared not differentiable (comparisons, sign of integers, indices) */
  RL_OPF_PRIM = 2,   /* in the closed set a backend implements */
  RL_OPF_COMMUTES = 4,
  RL_OPF_INLINE = 8,  /* composite without a shape rule: expanded when called, never a node */
  RL_OPF_RANDOM = 16, /* advances the generator */
  RL_OPF_SMOOTH = 32, /* second order is tested */
  RL_OPF_CLEARS = 64  /* the kernel takes no first input for zeros of the result's sizes */
};
RL_API extern const rl_op_info rl_ops[RL_NOP];
RL_API rl_op rl_op_find(const char *name); /* RL_NOP: unknown */

/* Shapes and dtypes of the results, checks included; writes nothing else. EW rows broadcast here (Torch7's rule and NumPy's). */
RL_API rl_status rl_infer(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_meta *out);
/* Runs or records one op. out[k] NULL: a new reference is left there. out[k] set: must have the inferred shape and dtype, is written in
 * place (its version rises, its tape history is replaced, views of it follow). a may be NULL when the row has no attributes. */
RL_API rl_status rl_call(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out);
RL_API void rl_attrs_default(rl_op op, rl_attrs *a);
/* Runs a composite's formula, whatever kernels there are (decompose does, on fakes). */
RL_API rl_status rl_expand(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out);
/* dst takes src's elements: converts the dtype, reads in order when only the element counts agree, broadcasts. Recorded and taped. */
RL_API rl_status rl_copy(rl_tensor *dst, rl_tensor *src);
RL_API rl_status rl_fill(rl_tensor *dst, double v);
RL_API rl_status rl_contiguous(rl_tensor *x, rl_tensor **out); /* x itself when it is contiguous, else a copy */
/* x with other sizes: a view where its strides allow, else of a copy. One size may be -1. */
RL_API rl_status rl_reshape(rl_tensor *x, int ndim, const int64_t *size, rl_tensor **out);
#endif
