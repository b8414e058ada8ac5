/* Layers against PyTorch (tests/golden/nn.json), their constructors, and a class of one's own. */
#include <string.h>

#include "runtime/lora.h"
#include "tests/golden.h"
#include "tests/modules.h"
#include "tests/suite.h"

/* ---- against PyTorch ---- */

static struct module *without_bias(void)
{
    return linear_from(tensor_zeros(SHAPE(4, 3), FLOAT64, CPU), NULL);
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

int main(void)
{
    Suite *suite = suite_create("nn");
    TCase *tests = tcase_create("nn");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, seed, NULL);
    tcase_add_loop_test(tests, layer_as_in_pytorch, 0, LAYERS);
    tcase_add_test(tests, names_as_in_pytorch);
    tcase_add_loop_test(tests, linear_is_drawn_within_its_bound, 0, 2);
    tcase_add_test(tests, linear_refuses_what_does_not_fit);
    tcase_add_test(tests, sequential_without_children_is_the_identity);
    tcase_add_test(tests, null_passes_through);
    tcase_add_test(tests, custom_class);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
