#include "grading/summary.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grading/fault.h"
#include "grading/score.h"

#define INDENT "       "

/* source: ECMA-48, select graphic rendition. NO_COLOR: no-color.org */
static const char *const colors[] = {[STATUS_PENDING] = "",
                                     [STATUS_PASSED] = "\x1b[32m",
                                     [STATUS_FAILED] = "\x1b[31m",
                                     [STATUS_TIMEOUT] = "\x1b[31m",
                                     [STATUS_BLOCKED] = "\x1b[33m"};

static bool wants_color(const char *choice, FILE *out)
{
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (strcmp(choice, "auto") != 0)
        return strcmp(choice, "always") == 0;
    return isatty(fileno(out)) && !(no_color && *no_color) &&
           !(terminal && strcmp(terminal, "dumb") == 0);
}

void summary_begin(struct summary *summary, FILE *out, const char *color, bool quiet,
                   const struct run *run)
{
    *summary = (struct summary){.out = out, .quiet = quiet, .color = wants_color(color, out)};
    for (int i = 0; i < run->count; i++) {
        int length = (int)strlen(run->results[i].criterion->id);
        summary->width = length > summary->width ? length : summary->width;
    }
}

static void print_reason(FILE *out, const char *reason)
{
    char *clean = clean_or_fault(reason), *rest = clean; /* "" if there is none */
    while (rest) {
        const char *line = strsep(&rest, "\n");
        if (*line || rest)
            fprintf(out, INDENT "%s\n", line);
    }
    free(clean);
}

/* A speedup that was measured. */
static void print_speedup(FILE *out, const struct result *result)
{
    const json_t *median = json_object_get(result->measurements, "median");
    if (json_is_number(median))
        fprintf(out, "  %.2fx", json_number_value(median));
}

void summary_result(const struct summary *summary, const struct result *result)
{
    const struct criterion *criterion = result->criterion;
    if (summary->quiet)
        return;
    fprintf(summary->out, "  %-4s %-*s  %s%-7s%s  %2d/%-2d", criterion->problem, summary->width,
            criterion->id, summary->color ? colors[result->status] : "",
            status_name(result->status), summary->color ? "\x1b[0m" : "", score_earned(result),
            criterion->points);
    if (result->status == STATUS_BLOCKED) {
        fprintf(summary->out, "  %s", result->reason);
        print_speedup(summary->out, result);
        fputc('\n', summary->out);
    } else {
        fprintf(summary->out, "  %7.2f s", result->seconds);
        print_speedup(summary->out, result);
        fputc('\n', summary->out);
        print_reason(summary->out, result->reason);
    }
    fflush(summary->out);
}

void summary_end(const struct summary *summary, const struct run *run, const char *report)
{
    struct score score = score_of(run);
    if (!summary->quiet)
        fputc('\n', summary->out);
    fprintf(summary->out, "%s%d/%d%s", summary->color ? "\x1b[1m" : "", score.earned,
            score.possible, summary->color ? "\x1b[0m" : "");
    if (score.blocked)
        fprintf(summary->out, "  (%d blocked)", score.blocked_points);
    if (strcmp(run->device, "sim") == 0)
        fputs("  (simulated GPUs: not official)", summary->out);
    fputc('\n', summary->out);
    if (!summary->quiet) {
        char *clean = clean_or_fault(report);
        fprintf(summary->out, "report: %s\n", clean);
        free(clean);
    }
    fflush(summary->out);
}
