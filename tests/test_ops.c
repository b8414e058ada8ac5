/* Every operation's values and gradients against PyTorch's (tests/golden/ops.json, whose generator
 * says what a case holds) and, in FLOAT64, gradients against finite differences. */
#include <check.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/cpu/functions.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "tests/device.h"
#include "tests/suite.h"

enum { OPERANDS = 3 };

struct golden_case {
    const char *name;
    int index;
    const struct operation *operation;
    enum dtype dtype;
    int n; /* leaves */
    struct tensor *leaf[OPERANDS];
    const char *mode[OPERANDS];
    double numbers[TENSOR_MAX_DIMS];
    int count; /* numbers */
    const json_t *json;
};

/* ---- the operations by name; x are the operands, c the case ---- */

typedef struct tensor *apply_fn(struct tensor *const *x, const struct golden_case *c);

#define APPLY(name, expression)                                                                    \
    static struct tensor *apply_##name(struct tensor *const *x, const struct golden_case *c)       \
    {                                                                                              \
        (void)c;                                                                                   \
        return expression;                                                                         \
    }

APPLY(add, tensor_add(x[0], x[1]))
APPLY(sub, tensor_sub(x[0], x[1]))
APPLY(mul, tensor_mul(x[0], x[1]))
APPLY(div, tensor_div(x[0], x[1]))
APPLY(scale, tensor_scale(x[0], c->numbers[0]))
APPLY(add_number, tensor_add_number(x[0], c->numbers[0]))
APPLY(square, tensor_square(x[0]))
APPLY(tanh, tensor_tanh(x[0]))
APPLY(relu, tensor_relu(x[0]))
APPLY(gelu, tensor_gelu(x[0]))
APPLY(matmul, tensor_matmul(x[0], x[1]))
APPLY(linear, tensor_linear(x[0], x[1], c->n > 2 ? x[2] : NULL))
APPLY(gelu_residual, tensor_gelu_residual(x[0], x[1], c->numbers[0]))
APPLY(sum, tensor_sum(x[0]))
APPLY(mean, tensor_mean(x[0]))
APPLY(sum_rows, tensor_sum_rows(x[0]))
APPLY(mse_loss, mse_loss(x[0], x[1]))
APPLY(transpose, tensor_transpose(x[0], (int)c->numbers[0], (int)c->numbers[1]))
APPLY(slice, tensor_slice(x[0], (int)c->numbers[0], (int64_t)c->numbers[1], (int64_t)c->numbers[2]))
APPLY(clone, tensor_clone(x[0]))
APPLY(cast, tensor_cast(x[0], c->dtype == FLOAT32 ? FLOAT64 : FLOAT32))
APPLY(to_half, tensor_cast(tensor_cast(x[0], FLOAT16), c->dtype))

static struct tensor *apply_view(struct tensor *const *x, const struct golden_case *c)
{
    int64_t shape[TENSOR_MAX_DIMS];
    for (int d = 0; d < c->count; d++)
        shape[d] = (int64_t)c->numbers[d];
    return tensor_view(tensor_contiguous(x[0]), c->count, shape);
}

static struct tensor *apply_split_backwards(struct tensor *const *x, const struct golden_case *c)
{
    struct tensors *pieces = tensor_split(x[0], (int64_t)c->numbers[0]);
    struct tensors *reversed = tensors_new(pieces->n);
    for (int i = 0; i < pieces->n; i++)
        reversed->at[i] = pieces->at[pieces->n - 1 - i];
    return tensor_cat(reversed);
}

static struct tensor *apply_cat(struct tensor *const *x, const struct golden_case *c)
{
    struct tensors *pieces = tensors_new(c->n);
    memcpy(pieces->at, x, (size_t)c->n * sizeof *x);
    return tensor_cat(pieces);
}

static const struct operation {
    const char *name;
    apply_fn *apply;
} operations[] = {
    {"add", apply_add},
    {"sub", apply_sub},
    {"mul", apply_mul},
    {"div", apply_div},
    {"scale", apply_scale},
    {"add_number", apply_add_number},
    {"square", apply_square},
    {"tanh", apply_tanh},
    {"relu", apply_relu},
    {"gelu", apply_gelu},
    {"matmul", apply_matmul},
    {"linear", apply_linear},
    {"gelu_residual", apply_gelu_residual},
    {"sum", apply_sum},
    {"mean", apply_mean},
    {"sum_rows", apply_sum_rows},
    {"mse_loss", apply_mse_loss},
    {"view", apply_view},
    {"transpose", apply_transpose},
    {"slice", apply_slice},
    {"split_backwards", apply_split_backwards},
    {"cat", apply_cat},
    {"clone", apply_clone},
    {"cast", apply_cast},
    {"to_half", apply_to_half},
};

enum { OPERATIONS = sizeof operations / sizeof *operations };

/* ---- reading a case ---- */

static json_t *golden;       /* loaded before any test is forked */
static struct device device; /* where tensors are made: the CPU, unless a test changed it */

static void use_first_device(void)
{
    device_load();
    device = FIRST_DEVICE;
}

/* A list of numbers, null for NAN; borrowed from the scope. */
static double *numbers_of(const json_t *list)
{
    double *values = scope_alloc(json_array_size(list) * sizeof *values + 1);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        values[i] = json_is_null(value) ? NAN : json_number_value(value);
    }
    return values;
}

static struct tensor *tensor_of(const json_t *values, const json_t *shape, enum dtype dtype)
{
    int64_t sizes[TENSOR_MAX_DIMS];
    int ndim = (int)json_array_size(shape);
    for (int d = 0; d < ndim; d++)
        sizes[d] = json_integer_value(json_array_get(shape, (size_t)d));
    return tensor_to(tensor_cast(tensor_from_doubles(numbers_of(values), ndim, sizes), dtype),
                     device);
}

static struct golden_case case_at(const struct operation *operation, int index)
{
    const json_t *json = json_array_get(golden, (size_t)index);
    const json_t *leaves = json_object_get(json, "leaves");
    struct golden_case c = {
        .name = operation->name,
        .index = index,
        .operation = operation,
        .n = (int)json_array_size(leaves),
        .count = (int)json_array_size(json_object_get(json, "numbers")),
        .json = json,
    };
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    c.dtype = strcmp(dtype, "float64") == 0 ? FLOAT64 : FLOAT32;
    memcpy(c.numbers, numbers_of(json_object_get(json, "numbers")),
           (size_t)c.count * sizeof *c.numbers);
    for (int i = 0; i < c.n; i++) {
        const json_t *leaf = json_array_get(leaves, (size_t)i);
        c.leaf[i] = tensor_set_requires_grad(
            tensor_of(json_object_get(leaf, "values"), json_object_get(leaf, "shape"), c.dtype),
            true);
        c.mode[i] = json_string_value(json_array_get(json_object_get(json, "modes"), (size_t)i));
    }
    return c;
}

static struct tensor *operand(struct tensor *leaf, const char *mode)
{
    if (strcmp(mode, "transposed") == 0)
        return tensor_transpose(leaf, 0, 1);
    if (strcmp(mode, "sliced") == 0)
        return tensor_slice(leaf, -1, 1, tensor_size(leaf, -1) - 2);
    return leaf;
}

static struct tensor *output_of(const struct golden_case *c)
{
    struct tensor *x[OPERANDS] = {0};
    for (int i = 0; i < c->n; i++)
        x[i] = operand(c->leaf[i], c->mode[i]);
    return c->operation->apply(x, c);
}

/* sum(weights * output), the weights being the case's own */
static struct tensor *loss_of(const struct golden_case *c)
{
    struct tensor *output = output_of(c);
    struct tensor *weights =
        tensor_of(json_object_get(c->json, "weights"), json_object_get(c->json, "shape"),
                  output ? tensor_dtype(output) : c->dtype);
    return tensor_sum(tensor_mul(output, weights));
}

/* Check every case of an operation; one test per operation, as forking is not free. */
static void each_case(int index, void (*check)(const struct operation *operation, int index))
{
    const struct operation *operation = &operations[index];
    int found = 0;
    for (int i = 0; i < (int)json_array_size(golden); i++) {
        const json_t *name = json_object_get(json_array_get(golden, (size_t)i), "op");
        if (strcmp(json_string_value(name), operation->name) != 0)
            continue;
        SCOPE;
        check(operation, i);
        found++;
    }
    ck_assert_msg(found > 0, "no case for %s", operation->name);
}

/* ---- values and gradients ---- */

static void check_values(const struct golden_case *c, const char *what, const struct tensor *x,
                         const json_t *expected)
{
    ck_assert_msg(x != NULL, "%s: no %s", c->name, what);
    ck_assert_int_eq(tensor_numel(x), (int64_t)json_array_size(expected));
    double *got = scope_alloc((size_t)tensor_numel(x) * sizeof *got + 1);
    double *wanted = numbers_of(expected);
    ck_assert_int_eq(tensor_read(x, got), 0);
    double rtol = c->dtype == FLOAT64 ? 1e-8 : 1e-6, atol = c->dtype == FLOAT64 ? 1e-9 : 1e-6;
    if (strcmp(c->name, "cast") == 0)
        rtol = atol = 1e-6;
    for (int64_t i = 0; i < tensor_numel(x); i++)
        ck_assert_msg(fabs(got[i] - wanted[i]) <= atol + rtol * fabs(wanted[i]) ||
                          (isnan(got[i]) && isnan(wanted[i])),
                      "%s, case %d, %s[%lld]: got %.9g, PyTorch has %.9g", c->name, c->index, what,
                      (long long)i, got[i], wanted[i]);
}

static void check_with_pytorch(const struct operation *operation, int index)
{
    struct golden_case c = case_at(operation, index);
    struct tensor *output = output_of(&c);
    ck_assert_msg(output != NULL, "%s failed", c.name);
    const json_t *shape = json_object_get(c.json, "shape");
    ck_assert_int_eq(tensor_ndim(output), (int)json_array_size(shape));
    for (int d = 0; d < tensor_ndim(output); d++)
        ck_assert_int_eq(tensor_size(output, d),
                         json_integer_value(json_array_get(shape, (size_t)d)));
    check_values(&c, "output", output, json_object_get(c.json, "output"));
    ck_assert_int_eq(tensor_backward(loss_of(&c)), 0);
    for (int i = 0; i < c.n; i++) {
        ck_assert(tensor_same_shape(tensor_grad(c.leaf[i]), c.leaf[i]));
        check_values(&c, "gradient", tensor_grad(c.leaf[i]),
                     json_array_get(json_object_get(c.json, "gradients"), (size_t)i));
    }
}

START_TEST(same_as_pytorch)
{
    each_case(_i, check_with_pytorch);
}
END_TEST

static double shifted_loss(const struct golden_case *c, double *element, double shift)
{
    SCOPE;
    NO_GRAD;
    double value = *element;
    *element = value + shift;
    double loss = tensor_item(loss_of(c));
    *element = value;
    return loss;
}

/* Casts lose the digits that a small difference needs; PyTorch's values cover them. */
static bool is_rounded(const struct golden_case *c)
{
    return c->dtype != FLOAT64 || strcmp(c->name, "cast") == 0 || strcmp(c->name, "to_half") == 0;
}

static void check_slopes(const struct operation *operation, int index)
{
    const double h = 1e-5;
    struct golden_case c = case_at(operation, index);
    if (is_rounded(&c))
        return;
    ck_assert_int_eq(tensor_backward(loss_of(&c)), 0);
    for (int i = 0; i < c.n; i++) {
        double *elements = tensor_data(c.leaf[i]), *gradient = tensor_data(tensor_grad(c.leaf[i]));
        for (int64_t j = 0; j < tensor_numel(c.leaf[i]); j++) {
            double rise = shifted_loss(&c, elements + j, h) - shifted_loss(&c, elements + j, -h);
            ck_assert_double_eq_tol(gradient[j], rise / (2 * h), 1e-6 * (1 + fabs(gradient[j])));
        }
    }
}

START_TEST(gradients_are_slopes)
{
    each_case(_i, check_slopes);
}
END_TEST

/* A gradient is computed for the inputs that want one, and only those. */
static void check_one_input_at_a_time(const struct operation *operation, int index)
{
    for (int wanted = 0; wanted < OPERANDS; wanted++) {
        struct golden_case c = case_at(operation, index);
        if (wanted >= c.n)
            return;
        for (int i = 0; i < c.n; i++)
            tensor_set_requires_grad(c.leaf[i], i == wanted);
        ck_assert_int_eq(tensor_backward(loss_of(&c)), 0);
        for (int i = 0; i < c.n; i++)
            if (i != wanted)
                ck_assert_ptr_null(tensor_grad(c.leaf[i]));
        check_values(&c, "gradient", tensor_grad(c.leaf[wanted]),
                     json_array_get(json_object_get(c.json, "gradients"), (size_t)wanted));
    }
}

START_TEST(one_input_at_a_time)
{
    each_case(_i, check_one_input_at_a_time);
}
END_TEST

/* ---- own exp and erf ---- */

static double ulps(float got, double exact)
{
    float next = nextafterf((float)fabs(exact), INFINITY);
    double ulp = fmax((double)next - (double)(float)fabs(exact), FLT_TRUE_MIN);
    return fabs((double)got - exact) / ulp;
}

START_TEST(erf_and_exp_are_accurate)
{
    double worst_erf = 0, worst_exp = 0;
    for (float x = -6; x < 6; x += 1.0f / 8192)
        worst_erf = fmax(worst_erf, ulps(erf_f32(x), erf((double)x)));
    for (float x = -86; x < 80; x += 1.0f / 1024)
        worst_exp = fmax(worst_exp, ulps(exp_f32(x), exp((double)x)));
    for (float x = 1; x > 1e-30f; x /= 1.7f)
        worst_erf = fmax(worst_erf, ulps(erf_f32(x), erf((double)x)));
    ck_assert_double_lt(worst_erf, 2);
    ck_assert_double_lt(worst_exp, 2);
}
END_TEST

START_TEST(gelu_far_out)
{
    SCOPE;
    struct tensor *x =
        tensor_from((float[]){-1e30f, -20, -6, 6, 20, 1e30f, NAN, INFINITY}, SHAPE(8));
    const double gelu[] = {0, 0, 0, 6, 20, 1e30f}, slope[] = {0, 0, 0, 1, 1, 1};
    tensor_set_requires_grad(x, true);
    struct tensor *y = tensor_gelu(x);
    ck_assert_int_eq(tensor_backward(tensor_sum(y)), 0);
    for (int i = 0; i < 6; i++) {
        ck_assert_double_eq_tol(tensor_get(y, i), gelu[i], 1e-6);
        ck_assert_double_eq_tol(tensor_get(tensor_grad(x), i), slope[i], 1e-6);
    }
    ck_assert(isnan(tensor_get(y, 6)));
    ck_assert(isnan(tensor_get(tensor_grad(x), 6)));
    ck_assert_double_eq(tensor_get(y, 7), INFINITY);
}
END_TEST

START_TEST(same_result_twice_to_the_bit)
{
    SCOPE;
    float *values = scope_alloc(100000 * sizeof *values);
    for (int i = 0; i < 100000; i++)
        values[i] = sinf((float)i);
    struct tensor *x = tensor_from(values, SHAPE(1000, 100));
    ck_assert_double_eq(tensor_item(tensor_sum(x)), tensor_item(tensor_sum(x)));
    double exact = 0;
    for (int i = 0; i < 100000; i++)
        exact += (double)values[i];
    ck_assert_double_eq_tol(tensor_item(tensor_sum(x)), exact, 1e-6);
    ck_assert_double_eq_tol(tensor_item(tensor_sum(tensor_sum_rows(x))), exact, 1e-4);
}
END_TEST

static void add_all(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, same_as_pytorch, 0, OPERATIONS);
    tcase_add_loop_test(tests, gradients_are_slopes, 0, OPERATIONS);
    tcase_add_loop_test(tests, one_input_at_a_time, 0, OPERATIONS);
    tcase_add_test(tests, erf_and_exp_are_accurate);
    tcase_add_test(tests, gelu_far_out);
    tcase_add_test(tests, same_result_twice_to_the_bit);
}

int main(void)
{
    json_error_t error;
    golden = json_load_file("tests/golden/ops.json", 0, &error);
    if (!golden) {
        fprintf(stderr, "tests/golden/ops.json: %s\n", error.text);
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("ops");
    TCase *tests = tcase_create("ops");
    add_all(tests);
    suite_add_tcase(suite, tests);
    TCase *on_device = tcase_create("ops on a device");
    tcase_set_timeout(on_device, 60);
    tcase_add_checked_fixture(on_device, use_first_device, NULL);
    tcase_add_loop_test(on_device, same_as_pytorch, 0, OPERATIONS);
    tcase_add_loop_test(on_device, one_input_at_a_time, 0, OPERATIONS);
    suite_add_tcase(suite, on_device);
    int status = suite_run(suite);
    json_decref(golden);
    return status;
}
