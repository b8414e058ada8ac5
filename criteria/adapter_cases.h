#ifndef CRITERIA_ADAPTER_CASES_H
#define CRITERIA_ADAPTER_CASES_H
/* adapter_cases.h - the models and files that the criterion `adapter` observes, and under which
 * keys; adapter_causes.c makes guesses about the same. */
#include "criteria/lora_fixture.h"

/* adapter_model - with adapters. Saved to a file of this name; loaded: "loaded I.NAME"
 * adapters_of - what its file must hold. adapter_values - what the file to load holds */
enum { MODELS = 2 };
extern const char *const adapter_model_names[MODELS], *const adapter_saved_names[MODELS];
struct module *adapter_model(uint64_t seed, int which);
struct named_tensors *adapters_of(const struct module *model);
struct named_tensors *adapter_values(uint64_t seed, int which);

/* Files that must not be loaded: "bad I error", "bad I said so", "bad I same objects", "bad I.NAME"
 */
enum {
    MISSING_LAST,
    MISSING_FIRST,
    EXTRA,
    BASE_TOO,
    RENAMED,
    ONE_ROW,
    FLAT,
    TRANSPOSED,
    TALLER,
    EMPTY_DICTIONARY,
    HALF,
    TAIL,
    CORRUPT,
    TEXT,
    NOTHING,
    NOT_THERE,
    BAD_FILES
};
struct bad_file {
    const char *name, *what;
    const char *error; /* NULL: any */
};
extern const struct bad_file adapter_bad_files[BAD_FILES];

extern const struct hypothesis adapter_causes[];
#endif
