#ifndef GRADING_SUBMISSION_H
#define GRADING_SUBMISSION_H
/* submission.h - the three student files, read once from a folder or a zip file, checked, hashed.
 *
 * Nothing else of a submission is ever read, and nothing of it is written anywhere but into the
 * run's private folder. */
#include <stdbool.h>
#include <stddef.h>

enum { SUBMISSION_FILES = 3, SUBMISSION_FILE_MAX = 1 << 20 };

/* submission_names - "data_parallel.c", "pipeline.c", "finetune.c" */
extern const char *const submission_names[SUBMISSION_FILES];

struct submission {
    struct source {
        char *text; /* as it is compiled: without byte order mark, lines ended by LF */
        size_t size;
        char sha256[65]; /* of the bytes as submitted */
    } files[SUBMISSION_FILES];
};

/* submission_read - read the files of the submission at `path`: a folder holding assignment/ or the
 * files themselves, or a zip file of either, perhaps inside one more folder. NULL: those of the
 * checkout at `home`, which is its owner's own, so its files may be symbolic links.
 * errors: -1, with one line in *problem that names what is wrong with which file (owns: the caller)
 */
int submission_read(const char *path, const char *home, struct submission *submission,
                    char **problem);

/* submission_includes - whether `file` is the submission at `path`, or one of the files in it that
 * submission_read reads; `path` and `home` as there */
bool submission_includes(const char *path, const char *home, const char *file);

/* submission_write - put the files into a new folder assignment/ inside `folder`
 * paths: set to where they are (owns: the caller). errors: ends the command as a fault */
void submission_write(const struct submission *submission, const char *folder,
                      char *paths[SUBMISSION_FILES]);

void submission_free(struct submission *submission);
#endif
