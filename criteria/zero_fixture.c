#include "criteria/zero_fixture.h"

#include "criteria/lora_fixture.h"

static const double learning_rate = 0.1;

static struct module *zero_model(enum values values, uint64_t seed)
{
    if (values == PUBLIC_VALUES)
        return small_model_lora();
    struct module *model = fixture_model(values, seed, "zero");
    for (int i = 0; i <= 2; i += 2) {
        const char *name = scope_printf("%d", i);
        (void)module_replace(model, name, lora_linear_new(module_get(model, name), 2, 4));
    }
    draw_adapters(model, 0.2, seed, "zero"); /* more would diverge */
    return model;
}

/* The eight rows of a step; rank r's microbatch m has two of them. */
static struct batch step_batch(enum values values, uint64_t seed, int step)
{
    int64_t rows = ZERO_WORLD * ZERO_ACCUMULATION * ZERO_ROWS;
    return batch_slice(fixture_batch(values, seed, step), 0, rows);
}

static struct batch microbatch_of(struct batch batch, int rank, int microbatch)
{
    int64_t index = rank * ZERO_ACCUMULATION + microbatch;
    return batch_slice(batch, index * ZERO_ROWS, ZERO_ROWS);
}

/* ---- observing ---- */

static bool observe_step(struct subject *s, struct engine *engine, enum values values, int step,
                         loss_fn *loss_fn, zero_train_fn *train, const char *who)
{
    SCOPE;
    struct batch batch = batch_to(step_batch(values, subject_seed(s), step), subject_device(s));
    if (subject_went_wrong(s, "making a batch"))
        return false;
    for (int m = 0; m < ZERO_ACCUMULATION; m++) {
        struct batch microbatch = microbatch_of(batch, subject_rank(s), m);
        float loss = train(engine, microbatch.inputs, microbatch.targets, loss_fn);
        if (call_failed(s, loss != loss, "%s, step %d, microbatch %d", who, step + 1, m + 1))
            return false;
        observe_number(s, loss, "%d loss %d %d", values, step, m);
    }
    return true;
}

static void observe_stats(struct subject *s, const struct engine *engine, enum values values)
{
    struct engine_stats stats = engine_stats(engine);
    observe_int(s, stats.stage, "%d stage", values);
    observe_int(s, stats.microbatches, "%d microbatches", values);
    observe_int(s, stats.steps, "%d steps", values);
    observe_int(s, stats.optimizer_bytes, "%d optimizer bytes", values);
    observe_int(s, stats.gradient_bytes, "%d gradient bytes", values);
}

bool zero_observe(struct subject *s, enum values values, const json_t *config, loss_fn *loss_fn,
                  zero_train_fn *train, const char *who)
{
    SCOPE;
    struct module *model = module_to(zero_model(values, subject_seed(s)), subject_device(s));
    struct optimizer *optimizer = sgd_new(model, learning_rate);
    struct engine *engine = engine_new(model, optimizer, config, dist_default());
    if (call_failed(s, !engine, "making an engine from the configuration"))
        return false;
    bool good = true;
    for (int step = 0; step < ZERO_STEPS && good; step++) {
        good = observe_step(s, engine, values, step, loss_fn, train, who);
        observe_parameters(s, model, "%d step %d", values, step);
    }
    if (good)
        observe_stats(s, engine, values);
    observe_int(s, optimizer_steps(optimizer), "%d inner steps", values);
    engine_free(engine);
    return good;
}

/* ---- judging ---- */

static struct tensor *loss_of(const struct zero_loss *loss, struct module *model,
                              struct batch batch)
{
    struct tensor *output = module_forward(model, batch.inputs);
    return loss->swapped ? loss->function(batch.targets, output)
                         : loss->function(output, batch.targets);
}

/* given_loss - what a rank gives for its microbatch m of the batch */
static double given_loss(const struct zero_loss *loss, struct module *model, struct batch batch,
                         int rank, int m)
{
    double sum = 0;
    if (loss->gives != GIVES_MEAN)
        return tensor_item(loss_of(loss, model, microbatch_of(batch, rank, m))) /
               (loss->gives == GIVES_PER_ACCUMULATION ? ZERO_ACCUMULATION : 1);
    for (int r = 0; r < ZERO_WORLD; r++)
        sum += tensor_item(loss_of(loss, model, microbatch_of(batch, r, m)));
    return sum / ZERO_WORLD;
}

static bool judge_losses(struct judge *j, enum values values, int step, struct batch batch,
                         struct module *model, const struct zero_loss *loss)
{
    for (int rank = 0; rank < ZERO_WORLD; rank++)
        for (int m = 0; m < ZERO_ACCUMULATION; m++)
            if (!expect_number(j, judge_observations(j, ZERO_WORLD, rank),
                               scope_printf("%d loss %d %d", values, step, m),
                               given_loss(loss, model, batch, rank, m), 2e-4, 2e-6,
                               "the local loss of step %d, microbatch %d (%s)", step + 1, m + 1,
                               values_name(values)))
                return false;
    return true;
}

static bool judge_parameters(struct judge *j, const struct observations *o, enum values values,
                             int step, const struct module *model)
{
    struct named_tensors *expected = module_named_parameters(model);
    for (int i = 0; i < expected->n; i++) {
        const char *name = expected->at[i].name;
        const char *key = scope_printf("%d step %d.%s", values, step, name);
        struct tensor *value = tensor_cast(tensor_detach(expected->at[i].tensor), FLOAT32);
        bool good = is_adapter(name)
                        ? expect_close(j, o, key, value, 2e-4, 2e-6, "%s after step %d (%s)", name,
                                       step + 1, values_name(values))
                        : expect_equal(j, o, key, value, "%s, which is frozen, after step %d", name,
                                       step + 1);
        if (!good)
            return false;
    }
    return true;
}

/* Each rank holds its half of what trains, and no more. */
static bool judge_stats(struct judge *j, const struct observations *o, enum values values,
                        const struct module *model)
{
    int64_t trained = 0;
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++)
        if (is_adapter(parameters->at[i].name))
            trained += tensor_numel(parameters->at[i].tensor);
    int64_t half = (trained + ZERO_WORLD - 1) / ZERO_WORLD * dtype_size(FLOAT32);
    return expect_int(j, o, scope_printf("%d stage", values), 2, "the engine's ZeRO stage") &&
           expect_int(j, o, scope_printf("%d microbatches", values), ZERO_STEPS * ZERO_ACCUMULATION,
                      "the number of the engine's microbatches") &&
           expect_int(j, o, scope_printf("%d steps", values), ZERO_STEPS,
                      "the number of the engine's optimizer steps") &&
           expect_int(j, o, scope_printf("%d inner steps", values), 0,
                      "the number of steps made by the optimizer inside the engine") &&
           expect_int(j, o, scope_printf("%d optimizer bytes", values), half,
                      "the number of bytes of optimizer state on this rank") &&
           expect_int(j, o, scope_printf("%d gradient bytes", values), half,
                      "the number of bytes of gradients on this rank");
}

static bool judge_step(struct judge *j, enum values values, int step, struct module *model,
                       struct optimizer *optimizer, const struct zero_loss *loss)
{
    SCOPE;
    struct batch batch = batch_cast(step_batch(values, judge_seed(j), step), FLOAT64);
    if (!judge_losses(j, values, step, batch, model, loss))
        return false;
    optimizer_zero_grad(optimizer);
    double factor = loss->factor != 0 ? loss->factor : 1;
    (void)tensor_backward(tensor_scale(loss_of(loss, model, batch), factor));
    (void)optimizer_step(optimizer);
    for (int rank = 0; rank < ZERO_WORLD; rank++)
        if (!judge_parameters(j, judge_observations(j, ZERO_WORLD, rank), values, step, model))
            return false;
    return true;
}

bool zero_judge(struct judge *j, enum values values, const struct zero_loss *loss)
{
    SCOPE;
    struct module *model = module_cast(zero_model(values, judge_seed(j)), FLOAT64);
    struct optimizer *optimizer = sgd_new(model, learning_rate);
    for (int step = 0; step < ZERO_STEPS; step++)
        if (!judge_step(j, values, step, model, optimizer, loss))
            return false;
    for (int rank = 0; rank < ZERO_WORLD; rank++)
        if (!judge_stats(j, judge_observations(j, ZERO_WORLD, rank), values, model))
            return false;
    return true;
}
