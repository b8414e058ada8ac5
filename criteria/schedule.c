/* 2.1: clock_cycles gives every wave of the pipeline's schedule. */
#include <string.h>

#include "assignment/pipeline.h"
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
        (void)student(s, clock_cycles)(bad_cases[i].microbatches, bad_cases[i].stages);
        observe_error(s, "error %d", i);
    }
}

/* What observe_schedule records of the right schedule. */
static int64_t *right_schedule(struct schedule_case c, int64_t *n)
{
    int waves = c.microbatches ? c.microbatches + c.stages - 1 : 0;
    int64_t *numbers =
        scope_alloc((size_t)(1 + waves + 2 * c.microbatches * c.stages) * sizeof *numbers);
    *n = 0;
    numbers[(*n)++] = waves;
    for (int k = 0; k < waves; k++) {
        int64_t *count = &numbers[(*n)++];
        for (int j = 0; j < c.stages; j++) {
            if (k - j < 0 || k - j >= c.microbatches)
                continue;
            numbers[(*n)++] = k - j;
            numbers[(*n)++] = j;
            ++*count;
        }
    }
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

static bool judge(struct judge *j)
{
    SCOPE;
    const struct observations *o = judge_observations(j, 1, 0);
    const struct schedule_case *cases = schedule_cases(judge_seed(j));
    for (int i = 0; i < CASES; i++) {
        SCOPE;
        int64_t got_n, right_n;
        const int64_t *got = observed_ints(o, scope_printf("waves %d", i), &got_n);
        const int64_t *right = right_schedule(cases[i], &right_n);
        if (!judge_waves(j, cases[i], got, got_n, right, right_n))
            return false;
    }
    for (int i = 0; i < BAD_CASES; i++)
        if (!expect_raised(j, o, scope_printf("error %d", i), "ValueError", NULL,
                           "clock_cycles(%d, %d)", bad_cases[i].microbatches, bad_cases[i].stages))
            return false;
    return true;
}

CRITERION(schedule, .section = "pipeline", .problem = "2.1", .order = 5, .points = 5,
          .title = "clock-cycle schedule", .file = "pipeline.c", .observe = observe,
          .judge = judge);
