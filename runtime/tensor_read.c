/* tensor_read.c - a tensor's elements as numbers of the host, from any device and dtype. */
#include <math.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/ops.h"
#include "runtime/ops_internal.h"
#include "runtime/scope.h"

int tensor_read(const struct tensor *x, double *out)
{
    if (!x)
        return -1;
    SCOPE;
    NO_GRAD;
    struct tensor *doubles = tensor_cast((struct tensor *)x, FLOAT64);
    struct tensor *values = tensor_to(tensor_contiguous(doubles), CPU);
    if (!values)
        return -1;
    if (values->numel > 0)
        memcpy(out, values->data, (size_t)values->numel * sizeof *out);
    return 0;
}

double tensor_item(const struct tensor *x)
{
    double value = NAN;
    if (!x)
        return NAN;
    if (x->numel != 1)
        return raise_nan(ValueError, "tensor_item of %lld elements, shape %s", (long long)x->numel,
                         tensor_shape_name(x));
    tensor_read(x, &value);
    return value;
}

double tensor_get_at(const struct tensor *x, int count, const int64_t *position)
{
    if (!x)
        return NAN;
    SCOPE;
    if (count != x->ndim)
        return raise_nan(ValueError, "%d indices into shape %s", count, tensor_shape_name(x));
    const struct tensor *element = x;
    for (int d = 0; element && d < count; d++) {
        if (position[d] < 0 || position[d] >= x->shape[d])
            return raise_nan(ValueError, "index %lld is out of range in dimension %d of %s",
                             (long long)position[d], d, tensor_shape_name(x));
        element = op_slice(element, d, position[d], 1);
    }
    return tensor_item(element);
}
