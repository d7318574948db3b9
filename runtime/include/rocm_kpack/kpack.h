/* librocm_kpack: finds and loads code objects in kernel archives (.kpack).
 *
 * A drop-in replacement for AMD's library of the same soname. All functions are thread-safe except
 * kpack_close and kpack_cache_destroy, after which the handle must not be used. No function waits for a
 * lock that a fork could leave locked. Outputs are written only on success. Invalid archives give an error
 * code; pointers must be as documented. A callback must return: an exception that leaves it ends the
 * process, and a longjmp out of it leaks the resources of the call. It may call this library.
 *
 * Environment, read once by kpack_cache_create (no thread may change the environment meanwhile):
 *   ROCM_KPACK_PATH         archives, separated by `:`, instead of those that binaries name
 *   ROCM_KPACK_PATH_PREFIX  archives that are searched before those that binaries name
 *   ROCM_KPACK_DISABLE      every load fails with 8   (on: not empty, and not beginning with `0`)
 *   ROCM_KPACK_DEBUG        each step is reported on the standard error
 *   ROCM_KPACK_QUIET        missing targets are not reported on the standard error (not in AMD's library)
 *
 * A privileged process (setuid, setgid, file capabilities: AT_SECURE is set) ignores these variables. Because its
 * user may not be allowed to read its files, kpack_last_error then gives no names, paths and numbers, and no
 * line is written to the standard error.
 *
 * Limits: a table has 64 MiB at most, an archive 1,048,576 code objects, a code object 4 GiB.
 */
#ifndef ROCM_KPACK_KPACK_H
#define ROCM_KPACK_KPACK_H

#include "kpack_export.h"
#include "kpack_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens an archive: 1, 2, 3, 4, 7, 9, 10. A directory is 3; an empty file is 9. */
KPACK_API kpack_error_t kpack_open(const char *path, kpack_archive_t *archive);
/* Closes it. NULL is ignored. */
KPACK_API void kpack_close(kpack_archive_t archive);

/* The targets that the archive answers for, in the order of the file. Texts live as long as the
 * archive. 1 for an index that is too high. */
KPACK_API kpack_error_t kpack_get_architecture_count(kpack_archive_t archive, size_t *count);
KPACK_API kpack_error_t kpack_get_architecture(kpack_archive_t archive, size_t index,
                                               const char **arch);
/* The keys of its rows, such as `lib/librocblas.so.4#0`, in the order of their bytes. */
KPACK_API kpack_error_t kpack_get_binary_count(kpack_archive_t archive, size_t *count);
KPACK_API kpack_error_t kpack_get_binary(kpack_archive_t archive, size_t index,
                                         const char **binary);

/* Loads the code object of a row: 1, 5, 6, 7, 9. The memory is the caller's, and outlives the archive. */
KPACK_API kpack_error_t kpack_get_kernel(kpack_archive_t archive, const char *binary_name,
                                         const char *arch, void **kernel_data, size_t *kernel_size);
/* Releases a code object. NULL is ignored. */
KPACK_API void kpack_free_kernel(void *kernel_data);

/* Makes a cache of archives: 1, 7. */
KPACK_API kpack_error_t kpack_cache_create(kpack_cache_t *cache);
/* Closes it. Returned code objects stay valid. NULL is ignored. */
KPACK_API void kpack_cache_destroy(kpack_cache_t cache);

/* Loads the code object of wrapper `co_index` for the first of the target IDs that an archive has it
 * for. `hipk_metadata` points to the marker of the binary, one MessagePack value, whose end is known
 * from the value alone; `binary_path` is the file it came from; NULL entries of `arch_list` are skipped.
 * 1, 8, 12, 13, 14, or the last of the errors of the archives that list a target: 5, 6, 7, 9.
 * If no archive lists one, and the system failed to open or read a candidate (no descriptors left, a
 * failing disk, a server that does not respond): 9, or 7 without memory. 13 and 14 mean that archives are
 * missing, unreadable for this user, or damaged, and make the HIP runtime skip the device. */
KPACK_API kpack_error_t kpack_load_code_object(kpack_cache_t cache, const void *hipk_metadata,
                                               const char *binary_path, uint32_t co_index,
                                               const char *const *arch_list, size_t arch_count,
                                               void **code_object_out,
                                               size_t *code_object_size_out);
/* Releases a code object. NULL is ignored. */
KPACK_API void kpack_free_code_object(void *code_object);

/* Hands each target of an archive's list to the callback: 1, or as kpack_open. */
KPACK_API kpack_error_t kpack_enumerate_architectures(const char *archive_path,
                                                      kpack_arch_callback_t callback,
                                                      void *user_data);

/* The path of the file that is mapped at an address, and the offset of the address in that file
 * (`offset_out` may be NULL): 1, also if the path does not fit, and 11. */
KPACK_API kpack_error_t kpack_discover_binary_path(const void *address, char *path_out,
                                                   size_t path_out_size, size_t *offset_out);

/* ---- Not in AMD's library: look it up by dlsym if either library may be loaded. ---- */

/* The reason of the last failed call in this thread: file, row and cause. Empty before the first one. The
 * text stays until the next failed call in this thread; successful calls keep it. In a privileged process it
 * only states that the cause is hidden, and what to do. */
KPACK_API const char *kpack_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
