/* bench_pipeline - a training step of a residual MLP in two stages on two CPU cores: all rows
 * through both stages in one thread, against microbatches through a pipeline of stage workers, as
 * the assignment's pipe_forward has it. bench_pipeline.py is the same in PyTorch; run both with
 * OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
 *
 * Both are measured in turn, each in a step after another of its kind: a kind's first step finds
 * no memory of the sizes that it wants. Prints "pipeline_speedup RATIO", the median over the
 * pairs. */
#include <stdio.h>
#include <stdlib.h>

#include "assignment/pipeline.h"
#include "runtime/optim.h"
#include "tests/bench.h"

enum { STAGES = 2, BLOCKS = 4, WIDTH = 512, ROWS = 2048, MICROBATCHES = 8, PAIRS = 15 };

struct training {
    struct pipe pipe;
    struct module *model;
    struct optimizer *optimizer;
    struct tensor *x, *y; /* (ROWS, WIDTH) */
};

static struct module *stage_new(struct rng *rng)
{
    struct module *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = residual_block_new(WIDTH, FLOAT32, CPU, rng);
    return sequential_new(BLOCKS, blocks);
}

static void training_init(struct training *t, struct module **stages, struct device *devices)
{
    struct rng rng;
    rng_seed(&rng, 0);
    for (int i = 0; i < STAGES; i++) {
        stages[i] = stage_new(&rng);
        devices[i] = CPU;
    }
    t->model = sequential_new(STAGES, stages);
    t->optimizer = sgd_new(t->model, 0.1);
    t->x = tensor_normal_(tensor_zeros(SHAPE(ROWS, WIDTH), FLOAT32, CPU), 0, 1, &rng);
    t->y = tensor_normal_(tensor_zeros(SHAPE(ROWS, WIDTH), FLOAT32, CPU), 0, 1, &rng);
    t->pipe = (struct pipe){STAGES, stages, devices, ROWS / MICROBATCHES, workers_new(STAGES)};
}

static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    return module_forward(turn->stage, tensor_to(turn->microbatch, turn->device));
}

/* forward_wave - wave w: microbatch i is in stage w - i */
static void forward_wave(struct pipe *pipe, struct tensors *batches, int w)
{
    for (int stage = 0; stage < STAGES; stage++)
        if (w - stage >= 0 && w - stage < batches->n)
            workers_submit(
                pipe->workers, stage, turn_run,
                (struct turn){pipe->stages[stage], pipe->devices[stage], batches->at[w - stage]});
    for (int stage = 0; stage < STAGES; stage++)
        if (w - stage >= 0 && w - stage < batches->n)
            batches->at[w - stage] = workers_receive(pipe->workers, stage);
}

static struct tensor *forward(struct training *t, bool pipelined)
{
    if (!pipelined)
        return module_forward(t->model, t->x);
    struct tensors *batches = tensor_split(t->x, t->pipe.split_size);
    for (int w = 0; w < batches->n + STAGES - 1; w++)
        forward_wave(&t->pipe, batches, w);
    return tensor_cat(batches);
}

static void step(struct training *t, bool pipelined)
{
    SCOPE;
    optimizer_zero_grad(t->optimizer);
    struct tensor *loss = mse_loss(forward(t, pipelined), t->y);
    if (tensor_backward(loss) < 0 || optimizer_step(t->optimizer) < 0)
        bench_fail();
    (void)tensor_item(loss);
}

/* measure - the seconds of the second of two steps */
static double measure(struct training *t, bool pipelined)
{
    step(t, pipelined);
    double begin = seconds_now();
    step(t, pipelined);
    return seconds_now() - begin;
}

int main(void)
{
    SCOPE;
    struct training training;
    struct module *stages[STAGES];
    struct device devices[STAGES];
    double ratio[PAIRS], serial[PAIRS], pipelined[PAIRS];
    training_init(&training, stages, devices);
    for (int i = 0; i < PAIRS; i++) {
        serial[i] = measure(&training, false);
        pipelined[i] = measure(&training, true);
        ratio[i] = serial[i] / pipelined[i];
    }
    workers_close(training.pipe.workers);
    printf("two stages, grade: serial %.1f ms, pipelined %.1f ms\n",
           1e3 * bench_median(serial, PAIRS), 1e3 * bench_median(pipelined, PAIRS));
    printf("pipeline_speedup %.3f\n", bench_median(ratio, PAIRS));
}
