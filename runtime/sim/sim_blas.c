/* sim_blas.c - cuBLAS by CBLAS. */
#include <stdlib.h>
#ifdef USE_ACCELERATE
#include <Accelerate/Accelerate.h>
#else
#include <cblas.h>
#endif

#include "cublas_v2.h"
#include "runtime/sim/sim_internal.h"
#include "runtime/sim/sim_kernel.h"
#include "runtime/sim/sim_model.h"

struct cublasContext {
    int device;
    cudaStream_t stream;
};

static const struct {
    cublasStatus_t status;
    const char *name, *text;
} statuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "the operation completed"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the GPU program failed to execute"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the functionality is not supported"},
};
enum { STATUSES = sizeof statuses / sizeof statuses[0] };

const char *cublasGetStatusName(cublasStatus_t status)
{
    for (int i = 0; i < STATUSES; i++)
        if (statuses[i].status == status)
            return statuses[i].name;
    return "unknown status";
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    for (int i = 0; i < STATUSES; i++)
        if (statuses[i].status == status)
            return statuses[i].text;
    return "unknown status";
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    if (sim_entered(sim_host_costs.call))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    if (!*handle)
        return CUBLAS_STATUS_ALLOC_FAILED;
    (*handle)->device = sim_current_device();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    if (sim_stream_check(stream, "cublasSetStream"))
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

/* The CPU has no TF32: whatever the mode, products are exact in their type. */
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    (void)handle;
    return mode == CUBLAS_DEFAULT_MATH || mode == CUBLAS_PEDANTIC_MATH ||
                   mode == CUBLAS_TF32_TENSOR_OP_MATH
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* ---- products ---- */

/* A column-major matrix as the call gives it. */
struct matrix {
    const void *address;
    int rows, columns, leading; /* as stored */
    void *view;
};

static struct matrix matrix_of(const void *address, cublasOperation_t op, int rows, int columns,
                               int leading)
{
    return op == CUBLAS_OP_N ? (struct matrix){address, rows, columns, leading, NULL}
                             : (struct matrix){address, columns, rows, leading, NULL};
}

static bool matrix_fits(const struct matrix *x)
{
    return x->rows >= 0 && x->columns >= 0 && x->leading >= (x->rows > 1 ? x->rows : 1);
}

/* matrix_find - where the CPU finds it. errors: false, and the device is broken */
static bool matrix_find(struct matrix *x, int device, size_t element)
{
    char text[160];
    if (x->rows == 0 || x->columns == 0)
        return true;
    size_t bytes = ((size_t)(x->columns - 1) * (size_t)x->leading + (size_t)x->rows) * element;
    enum sim_range range = sim_find(device, x->address, bytes, &x->view);
    if (range <= SIM_PINNED_MEMORY)
        return true;
    sim_fail_for_good("cuBLAS on cuda:%d was given a matrix of %zu bytes in %s", device, bytes,
                      x->address ? sim_describe_address(x->address, text, sizeof text) : "NULL");
    return false;
}

struct product {
    int m, n, k;
    size_t element;
    struct matrix a, b, c;
};

/* product_begin - check everything and find the matrices. returns: whether to compute */
static bool product_begin(cublasHandle_t handle, struct product *p, cublasStatus_t *status)
{
    sim_operation_begin();
    *status = CUBLAS_STATUS_EXECUTION_FAILED;
    if (sim_entered(sim_host_costs.launch))
        return false;
    *status = CUBLAS_STATUS_INVALID_VALUE;
    if (p->k < 0 || !matrix_fits(&p->a) || !matrix_fits(&p->b) || !matrix_fits(&p->c) ||
        sim_stream_check(handle->stream, "a cuBLAS product"))
        return false;
    if (handle->stream->device != handle->device || handle->device != sim_current_device()) {
        sim_fail(
            cudaErrorInvalidResourceHandle,
            "a cuBLAS handle of device %d with a stream of device %d while device %d is current",
            handle->device, handle->stream->device, sim_current_device());
        *status = CUBLAS_STATUS_EXECUTION_FAILED;
        return false;
    }
    *status = CUBLAS_STATUS_SUCCESS;
    if (p->m == 0 || p->n == 0)
        return false;
    return matrix_find(&p->a, handle->device, p->element) &&
           matrix_find(&p->b, handle->device, p->element) &&
           matrix_find(&p->c, handle->device, p->element);
}

static void product_end(cublasHandle_t handle, const struct product *p)
{
    double seconds = sim_gemm_seconds(p->m, p->n, p->k, p->element);
    sim_operation_end(handle->stream, sim_stream_work(handle->stream, seconds));
}

static CBLAS_TRANSPOSE transpose_of(cublasOperation_t op)
{
    return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}

/* alpha and beta are exact as doubles, whatever the elements are */
static cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, double alpha,
                           const void *a, int lda, const void *b, int ldb, double beta, void *c,
                           int ldc, size_t element)
{
    cublasStatus_t status;
    struct product p = {.m = m, .n = n, .k = k, .element = element};
    p.a = matrix_of(a, transa, m, k, lda);
    p.b = matrix_of(b, transb, k, n, ldb);
    p.c = matrix_of(c, CUBLAS_OP_N, m, n, ldc);
    if (!product_begin(handle, &p, &status))
        return status;
    if (element == sizeof(float))
        cblas_sgemm(CblasColMajor, transpose_of(transa), transpose_of(transb), m, n, k,
                    (float)alpha, p.a.view, lda, p.b.view, ldb, (float)beta, p.c.view, ldc);
    else
        cblas_dgemm(CblasColMajor, transpose_of(transa), transpose_of(transb), m, n, k, alpha,
                    p.a.view, lda, p.b.view, ldb, beta, p.c.view, ldc);
    product_end(handle, &p);
    return status;
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const float *alpha,
                           const float *a, int lda, const float *b, int ldb, const float *beta,
                           float *c, int ldc)
{
    return gemm(handle, transa, transb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc, sizeof *a);
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const double *alpha,
                           const double *a, int lda, const double *b, int ldb, const double *beta,
                           double *c, int ldc)
{
    return gemm(handle, transa, transb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc, sizeof *a);
}
