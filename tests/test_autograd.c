/* Differentiation: leaves, grad mode, changes in place, what is refused. */
#include <check.h>
#include <pthread.h>

#include "runtime/scope.h"
#include "runtime/tensor_internal.h"
#include "tests/autograd.h"
#include "tests/suite.h"

/* ---- leaves and gradients ---- */

START_TEST(leaves)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *y = tensor_square(x), *plain = VECTOR(1, 2);
    ck_assert(tensor_is_leaf(x) && tensor_requires_grad(x));
    ck_assert(!tensor_is_leaf(y) && tensor_requires_grad(y));
    ck_assert(tensor_is_leaf(plain) && !tensor_requires_grad(plain));
    ck_assert(!tensor_requires_grad(tensor_square(plain)));
    ck_assert(!tensor_requires_grad(tensor_detach(y)));
    ck_assert_ptr_eq(tensor_data(tensor_detach(y)), tensor_data(y));
    ck_assert_ptr_null(tensor_grad(x));
    ck_assert_ptr_null(tensor_set_requires_grad(NULL, true));
    ck_assert_ptr_null(tensor_detach(NULL));
    ck_assert_ptr_null(tensor_set_requires_grad(y, false));
    assert_error(&RuntimeError, "tensor_detach");
    ck_assert_ptr_null(tensor_set_requires_grad(tensor_cast(plain, FLOAT16), true));
    assert_error(&TypeError, "float16");
}
END_TEST

START_TEST(gradients_accumulate_in_one_object)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2);
    backward(tensor_sum(tensor_square(x)));
    struct tensor *grad = tensor_grad(x);
    ASSERT_ELEMENTS(grad, 2, 4);
    backward(tensor_sum(tensor_scale(x, 10)));
    ck_assert_ptr_eq(tensor_grad(x), grad);
    ASSERT_ELEMENTS(grad, 12, 14);
    ck_assert_int_eq(tensor_set_grad(x, NULL), 0);
    ck_assert_ptr_null(tensor_grad(x));
    backward(tensor_sum(x));
    ASSERT_ELEMENTS(tensor_grad(x), 1, 1);
}
END_TEST

/* Leaves that get the very same gradient tensor must not end up sharing it. */
START_TEST(leaves_do_not_share_gradients)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *y = LEAF(3, 4), *g = LEAF(0, 0);
    struct tensor *sum = tensor_add(tensor_square(g), tensor_add(x, y));
    backward(tensor_sum(tensor_mul(sum, VECTOR(5, 6))));
    tensor_zero_(tensor_grad(x));
    ASSERT_ELEMENTS(tensor_grad(y), 5, 6);
}
END_TEST

START_TEST(used_more_than_once)
{
    SCOPE;
    struct tensor *x = LEAF(3, -1), *y = tensor_square(x);
    struct tensor *z = tensor_add(tensor_mul(y, x), tensor_sub(y, x)); /* x³ + x² - x */
    backward(tensor_sum(tensor_add(z, tensor_mul(x, x))));             /* ... + x² */
    ASSERT_ELEMENTS(tensor_grad(x), 27 + 12 - 1, 3 - 4 - 1);
}
END_TEST

START_TEST(backward_of_a_leaf)
{
    SCOPE;
    struct tensor *x = LEAF(3);
    backward(x);
    backward(x);
    ASSERT_ELEMENTS(tensor_grad(x), 2);
}
END_TEST

START_TEST(set_grad)
{
    SCOPE;
    struct tensor *x = LEAF(3, 4), *grad = VECTOR(1, 1);
    ck_assert_int_eq(tensor_set_grad(x, grad), 0);
    backward(tensor_sum(x));
    ck_assert_ptr_eq(tensor_grad(x), grad);
    ASSERT_ELEMENTS(grad, 2, 2);
    ck_assert_int_eq(tensor_set_grad(x, VECTOR(1)), -1);
    assert_error(&ValueError, "(1)");
    ck_assert_int_eq(tensor_set_grad(x, tensor_cast(grad, FLOAT32)), -1);
    assert_error(&ValueError, "float32");
    ck_assert_int_eq(tensor_set_grad(NULL, grad), -1);
    ck_assert(!error_occurred());
}
END_TEST

START_TEST(backward_refuses)
{
    SCOPE;
    ck_assert_int_eq(tensor_backward(NULL), -1);
    ck_assert(!error_occurred());
    ck_assert_int_eq(tensor_backward(tensor_square(LEAF(1, 2))), -1);
    assert_error(&ValueError, "(2)");
    ck_assert_int_eq(tensor_backward(tensor_sum(VECTOR(1, 2))), -1);
    assert_error(&RuntimeError, "does not require grad");
}
END_TEST

/* ---- grad mode ---- */

START_TEST(no_grad)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *y;
    {
        NO_GRAD;
        ck_assert(!grad_enabled());
        y = tensor_square(x);
        {
            bool former = grad_set_enabled(true);
            ck_assert(!former);
            ck_assert(tensor_requires_grad(tensor_square(x)));
            grad_set_enabled(former);
        }
        tensor_mul_(x, 3);
    }
    ck_assert(grad_enabled());
    ck_assert(!tensor_requires_grad(y));
    ASSERT_ELEMENTS(x, 3, 6);
}
END_TEST

static void *mode_of_another_thread(void *result)
{
    *(bool *)result = grad_enabled();
    return NULL;
}

START_TEST(grad_mode_is_the_threads_own)
{
    NO_GRAD;
    bool enabled = false;
    pthread_t thread;
    pthread_create(&thread, NULL, mode_of_another_thread, &enabled);
    pthread_join(thread, NULL);
    ck_assert(enabled);
}
END_TEST

/* ---- a graph is gone through once ---- */

START_TEST(second_backward_is_refused)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *y = tensor_square(x), *loss = tensor_sum(y);
    backward(loss);
    ck_assert_int_eq(tensor_backward(loss), -1);
    assert_error(&RuntimeError, "earlier backward");
    struct tensor *z = LEAF(5, 6);
    ck_assert_int_eq(tensor_backward(tensor_sum(tensor_mul(y, z))), -1); /* y is used up */
    assert_error(&RuntimeError, "tensor_square");
    ASSERT_ELEMENTS(tensor_grad(x), 2, 4);
    ck_assert_ptr_null(tensor_grad(z));
}
END_TEST

START_TEST(refused_walk_leaves_the_rest_usable)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *fresh = tensor_square(x), *used = tensor_square(x);
    backward(tensor_sum(used));
    ck_assert_int_eq(tensor_backward(tensor_sum(tensor_add(fresh, used))), -1);
    assert_error(&RuntimeError, "earlier backward");
    backward(tensor_sum(fresh));
    ASSERT_ELEMENTS(tensor_grad(x), 4, 8);
}
END_TEST

/* What backward needs is let go on the way, so that its memory can be reused. */
START_TEST(saved_tensors_are_let_go)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *y = tensor_scale(x, 2), *loss = tensor_sum(tensor_square(y));
    ck_assert_int_gt(y->storage->object.references, 1);
    backward(loss);
    ck_assert_int_eq(y->storage->object.references, 1);
}
END_TEST

/* ---- changes in place ---- */

START_TEST(change_of_a_needed_tensor_is_noticed)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *y = tensor_scale(x, 2), *loss = tensor_sum(tensor_square(y));
    tensor_add_(tensor_detach(y), VECTOR(1, 1), 1);
    ck_assert_int_eq(tensor_backward(loss), -1);
    assert_error(&RuntimeError, "tensor_square needs was changed in place");
    ck_assert_ptr_null(tensor_grad(x));
}
END_TEST

START_TEST(change_through_a_view_is_noticed)
{
    SCOPE;
    struct tensor *w = LEAF(1, 2), *x = VECTOR(3, 4);
    struct tensor *loss = tensor_sum(tensor_mul(w, x));
    tensor_fill_(tensor_slice(x, 0, 0, 1), 9);
    ck_assert_int_eq(tensor_backward(loss), -1);
    assert_error(&RuntimeError, "tensor_mul");
}
END_TEST

START_TEST(change_of_an_unneeded_tensor_is_fine)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *y = tensor_scale(x, 2), *z = tensor_add_number(y, 1);
    tensor_zero_(tensor_detach(y));
    backward(tensor_sum(z));
    ASSERT_ELEMENTS(tensor_grad(x), 2, 2);
}
END_TEST

START_TEST(leaf_in_place_needs_no_grad)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *y = VECTOR(1, 1);
    ck_assert_ptr_null(tensor_add_(x, y, 1));
    assert_error(&RuntimeError, "NO_GRAD");
    ck_assert_ptr_null(tensor_mul_(x, 2));
    assert_error(&RuntimeError, "leaf");
    ck_assert_ptr_null(tensor_div_(x, 2));
    assert_error(&RuntimeError, "leaf");
    ck_assert_ptr_null(tensor_copy_(x, y));
    assert_error(&RuntimeError, "leaf");
    ck_assert_ptr_null(tensor_fill_(x, 2));
    assert_error(&RuntimeError, "leaf");
    ck_assert_ptr_null(tensor_zero_(x));
    assert_error(&RuntimeError, "leaf");
    ASSERT_ELEMENTS(x, 1, 2);
    NO_GRAD;
    ck_assert_ptr_nonnull(tensor_add_(x, y, 1));
    ck_assert(tensor_is_leaf(x) && tensor_requires_grad(x));
}
END_TEST

START_TEST(in_place_is_differentiated)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *w = LEAF(3, 4), *y = tensor_square(x);
    tensor_div_(tensor_mul_(y, 6), 2);    /* 3 x² */
    tensor_add_(y, tensor_mul(x, w), -2); /* - 2 x w */
    struct tensor *copy = VECTOR(0, 0);
    tensor_copy_(copy, y);
    backward(tensor_sum(copy));
    ASSERT_ELEMENTS(tensor_grad(x), 6 - 6, 12 - 8);
    ASSERT_ELEMENTS(tensor_grad(w), -2, -4);
}
END_TEST

START_TEST(what_is_overwritten_has_no_gradient)
{
    SCOPE;
    struct tensor *x = LEAF(1, 2), *y = LEAF(5, 6), *z = tensor_scale(x, 7);
    tensor_copy_(z, y);
    backward(tensor_sum(tensor_square(z)));
    ASSERT_ELEMENTS(tensor_grad(x), 0, 0);
    ASSERT_ELEMENTS(tensor_grad(y), 10, 12);
    struct tensor *filled = tensor_fill_(tensor_scale(y, 2), 3);
    backward(tensor_sum(filled));
    ASSERT_ELEMENTS(tensor_grad(y), 10, 12);
}
END_TEST

START_TEST(differentiated_change_of_a_view_is_refused)
{
    SCOPE;
    struct tensor *piece = LEAF(1, 2), *whole = VECTOR(0, 0, 0, 0);
    ck_assert_ptr_null(tensor_copy_(tensor_slice(whole, 0, 0, 2), piece));
    assert_error(&RuntimeError, "tensor_cat");
    NO_GRAD;
    ck_assert_ptr_nonnull(tensor_copy_(tensor_slice(whole, 0, 0, 2), piece));
}
END_TEST

/* ---- dtypes ---- */

START_TEST(through_half_precision)
{
    SCOPE;
    struct tensor *x = LEAF(1.5, 2), *half = tensor_cast(x, FLOAT16);
    ck_assert(tensor_requires_grad(half));
    struct tensor *a = tensor_cast(half, FLOAT64),
                  *b = tensor_cast(tensor_view(half, SHAPE(2, 1)), FLOAT64);
    backward(tensor_sum(tensor_add(tensor_square(a), tensor_view(b, SHAPE(2)))));
    ASSERT_ELEMENTS(tensor_grad(x), 4, 5);
    ck_assert_int_eq(tensor_dtype(tensor_grad(x)), FLOAT64);
}
END_TEST

static TCase *basics(void)
{
    TCase *tests = tcase_create("leaves and modes");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, leaves);
    tcase_add_test(tests, gradients_accumulate_in_one_object);
    tcase_add_test(tests, leaves_do_not_share_gradients);
    tcase_add_test(tests, used_more_than_once);
    tcase_add_test(tests, backward_of_a_leaf);
    tcase_add_test(tests, set_grad);
    tcase_add_test(tests, backward_refuses);
    tcase_add_test(tests, no_grad);
    tcase_add_test(tests, grad_mode_is_the_threads_own);
    tcase_add_test(tests, second_backward_is_refused);
    tcase_add_test(tests, refused_walk_leaves_the_rest_usable);
    tcase_add_test(tests, saved_tensors_are_let_go);
    tcase_add_test(tests, through_half_precision);
    return tests;
}

static TCase *in_place(void)
{
    TCase *tests = tcase_create("in place");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, change_of_a_needed_tensor_is_noticed);
    tcase_add_test(tests, change_through_a_view_is_noticed);
    tcase_add_test(tests, change_of_an_unneeded_tensor_is_fine);
    tcase_add_test(tests, leaf_in_place_needs_no_grad);
    tcase_add_test(tests, in_place_is_differentiated);
    tcase_add_test(tests, what_is_overwritten_has_no_gradient);
    tcase_add_test(tests, differentiated_change_of_a_view_is_refused);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("autograd");
    suite_add_tcase(suite, basics());
    suite_add_tcase(suite, in_place());
    return suite_run(suite);
}
