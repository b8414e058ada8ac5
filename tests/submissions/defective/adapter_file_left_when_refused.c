/* Makes the file before it finds that there are no adapters.
 * fails: adapter
 */
#include <stdio.h>

int save_adapter(struct module *model, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file)
        fclose(file);
    return tensors_save(adapters_of(model), path);
}
