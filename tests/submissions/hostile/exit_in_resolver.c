/* Ends the process while the dynamic linker resolves its symbols.
 * fails: schedule forward backward
 * file: pipeline.c
 */
#include <unistd.h>

static void (*resolve(void))(void)
{
    _exit(0);
}

void resolved(void) __attribute__((ifunc("resolve")));

void (*keep_resolved)(void) = resolved;
