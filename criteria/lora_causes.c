/* lora_causes.c - what may be wrong in an apply_lora. */
#include <string.h>

#include "criteria/cause.h"
#include "criteria/lora_cases.h"
#include "runtime/autograd.h"
#include "runtime/lora.h"

/* ---- adapters made in another way ---- */

struct adapting {
    bool scale_is_alpha; /* not alpha / rank */
    bool swapped;        /* rank and alpha */
};

static struct module *adapted_so(struct judge *j, const struct lora_case *c,
                                 const struct adapting *how)
{
    struct module *model = lora_case_model(c->kind, judge_seed(j));
    double alpha = how->scale_is_alpha ? c->alpha * c->rank : c->alpha;
    for (int i = 0; i < lora_case_names(c); i++) {
        struct module *base = module_get(model, c->names[i]);
        (void)module_replace(model, c->names[i],
                             how->swapped ? lora_linear_new(base, (int)c->alpha, c->rank)
                                          : lora_linear_new(base, c->rank, alpha));
    }
    draw_adapters(model, 1, judge_seed(j), "good case");
    return model;
}

/* Every output is what adapters made like this give. */
static bool adapts_like(struct judge *j, const void *how)
{
    for (int i = 0; i < LORA_GOOD_CASES; i++) {
        SCOPE;
        struct module *model = adapted_so(j, &lora_good_cases[i], how);
        struct tensor *output = module_forward(model, lora_case_inputs(judge_seed(j), i));
        if (!expect_close(j, seen(j), scope_printf("%d output", i), tensor_detach(output), 1e-9,
                          1e-9, "the output"))
            return false;
    }
    return true;
}

/* ---- all good cases ---- */

/* flags_are - whether of every good case all adapters (or all other parameters) require grad */
static bool flags_are(struct judge *j, bool adapters, bool wanted)
{
    for (int i = 0; i < LORA_GOOD_CASES; i++) {
        SCOPE;
        struct module *model = adapted_so(j, &lora_good_cases[i], &(struct adapting){0});
        struct named_tensors *parameters = module_named_parameters(model);
        for (int k = 0; k < parameters->n; k++) {
            const char *key = scope_printf("%d parameter.%s", i, parameters->at[k].name);
            if (!observed_tensor(seen(j), key) || (is_adapter(parameters->at[k].name) == adapters &&
                                                   observed_requires_grad(seen(j), key) != wanted))
                return false;
        }
    }
    return true;
}

static bool freezes_adapters(struct judge *j, const void *with)
{
    (void)with;
    return flags_are(j, true, false) && flags_are(j, false, false);
}

/* What LoRALinear itself freezes is frozen; what is not adapted trains on, as it did before. */
static bool freezes_nothing(struct judge *j, const void *with)
{
    (void)with;
    return flags_are(j, true, true) && observed_tensor(seen(j), "1 parameter.0.weight") &&
           observed_requires_grad(seen(j), "1 parameter.0.weight") &&
           observed_requires_grad(seen(j), "1 parameter.0.bias") &&
           observed_requires_grad(seen(j), "3 parameter.head.weight");
}

static bool returns_another(struct judge *j, const void *with)
{
    (void)with;
    for (int i = 0; i < LORA_GOOD_CASES; i++)
        if (observed_int(seen(j), scope_printf("%d same model", i), 1) != 0)
            return false;
    return true;
}

static bool adapts_in_float32(struct judge *j, const void *with)
{
    (void)with;
    const struct tensor *adapter = observed_tensor(seen(j), "0 parameter.0.lora_A");
    return adapter && tensor_dtype(adapter) == FLOAT32;
}

/* ---- refusals ---- */

static bool is_unchanged(struct judge *j, int index)
{
    struct module *model = lora_case_model(lora_bad_cases[index].kind, judge_seed(j));
    struct named_tensors *parameters = module_named_parameters(model);
    bool same = same_text(observed_text(seen(j), scope_printf("bad %d structure", index)),
                          lora_structure(model));
    for (int i = 0; same && i < parameters->n; i++)
        same = observed_requires_grad(
                   seen(j), scope_printf("bad %d parameter.%s", index, parameters->at[i].name)) ==
               tensor_requires_grad(parameters->at[i].tensor);
    return same;
}

/* changed_cases - the refused calls that changed the model, a bit for each; 0 if a call was not
 * refused */
static unsigned changed_cases(struct judge *j)
{
    unsigned changed = 0;
    for (int i = 0; i < LORA_BAD_CASES; i++) {
        SCOPE;
        if (!refused(seen(j), scope_printf("bad %d error", i)))
            return 0;
        changed |= is_unchanged(j, i) ? 0 : 1U << i;
    }
    return changed;
}

/* Sets of the bad calls. */
enum {
    NO_NAMES = 0x0001,
    TWICE = 0x0006,
    UNKNOWN = 0x0448,   /* "3", "2.weight", "proj" */
    NO_LINEAR = 0x0a30, /* Tanh, Sequential, the model itself */
    RANK_0 = 0x0080,
    BAD_RANK = 0x0180,
    ADAPTED = 0x1000,
};

/* Only these were refused too late: not by a check of their own, but by what failed later. with:
 * the set */
static bool refuses_late(struct judge *j, const void *with)
{
    return changed_cases(j) == *(const unsigned *)with;
}

/* Whatever is bad, it is found only after something was done. */
static bool refuses_all_late(struct judge *j, const void *with)
{
    (void)with;
    unsigned changed = changed_cases(j);
    return (changed & TWICE) && (changed & UNKNOWN) && (changed & NO_LINEAR);
}

#define ADAPTING(...) adapts_like, &(const struct adapting){__VA_ARGS__}, false
#define TAKEN(set)                                                                                 \
    cause_taken, &(const struct taken){"bad", " error", LORA_BAD_CASES, set, 0}, false
#define LATE(set) refuses_late, &(const unsigned){set}, false

const struct hypothesis lora_causes[] = {
    {"the adapters' share is scaled by alpha: it must be by alpha / rank",
     ADAPTING(.scale_is_alpha = true)},
    {"rank and alpha are swapped: lora_A has alpha rows where it must have rank of them",
     ADAPTING(.swapped = true)},
    {"everything is frozen after the adapters are in, so lora_A and lora_B are, too: freeze first, "
     "then insert",
     freezes_adapters, NULL, false},
    {"what is not adapted still requires grad: every parameter that the model had must be frozen",
     freezes_nothing, NULL, false},
    {"the model that is returned is a copy, not the model itself", returns_another, NULL, false},
    {"the adapters are float32 whatever their base is: they must have the dtype and device of its "
     "weight",
     adapts_in_float32, NULL, false},
    {"dotted names are not found: module_get looks a name like \"encoder.proj\" up through all "
     "levels",
     cause_said, "apply_lora of {\"encoder.proj\"}, rank 3, alpha 8 raised", false},
    {"no names at all are not refused", TAKEN(NO_NAMES)},
    {"a name that is given twice is not refused, and its adapters nest", TAKEN(TWICE)},
    {"a name that is given twice is not looked for, and only fails when its module was replaced "
     "once",
     LATE(TWICE)},
    {"unknown names are skipped: they must be refused", TAKEN(UNKNOWN)},
    {"a rank below 1 is not refused", TAKEN(BAD_RANK)},
    {"a rank below 1 is not looked for before the parameters are frozen", LATE(BAD_RANK)},
    {"rank 0 is not refused: rank < 1 must be", TAKEN(RANK_0)},
    {"only 0 is refused as rank: a negative rank must be, too", TAKEN(BAD_RANK & ~RANK_0)},
    {"a negative rank is not looked for: rank < 1 must be refused, before anything is frozen",
     LATE(BAD_RANK & ~RANK_0)},
    {"rank 0 is not looked for before the parameters are frozen: rank < 1 must be refused",
     LATE(RANK_0)},
    {"a module that is not a Linear is not refused", TAKEN(NO_LINEAR)},
    {"a module that is not a Linear is not looked for, and only fails after others were replaced",
     LATE(NO_LINEAR | ADAPTED)},
    {"a Linear that is adapted already is not refused: its adapter would be adapted",
     TAKEN(ADAPTED)},
    {"a refused call has changed the model: every name must be checked before anything is frozen "
     "or replaced",
     refuses_all_late, NULL, false},
    {NULL, NULL, NULL, false},
};
