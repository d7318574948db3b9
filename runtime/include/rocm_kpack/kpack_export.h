/* How the functions of librocm_kpack are exported. */
#ifndef ROCM_KPACK_KPACK_EXPORT_H
#define ROCM_KPACK_KPACK_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define KPACK_API __attribute__((visibility("default")))
#else
#define KPACK_API
#endif

#endif
