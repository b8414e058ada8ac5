/* submission_zip.c - a submission inside a zip file.
 *
 * Nothing is extracted. The names of all entries are looked at, the three wanted ones are read into
 * memory, and no name from the archive is ever used as a path. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "grading/fault.h"
#include "grading/submission_internal.h"
#include "runtime/words.h"

enum { ARCHIVE_MAX_MIB = 64, ENTRIES_MAX = 20000 };
enum { MISNAMED = 4 }; /* letters in which a file's name may differ: "pipeline.c.txt" */

/* A member that was found: its place, its name, and how much of the name is its folder. */
struct member {
    zip_int64_t index;
    char *name;
    size_t folder_length;
};

/* skip_folder - what follows the first folder of a name, or NULL if it has none that can be meant
 */
static const char *skip_folder(const char *name)
{
    const char *slash = strchr(name, '/');
    size_t length = slash ? (size_t)(slash - name) : 0;
    bool special = length == 0 || strncmp(name, "..", length) == 0 ||
                   (length == 8 && strncmp(name, "__MACOSX", 8) == 0);
    return special ? NULL : slash + 1;
}

/* base_of - the file's own name, if the entry is in a place where a submission's files may be:
 * at the top or in assignment/, perhaps inside one more folder. Otherwise NULL. */
static const char *base_of(const char *name)
{
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    const char *first = skip_folder(name);
    if (!strchr(name, '/'))
        return name;
    if (!first || !strchr(first, '/'))
        return first;
    const char *second = skip_folder(first);
    bool nested = second && !strchr(second, '/') && strncmp(first, "assignment/", 11) == 0;
    return nested ? second : NULL;
}

static int file_index(const char *base)
{
    for (int i = 0; base && i < SUBMISSION_FILES; i++) {
        if (strcmp(base, submission_names[i]) == 0)
            return i;
    }
    return -1;
}

/* An entry's name, with the slashes that some programs for Windows write turned round. */
static char *entry_name(zip_t *archive, zip_int64_t index)
{
    const char *raw = zip_get_name(archive, (zip_uint64_t)index, ZIP_FL_ENC_RAW);
    char *name = format_or_fault("%s", raw ? raw : "");
    for (char *c = name; *c; c++) {
        if (*c == '\\')
            *c = '/';
    }
    return name;
}

/* find_members - which entries are the three files. Two that claim to be the same file, or files
 * from different folders, leave open what was meant. */
static int find_members(zip_t *archive, const char *path, struct member members[], char **problem)
{
    const struct member *any = NULL;
    zip_int64_t count = zip_get_num_entries(archive, 0);
    if (count > ENTRIES_MAX)
        return submission_refuse(problem, "%s: has more than %d entries", path, ENTRIES_MAX);
    for (zip_int64_t index = 0; index < count; index++) {
        char *name = entry_name(archive, index);
        const char *base = base_of(name);
        int file = file_index(base);
        if (file < 0) {
            free(name);
            continue;
        }
        struct member found = {index, name, (size_t)(base - name)};
        if (members[file].name) {
            submission_refuse(problem, "%s: holds %s twice: %s and %s", path, base,
                              members[file].name, name);
            free(name);
            return -1;
        }
        members[file] = found;
        if (any && (any->folder_length != found.folder_length ||
                    strncmp(any->name, name, found.folder_length) != 0))
            return submission_refuse(problem, "%s: holds files in different folders: %s and %s",
                                     path, any->name, name);
        any = &members[file];
    }
    return 0;
}

static bool is_link(zip_t *archive, zip_int64_t index)
{
    zip_uint8_t system;
    zip_uint32_t attributes;
    if (zip_file_get_external_attributes(archive, (zip_uint64_t)index, 0, &system, &attributes) < 0)
        return false;
    return system == ZIP_OPSYS_UNIX && S_ISLNK(attributes >> 16);
}

/* Up to `most` bytes of a member. returns: -1 if they cannot be had, or their checksum is wrong */
static zip_int64_t read_member(zip_t *archive, zip_int64_t index, char *bytes, zip_uint64_t most)
{
    zip_file_t *file = zip_fopen_index(archive, (zip_uint64_t)index, 0);
    if (!file)
        return -1;
    zip_uint64_t n = 0;
    zip_int64_t got = 1;
    while (n < most && (got = zip_fread(file, bytes + n, most - n)) > 0)
        n += (zip_uint64_t)got;
    zip_fclose(file);
    return got < 0 ? -1 : (zip_int64_t)n;
}

/* Why a member could not be had. */
static const char *unreadable(zip_t *archive)
{
    return zip_error_code_zip(zip_get_error(archive)) == ZIP_ER_COMPNOTSUPP
               ? "is compressed by a method that cannot be read here: make an ordinary zip file"
               : "is damaged";
}

static int accept_member(zip_t *archive, const char *path, const struct member *member,
                         struct source *source, char **problem)
{
    zip_stat_t info;
    if (zip_stat_index(archive, (zip_uint64_t)member->index, 0, &info) < 0)
        return submission_refuse(problem, "%s: %s: %s", path, member->name, zip_strerror(archive));
    if ((info.valid & ZIP_STAT_ENCRYPTION_METHOD) && info.encryption_method != ZIP_EM_NONE)
        return submission_refuse(problem, "%s: %s: is encrypted", path, member->name);
    if (is_link(archive, member->index))
        return submission_refuse(problem, "%s: %s: is a symbolic link, not a file", path,
                                 member->name);
    char *bytes = alloc_or_fault(SUBMISSION_FILE_MAX + 1);
    char *shown = format_or_fault("%s: %s", path, member->name);
    zip_int64_t n = read_member(archive, member->index, bytes, SUBMISSION_FILE_MAX + 1);
    int result = n < 0 ? submission_refuse(problem, "%s: %s", shown, unreadable(archive))
                       : submission_accept(source, shown, bytes, (size_t)n, problem);
    free(shown);
    free(bytes);
    return result;
}

/* meant_as - which missing file an entry was perhaps meant as, or NULL */
static const char *meant_as(const char *last, const struct submission *submission)
{
    const char *names[SUBMISSION_FILES + 1] = {0};
    memcpy(names, submission_names, sizeof submission_names);
    const char *meant = *last == '.' ? NULL : word_closest(last, names, MISNAMED);
    return meant && !submission->files[file_index(meant)].text ? meant : NULL;
}

/* near_miss - about the first entry that may be one of the missing files in a wrong place or under
 * a wrong name; "" if there is none. owns: the caller (free) */
static char *near_miss(zip_t *archive, const struct submission *submission)
{
    zip_int64_t count = zip_get_num_entries(archive, 0);
    for (zip_int64_t index = 0; index < count; index++) {
        char *name = entry_name(archive, index), *hint = NULL;
        const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
        const char *meant = meant_as(last, submission);
        if (meant && strcmp(last, meant) == 0)
            hint = format_or_fault(" (it holds %s: only one folder may be around the files or "
                                   "around assignment/)",
                                   name);
        else if (meant)
            hint = format_or_fault(" (it holds %s, whose name must be %s)", name, meant);
        free(name);
        if (hint)
            return hint;
    }
    return format_or_fault("%s", "");
}

static int check_complete(zip_t *archive, const char *path, const struct submission *submission,
                          char **problem)
{
    char *hint = near_miss(archive, submission);
    int result = submission_complete(submission, path, hint, problem);
    free(hint);
    return result;
}

static int read_members(zip_t *archive, const char *path, struct submission *submission,
                        char **problem)
{
    struct member members[SUBMISSION_FILES] = {0};
    int result = find_members(archive, path, members, problem);
    for (int i = 0; result == 0 && i < SUBMISSION_FILES; i++) {
        if (members[i].name)
            result = accept_member(archive, path, &members[i], &submission->files[i], problem);
    }
    for (int i = 0; i < SUBMISSION_FILES; i++)
        free(members[i].name);
    return result < 0 ? result : check_complete(archive, path, submission, problem);
}

/* no_archive - what a file is that is no archive: an upload that broke off, perhaps */
static const char *no_archive(int fd)
{
    char start[2];
    ssize_t n = pread(fd, start, sizeof start, 0);
    return n == 0                                  ? "empty"
           : n == 2 && memcmp(start, "PK", 2) == 0 ? "damaged: a zip file that ends too early"
                                                   : "neither a folder nor a zip file";
}

int submission_read_zip(int fd, const char *path, struct submission *submission, char **problem)
{
    int code;
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_size > ((off_t)ARCHIVE_MAX_MIB << 20)) {
        close(fd);
        return submission_refuse(problem, "%s: is larger than %d MiB", path, ARCHIVE_MAX_MIB);
    }
    zip_t *archive = zip_fdopen(fd, 0, &code);
    if (!archive) {
        int result = submission_refuse(problem, "%s: is %s", path, no_archive(fd));
        close(fd);
        return result;
    }
    int result = read_members(archive, path, submission, problem);
    zip_discard(archive);
    return result;
}
