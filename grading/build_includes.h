#ifndef GRADING_BUILD_INCLUDES_H
#define GRADING_BUILD_INCLUDES_H
/* build_includes.h - which files the compiler read for a student's file.
 *
 * With -H, gcc and clang print a line for each file that is included, even if there are errors
 * later: dots for the depth, and the path. */

/* includes_take - what the compiler said, without those lines
 *
 * A file that a message points into, without its being in the list, counts as well: #line and the
 * assembler's .include can name any, and the compiler then shows lines of it.
 *
 * folder: the build's, where relative paths begin; home: the checkout
 * foreign: set to the first file (as the compiler named it; in the scope) that is no header of the
 *          runtime, the assignment or the system and not in the folder; NULL if there is none
 * owns: the caller (free) */
char *includes_take(const char *said, const char *folder, const char *home, const char **foreign);
#endif
