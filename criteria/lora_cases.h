#ifndef CRITERIA_LORA_CASES_H
#define CRITERIA_LORA_CASES_H
/* lora_cases.h - the calls of apply_lora that the criterion `lora` observes, and under which keys;
 * lora_causes.c makes guesses about the same calls. */
#include "criteria/lora_fixture.h"

enum model_kind { LORA_PUBLIC_MODEL, LORA_DRAWN_MODEL, LORA_NESTED_MODEL, LORA_ADAPTED_MODEL };
enum { NAMES_MAX = 4 };

struct lora_case {
    enum model_kind kind;
    const char *names[NAMES_MAX]; /* up to the first NULL */
    int rank;
    double alpha;
};

/* Calls that succeed: "I same model", "I kept" (parameters), "I structure", "I parameter.NAME",
 * "I output" with adapters drawn for "good case". Calls that are refused: "bad I error", "bad I
 * returned NULL", "bad I structure", "bad I same modules", "bad I kept", "bad I parameter.NAME". */
enum { LORA_GOOD_CASES = 5, LORA_BAD_CASES = 13 };
extern const struct lora_case lora_good_cases[LORA_GOOD_CASES];
extern const struct lora_case lora_bad_cases[LORA_BAD_CASES];

/* lora_case_names - how many names. lora_case_name - the call, for a message. lora_case_model - the
 * model before the call. lora_case_inputs - what the adapted model is run on
 * lora_structure - every module of the model with its class: "0 LoRALinear, 0.base Linear, 1 Tanh"
 */
int lora_case_names(const struct lora_case *c);
const char *lora_case_name(const struct lora_case *c);
struct module *lora_case_model(enum model_kind kind, uint64_t seed);
struct tensor *lora_case_inputs(uint64_t seed, int index);
const char *lora_structure(struct module *model);

extern const struct hypothesis lora_causes[];
#endif
