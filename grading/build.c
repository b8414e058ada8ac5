#define _GNU_SOURCE
#include "grading/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grading/build_includes.h"
#include "grading/command.h"
#include "grading/crash.h"
#include "grading/fault.h"
#include "grading/sanitize.h"
#include "grading/text.h"
#include "runtime/scope.h"

enum { COMPILE_SECONDS = 60, ERRORS_SHOWN = 3, DISK_LEAST_BYTES = 1 << 20 };

static const struct process_limits limits = {
    .wall_s = COMPILE_SECONDS,
    .cpu_s = COMPILE_SECONDS,
    .memory_bytes = 1ULL << 30,
    .file_bytes = 256 << 20,
};

/* ---- command lines ---- */

/* What some compilers refuse, and others make something of. */
static const char same_with_every_compiler[] =
    "-Werror=return-type -Werror=implicit-function-declaration -Werror=implicit-int "
    "-Werror=int-conversion -Werror=incompatible-pointer-types";

/* Frame pointers and no sibling calls: a crash is found in the student's line. */
static void command_add_compilation(const struct build *build, struct command *command)
{
    command_add_compiler(command);
    command_add_words(command, "-std=gnu17 -O1 -g -fPIC -fno-omit-frame-pointer -Wall "
                               "-fno-optimize-sibling-calls -fdiagnostics-color=never -H -x c");
    command_add_words(command, same_with_every_compiler);
    command_add(command, scope_printf("-fdebug-prefix-map=%s=.", build->folder));
    command_add_words(command, "-include weak.h -iquote");
    command_add(command, scope_printf("%s/assignment", build->home));
    command_add(command, "-I");
    command_add(command, build->home);
    command_add_words(command, STUDENT_CFLAGS);
    command_add_words(command, sanitize_flags(build->sanitizer));
    if (build->for_debugger)
        command_add(command, "-O0");
}

static void compile_command(const struct build *build, struct command *command)
{
    command_add_compilation(build, command);
    command_add_words(command, "-c -o student.o");
    command_add(command, scope_printf("assignment/%s", build->file));
}

static const char *supplied_object(const struct library *library)
{
    return scope_printf("%s/" BUILD_FOLDER "/criteria/supplied/%s.o", library->build->home,
                        library->supplied);
}

#ifndef __APPLE__
/* Clocks, sleeps and locks go through runtime/clock_wrap.c, which does nothing more unless clocks
 * are shifted or the device's time is virtual. */
static const char in_our_time[] =
    "-Wl,--wrap=time,--wrap=gettimeofday,--wrap=clock_gettime,--wrap=timespec_get "
    "-Wl,--wrap=nanosleep,--wrap=clock_nanosleep,--wrap=usleep,--wrap=sleep,--wrap=thrd_sleep,--"
    "wrap=poll,--wrap=select "
    "-Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_trylock,--wrap=pthread_mutex_unlock "
    "-Wl,--wrap=pthread_cond_wait";

/* Allocation goes through runtime/memory_wrap.c, which puts guards around what it gives. */
static const char between_guards[] = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap="
                                     "reallocarray,--wrap=free,--wrap=tensor_empty";
#endif

static void link_command(const struct library *library, struct command *command)
{
    command_add_compiler(command);
#ifdef __APPLE__
    command_add_words(command, "-dynamiclib -undefined dynamic_lookup");
#else
    command_add_words(command, "-shared -Wl,-Bsymbolic");
    command_add_words(command, in_our_time);
    if (!*library->build->sanitizer) /* it has guards of its own */
        command_add_words(command, between_guards);
#endif
    command_add_words(command, sanitize_flags(library->build->sanitizer));
    command_add(command, "-o");
    command_add(command, library->path);
    command_add(command, "student.o");
    if (library->supplied)
        command_add(command, supplied_object(library));
}

/* ---- what went wrong, and whose fault it is ---- */

static bool is_short_of_disk(const char *folder)
{
    struct statvfs disk;
    return statvfs(folder, &disk) == 0 && disk.f_bavail * disk.f_frsize < DISK_LEAST_BYTES;
}

/* A compiler that could not do its work says so in a line of its own ("cc: fatal error: cannot
 * execute 'cc1': ..."). So may the student's text, by #line or in assembly. */
static const char *machine_complaint(const char *log)
{
    const int errors[] = {ENOSPC, EAGAIN, EMFILE, ENFILE, EROFS, EDQUOT};
    char *rest = scope_printf("%s", log), *line;
    while ((line = strsep(&rest, "\n"))) {
        if (strncmp(line, "assignment/", 11) == 0 || *line == ' ')
            continue;
        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
            if (strstr(line, strerror(errors[i])))
                return line;
        if (strstr(line, "cannot execute"))
            return line;
    }
    return NULL;
}

static const char *machine_fault(const struct build *build, const struct process *process,
                                 const char *output)
{
    struct command command = {0};
    command_add_compiler(&command);
    if (process->start_error)
        return scope_printf("cannot run the compiler %s: %s", command.at[0],
                            strerror(process->start_error));
    if (is_short_of_disk(build->folder))
        return scope_printf("no space left in %s", build->folder);
    if (process_succeeded(process) && access(output, F_OK) < 0)
        return scope_printf("the compiler %s wrote no %s, and reported no error", command.at[0],
                            output);
    return NULL;
}

static bool is_error(const char *line)
{
    return strstr(line, ": error: ") || strstr(line, ": fatal error: ") ||
           strstr(line, ": Error: ") || strstr(line, "undefined reference") ||
           strstr(line, "multiple definition");
}

/* The first errors in the log, one per line; or its first line. */
static const char *first_errors(const char *log)
{
    char *rest = scope_printf("%s", log), *line;
    const char *errors = "";
    for (int n = 0; n < ERRORS_SHOWN && (line = strsep(&rest, "\n"));)
        if (is_error(line)) {
            errors = scope_printf("%s%s%s", errors, n ? "\n" : "", line);
            n++;
        }
    log += strspn(log, "\n");
    return *errors ? errors : scope_printf("%.*s", (int)strcspn(log, "\n"), log);
}

static char *student_fault(const struct build *build, const struct process *process,
                           const char *log)
{
    if (process->late)
        return format_or_fault("assignment/%s took longer than %d s to compile", build->file,
                               COMPILE_SECONDS);
    if (WIFSIGNALED(process->wait_status))
        return format_or_fault("assignment/%s does not compile: %s ended the compiler", build->file,
                               signal_name(WTERMSIG(process->wait_status)));
    char *all =
        format_or_fault("assignment/%s does not compile:\n%s", build->file, first_errors(log));
    char *start = start_or_fault(all);
    free(all);
    return start;
}

/* What the compiler said of a file that it should not have read may hold what is in it. */
static const char *forbidden_words(const struct build *build, const struct process *process,
                                   const char *foreign)
{
    if (capture_overflowed(&process->output))
        return scope_printf("assignment/%s makes the compiler say too much", build->file);
    return foreign ? scope_printf("assignment/%s includes %s, which is no header of the runtime, "
                                  "the assignment or the system",
                                  build->file, foreign)
                   : NULL;
}

static void log_add(struct build *build, const char *text)
{
    char *all = format_or_fault("%s%s", build->log, text);
    free(build->log);
    build->log = all;
}

/* Why there is no result, in the build: the first reason counts. */
static void explain(struct build *build, const struct process *process, const char *output,
                    const char *log)
{
    const char *machine = machine_fault(build, process, output);
    const char *complaint = build->tried ? NULL : machine_complaint(log);
    build->doubt = !machine && !build->tried;
    if (machine)
        build->fault = format_or_fault("%s", machine);
    else if (complaint && !build->complaint)
        build->complaint = format_or_fault("%s", complaint);
    else if (!complaint && !build->reason)
        build->reason = student_fault(build, process, log);
}

/* Keep what a compiler or linker said, and judge its end.
 * output: what it was to write. returns: true if it succeeded */
static bool account(struct build *build, struct process *process, const char *output)
{
    SCOPE;
    const char *foreign;
    char *said = capture_text(&process->output);
    char *log = includes_take(said, build->folder, build->home, &foreign);
    const char *forbidden = forbidden_words(build, process, foreign);
    bool succeeded = process_succeeded(process) && access(output, F_OK) == 0 && !forbidden;
    if (forbidden && !process->late && !build->reason)
        build->reason = format_or_fault("%s", forbidden);
    else if (!succeeded && !build->fault)
        explain(build, process, output, log);
    if (!build->complaint)
        log_add(build, forbidden ? scope_printf("%s\n", forbidden) : log);
    free(said);
    free(log);
    process_close(process);
    return succeeded;
}

/* ---- the steps ---- */

/* Of the checkout the compiler reads what student code may include, the linker the function that
 * is supplied. Both write in the build's folder. */
static struct enclosure build_enclosure(const struct build *build, const char *supplied)
{
    return (struct enclosure){
        .level = build->isolation,
        .hidden = {build->home, build->private, "/etc"},
        .shown = {scope_printf("%s/runtime", build->home),
                  scope_printf("%s/assignment", build->home), "/etc/alternatives",
                  "/etc/ld.so.cache", supplied},
        .writable = build->folder,
    };
}

static void start(struct build *build, struct process *process, const struct command *command,
                  const char *supplied)
{
    struct enclosure enclosure = build_enclosure(build, supplied);
    process->program = command->at[0];
    process->arguments = command->at;
    process->folder = build->folder;
    process->limits = limits;
    process->enclosure = &enclosure;
    int error = process_start(build->all, process);
    process->enclosure = NULL;
    if (error && !build->fault)
        build->fault = format_or_fault("cannot start the compiler: %s", strerror(error));
}

static void trial_start(struct build *build);

static void link_ended(struct process *process)
{
    struct library *library = process->context;
    library->ready = account(library->build, process, library->path);
    library->in_doubt = library->build->doubt && !library->ready;
    if (library->in_doubt)
        trial_start(library->build);
    else
        library->build->finished(library);
}

static void link_start(struct library *library)
{
    SCOPE;
    struct command command = {0};
    link_command(library, &command);
    library->link = (struct process){.ended = link_ended, .context = library};
    start(library->build, &library->link, &command,
          library->supplied ? supplied_object(library) : NULL);
}

static void compile_ended(struct process *process)
{
    SCOPE;
    struct build *build = process->context;
    build->compiled = account(build, process, scope_printf("%s/student.o", build->folder));
    for (int i = 0; i < build->library_count; i++)
        if (build->doubt)
            build->libraries[i].in_doubt = true;
        else if (build->compiled && !build->fault)
            link_start(&build->libraries[i]);
        else
            build->finished(&build->libraries[i]);
    if (build->doubt)
        trial_start(build);
}

static void compile_start(struct build *build)
{
    SCOPE;
    struct command command = {0};
    compile_command(build, &command);
    build->compile = (struct process){.ended = compile_ended, .context = build};
    start(build, &build->compile, &command, NULL);
}

static void trial_failed(struct build *build, const struct process *process)
{
    struct command command = {0};
    command_add_compiler(&command);
    char *said = capture_text(&process->output);
    const char *complaint = build->complaint ? build->complaint : first_errors(said);
    build->fault =
        format_or_fault("the compiler %s cannot work: %s", command.at[0],
                        *complaint ? complaint : "it does not compile the assignment's header");
    free(said);
}

/* Where the compiler can work, what complained may have been the student's text, or the machine is
 * well again: once more, and then it is the student's. */
static void again(struct build *build)
{
    if (!build->compiled) {
        compile_start(build);
        return;
    }
    for (int i = 0; i < build->library_count; i++)
        if (build->libraries[i].in_doubt)
            link_start(&build->libraries[i]);
}

static void trial_ended(struct process *process)
{
    SCOPE;
    struct build *build = process->context;
    bool complained = build->complaint != NULL;
    build->tried = true;
    build->doubt = false;
    if (!process_succeeded(process) && !build->fault)
        trial_failed(build, process);
    process_close(process);
    free(build->complaint);
    build->complaint = NULL;
    if (complained && !build->fault) {
        again(build);
        return;
    }
    for (int i = 0; i < build->library_count; i++)
        if (build->libraries[i].in_doubt)
            build->finished(&build->libraries[i]);
}

/* Compile and link the header that comes with the student's file, and nothing else. */
static void trial_start(struct build *build)
{
    SCOPE;
    struct command command = {0};
    if (build->trial.ended)
        return;
    build->trial = (struct process){.ended = trial_ended, .context = build};
    command_add_compilation(build, &command);
    command_add_words(&command, "-shared -o trial.so");
    command_add(&command, scope_printf("%s/assignment/%.*s.h", build->home,
                                       (int)strlen(build->file) - 2, build->file));
    start(build, &build->trial, &command, NULL);
}

/* The compiler sees the file under the name that the student knows: assignment/FILE in its folder.
 */
static bool prepare_folder(const struct build *build)
{
    const char *assignment = scope_printf("%s/assignment", build->folder);
    if (mkdir(build->folder, 0700) < 0 || mkdir(assignment, 0700) < 0 ||
        link(build->source, scope_printf("%s/%s", assignment, build->file)) < 0)
        return false;
    FILE *weak = fopen(scope_printf("%s/weak.h", build->folder), "we");
    if (!weak)
        return false;
    for (int i = 0; i < build->library_count; i++)
        if (build->libraries[i].supplied)
            fprintf(weak, "#pragma weak %s\n", build->libraries[i].supplied);
    return fclose(weak) == 0;
}

static bool prepare_libraries(struct build *build)
{
    for (int i = 0; i < build->library_count; i++) {
        struct library *library = &build->libraries[i];
        const char *name = library->supplied ? library->supplied : "student";
        library->build = build;
        library->path = format_or_fault("%s/%s.so", build->folder, name);
        if (build->fault || !library->supplied || access(supplied_object(library), R_OK) == 0)
            continue;
        build->fault = format_or_fault("cannot read %s: %s (has make run to its end?)",
                                       supplied_object(library), strerror(errno));
    }
    return !build->fault;
}

void build_start(struct build *build, struct processes *all)
{
    SCOPE;
    build->all = all;
    build->log = format_or_fault("%s", "");
    if (!prepare_libraries(build))
        return;
    if (!prepare_folder(build)) {
        build->fault = format_or_fault("cannot write in %s: %s", build->folder, strerror(errno));
        return;
    }
    compile_start(build);
}

void build_close(struct build *build)
{
    for (int i = 0; i < build->library_count; i++) {
        process_close(&build->libraries[i].link);
        free(build->libraries[i].path);
    }
    process_close(&build->compile);
    process_close(&build->trial);
    free(build->log);
    free(build->reason);
    free(build->fault);
    free(build->complaint);
}
