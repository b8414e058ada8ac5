/* observe.c - the subject's side of the observations: each observe_* is one record. */
#define _GNU_SOURCE /* vasprintf */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grading/observations.h"
#include "runtime/autograd.h"
#include "runtime/ops.h"

/* A record while it is put together. */
struct record {
    unsigned char *bytes;
    size_t n, capacity;
};

static void put(struct record *record, const void *bytes, size_t n)
{
    if (record->n + n > record->capacity) {
        record->capacity = 2 * (record->n + n);
        record->bytes = realloc(record->bytes, record->capacity);
        if (!record->bytes) {
            fputs("out of memory: cannot record an observation\n", stderr);
            abort();
        }
    }
    if (n > 0)
        memcpy(record->bytes + record->n, bytes, n);
    record->n += n;
}

static void put_byte(struct record *record, int value)
{
    put(record, &(unsigned char){(unsigned char)value}, 1);
}

static void put_text(struct record *record, const char *text)
{
    uint32_t length = (uint32_t)strlen(text);
    put(record, &length, sizeof length);
    put(record, text, length);
}

static struct record record_begin(enum observation_kind kind, const char *key)
{
    struct record record = {0};
    put_byte(&record, kind);
    put_text(&record, key);
    return record;
}

static void record_send(struct subject *s, struct record *record)
{
    subject_record(s, record->bytes, record->n);
    free(record->bytes);
}

/* FORMATTED - what the variable arguments after `last` format, as `text`, freed with its block */
static void free_text(char **text)
{
    free(*text);
}

static char *format(const char *format, va_list arguments)
{
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) {
        fputs("out of memory: cannot record an observation\n", stderr);
        abort();
    }
    return text;
}

#define FORMATTED(text, last)                                                                      \
    va_list arguments_of_##text;                                                                   \
    va_start(arguments_of_##text, last);                                                           \
    __attribute__((cleanup(free_text))) char *text = format(last, arguments_of_##text);            \
    va_end(arguments_of_##text)

void observe_int(struct subject *s, int64_t value, const char *key, ...)
{
    FORMATTED(name, key);
    struct record record = record_begin(OBSERVATION_INT, name);
    put(&record, &value, sizeof value);
    record_send(s, &record);
}

void observe_ints(struct subject *s, const int64_t *values, int64_t n, const char *key, ...)
{
    FORMATTED(name, key);
    struct record record = record_begin(OBSERVATION_INTS, name);
    put(&record, &n, sizeof n);
    put(&record, values, (size_t)n * sizeof *values);
    record_send(s, &record);
}

void observe_number(struct subject *s, double value, const char *key, ...)
{
    FORMATTED(name, key);
    struct record record = record_begin(OBSERVATION_NUMBER, name);
    put(&record, &value, sizeof value);
    record_send(s, &record);
}

void observe_text(struct subject *s, const char *text, const char *key, ...)
{
    FORMATTED(name, key);
    struct record record = record_begin(text ? OBSERVATION_TEXT : OBSERVATION_ABSENT, name);
    if (text)
        put_text(&record, text);
    record_send(s, &record);
}

void observe_error(struct subject *s, const char *key, ...)
{
    FORMATTED(name, key);
    struct error *error = error_take();
    struct record record = record_begin(OBSERVATION_ERROR, name);
    put_text(&record, error ? error_type_of(error)->name : "");
    put_text(&record, error ? error_message(error) : "");
    record_send(s, &record);
    error_free(error);
}

static struct tensor *on_host(const struct tensor *x)
{
    NO_GRAD;
    return tensor_contiguous(tensor_to((struct tensor *)x, CPU));
}

/* A tensor whose elements cannot be had is no observation: the record is a failure's. */
static void record_tensor(struct subject *s, const struct tensor *x, const char *key)
{
    SCOPE;
    struct tensor *copy = on_host(x);
    if (x && !copy) {
        (void)subject_went_wrong(s, "copying a tensor to the host");
        return;
    }
    struct record record = record_begin(x ? OBSERVATION_TENSOR : OBSERVATION_ABSENT, key);
    if (x) {
        struct device device = tensor_device(x);
        int32_t index = device.index;
        put_byte(&record, tensor_dtype(x));
        put_byte(&record, device.kind);
        put_byte(&record, tensor_requires_grad(x));
        put_byte(&record, tensor_ndim(x));
        put(&record, &index, sizeof index);
        put(&record, tensor_shape(x), (size_t)tensor_ndim(x) * sizeof(int64_t));
        put(&record, tensor_data(copy),
            (size_t)tensor_numel(copy) * (size_t)dtype_size(tensor_dtype(copy)));
    }
    record_send(s, &record);
}

void observe_tensor(struct subject *s, const struct tensor *x, const char *key, ...)
{
    FORMATTED(name, key);
    record_tensor(s, x, name);
}

/* Every parameter, or its gradient, under PREFIX.NAME. */
static void record_model(struct subject *s, struct module *model, const char *prefix,
                         bool gradients)
{
    SCOPE;
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; parameters && i < parameters->n; i++) {
        struct tensor *x = parameters->at[i].tensor;
        record_tensor(s, gradients ? tensor_grad(x) : x,
                      scope_printf("%s.%s", prefix, parameters->at[i].name));
    }
}

void observe_parameters(struct subject *s, struct module *model, const char *prefix, ...)
{
    FORMATTED(name, prefix);
    record_model(s, model, name, false);
}

void observe_gradients(struct subject *s, struct module *model, const char *prefix, ...)
{
    FORMATTED(name, prefix);
    record_model(s, model, name, true);
}

void subject_fail(struct subject *s, const char *reason, ...)
{
    FORMATTED(text, reason);
    struct record record = record_begin(OBSERVATION_FAILURE, "");
    put_text(&record, text);
    record_send(s, &record);
}

bool subject_went_wrong(struct subject *s, const char *what, ...)
{
    if (!error_occurred())
        return false;
    FORMATTED(call, what);
    struct error *error = error_take();
    subject_fail(s, "%s raised %s: %s", call, error_type_of(error)->name, error_message(error));
    error_free(error);
    return true;
}

void observe_begin(struct subject *s)
{
    struct record record = record_begin(OBSERVATION_BEGIN, "");
    record_send(s, &record);
}

void observe_end(struct subject *s)
{
    struct record record = record_begin(OBSERVATION_END, "");
    record_send(s, &record);
}
