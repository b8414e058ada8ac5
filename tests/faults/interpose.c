/* interpose.c - a library to preload into grade: it makes one call of one kind fail, once.
 *
 *     FAULT_KIND   memory, write, fork, pipe, open, mkdir, rename, socket, poll, mmap, dup, exec
 *     FAULT_ROLE   grade: in the command itself; child: in what it forks, before exec;
 *                  criterion: in the criterion process
 *     FAULT_AT     which call, from 1
 *     FAULT_TOLD   a file that is opened when the call has failed: what is confined may still read
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern char **environ;

static struct {
    const char *kind, *role, *told, *library;
    long at, calls;
    pid_t owner; /* 0: not begun */
    bool criterion;
} plan;

static bool is_role(const char *role)
{
    return strcmp(plan.role, role) == 0;
}

/* What is loaded after this library has been prepared before it: its own calls are not counted. */
__attribute__((constructor)) static void begin(void)
{
    plan.kind = getenv("FAULT_KIND");
    plan.role = getenv("FAULT_ROLE");
    plan.told = getenv("FAULT_TOLD");
    plan.library = getenv("LD_PRELOAD");
    const char *at = getenv("FAULT_AT");
    if (!plan.kind || !plan.role || !plan.told || !plan.library || !at)
        return;
    plan.at = atol(at);
    plan.criterion = strcmp(program_invocation_short_name, "grade-criterion") == 0;
    if (plan.criterion || strcmp(program_invocation_short_name, "grade") == 0)
        plan.owner = getpid();
}

static bool is_concerned(void)
{
    bool own = getpid() == plan.owner;
    if (plan.criterion)
        return own && is_role("criterion");
    return own ? is_role("grade") : is_role("child");
}

static void tell(void)
{
    int told = (int)syscall(SYS_openat, AT_FDCWD, plan.told, O_RDONLY | O_CLOEXEC);
    if (told >= 0)
        syscall(SYS_close, told);
}

/* fails - whether this call is the one, with errno set for it */
static bool fails(const char *kind, int error)
{
    if (plan.owner == 0 || strcmp(kind, plan.kind) != 0 || !is_concerned() ||
        __atomic_add_fetch(&plan.calls, 1, __ATOMIC_RELAXED) != plan.at)
        return false;
    tell();
    errno = error;
    return true;
}

/* REAL - the function behind this one */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void *malloc(size_t bytes)
{
    return fails("memory", ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return fails("memory", ENOMEM) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return fails("memory", ENOMEM) ? NULL : __libc_realloc(memory, bytes);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    return fails("write", ENOSPC) ? -1 : syscall(SYS_write, fd, bytes, n);
}

pid_t fork(void)
{
    return fails("fork", EAGAIN) ? -1 : REAL(fork)();
}

/* Processes in new namespaces are made by a plain system call. */
long syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_clone && fails("fork", EAGAIN))
        return -1;
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int pipe(int ends[2])
{
    return fails("pipe", EMFILE) ? -1 : REAL(pipe)(ends);
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return fails("open", EMFILE) ? -1 : REAL(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return fails("open", EMFILE) ? -1 : REAL(openat)(folder, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    return fails("open", EMFILE) ? NULL : REAL(fopen)(path, mode);
}

FILE *fdopen(int fd, const char *mode)
{
    return fails("open", ENOMEM) ? NULL : REAL(fdopen)(fd, mode);
}

int mkstemp(char *name)
{
    return fails("open", EMFILE) ? -1 : REAL(mkstemp)(name);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails("open", EMFILE) ? -1 : REAL(memfd_create)(name, flags);
}

int mkdir(const char *path, mode_t mode)
{
    return fails("mkdir", ENOSPC) ? -1 : REAL(mkdir)(path, mode);
}

char *mkdtemp(char *name)
{
    return fails("mkdir", ENOSPC) ? NULL : REAL(mkdtemp)(name);
}

int rename(const char *from, const char *to)
{
    return fails("rename", ENOSPC) ? -1 : REAL(rename)(from, to);
}

int socket(int domain, int type, int protocol)
{
    return fails("socket", EMFILE) ? -1 : REAL(socket)(domain, type, protocol);
}

int poll(struct pollfd *at, nfds_t n, int milliseconds)
{
    return fails("poll", ENOMEM) ? -1 : REAL(poll)(at, n, milliseconds);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return fails("mmap", ENOMEM) ? MAP_FAILED
                                 : REAL(mmap)(at, bytes, protection, flags, fd, offset);
}

int dup2(int from, int to)
{
    return fails("dup", EBUSY) ? -1 : REAL(dup2)(from, to);
}

/* add_variable - putenv in an environment that is not ours to change. The child soon execs. */
static void add_variable(char **environment, const char *name, const char *value)
{
    int n = 0;
    while (environment[n])
        n++;
    char *variable = __libc_malloc(strlen(name) + strlen(value) + 2);
    environment[n] = strcat(strcat(strcpy(variable, name), "="), value);
    environment[n + 1] = NULL;
}

/* grade keeps little of the environment for its children. The criterion process is to be ours. */
static void follow(char *const argv[])
{
    enum { MOST = 64 };
    static char *environment[MOST];
    if (plan.criterion || !is_role("criterion") || strcmp(argv[0], "grade-criterion") != 0)
        return;
    for (int i = 0; environ[i] && i < MOST - 8; i++)
        environment[i] = environ[i];
    char at[24];
    snprintf(at, sizeof at, "%ld", plan.at);
    add_variable(environment, "LD_PRELOAD", plan.library);
    add_variable(environment, "FAULT_KIND", plan.kind);
    add_variable(environment, "FAULT_ROLE", plan.role);
    add_variable(environment, "FAULT_TOLD", plan.told);
    add_variable(environment, "FAULT_AT", at);
    environ = environment;
}

int execvp(const char *program, char *const argv[])
{
    if (fails("exec", ENOMEM))
        return -1;
    follow(argv);
    return REAL(execvp)(program, argv);
}
