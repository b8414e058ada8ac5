/* The ZeRO engine: ranks as processes, against DeepSpeed's values, PyTorch's, and a reference
 * written here in double precision. What the ranks found is judged in the test's own process. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/autograd_internal.h"
#include "tests/suite.h"
#include "tests/zero.h"

enum { RANKS = 4, STEPS = 6, MICROBATCHES = 4, VALUES = 64 };

/* ---- ranks ---- */

/* What a rank found, in memory shared with the test. */
struct report {
    bool complete;
    char error[300];
    double parameters[STEPS][VALUES]; /* the trainable ones, one after the other */
    double losses[STEPS][MICROBATCHES];
    double scales[STEPS];
    int64_t skipped[STEPS];
    bool frozen_changed;
    int64_t gradients_left;
    struct engine_stats stats;
    int64_t reduced_before_the_end; /* collectives during backward */
};

typedef int rank_fn(struct group *group, struct report *report, const void *context);

static void rank_main(rank_fn *body, int rank, int world_size, const char *file,
                      struct report *report, const void *context)
{
    SCOPE;
    struct group_options options = {.rank = rank, .world_size = world_size, .file = file};
    struct group *group = group_connect(&options);
    if (group)
        report->complete = body(group, report, context) == 0;
    if (error_occurred())
        snprintf(report->error, sizeof report->error, "%s: %s",
                 error_type_of(error_pending())->name, error_message(error_pending()));
    group_close(group);
}

/* run_ranks - `body` in a process for each rank; the reports, until reports_free */
static struct report *run_ranks(int world_size, rank_fn *body, const void *context)
{
    struct report *reports = mmap(NULL, RANKS * sizeof *reports, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(reports, MAP_FAILED);
    char folder[] = "/tmp/test_zero.XXXXXX", file[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/ranks", folder);
    for (int rank = 0; rank < world_size; rank++) {
        if (fork() == 0) {
            rank_main(body, rank, world_size, file, &reports[rank], context);
            exit(0);
        }
    }
    for (int status; wait(&status) > 0;)
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a rank crashed: %#x", status);
    unlink(file);
    rmdir(folder);
    return reports;
}

static struct report *run_ranks_well(int world_size, rank_fn *body, const void *context)
{
    struct report *reports = run_ranks(world_size, body, context);
    for (int rank = 0; rank < world_size; rank++)
        ck_assert_msg(reports[rank].complete, "rank %d: %s", rank, reports[rank].error);
    return reports;
}

static void reports_free(struct report *reports)
{
    munmap(reports, RANKS * sizeof *reports);
}

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

enum { IN = 4, HIDDEN = 8, OUT = 2, BATCH = 12 };

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

/* ---- what a rank holds ---- */

static struct module *wide_model(void)
{
    struct rng rng;
    rng_seed(&rng, 5);
    return sequential_new(MODULES(linear_new(IN, 3001, FLOAT32, CPU, &rng), tanh_new(),
                                  linear_new(3001, OUT, FLOAT32, CPU, &rng)));
}
enum { WIDE_VALUES = IN * 3001 + 3001 + 3001 * OUT + OUT };

/* one microbatch, and the memory held before its step */
static int hold(struct group *group, struct report *report, const void *context)
{
    const struct training *training = context;
    struct module *model = training->model();
    struct engine *engine =
        engine_new(model, sgd_new(model, training->lr), training->config, group);
    struct tensor *x = batch_inputs(0), *y = batch_targets(0);
    int status = engine_backward(engine, mse_loss(engine_forward(engine, x), y));
    report->gradients_left = gradients_of(model);
    report->stats = engine_stats(engine);
    engine_free(engine);
    return status;
}

START_TEST(test_shares_are_equal)
{
    for (int stage = 0; stage < 3; stage++) {
        struct training training = {
            .model = wide_model, .lr = 1, .config = config_for(_i, 8, 2, stage, 5000)};
        struct report *reports = run_ranks_well(_i, hold, &training);
        double all = WIDE_VALUES * sizeof(float), share = all / _i;
        for (int rank = 0; rank < _i; rank++) {
            const struct engine_stats *held = &reports[rank].stats;
            ck_assert_int_eq(held->stage, stage);
            ck_assert_double_eq_tol((double)held->optimizer_bytes, stage > 0 ? share : all,
                                    0.01 * share);
            ck_assert_double_eq_tol((double)held->gradient_bytes, stage > 1 ? share : all,
                                    0.01 * share);
            ck_assert_int_eq(held->parameter_bytes, (int64_t)all);
            ck_assert_int_eq(reports[rank].gradients_left, 0);
        }
        reports_free(reports);
        json_decref(training.config);
    }
}
END_TEST

/* The input's gradient comes last of all: by then, while backward is still going on, the last
 * layers' buckets must arrive at their owners. Without overlap this waits for ever. */
static void wait_for_a_reduction(void *context, struct tensor *leaf)
{
    (void)leaf;
    struct group *group = context;
    while (group_counts(group).reduce_scatter == 0)
        ;
}

static int overlap(struct group *group, struct report *report, const void *context)
{
    const struct training *training = context;
    struct module *model = training->model();
    struct engine *engine =
        engine_new(model, sgd_new(model, training->lr), training->config, group);
    struct tensor *x = tensor_set_requires_grad(tensor_clone(batch_inputs(0)), true);
    tensor_on_grad_ready(x, wait_for_a_reduction, group);
    int status = engine_backward(engine, mse_loss(engine_forward(engine, x), batch_targets(0)));
    report->reduced_before_the_end = group_counts(group).reduce_scatter;
    engine_free(engine);
    return status;
}

START_TEST(test_reduction_overlaps_with_backward)
{
    struct training training = {
        .model = small_model, .lr = 1, .config = config_for(2, 8, 1, 2, 10)};
    struct report *reports = run_ranks_well(2, overlap, &training);
    ck_assert_int_eq(reports[0].reduced_before_the_end, 4);
    reports_free(reports);
    json_decref(training.config);
}
END_TEST

/* ---- a parameter that no gradient reaches, on one rank only ---- */

static struct tensor *only_first_child(struct module *self, struct tensor *x)
{
    bool *both = module_environment(self);
    struct tensor *first = module_forward(module_child_at(self, 0), x);
    return *both ? tensor_add(first, module_forward(module_child_at(self, 1), x)) : first;
}
static const struct module_class Forked = {"Forked", only_first_child};

static struct module *forked_model(bool both)
{
    struct rng rng;
    rng_seed(&rng, 6);
    struct module *model = module_new_with(&Forked, &both, sizeof both);
    module_add_child(model, "a", linear_new(IN, OUT, FLOAT64, CPU, &rng));
    module_add_child(model, "b", linear_new(IN, OUT, FLOAT64, CPU, &rng));
    return model;
}
enum { FORK_VALUES = IN * OUT + OUT };

static int train_forked(struct group *group, struct report *report, const void *context)
{
    struct module *model = forked_model(group_rank(group) == 1);
    struct engine *engine = engine_new(model, sgd_new(model, 1), context, group);
    struct tensor *x = tensor_cast(batch_inputs(0), FLOAT64);
    read_trainable(model, report->parameters[0]);
    int status = engine_backward(engine, tensor_sum(engine_forward(engine, x)));
    if (status == 0)
        status = engine_step(engine);
    read_trainable(model, report->parameters[1]);
    engine_free(engine);
    return status;
}

START_TEST(test_parameter_without_gradient_counts_as_zero)
{
    SCOPE;
    json_t *config = config_for(2, 8, 1, 2, 0);
    struct report *reports = run_ranks_well(2, train_forked, config);
    double x[8][IN];
    tensor_read(batch_inputs(0), &x[0][0]);
    for (int rank = 0; rank < 2; rank++)
        for (int i = 0; i < 2 * FORK_VALUES; i++) {
            int at = i % FORK_VALUES;
            double gradient = 0; /* of a sum: the inputs' column, or the number of rows */
            for (int row = 0; row < 8; row++)
                gradient += at < IN * OUT ? x[row][at % IN] : 1;
            if (i >= FORK_VALUES) /* b: on one of two ranks */
                gradient /= 2;
            ck_assert_double_eq_tol(reports[rank].parameters[1][i],
                                    reports[rank].parameters[0][i] - gradient, 1e-12);
        }
    reports_free(reports);
    json_decref(config);
}
END_TEST

/* ---- rank 0's values count, and a peer that is gone is noticed ---- */

static int start_differently(struct group *group, struct report *report, const void *context)
{
    struct module *model = small_model();
    {
        NO_GRAD;
        tensor_fill_(module_named_parameters(model)->at[1].tensor, group_rank(group));
    }
    struct engine *engine = engine_new(model, sgd_new(model, 1), context, group);
    read_trainable(model, report->parameters[0]);
    engine_free(engine);
    return engine ? 0 : -1;
}

START_TEST(test_all_start_from_rank_0)
{
    json_t *config = config_for(3, 1, 1, 2, 9);
    struct report *reports = run_ranks_well(3, start_differently, config);
    for (int rank = 0; rank < 3; rank++)
        for (int i = 0; i < HIDDEN; i++)
            ck_assert_double_eq(reports[rank].parameters[0][HIDDEN * IN + i], 0);
    reports_free(reports);
    json_decref(config);
}
END_TEST

static int leave_early(struct group *group, struct report *report, const void *context)
{
    (void)report;
    struct module *model = small_model();
    struct engine *engine = engine_new(model, sgd_new(model, 1), context, group);
    int status = -1;
    if (engine && group_rank(group) == 0)
        status = engine_backward(
            engine, mse_loss(engine_forward(engine, batch_inputs(0)), batch_targets(0)));
    engine_free(engine);
    return status;
}

START_TEST(test_peer_that_left_is_an_error)
{
    json_t *config = config_for(2, 8, 1, 2, 9);
    struct report *reports = run_ranks(2, leave_early, config);
    ck_assert(!reports[0].complete);
    ck_assert_msg(strncmp(reports[0].error, "DistError", 9) == 0, "%s", reports[0].error);
    reports_free(reports);
    json_decref(config);
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
    tcase_add_loop_test(tests, test_shares_are_equal, 1, RANKS + 1);
    tcase_add_test(tests, test_reduction_overlaps_with_backward);
    tcase_add_test(tests, test_parameter_without_gradient_counts_as_zero);
    tcase_add_test(tests, test_all_start_from_rank_0);
    tcase_add_test(tests, test_peer_that_left_is_an_error);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
