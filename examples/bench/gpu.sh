#!/bin/sh
# On a machine with a GPU: builds, runs the CUDA specs, times a few eager ops, runs compute-sanitizer on a small program.
# sh examples/bench/gpu.sh [folder of .deb files to unpack under /tmp/debs when packages cannot be installed]
set -u
cd "$(dirname "$0")/../.."
if [ -n "${1:-}" ]; then
   for f in "$1"/*.deb; do dpkg -x "$f" /tmp/debs; done
   root=/tmp/debs/usr
   export PATH="$root/bin:$PATH" LD_LIBRARY_PATH="$root/lib/x86_64-linux-gnu/openblas-openmp:$root/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}"
   export LUA_PATH="$root/share/luajit-2.1.0-beta3/?.lua;$root/share/lua/5.1/?.lua;$root/share/lua/5.1/?/init.lua;;"
   export LUA_CPATH="$root/lib/x86_64-linux-gnu/lua/5.1/?.so;;"
   export CMAKE_PREFIX_PATH="$root" CMAKE_LIBRARY_PATH="$root/lib/x86_64-linux-gnu" CMAKE_INCLUDE_PATH="$root/include:$root/include/x86_64-linux-gnu"
   busted="$root/bin/busted"
fi
cmake -S . -B build -DRL_DEV=ON ${root:+-DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu -DRL_BLAS=$root/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so -DRL_BLAS_INCLUDE=$root/include/x86_64-linux-gnu/openblas-openmp} >/tmp/cmake.log 2>&1 || { tail -30 /tmp/cmake.log; exit 1; }
cmake --build build -j "$(nproc)" >/tmp/build.log 2>&1 || { tail -30 /tmp/build.log; exit 1; }
luajit "${busted:-/usr/bin/busted}" -o TAP spec/cuda_spec.lua 2>&1
luajit examples/bench/gpu.lua 2>&1
if command -v compute-sanitizer >/dev/null; then compute-sanitizer luajit examples/bench/gpu.lua check 2>&1 | tail -5; fi
