/* The published training runs, step by step: tests/golden/dp.json (two ranks, data parallel) and
 * lora.json (two ranks, two microbatches each). Ranks are simulated one after the other: gradients
 * add up in the parameters, and are then divided. */
#include <string.h>

#include "runtime/fixtures.h"
#include "runtime/ops.h"
#include "runtime/optim.h"
#include "runtime/serialize.h"
#include "tests/golden.h"
#include "tests/suite.h"

enum { STEPS = BATCH_COUNT, RANKS = 2, MICROBATCHES = 2 };
static const double RTOL = 1e-5, ATOL = 1e-6;

static json_t *at(json_t *list, int index)
{
    return json_array_get(list, (size_t)index);
}

static void check_parameters(struct module *model, json_t *expected, const char *what)
{
    SCOPE;
    const char *name;
    json_t *values;
    struct named_tensors *all = module_named_parameters(model);
    json_object_foreach(expected, name, values) check_golden(
        named_tensors_find(all, name), values, RTOL, ATOL, scope_printf("%s %s", what, name));
}

static void check_gradients(struct module *model, json_t *expected, const char *what)
{
    SCOPE;
    const char *name;
    json_t *values;
    struct named_tensors *all = module_named_parameters(model);
    json_object_foreach(expected, name, values)
        check_golden(tensor_grad(named_tensors_find(all, name)), values, RTOL, ATOL,
                     scope_printf("%s gradient of %s", what, name));
}

/* Rows first .. first+n-1 of a batch: forward, loss, backward. returns: the loss */
static double train_rows(struct module *model, int batch, int64_t first, int64_t n)
{
    SCOPE;
    struct tensor *x = tensor_slice(batch_inputs(batch), 0, first, n);
    struct tensor *y = tensor_slice(batch_targets(batch), 0, first, n);
    struct tensor *loss = mse_loss(module_forward(model, x), y);
    ck_assert_int_eq(tensor_backward(loss), 0);
    return tensor_item(loss);
}

static void check_loss(double got, json_t *expected, const char *what)
{
    const double value = json_real_value(expected);
    ck_assert_msg(fabs(got - value) <= ATOL + RTOL * fabs(value), "%s: %.9g, expected %.9g", what,
                  got, value);
}

/* mean_gradients - what the parameters have accumulated, over n */
static void mean_gradients(struct optimizer *optimizer, int n)
{
    NO_GRAD;
    for (int i = 0; i < optimizer_parameters(optimizer)->n; i++)
        tensor_div_(tensor_grad(optimizer_parameters(optimizer)->at[i]), n);
}

/* ---- data parallel ---- */

START_TEST(local_losses_and_gradients)
{
    SCOPE;
    json_t *golden = golden_load("dp.json");
    struct module *model = small_model();
    struct optimizer *sgd = sgd_new(model, 0.04);
    for (int step = 0; step < STEPS; step++) {
        struct module *replicas[RANKS] = {module_copy(model), module_copy(model)};
        for (int rank = 0; rank < RANKS; rank++) {
            double loss = train_rows(replicas[rank], step, 4 * rank, 4);
            check_loss(loss, at(at(json_object_get(golden, "local_losses_by_rank"), rank), step),
                       "local loss");
            check_gradients(replicas[rank],
                            at(at(json_object_get(golden, "local_gradients_by_rank"), rank), step),
                            "local");
            train_rows(model, step, 4 * rank, 4);
        }
        mean_gradients(sgd, RANKS);
        check_gradients(model, at(json_object_get(golden, "averaged_gradients_by_step"), step),
                        "averaged");
        ck_assert_int_eq(optimizer_step(sgd), 0);
        optimizer_zero_grad(sgd);
        check_parameters(model, at(json_object_get(golden, "parameters_after_step"), step),
                         "after the step");
    }
    check_parameters(model, json_object_get(golden, "final_parameters"), "final");
    json_decref(golden);
}
END_TEST

START_TEST(whole_batches)
{
    SCOPE;
    json_t *golden = golden_load("dp.json");
    struct module *model = small_model();
    check_parameters(model, json_object_get(golden, "initial_parameters"), "initial");
    struct optimizer *sgd = sgd_new(model, 0.04);
    for (int step = 0; step < STEPS; step++) {
        optimizer_zero_grad(sgd);
        double loss = train_rows(model, step, 0, BATCH_ROWS);
        check_loss(loss, at(json_object_get(golden, "serial_global_losses_before_step"), step),
                   "loss");
        check_gradients(model, at(json_object_get(golden, "serial_gradients_by_step"), step), "");
        ck_assert_int_eq(optimizer_step(sgd), 0);
    }
    check_parameters(model, json_object_get(golden, "serial_final_parameters"), "final");
    json_decref(golden);
}
END_TEST

/* ---- LoRA ---- */

static void check_microbatches(struct module *model, int step, json_t *losses)
{
    for (int rank = 0; rank < RANKS; rank++)
        for (int micro = 0; micro < MICROBATCHES; micro++) {
            double loss = train_rows(model, step, 4 * rank + 2 * micro, 2);
            check_loss(loss, at(at(at(losses, step), rank), micro), "microbatch loss");
        }
}

static void check_outputs(struct module *model, json_t *outputs)
{
    NO_GRAD;
    for (int batch = 0; batch < BATCH_COUNT; batch++)
        check_golden(module_forward(model, batch_inputs(batch)), at(outputs, batch), RTOL, ATOL,
                     "output");
}

START_TEST(lora_accumulated)
{
    SCOPE;
    json_t *golden = golden_load("lora.json");
    struct module *model = small_model_lora(), *start = module_copy(model);
    check_parameters(model, json_object_get(golden, "initial_parameters"), "initial");
    struct optimizer *sgd = sgd_new(model, 0.1);
    ck_assert_int_eq(optimizer_parameters(sgd)->n, 4);
    for (int step = 0; step < STEPS; step++) {
        optimizer_zero_grad(sgd);
        check_microbatches(model, step,
                           json_object_get(golden, "microbatch_losses_step_rank_micro"));
        mean_gradients(sgd, RANKS * MICROBATCHES);
        check_gradients(model, at(json_object_get(golden, "serial_gradients_by_step"), step),
                        "accumulated");
        ck_assert_int_eq(optimizer_step(sgd), 0);
        check_parameters(
            model, at(json_object_get(golden, "accumulated_lora_parameters_after_step"), step),
            "after the step");
    }
    check_parameters(model, json_object_get(golden, "final_parameters"), "final");
    check_outputs(model, json_object_get(golden, "outputs_after_training"));
    const char *frozen[] = {"0.base", "2.base"};
    for (int i = 0; i < 2; i++)
        check_close(module_parameter(module_get(model, frozen[i]), "weight"),
                    module_parameter(module_get(start, frozen[i]), "weight"), 0, 0, frozen[i]);
    json_decref(golden);
}
END_TEST

START_TEST(lora_whole_batches)
{
    SCOPE;
    json_t *golden = golden_load("lora.json");
    struct module *model = small_model_lora();
    struct optimizer *sgd = sgd_new(model, 0.1);
    for (int step = 0; step < STEPS; step++) {
        optimizer_zero_grad(sgd);
        double loss = train_rows(model, step, 0, BATCH_ROWS);
        check_loss(loss, at(json_object_get(golden, "serial_global_losses_before_step"), step),
                   "loss");
        ck_assert_int_eq(optimizer_step(sgd), 0);
        check_parameters(model, at(json_object_get(golden, "lora_parameters_after_step"), step),
                         "after the step");
    }
    json_decref(golden);
}
END_TEST

/* ---- the adapter that PyTorch saved ---- */

START_TEST(adapter_file)
{
    SCOPE;
    static const char *const names[] = {"0.lora_A", "0.lora_B", "2.lora_A", "2.lora_B"};
    json_t *golden = golden_load("lora.json"), *final = json_object_get(golden, "final_parameters");
    struct named_tensors *adapter = tensors_load("tests/golden/adapter.pt");
    check_no_error();
    ck_assert_int_eq(adapter->n, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(adapter->at[i].name, names[i]);
        ck_assert_int_eq(tensor_dtype(adapter->at[i].tensor), FLOAT32);
        struct tensor *expected = golden_tensor(json_object_get(final, names[i]), FLOAT32);
        check_close(adapter->at[i].tensor, expected, 0, 0, names[i]);
    }
    json_decref(golden);
}
END_TEST

/* ---- fixtures ---- */

START_TEST(batches)
{
    SCOPE;
    json_t *golden = golden_load("dp.json");
    json_t *batch = at(json_object_get(golden, "batches"), _i);
    check_close(batch_inputs(_i), golden_tensor(json_object_get(batch, "x"), FLOAT32), 0, 0, "x");
    check_close(batch_targets(_i), golden_tensor(json_object_get(batch, "y"), FLOAT32), 0, 0, "y");
    json_decref(golden);
}
END_TEST

START_TEST(no_such_batch)
{
    SCOPE;
    const int wrong[] = {-1, BATCH_COUNT};
    ck_assert_ptr_null(batch_inputs(wrong[_i]));
    check_raised(&ValueError, "inputs");
    ck_assert_ptr_null(batch_targets(wrong[_i]));
    check_raised(&ValueError, "targets");
}
END_TEST

START_TEST(residual_mlp_of_blocks)
{
    SCOPE;
    struct rng rng;
    rng_seed(&rng, 1);
    struct module *model = residual_mlp(3, 5, CPU, &rng);
    struct tensor *x = tensor_full(SHAPE(2, 5), 1, FLOAT32, CPU), *expected = x;
    for (int i = 0; i < 3; i++) {
        struct module *linear = module_get(model, scope_printf("%d.linear", i));
        struct tensor *z = module_forward(linear, expected);
        expected = tensor_add(expected, tensor_scale(tensor_gelu(z), 0.1));
    }
    check_close(module_forward(model, x), expected, 1e-6, 1e-6, "output");
    ck_assert_int_eq(module_child_count(model), 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("golden");
    TCase *tests = tcase_create("golden");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, local_losses_and_gradients);
    tcase_add_test(tests, whole_batches);
    tcase_add_test(tests, lora_accumulated);
    tcase_add_test(tests, lora_whole_batches);
    tcase_add_test(tests, adapter_file);
    tcase_add_loop_test(tests, batches, 0, BATCH_COUNT);
    tcase_add_loop_test(tests, no_such_batch, 0, 2);
    tcase_add_test(tests, residual_mlp_of_blocks);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
