/* fuzz_judges.c - the judges, and what tells causes, given whatever the subjects recorded
 *
 * The first byte is the criterion, by its place in the rubric; then, for each rank of each world,
 * the bytes of its records (4 bytes, one too large means all that are left) and the records without
 * their end. Ranks for which nothing is left recorded nothing. */
#define _GNU_SOURCE
#include "grading/fault.h"
#include "grading/judge.h"
#include "grading/observations.h"
#include "grading/rubric.h"
#include "tests/fuzz/fuzz.h"

/* As tests/fuzz/record_judges.py has them. The judge of `adapter` looks at two files. */
enum { SEED = 5, RANKS_MAX = 16 };
static char files[] = "tests/fuzz/judge_files";

/* A reason has at most 4000 bytes of the criterion's and a few sentences about the cause. */
enum { REASON_MAX = 8000 };

struct input {
    const uint8_t *at;
    size_t left;
};

/* take_records - the next rank's, ended. owns: the caller */
static struct observations *take_records(struct input *input, int rank, int world_size)
{
    static const uint8_t end[] = {OBSERVATION_END, 0, 0, 0, 0};
    uint32_t n = 0;
    if (input->left >= sizeof n) {
        memcpy(&n, input->at, sizeof n);
        input->at += sizeof n;
        input->left -= sizeof n;
        n = n < input->left ? n : (uint32_t)input->left;
    }
    uint8_t *records = alloc_or_fault(n + sizeof end);
    if (n > 0)
        memcpy(records, input->at, n);
    memcpy(records + n, end, sizeof end);
    input->at += n;
    input->left -= n;
    struct observations *o = observations_decode(records, n + sizeof end, rank, world_size);
    free(records);
    return o;
}

static void take_world(struct worlds *worlds, struct input *input, int world_size)
{
    for (int rank = 0; rank < world_size; rank++) {
        expect(worlds->count < RANKS_MAX);
        worlds->at[worlds->count++] =
            (struct inhabitant){.worlds = worlds,
                                .rank = rank,
                                .world_size = world_size,
                                .folder = files,
                                .observations = take_records(input, rank, world_size)};
    }
}

static void check_verdict(const struct judge *j, enum status status, bool nothing_recorded)
{
    expect(status == STATUS_PASSED || status == STATUS_FAILED);
    expect(status == STATUS_FAILED || !nothing_recorded);
    expect((status == STATUS_FAILED) == (j->reason != NULL));
    if (!j->reason)
        return;
    expect(*j->reason && strlen(j->reason) <= REASON_MAX);
    expect_clean(j->reason);
}

static void decide(const struct criterion *criterion, struct input input)
{
    SCOPE;
    struct inhabitant subjects[RANKS_MAX];
    struct worlds worlds = {.criterion = criterion, .sanitizer = "", .at = subjects};
    struct judge j = {.criterion = criterion, .seed = SEED, .worlds = &worlds};
    bool nothing_recorded = input.left == 0;
    take_world(&worlds, &input, criterion->worlds[0] ? criterion->worlds[0] : 1);
    for (int i = 1; i < WORLDS_MAX; i++)
        take_world(&worlds, &input, criterion->worlds[i]);
    check_verdict(&j, judge_decide(&j), nothing_recorded);
    expect(!error_occurred());
    for (int i = 0; i < worlds.count; i++)
        observations_free(subjects[i].observations);
    json_decref(j.measurements);
    free(j.reason);
    free(j.cause);
}

FUZZ_TARGET(judges)
{
    const struct criterion *const *criteria;
    int count = rubric_all(&criteria);
    if (n > 0)
        decide(criteria[bytes[0] % count], (struct input){bytes + 1, n - 1});
    return 0;
}
