/* 3.3: train_microbatch, with an engine made from a right configuration. */
#include "criteria/config_rules.h"
#include "criteria/zero_fixture.h"

static const struct config_arguments arguments = {ZERO_WORLD, ZERO_ROWS, ZERO_ACCUMULATION, "fp32"};

/* A loss of its own for each set of values. */
static loss_fn *const losses[VALUES_COUNT] = {mse_loss, lopsided_loss};

static void observe(struct subject *s)
{
    SCOPE;
    json_t *config = config_right(&arguments);
    for (enum values values = PUBLIC_VALUES; values < VALUES_COUNT; values++)
        if (!zero_observe(s, values, config, losses[values], student(s, train_microbatch),
                          "train_microbatch"))
            break;
    json_decref(config);
}

static bool judge(struct judge *j)
{
    for (enum values values = PUBLIC_VALUES; values < VALUES_COUNT; values++)
        if (!zero_judge(j, values, losses[values]))
            return false;
    return true;
}

CRITERION(zero_updates, .section = "finetune", .problem = "3.3", .order = 12, .points = 12,
          .title = "three accumulated ZeRO optimizer steps equal a reference", .file = "finetune.c",
          .needs = NEEDS_TWO_GPUS, .worlds = {ZERO_WORLD}, .observe = observe, .judge = judge);
