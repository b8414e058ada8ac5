/* 3.2: apply_lora adapts exactly the named Linears, freezes all else, and changes nothing when it
 * refuses. In FLOAT64, so that an adapter of the wrong dtype shows. */
#include <math.h>
#include <string.h>

#include "assignment/finetune.h"
#include "criteria/lora_fixture.h"

enum model_kind { PUBLIC_MODEL, DRAWN_MODEL, NESTED_MODEL, ADAPTED_MODEL };
enum { NAMES_MAX = 4 };

struct lora_case {
    enum model_kind kind;
    const char *names[NAMES_MAX]; /* up to the first NULL */
    int rank;
    double alpha;
};

static const struct lora_case good_cases[] = {
    {PUBLIC_MODEL, {"0", "2"}, 2, 4},
    {DRAWN_MODEL, {"2"}, 3, 5},
    {DRAWN_MODEL, {"2", "0"}, 1, 7},
    {NESTED_MODEL, {"encoder.proj"}, 3, 8},
    {NESTED_MODEL, {"head", "encoder.proj"}, 2, 1},
};
enum { GOOD_CASES = sizeof good_cases / sizeof *good_cases };

/* Where one name of several is bad, it comes last. */
static const struct lora_case bad_cases[] = {
    {PUBLIC_MODEL, {NULL}, 2, 4},
    {PUBLIC_MODEL, {"0", "2", "0"}, 2, 4},
    {PUBLIC_MODEL, {"0", "0"}, 2, 4},
    {PUBLIC_MODEL, {"0", "3"}, 2, 4},
    {PUBLIC_MODEL, {"0", "2", "1"}, 2, 4},
    {PUBLIC_MODEL, {"0", ""}, 2, 4},
    {PUBLIC_MODEL, {"0", "2.weight"}, 2, 4},
    {PUBLIC_MODEL, {"0"}, 0, 4},
    {PUBLIC_MODEL, {"0", "2"}, -1, 4},
    {NESTED_MODEL, {"encoder.proj", "encoder"}, 2, 4},
    {NESTED_MODEL, {"encoder.proj", "proj"}, 2, 4},
    {NESTED_MODEL, {"head", "encoder.act"}, 2, 4},
    {ADAPTED_MODEL, {"2", "0"}, 2, 4},
};
enum { BAD_CASES = sizeof bad_cases / sizeof *bad_cases };

static int name_count(const struct lora_case *c)
{
    int count = 0;
    while (count < NAMES_MAX && c->names[count])
        count++;
    return count;
}

static const char *call_name(const struct lora_case *c)
{
    const char *names = "";
    for (int i = 0; i < name_count(c); i++)
        names = scope_printf("%s%s\"%s\"", names, i ? ", " : "", c->names[i]);
    return scope_printf("apply_lora of {%s}, rank %d, alpha %g", names, c->rank, c->alpha);
}

/* The model before the call. One parameter is frozen already: a refusal must not thaw it. */
static struct module *case_model(enum model_kind kind, uint64_t seed)
{
    if (kind == NESTED_MODEL)
        return nested_model(seed);
    enum values values = kind == DRAWN_MODEL ? DRAWN_VALUES : PUBLIC_VALUES;
    struct module *model = module_cast(fixture_model(values, seed, "lora"), FLOAT64);
    (void)tensor_set_requires_grad(module_parameter(module_get(model, "2"), "bias"), false);
    if (kind == ADAPTED_MODEL) {
        (void)module_replace(model, "0", lora_linear_new(module_get(model, "0"), 2, 4));
        draw_adapters(model, 1, seed, "adapted model");
    }
    return model;
}

static struct tensor *case_inputs(uint64_t seed, int index)
{
    struct rng rng;
    draws_seed(&rng, seed, scope_printf("lora inputs %d", index));
    return tensor_cast(drawn_tensor(&rng, SHAPE(5, 4)), FLOAT64);
}

static const char *class_name(const struct module *module)
{
    static const struct module_class *const known[] = {&Linear, &Tanh, &Sequential, &LoRALinear};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (module_class_of(module) == known[i])
            return known[i]->name;
    return "another class";
}

/* structure_name - every module of the model with its class: "0 LoRALinear, 0.base Linear, 1 Tanh"
 */
static const char *structure_name(struct module *model)
{
    const char *text = "";
    struct named_modules *modules = module_named_modules(model);
    for (int i = 1; i < modules->n; i++)
        text = scope_printf("%s%s%s %s", text, i > 1 ? ", " : "", modules->at[i].name,
                            class_name(modules->at[i].module));
    return text;
}

/* ---- observing ---- */

static struct module *call_student(struct subject *s, const struct lora_case *c,
                                   struct module *model)
{
    return student(s, apply_lora)(model, c->names, name_count(c), c->rank, c->alpha);
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
    const struct lora_case *c = &good_cases[index];
    struct module *model = module_to(case_model(c->kind, subject_seed(s)), subject_device(s));
    struct named_tensors *before = module_named_parameters(model);
    struct module *result = call_student(s, c, model);
    if (call_failed(s, !result, "%s", call_name(c)))
        return false;
    observe_int(s, result == model, "%d same model", index);
    observe_int(s, parameters_kept(before, model), "%d kept", index);
    observe_text(s, structure_name(model), "%d structure", index);
    observe_parameters(s, model, "%d parameter", index);
    draw_adapters(model, 1, subject_seed(s), "good case");
    struct tensor *inputs = tensor_to(case_inputs(subject_seed(s), index), subject_device(s));
    observe_tensor(s, module_forward(model, inputs), "%d output", index);
    return !subject_went_wrong(s, "the adapted model's forward, after %s,", call_name(c));
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
    const struct lora_case *c = &bad_cases[index];
    struct module *model = module_to(case_model(c->kind, subject_seed(s)), subject_device(s));
    struct named_modules *before = module_named_modules(model);
    struct named_tensors *parameters = module_named_parameters(model);
    struct module *result = call_student(s, c, model);
    observe_error(s, "bad %d error", index);
    observe_int(s, result == NULL, "bad %d returned NULL", index);
    observe_text(s, structure_name(model), "bad %d structure", index);
    observe_int(s, same_modules(before, module_named_modules(model)), "bad %d same modules", index);
    observe_int(s, parameters_kept(parameters, model), "bad %d kept", index);
    observe_parameters(s, model, "bad %d parameter", index);
}

static void observe(struct subject *s)
{
    SCOPE;
    for (int i = 0; i < GOOD_CASES; i++)
        if (!observe_good(s, i))
            return;
    for (int i = 0; i < BAD_CASES; i++)
        observe_bad(s, i);
}

/* ---- judging ---- */

static struct module *adapted_model(struct judge *j, const struct lora_case *c)
{
    struct module *model = case_model(c->kind, judge_seed(j));
    (void)module_set_requires_grad(model, false);
    for (int i = 0; i < name_count(c); i++) {
        struct module *base = module_get(model, c->names[i]);
        (void)module_replace(model, c->names[i], lora_linear_new(base, c->rank, c->alpha));
    }
    return model;
}

static bool judge_structure(struct judge *j, const struct observations *o, const char *key,
                            struct module *expected, const struct lora_case *c)
{
    const char *got = observed_text(o, key), *right = structure_name(expected);
    return (got && strcmp(got, right) == 0) ||
           judge_fail(j, "after %s, the model's modules are %s; expected %s", call_name(c),
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
                              call_name(c), name);
        return expect_close(j, o, key, expected->tensor, 0, 1, "%s after %s", name, call_name(c));
    }
    return expect_equal(j, o, key, expected->tensor, "%s after %s", name, call_name(c));
}

static bool judge_flag(struct judge *j, const struct observations *o, const char *key,
                       const struct named_tensor *expected, const struct lora_case *c)
{
    bool wanted = tensor_requires_grad(expected->tensor);
    return observed_requires_grad(o, key) == wanted ||
           judge_fail(j, "after %s, %s %s", call_name(c), expected->name,
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
        bool good = initial && is_adapter(p->name)
                        ? judge_initial(j, o, key, p, c)
                        : expect_equal(j, o, key, p->tensor, "%s after %s", p->name, call_name(c));
        if (!good || !judge_flag(j, o, key, p, c))
            return false;
        if (!device_equal(observed_device(o, key), judge_device(j, 0)))
            return judge_fail(j, "after %s, %s is on %s, expected %s", call_name(c), p->name,
                              device_name(observed_device(o, key)),
                              device_name(judge_device(j, 0)));
    }
    return true;
}

static bool judge_good(struct judge *j, const struct observations *o, int index)
{
    SCOPE;
    const struct lora_case *c = &good_cases[index];
    struct module *model = adapted_model(j, c);
    int existing = module_named_parameters(model)->n - 2 * name_count(c);
    if (!judge_structure(j, o, scope_printf("%d structure", index), model, c) ||
        !judge_parameters(j, o, scope_printf("%d parameter", index), model, c, true) ||
        !expect_true(j, o, scope_printf("%d same model", index),
                     "%s does not return the model itself", call_name(c)) ||
        !expect_int(j, o, scope_printf("%d kept", index), existing,
                    "the number of the model's own parameters that it still has after %s",
                    call_name(c)))
        return false;
    draw_adapters(model, 1, judge_seed(j), "good case");
    struct tensor *output = module_forward(model, case_inputs(judge_seed(j), index));
    return expect_close(j, o, scope_printf("%d output", index), tensor_detach(output), 1e-9, 1e-9,
                        "the adapted model's output, with adapters set by the grader, after %s,",
                        call_name(c));
}

static bool judge_bad(struct judge *j, const struct observations *o, int index)
{
    SCOPE;
    const struct lora_case *c = &bad_cases[index];
    struct module *model = case_model(c->kind, judge_seed(j));
    return expect_raised(j, o, scope_printf("bad %d error", index), "ValueError", NULL, "%s%s",
                         call_name(c),
                         c->kind == ADAPTED_MODEL ? ", where \"0\" is adapted already," : "") &&
           expect_true(j, o, scope_printf("bad %d returned NULL", index),
                       "%s raises an error, but does not return NULL", call_name(c)) &&
           judge_structure(j, o, scope_printf("bad %d structure", index), model, c) &&
           expect_true(j, o, scope_printf("bad %d same modules", index),
                       "after the refused %s, the model has other module objects than before",
                       call_name(c)) &&
           expect_int(j, o, scope_printf("bad %d kept", index), module_named_parameters(model)->n,
                      "the number of its parameters that a model keeps in the refused %s",
                      call_name(c)) &&
           judge_parameters(j, o, scope_printf("bad %d parameter", index), model, c, false);
}

static bool judge(struct judge *j)
{
    const struct observations *o = judge_observations(j, 1, 0);
    for (int i = 0; i < GOOD_CASES; i++)
        if (!judge_good(j, o, i))
            return false;
    for (int i = 0; i < BAD_CASES; i++)
        if (!judge_bad(j, o, i))
            return false;
    return true;
}

CRITERION(lora, .section = "finetune", .problem = "3.2", .order = 11, .points = 6,
          .title = "LoRA targeting, freezing, device and dtype", .file = "finetune.c",
          .observe = observe, .judge = judge);
