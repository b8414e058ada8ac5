/* SGD: what it updates, what it leaves alone, and by how much. */
#include "runtime/ops.h"
#include "runtime/optim.h"
#include "tests/golden.h"
#include "tests/suite.h"

static struct rng rng;

static struct module *model_of(enum dtype dtype)
{
    return sequential_new(
        MODULES(linear_new(3, 4, dtype, CPU, &rng), linear_new(4, 2, dtype, CPU, &rng)));
}

static void backward(struct module *model, enum dtype dtype)
{
    struct tensor *x = tensor_full(SHAPE(2, 3), 0.5, dtype, CPU);
    ck_assert_int_eq(tensor_backward(tensor_mean(tensor_square(module_forward(model, x)))), 0);
}

START_TEST(step_subtracts_lr_times_gradient)
{
    SCOPE;
    const enum dtype dtype = _i ? FLOAT64 : FLOAT32;
    const double tolerance = dtype == FLOAT64 ? 1e-15 : 1e-7;
    struct module *model = model_of(dtype), *before = module_copy(model);
    struct optimizer *sgd = sgd_new(model, 0.3);
    backward(model, dtype);
    ck_assert_int_eq(optimizer_step(sgd), 0);
    struct named_tensors *now = module_named_parameters(model),
                         *was = module_named_parameters(before);
    NO_GRAD;
    for (int i = 0; i < now->n; i++) {
        struct tensor *moved = tensor_scale(tensor_grad(now->at[i].tensor), -0.3);
        ck_assert_double_gt(tensor_item(tensor_sum(tensor_square(moved))), 0);
        check_close(now->at[i].tensor, tensor_add(was->at[i].tensor, moved), 0, tolerance,
                    now->at[i].name);
    }
    ck_assert_int_eq(optimizer_steps(sgd), 1);
}
END_TEST

START_TEST(steps_count_and_lr)
{
    SCOPE;
    struct module *model = model_of(FLOAT32);
    struct optimizer *sgd = sgd_new(model, 0.25);
    ck_assert_double_eq(optimizer_lr(sgd), 0.25);
    ck_assert_int_eq(optimizer_steps(sgd), 0);
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(optimizer_step(sgd), 0);
        ck_assert_int_eq(optimizer_steps(sgd), i);
    }
}
END_TEST

START_TEST(without_gradient_nothing_moves)
{
    SCOPE;
    struct module *model = model_of(FLOAT64), *before = module_copy(model);
    struct optimizer *sgd = sgd_new(model, 0.3);
    backward(model, FLOAT64);
    tensor_set_grad(module_parameter(module_get(model, "1"), "bias"), NULL);
    ck_assert_int_eq(optimizer_step(sgd), 0);
    check_close(module_parameter(module_get(model, "1"), "bias"),
                module_parameter(module_get(before, "1"), "bias"), 0, 0, "bias");
    ck_assert_ptr_null(tensor_grad(module_parameter(module_get(model, "1"), "bias")));
    optimizer_zero_grad(sgd);
    struct module *once = module_copy(model);
    ck_assert_int_eq(optimizer_step(sgd), 0);
    check_close(module_parameter(module_get(model, "0"), "weight"),
                module_parameter(module_get(once, "0"), "weight"), 0, 0, "weight");
}
END_TEST

START_TEST(only_what_requires_grad_is_taken)
{
    SCOPE;
    struct module *model = model_of(FLOAT32);
    module_set_requires_grad(module_get(model, "0"), false);
    const struct tensors *taken = optimizer_parameters(sgd_new(model, 1));
    ck_assert_int_eq(taken->n, 2);
    ck_assert_ptr_eq(taken->at[0], module_parameter(module_get(model, "1"), "weight"));
    ck_assert_ptr_eq(taken->at[1], module_parameter(module_get(model, "1"), "bias"));
    module_set_requires_grad(model, false);
    ck_assert_int_eq(optimizer_parameters(sgd_new(model, 1))->n, 0);
}
END_TEST

START_TEST(a_shared_parameter_is_updated_once)
{
    SCOPE;
    struct module *one = linear_new(2, 2, FLOAT64, CPU, &rng);
    struct module *model = sequential_new(MODULES(one, one));
    ck_assert_int_eq(optimizer_parameters(sgd_new(model, 1))->n, 2);
}
END_TEST

START_TEST(the_optimizer_holds_its_parameters)
{
    SCOPE;
    struct module *model = sequential_new(MODULES(tanh_new()));
    {
        SCOPE;
        struct tensor *weight = tensor_full(SHAPE(1, 1), 2, FLOAT64, CPU);
        module_replace(model, "0", linear_from(weight, NULL));
        ck_assert_int_eq(tensor_backward(tensor_sum(weight)), 0);
    }
    struct optimizer *sgd = sgd_new(model, 0.5);
    module_replace(model, "0", tanh_new()); /* now nothing else holds the weight */
    ck_assert_int_eq(optimizer_step(sgd), 0);
    ck_assert_double_eq(tensor_item(optimizer_parameters(sgd)->at[0]), 1.5);
}
END_TEST

START_TEST(zero_grad_sets_to_none)
{
    SCOPE;
    struct module *model = model_of(FLOAT32);
    struct optimizer *sgd = sgd_new(model, 0.1);
    backward(model, FLOAT32);
    ck_assert_ptr_nonnull(tensor_grad(optimizer_parameters(sgd)->at[0]));
    optimizer_zero_grad(sgd);
    for (int i = 0; i < optimizer_parameters(sgd)->n; i++)
        ck_assert_ptr_null(tensor_grad(optimizer_parameters(sgd)->at[i]));
}
END_TEST

START_TEST(bad_learning_rates)
{
    SCOPE;
    const double rates[] = {-0.1, NAN, INFINITY, -INFINITY};
    ck_assert_ptr_null(sgd_new(model_of(FLOAT32), rates[_i]));
    check_raised(&ValueError, "learning rate");
    ck_assert_ptr_nonnull(sgd_new(model_of(FLOAT32), 0));
}
END_TEST

START_TEST(null_passes_through)
{
    SCOPE;
    ck_assert_ptr_null(sgd_new(NULL, 0.1));
    ck_assert_int_eq(optimizer_step(NULL), -1);
    optimizer_zero_grad(NULL);
    ck_assert(!error_occurred());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("optim");
    TCase *tests = tcase_create("sgd");
    rng_seed(&rng, 11);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, step_subtracts_lr_times_gradient, 0, 2);
    tcase_add_test(tests, steps_count_and_lr);
    tcase_add_test(tests, without_gradient_nothing_moves);
    tcase_add_test(tests, only_what_requires_grad_is_taken);
    tcase_add_test(tests, a_shared_parameter_is_updated_once);
    tcase_add_test(tests, the_optimizer_holds_its_parameters);
    tcase_add_test(tests, zero_grad_sets_to_none);
    tcase_add_loop_test(tests, bad_learning_rates, 0, 4);
    tcase_add_test(tests, null_passes_through);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
