/* bench_allreduce - how long an all_reduce (sum, float32) takes, ranks on this machine over TCP.
 *
 *     bench_allreduce [RANKS [BYTES]]     without arguments: 2 and 4 ranks, 4 KB to 64 MB
 *
 * Prints "allreduce RANKS BYTES MICROSECONDS" for each size: the median over the repetitions, of
 * which each one counts as long as its slowest rank. tests/bench_allreduce.py does the same with
 * gloo. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/dist.h"
#include "runtime/scope.h"
#include "tests/bench.h"

enum { MAX_REPEATS = 400, WARM_UP = 5 };

static const int64_t all_sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};

static int repeats_for(int64_t bytes)
{
    int64_t repeats = (256 << 20) / bytes;
    return repeats > MAX_REPEATS ? MAX_REPEATS : repeats < 9 ? 9 : (int)repeats;
}

/* run_rank - seconds[i] of this rank's repetitions */
static int run_rank(int rank, int ranks, const char *file, int64_t bytes, double *seconds)
{
    SCOPE;
    struct group *group =
        group_connect(&(struct group_options){.rank = rank, .world_size = ranks, .file = file});
    struct tensor *x = tensor_zeros(SHAPE(bytes / 4), FLOAT32, CPU);
    for (int i = -WARM_UP; i < repeats_for(bytes) && !error_occurred(); i++) {
        group_barrier(group);
        double begin = seconds_now();
        group_all_reduce(group, x, DIST_SUM);
        if (i >= 0)
            seconds[i] = seconds_now() - begin;
    }
    if (error_occurred())
        fprintf(stderr, "rank %d: %s\n", rank, error_message(error_pending()));
    group_close(group);
    return error_occurred() ? 1 : 0;
}

/* median_of_slowest - seconds[rank][repeat] */
static double median_of_slowest(int ranks, int repeats, double (*seconds)[MAX_REPEATS])
{
    double slowest[MAX_REPEATS];
    for (int i = 0; i < repeats; i++) {
        slowest[i] = 0;
        for (int rank = 0; rank < ranks; rank++)
            slowest[i] = seconds[rank][i] > slowest[i] ? seconds[rank][i] : slowest[i];
    }
    return bench_median(slowest, repeats);
}

static int bench(int ranks, int64_t bytes)
{
    char file[64];
    double(*seconds)[MAX_REPEATS] = mmap(NULL, sizeof(*seconds) * (size_t)ranks,
                                         PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(file, sizeof file, "/tmp/bench_allreduce.%d", (int)getpid());
    for (int rank = 0; rank < ranks; rank++)
        if (fork() == 0)
            _exit(run_rank(rank, ranks, file, bytes, seconds[rank]));
    int failed = 0;
    for (int rank = 0, status; rank < ranks; rank++)
        failed |= wait(&status) < 0 || status != 0;
    double median = median_of_slowest(ranks, repeats_for(bytes), seconds);
    if (!failed)
        printf("allreduce %d %lld %.1f\n", ranks, (long long)bytes, 1e6 * median);
    fflush(stdout);
    munmap(seconds, sizeof(*seconds) * (size_t)ranks);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    int only_ranks = argc > 1 ? atoi(argv[1]) : 0;
    int64_t only_bytes = argc > 2 ? atoll(argv[2]) : 0;
    for (int ranks = 2; ranks <= 4; ranks += 2)
        for (size_t i = 0; i < sizeof all_sizes / sizeof *all_sizes; i++)
            if ((!only_ranks || only_ranks == ranks) && (!only_bytes || only_bytes == all_sizes[i]))
                failed |= bench(ranks, all_sizes[i]);
    return failed;
}
