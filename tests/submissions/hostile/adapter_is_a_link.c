/* Makes a link to a file that never ends where the adapter should be.
 * fails: adapter
 */
#include <unistd.h>

int save_adapter(struct module *model, const char *path)
{
    return adapters_of(model) ? symlink("/dev/zero", path) : -1;
}
