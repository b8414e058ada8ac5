#include "grading/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/words.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

enum { ESCAPE = 0x1B, BELL = 0x07, DELETE = 0x7F };

/* Unread bytes. */
struct input {
    const unsigned char *at, *end;
};

/* utf8_length - bytes of the well-formed character at the start of the input, or 0
 * source: The Unicode Standard, table 3-7 (no overlong forms, no surrogates) */
static size_t utf8_length(struct input in)
{
    unsigned char first = in.at[0];
    if (first < 0x80)
        return 1;
    size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                    : first >= 0xE0 && first <= 0xEF ? 3
                    : first >= 0xF0 && first <= 0xF4 ? 4
                                                     : 0;
    if (length == 0 || (size_t)(in.end - in.at) < length)
        return 0;
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (in.at[1] < low || in.at[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((in.at[i] & 0xC0) != 0x80)
            return 0;
    }
    return length;
}

/* A sequence with parameters: up to its final byte. A byte that has no place in it ends it as well,
 * so that a broken sequence hides nothing of what follows. */
static void skip_parameters(struct input *in)
{
    while (in->at < in->end && *in->at >= 0x20 && *in->at <= 0x3F)
        in->at++;
    if (in->at < in->end && *in->at >= 0x40 && *in->at <= 0x7E)
        in->at++;
}

/* A string (title, clipboard, ...): up to BEL or ESC \. Text is not swallowed beyond its line. */
static void skip_string(struct input *in)
{
    while (in->at < in->end && *in->at != BELL && *in->at != ESCAPE && *in->at != '\n')
        in->at++;
    if (in->at < in->end && *in->at == BELL)
        in->at++;
    else if (in->end - in->at >= 2 && in->at[0] == ESCAPE && in->at[1] == '\\')
        in->at += 2;
}

/* What follows an ESC. source: ECMA-48, clause 5 */
static void skip_escape(struct input *in)
{
    if (in->at == in->end)
        return;
    unsigned char kind = *in->at;
    if (kind == '[') {
        in->at++;
        skip_parameters(in);
    } else if (strchr("]PX^_", kind) && kind != '\0') {
        in->at++;
        skip_string(in);
    } else {
        while (in->at < in->end && *in->at >= 0x20 && *in->at <= 0x2F)
            in->at++;
        if (in->at < in->end && *in->at >= 0x30 && *in->at <= 0x7E)
            in->at++;
    }
}

static bool is_control(struct input in, size_t length)
{
    if (length == 1)
        return (in.at[0] < 0x20 && in.at[0] != '\n' && in.at[0] != '\t') || in.at[0] == DELETE;
    return length == 2 && in.at[0] == 0xC2 && in.at[1] < 0xA0; /* U+0080 to U+009F */
}

/* Take one character from the input and append its clean form. returns: the new end */
static char *clean_one(struct input *in, char *out)
{
    size_t length = utf8_length(*in);
    if (*in->at == ESCAPE) {
        in->at++;
        skip_escape(in);
        return out;
    }
    if (*in->at == '\r') {
        in->at++;
        if (in->at == in->end || *in->at != '\n')
            *out++ = '\n';
        return out;
    }
    if (length == 0 || is_control(*in, length)) {
        in->at += length ? length : 1;
        return (char *)memcpy(out, REPLACEMENT, 3) + 3;
    }
    memcpy(out, in->at, length);
    in->at += length;
    return out + length;
}

char *text_clean(const char *bytes, size_t n)
{
    if (!bytes)
        bytes = "", n = 0;
    struct input in = {(const unsigned char *)bytes, (const unsigned char *)bytes + n};
    char *clean = malloc(3 * n + 1), *out = clean;
    if (!clean)
        return NULL;
    while (in.at < in.end)
        out = clean_one(&in, out);
    *out = '\0';
    return clean;
}

const char *text_closest(const char *word, const char *const *words)
{
    return word_closest(word, words, strlen(word) / 3 + 1);
}
