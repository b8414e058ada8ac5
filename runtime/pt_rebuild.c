/* What the globals of a .pt file stand for. Nothing is called: a rebuilt tensor is a description,
 * whose offset, shape and strides are checked against its storage's size here. */
#include <string.h>

#include "runtime/error.h"
#include "runtime/pt_machine_internal.h"
#include "runtime/scope.h"

static const char *const names[] = {
    [ORDERED_DICT] = "collections.OrderedDict",
    [REBUILD_TENSOR] = "torch._utils._rebuild_tensor_v2",
    [REBUILD_PARAMETER] = "torch._utils._rebuild_parameter",
    [FLOAT_STORAGE] = "torch.FloatStorage",
    [DOUBLE_STORAGE] = "torch.DoubleStorage",
    [HALF_STORAGE] = "torch.HalfStorage",
};

int machine_global(struct machine *m, const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return machine_push(m, (struct value){.kind = GLOBAL, .global = (enum global)i});
    return raise_error(ValueError, "data.pkl refers to %s, which is not allowed here", name);
}

/* holds - exactly these kinds of values, in this order */
static bool holds(const struct sequence *tuple, size_t n, const enum kind *kinds)
{
    for (size_t i = 0; i < n && i < tuple->n; i++)
        if (tuple->at[i].kind != kinds[i])
            return false;
    return tuple->n == n;
}
#define HOLDS(tuple, ...)                                                                          \
    holds((tuple), sizeof((enum kind[]){__VA_ARGS__}) / sizeof(enum kind),                         \
          (const enum kind[]){__VA_ARGS__})

/* ---- storages: ('storage', torch.FloatStorage, key, location, numel) ---- */

static bool storage_dtype(enum global type, enum dtype *dtype)
{
    if (type != FLOAT_STORAGE && type != DOUBLE_STORAGE && type != HALF_STORAGE)
        return false;
    *dtype = type == FLOAT_STORAGE ? FLOAT32 : type == DOUBLE_STORAGE ? FLOAT64 : FLOAT16;
    return true;
}

int machine_persistent_id(struct machine *m)
{
    struct value id;
    enum dtype dtype;
    if (machine_pop(m, TUPLE, &id) < 0)
        return -1;
    const struct value *at = id.sequence->at;
    if (!HOLDS(id.sequence, TEXT, GLOBAL, TEXT, TEXT, INT) || strcmp(at[0].text, "storage") != 0 ||
        !storage_dtype(at[1].global, &dtype) || at[4].integer < 0)
        return raise_error(ValueError, "data.pkl: a storage is not described as torch does");
    struct pt_tensor *storage = scope_alloc(sizeof *storage);
    if (!storage)
        return -1;
    storage->storage = at[2].text;
    storage->storage_numel = at[4].integer;
    storage->dtype = dtype;
    return machine_push(m, (struct value){.kind = STORAGE, .tensor = storage});
}

/* ---- tensors: (storage, offset, shape, strides, requires_grad, hooks) ---- */

static bool read_sizes(const struct sequence *tuple, int64_t *sizes)
{
    if (tuple->n > TENSOR_MAX_DIMS)
        return false;
    for (size_t i = 0; i < tuple->n; i++) {
        if (tuple->at[i].kind != INT || tuple->at[i].integer < 0)
            return false;
        sizes[i] = tuple->at[i].integer;
    }
    return true;
}

static bool count_elements(struct pt_tensor *tensor)
{
    tensor->numel = 1;
    for (int i = 0; i < tensor->ndim; i++)
        if (__builtin_mul_overflow(tensor->numel, tensor->shape[i], &tensor->numel))
            return false;
    return true;
}

static bool lies_within_storage(const struct pt_tensor *tensor)
{
    int64_t last = tensor->offset, reach;
    if (tensor->offset < 0 || tensor->numel == 0)
        return tensor->offset >= 0;
    for (int i = 0; i < tensor->ndim; i++)
        if (__builtin_mul_overflow(tensor->shape[i] - 1, tensor->strides[i], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return false;
    return last < tensor->storage_numel;
}

static int rebuild_tensor(struct machine *m, const struct sequence *arguments)
{
    const struct value *at = arguments->at;
    if (!HOLDS(arguments, STORAGE, INT, TUPLE, TUPLE, BOOL, DICT) || at[5].sequence->n > 0)
        return raise_error(ValueError, "data.pkl: a tensor is not described as torch does");
    const struct sequence *shape = at[2].sequence, *strides = at[3].sequence;
    struct pt_tensor *tensor = scope_alloc(sizeof *tensor);
    if (!tensor)
        return -1;
    *tensor = *at[0].tensor;
    tensor->offset = at[1].integer;
    tensor->ndim = (int)shape->n;
    if (shape->n != strides->n || !read_sizes(shape, tensor->shape) ||
        !read_sizes(strides, tensor->strides) || !count_elements(tensor) ||
        !lies_within_storage(tensor))
        return raise_error(ValueError, "data.pkl: a tensor's shape does not fit its storage");
    return machine_push(m, (struct value){.kind = TENSOR, .tensor = tensor});
}

/* torch.nn.Parameter: (tensor, requires_grad, hooks) */
static int rebuild_parameter(struct machine *m, const struct sequence *arguments)
{
    if (!HOLDS(arguments, TENSOR, BOOL, DICT) || arguments->at[2].sequence->n > 0)
        return raise_error(ValueError, "data.pkl: a parameter is not described as torch does");
    return machine_push(m, arguments->at[0]);
}

static int new_dict(struct machine *m, const struct sequence *arguments)
{
    if (arguments->n > 0)
        return raise_error(ValueError, "data.pkl: an OrderedDict is not described as torch does");
    struct sequence *dict = sequence_new(0);
    return dict ? machine_push(m, (struct value){.kind = DICT, .sequence = dict}) : -1;
}

int machine_reduce(struct machine *m)
{
    struct value arguments, function;
    if (machine_pop(m, TUPLE, &arguments) < 0 || machine_pop(m, GLOBAL, &function) < 0)
        return -1;
    switch (function.global) {
    case ORDERED_DICT:
        return new_dict(m, arguments.sequence);
    case REBUILD_TENSOR:
        return rebuild_tensor(m, arguments.sequence);
    case REBUILD_PARAMETER:
        return rebuild_parameter(m, arguments.sequence);
    default:
        return raise_error(ValueError, "data.pkl calls %s", names[function.global]);
    }
}

/* A state_dict carries attributes (_metadata: versions of the modules) that say nothing of tensors.
 */
int machine_build(struct machine *m)
{
    struct value attributes, dict;
    if (machine_pop(m, DICT, &attributes) < 0 || machine_pop(m, DICT, &dict) < 0)
        return -1;
    return machine_push(m, dict);
}
