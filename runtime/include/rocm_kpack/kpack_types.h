/* Types of librocm_kpack. Numbers and names are those of AMD's library. */
#ifndef ROCM_KPACK_KPACK_TYPES_H
#define ROCM_KPACK_KPACK_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The HIP runtime skips a device on 13 and 14. With every other error it fails all devices. */
typedef enum {
  KPACK_SUCCESS = 0,
  KPACK_ERROR_INVALID_ARGUMENT = 1,      /* a pointer is NULL, or an index is too high */
  KPACK_ERROR_FILE_NOT_FOUND = 2,        /* there is no file of that name */
  KPACK_ERROR_INVALID_FORMAT = 3,        /* no archive: its header, or the table of its frames */
  KPACK_ERROR_UNSUPPORTED_VERSION = 4,   /* an archive of a later version */
  KPACK_ERROR_KERNEL_NOT_FOUND = 5,      /* no such row, or its code object is not there */
  KPACK_ERROR_DECOMPRESSION_FAILED = 6,  /* a frame is damaged, or not as long as its row says */
  KPACK_ERROR_OUT_OF_MEMORY = 7,
  KPACK_ERROR_NOT_IMPLEMENTED = 8,       /* ROCM_KPACK_DISABLE is set */
  KPACK_ERROR_IO_ERROR = 9,              /* the file cannot be opened or read, ends early, or was changed */
  KPACK_ERROR_MSGPACK_PARSE_FAILED = 10, /* the table is not a MessagePack map of the right types */
  KPACK_ERROR_PATH_DISCOVERY_FAILED = 11, /* no file is mapped at the address */
  KPACK_ERROR_INVALID_METADATA = 12,     /* the marker of the binary */
  KPACK_ERROR_ARCHIVE_NOT_FOUND = 13,    /* none of the archives is there and whole */
  KPACK_ERROR_ARCH_NOT_FOUND = 14        /* none of the archives answers for the device */
} kpack_error_t;

/* How code objects are stored in an archive. */
typedef enum {
  KPACK_COMPRESSION_NOOP = 0,
  KPACK_COMPRESSION_ZSTD_PER_KERNEL = 1
} kpack_compression_t;

/* An open archive. */
typedef struct kpack_archive *kpack_archive_t;
/* Archives that stay open, with what was learnt of binaries. */
typedef struct kpack_cache *kpack_cache_t;

/* Takes a target; false ends the enumeration. The text is gone afterwards. */
typedef bool (*kpack_arch_callback_t)(const char *arch, void *user_data);

#ifdef __cplusplus
}
#endif

#endif
