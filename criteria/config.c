/* 3.1: build_config gives the ZeRO engine's configuration. */
#include "criteria/config_rules.h"
#include "criteria/fixture.h"

static const struct config_arguments fixed_cases[] = {
    {2, 2, 2, "fp32"}, {2, 4, 1, "fp16"}, {1, 1, 1, "fp32"}, {8, 3, 5, "fp16"}, {4, 16, 7, "fp32"},
};
enum { FIXED_CASES = sizeof fixed_cases / sizeof *fixed_cases, DRAWN_CASES = 6 };
enum { CASES = FIXED_CASES + DRAWN_CASES };

static struct config_arguments config_case(uint64_t seed, int index)
{
    if (index < FIXED_CASES)
        return fixed_cases[index];
    struct rng rng;
    draws_seed(&rng, seed, scope_printf("config %d", index));
    int world_size = 1 + (int)rng_below(&rng, 64);
    int micro_batch = 1 + (int)rng_below(&rng, 64);
    int accumulation = 1 + (int)rng_below(&rng, 32);
    return (struct config_arguments){world_size, micro_batch, accumulation,
                                     index % 2 ? "fp16" : "fp32"};
}

static const struct config_arguments bad_cases[] = {
    {0, 2, 2, "fp32"}, {-1, 2, 2, "fp32"},   {2, 0, 2, "fp32"},   {2, -3, 2, "fp16"},
    {2, 2, 0, "fp32"}, {2, 2, -1, "fp16"},   {-2, -2, 1, "fp32"}, {2, 2, 2, "bf16"},
    {2, 2, 2, "int8"}, {2, 2, 2, ""},        {2, 2, 2, "fp"},     {2, 2, 2, "fp161"},
    {2, 2, 2, "FP32"}, {2, 2, 2, "float32"},
};
enum { BAD_CASES = sizeof bad_cases / sizeof *bad_cases };

static void observe(struct subject *s)
{
    SCOPE;
    for (int i = 0; i < CASES; i++) {
        struct config_arguments arguments = config_case(subject_seed(s), i);
        json_t *config = config_build(s, &arguments);
        if (call_failed(s, !config, "%s", config_call_name(&arguments)))
            return;
        config_observe(s, config, scope_printf("config %d", i));
        json_decref(config);
    }
    for (int i = 0; i < BAD_CASES; i++) {
        json_t *config = config_build(s, &bad_cases[i]);
        observe_int(s, config == NULL, "returned NULL %d", i);
        observe_error(s, "error %d", i);
    }
}

static bool judge(struct judge *j)
{
    SCOPE;
    const struct observations *o = judge_observations(j, 1, 0);
    for (int i = 0; i < CASES; i++) {
        struct config_arguments arguments = config_case(judge_seed(j), i);
        if (!config_judge(j, o, scope_printf("config %d", i), &arguments))
            return false;
    }
    for (int i = 0; i < BAD_CASES; i++) {
        const char *call = config_call_name(&bad_cases[i]);
        if (!expect_raised(j, o, scope_printf("error %d", i), "ValueError", NULL, "%s", call) ||
            !expect_true(j, o, scope_printf("returned NULL %d", i),
                         "%s raises an error, but does not return NULL", call))
            return false;
    }
    return true;
}

CRITERION(config, .section = "finetune", .problem = "3.1", .order = 9, .points = 2,
          .title = "configuration dictionary", .file = "finetune.c", .observe = observe,
          .judge = judge);
