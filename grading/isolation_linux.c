/* isolation_linux.c - namespaces: the world as a criterion, or a compiler, sees it.
 *
 * The child is made in new namespaces, all at once. In them it is allowed to mount: it covers what
 * is to be hidden, puts back what is to be shown, makes everything read-only but one folder, and
 * gives up the right to undo that. isolation_posix.c is the twin. */
#if defined(__linux__) && !defined(POSIX_ONLY)
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "grading/isolation_internal.h"
#include "runtime/built_with.h"

enum { SPACES = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC };

/* Who we are outside: inside, nobody is known before it is said. */
static struct {
    uid_t user;
    gid_t group;
    bool as_root; /* without a user namespace */
} outside;

static pid_t fork_into(unsigned long spaces)
{
    return (pid_t)syscall(SYS_clone, spaces | SIGCHLD, NULL, NULL, NULL, NULL);
}

/* Some containers refuse user namespaces; root can have the others without. */
pid_t isolation_fork(const struct enclosure *enclosure)
{
    if (!enclosure || enclosure->level != ISOLATION_NAMESPACES)
        return fork();
    outside.user = geteuid();
    outside.group = getegid();
    pid_t pid = outside.as_root ? -1 : fork_into(SPACES | CLONE_NEWUSER);
    if (pid < 0 && outside.user == 0) {
        outside.as_root = true;
        pid = fork_into(SPACES);
    }
    return pid;
}

/* ---- who we are inside: the same user, and no other ---- */

static bool write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t written = write(file, text, strlen(text));
    close(file);
    return written == (ssize_t)strlen(text);
}

static bool map_user(void)
{
    char users[64], groups[64];
    if (outside.as_root)
        return true;
    snprintf(users, sizeof users, "%u %u 1", outside.user, outside.user);
    snprintf(groups, sizeof groups, "%u %u 1", outside.group, outside.group);
    return write_text("/proc/self/uid_map", users) && write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/gid_map", groups);
}

bool isolation_drop_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return syscall(SYS_capset, &header, none) == 0;
}

/* A sanitizer's leak checker traces its own process. */
void isolation_protect(void)
{
    if (!BUILT_WITH_ASAN && !BUILT_WITH_TSAN)
        prctl(PR_SET_DUMPABLE, 0);
}

/* ---- mounts ---- */

enum { QUIET = MS_NOSUID | MS_NODEV };

static bool mount_memory(const char *place, uint64_t bytes, const char *mode)
{
    char options[64];
    snprintf(options, sizeof options, "mode=%s,size=%ju", mode, (uintmax_t)bytes);
    return mount("tmpfs", place, "tmpfs", QUIET, options) == 0;
}

/* The folders on the way to a path, and an empty file or folder at it, where they are missing. What
 * cannot be made is found out when something is to be mounted there. */
static void make_place(const char *path, bool is_folder)
{
    char part[4096];
    size_t length = strlen(path);
    for (size_t i = 1; i < length && i < sizeof part; i++)
        if (path[i] == '/') {
            memcpy(part, path, i);
            part[i] = '\0';
            mkdir(part, 0755);
        }
    if (is_folder)
        mkdir(path, 0755);
    else
        mknod(path, S_IFREG | 0444, 0);
}

/* What was at a path before it was covered: a descriptor, or -1 if nothing was
 * returns: whether that could be found out */
static bool reach(const char *path, int *reached)
{
    *reached = path ? open(path, O_PATH | O_CLOEXEC) : -1;
    return !path || *reached >= 0 || errno == ENOENT || errno == ENOTDIR || errno == EACCES;
}

static bool bind_at(int what, const char *place)
{
    struct stat kind;
    char from[40];
    if (fstat(what, &kind) < 0)
        return false;
    make_place(place, S_ISDIR(kind.st_mode));
    snprintf(from, sizeof from, "/proc/self/fd/%d", what);
    return mount(from, place, NULL, MS_BIND | MS_REC, NULL) == 0;
}

/* What is mounted at `place` loses the flags that sealing gave it, but for these. */
static bool unseal(const char *place, unsigned long flags)
{
    return mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | flags, NULL) == 0;
}

/* ---- devices: a handful ---- */

/* As many GPUs as gpus.h knows. */
static const char *const devices[] = {
    "/dev/null",        "/dev/zero",           "/dev/full",       "/dev/random",
    "/dev/urandom",     "/dev/nvidiactl",      "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
    "/dev/nvidia-caps", "/dev/nvidia-modeset", "/dev/nvidia0",    "/dev/nvidia1",
    "/dev/nvidia2",     "/dev/nvidia3",        "/dev/nvidia4",    "/dev/nvidia5",
    "/dev/nvidia6",     "/dev/nvidia7",        "/dev/nvidia8",    "/dev/nvidia9",
    "/dev/nvidia10",    "/dev/nvidia11",       "/dev/nvidia12",   "/dev/nvidia13",
    "/dev/nvidia14",    "/dev/nvidia15",
};
enum {
    DEVICES = sizeof devices / sizeof devices[0],
    PLAIN_DEVICES = 5,
    DEVICE_FOLDER_BYTES = 1 << 16
};

static bool bind_devices(const int reached[DEVICES])
{
    for (int i = 0; i < DEVICES; i++)
        if (reached[i] >= 0 && !bind_at(reached[i], devices[i]))
            return false;
    mkdir("/dev/shm", 0755);
    return symlink("/proc/self/fd", "/dev/fd") == 0 && symlink("fd/1", "/dev/stdout") == 0 &&
           symlink("fd/2", "/dev/stderr") == 0;
}

static bool unseal_devices(const int reached[DEVICES])
{
    for (int i = 0; i < DEVICES; i++)
        if (reached[i] >= 0 && !unseal(devices[i], MS_RDONLY | MS_NOSUID | MS_NOEXEC))
            return false;
    return true;
}

/* ---- the enclosure ---- */

/* What is needed of the world outside once it is covered. */
struct reached {
    int shown[ENCLOSURE_PATHS], devices[DEVICES], writable;
};

static bool reach_all(const struct enclosure *enclosure, struct reached *reached)
{
    bool all = true;
    for (int i = 0; i < ENCLOSURE_PATHS; i++)
        all = reach(enclosure->shown[i], &reached->shown[i]) && all;
    for (int i = 0; i < DEVICES; i++) {
        bool wanted = i < PLAIN_DEVICES || enclosure->gpus;
        all = reach(wanted ? devices[i] : NULL, &reached->devices[i]) && all;
    }
    return reach(enclosure->writable_bytes ? NULL : enclosure->writable, &reached->writable) && all;
}

static bool cover(const struct enclosure *enclosure, const struct reached *reached)
{
    for (int i = 0; i < ENCLOSURE_PATHS && enclosure->hidden[i]; i++) {
        make_place(enclosure->hidden[i], true);
        if (!mount_memory(enclosure->hidden[i], DEVICE_FOLDER_BYTES, "0755"))
            return false;
    }
    for (int i = 0; i < ENCLOSURE_PATHS; i++)
        if (reached->shown[i] >= 0 && !bind_at(reached->shown[i], enclosure->shown[i]))
            return false;
    make_place(enclosure->writable, true);
    return mount_memory("/dev", DEVICE_FOLDER_BYTES, "0755") && bind_devices(reached->devices);
}

static bool open_writable(const struct enclosure *enclosure, int reached)
{
    if (enclosure->gpus && !mount_memory("/dev/shm", enclosure->writable_bytes * 8, "0700"))
        return false;
    if (enclosure->writable_bytes)
        return mount_memory(enclosure->writable, enclosure->writable_bytes, "0700");
    return bind_at(reached, enclosure->writable) && unseal(enclosure->writable, QUIET);
}

static bool raise_loopback(void)
{
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int handle = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool raised = handle >= 0 && ioctl(handle, SIOCSIFFLAGS, &loopback) == 0;
    if (handle >= 0)
        close(handle);
    return raised;
}

static bool enter_namespaces(const struct enclosure *enclosure)
{
    struct reached reached;
    if (!map_user() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    return reach_all(enclosure, &reached) && cover(enclosure, &reached) && isolation_seal() &&
           unseal_devices(reached.devices) && open_writable(enclosure, reached.writable) &&
           mount("proc", "/proc", "proc", MS_RDONLY | MS_NOEXEC | QUIET, NULL) == 0 &&
           raise_loopback() && isolation_drop_rights();
}

bool isolation_enter(const struct enclosure *enclosure)
{
    if (enclosure && enclosure->level == ISOLATION_NAMESPACES)
        return enter_namespaces(enclosure);
    if (enclosure && enclosure->level == ISOLATION_SECCOMP)
        return isolation_write_only(enclosure->writable);
    return true;
}
#endif
