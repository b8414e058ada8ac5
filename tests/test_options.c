/* test_options.c - the command line */
#include "grading/options.h"
#include "tests/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS = 7 };

static int parse(const char *const *given, struct options *options, char **problem)
{
    char *argv[ARGUMENTS + 2] = {(char *)"grade"};
    int argc = 1;
    while (argc <= ARGUMENTS && given[argc - 1]) {
        argv[argc] = (char *)given[argc - 1];
        argc++;
    }
    *problem = NULL;
    return options_parse(argc, argv, options, problem);
}

/* Every refusal names option and value, and says what is allowed. */
static const struct {
    const char *arguments[ARGUMENTS];
    const char *said[3];
} wrong[] = {
    {{"--device", "gpu"}, {"--device 'gpu'", "auto, cpu, cuda or sim", "did you mean cuda?"}},
    {{"--device="}, {"--device ''", "auto, cpu, cuda or sim"}},
    {{"--device", "sim", "--sim-profile", "nvlink"},
     {"--sim-profile 'nvlink'", "v100-nvlink or v100-pcie"}},
    {{"--measure", "--device", "sim"}, {"--measure: times real GPUs, not --device sim"}},
    {{"--sim-profile", "v100-pcie"}, {"--sim-profile v100-pcie", "--device sim", "--device auto"}},
    {{"--measure=1"}, {"--measure", "takes no value"}},
    {{"--device"}, {"--device", "needs a value"}},
    {{"--section", "pipelin"}, {"--section 'pipelin'", "all, dp", "did you mean pipeline?"}},
    {{"--only", "gradeints"}, {"--only 'gradeints'", "--list", "did you mean gradients?"}},
    {{"--only", "lora,"}, {"--only ''", "--list"}},
    {{"--only", ""}, {"--only ''", "--list"}},
    {{"--only", "lora,adaptor"}, {"--only 'adaptor'", "did you mean adapter?"}},
    {{"--section", "dp", "--only", "lora"}, {"--only lora", "section finetune", "--section dp"}},
    {{"--only", "lora", "--section", "dp"}, {"--only lora", "section finetune", "--section dp"}},
    {{"--timeout", "0"}, {"--timeout '0'", "from 1 to"}},
    {{"--timeout", "0.999"}, {"--timeout '0.999'", "from 1 to"}},
    {{"--timeout", "-5"}, {"--timeout '-5'", "from 1 to"}},
    {{"--timeout", "inf"}, {"--timeout 'inf'", "from 1 to"}},
    {{"--timeout", "nan"}, {"--timeout 'nan'", "from 1 to"}},
    {{"--timeout", "1e400"}, {"--timeout '1e400'", "from 1 to"}},
    {{"--timeout", "10s"}, {"--timeout '10s'", "number of seconds"}},
    {{"--timeout", ""}, {"--timeout ''", "number of seconds"}},
    {{"--seed", "-1"}, {"--seed '-1'", "whole number"}},
    {{"--seed", "1.5"}, {"--seed '1.5'", "whole number"}},
    {{"--seed", "99999999999999999999"}, {"--seed '99999999999999999999'", "whole number"}},
    {{"--seed", ""}, {"--seed ''", "whole number"}},
    {{"--color", "yes"}, {"--color 'yes'", "auto, always or never"}},
    {{"--submission", ""}, {"--submission ''", "path"}},
    {{"--output", ""}, {"--output ''", "path"}},
    {{"--quiet=1"}, {"--quiet", "takes no value"}},
    {{"--sanitize=adress"}, {"--sanitize 'adress'", "address or thread", "mean address?"}},
    {{"--sanitize="}, {"--sanitize ''", "address or thread"}},
    {{"--sanitize", "thread"}, {"'thread'", "unexpected"}},
    {{"--devise", "cpu"}, {"--devise", "did you mean --device?"}},
    {{"--devise=cpu"}, {"--devise:", "did you mean --device?"}},
    {{"--zzzzzzzzz"}, {"--zzzzzzzzz", "--help"}},
    {{"-z"}, {"-z", "--help"}},
    {{"folder"}, {"'folder'", "--submission"}},
    {{"--quiet", "--", "--list"}, {"'--list'", "unexpected"}},
    {{"--device", "\x1B[31mcpu"}, {"--device 'cpu'"}},
};

START_TEST(test_wrong)
{
    struct options options;
    char *problem;
    ck_assert_int_eq(parse(wrong[_i].arguments, &options, &problem), -1);
    for (int i = 0; i < 3 && wrong[_i].said[i]; i++)
        ck_assert_msg(strstr(problem, wrong[_i].said[i]), "'%s' is not in: %s", wrong[_i].said[i],
                      problem);
    ck_assert_ptr_null(strchr(problem, '\n'));
    ck_assert_ptr_null(strchr(problem, '\x1B'));
    free(problem);
}
END_TEST

START_TEST(test_defaults)
{
    struct options options;
    char *problem;
    ck_assert_int_eq(parse((const char *const[]){NULL}, &options, &problem), 0);
    ck_assert_int_eq(options.action, ACTION_GRADE);
    ck_assert_str_eq(options.device, "auto");
    ck_assert_str_eq(options.section, "all");
    ck_assert_ptr_null(options.submission);
    ck_assert_str_eq(options.output, "artifacts/grade.json");
    ck_assert_double_eq(options.timeout_s, 240);
    ck_assert_str_eq(options.color, "auto");
    ck_assert(!options.quiet);
    ck_assert_str_eq(options.sanitizer, "");
    ck_assert_int_eq(options.count, 13);
}
END_TEST

START_TEST(test_given)
{
    static const char *const arguments[] = {"--device=cpu",
                                            "--submission=a b",
                                            "--output=x.json",
                                            "--timeout=1.5",
                                            "--seed=17",
                                            "-q",
                                            NULL};
    struct options options;
    char *problem;
    ck_assert_int_eq(parse(arguments, &options, &problem), 0);
    ck_assert_str_eq(options.device, "cpu");
    ck_assert_str_eq(options.submission, "a b");
    ck_assert_str_eq(options.output, "x.json");
    ck_assert_double_eq(options.timeout_s, 1.5);
    ck_assert_uint_eq(options.seed, 17);
    ck_assert(options.quiet);
}
END_TEST

static const struct {
    const char *argument, *sanitizer;
} sanitizers[] = {
    {"--sanitize", "address"}, {"--sanitize=address", "address"}, {"--sanitize=thread", "thread"}};

START_TEST(test_sanitizer)
{
    struct options options;
    char *problem;
    const char *const arguments[] = {sanitizers[_i].argument, "--quiet", NULL};
    ck_assert_int_eq(parse(arguments, &options, &problem), 0);
    ck_assert_str_eq(options.sanitizer, sanitizers[_i].sanitizer);
}
END_TEST

START_TEST(test_seeds_differ)
{
    struct options a, b, c;
    char *problem;
    parse((const char *const[]){NULL}, &a, &problem);
    parse((const char *const[]){NULL}, &b, &problem);
    parse((const char *const[]){NULL}, &c, &problem);
    ck_assert(a.seed != b.seed || b.seed != c.seed);
}
END_TEST

/* Which criteria are selected, in the rubric's order whatever the order given. */
static const struct {
    const char *arguments[ARGUMENTS];
    const char *selected;
} selections[] = {
    {{"--section", "dp"}, "partitions gradients updates dp_performance "},
    {{"--section", "pipeline"}, "schedule forward backward pipeline_performance "},
    {{"--section", "finetune"}, "config zero_runtime lora zero_updates adapter "},
    {{"--only", "lora"}, "lora "},
    {{"--only", "lora,partitions", "--only", "forward"}, "partitions forward lora "},
    {{"--only", "lora", "--only", "lora,lora"}, "lora "},
    {{"--section", "pipeline", "--only", "forward"}, "forward "},
    {{"--section", "dp", "--section", "all", "--only", "adapter"}, "adapter "},
};

START_TEST(test_selection)
{
    struct options options;
    char *problem, selected[500] = "";
    ck_assert_int_eq(parse(selections[_i].arguments, &options, &problem), 0);
    for (int i = 0; i < options.count; i++) {
        strcat(selected, options.selected[i]->id);
        strcat(selected, " ");
    }
    ck_assert_str_eq(selected, selections[_i].selected);
}
END_TEST

static const struct {
    const char *argument;
    enum action action;
} actions[] = {{"--list", ACTION_LIST},
               {"--help", ACTION_HELP},
               {"-h", ACTION_HELP},
               {"--version", ACTION_VERSION}};

START_TEST(test_action)
{
    struct options options;
    char *problem;
    const char *const arguments[] = {actions[_i].argument, NULL};
    ck_assert_int_eq(parse(arguments, &options, &problem), 0);
    ck_assert_int_eq(options.action, actions[_i].action);
}
END_TEST

START_TEST(test_debug)
{
    struct options options;
    char *problem;
    const char *const arguments[] = {"--debug", "lora", "--seed=3", "--debug=lora", NULL};
    ck_assert_int_eq(parse(arguments, &options, &problem), 0);
    ck_assert_int_eq(options.action, ACTION_DEBUG);
    ck_assert_str_eq(options.debugged->id, "lora");
}
END_TEST

/* spec.md's rubric, as registered by the criteria's files. */
START_TEST(test_rubric)
{
    static const struct {
        const char *problem, *id, *section;
        int points;
        enum needs needs;
    } expected[] = {
        {"1.1", "partitions", "dp", 7, NEEDS_NOTHING},
        {"1.2", "gradients", "dp", 7, NEEDS_NOTHING},
        {"1.3", "updates", "dp", 7, NEEDS_NOTHING},
        {"1.4", "dp_performance", "dp", 14, NEEDS_TWO_V100S},
        {"2.1", "schedule", "pipeline", 5, NEEDS_NOTHING},
        {"2.2", "forward", "pipeline", 6, NEEDS_NOTHING},
        {"2.2", "backward", "pipeline", 12, NEEDS_NOTHING},
        {"2.3", "pipeline_performance", "pipeline", 12, NEEDS_TWO_V100S},
        {"3.1", "config", "finetune", 2, NEEDS_NOTHING},
        {"3.1", "zero_runtime", "finetune", 4, NEEDS_TWO_GPUS},
        {"3.2", "lora", "finetune", 6, NEEDS_NOTHING},
        {"3.3", "zero_updates", "finetune", 12, NEEDS_TWO_GPUS},
        {"3.4", "adapter", "finetune", 6, NEEDS_NOTHING},
    };
    const struct criterion *const *all;
    ck_assert_int_eq(rubric_all(&all), (int)(sizeof expected / sizeof *expected));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ck_assert_str_eq(all[i]->id, expected[i].id);
        ck_assert_str_eq(all[i]->problem, expected[i].problem);
        ck_assert_str_eq(all[i]->section, expected[i].section);
        ck_assert_int_eq(all[i]->points, expected[i].points);
        ck_assert_int_eq(all[i]->needs, expected[i].needs);
        ck_assert_ptr_eq(rubric_find(expected[i].id), all[i]);
    }
    ck_assert_ptr_null(rubric_find("nothing"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *test = tcase_create("options");
    tcase_set_timeout(test, 60);
    tcase_add_test(test, test_rubric);
    tcase_add_loop_test(test, test_wrong, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(test, test_defaults);
    tcase_add_test(test, test_given);
    tcase_add_test(test, test_seeds_differ);
    tcase_add_loop_test(test, test_sanitizer, 0, sizeof sanitizers / sizeof *sanitizers);
    tcase_add_loop_test(test, test_selection, 0, sizeof selections / sizeof *selections);
    tcase_add_test(test, test_debug);
    tcase_add_loop_test(test, test_action, 0, sizeof actions / sizeof *actions);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
