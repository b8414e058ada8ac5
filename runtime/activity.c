#include "runtime/activity.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { NESTING = 4 }; /* texts kept to show again; deeper ones are not shown */

static struct activity_slot own_slots[ACTIVITY_SLOTS];
static struct activity_slot *slots = own_slots;

static _Thread_local struct {
    struct activity_slot *slot; /* NULL: all were taken */
    int depth;
    char texts[NESTING][ACTIVITY_BYTES];
} mine;

void activity_use(struct activity_slot *shared)
{
    slots = shared;
}

/* thread_number - what identifies a thread outside: the kernel's id where there is one */
static int thread_number(void)
{
#ifdef __linux__
    return (int)syscall(SYS_gettid);
#else
    static atomic_int counted;
    static _Thread_local int number;
    return number ? number : (number = 1 + atomic_fetch_add(&counted, 1));
#endif
}

static struct activity_slot *slot_claim(void)
{
    int thread = thread_number();
    for (int i = 0; i < ACTIVITY_SLOTS; i++) {
        int nobody = 0;
        if (atomic_compare_exchange_strong(&slots[i].thread, &nobody, thread))
            return &slots[i];
    }
    return NULL;
}

/* slot_show - `waiting` is off while the text changes, so that a reader never takes half of one */
static void slot_show(struct activity_slot *slot, const char *text)
{
    atomic_store(&slot->waiting, 0);
    memcpy(slot->text, text, ACTIVITY_BYTES);
    atomic_store(&slot->waiting, 1);
}

void activity_begin(const char *format, ...)
{
    if (mine.depth == 0)
        mine.slot = slot_claim();
    if (mine.depth < NESTING) {
        char *text = mine.texts[mine.depth];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, ACTIVITY_BYTES, format, arguments);
        va_end(arguments);
        if (mine.slot)
            slot_show(mine.slot, text);
    }
    mine.depth++;
}

void activity_end(void)
{
    mine.depth--;
    if (!mine.slot)
        return;
    if (mine.depth == 0) {
        atomic_store(&mine.slot->waiting, 0);
        atomic_store(&mine.slot->thread, 0);
        mine.slot = NULL;
    } else if (mine.depth < NESTING) {
        slot_show(mine.slot, mine.texts[mine.depth - 1]);
    }
}
