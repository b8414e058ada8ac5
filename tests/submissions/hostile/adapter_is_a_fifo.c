/* Makes a FIFO where the adapter should be: whoever opens it waits.
 * fails: adapter
 */
#include <sys/stat.h>

int save_adapter(struct module *model, const char *path)
{
    return adapters_of(model) ? mkfifo(path, 0600) : -1;
}
