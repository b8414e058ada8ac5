#ifndef RUNTIME_CPU_FUNCTIONS_H
#define RUNTIME_CPU_FUNCTIONS_H
/* functions.h - exp and erf in FLOAT32 without branches or calls, so that loops over them
 * vectorise. FLOAT64 takes the C library's. The polynomials are least-squares fits at Chebyshev
 * nodes. CUDA's kernels take the same functions. */
#include <math.h>
#include <stdint.h>

#include "runtime/cpu/simd.h"

#define SQRT_HALF 0.70710678118654752440
#define INV_SQRT_2PI 0.39894228040143267794

/* exp(x) for x <= 88, to 1 ulp; below -87, where results would be subnormal, exp(-87) */
KERNEL_BODY float exp_f32(float x)
{
    const float to_integer = 12582912.0f; /* 1.5 * 2^23: adding it rounds to nearest */
    x = x > -87.0f ? x : -87.0f;
    union {
        float value;
        uint32_t bits;
    } n = {x * 1.44269504f + to_integer}, power;
    float whole = n.value - to_integer;
    float r = x - whole * 0.693145752f - whole * 1.42860677e-06f; /* ln 2 in two parts */
    float p = 0.00139336504f;
    p = p * r + 0.00836318012f;
    p = p * r + 0.0416664649f;
    p = p * r + 0.16666577f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    power.value = p;
    power.bits += n.bits << 23; /* times 2^n */
    return power.value;
}

/* erf(x), to 1 ulp: x + x S(x²) near 0, else ±(1 - exp(t Q(t))), t = |x|; from t = 4 on it is ±1 */
KERNEL_BODY float erf_f32(float x)
{
    float t = fabsf(x), s = x * x;
    float small = 8.35468393e-05f;
    small = small * s - 0.000813956554f;
    small = small * s + 0.00520080976f;
    small = small * s - 0.0268593354f;
    small = small * s + 0.11283695f;
    small = small * s - 0.376126338f;
    small = small * s + 0.128379167f;
    small = small * x + x;
    float u = t < 4.0f ? t : 4.0f;
    float q = 9.72192839e-07f;
    q = q * u - 3.31130228e-05f;
    q = q * u + 0.000489700375f;
    q = q * u - 0.0042688651f;
    q = q * u + 0.0250626297f;
    q = q * u - 0.107758563f;
    q = q * u - 0.634212973f;
    q = q * u - 1.12888521f;
    float large = copysignf(1.0f - exp_f32(u * q), x);
    return t > 0.927734375f ? large : small;
}

/* gelu(x) = x Phi(x), with Phi the standard normal distribution function */
KERNEL_BODY float gelu_f32(float x)
{
    return 0.5f * x * (1.0f + erf_f32(x * (float)SQRT_HALF));
}

KERNEL_BODY double gelu_f64(double x)
{
    return 0.5 * x * (1 + erf(x * SQRT_HALF));
}

/* gelu'(x) = Phi(x) + x phi(x) */
KERNEL_BODY float gelu_slope_f32(float x)
{
    float density = (float)INV_SQRT_2PI * exp_f32(-0.5f * x * x);
    return 0.5f * (1.0f + erf_f32(x * (float)SQRT_HALF)) + x * density;
}

KERNEL_BODY double gelu_slope_f64(double x)
{
    return 0.5 * (1 + erf(x * SQRT_HALF)) + x * INV_SQRT_2PI * exp(-0.5 * x * x);
}

KERNEL_BODY float tanh_f32(float x)
{
    return tanhf(x);
}

KERNEL_BODY double tanh_f64(double x)
{
    return tanh(x);
}
#endif
