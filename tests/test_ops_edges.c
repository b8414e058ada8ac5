/* Operations at their edges: empty tensors, views, NULL, and what is refused. */
#include <check.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "tests/suite.h"

static struct tensor *ones(int64_t rows, int64_t columns, enum dtype dtype)
{
    return tensor_full(SHAPE(rows, columns), 1, dtype, CPU);
}

START_TEST(products_of_nothing)
{
    SCOPE;
    struct tensor *x = ones(3, 0, FLOAT32), *w = ones(2, 0, FLOAT32);
    struct tensor *bias = tensor_from((float[]){5, 7}, SHAPE(2));
    tensor_set_requires_grad(w, true);
    tensor_set_requires_grad(bias, true);
    struct tensor *y = tensor_linear(x, w, bias), *z = tensor_linear(x, w, NULL);
    for (int row = 0; row < 3; row++) {
        ck_assert_double_eq(tensor_get(y, row, 0), 5);
        ck_assert_double_eq(tensor_get(y, row, 1), 7);
        ck_assert_double_eq(tensor_get(z, row, 1), 0);
    }
    ck_assert_int_eq(tensor_backward(tensor_sum(tensor_add(y, z))), 0);
    ck_assert_double_eq(tensor_get(tensor_grad(bias), 1), 3);
    ck_assert(tensor_same_shape(tensor_grad(w), w));
    struct tensor *none = tensor_matmul(ones(0, 3, FLOAT64), ones(3, 4, FLOAT64));
    ck_assert_int_eq(tensor_size(none, 0), 0);
    ck_assert_int_eq(tensor_size(none, 1), 4);
}
END_TEST

START_TEST(views_share_memory)
{
    SCOPE;
    struct tensor *x = tensor_from((float[]){0, 1, 2, 3, 4, 5}, SHAPE(2, 3));
    ck_assert_ptr_eq(tensor_data(tensor_view(x, SHAPE(3, -1))), tensor_data(x));
    ck_assert_ptr_eq(tensor_data(tensor_transpose(x, 0, 1)), tensor_data(x));
    ck_assert_ptr_eq(tensor_data(tensor_slice(x, 1, 1, 2)), (float *)tensor_data(x) + 1);
    ck_assert_double_eq(tensor_get(tensor_transpose(x, 0, -1), 2, 1), 5);
    ck_assert_ptr_eq(tensor_to(x, CPU), x);
    ck_assert_ptr_eq(tensor_cast(x, FLOAT32), x);
    ck_assert_ptr_eq(tensor_contiguous(x), x);
    struct tensors *pieces = tensor_split(ones(0, 3, FLOAT32), 2);
    ck_assert_int_eq(pieces->n, 1);
    ck_assert_int_eq(tensor_size(pieces->at[0], 0), 0);
}
END_TEST

/* ---- what is refused ---- */

#define ASSERT_REFUSED(type, ...)                                                                  \
    do {                                                                                           \
        ck_assert_ptr_null(__VA_ARGS__);                                                           \
        ck_assert_msg(error_is(&(type)), "%s should be a %s", #__VA_ARGS__, #type);                \
        error_clear();                                                                             \
    } while (0)

START_TEST(wrong_shapes_are_refused)
{
    SCOPE;
    struct tensor *a = ones(2, 3, FLOAT32), *b = ones(3, 2, FLOAT32);
    struct tensor *scalar = tensor_full(0, NULL, 1, FLOAT32, CPU);
    struct tensor *row = tensor_full(SHAPE(3), 1, FLOAT32, CPU);
    ASSERT_REFUSED(ValueError, tensor_add(a, b));
    ASSERT_REFUSED(ValueError, tensor_sub(a, b));
    ASSERT_REFUSED(ValueError, tensor_mul(a, b));
    ASSERT_REFUSED(ValueError, tensor_div(a, b));
    ASSERT_REFUSED(ValueError, tensor_matmul(a, a));
    ASSERT_REFUSED(ValueError, tensor_matmul(a, row));
    ASSERT_REFUSED(ValueError, tensor_linear(a, b, NULL));
    ASSERT_REFUSED(ValueError, tensor_linear(scalar, a, NULL));
    ASSERT_REFUSED(ValueError, tensor_linear(a, a, row));
    ASSERT_REFUSED(ValueError, tensor_gelu_residual(a, b, 1));
    ASSERT_REFUSED(ValueError, mse_loss(a, b));
    ASSERT_REFUSED(ValueError, mse_loss(a, row));
    ASSERT_REFUSED(ValueError, tensor_sum_rows(scalar));
    ASSERT_REFUSED(ValueError, tensor_view(a, SHAPE(4, 2)));
    ASSERT_REFUSED(ValueError, tensor_view(a, SHAPE(-1, -1)));
    ASSERT_REFUSED(ValueError, tensor_view(a, SHAPE(-1, 4)));
    ASSERT_REFUSED(ValueError, tensor_view(a, SHAPE(-2, -3)));
    ASSERT_REFUSED(ValueError, tensor_view(tensor_transpose(a, 0, 1), SHAPE(6)));
    ASSERT_REFUSED(ValueError, tensor_view(ones(0, 3, FLOAT32), SHAPE(-1, 0)));
    ASSERT_REFUSED(ValueError, tensor_transpose(a, 0, 2));
    ASSERT_REFUSED(ValueError, tensor_transpose(a, -3, 0));
    ASSERT_REFUSED(ValueError, tensor_slice(a, 2, 0, 1));
    ASSERT_REFUSED(ValueError, tensor_slice(a, 0, 1, 2));
    ASSERT_REFUSED(ValueError, tensor_slice(a, 0, -1, 1));
    ASSERT_REFUSED(ValueError, tensor_slice(a, 0, 0, -1));
    ASSERT_REFUSED(ValueError, tensor_split(a, 0));
    ASSERT_REFUSED(ValueError, tensor_split(scalar, 1));
    ASSERT_REFUSED(ValueError, tensor_cat(tensors_new(0)));
    ASSERT_REFUSED(ValueError, tensor_cat(&(struct tensors){2, (struct tensor *[]){a, b}}));
    ASSERT_REFUSED(ValueError, tensor_cat(&(struct tensors){1, (struct tensor *[]){scalar}}));
}
END_TEST

#define ASSERT_SAYS(text, failed)                                                                  \
    do {                                                                                           \
        ck_assert_ptr_null(failed);                                                                \
        ck_assert_str_eq(error_message(error_pending()), (text));                                  \
        error_clear();                                                                             \
    } while (0)

START_TEST(refusals_name_the_function)
{
    SCOPE;
    struct tensor *a = ones(2, 3, FLOAT32), *scalar = tensor_sum(a);
    struct tensors two = {2, (struct tensor *[]){a, ones(3, 2, FLOAT32)}};
    ASSERT_SAYS("tensor_split of a scalar", tensor_split(scalar, 1));
    ASSERT_SAYS("tensor_split: rows must be at least 1, got 0", tensor_split(a, 0));
    ASSERT_SAYS("tensor_cat: there is nothing to join", tensor_cat(tensors_new(0)));
    ASSERT_SAYS("tensor_cat: (2, 3) and (3, 2) cannot be joined along dimension 0",
                tensor_cat(&two));
    ASSERT_SAYS("tensor_view: only one size can be -1", tensor_view(a, SHAPE(-1, -1)));
    ASSERT_SAYS("tensor_view: size -2 is out of range", tensor_view(a, SHAPE(-2, -3)));
    ASSERT_SAYS("tensor_view: 6 elements do not fill the shape", tensor_view(a, SHAPE(4, 2)));
}
END_TEST

START_TEST(wrong_dtypes_are_refused)
{
    SCOPE;
    struct tensor *f32 = ones(2, 2, FLOAT32), *f64 = ones(2, 2, FLOAT64),
                  *f16 = ones(2, 2, FLOAT16);
    ASSERT_REFUSED(TypeError, tensor_add(f32, f64));
    ASSERT_REFUSED(TypeError, tensor_matmul(f64, f32));
    ASSERT_REFUSED(TypeError, tensor_linear(f32, f64, NULL));
    ASSERT_REFUSED(TypeError, tensor_linear(f32, f32, f64));
    ASSERT_REFUSED(TypeError, mse_loss(f32, f64));
    ASSERT_REFUSED(TypeError, tensor_add(f16, f16));
    ASSERT_REFUSED(TypeError, tensor_gelu(f16));
    ASSERT_REFUSED(TypeError, tensor_sum(f16));
    ASSERT_REFUSED(TypeError, tensor_cat(&(struct tensors){2, (struct tensor *[]){f32, f64}}));
    ASSERT_REFUSED(RuntimeError, tensor_to(f32, CUDA(99)));
}
END_TEST

START_TEST(null_passes_through_silently)
{
    SCOPE;
    struct tensor *a = ones(2, 2, FLOAT32);
    ck_assert_ptr_null(tensor_add(NULL, a));
    ck_assert_ptr_null(tensor_sub(a, NULL));
    ck_assert_ptr_null(tensor_mul(NULL, NULL));
    ck_assert_ptr_null(tensor_div(a, NULL));
    ck_assert_ptr_null(tensor_scale(NULL, 2));
    ck_assert_ptr_null(tensor_add_number(NULL, 2));
    ck_assert_ptr_null(tensor_square(NULL));
    ck_assert_ptr_null(tensor_tanh(NULL));
    ck_assert_ptr_null(tensor_relu(NULL));
    ck_assert_ptr_null(tensor_gelu(NULL));
    ck_assert_ptr_null(tensor_matmul(a, NULL));
    ck_assert_ptr_null(tensor_linear(NULL, a, NULL));
    ck_assert_ptr_null(tensor_linear(a, NULL, NULL));
    ck_assert_ptr_null(tensor_gelu_residual(a, NULL, 1));
    ck_assert_ptr_null(tensor_sum(NULL));
    ck_assert_ptr_null(tensor_mean(NULL));
    ck_assert_ptr_null(tensor_sum_rows(NULL));
    ck_assert_ptr_null(mse_loss(NULL, a));
    ck_assert_ptr_null(tensor_to(NULL, CPU));
    ck_assert_ptr_null(tensor_cast(NULL, FLOAT64));
    ck_assert_ptr_null(tensor_view(NULL, SHAPE(1)));
    ck_assert_ptr_null(tensor_transpose(NULL, 0, 1));
    ck_assert_ptr_null(tensor_slice(NULL, 0, 0, 1));
    ck_assert_ptr_null(tensor_split(NULL, 1));
    ck_assert_ptr_null(tensor_cat(NULL));
    ck_assert_ptr_null(tensor_cat(&(struct tensors){2, (struct tensor *[]){a, NULL}}));
    ck_assert(!error_occurred());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ops_edges");
    TCase *tests = tcase_create("ops_edges");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, products_of_nothing);
    tcase_add_test(tests, wrong_shapes_are_refused);
    tcase_add_test(tests, refusals_name_the_function);
    tcase_add_test(tests, wrong_dtypes_are_refused);
    tcase_add_test(tests, null_passes_through_silently);
    tcase_add_test(tests, views_share_memory);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
