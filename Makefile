# make            build ./grade
# make test       build and run the tests (TESTS="tensor dist" for some of them)
# make bench      measure, beside PyTorch and gloo
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

ifeq ($(VARIANT),clang)
CC := clang
else ifeq ($(origin CC),default)
CC := $(if $(filter Darwin,$(UNAME)),clang,gcc)
endif
CFLAGS ?= -O2 -g
SANITIZE_asan := -fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined
SANITIZE_tsan := -fsanitize=thread
SANITIZE := $(SANITIZE_$(VARIANT))
DEFINES_posix := -DPOSIX_ONLY

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

ALL_CFLAGS := -std=gnu17 -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Werror \
	-fno-omit-frame-pointer -pthread -MMD -MP -I. -DBUILD_FOLDER='"$B"' $(BLAS_CFLAGS) \
	$(shell $(PKG_CONFIG) --cflags $(PACKAGES)) $(DEFINES_$(VARIANT)) $(CFLAGS) $(SANITIZE)
LIBS := $(shell $(PKG_CONFIG) --libs $(PACKAGES)) $(BLAS_LIBS) $(LIBS_DL) -lm -pthread
CHECK_LIBS = $(shell $(PKG_CONFIG) --libs check)

RUNTIME := $(wildcard runtime/*.c runtime/cpu/*.c)
JUDGING := $(wildcard grading/*.c criteria/*.c)
SUPPLIED := $(wildcard criteria/supplied/*.c)
TEST_SOURCES := $(wildcard tests/test_*.c)
TEST_SCRIPTS := $(wildcard tests/*.sh tests/torch_*.py)
TESTS ?= $(TEST_SOURCES:tests/test_%.c=%) $(TEST_SCRIPTS:tests/%=%)

OBJECTS := $(patsubst %.c,$B/%.o,$(RUNTIME) $(JUDGING))
SUPPLIED_OBJECTS := $(SUPPLIED:%.c=$B/%.o)
TEST_PROGRAMS := $(TEST_SOURCES:%.c=$B/%)
BENCH_PROGRAMS := $(patsubst %.c,$B/%,$(wildcard tests/bench_*.c))

all: grade
	@command -v nvcc >/dev/null || echo "no CUDA toolkit (nvcc) here: built for the CPU"

# ./grade is the release build; grade finds its checkout from where the link leads.
grade: build/release/grade $(if $(filter release,$(VARIANT)),,$B/grade)
	@ln -sf build/release/grade grade
ifneq ($(VARIANT),release)
build/release/grade:
	$(MAKE) VARIANT=release build/release/grade
endif

$B/grade: $B/grade.o $(OBJECTS) $(SUPPLIED_OBJECTS)
	$(call say,LINK)$(CC) $(SANITIZE) $(EXPORT_SYMBOLS) -o $@ $B/grade.o $(OBJECTS) $(LIBS)

# Student code may call the runtime, and must not find the harness.
$(filter $B/grading/% $B/criteria/%,$(OBJECTS)) $B/grade.o: VISIBILITY := -fvisibility=hidden
$(filter $B/runtime/cpu/%,$(OBJECTS)): CFLAGS_EXTRA := -O3
$(SUPPLIED_OBJECTS): CFLAGS_EXTRA := -fPIC

$B/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) $(VISIBILITY) $(CFLAGS_EXTRA) -c -o $@ $<

$B/tests/%: $B/tests/%.o $(OBJECTS)
	$(call say,LINK)$(CC) $(SANITIZE) $(EXPORT_SYMBOLS) -o $@ $^ $(LIBS) $(CHECK_LIBS)

test: $B/grade $(patsubst %,$B/tests/test_%,$(filter-out %.sh %.py,$(TESTS)))
	@VARIANT=$(VARIANT) PYTHON=$(PYTHON) scripts/run_tests.sh $(TESTS)

bench: grade $(BENCH_PROGRAMS)
	@PYTHON=$(PYTHON) scripts/bench.sh

clean:
	rm -rf build grade

-include $(OBJECTS:.o=.d) $(SUPPLIED_OBJECTS:.o=.d) $(TEST_PROGRAMS:=.d) $B/grade.d
.PHONY: all test bench clean
.SECONDARY:
