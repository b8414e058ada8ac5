/* Backward of graphs that several threads built: what runs at the same time, in which order and in
 * which thread; late rules. */
#include <check.h>
#include <pthread.h>
#include <unistd.h>

#include "runtime/device_internal.h"
#include "tests/lanes.h"
#include "tests/suite.h"

/* ---- at the same time ---- */

static pthread_key_t mark; /* of threads that ran a rule */
static atomic_int ended;   /* how many of those are no more */

static void count_end(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ended, 1);
}

static int pass_together(struct backward *run)
{
    meet();
    pthread_setspecific(mark, &ended);
    return pass(run);
}

/* The rules of all stages wait for each other: one after the other they would wait for ever. */
static void go_back_together(int stages)
{
    SCOPE;
    struct workers *workers = workers_new(stages);
    struct tensor *x = leaf(1, CPU), *parts[8];
    meeting_init(stages);
    atomic_store(&ended, 0);
    for (int i = 0; i < stages; i++)
        parts[i] = BY(workers, i, op_run, (struct op){x, NULL, pass_together, i});
    notes.n = 0;
    backward(joined(parts, stages));
    ck_assert_int_eq(atomic_load(&ended), stages - 1); /* all but the caller */
    ck_assert_double_eq(gradient_of(x), stages);
    bool caller = false;
    for (int i = 0; i < stages; i++) {
        caller |= pthread_equal(notes.at[i].thread, pthread_self()) != 0;
        ck_assert(!notes.at[i].grad);
        for (int j = 0; j < i; j++)
            ck_assert(!pthread_equal(notes.at[i].thread, notes.at[j].thread));
    }
    ck_assert_msg(caller, "the calling thread took no part");
    workers_close(workers);
}

START_TEST(stages_go_back_at_the_same_time)
{
    pthread_key_create(&mark, count_end);
    go_back_together(2);
    go_back_together(5);
}
END_TEST

/* ---- order within a lane ---- */

static void assert_all_by_caller(void)
{
    for (int i = 0; i < notes.n; i++)
        ck_assert(pthread_equal(notes.at[i].thread, pthread_self()));
}

START_TEST(the_latest_made_runs_first)
{
    SCOPE;
    struct workers *workers = workers_new(1);
    struct tensor *x = leaf(1, CPU), *made[5];
    for (int i = 0; i < 5; i++)
        made[i] = passed(workers, 0, x, i);
    struct tensor *parts[] = {made[2], made[4], made[0], made[3], made[1]};
    backward(joined(parts, 5));
    ASSERT_ORDER(4, 3, 2, 1, 0);
    ck_assert_double_eq(gradient_of(x), 5);
    workers_close(workers);
}
END_TEST

/* A chain through two stages, to and fro, has nothing to run at the same time. */
START_TEST(no_thread_is_started_for_a_chain)
{
    SCOPE;
    struct workers *workers = workers_new(2);
    struct tensor *x = leaf(1, CPU), *y = x;
    for (int i = 0; i < 10; i++)
        y = passed(workers, i % 2, y, i);
    backward(tensor_sum(y));
    ASSERT_ORDER(9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    assert_all_by_caller();
    workers_close(workers);
}
END_TEST

START_TEST(no_thread_is_started_for_little)
{
    SCOPE;
    struct workers *workers = workers_new(2);
    struct tensor *x = tensor_sum(leaf(1, CPU)), *parts[4];
    for (int i = 0; i < 4; i++)
        parts[i] = tensor_view(passed(workers, i % 2, x, i), SHAPE(1));
    backward(joined(parts, 4));
    ck_assert_int_eq(notes.n, 4);
    assert_all_by_caller();
    workers_close(workers);
}
END_TEST

/* Even the last of 40 threads' contributions arrives, where threads share lanes. */
START_TEST(more_threads_than_lanes)
{
    enum { MANY = 40 };
    SCOPE;
    struct workers *workers = workers_new(MANY);
    struct tensor *x = leaf(1, CPU), *parts[MANY];
    for (int i = 0; i < MANY; i++)
        parts[i] = passed(workers, i, passed(workers, (i + 1) % MANY, x, i), MANY + i);
    backward(joined(parts, MANY));
    ck_assert_int_eq(notes.n, 2 * MANY);
    ck_assert_double_eq(gradient_of(x), MANY);
    workers_close(workers);
}
END_TEST

/* ---- on devices ---- */

static int one_device(void)
{
    return 1;
}

/* CPU memory that says that it is a device's */
static void device_pretend(void)
{
    static struct device_table table;
    table = cpu_device;
    table.count = one_device;
    device_register(DEVICE_CUDA, &table);
}

/* Of two threads' nodes with equal numbers, the later input of their common successor goes first.
 */
START_TEST(one_thread_drives_devices)
{
    SCOPE;
    device_pretend();
    struct workers *workers = workers_new(2);
    struct tensor *x = leaf(1, CUDA(0)), *made[2][3];
    for (int stage = 0; stage < 2; stage++)
        for (int i = 0; i < 3; i++)
            made[stage][i] = passed(workers, stage, x, 10 * stage + i);
    struct tensor *parts[] = {made[0][1], made[1][2], made[1][0],
                              made[0][2], made[0][0], made[1][1]};
    backward(joined(parts, 6));
    ASSERT_ORDER(2, 12, 11, 1, 0, 10);
    assert_all_by_caller();
    workers_close(workers);
}
END_TEST

/* Three microbatches through two stages of three operations each, and a copy in between, made by
 * the second stage or the calling thread. Identities: 0, 1, 2 of stage 0, from 10 of stage 1, from
 * 20 of the copies. */
static void pipeline_on_devices(struct workers *workers, int copier)
{
    struct tensor *parts[3];
    for (int i = 0; i < 3; i++) {
        struct tensor *x = leaf(1, CUDA(0));
        for (int op = 0; op < 3; op++)
            x = passed(workers, 0, x, i);
        x = passed(workers, copier, x, 20 + i);
        for (int op = 0; op < 3; op++)
            x = passed(workers, 1, x, 10 + i);
        parts[i] = x;
    }
    notes.n = 0;
    backward(joined(parts, 3));
}

/* By microbatches, and the same whatever a thread did before. */
START_TEST(copies_carry_the_numbers_of_their_stage)
{
    SCOPE;
    device_pretend();
    struct workers *workers = workers_new(2);
    for (int repeat = 0; repeat < 3; repeat++) {
        pipeline_on_devices(workers, 1);
        ASSERT_ORDER(12, 12, 12, 22, 2, 2, 11, 2, 11, 11, 21, 1, 1, 1, 10, 10, 10, 20, 0, 0, 0);
        for (int i = 0; i < 100; i++)
            passed(workers, 1, leaf(1, CPU), 0);
    }
    workers_close(workers);
}
END_TEST

/* Stage 0 is kept waiting by the low numbers of the copies. */
START_TEST(copies_of_the_calling_thread_come_late)
{
    SCOPE;
    device_pretend();
    struct workers *workers = workers_new(2);
    pipeline_on_devices(workers, CALLER);
    ASSERT_ORDER(12, 12, 12, 11, 11, 11, 22, 2, 2, 2, 10, 21, 1, 1, 1, 10, 10, 20, 0, 0, 0);
    workers_close(workers);
}
END_TEST

/* ---- late rules ---- */

struct late_op {
    struct tensor *a, *b;
    backward_fn *rule, *late_rule;
};

static struct tensor *late_op_run(void *environment)
{
    const struct late_op *op = environment;
    return autograd_record(
        tensor_own(tensor_alias(op->a)),
        &(struct record){"a late operation", op->rule, op->late_rule, INPUTS(op->a, op->b)});
}

static int pass_first(struct backward *run)
{
    return backward_send(run, 0, run->gradient);
}

static int pass_first_when_met(struct backward *run)
{
    meet();
    return pass_first(run);
}

static int pass_second_when_met(struct backward *run)
{
    meet();
    return backward_send(run, 1, run->gradient);
}

static int fail_when_met(struct backward *run)
{
    (void)run;
    meet();
    return raise_error(ValueError, "late");
}

/* lanes_with_late_rule - two operations of stage 0, the later with a late rule to `weight`; those
 * of the stages 1 and 2 run one after the other, so there is a thread that has nothing to do. The
 * late rule and the rule that comes after it wait for each other. */
static struct tensor *lanes_with_late_rule(struct workers *workers, struct tensor *x,
                                           struct tensor *weight, backward_fn *late_rule)
{
    meeting_init(2);
    struct tensor *first = BY(workers, 0, op_run, (struct op){x, NULL, pass_first_when_met, 0});
    struct tensor *second =
        BY(workers, 0, late_op_run, (struct late_op){first, weight, pass_first, late_rule});
    struct tensor *other = passed(workers, 2, passed(workers, 1, x, 2), 3);
    return joined((struct tensor *[]){second, other}, 2);
}

START_TEST(late_rules_are_for_threads_with_nothing_to_do)
{
    SCOPE;
    struct workers *workers = workers_new(3);
    struct tensor *x = leaf(1, CPU), *weight = leaf(1, CPU);
    backward(lanes_with_late_rule(workers, x, weight, pass_second_when_met));
    ck_assert_double_eq(gradient_of(x), 2);
    ck_assert_double_eq(gradient_of(weight), 1);
    workers_close(workers);
}
END_TEST

START_TEST(error_in_a_late_rule)
{
    SCOPE;
    struct workers *workers = workers_new(3);
    struct tensor *x = leaf(1, CPU), *weight = leaf(1, CPU);
    ck_assert_int_eq(tensor_backward(lanes_with_late_rule(workers, x, weight, fail_when_met)), -1);
    ck_assert(error_is(&ValueError));
    error_clear();
    ck_assert_ptr_null(tensor_grad(weight));
    workers_close(workers);
}
END_TEST

static int pass_after_a_failure(struct backward *run)
{
    meet();
    usleep(20000);
    return pass_first(run);
}

static int pass_second(struct backward *run)
{
    return backward_send(run, 1, run->gradient);
}

/* Nothing is given away, nor a thread started for it, once another rule has failed: the caller does
 * not wait for it. What would go wrong shows with sanitizers. */
START_TEST(error_before_a_late_rule)
{
    SCOPE;
    struct workers *workers = workers_new(3);
    struct tensor *x = leaf(1, CPU), *weight = leaf(1, CPU);
    meeting_init(2);
    struct tensor *parts[] = {
        BY(workers, 0, op_run, (struct op){x, NULL, fail_when_met, 0}),
        BY(workers, 1, late_op_run, (struct late_op){x, weight, pass_after_a_failure, pass_second}),
    };
    ck_assert_int_eq(tensor_backward(joined(parts, 2)), -1);
    ck_assert(error_is(&ValueError));
    error_clear();
    workers_close(workers);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backward_lanes");
    TCase *tests = tcase_create("threads and order");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, stages_go_back_at_the_same_time);
    tcase_add_test(tests, the_latest_made_runs_first);
    tcase_add_test(tests, no_thread_is_started_for_a_chain);
    tcase_add_test(tests, no_thread_is_started_for_little);
    tcase_add_test(tests, more_threads_than_lanes);
    tcase_add_test(tests, one_thread_drives_devices);
    tcase_add_test(tests, copies_carry_the_numbers_of_their_stage);
    tcase_add_test(tests, copies_of_the_calling_thread_come_late);
    tcase_add_test(tests, late_rules_are_for_threads_with_nothing_to_do);
    tcase_add_test(tests, error_in_a_late_rule);
    tcase_add_test(tests, error_before_a_late_rule);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
