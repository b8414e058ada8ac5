#ifndef GRADING_BUILD_H
#define GRADING_BUILD_H
/* build.h - a student's file becomes shared libraries.
 *
 * The file is compiled once. Functions that a criterion supplies itself are made weak in it, so
 * that the compiler must call them by name even within the file, and may not look into them; one
 * library is linked from the object alone, and one more per supplied function, whose own
 * definition, strong, then takes the place of the student's.
 *
 * The file may include headers of the runtime, the assignment and the system. The compiler sees no
 * more of the checkout where the isolation allows that, and whatever else it read is found in what
 * it lists and makes the build fail. */
#include <stdbool.h>

#include "grading/process.h"

enum { BUILD_LIBRARIES = 4 };

struct build;
struct library {
    const char *supplied; /* the function that is not the student's own; NULL: none is */
    char *path;           /* where it is or will be. owns: the build */
    bool ready;
    struct build *build;
    struct process link;
    bool in_doubt; /* waits for the trial */
};

struct build {
    /* Filled in by whoever starts it; borrowed. Paths are absolute. */
    const char *home;    /* the checkout */
    const char *source;  /* private copy of the student's file */
    const char *file;    /* its name: "pipeline.c" */
    const char *folder;  /* a folder for this build alone, not there yet, in: */
    const char *private; /* the run's */
    enum isolation_level isolation;
    const char *sanitizer; /* "", "address" or "thread" */
    bool for_debugger;     /* each line as it stands, nothing optimized */
    struct library libraries[BUILD_LIBRARIES];
    int library_count; /* with `supplied` filled in */
    void (*finished)(
        struct library *library); /* for each library: ready, or see reason and fault */
    void *context;

    /* What came of it. owns: the build, until build_close */
    char *log;    /* everything the compiler and the linker said, clean */
    char *reason; /* why there is no library: the student's fault, or NULL */
    char *fault;  /* the same, the machine's */

    struct process compile;
    bool compiled;
    bool doubt; /* it failed: can this compiler work at all? */
    bool tried; /* it can */
    struct process trial;
    char *complaint; /* about the machine, while that is tried */
    struct processes *all;
};

/* build_start - begin; what follows happens in processes_wait. A fault of the machine may be known
 * at once: then `fault` is set, and `finished` is not called. */
void build_start(struct build *build, struct processes *all);
void build_close(struct build *build);
#endif
