/* 1.4: train_step on two GPUs with half of the rows each, against one GPU with all of them. */
#include "assignment/data_parallel.h"
#include "criteria/performance.h"

static const double threshold = 1.40;
enum { WORLD = 2 };

/* A model with its optimizer and rows, on one device. */
struct training {
    struct module *model;
    struct optimizer *optimizer;
    struct batch batch;
};

static struct training training_new(const struct workload *w, struct subject *s, struct batch batch)
{
    struct module *model = module_to(performance_model(w, subject_seed(s)), subject_device(s));
    return (struct training){model, sgd_new(model, w->learning_rate),
                             batch_to(batch, subject_device(s))};
}

static bool training_failed(struct subject *s)
{
    return subject_went_wrong(s, "making a model and its batch");
}

static bool baseline_update(struct subject *s, void *context)
{
    struct training *t = context;
    optimizer_zero_grad(t->optimizer);
    (void)tensor_backward(mse_loss(module_forward(t->model, t->batch.inputs), t->batch.targets));
    (void)optimizer_step(t->optimizer);
    return !subject_went_wrong(s, "training on one device");
}

static bool student_update(struct subject *s, void *context)
{
    struct training *t = context;
    float loss =
        student(s, train_step)(t->model, t->optimizer, t->batch.inputs, t->batch.targets, mse_loss);
    return !call_failed(s, loss != loss, "train_step");
}

static void observe(struct subject *s)
{
    SCOPE;
    struct workload w = performance_workload(subject_device(s));
    struct batch batch = performance_batch(&w, subject_seed(s));
    struct training whole, half;
    half = training_new(&w, s, batch_shard(batch, subject_rank(s), WORLD));
    if (training_failed(s))
        return;
    struct contender student = {half.model, student_update, &half};
    if (subject_rank(s) > 0) {
        (void)performance_observe(s, &w, NULL, &student);
        return;
    }
    whole = training_new(&w, s, batch);
    if (training_failed(s))
        return;
    struct contender baseline = {whole.model, baseline_update, &whole};
    (void)performance_observe(s, &w, &baseline, &student);
}

static bool judge(struct judge *j)
{
    return performance_judge(j, WORLD, threshold);
}

CRITERION(dp_performance, .section = "dp", .problem = "1.4", .order = 4, .points = 14,
          .title = "data-parallel speedup >= 1.40x", .file = "data_parallel.c",
          .calls = {"train_step"}, .needs = NEEDS_TWO_V100S, .speedup = true, .worlds = {WORLD},
          .observe = observe, .judge = judge);
