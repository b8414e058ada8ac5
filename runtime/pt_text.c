#include "runtime/error.h"
#include "runtime/pt_internal.h"

/* sequence_length - bytes of the UTF-8 sequence that a byte begins; 0 if none may */
static size_t sequence_length(uint8_t lead)
{
    if (lead == 0)
        return 0;
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF. */
static bool second_byte_fits(uint8_t lead, uint8_t second)
{
    const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    return low <= second && second <= high;
}

static bool sequence_fits(const uint8_t *at, size_t length)
{
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return false;
    return length == 1 || second_byte_fits(at[0], at[1]);
}

int pt_text_check(const char *text, size_t n)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + n;
    while (at < end) {
        const size_t length = sequence_length(*at);
        if (length == 0 || length > (size_t)(end - at) || !sequence_fits(at, length))
            return raise_error(ValueError, "a name is not valid UTF-8 text");
        at += length;
    }
    return 0;
}
