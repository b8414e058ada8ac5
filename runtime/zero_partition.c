#include <math.h>
#include <stdlib.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "runtime/zero_internal.h"

/* ---- the plan ---- */

static int check_parameters(const struct tensors *parameters, bool fp16)
{
    if (parameters->n == 0)
        return raise_error(ValueError, "engine_new: no parameter of the model requires grad");
    for (int i = 0; i < parameters->n; i++) {
        const struct tensor *first = parameters->at[0], *p = parameters->at[i];
        if (tensor_dtype(p) != tensor_dtype(first))
            return raise_error(TypeError, "engine_new: parameters of %s and %s: one dtype, please",
                               dtype_name(tensor_dtype(first)), dtype_name(tensor_dtype(p)));
        if (!device_equal(tensor_device(p), tensor_device(first)))
            return raise_error(ValueError,
                               "engine_new: parameters on %s and %s: one device, please",
                               device_name(tensor_device(first)), device_name(tensor_device(p)));
    }
    if (fp16 && tensor_dtype(parameters->at[0]) != FLOAT32)
        return raise_error(TypeError, "engine_new: fp16 training wants a float32 model, not %s",
                           dtype_name(tensor_dtype(parameters->at[0])));
    return 0;
}

/* plan_buckets - whole parameters, as many as fit; one that is larger has a bucket of its own */
static void plan_buckets(struct partition *partition, int64_t limit)
{
    struct bucket *bucket = NULL;
    int64_t used = 0;
    for (int i = 0; i < partition->slot_count; i++) {
        struct slot *slot = &partition->slots[i];
        int64_t numel = tensor_numel(slot->parameter);
        if (!bucket || (used > 0 && used + numel > limit)) {
            bucket = &partition->buckets[partition->bucket_count++];
            bucket->slots = slot;
            used = 0;
        }
        slot->bucket = bucket;
        slot->offset = used;
        used += numel;
        bucket->slot_count++;
        bucket->part = (used + partition->world_size - 1) / partition->world_size;
    }
}

/* ---- a bucket's memory ---- */

static int64_t full_size(const struct partition *partition, const struct bucket *bucket)
{
    return bucket->part * partition->world_size;
}

/* owned - this rank's elements of a bucket-sized tensor */
static struct tensor *owned(const struct partition *partition, const struct bucket *bucket,
                            struct tensor *full)
{
    if (!full || partition->stage == 0)
        return full;
    return tensor_slice(full, 0, partition->rank * bucket->part, bucket->part);
}

struct tensor *bucket_view(const struct slot *slot, struct tensor *full)
{
    const struct tensor *p = slot->parameter;
    struct tensor *row = tensor_slice(full, 0, slot->offset, tensor_numel(p));
    return tensor_view(row, tensor_ndim(p), tensor_shape(p));
}

int bucket_open(const struct partition *partition, struct bucket *bucket)
{
    if (bucket->full)
        return 0;
    bucket->full = tensor_retain(
        tensor_zeros(SHAPE(full_size(partition, bucket)), partition->dtype, partition->device));
    return bucket->full ? 0 : -1;
}

/* bucket_pack - the parameters' values in a row */
static struct tensor *bucket_pack(const struct partition *partition, const struct bucket *bucket)
{
    struct tensor *full =
        tensor_zeros(SHAPE(full_size(partition, bucket)), partition->dtype, partition->device);
    for (int i = 0; full && i < bucket->slot_count; i++)
        if (!tensor_copy_(bucket_view(&bucket->slots[i], full), bucket->slots[i].parameter))
            return NULL;
    return full;
}

static int bucket_init(const struct partition *partition, struct bucket *bucket)
{
    SCOPE;
    struct tensor *values = bucket_pack(partition, bucket);
    bucket->master = tensor_retain(tensor_clone(owned(partition, bucket, values)));
    if (partition->stage == 2) {
        bucket->gradient =
            tensor_retain(tensor_zeros(SHAPE(bucket->part), partition->dtype, partition->device));
    } else if (bucket_open(partition, bucket) == 0) {
        bucket->gradient = tensor_retain(owned(partition, bucket, bucket->full));
    }
    return bucket->master && bucket->gradient ? 0 : -1;
}

int partition_init(struct partition *partition, const struct tensors *parameters,
                   const struct zero_config *config, struct group *group)
{
    NO_GRAD;
    if (check_parameters(parameters, config->fp16.enabled) < 0)
        return -1;
    *partition = (struct partition){
        .stage = config->stage,
        .rank = group_rank(group),
        .world_size = group_world_size(group),
        .dtype = tensor_dtype(parameters->at[0]),
        .wire_dtype = config->fp16.enabled ? FLOAT16 : tensor_dtype(parameters->at[0]),
        .device = tensor_device(parameters->at[0]),
        .slots = calloc((size_t)parameters->n, sizeof(struct slot)),
        .buckets = calloc((size_t)parameters->n, sizeof(struct bucket)),
    };
    if (!partition->slots || !partition->buckets)
        return raise_error(MemoryError, "out of memory for %d parameters", parameters->n);
    for (int i = 0; i < parameters->n; i++)
        partition->slots[i].parameter = tensor_retain(parameters->at[i]);
    partition->slot_count = parameters->n;
    plan_buckets(partition, config->reduce_bucket_size);
    for (int i = 0; i < partition->bucket_count; i++)
        if (bucket_init(partition, &partition->buckets[i]) < 0)
            return -1;
    return 0;
}

void partition_free(struct partition *partition)
{
    for (int i = 0; i < partition->bucket_count; i++) {
        tensor_release(partition->buckets[i].full);
        tensor_release(partition->buckets[i].gradient);
        tensor_release(partition->buckets[i].master);
    }
    for (int i = 0; i < partition->slot_count; i++)
        tensor_release(partition->slots[i].parameter);
    free(partition->buckets);
    free(partition->slots);
}

/* ---- what a step does ---- */

static int bucket_gather(const struct partition *partition, struct bucket *bucket,
                         struct group *group)
{
    SCOPE;
    struct tensor *full = tensor_cast(bucket->master, partition->wire_dtype);
    if (partition->stage > 0) {
        struct tensor *part = full;
        full = tensor_empty(SHAPE(full_size(partition, bucket)), partition->wire_dtype,
                            partition->device);
        if (group_all_gather(group, full, part) < 0)
            return -1;
    }
    for (int i = 0; i < bucket->slot_count; i++)
        if (!tensor_copy_(bucket->slots[i].parameter, bucket_view(&bucket->slots[i], full)))
            return -1;
    return 0;
}

int partition_gather(struct partition *partition, struct group *group)
{
    NO_GRAD;
    for (int i = 0; i < partition->bucket_count; i++)
        if (bucket_gather(partition, &partition->buckets[i], group) < 0)
            return -1;
    return 0;
}

/* add_squares - *sum += the sum of x's squares, in double precision, a piece at a time */
static int add_squares(struct tensor *x, double *sum)
{
    enum { PIECE = 1 << 16 };
    for (int64_t at = 0, n = tensor_numel(x); at < n; at += PIECE) {
        SCOPE;
        struct tensor *piece = tensor_slice(x, 0, at, n - at < PIECE ? n - at : PIECE);
        struct tensor *square = tensor_sum(tensor_square(tensor_cast(piece, FLOAT64)));
        if (!square)
            return -1;
        *sum += tensor_item(square);
    }
    return 0;
}

int partition_norm(struct partition *partition, struct group *group, double *norm)
{
    SCOPE;
    NO_GRAD;
    double sum = 0;
    for (int i = 0; i < partition->bucket_count; i++)
        if (add_squares(partition->buckets[i].gradient, &sum) < 0)
            return -1;
    struct tensor *total = tensor_to(tensor_from_doubles(&sum, 0, NULL), partition->device);
    if (!total || (partition->stage > 0 && group_all_reduce(group, total, DIST_SUM) < 0))
        return -1;
    *norm = sqrt(tensor_item(total));
    return 0;
}

int partition_update(struct partition *partition, double factor)
{
    NO_GRAD;
    for (int i = 0; i < partition->bucket_count; i++) {
        struct bucket *bucket = &partition->buckets[i];
        if (!tensor_add_(bucket->master, bucket->gradient, factor))
            return -1;
    }
    return 0;
}

int partition_clear(struct partition *partition)
{
    NO_GRAD;
    for (int i = 0; i < partition->bucket_count; i++) {
        struct bucket *bucket = &partition->buckets[i];
        if (!tensor_zero_(partition->stage == 2 ? bucket->gradient : bucket->full))
            return -1;
    }
    return 0;
}
