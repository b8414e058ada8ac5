#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H
/* bench.h - what the benchmarks share. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/clock.h"
#include "runtime/error.h"

static inline int bench_ascending(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

/* bench_median - sorts the values */
static inline double bench_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, bench_ascending);
    return values[n / 2];
}

/* bench_fail - end with the pending error */
static inline void __attribute__((noreturn)) bench_fail(void)
{
    fprintf(stderr, "benchmark: %s\n", error_occurred() ? error_message(error_pending()) : "?");
    exit(1);
}
#endif
