#define _GNU_SOURCE
#include "archive.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t little_endian(const unsigned char *at, unsigned bytes) {
  uint64_t value = 0;
  while (bytes--)
    value = value << 8 | at[bytes];
  return value;
}

static const char *read_whole(struct archive *archive, FILE *file) {
  if (fseek(file, 0, SEEK_END) != 0) return "cannot be read";
  long size = ftell(file);
  rewind(file);
  if (size < 64) return "is shorter than its header";
  archive->size = (uint64_t)size;
  archive->bytes = malloc(archive->size);
  if (!archive->bytes || fread(archive->bytes, 1, archive->size, file) != archive->size) return "cannot be read";
  return NULL;
}

static const char *check_header(struct archive *archive) {
  const unsigned char *bytes = archive->bytes;
  if (memcmp(bytes, "KPAK", 4) != 0) return "has no KPAK magic";
  if (little_endian(bytes + 4, 4) != 1) return "has an unknown version";
  uint64_t toc = little_endian(bytes + 8, 8);
  if (toc < 64 || toc >= archive->size) return "has its table of contents outside the file";
  archive->toc = (struct cursor){bytes + toc, bytes + archive->size, 0};
  struct cursor whole = archive->toc;
  skip(&whole, MAXIMUM_DEPTH);
  if (whole.bad || whole.at != whole.end) return "has a malformed table of contents";
  int bad = 0;
  if (number_member(archive->toc, "format_version", &bad) != 1 || bad) return "has an unknown format_version";
  return NULL;
}

const char *archive_open(struct archive *archive, const char *path) {
  memset(archive, 0, sizeof *archive);
  FILE *file = fopen(path, "rb");
  if (!file) return "does not exist";
  const char *fault = read_whole(archive, file);
  fclose(file);
  if (!fault) fault = check_header(archive);
  if (fault) archive_close(archive);
  return fault;
}

void archive_close(struct archive *archive) {
  free(archive->bytes);
  archive->bytes = NULL;
}

const char *archive_row(const struct archive *archive, const char *key, const char *target, struct row *row) {
  struct cursor wrapper = member(member(archive->toc, "toc"), key);
  if (wrapper.bad) return "no such key in the table of contents";
  struct cursor entry = member(wrapper, target);
  if (entry.bad) return "no row for the target";
  int bad = 0;
  struct cursor type = member(entry, "type");
  if (!equals(text_of(&type), "hsaco")) return "the row's type is not hsaco";
  row->ordinal = number_member(entry, "ordinal", &bad);
  row->original_size = number_member(entry, "original_size", &bad);
  return bad ? "the row has no ordinal or no original_size" : NULL;
}

static const char *inflate(const unsigned char *frame, uint64_t size, uint64_t original, unsigned char *code) {
  void *zstd = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!zstd) return "libzstd.so.1 is missing";
  size_t (*decompress)(void *, size_t, const void *, size_t) =
      (size_t(*)(void *, size_t, const void *, size_t))dlsym(zstd, "ZSTD_decompress");
  unsigned long long (*content_size)(const void *, size_t) =
      (unsigned long long (*)(const void *, size_t))dlsym(zstd, "ZSTD_getFrameContentSize");
  if (!decompress || !content_size) return "libzstd.so.1 lacks its functions";
  if (content_size(frame, size) != original) return "the frame's content size is not original_size";
  if (decompress(code, original, frame, size) != original) return "the frame does not decompress";
  return NULL;
}

/* Blob of `zstd-per-kernel`: u32 count, then per ordinal u32 frame size and the frame. */
static const char *decode_frame(const struct archive *archive, const struct row *row, unsigned char *code) {
  int bad = 0;
  uint64_t offset = number_member(archive->toc, "zstd_offset", &bad);
  uint64_t size = number_member(archive->toc, "zstd_size", &bad);
  if (bad || offset > archive->size || size > archive->size - offset || size < 4) return "the blob is outside the file";
  const unsigned char *at = archive->bytes + offset, *end = at + size;
  if (row->ordinal >= little_endian(at, 4)) return "the ordinal is past the last frame";
  at += 4;
  for (uint64_t ordinal = 0;; ordinal++) {
    if (end - at < 4) return "the blob ends inside a frame size";
    uint64_t frame = little_endian(at, 4);
    at += 4;
    if ((uint64_t)(end - at) < frame) return "the blob ends inside a frame";
    if (ordinal == row->ordinal) return inflate(at, frame, row->original_size, code);
    at += frame;
  }
}

static const char *copy_blob(const struct archive *archive, const struct row *row, unsigned char *code) {
  struct cursor blobs = member(archive->toc, "blobs");
  uint64_t count = count_of(&blobs, ARRAY);
  if (blobs.bad || row->ordinal >= count) return "the ordinal is past the last blob";
  for (uint64_t i = 0; i < row->ordinal; i++)
    skip(&blobs, MAXIMUM_DEPTH);
  int bad = 0;
  uint64_t offset = number_member(blobs, "offset", &bad), size = number_member(blobs, "size", &bad);
  if (bad || offset > archive->size || size > archive->size - offset) return "the blob is outside the file";
  if (size != row->original_size) return "the blob's size is not original_size";
  memcpy(code, archive->bytes + offset, size);
  return NULL;
}

const char *archive_decode(const struct archive *archive, const struct row *row, unsigned char **code) {
  struct cursor scheme = member(archive->toc, "compression_scheme");
  struct text name = text_of(&scheme);
  *code = malloc(row->original_size ? row->original_size : 1);
  if (!*code) return "no memory";
  const char *fault = "unknown compression_scheme";
  if (equals(name, "zstd-per-kernel")) fault = decode_frame(archive, row, *code);
  else if (equals(name, "none")) fault = copy_blob(archive, row, *code);
  if (fault) {
    free(*code);
    *code = NULL;
  }
  return fault;
}
