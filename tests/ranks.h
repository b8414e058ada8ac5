#ifndef TESTS_RANKS_H
#define TESTS_RANKS_H
/* ranks.h - run a function as every rank of a group, in processes or in threads.
 *
 * A rank that finds something wrong says so on stderr and ends its process with status 1. */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/dist.h"
#include "runtime/error.h"
#include "runtime/scope.h"

enum { NO_HANG_S = 110 };

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            rank_complain(__FILE__, __LINE__, #condition, " " __VA_ARGS__);                        \
    } while (0)

static inline void __attribute__((format(printf, 4, 5), noreturn))
rank_complain(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: %s is false:", file, line, condition);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, " [pending: %s]\n", error_occurred() ? error_message(error_pending()) : "-");
    _exit(1);
}

/* A rank's part. The group is closed after it; an error that it leaves pending is a failure. */
typedef void rank_fn(struct group *group, const void *context);

struct team {
    int ranks;
    rank_fn *body;
    const void *context;
    double timeout_s; /* 0: none that a test would live to see */
    const char *file; /* find each other by this file instead of listeners */
    int dies;         /* this rank's process may end in any way; 0: none */
    int absent;       /* this rank does not even connect; 0: none */
};

struct meeting {
    int listeners[GROUP_MAX_RANKS];
    char addresses[GROUP_MAX_RANKS][32];
    const char *pointers[GROUP_MAX_RANKS];
};

static inline void meeting_make(struct meeting *meeting, int ranks)
{
    for (int rank = 0; rank < ranks; rank++) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = meeting->listeners[rank] = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
        ck_assert_int_eq(listen(fd, 128), 0);
        getsockname(fd, (struct sockaddr *)&address, &(socklen_t){sizeof address});
        snprintf(meeting->addresses[rank], sizeof meeting->addresses[rank], "127.0.0.1:%d",
                 ntohs(address.sin_port));
        meeting->pointers[rank] = meeting->addresses[rank];
    }
}

static inline struct group_options rank_options(const struct team *team,
                                                const struct meeting *meeting, int rank)
{
    struct group_options options = {.rank = rank, .world_size = team->ranks, .file = team->file};
    options.timeout_s = team->timeout_s > 0 ? team->timeout_s : 600;
    if (!team->file && team->ranks > 1) {
        options.listener = meeting->listeners[rank];
        options.addresses = meeting->pointers;
        options.token = "the token of this test";
    }
    return options;
}

static inline void rank_live(const struct team *team, const struct meeting *meeting, int rank)
{
    SCOPE;
    struct group_options options = rank_options(team, meeting, rank);
    struct group *group = group_connect(&options);
    CHECK(group, "rank %d of %d", rank, team->ranks);
    team->body(group, team->context);
    CHECK(!error_occurred(), "rank %d of %d", rank, team->ranks);
    group_close(group);
}

static inline void close_listeners(const struct team *team, const struct meeting *meeting,
                                   int but_rank)
{
    for (int rank = 0; rank < team->ranks && !team->file && team->ranks > 1; rank++)
        if (rank != but_rank)
            close(meeting->listeners[rank]);
}

/* team_run_at - as processes that meet at listeners made before */
static inline void team_run_at(const struct team *team, const struct meeting *meeting)
{
    pid_t processes[GROUP_MAX_RANKS];
    fflush(NULL);
    for (int rank = 0; rank < team->ranks; rank++) {
        processes[rank] = team->absent && rank == team->absent ? -1 : fork();
        if (processes[rank] != 0)
            continue;
        alarm(NO_HANG_S);
        close_listeners(team, meeting, rank);
        rank_live(team, meeting, rank);
        exit(0); /* not _exit: a leak checker looks at exit */
    }
    close_listeners(team, meeting, team->absent ? team->absent : -1);
    int failed = 0;
    for (int rank = 0, status = 0; rank < team->ranks; rank++) {
        if (processes[rank] > 0 && waitpid(processes[rank], &status, 0) == processes[rank] &&
            status != 0 && !(team->dies && rank == team->dies))
            failed++;
    }
    ck_assert_msg(failed == 0, "%d of %d ranks failed", failed, team->ranks);
}

/* team_run - every rank in a process of its own */
static inline void team_run(const struct team *team)
{
    struct meeting meeting;
    if (!team->file && team->ranks > 1)
        meeting_make(&meeting, team->ranks);
    team_run_at(team, &meeting);
}

struct rank_thread {
    const struct team *team;
    const struct meeting *meeting;
    int rank;
};

static inline void *rank_thread(void *argument)
{
    const struct rank_thread *thread = argument;
    rank_live(thread->team, thread->meeting, thread->rank);
    return NULL;
}

/* team_run_threads - every rank in a thread of this process, so that races between them show */
static inline void team_run_threads(const struct team *team)
{
    struct meeting meeting;
    struct rank_thread ranks[GROUP_MAX_RANKS];
    pthread_t threads[GROUP_MAX_RANKS];
    if (!team->file && team->ranks > 1)
        meeting_make(&meeting, team->ranks);
    for (int rank = 0; rank < team->ranks; rank++) {
        ranks[rank] = (struct rank_thread){team, &meeting, rank};
        pthread_create(&threads[rank], NULL, rank_thread, &ranks[rank]);
    }
    for (int rank = 0; rank < team->ranks; rank++)
        pthread_join(threads[rank], NULL);
}
#endif
