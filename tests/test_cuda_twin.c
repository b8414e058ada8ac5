/* Every operation of the CUDA device against its twin of the CPU: all dtypes, ways to lie in
 * memory, and sizes. Runs on simulated devices; with TEST_PLUGIN=build/release/cuda.so on real
 * ones. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/ops.h"
#include "runtime/ops_internal.h"
#include "runtime/scope.h"
#include "tests/device.h"
#include "tests/suite.h"
#include "tests/twin.h"

static const struct shape shapes[] = {
    {0, {0}},
    {1, {1}},
    {1, {0}},
    {1, {7}},
    {1, {3001}},
    {2, {3, 5}},
    {2, {0, 4}},
    {2, {129, 1}},
    {2, {1, 33}},
    {2, {60, 65}},
    {3, {2, 3, 4}},
    {3, {5, 1, 40}},
    {4, {3, 2, 1, 4}},
    {5, {2, 1, 3, 2, 2}},
    {8, {2, 2, 1, 2, 1, 2, 3, 2}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static int shape_step = 1; /* TEST_FEWER: some of the shapes, for tools that are slow */

/* ---- functions of each element ---- */

/* Both tables do `op`; out has its own layout, or is x itself. */
static void check_unary(enum unary op, const struct shape *shape, enum dtype dtype,
                        enum layout_kind from, enum layout_kind to)
{
    SCOPE;
    struct twin x = twin_drawn(shape, dtype, from), out = twin_drawn(shape, dtype, to);
    double k = 1.7;
    ck_assert_int_eq(cpu_device.unary(op, out.cpu, x.cpu, k), 0);
    ck_assert_int_eq(gpu_table()->unary(op, out.gpu, x.gpu, k), 0);
    check_close(out, ulps(dtype, 4), 1, scope_printf("unary %d", op));
    if (from == REPEATED)
        return;
    ck_assert_int_eq(cpu_device.unary(op, x.cpu, x.cpu, k), 0);
    ck_assert_int_eq(gpu_table()->unary(op, x.gpu, x.gpu, k), 0);
    check_close(x, ulps(dtype, 4), 1, scope_printf("unary %d in place", op));
}

START_TEST(unary)
{
    enum unary op = (enum unary)(_i / DTYPES);
    for (int s = 0; s < SHAPES; s += shape_step)
        for (int from = 0; from < LAYOUTS; from++)
            for (int to = 0; to < REPEATED; to++)
                check_unary(op, &shapes[s], dtypes[_i % DTYPES], (enum layout_kind)from,
                            (enum layout_kind)to);
}
END_TEST

static void check_binary(enum binary op, const struct shape *shape, enum dtype dtype,
                         enum layout_kind left, enum layout_kind right)
{
    SCOPE;
    struct twin a = twin_drawn(shape, dtype, left), b = twin_drawn(shape, dtype, right);
    struct twin out = twin_drawn(shape, dtype, right == TRANSPOSED ? SLICED : PLAIN);
    double k = -0.3;
    ck_assert_int_eq(cpu_device.binary(op, out.cpu, a.cpu, b.cpu, k), 0);
    ck_assert_int_eq(gpu_table()->binary(op, out.gpu, a.gpu, b.gpu, k), 0);
    check_close(out, ulps(dtype, 4), 1, scope_printf("binary %d", op));
    if (left == REPEATED)
        return;
    ck_assert_int_eq(cpu_device.binary(op, a.cpu, a.cpu, b.cpu, k), 0);
    ck_assert_int_eq(gpu_table()->binary(op, a.gpu, a.gpu, b.gpu, k), 0);
    check_close(a, ulps(dtype, 4), 1, scope_printf("binary %d in place", op));
}

START_TEST(binary)
{
    enum binary op = (enum binary)(_i / DTYPES);
    for (int s = 0; s < SHAPES; s += shape_step)
        for (int left = 0; left < LAYOUTS; left++)
            for (int right = 0; right < LAYOUTS; right++)
                check_binary(op, &shapes[s], dtypes[_i % DTYPES], (enum layout_kind)left,
                             (enum layout_kind)right);
}
END_TEST

static void check_copy(const struct shape *shape, enum dtype from, enum dtype to,
                       enum layout_kind layout, enum layout_kind out_layout)
{
    SCOPE;
    struct twin x = twin_drawn(shape, from, layout), out = twin_drawn(shape, to, out_layout);
    ck_assert_int_eq(cpu_device.copy(out.cpu, x.cpu), 0);
    ck_assert_int_eq(gpu_table()->copy(out.gpu, x.gpu), 0);
    check_close(out, 0, 0, scope_printf("copy of %s", dtype_name(from)));
}

START_TEST(copy)
{
    for (int s = 0; s < SHAPES; s += shape_step)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int to = 0; to < REPEATED; to++)
                check_copy(&shapes[s], dtypes[_i / DTYPES], dtypes[_i % DTYPES],
                           (enum layout_kind)layout, (enum layout_kind)to);
}
END_TEST

/* Halves that round up, down, to even, to infinity, to nothing; what is no number. */
START_TEST(copy_of_special_values)
{
    static const double special[] = {0.0,       -0.0,      65504,   65519.99,     65520,   -1e9,
                                     INFINITY,  -INFINITY, NAN,     0x1p-14,      0x1p-24, 0x1p-25,
                                     0x1.8p-25, 0x1.8p-24, 0x1p-30, 1.0009765625, 2049,    2051,
                                     -0x1p-15,  1e-45,     3e38,    1e300,        -1e-300, 0.1};
    enum { N = sizeof special / sizeof *special };
    const struct shape shape = {1, {N}};
    SCOPE;
    for (int from = 0; from < DTYPES; from++)
        for (int to = 0; to < DTYPES; to++) {
            struct twin x = twin_of(
                tensor_cast(tensor_from_doubles(special, SHAPE(N)), dtypes[from]), &shape, PLAIN);
            struct twin out = {tensor_cast(x.cpu, dtypes[to]), tensor_cast(x.gpu, dtypes[to])};
            check_close(out, 0, 0, "cast of special values");
            out = (struct twin){op_unary(UNARY_RELU, x.cpu, 0), op_unary(UNARY_RELU, x.gpu, 0)};
            check_close(out, 0, 0, "relu of special values");
        }
}
END_TEST

START_TEST(fill)
{
    static const double numbers[] = {0, 1, -0.1, 1e-7, 65519.999, INFINITY, NAN};
    for (int s = 0; s < SHAPES; s += shape_step)
        for (int layout = 0; layout < REPEATED; layout++)
            for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
                SCOPE;
                struct twin out = twin_drawn(&shapes[s], dtypes[_i], (enum layout_kind)layout);
                ck_assert_int_eq(cpu_device.fill(out.cpu, numbers[k]), 0);
                ck_assert_int_eq(gpu_table()->fill(out.gpu, numbers[k]), 0);
                check_close(out, 0, 0, "fill");
            }
}
END_TEST

/* More elements than a launch has threads. */
START_TEST(large)
{
    SCOPE;
    const struct shape shape = {2, {700, 1001}};
    struct twin x = twin_drawn(&shape, FLOAT32, PLAIN), y = twin_drawn(&shape, FLOAT32, TRANSPOSED);
    struct twin sum = {op_binary(BINARY_ADD, x.cpu, y.cpu, 2),
                       op_binary(BINARY_ADD, x.gpu, y.gpu, 2)};
    check_close(sum, ulps(FLOAT32, 2), 1, "binary of a large tensor");
    check_close((struct twin){tensor_sum(sum.cpu), tensor_sum(sum.gpu)}, 1e-6, 1000,
                "sum of a large tensor");
    ck_assert_int_eq(gpu_table()->add_many(1, &sum.gpu, &x.gpu, 1), 0);
    tensor_add_(sum.cpu, x.cpu, 1);
    check_close(sum, ulps(FLOAT32, 2), 1, "add_many of a large tensor");
}
END_TEST

/* ---- sums ---- */

static const struct shape sum_shapes[] = {
    {0, {0}},          {1, {0}},
    {1, {256}},        {1, {257}},
    {1, {70003}},      {2, {0, 3}},
    {2, {3, 0}},       {2, {1000, 37}},
    {2, {3, 7001}},    {2, {7001, 3}},
    {2, {513, 57}},    {3, {4, 300, 5}},
    {4, {3, 2, 1, 4}}, {6, {2, 3, 1, 2, 20, 2}},
};
enum { SUM_SHAPES = sizeof sum_shapes / sizeof *sum_shapes };

static void check_sum(const struct shape *shape, enum dtype dtype, enum layout_kind layout,
                      unsigned kept)
{
    SCOPE;
    struct shape out_shape = *shape;
    double terms = 1;
    for (int d = 0; d < shape->ndim; d++)
        if (!(kept >> d & 1)) {
            terms *= (double)shape->size[d];
            out_shape.size[d] = 1;
        }
    struct twin x = twin_drawn(shape, dtype, layout), out = twin_drawn(&out_shape, dtype, PLAIN);
    ck_assert_int_eq(cpu_device.sum(out.cpu, x.cpu, 0.5), 0);
    ck_assert_int_eq(gpu_table()->sum(out.gpu, x.gpu, 0.5), 0);
    check_close(out, ulps(dtype, 1) + terms * DBL_EPSILON, 1, scope_printf("sum, kept %u", kept));
    struct tensor *again = tensor_empty_like(out.gpu);
    ck_assert_int_eq(gpu_table()->sum(again, x.gpu, 0.5), 0);
    check_close((struct twin){tensor_to(out.gpu, CPU), again}, 0, 0, "the same sum again");
}

START_TEST(sum)
{
    const struct shape *shape = &sum_shapes[_i];
    for (int dtype = 0; dtype < 2; dtype++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (unsigned kept = 0; kept < 1u << shape->ndim; kept++)
                check_sum(shape, dtypes[dtype], (enum layout_kind)layout, kept);
}
END_TEST

START_TEST(mse)
{
    static const int64_t sizes[] = {0, 1, 5, 256, 257, 65537, 300000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        SCOPE;
        const struct shape shape = {1, {sizes[s]}}, one = {0, {0}};
        enum dtype dtype = dtypes[_i];
        struct twin x = twin_drawn(&shape, dtype, PLAIN), y = twin_drawn(&shape, dtype, PLAIN);
        struct twin loss = twin_drawn(&one, dtype, PLAIN), grad = twin_drawn(&shape, dtype, PLAIN);
        ck_assert_int_eq(cpu_device.mse(loss.cpu, x.cpu, y.cpu), 0);
        ck_assert_int_eq(gpu_table()->mse(loss.gpu, x.gpu, y.gpu), 0);
        check_close(loss, ulps(dtype, 2) + (double)sizes[s] * DBL_EPSILON, 0, "mse");
        ck_assert_int_eq(cpu_device.mse_grad(grad.cpu, loss.cpu, x.cpu, y.cpu), 0);
        ck_assert_int_eq(
            gpu_table()->mse_grad(grad.gpu, tensor_to(loss.cpu, FIRST_DEVICE), x.gpu, y.gpu), 0);
        check_close(grad, ulps(dtype, 4), 0, "mse_grad");
    }
}
END_TEST

/* ---- products ---- */

/* A matrix of this shape, row-major or row-major when transposed, its rows close or apart. */
static struct twin matrix(int64_t rows, int64_t columns, enum dtype dtype, bool transposed,
                          bool apart)
{
    struct shape shape = {2, {transposed ? columns : rows, transposed ? rows : columns}};
    struct twin x = twin_drawn(&shape, dtype, apart ? SLICED : PLAIN);
    return transposed ? (struct twin){op_transposed(x.cpu), op_transposed(x.gpu)} : x;
}

static void check_gemm(const int64_t *size, enum dtype dtype, int bits, double beta)
{
    SCOPE;
    const int64_t n = size[0], k = size[1], m = size[2];
    struct twin a = matrix(n, k, dtype, bits & 1, bits & 2);
    struct twin b = matrix(k, m, dtype, bits & 4, bits & 8);
    struct twin out = matrix(n, m, dtype, false, false);
    ck_assert_int_eq(cpu_device.gemm(out.cpu, a.cpu, b.cpu, beta), 0);
    ck_assert_int_eq(gpu_table()->gemm(out.gpu, a.gpu, b.gpu, beta), 0);
    check_close(out, ulps(dtype, 4), 4 * sqrt((double)k) + 4, scope_printf("gemm %d", bits));
}

START_TEST(gemm)
{
    static const int64_t sizes[][3] = {{1, 1, 1},    {3, 4, 5},  {1, 7, 2},    {5, 1, 3},
                                       {33, 65, 17}, {1, 64, 1}, {64, 64, 64}, {130, 70, 90}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int bits = 0; bits < 16; bits++)
            for (int beta = 0; beta < 3; beta++)
                check_gemm(sizes[s], dtypes[_i], bits, 0.5 * beta);
}
END_TEST

START_TEST(products_of_nothing)
{
    SCOPE;
    static const int64_t sizes[][3] = {{0, 3, 4}, {3, 0, 4}, {3, 4, 0}};
    for (int i = 0; i < 3; i++) {
        const struct shape columns = {1, {sizes[i][2]}};
        struct twin x = matrix(sizes[i][0], sizes[i][1], dtypes[_i], false, false);
        struct twin w = matrix(sizes[i][2], sizes[i][1], dtypes[_i], false, false);
        struct twin bias = twin_drawn(&columns, dtypes[_i], PLAIN);
        struct twin y = {tensor_linear(x.cpu, w.cpu, NULL), tensor_linear(x.gpu, w.gpu, NULL)};
        check_close(y, 0, 0, "an empty product");
        y = (struct twin){tensor_linear(x.cpu, w.cpu, bias.cpu),
                          tensor_linear(x.gpu, w.gpu, bias.gpu)};
        check_close(y, 0, 0, "an empty product and a bias");
    }
}
END_TEST

/* ---- many at once ---- */

START_TEST(add_many)
{
    enum { MOST = 70 };
    static const int counts[] = {1, 5, 31, 32, 33, 64, MOST};
    struct twin out[MOST], x[MOST];
    struct tensor *gpu_out[MOST], *gpu_x[MOST];
    SCOPE;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int i = 0; i < counts[c]; i++) {
            const struct shape *shape = &shapes[i % SHAPES];
            out[i] = twin_drawn(shape, dtypes[_i], PLAIN);
            x[i] = twin_drawn(shape, dtypes[_i], PLAIN);
            gpu_out[i] = out[i].gpu;
            gpu_x[i] = x[i].gpu;
            cpu_device.binary(BINARY_ADD, out[i].cpu, out[i].cpu, x[i].cpu, -0.1);
        }
        ck_assert_int_eq(gpu_table()->add_many(counts[c], gpu_out, gpu_x, -0.1), 0);
        for (int i = 0; i < counts[c]; i++)
            check_close(out[i], ulps(dtypes[_i], 2), 1, "add_many");
    }
}
END_TEST

int main(void)
{
    draw_numbers();
    shape_step = getenv("TEST_FEWER") ? 4 : 1;
    Suite *suite = suite_create("cuda_twin");
    TCase *tests = tcase_create("cuda_twin");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, device_load, NULL);
    tcase_add_loop_test(tests, unary, 0, UNARY_COUNT * DTYPES);
    tcase_add_loop_test(tests, binary, 0, BINARY_COUNT * DTYPES);
    tcase_add_loop_test(tests, copy, 0, DTYPES * DTYPES);
    tcase_add_test(tests, copy_of_special_values);
    tcase_add_loop_test(tests, fill, 0, DTYPES);
    tcase_add_test(tests, large);
    tcase_add_loop_test(tests, sum, 0, SUM_SHAPES);
    tcase_add_loop_test(tests, mse, 0, 2);
    tcase_add_loop_test(tests, gemm, 0, 2);
    tcase_add_loop_test(tests, products_of_nothing, 0, 2);
    tcase_add_loop_test(tests, add_many, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
