#ifndef RUNTIME_BUILT_WITH_H
#define RUNTIME_BUILT_WITH_H
/* built_with.h - which of gcc's or clang's sanitizers this program is built with: 1, else 0. */
#if defined(__SANITIZE_ADDRESS__)
#define BUILT_WITH_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define BUILT_WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BUILT_WITH_ASAN 1
#elif __has_feature(thread_sanitizer)
#define BUILT_WITH_TSAN 1
#endif
#endif

#ifndef BUILT_WITH_ASAN
#define BUILT_WITH_ASAN 0
#endif
#ifndef BUILT_WITH_TSAN
#define BUILT_WITH_TSAN 0
#endif
#endif
