/* 3.4: save_adapter's files, which the judge opens itself, and what load_adapter makes of good and
 * bad ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assignment/finetune.h"
#include "criteria/adapter_cases.h"

/* ---- making the files, in the subject ---- */

static struct tensor *reshaped(int how, struct tensor *x)
{
    switch (how) {
    case ONE_ROW:
        return tensor_view(x, SHAPE(1, -1));
    case FLAT:
        return tensor_view(x, SHAPE(-1));
    case TRANSPOSED:
        return tensor_contiguous(tensor_transpose(x, 0, 1));
    default:
        return tensor_full(SHAPE(tensor_size(x, 0) + 1, tensor_size(x, 1)), 1, FLOAT32, CPU);
    }
}

/* The dictionary of a bad file; entries in the model's order, so that the last to be met is bad. */
static struct named_tensors *bad_dictionary(struct named_tensors *good, int how)
{
    struct named_tensors *bad = named_tensors_new();
    int last = how == EMPTY_DICTIONARY ? -1 : good->n - 1;
    for (int i = 0; i <= last; i++) {
        const char *name = good->at[i].name;
        struct tensor *x = tensor_detach(good->at[i].tensor);
        if ((how == MISSING_LAST && i == last) || (how == MISSING_FIRST && i == 0))
            continue;
        if (how == RENAMED && i == last)
            name = "2.lora_C";
        if (((how == ONE_ROW || how == FLAT) && i == last) ||
            ((how == TRANSPOSED || how == TALLER) && i == 0))
            x = reshaped(how, x);
        (void)named_tensors_add(bad, name, x);
    }
    if (how == EXTRA || how == BASE_TOO)
        (void)named_tensors_add(bad, how == EXTRA ? "1.lora_A" : "0.base.weight",
                                tensor_full(SHAPE(8, 4), 1, FLOAT32, CPU));
    return bad;
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, n, file) != n)
        (void)raise_error(OSError, "cannot write %s", path);
    if (file)
        fclose(file);
}

static char *read_file(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    char *bytes = scope_alloc(1 << 16);
    *n = file ? fread(bytes, 1, 1 << 16, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

/* Bytes of a file: the good one cut or damaged, or something else. */
static void spoil_file(const char *good_path, const char *path, int how)
{
    size_t n;
    char *bytes = read_file(good_path, &n);
    if (how == TEXT)
        n = (size_t)snprintf(bytes, 64, "lora_A = 1, lora_B = 2\n");
    else if (how == NOTHING)
        n = 0;
    else if (how == HALF)
        n /= 2;
    else if (how == TAIL)
        n -= n < 30 ? n : 30;
    for (size_t i = n / 8; how == CORRUPT && i < n; i += 7)
        bytes[i] ^= 0x5a;
    write_file(path, bytes, n);
}

static void make_bad_file(struct subject *s, int how)
{
    const char *path = subject_file(s, adapter_bad_files[how].name);
    struct named_tensors *good = adapter_values(subject_seed(s), 0);
    if (how < HALF)
        (void)tensors_save(bad_dictionary(good, how), path);
    else if (how != NOT_THERE)
        spoil_file(subject_file(s, "good 0.pt"), path, how);
}

/* In reverse: a file may hold its keys in any order. */
static const char *make_good_file(struct subject *s, int which)
{
    struct named_tensors *values = adapter_values(subject_seed(s), which);
    struct named_tensors *reversed = named_tensors_new();
    for (int i = values->n - 1; i >= 0; i--)
        (void)named_tensors_add(reversed, values->at[i].name, values->at[i].tensor);
    const char *path = subject_file(s, scope_printf("good %d.pt", which));
    (void)tensors_save(reversed, path);
    return path;
}

/* ---- observing ---- */

static bool observe_save(struct subject *s, int which)
{
    SCOPE;
    struct module *model = module_to(adapter_model(subject_seed(s), which), subject_device(s));
    if (subject_went_wrong(s, "making a model"))
        return false;
    int result = student(s, save_adapter)(model, subject_file(s, adapter_saved_names[which]));
    if (call_failed(s, result < 0, "save_adapter of %s", adapter_model_names[which]))
        return false;
    observe_parameters(s, model, "saved %d", which);
    return true;
}

static void observe_save_without_adapters(struct subject *s)
{
    SCOPE;
    struct module *model = module_to(small_model(), subject_device(s));
    if (subject_went_wrong(s, "making a model"))
        return;
    int result = student(s, save_adapter)(model, subject_file(s, "none.pt"));
    observe_error(s, "none: error");
    observe_int(s, result < 0, "none: said so");
}

static void observe_save_failing(struct subject *s)
{
    SCOPE;
    struct module *model = module_to(adapter_model(subject_seed(s), 0), subject_device(s));
    write_file(subject_file(s, "file"), "", 0);
    if (subject_went_wrong(s, "making a model"))
        return;
    int result = student(s, save_adapter)(model, subject_file(s, "file/saved.pt"));
    observe_error(s, "failing: error");
    observe_int(s, result < 0, "failing: said so");
}

/* Grad mode, parameters, and whether they are still the objects they were. */
static void observe_after_load(struct subject *s, struct module *model,
                               const struct named_tensors *before, const char *key)
{
    struct named_tensors *now = module_named_parameters(model);
    bool same = now->n == before->n;
    for (int i = 0; same && i < now->n; i++)
        same = now->at[i].tensor == before->at[i].tensor;
    observe_int(s, grad_set_enabled(true), "%s grad mode", key);
    observe_int(s, same, "%s same objects", key);
    observe_parameters(s, model, "%s", key);
}

static bool observe_load(struct subject *s, int which)
{
    SCOPE;
    const char *path = make_good_file(s, which);
    struct module *model = module_to(adapter_model(subject_seed(s), which), subject_device(s));
    struct named_tensors *before = module_named_parameters(model);
    if (subject_went_wrong(s, "writing an adapter file"))
        return false;
    int result = student(s, load_adapter)(model, path);
    if (call_failed(s, result < 0, "load_adapter of a good file for %s",
                    adapter_model_names[which]))
        return false;
    observe_after_load(s, model, before, scope_printf("loaded %d", which));
    return true;
}

static bool observe_bad_load(struct subject *s, int how)
{
    SCOPE;
    make_bad_file(s, how);
    struct module *model = module_to(adapter_model(subject_seed(s), 0), subject_device(s));
    struct named_tensors *before = module_named_parameters(model);
    if (subject_went_wrong(s, "writing a file %s", adapter_bad_files[how].what))
        return false;
    int result = student(s, load_adapter)(model, subject_file(s, adapter_bad_files[how].name));
    observe_error(s, "bad %d error", how);
    observe_int(s, result < 0, "bad %d said so", how);
    observe_after_load(s, model, before, scope_printf("bad %d", how));
    return true;
}

static void observe(struct subject *s)
{
    SCOPE;
    for (int which = 0; which < MODELS; which++)
        if (!observe_save(s, which))
            return;
    observe_save_without_adapters(s);
    observe_save_failing(s);
    for (int which = 0; which < MODELS; which++)
        if (!observe_load(s, which))
            return;
    for (int how = 0; how < BAD_FILES; how++)
        if (!observe_bad_load(s, how))
            return;
}

/* ---- judging ---- */

static const char *names_of(const struct named_tensors *tensors)
{
    const char *text = "";
    for (int i = 0; i < tensors->n && i < 12; i++)
        text = scope_printf("%s%s%s", text, i ? ", " : "", tensors->at[i].name);
    return tensors->n ? text : "nothing";
}

static bool judge_saved(struct judge *j, int which)
{
    SCOPE;
    const char *file = adapter_saved_names[which], *path = judge_file(j, 1, 0, file);
    if (!path)
        return judge_fail(j, "save_adapter of %s wrote no file at the path it was given (%s)",
                          adapter_model_names[which], file);
    struct named_tensors *expected = adapters_of(adapter_model(judge_seed(j), which));
    struct named_tensors *saved = tensors_load(path);
    if (!saved) {
        judge_fail(j, "the file that save_adapter wrote (%s) cannot be read: %s", file,
                   error_message(error_pending()));
        error_clear();
        return false;
    }
    bool complete = saved->n == expected->n;
    for (int i = 0; complete && i < expected->n; i++)
        complete = named_tensors_find(saved, expected->at[i].name) != NULL;
    if (!complete)
        return judge_fail(j, "the file that save_adapter wrote (%s) holds %s; expected exactly %s",
                          file, names_of(saved), names_of(expected));
    for (int i = 0; i < expected->n; i++) {
        const struct named_tensor *p = &expected->at[i];
        if (!expect_tensor(j, named_tensors_find(saved, p->name), p->tensor, 0, 0,
                           "%s in the file that save_adapter wrote (%s)", p->name, file))
            return false;
    }
    return true;
}

static bool judge_save_without_adapters(struct judge *j, const struct observations *o)
{
    if (!expect_raised(j, o, "none: error", "ValueError", NULL,
                       "save_adapter of a model without adapters") ||
        !expect_true(j, o, "none: said so",
                     "save_adapter of a model without adapters raises an error, but does not "
                     "return -1"))
        return false;
    return !judge_file(j, 1, 0, "none.pt") ||
           judge_fail(j, "save_adapter of a model without adapters leaves a file behind");
}

static bool judge_save_failing(struct judge *j, const struct observations *o)
{
    return expect_raised(j, o, "failing: error", NULL, NULL,
                         "save_adapter to a path that cannot be written") &&
           expect_true(j, o, "failing: said so",
                       "save_adapter to a path that cannot be written raises an error, but does "
                       "not return -1");
}

/* The model has these adapters and, for the rest, what it had. */
static bool judge_model(struct judge *j, const struct observations *o, const char *key, int which,
                        const struct named_tensors *adapters, const char *when)
{
    struct named_tensors *expected = module_named_parameters(adapter_model(judge_seed(j), which));
    for (int i = 0; i < expected->n; i++) {
        const char *name = expected->at[i].name;
        struct tensor *adapter = named_tensors_find(adapters, name);
        if (!expect_equal(j, o, scope_printf("%s.%s", key, name),
                          adapter ? adapter : expected->at[i].tensor, "%s after %s", name, when))
            return false;
        bool trains = tensor_requires_grad(expected->at[i].tensor);
        if (observed_requires_grad(o, scope_printf("%s.%s", key, name)) != trains)
            return judge_fail(j, "after %s, %s %s", when, name,
                              trains ? "no longer requires grad" : "requires grad");
    }
    return expect_true(j, o, scope_printf("%s grad mode", key),
                       "after %s, grad mode is off: NO_GRAD switches it on again by itself", when);
}

static bool judge_load(struct judge *j, const struct observations *o, int which)
{
    SCOPE;
    const char *key = scope_printf("loaded %d", which);
    const char *when =
        scope_printf("load_adapter of a good file for %s", adapter_model_names[which]);
    return judge_model(j, o, key, which, adapter_values(judge_seed(j), which), when) &&
           expect_true(j, o, scope_printf("%s same objects", key),
                       "after %s, the parameters are other objects: copy the values into those "
                       "that are there",
                       when);
}

static bool judge_bad_load(struct judge *j, const struct observations *o, int how)
{
    SCOPE;
    const char *key = scope_printf("bad %d", how);
    const char *when = scope_printf("load_adapter of a file %s", adapter_bad_files[how].what);
    return expect_raised(j, o, scope_printf("%s error", key), adapter_bad_files[how].error, NULL,
                         "%s", when) &&
           expect_true(j, o, scope_printf("%s said so", key),
                       "%s raises an error, but does not return -1", when) &&
           judge_model(j, o, key, 0, adapters_of(adapter_model(judge_seed(j), 0)), when) &&
           expect_true(j, o, scope_printf("%s same objects", key),
                       "after %s, the parameters are other objects than before", when);
}

static bool judge(struct judge *j)
{
    SCOPE;
    const struct observations *o = judge_observations(j, 1, 0);
    for (int which = 0; which < MODELS; which++)
        if (!judge_saved(j, which))
            return false;
    if (!judge_save_without_adapters(j, o) || !judge_save_failing(j, o))
        return false;
    for (int which = 0; which < MODELS; which++)
        if (!judge_load(j, o, which))
            return false;
    for (int how = 0; how < BAD_FILES; how++)
        if (!judge_bad_load(j, o, how))
            return false;
    return true;
}

CRITERION(adapter, .section = "finetune", .problem = "3.4", .order = 13, .points = 6,
          .title = "adapter save/load, rejection of incompatible files", .file = "finetune.c",
          .calls = {"save_adapter", "load_adapter"}, .observe = observe, .judge = judge,
          .causes = adapter_causes);
