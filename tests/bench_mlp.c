/* bench_mlp - one training step of the residual MLP: forward, MSE, backward, SGD. bench_mlp.py is
 * the same in PyTorch; run both with OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/nn.h"
#include "runtime/optim.h"
#include "runtime/scope.h"

enum { BLOCKS = 8, WIDTH = 512, ROWS = 512, WARM_UP = 3, STEPS = 15 };

struct training {
    struct module *model;
    struct optimizer *optimizer;
    struct tensor *x, *y; /* (ROWS, WIDTH) */
};

static struct training training_new(void)
{
    struct rng rng;
    rng_seed(&rng, 0);
    struct module *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = residual_block_new(WIDTH, FLOAT32, CPU, &rng);
    struct module *model = sequential_new(BLOCKS, blocks);
    struct tensor *x = tensor_zeros(SHAPE(ROWS, WIDTH), FLOAT32, CPU);
    struct tensor *y = tensor_zeros(SHAPE(ROWS, WIDTH), FLOAT32, CPU);
    return (struct training){model, sgd_new(model, 0.1), tensor_normal_(x, 0, 1, &rng),
                             tensor_normal_(y, 0, 1, &rng)};
}

static double step(const struct training *training)
{
    SCOPE;
    optimizer_zero_grad(training->optimizer);
    struct tensor *loss = mse_loss(module_forward(training->model, training->x), training->y);
    if (tensor_backward(loss) < 0 || optimizer_step(training->optimizer) < 0) {
        fprintf(stderr, "bench_mlp: %s\n", error_message(error_pending()));
        exit(1);
    }
    return tensor_item(loss);
}

static double timed(const struct training *training)
{
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    step(training);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return 1e3 * (double)(end.tv_sec - start.tv_sec) + 1e-6 * (double)(end.tv_nsec - start.tv_nsec);
}

static int ascending(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

int main(void)
{
    SCOPE;
    struct training training = training_new();
    double times[STEPS];
    for (int i = 0; i < WARM_UP; i++)
        step(&training);
    for (int i = 0; i < STEPS; i++)
        times[i] = timed(&training);
    qsort(times, STEPS, sizeof *times, ascending);
    double ms = times[STEPS / 2];
    /* the first block's input gradient is not computed: 3 products per block, less one */
    double gflop = 1e-9 * 2 * ROWS * WIDTH * WIDTH * (3 * BLOCKS - 1);
    printf("residual MLP step, grade: %.2f ms, %.1f GFLOP/s\n", ms, gflop / ms * 1e3);
    printf("mlp_step_ms %.3f\n", ms);
}
