/* 3.3: train_microbatch, with an engine made from a right configuration. */
#include "criteria/zero_fixture.h"

static json_t *right_config(void)
{
    return json_pack("{s:i, s:i, s:i, s:{s:i}, s:b}", "train_micro_batch_size_per_gpu", ZERO_ROWS,
                     "gradient_accumulation_steps", ZERO_ACCUMULATION, "train_batch_size",
                     ZERO_WORLD * ZERO_ROWS * ZERO_ACCUMULATION, "zero_optimization", "stage", 2,
                     "zero_allow_untested_optimizer", true);
}

/* A loss of its own for each set of values. */
static loss_fn *const losses[VALUES_COUNT] = {mse_loss, lopsided_loss};

static void observe(struct subject *s)
{
    SCOPE;
    json_t *config = right_config();
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
