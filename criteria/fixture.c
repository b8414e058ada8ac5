#include "criteria/fixture.h"

#include <stdarg.h>
#include <stdio.h>

void draws_seed(struct rng *rng, uint64_t run_seed, const char *name)
{
    uint64_t hash = run_seed ^ 14695981039346656037u; /* FNV-1a */
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    rng_seed(rng, hash);
}

const char *values_name(enum values values)
{
    return values == PUBLIC_VALUES ? "the public values" : "the values drawn for this run";
}

struct tensor *drawn_tensor(struct rng *rng, int ndim, const int64_t *shape)
{
    return tensor_normal_(tensor_empty(ndim, shape, FLOAT32, CPU), 0, 1, rng);
}

struct module *fixture_model(enum values values, uint64_t seed, const char *name)
{
    if (values == PUBLIC_VALUES)
        return small_model();
    struct rng rng;
    draws_seed(&rng, seed, scope_printf("model %s", name));
    struct module *first = linear_new(4, 8, FLOAT32, CPU, &rng);
    struct module *second = linear_new(8, 2, FLOAT32, CPU, &rng);
    return sequential_new(MODULES(first, tanh_new(), second));
}

struct batch fixture_batch(enum values values, uint64_t seed, int index)
{
    if (values == PUBLIC_VALUES)
        return (struct batch){batch_inputs(index), batch_targets(index)};
    struct rng rng;
    draws_seed(&rng, seed, scope_printf("batch %d", index));
    struct tensor *inputs = drawn_tensor(&rng, SHAPE(12, 4));
    return (struct batch){inputs, drawn_tensor(&rng, SHAPE(12, 2))};
}

struct batch batch_slice(struct batch batch, int64_t start, int64_t rows)
{
    return (struct batch){tensor_contiguous(tensor_slice(batch.inputs, 0, start, rows)),
                          tensor_contiguous(tensor_slice(batch.targets, 0, start, rows))};
}

/* A batch that could not be made has none. */
static int64_t batch_rows(struct batch batch)
{
    return batch.inputs ? tensor_size(batch.inputs, 0) : 0;
}

struct batch batch_shard(struct batch batch, int rank, int world_size)
{
    int64_t rows = batch_rows(batch) / world_size;
    return batch_slice(batch, rank * rows, rows);
}

struct batch batch_whole(struct batch batch, int world_size)
{
    int64_t rows = batch_rows(batch);
    return batch_slice(batch, 0, rows - rows % world_size);
}

struct batch batch_to(struct batch batch, struct device device)
{
    return (struct batch){tensor_to(batch.inputs, device), tensor_to(batch.targets, device)};
}

struct batch batch_cast(struct batch batch, enum dtype dtype)
{
    return (struct batch){tensor_cast(batch.inputs, dtype), tensor_cast(batch.targets, dtype)};
}

struct tensor *lopsided_loss(struct tensor *output, struct tensor *target)
{
    return tensor_mean(tensor_square(tensor_sub(tensor_scale(output, 1.5), target)));
}

static const struct error_type LossError = {"LossError"};
static const char failing_words[] = "this loss fails on purpose";

struct tensor *failing_loss(struct tensor *output, struct tensor *target)
{
    (void)output, (void)target;
    return raise_null(LossError, "%s", failing_words);
}

void observe_failed_loss(struct subject *s, float loss)
{
    observe_int(s, loss != loss, "failed loss: NAN");
    observe_error(s, "failed loss: error");
}

bool expect_failed_loss(struct judge *j, const struct observations *o, const char *call)
{
    return expect_raised(j, o, "failed loss: error", LossError.name, failing_words,
                         "%s, with a loss that fails,", call) &&
           expect_true(j, o, "failed loss: NAN", "%s, with a loss that fails, does not return NAN",
                       call);
}

int64_t parameter_count(const struct module *model)
{
    int64_t count = 0;
    const struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++)
        count += tensor_numel(parameters->at[i].tensor);
    return count;
}

bool call_failed(struct subject *s, bool failure, const char *what, ...)
{
    char call[256];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(call, sizeof call, what, arguments);
    va_end(arguments);
    if (failure && !error_occurred())
        subject_fail(s, "%s returned NULL, -1 or NAN, as for an error, but raised none", call);
    return subject_went_wrong(s, "%s", call) || failure;
}

void observe_refused(struct subject *s, int index, const void *result)
{
    observe_int(s, result == NULL, "returned NULL %d", index);
    observe_error(s, "error %d", index);
}

bool expect_refused(struct judge *j, const struct observations *o, int index, const char *call)
{
    return expect_raised(j, o, scope_printf("error %d", index), "ValueError", NULL, "%s", call) &&
           expect_true(j, o, scope_printf("returned NULL %d", index),
                       "%s raises an error, but does not return NULL", call);
}
