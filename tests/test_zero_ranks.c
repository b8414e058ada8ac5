/* What the ranks of a ZeRO engine hold, send to each other while backward goes on, and do about a
 * parameter without gradient, other first values and a peer that is gone. */
#include <check.h>
#include <string.h>

#include "runtime/autograd_internal.h"
#include "tests/suite.h"
#include "tests/zero_ranks.h"

/* What an engine is made of. model: NULL where there is but one. */
struct setting {
    struct module *(*model)(void);
    json_t *config;
};

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
    const struct setting *setting = context;
    struct module *model = setting->model();
    struct engine *engine = engine_new(model, sgd_new(model, 1), setting->config, group);
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
        struct setting setting = {wide_model, config_for(_i, 8, 2, stage, 5000)};
        struct report *reports = run_ranks_well(_i, hold, &setting);
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
        json_decref(setting.config);
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
    const struct setting *setting = context;
    struct module *model = setting->model();
    struct engine *engine = engine_new(model, sgd_new(model, 1), setting->config, group);
    struct tensor *x = tensor_set_requires_grad(tensor_clone(batch_inputs(0)), true);
    tensor_on_grad_ready(x, wait_for_a_reduction, group);
    int status = engine_backward(engine, mse_loss(engine_forward(engine, x), batch_targets(0)));
    report->reduced_before_the_end = group_counts(group).reduce_scatter;
    engine_free(engine);
    return status;
}

START_TEST(test_reduction_overlaps_with_backward)
{
    struct setting setting = {small_model, config_for(2, 8, 1, 2, 10)};
    struct report *reports = run_ranks_well(2, overlap, &setting);
    ck_assert_int_eq(reports[0].reduced_before_the_end, 4);
    reports_free(reports);
    json_decref(setting.config);
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
    const struct setting *setting = context;
    struct module *model = forked_model(group_rank(group) == 1);
    struct engine *engine = engine_new(model, sgd_new(model, 1), setting->config, group);
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
    struct setting setting = {.config = config_for(2, 8, 1, 2, 0)};
    struct report *reports = run_ranks_well(2, train_forked, &setting);
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
    json_decref(setting.config);
}
END_TEST

/* ---- rank 0's values count, and a peer that is gone is noticed ---- */

static int start_differently(struct group *group, struct report *report, const void *context)
{
    const struct setting *setting = context;
    struct module *model = small_model();
    {
        NO_GRAD;
        tensor_fill_(module_named_parameters(model)->at[1].tensor, group_rank(group));
    }
    struct engine *engine = engine_new(model, sgd_new(model, 1), setting->config, group);
    read_trainable(model, report->parameters[0]);
    engine_free(engine);
    return engine ? 0 : -1;
}

START_TEST(test_all_start_from_rank_0)
{
    struct setting setting = {.config = config_for(3, 1, 1, 2, 9)};
    struct report *reports = run_ranks_well(3, start_differently, &setting);
    for (int rank = 0; rank < 3; rank++)
        for (int i = 0; i < HIDDEN; i++)
            ck_assert_double_eq(reports[rank].parameters[0][HIDDEN * IN + i], 0);
    reports_free(reports);
    json_decref(setting.config);
}
END_TEST

static int leave_early(struct group *group, struct report *report, const void *context)
{
    (void)report;
    const struct setting *setting = context;
    struct module *model = small_model();
    struct engine *engine = engine_new(model, sgd_new(model, 1), setting->config, group);
    int status = -1;
    if (engine && group_rank(group) == 0)
        status = engine_backward(
            engine, mse_loss(engine_forward(engine, batch_inputs(0)), batch_targets(0)));
    engine_free(engine);
    return status;
}

START_TEST(test_peer_that_left_is_an_error)
{
    struct setting setting = {.config = config_for(2, 8, 1, 2, 9)};
    struct report *reports = run_ranks(2, leave_early, &setting);
    ck_assert(!reports[0].complete);
    ck_assert_msg(strncmp(reports[0].error, "DistError", 9) == 0, "%s", reports[0].error);
    reports_free(reports);
    json_decref(setting.config);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("zero_ranks");
    TCase *tests = tcase_create("zero_ranks");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_shares_are_equal, 1, RANKS + 1);
    tcase_add_test(tests, test_reduction_overlaps_with_backward);
    tcase_add_test(tests, test_parameter_without_gradient_counts_as_zero);
    tcase_add_test(tests, test_all_start_from_rank_0);
    tcase_add_test(tests, test_peer_that_left_is_an_error);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
