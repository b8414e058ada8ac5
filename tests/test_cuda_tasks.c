/* Stage workers whose tasks hand tensors of GPUs from one to the other. */
#include <check.h>
#include <stdlib.h>

#include "runtime/ops.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"
#include "runtime/workers.h"
#include "tests/device.h"
#include "tests/suite.h"

enum { STAGES = 4, ROUNDS = 300, NUMBER = 3 };

/* move - to a device, which may be where it is: then the task's result is its argument */
struct move {
    struct tensor *x;
    struct device device;
};

static struct tensor *move_run(void *environment)
{
    struct move *move = environment;
    return tensor_to(move->x, move->device);
}

static void expect_numbers(struct tensor *x)
{
    struct tensor *here = tensor_to(x, CPU);
    ck_assert_msg(here != NULL, "%s", error_occurred() ? error_message(error_pending()) : "");
    const float *values = tensor_data(here);
    int64_t i = 0;
    while (i < tensor_numel(here) && values[i] == NUMBER)
        i++;
    ck_assert_int_eq(i, tensor_numel(here));
}

/* Some tasks return the one tensor as it is, while others take it to another device. */
START_TEST(tasks_of_many_stages_return_the_same_tensor)
{
    SCOPE;
    struct workers *workers = workers_new(STAGES);
    struct device away = CUDA(device_count() - 1);
    struct tensor *x = tensor_full(SHAPE(64, 64), NUMBER, FLOAT32, CUDA(0));
    for (int round = 0; round < ROUNDS; round++) {
        SCOPE;
        for (int stage = 0; stage < STAGES; stage++)
            workers_submit(workers, stage, move_run, (struct move){x, stage % 2 ? away : CUDA(0)});
        for (int stage = 0; stage < STAGES; stage++)
            expect_numbers(workers_receive(workers, stage));
    }
    workers_close(workers);
    ck_assert(!error_occurred());
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("cuda_tasks");
    TCase *t = tcase_create("tasks");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, device_load, NULL);
    tcase_add_test(t, tasks_of_many_stages_return_the_same_tensor);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
