/* Modules: layers against PyTorch (tests/golden/nn.json), names, replacement, copies, lifetimes. */
#include <string.h>

#include "runtime/lora.h"
#include "runtime/nn.h"
#include "runtime/ops.h"
#include "tests/golden.h"
#include "tests/suite.h"

static struct rng rng;

static struct module *linear(int64_t in, int64_t out)
{
    return linear_new(in, out, FLOAT64, CPU, &rng);
}

/* ---- against PyTorch ---- */

static struct module *without_bias(void)
{
    return linear_from(tensor_zeros(SHAPE(4, 3), FLOAT64, CPU), NULL);
}

static struct module *nested(void)
{
    struct module *inner = sequential_new(MODULES(linear(4, 6), gelu_new()));
    return sequential_new(MODULES(inner, linear(6, 2)));
}

static struct module *shared(void)
{
    struct module *first = linear(3, 3);
    struct module *tied =
        linear_from(module_parameter(first, "weight"), tensor_zeros(SHAPE(3), FLOAT64, CPU));
    struct module *inner = sequential_new(MODULES(first, tanh_new()));
    struct module *block = residual_block_new(3, FLOAT64, CPU, &rng);
    return sequential_new(MODULES(inner, first, block, tied));
}

static struct module *build(const char *name)
{
    if (!strcmp(name, "linear"))
        return linear(5, 3);
    if (!strcmp(name, "linear_one_row"))
        return linear(2, 2);
    if (!strcmp(name, "linear_without_bias"))
        return without_bias();
    if (!strcmp(name, "tanh"))
        return tanh_new();
    if (!strcmp(name, "gelu"))
        return gelu_new();
    if (!strcmp(name, "relu"))
        return relu_new();
    if (!strcmp(name, "residual_block"))
        return residual_block_new(4, FLOAT64, CPU, &rng);
    if (!strcmp(name, "nested"))
        return nested();
    if (!strcmp(name, "shared"))
        return shared();
    ck_assert_str_eq(name, "lora");
    return lora_linear_new(linear(4, 3), 2, 5);
}

/* The same names in the same order as PyTorch, which then get its values. */
static void set_parameters(struct module *model, json_t *values)
{
    NO_GRAD;
    struct named_tensors *own = module_named_parameters(model);
    ck_assert_int_eq(own->n, (int)json_object_size(values));
    const char *name;
    json_t *value;
    int i = 0;
    json_object_foreach(values, name, value)
    {
        ck_assert_str_eq(own->at[i].name, name);
        ck_assert_ptr_nonnull(
            tensor_copy_(own->at[i].tensor, golden_tensor(value, tensor_dtype(own->at[i].tensor))));
        i++;
    }
}

static void check_gradients(struct module *model, json_t *expected, double tolerance)
{
    struct named_tensors *own = module_named_parameters(model);
    for (int i = 0; i < own->n; i++) {
        json_t *values = json_object_get(expected, own->at[i].name);
        struct tensor *grad = tensor_grad(own->at[i].tensor);
        if (values)
            check_golden(grad, values, tolerance, tolerance, own->at[i].name);
        else
            ck_assert_msg(!grad, "%s has a gradient", own->at[i].name);
    }
}

static void check_layer(json_t *expected, enum dtype dtype, double tolerance)
{
    SCOPE;
    struct module *model = build(json_string_value(json_object_get(expected, "name")));
    ck_assert_ptr_nonnull(model);
    set_parameters(model, json_object_get(expected, "parameters"));
    model = module_cast(model, dtype);
    struct tensor *x = golden_tensor(json_object_get(expected, "x"), dtype);
    x = tensor_set_requires_grad(x, true);
    struct tensor *upstream = golden_tensor(json_object_get(expected, "upstream"), dtype);
    struct tensor *output = module_forward(model, x);
    ck_assert_int_eq(tensor_backward(tensor_sum(tensor_mul(output, upstream))), 0);
    ck_assert_int_eq(tensor_dtype(output), dtype);
    check_golden(output, json_object_get(expected, "output"), tolerance, tolerance, "output");
    check_golden(tensor_grad(x), json_object_get(expected, "grad_x"), tolerance, tolerance, "x");
    check_gradients(model, json_object_get(expected, "gradients"), tolerance);
}

enum { LAYERS = 10 };

START_TEST(layer_as_in_pytorch)
{
    json_t *golden = golden_load("nn.json"), *cases = json_object_get(golden, "cases");
    ck_assert_uint_eq(json_array_size(cases), LAYERS);
    check_layer(json_array_get(cases, (size_t)_i), FLOAT64, 1e-12);
    check_layer(json_array_get(cases, (size_t)_i), FLOAT32, 2e-5);
    json_decref(golden);
}
END_TEST

START_TEST(names_as_in_pytorch)
{
    SCOPE;
    json_t *golden = golden_load("nn.json"), *names = json_object_get(golden, "shared");
    struct module *model = shared();
    struct named_tensors *parameters = module_named_parameters(model);
    struct named_modules *modules = module_named_modules(model);
    json_t *expected = json_object_get(names, "parameters");
    ck_assert_int_eq(parameters->n, (int)json_array_size(expected));
    for (int i = 0; i < parameters->n; i++)
        ck_assert_str_eq(parameters->at[i].name,
                         json_string_value(json_array_get(expected, (size_t)i)));
    expected = json_object_get(names, "modules");
    ck_assert_int_eq(modules->n, (int)json_array_size(expected));
    for (int i = 0; i < modules->n; i++)
        ck_assert_str_eq(modules->at[i].name,
                         json_string_value(json_array_get(expected, (size_t)i)));
    json_decref(golden);
}
END_TEST

/* ---- constructors ---- */

START_TEST(linear_is_drawn_within_its_bound)
{
    SCOPE;
    struct module *module = linear_new(64, 50, _i ? FLOAT64 : FLOAT32, CPU, &rng);
    const char *names[] = {"weight", "bias"};
    for (int k = 0; k < 2; k++) {
        struct tensor *parameter = module_parameter(module, names[k]);
        double values[64 * 50], least = 1, most = -1;
        tensor_read(parameter, values);
        for (int64_t i = 0; i < tensor_numel(parameter); i++) {
            least = fmin(least, values[i]);
            most = fmax(most, values[i]);
        }
        ck_assert(tensor_requires_grad(parameter));
        ck_assert_double_ge(least, -0.125);
        ck_assert_double_lt(least, -0.09); /* and fills the range */
        ck_assert_double_le(most, 0.125);
        ck_assert_double_gt(most, 0.09);
    }
}
END_TEST

START_TEST(linear_refuses_what_does_not_fit)
{
    SCOPE;
    struct tensor *weight = tensor_zeros(SHAPE(3, 2), FLOAT32, CPU);
    ck_assert_ptr_null(linear_new(0, 2, FLOAT32, CPU, &rng));
    check_raised(&ValueError, "in 0");
    ck_assert_ptr_null(linear_new(2, -1, FLOAT32, CPU, &rng));
    check_raised(&ValueError, "out -1");
    ck_assert_ptr_null(linear_from(weight, tensor_zeros(SHAPE(2), FLOAT32, CPU)));
    check_raised(&ValueError, "bias of another size");
    ck_assert_ptr_null(linear_from(weight, tensor_zeros(SHAPE(3, 1), FLOAT32, CPU)));
    check_raised(&ValueError, "bias of two dimensions");
    ck_assert_ptr_null(linear_from(tensor_zeros(SHAPE(3), FLOAT32, CPU), NULL));
    check_raised(&ValueError, "weight of one dimension");
    ck_assert_ptr_null(linear_from(NULL, NULL));
    ck_assert(!error_occurred());
}
END_TEST

START_TEST(sequential_without_children_is_the_identity)
{
    SCOPE;
    struct tensor *x = tensor_zeros(SHAPE(2), FLOAT32, CPU);
    ck_assert_ptr_eq(module_forward(sequential_new(0, NULL), x), x);
}
END_TEST

START_TEST(null_passes_through)
{
    SCOPE;
    struct module *module = tanh_new();
    ck_assert_ptr_null(sequential_new(MODULES(module, NULL)));
    ck_assert_ptr_null(module_forward(NULL, tensor_zeros(SHAPE(2), FLOAT32, CPU)));
    ck_assert_ptr_null(module_forward(module, NULL));
    ck_assert_int_eq(module_add_child(module, "x", NULL), -1);
    ck_assert_int_eq(module_add_parameter(module, "x", NULL), -1);
    ck_assert_int_eq(module_replace(module, "x", NULL), -1);
    ck_assert_ptr_null(module_get(NULL, "x"));
    ck_assert_ptr_null(module_named_parameters(NULL));
    ck_assert_ptr_null(module_copy(NULL));
    ck_assert_int_eq(named_tensors_add(NULL, "x", tensor_zeros(SHAPE(2), FLOAT32, CPU)), -1);
    ck_assert(!error_occurred());
}
END_TEST

/* ---- a custom module ---- */

struct power {
    int exponent;
};

static struct tensor *power_forward(struct module *self, struct tensor *x)
{
    struct tensor *y = tensor_scale(x, 1);
    for (int i = 1; i < ((struct power *)module_environment(self))->exponent; i++)
        y = tensor_mul(y, x);
    return tensor_add(y, module_parameter(self, "offset"));
}
static const struct module_class Power = {"Power", power_forward};

static struct module *power(int exponent)
{
    struct power environment = {exponent};
    struct module *module = module_new_with(&Power, &environment, sizeof environment);
    environment.exponent = 99; /* the module's copy is its own */
    module_add_parameter(module, "offset", tensor_full(SHAPE(1), 0.5, FLOAT64, CPU));
    return module;
}

START_TEST(custom_class)
{
    SCOPE;
    struct module *model = sequential_new(MODULES(power(3), power(2)));
    struct tensor *x = tensor_full(SHAPE(2), 2, FLOAT64, CPU);
    ck_assert_double_eq(tensor_get(module_forward(model, x), 1), 8.5 * 8.5 + 0.5);
    ck_assert_ptr_eq(module_class_of(module_get(model, "1")), &Power);
    struct module *copy = module_copy(model);
    ((struct power *)module_environment(module_get(model, "0")))->exponent = 1;
    ck_assert_double_eq(tensor_get(module_forward(copy, x), 1), 8.5 * 8.5 + 0.5);
    ck_assert_double_eq(tensor_get(module_forward(model, x), 1), 2.5 * 2.5 + 0.5);
}
END_TEST

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

/* ---- the tree ---- */

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

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, layer_as_in_pytorch, 0, LAYERS);
    tcase_add_test(tests, names_as_in_pytorch);
    tcase_add_loop_test(tests, linear_is_drawn_within_its_bound, 0, 2);
    tcase_add_test(tests, linear_refuses_what_does_not_fit);
    tcase_add_test(tests, sequential_without_children_is_the_identity);
    tcase_add_test(tests, null_passes_through);
    tcase_add_test(tests, custom_class);
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
}

static void seed(void)
{
    rng_seed(&rng, 5);
}

int main(void)
{
    Suite *suite = suite_create("nn");
    TCase *tests = tcase_create("nn");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, seed, NULL);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
