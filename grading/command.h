#ifndef GRADING_COMMAND_H
#define GRADING_COMMAND_H
/* command.h - the command line of a program to start, word by word. */

enum { COMMAND_WORDS = 48 };

/* Words are borrowed; the list ends with NULL. Begins as {0}. */
struct command {
    const char *at[COMMAND_WORDS + 1];
    int n;
};

/* command_add - one word; command_add_words - those of a line, without any quoting, in the scope
 * command_add_compiler - what compiles a submission: the words of CC, as in CC="ccache gcc", or cc
 * errors: end the command as a fault */
void command_add(struct command *command, const char *word);
void command_add_words(struct command *command, const char *line);
void command_add_compiler(struct command *command);

/* command_find - the path of a program in one of PATH's folders, or NULL. owns: the caller (free)
 */
char *command_find(const char *program);
#endif
