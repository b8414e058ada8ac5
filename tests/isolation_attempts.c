/* What student code tries, for tests/test_isolation.c, which puts OUTSIDE (a folder that is not the
 * student's), HOME (the checkout), SUPPLIED (an object file of the harness) and STRANGER (a
 * process) before it. Each function returns 1 if it got through, 0 if not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#endif

#define ATTEMPT(name)                                                                              \
    int name(void);                                                                                \
    int name(void)

static int opened(int fd)
{
    return fd >= 0 && close(fd) == 0;
}

/* ---- what student code may do ---- */

static void *nothing(void *argument)
{
    return argument;
}

ATTEMPT(start_a_thread)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

ATTEMPT(signal_itself)
{
    signal(SIGUSR1, SIG_IGN);
    return raise(SIGUSR1) == 0 && kill(getpid(), 0) == 0;
}

ATTEMPT(write_its_folder)
{
    return opened(open("own", O_CREAT | O_WRONLY, 0600)) && rename("own", "renamed") == 0 &&
           unlink("renamed") == 0;
}

ATTEMPT(read_the_system)
{
    return opened(open("/usr/include/stdio.h", O_RDONLY)) && opened(open("/dev/null", O_RDWR)) &&
           opened(open("/dev/urandom", O_RDONLY));
}

/* ---- what it may not ---- */

ATTEMPT(start_a_process)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

ATTEMPT(start_a_program)
{
    extern char **environ;
    pid_t pid;
    char *arguments[] = {(char *)"true", NULL};
    return posix_spawnp(&pid, "true", NULL, NULL, arguments, environ) == 0 &&
           waitpid(pid, NULL, 0) == pid;
}

ATTEMPT(signal_its_parent)
{
    return kill(getppid(), 0) == 0;
}

ATTEMPT(signal_a_stranger)
{
    return kill(STRANGER, 0) == 0;
}

ATTEMPT(signal_everyone)
{
    return kill(-1, 0) == 0;
}

ATTEMPT(open_its_parents_memory)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", getppid());
    return opened(open(path, O_RDWR));
}

ATTEMPT(see_a_stranger)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", STRANGER);
    return access(path, F_OK) == 0;
}

ATTEMPT(write_outside)
{
    return opened(open(OUTSIDE "/written", O_CREAT | O_WRONLY, 0600));
}

ATTEMPT(change_outside)
{
    return opened(open(OUTSIDE "/canary", O_WRONLY)) || truncate(OUTSIDE "/canary", 0) == 0;
}

ATTEMPT(remove_outside)
{
    return unlink(OUTSIDE "/canary") == 0 || rename(OUTSIDE "/canary", "taken") == 0;
}

ATTEMPT(read_what_is_supplied)
{
    return opened(open(SUPPLIED, O_RDONLY));
}

ATTEMPT(leave_shared_memory)
{
    int fd = shm_open("/grade-test-left", O_CREAT | O_RDWR, 0600);
    return opened(fd) && shm_unlink("/grade-test-left") == 0;
}

ATTEMPT(open_a_socket)
{
    return opened(socket(AF_INET, SOCK_STREAM, 0)) || opened(socket(AF_UNIX, SOCK_STREAM, 0)) ||
           opened(socket(AF_INET6, SOCK_DGRAM, 0));
}

ATTEMPT(listen_to_others)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int listens = bind(fd, (struct sockaddr *)&any, sizeof any) == 0 && listen(fd, 1) == 0;
    return opened(fd) && listens;
}

ATTEMPT(change_a_terminal)
{
    struct termios terminal = {0};
    return !(tcsetattr(0, TCSANOW, &terminal) < 0 && errno == EPERM);
}

ATTEMPT(take_all_memory)
{
    return malloc(5UL << 30) != NULL;
}

ATTEMPT(take_memory_in_files)
{
#ifdef SYS_memfd_create
    return opened((int)syscall(SYS_memfd_create, "", 0));
#else
    return 0;
#endif
}

/* Files are limited, so that takes several. */
ATTEMPT(fill_the_disk)
{
    static char block[1 << 20];
    int written = 0;
    for (int file = 0; file < 3; file++) {
        char name[8];
        snprintf(name, sizeof name, "%d", file);
        int fd = open(name, O_CREAT | O_WRONLY, 0600);
        for (int i = 0; i < 50; i++)
            written += write(fd, block, sizeof block) == (ssize_t)sizeof block;
        close(fd);
    }
    for (int file = 0; file < 3; file++) {
        char name[8];
        snprintf(name, sizeof name, "%d", file);
        unlink(name);
    }
    return written == 150;
}

#ifdef __linux__
static int was_refused(long result)
{
    return result < 0 && (errno == EPERM || errno == ENOSYS);
}

ATTEMPT(start_a_process_another_way)
{
    long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(0);
    return pid > 0 && waitpid((pid_t)pid, NULL, 0) == pid;
}

ATTEMPT(trace_its_parent)
{
    return !was_refused(ptrace(PTRACE_PEEKDATA, getppid(), NULL, NULL));
}

ATTEMPT(read_its_parents_memory)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)&opened, 1};
    return !was_refused(process_vm_readv(getppid(), &to, 1, &from, 1, 0));
}

ATTEMPT(direct_signals_to_its_parent)
{
    int ends[2];
    return pipe(ends) == 0 && fcntl(ends[0], F_SETOWN, getppid()) == 0;
}

ATTEMPT(outlive_its_parent)
{
    return prctl(PR_SET_PDEATHSIG, 0) == 0;
}

ATTEMPT(mount_something)
{
    return !was_refused(mount("none", "/tmp", "tmpfs", 0, NULL)) && umount("/tmp") == 0;
}

ATTEMPT(leave_its_namespaces)
{
    return unshare(CLONE_NEWNS) == 0;
}

ATTEMPT(leave_a_segment)
{
    int segment = shmget(IPC_PRIVATE, 4096, 0600);
    return segment >= 0 && shmctl(segment, IPC_RMID, NULL) == 0;
}

ATTEMPT(use_a_ring)
{
    return !was_refused(syscall(SYS_io_uring_setup, 0, NULL));
}

ATTEMPT(slow_others_down)
{
    return setpriority(PRIO_PROCESS, (id_t)getppid(), 0) == 0;
}

ATTEMPT(reschedule_others)
{
    return sched_setscheduler(getppid(), SCHED_BATCH, &(struct sched_param){0}) == 0;
}

ATTEMPT(step_back_itself)
{
    return sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}) == 0;
}

ATTEMPT(see_a_network)
{
    char line[512];
    int interfaces = 0;
    FILE *list = fopen("/proc/net/dev", "r");
    while (list && fgets(line, sizeof line, list))
        interfaces += strchr(line, ':') && !strstr(line, " lo:");
    if (list)
        fclose(list);
    return interfaces > 0;
}
#endif
