#!/bin/sh
# All workloads on the CPU, eager and compiled, beside PyTorch eager and torch.compile, taking turns in one run; with 1 and 2 threads.
# PYTHON names an interpreter that has PyTorch (default python3); COLD=1 compiles with empty caches, both sides.
#    PYTHON=~/torch/bin/python examples/bench/cpu.sh [--only mlp,lenet] [--threads 1,2] [--rounds 5] [--steps 2] [--infer] [--json out.json]
set -e
here=$(dirname "$0")
if [ -n "$COLD" ]; then
  cold=$(mktemp -d)
  trap 'rm -rf "$cold"' EXIT
  export RELUME_CACHE="$cold/relume" TORCHINDUCTOR_CACHE_DIR="$cold/inductor"
fi
"${PYTHON:-python3}" "$here/compare.py" "$@"
