#ifndef CRITERIA_CRITERION_H
#define CRITERIA_CRITERION_H
/* criterion.h - what a criterion is, and what it may use.
 *
 * A criterion is one file with two halves that run in different processes:
 *
 *     static void observe(struct subject *s) { ... }
 *     static bool judge(struct judge *j) { ... }
 *     CRITERION(gradients, .section = "dp", ..., .observe = observe, .judge = judge);
 *
 * observe runs in every subject, one process per rank, with student code loaded: it calls that and
 * records what happened. judge runs in the criterion process, trusted, without student code: it
 * computes what is right and compares.
 *
 * Both halves build the same fixtures from the same seed. The subject records numbers and judges
 * nothing. A criterion passes only if every subject observed to the end and judge returned true.
 * Adding a criterion is adding its file. */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/error.h"
#include "runtime/fixtures.h"
#include "runtime/nn.h"
#include "runtime/rng.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

struct subject;
struct judge;
struct observations;

/* hypothesis - what a student may have done, to be tested on the observations of a criterion that
 * failed. holds: whether they are, all of them, what that would give; it may use everything that a
 * judge may, and what it fails is not counted. sentence: the mistake, in words that teach.
 *
 * A hypothesis is likely if it holds and no other likely one does. One marked `perhaps` fits what
 * was seen, as something else may too. */
struct hypothesis {
    const char *sentence;
    bool (*holds)(struct judge *j, const void *with);
    const void *with; /* given to holds: how one mistake differs from the next */
    bool perhaps;
};

enum needs { NEEDS_NOTHING, NEEDS_TWO_GPUS, NEEDS_TWO_V100S };
enum { WORLDS_MAX = 8, CALLS_MAX = 3, CRITERION_GPUS = 2 };

struct criterion {
    const char *id;      /* "gradients" */
    const char *section; /* "dp", "pipeline", "finetune" */
    const char *problem; /* "1.2" */
    const char *title;   /* what passes, in a few words */
    int order;           /* place in the rubric */
    int points;
    const char *file;             /* the student's file, without folder: "data_parallel.c" */
    const char *calls[CALLS_MAX]; /* the student's functions that it is about, NULL-ended */
    const char *supplied;         /* a student function that the grader's own replaces, or NULL */
    enum needs needs;
    bool speedup;           /* earns points only if the rest of its section passed */
    int worlds[WORLDS_MAX]; /* world sizes to observe, 0-ended; none: one rank alone */
    void (*observe)(struct subject *s);
    bool (*judge)(struct judge *j);
    const struct hypothesis *causes; /* up to one without sentence; NULL: none */
};

#define CRITERION(name, ...)                                                                       \
    static struct criterion criterion_##name = {.id = #name, __VA_ARGS__};                         \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        criterion_register(&criterion_##name);                                                     \
    }
void criterion_register(const struct criterion *criterion);

/* ---- in a subject ---- */

int subject_rank(const struct subject *s);
int subject_world_size(const struct subject *s);

/* subject_device - where this rank's model and data belong: CPU, or the rank's GPU. A world of
 * more ranks than GPUs runs on the CPU.
 * subject_stage_device - where pipeline stage `stage` belongs */
struct device subject_device(const struct subject *s);
struct device subject_stage_device(const struct subject *s, int stage);

/* student - a function of the student's file: student(s, clock_cycles)(6, 2). A file without it
 * ends the subject, and the criterion fails saying which function is missing. */
#define student(s, function) ((__typeof__(&function))subject_function((s), #function))
void (*subject_function(struct subject *s, const char *name))(void);

/* subject_file - a path in this subject's private folder, where student code may write
 * owns: borrowed from the scope */
const char *subject_file(struct subject *s, const char *name);

/* subject_went_wrong - after a student's call that should have succeeded: if an error is pending,
 * record it as the reason to fail ("train_step, step 2 raised ValueError: ...") and return true */
bool subject_went_wrong(struct subject *s, const char *what, ...)
    __attribute__((format(printf, 2, 3)));

/* subject_fail - record a reason to fail that the subject itself can see */
void subject_fail(struct subject *s, const char *reason, ...) __attribute__((format(printf, 2, 3)));

/* observe_* - record a value under a key, a printf format. observe_tensor records dtype, device,
 * shape, requires_grad and all elements; NULL is recorded as absent. observe_error records type and
 * message of the pending error, or that there is none, and clears it. */
void observe_tensor(struct subject *s, const struct tensor *x, const char *key, ...)
    __attribute__((format(printf, 3, 4)));
void observe_int(struct subject *s, int64_t value, const char *key, ...)
    __attribute__((format(printf, 3, 4)));
void observe_ints(struct subject *s, const int64_t *values, int64_t n, const char *key, ...)
    __attribute__((format(printf, 4, 5)));
void observe_number(struct subject *s, double value, const char *key, ...)
    __attribute__((format(printf, 3, 4)));
void observe_text(struct subject *s, const char *text, const char *key, ...)
    __attribute__((format(printf, 3, 4)));
void observe_error(struct subject *s, const char *key, ...) __attribute__((format(printf, 2, 3)));

/* observe_parameters, observe_gradients - every parameter of a model, or its gradient, under
 * "PREFIX.NAME" */
void observe_parameters(struct subject *s, struct module *model, const char *prefix, ...)
    __attribute__((format(printf, 3, 4)));
void observe_gradients(struct subject *s, struct module *model, const char *prefix, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- fixtures, the same on both sides ---- */

/* draws_seed - start `rng` for this run's values: from the run's seed and a name, so that each use
 * has numbers of its own. subject_seed, judge_seed give the run's seed. */
void draws_seed(struct rng *rng, uint64_t run_seed, const char *name);
uint64_t subject_seed(const struct subject *s);
uint64_t judge_seed(const struct judge *j);

/* ---- in the judge ---- */

/* judge_observations - what rank `rank` of the world with `world_size` ranks recorded; complete.
 * judge_file - a regular file that this subject left in its folder, or NULL (not followed if a
 * link)
 * judge_device - the CPU, or GPU `rank` where the run has GPUs */
const struct observations *judge_observations(const struct judge *j, int world_size, int rank);
const char *judge_file(struct judge *j, int world_size, int rank, const char *name);
struct device judge_device(const struct judge *j, int rank);

/* judge_fail - the criterion fails for this reason. The first reason counts. returns: false */
bool judge_fail(struct judge *j, const char *reason, ...) __attribute__((format(printf, 2, 3)));

/* judge_reason - why the criterion failed, for hypotheses. A student chose some of its words. */
const char *judge_reason(const struct judge *j);

/* judge_measured - put a value into the report's `measurements`. Takes over `value`. */
void judge_measured(struct judge *j, const char *key, json_t *value);

/* expect_* - true if the observation under the key is as expected; otherwise the criterion fails
 * with a message that names rank, `what` (a phrase for a person: "gradient of 0.weight after step
 * 2"), got and expected. An absent observation fails too.
 *
 * expect_close   shape, dtype and every element: |got - expected| <= atol + rtol * |expected|; NaN
 *                never is. expected NULL: must have been recorded as absent.
 * expect_equal   the same to the bit
 * expect_int     a number
 * expect_ints    a list of numbers
 * expect_true    a number that is not 0; `what` is then a whole sentence, the complaint
 * expect_number  within the same tolerance rule
 * expect_raised  an error of this type was recorded; type or message NULL: any
 * expect_tensor  the rule of expect_close, for a tensor that the judge got by itself; not NULL */
bool expect_close(struct judge *j, const struct observations *o, const char *key,
                  const struct tensor *expected, double rtol, double atol, const char *what, ...)
    __attribute__((format(printf, 7, 8)));
bool expect_equal(struct judge *j, const struct observations *o, const char *key,
                  const struct tensor *expected, const char *what, ...)
    __attribute__((format(printf, 5, 6)));
bool expect_int(struct judge *j, const struct observations *o, const char *key, int64_t expected,
                const char *what, ...) __attribute__((format(printf, 5, 6)));
bool expect_ints(struct judge *j, const struct observations *o, const char *key,
                 const int64_t *expected, int64_t n, const char *what, ...)
    __attribute__((format(printf, 6, 7)));
bool expect_true(struct judge *j, const struct observations *o, const char *key, const char *what,
                 ...) __attribute__((format(printf, 4, 5)));
bool expect_number(struct judge *j, const struct observations *o, const char *key, double expected,
                   double rtol, double atol, const char *what, ...)
    __attribute__((format(printf, 7, 8)));
bool expect_raised(struct judge *j, const struct observations *o, const char *key, const char *type,
                   const char *message, const char *what, ...)
    __attribute__((format(printf, 6, 7)));
bool expect_tensor(struct judge *j, const struct tensor *got, const struct tensor *expected,
                   double rtol, double atol, const char *what, ...)
    __attribute__((format(printf, 6, 7)));

/* observed_* - a recorded value, for judges that need more than expect_*. The key is not formatted:
 * build it with scope_printf. Absent or of another kind: NULL, or `absent`.
 * owns: borrowed from o; a tensor's values are on the CPU */
const struct tensor *observed_tensor(const struct observations *o, const char *key);
struct device observed_device(const struct observations *o, const char *key);
bool observed_requires_grad(const struct observations *o, const char *key);
int64_t observed_int(const struct observations *o, const char *key, int64_t absent);
const int64_t *observed_ints(const struct observations *o, const char *key, int64_t *n);
double observed_number(const struct observations *o, const char *key, double absent);
const char *observed_text(const struct observations *o, const char *key);

/* observed_error - the type's name and the message; false if no error was recorded under the key.
 * Both are "" where it was recorded that there was none. owns: borrowed */
bool observed_error(const struct observations *o, const char *key, const char **type,
                    const char **message);
#endif
