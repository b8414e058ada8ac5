/* One rank of a group that srun has started, perhaps on a host of its own:
 *
 *     srun --ntasks=4 build/release/tests/srun_rank FILE-THAT-ALL-RANKS-SHARE
 *
 * prints "rank R of N on HOST: SUM", where SUM is that of 1 .. N by an all-reduce. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/dist.h"
#include "runtime/error.h"
#include "runtime/scope.h"

static int number_of(const char *variable)
{
    const char *value = getenv(variable);
    return value ? atoi(value) : -1;
}

/* This host's first address that others can reach. */
static void own_address(char text[INET_ADDRSTRLEN])
{
    struct ifaddrs *all;
    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *one = all; one && !*text; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET &&
            !(one->ifa_flags & IFF_LOOPBACK))
            inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)one->ifa_addr)->sin_addr, text,
                      INET_ADDRSTRLEN);
    freeifaddrs(all);
}

int main(int argc, char **argv)
{
    SCOPE;
    char address[INET_ADDRSTRLEN] = "", host[64] = "";
    own_address(address);
    gethostname(host, sizeof host - 1);
    struct group *group = group_connect(&(struct group_options){
        .rank = number_of("SLURM_PROCID"),
        .world_size = number_of("SLURM_NTASKS"),
        .file = argc > 1 ? argv[1] : NULL,
        .interface_address = address,
    });
    struct tensor *x = group ? tensor_full(SHAPE(1), group_rank(group) + 1, FLOAT32, CPU) : NULL;
    if (!x || group_all_reduce(group, x, DIST_SUM) < 0) {
        fprintf(stderr, "%s\n", error_message(error_pending()));
        return 1;
    }
    printf("rank %d of %d on %s: %g\n", group_rank(group), group_world_size(group), host,
           tensor_item(x));
    group_close(group);
    return 0;
}
