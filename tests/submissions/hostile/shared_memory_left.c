/* Leaves shared memory, a semaphore and a message queue; the answer is wrong.
 * fails: schedule
 */
#include <fcntl.h>
#include <semaphore.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    shmget(0xba17ace, 4096, IPC_CREAT | 0600);
    close(shm_open("/bank-trace-shared_memory_left", O_CREAT | O_RDWR, 0600));
    sem_open("/bank-trace-shared_memory_left", O_CREAT, 0600, 1);
    return schedule_new(1, 1);
}
