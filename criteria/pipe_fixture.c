#include "criteria/pipe_fixture.h"

#include "criteria/fixture.h"

struct module *pipe_model(int stages, uint64_t seed)
{
    struct rng rng;
    draws_seed(&rng, seed, "pipe");
    struct module *first = linear_new(4, 7, FLOAT32, CPU, &rng);
    struct module *middle = linear_new(7, 7, FLOAT32, CPU, &rng);
    struct module *last = linear_new(7, 3, FLOAT32, CPU, &rng);
    if (stages == 1)
        return sequential_new(MODULES(sequential_new(MODULES(first, tanh_new(), last))));
    first = sequential_new(MODULES(first, tanh_new()));
    return stages == 2 ? sequential_new(MODULES(first, last))
                       : sequential_new(MODULES(first, middle, last));
}

bool pipe_open(struct subject *s, struct test_pipe *test, int stages, int64_t split)
{
    *test = (struct test_pipe){.pipe = {.stage_count = stages,
                                        .stages = test->stages,
                                        .devices = test->devices,
                                        .split_size = split,
                                        .workers = workers_new(stages)}};
    struct module *model = pipe_model(stages, subject_seed(s));
    for (int j = 0; j < stages; j++) {
        test->devices[j] = subject_stage_device(s, j);
        test->watches[j] =
            (struct watch){.workers = test->pipe.workers, .stage_count = stages, .fail_at = -1};
        struct module *stage = module_to(module_child_at(model, j), test->devices[j]);
        test->stages[j] = watch_new(stage, &test->watches[j]);
    }
    if (!subject_went_wrong(s, "making a pipe"))
        return true;
    pipe_close(test);
    return false;
}

void pipe_close(struct test_pipe *test)
{
    workers_close(test->pipe.workers);
}
