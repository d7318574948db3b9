/* Preloaded in front of a HIP runtime. Passes each call on to the runtime, and writes what is registered to the file
 * descriptor RECORDER:
 *
 *   registered<tab>MAGIC<tab>ADDRESS<tab>COUNT<tab>PATH
 *   unregistered
 *
 * PATH and ADDRESS are the file that has the wrapper and its virtual address there, if a file has it. COUNT is the
 * number of entries if the wrapper leads to an uncompressed offload bundle, else 0. For each entry a line and
 * its bytes follow:
 *
 *   SIZE<tab>OFFSET<tab>ID
 *
 * With RECORDER_COMGR, the name of AMD's comgr library, that is asked for the code of each of RECORDER_TARGETS, which
 * are separated by commas, as HIP runtimes ask it: it is given the first 4096 bytes of the bundle. For each a line
 * follows, with the place of the code in the bundle; the size is 0 if comgr finds none, and -1 if comgr does not know
 * the GPU:
 *
 *   SIZE<tab>OFFSET<tab>TARGET
 *
 * The process ends with status 98 if the runtime refuses a wrapper or a handle is not one that it gave, and 99 if the
 * runtime or comgr is missing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define BUNDLE "__CLANG_OFFLOAD_BUNDLE__"
#define SLICE 4096
#define DATA_KIND_FATBIN 16
#define MOST_HANDLES 65536

struct wrapper {
  uint32_t magic, version;
  const char *data;
  uint64_t reserved;
};

struct data {
  uint64_t handle;
};

struct code_object {
  const char *isa;
  size_t size;
  uint64_t offset;
};

static void **handles[MOST_HANDLES];
static size_t handle_count;

static void stop(int status, const char *why) {
  fprintf(stderr, "recorder: %s\n", why);
  _Exit(status);
}

static void *symbol(void *library, const char *name) {
  void *found = library ? dlsym(library, name) : NULL;
  if (!found) stop(99, dlerror());
  return found;
}

static int is_runtime(struct dl_phdr_info *info, size_t size, void *found) {
  (void)size;
  if (strstr(info->dlpi_name, "/libamdhip64")) *(void **)found = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  return *(void **)found != NULL;
}

/* A function of the runtime, which may be in no scope that this library sees. */
static void *real(const char *name) {
  static void *runtime;
  if (!runtime && !dl_iterate_phdr(is_runtime, &runtime)) stop(99, "no HIP runtime is loaded");
  return symbol(runtime, name);
}

static FILE *recorded(void) {
  static FILE *file;
  if (!file) file = fdopen(atoi(getenv("RECORDER")), "w");
  if (!file) stop(99, "RECORDER is not open");
  return file;
}

static void *comgr;

static int is_known(const char *isa) {
  int (*count)(size_t *) = symbol(comgr, "amd_comgr_get_isa_count");
  int (*name)(size_t, const char **) = symbol(comgr, "amd_comgr_get_isa_name");
  size_t all = 0, length = strcspn(isa, ":");
  const char *known;
  count(&all);
  for (size_t i = 0; i < all; i++)
    if (name(i, &known) == 0 && strncmp(known, isa, length) == 0 && strlen(known) == length) return 1;
  return 0;
}

static void ask_comgr(const char *bundle, char *targets) {
  if (!comgr) comgr = dlopen(getenv("RECORDER_COMGR"), RTLD_LAZY);
  int (*create)(int, struct data *) = symbol(comgr, "amd_comgr_create_data");
  int (*set)(struct data, size_t, const char *) = symbol(comgr, "amd_comgr_set_data");
  int (*lookup)(struct data, struct code_object *, size_t) = symbol(comgr, "amd_comgr_lookup_code_object");
  int (*release)(struct data) = symbol(comgr, "amd_comgr_release_data");
  struct data data;
  if (create(DATA_KIND_FATBIN, &data) || set(data, SLICE, bundle)) stop(99, "comgr takes no data");
  for (char *target; (target = strsep(&targets, ","));) {
    char isa[256];
    snprintf(isa, sizeof isa, "amdgcn-amd-amdhsa--%.200s", target);
    struct code_object found = {isa, 0, 0};
    if (lookup(data, &found, 1)) stop(98, "comgr cannot read the bundle");
    fprintf(recorded(), "%zd\t%lu\t%s\n", is_known(isa) ? (ssize_t)found.size : -1, found.offset, target);
  }
  release(data);
}

static void record_entries(const char *bundle, uint64_t count) {
  const char *at = bundle + 32;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t offset, size, length;
    memcpy(&offset, at, 8), memcpy(&size, at + 8, 8), memcpy(&length, at + 16, 8);
    char id[256] = "";
    if (length >= sizeof id) stop(98, "an id is too long");
    memcpy(id, at + 24, length);
    at += 24 + length;
    fprintf(recorded(), "%lu\t%lu\t%s\n", size, offset, id);
    fwrite(bundle + offset, 1, size, recorded());
  }
  if (count == 0 || !getenv("RECORDER_COMGR")) return;
  char *targets = strdup(getenv("RECORDER_TARGETS"));
  ask_comgr(bundle, targets);
  free(targets);
}

void **__hipRegisterFatBinary(const void *data) {
  const struct wrapper *wrapper = data;
  Dl_info info;
  struct link_map *map;
  uintptr_t address = 0;
  const char *path = "";
  if (dladdr1(data, &info, (void **)&map, RTLD_DL_LINKMAP)) path = info.dli_fname, address = (uintptr_t)data - map->l_addr;
  uint64_t count = 0;
  if (memcmp(wrapper->data, BUNDLE, 24) == 0) memcpy(&count, wrapper->data + 24, 8);
  fprintf(recorded(), "registered\t%.4s\t%zx\t%lu\t%s\n", (const char *)&wrapper->magic, (size_t)address, count, path);
  record_entries(wrapper->data, count);
  fflush(recorded());
  void **handle = ((void **(*)(const void *))real("__hipRegisterFatBinary"))(data);
  if (!handle || handle_count == MOST_HANDLES) stop(98, "the runtime gave no handle");
  handles[handle_count++] = handle;
  return handle;
}

void __hipUnregisterFatBinary(void **handle) {
  size_t i = 0;
  while (i < handle_count && handles[i] != handle) i++;
  if (i == handle_count) stop(98, "a handle is unregistered that the runtime did not give");
  handles[i] = NULL;
  fprintf(recorded(), "unregistered\n");
  fflush(recorded());
  ((void (*)(void **))real("__hipUnregisterFatBinary"))(handle);
}

/* The other functions, so that none leads past this library. Arguments are words, or two words for a `dim3`. */
typedef void *word;
#define PASS_ON(NAME) \
  word NAME(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j) { \
    return ((word(*)(word, word, word, word, word, word, word, word, word, word))real(#NAME))(a, b, c, d, e, f, g, h, i, j); \
  }
PASS_ON(__hipRegisterFunction)
PASS_ON(__hipRegisterVar)
PASS_ON(__hipRegisterManagedVar)
PASS_ON(__hipRegisterSurface)
PASS_ON(__hipRegisterTexture)
PASS_ON(__hipPushCallConfiguration)
PASS_ON(__hipPopCallConfiguration)
