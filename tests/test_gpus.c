/* test_gpus.c - the GPUs that are found, and which criteria are blocked without them */
#include "grading/gpus.h"

#include <check.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "grading/home.h"
#include "grading/rubric.h"
#include "runtime/error.h"
#include "runtime/plugin.h"
#include "runtime/scope.h"
#include "tests/suite.h"

#define V100 "Tesla V100-SXM2-16GB"

static const struct {
    const char *device;
    struct gpus gpus;
    enum needs needs;
    const char *reason;
} blocks[] = {
    {"cpu", {0}, NEEDS_NOTHING, NULL},
    {"cpu", {0}, NEEDS_TWO_GPUS, "needs two GPUs; this run is on the CPU"},
    {"cpu", {0}, NEEDS_TWO_V100S, "needs two V100 GPUs; this run is on the CPU"},
    {"cuda",
     {.reason = "libcuda.so.1 not found"},
     NEEDS_NOTHING,
     "needs two GPUs: libcuda.so.1 not found"},
    {"cuda", {0}, NEEDS_TWO_GPUS, "needs two GPUs: 0 found"},
    {"cuda",
     {.count = 1, .names = {"NVIDIA H200"}},
     NEEDS_NOTHING,
     "needs two GPUs: 1 found, NVIDIA H200"},
    {"cuda",
     {.count = 2, .names = {V100, V100}, .no_device = "libcublas.so.12: cannot open it"},
     NEEDS_NOTHING,
     "libcublas.so.12: cannot open it"},
    {"cuda", {.count = 2, .names = {V100, V100}}, NEEDS_TWO_V100S, NULL},
    {"cuda",
     {.count = 2, .names = {V100, "NVIDIA H200"}},
     NEEDS_TWO_V100S,
     "needs two V100 GPUs: found " V100 " and NVIDIA H200"},
    {"cuda", {.count = 2, .names = {"A100", "A100"}, .no_nccl = "absent"}, NEEDS_TWO_GPUS, NULL},
    {"cuda",
     {.count = 2, .names = {V100, V100}, .no_nccl = "libnccl.so.2: cannot open it"},
     NEEDS_TWO_V100S,
     "needs NCCL: libnccl.so.2: cannot open it"},
    {"sim", {.count = 2, .simulated = true}, NEEDS_TWO_V100S, NULL},
};

/* A speedup of ranks, where V100s are needed. */
START_TEST(test_blocks)
{
    const struct criterion criterion = {.id = "x",
                                        .needs = blocks[_i].needs,
                                        .speedup = blocks[_i].needs == NEEDS_TWO_V100S,
                                        .worlds = {2}};
    char *reason = gpus_block(&blocks[_i].gpus, blocks[_i].device, &criterion);
    ck_assert_pstr_eq(reason, blocks[_i].reason);
    free(reason);
}
END_TEST

/* The probe answers on every machine, and its answer is consistent. */
START_TEST(test_probe)
{
    struct gpus gpus;
    gpus_probe(&gpus);
    ck_assert_int_ge(gpus.count, 0);
    ck_assert_int_le(gpus.count, GPUS_MAX);
    ck_assert(gpus.count == 0 || gpus.reason[0] == '\0');
    for (int i = 0; i < gpus.count; i++)
        ck_assert_str_ne(gpus.names[i], "");
}
END_TEST

static const struct {
    const char *code, *reason;
} driver_errors[] = {
    {"100", "no GPU is visible to the CUDA driver"},
    {"999", "the CUDA driver gives CUDA_ERROR_UNKNOWN"},
    {"12345", "the CUDA driver gives error 12345"},
};

/* A library that is loaded already is found by its soname, before the machine's own. */
START_TEST(test_driver_errors)
{
    SCOPE;
    char *home = home_find();
    const char *path = scope_printf("%s/" BUILD_FOLDER "/tests/libcuda.so.1", home);
    free(home);
    if (access(path, R_OK) < 0) /* it is built on Linux */
        return;
    ck_assert_msg(dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL, "%s", dlerror());
    setenv("DRIVER_ERROR", driver_errors[_i].code, 1);
    struct gpus gpus;
    gpus_probe(&gpus);
    ck_assert_str_eq(gpus.reason, driver_errors[_i].reason);
    ck_assert_int_eq(gpus.count, 0);
}
END_TEST

/* What was built can be loaded, on machines without a driver too. */
START_TEST(test_cuda_device)
{
    SCOPE;
    char *home = home_find();
    const char *path = scope_printf("%s/" BUILD_FOLDER "/cuda.so", home);
    free(home);
    if (access(path, R_OK) < 0)
        return;
    ck_assert_msg(plugin_load(path) == 0, "%s",
                  error_occurred() ? error_message(error_pending()) : "");
    ck_assert_str_eq(plugin_current()->name, "cuda");
    ck_assert_int_ge(plugin_current()->toolkit, 12000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpus");
    TCase *test = tcase_create("gpus");
    tcase_set_timeout(test, 60);
    tcase_add_loop_test(test, test_blocks, 0, sizeof blocks / sizeof *blocks);
    tcase_add_test(test, test_probe);
    tcase_add_loop_test(test, test_driver_errors, 0, sizeof driver_errors / sizeof *driver_errors);
    tcase_add_test(test, test_cuda_device);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
