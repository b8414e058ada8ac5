#include <limits.h>
#ifdef USE_ACCELERATE
#include <Accelerate/Accelerate.h>
#else
#include <cblas.h>
#endif

#include "runtime/cpu/cpu.h"
#include "runtime/error.h"

static CBLAS_TRANSPOSE order(struct layout layout)
{
    return layout.transposed ? CblasTrans : CblasNoTrans;
}

int cpu_gemm(struct tensor *out, const struct tensor *a, const struct tensor *b, double beta)
{
    int64_t n = out->shape[0], m = out->shape[1], k = a->shape[1];
    struct layout la = tensor_layout(a), lb = tensor_layout(b);
    if (n > INT_MAX || m > INT_MAX || k > INT_MAX || la.leading > INT_MAX || lb.leading > INT_MAX)
        return raise_error(ValueError, "a matrix is too large for this device's product");
    if (n == 0 || m == 0)
        return 0;
    if (k == 0)
        return beta == 0 ? cpu_fill(out, 0) : cpu_unary(UNARY_SCALE, out, out, beta);
    if (out->dtype == FLOAT32)
        cblas_sgemm(CblasRowMajor, order(la), order(lb), (int)n, (int)m, (int)k, 1,
                    (const float *)a->data, (int)la.leading, (const float *)b->data,
                    (int)lb.leading, (float)beta, (float *)out->data, (int)m);
    else
        cblas_dgemm(CblasRowMajor, order(la), order(lb), (int)n, (int)m, (int)k, 1,
                    (const double *)a->data, (int)la.leading, (const double *)b->data,
                    (int)lb.leading, beta, (double *)out->data, (int)m);
    return 0;
}
