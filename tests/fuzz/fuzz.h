#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H
/* fuzz.h - what the fuzz targets share. The including file defines _GNU_SOURCE first.
 *
 * tests/fuzz/fuzz_NAME.c defines one target, FUZZ_TARGET(NAME), which feeds bytes to a reader of
 * untrusted input and checks what the reader promises. `make fuzz` links each to libFuzzer;
 * tests/test_corpus.c links all of them and replays tests/fuzz/corpus/NAME/. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "grading/text.h"

/* FUZZ_TARGET - begin the definition of a target: FUZZ_TARGET(pt) { ... bytes, n ... return 0; } */
#ifdef FUZZING
#define FUZZ_FUNCTION(name) LLVMFuzzerTestOneInput
#else
#define FUZZ_FUNCTION(name) fuzz_##name
#endif
#define FUZZ_TARGET(name)                                                                          \
    int FUZZ_FUNCTION(name)(const uint8_t *bytes, size_t n);                                       \
    int FUZZ_FUNCTION(name)(const uint8_t *bytes, size_t n)

/* expect - a promise of the reader; a broken one is a crash, in every build */
#define expect(promise)                                                                            \
    do {                                                                                           \
        if (!(promise)) {                                                                          \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #promise);                  \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* fuzz_file - a file with these bytes, open at its beginning. owns: the caller (close) */
static inline int fuzz_file(const uint8_t *bytes, size_t n)
{
#ifdef __linux__
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
#else
    FILE *file = tmpfile();
    int fd = file ? dup(fileno(file)) : -1;
    if (file)
        fclose(file);
#endif
    expect(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

/* expect_clean - text that is fit for a terminal */
static inline void expect_clean(const char *text)
{
    char *clean = text_clean(text, strlen(text));
    expect(clean && strcmp(clean, text) == 0);
    free(clean);
}

/* expect_line - a message: one line, not empty, fit for a terminal */
static inline void expect_line(const char *text)
{
    expect(text && *text && !strchr(text, '\n'));
    expect_clean(text);
}
#endif
