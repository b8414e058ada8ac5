#define _GNU_SOURCE /* vasprintf */
#include "grading/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grading/text.h"
#include "runtime/scope.h"

void fault(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs(FAULT_PREFIX, stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_FAULT);
}

static void out_of_memory(void)
{
    fault("out of memory");
}

void fault_without_memory(void)
{
    scope_on_exhaustion(out_of_memory);
}

void *alloc_or_fault(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory)
        fault("out of memory");
    return memory;
}

char *vformat_or_fault(const char *format, va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) < 0)
        fault("out of memory");
    return text;
}

char *format_or_fault(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = vformat_or_fault(format, arguments);
    va_end(arguments);
    return text;
}

char *clean_or_fault(const char *text)
{
    char *clean = text_clean(text, text ? strlen(text) : 0);
    if (!clean)
        fault("out of memory");
    return clean;
}

char *line_or_fault(const char *text)
{
    char *line = clean_or_fault(text);
    for (char *c = line; *c; c++)
        if (*c == '\n')
            *c = ' ';
    return line;
}

/* A prefix of whole characters. */
static size_t start_bytes(const char *text)
{
    enum { LINES = 40, BYTES = 4000 };
    size_t n = 0;
    for (int lines = 0; text[n] && n < BYTES; n++)
        if (text[n] == '\n' && ++lines == LINES)
            return n;
    while ((text[n] & 0xC0) == 0x80)
        n--;
    return n;
}

char *start_or_fault(const char *text)
{
    char *clean = clean_or_fault(text);
    size_t n = start_bytes(clean);
    if (!clean[n])
        return clean;
    char *start = format_or_fault("%.*s...", (int)n, clean);
    free(clean);
    return start;
}
