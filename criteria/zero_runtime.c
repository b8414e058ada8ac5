/* 3.1: a live engine on two ranks, made from the student's configuration and trained by the grader.
 */
#include "criteria/config_rules.h"
#include "criteria/zero_fixture.h"

static const struct config_arguments arguments = {ZERO_WORLD, ZERO_ROWS, ZERO_ACCUMULATION, "fp32"};

static float train_as_supplied(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                               loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)
        return NAN;
    return (float)tensor_item(loss);
}

static void observe(struct subject *s)
{
    SCOPE;
    json_t *config = config_build(s, &arguments);
    if (call_failed(s, !config, "%s", config_call_name(&arguments)))
        return;
    config_observe(s, config, "config");
    for (enum values values = PUBLIC_VALUES; values < VALUES_COUNT; values++)
        if (!zero_observe(s, values, config, mse_loss, train_as_supplied,
                          "training with the student's configuration"))
            break;
    json_decref(config);
}

/* The engine ignores keys that resemble none that it knows, so the object itself is judged too. */
static bool judge(struct judge *j)
{
    for (int rank = 0; rank < ZERO_WORLD; rank++)
        if (!config_judge(j, judge_observations(j, ZERO_WORLD, rank), "config", &arguments))
            return false;
    const struct zero_loss loss = {.function = mse_loss};
    return zero_judge(j, PUBLIC_VALUES, &loss) && zero_judge(j, DRAWN_VALUES, &loss);
}

CRITERION(zero_runtime, .section = "finetune", .problem = "3.1", .order = 10, .points = 4,
          .title = "live two-rank ZeRO-2 engine built from the student's configuration",
          .file = "finetune.c", .calls = {"build_config"}, .needs = NEEDS_TWO_GPUS,
          .worlds = {ZERO_WORLD}, .observe = observe, .judge = judge);
