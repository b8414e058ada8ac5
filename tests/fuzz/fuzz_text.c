/* fuzz_text.c - cleaning text: what comes out is UTF-8 without controls, and stays as it is */
#define _GNU_SOURCE
#include "runtime/error.h"
#include "runtime/pt_internal.h"
#include "tests/fuzz/fuzz.h"

static void expect_no_controls(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        expect(*c >= 0x20 || *c == '\t' || *c == '\n');
        expect(*c != 0x7F && !(c[0] == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F));
    }
}

FUZZ_TARGET(text)
{
    static const char *const words[] = {"device", "section", "only", "timeout", "", NULL};
    char *clean = text_clean((const char *)bytes, n);
    expect(clean);
    expect_no_controls(clean);
    expect(pt_text_check(clean, strlen(clean)) == 0);
    expect_clean(clean);
    text_closest(clean, words);
    free(clean);
    return 0;
}
