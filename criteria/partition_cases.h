#ifndef CRITERIA_PARTITION_CASES_H
#define CRITERIA_PARTITION_CASES_H
/* partition_cases.h - the calls of partition_indices that the criterion `partitions` observes on
 * two ranks, and under which keys; partition_causes.c makes guesses about the same calls. */
#include "assignment/data_parallel.h"
#include "criteria/criterion.h"

/* Call I: "lists I" (how many), "sizes I" (of the lists), "indices I" (all lists in a row). */
struct partition_case {
    int64_t size;
    int world_size;
    uint64_t seed;
};
enum { SEED_19 = 9, SEED_19_AGAIN, SEED_20, SEED_19_LATER, PARTITION_CASES = 26 };
struct partition_case partition_case(uint64_t run_seed, int index);

/* Bad arguments: "error I". */
enum { PARTITION_BAD_CASES = 6 };
extern const struct partition_case partition_bad_cases[PARTITION_BAD_CASES];

/* partition_name - the call, for a message */
const char *partition_name(struct partition_case c);

/* What each process-wide generator gives: "generator G alone", and "generator G called" where
 * partition_indices was called before. rand and random have one state in some libraries. */
enum { GENERATOR_RAND, GENERATOR_RANDOM, GENERATOR_LRAND48, GENERATOR_DEFAULT, GENERATORS };

/* same_ints - both were observed, and are the same */
bool same_ints(const struct observations *a, const char *key_a, const struct observations *b,
               const char *key_b);

extern const struct hypothesis partition_causes[];
#endif
