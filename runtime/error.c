#include "runtime/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 1024 };

struct error {
    const struct error_type *type;
    const char *file;
    int line;
    bool is_static; /* the one that stands in when there is no memory for another */
    char message[MESSAGE_BYTES];
};

const struct error_type ValueError = {"ValueError"};
const struct error_type TypeError = {"TypeError"};
const struct error_type RuntimeError = {"RuntimeError"};
const struct error_type MemoryError = {"MemoryError"};
const struct error_type OSError = {"OSError"};
const struct error_type TimeoutError = {"TimeoutError"};
const struct error_type DistError = {"DistError"};
const struct error_type NotImplementedError = {"NotImplementedError"};

static _Thread_local struct error *pending;

static struct error out_of_memory = {
    .type = &MemoryError,
    .file = __FILE__,
    .is_static = true,
    .message = "out of memory, and none left to say for what",
};

void error_set(const struct error_type *type, const char *file, int line, const char *message, ...)
{
    if (pending)
        return;
    struct error *error = malloc(sizeof *error);
    if (!error) {
        pending = &out_of_memory;
        return;
    }
    *error = (struct error){.type = type, .file = file, .line = line};
    va_list arguments;
    va_start(arguments, message);
    vsnprintf(error->message, sizeof error->message, message, arguments);
    va_end(arguments);
    pending = error;
}

bool error_occurred(void)
{
    return pending != NULL;
}

bool error_is(const struct error_type *type)
{
    return pending && pending->type == type;
}

void error_clear(void)
{
    error_free(error_take());
}

struct error *error_take(void)
{
    struct error *error = pending;
    pending = NULL;
    return error;
}

int error_raise(struct error *error)
{
    if (pending)
        error_free(error);
    else
        pending = error;
    return -1;
}

void error_free(struct error *error)
{
    if (error && !error->is_static)
        free(error);
}

const struct error_type *error_type_of(const struct error *error)
{
    return error->type;
}

const char *error_message(const struct error *error)
{
    return error->message;
}

const char *error_file(const struct error *error)
{
    return error->file;
}

int error_line(const struct error *error)
{
    return error->line;
}

const struct error *error_pending(void)
{
    return pending;
}
