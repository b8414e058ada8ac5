/* Graphs of any length built on any thread, and the hooks that are called on the way back. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "runtime/autograd_internal.h"
#include "runtime/scope.h"
#include "runtime/tensor_internal.h"
#include "tests/autograd.h"
#include "tests/suite.h"

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

int main(void)
{
    Suite *suite = suite_create("autograd_graphs");
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
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
