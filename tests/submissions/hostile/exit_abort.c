/* Calls abort.
 * fails: lora
 * says: SIGABRT
 */
#include <stdlib.h>

struct module *apply_lora(struct module *model, const char *const *names, int count, int rank,
                          double alpha)
{
    abort();
}
