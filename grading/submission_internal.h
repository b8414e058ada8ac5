#ifndef GRADING_SUBMISSION_INTERNAL_H
#define GRADING_SUBMISSION_INTERNAL_H
/* submission_internal.h - what reading from folders and from zip files share. */
#include "grading/submission.h"

/* submission_refuse - set *problem from a printf format, cleaned for a terminal. returns: -1 */
int submission_refuse(char **problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* submission_accept - check a file's bytes and keep them
 * bytes: SUBMISSION_FILE_MAX + 1 bytes if the file is larger; not changed
 * shown: the file's name for messages
 * errors: -1, with *problem, if it is empty, too large or not text */
int submission_accept(struct source *source, const char *shown, const char *bytes, size_t n,
                      char **problem);

/* submission_complete - refuse, naming `where` and the files that have no text yet, if there are
 * any. hint: what more to say then */
int submission_complete(const struct submission *submission, const char *where, const char *hint,
                        char **problem);

/* submission_read_zip - read the files from the zip file that is open as fd (taken over)
 * errors: -1, with *problem; what was read until then stays in the submission */
int submission_read_zip(int fd, const char *path, struct submission *submission, char **problem);
#endif
