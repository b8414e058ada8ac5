#ifndef CRITERIA_CONFIG_RULES_H
#define CRITERIA_CONFIG_RULES_H
/* config_rules.h - what build_config's object must hold. */
#include "assignment/finetune.h"
#include "criteria/criterion.h"

struct config_arguments {
    int world_size, micro_batch, accumulation;
    const char *precision;
};

/* config_call_name - "build_config(2, 4, 1, "fp16")". owns: borrowed from the scope */
const char *config_call_name(const struct config_arguments *arguments);

/* config_build - call the student's build_config with a precision in memory of its own, which is
 * overwritten and freed right after the call */
json_t *config_build(struct subject *s, const struct config_arguments *arguments);

/* config_observe - record the object, as JSON */
void config_observe(struct subject *s, const json_t *config, const char *key);

/* config_rules - whether the object is right for the arguments
 * config_right - a right one. owns: the caller */
bool config_rules(struct judge *j, const json_t *config, const struct config_arguments *arguments);
json_t *config_right(const struct config_arguments *arguments);

/* config_judge - the object recorded under `key` is right for the arguments. Keys that change
 * nothing are allowed: an explicit "none" offload, disabled sections, anything unknown. */
bool config_judge(struct judge *j, const struct observations *o, const char *key,
                  const struct config_arguments *arguments);
#endif
