/* Times a librocm_kpack by its public interface, and plain zstd over the same frames:
 *
 *   cc -O2 -Iruntime/include benches/runtime.c -o runtime-bench -ldl -lpthread
 *   runtime-bench LIBRARY ARCHIVE [LIBZSTD]
 *
 * Any library of that interface can be given. Each figure is the best of 15 rounds, in milliseconds, except
 * the very first open and load of the process. CPU is user and system time, which other processes change less. "plain" reads each frame of the archive by pread and
 * decompresses it by LIBZSTD into memory from malloc, with one decoder for each thread: the least that
 * any library can do. The ratio compares the two where each frame has one row. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rocm_kpack/kpack.h>

#define ROUNDS 15

static __typeof__(&kpack_open) k_open;
static __typeof__(&kpack_close) k_close;
static __typeof__(&kpack_get_binary_count) k_count;
static __typeof__(&kpack_get_binary) k_binary;
static __typeof__(&kpack_get_architecture_count) k_arches;
static __typeof__(&kpack_get_architecture) k_arch;
static __typeof__(&kpack_get_kernel) k_get;
static __typeof__(&kpack_free_kernel) k_free;

static void *(*z_new)(void);
static size_t (*z_decode)(void *, void *, size_t, const void *, size_t);
static size_t (*z_free)(void *);
static unsigned long long (*z_size)(const void *, size_t);

static const char *path;
static kpack_archive_t archive;
/* Rows are numbered by key and target; missing ones are skipped. */
static size_t keys, targets;
static int threads;

struct frame { off_t offset; unsigned size; };
static struct frame *frames;
static unsigned frame_count;

struct times { double wall, cpu; };

static double read_clock(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static double now(void) { return read_clock(CLOCK_MONOTONIC); }

/* Private memory of the process in KiB. */
static long private_memory(void) {
  long sum = 0, size;
  malloc_trim(0); /* What malloc keeps of memory that was released is no library's. */
  char line[256];
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "Private_Dirty: %ld", &size) == 1) sum += size;
  if (file) fclose(file);
  return sum;
}

/* Loads a row. Returns 1, or 0 if the archive does not have it. */
static size_t load(size_t row) {
  const char *key, *arch;
  void *data;
  size_t size;
  int code = k_binary(archive, row / targets, &key);
  if (!code) code = k_arch(archive, row % targets, &arch);
  if (!code) code = k_get(archive, key, arch, &data, &size);
  if (code && code != 5) fprintf(stderr, "row %zu: %d\n", row, code), exit(1);
  if (!code) k_free(data);
  return !code;
}

static void *load_rows(void *first) {
  for (size_t row = (size_t)first; row < keys * targets; row += threads) load(row);
  return 0;
}

static void *plain_rows(void *first) {
  void *context = z_new(), *buffer = 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  size_t room = 0;
  for (unsigned at = (size_t)first; at < frame_count; at += threads) {
    struct frame frame = frames[at];
    if (frame.size > room) buffer = realloc(buffer, room = frame.size);
    if (pread(file, buffer, frame.size, frame.offset) != (ssize_t)frame.size) exit(1);
    unsigned long long size = z_size(buffer, frame.size);
    if (size > 1ull << 40) fprintf(stderr, "frame %u has no content size: no plain figures\n", at), exit(1);
    void *data = malloc(size);
    if (!data || z_decode(context, data, size, buffer, frame.size) != size)
      fprintf(stderr, "frame %u cannot be decompressed\n", at), exit(1);
    free(data);
  }
  close(file);
  free(buffer);
  z_free(context);
  return 0;
}

static struct times in_threads(void *(*work)(void *), int count) {
  struct times best = {1e9, 1e9};
  threads = count;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t started[16];
    double start = now(), cpu_start = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    for (int at = 1; at < count; at++) pthread_create(&started[at], 0, work, (void *)(size_t)at);
    work(0);
    for (int at = 1; at < count; at++) pthread_join(started[at], 0);
    double wall = now() - start, cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    if (wall < best.wall) best.wall = wall;
    if (cpu < best.cpu) best.cpu = cpu;
  }
  return best;
}

/* The frames of an archive of one blob at byte 64 (a few writers put it elsewhere). */
static void find_frames(void) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  off_t at = 68;
  if (pread(file, &frame_count, 4, 64) != 4) exit(1);
  frames = calloc(frame_count, sizeof *frames);
  for (unsigned index = 0; index < frame_count; index++) {
    if (pread(file, &frames[index].size, 4, at) != 4) exit(1);
    frames[index].offset = at + 4;
    at += 4 + frames[index].size;
  }
  close(file);
}

int main(int count, char **words) {
  void *library = count > 2 ? dlopen(words[1], RTLD_NOW) : 0;
  if (!library) return fprintf(stderr, "LIBRARY ARCHIVE [LIBZSTD]: %s\n", dlerror()), 1;
  path = words[2];
  *(void **)&k_open = dlsym(library, "kpack_open"), *(void **)&k_close = dlsym(library, "kpack_close");
  *(void **)&k_count = dlsym(library, "kpack_get_binary_count");
  *(void **)&k_binary = dlsym(library, "kpack_get_binary");
  *(void **)&k_arches = dlsym(library, "kpack_get_architecture_count");
  *(void **)&k_arch = dlsym(library, "kpack_get_architecture");
  *(void **)&k_get = dlsym(library, "kpack_get_kernel");
  *(void **)&k_free = dlsym(library, "kpack_free_kernel");
  double opened = 1e9, first = 1e9, fresh = 0;
  for (int round = 0; round < ROUNDS; round++) {
    double start = now();
    if (k_open(path, &archive)) return fprintf(stderr, "cannot open %s\n", path), 1;
    double middle = now();
    k_count(archive, &keys), k_arches(archive, &targets);
    for (size_t row = 0; row < keys * targets && !load(row); row++) {}
    double end = now();
    if (!round) fresh = end - start;
    if (middle - start < opened) opened = middle - start;
    if (end - start < first) first = end - start;
    if (round < ROUNDS - 1) k_close(archive);
  }
  size_t rows = 0;
  for (size_t row = 0; row < keys * targets; row++) rows += load(row);
  printf("%zu rows: open %.3f, open and first load %.3f, in the fresh process %.3f\n", rows, opened, first,
         fresh);
  long before = private_memory();
  struct times one = in_threads(load_rows, 1);
  long kept = private_memory() - before;
  struct times two = in_threads(load_rows, 2);
  printf("all rows: 1 thread %.1f (CPU %.1f), 2 threads %.1f (CPU %.1f); private memory %+ld KiB\n", one.wall,
         one.cpu, two.wall, two.cpu, kept);
  void *zstd = dlopen(count > 3 ? words[3] : "libzstd.so.1", RTLD_NOW);
  if (!zstd) return fprintf(stderr, "%s\n", dlerror()), 1;
  *(void **)&z_new = dlsym(zstd, "ZSTD_createDCtx"), *(void **)&z_free = dlsym(zstd, "ZSTD_freeDCtx");
  *(void **)&z_decode = dlsym(zstd, "ZSTD_decompressDCtx");
  *(void **)&z_size = dlsym(zstd, "ZSTD_getFrameContentSize");
  find_frames();
  struct times plain_one = in_threads(plain_rows, 1), plain_two = in_threads(plain_rows, 2);
  printf("plain:    1 thread %.1f (CPU %.1f), 2 threads %.1f (CPU %.1f); ratio %.2f, %.2f, of CPU %.2f, %.2f\n",
         plain_one.wall, plain_one.cpu, plain_two.wall, plain_two.cpu, one.wall / plain_one.wall,
         two.wall / plain_two.wall, one.cpu / plain_one.cpu, two.cpu / plain_two.cpu);
  if (rows != frame_count) printf("%zu rows of %u frames: the ratio compares nothing\n", rows, frame_count);
  return 0;
}
