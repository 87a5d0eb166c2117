#!/bin/sh
# On a machine with a GPU: builds, runs the specs of CUDA and the op spec there, compute-sanitizer on a small program, then times eager ops and the
# workloads, eager and compiled, beside PyTorch where python3 has it. One JSON line a figure on standard output, everything in $OUT when it is set.
#   sh examples/bench/gpu.sh [parts] [folder of .deb files to unpack under /tmp/debs] [archive of .cubin files]
# parts: any of build,spec,ops,check,ops_time,train,small,large,peer (comma between; default: all but peer)
set -u
cd "$(dirname "$0")/../.."
parts=",${1:-build,spec,ops,check,ops_time,train,small,large},"
out=${OUT:-/tmp/gpu}
mkdir -p "$out"
part() { case "$parts" in *",$1,"*) echo "== $1 ($(date +%T))"; return 0 ;; esac; return 1; }
busted=/usr/bin/busted
if [ -n "${2:-}" ]; then
   [ -d /tmp/debs ] || for f in "$2"/*.deb; do dpkg -x "$f" /tmp/debs; done
   root=/tmp/debs/usr
   [ -d /usr/share/luajit-2.1.0-beta3 ] || { mkdir -p /usr/share && ln -s "$root/share/luajit-2.1.0-beta3" /usr/share/luajit-2.1.0-beta3; }
   export PATH="$root/bin:$PATH" LD_LIBRARY_PATH="$root/lib/x86_64-linux-gnu/openblas-openmp:$root/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}"
   export LUA_PATH="$root/share/luajit-2.1.0-beta3/?.lua;$root/share/lua/5.1/?.lua;$root/share/lua/5.1/?/init.lua;;"
   export LUA_CPATH="$root/lib/x86_64-linux-gnu/lua/5.1/?.so;;"
   export CMAKE_PREFIX_PATH="$root" CMAKE_LIBRARY_PATH="$root/lib/x86_64-linux-gnu" CMAKE_INCLUDE_PATH="$root/include:$root/include/x86_64-linux-gnu"
   busted="$root/bin/busted"
   blas="-DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu -DRL_BLAS=$root/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so -DRL_BLAS_INCLUDE=$root/include/x86_64-linux-gnu/openblas-openmp"
fi
# cuDNN and cuBLAS may be there only as Python packages.
site=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null || true)
for d in "$site"/nvidia/cudnn/lib "$site"/nvidia/cublas/lib "$site"/nvidia/cu13/lib; do
   [ -d "$d" ] && export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}:$d"
done
if part build; then
   cmake -S . -B build -DRL_DEV=ON ${blas:-} >"$out/cmake.log" 2>&1 || { tail -30 "$out/cmake.log"; exit 1; }
   cmake --build build -j "$(nproc)" >"$out/build.log" 2>&1 || { tail -30 "$out/build.log"; exit 1; }
fi
if [ -n "${3:-}" ]; then
   export RELUME_CACHE="${RELUME_CACHE:-/tmp/relume-cache}"
   mkdir -p "$RELUME_CACHE/v1"
   tar -xJf "$3" -C "$RELUME_CACHE/v1"
fi
run="luajit examples/bench/run.lua --device cuda"
small=mlp,lenet,vae,dqn,dlrm,charlstm,fuse
large=resnet18,gptmini,bert,unet,vit,gpt2,resnet50
part spec && luajit "$busted" -o TAP spec/cuda_spec.lua 2>&1 | tee "$out/spec.log" | grep -v '^ok' | tail -60
part ops && RELUME_DEVICE=cuda luajit "$busted" spec/ops_spec.lua >"$out/ops.log" 2>&1
part ops && tail -40 "$out/ops.log"
part check && command -v compute-sanitizer >/dev/null && compute-sanitizer luajit examples/bench/gpu.lua check 2>&1 | tail -5
part ops_time && luajit examples/bench/gpu.lua 2>&1 | tee "$out/gpu.txt"
part train && for mode in '' --compile; do luajit examples/mnist.lua --gpu --epochs 4 $mode 2>&1 | tail -3; done
part small && $run --prec tf32 --only "${SMALL:-$small}" --modes "${MODES:-eager,compile}" --steps 12 --warmup 4 --json "$out/small.json" 2>&1
part large && $run --prec bf16 --only "${LARGE:-$large}" --modes "${MODES:-eager,compile}" --steps 8 --warmup 4 --json "$out/large.json" 2>&1
if part peer; then
   python3 "${PEER:-../shared/bench/peer_torch.py}" --prec tf32 --only "${SMALL:-$small}" --modes "${PEER_MODES:-eager,graphs,wholec}" --steps 10 --budget 150 --json "$out/peer_small.json" 2>&1
   python3 "${PEER:-../shared/bench/peer_torch.py}" --prec bf16 --only "${LARGE:-$large}" --modes "${PEER_MODES:-eager,graphs,wholec}" --steps 8 --budget 200 --json "$out/peer_large.json" 2>&1
fi
exit 0
