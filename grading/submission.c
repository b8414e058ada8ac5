#include "grading/submission.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grading/fault.h"
#include "grading/submission_internal.h"

const char *const submission_names[SUBMISSION_FILES] = {"data_parallel.c", "pipeline.c",
                                                        "finetune.c"};

int submission_refuse(char **problem, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = vformat_or_fault(format, arguments);
    va_end(arguments);
    *problem = line_or_fault(text);
    free(text);
    return -1;
}

static void hash_bytes(const char *bytes, size_t n, char hex[65])
{
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&context);
    sha256_update(&context, n, (const uint8_t *)bytes);
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* Without byte order mark, and with LF for CR LF. returns: the new size */
static size_t normalise(char *text, const char *bytes, size_t n)
{
    size_t size = 0, start = n >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    for (size_t i = start; i < n; i++) {
        if (bytes[i] != '\r' || i + 1 == n || bytes[i + 1] != '\n')
            text[size++] = bytes[i];
    }
    return size;
}

static bool is_utf16(const char *bytes, size_t n)
{
    return n >= 2 && (memcmp(bytes, "\xFF\xFE", 2) == 0 || memcmp(bytes, "\xFE\xFF", 2) == 0);
}

int submission_accept(struct source *source, const char *shown, const char *bytes, size_t n,
                      char **problem)
{
    if (n > SUBMISSION_FILE_MAX)
        return submission_refuse(problem, "%s: is larger than 1 MiB", shown);
    const char *nul = memchr(bytes, '\0', n);
    if (nul)
        return submission_refuse(problem, "%s: is no C source text (byte %td is NUL)%s", shown,
                                 nul - bytes,
                                 is_utf16(bytes, n) ? ": save it as UTF-8, not UTF-16" : "");
    source->text = alloc_or_fault(n + 1);
    source->size = normalise(source->text, bytes, n);
    if (strspn(source->text, " \t\r\n\f\v") == source->size)
        return submission_refuse(problem, "%s: is empty", shown);
    hash_bytes(bytes, n, source->sha256);
    return 0;
}

int submission_complete(const struct submission *submission, const char *where, const char *hint,
                        char **problem)
{
    char missing[128] = "";
    for (int i = 0; i < SUBMISSION_FILES; i++) {
        if (submission->files[i].text)
            continue;
        strcat(missing, *missing ? ", " : "");
        strcat(missing, submission_names[i]);
    }
    return *missing ? submission_refuse(problem, "%s: missing: %s%s", where, missing, hint) : 0;
}

static const char *kind_name(mode_t mode)
{
    return S_ISDIR(mode)                    ? "a folder"
           : S_ISFIFO(mode)                 ? "a named pipe"
           : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
           : S_ISSOCK(mode)                 ? "a socket"
           : S_ISLNK(mode)                  ? "a symbolic link"
                                            : "a special file";
}

/* Up to `most` bytes; fewer at the end of the file. returns: -1 with errno set */
static ssize_t read_up_to(int fd, char *bytes, size_t most)
{
    size_t n = 0;
    while (n < most) {
        ssize_t got = read(fd, bytes + n, most - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

/* The file is open: what it is decides, not what its name was a moment ago. */
static int read_open_file(int fd, const char *shown, struct source *source, char **problem)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return submission_refuse(problem, "%s: %s", shown, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return submission_refuse(problem, "%s: is %s, not a file", shown, kind_name(info.st_mode));
    char *bytes = alloc_or_fault(SUBMISSION_FILE_MAX + 1);
    ssize_t n = read_up_to(fd, bytes, SUBMISSION_FILE_MAX + 1);
    int result = n < 0 ? submission_refuse(problem, "%s: %s", shown, strerror(errno))
                       : submission_accept(source, shown, bytes, (size_t)n, problem);
    free(bytes);
    return result;
}

/* A file that is not there is no error yet: its text stays NULL. */
static int read_file_at(int folder, const char *folder_shown, const char *name, bool follow,
                        struct source *source, char **problem)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && errno == ELOOP && !follow)
        return submission_refuse(problem, "%s/%s: is a symbolic link, not a file", folder_shown,
                                 name);
    if (fd < 0)
        return submission_refuse(problem, "%s/%s: %s", folder_shown, name, strerror(errno));
    char *shown = format_or_fault("%s/%s", folder_shown, name);
    int result = read_open_file(fd, shown, source, problem);
    free(shown);
    close(fd);
    return result;
}

static int read_files_in(int folder, const char *shown, bool follow, struct submission *submission,
                         char **problem)
{
    for (int i = 0; i < SUBMISSION_FILES; i++) {
        if (read_file_at(folder, shown, submission_names[i], follow, &submission->files[i],
                         problem) < 0)
            return -1;
    }
    return submission_complete(submission, shown, "", problem);
}

/* The files are in assignment/ if there is such a folder. */
static int read_folder(int folder, const char *path, bool follow, struct submission *submission,
                       char **problem)
{
    int length = (int)strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    int inner = openat(folder, "assignment",
                       O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
    if (inner < 0 && errno != ENOENT)
        return submission_refuse(problem, "%.*s/assignment: %s", length, path,
                                 errno == ELOOP || errno == ENOTDIR ? "is not a folder"
                                                                    : strerror(errno));
    char *shown = format_or_fault("%.*s%s", length, path, inner < 0 ? "" : "/assignment");
    int result = read_files_in(inner < 0 ? folder : inner, shown, follow, submission, problem);
    free(shown);
    if (inner >= 0)
        close(inner);
    return result;
}

static int read_opened(int fd, const char *path, bool follow, struct submission *submission,
                       char **problem)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return submission_refuse(problem, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return read_folder(fd, path, follow, submission, problem);
    if (!S_ISREG(info.st_mode))
        return submission_refuse(problem, "%s: is %s, neither a folder nor a zip file", path,
                                 kind_name(info.st_mode));
    return submission_read_zip(dup(fd), path, submission, problem);
}

int submission_read(const char *path, const char *home, struct submission *submission,
                    char **problem)
{
    *submission = (struct submission){0};
    const char *from = path ? path : home;
    int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return submission_refuse(problem, "%s: no such folder or zip file", from);
    if (fd < 0)
        return submission_refuse(problem, "%s: %s", from, strerror(errno));
    int result = read_opened(fd, from, !path, submission, problem);
    close(fd);
    if (result < 0)
        submission_free(submission);
    return result;
}

static void write_file(const char *path, const struct source *source)
{
    FILE *file = fopen(path, "wx");
    if (!file || fwrite(source->text, 1, source->size, file) != source->size || fclose(file) != 0)
        fault("cannot write %s: %s", path, strerror(errno));
}

void submission_write(const struct submission *submission, const char *folder,
                      char *paths[SUBMISSION_FILES])
{
    char *inner = format_or_fault("%s/assignment", folder);
    if (mkdir(inner, 0700) < 0)
        fault("cannot create %s: %s", inner, strerror(errno));
    for (int i = 0; i < SUBMISSION_FILES; i++) {
        paths[i] = format_or_fault("%s/%s", inner, submission_names[i]);
        write_file(paths[i], &submission->files[i]);
    }
    free(inner);
}

/* same_file - whether both paths lead to one file that exists */
static bool same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static bool folder_includes(const char *folder, const char *file)
{
    bool found = false;
    for (int i = 0; i < SUBMISSION_FILES && !found; i++) {
        char *source = format_or_fault("%s/%s", folder, submission_names[i]);
        found = same_file(source, file);
        free(source);
    }
    return found;
}

bool submission_includes(const char *path, const char *home, const char *file)
{
    const char *from = path ? path : home;
    char *inner = format_or_fault("%s/assignment", from);
    bool found =
        same_file(from, file) || folder_includes(from, file) || folder_includes(inner, file);
    free(inner);
    return found;
}

void submission_free(struct submission *submission)
{
    for (int i = 0; i < SUBMISSION_FILES; i++) {
        free(submission->files[i].text);
        submission->files[i].text = NULL;
    }
}
