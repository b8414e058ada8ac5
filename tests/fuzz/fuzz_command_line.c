/* fuzz_command_line.c - arguments, each ended by NUL */
#define _GNU_SOURCE
#include <getopt.h>

#include "grading/options.h"
#include "tests/fuzz/fuzz.h"

enum { ARGUMENTS = 32 };

/* Cut `text` into arguments. returns: how many, with argv[0] */
static int split(char *text, size_t n, char *argv[ARGUMENTS + 2])
{
    static char name[] = "grade";
    int argc = 0;
    argv[argc++] = name;
    for (char *at = text; at < text + n && argc <= ARGUMENTS; at += strlen(at) + 1)
        argv[argc++] = at;
    argv[argc] = NULL;
    return argc;
}

FUZZ_TARGET(command_line)
{
    char *argv[ARGUMENTS + 2], *problem = NULL;
    char *text = calloc(1, n + 1);
    expect(text);
    memcpy(text, bytes, n);
    struct options options;
    int argc = split(text, n, argv);
    optind = 0; /* getopt begins anew */
    int result = options_parse(argc, argv, &options, &problem);
    if (result < 0)
        expect_line(problem);
    else
        expect(!problem && options.count >= 0 && options.count <= RUBRIC_MAX &&
               options.timeout_s >= 1 && *options.output);
    free(problem);
    free(text);
    return 0;
}
