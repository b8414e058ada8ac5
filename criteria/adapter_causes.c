/* adapter_causes.c - what may be wrong in a save_adapter or load_adapter. */
#include <string.h>

#include "criteria/adapter_cases.h"
#include "criteria/cause.h"
#include "runtime/autograd.h"
#include "runtime/serialize.h"

/* ---- saving ---- */

/* saved_file - what save_adapter wrote; NULL if that cannot be read */
static struct named_tensors *saved_file(struct judge *j, int which)
{
    const char *path = judge_file(j, 1, 0, adapter_saved_names[which]);
    struct named_tensors *saved = path ? tensors_load(path) : NULL;
    error_clear();
    return saved;
}

static bool holds_names(const struct named_tensors *saved, const struct named_tensors *wanted,
                        int count)
{
    bool same = saved && saved->n == count;
    for (int i = 0; same && i < count; i++)
        same = named_tensors_find(saved, wanted->at[i].name) != NULL;
    return same;
}

static bool saves_base(struct judge *j, const void *with)
{
    (void)with;
    bool all = true;
    for (int which = 0; all && which < MODELS; which++) {
        struct named_tensors *everything =
            module_named_parameters(adapter_model(judge_seed(j), which));
        all = holds_names(saved_file(j, which), everything, everything->n);
    }
    return all;
}

static bool leaves_out_last(struct judge *j, const void *with)
{
    (void)with;
    bool all = true;
    for (int which = 0; all && which < MODELS; which++) {
        struct named_tensors *adapters = adapters_of(adapter_model(judge_seed(j), which));
        all = holds_names(saved_file(j, which), adapters, adapters->n - 1);
    }
    return all;
}

static bool saves_only_a(struct judge *j, const void *with)
{
    (void)with;
    bool all = true;
    for (int which = 0; all && which < MODELS; which++) {
        struct named_tensors *saved = saved_file(j, which);
        all = saved && saved->n > 0;
        for (int i = 0; all && i < saved->n; i++)
            all = strstr(saved->at[i].name, "lora_A") != NULL;
    }
    return all;
}

static bool writes_elsewhere(struct judge *j, const void *with)
{
    (void)with;
    return observed_tensor(seen(j), "saved 0.0.lora_A") &&
           !judge_file(j, 1, 0, adapter_saved_names[0]) &&
           !judge_file(j, 1, 0, adapter_saved_names[1]);
}

static bool saves_nothing_gladly(struct judge *j, const void *with)
{
    (void)with;
    const char *type = "?", *message;
    return observed_error(seen(j), "none: error", &type, &message) && !*type;
}

/* ---- loading ---- */

/* loads_times - every adapter is this multiple of the file's. with: the factor */
static bool loads_times(struct judge *j, const void *with)
{
    const double *factor = with;
    for (int which = 0; which < MODELS; which++) {
        SCOPE;
        struct named_tensors *values = adapter_values(judge_seed(j), which);
        for (int i = 0; i < values->n; i++) {
            struct tensor *x = tensor_scale(tensor_detach(values->at[i].tensor), *factor);
            if (!expect_close(j, seen(j), scope_printf("loaded %d.%s", which, values->at[i].name),
                              x, 1e-6, 1e-6, "a loaded adapter"))
                return false;
        }
    }
    return true;
}

static bool replaces_objects(struct judge *j, const void *with)
{
    (void)with;
    return observed_int(seen(j), "loaded 0 same objects", 1) == 0 &&
           observed_int(seen(j), "loaded 1 same objects", 1) == 0;
}

/* Whatever is loaded no longer trains. */
static bool freezes_loaded(struct judge *j, const void *with)
{
    (void)with;
    struct named_tensors *adapters = adapters_of(adapter_model(judge_seed(j), 0));
    for (int i = 0; i < adapters->n; i++) {
        const char *key = scope_printf("loaded 0.%s", adapters->at[i].name);
        if (!observed_tensor(seen(j), key) || observed_requires_grad(seen(j), key))
            return false;
    }
    return true;
}

/* bad_files_where - those that something is true of, a bit for each */
static unsigned bad_files_where(struct judge *j, bool (*holds)(struct judge *j, int how))
{
    unsigned set = 0;
    for (int how = 0; how < BAD_FILES; how++) {
        SCOPE;
        set |= holds(j, how) ? 1U << how : 0;
    }
    return set;
}

static bool was_taken(struct judge *j, int how)
{
    const char *type = "?", *message;
    return observed_error(seen(j), scope_printf("bad %d error", how), &type, &message) && !*type;
}

static bool was_changed(struct judge *j, int how)
{
    struct named_tensors *own = adapters_of(adapter_model(judge_seed(j), 0));
    for (int i = 0; i < own->n; i++)
        if (!expect_equal(j, seen(j), scope_printf("bad %d.%s", how, own->at[i].name),
                          own->at[i].tensor, "an adapter"))
            return true;
    return false;
}

#define BIT(how) (1U << (how))
enum {
    WITHOUT = BIT(MISSING_LAST) | BIT(MISSING_FIRST) | BIT(EMPTY_DICTIONARY),
    WITHOUT_OR_RENAMED = WITHOUT | BIT(RENAMED),
    ADDITIONAL = BIT(EXTRA) | BIT(BASE_TOO),
    SAME_COUNT = BIT(ONE_ROW) | BIT(FLAT) | BIT(TRANSPOSED),
    UNREADABLE = BIT(HALF) | BIT(TAIL) | BIT(CORRUPT) | BIT(TEXT) | BIT(NOTHING) | BIT(NOT_THERE),
};

/* takes - exactly these were loaded without an error. with: the set */
static bool takes(struct judge *j, const void *with)
{
    return bad_files_where(j, was_taken) == *(const unsigned *)with;
}

/* An error is left, but success returned. */
static bool hides_error(struct judge *j, int how)
{
    const char *type = "", *message;
    return observed_error(seen(j), scope_printf("bad %d error", how), &type, &message) && *type &&
           observed_int(seen(j), scope_printf("bad %d said so", how), 1) == 0;
}

static bool hides_errors(struct judge *j, const void *with)
{
    (void)with;
    return bad_files_where(j, hides_error) != 0 && bad_files_where(j, was_taken) == 0;
}

static bool copies_too_early(struct judge *j, const void *with)
{
    (void)with;
    const char *last = scope_printf("bad %d said so", BAD_FILES - 1);
    return observed_int(seen(j), last, 0) != 0 && bad_files_where(j, was_taken) == 0 &&
           bad_files_where(j, was_changed) != 0;
}

#define TAKES(set) takes, &(const unsigned){set}, false

const struct hypothesis adapter_causes[] = {
    {"the base's weights are saved as well: only lora_A and lora_B belong in the file", saves_base,
     NULL, false},
    {"the last adapter, a lora_B, is left out of the file", leaves_out_last, NULL, false},
    {"only lora_A is saved: without lora_B an adapter is worth nothing", saves_only_a, NULL, false},
    {"nothing is at the path that was given: the file is written to another path, or not at all",
     writes_elsewhere, NULL, false},
    {"a model without adapters is saved as an empty file: it must be refused", saves_nothing_gladly,
     NULL, false},
    {"what is loaded is 2 times what the file holds: it is added twice, or to itself", loads_times,
     &(const double){2}, false},
    {"load_adapter makes new parameters, other objects than the model had: an optimizer would go "
     "on with the old ones; copy the values into those that are there",
     replaces_objects, NULL, false},
    {"the loaded adapters no longer require grad: loading must change values alone", freezes_loaded,
     NULL, false},
    {"an error is raised, but -1 is not returned with it: return what raise_error gives",
     hides_errors, NULL, false},
    {"a file without some of the model's adapters is loaded: every name of the model must be in it",
     TAKES(WITHOUT)},
    {"a file without some of the model's adapters is loaded: every name of the model must be in it",
     TAKES(WITHOUT_OR_RENAMED)},
    {"a file with additional names is loaded: it must hold the model's adapters exactly",
     TAKES(ADDITIONAL)},
    {"only the number of elements is compared: the shape must be the same", TAKES(SAME_COUNT)},
    {"a file that cannot be read passes for a good one: tensors_load gives NULL, with the error",
     TAKES(UNREADABLE)},
    {"entries are copied before all were checked: a bad one that comes later leaves the model half "
     "changed",
     copies_too_early, NULL, false},
    {NULL, NULL, NULL, false},
};
