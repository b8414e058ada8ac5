#ifndef GRADING_SUBJECT_H
#define GRADING_SUBJECT_H
/* subject.h - the untrusted role: a process that loads the student's file, calls it as a
 * criterion's observe() says, and records what happened. It judges nothing. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "criteria/criterion.h"
#include "grading/crash.h"

struct subject {
    const struct criterion *criterion;
    int rank, world_size;
    uint64_t seed;
    enum device_kind device;
    const char *library; /* path of the student's library */
    const char *folder;  /* its private folder */
    void *handle;        /* what dlopen gave for the library */
    int observations;    /* descriptor that takes the observations */
    bool debugged;       /* a person watches it, and nobody reads its status or observations */
    struct status_page *status;
    pid_t pid;
};

/* The descriptors that a subject starts with, besides 0 to 2; none when it is debugged: debuggers
 * do not hand them on. */
enum { SUBJECT_OBSERVATIONS = 3, SUBJECT_STATUS = 4, SUBJECT_LISTENER = 5 };

/* The arguments that it starts with; the addresses of all ranks come last. One that says nothing is
 * "-": lldb loses empty ones. */
#define SUBJECT_NOTHING "-"
enum {
    SUBJECT_ID = 1,
    SUBJECT_DEVICE,
    SUBJECT_PLUGIN, /* of the device; nothing for the CPU */
    SUBJECT_SEED,
    SUBJECT_RANK,
    SUBJECT_WORLD_SIZE,
    SUBJECT_LIBRARY,
    SUBJECT_FOLDER,
    SUBJECT_TIMEOUT,
    SUBJECT_ISOLATION,
    SUBJECT_SANITIZER, /* that the library is built with, or nothing */
    SUBJECT_MEETING,   /* the file where ranks find each other, or nothing: they have addresses */
    SUBJECT_ADDRESSES
};

/* Exit statuses besides 0. SUBJECT_MISUSED says that the harness or the machine is at fault: this
 * is believed of those who say it before student code runs (observe_begin). */
enum { SUBJECT_GAVE_UP = 3, SUBJECT_UNHEARD = 4, SUBJECT_MISUSED = 70 };

/* subject_record - append n bytes to the observations, all of them. If nobody takes them any more,
 * or this is not the process that was started but one that student code forked, it ends. */
void subject_record(struct subject *s, const void *bytes, size_t n);
#endif
