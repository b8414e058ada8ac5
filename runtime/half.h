#ifndef RUNTIME_HALF_H
#define RUNTIME_HALF_H
/* half.h - IEEE 754 binary16 as its bits, for the CPU and for CUDA's kernels alike. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define HALF_FUNCTION static inline __device__
#else
#define HALF_FUNCTION static inline
#endif

/* half_from_double - rounded to the nearest half, to even where two are as near */
HALF_FUNCTION uint16_t half_from_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    uint64_t magnitude = bits & ~(1ull << 63);
    if (magnitude > 0x7ffull << 52)
        return sign | 0x7e00; /* not a number */
    if (fabs(value) >= 65520)
        return sign | 0x7c00;  /* rounds to infinity */
    if (fabs(value) < 0x1p-14) /* a multiple of the smallest half, 2^-24 */
        return sign | (uint16_t)rint(fabs(value) * 0x1p24);
    magnitude -= (uint64_t)(1023 - 15) << 52;
    magnitude += (1ull << 41) - 1 + (magnitude >> 42 & 1);
    return sign | (uint16_t)(magnitude >> 42);
}

HALF_FUNCTION float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31;
    uint32_t mantissa = half & 0x3ff;
    if (exponent == 0)
        return (sign ? -1.0f : 1.0f) * (float)mantissa * 0x1p-24f;
    uint32_t biased = exponent == 31 ? 255 : exponent + 127 - 15;
    uint32_t bits = sign | biased << 23 | mantissa << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
#endif
