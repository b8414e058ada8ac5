#ifdef USE_ACCELERATE
#include <Accelerate/Accelerate.h>
#else
#include <cblas.h>
#endif

#include "runtime/cpu/cpu.h"

static CBLAS_TRANSPOSE order(struct layout layout)
{
    return layout.transposed ? CblasTrans : CblasNoTrans;
}

int cpu_gemm(struct tensor *out, const struct tensor *a, const struct tensor *b, double beta)
{
    const int n = (int)out->shape[0], m = (int)out->shape[1], k = (int)a->shape[1];
    const struct layout la = tensor_layout(a), lb = tensor_layout(b);
    if (out->dtype == FLOAT32)
        cblas_sgemm(CblasRowMajor, order(la), order(lb), n, m, k, 1, (const float *)a->data,
                    (int)la.leading, (const float *)b->data, (int)lb.leading, (float)beta,
                    (float *)out->data, m);
    else
        cblas_dgemm(CblasRowMajor, order(la), order(lb), n, m, k, 1, (const double *)a->data,
                    (int)la.leading, (const double *)b->data, (int)lb.leading, beta,
                    (double *)out->data, m);
    return 0;
}
