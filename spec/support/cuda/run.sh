#!/bin/sh
# Runs a command on the emulated GPU: sh spec/support/cuda/run.sh luajit ... (BUILD names the build folder). Builds the emulator when it is older.
set -e
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$here/../../.." && pwd)/${BUILD:-build}/emulator
mkdir -p "$out"
if [ ! -e "$out/libcuda.so.1" ] || [ "$here/driver.cc" -nt "$out/libcuda.so.1" ] || [ "$here/device.h" -nt "$out/device.h" ]; then
   g++ -std=c++17 -O2 -w -fPIC -shared -U_FORTIFY_SOURCE "$here/driver.cc" -o "$out/driver.$$" -ldl
   cp "$here/device.h" "$out/device.h"
   mv "$out/driver.$$" "$out/libcuda.so.1"
   ln -sf libcuda.so.1 "$out/libnvrtc.so.13"
   ln -sf libcuda.so.1 "$out/libcublasLt.so.13"
fi
if [ ! -e "$out/libcudnn.so.9" ] || [ "$here/cudnn.cc" -nt "$out/libcudnn.so.9" ]; then
   g++ -std=c++17 -O2 -w -fPIC -shared "$here/cudnn.cc" -o "$out/cudnn.$$"
   mv "$out/cudnn.$$" "$out/libcudnn.so.9"
fi
export LD_LIBRARY_PATH="$out:${LD_LIBRARY_PATH:-}" RELUME_CACHE="${RELUME_CACHE:-$out/cache}"
exec "$@"
