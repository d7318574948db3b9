/* Times whole processes that load kernels as the HIP runtime does, by a librocm_kpack's public interface:
 *
 *   cc -O2 -Iruntime/include benches/runtime_process.c -o runtime-process -ldl
 *   objcopy -O binary --only-section=.rocm_kpack_ref librocblas.so.4 marker
 *   runtime-process LIBRARY marker PATH/librocblas.so.4 COUNT TARGET ARCHIVE
 *
 * Each process opens LIBRARY, loads the code objects of the wrappers 0 to COUNT - 1 of the binary for TARGET, and
 * ends. ARCHIVE is where they are: with a cold page cache, it and LIBRARY are dropped from the cache before
 * each process (which works on file systems that have disks). Median and best of 21 processes, in
 * milliseconds, beside those of a process that opens LIBRARY and ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rocm_kpack/kpack.h>

#define ROUNDS 21

static char **words;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

/* The work of a process. Returns 0 if all code objects are loaded. */
static int work(const char *count_text) {
  static char marker[1 << 16];
  void *library = dlopen(words[1], RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
  int count = atoi(count_text);
  if (!count) return 0;
  FILE *file = fopen(words[2], "rb");
  if (!file || !fread(marker, 1, sizeof marker, file)) return perror(words[2]), 1;
  __typeof__(&kpack_cache_create) create = dlsym(library, "kpack_cache_create");
  __typeof__(&kpack_load_code_object) load = dlsym(library, "kpack_load_code_object");
  kpack_cache_t cache;
  if (!create || !load || create(&cache)) return 1;
  const char *targets[] = {words[5]};
  for (int index = 0; index < count; index++) {
    void *data;
    size_t size;
    int code = load(cache, marker, words[3], index, targets, 1, &data, &size);
    if (code) return fprintf(stderr, "wrapper %d: code %d\n", index, code), 1;
  }
  return 0;
}

static void forget(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) perror(path), exit(1);
  close(file);
}

static int compare(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static void time_processes(const char *name, const char *count, int is_cold) {
  double took[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    if (is_cold) forget(words[6]), forget(words[1]);
    double start = now();
    pid_t child = fork();
    if (!child) {
      execl("/proc/self/exe", words[0], words[1], words[2], words[3], count, words[5], words[6], "work", (char *)0);
      _exit(1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    took[round] = now() - start;
    if (status) exit(1);
  }
  qsort(took, ROUNDS, sizeof *took, compare);
  printf("%s %.2f (best %.2f)\n", name, took[ROUNDS / 2], took[0]);
}

int main(int count, char **arguments) {
  words = arguments;
  if (count == 8 && !strcmp(words[7], "work")) return work(words[4]);
  if (count != 7) return fprintf(stderr, "LIBRARY MARKER BINARY COUNT TARGET ARCHIVE\n"), 1;
  time_processes("nothing, warm:", "0", 0);
  time_processes("all wrappers, warm:", words[4], 0);
  time_processes("nothing, cold:", "0", 1);
  time_processes("all wrappers, cold:", words[4], 1);
  return 0;
}
