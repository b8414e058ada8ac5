/* Differentiation: leaves, grad mode, graphs of any length built on any thread, what is refused. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/autograd_internal.h"
#include "runtime/error.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "runtime/tensor_internal.h"
#include "tests/suite.h"

static struct tensor *vector(const double *values, int n)
{
    return tensor_from_doubles(values, SHAPE(n));
}
#define VECTOR(...)                                                                                \
    vector((const double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))
#define LEAF(...) tensor_set_requires_grad(VECTOR(__VA_ARGS__), true)

static void assert_elements(const struct tensor *x, int n, const double *expected)
{
    double got[64];
    ck_assert_ptr_nonnull(x);
    ck_assert_int_eq(tensor_numel(x), n);
    ck_assert_int_eq(tensor_read(x, got), 0);
    for (int i = 0; i < n; i++)
        ck_assert_double_eq_tol(got[i], expected[i], 1e-12);
}
#define ASSERT_ELEMENTS(x, ...)                                                                    \
    assert_elements((x), (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                  \
                    (const double[]){__VA_ARGS__})

static void assert_error(const struct error_type *type, const char *part)
{
    ck_assert_msg(error_is(type), "no %s", type->name);
    ck_assert_msg(strstr(error_message(error_pending()), part) != NULL,
                  "\"%s\" does not say \"%s\"", error_message(error_pending()), part);
    error_clear();
}

static void backward(struct tensor *x)
{
    int status = tensor_backward(x);
    ck_assert_msg(status == 0, "backward: %s",
                  error_occurred() ? error_message(error_pending()) : "no error");
}

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

/* ---- long graphs ---- */

enum { LONG = 100000 };

static struct tensor *long_chain(struct tensor *x)
{
    for (int i = 0; i < LONG; i++)
        x = tensor_add_number(x, 1);
    return x;
}

START_TEST(backward_through_100000_operations)
{
    SCOPE;
    struct tensor *x = LEAF(1);
    backward(long_chain(x));
    ASSERT_ELEMENTS(tensor_grad(x), 1);
}
END_TEST

/* The end alone holds the chain: each tensor on the way is let go as soon as it was used. */
START_TEST(release_of_100000_operations)
{
    SCOPE;
    struct tensor *x = LEAF(1), *end = tensor_retain(x);
    for (int i = 0; i < LONG; i++) {
        SCOPE;
        struct tensor *next = tensor_retain(tensor_add_number(end, 1));
        tensor_release(end);
        end = next;
    }
    ck_assert_double_eq(tensor_item(end), 1 + LONG);
    int references = x->object.references;
    tensor_release(end);
    ck_assert_int_eq(x->object.references, references - 1);
}
END_TEST

START_TEST(backward_frees_a_chain_held_by_its_end)
{
    SCOPE;
    struct tensor *x = LEAF(1), *end = tensor_retain(x);
    for (int i = 0; i < LONG; i++) {
        SCOPE;
        struct tensor *next = tensor_retain(tensor_scale(end, 1));
        tensor_release(end);
        end = next;
    }
    backward(end);
    ASSERT_ELEMENTS(tensor_grad(x), 1);
    tensor_release(end);
}
END_TEST

START_TEST(wide_graph)
{
    SCOPE;
    struct tensor *x = LEAF(2), *leaves[1000], *sum = tensor_scale(x, 0);
    for (int i = 0; i < 1000; i++) {
        leaves[i] = LEAF(i);
        sum = tensor_add(sum, tensor_mul(x, leaves[i]));
    }
    backward(sum);
    ASSERT_ELEMENTS(tensor_grad(x), 499500);
    for (int i = 0; i < 1000; i++)
        ASSERT_ELEMENTS(tensor_grad(leaves[i]), 2);
}
END_TEST

/* ---- threads ---- */

enum { THREADS = 4, REPEATS = 20 };

struct part {
    struct tensor *weight, *input, *output; /* output: retained */
};

static void *build_part(void *argument)
{
    struct part *part = argument;
    SCOPE;
    struct tensor *y = part->input;
    for (int i = 0; i < 10; i++)
        y = tensor_tanh(tensor_linear(y, part->weight, NULL));
    part->output = tensor_retain(y);
    return NULL;
}

static struct tensor *wave(int64_t rows, int64_t columns, double phase)
{
    struct tensor *x = tensor_zeros(SHAPE(rows, columns), FLOAT32, CPU);
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)tensor_data(x))[i] = (float)sin(phase + (double)i);
    return x;
}

/* Build the same graph in parts, on threads or one after the other, join them and go back. */
static void gradient_of_parts(bool threads, float *gradient)
{
    SCOPE;
    pthread_t thread[THREADS];
    struct part parts[THREADS];
    struct tensors *outputs = tensors_new(THREADS);
    struct tensor *weight = tensor_set_requires_grad(wave(8, 8, 0.5), true);
    for (int i = 0; i < THREADS; i++) {
        parts[i] = (struct part){.weight = weight, .input = wave(3, 8, i)};
        if (threads)
            pthread_create(&thread[i], NULL, build_part, &parts[i]);
        else
            build_part(&parts[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        if (threads)
            pthread_join(thread[i], NULL);
        outputs->at[i] = parts[i].output;
    }
    backward(tensor_mean(tensor_square(tensor_cat(outputs))));
    memcpy(gradient, tensor_data(tensor_grad(weight)), 64 * sizeof *gradient);
    for (int i = 0; i < THREADS; i++)
        tensor_release(parts[i].output);
}

START_TEST(parts_of_a_graph_on_several_threads)
{
    float serial[64], parallel[64];
    gradient_of_parts(false, serial);
    ck_assert(serial[0] != 0);
    for (int i = 0; i < REPEATS; i++) {
        gradient_of_parts(true, parallel);
        ck_assert_mem_eq(serial, parallel, sizeof serial); /* to the bit, whatever the timing */
    }
}
END_TEST

static void *train_on_shared_leaf(void *leaf)
{
    for (int i = 0; i < REPEATS; i++) {
        SCOPE;
        if (tensor_backward(tensor_sum(tensor_scale(leaf, 2))) < 0)
            return leaf;
    }
    return NULL;
}

START_TEST(backwards_into_one_leaf_on_several_threads)
{
    SCOPE;
    pthread_t thread[THREADS];
    struct tensor *x = LEAF(1, 2, 3);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, train_on_shared_leaf, x);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        ck_assert_ptr_null(failed);
    }
    const double total = 2 * THREADS * REPEATS;
    ASSERT_ELEMENTS(tensor_grad(x), total, total, total);
}
END_TEST

/* ---- hooks ---- */

struct seen {
    int calls;
    double grad;
};

static void count_call(void *context, struct tensor *leaf)
{
    struct seen *seen = context;
    seen->calls++;
    seen->grad = tensor_item(tensor_grad(leaf));
}

START_TEST(hook_sees_the_complete_gradient)
{
    SCOPE;
    struct seen seen = {0};
    struct tensor *x = LEAF(3), *other = LEAF(1);
    ck_assert_int_eq(tensor_on_grad_ready(x, count_call, &seen), 0);
    backward(tensor_add(tensor_mul(x, tensor_square(x)), tensor_add(x, other))); /* x³ + x */
    ck_assert_int_eq(seen.calls, 1);
    ck_assert_double_eq(seen.grad, 28);
    backward(tensor_scale(x, 2));
    ck_assert_int_eq(seen.calls, 2);
    ck_assert_double_eq(seen.grad, 30);
    backward(other);
    ck_assert_int_eq(tensor_on_grad_ready(x, NULL, NULL), 0);
    backward(tensor_scale(x, 2));
    ck_assert_int_eq(seen.calls, 2);
}
END_TEST

static void raise_in_hook(void *context, struct tensor *leaf)
{
    (void)leaf;
    (void)raise_error(ValueError, "%s", (const char *)context);
}

START_TEST(error_in_a_hook_ends_backward)
{
    SCOPE;
    struct tensor *x = LEAF(3), *y = LEAF(4);
    tensor_on_grad_ready(x, raise_in_hook, "not today");
    ck_assert_int_eq(tensor_backward(tensor_add(x, tensor_square(y))), -1);
    assert_error(&ValueError, "not today");
    ck_assert_ptr_null(tensor_grad(y));
    ck_assert_int_eq(tensor_on_grad_ready(tensor_square(y), count_call, NULL), -1);
    assert_error(&ValueError, "leaf");
    ck_assert_int_eq(tensor_on_grad_ready(NULL, count_call, NULL), -1);
    ck_assert(!error_occurred());
}
END_TEST

static struct tensor *ready_first;

static void note_first(void *context, struct tensor *leaf)
{
    (void)context;
    ready_first = ready_first ? ready_first : leaf;
}

/* The last layer's gradients are complete while the first layer's are still to come. */
START_TEST(hooks_are_called_on_the_way)
{
    SCOPE;
    struct tensor *first = LEAF(1), *last = LEAF(1);
    tensor_on_grad_ready(first, note_first, NULL);
    tensor_on_grad_ready(last, note_first, NULL);
    ready_first = NULL;
    backward(tensor_mul(tensor_tanh(tensor_mul(VECTOR(1), first)), last));
    ck_assert_ptr_eq(ready_first, last);
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

static TCase *graphs(void)
{
    TCase *tests = tcase_create("graphs, threads and hooks");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, backward_through_100000_operations);
    tcase_add_test(tests, release_of_100000_operations);
    tcase_add_test(tests, backward_frees_a_chain_held_by_its_end);
    tcase_add_test(tests, wide_graph);
    tcase_add_test(tests, parts_of_a_graph_on_several_threads);
    tcase_add_test(tests, backwards_into_one_leaf_on_several_threads);
    tcase_add_test(tests, hook_sees_the_complete_gradient);
    tcase_add_test(tests, error_in_a_hook_ends_backward);
    tcase_add_test(tests, hooks_are_called_on_the_way);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("autograd");
    suite_add_tcase(suite, basics());
    suite_add_tcase(suite, in_place());
    suite_add_tcase(suite, graphs());
    return suite_run(suite);
}
