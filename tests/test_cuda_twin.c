/* Every operation of the CUDA device against its twin of the CPU: all dtypes, ways to lie in
 * memory, and sizes. Runs on simulated devices; with TEST_PLUGIN=build/release/cuda.so on real
 * ones. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/ops.h"
#include "runtime/ops_internal.h"
#include "runtime/optim.h"
#include "runtime/rng.h"
#include "runtime/scope.h"
#include "tests/device.h"
#include "tests/suite.h"

static const enum dtype dtypes[] = {FLOAT32, FLOAT64, FLOAT16};
enum { DTYPES = 3 };

/* ---- the same tensor on both devices ---- */

struct twin {
    struct tensor *cpu, *gpu;
};

enum layout_kind { PLAIN, TRANSPOSED, SLICED, REPEATED, LAYOUTS };

struct shape {
    int ndim;
    int64_t size[TENSOR_MAX_DIMS];
};

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

/* Normal numbers, drawn once and read from somewhere in between. */
enum { NUMBERS = 1 << 14 };
static double numbers[NUMBERS];
static uint32_t next_number;

static void draw_numbers(void)
{
    struct rng rng;
    rng_seed(&rng, 42);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = 2 * rng_gauss(&rng);
}

static struct tensor *drawn(const struct shape *shape, enum dtype dtype)
{
    struct tensor *x = tensor_empty(shape->ndim, shape->size, FLOAT64, CPU);
    double *data = tensor_data(x);
    for (int64_t i = 0; i < tensor_numel(x); i++)
        data[i] = numbers[next_number++ % NUMBERS];
    next_number += 37;
    return tensor_cast(x, dtype);
}

static struct tensor *viewed(struct tensor *base, const struct shape *shape,
                             enum layout_kind layout)
{
    int last = shape->ndim - 1;
    switch (layout) {
    case TRANSPOSED:
        return last > 0 ? tensor_transpose(base, 0, last) : base;
    case SLICED:
        return last >= 0 ? tensor_slice(base, last, 1, shape->size[last]) : base;
    case REPEATED:
        return op_expand(base, shape->ndim, shape->size);
    default:
        return base;
    }
}

/* What such a view is made of. */
static struct shape base_of(struct shape shape, enum layout_kind layout)
{
    int last = shape.ndim - 1;
    if (layout == TRANSPOSED && last > 0) {
        int64_t first = shape.size[0];
        shape.size[0] = shape.size[last];
        shape.size[last] = first;
    } else if (layout == SLICED && last >= 0) {
        shape.size[last] += 3;
    } else if (layout == REPEATED) {
        for (int d = 0; d < shape.ndim; d += 2)
            shape.size[d] = 1;
    }
    return shape;
}

static struct twin twin_of(struct tensor *cpu, const struct shape *shape, enum layout_kind layout)
{
    struct tensor *gpu = tensor_to(cpu, FIRST_DEVICE);
    struct twin twin = {viewed(cpu, shape, layout), viewed(gpu, shape, layout)};
    ck_assert_ptr_nonnull(twin.cpu);
    ck_assert_ptr_nonnull(twin.gpu);
    return twin;
}

static struct twin twin_drawn(const struct shape *shape, enum dtype dtype, enum layout_kind layout)
{
    struct shape base = base_of(*shape, layout);
    return twin_of(drawn(&base, dtype), shape, layout);
}

/* ---- comparing ---- */

static double ulps(enum dtype dtype, double n)
{
    return n * (dtype == FLOAT32 ? FLT_EPSILON : dtype == FLOAT64 ? DBL_EPSILON : 0x1p-10);
}

/* |got - expected| <= tolerance * (|expected| + scale); NAN and INFINITY where they belong */
static void check_close(struct twin twin, double tolerance, double scale, const char *what)
{
    int64_t n = tensor_numel(twin.cpu);
    double *got = scope_alloc((size_t)n * sizeof *got + 1);
    double *expected = scope_alloc((size_t)n * sizeof *expected + 1);
    ck_assert_msg(!error_occurred(), "%s: %s", what,
                  error_occurred() ? error_message(error_pending()) : "");
    ck_assert_int_eq(tensor_read(twin.cpu, expected), 0);
    ck_assert_int_eq(tensor_read(twin.gpu, got), 0);
    for (int64_t i = 0; i < n; i++) {
        bool same = got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i]));
        if (!same && !(fabs(got[i] - expected[i]) <= tolerance * (fabs(expected[i]) + scale)))
            ck_abort_msg("%s of %s %s: element %lld is %.17g, not %.17g", what,
                         tensor_shape_name(twin.cpu), dtype_name(tensor_dtype(twin.cpu)),
                         (long long)i, got[i], expected[i]);
    }
}

static const struct device_table *gpu_table(void)
{
    return plugin_current()->table;
}

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

/* ---- between devices ---- */

START_TEST(transfer)
{
    static const int64_t sizes[] = {0, 1, 1000, 1 << 20, (1 << 20) + 1, 3 << 20, (5 << 20) + 7};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        SCOPE;
        struct tensor *x = tensor_empty(SHAPE(sizes[s]), dtypes[_i], CPU);
        unsigned char *bytes = tensor_data(x);
        size_t n = (size_t)sizes[s] * (size_t)dtype_size(dtypes[_i]);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)(i * 2654435761u >> 24);
        struct tensor *there = tensor_to(tensor_to(x, FIRST_DEVICE), LAST_DEVICE);
        struct tensor *back = tensor_to(tensor_to(there, FIRST_DEVICE), CPU);
        ck_assert_ptr_nonnull(back);
        ck_assert(device_equal(tensor_device(there), LAST_DEVICE));
        ck_assert_int_eq(memcmp(tensor_data(back), tensor_data(x), n), 0);
    }
}
END_TEST

/* A copy has what the source held when it was asked for, whatever happens to the source then. */
START_TEST(source_may_change_after_transfer)
{
    SCOPE;
    NO_GRAD;
    const struct shape shape = {2, {1000, 100}};
    struct tensor *x = tensor_to(drawn(&shape, FLOAT32), FIRST_DEVICE);
    struct tensor *expected = tensor_to(x, CPU);
    if (_i)
        gpu_table()->mark(x);
    struct tensor *copy = tensor_to(x, LAST_DEVICE);
    for (int i = 0; i < 3; i++)
        tensor_mul_(x, 3);
    struct tensor *changed = tensor_to(x, LAST_DEVICE);
    check_close((struct twin){expected, copy}, 0, 0, "the copy");
    check_close((struct twin){tensor_scale(expected, 27), changed}, ulps(FLOAT32, 3), 0,
                "the copy of what was changed, though marked before");
}
END_TEST

/* Memory goes while copies of it are under way, and comes back as other tensors. */
START_TEST(source_may_go_after_transfer)
{
    const struct shape shape = {2, {300, 100}};
    for (int round = 0; round < 50; round++) {
        SCOPE;
        struct twin x = twin_drawn(&shape, FLOAT32, PLAIN);
        struct tensor *sum = tensor_zeros(SHAPE(300, 100), FLOAT32, LAST_DEVICE);
        for (int i = 0; i < 4; i++) {
            SCOPE;
            NO_GRAD;
            tensor_add_(sum, tensor_to(tensor_scale(x.gpu, i), LAST_DEVICE), 1);
        }
        check_close((struct twin){tensor_scale(x.cpu, 6), sum}, ulps(FLOAT32, 4), 1, "sum");
    }
}
END_TEST

/* ---- all together ---- */

static struct tensor *weight(const struct shape *shape, struct device device)
{
    return tensor_set_requires_grad(tensor_to(drawn(shape, FLOAT32), device), true);
}

/* The loss after three steps of a small model in two halves. */
static double train(struct device first, struct device second)
{
    SCOPE;
    const struct shape w0 = {2, {7, 4}}, b0 = {1, {7}}, w1 = {2, {3, 7}}, rows = {2, {6, 4}};
    next_number = 0;
    struct tensor *p[] = {weight(&w0, first), weight(&b0, first), weight(&w1, second)};
    struct tensor *x = tensor_to(drawn(&rows, FLOAT32), first), *loss = NULL;
    for (int step = 0; step < 3; step++) {
        struct tensor *hidden = tensor_gelu(tensor_linear(x, p[0], p[1]));
        struct tensor *out = tensor_linear(tensor_to(hidden, second), p[2], NULL);
        loss = tensor_mean(tensor_square(out));
        ck_assert_int_eq(tensor_backward(loss), 0);
        NO_GRAD;
        for (int i = 0; i < 3; i++) {
            ck_assert_ptr_nonnull(tensor_add_(p[i], tensor_grad(p[i]), -0.01));
            tensor_set_grad(p[i], NULL);
        }
    }
    return tensor_item(loss);
}

START_TEST(training)
{
    double expected = train(CPU, CPU);
    ck_assert(expected > 0);
    ck_assert_double_eq_tol(train(FIRST_DEVICE, FIRST_DEVICE), expected, 1e-5 * expected);
    ck_assert_double_eq_tol(train(FIRST_DEVICE, LAST_DEVICE), expected, 1e-5 * expected);
    ck_assert_double_eq_tol(train(LAST_DEVICE, CPU), expected, 1e-5 * expected);
}
END_TEST

/* Many parameters, on devices in turn, some without gradient. */
START_TEST(optimizer)
{
    enum { LAYERS = 100, RUN = 40 };
    SCOPE;
    struct rng rng;
    rng_seed(&rng, 1);
    struct module *layers[LAYERS], *twins[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        enum dtype dtype = i % 30 == 29 ? FLOAT64 : FLOAT32;
        twins[i] = linear_new(3 + i % 5, 4, dtype, CPU, &rng);
        layers[i] = module_to(module_copy(twins[i]), i / RUN % 2 ? LAST_DEVICE : FIRST_DEVICE);
    }
    struct module *cpu = sequential_new(LAYERS, twins), *gpu = sequential_new(LAYERS, layers);
    struct named_tensors *p = module_named_parameters(cpu), *q = module_named_parameters(gpu);
    for (int i = 0; i < p->n; i++) {
        struct tensor *x = p->at[i].tensor;
        struct tensor *grad = tensor_uniform_(tensor_detach(tensor_clone(x)), -1, 1, &rng);
        if (i % 17 == 16)
            continue;
        tensor_set_grad(x, grad);
        tensor_set_grad(q->at[i].tensor, tensor_to(grad, tensor_device(q->at[i].tensor)));
    }
    ck_assert_int_eq(optimizer_step(sgd_new(cpu, 0.3)), 0);
    ck_assert_int_eq(optimizer_step(sgd_new(gpu, 0.3)), 0);
    for (int i = 0; i < p->n; i++)
        check_close((struct twin){p->at[i].tensor, q->at[i].tensor}, ulps(FLOAT32, 2), 1,
                    p->at[i].name);
}
END_TEST

/* ---- errors ---- */

START_TEST(a_device_that_is_not_there)
{
    SCOPE;
    ck_assert_ptr_null(tensor_zeros(SHAPE(1), FLOAT32, CUDA(device_count())));
    ck_assert(error_is(&RuntimeError));
    ck_assert_str_eq(error_message(error_pending()),
                     scope_printf("there is no device cuda:%d here", device_count()));
}
END_TEST

START_TEST(more_memory_than_there_is)
{
    SCOPE;
    ck_assert_ptr_null(tensor_empty(SHAPE((int64_t)1 << 50), FLOAT32, FIRST_DEVICE));
    ck_assert(error_is(&MemoryError));
    ck_assert_ptr_nonnull(strstr(error_message(error_pending()), "cudaErrorMemoryAllocation: "));
    error_clear();
    struct tensor *x = tensor_full(SHAPE(4), 1.5, FLOAT32, FIRST_DEVICE);
    ck_assert_double_eq(tensor_item(tensor_sum(x)), 6); /* the device still works */
}
END_TEST

START_TEST(operands_on_two_devices)
{
    SCOPE;
    struct tensor *x = tensor_zeros(SHAPE(2), FLOAT32, FIRST_DEVICE);
    ck_assert_ptr_null(tensor_add(x, tensor_zeros(SHAPE(2), FLOAT32, CPU)));
    ck_assert(error_is(&RuntimeError));
    ck_assert_str_eq(error_message(error_pending()),
                     "tensor_add of tensors on cuda:0 and cpu: move one with tensor_to");
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
    tcase_add_loop_test(tests, transfer, 0, DTYPES);
    tcase_add_loop_test(tests, source_may_change_after_transfer, 0, 2);
    tcase_add_test(tests, source_may_go_after_transfer);
    tcase_add_test(tests, training);
    tcase_add_test(tests, optimizer);
    tcase_add_test(tests, a_device_that_is_not_there);
    tcase_add_test(tests, more_memory_than_there_is);
    tcase_add_test(tests, operands_on_two_devices);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
