#define _GNU_SOURCE
#include "grading/crash.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "grading/subject.h"
#include "runtime/memory_internal.h"
#include "runtime/scope.h"

enum { ALTERNATE_STACK = 64 << 10, DEPTH = 64, HANDLER_SECONDS = 2 };

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof crashes[0] };

/* What the signal handlers must find. */
static struct {
    struct status_page *status;
    char library[4096];
    bool debugged;
} watch;

/* ---- in the handler ---- */

/* Where the student's library lies in memory. */
struct range {
    uintptr_t base, low, high;
};

static int find_library(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct range *range = context;
    if (strcmp(info->dlpi_name, watch.library) != 0)
        return 0;
    *range = (struct range){.base = info->dlpi_addr, .low = UINTPTR_MAX};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        range->low = low < range->low ? low : range->low;
        uintptr_t high = low + info->dlpi_phdr[i].p_memsz;
        range->high = high > range->high ? high : range->high;
    }
    return 1;
}

static void note_frame(struct stack *stack, uintptr_t address, const struct range *range)
{
    int n = atomic_load(&stack->frames);
    struct frame *frame = &stack->at[n];
    Dl_info info;
    frame->offset = address - range->base;
    if (dladdr((void *)address, &info) && info.dli_sname)
        snprintf(frame->function, sizeof frame->function, "%s", info.dli_sname);
    atomic_store(&stack->frames, n + 1);
}

/* Where the signal struck, and, if that is nowhere (a call through NULL), where the call came from.
 */
struct struck {
    uintptr_t at, called_from, stack;
};

static struct struck struck_at(const void *context)
{
    const ucontext_t *thread = context;
    struct struck struck = {0};
#if defined(__linux__) && defined(__x86_64__)
    struck.at = (uintptr_t)thread->uc_mcontext.gregs[REG_RIP];
    struck.stack = (uintptr_t)thread->uc_mcontext.gregs[REG_RSP];
    if (!struck.at)
        struck.called_from = *(uintptr_t *)struck.stack;
#elif defined(__linux__) && defined(__aarch64__)
    struck.at = thread->uc_mcontext.pc;
    struck.stack = thread->uc_mcontext.sp;
    if (!struck.at)
        struck.called_from = thread->uc_mcontext.regs[30];
#elif defined(__APPLE__) && defined(__aarch64__)
    struck.at = thread->uc_mcontext->__ss.__pc;
    struck.stack = thread->uc_mcontext->__ss.__sp;
#elif defined(__APPLE__) && defined(__x86_64__)
    struck.at = thread->uc_mcontext->__ss.__rip;
    struck.stack = thread->uc_mcontext->__ss.__rsp;
#else
    (void)thread;
#endif
    return struck;
}

/* Every address but the one that was struck is where a call returns to, one past the call. */
static void note_frames(struct stack *stack, const void *context)
{
    void *addresses[DEPTH];
    struct range range = {0};
    struct struck struck = struck_at(context);
    int depth = backtrace(addresses, DEPTH);
    if (!struck.at && depth < DEPTH)
        addresses[depth++] = (void *)struck.called_from;
    if (!dl_iterate_phdr(find_library, &range))
        return;
    for (int i = 0; i < depth && atomic_load(&stack->frames) < STACK_FRAMES; i++) {
        uintptr_t address = (uintptr_t)addresses[i];
        if (address < range.low || address >= range.high)
            continue;
        if (atomic_load(&stack->frames) == 0)
            stack->in_callee = address != struck.at;
        note_frame(stack, address == struck.at ? address : address - 1, &range);
    }
}

/* Of an address that no process can have (one made of a pattern, say) the kernel says nothing. */
static bool has_address(int signal, int code)
{
#ifdef SI_KERNEL
    if (code == SI_KERNEL)
        return false;
#endif
    return code > 0 && signal != SIGABRT;
}

/* A fault this near to the stack pointer is one of the stack itself. */
static bool is_of_the_stack(uintptr_t address, const void *context)
{
    const uintptr_t near = 64 << 10, stack = struck_at(context).stack;
    return stack && address - (stack - near) < 2 * near;
}

static void note_stack(int signal, const siginfo_t *info, const void *context)
{
    int slot = atomic_fetch_add(&watch.status->stacks, 1);
    if (slot < 0 || slot >= STACKS)
        return;
    struct stack *stack = &watch.status->stack[slot];
    stack->has_address = has_address(signal, info->si_code);
    stack->address = (uint64_t)(uintptr_t)info->si_addr;
    stack->is_full = signal == SIGSEGV && stack->has_address &&
                     is_of_the_stack((uintptr_t)info->si_addr, context);
    atomic_store(&stack->signal, signal);
    note_frames(stack, context);
}

/* The first one counts. returns: false if another thread has noted one, or is about to */
static bool note_misuse(const struct memory_error *error)
{
    static atomic_flag noted = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&noted))
        return false;
    struct misuse *misuse = &watch.status->misuse;
    struct range range = {0};
    if (dl_iterate_phdr(find_library, &range))
        for (int i = 0; i < error->frames; i++)
            note_frame(&misuse->stack, error->at[i] - 1, &range);
    misuse->bytes = error->bytes;
    atomic_store(&misuse->kind, error->kind);
    return true;
}

/* Where memory is damaged, nothing that this process would still record can be trusted. */
static void on_misuse(const struct memory_error *error)
{
    while (!note_misuse(error))
        pause();
    if (watch.debugged) {
        SCOPE;
        fprintf(stderr, "%s\n", stack_misuse(&watch.status->misuse, watch.library, "."));
        raise(SIGTRAP);
    }
    _exit(SUBJECT_GAVE_UP);
}

/* The signal comes again when the handler returns, and then ends the process. A second crash, in
 * the handler itself, ends it too; a handler that hangs is ended by SIGALRM. */
static void on_crash(int signal, siginfo_t *info, void *context)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &standard, NULL);
    sigaction(SIGALRM, &standard, NULL);
    alarm(HANDLER_SECONDS);
    note_stack(signal, info, context);
    struct memory_error damage = memory_find_error();
    if (damage.kind)
        note_misuse(&damage);
    raise(signal);
}

static void on_time_up(int signal, siginfo_t *info, void *context)
{
    note_stack(signal, info, context);
}

/* ---- setting up ---- */

/* Stack overflow is a crash with no stack left. Other threads than the first have none of this. */
static void use_alternate_stack(void)
{
    static _Alignas(16) char memory[ALTERNATE_STACK];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, NULL);
}

void crash_watch(struct status_page *status, const char *library)
{
    watch.status = status;
    snprintf(watch.library, sizeof watch.library, "%s", library);
    void *first[1]; /* the first call loads what backtrace needs, which a handler must not */
    backtrace(first, 1);
    use_alternate_stack();
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &action, NULL);
    struct sigaction time_up = {.sa_sigaction = on_time_up,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaction(TIME_UP, &time_up, NULL);
}

void crash_guard_memory(const void *frame, bool debugged)
{
    struct range range = {0};
    watch.debugged = debugged;
    if (dl_iterate_phdr(find_library, &range))
        memory_guard(range.low, range.high, frame, on_misuse);
}
