/* Writes under a temporary name, then renames. */
#include <stdio.h>

int save_adapter(struct module *model, const char *path)
{
    const char *aside = scope_printf("%s.new", path);
    if (tensors_save(adapters_of(model), aside) < 0)
        return -1;
    return rename(aside, path) == 0 ? 0 : raise_error(OSError, "rename");
}
