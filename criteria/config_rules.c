#include "criteria/config_rules.h"

#include <stdlib.h>
#include <string.h>

const char *config_call_name(const struct config_arguments *a)
{
    return scope_printf("build_config(%d, %d, %d, \"%s\")", a->world_size, a->micro_batch,
                        a->accumulation, a->precision);
}

json_t *config_build(struct subject *s, const struct config_arguments *a)
{
    char *precision = strdup(a->precision);
    json_t *config =
        student(s, build_config)(a->world_size, a->micro_batch, a->accumulation, precision);
    memset(precision, 0xdd, strlen(precision));
    free(precision);
    return config;
}

void config_observe(struct subject *s, const json_t *config, const char *key)
{
    char *text = json_dumps(config, JSON_ENCODE_ANY | JSON_SORT_KEYS);
    observe_text(s, text, "%s", key);
    free(text);
}

/* json_name - a value for a message: "absent", or the JSON, cut */
static const char *json_name(const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    const char *name = text ? scope_printf("%.80s", text) : "absent";
    free(text);
    return name;
}

/* What the rules look at while they are gone through. */
struct config_case {
    struct judge *j;
    const json_t *config;
    const struct config_arguments *arguments;
};

static bool fail_key(const struct config_case *c, const char *key, const json_t *got,
                     const char *expected)
{
    return judge_fail(c->j, "%s: \"%s\" is %s, expected %s", config_call_name(c->arguments), key,
                      json_name(got), expected);
}

static bool rule_count(const struct config_case *c, const char *key, int64_t expected)
{
    const json_t *got = json_object_get(c->config, key);
    return (json_is_integer(got) && json_integer_value(got) == expected) ||
           fail_key(c, key, got, scope_printf("%jd", (intmax_t)expected));
}

/* A section that must do nothing: absent, null, false or {"enabled": false}. */
static bool rule_disabled(const struct config_case *c, const char *key)
{
    const json_t *got = json_object_get(c->config, key);
    return !got || json_is_null(got) || json_is_false(got) ||
           json_is_false(json_object_get(got, "enabled")) || fail_key(c, key, got, "none");
}

static bool rule_no_offload(const struct config_case *c, const json_t *zero, const char *key)
{
    const json_t *got = json_object_get(zero, key);
    const char *device = json_string_value(json_object_get(got, "device"));
    return !got || json_is_null(got) || json_is_false(got) ||
           (device && strcmp(device, "none") == 0) ||
           fail_key(c, scope_printf("zero_optimization.%s", key), got, "no offload");
}

static bool rule_zero(const struct config_case *c)
{
    const json_t *zero = json_object_get(c->config, "zero_optimization");
    const json_t *stage = json_object_get(zero, "stage");
    if (!json_is_integer(stage) || json_integer_value(stage) != 2)
        return fail_key(c, zero ? "zero_optimization.stage" : "zero_optimization", stage,
                        zero ? "2" : "{\"stage\": 2}");
    return rule_no_offload(c, zero, "offload_optimizer") &&
           rule_no_offload(c, zero, "offload_param") && rule_no_offload(c, zero, "cpu_offload");
}

static bool rule_untested_optimizer(const struct config_case *c)
{
    const json_t *got = json_object_get(c->config, "zero_allow_untested_optimizer");
    return json_is_true(got) || fail_key(c, "zero_allow_untested_optimizer", got, "true");
}

static bool rule_clipping(const struct config_case *c)
{
    const json_t *got = json_object_get(c->config, "gradient_clipping");
    return !got || (json_is_number(got) && json_number_value(got) == 0) ||
           fail_key(c, "gradient_clipping", got, "0");
}

static bool rule_precision(const struct config_case *c)
{
    if (strcmp(c->arguments->precision, "fp16") != 0)
        return rule_disabled(c, "fp16");
    const json_t *got = json_object_get(c->config, "fp16");
    return json_is_true(json_object_get(got, "enabled")) ||
           fail_key(c, "fp16", got, "{\"enabled\": true}");
}

bool config_rules(struct judge *j, const json_t *config, const struct config_arguments *a)
{
    struct config_case c = {j, config, a};
    int64_t local = (int64_t)a->micro_batch * a->accumulation;
    return rule_count(&c, "train_micro_batch_size_per_gpu", a->micro_batch) &&
           rule_count(&c, "gradient_accumulation_steps", a->accumulation) &&
           rule_count(&c, "train_batch_size", local * a->world_size) && rule_zero(&c) &&
           rule_untested_optimizer(&c) && rule_clipping(&c) && rule_precision(&c) &&
           rule_disabled(&c, "bf16") && rule_disabled(&c, "bfloat16") &&
           rule_disabled(&c, "optimizer") && rule_disabled(&c, "scheduler");
}

json_t *config_right(const struct config_arguments *a)
{
    json_int_t whole = (json_int_t)a->micro_batch * a->accumulation * a->world_size;
    return json_pack("{s:i, s:i, s:I, s:{s:i}, s:b, s:{s:b}}", "train_micro_batch_size_per_gpu",
                     a->micro_batch, "gradient_accumulation_steps", a->accumulation,
                     "train_batch_size", whole, "zero_optimization", "stage", 2,
                     "zero_allow_untested_optimizer", true, "fp16", "enabled",
                     strcmp(a->precision, "fp16") == 0);
}

bool config_judge(struct judge *j, const struct observations *o, const char *key,
                  const struct config_arguments *a)
{
    SCOPE;
    const char *text = observed_text(o, key);
    json_t *config = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool good = json_is_object(config)
                    ? config_rules(j, config, a)
                    : judge_fail(j, "%s does not give a JSON object", config_call_name(a));
    json_decref(config);
    return good;
}
