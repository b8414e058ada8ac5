#include "criteria/performance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/clock.h"
#include "runtime/dist.h"
#include "runtime/optim.h"
#include "runtime/plugin.h"

enum { PAIRS_MAX = 16, SAMPLED_ROWS = 4 };

/* With simulated GPUs, tensors are smaller and the virtual clock is charged for the full size. */
enum { SIM_SCALE = 16 };

struct workload performance_workload(struct device device)
{
    struct workload full = {.blocks = 8,
                            .width = 2048,
                            .rows = 8192,
                            .microbatch = 1024,
                            .warmups = 2,
                            .pairs = 5,
                            .updates = 3,
                            .learning_rate = 0.1,
                            .scale = 1};
    if (device.kind == DEVICE_CPU) {
        full.width = 32;
        full.rows = 128;
        full.microbatch = 16;
    }
    if (clock_is_virtual()) {
        full.scale = SIM_SCALE;
        plugin_current()->set_scale(full.scale);
        full.width /= full.scale;
        full.rows /= full.scale;
        full.microbatch /= full.scale;
    }
    return full;
}

struct module *performance_model(const struct workload *w, uint64_t seed)
{
    struct rng rng;
    draws_seed(&rng, seed, "performance model");
    struct module *first = residual_mlp(w->blocks / 2, w->width, CPU, &rng);
    return sequential_new(MODULES(first, residual_mlp(w->blocks / 2, w->width, CPU, &rng)));
}

struct batch performance_batch(const struct workload *w, uint64_t seed)
{
    struct rng rng;
    draws_seed(&rng, seed, "performance batch");
    struct tensor *inputs = drawn_tensor(&rng, SHAPE(w->rows, w->width));
    return (struct batch){inputs, drawn_tensor(&rng, SHAPE(w->rows, w->width))};
}

/* sample - rows of a parameter, enough to tell whether it was updated rightly; a bias is kept whole
 */
static struct tensor *sample(struct tensor *x, uint64_t seed, const char *name)
{
    NO_GRAD;
    if (tensor_ndim(x) < 2)
        return tensor_to(tensor_detach(x), CPU);
    struct rng rng;
    draws_seed(&rng, seed, scope_printf("sample of %s", name));
    struct tensors *rows = tensors_new(SAMPLED_ROWS);
    for (int i = 0; rows && i < SAMPLED_ROWS; i++) {
        int64_t row = (int64_t)rng_below(&rng, (uint64_t)tensor_size(x, 0));
        rows->at[i] = tensor_to(tensor_slice(x, 0, row, 1), CPU);
    }
    return tensor_cat(rows);
}

/* ---- observing ---- */

static double now(void)
{
    return clock_is_virtual() ? clock_now() : seconds_now();
}

/* Reading an element waits for all work of its device. */
static void wait_for_devices(const struct module *model)
{
    SCOPE;
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *x = tensor_detach(parameters->at[i].tensor);
        (void)tensor_item(tensor_slice(tensor_view(x, SHAPE(-1)), 0, 0, 1));
    }
}

static void reset(struct module *model, const struct module *initial)
{
    SCOPE;
    NO_GRAD;
    module_zero_grad(model);
    struct named_tensors *to = module_named_parameters(model);
    struct named_tensors *from = module_named_parameters(initial);
    for (int i = 0; i < to->n; i++)
        (void)tensor_copy_(to->at[i].tensor, from->at[i].tensor);
}

/* `updates` of one contender from the initial parameters, timed between two points at which all
 * ranks and devices are idle. A rank without a part in it only keeps the others company. */
static bool run(struct subject *s, const struct contender *c, const struct module *initial,
                int updates, double *seconds)
{
    if (c)
        reset(c->model, initial);
    if (c)
        wait_for_devices(c->model);
    if (dist_world_size() > 1 && dist_barrier() < 0)
        return !subject_went_wrong(s, "waiting for the other rank");
    double begin = now();
    for (int i = 0; c && i < updates; i++) {
        SCOPE;
        if (!c->update(s, c->context))
            return false;
    }
    if (c)
        wait_for_devices(c->model);
    *seconds = now() - begin;
    return !subject_went_wrong(s, "measuring");
}

static void observe_samples(struct subject *s, const struct module *model, int pair)
{
    SCOPE;
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++)
        observe_tensor(s, sample(parameters->at[i].tensor, subject_seed(s), parameters->at[i].name),
                       "pair %d.%s", pair, parameters->at[i].name);
}

static bool run_pair(struct subject *s, const struct workload *w, const struct contender *baseline,
                     const struct contender *student, const struct module *initial, int pair)
{
    double times[2] = {0};
    for (int turn = 0; turn < 2; turn++) {
        bool students_turn = (turn + pair) % 2 == 1;
        if (!run(s, students_turn ? student : baseline, initial, w->updates, &times[students_turn]))
            return false;
    }
    if (baseline)
        observe_number(s, times[0], "baseline %d", pair);
    observe_number(s, times[1], "student %d", pair);
    observe_samples(s, student->model, pair);
    return true;
}

bool performance_observe(struct subject *s, const struct workload *w,
                         const struct contender *baseline, const struct contender *student)
{
    SCOPE;
    double unused;
    struct module *initial = module_copy(student->model);
    if (subject_went_wrong(s, "copying a model"))
        return false;
    if (!run(s, baseline, initial, w->warmups, &unused) ||
        !run(s, student, initial, w->warmups, &unused))
        return false;
    for (int pair = 0; pair < w->pairs; pair++)
        if (!run_pair(s, w, baseline, student, initial, pair))
            return false;
    return true;
}

/* ---- judging ---- */

/* The parameters after one repeat, by ordinary training in this process. */
static struct module *trained_reference(struct judge *j, const struct workload *w)
{
    struct device device = judge_device(j, 0);
    struct module *model = module_to(performance_model(w, judge_seed(j)), device);
    struct batch batch = batch_to(performance_batch(w, judge_seed(j)), device);
    struct optimizer *optimizer = sgd_new(model, w->learning_rate);
    for (int i = 0; i < w->updates; i++) {
        SCOPE;
        optimizer_zero_grad(optimizer);
        (void)tensor_backward(mse_loss(module_forward(model, batch.inputs), batch.targets));
        (void)optimizer_step(optimizer);
    }
    return model;
}

static bool judge_samples(struct judge *j, const struct workload *w, int world_size)
{
    SCOPE;
    struct named_tensors *expected = module_named_parameters(trained_reference(j, w));
    for (int i = 0; i < expected->n; i++) {
        const char *name = expected->at[i].name;
        struct tensor *rows = sample(expected->at[i].tensor, judge_seed(j), name);
        for (int at = 0; at < w->pairs * world_size; at++) {
            int pair = at / world_size, rank = at % world_size;
            if (!expect_close(j, judge_observations(j, world_size, rank),
                              scope_printf("pair %d.%s", pair, name), rows, 1e-4, 5e-7,
                              "rows of %s after the timed updates, repeat %d,", name, pair + 1))
                return false;
        }
    }
    return true;
}

/* Of all ranks that recorded a time under the key. */
static double slowest(const struct judge *j, int world_size, const char *key)
{
    double seconds = 0;
    for (int rank = 0; rank < world_size; rank++)
        seconds = fmax(seconds, observed_number(judge_observations(j, world_size, rank), key, 0));
    return seconds;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int n)
{
    double sorted[PAIRS_MAX];
    memcpy(sorted, values, (size_t)n * sizeof *values);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static json_t *json_doubles(const double *values, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(array, json_real(values[i]));
    return array;
}

struct times {
    double baseline[PAIRS_MAX], student[PAIRS_MAX], ratio[PAIRS_MAX];
};

/* What the times are of: the full problem, however small the tensors were. */
static json_t *workload_charged(const struct workload *w)
{
    return json_pack("{s:i, s:I, s:I, s:I, s:i, s:i, s:i}", "blocks", w->blocks, "width",
                     (json_int_t)(w->width * w->scale), "rows", (json_int_t)(w->rows * w->scale),
                     "microbatch", (json_int_t)(w->microbatch * w->scale), "pairs", w->pairs,
                     "updates", w->updates, "scale", w->scale);
}

static void report(struct judge *j, const struct workload *w, const struct times *times,
                   double threshold)
{
    double speedup = median(times->ratio, w->pairs);
    double rows = (double)(w->rows * w->scale * w->updates);
    judge_measured(j, "workload", workload_charged(w));
    judge_measured(j, "baseline_seconds", json_doubles(times->baseline, w->pairs));
    judge_measured(j, "student_seconds", json_doubles(times->student, w->pairs));
    judge_measured(j, "ratios", json_doubles(times->ratio, w->pairs));
    judge_measured(j, "median", json_real(speedup));
    judge_measured(j, "rows_per_second", json_real(rows / median(times->student, w->pairs)));
    judge_measured(j, "threshold", json_real(threshold));
    judge_measured(j, "passed", json_boolean(speedup >= threshold));
}

bool performance_judge(struct judge *j, int world_size, double threshold)
{
    SCOPE;
    struct workload w = performance_workload(judge_device(j, 0));
    struct times times;
    if (!judge_samples(j, &w, world_size))
        return false;
    for (int pair = 0; pair < w.pairs; pair++) {
        times.baseline[pair] = slowest(j, world_size, scope_printf("baseline %d", pair));
        times.student[pair] = slowest(j, world_size, scope_printf("student %d", pair));
        times.ratio[pair] = times.baseline[pair] / times.student[pair];
        if (!(times.ratio[pair] > 0) || !isfinite(times.ratio[pair]))
            return judge_fail(j, "repeat %d has no time that makes sense", pair + 1);
    }
    report(j, &w, &times, threshold);
    double speedup = median(times.ratio, w.pairs);
    return speedup >= threshold ||
           judge_fail(j, "the speedup is %.2f (median of %d), expected at least %.2f", speedup,
                      w.pairs, threshold);
}
