/* 2.3: training through pipe_forward, two stages on two GPUs, against ordinary model parallelism:
 * the whole batch through both stages in turn. */
#include "assignment/pipeline.h"
#include "criteria/performance.h"
#include "runtime/optim.h"

static const double threshold = 1.10;
enum { STAGES = 2 };

/* A model with a half on either device, its optimizer and rows. The baseline has no workers. */
struct training {
    struct pipe pipe;
    struct module *stages[STAGES];
    struct device devices[STAGES];
    struct module *model;
    struct optimizer *optimizer;
    struct batch batch;
};

static void training_init(struct training *t, const struct workload *w, struct subject *s)
{
    struct module *model = performance_model(w, subject_seed(s));
    for (int j = 0; j < STAGES; j++) {
        t->devices[j] = subject_stage_device(s, j);
        t->stages[j] = module_to(module_child_at(model, j), t->devices[j]);
    }
    t->model = sequential_new(STAGES, t->stages);
    t->optimizer = sgd_new(t->model, w->learning_rate);
    struct batch batch = performance_batch(w, subject_seed(s));
    t->batch = (struct batch){tensor_to(batch.inputs, t->devices[0]),
                              tensor_to(batch.targets, t->devices[STAGES - 1])};
    t->pipe = (struct pipe){.stage_count = STAGES,
                            .stages = t->stages,
                            .devices = t->devices,
                            .split_size = w->microbatch};
}

static bool update(struct subject *s, struct training *t, struct tensor *output)
{
    (void)tensor_backward(mse_loss(output, t->batch.targets));
    (void)optimizer_step(t->optimizer);
    return !subject_went_wrong(s, "a training step");
}

static bool baseline_update(struct subject *s, void *context)
{
    struct training *t = context;
    optimizer_zero_grad(t->optimizer);
    struct tensor *x = t->batch.inputs;
    for (int j = 0; j < STAGES; j++)
        x = module_forward(t->stages[j], tensor_to(x, t->devices[j]));
    return update(s, t, x);
}

static bool student_update(struct subject *s, void *context)
{
    struct training *t = context;
    optimizer_zero_grad(t->optimizer);
    struct tensor *output = student(s, pipe_forward)(&t->pipe, t->batch.inputs);
    return !call_failed(s, !output, "pipe_forward") && update(s, t, output);
}

static void observe(struct subject *s)
{
    SCOPE;
    struct workload w = performance_workload(subject_device(s));
    struct training serial, pipelined;
    training_init(&serial, &w, s);
    training_init(&pipelined, &w, s);
    pipelined.pipe.workers = workers_new(STAGES);
    struct contender baseline = {serial.model, baseline_update, &serial};
    struct contender student = {pipelined.model, student_update, &pipelined};
    if (!subject_went_wrong(s, "making a pipe"))
        (void)performance_observe(s, &w, &baseline, &student);
    workers_close(pipelined.pipe.workers);
}

static bool judge(struct judge *j)
{
    return performance_judge(j, 1, threshold);
}

CRITERION(pipeline_performance, .section = "pipeline", .problem = "2.3", .order = 8, .points = 12,
          .title = "pipelined speedup >= 1.10x", .file = "pipeline.c", .calls = {"pipe_forward"},
          .needs = NEEDS_TWO_V100S, .speedup = true, .observe = observe, .judge = judge);
