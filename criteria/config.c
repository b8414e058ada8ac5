/* 3.1: build_config gives the ZeRO engine's configuration. */
#include "criteria/cause.h"
#include "criteria/config_rules.h"
#include "criteria/fixture.h"

static const struct config_arguments fixed_cases[] = {
    {2, 2, 2, "fp32"}, {2, 4, 1, "fp16"},  {1, 1, 1, "fp32"},
    {8, 3, 5, "fp16"}, {4, 16, 7, "fp32"}, {4096, 4096, 1024, "fp32"}, /* more than 32 bits hold */
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
    {2, 2, 2, "FP32"}, {2, 2, 2, "float32"}, {2, 2, 2, "bfp16"},
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
        observe_refused(s, i, config_build(s, &bad_cases[i]));
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
    for (int i = 0; i < BAD_CASES; i++)
        if (!expect_refused(j, o, i, config_call_name(&bad_cases[i])))
            return false;
    return true;
}

/* ---- mistakes ---- */

/* A mistake that shows in every object: whether this one has it, and the only keys that are wrong
 * by it. */
struct mistake {
    bool (*made)(const json_t *config, const struct config_arguments *a);
    const char *keys[2];
};

/* is_all - whether the object would be right but for the mistake */
static bool is_all(struct judge *j, json_t *config, const struct config_arguments *a,
                   const struct mistake *mistake)
{
    json_t *right = config_right(a);
    for (int i = 0; i < 2 && mistake->keys[i]; i++) {
        json_t *value = json_object_get(right, mistake->keys[i]);
        if (value)
            json_object_set(config, mistake->keys[i], value);
        else
            json_object_del(config, mistake->keys[i]);
    }
    json_decref(right);
    return config_rules(j, config, a);
}

static bool made_always(struct judge *j, const void *with)
{
    const struct mistake *mistake = with;
    for (int i = 0; i < CASES; i++) {
        SCOPE;
        struct config_arguments a = config_case(judge_seed(j), i);
        const char *text = observed_text(judge_observations(j, 1, 0), scope_printf("config %d", i));
        json_t *config = text ? json_loads(text, 0, NULL) : NULL;
        bool made =
            json_is_object(config) && mistake->made(config, &a) && is_all(j, config, &a, mistake);
        json_decref(config);
        if (!made)
            return false;
    }
    return true;
}

static int64_t batch_of(const json_t *config)
{
    return json_integer_value(json_object_get(config, "train_batch_size"));
}

static bool without_world(const json_t *config, const struct config_arguments *a)
{
    return batch_of(config) == (int64_t)a->micro_batch * a->accumulation;
}

static bool without_accumulation(const json_t *config, const struct config_arguments *a)
{
    return batch_of(config) == (int64_t)a->micro_batch * a->world_size;
}

static bool only_micro_batch(const json_t *config, const struct config_arguments *a)
{
    return batch_of(config) == a->micro_batch;
}

static int64_t stage_of(const json_t *config)
{
    return json_integer_value(
        json_object_get(json_object_get(config, "zero_optimization"), "stage"));
}

static bool stage_1(const json_t *config, const struct config_arguments *a)
{
    (void)a;
    return stage_of(config) == 1;
}

static bool stage_3(const json_t *config, const struct config_arguments *a)
{
    (void)a;
    return stage_of(config) == 3;
}

static bool no_zero_section(const json_t *config, const struct config_arguments *a)
{
    (void)a;
    return !json_object_get(config, "zero_optimization");
}

static bool no_untested_flag(const json_t *config, const struct config_arguments *a)
{
    (void)a;
    return !json_object_get(config, "zero_allow_untested_optimizer");
}

/* is_on - a section that does something: not absent, null, false, disabled or on the device "none"
 */
static bool is_on(const json_t *section)
{
    const char *device = json_string_value(json_object_get(section, "device"));
    return section && !json_is_null(section) && !json_is_false(section) &&
           !json_is_false(json_object_get(section, "enabled")) && !same_text(device, "none");
}

static bool offloads(const json_t *config, const struct config_arguments *a)
{
    (void)a;
    const json_t *zero = json_object_get(config, "zero_optimization");
    return is_on(json_object_get(zero, "offload_optimizer")) ||
           is_on(json_object_get(zero, "offload_param")) ||
           is_on(json_object_get(zero, "cpu_offload"));
}

static bool clips(const json_t *config, const struct config_arguments *a)
{
    (void)a;
    return json_number_value(json_object_get(config, "gradient_clipping")) != 0;
}

static bool has_fp16(const json_t *config)
{
    return json_is_true(json_object_get(json_object_get(config, "fp16"), "enabled"));
}

static bool fp16_on(const json_t *config, const struct config_arguments *a)
{
    (void)a;
    return has_fp16(config);
}

static bool fp16_off(const json_t *config, const struct config_arguments *a)
{
    (void)a;
    return !has_fp16(config);
}

static bool has_bf16(const json_t *config, const struct config_arguments *a)
{
    (void)a;
    return is_on(json_object_get(config, "bf16")) || is_on(json_object_get(config, "bfloat16"));
}

static bool has_optimizer(const json_t *config, const struct config_arguments *a)
{
    (void)a;
    return is_on(json_object_get(config, "optimizer")) ||
           is_on(json_object_get(config, "scheduler"));
}

#define MADE(what, ...) made_always, &(const struct mistake){what, {__VA_ARGS__}}, false
#define TAKEN(set) cause_taken, &(const struct taken){"error", "", BAD_CASES, set, 0}, false

static const struct hypothesis causes[] = {
    {"train_batch_size is micro_batch * accumulation: it lacks the factor world_size, for it "
     "counts the rows of all ranks (the world size)",
     MADE(without_world, "train_batch_size")},
    {"train_batch_size is micro_batch * world_size: it lacks the factor accumulation, for it "
     "counts the rows of a whole optimizer step",
     MADE(without_accumulation, "train_batch_size")},
    {"train_batch_size is micro_batch alone: it is the product with accumulation and world_size",
     MADE(only_micro_batch, "train_batch_size")},
    {"ZeRO stage 1 shares out the optimizer's state alone: stage 2, the gradients too, is asked "
     "for",
     MADE(stage_1, "zero_optimization")},
    {"ZeRO stage 3 shares out the parameters as well: stage 2, only gradients and the optimizer's "
     "state, is asked for",
     MADE(stage_3, "zero_optimization")},
    {"zero_optimization is missing or misspelt: without that key ZeRO is off",
     MADE(no_zero_section, "zero_optimization")},
    {"zero_allow_untested_optimizer is missing or misspelt: without that key DeepSpeed refuses "
     "an optimizer that it has not been tested with",
     MADE(no_untested_flag, "zero_allow_untested_optimizer")},
    {"an offload to the CPU is configured: none is asked for", MADE(offloads, "zero_optimization")},
    {"gradient_clipping is on, and would change the updates: it must be 0 or absent",
     MADE(clips, "gradient_clipping")},
    {"fp16 is enabled whatever the precision is: only \"fp16\" asks for it", MADE(fp16_on, "fp16")},
    {"fp16 is never enabled: \"fp16\" asks for {\"enabled\": true}", MADE(fp16_off, "fp16")},
    {"there is a bf16 section: neither precision asks for it", MADE(has_bf16, "bf16", "bfloat16")},
    {"there is an optimizer or scheduler section: the engine is given its optimizer",
     MADE(has_optimizer, "optimizer", "scheduler")},
    {"no count is checked: each must be 1 at least", TAKEN(0x7f)},
    {"counts of 0 are not refused", TAKEN(0x15)},
    {"negative counts are not refused", TAKEN(0x6a)},
    {"0 as world_size is not refused", TAKEN(0x01)},
    {"\"bf16\" is taken for a precision: there are \"fp32\" and \"fp16\" only", TAKEN(0x80)},
    {"any word is taken for a precision, \"fp32\" where it is not \"fp16\": others must be refused",
     TAKEN(0x7f80)},
    {"precision is compared by its address (==): strcmp compares the text", cause_said,
     "build_config(2, 2, 2, \"fp32\") raised ValueError", true},
    {NULL, NULL, NULL, false},
};

CRITERION(config, .section = "finetune", .problem = "3.1", .order = 9, .points = 2,
          .title = "configuration dictionary", .file = "finetune.c", .calls = {"build_config"},
          .observe = observe, .judge = judge, .causes = causes);
