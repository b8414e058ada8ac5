/* The ZeRO engine, one rank in the test's own process: misuse, overflow, what engine_new refuses.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/autograd.h"
#include "tests/suite.h"
#include "tests/zero.h"

enum { ROWS = 8, VALUES = 64 };

struct alone {
    struct group *group;
    struct module *model;
    struct optimizer *optimizer;
    struct engine *engine;
};

static struct alone alone_new(const char *fp16)
{
    struct group_options options = {.world_size = 1};
    json_t *config = config_for(1, ROWS, 2, 2, 9);
    if (fp16)
        json_object_set_new(config, "fp16", json_loads(fp16, 0, NULL));
    struct alone alone = {.group = group_connect(&options), .model = small_model()};
    alone.optimizer = sgd_new(alone.model, 0.1);
    alone.engine = engine_new(alone.model, alone.optimizer, config, alone.group);
    json_decref(config);
    check_no_error();
    return alone;
}

static void alone_free(struct alone *alone)
{
    engine_free(alone->engine);
    group_close(alone->group);
}

static struct tensor *loss_of(struct alone *alone)
{
    return mse_loss(engine_forward(alone->engine, batch_inputs(0)), batch_targets(0));
}

static int well(struct alone *alone)
{
    if (engine_backward(alone->engine, loss_of(alone)) < 0)
        return -1;
    return engine_step(alone->engine);
}

static int step_alone(struct alone *alone)
{
    return engine_step(alone->engine);
}
static int step_twice(struct alone *alone)
{
    well(alone);
    return engine_step(alone->engine);
}
static int backward_without_forward(struct alone *alone)
{
    struct tensor *output = module_forward(alone->model, batch_inputs(0));
    return engine_backward(alone->engine, mse_loss(output, batch_targets(0)));
}
static int backward_twice(struct alone *alone)
{
    engine_backward(alone->engine, loss_of(alone));
    return engine_backward(alone->engine, loss_of(alone));
}
static int ordinary_backward(struct alone *alone)
{
    tensor_backward(loss_of(alone));
    return engine_step(alone->engine);
}
static int ordinary_backward_before(struct alone *alone)
{
    tensor_backward(loss_of(alone));
    return engine_backward(alone->engine, loss_of(alone));
}
static int optimizer_too(struct alone *alone)
{
    engine_backward(alone->engine, loss_of(alone));
    optimizer_step(alone->optimizer);
    return engine_step(alone->engine);
}
static int no_loss(struct alone *alone)
{
    return engine_backward(alone->engine, NULL);
}
static int no_scalar(struct alone *alone)
{
    return engine_backward(alone->engine, engine_forward(alone->engine, batch_inputs(0)));
}
static int no_graph(struct alone *alone)
{
    return engine_backward(alone->engine, tensor_detach(loss_of(alone)));
}
static int loss_used_twice(struct alone *alone)
{
    struct tensor *loss = loss_of(alone);
    if (engine_backward(alone->engine, loss) < 0 || engine_step(alone->engine) < 0)
        return -1;
    engine_forward(alone->engine, batch_inputs(0));
    return engine_backward(alone->engine, loss);
}
static int no_engine(struct alone *alone)
{
    return engine_backward(NULL, loss_of(alone));
}

static const struct {
    int (*misuse)(struct alone *alone);
    const struct error_type *type;
    const char *text;
    bool recovers; /* the engine is as before, and can be used rightly */
} misuses[] = {
    {step_alone, &RuntimeError, "no engine_backward came before", true},
    {step_twice, &RuntimeError, "no engine_backward came before", true},
    {backward_without_forward, &RuntimeError, "no engine_forward", true},
    {backward_twice, &RuntimeError, "called twice without engine_step", false},
    {ordinary_backward, &RuntimeError, "not tensor_backward(loss)", false},
    {ordinary_backward_before, &RuntimeError, "not tensor_backward(loss)", false},
    {optimizer_too, &RuntimeError, "stepped outside of the engine", false},
    {no_loss, &ValueError, "loss is NULL", true},
    {no_scalar, &ValueError, "one element", true},
    {no_graph, &RuntimeError, "require grad", true},
    {loss_used_twice, &RuntimeError, "earlier backward", true},
    {no_engine, &ValueError, "engine is NULL", true},
};

START_TEST(test_misuse)
{
    SCOPE;
    struct alone alone = alone_new(NULL);
    ck_assert_int_eq(misuses[_i].misuse(&alone), -1);
    ck_assert_msg(
        error_occurred() && strstr(error_message(error_pending()), misuses[_i].text) != NULL,
        "case %d: %s", _i, error_occurred() ? error_message(error_pending()) : "no error");
    check_raised(misuses[_i].type, misuses[_i].text);
    if (misuses[_i].recovers) {
        ck_assert_int_eq(well(&alone), 0);
        check_no_error();
    }
    alone_free(&alone);
}
END_TEST

START_TEST(test_pending_error_stays)
{
    SCOPE;
    struct alone alone = alone_new(NULL);
    struct tensor *loss = loss_of(&alone);
    error_set(&OSError, "x.c", 1, "first");
    ck_assert_ptr_null(engine_forward(alone.engine, NULL));
    ck_assert_int_eq(engine_backward(alone.engine, NULL), -1);
    ck_assert_int_eq(engine_backward(alone.engine, loss), -1);
    ck_assert_int_eq(engine_step(alone.engine), -1);
    ck_assert_ptr_null(engine_new(alone.model, alone.optimizer, NULL, alone.group));
    check_raised(&OSError, "first");
    ck_assert_int_eq(engine_backward(alone.engine, loss), 0);
    alone_free(&alone);
}
END_TEST

/* ---- overflow ---- */

/* spoil - parameters so large that gradients overflow FP16 at any scale */
static void spoil(struct alone *alone)
{
    struct tensor *x = tensor_full(SHAPE(ROWS, 4), 1, FLOAT32, CPU);
    struct tensor *output = engine_forward(alone->engine, x);
    struct tensor *loss = tensor_scale(tensor_sum(output), 1e9);
    ck_assert_int_eq(engine_backward(alone->engine, loss), 0);
}

START_TEST(test_overflow_skips_the_step)
{
    SCOPE;
    struct alone alone = alone_new("{\"enabled\": true, \"loss_scale\": 8}");
    double before[VALUES], after[VALUES];
    double *end = read_trainable(alone.model, before);
    spoil(&alone); /* the first of two microbatches */
    ck_assert_int_eq(engine_step(alone.engine), 0);
    ck_assert_int_eq(well(&alone), 0);
    read_trainable(alone.model, after);
    ck_assert_mem_eq(before, after, (size_t)(end - before) * sizeof *before);
    ck_assert_int_eq(engine_stats(alone.engine).skipped_steps, 1);
    ck_assert_int_eq(engine_stats(alone.engine).steps, 1);
    ck_assert_int_eq(well(&alone), 0);
    ck_assert_int_eq(well(&alone), 0);
    read_trainable(alone.model, after);
    ck_assert_mem_ne(before, after, (size_t)(end - before) * sizeof *before);
    ck_assert_int_eq(engine_stats(alone.engine).skipped_steps, 1);
    for (int i = 0; i < end - before; i++)
        ck_assert(isfinite(after[i]));
    alone_free(&alone);
}
END_TEST

/* Here DeepSpeed 0.9.5 divides by the doubled scale, and takes half a step. */
START_TEST(test_step_that_doubles_the_scale_is_a_whole_one)
{
    SCOPE;
    static const char *const sections[] = {
        "{\"enabled\": true, \"loss_scale\": 8}",
        "{\"enabled\": true, \"initial_scale_power\": 3, \"loss_scale_window\": 1}"};
    double values[2][VALUES], *end = NULL;
    for (int i = 0; i < 2; i++) {
        struct alone alone = alone_new(sections[i]);
        ck_assert_int_eq(well(&alone), 0);
        ck_assert_int_eq(well(&alone), 0);
        end = read_trainable(alone.model, values[i]);
        ck_assert_double_eq(engine_stats(alone.engine).loss_scale, i == 0 ? 8 : 16);
        alone_free(&alone);
    }
    ck_assert_mem_eq(values[0], values[1], (size_t)(end - values[1]) * sizeof *end);
}
END_TEST

START_TEST(test_overflow_at_the_smallest_scale_is_an_error)
{
    SCOPE;
    struct alone alone =
        alone_new("{\"enabled\": true, \"initial_scale_power\": 0, \"hysteresis\": 1}");
    spoil(&alone);
    ck_assert_int_eq(engine_step(alone.engine), 0);
    spoil(&alone);
    ck_assert_int_eq(engine_step(alone.engine), -1);
    check_raised(&RuntimeError, "smallest scale");
    ck_assert_ptr_nonnull(loss_of(&alone));
    ck_assert_int_eq(well(&alone), -1);
    check_raised(&RuntimeError, "afterwards");
    alone_free(&alone);
}
END_TEST

START_TEST(test_fp16_parameters_are_fp16_numbers)
{
    SCOPE;
    struct alone alone = alone_new("{\"enabled\": true}");
    ck_assert_int_eq(well(&alone), 0);
    ck_assert_int_eq(well(&alone), 0);
    struct named_tensors *all = module_named_parameters(alone.model);
    for (int i = 0; i < all->n; i++) {
        struct tensor *x = tensor_detach(all->at[i].tensor);
        check_close(x, tensor_cast(tensor_cast(x, FLOAT16), FLOAT32), 0, 0, all->at[i].name);
    }
    alone_free(&alone);
}
END_TEST

/* ---- engine_new ---- */

static struct module *frozen_model(void)
{
    struct module *model = small_model();
    module_set_requires_grad(model, false);
    return model;
}

static struct module *mixed_model(void)
{
    struct rng rng;
    rng_seed(&rng, 1);
    return sequential_new(
        MODULES(linear_new(2, 2, FLOAT32, CPU, &rng), linear_new(2, 2, FLOAT64, CPU, &rng)));
}

static const struct {
    struct module *(*model)(void), *(*of_optimizer)(void); /* NULL: the model itself */
    bool fp16;
    const struct error_type *type;
    const char *text;
} refusals[] = {
    {frozen_model, NULL, false, &ValueError, "no parameter of the model requires grad"},
    {mixed_model, NULL, false, &TypeError, "float64 and float32"},
    {small_model_double, NULL, true, &TypeError, "float32 model"},
    {small_model, small_model, false, &ValueError,
     "does not update the model's parameter 0.weight"},
    {frozen_model, small_model, false, &ValueError, "not the model's"},
};

START_TEST(test_engine_new_refuses)
{
    SCOPE;
    struct group_options options = {.world_size = 1};
    struct group *group = group_connect(&options);
    struct module *model = refusals[_i].model();
    struct module *of_optimizer = refusals[_i].of_optimizer ? refusals[_i].of_optimizer() : model;
    json_t *config = config_for(1, 1, 1, 2, 9);
    if (refusals[_i].fp16)
        json_object_set_new(config, "fp16", json_pack("{s:b}", "enabled", 1));
    ck_assert_ptr_null(engine_new(model, sgd_new(of_optimizer, 1), config, group));
    ck_assert_msg(strstr(error_message(error_pending()), refusals[_i].text) != NULL, "%s",
                  error_message(error_pending()));
    check_raised(refusals[_i].type, refusals[_i].text);
    /* and the model is free of the engine again */
    if (tensor_requires_grad(module_named_parameters(model)->at[0].tensor))
        ck_assert_int_eq(gradients_of(model), 0);
    json_decref(config);
    group_close(group);
}
END_TEST

START_TEST(test_model_is_free_after_the_engine)
{
    SCOPE;
    struct alone alone = alone_new(NULL);
    well(&alone);
    engine_free(alone.engine);
    alone.engine = NULL;
    struct tensor *output = module_forward(alone.model, batch_inputs(0));
    ck_assert_int_eq(tensor_backward(mse_loss(output, batch_targets(0))), 0);
    ck_assert_int_eq(gradients_of(alone.model), 4);
    ck_assert_int_eq(optimizer_step(alone.optimizer), 0);
    alone_free(&alone);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("zero_misuse");
    TCase *tests = tcase_create("zero_misuse");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_misuse, 0, sizeof misuses / sizeof *misuses);
    tcase_add_test(tests, test_pending_error_stays);
    tcase_add_test(tests, test_overflow_skips_the_step);
    tcase_add_test(tests, test_step_that_doubles_the_scale_is_a_whole_one);
    tcase_add_test(tests, test_overflow_at_the_smallest_scale_is_an_error);
    tcase_add_test(tests, test_fp16_parameters_are_fp16_numbers);
    tcase_add_loop_test(tests, test_engine_new_refuses, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tests, test_model_is_free_after_the_engine);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
