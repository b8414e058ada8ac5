#include "criteria/forward_calls.h"

#include <string.h>

#include "criteria/fixture.h"

static const struct session {
    int64_t split;
    int batches;
    int64_t rows[3];
} sessions[SESSIONS] = {
    {1, 1, {1}}, {3, 1, {7}},       {8, 1, {3}},  {1, 1, {8}},
    {2, 1, {6}}, {3, 3, {2, 7, 9}}, {1, 1, {40}}, /* more than a small table holds */
};

bool call_next(struct call *c)
{
    bool first = c->stages == 0;
    c->grad = !c->grad;
    if (c->grad && !first && ++c->batch == sessions[c->session].batches) {
        c->batch = 0;
        c->session++;
    }
    if (first || c->session == SESSIONS) {
        c->session = 0;
        c->stages++;
    }
    c->split = sessions[c->session].split;
    c->rows = sessions[c->session].rows[c->batch];
    return c->stages <= PIPE_STAGES_MAX;
}

const char *call_key(const struct call *c)
{
    return scope_printf("%d %d %d %d", c->stages, c->session, c->batch, c->grad);
}

const char *call_name(const struct call *c)
{
    return scope_printf("pipe_forward of %jd rows at split %jd, %d stage%s", (intmax_t)c->rows,
                        (intmax_t)c->split, c->stages, c->stages > 1 ? "s" : "");
}

struct tensor *call_inputs(const struct call *c, uint64_t seed)
{
    struct rng rng;
    draws_seed(&rng, seed, scope_printf("forward %d", c->session * 3 + c->batch));
    return drawn_tensor(&rng, SHAPE(c->rows, 4));
}

int call_microbatches(const struct call *c)
{
    return (int)((c->rows + c->split - 1) / c->split);
}

const struct failing_case failing_cases[FAILING_CASES] = {
    {1, 3, 7, 0, 1}, {2, 3, 7, 1, 2}, {2, 1, 3, 0, 0}, {3, 2, 9, 1, 3}, {3, 4, 4, 2, 0}};

const char *failing_message(uint64_t seed, int index)
{
    struct rng rng;
    draws_seed(&rng, seed, scope_printf("failing stage %d", index));
    return scope_printf("stage %d fails on purpose (%ju)", failing_cases[index].stage,
                        (uintmax_t)rng_bits(&rng, 30));
}

/* ---- traces ---- */

struct trace {
    int stages, microbatches;
    enum trace_order order;
    int64_t *steps, n;
};

static void add(struct trace *trace, int stage, int event)
{
    trace->steps[trace->n++] = (trace->order == TRACE_FIRST_WORKER ? 0 : stage) + event;
}

static void add_wave(struct trace *trace, int wave, int event)
{
    bool reversed = trace->order == TRACE_REVERSE_RECEIVES && event == TRACE_RECEIVED;
    for (int at = 0; at < trace->stages; at++) {
        int stage = reversed ? trace->stages - 1 - at : at;
        if (wave - stage < 0 || wave - stage >= trace->microbatches)
            continue;
        add(trace, stage, event);
        if (trace->order == TRACE_BY_PAIR)
            add(trace, stage, TRACE_RECEIVED);
    }
}

int64_t *trace_made(int stages, int microbatches, enum trace_order order, int64_t *n)
{
    struct trace trace = {stages, microbatches, order, NULL, 0};
    trace.steps = scope_alloc((size_t)(2 * microbatches * stages) * sizeof *trace.steps);
    int waves = microbatches + stages - 1;
    for (int wave = 0; wave < waves; wave++) {
        add_wave(&trace, wave, 0);
        if (order != TRACE_BY_PAIR && order != TRACE_ALL_AT_ONCE)
            add_wave(&trace, wave, TRACE_RECEIVED);
    }
    for (int wave = 0; wave < waves && order == TRACE_ALL_AT_ONCE; wave++)
        add_wave(&trace, wave, TRACE_RECEIVED);
    *n = trace.n;
    return trace.steps;
}

bool trace_same(const int64_t *a, int64_t a_n, const int64_t *b, int64_t b_n)
{
    return a && b && a_n == b_n && memcmp(a, b, (size_t)a_n * sizeof *a) == 0;
}

/* ---- diagrams ---- */

static bool is_receive(const int64_t *steps, int64_t at)
{
    return steps[at] >= TRACE_RECEIVED;
}

/* A wave begins with a submit after a receive. */
static bool begins_wave(const int64_t *steps, int64_t at)
{
    return at > 0 && is_receive(steps, at - 1) && !is_receive(steps, at);
}

/* steps_name - "S0 R0 | S0 S1 R0", the steps from `from` on, `end` at most */
static const char *steps_name(const int64_t *steps, int64_t n, int64_t from, int64_t end)
{
    const char *name = from > 0 ? "... " : "";
    for (int64_t at = from; at < n && at < end; at++)
        name =
            scope_printf("%s%s%c%jd ", name, at > from && begins_wave(steps, at) ? "| " : "",
                         is_receive(steps, at) ? 'R' : 'S', (intmax_t)steps[at] % TRACE_RECEIVED);
    return n > end ? scope_printf("%s...", name) : scope_printf("%s(end)", name);
}

const char *trace_diagram(const int64_t *got, int64_t got_n, const int64_t *right, int64_t right_n)
{
    enum { BEFORE = 8, SHOWN = 20 };
    int64_t at = 0;
    while (at < got_n && at < right_n && got[at] == right[at])
        at++;
    int64_t from = at > BEFORE ? at - BEFORE : 0;
    while (from > 0 && !begins_wave(right, from))
        from--;
    const char *before = steps_name(right, right_n, from, at);
    size_t length = strrchr(before, ' ') ? (size_t)(strrchr(before, ' ') - before + 1) : 0;
    if (at < right_n && at > from && begins_wave(right, at))
        length += 2;
    return scope_printf("  expected  %s\n"
                        "  yours     %s\n"
                        "            %*s^ here (S submit, R receive, with the stage; | ends a "
                        "wave)",
                        steps_name(right, right_n, from, from + SHOWN),
                        steps_name(got, got_n, from, from + SHOWN), (int)length, "");
}
