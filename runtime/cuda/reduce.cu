/* reduce.cu - sums. Whatever the dtype they are kept in double precision, and their order depends
 * on the shape alone: thread (part, place) adds every parts-th term of a place one after the other,
 * and the parts are summed by the next launch in the same way. Neighbours in a warp read
 * neighbouring terms or places, so memory is read in whole lines. */
#include "runtime/cuda/kernels.h"
#include "runtime/cuda/place.h"

KERNEL_FUNCTION float square_f32(float x)
{
    return x * x;
}

KERNEL_FUNCTION double square_f64(double x)
{
    return x * x;
}

#define SUM(name, type, term)                                                                      \
    KERNEL(name, struct reduction r)                                                               \
    {                                                                                              \
        const type *x = (const type *)r.x;                                                         \
        EACH (thread, (r.parts * r.kept_n)) {                                                      \
            int64_t part = thread / r.kept_n, place = thread - part * r.kept_n;                    \
            int64_t start = place_of(&r.kept, place).offset[0];                                    \
            double sum = 0;                                                                        \
            for (int64_t j = part; j < r.summed_n; j += r.parts) {                                 \
                int64_t i = start + place_of(&r.summed, j).offset[0];                              \
                sum += (double)(term);                                                             \
            }                                                                                      \
            if (r.out_wide)                                                                        \
                ((double *)r.out)[thread] = r.k * sum;                                             \
            else                                                                                   \
                ((float *)r.out)[thread] = (float)(r.k * sum);                                     \
        }                                                                                          \
    }

SUM(sum_f32, float, x[i])
SUM(sum_f64, double, x[i])
SUM(squares_f32, float, square_f32(x[i] - ((const float *)r.y)[i]))
SUM(squares_f64, double, square_f64(x[i] - ((const double *)r.y)[i]))

#ifndef __CUDACC_RTC__

typedef void sum_kernel(struct reduction r);

void launch_sum(cudaStream_t stream, bool wide, const struct reduction *reduction)
{
    struct reduction r = *reduction;
    sum_kernel *kernel = r.y ? wide ? squares_f64 : squares_f32 : wide ? sum_f64 : sum_f32;
    double read = (double)r.kept_n * (double)r.summed_n * (wide ? 8 : 4) * (r.y ? 2 : 1);
    double written = (double)r.kept_n * (double)r.parts * (r.out_wide ? 8 : 4);
    LAUNCH_BEGIN(stream, r.y ? "squares" : "sum");
    DEVICE_POINTER(stream, r.x);
    DEVICE_POINTER(stream, r.y);
    DEVICE_POINTER(stream, r.out);
    LAUNCH(stream, r.parts * r.kept_n, kernel, r);
    LAUNCH_END(stream, read + written);
}

#endif
