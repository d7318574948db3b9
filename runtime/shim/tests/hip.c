/* A stand-in for a HIP runtime. Each line that it prints begins with NAME:
 *
 *   register NUMBER bundle HOST TARGET=SIZE:DIGEST...       a wrapper outside of all loaded files
 *   register NUMBER passed FILE MAGIC VERSION INDEX ...     a wrapper of FILE; with the entries of an ordinary one
 *   function NUMBER, unregister NUMBER                      the number of the handle
 *   exit COUNT bundles                                      when the library is unloaded
 *
 * MALFORMED or CHANGED in a line is a fault. With FORWARD it prints the same, and passes all calls on. With PLACES
 * a bundle ends with " in COUNT places", in which its code objects are. Nothing here takes a lock, so that a child
 * of a fork can use it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HIPF 0x48495046
#define TRIPLE "hipv4-amdgcn-amd-amdhsa--"
#define MOST_ENTRIES 64
#define MOST_SEARCHED 4096 /* bytes in which HIP runtimes look for the table */
#define MOST_RECORDS (1 << 16)
#ifndef PLACES
#define PLACES 0
#endif

struct wrapper {
  uint32_t magic, version;
  const void *data;
  uint64_t index;
};

/* A registered wrapper. Its address is the handle. */
struct record {
  const struct wrapper *wrapper;
  uint64_t digest;
};
static struct record records[MOST_RECORDS];
static atomic_uint count;

struct text {
  char bytes[MOST_ENTRIES * 160];
};

static uint64_t digest(const void *data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t at = 0; at < size; at++) hash = (hash ^ ((const unsigned char *)data)[at]) * 0x100000001b3u;
  return hash;
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
  char line[sizeof(struct text) + 200];
  va_list list;
  va_start(list, format);
  int size = vsnprintf(line, sizeof line, format, list);
  va_end(list);
  if (write(1, line, size) != size) abort();
}

static int by_text(const void *one, const void *other) { return strcmp(one, other); }

/* Writes the entries of a bundle, sorted behind the host's, or what is wrong with it. */
static void describe(const unsigned char *bundle, struct text *text) {
  char words[MOST_ENTRIES][160];
  uint64_t from[MOST_ENTRIES], to[MOST_ENTRIES], entries, at = 32, places = 0;
  const char *fault = 0;
  memcpy(&entries, bundle + 24, sizeof entries);
  if (memcmp(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24) || !entries || entries > MOST_ENTRIES) {
    strcpy(text->bytes, " MALFORMED head");
    return;
  }
  for (uint64_t entry = 0; entry < entries; entry++) {
    uint64_t field[3]; /* offset, size, length of the ID */
    memcpy(field, bundle + at, sizeof field);
    const char *id = (const char *)bundle + at + sizeof field;
    if (field[2] > 100) {
      strcpy(text->bytes, " MALFORMED length of an ID");
      return;
    }
    at += sizeof field + field[2];
    from[entry] = field[0], to[entry] = field[0] + field[1];
    int is_ours = field[2] > strlen(TRIPLE) && !memcmp(id, TRIPLE, strlen(TRIPLE));
    int skipped = is_ours ? strlen(TRIPLE) : 0;
    int used = sprintf(words[entry], " %.*s", (int)field[2] - skipped, id + skipped);
    if (!entry && (field[1] || strncmp(words[0], " host-", 6))) fault = " MALFORMED host";
    if (!entry) continue;
    uint64_t hash = digest(bundle + field[0], field[1]);
    sprintf(words[entry] + used, "=%lu:%lx", (unsigned long)field[1], (unsigned long)hash);
    if ((uintptr_t)(bundle + field[0]) % 16) fault = " MALFORMED alignment";
    int is_new = 1;
    for (uint64_t other = 1; other < entry; other++) {
      int is_shared = from[entry] == from[other] && to[entry] == to[other];
      if (!is_shared && from[entry] < to[other] && from[other] < to[entry]) fault = " MALFORMED overlap";
      if (is_shared) is_new = 0;
    }
    places += is_new;
  }
  if (at > MOST_SEARCHED) fault = " MALFORMED length of the table";
  for (uint64_t entry = 1; entry < entries; entry++)
    if (from[entry] < at) fault = " MALFORMED offset";
  qsort(words + 1, entries - 1, sizeof *words, by_text);
  char *end = text->bytes;
  for (uint64_t entry = 0; entry < entries; entry++) end = stpcpy(end, words[entry]);
  if (PLACES) end += sprintf(end, " in %lu places", (unsigned long)places);
  if (fault) strcpy(end, fault);
}

/* Describes a wrapper; tells whether it lies in a file. */
static int examine(const struct wrapper *wrapper, struct text *text) {
  Dl_info info;
  text->bytes[0] = 0;
  if (wrapper->magic == HIPF) describe(wrapper->data, text);
  if (wrapper->magic != HIPF || wrapper->version != 1) strcat(text->bytes, " no ordinary wrapper");
  return dladdr(wrapper, &info) != 0;
}

#ifdef FORWARD
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#endif

void **__hipRegisterFatBinary(const struct wrapper *wrapper) {
  struct text text;
  Dl_info info;
  unsigned number = atomic_fetch_add(&count, 1);
  struct record *record = &records[number % MOST_RECORDS];
  if (examine(wrapper, &text)) {
    dladdr(wrapper, &info);
    const char *slash = strrchr(info.dli_fname, '/');
    say(NAME " register %u passed %s %08x %u %lx%s\n", number, slash ? slash + 1 : info.dli_fname, wrapper->magic,
        wrapper->version, (unsigned long)wrapper->index, wrapper->magic == HIPF ? text.bytes : "");
  } else {
    say(NAME " register %u bundle%s\n", number, text.bytes);
    record->wrapper = wrapper;
    record->digest = digest(text.bytes, strlen(text.bytes));
  }
#ifdef FORWARD
  return NEXT(__hipRegisterFatBinary)(wrapper);
#endif
  return (void **)record;
}

/* The number of a handle, which no other function made. */
static unsigned number_of(void **handle) {
  struct record *record = (struct record *)handle;
  return record >= records && record < records + MOST_RECORDS ? record - records : 999999;
}

static int is_unchanged(const struct record *record) {
  struct text text;
  if (!record->wrapper) return 1;
  examine(record->wrapper, &text);
  return record->digest == digest(text.bytes, strlen(text.bytes));
}

void __hipUnregisterFatBinary(void **handle) {
#ifdef FORWARD
  say(NAME " unregister\n");
  return NEXT(__hipUnregisterFatBinary)(handle);
#endif
  say(NAME " unregister %u\n", number_of(handle));
}

void __hipRegisterFunction(void **handle, const void *function, const char *name) {
#ifdef FORWARD
  say(NAME " function\n");
  return NEXT(__hipRegisterFunction)(handle, function, name);
#endif
  say(NAME " function %u\n", number_of(handle));
}

__attribute__((destructor)) static void end(void) {
  unsigned bundles = 0, changed = 0;
  for (unsigned at = 0; at < MOST_RECORDS && at < count; at++) {
    bundles += records[at].wrapper != 0;
    changed += !is_unchanged(&records[at]);
  }
  if (changed) say(NAME " exit %u bundles, %u CHANGED\n", bundles, changed);
  else say(NAME " exit %u bundles\n", bundles);
}
