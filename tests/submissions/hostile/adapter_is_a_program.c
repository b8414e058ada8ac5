/* A pickle that would run a program, were it unpickled as Python does.
 * fails: adapter
 */
#include <stdio.h>

int save_adapter(struct module *model, const char *path)
{
    FILE *file = adapters_of(model) ? fopen(path, "w") : NULL;
    if (!file)
        return -1;
    fputs("cposix\nsystem\n(S'touch /tmp/bank-trace-adapter_is_a_program'\ntR.", file);
    return fclose(file);
}
