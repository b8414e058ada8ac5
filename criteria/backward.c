/* 2.2: backward through pipe_forward's output: input gradient, parameter gradients, three updates.
 * The schedule is the grader's own. */
#include "assignment/pipeline.h"
#include "criteria/cause.h"
#include "criteria/fixture.h"
#include "criteria/pipe_fixture.h"
#include "runtime/optim.h"

enum { ROWS = 7, SPLIT = 3, UPDATES = 3 };
static const double learning_rate = 0.01;

static struct tensor *update_inputs(uint64_t seed, int update)
{
    struct rng rng;
    draws_seed(&rng, seed, scope_printf("backward %d", update));
    return drawn_tensor(&rng, SHAPE(ROWS, 4));
}

static struct tensor *mean_square(struct tensor *output)
{
    return tensor_mean(tensor_square(output));
}

/* ---- observing ---- */

static bool observe_update(struct subject *s, struct test_pipe *test, struct module *model,
                           struct optimizer *optimizer, int update)
{
    SCOPE;
    int stages = test->pipe.stage_count;
    struct tensor *inputs = tensor_to(update_inputs(subject_seed(s), update), test->devices[0]);
    (void)tensor_set_requires_grad(inputs, true);
    optimizer_zero_grad(optimizer);
    if (subject_went_wrong(s, "making the inputs of a pipe"))
        return false;
    struct tensor *output = student(s, pipe_forward)(&test->pipe, inputs);
    (void)grad_set_enabled(true); /* how it is left is another criterion's business */
    if (call_failed(s, !output, "pipe_forward of %d rows at split %d, %d stages", ROWS, SPLIT,
                    stages))
        return false;
    (void)tensor_backward(mean_square(output));
    if (subject_went_wrong(s, "backward from pipe_forward's output, %d stages,", stages))
        return false;
    observe_tensor(s, tensor_grad(inputs), "%d %d input", stages, update);
    observe_gradients(s, model, "%d %d gradient", stages, update);
    (void)optimizer_step(optimizer);
    observe_parameters(s, model, "%d %d updated", stages, update);
    return true;
}

static bool observe_stages(struct subject *s, int stages)
{
    SCOPE;
    struct test_pipe test;
    if (!pipe_open(s, &test, stages, SPLIT))
        return false;
    struct module *inner[PIPE_STAGES_MAX];
    for (int j = 0; j < stages; j++)
        inner[j] = module_child(test.stages[j], "inner");
    struct module *model = sequential_new(stages, inner);
    struct optimizer *optimizer = sgd_new(model, learning_rate);
    bool good = true;
    for (int update = 0; update < UPDATES && good; update++)
        good = observe_update(s, &test, model, optimizer, update);
    pipe_close(&test);
    return good;
}

static void observe(struct subject *s)
{
    for (int stages = 2; stages <= PIPE_STAGES_MAX; stages++)
        if (!observe_stages(s, stages))
            return;
}

/* ---- judging: the stages in a row, in one thread, in FLOAT64 ---- */

/* What backward does not reach: all zero for the right way, else a mistake to be tested. */
struct connection {
    bool no_inputs, no_parameters;
    bool only_last_stage; /* and not the inputs */
    bool only_last_microbatch;
};

static struct tensor *connected_output(struct module *model, struct tensor *inputs,
                                       const struct connection *how)
{
    struct tensor *output = module_forward(model, inputs);
    if (!how->only_last_microbatch)
        return output;
    struct tensors *pieces = tensor_split(output, SPLIT);
    for (int i = 0; i < pieces->n - 1; i++)
        pieces->at[i] = tensor_detach(pieces->at[i]);
    return tensor_cat(pieces);
}

/* Parameters that backward does not reach have no gradient, and stay as they are. */
static void drop_gradients(const struct module *model, int stages, const struct connection *how)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++)
        if (how->no_parameters ||
            (how->only_last_stage && parameters->at[i].name[0] != '0' + stages - 1))
            (void)tensor_set_grad(parameters->at[i].tensor, NULL);
}

static bool judge_model(struct judge *j, const struct observations *o, int stages, int update,
                        const struct module *model, bool updated)
{
    const struct named_tensors *expected = module_named_parameters(model);
    for (int i = 0; i < expected->n; i++) {
        struct tensor *x = expected->at[i].tensor;
        const char *name = expected->at[i].name;
        const char *key =
            scope_printf("%d %d %s.%s", stages, update, updated ? "updated" : "gradient", name);
        struct tensor *value = tensor_cast(updated ? tensor_detach(x) : tensor_grad(x), FLOAT32);
        if (!expect_close(j, o, key, value, 1e-4, 1e-6, "%s%s %s update %d, %d stages,",
                          updated ? "" : "the gradient of ", name, updated ? "after" : "in",
                          update + 1, stages))
            return false;
    }
    return true;
}

static bool judge_update(struct judge *j, int stages, int update, struct module *model,
                         struct optimizer *optimizer, const struct connection *how)
{
    SCOPE;
    const struct observations *o = judge_observations(j, 1, 0);
    struct tensor *inputs = tensor_cast(update_inputs(judge_seed(j), update), FLOAT64);
    (void)tensor_set_requires_grad(inputs, true);
    optimizer_zero_grad(optimizer);
    (void)tensor_backward(mean_square(connected_output(model, inputs, how)));
    drop_gradients(model, stages, how);
    bool no_inputs = how->no_inputs || how->only_last_stage;
    if (!expect_close(j, o, scope_printf("%d %d input", stages, update),
                      no_inputs ? NULL : tensor_cast(tensor_grad(inputs), FLOAT32), 1e-4, 1e-6,
                      "the gradient of the inputs in update %d, %d stages,", update + 1, stages) ||
        !judge_model(j, o, stages, update, model, false))
        return false;
    (void)optimizer_step(optimizer);
    return judge_model(j, o, stages, update, model, true);
}

static bool judge_connection(struct judge *j, const void *how)
{
    SCOPE;
    for (int stages = 2; stages <= PIPE_STAGES_MAX; stages++) {
        struct module *model = module_cast(pipe_model(stages, judge_seed(j)), FLOAT64);
        struct optimizer *optimizer = sgd_new(model, learning_rate);
        for (int update = 0; update < UPDATES; update++)
            if (!judge_update(j, stages, update, model, optimizer, how))
                return false;
    }
    return true;
}

static bool judge(struct judge *j)
{
    return judge_connection(j, &(struct connection){0});
}

/* ---- mistakes ---- */

#define CONNECTION(...) judge_connection, &(const struct connection){__VA_ARGS__}, false

static const struct hypothesis causes[] = {
    {"only the inputs get no gradient: the pipeline works on a detached copy of them",
     CONNECTION(.no_inputs = true)},
    {"only the last stage gets gradients: what goes from stage to stage is cut off from its graph "
     "(detached, or copied as raw values)",
     CONNECTION(.only_last_stage = true)},
    {"the inputs get their gradient and the parameters none: the stages that run are copies of the "
     "pipe's, and it is the copies that get the gradients",
     CONNECTION(.no_parameters = true)},
    {"the gradients are those of the last microbatch alone: the outputs of the others are detached",
     CONNECTION(.only_last_microbatch = true)},
    {"the output has no graph to go back through: it is put together from raw values instead of by "
     "tensor_cat, or made with grad mode off",
     cause_said,
     "backward from pipe_forward's output, 2 stages, raised RuntimeError: backward of a tensor "
     "that does not require grad",
     false},
    {NULL, NULL, NULL, false},
};

CRITERION(backward, .section = "pipeline", .problem = "2.2", .order = 7, .points = 12,
          .title = "input and parameter gradients, three optimizer updates", .file = "pipeline.c",
          .calls = {"pipe_forward"}, .supplied = "clock_cycles", .observe = observe, .judge = judge,
          .causes = causes);
