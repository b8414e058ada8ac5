/* operations.c - the device table's operations, as launches of kernels. */
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/kernels.h"

static bool is_wide(const struct tensor *x)
{
    return x->dtype == FLOAT64;
}

/* After a launch, which says nothing by itself. */
static int launched(void)
{
    return cuda_check(cudaGetLastError(), "a kernel's launch");
}

/* ---- functions of each element ---- */

static int copy_bytes(cudaStream_t stream, struct tensor *out, const struct tensor *x)
{
    size_t bytes = (size_t)x->numel * (size_t)dtype_size(x->dtype);
    if (bytes == 0 || out->data == x->data)
        return 0;
    return CUDA_TRY(cudaMemcpyAsync(out->data, x->data, bytes, cudaMemcpyDeviceToDevice, stream));
}

int cuda_copy(struct tensor *out, const struct tensor *x)
{
    struct cuda_device *device = order_write(out);
    if (!device)
        return -1;
    if (out->dtype == x->dtype && tensor_is_contiguous(out) && tensor_is_contiguous(x))
        return copy_bytes(device->compute, out, x);
    struct loop loop = loop_init(2, (const struct tensor *[]){out, x});
    launch_copy(device->compute, is_wide(out) || is_wide(x), &loop);
    return launched();
}

/* A number that becomes a FLOAT16 is rounded once. */
int cuda_fill(struct tensor *out, double value)
{
    struct cuda_device *device = order_write(out);
    if (!device)
        return -1;
    struct loop loop = loop_init(1, (const struct tensor *[]){out});
    launch_fill(device->compute, out->dtype != FLOAT32, &loop, value);
    return launched();
}

int cuda_unary(enum unary op, struct tensor *out, const struct tensor *x, double k)
{
    struct cuda_device *device = order_write(out);
    if (!device)
        return -1;
    struct loop loop = loop_init(2, (const struct tensor *[]){out, x});
    launch_unary(device->compute, op, is_wide(out), &loop, k);
    return launched();
}

int cuda_binary(enum binary op, struct tensor *out, const struct tensor *a, const struct tensor *b,
                double k)
{
    struct cuda_device *device = order_write(out);
    if (!device)
        return -1;
    struct loop loop = loop_init(3, (const struct tensor *[]){out, a, b});
    launch_binary(device->compute, op, is_wide(out), &loop, k);
    return launched();
}

int cuda_mse_grad(struct tensor *out, const struct tensor *gradient, const struct tensor *output,
                  const struct tensor *target)
{
    struct cuda_device *device = order_write(out);
    if (!device)
        return -1;
    launch_mse_grad(device->compute, is_wide(out), out->data, gradient->data, output->data,
                    target->data, out->numel);
    return launched();
}

int cuda_add_many(int n, struct tensor *const *out, struct tensor *const *x, double k)
{
    struct cuda_device *device = NULL;
    struct pairs pairs = {.n = 0};
    for (int i = 0; i < n; i++) {
        if (!(device = order_write(out[i])))
            return -1;
        pairs.at[pairs.n++] = (struct pair){out[i]->data, x[i]->data, out[i]->numel};
        if (pairs.n < PAIRS && i < n - 1)
            continue;
        launch_add_many(device->compute, is_wide(out[i]), &pairs, k);
        pairs.n = 0;
    }
    return launched();
}

/* ---- sums ---- */

enum { TERMS = 256, SUMS = 1 << 17 }; /* terms for a thread, at least; threads, about, at most */

static int64_t parts_of(const struct reduction *r)
{
    int64_t parts = (r->summed_n + TERMS - 1) / TERMS;
    int64_t most = SUMS / (r->kept_n > 0 ? r->kept_n : 1);
    parts = parts < most ? parts : most;
    return parts > 1 ? parts : 1;
}

static struct loop line(int64_t n, int64_t stride)
{
    return (struct loop){
        .operands = 1, .ndim = 1, .shape = {n}, .operand = {{.strides = {stride}}}};
}

/* reduce_parts - the sums of each part, in new memory, as the terms of what is left to sum */
static int reduce_parts(cudaStream_t stream, bool wide, struct reduction *r)
{
    struct reduction parts = *r;
    parts.k = 1;
    parts.out_wide = true;
    size_t bytes = (size_t)(r->parts * r->kept_n) * sizeof(double);
    if (CUDA_TRY(cudaMallocAsync(&parts.out, bytes, stream)) < 0)
        return -1;
    launch_sum(stream, wide, &parts);
    r->x = parts.out;
    r->y = NULL;
    r->kept = line(r->kept_n, 1);
    r->summed = line(r->parts, r->kept_n);
    r->summed_n = r->parts;
    return launched();
}

static int reduce(struct tensor *out, struct reduction *r, bool wide)
{
    if (r->summed_n == 0)
        return cuda_fill(out, r->k * 0); /* NAN for a mean of nothing */
    struct cuda_device *device = order_write(out);
    void *former = NULL;
    int status = device ? 0 : -1;
    r->out = out->data;
    r->out_wide = is_wide(out);
    while (status == 0 && (r->parts = parts_of(r)) > 1) {
        status = reduce_parts(device->compute, wide, r);
        if (former)
            (void)cudaFreeAsync(former, device->compute);
        former = status == 0 ? (void *)r->x : NULL;
        wide = true;
    }
    if (status == 0) {
        launch_sum(device->compute, wide, r);
        status = launched();
    }
    if (former)
        (void)cudaFreeAsync(former, device->compute);
    return status;
}

int cuda_sum(struct tensor *out, const struct tensor *x, double k)
{
    if (out->numel == 0)
        return 0;
    struct tensor kept = *x, summed = *x; /* x's memory, seen without some dimensions */
    struct reduction r = {.x = x->data, .kept_n = out->numel, .summed_n = 1, .k = k};
    for (int d = 0; d < x->ndim; d++) {
        kept.shape[d] = out->shape[d];
        summed.shape[d] = out->shape[d] == 1 ? x->shape[d] : 1;
        r.summed_n *= summed.shape[d];
    }
    r.kept = loop_init(1, (const struct tensor *[]){&kept});
    r.summed = loop_init(1, (const struct tensor *[]){&summed});
    return reduce(out, &r, is_wide(x));
}

int cuda_mse(struct tensor *out, const struct tensor *output, const struct tensor *target)
{
    int64_t n = output->numel;
    struct reduction r = {.x = output->data,
                          .y = target->data,
                          .kept = line(1, 1),
                          .summed = line(n, 1),
                          .kept_n = 1,
                          .summed_n = n,
                          .k = 1 / (double)n};
    return reduce(out, &r, is_wide(output));
}
