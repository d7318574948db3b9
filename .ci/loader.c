/* Preloaded in front of AMD's HIP runtime. Passes each wrapper of device code on to the runtime, and asks the
 * kernel loader of the runtime for the code of the wrapper, as the runtime does if there is a GPU: for each of
 * LOADER_DEVICES, which are separated by commas. A device has one or two target IDs, separated by a space: its own,
 * and the generic one that it can run.
 *
 * Writes the path of the loader to the file descriptor LOADER_ANSWERS, and for each answer a line and the SIZE
 * bytes of the code object:
 *
 *   ADDRESS<tab>DEVICE<tab>ERROR<tab>SIZE<tab>PATH
 *
 * ADDRESS is the virtual address of the wrapper in the file PATH, ERROR the code that the loader returned. The
 * process ends with status 97 for a wrapper that still has its bundle, 98 if the runtime refuses a wrapper, and 99 if
 * the loader or the runtime is missing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIPF 0x48495046u

struct wrapper {
  uint32_t magic, version;
  const void *marker;
  uint32_t co_index, reserved;
};

static int (*load)(void *, const void *, const char *, uint32_t, const char *const *, size_t, void **, size_t *);
static int (*find_path)(const void *, char *, size_t, size_t *);
static void (*release)(void *);
static void *cache;
static FILE *answers;

static void *symbol(void *where, const char *name) {
  void *found = dlsym(where, name);
  if (!found) {
    fprintf(stderr, "loader: %s\n", dlerror());
    _Exit(99);
  }
  return found;
}

static void begin(void) {
  load = symbol(RTLD_DEFAULT, "kpack_load_code_object");
  release = symbol(RTLD_DEFAULT, "kpack_free_code_object");
  find_path = symbol(RTLD_DEFAULT, "kpack_discover_binary_path");
  int (*create)(void **) = symbol(RTLD_DEFAULT, "kpack_cache_create");
  if (create(&cache) != 0) _Exit(99);
  answers = fdopen(atoi(getenv("LOADER_ANSWERS")), "w");
  Dl_info info;
  if (!dladdr((void *)load, &info)) _Exit(99);
  fprintf(answers, "%s\n", info.dli_fname);
}

static void ask(const struct wrapper *wrapper, uintptr_t address, const char *path, const char *device) {
  char targets[2][256], own[256] = "", generic[256] = "";
  const char *list[] = {targets[0], targets[1]};
  size_t count = sscanf(device, "%255s %255s", own, generic), size = 0;
  snprintf(targets[0], sizeof *targets, "amdgcn-amd-amdhsa--%.200s", own);
  snprintf(targets[1], sizeof *targets, "amdgcn-amd-amdhsa--%.200s", generic);
  void *code = NULL;
  int answer = load(cache, wrapper->marker, path, wrapper->co_index, list, count, &code, &size);
  fprintf(answers, "%zx\t%s\t%d\t%zu\t%s\n", (size_t)address, device, answer, size, path);
  if (answer == 0) {
    fwrite(code, 1, size, answers);
    release(code);
  }
}

void **__hipRegisterFatBinary(const void *data) {
  const struct wrapper *wrapper = data;
  if (!answers) begin();
  char path[PATH_MAX];
  Dl_info info;
  struct link_map *map;
  if (!dladdr1(data, &info, (void **)&map, RTLD_DL_LINKMAP) || find_path(data, path, sizeof path, NULL) != 0) _Exit(99);
  uintptr_t address = (uintptr_t)data - map->l_addr;
  if (wrapper->magic == HIPF) _Exit(97);
  void **(*registered)(const void *) = symbol(RTLD_NEXT, "__hipRegisterFatBinary");
  void **handle = registered(data);
  if (!handle) _Exit(98);
  char *devices = strdup(getenv("LOADER_DEVICES")), *rest = devices, *device;
  while ((device = strsep(&rest, ","))) ask(wrapper, address, path, device);
  free(devices);
  fflush(answers);
  return handle;
}
