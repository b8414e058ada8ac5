/* Random numbers against CPython's (tests/golden/rng.json), and the tensors filled with them. */
#include <inttypes.h>
#include <string.h>

#include "runtime/ops.h"
#include "runtime/rng.h"
#include "tests/golden.h"
#include "tests/suite.h"

enum { SEEDS = 6 };

static json_t *golden;

static void load(void)
{
    golden = golden_load("rng.json");
    ck_assert_uint_eq(json_array_size(json_object_get(golden, "cases")), SEEDS);
}

static void unload(void)
{
    json_decref(golden);
}

static json_t *seeded(struct rng *rng, int index)
{
    json_t *expected = json_array_get(json_object_get(golden, "cases"), (size_t)index);
    rng_seed(rng, (uint64_t)json_integer_value(json_object_get(expected, "seed")));
    return expected;
}

static uint64_t number(const json_t *text)
{
    return strtoull(json_string_value(text), NULL, 10);
}

START_TEST(same_stream)
{
    struct rng rng;
    json_t *expected = seeded(&rng, _i), *bounds = json_object_get(golden, "bounds"), *value;
    size_t i;
    json_array_foreach(json_object_get(expected, "bits"), i, value)
        ck_assert_uint_eq(rng_bits(&rng, (int)i + 1), number(value));
    json_array_foreach(json_object_get(expected, "below"), i, value)
        ck_assert_uint_eq(rng_below(&rng, number(json_array_get(bounds, i))), number(value));
    for (i = 0; i < 700; i++) {
        double got = rng_double(&rng);
        value = json_array_get(json_object_get(expected, "doubles"), i / 100);
        if (i % 100 == 0)
            ck_assert_double_eq(got, json_real_value(value));
    }
}
END_TEST

static void shuffled(struct rng *rng, int64_t *order, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    rng_shuffle(rng, order, n);
}

START_TEST(same_shuffle)
{
    struct rng rng;
    json_t *expected = json_object_get(seeded(&rng, _i), "shuffled_17"), *value;
    int64_t order[17];
    size_t i;
    shuffled(&rng, order, 17);
    json_array_foreach(expected, i, value) ck_assert_int_eq(order[i], json_integer_value(value));
}
END_TEST

START_TEST(same_shuffle_at_every_size_to_1000)
{
    struct rng rng;
    int64_t order[1000];
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    char text[17];
    for (int64_t n = 0; n <= 1000; n++) {
        seeded(&rng, _i);
        shuffled(&rng, order, n);
        for (int64_t i = 0; i < n; i++)
            digest = (digest ^ (uint64_t)order[i]) * UINT64_C(0x100000001b3);
    }
    snprintf(text, sizeof text, "%016" PRIx64, digest);
    ck_assert_str_eq(text,
                     json_string_value(json_object_get(seeded(&rng, _i), "shuffled_to_1000")));
}
END_TEST

START_TEST(default_generator_is_seeded_with_0)
{
    struct rng own;
    rng_seed(&own, 0);
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(rng_bits(rng_default(), 64), rng_bits(&own, 64));
}
END_TEST

START_TEST(nothing_is_below_0)
{
    struct rng rng;
    rng_seed(&rng, 1);
    ck_assert_uint_eq(rng_below(&rng, 0), 0);
    check_raised(&ValueError, "no number below 0");
    ck_assert_uint_eq(rng_below(&rng, 1), 0);
    ck_assert(!error_occurred());
}
END_TEST

START_TEST(generators_are_independent)
{
    struct rng one, two, alone;
    rng_seed(&one, 19);
    rng_seed(&two, 20);
    rng_seed(&alone, 19);
    for (int i = 0; i < 700; i++) {
        ck_assert_uint_eq(rng_bits(&one, 32), rng_bits(&alone, 32));
        rng_bits(&two, 32);
    }
}
END_TEST

/* Mean and standard deviation of 100,000 draws are within five standard errors. */
static void check_moments(const double *values, int n, double mean, double std)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    for (int i = 0; i < n; i++)
        squares += (values[i] - sum / n) * (values[i] - sum / n);
    ck_assert_double_eq_tol(sum / n, mean, 5 * std / sqrt(n));
    ck_assert_double_eq_tol(sqrt(squares / n), std, 5 * std / sqrt(n));
}

static double below_one_sigma(const double *values, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += fabs(values[i]) < 1;
    return (double)count / n;
}

START_TEST(gauss_is_standard_normal)
{
    enum { N = 100000 };
    static double values[N];
    struct rng rng;
    rng_seed(&rng, 7);
    for (int i = 0; i < N; i++)
        values[i] = rng_gauss(&rng);
    check_moments(values, N, 0, 1);
    ck_assert_double_eq_tol(below_one_sigma(values, N), erf(sqrt(0.5)), 0.008);
}
END_TEST

START_TEST(tensors_are_filled_in_row_major_order)
{
    SCOPE;
    struct rng rng, again;
    rng_seed(&rng, 3);
    rng_seed(&again, 3);
    struct tensor *x = tensor_zeros(SHAPE(3, 2), FLOAT64, CPU);
    ck_assert_ptr_eq(tensor_uniform_(tensor_transpose(x, 0, 1), -2, 5, &rng) ? x : NULL, x);
    for (int column = 0; column < 2; column++)
        for (int row = 0; row < 3; row++)
            ck_assert_double_eq(tensor_get(x, row, column), -2 + 7 * rng_double(&again));
}
END_TEST

START_TEST(float32_and_float64_get_the_same_numbers)
{
    SCOPE;
    struct rng rng, again;
    rng_seed(&rng, 3);
    rng_seed(&again, 3);
    struct tensor *single = tensor_normal_(tensor_zeros(SHAPE(50), FLOAT32, CPU), 1, 2, &rng);
    struct tensor *twice = tensor_normal_(tensor_zeros(SHAPE(50), FLOAT64, CPU), 1, 2, &again);
    int inexact = 0;
    for (int i = 0; i < 50; i++) {
        ck_assert_double_eq(tensor_get(single, i), (float)tensor_get(twice, i));
        inexact += tensor_get(single, i) != tensor_get(twice, i);
    }
    ck_assert_int_gt(inexact, 40); /* the FLOAT64 values are not FLOAT32 values in disguise */
}
END_TEST

START_TEST(null_passes_through)
{
    struct rng rng;
    rng_seed(&rng, 1);
    ck_assert_ptr_null(tensor_uniform_(NULL, 0, 1, &rng));
    ck_assert_ptr_null(tensor_normal_(NULL, 0, 1, &rng));
    ck_assert(!error_occurred());
}
END_TEST

START_TEST(a_leaf_is_not_filled_while_gradients_are_recorded)
{
    SCOPE;
    struct rng rng;
    rng_seed(&rng, 1);
    struct tensor *leaf = tensor_set_requires_grad(tensor_zeros(SHAPE(2), FLOAT32, CPU), true);
    ck_assert_ptr_null(tensor_uniform_(leaf, 0, 1, &rng));
    check_raised(&RuntimeError, "uniform_ of a leaf");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rng");
    TCase *python = tcase_create("as CPython"), *own = tcase_create("own");
    tcase_set_timeout(python, 60);
    tcase_add_checked_fixture(python, load, unload);
    tcase_add_loop_test(python, same_stream, 0, SEEDS);
    tcase_add_loop_test(python, same_shuffle, 0, SEEDS);
    tcase_add_loop_test(python, same_shuffle_at_every_size_to_1000, 0, SEEDS);
    tcase_set_timeout(own, 60);
    tcase_add_test(own, default_generator_is_seeded_with_0);
    tcase_add_test(own, nothing_is_below_0);
    tcase_add_test(own, generators_are_independent);
    tcase_add_test(own, gauss_is_standard_normal);
    tcase_add_test(own, tensors_are_filled_in_row_major_order);
    tcase_add_test(own, float32_and_float64_get_the_same_numbers);
    tcase_add_test(own, null_passes_through);
    tcase_add_test(own, a_leaf_is_not_filled_while_gradients_are_recorded);
    suite_add_tcase(suite, python);
    suite_add_tcase(suite, own);
    return suite_run(suite);
}
