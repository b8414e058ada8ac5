#include <limits.h>
#ifdef USE_ACCELERATE
#include <Accelerate/Accelerate.h>
#else
#include <cblas.h>
#endif

#include "runtime/cpu/cpu.h"
#include "runtime/error.h"

/* How CBLAS is told about a matrix: the stride between rows, or between columns if transposed. */
struct layout {
    CBLAS_TRANSPOSE transpose;
    int64_t leading;
};

static struct layout layout_of(const struct tensor *x)
{
    bool rows = tensor_is_row_major(x);
    int outer = rows ? 0 : 1, inner = 1 - outer;
    return (struct layout){rows ? CblasNoTrans : CblasTrans,
                           x->shape[outer] > 1 ? x->strides[outer] : x->shape[inner]};
}

int cpu_gemm(struct tensor *out, const struct tensor *a, const struct tensor *b, double beta)
{
    int64_t n = out->shape[0], m = out->shape[1], k = a->shape[1];
    struct layout la = layout_of(a), lb = layout_of(b);
    if (n > INT_MAX || m > INT_MAX || k > INT_MAX || la.leading > INT_MAX || lb.leading > INT_MAX)
        return raise_error(ValueError, "a matrix is too large for this device's product");
    if (n == 0 || m == 0)
        return 0;
    if (k == 0)
        return beta == 0 ? cpu_fill(out, 0) : cpu_unary(UNARY_SCALE, out, out, beta);
    if (out->dtype == FLOAT32)
        cblas_sgemm(CblasRowMajor, la.transpose, lb.transpose, (int)n, (int)m, (int)k, 1,
                    (const float *)a->data, (int)la.leading, (const float *)b->data,
                    (int)lb.leading, (float)beta, (float *)out->data, (int)m);
    else
        cblas_dgemm(CblasRowMajor, la.transpose, lb.transpose, (int)n, (int)m, (int)k, 1,
                    (const double *)a->data, (int)la.leading, (const double *)b->data,
                    (int)lb.leading, beta, (double *)out->data, (int)m);
    return 0;
}
