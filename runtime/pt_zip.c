#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "runtime/error.h"
#include "runtime/pt_internal.h"
#include "runtime/scope.h"

/* ---- reading ---- */

/* raise_code - raise what libzip's error code says. returns: -1 */
static int raise_code(const struct error_type *type, const char *what, int code)
{
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    error_set(type, __FILE__, __LINE__, "%s: %s", what, zip_error_strerror(&error));
    zip_error_fini(&error);
    return -1;
}

/* As torch does, take the folder of the first entry for that of all. */
static int look_inside(struct pt_zip *zip)
{
    const zip_int64_t count = zip_get_num_entries(zip->zip, 0);
    const char *first = count > 0 ? zip_get_name(zip->zip, 0, ZIP_FL_ENC_RAW) : NULL;
    const char *slash = first ? strchr(first, '/') : NULL;
    if (!slash)
        return raise_error(ValueError, "the archive holds no folder of tensors");
    zip->unclaimed = zip->bytes;
    zip->folder = scope_printf("%.*s", (int)(slash - first), first);
    zip->entries = scope_alloc((size_t)count * sizeof *zip->entries);
    return zip->folder && zip->entries ? 0 : -1;
}

/* O_NONBLOCK, lest a FIFO in the place of the file hold us up. */
static int open_regular(const char *path, uint64_t *bytes)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return raise_error(OSError, "cannot be read: %s", strerror(errno));
    if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode)) {
        close(file);
        return raise_error(OSError, "is not a regular file");
    }
    *bytes = (uint64_t)status.st_size;
    return file;
}

int pt_zip_open_file(struct pt_zip *zip, const char *path)
{
    *zip = (struct pt_zip){0};
    int file = open_regular(path, &zip->bytes);
    if (file < 0)
        return -1;
    int code;
    zip->zip = zip_fdopen(file, 0, &code);
    if (!zip->zip) {
        close(file);
        return raise_code(&ValueError, "not a .pt file", code);
    }
    return look_inside(zip);
}

int pt_zip_open_bytes(struct pt_zip *zip, const void *bytes, size_t n)
{
    *zip = (struct pt_zip){.bytes = n};
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(bytes, n, 0, &error);
    zip->zip = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
    const int code = zip_error_code_zip(&error);
    zip_error_fini(&error);
    if (!zip->zip) {
        zip_source_free(source);
        return raise_code(&ValueError, "not a .pt file", code);
    }
    return look_inside(zip);
}

void pt_zip_close(struct pt_zip *zip)
{
    if (zip->zip)
        zip_discard(zip->zip);
    zip->zip = NULL;
}

static zip_int64_t locate(const struct pt_zip *zip, const char *name)
{
    const char *path = scope_printf("%s/%s", zip->folder, name);
    return path ? zip_name_locate(zip->zip, path, ZIP_FL_ENC_RAW) : -1;
}

bool pt_zip_has(const struct pt_zip *zip, const char *name)
{
    return locate(zip, name) >= 0;
}

/* The size of an entry that may be read: stored as it is, and not larger than what the file has. */
static int claim(struct pt_zip *zip, zip_int64_t index, const char *name, size_t *n)
{
    struct zip_stat status;
    const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD;
    if (zip_stat_index(zip->zip, (zip_uint64_t)index, 0, &status) < 0 ||
        (status.valid & needed) != needed)
        return raise_error(ValueError, "%s: its size is not known", name);
    if (status.comp_method != ZIP_CM_STORE)
        return raise_error(ValueError, "%s is compressed, which torch.save never does", name);
    if (status.size > zip->unclaimed)
        return raise_error(ValueError, "%s claims %llu bytes, more than the file has", name,
                           (unsigned long long)status.size);
    zip->unclaimed -= status.size;
    *n = (size_t)status.size;
    return 0;
}

/* Reading on to the end of the entry makes libzip compare its CRC. */
static int read_all(zip_file_t *file, char *bytes, size_t n, const char *name)
{
    size_t done = 0;
    char beyond;
    zip_int64_t got = 1;
    while (done < n && got > 0) {
        got = zip_fread(file, bytes + done, n - done);
        done += got > 0 ? (size_t)got : 0;
    }
    if (done < n || zip_fread(file, &beyond, 1) != 0)
        return raise_error(ValueError, "%s is truncated or corrupt: %s", name,
                           zip_file_strerror(file));
    return 0;
}

static int read_entry(struct pt_zip *zip, zip_int64_t index, const char *name)
{
    struct pt_entry entry;
    if (claim(zip, index, name, &entry.n) < 0)
        return -1;
    char *bytes = scope_alloc(entry.n + 1);
    if (!bytes)
        return -1;
    zip_file_t *file = zip_fopen_index(zip->zip, (zip_uint64_t)index, 0);
    if (!file)
        return raise_error(ValueError, "%s: %s", name, zip_strerror(zip->zip));
    int result = read_all(file, bytes, entry.n, name);
    zip_fclose(file);
    entry.bytes = bytes;
    zip->entries[index] = entry;
    return result;
}

const struct pt_entry *pt_zip_read(struct pt_zip *zip, const char *name)
{
    const zip_int64_t index = locate(zip, name);
    if (index < 0)
        return raise_null(ValueError, "the archive has no %s", name);
    if (!zip->entries[index].bytes && read_entry(zip, index, name) < 0)
        return NULL;
    return &zip->entries[index];
}

/* ---- writing ---- */

/* Stored, with a fixed date: the same tensors give the same file. */
static int add_entry(zip_t *zip, const struct pt_named_entry *entry)
{
    enum { FIRST_OF_JANUARY_1980 = 1 << 5 | 1 };
    const char *path = scope_printf("archive/%s", entry->name);
    zip_source_t *source =
        path ? zip_source_buffer(zip, entry->entry.bytes, entry->entry.n, 0) : NULL;
    if (!source)
        return -1;
    zip_int64_t index = zip_file_add(zip, path, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        return -1;
    }
    if (zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) < 0)
        return -1;
    return zip_file_set_dostime(zip, (zip_uint64_t)index, 0, FIRST_OF_JANUARY_1980, 0);
}

/* libzip writes to a temporary name beside the path and renames it when all is well. */
int pt_zip_write(const char *path, const struct pt_named_entry *entries, int n)
{
    int code;
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (!zip)
        return raise_code(&OSError, scope_printf("cannot write %s", path), code);
    int result = 0;
    for (int i = 0; i < n && result == 0; i++)
        result = add_entry(zip, &entries[i]);
    if (result == 0 && zip_close(zip) == 0)
        return 0;
    result = raise_error(OSError, "cannot write %s: %s", path, zip_strerror(zip));
    zip_discard(zip);
    return result;
}
