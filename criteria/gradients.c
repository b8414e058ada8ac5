/* 1.2: average_gradients gives every rank the gradients of one process with the whole batch. */
#include <stdlib.h>
#include <string.h>

#include "assignment/data_parallel.h"
#include "criteria/cause.h"
#include "criteria/fixture.h"

#define WORLDS 2, 3, 4, 1
#define FROZEN "2.weight" /* the parameter that has a gradient, but is frozen afterwards */

/* The model with a parameter that nothing uses, so that it has no gradient. */
static struct module *gradients_model(enum values values, uint64_t seed)
{
    struct module *model = fixture_model(values, seed, "gradients");
    struct tensor *unused = tensor_full(SHAPE(5), 1, FLOAT32, CPU);
    (void)module_add_parameter(model, "unused", tensor_set_requires_grad(unused, true));
    return model;
}

/* ---- observing ---- */

/* A rank's own gradients. Then one parameter is frozen: it keeps its gradient, and that counts.
 * NULL: it failed, and that is recorded */
static struct module *model_with_gradients(struct subject *s, enum values values)
{
    struct module *model = module_to(gradients_model(values, subject_seed(s)), subject_device(s));
    struct batch whole = batch_to(fixture_batch(values, subject_seed(s), 0), subject_device(s));
    struct batch shard = batch_shard(whole, subject_rank(s), subject_world_size(s));
    (void)tensor_backward(mse_loss(module_forward(model, shard.inputs), shard.targets));
    if (subject_went_wrong(s, "making gradients to average"))
        return NULL;
    (void)tensor_set_requires_grad(module_parameter(module_get(model, "2"), "weight"), false);
    return model;
}

static struct group_counts counts_so_far(void)
{
    struct group *group = dist_default(); /* a rank alone may have none */
    return group ? group_counts(group) : (struct group_counts){0};
}

static bool observe_average(struct subject *s, enum values values)
{
    SCOPE;
    struct module *model = model_with_gradients(s, values);
    if (!model)
        return false;
    struct named_tensors *parameters = module_named_parameters(model);
    struct tensor **own = scope_alloc((size_t)parameters->n * sizeof(struct tensor *));
    for (int i = 0; i < parameters->n; i++)
        own[i] = tensor_retain(tensor_grad(parameters->at[i].tensor));
    struct group_counts before = counts_so_far();
    int result = student(s, average_gradients)(model);
    if (call_failed(s, result < 0, "average_gradients"))
        return false;
    struct group_counts after = counts_so_far();
    observe_int(s, after.all_reduce - before.all_reduce, "%d all_reduce", values);
    observe_int(s, after.unawaited, "%d unawaited", values);
    observe_gradients(s, model, "%d gradient", values);
    observe_parameters(s, model, "%d parameter", values);
    for (int i = 0; i < parameters->n; i++) {
        struct named_tensor *p = &parameters->at[i];
        observe_int(s, tensor_grad(p->tensor) == own[i], "%d same.%s", values, p->name);
        tensor_release(own[i]);
    }
    return true;
}

/* Every rank's gradients are its own number: zero on rank 0, and that counts too. */
static bool observe_uneven(struct subject *s)
{
    SCOPE;
    struct module *model =
        module_to(gradients_model(PUBLIC_VALUES, subject_seed(s)), subject_device(s));
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; parameters && i < parameters->n; i++) {
        struct tensor *x = parameters->at[i].tensor;
        (void)tensor_set_grad(x, tensor_full(tensor_ndim(x), tensor_shape(x), subject_rank(s),
                                             tensor_dtype(x), tensor_device(x)));
    }
    if (subject_went_wrong(s, "making gradients to average"))
        return false;
    int result = student(s, average_gradients)(model);
    if (call_failed(s, result < 0, "average_gradients, where rank 0's gradients are all zero,"))
        return false;
    observe_gradients(s, model, "uneven");
    return true;
}

/* While rank 0 averages, the others call something else, so the all-reduce fails. The group is
 * useless from then on: this comes last, when every rank is through with the rest. */
static void observe_failing_collective(struct subject *s)
{
    SCOPE;
    struct module *model = model_with_gradients(s, DRAWN_VALUES);
    if (!model)
        return;
    (void)dist_barrier();
    if (subject_rank(s) > 0) {
        (void)dist_barrier();
        error_clear();
        return;
    }
    observe_int(s, student(s, average_gradients)(model) < 0, "failing: said so");
    observe_error(s, "failing: error");
}

static void observe(struct subject *s)
{
    for (enum values values = PUBLIC_VALUES; values < VALUES_COUNT; values++)
        if (!observe_average(s, values))
            return;
    if (!observe_uneven(s))
        return;
    if (subject_world_size(s) > 1)
        observe_failing_collective(s);
}

/* ---- judging ---- */

/* How gradients are averaged: all zero for the right way, else a mistake to be tested. */
struct averaging {
    double (*factor)(int world_size);  /* what stands for the mean, as its multiple */
    bool (*reaches)(const char *name); /* the others keep the rank's own gradient */
    enum { CALLS_ANY, CALLS_ONCE, CALLS_TWICE } calls;     /* of all-reduce, for a gradient */
    bool parameters;                                       /* the parameters are reduced, too */
    enum { SAYS_SO, SAYS_NOTHING, SAYS_ANYTHING } failing; /* when an all-reduce fails */
};

/* backward_of - the parameters and gradients of one process with these rows, in FLOAT64 */
static struct named_tensors *backward_of(struct judge *j, enum values values, struct batch batch)
{
    struct module *model = module_cast(gradients_model(values, judge_seed(j)), FLOAT64);
    batch = batch_cast(batch, FLOAT64);
    (void)tensor_backward(mse_loss(module_forward(model, batch.inputs), batch.targets));
    return module_named_parameters(model);
}

static bool judge_counts(struct judge *j, const struct observations *o, enum values values,
                         int world_size, int rank)
{
    if (world_size > 1 && observed_int(o, scope_printf("%d all_reduce", values), 0) < 1)
        return judge_fail(j, "rank %d of %d: average_gradients called no all-reduce", rank,
                          world_size);
    return expect_int(j, o, scope_printf("%d unawaited", values), 0,
                      "the number of asynchronous collectives that nobody waited for (work_wait)");
}

/* A bucket takes fewer calls than there are gradients; none takes more. */
static bool has_calls(const struct observations *o, enum values values,
                      const struct named_tensors *parameters, const struct averaging *how)
{
    int64_t gradients = 0;
    for (int i = 0; i < parameters->n; i++)
        gradients += tensor_grad(parameters->at[i].tensor) != NULL;
    bool more = observed_int(o, scope_printf("%d all_reduce", values), 0) > gradients;
    return how->calls == CALLS_ANY || more == (how->calls == CALLS_TWICE);
}

static bool judge_gradient(struct judge *j, const struct observations *o, enum values values,
                           const char *name, struct tensor *expected, double factor)
{
    expected = tensor_cast(tensor_scale(expected, factor), FLOAT32);
    return expect_close(j, o, scope_printf("%d gradient.%s", values, name), expected, 1e-5, 1e-6,
                        "the averaged gradient of %s (%s)", name, values_name(values)) &&
           expect_true(
               j, o, scope_printf("%d same.%s", values, name),
               "the gradient of %s is another tensor object than before: change it in place", name);
}

/* Whoever averages the parameters as well gets the same ones, up to rounding. */
static bool judge_parameter(struct judge *j, const struct observations *o, enum values values,
                            const struct named_tensor *expected, bool reduced)
{
    struct tensor *parameter = tensor_cast(tensor_detach(expected->tensor), FLOAT32);
    double tolerance = reduced ? 1e-6 : 0;
    return expect_close(j, o, scope_printf("%d parameter.%s", values, expected->name), parameter,
                        tolerance, tolerance,
                        "%s itself, which average_gradients must leave alone,", expected->name);
}

static bool judge_values(struct judge *j, int world_size, int rank, enum values values,
                         const struct averaging *how)
{
    SCOPE;
    const struct observations *o = judge_observations(j, world_size, rank);
    struct batch batch = fixture_batch(values, judge_seed(j), 0);
    struct named_tensors *mean = backward_of(j, values, batch_whole(batch, world_size)),
                         *own = NULL;
    if (how->reaches)
        own = backward_of(j, values, batch_shard(batch, rank, world_size));
    double factor = how->factor ? how->factor(world_size) : 1;
    if (!judge_counts(j, o, values, world_size, rank) || !has_calls(o, values, mean, how))
        return false;
    for (int i = 0; i < mean->n; i++) {
        const char *name = mean->at[i].name;
        bool reached = !own || how->reaches(name);
        struct tensor *gradient = tensor_grad((reached ? mean : own)->at[i].tensor);
        if (!judge_gradient(j, o, values, name, gradient, reached ? factor : 1) ||
            !judge_parameter(j, o, values, &mean->at[i], how->parameters))
            return false;
    }
    return true;
}

static bool judge_failing(struct judge *j, const struct observations *o)
{
    return expect_raised(j, o, "failing: error", "DistError", NULL,
                         "average_gradients, with an all-reduce that fails,") &&
           expect_true(j, o, "failing: said so",
                       "average_gradients does not return -1 when its all-reduce fails");
}

static bool judge_rank(struct judge *j, int world_size, int rank, const struct averaging *how)
{
    for (enum values values = PUBLIC_VALUES; values < VALUES_COUNT; values++)
        if (!judge_values(j, world_size, rank, values, how))
            return false;
    return world_size == 1 || rank > 0 || how->failing == SAYS_ANYTHING ||
           judge_failing(j, judge_observations(j, world_size, rank)) == (how->failing == SAYS_SO);
}

static bool judge_averaging(struct judge *j, const void *how)
{
    SCOPE;
    for (const int *world_size = (const int[]){WORLDS, 0}; *world_size; world_size++)
        for (int rank = 0; rank < *world_size; rank++)
            if (!judge_rank(j, *world_size, rank, how))
                return false;
    return true;
}

static bool judge_uneven(struct judge *j, int world_size, int rank)
{
    SCOPE;
    struct named_tensors *parameters =
        module_named_parameters(gradients_model(PUBLIC_VALUES, judge_seed(j)));
    for (int i = 0; i < parameters->n; i++) {
        const struct named_tensor *p = &parameters->at[i];
        struct tensor *mean = tensor_full(tensor_ndim(p->tensor), tensor_shape(p->tensor),
                                          (world_size - 1) / 2.0, FLOAT32, CPU);
        if (!expect_close(j, judge_observations(j, world_size, rank),
                          scope_printf("uneven.%s", p->name), mean, 1e-6, 0,
                          "the averaged gradient of %s, which is all zero on rank 0,", p->name))
            return false;
    }
    return true;
}

static bool judge(struct judge *j)
{
    if (!judge_averaging(j, &(struct averaging){0}))
        return false;
    for (const int *world_size = (const int[]){WORLDS, 0}; *world_size; world_size++)
        for (int rank = 0; rank < *world_size; rank++)
            if (!judge_uneven(j, *world_size, rank))
                return false;
    return true;
}

/* ---- mistakes ---- */

static double world_times(int world_size)
{
    return world_size;
}

static double divided_again(int world_size)
{
    return 1.0 / world_size;
}

static double divided_by_2(int world_size)
{
    return world_size / 2.0;
}

static double integer_reciprocal(int world_size)
{
    return 1 / world_size;
}

static double nothing(int world_size)
{
    return 0 * world_size;
}

static bool none(const char *name)
{
    (void)name;
    return false;
}

static bool weights(const char *name)
{
    return strstr(name, "weight") != NULL;
}

static bool unfrozen(const char *name)
{
    return !same_text(name, FROZEN);
}

static bool first(const char *name)
{
    return same_text(name, "0.weight");
}

static bool last(const char *name)
{
    return same_text(name, "2.bias"); /* of those that have a gradient */
}

static bool first_layer(const char *name)
{
    return name[0] == '0';
}

static bool any_unawaited(struct judge *j, const void *with)
{
    (void)with;
    return observed_int(judge_observations(j, 2, 0), "0 unawaited", 0) > 0;
}

/* While rank 0 reduces, another is through, and goes on to what the grader calls. */
static bool too_few_calls(struct judge *j, const void *with)
{
    return cause_said(j, with) && strstr(judge_reason(j), " called barrier");
}

/* A crash by a NULL pointer's field, in average_gradients. */
static bool null_in_average(struct judge *j, const void *with)
{
    (void)with;
    const char *address = strstr(judge_reason(j), "SIGSEGV (address 0x");
    return address && strtoull(address + strlen("SIGSEGV (address "), NULL, 16) < 4096 &&
           strstr(judge_reason(j), "in average_gradients");
}

#define AVERAGING(...)                                                                             \
    judge_averaging, &(const struct averaging){.failing = SAYS_ANYTHING, __VA_ARGS__}, false

static const struct hypothesis causes[] = {
    {"every gradient is exactly world_size times the mean (2.000 times on 2 ranks, 3.000 times on "
     "3): it is summed over the ranks, but not divided by their number",
     AVERAGING(.factor = world_times, .calls = CALLS_ONCE)},
    {"every gradient is exactly world_size times the mean, and there are more all-reduces than "
     "gradients: they are summed twice, and divided once",
     AVERAGING(.factor = world_times, .calls = CALLS_TWICE)},
    {"every gradient is the mean divided by world_size once more: it is divided twice",
     AVERAGING(.factor = divided_again)},
    {"the gradients are right on 2 ranks, and world_size / 2 times the mean on 1, 3 and 4: the sum "
     "is divided by a literal 2; dist_world_size() says by how much",
     AVERAGING(.factor = divided_by_2)},
    {"every gradient is 0 with more than one rank: 1 / dist_world_size() is a division of "
     "integers, so it is 0",
     AVERAGING(.factor = integer_reciprocal)},
    {"every gradient is 0, with one rank too: it is overwritten, as with the return value of "
     "dist_all_reduce, which is 0 for success; the sum is in the tensor itself",
     AVERAGING(.factor = nothing)},
    {"every gradient is still the rank's own gradient, although all-reduces were called: they work "
     "in place, and worked on something else (copies of the gradients, or the parameters)",
     AVERAGING(.reaches = none, .parameters = true)},
    {"the weights' gradients are means, the biases' are still the rank's own: biases are skipped",
     AVERAGING(.reaches = weights)},
    {"only the parameter that is frozen keeps the rank's own gradient: it is skipped by "
     "requires_grad; what counts is whether it has a gradient",
     AVERAGING(.reaches = unfrozen)},
    {"only the first parameter's gradient is averaged: the loop over the parameters ends too early",
     AVERAGING(.reaches = first)},
    {"only the last parameter's gradient is averaged: the loop skips those before it",
     AVERAGING(.reaches = last)},
    {"only the gradients of the first layer are averaged: the loop over the parameters ends too "
     "early",
     AVERAGING(.reaches = first_layer)},
    {"the gradients are right, but the result of dist_all_reduce is not checked: when that gives "
     "-1, average_gradients must return -1 too, and leave the error set",
     judge_averaging, &(const struct averaging){.failing = SAYS_NOTHING}, false},
    {"an asynchronous all-reduce is started, and its work_wait never called: until that returns, "
     "the gradient may be anything",
     any_unawaited, NULL, false},
    {"the TCP backend has no AVG: reduce with DIST_SUM, then divide by dist_world_size()",
     cause_said, "average_gradients raised ValueError: all_reduce: the TCP backend has no AVG",
     false},
    {"one rank (rank 1, on 2 ranks) makes fewer all-reduces than rank 0: every rank must call it "
     "for every gradient, with the same calls in the same order",
     too_few_calls, "average_gradients raised DistError: rank 0 called all_reduce", false},
    {"the ranks' all-reduces do not match: one takes the gradients in another order, or one (rank "
     "1?) leaves some out; every rank must make the same calls in the same order",
     cause_said, "average_gradients raised DistError: rank 0 called all_reduce", true},
    {"a parameter without gradient (tensor_grad gives NULL) is not skipped", cause_said,
     "average_gradients returned NULL, -1 or NAN, as for an error, but raised none", true},
    {"a parameter without gradient (tensor_grad gives NULL) is not skipped", null_in_average, NULL,
     true},
    {NULL, NULL, NULL, false},
};

CRITERION(gradients, .section = "dp", .problem = "1.2", .order = 2, .points = 7,
          .title = "averaged gradients equal one process on the whole batch",
          .file = "data_parallel.c", .calls = {"average_gradients"}, .worlds = {WORLDS},
          .observe = observe, .judge = judge, .causes = causes);
