/* LoRALinear: its parameters, freezing, refusals. Its values and gradients are in test_nn.c
 * (against PyTorch) and test_golden.c (the published training). */
#include <string.h>

#include "runtime/lora.h"
#include "runtime/ops.h"
#include "tests/golden.h"
#include "tests/suite.h"

static struct rng rng;

static struct module *base_of(enum dtype dtype)
{
    return linear_new(40, 30, dtype, CPU, &rng);
}

START_TEST(parameters_in_pytorchs_order)
{
    SCOPE;
    static const char *const names[] = {"lora_A", "lora_B", "base.weight", "base.bias"};
    struct module *lora = lora_linear_new(base_of(FLOAT32), 5, 8);
    struct named_tensors *all = module_named_parameters(lora);
    ck_assert_int_eq(all->n, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(all->at[i].name, names[i]);
        ck_assert_int_eq(tensor_requires_grad(all->at[i].tensor), i < 2);
    }
    ck_assert_int_eq(lora_rank(lora), 5);
    ck_assert_double_eq(lora_alpha(lora), 8);
    ck_assert_ptr_eq(module_class_of(lora), &LoRALinear);
}
END_TEST

START_TEST(adapters_have_the_bases_dtype)
{
    SCOPE;
    const enum dtype dtype = _i ? FLOAT64 : FLOAT32;
    struct module *lora = lora_linear_new(base_of(dtype), 5, 8);
    struct tensor *a = module_parameter(lora, "lora_A"), *b = module_parameter(lora, "lora_B");
    ck_assert_int_eq(tensor_dtype(a), dtype);
    ck_assert_int_eq(tensor_dtype(b), dtype);
    ck_assert_str_eq(tensor_shape_name(a), "(5, 40)");
    ck_assert_str_eq(tensor_shape_name(b), "(30, 5)");
    check_close(b, tensor_zeros(SHAPE(30, 5), dtype, CPU), 0, 0, "lora_B");
}
END_TEST

START_TEST(a_is_normal_with_std_002)
{
    SCOPE;
    struct module *lora = lora_linear_new(base_of(FLOAT64), 100, 1);
    double values[100 * 40], squares = 0;
    ck_assert_int_eq(tensor_read(module_parameter(lora, "lora_A"), values), 0);
    for (int i = 0; i < 4000; i++)
        squares += values[i] * values[i];
    ck_assert_double_eq_tol(sqrt(squares / 4000), 0.02, 0.0012); /* five standard errors */
}
END_TEST

START_TEST(a_new_adapter_changes_nothing)
{
    SCOPE;
    struct module *base = base_of(FLOAT64);
    struct tensor *x = tensor_uniform_(tensor_empty(SHAPE(3, 40), FLOAT64, CPU), -1, 1, &rng);
    struct tensor *before = module_forward(base, x);
    check_close(module_forward(lora_linear_new(base, 2, 4), x), before, 0, 0, "output");
}
END_TEST

/* The update is B A scaled by alpha / rank: 3 / 2 here. */
START_TEST(scale_is_alpha_over_rank)
{
    SCOPE;
    struct module *base = linear_from(tensor_zeros(SHAPE(1, 1), FLOAT64, CPU), NULL);
    struct module *lora = lora_linear_new(base, 2, 3);
    NO_GRAD;
    tensor_fill_(module_parameter(lora, "lora_A"), 5);
    tensor_fill_(module_parameter(lora, "lora_B"), 7);
    struct tensor *y = module_forward(lora, tensor_full(SHAPE(1, 1), 1, FLOAT64, CPU));
    ck_assert_double_eq(tensor_item(y), 2 * 5 * 7 * 1.5);
}
END_TEST

START_TEST(the_base_gets_no_gradient)
{
    SCOPE;
    struct module *base = base_of(FLOAT32), *lora = lora_linear_new(base, 2, 4);
    struct tensor *x = tensor_full(SHAPE(2, 40), 1, FLOAT32, CPU);
    ck_assert_int_eq(tensor_backward(tensor_sum(module_forward(lora, x))), 0);
    ck_assert_ptr_null(tensor_grad(module_parameter(base, "weight")));
    ck_assert_ptr_null(tensor_grad(module_parameter(base, "bias")));
    ck_assert_ptr_nonnull(tensor_grad(module_parameter(lora, "lora_A")));
    ck_assert_ptr_nonnull(tensor_grad(module_parameter(lora, "lora_B")));
}
END_TEST

START_TEST(refusals_change_nothing)
{
    SCOPE;
    struct module *base = base_of(FLOAT32);
    const int ranks[] = {0, -1, -1000000};
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(lora_linear_new(base, ranks[i], 4));
        check_raised(&ValueError, "rank");
    }
    ck_assert(tensor_requires_grad(module_parameter(base, "weight")));
    struct module *others[] = {tanh_new(), sequential_new(MODULES(base)),
                               lora_linear_new(base_of(FLOAT32), 2, 4)};
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(lora_linear_new(others[i], 2, 4));
        check_raised(&ValueError, module_class_of(others[i])->name);
    }
    ck_assert(tensor_requires_grad(module_parameter(base, "weight")));
    ck_assert(tensor_requires_grad(module_parameter(others[2], "lora_A")));
    ck_assert_ptr_null(lora_linear_new(NULL, 0, 4));
    ck_assert(!error_occurred());
}
END_TEST

START_TEST(a_copy_keeps_rank_and_alpha)
{
    SCOPE;
    struct module *model = sequential_new(MODULES(lora_linear_new(base_of(FLOAT32), 3, 12)));
    struct module *copy = module_get(module_cast(model, FLOAT64), "0");
    ck_assert_int_eq(lora_rank(copy), 3);
    ck_assert_double_eq(lora_alpha(copy), 12);
    ck_assert(!tensor_requires_grad(module_parameter(module_child(copy, "base"), "weight")));
    ck_assert(tensor_requires_grad(module_parameter(copy, "lora_A")));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lora");
    TCase *tests = tcase_create("lora");
    rng_seed(&rng, 13);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, parameters_in_pytorchs_order);
    tcase_add_loop_test(tests, adapters_have_the_bases_dtype, 0, 2);
    tcase_add_test(tests, a_is_normal_with_std_002);
    tcase_add_test(tests, a_new_adapter_changes_nothing);
    tcase_add_test(tests, scale_is_alpha_over_rank);
    tcase_add_test(tests, the_base_gets_no_gradient);
    tcase_add_test(tests, refusals_change_nothing);
    tcase_add_test(tests, a_copy_keeps_rank_and_alpha);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
