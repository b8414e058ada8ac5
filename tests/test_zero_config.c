/* The ZeRO engine's configuration: what is accepted, what is refused, and in which words. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/scope.h"
#include "runtime/zero_internal.h"
#include "tests/golden.h"
#include "tests/suite.h"

/* A sound configuration for two ranks, with one thing changed: `path` set to `value` (JSON), or
 * removed where value is NULL. */
struct change {
    const char *path, *value;
    const struct error_type *type; /* NULL: accepted */
    const char *text;              /* what the message says */
};

static const char sound[] =
    "{\"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 3,"
    " \"train_batch_size\": 12, \"zero_optimization\": {\"stage\": 2},"
    " \"zero_allow_untested_optimizer\": true}";

static const struct change changes[] = {
    /* counts and their product */
    {"train_batch_size", "12", NULL, NULL},
    {"train_batch_size", "12.0", NULL, NULL},
    {"train_batch_size", "4", &ValueError,
     "is 4, but must be train_micro_batch_size_per_gpu x "
     "gradient_accumulation_steps x ranks = 2 x 3 x 2 = 12"},
    {"train_batch_size", "6", &ValueError, "= 12"},
    {"train_batch_size", NULL, &ValueError, "\"train_batch_size\" is missing"},
    {"train_micro_batch_size_per_gpu", NULL, &ValueError, "_per_gpu\" is missing"},
    {"gradient_accumulation_steps", "null", &ValueError, "_steps\" is missing"},
    {"gradient_accumulation_steps", "0", &ValueError,
     "is 0, but must be a whole number, at least 1"},
    {"gradient_accumulation_steps", "-3", &ValueError, "is -3"},
    {"gradient_accumulation_steps", "1.5", &ValueError, "is 1.5"},
    {"gradient_accumulation_steps", "\"auto\"", &ValueError, "is \"auto\""},
    {"gradient_accumulation_steps", "1e300", &ValueError, "at least 1"},
    {"gradient_accumulation_steps", "9223372036854775807", &ValueError, "at least 1"},
    {"train_micro_batch_size_per_gpu", "true", &ValueError, "is true"},
    {"train_micro_batch_size_per_gpu", "[2]", &ValueError, "is [2]"},
    {"train_micro_batch_size_per_gpu", "2147483647", &ValueError,
     "= 2147483647 x 3 x 2 = 12884901882"},
    /* stages */
    {"zero_optimization", NULL, NULL, NULL},
    {"zero_optimization", "{}", NULL, NULL},
    {"zero_optimization.stage", "0", NULL, NULL},
    {"zero_optimization.stage", "1", NULL, NULL},
    {"zero_optimization.stage", "3", &NotImplementedError, "stage 3"},
    {"zero_optimization.stage", "4", &ValueError,
     "\"zero_optimization.stage\" is 4, but must be a whole number from 0 to 3"},
    {"zero_optimization.stage", "-1", &ValueError, "from 0 to 3"},
    {"zero_optimization.stage", "\"2\"", &ValueError, "is \"2\""},
    {"zero_optimization", "2", &ValueError, "is 2, but must be an object"},
    {"zero_optimization", "true", &ValueError, "must be an object"},
    /* offload */
    {"zero_optimization.offload_optimizer", "null", NULL, NULL},
    {"zero_optimization.offload_optimizer", "{\"device\": \"none\"}", NULL, NULL},
    {"zero_optimization.offload_param", "{\"device\": \"none\", \"pin_memory\": true}", NULL, NULL},
    {"zero_optimization.offload_param", "{\"device\": null}", NULL, NULL},
    {"zero_optimization.offload_optimizer", "{\"device\": \"cpu\"}", &NotImplementedError,
     "zero_optimization.offload_optimizer.device\" is \"cpu\""},
    {"zero_optimization.offload_param", "{\"device\": \"nvme\"}", &NotImplementedError,
     "offload_param"},
    {"zero_optimization.offload_param", "{\"device\": \"gpu\"}", &ValueError, "must be \"none\""},
    {"zero_optimization.offload_param", "{\"device\": 3}", &ValueError, "must be \"none\""},
    {"zero_optimization.offload_param", "\"cpu\"", &ValueError, "must be an object"},
    {"zero_optimization.offload_param", "{\"divice\": \"cpu\"}", &ValueError,
     "did you mean \"device\""},
    {"zero_optimization.cpu_offload", "false", NULL, NULL},
    {"zero_optimization.cpu_offload", "true", &NotImplementedError, "offloading"},
    {"zero_optimization.cpu_offload", "1", &ValueError, "true or false"},
    /* buckets */
    {"zero_optimization.reduce_bucket_size", "5e8", NULL, NULL},
    {"zero_optimization.reduce_bucket_size", "0", NULL, NULL},
    {"zero_optimization.reduce_bucket_size", "-1", &ValueError, "at least 0"},
    {"zero_optimization.reduce_bucket_size", "0.5", &ValueError, "is 0.5"},
    {"zero_optimization.reduce_bucket_size", "\"5e8\"", &ValueError, "whole number"},
    {"zero_optimization.allgather_bucket_size", "[]", &ValueError, "whole number"},
    {"zero_optimization.reduce_bucket_size", "9223372036854775807", NULL, NULL},
    {"zero_optimization.reduce_bucket_size", "9223372036854775808.0", &ValueError, "whole number"},
    /* the optimizer */
    {"zero_allow_untested_optimizer", NULL, &ValueError,
     "\"zero_allow_untested_optimizer\" must be true"},
    {"zero_allow_untested_optimizer", "false", &ValueError, "must be true"},
    {"zero_allow_untested_optimizer", "\"true\"", &ValueError, "must be true or false"},
    {"optimizer", "{\"type\": \"SGD\"}", &NotImplementedError, "leave the section out"},
    {"scheduler", "{\"type\": \"WarmupLR\"}", &NotImplementedError, "leave the section out"},
    {"scheduler", "null", NULL, NULL},
    /* clipping */
    {"gradient_clipping", "0", NULL, NULL},
    {"gradient_clipping", "1.0", NULL, NULL},
    {"gradient_clipping", "-1.0", &ValueError, "a number of at least 0"},
    {"gradient_clipping", "\"1\"", &ValueError, "a number of at least 0"},
    /* precision */
    {"fp16", "{\"enabled\": false}", NULL, NULL},
    {"fp16",
     "{\"enabled\": true, \"loss_scale\": 0, \"initial_scale_power\": 16, \"hysteresis\": 2, "
     "\"loss_scale_window\": 1000, \"min_loss_scale\": 1, \"consecutive_hysteresis\": true, "
     "\"auto_cast\": false}",
     NULL, NULL},
    {"fp16", "true", &ValueError, "\"fp16\" is true, but must be an object"},
    {"fp16", "{\"enabled\": \"yes\"}", &ValueError, "\"fp16.enabled\" is \"yes\""},
    {"fp16", "{\"enable\": true}", &ValueError,
     "\"fp16.enable\" is not a known key, and would be ignored: did you mean \"enabled\"?"},
    {"fp16", "{\"loss_scale\": -1}", &ValueError, "\"fp16.loss_scale\""},
    {"fp16", "{\"initial_scale_power\": 1.5}", &ValueError, "from 0 to 100"},
    {"fp16", "{\"loss_scale_window\": 0}", &ValueError, "at least 1"},
    {"fp16", "{\"hysteresis\": 0}", &ValueError, "at least 1"},
    {"fp16", "{\"min_loss_scale\": \"1\"}", &ValueError, "\"fp16.min_loss_scale\""},
    {"fp16", "{\"consecutive_hysteresis\": 1}", &ValueError, "true or false"},
    {"fp16", "{\"fp16_master_weights_and_grads\": true}", &NotImplementedError, "FP32"},
    {"bf16", "{\"enabled\": true}", &NotImplementedError, "\"bf16\" is {\"enabled\":true}"},
    {"bf16", "{\"enabled\": false}", NULL, NULL},
    {"amp", "{\"enabled\": true}", &NotImplementedError, "amp"},
    {"amp", "false", &ValueError, "must be an object"},
    /* keys that nobody knows */
    {"steps_per_print", "1000000", NULL, NULL},
    {"my_own_comment", "\"homework\"", NULL, NULL},
    {"zero_optimization.my_own_comment", "1", NULL, NULL},
    {"train_batchsize", "12", &ValueError, "did you mean \"train_batch_size\"?"},
    {"gradient_acumulation_step", "3", &ValueError, "\"gradient_accumulation_steps\"?"},
    {"zero_optimisation", "{\"stage\": 2}", &ValueError, "\"zero_optimization\"?"},
    {"zero-optimization", "{\"stage\": 2}", &ValueError, "\"zero_optimization\"?"},
    {"FP16", "{\"enabled\": true}", &ValueError, "\"fp16\"?"},
    {"gradient_cliping", "1.0", &ValueError, "\"gradient_clipping\"?"},
    {"zero_allow_untested_optimizers", "true", &ValueError, "did you mean"},
    {"zero_optimization.stages", "2", &ValueError,
     "\"zero_optimization.stages\" is not a known key"},
};

static json_t *changed(const struct change *change)
{
    json_t *config = json_loads(sound, 0, NULL), *section = config;
    const char *key = change->path, *dot = strchr(key, '.');
    if (dot) {
        section = json_object_get(config, "zero_optimization");
        key = dot + 1;
    }
    if (!change->value) {
        json_object_del(section, key);
        return config;
    }
    json_t *value = json_loads(change->value, JSON_DECODE_ANY, NULL);
    ck_assert_ptr_nonnull(value);
    json_object_set_new(section, key, value);
    return config;
}

START_TEST(test_change)
{
    SCOPE;
    const struct change *change = &changes[_i];
    struct zero_config read;
    json_t *config = changed(change);
    int status = zero_config_read(&read, config, 2);
    json_decref(config);
    if (!change->type) {
        check_no_error();
        ck_assert_int_eq(status, 0);
        return;
    }
    ck_assert_int_eq(status, -1);
    ck_assert_msg(error_occurred() && strstr(error_message(error_pending()), change->text),
                  "%s = %s: \"%s\" does not say \"%s\"", change->path, change->value,
                  error_occurred() ? error_message(error_pending()) : "", change->text);
    check_raised(change->type, change->path);
}
END_TEST

START_TEST(test_not_an_object)
{
    static const char *const texts[] = {"[]", "3", "\"fp32\"", "null"};
    struct zero_config read;
    for (int i = 0; i < 4; i++) {
        json_t *config = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        ck_assert_int_eq(zero_config_read(&read, config, 1), -1);
        ck_assert_ptr_nonnull(strstr(error_message(error_pending()), texts[i]));
        check_raised(&ValueError, texts[i]);
        json_decref(config);
    }
    ck_assert_int_eq(zero_config_read(&read, NULL, 1), -1);
    check_raised(&ValueError, "NULL");
}
END_TEST

START_TEST(test_null_keeps_the_pending_error)
{
    struct zero_config read;
    error_set(&OSError, "x.c", 1, "first");
    ck_assert_int_eq(zero_config_read(&read, NULL, 1), -1);
    check_raised(&OSError, "first");
}
END_TEST

START_TEST(test_values_and_defaults)
{
    struct zero_config read;
    json_t *config = json_loads(sound, 0, NULL);
    ck_assert_int_eq(zero_config_read(&read, config, 2), 0);
    ck_assert_int_eq(read.stage, 2);
    ck_assert_int_eq(read.accumulation, 3);
    ck_assert_int_eq(read.reduce_bucket_size, 500000000);
    ck_assert(read.gradient_clipping == 0 && !read.fp16.enabled);
    ck_assert(read.fp16.loss_scale == 0 && read.fp16.min_loss_scale == 1);
    ck_assert_int_eq(read.fp16.initial_scale_power, 16);
    ck_assert_int_eq(read.fp16.loss_scale_window, 1000);
    ck_assert_int_eq(read.fp16.hysteresis, 2);
    ck_assert(!read.fp16.consecutive_hysteresis);
    json_decref(config);
}
END_TEST

/* ---- loss scaling, against DeepSpeed's DynamicLossScaler ---- */

static struct loss_scaler scaler_from(const json_t *given)
{
    json_t *fp16 = json_deep_copy(given), *config = json_loads(sound, 0, NULL);
    struct zero_config read;
    struct loss_scaler scaler;
    json_object_set_new(fp16, "enabled", json_true());
    json_object_set_new(config, "fp16", fp16);
    ck_assert_int_eq(zero_config_read(&read, config, 2), 0);
    loss_scaler_init(&scaler, &read.fp16);
    json_decref(config);
    return scaler;
}

enum { SCALERS = 5 };

START_TEST(test_scale_is_deepspeeds)
{
    json_t *golden = golden_load("zero.json");
    const json_t *cases = json_object_get(golden, "scalers");
    ck_assert_uint_eq(json_array_size(cases), SCALERS);
    const json_t *known = json_array_get(cases, (size_t)_i);
    struct loss_scaler scaler = scaler_from(json_object_get(known, "config"));
    const char *overflows = json_string_value(json_object_get(known, "overflows"));
    for (size_t step = 0; overflows[step]; step++) {
        ck_assert_int_eq(loss_scaler_update(&scaler, overflows[step] == 'x'), 0);
        ck_assert_double_eq(scaler.scale, json_number_value(json_array_get(
                                              json_object_get(known, "scales"), step)));
    }
    json_decref(golden);
}
END_TEST

START_TEST(test_overflow_at_the_smallest_scale)
{
    json_t *config = json_loads("{\"initial_scale_power\": 1, \"hysteresis\": 1}", 0, NULL);
    struct loss_scaler scaler = scaler_from(config);
    ck_assert_int_eq(loss_scaler_update(&scaler, true), 0);
    ck_assert_double_eq(scaler.scale, 1);
    ck_assert_int_eq(loss_scaler_update(&scaler, true), -1);
    check_raised(&RuntimeError, "overflow at the smallest scale");
    json_decref(config);
}
END_TEST

START_TEST(test_fixed_scale_stays)
{
    json_t *config = json_loads("{\"loss_scale\": 100}", 0, NULL);
    struct loss_scaler scaler = scaler_from(config);
    for (int i = 0; i < 5000; i++)
        ck_assert_int_eq(loss_scaler_update(&scaler, i % 3 == 0), 0);
    ck_assert_double_eq(scaler.scale, 100);
    json_decref(config);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("zero_config");
    TCase *tests = tcase_create("zero_config");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_change, 0, sizeof changes / sizeof *changes);
    tcase_add_test(tests, test_not_an_object);
    tcase_add_test(tests, test_null_keeps_the_pending_error);
    tcase_add_test(tests, test_values_and_defaults);
    tcase_add_loop_test(tests, test_scale_is_deepspeeds, 0, SCALERS);
    tcase_add_test(tests, test_overflow_at_the_smallest_scale);
    tcase_add_test(tests, test_fixed_scale_stays);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
