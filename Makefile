# make            build ./grade
# make test       build and run the tests (TESTS="tensor dist" for some of them)
# make bench      measure, beside PyTorch and gloo
# make cuda-check does the CUDA device build, for the installed toolkit and for V100s? Needs no GPU
# make bank       grade the bank of submissions (BANK="--device sim 'forward_*'" for some of them)
# make fuzz       fuzz what reads untrusted bytes, each target for SECONDS=60 (FUZZ="pt zip": some)
# make clean      remove what was built
#
# VARIANT=asan|tsan|clang|posix ...   with sanitizers, with clang, without what only Linux has
# V=1 ...                             show the commands
#
# One Makefile, not recursive. Every variant has a build folder of its own.

VARIANT ?= release
B := build/$(VARIANT)
UNAME := $(shell uname -s)
PYTHON ?= $(or $(wildcard /usr/bin/python3),python3)
comma := ,
say = $(if $(V),,@printf '  %-5s %s\n' $1 $@ &&)

ifeq ($(filter release asan tsan clang posix fuzz,$(VARIANT)),)
$(error VARIANT=$(VARIANT): must be release, asan, tsan, clang, posix or fuzz)
endif

ifneq ($(filter clang fuzz,$(VARIANT)),)
CC := clang
else ifeq ($(origin CC),default)
CC := $(if $(filter Darwin,$(UNAME)),clang,gcc)
endif
CFLAGS ?= $(if $(filter fuzz,$(VARIANT)),-O1,-O2) -g
SANITIZE_asan := -fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined
SANITIZE_tsan := -fsanitize=thread
SANITIZE_fuzz := -fsanitize=fuzzer-no-link$(comma)address$(comma)undefined -fno-sanitize-recover=undefined
SANITIZE := $(SANITIZE_$(VARIANT))
DEFINES_posix := -DPOSIX_ONLY
DEFINES_fuzz := -DFUZZING

PKG_CONFIG := pkg-config
PACKAGES := jansson libzip nettle
ifeq ($(UNAME),Darwin)
PKG_CONFIG := PKG_CONFIG_PATH="$(shell brew --prefix)/lib/pkgconfig:$$PKG_CONFIG_PATH" pkg-config
BLAS_CFLAGS := -DUSE_ACCELERATE -DACCELERATE_NEW_LAPACK
BLAS_LIBS := -framework Accelerate
EXPORT_SYMBOLS := -Wl,-export_dynamic
else
PACKAGES += openblas $(if $(filter Linux,$(UNAME)),libseccomp)
LIBS_DL := -ldl
EXPORT_SYMBOLS := -rdynamic
endif

ifneq ($(MAKECMDGOALS),clean)
ifneq ($(shell $(PKG_CONFIG) --print-errors --exists $(PACKAGES) && echo found),found)
$(error something to build with is missing: scripts/install_deps.sh installs it)
endif
endif

# gcc before 11 misses fields where the last initializer is a designated one.
ALL_CFLAGS := -std=gnu17 -Wall -Wextra -Wno-missing-field-initializers -Wstrict-prototypes -Wmissing-prototypes -Werror \
	-fno-omit-frame-pointer -pthread -MMD -MP -I. -DBUILD_FOLDER='"$B"' \
	-DSTUDENT_CFLAGS='"$(strip $(shell $(PKG_CONFIG) --cflags jansson))"' $(BLAS_CFLAGS) \
	$(shell $(PKG_CONFIG) --cflags $(PACKAGES)) $(DEFINES_$(VARIANT)) $(CFLAGS) $(SANITIZE)
LIBS := $(shell $(PKG_CONFIG) --libs $(PACKAGES)) $(BLAS_LIBS) $(LIBS_DL) -lm -pthread
SHARED := $(if $(filter Darwin,$(UNAME)),-dynamiclib -undefined dynamic_lookup,-shared)
# Where a floating-point operation may trap, gcc makes branches of selections, and no vectors.
KERNEL_CFLAGS := -O3 -fno-trapping-math
PLUGIN_CFLAGS := $(KERNEL_CFLAGS) -fPIC -fvisibility=hidden
SIM_CFLAGS := $(PLUGIN_CFLAGS) -DSIMULATED -Iruntime/sim/include
CHECK_LIBS = $(shell $(PKG_CONFIG) --libs check)

RUNTIME := $(wildcard runtime/*.c runtime/cpu/*.c)
JUDGING := $(wildcard grading/*.c criteria/*.c)
SUPPLIED := $(wildcard criteria/supplied/*.c)
# What preloads a library of its own cannot be combined with sanitizers; its faults are of Linux.
PRELOADING := $(if $(filter-out release clang posix,$(VARIANT))$(filter-out Linux,$(UNAME)),tests/test_faults.c)
TEST_SOURCES := $(filter-out $(PRELOADING),$(wildcard tests/test_*.c))
TEST_SCRIPTS := $(wildcard tests/*.sh tests/torch_*.py)
TESTS ?= $(TEST_SOURCES:tests/test_%.c=%) $(TEST_SCRIPTS:tests/%=%)

OBJECTS := $(patsubst %.c,$B/%.o,$(RUNTIME) $(JUDGING))
SUPPLIED_OBJECTS := $(SUPPLIED:%.c=$B/%.o)
BENCH_PROGRAMS := $(patsubst %.c,$B/%,$(wildcard tests/bench_*.c))

# Devices that are loaded on demand. sim.so is made of the same files as cuda.so, the kernels
# compiled as C, and of a CUDA runtime that simulates two GPUs.
CUDA := $(wildcard runtime/cuda/*.c runtime/cuda/*.cu)
SIM_OBJECTS := $(patsubst %,$B/sim/%.o,$(basename $(CUDA) $(wildcard runtime/sim/*.c)))
CUDA_OBJECTS := $(patsubst %,$B/cuda/%.o,$(basename $(CUDA)))
NVCC ?= $(shell command -v nvcc)
CUDA_HOME ?= $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
CUDA_FOUND := $(and $(NVCC),$(wildcard $(CUDA_HOME)/include/cublas_v2.h))
CUDA_ARCHS = $(filter $(shell $(NVCC) --list-gpu-arch),compute_70 compute_75 compute_80 compute_90)
GENCODE = $(foreach a,$(CUDA_ARCHS),-gencode arch=$a$(comma)code=$(a:compute_%=sm_%)) \
	-gencode arch=$(lastword $(CUDA_ARCHS))$(comma)code=$(lastword $(CUDA_ARCHS))
PLUGINS := $B/sim.so $(if $(CUDA_FOUND),$(if $(filter release,$(VARIANT)),$B/cuda.so))

all: grade
	@$(if $(CUDA_FOUND),:,echo "no CUDA toolkit (nvcc, cuBLAS) here: built for the CPU and simulated GPUs")

# ./grade is the release build; grade finds its checkout from where the link leads. Phony, because the
# link does not grow old by a variant that is not built yet: to make, all files are .SECONDARY.
grade: build/release/grade $(PLUGINS) $(if $(filter release,$(VARIANT)),,$B/grade)
	@ln -sf build/release/grade grade
ifneq ($(VARIANT),release)
build/release/grade:
	$(MAKE) VARIANT=release build/release/grade
endif

$B/grade: $B/grade.o $(OBJECTS) $(SUPPLIED_OBJECTS)
	$(call say,LINK)$(CC) $(SANITIZE) $(EXPORT_SYMBOLS) -o $@ $B/grade.o $(OBJECTS) $(LIBS)

# Student code may call the runtime, and must not find the harness.
$(filter $B/grading/% $B/criteria/%,$(OBJECTS)) $B/grade.o: VISIBILITY := -fvisibility=hidden
$(filter $B/runtime/cpu/%,$(OBJECTS)): CFLAGS_EXTRA := $(KERNEL_CFLAGS)
$(SUPPLIED_OBJECTS): CFLAGS_EXTRA := -fPIC

$B/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) $(VISIBILITY) $(CFLAGS_EXTRA) -c -o $@ $<

$B/sim/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) $(SIM_CFLAGS) -c -o $@ $<

$B/sim/%.o: %.cu Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) $(SIM_CFLAGS) -x c -c -o $@ $<

$B/sim.so: $(SIM_OBJECTS)
	$(call say,LINK)$(CC) $(SANITIZE) $(SHARED) -o $@ $^ $(LIBS)

$B/cuda/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) $(PLUGIN_CFLAGS) -isystem $(CUDA_HOME)/include -c -o $@ $<

$B/cuda/%.o: %.cu Makefile
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) -std=c++17 -O3 $(GENCODE) -I. -MMD -MP -c -o $@ $< \
		-Xcompiler -Wall,-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-threadsafe-statics

$B/cuda.so: $(CUDA_OBJECTS)
	$(call say,LINK)$(CC) $(SHARED) -o $@ $^ -L$(CUDA_HOME)/lib64 -Wl,-rpath,$(CUDA_HOME)/lib64 \
		-lcublas -lcudart $(LIBS_DL) -lm -pthread

$B/tests/%: $B/tests/%.o $(OBJECTS) | $(PLUGINS)
	$(call say,LINK)$(CC) $(SANITIZE) $(EXPORT_SYMBOLS) -o $@ $^ $(LIBS) $(CHECK_LIBS)

# These call the simulated CUDA runtime itself.
SIM_TESTS := $(patsubst %,$B/tests/test_%,sim_memory sim_time sim_libraries)
$(SIM_TESTS): $(filter $B/sim/runtime/sim/%,$(SIM_OBJECTS))
$(SIM_TESTS:=.o): CFLAGS_EXTRA := -Iruntime/sim/include

# What is preloaded into grade to make its calls fail.
$B/tests/faults.so: $B/tests/faults/interpose.o
	$(call say,LINK)$(CC) -shared -o $@ $^ $(LIBS_DL)
$B/tests/faults/%.o: CFLAGS_EXTRA := -fPIC
$B/tests/test_faults: | $B/tests/faults.so

# What the GPUs' test loads in place of the machine's CUDA driver.
ifeq ($(UNAME),Linux)
$B/tests/libcuda.so.1: $B/tests/faults/driver.o
	$(call say,LINK)$(CC) $(SANITIZE) -shared -Wl,-soname,libcuda.so.1 -o $@ $^
$B/tests/test_gpus: | $B/tests/libcuda.so.1
endif

# Fuzz targets: each a program with libFuzzer, and all of them in the test that replays the corpora.
FUZZ_TARGETS := $(patsubst %.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ ?= $(FUZZ_TARGETS:tests/fuzz/fuzz_%=%)
SECONDS ?= 60
$B/tests/test_corpus: $(FUZZ_TARGETS:%=$B/%.o)
$B/tests/fuzz/%: $B/tests/fuzz/%.o $(OBJECTS)
	$(call say,LINK)$(CC) $(SANITIZE) -fsanitize=fuzzer -o $@ $^ $(LIBS)

test: $B/grade $(PLUGINS) $B/tests/srun_rank $(patsubst %,$B/tests/test_%,$(filter-out %.sh %.py,$(TESTS)))
	@VARIANT=$(VARIANT) PYTHON=$(PYTHON) scripts/run_tests.sh $(TESTS)

bench: grade $(BENCH_PROGRAMS)
	@PYTHON=$(PYTHON) scripts/bench.sh

cuda-check:
	@PYTHON=$(PYTHON) CC=$(CC) CUDA_HOME=$(CUDA_HOME) NVCC=$(NVCC) scripts/cuda_check.sh

bank: grade
	@$(PYTHON) tests/bank/run.py $(BANK)

fuzz:
	@$(MAKE) VARIANT=fuzz $(FUZZ:%=build/fuzz/tests/fuzz/fuzz_%)
	@scripts/fuzz.sh $(SECONDS) $(FUZZ)

clean:
	rm -rf build grade

-include $(shell find $B -name '*.d' 2>/dev/null)
.PHONY: all grade test bench cuda-check bank fuzz clean
.SECONDARY:
