/* Times the start-up of a library that registers its own device code, and of one that was split for every HIP
 * runtime (`hip_runtime = "any"`), whose code the shim finds in kernel archives:
 *
 *   cc -O2 benches/runtime_startup.c -o runtime-startup -ldl
 *   cc -O2 -DRUNTIME -shared -fPIC -Wl,-soname,libamdhip64.so.7 benches/runtime_startup.c -o libamdhip64.so.7
 *   LD_LIBRARY_PATH=.:SHIM LD_PRELOAD=./libamdhip64.so.7 TARGET=gfx1100 ./runtime-startup FAT SPLIT
 *
 * FAT and SPLIT are paths of the same library (startup_libraries.py makes some). SHIM is the folder of
 * librocm_kpack_shim.so.0, where the library is not installed beside it. The second line makes the stand-in for the
 * HIP runtime: it reads each page of the code objects for TARGET, as the runtime of a machine with this GPU does, and
 * of no others. A library that needs more of the HIP runtime finds that in the real one, which costs both libraries
 * the same; a real one of another soname is left in place, since the stand-in is preloaded.
 *
 * Each process loads one library and ends. Median and best of 21 processes for the time of `dlopen`, in
 * milliseconds, and the private memory that the process has more after it, with a warm page cache. Private memory
 * has no pages of files, not even those that were written and are not on the disk yet. The stand-in decompresses
 * bundles that zstd compressed as a whole (CCOB) by libzstd.so.1, all targets of them, as the runtime does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef RUNTIME

struct wrapper {
  uint32_t magic, version;
  const unsigned char *bundle;
};

static volatile unsigned char seen;
static unsigned long wrappers, objects, bytes;

/* The bundle in a compressed one of version 2 or 3: magic, u16 version, u16 method, then size, uncompressed size
 * (both u32 or u64) and u64 hash. NULL for others. */
static const unsigned char *decompressed(const unsigned char *start) {
  void *zstd = dlopen("libzstd.so.1", RTLD_NOW);
  size_t (*decompress)(void *, size_t, const void *, size_t) = zstd ? dlsym(zstd, "ZSTD_decompress") : 0;
  uint16_t fields[2]; /* version, method */
  uint64_t sizes[2] = {0, 0};
  memcpy(fields, start + 4, sizeof fields);
  if (!decompress || fields[0] < 2 || fields[0] > 3 || fields[1] != 1) return 0;
  size_t width = fields[0] == 2 ? 4 : 8, head = 8 + 2 * width + 8;
  memcpy(&sizes[0], start + 8, width), memcpy(&sizes[1], start + 8 + width, width);
  unsigned char *bundle = malloc(sizes[1]);
  if (!bundle || decompress(bundle, sizes[1], start + head, sizes[0] - head) != sizes[1]) return 0;
  return bundle;
}

/* Reads a byte of each page of the code objects for TARGET. */
void **__hipRegisterFatBinary(const struct wrapper *wrapper) {
  const unsigned char *bundle = wrapper->bundle;
  const char *target = getenv("TARGET");
  if (!memcmp(bundle, "CCOB", 4)) bundle = decompressed(bundle);
  uint64_t count, field[3]; /* of an entry: offset, size, length of the ID */
  if (wrapper->magic != 0x48495046 || !bundle || memcmp(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24) || !target) {
    fprintf(stderr, "no ordinary bundle, or no TARGET\n");
    exit(1);
  }
  wrappers++;
  memcpy(&count, bundle + 24, sizeof count);
  for (const unsigned char *at = bundle + 32; count--; at += sizeof field + field[2]) {
    memcpy(field, at, sizeof field);
    const char *id = (const char *)at + sizeof field, *name = memmem(id, field[2], "--", 2);
    size_t length = name ? field[2] - (name + 2 - id) : 0;
    if (length < strlen(target) || memcmp(name + 2, target, strlen(target))) continue;
    if (length > strlen(target) && name[2 + strlen(target)] != ':') continue;
    for (uint64_t page = 0; page < field[1]; page += 4096) seen += bundle[field[0] + page];
    objects++, bytes += field[1];
  }
  return (void **)wrapper;
}

void __hipUnregisterFatBinary(void **handle) { (void)handle; }
void __hipRegisterFunction(void) {}
void __hipRegisterVar(void) {}
void __hipRegisterManagedVar(void) {}
void __hipRegisterTexture(void) {}
void __hipRegisterSurface(void) {}

/* What was registered: the caller compares it. */
void startup_totals(unsigned long *totals) { totals[0] = wrappers, totals[1] = objects, totals[2] = bytes; }

#else

#define ROUNDS 21

struct result {
  double time;
  long private_kib;
  unsigned long totals[3]; /* wrappers, code objects, their bytes */
};

static long private_memory(void) {
  char line[256];
  long size = 0;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "Anonymous: %ld", &size);
  if (file) fclose(file);
  return size;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

/* The work of a process, whose result goes to the standard output. */
static int work(const char *path) {
  struct result result;
  long before = private_memory();
  double start = now();
  void *library = dlopen(path, RTLD_LAZY);
  result.time = now() - start;
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
  result.private_kib = private_memory() - before;
  void (*totals)(unsigned long *) = (void (*)(unsigned long *))dlsym(RTLD_DEFAULT, "startup_totals");
  if (!totals) return fprintf(stderr, "the stand-in is not preloaded\n"), 1;
  totals(result.totals);
  return write(1, &result, sizeof result) != sizeof result;
}

static struct result process(const char *program, const char *path) {
  struct result result;
  int ends[2], status = 1;
  if (pipe(ends)) exit(1);
  pid_t child = fork();
  if (!child) {
    dup2(ends[1], 1);
    execl("/proc/self/exe", program, "work", path, (char *)0);
    _exit(1);
  }
  close(ends[1]);
  ssize_t size = read(ends[0], &result, sizeof result);
  close(ends[0]);
  if (waitpid(child, &status, 0) != child || status || size != sizeof result) exit(1);
  return result;
}

static int by_time(const void *one, const void *other) {
  double a = ((const struct result *)one)->time, b = ((const struct result *)other)->time;
  return (a > b) - (a < b);
}

static struct result time_library(const char *program, const char *name, const char *path) {
  struct result results[ROUNDS];
  process(program, path); /* fills the page cache */
  for (int round = 0; round < ROUNDS; round++) results[round] = process(program, path);
  qsort(results, ROUNDS, sizeof *results, by_time);
  struct result median = results[ROUNDS / 2];
  printf("%s: %.2f (best %.2f), %ld KiB private; %lu wrappers, %lu code objects, %lu bytes\n", name, median.time,
         results[0].time, median.private_kib, median.totals[0], median.totals[1], median.totals[2]);
  return results[0];
}

int main(int count, char **arguments) {
  if (count == 3 && !strcmp(arguments[1], "work")) return work(arguments[2]);
  if (count != 3) return fprintf(stderr, "FAT SPLIT\n"), 1;
  struct result fat = time_library(arguments[0], "fat", arguments[1]);
  struct result split = time_library(arguments[0], "split", arguments[2]);
  printf("best of split to best of fat: %.2f times, %.2f ms more\n", split.time / fat.time, split.time - fat.time);
  if (!memcmp(fat.totals, split.totals, sizeof fat.totals)) return 0;
  return fprintf(stderr, "the code objects are not the same\n"), 1;
}

#endif
