/* Virtual time above the simulated device: handed over by workers and collectives, taken by the
 * sleeps and locks of student code. */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/dist.h"
#include "runtime/error.h"
#include "runtime/ops.h"
#include "runtime/plugin.h"
#include "runtime/scope.h"
#include "runtime/workers.h"
#include "runtime/wrap_internal.h"
#include "tests/suite.h"
#include "tests/temporary.h"

static const double ms = 1e-3;

static void use_sim(void)
{
    ck_assert_msg(plugin_load(BUILD_FOLDER "/sim.so") == 0, "%s",
                  error_occurred() ? error_message(error_pending()) : "");
}

static void pass(double seconds)
{
    clock_wait(clock_now() + seconds);
}

/* ---- without a virtual clock ---- */

START_TEST(nothing_happens_without_a_virtual_clock)
{
    ck_assert(!clock_is_virtual());
    clock_wait(5);
    clock_exchange(7, 1e9);
    clock_copy(1000);
    ck_assert_double_eq(clock_now(), 0);
}
END_TEST

/* ---- what wraps the C library ---- */

START_TEST(clocks_of_student_code_can_be_ahead)
{
    struct timeval day;
    struct timespec now, utc;
    time_t real = time(NULL), seconds;
    double uptime = seconds_now();
    for (int hours = 0; hours <= 2; hours++) {
        clock_shift(hours * 3600);
        time_t wanted = real + hours * 3600;
        ck_assert_int_eq(__wrap_time(&seconds), seconds);
        ck_assert_int_eq(__wrap_gettimeofday(&day, NULL), 0);
        ck_assert_int_eq(__wrap_timespec_get(&utc, TIME_UTC), TIME_UTC);
        ck_assert_int_eq(__wrap_clock_gettime(CLOCK_MONOTONIC, &now), 0);
        ck_assert(seconds >= wanted && seconds < wanted + 60);
        ck_assert(day.tv_sec >= wanted && day.tv_sec < wanted + 60);
        ck_assert(utc.tv_sec >= wanted && utc.tv_sec < wanted + 60);
        double ahead = (double)now.tv_sec - uptime - hours * 3600;
        ck_assert(ahead > -1.5 && ahead < 60);
    }
    ck_assert_int_lt(time(NULL) - real, 60);
}
END_TEST

/* Hours pass at once. */
START_TEST(sleeps_take_virtual_time)
{
    use_sim();
    struct timespec hour_and_a_bit = {3600, 500 * 1000 * 1000}, past = {0, 0};
    double begin = seconds_now();
    ck_assert_int_eq(__wrap_nanosleep(&hour_and_a_bit, NULL), 0);
    ck_assert_double_eq(clock_now(), 3600.5);
    ck_assert_int_eq(__wrap_usleep(250000), 0);
    ck_assert_double_eq(clock_now(), 3600.75);
    ck_assert_int_eq(__wrap_sleep(3600), 0);
    ck_assert_double_eq(clock_now(), 7200.75);
    ck_assert_int_eq(__wrap_clock_nanosleep(CLOCK_MONOTONIC, 0, &hour_and_a_bit, NULL), 0);
    ck_assert_double_eq(clock_now(), 10801.25);
    ck_assert_int_eq(__wrap_clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL), 0);
    ck_assert_double_eq(clock_now(), 10801.25);
    ck_assert_int_eq(__wrap_thrd_sleep(&hour_and_a_bit, NULL), 0);
    ck_assert_double_eq(clock_now(), 14401.75);
    ck_assert_int_eq(__wrap_poll(NULL, 0, 1250), 0);
    ck_assert_double_eq(clock_now(), 14403);
    ck_assert_int_eq(__wrap_select(0, NULL, NULL, NULL, &(struct timeval){3600, 500000}), 0);
    ck_assert_double_eq(clock_now(), 18003.5);
    ck_assert_double_lt(seconds_now() - begin, 3600);
}
END_TEST

START_TEST(sleeps_are_real_without_a_virtual_clock)
{
    struct timespec short_time = {0, 2 * 1000 * 1000};
    double begin = seconds_now();
    ck_assert_int_eq(__wrap_nanosleep(&short_time, NULL), 0);
    ck_assert_int_eq(__wrap_clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL), 0);
    ck_assert_int_eq(__wrap_usleep(2000), 0);
    ck_assert_uint_eq(__wrap_sleep(0), 0);
    ck_assert_int_eq(__wrap_thrd_sleep(&short_time, NULL), 0);
    ck_assert_int_eq(__wrap_poll(NULL, 0, 2), 0);
    ck_assert_int_eq(__wrap_select(0, NULL, NULL, NULL, &(struct timeval){0, 2000}), 0);
    ck_assert_double_ge(seconds_now() - begin, 12 * ms);
    ck_assert_double_eq(clock_now(), 0);
}
END_TEST

/* A lock, and a condition that the holder's time goes with. */
struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int turn;
};

/* Each of the threads holds the lock for 10 ms of its own time. */
static void *hold(void *context)
{
    struct shared *shared = context;
    __wrap_pthread_mutex_lock(&shared->mutex);
    pass(10 * ms);
    shared->turn++;
    __wrap_pthread_mutex_unlock(&shared->mutex);
    return NULL;
}

START_TEST(a_lock_makes_its_holders_follow_each_other)
{
    use_sim();
    struct shared shared = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hold, &shared), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    ck_assert_double_eq(clock_now(), 0);
    if (_i)
        ck_assert_int_eq(__wrap_pthread_mutex_trylock(&shared.mutex), 0);
    else
        ck_assert_int_eq(__wrap_pthread_mutex_lock(&shared.mutex), 0);
    ck_assert_int_eq(shared.turn, 8);
    ck_assert_double_eq_tol(clock_now(), 80 * ms, 1e-12);
    ck_assert_int_ne(__wrap_pthread_mutex_trylock(&shared.mutex), 0);
    __wrap_pthread_mutex_unlock(&shared.mutex);
}
END_TEST

static void *announce(void *context)
{
    struct shared *shared = context;
    pass(3 * ms);
    __wrap_pthread_mutex_lock(&shared->mutex);
    shared->turn = 1;
    pthread_cond_signal(&shared->changed);
    __wrap_pthread_mutex_unlock(&shared->mutex);
    return NULL;
}

START_TEST(who_waits_for_a_condition_is_as_late_as_who_changed_it)
{
    use_sim();
    struct shared shared = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, announce, &shared), 0);
    __wrap_pthread_mutex_lock(&shared.mutex);
    while (shared.turn == 0)
        __wrap_pthread_cond_wait(&shared.changed, &shared.mutex);
    __wrap_pthread_mutex_unlock(&shared.mutex);
    ck_assert_double_eq(clock_now(), 3 * ms);
    pthread_join(thread, NULL);
}
END_TEST

/* ---- copies ---- */

/* 1 MB goes at 15.75 GB/s over PCIe and at 10 GB/s from one host memory to the other. */
START_TEST(the_host_has_its_part_in_copies)
{
    SCOPE;
    use_sim();
    struct tensor *x = tensor_to(tensor_full(SHAPE(4), 1, FLOAT32, CPU), CUDA(0));
    ck_assert_ptr_nonnull(tensor_to(x, CPU)); /* makes the device ready */
    struct tensor *host = tensor_full(SHAPE(1 << 18), 1, FLOAT32, CPU);
    double copy = (1 << 20) / 10e9, link = (1 << 20) / 15.75e9, begin = clock_now();
    struct tensor *device = tensor_to(host, CUDA(0));
    ck_assert_double_ge(clock_now() - begin, copy);
    ck_assert_double_lt(clock_now() - begin, copy + 0.05 * ms);
    begin = clock_now();
    ck_assert_double_eq(tensor_get(tensor_to(device, CPU), (1 << 18) - 1), 1);
    ck_assert_double_ge(clock_now() - begin, link + copy);
}
END_TEST

/* ---- workers ---- */

static struct tensor *work_for(void *environment)
{
    pass(*(double *)environment);
    return tensor_full(0, NULL, clock_now(), FLOAT64, CPU);
}

START_TEST(tasks_begin_when_submitted_and_results_come_when_they_end)
{
    SCOPE;
    use_sim();
    struct workers *workers = workers_new(2);
    pass(1 * ms);
    workers_submit(workers, 0, work_for, (double){5 * ms});
    workers_submit(workers, 1, work_for, (double){2 * ms});
    workers_submit(workers, 1, work_for, (double){2 * ms});
    pass(1 * ms);
    ck_assert_double_eq_tol(tensor_item(workers_receive(workers, 1)), 3 * ms, 1e-12);
    ck_assert_double_eq_tol(clock_now(), 3 * ms, 1e-12);
    ck_assert_double_eq_tol(tensor_item(workers_receive(workers, 0)), 6 * ms, 1e-12);
    ck_assert_double_eq_tol(clock_now(), 6 * ms, 1e-12);
    ck_assert_double_eq_tol(tensor_item(workers_receive(workers, 1)), 5 * ms, 1e-12);
    ck_assert_double_eq_tol(clock_now(), 6 * ms, 1e-12); /* it was over before */
    workers_close(workers);
}
END_TEST

/* Work on the GPUs, to and fro between them: the same to the last bit however the threads ran. */
static struct tensor *square_on(void *environment)
{
    struct job {
        struct device device;
        struct tensor *x;
    } *job = environment;
    return tensor_square(tensor_to(job->x, job->device));
}

static double pipelined_seconds(void)
{
    SCOPE;
    struct workers *workers = workers_new(2);
    struct job {
        struct device device;
        struct tensor *x;
    };
    struct tensor *x[8], *first = tensor_to(tensor_full(SHAPE(64, 64), 1, FLOAT32, CPU), CUDA(0));
    double begin = clock_now();
    for (int wave = 0; wave <= 8; wave++) {
        if (wave < 8)
            workers_submit(workers, 0, square_on, (struct job){CUDA(0), first});
        if (wave > 0)
            workers_submit(workers, 1, square_on, (struct job){CUDA(1), x[wave - 1]});
        if (wave < 8)
            x[wave] = workers_receive(workers, 0);
        if (wave > 0)
            x[wave - 1] = workers_receive(workers, 1);
    }
    for (int i = 0; i < 8; i++)
        ck_assert_double_eq(tensor_item(tensor_slice(tensor_view(x[i], SHAPE(-1)), 0, 0, 1)), 1);
    workers_close(workers);
    return clock_now() - begin;
}

START_TEST(times_do_not_depend_on_how_threads_run)
{
    use_sim();
    plugin_current()->set_scale(64);
    pipelined_seconds(); /* makes the devices ready */
    double seconds = pipelined_seconds();
    ck_assert_double_gt(seconds, 0.1 * ms);
    for (int run = 0; run < 20; run++)
        ck_assert_double_eq_tol(pipelined_seconds(), seconds, 1e-9 * seconds);
}
END_TEST

/* ---- collectives over TCP ---- */

static double time_after_meeting(int rank, const char *file, bool values)
{
    SCOPE;
    struct group *group =
        group_connect(&(struct group_options){.rank = rank, .world_size = 2, .file = file});
    ck_assert_ptr_nonnull(group);
    pass(rank == 0 ? 2 * ms : 7 * ms);
    struct tensor *x = tensor_full(SHAPE(1 << 18), 1, FLOAT32, CPU);
    ck_assert_int_eq(values ? group_all_reduce(group, x, DIST_SUM) : group_barrier(group), 0);
    double time = clock_now();
    group_close(group);
    return time;
}

/* 1 MB all-reduced is 1 MB sent by each of two ranks. */
START_TEST(ranks_leave_a_collective_when_the_last_has_come)
{
    use_sim();
    temporary_create();
    const char *file = temporary_path("ranks");
    double *other =
        mmap(NULL, sizeof *other, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    double time = time_after_meeting(child == 0, file, _i);
    if (child == 0) {
        *other = time;
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    temporary_remove();
    ck_assert_double_eq(time, *other);
    ck_assert_double_ge(time, _i ? 8 * ms : 7 * ms);
    ck_assert_double_lt(time, _i ? 8.2 * ms : 7.1 * ms);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("clock");
    TCase *t = tcase_create("virtual time");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, nothing_happens_without_a_virtual_clock);
    tcase_add_test(t, clocks_of_student_code_can_be_ahead);
    tcase_add_test(t, sleeps_take_virtual_time);
    tcase_add_test(t, sleeps_are_real_without_a_virtual_clock);
    tcase_add_loop_test(t, a_lock_makes_its_holders_follow_each_other, 0, 2);
    tcase_add_test(t, who_waits_for_a_condition_is_as_late_as_who_changed_it);
    tcase_add_test(t, the_host_has_its_part_in_copies);
    tcase_add_test(t, tasks_begin_when_submitted_and_results_come_when_they_end);
    tcase_add_test(t, times_do_not_depend_on_how_threads_run);
    tcase_add_loop_test(t, ranks_leave_a_collective_when_the_last_has_come, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
