/* 2.1: clock_cycles gives every wave of the pipeline's schedule. */
#include <string.h>

#include "assignment/pipeline.h"
#include "criteria/cause.h"
#include "criteria/fixture.h"

struct schedule_case {
    int microbatches, stages;
};

/* The public cases, an exact fit, some drawn for this run, and some that no fixed table holds. */
enum { PUBLIC_CASES = 6, DRAWN_CASES = 8, LARGE_CASES = 3 };
enum { CASES = PUBLIC_CASES + DRAWN_CASES + LARGE_CASES };

static struct schedule_case *schedule_cases(uint64_t seed)
{
    static const struct schedule_case public[PUBLIC_CASES] = {{0, 2}, {1, 1}, {1, 4},
                                                              {7, 3}, {6, 2}, {3, 3}};
    static const struct schedule_case large[LARGE_CASES] = {{2000, 9}, {5, 700}, {130, 130}};
    struct schedule_case *cases = scope_alloc(CASES * sizeof *cases), *next = cases;
    struct rng rng;
    draws_seed(&rng, seed, "schedule");
    for (int i = 0; i < PUBLIC_CASES; i++)
        *next++ = public[i];
    for (int i = 0; i < DRAWN_CASES; i++) {
        int microbatches = (int)rng_below(&rng, 60);
        *next++ = (struct schedule_case){microbatches, 1 + (int)rng_below(&rng, 16)};
    }
    for (int i = 0; i < LARGE_CASES; i++)
        *next++ = large[i];
    return cases;
}

static const struct schedule_case bad_cases[] = {{-1, 2}, {-7, 1}, {3, 0},
                                                 {3, -1}, {0, 0},  {-1, -1}};
enum { BAD_CASES = sizeof bad_cases / sizeof *bad_cases };

/* Waves as numbers: how many, then per wave how many pairs and the pairs. A wave that claims more
 * pairs than its case has is cut: it is wrong anyhow. */
static void observe_schedule(struct subject *s, const struct schedule *schedule, int most, int at)
{
    int64_t n = 0;
    int waves = schedule->n < 0 || schedule->n > 2 * most + 4 ? 0 : schedule->n;
    int64_t *numbers = scope_alloc((size_t)(1 + waves + 4 * most + 8) * sizeof *numbers);
    int pairs_left = 2 * most + 4;
    numbers[n++] = schedule->n;
    for (int k = 0; k < waves; k++) {
        const struct wave *wave = &schedule->at[k];
        numbers[n++] = wave->n;
        for (int i = 0; i < wave->n && pairs_left-- > 0; i++) {
            numbers[n++] = wave->at[i].microbatch;
            numbers[n++] = wave->at[i].stage;
        }
        if (pairs_left < 0)
            break;
    }
    observe_ints(s, numbers, n, "waves %d", at);
}

static void observe(struct subject *s)
{
    SCOPE;
    const struct schedule_case *cases = schedule_cases(subject_seed(s));
    struct schedule *schedules[CASES];
    for (int i = 0; i < CASES; i++) {
        schedules[i] = student(s, clock_cycles)(cases[i].microbatches, cases[i].stages);
        if (call_failed(s, !schedules[i], "clock_cycles(%d, %d)", cases[i].microbatches,
                        cases[i].stages))
            return;
    }
    for (int i = 0; i < CASES; i++) /* only now: a later call must not change an earlier result */
        observe_schedule(s, schedules[i], cases[i].microbatches * cases[i].stages, i);
    for (int i = 0; i < BAD_CASES; i++) {
        struct schedule *result =
            student(s, clock_cycles)(bad_cases[i].microbatches, bad_cases[i].stages);
        observe_refused(s, i, result);
    }
}

/* How a schedule is made: all zero for the right way, else a mistake to be tested. */
struct scheduling {
    int more_waves; /* than there should be; those that there are not lose their pairs */
    enum { DIAGONAL, BY_MICROBATCH, BY_STAGE } order; /* the latter two: one pair per wave */
    bool descending, swapped, waves_for_none;
};

static int wave_count(struct schedule_case c, const struct scheduling *how)
{
    if (how->order != DIAGONAL)
        return c.microbatches * c.stages;
    int waves = c.microbatches || how->waves_for_none ? c.microbatches + c.stages - 1 : 0;
    return c.microbatches ? waves + how->more_waves : waves;
}

static int wave_of(struct schedule_case c, const struct scheduling *how, int microbatch, int stage)
{
    return how->order == DIAGONAL        ? microbatch + stage
           : how->order == BY_MICROBATCH ? microbatch * c.stages + stage
                                         : stage * c.microbatches + microbatch;
}

/* The pairs of wave k, one per stage at most. A serial wave's microbatch is k's, a diagonal's
 * depends on the stage. */
static int64_t *add_wave(int64_t *next, struct schedule_case c, const struct scheduling *how, int k)
{
    int64_t *count = next++;
    *count = 0;
    for (int at = 0; at < c.stages; at++) {
        int stage = how->descending ? c.stages - 1 - at : at;
        int microbatch = how->order == DIAGONAL        ? k - stage
                         : how->order == BY_MICROBATCH ? k / c.stages
                                                       : k % c.microbatches;
        if (microbatch < 0 || microbatch >= c.microbatches ||
            wave_of(c, how, microbatch, stage) != k)
            continue;
        *next++ = how->swapped ? stage : microbatch;
        *next++ = how->swapped ? microbatch : stage;
        ++*count;
    }
    return next;
}

/* What observe_schedule records of a schedule made like this. */
static int64_t *schedule_made(struct schedule_case c, const struct scheduling *how, int64_t *n)
{
    int waves = wave_count(c, how);
    int64_t *numbers =
        scope_alloc((size_t)(1 + waves + 2 * c.microbatches * c.stages) * sizeof *numbers);
    int64_t *next = numbers;
    *next++ = waves;
    for (int k = 0; k < waves; k++)
        next = add_wave(next, c, how, k);
    *n = next - numbers;
    return numbers;
}

/* wave_name - the wave whose numbers start at `wave`: "[(0, 1), (1, 0)]" */
static const char *wave_name(const int64_t *wave, const int64_t *end)
{
    const char *name = "";
    for (int64_t i = 0; i < wave[0] && i < 8 && wave + 2 + 2 * i < end; i++)
        name = scope_printf("%s%s(%jd, %jd)", name, i ? ", " : "", (intmax_t)wave[1 + 2 * i],
                            (intmax_t)wave[2 + 2 * i]);
    return scope_printf("[%s%s]", name, wave[0] > 8 ? ", ..." : "");
}

static bool judge_waves(struct judge *j, struct schedule_case c, const int64_t *got, int64_t got_n,
                        const int64_t *right, int64_t right_n)
{
    const char *call = scope_printf("clock_cycles(%d, %d)", c.microbatches, c.stages);
    if (got_n < 1 || got[0] != right[0])
        return judge_fail(j, "%s gives %jd waves, expected %jd", call,
                          (intmax_t)(got_n < 1 ? 0 : got[0]), (intmax_t)right[0]);
    const int64_t *wave = right + 1;
    for (int64_t k = 0; k < right[0]; k++, wave += 1 + 2 * wave[0]) {
        const int64_t *got_wave = got + (wave - right), *got_end = got + got_n;
        if (got_end - got_wave >= 1 + 2 * wave[0] &&
            memcmp(got_wave, wave, (size_t)(1 + 2 * wave[0]) * sizeof *wave) == 0)
            continue;
        return judge_fail(j, "wave %jd of %s is %s, expected %s (pairs of microbatch, stage)",
                          (intmax_t)k, call,
                          got_wave < got_end ? wave_name(got_wave, got_end) : "[]",
                          wave_name(wave, right + right_n));
    }
    return true;
}

static bool judge_cases(struct judge *j, int count, const struct scheduling *how)
{
    const struct observations *o = judge_observations(j, 1, 0);
    const struct schedule_case *cases = schedule_cases(judge_seed(j));
    for (int i = 0; i < count; i++) {
        SCOPE;
        int64_t got_n, right_n;
        const int64_t *got = observed_ints(o, scope_printf("waves %d", i), &got_n);
        const int64_t *right = schedule_made(cases[i], how, &right_n);
        if (!judge_waves(j, cases[i], got, got_n, right, right_n))
            return false;
    }
    return true;
}

static bool judge(struct judge *j)
{
    SCOPE;
    const struct observations *o = judge_observations(j, 1, 0);
    if (!judge_cases(j, CASES, &(struct scheduling){0}))
        return false;
    for (int i = 0; i < BAD_CASES; i++)
        if (!expect_refused(j, o, i,
                            scope_printf("clock_cycles(%d, %d)", bad_cases[i].microbatches,
                                         bad_cases[i].stages)))
            return false;
    return true;
}

/* ---- mistakes ---- */

static bool made_like(struct judge *j, const void *how)
{
    return judge_cases(j, CASES, how);
}

/* Every result has come to have as many waves as the last one. */
static bool one_result(struct judge *j, const void *with)
{
    (void)with;
    const struct observations *o = judge_observations(j, 1, 0);
    int64_t n, last_n;
    const int64_t *last = observed_ints(o, scope_printf("waves %d", CASES - 1), &last_n);
    for (int i = 0; i < CASES; i++) {
        const int64_t *got = observed_ints(o, scope_printf("waves %d", i), &n);
        if (last_n < 1 || n < 1 || got[0] != last[0])
            return false;
    }
    return last[0] > 0;
}

static bool always_empty(struct judge *j, const void *with)
{
    (void)with;
    const struct observations *o = judge_observations(j, 1, 0);
    for (int i = 0; i < CASES; i++) {
        int64_t n;
        const int64_t *got = observed_ints(o, scope_printf("waves %d", i), &n);
        if (!got || n < 1 || got[0] != 0)
            return false;
    }
    return true;
}

static bool only_small_are_right(struct judge *j, const void *with)
{
    (void)with;
    return judge_cases(j, PUBLIC_CASES, &(struct scheduling){0}) &&
           !judge_cases(j, CASES, &(struct scheduling){0});
}

#define SCHEDULING(...) made_like, &(const struct scheduling){__VA_ARGS__}, false
#define TAKEN(set) cause_taken, &(const struct taken){"error", "", BAD_CASES, set, 0}, false

static const struct hypothesis causes[] = {
    {"the number of waves is always one too many: the last pair (M - 1, N - 1) is in wave M + N - "
     "2, so counting from 0 there are M + N - 1 waves, not M + N",
     SCHEDULING(.more_waves = 1)},
    {"the number of waves is always one too few, and the last pair is lost: the last pair (M - 1, "
     "N - 1) is in wave M + N - 2, so counting from 0 there are M + N - 1 waves",
     SCHEDULING(.more_waves = -1)},
    {"without microbatches, as many empty waves as stages - 1 are given: where there are no "
     "microbatches, there are no waves",
     SCHEDULING(.waves_for_none = true)},
    {"the stages of a wave are in descending order: they must ascend",
     SCHEDULING(.descending = true)},
    {"the two numbers of every pair are swapped: first the microbatch, then the stage",
     SCHEDULING(.swapped = true)},
    {"every wave holds one pair: a serial schedule, in which a microbatch goes through all stages "
     "before the next begins; pairs with the same microbatch + stage belong in one wave",
     SCHEDULING(.order = BY_MICROBATCH)},
    {"every wave holds one pair: a serial schedule, in which all microbatches go through a stage "
     "before the next begins; pairs with the same microbatch + stage belong in one wave",
     SCHEDULING(.order = BY_STAGE)},
    {"a later call overwrites the result of an earlier one: it is in a static variable", one_result,
     NULL, false},
    {"every schedule is empty: it has no waves, whatever it is asked for (schedule_new, wave_add)",
     always_empty, NULL, false},
    {"small schedules are right and larger ones are not: a table of a fixed size",
     only_small_are_right, NULL, true},
    {"invalid numbers are not refused: fewer than 0 microbatches or fewer than 1 stage must raise "
     "a ValueError (raise_null), not give an empty schedule",
     TAKEN(0x3f)},
    {"a negative number of microbatches is not refused", TAKEN(0x03)},
    {"only 0 is refused as the number of stages: a negative number of stages must be, too",
     TAKEN(0x08)},
    {"a number of stages below 1 is not refused", TAKEN(0x1c)},
    {"0 as the number of stages is not refused: stages < 1 must be", TAKEN(0x14)},
    {NULL, NULL, NULL, false},
};

CRITERION(schedule, .section = "pipeline", .problem = "2.1", .order = 5, .points = 5,
          .title = "clock-cycle schedule", .file = "pipeline.c", .calls = {"clock_cycles"},
          .observe = observe, .judge = judge, .causes = causes);
