#ifndef GRADING_FAULT_H
#define GRADING_FAULT_H
/* fault.h - faults of the machine or of the harness, which are never a student's.
 *
 * In the command they end the program: one line on stderr, EXIT_FAULT, and what was registered with
 * atexit (the private folder's removal) still happens. */
#include <stdarg.h>
#include <stddef.h>

/* Exit statuses besides 0, 1 and 2. source: sysexits.h */
enum { EXIT_USAGE = 64, EXIT_FAULT = 70 };

/* What comes before the reason on stderr. */
#define FAULT_PREFIX "grade: a fault of this machine, not of the submission: "

/* fault - end the command because of the machine */
_Noreturn void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* alloc_or_fault - zeroed memory
 * format_or_fault, vformat_or_fault - a formatted string
 * owns: the caller (free) */
void *alloc_or_fault(size_t bytes);
char *format_or_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *vformat_or_fault(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* fault_without_memory - from now on a scope that finds no memory is a fault, too */
void fault_without_memory(void);

/* clean_or_fault - text_clean of a string. line_or_fault - the same, as one line. start_or_fault -
 * the same, cut with "..." after 40 lines or 4000 bytes: as much of it as a reason has room for
 * owns: the caller (free) */
char *clean_or_fault(const char *text);
char *line_or_fault(const char *text);
char *start_or_fault(const char *text);
#endif
