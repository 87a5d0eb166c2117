# Relume: a thin front over CMake. `make demo` and `make test` work on a fresh Debian with nothing but make installed.
#   all    builds into build/          setup  installs what is missing (Debian, Ubuntu) or says what to install
#   demo   trains lenet, eager and compiled                 test   runs every spec
#   check  AddressSanitizer + UBSan build and core specs    lint   luacheck, clang-format, the op table's own lint
#   replay prints how this branch changes generated kernels bench  the benchmark workloads
#   format clang-format in place
#   docs   writes doc/*.md from the tables                 size   counts lines and bytes
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
SPECS ?= spec
CMAKEFLAGS ?=
GENERATOR = $(if $(shell command -v ninja),-G Ninja)
BUSTED = BUILD=$(BUILD) busted
CHECK_SPECS ?= $(wildcard spec/autograd_spec.lua spec/bind_*_spec.lua spec/formats_spec.lua spec/graph_*_spec.lua spec/jit_*_spec.lua spec/ops_spec.lua)

all: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/CMakeCache.txt: CMakeLists.txt
	@cmake -S . -B $(BUILD) $(GENERATOR) $(CMAKEFLAGS)

setup:
	@sh .ci/setup build

demo: setup all
	luajit examples/mnist.lua --model lenet --epochs 4 --batch 64 --lr 0.05
	luajit examples/mnist.lua --model lenet --epochs 4 --batch 64 --lr 0.05 --compile

test: setup all
	@$(BUSTED) $(SPECS)

# LuaJIT keeps its own memory until exit and jumps over frames, so leak checking stays off.
check: setup
	@$(MAKE) -s all BUILD=build-asan CMAKEFLAGS="-DRL_DEV=ON -DRL_ASAN=ON"
	@BUILD=build-asan RELUME_CHECK=1 LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
	  OMP_NUM_THREADS=2 busted $(CHECK_SPECS)

lint:
	@sh .ci/setup lint
	@luacheck -q .
	@git ls-files '*.c' '*.h' '*.cuh' '*.cu' | xargs -r clang-format --dry-run --Werror
	@luajit lib/gen/lint.lua
	@echo lint: clean

format:
	@git ls-files '*.c' '*.h' '*.cuh' '*.cu' | xargs -r clang-format -i

replay: all
	@luajit examples/bench/replay.lua

bench: setup all
	luajit examples/bench/run.lua --modes eager,compile

docs:
	@luajit lib/gen/docs.lua doc/ops.md
	@luajit lib/gen/primitives.lua doc/primitives.md
	@luajit lib/gen/breaks.lua doc/breaks.md

size:
	@for d in lib kernels jit lua spec examples; do \
	  printf '%-9s %6d lines in %d files\n' $$d $$(git ls-files $$d | grep -vE '\.(gz|t7)$$' | xargs cat | wc -l) $$(git ls-files $$d | wc -l); done
	@ls -l $(BUILD)/*.so $(BUILD)/relume/*.so 2>/dev/null | awk '{printf "%-28s %6.2f MB\n", $$NF, $$5 / 1048576}'

clean:
	rm -rf build build-asan build.luarocks

.PHONY: all setup demo test check lint replay bench docs size clean format
