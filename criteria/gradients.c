/* 1.2: average_gradients gives every rank the gradients of one process with the whole batch. */
#include "assignment/data_parallel.h"
#include "criteria/fixture.h"

#define WORLDS 2, 3, 4, 1

/* The model with a parameter that nothing uses, so that it has no gradient. */
static struct module *gradients_model(enum values values, uint64_t seed)
{
    struct module *model = fixture_model(values, seed, "gradients");
    struct tensor *unused = tensor_full(SHAPE(5), 1, FLOAT32, CPU);
    (void)module_add_parameter(model, "unused", tensor_set_requires_grad(unused, true));
    return model;
}

/* ---- observing ---- */

/* A rank's own gradients. Then one parameter is frozen: it keeps its gradient, and that counts. */
static struct module *model_with_gradients(struct subject *s, enum values values)
{
    struct module *model = module_to(gradients_model(values, subject_seed(s)), subject_device(s));
    struct batch whole = batch_to(fixture_batch(values, subject_seed(s), 0), subject_device(s));
    struct batch shard = batch_shard(whole, subject_rank(s), subject_world_size(s));
    (void)tensor_backward(mse_loss(module_forward(model, shard.inputs), shard.targets));
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

/* While rank 0 averages, the others call something else, so the all-reduce fails. The group is
 * useless from then on: this comes last, when every rank is through with the rest. */
static void observe_failing_collective(struct subject *s)
{
    SCOPE;
    struct module *model = model_with_gradients(s, DRAWN_VALUES);
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
    if (subject_world_size(s) > 1)
        observe_failing_collective(s);
}

/* ---- judging ---- */

/* The gradients of one process with the whole batch, computed in FLOAT64. */
static struct named_tensors *whole_batch_gradients(struct judge *j, enum values values,
                                                   int world_size)
{
    struct module *model = module_cast(gradients_model(values, judge_seed(j)), FLOAT64);
    struct batch batch = fixture_batch(values, judge_seed(j), 0);
    struct batch whole = batch_cast(batch_whole(batch, world_size), FLOAT64);
    (void)tensor_backward(mse_loss(module_forward(model, whole.inputs), whole.targets));
    return module_named_parameters(model);
}

static bool judge_counts(struct judge *j, const struct observations *o, enum values values,
                         int world_size, int rank)
{
    if (world_size > 1 && observed_int(o, scope_printf("%d all_reduce", values), 0) < 1)
        return judge_fail(j, "rank %d of %d: average_gradients called no all-reduce", rank,
                          world_size);
    return expect_int(j, o, scope_printf("%d unawaited", values), 0,
                      "the number of asynchronous collectives that nobody waited for "
                      "(work_wait)");
}

static bool judge_parameter(struct judge *j, const struct observations *o, enum values values,
                            const struct named_tensor *expected)
{
    const char *name = expected->name;
    struct tensor *gradient = tensor_cast(tensor_grad(expected->tensor), FLOAT32);
    struct tensor *parameter = tensor_cast(tensor_detach(expected->tensor), FLOAT32);
    return expect_close(j, o, scope_printf("%d gradient.%s", values, name), gradient, 1e-5, 1e-6,
                        "the averaged gradient of %s (%s)", name, values_name(values)) &&
           expect_true(
               j, o, scope_printf("%d same.%s", values, name),
               "the gradient of %s is another tensor object than before: change it in place",
               name) &&
           expect_equal(j, o, scope_printf("%d parameter.%s", values, name), parameter,
                        "%s itself, which average_gradients must leave alone,", name);
}

static bool judge_rank(struct judge *j, int world_size, int rank)
{
    const struct observations *o = judge_observations(j, world_size, rank);
    for (enum values values = PUBLIC_VALUES; values < VALUES_COUNT; values++) {
        SCOPE;
        struct named_tensors *expected = whole_batch_gradients(j, values, world_size);
        if (!judge_counts(j, o, values, world_size, rank))
            return false;
        for (int i = 0; i < expected->n; i++)
            if (!judge_parameter(j, o, values, &expected->at[i]))
                return false;
    }
    if (world_size == 1 || rank > 0)
        return true;
    return expect_raised(j, o, "failing: error", "DistError", NULL,
                         "average_gradients, with an all-reduce that fails,") &&
           expect_true(j, o, "failing: said so",
                       "average_gradients does not return -1 when its all-reduce fails");
}

static bool judge(struct judge *j)
{
    SCOPE;
    for (const int *world_size = (const int[]){WORLDS, 0}; *world_size; world_size++)
        for (int rank = 0; rank < *world_size; rank++)
            if (!judge_rank(j, *world_size, rank))
                return false;
    return true;
}

CRITERION(gradients, .section = "dp", .problem = "1.2", .order = 2, .points = 7,
          .title = "averaged gradients equal one process on the whole batch",
          .file = "data_parallel.c", .worlds = {WORLDS}, .observe = observe, .judge = judge);
