/* bench_mlp [cuda] - one training step of the residual MLP: forward, MSE, backward, SGD.
 * bench_mlp.py is the same in PyTorch; run both with OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
 * "cuda" measures the assignment's step on a GPU instead. */
#include "runtime/autograd.h"
#include "runtime/nn.h"
#include "runtime/optim.h"
#include "runtime/plugin.h"
#include "runtime/scope.h"
#include "tests/bench.h"

enum { BLOCKS = 8, WARM_UP = 3, STEPS = 15 };

struct size {
    struct device device;
    int64_t width, rows;
};

struct training {
    struct module *model;
    struct optimizer *optimizer;
    struct tensor *x, *y; /* (rows, width) */
};

static struct training training_new(const struct size *size)
{
    const int64_t rows = size->rows, width = size->width;
    struct rng rng;
    rng_seed(&rng, 0);
    struct module *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = residual_block_new(width, FLOAT32, CPU, &rng);
    struct module *model = module_to(sequential_new(BLOCKS, blocks), size->device);
    struct tensor *x = tensor_zeros(SHAPE(rows, width), FLOAT32, CPU);
    struct tensor *y = tensor_zeros(SHAPE(rows, width), FLOAT32, CPU);
    tensor_normal_(x, 0, 1, &rng);
    tensor_normal_(y, 0, 1, &rng);
    return (struct training){model, sgd_new(model, 0.1), tensor_to(x, size->device),
                             tensor_to(y, size->device)};
}

static double step(const struct training *training)
{
    SCOPE;
    optimizer_zero_grad(training->optimizer);
    struct tensor *loss = mse_loss(module_forward(training->model, training->x), training->y);
    if (tensor_backward(loss) < 0 || optimizer_step(training->optimizer) < 0)
        bench_fail();
    return tensor_item(loss);
}

/* timed - returns the seconds that a step took, its scope's end included */
static double timed(const struct training *training)
{
    double begin = seconds_now();
    step(training);
    return seconds_now() - begin;
}

/* size_of - what the argument asks for; loads the device */
static struct size size_of(const char *argument)
{
    if (!argument)
        return (struct size){CPU, 512, 512};
    if (plugin_load(BUILD_FOLDER "/cuda.so") < 0)
        bench_fail();
    return (struct size){CUDA(0), 2048, 8192};
}

int main(int argc, char **argv)
{
    SCOPE;
    const struct size size = size_of(argc > 1 ? argv[1] : NULL);
    struct training training = training_new(&size);
    double times[STEPS];
    for (int i = 0; i < WARM_UP; i++)
        step(&training);
    for (int i = 0; i < STEPS; i++)
        times[i] = timed(&training);
    double ms = 1e3 * bench_median(times, STEPS);
    /* the first block's input gradient is not computed: 3 products per block, less one */
    double gflop = 2e-9 * (double)(size.rows * size.width * size.width) * (3 * BLOCKS - 1);
    const char *name = size.device.kind == DEVICE_CPU ? "cpu" : "cuda";
    printf("residual MLP step on %s, grade: %.2f ms, %.1f GFLOP/s\n", name, ms, gflop / ms * 1e3);
    printf("mlp_step_%s_ms %.3f\n", name, ms);
}
