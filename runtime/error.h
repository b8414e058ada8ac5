#ifndef RUNTIME_ERROR_H
#define RUNTIME_ERROR_H
/* error.h - one pending error per thread, as in CPython's C API.
 *
 * A function that fails returns NULL or -1 (NAN where it returns a float) and leaves an error
 * pending in its thread. The first error wins: raising another while one is pending changes
 * nothing. Operations pass a NULL operand through, so calls nest without checks in between:
 *
 *     struct tensor *loss = mse_loss(module_forward(model, x), y);
 *     if (tensor_backward(loss) < 0)
 *         return -1;
 *
 * An error type is an object, compared by address, so anyone can define a new one:
 *
 *     const struct error_type StageError = {"StageError"};
 */
#include <math.h>
#include <stdbool.h>

struct error;
struct error_type {
    const char *name;
};

extern const struct error_type ValueError;   /* an argument is wrong */
extern const struct error_type TypeError;    /* wrong dtype or kind of object */
extern const struct error_type RuntimeError; /* an operation cannot be carried out */
extern const struct error_type MemoryError;  /* out of host or device memory */
extern const struct error_type OSError;      /* a file or system call failed */
extern const struct error_type TimeoutError; /* nothing came within the time allowed */
extern const struct error_type DistError;    /* a peer died, left, or called something else */
extern const struct error_type NotImplementedError; /* known, and not provided here */

/* raise_error - raise a new error; the value of the expression is -1
 *     return raise_error(ValueError, "rank must be at least 1, got %d", rank);
 * errors: if one is pending already, it stays and this one is dropped */
#define raise_error(type, ...) (error_set(&(type), __FILE__, __LINE__, __VA_ARGS__), -1)

/* raise_null - the same where the function returns a pointer: the value is NULL */
#define raise_null(type, ...) (error_set(&(type), __FILE__, __LINE__, __VA_ARGS__), (void *)0)

/* raise_nan - the same where the function returns a float: the value is NAN */
#define raise_nan(type, ...) (error_set(&(type), __FILE__, __LINE__, __VA_ARGS__), (float)NAN)

/* error_set - what the macros call; message is a printf format, cut at 1023 bytes */
void error_set(const struct error_type *type, const char *file, int line, const char *message, ...)
    __attribute__((format(printf, 4, 5)));

/* error_occurred - true if this thread has a pending error. source: PyErr_Occurred */
bool error_occurred(void);

/* error_is - true if this thread's pending error is of `type`. source: PyErr_ExceptionMatches */
bool error_is(const struct error_type *type);

/* error_clear - forget the pending error, if any. source: PyErr_Clear */
void error_clear(void);

/* error_take - remove the pending error from this thread and return it, or NULL if there is none
 * owns: the caller, who passes it to error_raise (any thread) or error_free */
struct error *error_take(void);

/* error_raise - make `error` this thread's pending error; the same object, type and message
 * owns:   takes over `error` (freed at once if another is pending)
 * returns: -1, so that it can be returned. NULL is allowed and raises nothing. */
int error_raise(struct error *error);

void error_free(struct error *error);

/* What an error says. file is the source file (its name as compiled) and line where it was raised.
 * owns: all borrowed from `error` */
const struct error_type *error_type_of(const struct error *error);
const char *error_message(const struct error *error);
const char *error_file(const struct error *error);
int error_line(const struct error *error);

/* error_pending - look at the pending error without taking it; NULL if there is none
 * owns: borrowed, until the error is taken or cleared */
const struct error *error_pending(void);
#endif
