/* forward_causes.c - what may be wrong in a pipe_forward. */
#include <string.h>

#include "criteria/cause.h"
#include "criteria/fixture.h"
#include "criteria/forward_calls.h"
#include "runtime/autograd.h"

/* was_made - the call was observed; has_failed - and gave nothing, so that it was the last */
static bool was_made(const struct judge *j, const struct call *c)
{
    return observed_ints(seen(j), scope_printf("%s trace", call_key(c)), &(int64_t){0}) != NULL;
}

static bool has_failed(const struct judge *j, const struct call *c)
{
    return !observed_tensor(seen(j), scope_printf("%s output", call_key(c)));
}

/* has_ended - everything was observed */
static bool has_ended(const struct judge *j)
{
    return observed_int(seen(j), "threads left", -1) >= 0;
}

/* every_call - whether something is true of every call that was made */
static bool every_call(struct judge *j, bool (*holds)(struct judge *j, const struct call *c))
{
    struct call call = {0};
    while (call_next(&call)) {
        SCOPE;
        if (was_made(j, &call) ? !holds(j, &call) : call.session == 0 && call.stages == 1)
            return false;
    }
    return true;
}

static bool begins(const int64_t *trace, int64_t n, const int64_t *whole, int64_t whole_n)
{
    return n <= whole_n && trace_same(trace, n, whole, n);
}

/* has_trace - the call's submits and receives are these; as far as they go in a call that failed,
 * if they are not those of the right trace as well */
static bool has_trace(struct judge *j, const struct call *c, int microbatches,
                      enum trace_order order)
{
    int64_t n, wanted_n, right_n;
    const int64_t *trace = observed_ints(seen(j), scope_printf("%s trace", call_key(c)), &n);
    const int64_t *wanted = trace_made(c->stages, microbatches, order, &wanted_n);
    if (trace_same(trace, n, wanted, wanted_n))
        return true;
    const int64_t *right = trace_made(c->stages, call_microbatches(c), TRACE_BY_WAVE, &right_n);
    return has_failed(j, c) && begins(trace, n, wanted, wanted_n) &&
           !begins(trace, n, right, right_n);
}

static bool has_right_trace(struct judge *j, const struct call *c)
{
    int64_t n, right_n;
    const int64_t *trace = observed_ints(seen(j), scope_printf("%s trace", call_key(c)), &n);
    const int64_t *right = trace_made(c->stages, call_microbatches(c), TRACE_BY_WAVE, &right_n);
    return has_failed(j, c) ? begins(trace, n, right, right_n)
                            : trace_same(trace, n, right, right_n);
}

/* ---- other orders, other microbatches ---- */

/* How batches are split and passed on: zero and NULL for the right way. */
struct running {
    enum trace_order order;
    int64_t (*rows)(const struct call *c); /* of a microbatch */
    int (*count)(const struct call *c);    /* of microbatches, the last ones with what is left */
};

static int64_t split_rows(const struct call *c)
{
    return c->split;
}

/* has_rows - the first stage ran on microbatches of these rows, one after the other */
static bool has_rows(struct judge *j, const struct call *c, int count, int64_t rows)
{
    int64_t n, left = c->rows;
    const int64_t *ran = observed_ints(seen(j), scope_printf("%s stage 0", call_key(c)), &n);
    if (n % 3 != 0 || n > 3 * count || (n < 3 * count && !has_failed(j, c)))
        return false;
    for (int64_t i = 0; 3 * i < n; i++, left -= left < rows ? left : rows)
        if (ran[3 * i + 2] != (left < rows ? left : rows))
            return false;
    return true;
}

static bool runs_so(struct judge *j, const struct call *c, const struct running *how)
{
    int64_t rows = (how->rows ? how->rows : split_rows)(c);
    int count = how->count ? how->count(c) : (int)((c->rows + rows - 1) / rows);
    return has_trace(j, c, count, how->order) && has_rows(j, c, count, rows);
}

/* All calls that were made ran like this, and one at least did not run as it should. */
static bool runs_like(struct judge *j, const void *how)
{
    struct call call = {0};
    bool wrong = false;
    while (call_next(&call)) {
        SCOPE;
        if (!was_made(j, &call))
            continue;
        if (!runs_so(j, &call, how))
            return false;
        wrong |= !runs_so(j, &call, &(struct running){0});
    }
    return wrong;
}

static int64_t rows_of_split_pieces(const struct call *c)
{
    return (c->rows + c->split - 1) / c->split;
}

static int64_t rows_of_stages_pieces(const struct call *c)
{
    return (c->rows + c->stages - 1) / c->stages;
}

static int whole_microbatches(const struct call *c)
{
    return (int)(c->rows / c->split);
}

static int one_more_if_larger(const struct call *c)
{
    return call_microbatches(c) + (c->split > c->rows);
}

/* ---- where stages run ---- */

/* ran_in_caller - every run of every stage was in no worker */
static bool ran_in_caller(struct judge *j, const struct call *c)
{
    int64_t n;
    for (int stage = 0; stage < c->stages; stage++) {
        const char *key = scope_printf("%s stage %d", call_key(c), stage);
        const int64_t *ran = observed_ints(seen(j), key, &n);
        for (int64_t i = 0; i < n; i += 3)
            if (ran[i] >= 0)
                return false;
        if (n == 0)
            return false;
    }
    return true;
}

static bool has_no_trace(struct judge *j, const struct call *c)
{
    return has_trace(j, c, 0, TRACE_BY_WAVE);
}

static bool calls_empty_functions(struct judge *j, const void *with)
{
    (void)with;
    return every_call(j, ran_in_caller) && every_call(j, has_right_trace);
}

static bool uses_no_workers(struct judge *j, const void *with)
{
    (void)with;
    return every_call(j, ran_in_caller) && every_call(j, has_no_trace);
}

static bool receives_nothing(struct judge *j, const struct call *c)
{
    int64_t n;
    const int64_t *trace = observed_ints(seen(j), scope_printf("%s trace", call_key(c)), &n);
    for (int64_t i = 0; i < n; i++)
        if (trace[i] >= TRACE_RECEIVED)
            return false;
    return n > 0;
}

static bool never_receives(struct judge *j, const void *with)
{
    (void)with;
    return every_call(j, receives_nothing);
}

static bool ran_at_home(struct judge *j, const struct call *c)
{
    int64_t n;
    for (int stage = 0; stage < c->stages; stage++) {
        const char *key = scope_printf("%s stage %d", call_key(c), stage);
        const int64_t *ran = observed_ints(seen(j), key, &n);
        for (int64_t i = 0; i < n; i += 3)
            if (ran[i] != stage)
                return false;
    }
    return true;
}

/* The right functions seem to be submitted, but a worker runs another stage. */
static bool mixes_environments(struct judge *j, const void *with)
{
    (void)with;
    return every_call(j, has_right_trace) && !every_call(j, ran_at_home) &&
           !every_call(j, ran_in_caller);
}

/* ---- outputs ---- */

static bool has_reversed_output(struct judge *j, const struct call *c)
{
    struct module *model = module_cast(pipe_model(c->stages, judge_seed(j)), FLOAT64);
    struct tensor *inputs = tensor_cast(call_inputs(c, judge_seed(j)), FLOAT64);
    struct tensors *pieces = tensor_split(tensor_detach(module_forward(model, inputs)), c->split);
    struct tensors *reversed = tensors_new(pieces->n);
    for (int i = 0; i < pieces->n; i++)
        reversed->at[i] = pieces->at[pieces->n - 1 - i];
    return expect_close(j, seen(j), scope_printf("%s output", call_key(c)),
                        tensor_cast(tensor_cat(reversed), FLOAT32), 1e-5, 1e-6, "%s", call_name(c));
}

static bool reverses(struct judge *j, const void *with)
{
    (void)with;
    return has_ended(j) && every_call(j, has_right_trace) && every_call(j, has_reversed_output);
}

/* ---- grad mode ---- */

static bool ran_with_grad(struct judge *j, const struct call *c)
{
    bool grad = true;
    for (int stage = 0; stage < c->stages; stage++)
        grad &=
            observed_int(seen(j), scope_printf("%s stage %d with grad", call_key(c), stage), 0) > 0;
    return grad;
}

static bool left_grad_off(struct judge *j, const struct call *c)
{
    return observed_int(seen(j), scope_printf("%s grad mode", call_key(c)), -1) == 0;
}

static bool left_grad_on(struct judge *j, const struct call *c)
{
    return observed_int(seen(j), scope_printf("%s grad mode", call_key(c)), -1) == 1;
}

static bool ignores_no_grad(struct judge *j, const void *with)
{
    (void)with;
    return has_ended(j) && every_call(j, ran_with_grad) && every_call(j, has_right_trace);
}

static bool leaves_grad(struct judge *j, const void *with)
{
    return has_ended(j) && every_call(j, with ? left_grad_on : left_grad_off);
}

/* ---- errors ---- */

enum raising { RAISES_RIGHTLY, RAISES_NOTHING, RAISES_OTHER_TYPE, RAISES_OTHER_MESSAGE };

static enum raising raising(const struct judge *j, int index)
{
    const char *type = "", *message = "", *wanted = failing_message(judge_seed(j), index);
    (void)observed_error(seen(j), scope_printf("failing %d: error", index), &type, &message);
    return !*type                         ? RAISES_NOTHING
           : strcmp(type, FAILING_TYPE)   ? RAISES_OTHER_TYPE
           : strcmp(message, wanted) != 0 ? RAISES_OTHER_MESSAGE
                                          : RAISES_RIGHTLY;
}

/* with: how all fail. Where the error is dropped, the old batch may lead to an error of its own. */
static bool raises_like(struct judge *j, const void *with)
{
    enum raising wanted = *(const enum raising *)with;
    int as_wanted = 0;
    for (int i = 0; i < FAILING_CASES; i++) {
        enum raising how = raising(j, i);
        as_wanted += how == wanted;
        if (how != wanted && (wanted != RAISES_NOTHING || how != RAISES_OTHER_TYPE))
            return false;
    }
    return as_wanted > 0 && has_ended(j) && every_call(j, has_right_trace);
}

static bool leaves_threads(struct judge *j, const void *with)
{
    (void)with;
    return observed_int(seen(j), "threads left", 0) > 0;
}

#define RUNNING(...) runs_like, &(const struct running){__VA_ARGS__}, false
#define RAISING(how) raises_like, &(const enum raising){how}, false

const struct hypothesis forward_causes[] = {
    {"a receive follows every submit, so that only one pair is at work at any time: all pairs of a "
     "wave must be submitted before any receive",
     RUNNING(.order = TRACE_BY_PAIR)},
    {"the whole schedule is submitted before the first receive: a later wave needs what the "
     "earlier ones give, so receive a wave before the next one is submitted",
     RUNNING(.order = TRACE_ALL_AT_ONCE)},
    {"a wave's results are received in the reverse order: receive in the order of the submits",
     RUNNING(.order = TRACE_REVERSE_RECEIVES)},
    {"every stage is submitted to the first worker: stage j belongs to worker j",
     RUNNING(.order = TRACE_FIRST_WORKER)},
    {"split_size is taken for the number of microbatches: it is the number of rows of each",
     RUNNING(.rows = rows_of_split_pieces)},
    {"the batch is split into as many microbatches as there are stages: split_size says how many "
     "rows a microbatch has",
     RUNNING(.rows = rows_of_stages_pieces)},
    {"the tail is never scheduled: there are (rows + split_size - 1) / split_size microbatches, "
     "the last of which may be smaller; rows / split_size leaves it out",
     runs_like, &(const struct running){.count = whole_microbatches}, true},
    {"where split_size exceeds the batch, an empty microbatch is scheduled besides the only one",
     RUNNING(.count = one_more_if_larger)},
    {"the stages are computed in the calling thread, and the submitted functions do nothing: what "
     "is submitted must call module_forward itself",
     calls_empty_functions, NULL, false},
    {"the stages are computed in the calling thread, and the workers get nothing to do "
     "(workers_submit)",
     uses_no_workers, NULL, false},
    {"the workers' results are never received: the next stage, and the output, are made of what "
     "workers_receive gives",
     never_receives, NULL, false},
    {"the functions of a wave share one environment, which the last submit has changed before the "
     "first runs: every submit needs an environment of its own",
     mixes_environments, NULL, true},
    {"the microbatches are concatenated in reverse order", reverses, NULL, false},
    {"the submitted functions switch grad mode on: they must run in the caller's grad mode",
     ignores_no_grad, NULL, false},
    {"grad mode is switched off and never restored", leaves_grad, NULL, false},
    {"grad mode is switched on and never restored", leaves_grad, "on", false},
    {"a stage's error is dropped (cleared, printed or overlooked): when workers_receive gives "
     "NULL, leave its error set, and return NULL",
     RAISING(RAISES_NOTHING)},
    {"a stage's error is replaced by one of another type: leave the one that workers_receive has "
     "set",
     RAISING(RAISES_OTHER_TYPE)},
    {"a stage's error is replaced by one with another message: leave the one that workers_receive "
     "has set",
     RAISING(RAISES_OTHER_MESSAGE)},
    {"threads are started in pipe_forward and never joined: the pipe has its workers already",
     leaves_threads, NULL, false},
    {NULL, NULL, NULL, false},
};
