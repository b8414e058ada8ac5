/* Guarded memory: what blocks hold before and after their use, what is found out about those who
 * write where they must not, and that memory of others is left alone. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/memory_internal.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "runtime/wrap_internal.h"
#include "tests/suite.h"

static struct memory_error found;
static int found_count;

/* Of main, which everything here is called from. */
static const void *outermost;

static void on_found(const struct memory_error *error)
{
    found = *error;
    found_count++;
}

/* All of this program counts as student code. */
static void begin(void)
{
    memory_guard(0, UINTPTR_MAX, outermost, on_found);
}

static void assert_found(int kind, size_t bytes)
{
    ck_assert_int_eq(found_count, kind ? 1 : 0);
    ck_assert_int_eq(found.kind, kind);
    ck_assert_uint_eq(found.bytes, bytes);
}

static bool holds(const unsigned char *bytes, size_t n, int value)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

/* ---- what is written where it must not be ---- */

enum what { NOTHING, WRITE, FREE };
static const struct {
    size_t bytes;
    int at; /* where a byte is written, or read and written again */
    enum what before_free, after_free;
    int kind;
} misuses[] = {
    {40, 0, WRITE, NOTHING, 0},
    {40, 39, WRITE, NOTHING, 0},
    {40, 40, WRITE, NOTHING, MEMORY_PAST_END},
    {41, 41, WRITE, NOTHING, MEMORY_PAST_END},
    {40, 103, WRITE, NOTHING, MEMORY_PAST_END},
    {1, 1, WRITE, NOTHING, MEMORY_PAST_END},
    {0, 0, WRITE, NOTHING, MEMORY_PAST_END},
    {1 << 20, 1 << 20, WRITE, NOTHING, MEMORY_PAST_END},
    {40, -1, WRITE, NOTHING, MEMORY_BEFORE_START},
    {40, -64, WRITE, NOTHING, MEMORY_BEFORE_START},
    {40, 0, NOTHING, WRITE, MEMORY_AFTER_FREE},
    {40, 39, NOTHING, WRITE, MEMORY_AFTER_FREE},
    {40, 40, NOTHING, WRITE, MEMORY_PAST_END},
    {40, 0, NOTHING, FREE, MEMORY_FREED_TWICE},
};

static void do_to(unsigned char *block, int at, enum what what)
{
    if (what == WRITE)
        ((volatile unsigned char *)block)[at] = 1;
    if (what == FREE)
        __wrap_free(block);
}

START_TEST(misuse_is_found)
{
    unsigned char *block = __wrap_malloc(misuses[_i].bytes);
    memory_check();
    ck_assert_int_eq(found_count, 0);
    do_to(block, misuses[_i].at, misuses[_i].before_free);
    __wrap_free(block);
    do_to(block, misuses[_i].at, misuses[_i].after_free);
    if (found_count == 0)
        memory_check();
    assert_found(misuses[_i].kind, misuses[_i].kind ? misuses[_i].bytes : 0);
}
END_TEST

START_TEST(a_block_that_nobody_frees_is_checked)
{
    char *volatile block = __wrap_malloc(12);
    block[12] = 1;
    ck_assert_int_eq(memory_find_error().kind, MEMORY_PAST_END);
    ck_assert_int_eq(found_count, 0);
    memory_check();
    assert_found(MEMORY_PAST_END, 12);
}
END_TEST

/* What was freed is found to be written to when its turn to be reused comes, too. */
START_TEST(a_freed_block_is_kept_for_a_while)
{
    unsigned char *volatile block = __wrap_malloc(100);
    __wrap_free(block);
    for (int i = 0; i < 100; i++)
        __wrap_free(__wrap_malloc(100));
    ck_assert(holds(block, 100, MEMORY_FREED));
    block[50] = 0;
    for (int i = 0; i < 100 && !found_count; i++)
        __wrap_free(__wrap_malloc(1 << 20));
    assert_found(MEMORY_AFTER_FREE, 100);
}
END_TEST

__attribute__((noinline)) static void *allocate_here(void)
{
    void *volatile block = __wrap_malloc(8);
    return block;
}

START_TEST(the_origin_is_the_innermost_caller)
{
    char *block = allocate_here();
    ((volatile char *)block)[8] = 1;
    memory_check();
    assert_found(MEMORY_PAST_END, 8);
    ck_assert_int_ge(found.frames, 2);
    bool inside = false;
    for (int i = 0; i < found.frames; i++) {
        uintptr_t start = (uintptr_t)allocate_here;
        inside |= found.at[i] > start && found.at[i] < start + 400;
    }
    ck_assert(inside);
}
END_TEST

/* ---- what blocks hold ---- */

START_TEST(fresh_memory_holds_a_pattern)
{
    ck_assert(holds(__wrap_malloc(1000), 1000, MEMORY_FRESH));
    ck_assert(holds(__wrap_calloc(10, 100), 1000, 0));
    ck_assert(holds(__wrap_realloc(NULL, 1000), 1000, MEMORY_FRESH));
    ck_assert_uint_eq((uintptr_t)__wrap_malloc(3) % _Alignof(max_align_t), 0);
    ck_assert_uint_eq((uintptr_t)memory_alloc(3, 64, 1) % 64, 0);
    ck_assert_int_eq(found_count, 0);
}
END_TEST

START_TEST(a_block_that_grows_keeps_what_it_holds)
{
    unsigned char *old = memset(__wrap_malloc(10), 7, 10), *volatile stale = old;
    unsigned char *grown = __wrap_realloc(old, 20), *shrunk;
    ck_assert(holds(grown, 10, 7));
    ck_assert(holds(grown + 10, 10, MEMORY_FRESH));
    ck_assert(holds(stale, 10, MEMORY_FREED));
    shrunk = __wrap_reallocarray(grown, 5, 1);
    ck_assert(holds(shrunk, 5, 7));
    memory_check();
    ck_assert_int_eq(found_count, 0);
    ((volatile unsigned char *)shrunk)[5] = 1;
    __wrap_free(shrunk);
    assert_found(MEMORY_PAST_END, 5);
}
END_TEST

START_TEST(too_much_gives_null)
{
    volatile size_t huge = SIZE_MAX - 10, half = SIZE_MAX / 2 + 1;
    errno = 0;
    ck_assert_ptr_null(__wrap_malloc(huge));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_null(__wrap_calloc(half, 2));
    void *block = __wrap_malloc(10);
    ck_assert_ptr_null(__wrap_realloc(block, huge));
    ck_assert_ptr_null(__wrap_reallocarray(block, half, 2));
    __wrap_free(block);
    ck_assert_int_eq(found_count, 0);
}
END_TEST

START_TEST(memory_of_others_is_left_alone)
{
    char *text = strdup("made by the C library");
    text = __wrap_realloc(text, 100);
    ck_assert_str_eq(text, "made by the C library");
    __wrap_free(text);
    __wrap_free(NULL);
    ck_assert(!memory_release(&found));
    ck_assert_int_eq(found_count, 0);
}
END_TEST

/* ---- the runtime's memory ---- */

START_TEST(memory_of_a_scope_is_guarded)
{
    struct scope *scope = scope_begin();
    int *volatile numbers = scope_alloc(10 * sizeof *numbers);
    ck_assert(holds((unsigned char *)numbers, 40, 0));
    if (_i)
        numbers[_i > 0 ? 10 : -1] = 1;
    scope_end(&scope);
    assert_found(_i > 0 ? MEMORY_PAST_END : _i < 0 ? MEMORY_BEFORE_START : 0, _i ? 40 : 0);
    ck_assert(holds((unsigned char *)numbers, 40, MEMORY_FREED));
}
END_TEST

START_TEST(a_scope_says_when_there_is_no_memory)
{
    SCOPE;
    volatile size_t huge = SIZE_MAX - 10;
    ck_assert_ptr_null(scope_alloc(huge));
    ck_assert_str_eq(error_type_of(error_pending())->name, "MemoryError");
    error_clear();
}
END_TEST

START_TEST(an_empty_tensor_holds_nan)
{
    SCOPE;
    struct tensor *x = __wrap_tensor_empty(2, (int64_t[]){3, 5}, (enum dtype)_i, CPU);
    struct tensor *y = tensor_cast(x, FLOAT64);
    for (int i = 0; i < 15; i++)
        ck_assert(isnan(((double *)tensor_data(y))[i]));
}
END_TEST

/* Each size, below and above that from which blocks are kept for reuse. */
START_TEST(elements_of_a_tensor_are_guarded)
{
    int64_t n = _i ? 100000 : 10;
    struct scope *scope = scope_begin();
    float *volatile data = tensor_data(tensor_zeros(1, &n, FLOAT32, CPU));
    ck_assert_uint_eq((uintptr_t)data % 64, 0);
    data[n] = 1;
    scope_end(&scope);
    assert_found(MEMORY_PAST_END, (size_t)n * sizeof(float));
    ck_assert(holds((unsigned char *)data, (size_t)n * sizeof(float), MEMORY_FREED));
}
END_TEST

START_TEST(a_tensor_that_is_gone_is_seen_to_be)
{
    struct scope *scope = scope_begin();
    struct tensor *volatile x = tensor_zeros(1, &(int64_t){4}, FLOAT32, CPU);
    scope_end(&scope);
    ck_assert(holds((unsigned char *)x, sizeof(int64_t), MEMORY_FREED));
    ck_assert_int_eq(found_count, 0);
}
END_TEST

/* What was allocated before guards were put up is freed as ever. */
START_TEST(older_memory_can_be_freed)
{
    struct scope *scope = scope_begin();
    ck_assert(!memory_is_guarded());
    char *text = scope_printf("%d", 42), *block = __wrap_malloc(10);
    struct tensor *x = tensor_zeros(1, &(int64_t){100000}, FLOAT32, CPU);
    begin();
    ck_assert_str_eq(text, "42");
    ck_assert_ptr_nonnull(tensor_add(x, x));
    block = __wrap_realloc(block, 1000);
    __wrap_free(block);
    scope_end(&scope);
    memory_check();
    ck_assert_int_eq(found_count, 0);
}
END_TEST

static Suite *memory_suite(void)
{
    Suite *suite = suite_create("memory");
    TCase *tests = tcase_create("guarded");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_loop_test(tests, misuse_is_found, 0, sizeof misuses / sizeof misuses[0]);
    tcase_add_test(tests, a_block_that_nobody_frees_is_checked);
    tcase_add_test(tests, a_freed_block_is_kept_for_a_while);
    tcase_add_test(tests, the_origin_is_the_innermost_caller);
    tcase_add_test(tests, fresh_memory_holds_a_pattern);
    tcase_add_test(tests, a_block_that_grows_keeps_what_it_holds);
    tcase_add_test(tests, too_much_gives_null);
    tcase_add_test(tests, memory_of_others_is_left_alone);
    tcase_add_loop_test(tests, memory_of_a_scope_is_guarded, -1, 2);
    tcase_add_test(tests, a_scope_says_when_there_is_no_memory);
    tcase_add_loop_test(tests, an_empty_tensor_holds_nan, FLOAT32, FLOAT16 + 1);
    tcase_add_loop_test(tests, elements_of_a_tensor_are_guarded, 0, 2);
    tcase_add_test(tests, a_tensor_that_is_gone_is_seen_to_be);
    suite_add_tcase(suite, tests);
    TCase *before = tcase_create("before");
    tcase_add_test(before, older_memory_can_be_freed);
    suite_add_tcase(suite, before);
    return suite;
}

int main(void)
{
    outermost = __builtin_frame_address(0);
    return suite_run(memory_suite());
}
