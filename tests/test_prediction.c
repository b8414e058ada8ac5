/* The five published speedups of two V100s, as the simulated ones predict them: the runtime trains
 * the assignment's model, on one GPU and in each way on two. The cost model has one number that is
 * calibrated, to the step time of one GPU. */
#define _GNU_SOURCE
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "criteria/performance.h"
#include "runtime/autograd.h"
#include "runtime/clock.h"
#include "runtime/dist.h"
#include "runtime/error.h"
#include "runtime/optim.h"
#include "runtime/plugin.h"
#include "runtime/workers.h"
#include "tests/suite.h"
#include "tests/temporary.h"

enum { WARMUPS = 2, UPDATES = 3, STAGES = 2, SEED = 5 };

static void use_sim(const char *profile)
{
    setenv("SIM_PROFILE", profile, 1);
    ck_assert_int_eq(plugin_load(BUILD_FOLDER "/sim.so"), 0);
}

/* ---- a step, timed ---- */

struct training {
    struct module *model;
    struct optimizer *optimizer;
    struct batch batch;
    /* of a pipeline */
    struct module *stages[STAGES];
    struct workers *workers;
    int64_t microbatch;
};

/* To the outputs, which come to where the targets are. */
typedef struct tensor *forward_fn(struct training *t);

static void average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *gradient = tensor_grad(parameters->at[i].tensor);
        (void)dist_all_reduce(gradient, DIST_SUM);
        (void)tensor_div_(gradient, dist_world_size());
    }
}

static void step(struct training *t, forward_fn *forward)
{
    SCOPE;
    optimizer_zero_grad(t->optimizer);
    (void)tensor_backward(mse_loss(forward(t), t->batch.targets));
    if (dist_world_size() > 1)
        average_gradients(t->model);
    (void)optimizer_step(t->optimizer);
    ck_assert_msg(!error_occurred(), "%s", error_message(error_pending()));
}

static void wait_for_devices(void)
{
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(plugin_current()->table->synchronize(i), 0);
}

/* As the criteria have it: some updates to warm up, then the time of several. */
static double step_seconds(struct training *t, forward_fn *forward)
{
    for (int i = 0; i < WARMUPS; i++)
        step(t, forward);
    wait_for_devices();
    double begin = clock_now();
    for (int i = 0; i < UPDATES; i++)
        step(t, forward);
    wait_for_devices();
    return (clock_now() - begin) / UPDATES;
}

/* ---- one GPU, and data parallel ---- */

static struct tensor *forward_whole(struct training *t)
{
    return module_forward(t->model, t->batch.inputs);
}

static double whole_seconds(int rank, int ranks)
{
    struct workload w = performance_workload(CUDA(0));
    struct training t = {.model = module_to(performance_model(&w, SEED), CUDA(rank))};
    struct batch shard = batch_shard(performance_batch(&w, SEED), rank, ranks);
    t.batch = batch_to(shard, CUDA(rank));
    t.optimizer = sgd_new(t.model, w.learning_rate);
    return step_seconds(&t, forward_whole);
}

static double rank_seconds(int rank, const char *file)
{
    SCOPE;
    struct group *group =
        group_connect(&(struct group_options){.rank = rank, .world_size = 2, .file = file});
    ck_assert_ptr_nonnull(group);
    dist_set_default(group);
    double seconds = whole_seconds(rank, 2);
    group_close(group);
    return seconds;
}

static double parallel_seconds(void)
{
    temporary_create();
    const char *file = temporary_path("ranks");
    double *theirs =
        mmap(NULL, sizeof *theirs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t other = fork();
    if (other == 0) {
        *theirs = rank_seconds(1, file);
        _exit(0);
    }
    double mine = rank_seconds(0, file);
    int status;
    ck_assert_int_eq(waitpid(other, &status, 0), other);
    ck_assert_int_eq(status, 0);
    temporary_remove();
    return fmax(mine, *theirs);
}

/* ---- stages ---- */

static struct tensor *forward_serial(struct training *t)
{
    struct tensor *between = module_forward(t->stages[0], t->batch.inputs);
    return module_forward(t->stages[1], tensor_to(between, CUDA(1)));
}

struct turn {
    struct module *stage;
    struct tensor *x;
    struct device device;
};

static struct tensor *run_turn(void *environment)
{
    struct turn *turn = environment;
    return module_forward(turn->stage, tensor_to(turn->x, turn->device));
}

/* Wave by wave; the tasks, or this thread, take each microbatch to its stage's device. */
static struct tensor *forward_in_waves(struct training *t, bool tasks_transfer)
{
    struct tensors *x = tensor_split(t->batch.inputs, t->microbatch);
    for (int wave = 0; wave < x->n + STAGES - 1; wave++) {
        for (int j = 0; j < STAGES; j++) {
            int i = wave - j;
            if (i < 0 || i >= x->n)
                continue;
            struct tensor *input = tasks_transfer ? x->at[i] : tensor_to(x->at[i], CUDA(j));
            workers_submit(t->workers, j, run_turn, (struct turn){t->stages[j], input, CUDA(j)});
        }
        for (int j = 0; j < STAGES; j++)
            if (wave - j >= 0 && wave - j < x->n)
                x->at[wave - j] = workers_receive(t->workers, j);
    }
    return tensor_cat(x);
}

static struct tensor *forward_pipelined(struct training *t)
{
    return forward_in_waves(t, true);
}

static struct tensor *forward_transferring_outside(struct training *t)
{
    return forward_in_waves(t, false);
}

static double stages_seconds(forward_fn *forward)
{
    SCOPE;
    struct workload w = performance_workload(CUDA(0));
    struct module *model = performance_model(&w, SEED);
    struct training t = {.microbatch = w.microbatch, .workers = workers_new(STAGES)};
    for (int j = 0; j < STAGES; j++)
        t.stages[j] = module_to(module_child_at(model, j), CUDA(j));
    t.model = sequential_new(STAGES, t.stages);
    t.optimizer = sgd_new(t.model, w.learning_rate);
    struct batch batch = performance_batch(&w, SEED);
    t.batch = (struct batch){tensor_to(batch.inputs, CUDA(0)), tensor_to(batch.targets, CUDA(1))};
    double seconds = step_seconds(&t, forward);
    workers_close(t.workers);
    return seconds;
}

/* ---- the published figures ---- */

static const double tolerance = 0.1;

static void expect_near(const char *what, double predicted, double published, double within)
{
    printf("%-40s predicted %7.3f  published %7.3f  %+5.1f %%\n", what, predicted, published,
           100 * (predicted / published - 1));
    ck_assert_msg(fabs(predicted / published - 1) < within, "%s: predicted %g, published %g", what,
                  predicted, published);
}

/* A profile is a process's for good: each test has its own. */
START_TEST(one_gpu)
{
    SCOPE;
    use_sim("v100-nvlink");
    expect_near("one GPU, ms (calibrated)", 1e3 * whole_seconds(0, 1), 125.94, 0.005);
}
END_TEST

static const struct {
    const char *what, *profile;
    double published;
} parallel[] = {
    {"data parallel, NVLink", "v100-nvlink", 125.94 / 69.75},
    {"data parallel, PCIe", "v100-pcie", (1.475 + 1.531) / 2},
};

START_TEST(data_parallel)
{
    SCOPE;
    use_sim(parallel[_i].profile);
    double one = whole_seconds(0, 1);
    expect_near(parallel[_i].what, one / parallel_seconds(), parallel[_i].published, tolerance);
}
END_TEST

static const struct {
    const char *what, *profile;
    forward_fn *forward;
    double published;
} pipelines[] = {
    {"pipeline, NVLink", "v100-nvlink", forward_pipelined, 124.37 / 84.86},
    {"pipeline, PCIe", "v100-pcie", forward_pipelined, 1.42},
    {"transfers in the calling thread", "v100-nvlink", forward_transferring_outside, 1.06},
};

START_TEST(pipeline)
{
    use_sim(pipelines[_i].profile);
    double serial = stages_seconds(forward_serial);
    expect_near(pipelines[_i].what, serial / stages_seconds(pipelines[_i].forward),
                pipelines[_i].published, tolerance);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("prediction");
    TCase *t = tcase_create("published");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, one_gpu);
    tcase_add_loop_test(t, data_parallel, 0, sizeof parallel / sizeof parallel[0]);
    tcase_add_loop_test(t, pipeline, 0, sizeof pipelines / sizeof pipelines[0]);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
