#ifndef GRADING_CRASH_H
#define GRADING_CRASH_H
/* crash.h - where a subject was when it crashed or when its time was up.
 *
 * A subject and the process that judges it share a status page. Signal handlers in the subject
 * write to it; the judge reads it as what it is, bytes that student code may have written over. */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/activity.h"

enum { STACKS = 16, STACK_FRAMES = 8, FUNCTION_BYTES = 64, FAULT_BYTES = 512 };

/* A place in the student's library: offset from where it was loaded, the exported function around
 * it. */
struct frame {
    uint64_t offset;
    char function[FUNCTION_BYTES];
};

/* One thread's stack, the student's frames alone, innermost first. */
struct stack {
    atomic_int signal; /* 0: not noted */
    atomic_int frames;
    int in_callee;   /* the thread was in something that frame 0 had called */
    int has_address; /* `address` is what the instruction touched */
    int is_full;     /* and that is where the stack would go on, had it any room */
    uint64_t address;
    struct frame at[STACK_FRAMES];
};

/* What student code did to memory: kind is a memory_error_kind, 0 for nothing. */
struct misuse {
    atomic_int kind;
    uint64_t bytes;     /* size of the block */
    struct stack stack; /* where it was allocated */
};

struct status_page {
    struct activity_slot activity[ACTIVITY_SLOTS];
    atomic_int stacks;          /* how many were begun */
    struct stack stack[STACKS]; /* the first is the crash's if there was one */
    struct misuse misuse;
    char called[FUNCTION_BYTES]; /* the student's function that was called last, or "" */
    char fault[FAULT_BYTES];     /* why the subject gave up before it could observe, or "" */
};

/* TIME_UP - the signal that makes every thread note its stack and go on */
#define TIME_UP SIGXCPU

/* ---- in the subject ---- */

/* crash_watch - from now on, note crashes and TIME_UP in `status`; frames are those in the library
 * that is loaded from `library`. A crash ends the process with its signal. */
void crash_watch(struct status_page *status, const char *library);

/* crash_guard_memory - put guards around the memory that student code allocates and is given; what
 * it does to them is noted and ends the process; with `debugged` it is printed first, and the
 * process stops there. The library has been loaded. frame: as memory_guard's */
void crash_guard_memory(const void *frame, bool debugged);

/* ---- in the judge ---- */

/* status_read - a copy of the page behind `descriptor`, made safe to read: texts ended, counts in
 * range. returns: false if there is no whole page */
bool status_read(int descriptor, struct status_page *copy);

/* stack_place - "at assignment/pipeline.c:41 in pipe_forward", the innermost place in the student's
 * file that can be told, or "" if none. Runs addr2line where there is one; no other processes may
 * be running. folder: where it may leave what it must. owns: borrowed from the scope */
const char *stack_place(const struct stack *stack, const char *library, const char *folder);

/* stack_crash - "SIGSEGV (address 0x0) at assignment/data_parallel.c:41 in train_step"
 * owns: borrowed from the scope */
const char *stack_crash(const struct stack *stack, const char *library, const char *folder);

/* stack_misuse - "student code wrote past the end of a block of 40 bytes, allocated at
 * assignment/data_parallel.c:31 in partition_indices". owns: borrowed from the scope */
const char *stack_misuse(const struct misuse *misuse, const char *library, const char *folder);

/* signal_name - "SIGSEGV", or "signal 63". owns: borrowed from the scope */
const char *signal_name(int signal);
#endif
