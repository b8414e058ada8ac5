/* 3.2: apply_lora adapts exactly the named Linears, freezes all else, and changes nothing when it
 * refuses. In FLOAT64, so that an adapter of the wrong dtype shows. */
#include <math.h>
#include <string.h>

#include "assignment/finetune.h"
#include "criteria/lora_cases.h"

/* ---- observing ---- */

static struct module *call_student(struct subject *s, const struct lora_case *c,
                                   struct module *model)
{
    return student(s, apply_lora)(model, c->names, lora_case_names(c), c->rank, c->alpha);
}

/* How many of these tensors are the very objects that the model has now. */
static int parameters_kept(const struct named_tensors *before, const struct module *model)
{
    int kept = 0;
    struct named_tensors *now = module_named_parameters(model);
    for (int i = 0; i < before->n; i++)
        for (int k = 0; k < now->n; k++)
            kept += now->at[k].tensor == before->at[i].tensor;
    return kept;
}

static bool observe_good(struct subject *s, int index)
{
    SCOPE;
    const struct lora_case *c = &lora_good_cases[index];
    struct module *model = module_to(lora_case_model(c->kind, subject_seed(s)), subject_device(s));
    struct named_tensors *before = module_named_parameters(model);
    if (subject_went_wrong(s, "making a model"))
        return false;
    struct module *result = call_student(s, c, model);
    if (call_failed(s, !result, "%s", lora_case_name(c)))
        return false;
    observe_int(s, result == model, "%d same model", index);
    observe_int(s, parameters_kept(before, model), "%d kept", index);
    observe_text(s, lora_structure(model), "%d structure", index);
    observe_parameters(s, model, "%d parameter", index);
    draw_adapters(model, 1, subject_seed(s), "good case");
    struct tensor *inputs = tensor_to(lora_case_inputs(subject_seed(s), index), subject_device(s));
    observe_tensor(s, module_forward(model, inputs), "%d output", index);
    return !subject_went_wrong(s, "the adapted model's forward, after %s,", lora_case_name(c));
}

static bool same_modules(const struct named_modules *a, const struct named_modules *b)
{
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = a->at[i].module == b->at[i].module && strcmp(a->at[i].name, b->at[i].name) == 0;
    return same;
}

static void observe_bad(struct subject *s, int index)
{
    SCOPE;
    const struct lora_case *c = &lora_bad_cases[index];
    struct module *model = module_to(lora_case_model(c->kind, subject_seed(s)), subject_device(s));
    struct named_modules *before = module_named_modules(model);
    struct named_tensors *parameters = module_named_parameters(model);
    if (subject_went_wrong(s, "making a model"))
        return;
    struct module *result = call_student(s, c, model);
    observe_error(s, "bad %d error", index);
    observe_int(s, result == NULL, "bad %d returned NULL", index);
    observe_text(s, lora_structure(model), "bad %d structure", index);
    observe_int(s, same_modules(before, module_named_modules(model)), "bad %d same modules", index);
    observe_int(s, parameters_kept(parameters, model), "bad %d kept", index);
    observe_parameters(s, model, "bad %d parameter", index);
}

static void observe(struct subject *s)
{
    SCOPE;
    for (int i = 0; i < LORA_GOOD_CASES; i++)
        if (!observe_good(s, i))
            return;
    for (int i = 0; i < LORA_BAD_CASES; i++)
        observe_bad(s, i);
}

/* ---- judging ---- */

static struct module *adapted_model(struct judge *j, const struct lora_case *c)
{
    struct module *model = lora_case_model(c->kind, judge_seed(j));
    (void)module_set_requires_grad(model, false);
    for (int i = 0; i < lora_case_names(c); i++) {
        struct module *base = module_get(model, c->names[i]);
        (void)module_replace(model, c->names[i], lora_linear_new(base, c->rank, c->alpha));
    }
    return model;
}

static bool judge_structure(struct judge *j, const struct observations *o, const char *key,
                            struct module *expected, const struct lora_case *c)
{
    const char *got = observed_text(o, key), *right = lora_structure(expected);
    return (got && strcmp(got, right) == 0) ||
           judge_fail(j, "after %s, the model's modules are %s; expected %s", lora_case_name(c),
                      got ? got : "not observed", right);
}

/* A new adapter: B zero, A small normal values. */
static bool judge_initial(struct judge *j, const struct observations *o, const char *key,
                          const struct named_tensor *expected, const struct lora_case *c)
{
    const struct tensor *got = observed_tensor(o, key);
    const char *name = expected->name;
    if (got && tensor_same_shape(got, expected->tensor) && name[strlen(name) - 1] == 'A') {
        int64_t nonzero = 0;
        double *values = scope_alloc((size_t)tensor_numel(got) * sizeof *values);
        (void)tensor_read(got, values);
        for (int64_t i = 0; i < tensor_numel(got); i++)
            nonzero += fabs(values[i]) > 0 && fabs(values[i]) < 0.2;
        if (nonzero < tensor_numel(got))
            return judge_fail(j, "after %s, %s does not hold normal values of std 0.02",
                              lora_case_name(c), name);
        return expect_close(j, o, key, expected->tensor, 0, 1, "%s after %s", name,
                            lora_case_name(c));
    }
    return expect_equal(j, o, key, expected->tensor, "%s after %s", name, lora_case_name(c));
}

static bool judge_flag(struct judge *j, const struct observations *o, const char *key,
                       const struct named_tensor *expected, const struct lora_case *c)
{
    bool wanted = tensor_requires_grad(expected->tensor);
    return observed_requires_grad(o, key) == wanted ||
           judge_fail(j, "after %s, %s %s", lora_case_name(c), expected->name,
                      wanted ? "does not require grad, but should"
                             : "requires grad, but should not");
}

static bool judge_parameters(struct judge *j, const struct observations *o, const char *prefix,
                             const struct module *model, const struct lora_case *c, bool initial)
{
    struct named_tensors *expected = module_named_parameters(model);
    for (int i = 0; i < expected->n; i++) {
        const struct named_tensor *p = &expected->at[i];
        const char *key = scope_printf("%s.%s", prefix, p->name);
        bool good =
            initial && is_adapter(p->name)
                ? judge_initial(j, o, key, p, c)
                : expect_equal(j, o, key, p->tensor, "%s after %s", p->name, lora_case_name(c));
        if (!good || !judge_flag(j, o, key, p, c))
            return false;
        if (!device_equal(observed_device(o, key), judge_device(j, 0)))
            return judge_fail(j, "after %s, %s is on %s, expected %s", lora_case_name(c), p->name,
                              device_name(observed_device(o, key)),
                              device_name(judge_device(j, 0)));
    }
    return true;
}

static bool judge_good(struct judge *j, const struct observations *o, int index)
{
    SCOPE;
    const struct lora_case *c = &lora_good_cases[index];
    struct module *model = adapted_model(j, c);
    int existing = module_named_parameters(model)->n - 2 * lora_case_names(c);
    if (!judge_structure(j, o, scope_printf("%d structure", index), model, c) ||
        !judge_parameters(j, o, scope_printf("%d parameter", index), model, c, true) ||
        !expect_true(j, o, scope_printf("%d same model", index),
                     "%s does not return the model itself", lora_case_name(c)) ||
        !expect_int(j, o, scope_printf("%d kept", index), existing,
                    "the number of the model's own parameters that it still has after %s",
                    lora_case_name(c)))
        return false;
    draw_adapters(model, 1, judge_seed(j), "good case");
    struct tensor *output = module_forward(model, lora_case_inputs(judge_seed(j), index));
    return expect_close(j, o, scope_printf("%d output", index), tensor_detach(output), 1e-9, 1e-9,
                        "the adapted model's output, with adapters set by the grader, after %s,",
                        lora_case_name(c));
}

static bool judge_bad(struct judge *j, const struct observations *o, int index)
{
    SCOPE;
    const struct lora_case *c = &lora_bad_cases[index];
    struct module *model = lora_case_model(c->kind, judge_seed(j));
    return expect_raised(j, o, scope_printf("bad %d error", index), "ValueError", NULL, "%s%s",
                         lora_case_name(c),
                         c->kind == LORA_ADAPTED_MODEL ? ", where \"0\" is adapted already,"
                                                       : "") &&
           expect_true(j, o, scope_printf("bad %d returned NULL", index),
                       "%s raises an error, but does not return NULL", lora_case_name(c)) &&
           judge_structure(j, o, scope_printf("bad %d structure", index), model, c) &&
           expect_true(j, o, scope_printf("bad %d same modules", index),
                       "after the refused %s, the model has other module objects than before",
                       lora_case_name(c)) &&
           expect_int(j, o, scope_printf("bad %d kept", index), module_named_parameters(model)->n,
                      "the number of its parameters that a model keeps in the refused %s",
                      lora_case_name(c)) &&
           judge_parameters(j, o, scope_printf("bad %d parameter", index), model, c, false);
}

static bool judge(struct judge *j)
{
    const struct observations *o = judge_observations(j, 1, 0);
    for (int i = 0; i < LORA_GOOD_CASES; i++)
        if (!judge_good(j, o, i))
            return false;
    for (int i = 0; i < LORA_BAD_CASES; i++)
        if (!judge_bad(j, o, i))
            return false;
    return true;
}

CRITERION(lora, .section = "finetune", .problem = "3.2", .order = 11, .points = 6,
          .title = "LoRA targeting, freezing, device and dtype", .file = "finetune.c",
          .calls = {"apply_lora"}, .observe = observe, .judge = judge, .causes = lora_causes);
