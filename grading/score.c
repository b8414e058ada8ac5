#include "grading/score.h"

int score_earned(const struct result *result)
{
    return result->status == STATUS_PASSED ? result->criterion->points : 0;
}

struct score score_of(const struct run *run)
{
    struct score score = {0};
    for (int i = 0; i < run->count; i++) {
        const struct result *result = &run->results[i];
        enum status status = result->status;
        score.possible += result->criterion->points;
        score.earned += score_earned(result);
        score.blocked_points += status == STATUS_BLOCKED ? result->criterion->points : 0;
        score.passed += status == STATUS_PASSED;
        score.failed += status == STATUS_FAILED || status == STATUS_TIMEOUT;
        score.blocked += status == STATUS_BLOCKED;
    }
    return score;
}

int score_status(const struct score *score)
{
    return score->failed ? 1 : score->blocked ? 2 : 0;
}
