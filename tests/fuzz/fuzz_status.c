/* fuzz_status.c - the status page, which student code may have written over */
#define _GNU_SOURCE
#include "grading/crash.h"
#include "runtime/scope.h"
#include "tests/fuzz/fuzz.h"

/* Frames are looked up by another program, so that only the text is made here. */
static void read_stack(struct stack *stack)
{
    int frames = atomic_load(&stack->frames);
    expect(frames >= 0 && frames <= STACK_FRAMES);
    for (int i = 0; i < STACK_FRAMES; i++)
        expect(strlen(stack->at[i].function) < FUNCTION_BYTES);
    atomic_store(&stack->frames, 0);
    expect(*stack_crash(stack, "/nonexistent", "/"));
}

FUZZ_TARGET(status)
{
    SCOPE;
    static struct status_page page, filled;
    memset(&filled, n > 0 ? bytes[0] : 0, sizeof filled); /* the bytes are repeated to fill it */
    for (size_t at = 1; n > 1 && at < sizeof filled; at += n - 1)
        memcpy((char *)&filled + at, bytes + 1,
               n - 1 < sizeof filled - at ? n - 1 : sizeof filled - at);
    int fd = fuzz_file((const uint8_t *)&filled, n == 0 ? 7 : sizeof filled);
    bool whole = status_read(fd, &page);
    close(fd);
    expect(whole == (n > 0));
    expect(!whole || (atomic_load(&page.stacks) >= 0 && atomic_load(&page.stacks) <= STACKS));
    for (int i = 0; whole && i < STACKS; i++)
        read_stack(&page.stack[i]);
    for (int i = 0; whole && i < ACTIVITY_SLOTS; i++)
        expect(strlen(page.activity[i].text) < ACTIVITY_BYTES);
    expect(!whole || strlen(page.called) < FUNCTION_BYTES);
    expect(!whole || strlen(page.fault) < FAULT_BYTES);
    return 0;
}
