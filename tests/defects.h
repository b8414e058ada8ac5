#ifndef TESTS_DEFECTS_H
#define TESTS_DEFECTS_H
/* defects.h - changes to the reference submission, and which criteria must fail for each.
 *
 * A variant is the reference with one or two pieces of text replaced. Those that fail nothing are
 * other right solutions. */

struct edit {
    const char *from, *to; /* from: occurs once in the file. NULL: no edit */
};
struct variant {
    const char *name;
    const char *fails; /* ids, separated by spaces */
    struct edit edits[3];
};
#endif
