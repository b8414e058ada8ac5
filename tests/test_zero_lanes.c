/* The ZeRO engine over a model whose stages run in threads: backward's threads call its hooks in
 * any order, and still every rank reduces the same buckets in the same order, to the same bits. */
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/fixtures.h"
#include "runtime/ops.h"
#include "runtime/optim.h"
#include "runtime/workers.h"
#include "tests/ranks.h"
#include "tests/suite.h"
#include "tests/zero.h"

enum { STAGES = 2, BLOCKS = 2, WIDTH = 256, ROWS = 12, MICROBATCH = 3, STEPS = 3 };
enum { VALUES = STAGES * BLOCKS * (WIDTH * WIDTH + WIDTH) };

/* ---- a model that is its own pipeline ---- */

static struct workers *workers; /* NULL: the calling thread runs the stages */

struct turn {
    struct module *stage;
    struct tensor *x;
};

static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    return module_forward(turn->stage, turn->x);
}

static struct tensor *stage_forward(struct module *self, int stage, struct tensor *x)
{
    struct turn turn = {module_child_at(self, stage), x};
    if (!workers)
        return turn_run(&turn);
    workers_submit(workers, stage, turn_run, turn);
    return workers_receive(workers, stage);
}

static struct tensor *pipelined_forward(struct module *self, struct tensor *x)
{
    struct tensors *batches = tensor_split(x, MICROBATCH);
    for (int i = 0; batches && i < batches->n; i++)
        for (int stage = 0; stage < STAGES; stage++)
            batches->at[i] = stage_forward(self, stage, batches->at[i]);
    return tensor_cat(batches);
}
static const struct module_class Pipelined = {"Pipelined", pipelined_forward};

static struct module *pipelined_model(struct rng *rng)
{
    struct module *model = module_new(&Pipelined);
    for (int stage = 0; stage < STAGES; stage++)
        module_add_child(model, stage ? "last" : "first", residual_mlp(BLOCKS, WIDTH, CPU, rng));
    return model;
}

/* ---- training ---- */

/* train - every rank on rows of its own; buckets hold about one parameter */
static void train(struct group *group, double *parameters)
{
    SCOPE;
    struct rng rng;
    rng_seed(&rng, 5);
    struct module *model = pipelined_model(&rng);
    json_t *config = config_for(group_world_size(group), ROWS, 1, 2, WIDTH * WIDTH);
    struct engine *engine = engine_new(model, sgd_new(model, 0.1), config, group);
    rng_seed(&rng, 6 + (uint64_t)group_rank(group));
    for (int step = 0; step < STEPS; step++) {
        struct tensor *x =
            tensor_normal_(tensor_zeros(SHAPE(ROWS, WIDTH), FLOAT32, CPU), 0, 1, &rng);
        CHECK(engine_backward(engine, mse_loss(engine_forward(engine, x), x)) == 0);
        CHECK(engine_step(engine) == 0);
    }
    CHECK(read_trainable(model, parameters) == parameters + VALUES);
    engine_free(engine);
    json_decref(config);
}

static void train_both_ways(struct group *group, const void *context)
{
    (void)context;
    double *serial = malloc(VALUES * sizeof *serial), *parallel = malloc(VALUES * sizeof *parallel);
    train(group, serial);
    workers = workers_new(STAGES);
    train(group, parallel);
    workers_close(workers);
    CHECK(memcmp(serial, parallel, VALUES * sizeof *serial) == 0);
    free(serial);
    free(parallel);
}

START_TEST(stages_in_threads)
{
    team_run(&(struct team){.ranks = _i, .body = train_both_ways});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ZeRO with lanes");
    TCase *tests = tcase_create("stages in threads");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, stages_in_threads, 1, 4);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
