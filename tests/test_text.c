/* test_text.c - cleaning of untrusted text, and the closest word */
#include "grading/fault.h"
#include "grading/text.h"
#include "tests/suite.h"

#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LITERAL(s) s, sizeof(s) - 1
#define BAD "\xEF\xBF\xBD"

static const struct {
    const char *dirty;
    size_t n;
    const char *clean;
} texts[] = {
    {LITERAL(""), ""},
    {LITERAL("plain\ttext\n"), "plain\ttext\n"},
    {LITERAL("gr\xC3\xBC\xC3\x9F \xE2\x89\xA4 \xF0\x9F\x98\x80"),
     "gr\xC3\xBC\xC3\x9F \xE2\x89\xA4 \xF0\x9F\x98\x80"},
    {LITERAL("a\0b"), "a" BAD "b"},
    {LITERAL("a\x01\x7F\b"), "a" BAD BAD BAD},
    {LITERAL("one\r\ntwo\rthree\r"), "one\ntwo\nthree\n"},
    {LITERAL("\x80"), BAD},
    {LITERAL("\xC3"), BAD},
    {LITERAL("\xC3("), BAD "("},
    {LITERAL("\xC0\xAF"), BAD BAD},                 /* overlong slash */
    {LITERAL("\xE0\x80\xAF"), BAD BAD BAD},         /* overlong, three bytes */
    {LITERAL("\xED\xA0\x80"), BAD BAD BAD},         /* surrogate */
    {LITERAL("\xF4\x90\x80\x80"), BAD BAD BAD BAD}, /* beyond U+10FFFF */
    {LITERAL("\xF4\x8F\xBF\xBF"), "\xF4\x8F\xBF\xBF"},
    {LITERAL("\xFF\xFE"), BAD BAD},
    {LITERAL("\x1B[31mred\x1B[0m"), "red"},
    {LITERAL("\x1B[38;5;200mx\x1B[2J\x1B[1;1H"), "x"},
    {LITERAL("\x1B]0;title\x07text"), "text"},
    {LITERAL("\x1B]52;c;aGk=\x1B\\text"), "text"},
    {LITERAL("\x1BP1$r\x1B\\x\x1B_y\x1B\\z"), "xz"},
    {LITERAL("\x1B"
             "creset\x1B(B"),
     "reset"},
    {LITERAL("\x1B]never ended\nnext line"), "\nnext line"},
    {LITERAL("\x1B[31"), ""},
    {LITERAL("\x1B[\nkept"), "\nkept"},
    {LITERAL("\x1B"), ""},
    {LITERAL("\x1B]"), ""},
    {LITERAL("\x1B\x1B[1mx"), "x"},
    {LITERAL("\xC2\x9B"
             "31m"),
     BAD "31m"}, /* the one-byte CSI of 8-bit terminals */
};

START_TEST(test_clean)
{
    char *clean = text_clean(texts[_i].dirty, texts[_i].n);
    ck_assert_str_eq(clean, texts[_i].clean);
    free(clean);
}
END_TEST

START_TEST(test_clean_nothing)
{
    char *clean = text_clean(NULL, 0);
    ck_assert_str_eq(clean, "");
    free(clean);
}
END_TEST

/* Whatever the bytes: jansson, which checks UTF-8 on its own, takes the result; there is no escape
 * in it; cleaning it again changes nothing. */
START_TEST(test_clean_any_bytes)
{
    unsigned state = 12345;
    char bytes[64];
    for (int round = 0; round < 20000; round++) {
        size_t n = (size_t)(round % (int)sizeof bytes);
        for (size_t i = 0; i < n; i++) {
            state = state * 1664525 + 1013904223;
            bytes[i] = (char)(state >> 24);
            if (state % 5 == 0)
                bytes[i] = "\x1B[]\\m"[state / 5 % 5];
        }
        char *clean = text_clean(bytes, n), *again = text_clean(clean, strlen(clean));
        json_t *value = json_string(clean);
        ck_assert_ptr_nonnull(value);
        ck_assert_ptr_null(strchr(clean, '\x1B'));
        ck_assert_str_eq(clean, again);
        json_decref(value);
        free(clean);
        free(again);
    }
}
END_TEST

/* Whole characters, whole lines. */
static const struct {
    const char *piece;
    int times;
    size_t kept; /* of bytes */
} long_texts[] = {{"x", 3, 3},          {"x", 4000, 4000},        {"x", 4001, 4000},
                  {"x", 5000000, 4000}, {"\xC3\xBC", 3000, 4000}, {"\xE2\x89\xA4", 3000, 3999},
                  {"a\n", 39, 78},      {"a\n", 100, 79}};

START_TEST(test_start)
{
    size_t length = strlen(long_texts[_i].piece), n = length * (size_t)long_texts[_i].times;
    char *text = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        text[i] = long_texts[_i].piece[i % length];
    text[n] = '\0';
    char *start = start_or_fault(text);
    size_t kept = long_texts[_i].kept;
    ck_assert_int_eq(strncmp(start, text, kept), 0);
    ck_assert_str_eq(start + kept, kept < n ? "..." : "");
    free(start);
    free(text);
}
END_TEST

static const struct {
    const char *word, *closest;
} words[] = {
    {"gradients", "gradients"},
    {"gradeints", "gradients"},
    {"gradient", "gradients"},
    {"lroa", "lora"},
    {"config ", "config"},
    {"zzzzzzzz", NULL},
    {"", NULL},
    {"forwards", "forward"},
    {"LORA", "lora"},
};

START_TEST(test_closest)
{
    static const char *const all[] = {"gradients", "forward", "lora", "config", NULL};
    const char *closest = text_closest(words[_i].word, all);
    ck_assert_pstr_eq(closest, words[_i].closest);
}
END_TEST

START_TEST(test_closest_of_long_words)
{
    static const char *const all[] = {"lora", NULL};
    char word[500];
    memset(word, 'a', sizeof word);
    word[sizeof word - 1] = '\0';
    ck_assert_ptr_null(text_closest(word, all));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *test = tcase_create("text");
    tcase_set_timeout(test, 60);
    tcase_add_loop_test(test, test_clean, 0, sizeof texts / sizeof *texts);
    tcase_add_test(test, test_clean_nothing);
    tcase_add_test(test, test_clean_any_bytes);
    tcase_add_loop_test(test, test_start, 0, sizeof long_texts / sizeof *long_texts);
    tcase_add_loop_test(test, test_closest, 0, sizeof words / sizeof *words);
    tcase_add_test(test, test_closest_of_long_words);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
