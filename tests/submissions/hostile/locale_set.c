/* Sets another locale, umask and working folder; the answer is wrong.
 * fails: partitions
 */
#include <locale.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    setlocale(LC_ALL, "de_DE.UTF-8");
    setlocale(LC_ALL, "");
    umask(0777);
    return chdir("/") == 0 ? partitions_new(world_size + 1) : NULL;
}
