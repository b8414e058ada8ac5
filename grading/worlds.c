#define _GNU_SOURCE
#include "grading/worlds.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grading/fault.h"
#include "grading/observations.h"
#include "grading/subject.h"
#include "runtime/built_with.h"
#include "runtime/dist.h"
#include "runtime/scope.h"

/* When one has crashed the others get a DistError soon, and end by themselves; not waited for long.
 */
enum { SECONDS_AFTER_A_CRASH = 3 };

static const uint64_t MEMORY_LEAST = 1ULL << 30, MEMORY_MOST = 4ULL << 30;

/* Half of the machine's memory for all subjects together, but enough for each. */
static uint64_t fair_memory(int subjects)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t share = pages > 0 ? (uint64_t)pages * (uint64_t)page / 2 / (uint64_t)subjects : 0;
    return share < MEMORY_LEAST ? MEMORY_LEAST : share > MEMORY_MOST ? MEMORY_MOST : share;
}

/* A sanitizer reserves more address space than any limit that would be of use. The simulated device
 * keeps address space in reserve, as CUDA does; what is reserved is not data.
 * NCCL makes large files of shared memory. */
static struct process_limits subject_limits(const struct worlds *worlds)
{
    bool cpu = strcmp(worlds->device, "cpu") == 0, cuda = strcmp(worlds->device, "cuda") == 0;
    uint64_t memory = BUILT_WITH_ASAN || BUILT_WITH_TSAN || cuda ? 0 : fair_memory(worlds->count);
    return (struct process_limits){
        .wall_s = worlds->timeout_s,
        .late_signal = TIME_UP,
        .grace_s = 0.2,
        .cpu_s = (uint64_t)(worlds->timeout_s * 16) + 60,
        .file_bytes = cuda ? 0 : 128 << 20,
        .memory_bytes = cpu ? memory : 0,
        .data_bytes = memory,
        .descriptors = cuda ? 4096 : 256,
        .tasks = 4096,
    };
}

/* ---- what a subject is given ---- */

static int listening_socket(char address[32])
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || fcntl(listener, F_SETFD, FD_CLOEXEC) < 0 ||
        bind(listener, (struct sockaddr *)&name, sizeof name) < 0 ||
        listen(listener, GROUP_MAX_RANKS) < 0 ||
        getsockname(listener, (struct sockaddr *)&name, &length) < 0)
        fault("cannot listen on 127.0.0.1: %s", strerror(errno));
    snprintf(address, 32, "127.0.0.1:%d", ntohs(name.sin_port));
    return listener;
}

static void prepare(struct worlds *worlds, struct inhabitant *subject)
{
    subject->worlds = worlds;
    subject->folder =
        format_or_fault("%s/rank-%d-of-%d", worlds->folder, subject->rank, subject->world_size);
    if (mkdir(subject->folder, 0700) < 0)
        fault("cannot make the folder %s: %s", subject->folder, strerror(errno));
    subject->page = system_shared_page(sizeof subject->status, worlds->folder);
    if (subject->page < 0)
        fault("cannot share a page of memory: %s", strerror(errno));
}

static bool is_debugged(const struct inhabitant *subject)
{
    return subject->worlds->debugger && subject->rank == 0;
}

/* ---- starting ---- */

static bool went_down(const struct process *process)
{
    return !WIFEXITED(process->wait_status) || WEXITSTATUS(process->wait_status) != 0;
}

static void subject_ended(struct process *process)
{
    struct inhabitant *subject = process->context;
    if (process->start_error)
        fault("cannot start a subject: %s", strerror(process->start_error));
    if (is_debugged(subject))
        processes_hurry(subject->worlds->all, 0);
    else if (subject->worlds->debugger)
        inhabitant_write(subject, stderr);
    else if (went_down(process))
        processes_hurry(subject->worlds->all, SECONDS_AFTER_A_CRASH);
}

static int count(const char *const *words)
{
    int n = 0;
    while (words[n])
        n++;
    return n;
}

/* owns: the caller (free), the list alone */
static const char **join(const char *const *first, const char *const *second)
{
    size_t n = (size_t)count(first), more = (size_t)count(second);
    const char **all = alloc_or_fault(sizeof *all * (n + more + 1));
    memcpy(all, first, sizeof *all * n);
    memcpy(all + n, second, sizeof *all * more);
    return all;
}

static int start_alone(struct inhabitant *subject, const char *const *arguments)
{
    subject->process = (struct process){
        .program = subject->worlds->executable,
        .arguments = arguments,
        .folder = subject->folder,
        .data_limit = OBSERVATIONS_MAX_BYTES,
        .descriptors = {subject->page, subject->listener},
        .limits = subject_limits(subject->worlds),
        .ended = subject_ended,
        .context = subject,
    };
    return process_start(subject->worlds->all, &subject->process);
}

static int start_under_debugger(struct inhabitant *subject, const char *const *arguments)
{
    const char **command = join(subject->worlds->debugger, arguments + 1);
    subject->process = (struct process){
        .program = command[0],
        .arguments = command,
        .folder = subject->folder,
        .terminal = true,
        .limits = {.wall_s = subject->worlds->timeout_s, .late_signal = SIGTERM, .grace_s = 1},
        .ended = subject_ended,
        .context = subject,
    };
    int error = process_start(subject->worlds->all, &subject->process);
    free(command);
    return error;
}

static const char *or_nothing(const char *text)
{
    return text && *text ? text : SUBJECT_NOTHING;
}

static void start(struct worlds *worlds, struct inhabitant *subject,
                  const char *const addresses[GROUP_MAX_RANKS])
{
    bool debugged = is_debugged(subject);
    char seed[24], rank[12], world_size[12], group_timeout[32];
    snprintf(seed, sizeof seed, "%ju", (uintmax_t)worlds->seed);
    snprintf(rank, sizeof rank, "%d", subject->rank);
    snprintf(world_size, sizeof world_size, "%d", subject->world_size);
    /* The judge's time-out comes first: it can tell what every rank was waiting for. */
    snprintf(group_timeout, sizeof group_timeout, "%g", 2 * worlds->timeout_s);
    const char *arguments[SUBJECT_ADDRESSES + GROUP_MAX_RANKS + 1] = {
        "grade-subject",
        [SUBJECT_ID] = worlds->criterion->id,
        [SUBJECT_DEVICE] = worlds->device,
        [SUBJECT_SEED] = seed,
        [SUBJECT_RANK] = rank,
        [SUBJECT_WORLD_SIZE] = world_size,
        [SUBJECT_PLUGIN] = or_nothing(worlds->plugin),
        [SUBJECT_LIBRARY] = worlds->library,
        [SUBJECT_FOLDER] = subject->folder,
        [SUBJECT_TIMEOUT] = group_timeout,
        [SUBJECT_ISOLATION] = debugged ? isolation_name(ISOLATION_NONE) : worlds->isolation,
        [SUBJECT_SANITIZER] = or_nothing(worlds->sanitizer),
        [SUBJECT_MEETING] = or_nothing(worlds->meeting),
    };
    memcpy(arguments + SUBJECT_ADDRESSES, addresses,
           sizeof *addresses * (size_t)subject->world_size);
    int error =
        debugged ? start_under_debugger(subject, arguments) : start_alone(subject, arguments);
    if (error)
        fault("cannot start a subject: %s", strerror(error));
}

/* Every rank knows all addresses before any starts, and its socket takes connections already. */
static void start_world(struct worlds *worlds, struct inhabitant *ranks, int world_size)
{
    char text[GROUP_MAX_RANKS][32];
    const char *addresses[GROUP_MAX_RANKS];
    for (int i = 0; i < world_size; i++) {
        ranks[i].rank = i;
        ranks[i].world_size = world_size;
        prepare(worlds, &ranks[i]);
        strcpy(text[i], SUBJECT_NOTHING);
        if (world_size > 1 && !worlds->meeting)
            ranks[i].listener = listening_socket(text[i]);
        addresses[i] = text[i];
    }
    for (int i = 0; i < world_size; i++)
        start(worlds, &ranks[i], addresses);
    for (int i = 0; i < world_size; i++)
        if (ranks[i].listener)
            close(ranks[i].listener); /* else a connection to a rank that is gone would succeed */
}

static int world_size_at(const struct criterion *criterion, int index)
{
    int size = index < WORLDS_MAX ? criterion->worlds[index] : 0;
    return index == 0 && size == 0 ? 1 : size;
}

static void start_all(struct worlds *worlds)
{
    for (int i = 0; world_size_at(worlds->criterion, i); i++)
        worlds->count += world_size_at(worlds->criterion, i);
    worlds->at = alloc_or_fault(sizeof *worlds->at * (size_t)worlds->count);
    struct inhabitant *next = worlds->at;
    for (int i = 0, size; (size = world_size_at(worlds->criterion, i)); i++) {
        start_world(worlds, next, size);
        next += size;
    }
}

/* ---- what comes back ---- */

static void collect(struct inhabitant *subject)
{
    const struct capture *data = &subject->process.data;
    if (!status_read(subject->page, &subject->status))
        memset(&subject->status, 0, sizeof subject->status);
    close(subject->page);
    if (!capture_overflowed(data))
        subject->observations =
            observations_decode(data->head, data->head_bytes, subject->rank, subject->world_size);
}

bool inhabitant_began(const struct inhabitant *subject)
{
    return subject->process.data.head_bytes > 0;
}

/* Where no rank of a world has begun, no student code can be to blame; the first to end knows what
 * is. */
static void require_beginning(const struct worlds *worlds, const struct inhabitant *ranks)
{
    SCOPE;
    const struct inhabitant *first = ranks;
    for (int i = 0; i < ranks->world_size; i++) {
        if (inhabitant_began(&ranks[i]))
            return;
        if (ranks[i].process.seconds < first->process.seconds)
            first = &ranks[i];
    }
    char *printed = capture_text(&first->process.output);
    fault("rank %d of %d of %s %s before the student's code ran%s%.*s", first->rank,
          first->world_size, worlds->criterion->id, inhabitant_end(first), *printed ? ": " : "",
          (int)strcspn(printed, "\n"), printed);
}

bool worlds_observe(struct worlds *worlds, const volatile bool *interrupted)
{
    worlds->all = processes_new();
    start_all(worlds);
    processes_allow(worlds->all, worlds->timeout_s);
    while (processes_running(worlds->all) && !*interrupted)
        processes_wait(worlds->all);
    processes_stop(worlds->all);
    processes_free(worlds->all);
    worlds->all = NULL;
    for (int i = 0; i < worlds->count; i++)
        collect(&worlds->at[i]);
    if (*interrupted || worlds->debugger)
        return !*interrupted;
    for (int i = 0; i < worlds->count; i += worlds->at[i].world_size)
        require_beginning(worlds, &worlds->at[i]);
    return true;
}

void worlds_close(struct worlds *worlds)
{
    for (int i = 0; i < worlds->count; i++) {
        process_close(&worlds->at[i].process);
        observations_free(worlds->at[i].observations);
        free(worlds->at[i].folder);
    }
    free(worlds->at);
}

struct inhabitant *worlds_find(const struct worlds *worlds, int world_size, int rank)
{
    for (int i = 0; i < worlds->count; i++)
        if (worlds->at[i].world_size == world_size && worlds->at[i].rank == rank)
            return &worlds->at[i];
    return NULL;
}
