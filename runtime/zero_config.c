/* zero_config.c - the engine's configuration, checked as DeepSpeed does it, in words for a person.
 *
 * Every check raises at most one error and the first one wins, so a list of checks reads as a list.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/scope.h"
#include "runtime/words.h"
#include "runtime/zero_internal.h"

/* ---- known keys: others are accepted, unless they look like a slip of the pen ---- */

static const char *const top_keys[] = {"train_batch_size",
                                       "train_micro_batch_size_per_gpu",
                                       "gradient_accumulation_steps",
                                       "zero_optimization",
                                       "zero_allow_untested_optimizer",
                                       "zero_force_ds_cpu_optimizer",
                                       "gradient_clipping",
                                       "fp16",
                                       "bf16",
                                       "bfloat16",
                                       "amp",
                                       "optimizer",
                                       "scheduler",
                                       "steps_per_print",
                                       "wall_clock_breakdown",
                                       "memory_breakdown",
                                       "dump_state",
                                       "prescale_gradients",
                                       "gradient_predivide_factor",
                                       "sparse_gradients",
                                       "communication_data_type",
                                       "data_types",
                                       "disable_allgather",
                                       "dataloader_drop_last",
                                       "activation_checkpointing",
                                       "flops_profiler",
                                       "comms_logger",
                                       "tensorboard",
                                       "wandb",
                                       "csv_monitor",
                                       "aio",
                                       "autotuning",
                                       "checkpoint",
                                       "elasticity",
                                       "compression_training",
                                       "sparse_attention",
                                       "data_efficiency",
                                       "curriculum_learning",
                                       "progressive_layer_drop",
                                       "eigenvalue",
                                       "quantize_training",
                                       "seed",
                                       NULL};

static const char *const zero_keys[] = {"stage",
                                        "allgather_partitions",
                                        "allgather_bucket_size",
                                        "overlap_comm",
                                        "reduce_scatter",
                                        "reduce_bucket_size",
                                        "contiguous_gradients",
                                        "offload_optimizer",
                                        "offload_param",
                                        "cpu_offload",
                                        "cpu_offload_params",
                                        "cpu_offload_param",
                                        "cpu_offload_use_pin_memory",
                                        "sub_group_size",
                                        "elastic_checkpoint",
                                        "load_from_fp32_weights",
                                        "round_robin_gradients",
                                        "ignore_unused_parameters",
                                        "legacy_stage1",
                                        "prefetch_bucket_size",
                                        "stage3_prefetch_bucket_size",
                                        "stage3_param_persistence_threshold",
                                        "stage3_max_live_parameters",
                                        "stage3_max_reuse_distance",
                                        "stage3_gather_16bit_weights_on_model_save",
                                        NULL};

static const char *const fp16_keys[] = {"enabled",
                                        "auto_cast",
                                        "loss_scale",
                                        "initial_scale_power",
                                        "loss_scale_window",
                                        "hysteresis",
                                        "consecutive_hysteresis",
                                        "min_loss_scale",
                                        "fp16_master_weights_and_grads",
                                        NULL};

static const char *const offload_keys[] = {
    "device",         "nvme_path", "buffer_count", "buffer_size", "pin_memory", "pipeline_read",
    "pipeline_write", "fast_init", "max_in_cpu",   "ratio",       NULL};

/* ---- values ---- */

/* A section of the configuration, and its name as a prefix: "" or "fp16.". */
struct section {
    const json_t *json;
    const char *prefix;
};

static const char *text_of(const json_t *value)
{
    enum { LONGEST = 80 };
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    const char *copy =
        text ? scope_printf(strlen(text) > LONGEST ? "%.*s..." : "%.*s", LONGEST, text) : NULL;
    free(text);
    return copy ? copy : "something";
}

static int wrong(struct section section, const char *key, const json_t *value, const char *right)
{
    return raise_error(ValueError, "configuration: \"%s%s\" is %s, but must be %s", section.prefix,
                       key, text_of(value), right);
}

/* given - the value of a key; NULL where it is absent or null, which mean the default */
static const json_t *given(struct section section, const char *key)
{
    const json_t *value = json_object_get(section.json, key);
    return json_is_null(value) ? NULL : value;
}

static int read_bool(struct section section, const char *key, bool *value)
{
    const json_t *json = given(section, key);
    if (json && !json_is_boolean(json))
        return wrong(section, key, json, "true or false");
    if (json)
        *value = json_is_true(json);
    return 0;
}

static int read_number(struct section section, const char *key, double least, double *value)
{
    const json_t *json = given(section, key);
    if (!json)
        return 0;
    double number = json_is_number(json) ? json_number_value(json) : -INFINITY;
    if (!(number >= least))
        return wrong(section, key, json, scope_printf("a number of at least %g", least));
    *value = number;
    return 0;
}

/* whole_of - a whole number, and one that int64_t holds; 5e8 is one too */
static bool whole_of(const json_t *json, int64_t *whole)
{
    double number = json_is_real(json) ? json_real_value(json) : NAN;
    bool real = number >= -0x1p63 && number < 0x1p63 && number == floor(number);
    if (real || json_is_integer(json))
        *whole = real ? (int64_t)number : json_integer_value(json);
    return real || json_is_integer(json);
}

static int read_whole(struct section section, const char *key, int64_t least, int64_t most,
                      int64_t *value)
{
    const json_t *json = given(section, key);
    if (!json)
        return 0;
    int64_t whole;
    if (!whole_of(json, &whole) || whole < least || whole > most)
        return wrong(section, key, json,
                     most == INT_MAX || most == INT64_MAX
                         ? scope_printf("a whole number, at least %lld", (long long)least)
                         : scope_printf("a whole number from %lld to %lld", (long long)least,
                                        (long long)most));
    *value = whole;
    return 0;
}

static int read_int(struct section section, const char *key, int least, int most, int *value)
{
    int64_t whole = *value;
    int status = read_whole(section, key, least, most, &whole);
    *value = (int)whole;
    return status;
}

static int check_section(struct section parent, const char *key)
{
    const json_t *json = given(parent, key);
    return json && !json_is_object(json) ? wrong(parent, key, json, "an object { ... }") : 0;
}

/* ---- keys ---- */

/* check_key - a key that is not known, and nearly one that is. errors: ValueError */
static int check_key(struct section section, const char *key, const char *const *known)
{
    const char *closest = word_closest(key, known, 1 + strlen(key) / 10);
    if (!closest || strcmp(closest, key) == 0)
        return 0;
    return raise_error(ValueError,
                       "configuration: \"%s%s\" is not a known key, and would be ignored: did you "
                       "mean \"%s\"?",
                       section.prefix, key, closest);
}

static int check_keys(struct section section, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)section.json, key, value)
    {
        if (check_key(section, key, known) < 0)
            return -1;
    }
    return 0;
}

/* ---- what this engine does not have ---- */

static int refuse(struct section section, const char *key, const char *why)
{
    return raise_error(NotImplementedError, "configuration: \"%s%s\" is %s: %s", section.prefix,
                       key, text_of(json_object_get(section.json, key)), why);
}

static int check_switched_off(struct section top, const char *key)
{
    if (check_section(top, key) < 0)
        return -1;
    const json_t *enabled = json_object_get(json_object_get(top.json, key), "enabled");
    if (json_is_true(enabled))
        return refuse(top, key, "this engine trains in fp32 or fp16, and nothing more");
    return 0;
}

static int check_absent(struct section top, const char *key)
{
    if (given(top, key))
        return refuse(top, key,
                      "the engine is given its optimizer, without a scheduler: leave the "
                      "section out");
    return 0;
}

static int check_offload_flag(struct section zero, const char *key)
{
    bool on = false;
    if (read_bool(zero, key, &on) < 0)
        return -1;
    return on ? refuse(zero, key, "offloading is not provided: leave it out") : 0;
}

/* check_offload - absent, or to the device "none" */
static int check_offload(struct section zero, const char *key)
{
    if (check_section(zero, key) < 0)
        return -1;
    struct section offload = {given(zero, key), scope_printf("%s%s.", zero.prefix, key)};
    if (!offload.json)
        return 0;
    if (check_keys(offload, offload_keys) < 0)
        return -1;
    const json_t *device = given(offload, "device");
    const char *name = device ? json_string_value(device) : "none";
    if (name && strcmp(name, "none") == 0)
        return 0;
    if (name && (strcmp(name, "cpu") == 0 || strcmp(name, "nvme") == 0))
        return refuse(offload, "device", "offloading is not provided: \"none\", or leave it out");
    return wrong(offload, "device", device, "\"none\"");
}

/* ---- sections ---- */

static int read_zero(struct zero_config *config, struct section top)
{
    if (check_section(top, "zero_optimization") < 0)
        return -1;
    struct section zero = {given(top, "zero_optimization"), "zero_optimization."};
    config->stage = 0;
    config->reduce_bucket_size = 500000000;
    int64_t gathered = 0;
    if (!zero.json)
        return 0;
    if (check_keys(zero, zero_keys) < 0 || read_int(zero, "stage", 0, 3, &config->stage) < 0 ||
        check_offload(zero, "offload_optimizer") < 0 || check_offload(zero, "offload_param") < 0 ||
        check_offload_flag(zero, "cpu_offload") < 0 ||
        check_offload_flag(zero, "cpu_offload_param") < 0 ||
        check_offload_flag(zero, "cpu_offload_params") < 0 ||
        read_whole(zero, "reduce_bucket_size", 0, INT64_MAX, &config->reduce_bucket_size) < 0 ||
        read_whole(zero, "allgather_bucket_size", 0, INT64_MAX, &gathered) < 0)
        return -1;
    if (config->stage == 3)
        return refuse(zero, "stage",
                      "stage 3, which partitions the parameters too, is not provided: 0, 1 or 2");
    return 0;
}

static int read_fp16(struct fp16_config *config, struct section top)
{
    *config = (struct fp16_config){
        .min_loss_scale = 1, .initial_scale_power = 16, .loss_scale_window = 1000, .hysteresis = 2};
    struct section fp16 = {given(top, "fp16"), "fp16."};
    bool fp16_masters = false;
    if (check_section(top, "fp16") < 0)
        return -1;
    if (!fp16.json)
        return 0;
    if (check_keys(fp16, fp16_keys) < 0 || read_bool(fp16, "enabled", &config->enabled) < 0 ||
        read_number(fp16, "loss_scale", 0, &config->loss_scale) < 0 ||
        read_int(fp16, "initial_scale_power", 0, 100, &config->initial_scale_power) < 0 ||
        read_int(fp16, "loss_scale_window", 1, INT_MAX, &config->loss_scale_window) < 0 ||
        read_int(fp16, "hysteresis", 1, INT_MAX, &config->hysteresis) < 0 ||
        read_bool(fp16, "consecutive_hysteresis", &config->consecutive_hysteresis) < 0 ||
        read_number(fp16, "min_loss_scale", 0, &config->min_loss_scale) < 0 ||
        read_bool(fp16, "fp16_master_weights_and_grads", &fp16_masters) < 0)
        return -1;
    if (fp16_masters)
        return refuse(fp16, "fp16_master_weights_and_grads", "master weights are FP32 here");
    return 0;
}

/* ---- counts ---- */

struct counts {
    int64_t train_batch, micro_batch, accumulation;
};

static int read_count(struct section top, const char *key, int64_t *count)
{
    if (read_whole(top, key, 1, INT_MAX, count) < 0)
        return -1;
    if (!given(top, key))
        return raise_error(ValueError, "configuration: \"%s\" is missing", key);
    return 0;
}

static int read_counts(struct zero_config *config, struct section top, int world_size)
{
    struct counts counts = {0};
    if (read_count(top, "train_micro_batch_size_per_gpu", &counts.micro_batch) < 0 ||
        read_count(top, "gradient_accumulation_steps", &counts.accumulation) < 0 ||
        read_count(top, "train_batch_size", &counts.train_batch) < 0)
        return -1;
    long double product = (long double)counts.micro_batch * counts.accumulation * world_size;
    if (product != counts.train_batch)
        return raise_error(ValueError,
                           "configuration: \"train_batch_size\" is %lld, but must be "
                           "train_micro_batch_size_per_gpu x gradient_accumulation_steps x ranks = "
                           "%lld x %lld x %d = %.0Lf",
                           (long long)counts.train_batch, (long long)counts.micro_batch,
                           (long long)counts.accumulation, world_size, product);
    config->accumulation = (int)counts.accumulation;
    return 0;
}

static int check_untested(const struct zero_config *config, struct section top)
{
    bool allowed = false;
    if (read_bool(top, "zero_allow_untested_optimizer", &allowed) < 0)
        return -1;
    if (config->stage > 0 && !allowed)
        return raise_error(
            ValueError, "configuration: \"zero_allow_untested_optimizer\" must be true: DeepSpeed "
                        "has not tested ZeRO with this optimizer, SGD, and wants to be told so");
    return 0;
}

int zero_config_read(struct zero_config *config, const json_t *json, int world_size)
{
    SCOPE;
    struct section top = {json, ""};
    *config = (struct zero_config){0};
    if (!json)
        return raise_error(ValueError, "configuration: it is NULL");
    if (!json_is_object(json))
        return raise_error(ValueError, "configuration: it must be an object { ... }, not %s",
                           text_of(json));
    if (check_keys(top, top_keys) < 0 || read_counts(config, top, world_size) < 0 ||
        read_zero(config, top) < 0 || check_untested(config, top) < 0 ||
        read_number(top, "gradient_clipping", 0, &config->gradient_clipping) < 0 ||
        read_fp16(&config->fp16, top) < 0 || check_switched_off(top, "bf16") < 0 ||
        check_switched_off(top, "bfloat16") < 0 || check_switched_off(top, "amp") < 0 ||
        check_switched_off(top, "elasticity") < 0 || check_absent(top, "optimizer") < 0 ||
        check_absent(top, "scheduler") < 0)
        return -1;
    return 0;
}
