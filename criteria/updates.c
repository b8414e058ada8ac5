/* 1.3: three train_steps on several ranks equal a single process, whose average_gradients is the
 * grader's own. */
#include "assignment/data_parallel.h"
#include "criteria/fixture.h"

#define WORLDS 2, 3
enum { STEPS = BATCH_COUNT };
static const double learning_rate = 0.04;

/* In the last scenario every rank starts from values of its own. Averaged gradients keep such ranks
 * apart; whoever averages parameters instead draws them together. */
static const struct scenario {
    const char *name;
    enum values values;
    loss_fn *loss;
    bool own_start;
} scenarios[] = {
    {"the public values", PUBLIC_VALUES, mse_loss, false},
    {"the values drawn for this run, a loss of its own", DRAWN_VALUES, lopsided_loss, false},
    {"every rank from other parameters", DRAWN_VALUES, mse_loss, true},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static struct module *scenario_model(const struct scenario *scenario, uint64_t seed, int rank)
{
    return fixture_model(scenario->values, seed,
                         scope_printf("updates %d", scenario->own_start ? rank : 0));
}

/* ---- observing ---- */

/* Gradients of an earlier time, which train_step must clear. */
static void leave_stale_gradients(struct module *model, int rank)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; parameters && i < parameters->n; i++) {
        struct tensor *x = parameters->at[i].tensor;
        (void)tensor_set_grad(x, tensor_full(tensor_ndim(x), tensor_shape(x), 3 + rank,
                                             tensor_dtype(x), tensor_device(x)));
    }
}

static bool observe_step(struct subject *s, int scenario, int step, struct module *model,
                         struct optimizer *optimizer)
{
    SCOPE;
    const struct scenario *c = &scenarios[scenario];
    struct batch batch =
        batch_to(fixture_batch(c->values, subject_seed(s), step), subject_device(s));
    struct batch shard = batch_shard(batch, subject_rank(s), subject_world_size(s));
    if (subject_went_wrong(s, "making a batch"))
        return false;
    float loss = student(s, train_step)(model, optimizer, shard.inputs, shard.targets, c->loss);
    if (call_failed(s, loss != loss, "train_step, step %d", step + 1))
        return false;
    observe_number(s, loss, "%d loss %d", scenario, step);
    observe_parameters(s, model, "%d step %d", scenario, step);
    return true;
}

static bool observe_scenario(struct subject *s, int scenario)
{
    SCOPE;
    struct module *model = module_to(
        scenario_model(&scenarios[scenario], subject_seed(s), subject_rank(s)), subject_device(s));
    struct optimizer *optimizer = sgd_new(model, learning_rate);
    leave_stale_gradients(model, subject_rank(s));
    if (subject_went_wrong(s, "making a model"))
        return false;
    for (int step = 0; step < STEPS; step++)
        if (!observe_step(s, scenario, step, model, optimizer))
            return false;
    observe_int(s, optimizer_steps(optimizer), "%d optimizer steps", scenario);
    return true;
}

static void observe_failing(struct subject *s)
{
    SCOPE;
    struct module *model =
        module_to(scenario_model(&scenarios[0], subject_seed(s), 0), subject_device(s));
    struct optimizer *optimizer = sgd_new(model, learning_rate);
    struct batch batch =
        batch_to(fixture_batch(PUBLIC_VALUES, subject_seed(s), 0), subject_device(s));
    if (subject_went_wrong(s, "making a model and its batch"))
        return;
    float loss =
        student(s, train_step)(model, optimizer, batch.inputs, batch.targets, failing_loss);
    observe_failed_loss(s, loss);
}

static void observe(struct subject *s)
{
    for (int i = 0; i < SCENARIOS; i++)
        if (!observe_scenario(s, i))
            return;
    observe_failing(s);
}

/* ---- judging: the reference has the models of all ranks in one process, in FLOAT64 ---- */

/* How a step trains: all zero for the right way, else a mistake to be tested. */
struct training {
    enum { CLEARS_FIRST, CLEARS_NEVER, CLEARS_AFTER_BACKWARD } clears;
    enum { AVERAGES_GRADIENTS, AVERAGES_NOTHING, AVERAGES_PARAMETERS } averages;
    enum { STEPS_ONCE, STEPS_TWICE, STEPS_NEVER, STEPS_ON_RANK_0 } steps;
    enum { LOSS_OF_OUTPUT, LOSS_TIMES_WORLD, LOSS_BY_WORLD, LOSS_SWAPPED } loss;
    enum { GIVES_LOCAL, GIVES_MEAN, GIVES_TOTAL, GIVES_SCALED, GIVES_CONSTANT } gives;
};

/* The models of all ranks, and what they have come to. */
struct replicas {
    int world_size;
    struct module *models[WORLDS_MAX];
    double losses[WORLDS_MAX], totals[WORLDS_MAX];
    const struct training *how;
};

static double loss_factor(const struct replicas *all)
{
    return all->how->loss == LOSS_TIMES_WORLD ? all->world_size
           : all->how->loss == LOSS_BY_WORLD  ? 1.0 / all->world_size
                                              : 1;
}

static double local_backward(struct judge *j, const struct scenario *c, int step, int rank,
                             struct replicas *all)
{
    struct module *model = all->models[rank];
    struct batch batch = fixture_batch(c->values, judge_seed(j), step);
    struct batch shard = batch_cast(batch_shard(batch, rank, all->world_size), FLOAT64);
    if (all->how->clears == CLEARS_FIRST)
        module_zero_grad(model);
    struct tensor *output = module_forward(model, shard.inputs);
    struct tensor *loss = all->how->loss == LOSS_SWAPPED ? c->loss(shard.targets, output)
                                                         : c->loss(output, shard.targets);
    (void)tensor_backward(tensor_scale(loss, loss_factor(all)));
    if (all->how->clears == CLEARS_AFTER_BACKWARD)
        module_zero_grad(model);
    return tensor_item(loss);
}

/* average - in the place of every rank's tensor, their mean */
static void average(struct tensor *const *tensors, int world_size)
{
    struct tensor *mean = tensor_clone(tensors[0]);
    for (int r = 1; r < world_size; r++)
        (void)tensor_add_(mean, tensors[r], 1);
    for (int r = 0; mean && r < world_size; r++)
        (void)tensor_div_(tensor_copy_(tensors[r], mean), world_size);
}

static void average_all(const struct replicas *all, bool gradients)
{
    NO_GRAD;
    int count = module_named_parameters(all->models[0])->n;
    for (int i = 0; i < count; i++) {
        struct tensor *tensors[WORLDS_MAX] = {NULL};
        for (int r = 0; r < all->world_size; r++) {
            struct tensor *x = module_named_parameters(all->models[r])->at[i].tensor;
            tensors[r] = gradients ? tensor_grad(x) : x;
        }
        if (tensors[0])
            average(tensors, all->world_size);
    }
}

static int steps_of(const struct training *how, int rank)
{
    return how->steps == STEPS_TWICE                   ? 2
           : how->steps == STEPS_NEVER                 ? 0
           : how->steps == STEPS_ON_RANK_0 && rank > 0 ? 0
                                                       : 1;
}

static void step_replicas(const struct replicas *all)
{
    NO_GRAD;
    for (int r = 0; r < all->world_size; r++) {
        struct named_tensors *parameters = module_named_parameters(all->models[r]);
        for (int i = 0; i < parameters->n; i++) {
            struct tensor *x = parameters->at[i].tensor, *gradient = tensor_grad(x);
            if (gradient)
                (void)tensor_add_(x, gradient, -learning_rate * steps_of(all->how, r));
        }
    }
}

static double mean_loss(const struct replicas *all)
{
    double sum = 0;
    for (int r = 0; r < all->world_size; r++)
        sum += all->losses[r];
    return sum / all->world_size;
}

/* What train_step gives on this rank. */
static double given_loss(struct judge *j, const struct replicas *all, int rank)
{
    switch (all->how->gives) {
    case GIVES_MEAN:
        return mean_loss(all);
    case GIVES_TOTAL:
        return all->totals[rank];
    case GIVES_SCALED:
        return all->losses[rank] * loss_factor(all);
    case GIVES_CONSTANT:
        return observed_number(judge_observations(j, 2, 0), "0 loss 0", NAN);
    default:
        return all->losses[rank];
    }
}

static bool judge_parameters(struct judge *j, const struct observations *o, int scenario, int step,
                             const struct module *model)
{
    const struct named_tensors *expected = module_named_parameters(model);
    for (int i = 0; i < expected->n; i++) {
        struct tensor *value = tensor_cast(tensor_detach(expected->at[i].tensor), FLOAT32);
        const char *name = expected->at[i].name;
        if (!expect_close(j, o, scope_printf("%d step %d.%s", scenario, step, name), value, 1e-5,
                          1e-6, "%s after step %d (%s)", name, step + 1, scenarios[scenario].name))
            return false;
    }
    return true;
}

static void train_replicas(struct judge *j, int scenario, int step, struct replicas *all)
{
    for (int r = 0; r < all->world_size; r++) {
        all->losses[r] = local_backward(j, &scenarios[scenario], step, r, all);
        all->totals[r] += all->losses[r];
    }
    if (all->how->averages == AVERAGES_GRADIENTS)
        average_all(all, true);
    step_replicas(all);
    if (all->how->averages == AVERAGES_PARAMETERS)
        average_all(all, false);
}

static bool judge_step(struct judge *j, int scenario, int step, struct replicas *all)
{
    SCOPE;
    train_replicas(j, scenario, step, all);
    for (int r = 0; r < all->world_size; r++) {
        const struct observations *o = judge_observations(j, all->world_size, r);
        if (!judge_parameters(j, o, scenario, step, all->models[r]) ||
            !expect_number(j, o, scope_printf("%d loss %d", scenario, step), given_loss(j, all, r),
                           1e-5, 1e-6, "the local loss that train_step returns in step %d (%s)",
                           step + 1, scenarios[scenario].name))
            return false;
    }
    return true;
}

static bool judge_scenario(struct judge *j, int scenario, struct replicas *all)
{
    SCOPE;
    for (int r = 0; r < all->world_size; r++) {
        all->models[r] =
            module_cast(scenario_model(&scenarios[scenario], judge_seed(j), r), FLOAT64);
        leave_stale_gradients(all->models[r], r);
    }
    for (int step = 0; step < STEPS; step++)
        if (!judge_step(j, scenario, step, all))
            return false;
    for (int r = 0; r < all->world_size; r++)
        if (!expect_int(j, judge_observations(j, all->world_size, r),
                        scope_printf("%d optimizer steps", scenario), STEPS * steps_of(all->how, r),
                        "the number of optimizer steps in %d train_steps", STEPS))
            return false;
    return true;
}

static bool judge_training(struct judge *j, const void *how)
{
    for (const int *world_size = (const int[]){WORLDS, 0}; *world_size; world_size++) {
        struct replicas all = {.world_size = *world_size, .how = how};
        for (int i = 0; i < SCENARIOS; i++)
            if (!judge_scenario(j, i, &all))
                return false;
    }
    return true;
}

static bool judge(struct judge *j)
{
    return judge_training(j, &(struct training){0}) &&
           expect_failed_loss(j, judge_observations(j, 2, 0), "train_step");
}

/* ---- mistakes ---- */

#define TRAINING(...) judge_training, &(const struct training){__VA_ARGS__}, false

static const struct hypothesis causes[] = {
    {"the gradients are never cleared: every step adds to those of the steps before, and to what "
     "was there at the start (optimizer_zero_grad)",
     TRAINING(.clears = CLEARS_NEVER)},
    {"the parameters never move, although the optimizer steps: it finds no gradients, because they "
     "are cleared after backward instead of before it (or backward is left out)",
     TRAINING(.clears = CLEARS_AFTER_BACKWARD)},
    {"every rank steps along its own, local gradient: average_gradients is left out, or called "
     "only after optimizer_step",
     TRAINING(.averages = AVERAGES_NOTHING)},
    {"the loss is averaged instead of the gradients: every rank steps along its own, local "
     "gradient",
     TRAINING(.averages = AVERAGES_NOTHING, .gives = GIVES_MEAN)},
    {"every rank steps along its own gradient, and then the parameters are averaged: it is the "
     "gradients that must be averaged, before the step",
     TRAINING(.averages = AVERAGES_PARAMETERS)},
    {"the parameters move exactly twice as far as they should: optimizer_step is called twice in a "
     "train_step",
     TRAINING(.steps = STEPS_TWICE)},
    {"the parameters never move: optimizer_step is not called", TRAINING(.steps = STEPS_NEVER)},
    {"only rank 0 steps: every rank has a model of its own, and must call optimizer_step",
     TRAINING(.steps = STEPS_ON_RANK_0)},
    {"the gradients are world_size times too large: the loss is multiplied by the world size, or "
     "the gradients are only summed",
     TRAINING(.loss = LOSS_TIMES_WORLD)},
    {"the gradients and the returned loss are world_size times too large: the loss is multiplied "
     "by the world size",
     TRAINING(.loss = LOSS_TIMES_WORLD, .gives = GIVES_SCALED)},
    {"the gradients are divided by the world size once more: average_gradients has done that "
     "already",
     TRAINING(.loss = LOSS_BY_WORLD)},
    {"the loss and its gradients are divided by the world size: average_gradients has done that "
     "already",
     TRAINING(.loss = LOSS_BY_WORLD, .gives = GIVES_SCALED)},
    {"the arguments of loss_fn are swapped: first the model's output, then the targets",
     TRAINING(.loss = LOSS_SWAPPED)},
    {"the parameters are right, but what is returned is the mean loss of all ranks: the local one "
     "is asked for",
     TRAINING(.gives = GIVES_MEAN)},
    {"the parameters are right, but what is returned is the sum of the losses of all steps so far",
     TRAINING(.gives = GIVES_TOTAL)},
    {"the parameters are right, but what is returned is a constant, the same in every step",
     TRAINING(.gives = GIVES_CONSTANT)},
    {NULL, NULL, NULL, false},
};

CRITERION(updates, .section = "dp", .problem = "1.3", .order = 3, .points = 7,
          .title = "three training steps equal a single-process reference",
          .file = "data_parallel.c", .calls = {"train_step"}, .supplied = "average_gradients",
          .worlds = {WORLDS}, .observe = observe, .judge = judge, .causes = causes);
