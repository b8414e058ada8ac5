#define _GNU_SOURCE /* getopt_long, strsep */
#include "grading/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "grading/fault.h"
#include "grading/text.h"

enum { TIMEOUT_DEFAULT = 240, TIMEOUT_MAX = 1000000, FIRST_LONG = 256 };

/* What is known while arguments are read. */
struct parser {
    struct options *options;
    const char *name; /* of the option whose value is taken */
    bool only_used, only[RUBRIC_MAX];
    const char *grading; /* an option that was given and means nothing to --debug */
    char **problem;
};

/* One option. Its line in the table is all there is to add. */
struct option_row {
    const char *name;
    char letter;
    const char *value; /* what --help calls its value; NULL if it takes none */
    const char *help;
    int (*take)(struct parser *parser, const char *value);
    enum { ALWAYS, GRADING } when; /* GRADING: it means nothing to --debug */
};

/* refuse - the value is wrong: say what is allowed, and what may have been meant (or NULL) */
static int refuse(struct parser *parser, const char *value, const char *allowed, const char *meant)
{
    char *clean = line_or_fault(value);
    *parser->problem =
        format_or_fault("--%s '%s': %s%s%s%s", parser->name, clean, allowed,
                        meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
    free(clean);
    return -1;
}

/* word_list - "must be a, b or c". owns: the caller */
static char *word_list(const char *const *words)
{
    char *text = format_or_fault("must be %s", words[0]);
    for (int i = 1; words[i]; i++) {
        char *longer = format_or_fault("%s%s%s", text, words[i + 1] ? ", " : " or ", words[i]);
        free(text);
        text = longer;
    }
    return text;
}

/* refuse_choice - with all that there is to choose from */
static int refuse_choice(struct parser *parser, const char *value, const char *const *choices,
                         const char *meant)
{
    char *allowed = word_list(choices);
    refuse(parser, value, allowed, meant);
    free(allowed);
    return -1;
}

static int take_choice(struct parser *parser, const char *value, const char *const *choices,
                       const char **chosen)
{
    for (int i = 0; choices[i]; i++) {
        if (strcmp(value, choices[i]) == 0) {
            *chosen = choices[i];
            return 0;
        }
    }
    return refuse_choice(parser, value, choices, text_closest(value, choices));
}

static int take_device(struct parser *parser, const char *value)
{
    static const char *const choices[] = {"auto", "cpu", "cuda", "sim", NULL};
    if (strcmp(value, "gpu") == 0) /* cpu is closer in letters alone */
        return refuse_choice(parser, value, choices, "cuda");
    return take_choice(parser, value, choices, &parser->options->device);
}

static int take_sim_profile(struct parser *parser, const char *value)
{
    static const char *const choices[] = {"v100-nvlink", "v100-pcie", NULL};
    return take_choice(parser, value, choices, &parser->options->sim_profile);
}

static int take_measure(struct parser *parser, const char *value)
{
    (void)value;
    parser->options->measure = true;
    return 0;
}

static int take_color(struct parser *parser, const char *value)
{
    static const char *const choices[] = {"auto", "always", "never", NULL};
    return take_choice(parser, value, choices, &parser->options->color);
}

static int take_section(struct parser *parser, const char *value)
{
    const char *choices[RUBRIC_MAX + 2] = {"all"};
    const char *const *sections = rubric_sections();
    for (int i = 0; sections[i]; i++)
        choices[i + 1] = sections[i];
    return take_choice(parser, value, choices, &parser->options->section);
}

static int take_path(struct parser *parser, const char *value, const char **path)
{
    if (!*value)
        return refuse(parser, value, "must be a path", NULL);
    *path = value;
    return 0;
}

static int take_submission(struct parser *parser, const char *value)
{
    return take_path(parser, value, &parser->options->submission);
}

static int take_output(struct parser *parser, const char *value)
{
    return take_path(parser, value, &parser->options->output);
}

static int take_timeout(struct parser *parser, const char *value)
{
    char *end;
    double seconds = strtod(value, &end);
    if (end == value || *end || !(seconds >= 1 && seconds <= TIMEOUT_MAX))
        return refuse(parser, value, "must be a number of seconds from 1 to 1000000", NULL);
    parser->options->timeout_s = seconds;
    return 0;
}

static int take_seed(struct parser *parser, const char *value)
{
    char *end;
    errno = 0;
    long long seed = strtoll(value, &end, 10);
    if (end == value || *end || errno || seed < 0)
        return refuse(parser, value, "must be a whole number from 0 to 9223372036854775807", NULL);
    parser->options->seed = (uint64_t)seed;
    return 0;
}

static int take_quiet(struct parser *parser, const char *value)
{
    (void)value;
    parser->options->quiet = true;
    return 0;
}

static int take_sanitize(struct parser *parser, const char *value)
{
    static const char *const choices[] = {"address", "thread", NULL};
    return take_choice(parser, value ? value : "address", choices, &parser->options->sanitizer);
}

static int take_list(struct parser *parser, const char *value)
{
    (void)value;
    parser->options->action = ACTION_LIST;
    return 0;
}

static int take_help(struct parser *parser, const char *value)
{
    (void)value;
    parser->options->action = ACTION_HELP;
    return 0;
}

static int take_version(struct parser *parser, const char *value)
{
    (void)value;
    parser->options->action = ACTION_VERSION;
    return 0;
}

/* take_id - returns: the criterion's place in the rubric, or -1 */
static int take_id(struct parser *parser, const char *id)
{
    const struct criterion *const *all;
    const char *ids[RUBRIC_MAX + 1] = {NULL};
    int count = rubric_all(&all);
    for (int i = 0; i < count; i++) {
        ids[i] = all[i]->id;
        if (strcmp(id, ids[i]) == 0)
            return i;
    }
    return refuse(parser, id, "is no criterion (--list names them)", text_closest(id, ids));
}

static int take_only(struct parser *parser, const char *value)
{
    char *list = format_or_fault("%s", value), *rest = list;
    int index = 0;
    parser->only_used = true;
    while (index >= 0 && rest) {
        index = take_id(parser, strsep(&rest, ","));
        if (index >= 0)
            parser->only[index] = true;
    }
    free(list);
    return index < 0 ? -1 : 0;
}

static int take_debug(struct parser *parser, const char *value)
{
    const struct criterion *const *all;
    int index = take_id(parser, value);
    if (index < 0)
        return -1;
    rubric_all(&all);
    if (parser->options->debugged && parser->options->debugged != all[index])
        return refuse(parser, value, "is a second criterion, and one can be debugged at a time",
                      NULL);
    parser->options->debugged = all[index];
    parser->options->action = ACTION_DEBUG;
    return 0;
}

static const struct option_row rows[] = {
    {"device", 0, "auto|cpu|cuda|sim",
     "where to run (auto: cuda with two or more GPUs, else cpu;\n"
     "sim: two simulated V100s, all criteria, not official)",
     take_device, ALWAYS},
    {"sim-profile", 0, "PROFILE",
     "how the simulated GPUs are connected: v100-nvlink (default) or\nv100-pcie", take_sim_profile,
     ALWAYS},
    {"measure", 0, NULL, "time the speedups on other GPUs than V100s too; they stay blocked",
     take_measure, GRADING},
    {"section", 0, "SECTION", "grade one section: dp, pipeline or finetune (default: all)",
     take_section, GRADING},
    {"only", 0, "ID[,ID...]", "grade these criteria alone; may be repeated", take_only, GRADING},
    {"debug", 0, "ID",
     "run one criterion under gdb (or lldb), stopping in your functions;\n"
     "nothing is scored, and no report is written",
     take_debug, ALWAYS},
    {"submission", 0, "PATH",
     "a folder or a zip file with the three student files\n"
     "(default: the checkout that grade was built in)",
     take_submission, ALWAYS},
    {"output", 0, "FILE", "the report (default: artifacts/grade.json)", take_output, GRADING},
    {"timeout", 0, "SECONDS", "for each criterion, at least 1 (default: 240)", take_timeout,
     GRADING},
    {"seed", 0, "N", "repeat a run with the numbers it drew (the report names its seed)", take_seed,
     ALWAYS},
    {"color", 0, "auto|always|never", "colours (auto: on a terminal, unless NO_COLOR is set)",
     take_color, ALWAYS},
    {"sanitize", 0, "[=address|thread]",
     "find memory errors, undefined behaviour (or races) of the\n"
     "student files with the compiler's sanitizers; slower",
     take_sanitize, ALWAYS},
    {"quiet", 'q', NULL, "print the score alone", take_quiet, GRADING},
    {"list", 0, NULL, "print the criteria and their points, and grade nothing", take_list, ALWAYS},
    {"help", 'h', NULL, "print this", take_help, ALWAYS},
    {"version", 0, NULL, "print the version", take_version, ALWAYS},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct option_row *row_of(int code)
{
    for (int i = 0; i < ROWS; i++) {
        if (code == FIRST_LONG + i || (code && code == rows[i].letter))
            return &rows[i];
    }
    return NULL;
}

/* unknown_option - getopt found none for the argument: unknown, or short for several */
static int unknown_option(struct parser *parser, const char *argument)
{
    const char *names[ROWS + 1] = {NULL};
    for (int i = 0; i < ROWS; i++)
        names[i] = rows[i].name;
    char *clean = line_or_fault(argument);
    clean[strcspn(clean, "=")] = '\0';
    const char *meant = strncmp(clean, "--", 2) == 0 ? text_closest(clean + 2, names) : NULL;
    *parser->problem = meant
                           ? format_or_fault("%s: no such option; did you mean --%s?", clean, meant)
                           : format_or_fault("%s: no such option (--help names them)", clean);
    free(clean);
    return -1;
}

static int unknown_letter(struct parser *parser, char letter)
{
    char *clean = line_or_fault((char[]){letter, '\0'});
    *parser->problem = format_or_fault("-%s: no such option (--help names them)", clean);
    free(clean);
    return -1;
}

/* wrong_option - what getopt rejected. code: ':' or '?' */
static int wrong_option(struct parser *parser, int code, char **argv)
{
    const struct option_row *row = row_of(optopt);
    if (code == ':')
        *parser->problem =
            format_or_fault("--%s: needs a value, as in --%s %s", row->name, row->name, row->value);
    else if (row)
        *parser->problem = format_or_fault("--%s: takes no value", row->name);
    else if (optopt)
        return unknown_letter(parser, (char)optopt);
    else
        return unknown_option(parser, argv[optind - 1]);
    return -1;
}

static bool is_value_optional(const struct option_row *row)
{
    return row->value && row->value[0] == '[';
}

static int takes_value(const struct option_row *row)
{
    return is_value_optional(row) ? optional_argument
           : row->value           ? required_argument
                                  : no_argument;
}

static int take_arguments(struct parser *parser, int argc, char **argv)
{
    struct option longs[ROWS + 1] = {0};
    for (int i = 0; i < ROWS; i++)
        longs[i] = (struct option){rows[i].name, takes_value(&rows[i]), NULL, FIRST_LONG + i};
    opterr = 0;
    int code;
    while ((code = getopt_long(argc, argv, ":hq", longs, NULL)) != -1) {
        const struct option_row *row = row_of(code);
        if (!row)
            return wrong_option(parser, code, argv);
        parser->name = row->name;
        if (row->when == GRADING)
            parser->grading = row->name;
        if (row->take(parser, optarg) < 0)
            return -1;
    }
    if (optind == argc)
        return 0;
    char *clean = line_or_fault(argv[optind]);
    *parser->problem =
        format_or_fault("'%s': unexpected argument (to grade a folder or a zip file: "
                        "--submission PATH)",
                        clean);
    free(clean);
    return -1;
}

/* select_criteria - those of the section and of --only. A contradiction between the two is an
 * error. */
static int select_criteria(struct parser *parser)
{
    struct options *options = parser->options;
    const struct criterion *const *all;
    int count = rubric_all(&all);
    for (int i = 0; i < count; i++) {
        bool inside =
            strcmp(options->section, "all") == 0 || strcmp(options->section, all[i]->section) == 0;
        if (parser->only[i] && !inside) {
            *parser->problem = format_or_fault("--only %s: is in section %s, not in --section %s",
                                               all[i]->id, all[i]->section, options->section);
            return -1;
        }
        if (inside && (parser->only[i] || !parser->only_used))
            options->selected[options->count++] = all[i];
    }
    return 0;
}

static int check_combination(struct parser *parser)
{
    const struct options *options = parser->options;
    if (options->debugged && parser->grading) {
        *parser->problem = format_or_fault("--%s: goes with grading, not with --debug %s",
                                           parser->grading, options->debugged->id);
        return -1;
    }
    if (options->measure &&
        (strcmp(options->device, "cpu") == 0 || strcmp(options->device, "sim") == 0)) {
        *parser->problem =
            format_or_fault("--measure: times real GPUs, not --device %s", options->device);
        return -1;
    }
    if (!options->sim_profile || strcmp(options->device, "sim") == 0)
        return 0;
    *parser->problem = format_or_fault("--sim-profile %s: goes with --device sim alone, not with "
                                       "--device %s",
                                       options->sim_profile, options->device);
    return -1;
}

/* A seed that is short enough to be typed. */
static uint64_t draw_seed(void)
{
    uint32_t seed;
    if (getentropy(&seed, sizeof seed) < 0)
        fault("no random numbers: %s", strerror(errno));
    return seed;
}

int options_parse(int argc, char **argv, struct options *options, char **problem)
{
    *options = (struct options){.device = "auto",
                                .section = "all",
                                .output = "artifacts/grade.json",
                                .timeout_s = TIMEOUT_DEFAULT,
                                .color = "auto",
                                .sanitizer = "",
                                .seed = draw_seed()};
    struct parser parser = {.options = options, .problem = problem};
    if (take_arguments(&parser, argc, argv) < 0 || check_combination(&parser) < 0)
        return -1;
    return select_criteria(&parser);
}

void options_help(FILE *out)
{
    fputs("usage: grade [OPTION]...\n"
          "Grade the assignment's three C files and write a report.\n\n",
          out);
    for (int i = 0; i < ROWS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%c%s--%s%s%s", rows[i].letter ? "-" : " ",
                 rows[i].letter ? rows[i].letter : ' ', rows[i].letter ? ", " : "  ", rows[i].name,
                 is_value_optional(&rows[i]) ? "" : " ", rows[i].value ? rows[i].value : "");
        const char *help = rows[i].help, *second = strchr(help, '\n');
        fprintf(out, "  %-31s %.*s\n", left, (int)(second ? second - help : 200), help);
        if (second)
            fprintf(out, "  %-31s %s\n", "", second + 1);
    }
    fputs("\nExit status: 0 all passed, 1 something failed or timed out, 2 nothing failed but\n"
          "something needs hardware that this machine lacks, 64 wrong arguments or submission,\n"
          "70 a fault of this machine.\n",
          out);
}

void options_list(FILE *out, const struct options *options)
{
    int points = 0;
    for (int i = 0; i < options->count; i++) {
        const struct criterion *criterion = options->selected[i];
        static const char *const needs[] = {"", "; needs two GPUs", "; needs two V100 GPUs"};
        fprintf(out, "%-4s %-21s %-9s %3d  %s%s\n", criterion->problem, criterion->id,
                criterion->section, criterion->points, criterion->title, needs[criterion->needs]);
        points += criterion->points;
    }
    fprintf(out, "%-4s %-21s %-9s %3d\n", "", "", "", points);
}
