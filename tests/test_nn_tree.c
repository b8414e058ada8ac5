/* Modules as a tree: names, replacement, lifetimes, flags, copies; lists of their tensors. */
#include <string.h>

#include "tests/golden.h"
#include "tests/modules.h"
#include "tests/suite.h"

/* ---- the tree ---- */

START_TEST(bad_names)
{
    SCOPE;
    const char *names[] = {"", "a.b", ".", "taken", "0"};
    struct module *module = tanh_new();
    module_add_parameter(module, "taken", tensor_zeros(SHAPE(1), FLOAT32, CPU));
    module_add_child(module, "0", tanh_new());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_int_eq(module_add_child(module, names[i], tanh_new()), -1);
        check_raised(&ValueError, names[i]);
        ck_assert_int_eq(
            module_add_parameter(module, names[i], tensor_zeros(SHAPE(1), FLOAT32, CPU)), -1);
        check_raised(&ValueError, names[i]);
    }
    ck_assert_int_eq(module_child_count(module), 1);
}
END_TEST

START_TEST(get_by_dotted_name)
{
    SCOPE;
    struct module *model = nested();
    ck_assert_ptr_eq(module_get(model, ""), model);
    ck_assert_ptr_eq(module_get(model, "0.1"), module_child(module_child(model, "0"), "1"));
    ck_assert_ptr_eq(module_class_of(module_get(model, "0.1")), &GELU);
    const char *wrong[] = {"2", "0.2", "0.", ".0", "0..1", "0.1.0", "weight", "0.0.weight", "."};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_ptr_null(module_get(model, wrong[i]));
        ck_assert_ptr_nonnull(strstr(error_message(error_pending()), wrong[i]));
        check_raised(&ValueError, wrong[i]);
    }
    ck_assert_ptr_null(module_child(model, "none"));
    ck_assert_ptr_null(module_parameter(model, "none"));
    ck_assert(!error_occurred());
}
END_TEST

START_TEST(replacement_keeps_the_order)
{
    SCOPE;
    struct module *model = nested(), *replacement = relu_new();
    ck_assert_int_eq(module_replace(model, "0.1", replacement), 0);
    ck_assert_ptr_eq(module_get(model, "0.1"), replacement);
    ck_assert_int_eq(module_replace(model, "0", tanh_new()), 0);
    ck_assert_ptr_eq(module_class_of(module_child_at(model, 0)), &Tanh);
    ck_assert_ptr_eq(module_class_of(module_child_at(model, 1)), &Linear);
    struct named_tensors *left = module_named_parameters(model);
    ck_assert_int_eq(left->n, 2);
    ck_assert_str_eq(left->at[0].name, "1.weight");
    const char *wrong[] = {"", "7", "1.weight"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(module_replace(model, wrong[i], relu_new()), -1);
        check_raised(&ValueError, wrong[i]);
    }
}
END_TEST

START_TEST(a_module_may_be_put_around_the_one_it_replaces)
{
    SCOPE;
    struct module *model = nested(), *former = module_get(model, "0");
    ck_assert_int_eq(module_replace(model, "0", sequential_new(MODULES(former))), 0);
    ck_assert_ptr_eq(module_get(model, "0.0"), former);
    ck_assert_ptr_nonnull(module_get(model, "0.0.1"));
}
END_TEST

START_TEST(no_module_inside_itself)
{
    SCOPE;
    struct module *model = nested(), *inner = module_get(model, "0");
    ck_assert_int_eq(module_add_child(inner, "2", model), -1);
    check_raised(&ValueError, "parent into child");
    ck_assert_int_eq(module_add_child(model, "2", model), -1);
    check_raised(&ValueError, "itself");
    ck_assert_int_eq(module_replace(model, "0.1", inner), -1);
    check_raised(&ValueError, "by its parent");
    ck_assert_ptr_eq(module_class_of(module_get(model, "0.1")), &GELU);
}
END_TEST

START_TEST(modules_hold_what_they_are_given)
{
    SCOPE;
    struct module *model;
    {
        SCOPE;
        model = module_retain(nested());
    }
    {
        SCOPE;
        ck_assert_int_eq(module_replace(model, "0.1", tanh_new()), 0);
    }
    struct tensor *y = module_forward(model, tensor_zeros(SHAPE(3, 4), FLOAT64, CPU));
    ck_assert_ptr_nonnull(y);
    ck_assert_int_eq(tensor_size(y, 1), 2);
    module_release(model);
}
END_TEST

/* ---- flags and gradients ---- */

START_TEST(set_requires_grad_and_zero_grad)
{
    SCOPE;
    struct module *model = nested();
    struct named_tensors *all = module_named_parameters(model);
    struct tensor *x = tensor_full(SHAPE(2, 4), 1, FLOAT64, CPU);
    ck_assert_int_eq(tensor_backward(tensor_sum(module_forward(model, x))), 0);
    for (int i = 0; i < all->n; i++)
        ck_assert_ptr_nonnull(tensor_grad(all->at[i].tensor));
    module_zero_grad(model);
    ck_assert_int_eq(module_set_requires_grad(model, false), 0);
    for (int i = 0; i < all->n; i++) {
        ck_assert_ptr_null(tensor_grad(all->at[i].tensor));
        ck_assert(!tensor_requires_grad(all->at[i].tensor));
    }
    ck_assert_int_eq(module_set_requires_grad(module_get(model, "1"), true), 0);
    for (int i = 0; i < all->n; i++)
        ck_assert_int_eq(tensor_requires_grad(all->at[i].tensor), i >= 2);
}
END_TEST

/* ---- copies ---- */

START_TEST(copy_is_deep)
{
    SCOPE;
    struct module *model = nested();
    module_set_requires_grad(module_get(model, "0"), false);
    struct tensor *x = tensor_full(SHAPE(2, 4), 1, FLOAT64, CPU);
    tensor_backward(tensor_sum(module_forward(model, x)));
    struct module *copy = module_copy(model);
    struct named_tensors *from = module_named_parameters(model),
                         *to = module_named_parameters(copy);
    ck_assert_int_eq(from->n, to->n);
    for (int i = 0; i < from->n; i++) {
        struct tensor *a = from->at[i].tensor, *b = to->at[i].tensor;
        ck_assert_str_eq(from->at[i].name, to->at[i].name);
        ck_assert_ptr_ne(tensor_data(a), tensor_data(b));
        check_close(b, a, 0, 0, from->at[i].name);
        ck_assert_int_eq(tensor_requires_grad(a), tensor_requires_grad(b));
        ck_assert(tensor_is_leaf(b));
        ck_assert_ptr_null(tensor_grad(b));
    }
    NO_GRAD;
    tensor_fill_(to->at[0].tensor, 7);
    ck_assert_double_lt(tensor_get(from->at[0].tensor, 0, 0), 1);
    for (int i = 0; i < 2; i++)
        ck_assert_ptr_ne(module_child_at(copy, i), module_child_at(model, i));
}
END_TEST

START_TEST(copy_keeps_shared_things_shared)
{
    SCOPE;
    struct module *copy = module_copy(shared());
    ck_assert_ptr_eq(module_get(copy, "0.0"), module_get(copy, "1"));
    ck_assert_ptr_eq(module_parameter(module_get(copy, "1"), "weight"),
                     module_parameter(module_get(copy, "3"), "weight"));
    ck_assert_int_eq(module_named_parameters(copy)->n, 5);
}
END_TEST

START_TEST(copy_outlives_the_original)
{
    SCOPE;
    struct module *copy;
    {
        SCOPE;
        copy = module_retain(module_copy(nested()));
    }
    ck_assert_ptr_nonnull(module_forward(copy, tensor_zeros(SHAPE(3, 4), FLOAT64, CPU)));
    module_release(copy);
}
END_TEST

START_TEST(cast_and_to)
{
    SCOPE;
    struct module *model = nested(), *half = module_cast(model, FLOAT16);
    struct module *single = module_cast(model, FLOAT32), *same = module_to(model, CPU);
    struct tensor *weight = module_parameter(module_get(model, "1"), "weight");
    struct tensor *other = module_parameter(module_get(single, "1"), "weight");
    ck_assert_int_eq(tensor_dtype(other), FLOAT32);
    ck_assert(tensor_requires_grad(other));
    ck_assert(tensor_is_leaf(other));
    ck_assert_double_eq(tensor_get(other, 1, 2), (float)tensor_get(weight, 1, 2));
    other = module_parameter(module_get(half, "1"), "weight");
    ck_assert_int_eq(tensor_dtype(other), FLOAT16);
    ck_assert(!tensor_requires_grad(other));
    other = module_parameter(module_get(same, "1"), "weight");
    ck_assert_ptr_ne(other, weight);
    check_close(other, weight, 0, 0, "to(cpu)");
    check_no_error();
}
END_TEST

/* ---- lists of tensors ---- */

START_TEST(lists_own_names_and_tensors)
{
    SCOPE;
    struct named_tensors *list = named_tensors_new();
    for (int i = 0; i < 100; i++) {
        SCOPE;
        char name[16];
        snprintf(name, sizeof name, "tensor%d", i);
        ck_assert_int_eq(named_tensors_add(list, name, tensor_full(SHAPE(2), i, FLOAT32, CPU)), 0);
    }
    ck_assert_int_eq(list->n, 100);
    ck_assert_double_eq(tensor_get(named_tensors_find(list, "tensor57"), 1), 57);
    ck_assert_ptr_null(named_tensors_find(list, "tensor100"));
    ck_assert(!error_occurred());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nn_tree");
    TCase *tests = tcase_create("nn_tree");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, seed, NULL);
    tcase_add_test(tests, bad_names);
    tcase_add_test(tests, get_by_dotted_name);
    tcase_add_test(tests, replacement_keeps_the_order);
    tcase_add_test(tests, a_module_may_be_put_around_the_one_it_replaces);
    tcase_add_test(tests, no_module_inside_itself);
    tcase_add_test(tests, modules_hold_what_they_are_given);
    tcase_add_test(tests, set_requires_grad_and_zero_grad);
    tcase_add_test(tests, copy_is_deep);
    tcase_add_test(tests, copy_keeps_shared_things_shared);
    tcase_add_test(tests, copy_outlives_the_original);
    tcase_add_test(tests, cast_and_to);
    tcase_add_test(tests, lists_own_names_and_tensors);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
