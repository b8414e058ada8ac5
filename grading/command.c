#include "grading/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grading/fault.h"
#include "runtime/scope.h"

void command_add(struct command *command, const char *word)
{
    if (command->n == COMMAND_WORDS)
        fault("the command line of %s has more than %d words", command->at[0], COMMAND_WORDS);
    command->at[command->n++] = word;
}

void command_add_words(struct command *command, const char *line)
{
    char *rest = scope_printf("%s", line), *word;
    while ((word = strsep(&rest, " \t\n")))
        if (*word)
            command_add(command, word);
}

void command_add_compiler(struct command *command)
{
    const char *compiler = getenv("CC");
    command_add_words(command, compiler ? compiler : "");
    if (command->n == 0)
        command_add(command, "cc");
}

char *command_find(const char *program)
{
    char *path = NULL, *folders = format_or_fault("%s", getenv("PATH") ? getenv("PATH") : "");
    for (char *rest = folders, *folder; !path && (folder = strsep(&rest, ":"));) {
        char *candidate = format_or_fault("%s/%s", folder, program);
        if (access(candidate, X_OK) == 0)
            path = candidate;
        else
            free(candidate);
    }
    free(folders);
    return path;
}
