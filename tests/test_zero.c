/* What the ZeRO engine computes: DeepSpeed's values, PyTorch's, and those of a reference written
 * here in double precision. */
#include <check.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/zero_ranks.h"

/* ---- training in a rank ---- */

struct training {
    struct module *(*model)(void);
    double lr;
    json_t *config;
    int steps, batch_rows;
    bool clear_between; /* as a student might: gradients cleared inside the window */
};

static bool frozen_differ(struct module *a, struct module *b)
{
    struct named_tensors *x = module_named_parameters(a), *y = module_named_parameters(b);
    bool differ = false;
    for (int i = 0; i < x->n; i++)
        if (!tensor_requires_grad(x->at[i].tensor))
            differ |= memcmp(tensor_data(x->at[i].tensor), tensor_data(y->at[i].tensor),
                             (size_t)tensor_numel(x->at[i].tensor) * sizeof(float)) != 0;
    return differ;
}

/* rows_of - `count` rows from `first` of the public batches, used over and over */
static struct tensor *rows_of(struct tensor *(*batch)(int), int step, int64_t first, int64_t count,
                              enum dtype dtype)
{
    struct tensors *rows = tensors_new((int)count);
    for (int i = 0; i < count; i++)
        rows->at[i] = tensor_slice(batch((step + (int)(first + i) / BATCH_ROWS) % BATCH_COUNT), 0,
                                   (first + i) % BATCH_ROWS, 1);
    return tensor_cast(tensor_cat(rows), dtype);
}

static enum dtype dtype_of(struct module *model)
{
    return tensor_dtype(module_named_parameters(model)->at[0].tensor);
}

static int train_microbatch(struct engine *engine, struct module *model, int step, int64_t first,
                            int64_t rows, double *loss_out)
{
    enum dtype dtype = dtype_of(model);
    struct tensor *inputs = rows_of(batch_inputs, step, first, rows, dtype);
    struct tensor *targets = rows_of(batch_targets, step, first, rows, dtype);
    struct tensor *loss = mse_loss(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, loss) < 0)
        return -1;
    *loss_out = tensor_item(loss);
    return engine_step(engine);
}

static int train(struct group *group, struct report *report, const void *context)
{
    const struct training *training = context;
    struct module *model = training->model(), *untouched = training->model();
    struct engine *engine =
        engine_new(model, sgd_new(model, training->lr), training->config, group);
    if (!engine)
        return -1;
    int accumulation = engine_stats(engine).accumulation, status = 0;
    int64_t rows = training->batch_rows / group_world_size(group) / accumulation;
    for (int step = 0; status == 0 && step < training->steps; step++) {
        for (int micro = 0; status == 0 && micro < accumulation; micro++) {
            SCOPE;
            int64_t first = (group_rank(group) * accumulation + micro) * rows;
            status =
                train_microbatch(engine, model, step, first, rows, &report->losses[step][micro]);
            report->gradients_left += gradients_of(model);
            if (training->clear_between)
                module_zero_grad(model);
        }
        read_trainable(model, report->parameters[step]);
        report->scales[step] = engine_stats(engine).loss_scale;
        report->skipped[step] = engine_stats(engine).skipped_steps;
    }
    report->frozen_changed = frozen_differ(model, untouched);
    report->stats = engine_stats(engine);
    engine_free(engine);
    return status;
}

/* ---- comparing ---- */

static const char *const adapters[] = {"0.lora_A", "0.lora_B", "2.lora_A", "2.lora_B"};

/* check_adapters - a rank's parameters of a step against {"0.lora_A": [[...]], ...} */
static void check_adapters(const double *got, const json_t *known, double rtol, double atol,
                           const char *what)
{
    double expected[VALUES], *end = expected;
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_nonnull(json_object_get(known, adapters[i]));
        end = golden_flatten(json_object_get(known, adapters[i]), end);
    }
    for (int i = 0; i < end - expected; i++)
        ck_assert_msg(fabs(got[i] - expected[i]) <= atol + rtol * fabs(expected[i]),
                      "%s, element %d: %.9g, expected %.9g", what, i, got[i], expected[i]);
}

/* ---- PyTorch's values: two ranks, two microbatches of two rows ---- */

static const struct {
    int stage;
    int64_t bucket;
    bool clear_between;
} layouts[] = {{0, 500000000, false}, {1, 500000000, false}, {2, 500000000, false}, {0, 20, true},
               {1, 20, true},         {2, 20, true},         {2, 0, false},         {1, 1, false}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

START_TEST(test_lora_as_in_pytorch)
{
    SCOPE;
    json_t *golden = golden_load("lora.json");
    struct training training = {
        .model = small_model_lora,
        .lr = 0.1,
        .config = config_for(2, 2, 2, layouts[_i].stage, layouts[_i].bucket),
        .steps = 3,
        .batch_rows = 8,
        .clear_between = layouts[_i].clear_between,
    };
    struct report *reports = run_ranks_well(2, train, &training);
    const json_t *known = json_object_get(golden, "accumulated_lora_parameters_after_step");
    const json_t *losses = json_object_get(golden, "microbatch_losses_step_rank_micro");
    for (int rank = 0; rank < 2; rank++) {
        const struct report *report = &reports[rank];
        for (int step = 0; step < 3; step++) {
            check_adapters(report->parameters[step], json_array_get(known, (size_t)step), 1e-5,
                           1e-7, "LoRA");
            const json_t *of_rank =
                json_array_get(json_array_get(losses, (size_t)step), (size_t)rank);
            for (int micro = 0; micro < 2; micro++)
                ck_assert_double_eq_tol(report->losses[step][micro],
                                        json_number_value(json_array_get(of_rank, (size_t)micro)),
                                        1e-6);
        }
        ck_assert(!report->frozen_changed);
        ck_assert_int_eq(report->gradients_left, 0);
        ck_assert_int_eq(report->stats.microbatches, 6);
        ck_assert_int_eq(report->stats.steps, 3);
        ck_assert_int_eq(report->stats.skipped_steps, 0);
    }
    reports_free(reports);
    json_decref(training.config);
    json_decref(golden);
}
END_TEST

/* ---- DeepSpeed's values ---- */

enum { DEEPSPEED_CASES = 5, FP32_CASES = 3 };

static void check_deepspeed(const json_t *known, int stage, int64_t bucket, double rtol,
                            double atol)
{
    json_t *config = json_deep_copy(json_object_get(known, "config"));
    json_object_set_new(
        config, "zero_optimization",
        json_pack("{s:i, s:I}", "stage", stage, "reduce_bucket_size", (json_int_t)bucket));
    struct training training = {.model = small_model_lora,
                                .lr = json_number_value(json_object_get(known, "lr")),
                                .config = config,
                                .steps = STEPS,
                                .batch_rows = 8};
    int world_size = (int)json_integer_value(json_object_get(known, "world_size"));
    const char *name = json_string_value(json_object_get(known, "name"));
    struct report *reports = run_ranks_well(world_size, train, &training);
    for (int rank = 0; rank < world_size; rank++)
        for (size_t step = 0; step < STEPS; step++) {
            const struct report *report = &reports[rank];
            check_adapters(report->parameters[step],
                           json_array_get(json_object_get(known, "parameters"), step), rtol, atol,
                           name);
            ck_assert_double_eq(report->scales[step], json_number_value(json_array_get(
                                                          json_object_get(known, "scales"), step)));
            ck_assert_int_eq(report->skipped[step], json_integer_value(json_array_get(
                                                        json_object_get(known, "skipped"), step)));
        }
    reports_free(reports);
    json_decref(config);
}

START_TEST(test_fp32_as_in_deepspeed)
{
    SCOPE;
    json_t *golden = golden_load("zero.json");
    const json_t *cases = json_object_get(golden, "cases");
    ck_assert_uint_eq(json_array_size(cases), DEEPSPEED_CASES);
    for (int stage = 0; stage < 3; stage++)
        check_deepspeed(json_array_get(cases, (size_t)_i), stage, 20, 1e-5, 1e-7);
    json_decref(golden);
}
END_TEST

/* DeepSpeed adds a window's gradients up in FP16, this engine in FP32: equal to FP16's precision.
 */
START_TEST(test_fp16_as_in_deepspeed)
{
    SCOPE;
    json_t *golden = golden_load("zero.json");
    const json_t *cases = json_object_get(golden, "cases");
    for (int stage = 0; stage < 3; stage++)
        check_deepspeed(json_array_get(cases, (size_t)_i), stage, 20, 2e-3, 1e-4);
    json_decref(golden);
}
END_TEST

/* ---- a reference in double precision: the small model, all of it trained ---- */

enum { BATCH = 12 };

struct net {
    double w0[HIDDEN][IN], b0[HIDDEN], w1[OUT][HIDDEN], b1[OUT];
};
enum { NET_VALUES = sizeof(struct net) / sizeof(double) };

/* add_gradient - of one row's share of the mean squared error */
static void add_gradient(const struct net *net, const double *x, const double *y, struct net *sum)
{
    double h[HIDDEN], back[HIDDEN] = {0};
    for (int j = 0; j < HIDDEN; j++) {
        double z = net->b0[j];
        for (int i = 0; i < IN; i++)
            z += net->w0[j][i] * x[i];
        h[j] = tanh(z);
    }
    for (int k = 0; k < OUT; k++) {
        double out = net->b1[k];
        for (int j = 0; j < HIDDEN; j++)
            out += net->w1[k][j] * h[j];
        double slope = 2 * (out - y[k]) / (BATCH * OUT);
        sum->b1[k] += slope;
        for (int j = 0; j < HIDDEN; j++) {
            sum->w1[k][j] += slope * h[j];
            back[j] += slope * net->w1[k][j];
        }
    }
    for (int j = 0; j < HIDDEN; j++) {
        double slope = back[j] * (1 - h[j] * h[j]);
        sum->b0[j] += slope;
        for (int i = 0; i < IN; i++)
            sum->w0[j][i] += slope * x[i];
    }
}

static void reference_step(struct net *net, int step, double lr, double clipping)
{
    SCOPE;
    double x[BATCH][IN], y[BATCH][OUT], norm = 0;
    struct net gradient = {0};
    tensor_read(rows_of(batch_inputs, step, 0, BATCH, FLOAT64), &x[0][0]);
    tensor_read(rows_of(batch_targets, step, 0, BATCH, FLOAT64), &y[0][0]);
    for (int row = 0; row < BATCH; row++)
        add_gradient(net, x[row], y[row], &gradient);
    double *g = &gradient.w0[0][0], *p = &net->w0[0][0];
    for (int i = 0; i < NET_VALUES; i++)
        norm += g[i] * g[i];
    norm = sqrt(norm);
    if (clipping > 0 && norm > clipping)
        lr *= clipping / norm;
    for (int i = 0; i < NET_VALUES; i++)
        p[i] -= lr * g[i];
}

static const struct {
    int world_size, accumulation, stage;
    int64_t bucket;
    double clipping;
} reference_cases[] = {
    {1, 1, 2, 500000000, 0}, {1, 3, 0, 500000000, 0.5}, {1, 4, 1, 9, 0},
    {2, 3, 2, 500000000, 0}, {2, 2, 2, 9, 0.5},         {2, 2, 1, 9, 0.5},
    {2, 3, 0, 9, 0},         {3, 2, 2, 500000000, 0.5}, {3, 4, 2, 9, 0},
    {3, 2, 1, 33, 0},        {3, 1, 0, 33, 0.5},        {4, 3, 2, 17, 0.5},
    {2, 2, 2, 9, 100},
};

START_TEST(test_reference_in_double_precision)
{
    SCOPE;
    typeof(reference_cases[0]) *is = &reference_cases[_i];
    int rows = BATCH / is->world_size / is->accumulation;
    struct training training = {
        .model = small_model_double,
        .lr = 0.3,
        .config = config_for(is->world_size, rows, is->accumulation, is->stage, is->bucket),
        .steps = 3,
        .batch_rows = BATCH,
    };
    json_object_set_new(training.config, "gradient_clipping", json_real(is->clipping));
    struct report *reports = run_ranks_well(is->world_size, train, &training);
    struct net net;
    ck_assert_ptr_eq(read_trainable(small_model(), &net.w0[0][0]), &net.w0[0][0] + NET_VALUES);
    for (int step = 0; step < 3; step++) {
        reference_step(&net, step, training.lr, is->clipping);
        for (int rank = 0; rank < is->world_size; rank++)
            for (int i = 0; i < NET_VALUES; i++)
                /* clipping adds 1e-6 to the norm, as DeepSpeed's does */
                ck_assert_double_eq_tol(reports[rank].parameters[step][i], (&net.w0[0][0])[i],
                                        is->clipping > 0 ? 1e-5 : 1e-12);
    }
    reports_free(reports);
    json_decref(training.config);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("zero");
    TCase *tests = tcase_create("zero");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_lora_as_in_pytorch, 0, LAYOUTS);
    tcase_add_loop_test(tests, test_fp32_as_in_deepspeed, 0, FP32_CASES);
    tcase_add_loop_test(tests, test_fp16_as_in_deepspeed, FP32_CASES, DEEPSPEED_CASES);
    tcase_add_loop_test(tests, test_reference_in_double_precision, 0,
                        sizeof reference_cases / sizeof *reference_cases);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
