#ifndef TESTS_BYTES_H
#define TESTS_BYTES_H
/* bytes.h - whole files as bytes, in the folder of temporary.h. */
#include <dirent.h>
#include <stdint.h>

#include "runtime/scope.h"
#include "tests/temporary.h"

struct bytes {
    size_t n;
    uint8_t *at;
};

/* bytes_of_file - owns: borrowed from the scope */
static inline struct bytes bytes_of_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    fseek(file, 0, SEEK_END);
    struct bytes bytes = {.n = (size_t)ftell(file)};
    bytes.at = scope_alloc(bytes.n);
    rewind(file);
    ck_assert_uint_eq(fread(bytes.at, 1, bytes.n, file), bytes.n);
    fclose(file);
    return bytes;
}

/* temporary_count - how many files the folder has */
static inline int temporary_count(void)
{
    int count = -2; /* "." and ".." */
    DIR *folder = opendir(temporary);
    ck_assert_ptr_nonnull(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}
#endif
