#include "runtime/cuda/cuda.h"

/* With the device's lock held. FLOAT32 is computed in FLOAT32: TF32 must be asked for, and is not.
 */
static int make_handle(struct cuda_device *device)
{
    if (device->cublas)
        return 0;
    cublasHandle_t handle;
    if (CUBLAS_TRY(cublasCreate(&handle)) < 0)
        return -1;
    if (CUBLAS_TRY(cublasSetStream(handle, device->compute)) < 0 ||
        CUBLAS_TRY(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH)) < 0) {
        cublasDestroy(handle);
        return -1;
    }
    device->cublas = handle;
    return 0;
}

static cublasOperation_t order(struct layout layout)
{
    return layout.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/* cuBLAS counts by columns. A row-major matrix read so is its transpose, and
 * (a b)ᵀ = bᵀ aᵀ: the factors change places, and nothing else. */
static int multiply(struct cuda_device *device, struct tensor *out, const struct tensor *a,
                    const struct tensor *b, double beta)
{
    const struct layout la = tensor_layout(a), lb = tensor_layout(b);
    const int n = (int)out->shape[0], m = (int)out->shape[1], k = (int)a->shape[1];
    const float one_f32 = 1, beta_f32 = (float)beta;
    const double one_f64 = 1;
    if (out->dtype == FLOAT32)
        return CUBLAS_TRY(cublasSgemm(device->cublas, order(lb), order(la), m, n, k, &one_f32,
                                      (const float *)b->data, (int)lb.leading,
                                      (const float *)a->data, (int)la.leading, &beta_f32,
                                      (float *)out->data, m));
    return CUBLAS_TRY(cublasDgemm(device->cublas, order(lb), order(la), m, n, k, &one_f64,
                                  (const double *)b->data, (int)lb.leading, (const double *)a->data,
                                  (int)la.leading, &beta, (double *)out->data, m));
}

int cuda_gemm(struct tensor *out, const struct tensor *a, const struct tensor *b, double beta)
{
    struct cuda_device *device = order_write(out);
    if (!device)
        return -1;
    pthread_mutex_lock(&device->lock);
    int status = make_handle(device);
    if (status == 0)
        status = multiply(device, out, a, b, beta);
    pthread_mutex_unlock(&device->lock);
    return status;
}
