/* 2.2: pipe_forward's submits and receives, the threads its stages run in, its outputs, grad mode
 * and errors. The schedule is the grader's own. */
#include <dirent.h>
#include <string.h>
#include <time.h>

#include "criteria/fixture.h"
#include "criteria/forward_calls.h"

/* ---- observing ---- */

static const struct error_type StageError = {FAILING_TYPE};

static bool observe_trace(struct subject *s, struct workers *workers, const struct call *c)
{
    struct worker_trace *trace = workers_trace(workers);
    if (subject_went_wrong(s, "reading the trace of %s", call_name(c)))
        return false;
    int64_t *steps = scope_alloc((size_t)trace->n * sizeof *steps), n = 0;
    for (int i = 0; i < trace->n; i++) {
        const struct worker_event *event = &trace->at[i];
        if (event->action == WORKER_SUBMIT || event->action == WORKER_RECEIVE)
            steps[n++] = event->stage + (event->action == WORKER_RECEIVE ? TRACE_RECEIVED : 0);
    }
    observe_ints(s, steps, n, "%s trace", call_key(c));
    return true;
}

/* Three numbers per call of a stage's module: thread, task, rows. */
static void observe_watch(struct subject *s, struct watch *watch, int stage, const char *key)
{
    int calls = atomic_load(&watch->calls), n = 0;
    int64_t numbers[3 * WATCH_CALLS_MAX], grads = 0;
    for (int i = 0; i < calls && i < WATCH_CALLS_MAX; i++) {
        grads += watch->call[i].grad;
        numbers[n++] = watch->call[i].thread;
        numbers[n++] = watch->call[i].task;
        numbers[n++] = watch->call[i].rows;
    }
    observe_ints(s, numbers, n, "%s stage %d", key, stage);
    observe_int(s, grads, "%s stage %d with grad", key, stage);
}

static bool observe_call(struct subject *s, struct test_pipe *test, const struct call *c)
{
    SCOPE;
    const char *key = call_key(c);
    struct tensor *inputs = tensor_to(call_inputs(c, subject_seed(s)), test->devices[0]);
    workers_trace_clear(test->pipe.workers);
    for (int j = 0; j < c->stages; j++)
        watch_clear(&test->watches[j]);
    if (subject_went_wrong(s, "making the inputs of a pipe"))
        return false;
    (void)grad_set_enabled(c->grad);
    struct tensor *output = student(s, pipe_forward)(&test->pipe, inputs);
    observe_int(s, grad_set_enabled(true), "%s grad mode", key);
    bool failed = call_failed(s, !output, "%s", call_name(c));
    failed |= !observe_trace(s, test->pipe.workers, c);
    for (int j = 0; j < c->stages; j++)
        observe_watch(s, &test->watches[j], j, key);
    if (failed)
        return false;
    observe_tensor(s, output, "%s output", key);
    observe_tensor(s, inputs, "%s inputs", key);
    return true;
}

static void observe_pipe_parameters(struct subject *s, struct test_pipe *test, const struct call *c)
{
    int64_t count = 0;
    for (int j = 0; j < c->stages; j++) {
        count += parameter_count(test->stages[j]);
        observe_parameters(s, module_child(test->stages[j], "inner"), "%d %d parameter.%d",
                           c->stages, c->session, j);
    }
    observe_int(s, count, "%d %d parameter count", c->stages, c->session);
}

static void observe_failing(struct subject *s, int index)
{
    SCOPE;
    const struct failing_case *c = &failing_cases[index];
    struct test_pipe test;
    if (!pipe_open(s, &test, c->stages, c->split))
        return;
    struct watch *watch = &test.watches[c->stage];
    watch->error = &StageError;
    watch->message = failing_message(subject_seed(s), index);
    watch->fail_at = c->microbatch;
    struct tensor *inputs = tensor_full(SHAPE(c->rows, 4), 0.5, FLOAT32, test.devices[0]);
    if (!subject_went_wrong(s, "making the inputs of a pipe")) {
        struct tensor *output = student(s, pipe_forward)(&test.pipe, inputs);
        observe_int(s, output == NULL, "failing %d: returned NULL", index);
        observe_error(s, "failing %d: error", index);
    }
    pipe_close(&test);
}

static int thread_count(void)
{
    DIR *tasks = opendir("/proc/self/task"); /* where there is none, nothing is counted */
    int count = 0;
    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count;
}

static void wait_a_millisecond(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* A thread that was joined may be listed for a moment longer: the count once it stays. */
static int thread_count_settled(void)
{
    int count = thread_count();
    for (int i = 0, same = 0; i < 500 && same < 20; i++) {
        wait_a_millisecond();
        int now = thread_count();
        same = now == count ? same + 1 : 0;
        count = now;
    }
    return count;
}

static int threads_beyond(int before)
{
    for (int i = 0; i < 500 && thread_count() > before; i++)
        wait_a_millisecond();
    int beyond = thread_count() - before;
    return beyond > 0 ? beyond : 0;
}

/* All calls of one session, from *c on; then *c is the first call of the next.
 * returns: whether to go on */
static bool observe_session(struct subject *s, struct call *c, bool *more)
{
    SCOPE;
    const struct call begin = *c;
    struct test_pipe test;
    bool good = true;
    if (!pipe_open(s, &test, c->stages, c->split))
        return false;
    while (good && *more && c->stages == begin.stages && c->session == begin.session) {
        good = observe_call(s, &test, c);
        *more = call_next(c);
    }
    if (good)
        observe_pipe_parameters(s, &test, &begin);
    pipe_close(&test);
    return good;
}

static void observe(struct subject *s)
{
    SCOPE;
    struct call call = {0};
    bool more = call_next(&call);
    if (!observe_session(s, &call, &more))
        return;
    int threads = thread_count_settled(); /* after the first use: libraries may keep some */
    while (more)
        if (!observe_session(s, &call, &more))
            return;
    for (int i = 0; i < FAILING_CASES; i++)
        observe_failing(s, i);
    observe_int(s, threads_beyond(threads), "threads left");
}

/* ---- judging ---- */

static bool judge_trace(struct judge *j, const struct observations *o, const struct call *c)
{
    int64_t got_n, right_n;
    const int64_t *got = observed_ints(o, scope_printf("%s trace", call_key(c)), &got_n);
    const int64_t *right = trace_made(c->stages, call_microbatches(c), TRACE_BY_WAVE, &right_n);
    return trace_same(got, got_n, right, right_n) ||
           judge_fail(j,
                      "%s: its submits and receives are wrong (per wave: one submit for every "
                      "pair, then one receive for every pair)\n%s",
                      call_name(c), trace_diagram(got, got_n, right, right_n));
}

/* Call i of the stage: in its own worker, in that worker's task i, with microbatch i's rows. */
static bool judge_stage(struct judge *j, const struct observations *o, const struct call *c,
                        int stage)
{
    int64_t n;
    const int64_t *got = observed_ints(o, scope_printf("%s stage %d", call_key(c), stage), &n);
    for (int64_t i = 0; i < n; i += 3)
        if (got[i] != stage)
            return judge_fail(j, "%s: stage %d ran in %s, not in its own worker (workers_submit)",
                              call_name(c), stage,
                              got[i] < 0 ? "the calling thread, or one of your own"
                                         : "another stage's worker");
    int64_t right[3 * WATCH_CALLS_MAX];
    int microbatches = call_microbatches(c);
    for (int i = 0; i < microbatches; i++) {
        int64_t rows = c->rows - i * c->split;
        right[3 * i] = stage;
        right[3 * i + 1] = i;
        right[3 * i + 2] = rows < c->split ? rows : c->split;
    }
    return expect_ints(j, o, scope_printf("%s stage %d", call_key(c), stage), right,
                       3 * microbatches, "%s: worker, task and rows of every call of stage %d",
                       call_name(c), stage);
}

/* With grad mode off, no stage runs with it on, and the output is not tracked. */
static bool judge_no_grad(struct judge *j, const struct observations *o, const struct call *c)
{
    if (c->grad)
        return true;
    for (int stage = 0; stage < c->stages; stage++)
        if (observed_int(o, scope_printf("%s stage %d with grad", call_key(c), stage), 1) != 0)
            return judge_fail(j, "%s, with grad mode off: stage %d runs with grad mode on",
                              call_name(c), stage);
    return !observed_requires_grad(o, scope_printf("%s output", call_key(c))) ||
           judge_fail(j, "%s, with grad mode off: the output requires grad", call_name(c));
}

static bool judge_output(struct judge *j, const struct observations *o, const struct call *c)
{
    const char *key = scope_printf("%s output", call_key(c));
    struct module *model = module_cast(pipe_model(c->stages, judge_seed(j)), FLOAT64);
    struct tensor *inputs = call_inputs(c, judge_seed(j));
    struct tensor *output = module_forward(model, tensor_cast(inputs, FLOAT64));
    if (!expect_close(j, o, key, tensor_cast(tensor_detach(output), FLOAT32), 1e-5, 1e-6,
                      "%s: the output", call_name(c)))
        return false;
    struct device device = judge_device(j, (c->stages - 1) % CRITERION_GPUS);
    if (!device_equal(observed_device(o, key), device))
        return judge_fail(j, "%s: the output is on %s, expected %s, the last stage's device",
                          call_name(c), device_name(observed_device(o, key)), device_name(device));
    if (!judge_no_grad(j, o, c))
        return false;
    return expect_equal(j, o, scope_printf("%s inputs", call_key(c)), inputs,
                        "%s: the inputs, which it must leave alone,", call_name(c));
}

static bool judge_call(struct judge *j, const struct observations *o, const struct call *c)
{
    SCOPE;
    if (!judge_trace(j, o, c))
        return false;
    for (int stage = 0; stage < c->stages; stage++)
        if (!judge_stage(j, o, c, stage))
            return false;
    return judge_output(j, o, c) &&
           (observed_int(o, scope_printf("%s grad mode", call_key(c)), -1) == c->grad ||
            judge_fail(j, "%s leaves grad mode switched %s", call_name(c), c->grad ? "off" : "on"));
}

static bool judge_parameters(struct judge *j, const struct observations *o, int stages, int session)
{
    SCOPE;
    struct module *model = pipe_model(stages, judge_seed(j));
    struct named_tensors *expected = module_named_parameters(model);
    for (int i = 0; i < expected->n; i++) {
        const char *name = expected->at[i].name;
        if (!expect_equal(j, o, scope_printf("%d %d parameter.%s", stages, session, name),
                          expected->at[i].tensor, "after pipe_forward, %s of a pipe with %d stages",
                          name, stages))
            return false;
    }
    return expect_int(j, o, scope_printf("%d %d parameter count", stages, session),
                      parameter_count(model), "the number of parameters of a pipe with %d stages",
                      stages);
}

static bool judge_failing(struct judge *j, const struct observations *o, int index)
{
    SCOPE;
    const struct failing_case *c = &failing_cases[index];
    const char *what =
        scope_printf("pipe_forward, with a stage %d that fails on microbatch %d, at %d stages,",
                     c->stage, c->microbatch, c->stages);
    return expect_raised(j, o, scope_printf("failing %d: error", index), FAILING_TYPE,
                         failing_message(judge_seed(j), index), "%s", what) &&
           expect_true(j, o, scope_printf("failing %d: returned NULL", index),
                       "%s raises its error, but does not return NULL", what);
}

static bool judge(struct judge *j)
{
    SCOPE;
    const struct observations *o = judge_observations(j, 1, 0);
    struct call call = {0};
    while (call_next(&call))
        if (!judge_call(j, o, &call))
            return false;
    for (int stages = 1; stages <= PIPE_STAGES_MAX; stages++)
        for (int session = 0; session < SESSIONS; session++)
            if (!judge_parameters(j, o, stages, session))
                return false;
    for (int i = 0; i < FAILING_CASES; i++)
        if (!judge_failing(j, o, i))
            return false;
    return expect_int(j, o, "threads left", 0,
                      "the number of threads that the calls of pipe_forward leave behind");
}

CRITERION(forward, .section = "pipeline", .problem = "2.2", .order = 6, .points = 6,
          .title = "submit/receive order, outputs, output device, no-grad, errors",
          .file = "pipeline.c", .calls = {"pipe_forward"}, .supplied = "clock_cycles",
          .observe = observe, .judge = judge, .causes = forward_causes);
