#ifndef CRITERIA_FIXTURE_H
#define CRITERIA_FIXTURE_H
/* fixture.h - models, data and small tools that several criteria share.
 *
 * Most criteria run twice: on the assignment's public values, and on values drawn for this run, so
 * that an output learnt by heart helps nobody. Everything is on the CPU, and borrowed from the
 * scope. */
#include "criteria/criterion.h"
#include "runtime/ops.h"

enum values { PUBLIC_VALUES, DRAWN_VALUES, VALUES_COUNT };

/* values_name - "the public values", "the values drawn for this run" */
const char *values_name(enum values values);

/* drawn_tensor - standard normal values, FLOAT32 */
struct tensor *drawn_tensor(struct rng *rng, int ndim, const int64_t *shape);

/* fixture_model - Linear(4, 8), Tanh, Linear(8, 2) in FLOAT32; drawn ones differ by `name` too */
struct module *fixture_model(enum values values, uint64_t seed, const char *name);

/* batch - inputs (rows, 4) and targets (rows, 2): 8 rows of public values, 12 of drawn ones */
struct batch {
    struct tensor *inputs, *targets;
};
struct batch fixture_batch(enum values values, uint64_t seed, int index);

/* batch_slice - `rows` rows from `start` on. batch_shard - rank `rank`'s equal share of as many
 * rows as can be shared equally. batch_whole - all those rows. batch_to, batch_cast - both tensors
 * moved */
struct batch batch_slice(struct batch batch, int64_t start, int64_t rows);
struct batch batch_shard(struct batch batch, int rank, int world_size);
struct batch batch_whole(struct batch batch, int world_size);
struct batch batch_to(struct batch batch, struct device device);
struct batch batch_cast(struct batch batch, enum dtype dtype);

/* lopsided_loss - mean((1.5 output - target)²): output and target cannot be exchanged */
struct tensor *lopsided_loss(struct tensor *output, struct tensor *target);

/* failing_loss - raises an error of its own. observe_failed_loss - after a student's call with it:
 * what came out. expect_failed_loss - that error and NAN; `call` is the function's name */
struct tensor *failing_loss(struct tensor *output, struct tensor *target);
void observe_failed_loss(struct subject *s, float loss);
bool expect_failed_loss(struct judge *j, const struct observations *o, const char *call);

/* parameter_count - elements of all parameters together */
int64_t parameter_count(const struct module *model);

/* call_failed - after a student's call: true if an error is pending or `failure` (what it returned
 * was NULL, -1 or NAN), and then recorded as the reason to fail */
bool call_failed(struct subject *s, bool failure, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

/* observe_refused - after call `index` of those with bad arguments: what it returned and raised,
 * under "returned NULL INDEX" and "error INDEX". expect_refused - NULL and a ValueError; `call` is
 * the call for a message */
void observe_refused(struct subject *s, int index, const void *result);
bool expect_refused(struct judge *j, const struct observations *o, int index, const char *call);
#endif
