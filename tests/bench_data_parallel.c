/* bench_data_parallel - a training step of the residual MLP with all rows in one process, against
 * two processes with half of them each, which average their gradients over TCP as the assignment's
 * train_step does. bench_data_parallel.py is the same in PyTorch with gloo; run both with
 * OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
 *
 * The steps are taken in turn; of two processes the slower counts. Prints
 * "data_parallel_speedup ROWS RATIO" for each number of rows, the median over the pairs. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assignment/data_parallel.h"
#include "tests/bench.h"

enum { BLOCKS = 8, WIDTH = 512, RANKS = 2, MAX_ROWS = 2048, WARM_UP = 2, PAIRS = 11 };
static const int64_t all_rows[] = {512, MAX_ROWS};

struct training {
    struct module *model;
    struct optimizer *optimizer;
    struct tensor *x, *y; /* (MAX_ROWS, WIDTH) */
};

/* A pair of steps, in seconds. */
struct pair {
    double one, two;
};

static struct training training_new(void)
{
    struct rng rng;
    rng_seed(&rng, 0);
    struct module *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = residual_block_new(WIDTH, FLOAT32, CPU, &rng);
    struct module *model = sequential_new(BLOCKS, blocks);
    struct tensor *x = tensor_zeros(SHAPE(MAX_ROWS, WIDTH), FLOAT32, CPU);
    struct tensor *y = tensor_zeros(SHAPE(MAX_ROWS, WIDTH), FLOAT32, CPU);
    return (struct training){model, sgd_new(model, 0.1), tensor_normal_(x, 0, 1, &rng),
                             tensor_normal_(y, 0, 1, &rng)};
}

static void average(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        dist_all_reduce(grad, DIST_SUM);
        tensor_div_(grad, dist_world_size());
    }
}

/* step - on some of the rows. returns: seconds */
static double step(const struct training *training, int64_t start, int64_t rows, bool parallel)
{
    SCOPE;
    struct tensor *x = tensor_slice(training->x, 0, start, rows);
    struct tensor *y = tensor_slice(training->y, 0, start, rows);
    double begin = seconds_now();
    optimizer_zero_grad(training->optimizer);
    struct tensor *loss = mse_loss(module_forward(training->model, x), y);
    (void)tensor_backward(loss);
    if (parallel)
        average(training->model);
    if (optimizer_step(training->optimizer) < 0 || error_occurred())
        bench_fail();
    (void)tensor_item(loss);
    return seconds_now() - begin;
}

static struct pair pair_of_steps(const struct training *training, int64_t rows)
{
    SCOPE;
    int64_t share = rows / RANKS;
    dist_barrier();
    double one = dist_rank() == 0 ? step(training, 0, rows, false) : 0;
    dist_barrier();
    double two = step(training, dist_rank() * share, share, true);
    struct tensor *slowest = tensor_from_doubles((double[]){one, two}, SHAPE(2));
    double seconds[2];
    if (dist_all_reduce(slowest, DIST_MAX) < 0 || tensor_read(slowest, seconds) < 0)
        bench_fail();
    return (struct pair){seconds[0], seconds[1]};
}

static void bench(const struct training *training, int64_t rows)
{
    double one[PAIRS], two[PAIRS], ratio[PAIRS];
    for (int i = -WARM_UP; i < PAIRS; i++) {
        struct pair pair = pair_of_steps(training, rows);
        if (i < 0)
            continue;
        one[i] = pair.one;
        two[i] = pair.two;
        ratio[i] = pair.one / pair.two;
    }
    if (dist_rank() != 0)
        return;
    printf("%lld rows, grade: one process %.1f ms, two %.1f ms\n", (long long)rows,
           1e3 * bench_median(one, PAIRS), 1e3 * bench_median(two, PAIRS));
    printf("data_parallel_speedup %lld %.3f\n", (long long)rows, bench_median(ratio, PAIRS));
    fflush(stdout);
}

static void run_rank(int rank, const char *file)
{
    SCOPE;
    struct group *group =
        group_connect(&(struct group_options){.rank = rank, .world_size = RANKS, .file = file});
    if (!group)
        bench_fail();
    dist_set_default(group);
    struct training training = training_new();
    for (size_t i = 0; i < sizeof all_rows / sizeof *all_rows; i++)
        bench(&training, all_rows[i]);
    dist_set_default(NULL);
    group_close(group);
}

int main(void)
{
    char file[64];
    snprintf(file, sizeof file, "/tmp/bench_data_parallel.%d", (int)getpid());
    for (int rank = 0; rank < RANKS; rank++) {
        if (fork() == 0) {
            run_rank(rank, file);
            exit(0);
        }
    }
    int failed = 0;
    for (int rank = 0, status; rank < RANKS; rank++)
        failed |= wait(&status) < 0 || status != 0;
    return failed;
}
