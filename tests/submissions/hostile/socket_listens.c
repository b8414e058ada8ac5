/* Listens on a port, and on a socket file, and leaves a child to serve them.
 * fails: schedule
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct sockaddr_un file = {.sun_family = AF_UNIX, .sun_path = "/tmp/bank-trace-socket_listens"};
    int port = socket(AF_INET, SOCK_STREAM, 0), path = socket(AF_UNIX, SOCK_STREAM, 0);
    int bound = bind(port, (struct sockaddr *)&any, sizeof any) +
                bind(path, (struct sockaddr *)&file, sizeof file);
    if (bound + listen(port, 8) + listen(path, 8) == 0 && fork() == 0) {
        setsid();
        sleep(60);
        _exit(0);
    }
    return schedule_new(1, 1);
}
