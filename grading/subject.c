#define _GNU_SOURCE
#include "grading/subject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "criteria/supplied.h"
#include "grading/isolation.h"
#include "grading/observations.h"
#include "grading/process.h"
#include "grading/rubric.h"
#include "grading/run.h"
#include "grading/sanitize.h"
#include "runtime/dist.h"
#include "runtime/memory_internal.h"
#include "runtime/plugin.h"
#include "runtime/wait_limit.h"

/* ---- giving up before anything could be observed ---- */

/* The reason goes to the status page: the observations have none, and that is a failure. */
_Noreturn static void subject_give_up(struct subject *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn static void subject_give_up(struct subject *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->status->fault, sizeof s->status->fault, format, arguments);
    va_end(arguments);
    if (s->debugged)
        fprintf(stderr, "%s\n", s->status->fault);
    fflush(NULL);
    _exit(SUBJECT_GAVE_UP);
}

/* Not the student's doing: what this process was given makes no sense, or the machine does not do
 * what is needed. */
_Noreturn static void misused(const char *what)
{
    fprintf(stderr, "grade-subject: %s\n", what);
    _exit(SUBJECT_MISUSED);
}

/* ---- what criterion.h offers ---- */

int subject_rank(const struct subject *s)
{
    return s->rank;
}

int subject_world_size(const struct subject *s)
{
    return s->world_size;
}

uint64_t subject_seed(const struct subject *s)
{
    return s->seed;
}

struct device subject_device(const struct subject *s)
{
    return s->device == DEVICE_CPU || s->world_size > CRITERION_GPUS ? CPU : CUDA(s->rank);
}

struct device subject_stage_device(const struct subject *s, int stage)
{
    return s->device == DEVICE_CPU ? CPU : CUDA(stage % CRITERION_GPUS);
}

void (*subject_function(struct subject *s, const char *name))(void)
{
    void (*function)(void) = (void (*)(void))dlsym(s->handle, name);
    if (!function)
        subject_give_up(s, "assignment/%s has no function %s", s->criterion->file, name);
    snprintf(s->status->called, sizeof s->status->called, "%s", name);
    return function;
}

const char *subject_file(struct subject *s, const char *name)
{
    return scope_printf("%s/%s", s->folder, name);
}

/* A child that student code forked, and that came back into the observing half, has no say. */
void subject_record(struct subject *s, const void *bytes, size_t n)
{
    const char *rest = bytes;
    if (getpid() != s->pid)
        _exit(SUBJECT_UNHEARD);
    while (n > 0) {
        ssize_t written = write(s->observations, rest, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            _exit(SUBJECT_UNHEARD);
        rest += written;
        n -= (size_t)written;
    }
}

/* ---- the role ---- */

static void use_status(struct subject *s)
{
    activity_use(s->status->activity);
    crash_watch(s->status, s->library);
}

static void take_descriptors(struct subject *s)
{
    s->status =
        mmap(NULL, sizeof *s->status, PROT_READ | PROT_WRITE, MAP_SHARED, SUBJECT_STATUS, 0);
    if (s->status == MAP_FAILED)
        misused("no status page");
    close(SUBJECT_STATUS);
    use_status(s);
    system_watch_parent(SUBJECT_OBSERVATIONS);
}

/* What it has at other times from whoever starts it, and as much time as a person needs. */
static void stand_alone(struct subject *s, const char *timeout)
{
    static struct status_page nobody_reads;
    s->status = &nobody_reads;
    use_status(s);
    s->observations = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (s->observations < 0 || chdir(s->folder) < 0 || setenv("TMPDIR", s->folder, 1) < 0)
        misused(strerror(errno));
    wait_limit_set(atof(timeout));
}

/* "LIBRARY: undefined symbol: NAME" and the like, in the student's terms. */
static void load_library(struct subject *s)
{
    s->handle = dlopen(s->library, RTLD_NOW | RTLD_LOCAL);
    if (s->handle)
        return;
    const char *message = dlerror(), *symbol = strstr(message, "undefined symbol: ");
    if (symbol)
        subject_give_up(s, "assignment/%s uses %s, which neither it nor the runtime defines",
                        s->criterion->file, symbol + strlen("undefined symbol: "));
    subject_give_up(s, "assignment/%s cannot be loaded: %s", s->criterion->file, message);
}

static bool is_given(const char *argument)
{
    return strcmp(argument, SUBJECT_NOTHING) != 0;
}

/* A rank alone is a group too: collectives work there. */
static void connect_group(struct subject *s, const char *meeting, char **addresses,
                          double timeout_s)
{
    struct group_options options = {
        .rank = s->rank, .world_size = s->world_size, .timeout_s = timeout_s};
    if (is_given(meeting)) {
        options.file = meeting;
    } else if (s->world_size > 1) {
        options.listener = SUBJECT_LISTENER;
        options.addresses = (const char *const *)addresses;
    }
    struct group *group = group_connect(&options);
    if (!group)
        misused(error_message(error_pending()));
    dist_set_default(group);
}

static void load_plugin(const char *path)
{
    if (is_given(path) && plugin_load(path) < 0)
        misused(error_message(error_pending()));
}

/* From here on student code may run, and this process can do little. */
static void guard(struct subject *s, enum isolation_level level, const char *device)
{
    if (!isolation_guard(level, device))
        misused("cannot be confined");
    sanitize_confined();
    observe_begin(s);
}

/* Student code's destructors and atexit functions get no turn. */
_Noreturn static void finish(struct subject *s)
{
    fflush(NULL);
    if (memory_is_guarded())
        memory_check();
    observe_end(s);
    _exit(0);
}

int subject_main(int argc, char **argv)
{
    if (argc < SUBJECT_ADDRESSES)
        misused("too few arguments");
    struct subject s = {
        .criterion = rubric_find(argv[SUBJECT_ID]),
        .device = strcmp(argv[SUBJECT_DEVICE], "cpu") == 0 ? DEVICE_CPU : DEVICE_CUDA,
        .seed = strtoull(argv[SUBJECT_SEED], NULL, 10),
        .rank = atoi(argv[SUBJECT_RANK]),
        .world_size = atoi(argv[SUBJECT_WORLD_SIZE]),
        .library = argv[SUBJECT_LIBRARY],
        .folder = argv[SUBJECT_FOLDER],
        .observations = SUBJECT_OBSERVATIONS,
        .pid = getpid(),
    };
    enum isolation_level level = isolation_parse(argv[SUBJECT_ISOLATION]);
    s.debugged = level == ISOLATION_NONE;
    if (!s.criterion || s.rank < 0 || s.world_size < 1 || argc != SUBJECT_ADDRESSES + s.world_size)
        misused("wrong arguments");
    setvbuf(stdout, NULL, _IONBF, 0); /* what was printed before a crash is kept */
    if (s.debugged)
        stand_alone(&s, argv[SUBJECT_TIMEOUT]);
    else
        take_descriptors(&s);
    SCOPE;
    load_plugin(argv[SUBJECT_PLUGIN]);
    connect_group(&s, argv[SUBJECT_MEETING], argv + SUBJECT_ADDRESSES, atof(argv[SUBJECT_TIMEOUT]));
    guard(&s, level, argv[SUBJECT_DEVICE]);
    load_library(&s);
    if (s.criterion->supplied && !supplied_connect(s.handle, s.criterion->supplied))
        misused("the library lacks the supplied function");
    if (!s.criterion->speedup && !is_given(argv[SUBJECT_SANITIZER]))
        crash_guard_memory(__builtin_frame_address(0), s.debugged);
    s.criterion->observe(&s);
    finish(&s);
}
