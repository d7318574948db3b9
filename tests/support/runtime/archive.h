/* Reads .kpack archives, written from the description of the format and from nothing else, so that
 * it can judge a writer. */
#pragma once
#include "msgpack.h"
#pragma GCC visibility push(hidden) /* not symbols of the HIP runtime */

struct archive {
  unsigned char *bytes;
  uint64_t size;
  struct cursor toc; /* the whole table of contents, a map */
};

struct row {
  uint64_t ordinal, original_size;
};

/* Each returns NULL, or the fault. */
const char *archive_open(struct archive *archive, const char *path);
const char *archive_row(const struct archive *archive, const char *key, const char *target, struct row *row);
/* `*code` is to be freed by the caller. */
const char *archive_decode(const struct archive *archive, const struct row *row, unsigned char **code);
void archive_close(struct archive *archive);
#pragma GCC visibility pop
