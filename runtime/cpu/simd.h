#ifndef RUNTIME_CPU_SIMD_H
#define RUNTIME_CPU_SIMD_H
/* simd.h - one loop, compiled for several instruction sets, chosen when it is called.
 *
 *     KERNEL_BODY body(...) { ... }     the loop, inlined into each version
 *     SIMD_DISPATCH(...)                the versions (AVX-512, AVX2, plain) and the one that picks
 *
 * (target_clones would do the choosing, but cannot name AVX2 and FMA together, and its resolvers
 * conflict with sanitizers.) */

#if defined(__x86_64__)
#define SIMD_LEVELS 3
#define SIMD_AVX2 __attribute__((target("avx2,fma")))
#define SIMD_AVX512 __attribute__((target("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")))
#else
#define SIMD_LEVELS 1
#endif

#ifdef __CUDACC__
#define KERNEL_BODY static __forceinline__ __device__
#else
#define KERNEL_BODY static inline __attribute__((always_inline))
#endif

/* Tell the vectoriser that iterations are independent even where out is the same memory as an
 * input. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* loops with calls stay scalar: so be it */
#define INDEPENDENT_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT_LOOP _Pragma("GCC ivdep")
#endif

/* SIMD_DISPATCH - define `result name parameters` as name##_body compiled per level */
#if SIMD_LEVELS == 3
#define SIMD_DISPATCH(result, name, parameters, arguments)                                         \
    SIMD_AVX512 static result name##_avx512 parameters                                             \
    {                                                                                              \
        return name##_body arguments;                                                              \
    }                                                                                              \
    SIMD_AVX2 static result name##_avx2 parameters                                                 \
    {                                                                                              \
        return name##_body arguments;                                                              \
    }                                                                                              \
    static result name parameters                                                                  \
    {                                                                                              \
        if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&            \
            __builtin_cpu_supports("avx512bw"))                                                    \
            return name##_avx512 arguments;                                                        \
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                       \
            return name##_avx2 arguments;                                                          \
        return name##_body arguments;                                                              \
    }
#else
#define SIMD_DISPATCH(result, name, parameters, arguments)                                         \
    static result name parameters                                                                  \
    {                                                                                              \
        return name##_body arguments;                                                              \
    }
#endif
#endif
