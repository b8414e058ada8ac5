/* An adapter file of 200 MiB of nothing.
 * fails: adapter
 */
#include <fcntl.h>
#include <unistd.h>

int save_adapter(struct module *model, const char *path)
{
    if (!adapters_of(model))
        return -1;
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    return ftruncate(fd, 200 << 20) + close(fd);
}
