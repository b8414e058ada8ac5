/* isolation_seccomp.c - the system calls that student code is refused.
 *
 * A refused call fails with EPERM, so that the student's own error handling has its turn and the
 * reason stays readable; an unknown call convention kills. Refused is what starts a program or a
 * process, reaches other processes, the network or a terminal, or changes the system. What the
 * runtime does after student code is loaded stays possible: files, memory, threads, locks, and its
 * connections, which are open by then. The devices "sim" and "cuda" make some of their own later.
 */
#if defined(__linux__) && !defined(POSIX_ONLY)
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "grading/isolation.h"

/* A rule with a condition on an argument of the call. */
struct rule {
    const char *call;
    struct scmp_arg_cmp when;
};

#define NAMES(list, count) enum { count = sizeof list / sizeof list[0] }
#define LOW_WORD 0xffffffffU /* of these arguments the kernel looks at no more */
#define IS(argument, value) SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, LOW_WORD, value)

/* ---- refused on every device ---- */

static const char *const refused[] = {
    /* programs and processes; a thread is a clone too, see below */
    "execve",
    "execveat",
    "fork",
    "vfork",
    /* other processes: their memory, signals, descriptors, priority */
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "process_mrelease",
    "kcmp",
    "tkill",
    "pidfd_open",
    "pidfd_getfd",
    "pidfd_send_signal",
    "setpriority",
    "ioprio_set",
    "sched_setparam",
    "sched_setattr",
    "migrate_pages",
    "move_pages",
    /* mounts and namespaces */
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "chroot",
    "unshare",
    "setns",
    "open_tree",
    "open_tree_attr",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "name_to_handle_at",
    "open_by_handle_at",
    "fanotify_init",
    "fanotify_mark",
    "quotactl",
    "quotactl_fd",
    "mknod",
    "mknodat",
    /* the kernel */
    "bpf",
    "perf_event_open",
    "keyctl",
    "add_key",
    "request_key",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "syslog",
    "vhangup",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "sethostname",
    "setdomainname",
    "iopl",
    "ioperm",
    "lookup_dcookie",
    "modify_ldt",
    /* what outlives a process */
    "shmget",
    "shmat",
    "shmctl",
    "semget",
    "semop",
    "semctl",
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
    "mq_open",
    "mq_unlink",
};
NAMES(refused, REFUSED);

static const struct rule refused_if[] = {
    {"clone", SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)},
    /* signals sent by the kernel on somebody's behalf; surviving one's parent */
    {"fcntl", IS(1, F_SETOWN)},
    {"fcntl", IS(1, F_SETOWN_EX)},
    {"fcntl", IS(1, F_SETSIG)},
    {"ioctl", IS(1, FIOSETOWN)},
    {"ioctl", IS(1, SIOCSPGRP)},
    {"prctl", IS(0, PR_SET_PDEATHSIG)},
    /* limits and processors of others */
    {"prlimit64", SCMP_CMP(0, SCMP_CMP_NE, 0, 0)},
    {"sched_setaffinity", SCMP_CMP(0, SCMP_CMP_NE, 0, 0)},
    {"sched_setscheduler", SCMP_CMP(0, SCMP_CMP_NE, 0, 0)},
    {"sched_setscheduler", SCMP_CMP(1, SCMP_CMP_NE, SCHED_BATCH, 0)}, /* stage workers ask for it */
    /* terminals */
    {"ioctl", IS(1, TIOCSTI)},
    {"ioctl", IS(1, TIOCSCTTY)},
    {"ioctl", IS(1, TIOCSETD)},
    {"ioctl", IS(1, TIOCSWINSZ)},
    {"ioctl", IS(1, TIOCLINUX)},
    {"ioctl", IS(1, TCSETS)},
    {"ioctl", IS(1, TCSETSW)},
    {"ioctl", IS(1, TCSETSF)},
    {"ioctl", IS(1, TCSETA)},
    {"ioctl", IS(1, TCSETAW)},
    {"ioctl", IS(1, TCSETAF)},
};
NAMES(refused_if, REFUSED_IF);

/* Allowed if the first argument is this process, refused otherwise. */
static const char *const for_itself[] = {"kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"};
NAMES(for_itself, FOR_ITSELF);

/* ---- by device ---- */

/* Files in memory, which no limit counts. */
static const char *const refused_but_on_cuda[] = {"memfd_create", "memfd_secret"};
NAMES(refused_but_on_cuda, REFUSED_BUT_ON_CUDA);

static const char *const refused_on_cpu[] = {"socket",  "bind",   "listen",
                                             "connect", "accept", "accept4"};
NAMES(refused_on_cpu, REFUSED_ON_CPU);

/* NCCL's stand-in connects over loopback, by TCP alone. */
static const struct rule refused_on_sim[] = {
    {"socket", SCMP_CMP(0, SCMP_CMP_NE, AF_INET, 0)},
    {"socket", SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM)},
    {"socket", SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xf, SOCK_RAW)},
};
NAMES(refused_on_sim, REFUSED_ON_SIM);

/* ---- the filter ---- */

/* Names and calls that this library or this processor does not know cannot be called by them. */
static int refuse(scmp_filter_ctx filter, const char *name, int error,
                  const struct scmp_arg_cmp *when)
{
    int call = seccomp_syscall_resolve_name(name);
    if (call == __NR_SCMP_ERROR)
        return 0;
    int code =
        seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((uint32_t)error), call, when ? 1 : 0, when);
    return code == -EDOM || code == -EEXIST ? 0 : code;
}

static int refuse_all(scmp_filter_ctx filter, const char *const names[], int n)
{
    int code = 0;
    for (int i = 0; i < n && code == 0; i++)
        code = refuse(filter, names[i], EPERM, NULL);
    return code;
}

static int refuse_some(scmp_filter_ctx filter, const struct rule rules[], int n)
{
    int code = 0;
    for (int i = 0; i < n && code == 0; i++)
        code = refuse(filter, rules[i].call, EPERM, &rules[i].when);
    return code;
}

static int refuse_for_others(scmp_filter_ctx filter)
{
    struct scmp_arg_cmp others = SCMP_CMP(0, SCMP_CMP_NE, (scmp_datum_t)getpid(), 0);
    int code = 0;
    for (int i = 0; i < FOR_ITSELF && code == 0; i++)
        code = refuse(filter, for_itself[i], EPERM, &others);
    return code;
}

static int refuse_for_device(scmp_filter_ctx filter, const char *device)
{
    if (strcmp(device, "cuda") == 0)
        return 0;
    int code = refuse_all(filter, refused_but_on_cuda, REFUSED_BUT_ON_CUDA);
    if (code != 0)
        return code;
    if (strcmp(device, "sim") == 0)
        return refuse_some(filter, refused_on_sim, REFUSED_ON_SIM);
    return refuse_all(filter, refused_on_cpu, REFUSED_ON_CPU);
}

/* clone3 has its flags in memory, where no filter can look; the C library then uses clone. */
static int fill(scmp_filter_ctx filter, const char *device)
{
    int code = refuse(filter, "clone3", ENOSYS, NULL);
    code = code ? code : refuse_all(filter, refused, REFUSED);
    code = code ? code : refuse_some(filter, refused_if, REFUSED_IF);
    code = code ? code : refuse_for_others(filter);
    return code ? code : refuse_for_device(filter, device);
}

/* All threads get it. It costs speculation nothing, which the kernel would else slow down. */
static int load(scmp_filter_ctx filter)
{
    int code = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    return code ? code : seccomp_load(filter);
}

bool isolation_filter(const char *device)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int code = filter ? fill(filter, device) : -ENOMEM;
    code = code ? code : load(filter);
    seccomp_release(filter);
    errno = -code;
    return code == 0;
}
#endif
