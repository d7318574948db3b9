/* A stand-in for the HIP runtime that says on standard output what a real one would load. There is
 * no GPU: ROCKPACK_STUB_ARCH names the devices, as full target IDs separated by commas.
 *
 *   fat BINARY bundle|CCOB                                        an untransformed wrapper
 *   KERNEL_NAME#CO_INDEX TARGET -> ARCHIVE ORDINAL SIZE [TAG]     found
 *   MISSING KERNEL_NAME#CO_INDEX DEVICE: REASON                   not found
 *
 * With ROCKPACK_STUB_DECODE=1 the code object is decompressed as well, TAG is the example tag in it,
 * and each kernel that the host code registers is looked for among its symbols. Real libraries
 * register kernels that one arch or the other lacks (rocBLAS: 48 of 3573 on gfx1100), so an absent
 * one is no failure in itself; a code object of another wrapper has none of them:
 *
 *   absent KERNEL_NAME#CO_INDEX DEVICE KERNEL
 *   kernels KERNEL_NAME#CO_INDEX DEVICE FOUND/REGISTERED          at unload
 *
 * With ROCKPACK_STUB_KPACK=LIBRARY, a librocm_kpack, that is asked for each wrapper and device as a HIP
 * runtime asks it, and has to give the bytes that were decoded here, or 13 or 14 where there are none:
 *
 *   library KERNEL_NAME#CO_INDEX DEVICE CODE
 *
 * It plays the released loaders: an archive is chosen by replacing @GFXARCH@ with each target the
 * device is compatible with, most specific first; the archive's first listed target that the device
 * is compatible with is committed to, and a missing row for that target is a failure. */
#define _GNU_SOURCE
#include "archive.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HIPF 0x48495046u
#define HIPK 0x4b504948u
#define MARKER_LIMIT (64 * 1024) /* what released loaders accept */
#define MAXIMUM_TARGETS 4        /* two features: both, either, none */
#define MAXIMUM_DEVICES 4

struct wrapper {
  uint32_t magic, version;
  const void *binary;
  uint64_t reserved;
};

struct targets {
  char names[MAXIMUM_TARGETS][64];
  int count;
};

/* The code object that one wrapper loaded for one device. */
struct loaded {
  char *key, *device;
  unsigned char *code;
  uint64_t size;
  unsigned registered, found;
};

struct module {
  struct loaded devices[MAXIMUM_DEVICES];
  unsigned count;
};

static char *text_copy(struct text text) { return strndup(text.at, text.length); }

/* gfx90a:sramecc+:xnack- → itself, gfx90a:sramecc+, gfx90a:xnack-, gfx90a. */
static void compatible_targets(const char *device, struct targets *targets) {
  char copy[64];
  snprintf(copy, sizeof copy, "%s", device);
  char *rest = copy, *base = strsep(&rest, ":"), *first = strsep(&rest, ":"), *second = strsep(&rest, ":");
  int n = 0;
  if (second) snprintf(targets->names[n++], 64, "%s:%s:%s", base, first, second);
  if (first) snprintf(targets->names[n++], 64, "%s:%s", base, first);
  if (second) snprintf(targets->names[n++], 64, "%s:%s", base, second);
  snprintf(targets->names[n++], 64, "%s", base);
  targets->count = n;
}

static int is_compatible(const struct targets *targets, struct text listed) {
  for (int i = 0; i < targets->count; i++)
    if (equals(listed, targets->names[i])) return 1;
  return 0;
}

/* The archive's first listed target that is compatible, as a new string, or NULL. */
static char *committed_target(const struct archive *archive, const struct targets *targets) {
  struct cursor list = member(archive->toc, "gfx_arches");
  uint64_t count = count_of(&list, ARRAY);
  while (count-- && !list.bad) {
    struct text listed = text_of(&list);
    if (!list.bad && is_compatible(targets, listed)) return text_copy(listed);
  }
  return NULL;
}

/* DIRECTORY/PATTERN with every @GFXARCH@ replaced. */
static int expand(char *path, size_t size, const char *directory, const char *pattern, const char *target) {
  static const char placeholder[] = "@GFXARCH@";
  int used = snprintf(path, size, "%s/", directory);
  for (const char *next; (next = strstr(pattern, placeholder)); pattern = next + sizeof placeholder - 1) {
    used += snprintf(path + used, size - (size_t)used, "%.*s%s", (int)(next - pattern), pattern, target);
    if ((size_t)used >= size) return 0;
  }
  used += snprintf(path + used, size - (size_t)used, "%s", pattern);
  return (size_t)used < size;
}

/* The directory of the binary that holds `address`. */
static int binary_of(const void *address, char *path) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return 0;
  /* The program itself goes by the name it was called with, which need not be a path. */
  const char *name = strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe";
  return realpath(name, path) != NULL;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Opens the first archive of the search paths that serves the device. */
static const char *choose(struct cursor marker, const char *directory, const struct targets *targets,
                          struct archive *archive, char *chosen, char **target) {
  struct cursor paths = member(marker, "kpack_search_paths");
  uint64_t count = count_of(&paths, ARRAY);
  const char *fault = paths.bad ? "the marker has no kpack_search_paths" : "no archive";
  while (count-- && !paths.bad) {
    char *pattern = text_copy(text_of(&paths));
    for (int i = 0; i < targets->count; i++) {
      char path[PATH_MAX];
      if (!expand(path, sizeof path, directory, pattern, targets->names[i])) continue;
      const char *problem = archive_open(archive, path);
      if (problem && access(path, F_OK) == 0) fault = problem;
      if (problem || !realpath(path, chosen)) continue;
      if ((*target = committed_target(archive, targets))) return free(pattern), NULL;
      archive_close(archive);
      fault = "the archive lists no compatible target";
    }
    free(pattern);
  }
  return fault;
}

static const char *check_code_object(const unsigned char *code, uint64_t size) {
  if (size < 64 || memcmp(code, "\177ELF", 4) != 0) return "the code object is no ELF";
  return code[18] == 224 && code[19] == 0 ? NULL : "the code object is not for AMDGPU";
}

static void print_found(const char *key, const char *target, const char *path, const struct row *row,
                        const struct loaded *loaded) {
  printf("%s %s -> %s %llu %llu", key, target, path, (unsigned long long)row->ordinal,
         (unsigned long long)row->original_size);
  const char *tag = loaded->code ? memmem(loaded->code, loaded->size, "rockpack-example ", 17) : NULL;
  if (tag) printf(" %.*s", (int)strnlen(tag, (size_t)((const char *)loaded->code + loaded->size - tag)), tag);
  putchar('\n');
}

static const char *load_from(const struct archive *archive, const char *path, const char *target, struct loaded *loaded) {
  struct row row;
  const char *fault = archive_row(archive, loaded->key, target, &row);
  if (!fault && getenv("ROCKPACK_STUB_DECODE")) {
    fault = archive_decode(archive, &row, &loaded->code);
    loaded->size = row.original_size;
    if (!fault) fault = check_code_object(loaded->code, loaded->size);
  }
  if (!fault) print_found(loaded->key, target, path, &row, loaded);
  return fault;
}

static void load_for(struct cursor marker, const char *directory, struct loaded *loaded) {
  struct targets targets;
  struct archive archive;
  char path[PATH_MAX], *target = NULL;
  compatible_targets(loaded->device, &targets);
  const char *fault = choose(marker, directory, &targets, &archive, path, &target);
  if (!fault) {
    fault = load_from(&archive, path, target, loaded);
    archive_close(&archive);
  }
  free(target);
  if (fault) printf("MISSING %s %s: %s\n", loaded->key, loaded->device, fault);
}

typedef int load_function(void *, const void *, const char *, uint32_t, const char *const *, size_t, void **, size_t *);

/* Asks ROCKPACK_STUB_KPACK for what was loaded, with one cache for the process. */
static void load_by_library(const struct wrapper *wrapper, const char *binary, const struct loaded *loaded) {
  static void *cache;
  static load_function *load;
  const char *path = getenv("ROCKPACK_STUB_KPACK");
  if (!path) return;
  if (!cache) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*create)(void **) = library ? (int (*)(void **))dlsym(library, "kpack_cache_create") : NULL;
    load = library ? (load_function *)dlsym(library, "kpack_load_code_object") : NULL;
    if (!create || !load || create(&cache)) {
      printf("MISSING %s: %s is no librocm_kpack: %s\n", loaded->key, path, dlerror());
      return;
    }
  }
  char target[128];
  snprintf(target, sizeof target, "amdgcn-amd-amdhsa--%s", loaded->device);
  const char *list[] = {target};
  void *code_object = NULL;
  size_t size = 0;
  int code = load(cache, wrapper->binary, binary, (uint32_t)wrapper->reserved, list, 1, &code_object, &size);
  int is_same = loaded->code ? !code && size == loaded->size && !memcmp(code_object, loaded->code, size)
                             : code == 13 || code == 14;
  printf("%s %s %s %d\n", is_same ? "library" : "MISSING by librocm_kpack:", loaded->key, loaded->device, code);
  free(code_object); /* as kpack_free_code_object does */
}

static struct module *register_kpack(const struct wrapper *wrapper, const char *binary) {
  struct module *module = calloc(1, sizeof *module);
  const unsigned char *at = wrapper->binary;
  struct cursor marker = {at, at + MARKER_LIMIT, 0}, name = member(marker, "kernel_name");
  char *kernel_name = text_copy(text_of(&name)), *key = NULL, *devices, *rest;
  if (name.bad || asprintf(&key, "%s#%u", kernel_name, (uint32_t)wrapper->reserved) < 0) {
    printf("MISSING %s: the marker has no kernel_name\n", base_name(binary));
    return module;
  }
  const char *setting = getenv("ROCKPACK_STUB_ARCH");
  if (!setting || !*setting) printf("MISSING %s: ROCKPACK_STUB_ARCH names no device\n", key);
  rest = devices = strdup(setting ? setting : "");
  char directory[PATH_MAX];
  snprintf(directory, sizeof directory, "%.*s", (int)(base_name(binary) - binary - 1), binary);
  for (char *device; (device = strsep(&rest, ",")) && *device && module->count < MAXIMUM_DEVICES; module->count++) {
    struct loaded *loaded = &module->devices[module->count];
    loaded->key = strdup(key);
    loaded->device = strdup(device);
    load_for(marker, directory, loaded);
    load_by_library(wrapper, binary, loaded);
  }
  free(devices);
  free(kernel_name);
  free(key);
  return module;
}

void **__hipRegisterFatBinary(const struct wrapper *wrapper) {
  char binary[PATH_MAX];
  struct module *module = NULL;
  if (!binary_of(wrapper, binary)) printf("MISSING: no binary holds the wrapper at %p\n", (const void *)wrapper);
  else if (wrapper->magic == HIPF)
    printf("fat %s %s\n", base_name(binary), memcmp(wrapper->binary, "CCOB", 4) == 0 ? "CCOB" : "bundle");
  else if (wrapper->magic == HIPK) module = register_kpack(wrapper, binary);
  else printf("MISSING %s: a wrapper has the magic %08x\n", base_name(binary), wrapper->magic);
  fflush(stdout);
  return (void **)(module ? module : calloc(1, sizeof *module));
}

/* Whether `name` is a whole entry of some string table of the code object. */
static int has_symbol(const struct loaded *loaded, const char *name) {
  char pattern[4096];
  int length = snprintf(pattern + 1, sizeof pattern - 1, "%s", name);
  pattern[0] = '\0';
  return (size_t)length < sizeof pattern - 1 && memmem(loaded->code, loaded->size, pattern, (size_t)length + 2);
}

void __hipRegisterFunction(void **handle, const void *host, char *device, const char *name, unsigned limit,
                           void *thread, void *block, void *block_size, void *grid_size, int *warp) {
  struct module *module = (struct module *)handle;
  for (unsigned i = 0; i < module->count; i++) {
    struct loaded *loaded = &module->devices[i];
    if (!loaded->code) continue;
    loaded->registered++;
    if (has_symbol(loaded, name)) loaded->found++;
    else printf("absent %s %s %s\n", loaded->key, loaded->device, name);
  }
  (void)host, (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp;
}

void __hipRegisterVar(void **handle, void *variable, char *host, char *device, int external, size_t size, int constant,
                      int global) {
  (void)handle, (void)variable, (void)host, (void)device, (void)external, (void)size, (void)constant, (void)global;
}

void __hipRegisterManagedVar(void *handle, void **pointer, void *initial, const char *name, size_t size, unsigned align) {
  (void)handle, (void)name, (void)size, (void)align;
  *pointer = initial; /* host code reaches the variable through this pointer */
}

void __hipUnregisterFatBinary(void **handle) {
  struct module *module = (struct module *)handle;
  for (unsigned i = 0; i < module->count; i++) {
    struct loaded *loaded = &module->devices[i];
    if (loaded->code)
      printf("kernels %s %s %u/%u\n", loaded->key, loaded->device, loaded->found, loaded->registered);
    free(loaded->code);
    free(loaded->key);
    free(loaded->device);
  }
  fflush(stdout);
  free(module);
}
