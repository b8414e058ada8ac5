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
    for (int i = 0; i < parameters->n; i++) {
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
    for (int step = 0; step < STEPS; step++)
        if (!observe_step(s, scenario, step, model, optimizer))
            return false;
    observe_int(s, optimizer_steps(optimizer), "%d optimizer steps", scenario);
    return true;
}

static void observe(struct subject *s)
{
    for (int i = 0; i < SCENARIOS; i++)
        if (!observe_scenario(s, i))
            return;
}

/* ---- judging: the reference has the models of all ranks in one process, in FLOAT64 ---- */

static double local_backward(struct judge *j, const struct scenario *c, int step,
                             struct module *model, int rank, int world_size)
{
    struct batch batch = fixture_batch(c->values, judge_seed(j), step);
    struct batch shard = batch_cast(batch_shard(batch, rank, world_size), FLOAT64);
    module_zero_grad(model);
    struct tensor *loss = c->loss(module_forward(model, shard.inputs), shard.targets);
    (void)tensor_backward(loss);
    return tensor_item(loss);
}

/* Every model one step along the mean of all models' gradients. */
static void step_along_mean(struct module *const *models, int world_size)
{
    NO_GRAD;
    struct named_tensors *parameters[WORLDS_MAX] = {module_named_parameters(models[0])};
    for (int r = 1; r < world_size; r++)
        parameters[r] = module_named_parameters(models[r]);
    for (int i = 0; i < parameters[0]->n; i++) {
        struct tensor *mean = tensor_clone(tensor_grad(parameters[0]->at[i].tensor));
        for (int r = 1; r < world_size; r++)
            (void)tensor_add_(mean, tensor_grad(parameters[r]->at[i].tensor), 1);
        for (int r = 0; r < world_size; r++)
            (void)tensor_add_(parameters[r]->at[i].tensor, mean, -learning_rate / world_size);
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

static bool judge_step(struct judge *j, int scenario, int step, struct module *const *models,
                       int world_size)
{
    SCOPE;
    double losses[WORLDS_MAX];
    for (int r = 0; r < world_size; r++)
        losses[r] = local_backward(j, &scenarios[scenario], step, models[r], r, world_size);
    step_along_mean(models, world_size);
    for (int r = 0; r < world_size; r++) {
        const struct observations *o = judge_observations(j, world_size, r);
        if (!judge_parameters(j, o, scenario, step, models[r]) ||
            !expect_number(j, o, scope_printf("%d loss %d", scenario, step), losses[r], 1e-5, 1e-6,
                           "the local loss that train_step returns in step %d (%s)", step + 1,
                           scenarios[scenario].name))
            return false;
    }
    return true;
}

static bool judge_scenario(struct judge *j, int scenario, int world_size)
{
    SCOPE;
    struct module *models[WORLDS_MAX];
    for (int r = 0; r < world_size; r++)
        models[r] = module_cast(scenario_model(&scenarios[scenario], judge_seed(j), r), FLOAT64);
    for (int step = 0; step < STEPS; step++)
        if (!judge_step(j, scenario, step, models, world_size))
            return false;
    for (int r = 0; r < world_size; r++)
        if (!expect_int(j, judge_observations(j, world_size, r),
                        scope_printf("%d optimizer steps", scenario), STEPS,
                        "the number of optimizer steps in %d train_steps", STEPS))
            return false;
    return true;
}

static bool judge(struct judge *j)
{
    for (const int *world_size = (const int[]){WORLDS, 0}; *world_size; world_size++)
        for (int i = 0; i < SCENARIOS; i++)
            if (!judge_scenario(j, i, *world_size))
                return false;
    return true;
}

CRITERION(updates, .section = "dp", .problem = "1.3", .order = 3, .points = 7,
          .title = "three training steps equal a single-process reference",
          .file = "data_parallel.c", .supplied = "average_gradients", .worlds = {WORLDS},
          .observe = observe, .judge = judge);
