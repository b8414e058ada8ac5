/* fuzz_zip.c - a submission in a zip file: three texts, or one line that says what is wrong */
#define _GNU_SOURCE
#include "grading/submission_internal.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(zip)
{
    struct submission submission = {0};
    char *problem = NULL;
    int result = submission_read_zip(fuzz_file(bytes, n), "s.zip", &submission, &problem);
    for (int i = 0; result == 0 && i < SUBMISSION_FILES; i++) {
        const struct source *source = &submission.files[i];
        expect(source->text && source->size > 0 && source->size <= SUBMISSION_FILE_MAX);
        expect(strlen(source->text) == source->size && strlen(source->sha256) == 64);
    }
    if (result < 0)
        expect_line(problem);
    free(problem);
    submission_free(&submission);
    return 0;
}
