/* observations.c - the trusted side of the observations: bytes from a process that held student
 * code. Nothing in them is believed before it was checked. */
#include "grading/observations.h"

#include <stdlib.h>
#include <string.h>

#include "grading/fault.h"

struct entry {
    enum observation_kind kind;
    char *key;
    union {
        int64_t integer;
        double number;
        struct {
            int64_t *values, n;
        } ints;
        struct {
            char *text, *message; /* text or failure; an error's type and message */
        };
        struct {
            struct tensor *tensor;
            struct device device;
            bool requires_grad;
        };
    };
};

struct observations {
    int rank, world_size;
    bool complete;
    char *failure;
    struct entry *entries; /* by key, once decoded */
    size_t n, capacity;
};

/* ---- reading bytes: after the first that does not fit, everything is refused ---- */

struct reader {
    const unsigned char *at;
    size_t left;
    bool bad;
};

static const void *take(struct reader *reader, size_t n)
{
    if (reader->bad || n > reader->left) {
        reader->bad = true;
        return NULL;
    }
    const void *bytes = reader->at;
    reader->at += n;
    reader->left -= n;
    return bytes;
}

static void take_into(struct reader *reader, void *out, size_t n)
{
    const void *bytes = take(reader, n);
    if (bytes)
        memcpy(out, bytes, n);
    else
        memset(out, 0, n);
}

static int take_byte(struct reader *reader)
{
    unsigned char value;
    take_into(reader, &value, 1);
    return value;
}

static int64_t take_int64(struct reader *reader)
{
    int64_t value;
    take_into(reader, &value, sizeof value);
    return value;
}

/* A copy that ends in NUL; a NUL within shortens it. */
static char *take_text(struct reader *reader)
{
    uint32_t length;
    take_into(reader, &length, sizeof length);
    const char *bytes = take(reader, length);
    char *text = bytes ? alloc_or_fault((size_t)length + 1) : NULL;
    if (bytes)
        memcpy(text, bytes, length);
    return text;
}

/* ---- one record ---- */

static void take_ints(struct reader *reader, struct entry *entry)
{
    int64_t n = take_int64(reader);
    if (n < 0 || (uint64_t)n > reader->left / sizeof(int64_t)) {
        reader->bad = true;
        return;
    }
    size_t bytes = (size_t)n * sizeof(int64_t);
    entry->ints.values = alloc_or_fault(bytes);
    entry->ints.n = n;
    take_into(reader, entry->ints.values, bytes);
}

/* take_shape - the sizes of a tensor of `ndim` dimensions, whose elements must still be there
 * returns: bytes of the elements */
static size_t take_shape(struct reader *reader, int ndim, int64_t *shape, int element_bytes)
{
    const uint64_t most = OBSERVATIONS_MAX_BYTES;
    uint64_t extent = 1; /* the product without zeros, so that strides cannot overflow either */
    bool empty = false;
    for (int i = 0; i < ndim && !reader->bad; i++) {
        shape[i] = take_int64(reader);
        if (shape[i] < 0 || (uint64_t)shape[i] > most / extent)
            reader->bad = true;
        else if (shape[i] == 0)
            empty = true;
        else
            extent *= (uint64_t)shape[i];
    }
    return empty ? 0 : (size_t)extent * (size_t)element_bytes;
}

static void take_tensor(struct reader *reader, struct entry *entry)
{
    int64_t shape[TENSOR_MAX_DIMS] = {0};
    int32_t index;
    int dtype = take_byte(reader), kind = take_byte(reader);
    entry->requires_grad = take_byte(reader) != 0;
    int ndim = take_byte(reader);
    take_into(reader, &index, sizeof index);
    if (dtype > FLOAT16 || kind > DEVICE_CUDA || ndim > TENSOR_MAX_DIMS || index < 0)
        reader->bad = true;
    if (reader->bad)
        return;
    entry->device = (struct device){(enum device_kind)kind, index};
    size_t bytes = take_shape(reader, ndim, shape, dtype_size((enum dtype)dtype));
    const void *elements = take(reader, bytes);
    if (!elements)
        return;
    entry->tensor = tensor_retain(tensor_empty(ndim, shape, (enum dtype)dtype, CPU));
    if (!entry->tensor)
        fault("cannot keep a tensor: %s", error_message(error_pending()));
    if (bytes > 0)
        memcpy(tensor_data(entry->tensor), elements, bytes);
}

static void take_value(struct reader *reader, struct entry *entry)
{
    switch (entry->kind) {
    case OBSERVATION_INT:
        entry->integer = take_int64(reader);
        break;
    case OBSERVATION_INTS:
        take_ints(reader, entry);
        break;
    case OBSERVATION_NUMBER:
        take_into(reader, &entry->number, sizeof entry->number);
        break;
    case OBSERVATION_ERROR:
        entry->text = take_text(reader);
        entry->message = take_text(reader);
        break;
    case OBSERVATION_TEXT:
    case OBSERVATION_FAILURE:
        entry->text = take_text(reader);
        break;
    case OBSERVATION_TENSOR:
        take_tensor(reader, entry);
        break;
    case OBSERVATION_ABSENT:
    case OBSERVATION_END:
    case OBSERVATION_BEGIN:
        break;
    default:
        reader->bad = true;
    }
}

static void free_value(struct entry *entry)
{
    switch (entry->kind) {
    case OBSERVATION_INTS:
        free(entry->ints.values);
        break;
    case OBSERVATION_ERROR:
    case OBSERVATION_TEXT:
    case OBSERVATION_FAILURE:
        free(entry->text);
        free(entry->message);
        break;
    case OBSERVATION_TENSOR:
        tensor_release(entry->tensor);
        break;
    default:
        break;
    }
    free(entry->key);
}

/* ---- all records ---- */

static bool keep(struct observations *o, struct entry *entry)
{
    if (o->n == OBSERVATIONS_MAX_RECORDS)
        return false;
    if (o->n == o->capacity) {
        size_t capacity = o->capacity ? 2 * o->capacity : 64;
        struct entry *entries = realloc(o->entries, capacity * sizeof *entries);
        if (!entries)
            fault("out of memory: cannot keep %zu observations", capacity);
        o->entries = entries;
        o->capacity = capacity;
    }
    o->entries[o->n++] = *entry;
    return true;
}

static bool decode_record(struct observations *o, struct reader *reader)
{
    struct entry entry = {.kind = (enum observation_kind)take_byte(reader)};
    entry.key = take_text(reader);
    take_value(reader, &entry);
    bool good = !reader->bad && !o->complete;
    if (good && entry.kind == OBSERVATION_END) {
        o->complete = true;
    } else if (good && entry.kind == OBSERVATION_FAILURE) {
        if (!o->failure)
            o->failure = clean_or_fault(entry.text);
    } else if (good && entry.kind == OBSERVATION_BEGIN) {
        good = o->n == 0;
    } else if (good && keep(o, &entry)) {
        return true;
    } else {
        good = false;
    }
    free_value(&entry);
    return good;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static bool keys_differ(struct observations *o)
{
    if (o->n > 0)
        qsort(o->entries, o->n, sizeof *o->entries, compare_keys);
    for (size_t i = 1; i < o->n; i++)
        if (compare_keys(&o->entries[i - 1], &o->entries[i]) == 0)
            return false;
    return true;
}

struct observations *observations_decode(const void *bytes, size_t n, int rank, int world_size)
{
    struct observations *o = alloc_or_fault(sizeof *o);
    o->rank = rank;
    o->world_size = world_size;
    struct reader reader = {.at = bytes, .left = n, .bad = n > OBSERVATIONS_MAX_BYTES};
    bool good = !reader.bad;
    SCOPE;
    while (good && reader.left > 0)
        good = decode_record(o, &reader);
    if (good && keys_differ(o))
        return o;
    observations_free(o);
    return NULL;
}

void observations_free(struct observations *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n; i++)
        free_value(&o->entries[i]);
    free(o->entries);
    free(o->failure);
    free(o);
}

bool observations_complete(const struct observations *o)
{
    return o->complete;
}

const char *observations_failure(const struct observations *o)
{
    return o->failure;
}

int observations_rank(const struct observations *o)
{
    return o ? o->rank : 0;
}

int observations_world_size(const struct observations *o)
{
    return o ? o->world_size : 0;
}

/* ---- looking up ---- */

static const struct entry *find(const struct observations *o, const char *key)
{
    struct entry wanted = {.key = (char *)key};
    return !o || o->n == 0 ? NULL
                           : bsearch(&wanted, o->entries, o->n, sizeof *o->entries, compare_keys);
}

static const struct entry *find_kind(const struct observations *o, const char *key,
                                     enum observation_kind kind)
{
    const struct entry *entry = find(o, key);
    return entry && entry->kind == kind ? entry : NULL;
}

enum observation_kind observed_kind(const struct observations *o, const char *key)
{
    const struct entry *entry = find(o, key);
    return entry ? entry->kind : (enum observation_kind)0;
}

const struct tensor *observed_tensor(const struct observations *o, const char *key)
{
    const struct entry *entry = find_kind(o, key, OBSERVATION_TENSOR);
    return entry ? entry->tensor : NULL;
}

struct device observed_device(const struct observations *o, const char *key)
{
    const struct entry *entry = find_kind(o, key, OBSERVATION_TENSOR);
    return entry ? entry->device : CPU;
}

bool observed_requires_grad(const struct observations *o, const char *key)
{
    const struct entry *entry = find_kind(o, key, OBSERVATION_TENSOR);
    return entry && entry->requires_grad;
}

int64_t observed_int(const struct observations *o, const char *key, int64_t absent)
{
    const struct entry *entry = find_kind(o, key, OBSERVATION_INT);
    return entry ? entry->integer : absent;
}

const int64_t *observed_ints(const struct observations *o, const char *key, int64_t *n)
{
    const struct entry *entry = find_kind(o, key, OBSERVATION_INTS);
    *n = entry ? entry->ints.n : 0;
    return entry ? entry->ints.values : NULL;
}

double observed_number(const struct observations *o, const char *key, double absent)
{
    const struct entry *entry = find_kind(o, key, OBSERVATION_NUMBER);
    return entry ? entry->number : absent;
}

const char *observed_text(const struct observations *o, const char *key)
{
    const struct entry *entry = find_kind(o, key, OBSERVATION_TEXT);
    return entry ? entry->text : NULL;
}

bool observed_error(const struct observations *o, const char *key, const char **type,
                    const char **message)
{
    const struct entry *entry = find_kind(o, key, OBSERVATION_ERROR);
    if (entry) {
        *type = entry->text;
        *message = entry->message;
    }
    return entry != NULL;
}
