/* 3.3: train_microbatch, with an engine made from a right configuration. */
#include <string.h>

#include "criteria/cause.h"
#include "criteria/config_rules.h"
#include "criteria/lora_fixture.h"
#include "criteria/zero_fixture.h"

static const struct config_arguments arguments = {ZERO_WORLD, ZERO_ROWS, ZERO_ACCUMULATION, "fp32"};

/* A loss of its own for each set of values. */
static loss_fn *const losses[VALUES_COUNT] = {mse_loss, lopsided_loss};

static void observe_failing(struct subject *s, const json_t *config)
{
    SCOPE;
    struct module *model = module_to(small_model_lora(), subject_device(s));
    struct engine *engine = engine_new(model, sgd_new(model, 0.1), config, dist_default());
    struct batch batch =
        batch_to(fixture_batch(PUBLIC_VALUES, subject_seed(s), 0), subject_device(s));
    if (call_failed(s, !engine, "making an engine"))
        return;
    float loss = student(s, train_microbatch)(engine, batch.inputs, batch.targets, failing_loss);
    observe_failed_loss(s, loss);
    engine_free(engine);
}

static void observe(struct subject *s)
{
    SCOPE;
    json_t *config = config_right(&arguments);
    bool good = true;
    for (enum values values = PUBLIC_VALUES; values < VALUES_COUNT && good; values++)
        good = zero_observe(s, values, config, losses[values], student(s, train_microbatch),
                            "train_microbatch");
    if (good)
        observe_failing(s, config);
    json_decref(config);
}

/* with: the loss, but for its function */
static bool judge_training(struct judge *j, const void *with)
{
    for (enum values values = PUBLIC_VALUES; values < VALUES_COUNT; values++) {
        struct zero_loss loss = *(const struct zero_loss *)with;
        if (!loss.function)
            loss.function = losses[values];
        if (!zero_judge(j, values, &loss))
            return false;
    }
    return true;
}

static bool judge(struct judge *j)
{
    return judge_training(j, &(struct zero_loss){0}) &&
           expect_failed_loss(j, judge_observations(j, ZERO_WORLD, 0), "train_microbatch");
}

/* ---- mistakes ---- */

/* The engine says what it was asked to do wrongly. with: its words */
static bool engine_says(struct judge *j, const void *with)
{
    return cause_said(j, "train_microbatch, step 1, microbatch ") && strstr(judge_reason(j), with);
}

#define TRAINING(...) judge_training, &(const struct zero_loss){__VA_ARGS__}, false
#define ENGINE_SAYS(words) engine_says, "raised RuntimeError: " words, false

static const struct hypothesis causes[] = {
    {"the arguments of loss_fn are swapped: first the model's output, then the targets",
     TRAINING(.swapped = true)},
    {"another loss is used than loss_fn, the one that is given: mse_loss",
     TRAINING(.function = mse_loss)},
    {"the gradients are half of what they should be: the loss is divided by the accumulation (or "
     "by the world size), which the engine does already",
     TRAINING(.factor = 0.5)},
    {"the gradients and the returned loss are half of what they should be: the loss is divided by "
     "the accumulation, which the engine does already",
     TRAINING(.factor = 0.5, .gives = GIVES_PER_ACCUMULATION)},
    {"the gradients are twice what they should be: the loss is multiplied by the world size (or by "
     "the accumulation), but the engine averages already",
     TRAINING(.factor = 2)},
    {"the training is right, but the loss that is returned is divided by the accumulation: the "
     "local, unscaled one is asked for",
     TRAINING(.gives = GIVES_PER_ACCUMULATION)},
    {"the training is right, but what is returned is the mean loss of all ranks: the local one is "
     "asked for",
     TRAINING(.gives = GIVES_MEAN)},
    {"tensor_backward is called instead of engine_backward",
     ENGINE_SAYS("engine_step: a gradient was computed outside of the engine")},
    {"engine_step does not follow every microbatch's engine_backward: it is never called, or only "
     "at the end of a window, or engine_backward is called twice; the engine itself knows when to "
     "step",
     ENGINE_SAYS("engine_backward: called twice without engine_step")},
    {"engine_step is called twice after one engine_backward",
     ENGINE_SAYS("engine_step: no engine_backward came before")},
    {"the engine's forward is bypassed: the output must come from engine_forward(engine, inputs)",
     ENGINE_SAYS("engine_backward: no engine_forward(engine, inputs) came before")},
    {"the optimizer inside the engine is stepped as well: engine_step does that",
     ENGINE_SAYS("engine_backward: the optimizer was stepped outside of the engine")},
    {NULL, NULL, NULL, false},
};

CRITERION(zero_updates, .section = "finetune", .problem = "3.3", .order = 12, .points = 12,
          .title = "three accumulated ZeRO optimizer steps equal a reference", .file = "finetune.c",
          .calls = {"train_microbatch"}, .needs = NEEDS_TWO_GPUS, .worlds = {ZERO_WORLD},
          .observe = observe, .judge = judge, .causes = causes);
