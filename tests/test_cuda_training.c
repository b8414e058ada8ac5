/* What training asks of CUDA devices besides operations: copies between devices, a model's steps,
 * errors. Runs on simulated devices; with TEST_PLUGIN=build/release/cuda.so on real ones. */
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/optim.h"
#include "runtime/rng.h"
#include "runtime/scope.h"
#include "tests/device.h"
#include "tests/suite.h"
#include "tests/twin.h"

/* ---- between devices ---- */

START_TEST(transfer)
{
    static const int64_t sizes[] = {0, 1, 1000, 1 << 20, (1 << 20) + 1, 3 << 20, (5 << 20) + 7};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        SCOPE;
        struct tensor *x = tensor_empty(SHAPE(sizes[s]), dtypes[_i], CPU);
        unsigned char *bytes = tensor_data(x);
        size_t n = (size_t)sizes[s] * (size_t)dtype_size(dtypes[_i]);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)(i * 2654435761u >> 24);
        struct tensor *there = tensor_to(tensor_to(x, FIRST_DEVICE), LAST_DEVICE);
        struct tensor *back = tensor_to(tensor_to(there, FIRST_DEVICE), CPU);
        ck_assert_ptr_nonnull(back);
        ck_assert(device_equal(tensor_device(there), LAST_DEVICE));
        ck_assert_int_eq(memcmp(tensor_data(back), tensor_data(x), n), 0);
    }
}
END_TEST

/* A copy has what the source held when it was asked for, whatever happens to the source then. */
START_TEST(source_may_change_after_transfer)
{
    SCOPE;
    NO_GRAD;
    const struct shape shape = {2, {1000, 100}};
    struct tensor *x = tensor_to(drawn(&shape, FLOAT32), FIRST_DEVICE);
    struct tensor *expected = tensor_to(x, CPU);
    if (_i)
        gpu_table()->mark(x);
    struct tensor *copy = tensor_to(x, LAST_DEVICE);
    for (int i = 0; i < 3; i++)
        tensor_mul_(x, 3);
    struct tensor *changed = tensor_to(x, LAST_DEVICE);
    check_close((struct twin){expected, copy}, 0, 0, "the copy");
    check_close((struct twin){tensor_scale(expected, 27), changed}, ulps(FLOAT32, 3), 0,
                "the copy of what was changed, though marked before");
}
END_TEST

/* Memory goes while copies of it are under way, and comes back as other tensors. */
START_TEST(source_may_go_after_transfer)
{
    const struct shape shape = {2, {300, 100}};
    for (int round = 0; round < 50; round++) {
        SCOPE;
        struct twin x = twin_drawn(&shape, FLOAT32, PLAIN);
        struct tensor *sum = tensor_zeros(SHAPE(300, 100), FLOAT32, LAST_DEVICE);
        for (int i = 0; i < 4; i++) {
            SCOPE;
            NO_GRAD;
            tensor_add_(sum, tensor_to(tensor_scale(x.gpu, i), LAST_DEVICE), 1);
        }
        check_close((struct twin){tensor_scale(x.cpu, 6), sum}, ulps(FLOAT32, 4), 1, "sum");
    }
}
END_TEST

/* ---- all together ---- */

static struct tensor *weight(const struct shape *shape, struct device device)
{
    return tensor_set_requires_grad(tensor_to(drawn(shape, FLOAT32), device), true);
}

/* The loss after three steps of a small model in two halves. */
static double train(struct device first, struct device second)
{
    SCOPE;
    const struct shape w0 = {2, {7, 4}}, b0 = {1, {7}}, w1 = {2, {3, 7}}, rows = {2, {6, 4}};
    next_number = 0;
    struct tensor *p[] = {weight(&w0, first), weight(&b0, first), weight(&w1, second)};
    struct tensor *x = tensor_to(drawn(&rows, FLOAT32), first), *loss = NULL;
    for (int step = 0; step < 3; step++) {
        struct tensor *hidden = tensor_gelu(tensor_linear(x, p[0], p[1]));
        struct tensor *out = tensor_linear(tensor_to(hidden, second), p[2], NULL);
        loss = tensor_mean(tensor_square(out));
        ck_assert_int_eq(tensor_backward(loss), 0);
        NO_GRAD;
        for (int i = 0; i < 3; i++) {
            ck_assert_ptr_nonnull(tensor_add_(p[i], tensor_grad(p[i]), -0.01));
            tensor_set_grad(p[i], NULL);
        }
    }
    return tensor_item(loss);
}

START_TEST(training)
{
    double expected = train(CPU, CPU);
    ck_assert(expected > 0);
    ck_assert_double_eq_tol(train(FIRST_DEVICE, FIRST_DEVICE), expected, 1e-5 * expected);
    ck_assert_double_eq_tol(train(FIRST_DEVICE, LAST_DEVICE), expected, 1e-5 * expected);
    ck_assert_double_eq_tol(train(LAST_DEVICE, CPU), expected, 1e-5 * expected);
}
END_TEST

/* Many parameters, on devices in turn, some without gradient. */
START_TEST(optimizer)
{
    enum { LAYERS = 100, RUN = 40 };
    SCOPE;
    struct rng rng;
    rng_seed(&rng, 1);
    struct module *layers[LAYERS], *twins[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        enum dtype dtype = i % 30 == 29 ? FLOAT64 : FLOAT32;
        twins[i] = linear_new(3 + i % 5, 4, dtype, CPU, &rng);
        layers[i] = module_to(module_copy(twins[i]), i / RUN % 2 ? LAST_DEVICE : FIRST_DEVICE);
    }
    struct module *cpu = sequential_new(LAYERS, twins), *gpu = sequential_new(LAYERS, layers);
    struct named_tensors *p = module_named_parameters(cpu), *q = module_named_parameters(gpu);
    for (int i = 0; i < p->n; i++) {
        struct tensor *x = p->at[i].tensor;
        struct tensor *grad = tensor_uniform_(tensor_detach(tensor_clone(x)), -1, 1, &rng);
        if (i % 17 == 16)
            continue;
        tensor_set_grad(x, grad);
        tensor_set_grad(q->at[i].tensor, tensor_to(grad, tensor_device(q->at[i].tensor)));
    }
    ck_assert_int_eq(optimizer_step(sgd_new(cpu, 0.3)), 0);
    ck_assert_int_eq(optimizer_step(sgd_new(gpu, 0.3)), 0);
    for (int i = 0; i < p->n; i++)
        check_close((struct twin){p->at[i].tensor, q->at[i].tensor}, ulps(FLOAT32, 2), 1,
                    p->at[i].name);
}
END_TEST

/* ---- errors ---- */

START_TEST(a_device_that_is_not_there)
{
    SCOPE;
    ck_assert_ptr_null(tensor_zeros(SHAPE(1), FLOAT32, CUDA(device_count())));
    ck_assert(error_is(&RuntimeError));
    ck_assert_str_eq(error_message(error_pending()),
                     scope_printf("there is no device cuda:%d here", device_count()));
}
END_TEST

START_TEST(more_memory_than_there_is)
{
    SCOPE;
    ck_assert_ptr_null(tensor_empty(SHAPE((int64_t)1 << 50), FLOAT32, FIRST_DEVICE));
    ck_assert(error_is(&MemoryError));
    ck_assert_ptr_nonnull(strstr(error_message(error_pending()), "cudaErrorMemoryAllocation: "));
    error_clear();
    struct tensor *x = tensor_full(SHAPE(4), 1.5, FLOAT32, FIRST_DEVICE);
    ck_assert_double_eq(tensor_item(tensor_sum(x)), 6); /* the device still works */
}
END_TEST

START_TEST(operands_on_two_devices)
{
    SCOPE;
    struct tensor *x = tensor_zeros(SHAPE(2), FLOAT32, FIRST_DEVICE);
    ck_assert_ptr_null(tensor_add(x, tensor_zeros(SHAPE(2), FLOAT32, CPU)));
    ck_assert(error_is(&RuntimeError));
    ck_assert_str_eq(error_message(error_pending()),
                     "tensor_add of tensors on cuda:0 and cpu: move one with tensor_to");
}
END_TEST

int main(void)
{
    draw_numbers();
    Suite *suite = suite_create("cuda_training");
    TCase *tests = tcase_create("cuda_training");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, device_load, NULL);
    tcase_add_loop_test(tests, transfer, 0, DTYPES);
    tcase_add_loop_test(tests, source_may_change_after_transfer, 0, 2);
    tcase_add_test(tests, source_may_go_after_transfer);
    tcase_add_test(tests, training);
    tcase_add_test(tests, optimizer);
    tcase_add_test(tests, a_device_that_is_not_there);
    tcase_add_test(tests, more_memory_than_there_is);
    tcase_add_test(tests, operands_on_two_devices);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
