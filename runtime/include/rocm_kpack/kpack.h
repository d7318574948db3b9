/* librocm_kpack: finds and loads code objects in kernel archives (.kpack).
 *
 * A drop-in for AMD's library of the same soname. All functions may be called by several threads at once,
 * but for kpack_close and kpack_cache_destroy, after which the handle must not be used. No function
 * waits for a lock that a fork could leave locked. Outputs are written on success alone. Any bytes in an
 * archive give an error code; pointers must be what the comments say. A callback must return: an exception
 * that leaves it ends the process, and a longjmp out of it leaks what the call holds. It may call this
 * library.
 *
 * Environment, read once by kpack_cache_create (nobody may change the environment meanwhile):
 *   ROCM_KPACK_PATH         archives, separated by `:`, instead of those that binaries name
 *   ROCM_KPACK_PATH_PREFIX  archives that are asked before those that binaries name
 *   ROCM_KPACK_DISABLE      every load fails with 8   (on: not empty, and no `0` in front)
 *   ROCM_KPACK_DEBUG        each step is told on the standard error
 *   ROCM_KPACK_QUIET        missing targets are not told on the standard error (not in AMD's library)
 *
 * A privileged process (setuid, setgid, file capabilities: AT_SECURE is set) has none of these variables. Its
 * user may not be allowed to read its files: kpack_last_error tells no names, paths and numbers then, and no
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
/* Closes it. NULL is none. */
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
/* Releases a code object. NULL is none. */
KPACK_API void kpack_free_kernel(void *kernel_data);

/* Makes a cache of archives: 1, 7. */
KPACK_API kpack_error_t kpack_cache_create(kpack_cache_t *cache);
/* Closes it. Code objects that were handed out stay. NULL is none. */
KPACK_API void kpack_cache_destroy(kpack_cache_t cache);

/* Loads the code object of wrapper `co_index` for the first of the target IDs that an archive has it
 * for. `hipk_metadata` points to the marker of the binary, one MessagePack value, whose end is known
 * from the value alone; `binary_path` is the file it came from; NULL entries of `arch_list` are skipped.
 * 1, 8, 12, 13, 14, or the last of the errors of the archives that list a target: 5, 6, 7, 9.
 * Where no archive lists one, and the machine refused to look at a candidate or to read it (no descriptor
 * is left, the disk fails, a server does not answer), that is 9, and 7 without memory: 13 and 14 say that
 * archives are not there, or not for this user, or damaged, and a device is skipped for them. */
KPACK_API kpack_error_t kpack_load_code_object(kpack_cache_t cache, const void *hipk_metadata,
                                               const char *binary_path, uint32_t co_index,
                                               const char *const *arch_list, size_t arch_count,
                                               void **code_object_out,
                                               size_t *code_object_size_out);
/* Releases a code object. NULL is none. */
KPACK_API void kpack_free_code_object(void *code_object);

/* Hands each target of an archive's list to the callback: 1, or as kpack_open. */
KPACK_API kpack_error_t kpack_enumerate_architectures(const char *archive_path,
                                                      kpack_arch_callback_t callback,
                                                      void *user_data);

/* The path of the file that is mapped at an address, and the offset of the address in that file
 * (`offset_out` may be NULL): 1, also if the path does not fit, and 11. */
KPACK_API kpack_error_t kpack_discover_binary_path(const void *address, char *path_out,
                                                   size_t path_out_size, size_t *offset_out);

/* ---- Not in AMD's library: look it up by dlsym where both may be there. ---- */

/* Why the last call that failed in this thread failed: file, row and cause. Empty before. The text
 * stays until the next call that fails in this thread: a call that succeeds leaves it as it is. In a privileged
 * process it says only that the cause is hidden, and what to do. */
KPACK_API const char *kpack_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
