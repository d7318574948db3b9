/* Replaces the HIP runtime: calls a given librocm_kpack through its public interface only.
 * Each command prints a line for each call: the code, then the result. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rocm_kpack/kpack.h>

/* The exported functions, by the library's own declarations. */
#define API(name) static __typeof__(&kpack_##name) k_##name;
#define ALL(X) \
  X(open) X(close) X(get_architecture_count) X(get_architecture) X(get_binary_count) X(get_binary) \
  X(get_kernel) X(free_kernel) X(cache_create) X(cache_destroy) X(load_code_object) \
  X(free_code_object) X(enumerate_architectures) X(discover_binary_path) X(last_error)
ALL(API)

static const char *text(void) { return k_last_error ? k_last_error() : ""; }

static unsigned long long digest(const void *data, size_t size) {
  unsigned long long hash = 0xcbf29ce484222325u;
  for (size_t at = 0; at < size; at++)
    hash = (hash ^ ((const unsigned char *)data)[at]) * 0x100000001b3u;
  return hash;
}

/* A marker whose last byte is the last readable one. */
static void *marker_of(const char *path) {
  static char bytes[1 << 16];
  FILE *file = fopen(path, "rb");
  size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  char *room = mmap(0, 2 * sizeof bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!size || room == MAP_FAILED || mprotect(room + sizeof bytes, sizeof bytes, PROT_NONE)) exit(3);
  fclose(file);
  return memcpy(room + sizeof bytes - size, bytes, size);
}

/* The allocations of the library, one of them deniable. */
static atomic_long left_to_deny = -1;
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
#ifndef UNDER_SANITIZER /* which has its own */
static int denied(void) {
  return atomic_load(&left_to_deny) >= 0 && atomic_fetch_sub(&left_to_deny, 1) == 0;
}
void *malloc(size_t size) { return denied() ? 0 : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return denied() ? 0 : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return denied() ? 0 : __libc_realloc(old, size); }
#endif

/* ---- archives ---- */

static int open_one(char **words) {
  kpack_archive_t archive = (void *)1;
  int code = k_open(words[0], &archive);
  if (code) {
    printf("%d %s %s\n", code, archive == (void *)1 ? "untouched" : "TOUCHED", text());
    return 0;
  }
  size_t count = 0;
  const char *name = 0;
  printf("0 arches");
  k_get_architecture_count(archive, &count);
  for (size_t at = 0; at < count; at++) {
    k_get_architecture(archive, at, &name);
    printf(" %s", name);
  }
  int above = k_get_architecture(archive, count, &name);
  printf(" binaries");
  k_get_binary_count(archive, &count);
  for (size_t at = 0; at < count; at++) {
    k_get_binary(archive, at, &name);
    printf(" %s", name);
  }
  printf(" above %d %d\n", above, k_get_binary(archive, count, &name));
  k_close(archive);
  return 0;
}

static int get(char **words) {
  kpack_archive_t archive;
  if (k_open(words[0], &archive)) return 3;
  void *data = (void *)1;
  size_t size = 1;
  int code = k_get_kernel(archive, words[1], words[2], &data, &size);
  k_close(archive);
  if (code) {
    printf("%d %s %s\n", code, data == (void *)1 && size == 1 ? "untouched" : "TOUCHED", text());
    return 0;
  }
  /* The code object outlives its archive. */
  printf("0 %zu %llx\n", size, digest(data, size));
  k_free_code_object(data);
  return 0;
}

static bool stop(const char *name, void *count) { return (void)name, ++*(int *)count < 1; }

static int arches(char **words) {
  int calls = 0, code = k_enumerate_architectures(words[0], stop, &calls);
  printf("%d stopped after %d\n", code, calls);
  printf("%d null path\n", k_enumerate_architectures(0, stop, &calls));
  printf("%d null callback\n", k_enumerate_architectures(words[0], 0, 0));
  return 0;
}

/* ---- loading ---- */

static kpack_cache_t cache;

static int load_one(void *marker, const char *binary, unsigned index, char **devices, int *size_out,
                    unsigned long long *hash) {
  size_t count = 0, size = 1;
  void *data = (void *)1;
  while (devices[count]) count++;
  int code = k_load_code_object(cache, marker, binary, index, (const char *const *)devices, count, &data,
                              &size);
  if (code && (data != (void *)1 || size != 1)) code += 1000;
  if (!code) {
    *hash = digest(data, size);
    *size_out = (int)size;
    k_free_code_object(data);
  }
  return code;
}

/* load MARKER BINARY COUNT DEVICE...: wrappers 0 to COUNT - 1, twice. */
static int load(char **words) {
  void *marker = marker_of(words[0]);
  if (k_cache_create(&cache)) return 3;
  for (int round = 0; round < 2; round++)
    for (int index = 0; index < atoi(words[2]); index++) {
      int size = 0;
      unsigned long long hash = 0;
      int code = load_one(marker, words[1], index, words + 3, &size, &hash);
      if (code) printf("%d %s\n", code, text());
      else printf("0 %d %llx\n", size, hash);
    }
  k_cache_destroy(cache);
  return 0;
}

static char **job;
static void *job_marker;
static unsigned long long wanted[64];
static atomic_int faults, is_over;

static void *loads(void *rounds) {
  for (int round = 0; round < *(int *)rounds && !is_over; round++)
    for (int index = 0; index < atoi(job[2]); index++) {
      int size;
      unsigned long long hash = 0;
      if (load_one(job_marker, job[1], index, job + 3, &size, &hash) || hash != wanted[index]) faults++;
    }
  return 0;
}

/* threads MARKER BINARY COUNT DEVICE...: eight threads share one cache. */
static int threads(char **words) {
  int size, rounds = 10;
  job = words;
  job_marker = marker_of(words[0]);
  if (k_cache_create(&cache)) return 3;
  for (int index = 0; index < atoi(words[2]); index++)
    load_one(job_marker, words[1], index, words + 3, &size, &wanted[index]);
  k_cache_destroy(cache);
  if (k_cache_create(&cache)) return 3;
  pthread_t started[8];
  for (int at = 0; at < 8; at++) pthread_create(&started[at], 0, loads, &rounds);
  for (int at = 0; at < 8; at++) pthread_join(started[at], 0);
  k_cache_destroy(cache);
  printf("%d faults\n", faults);
  return 0;
}

/* forks MARKER BINARY COUNT DEVICE...: children load while two threads of their parent do. */
static int forks(char **words) {
  int size, rounds = 1 << 30, bad = 0, one = 1;
  job = words;
  job_marker = marker_of(words[0]);
  if (k_cache_create(&cache)) return 3;
  for (int index = 0; index < atoi(words[2]); index++)
    load_one(job_marker, words[1], index, words + 3, &size, &wanted[index]);
  pthread_t started[2];
  for (int at = 0; at < 2; at++) pthread_create(&started[at], 0, loads, &rounds);
  for (int child = 0; child < 60; child++) {
    pid_t pid = fork();
    if (!pid) {
      alarm(10);
      faults = 0;
      loads(&one);
      /* A separate cache needs nothing that another thread holds. */
      if (k_cache_create(&cache)) _exit(2);
      loads(&one);
      _exit(faults != 0);
    }
    int status;
    waitpid(pid, &status, 0);
    bad += status != 0;
  }
  is_over = 1;
  for (int at = 0; at < 2; at++) pthread_join(started[at], 0);
  printf("%d bad children, %d faults\n", bad, faults);
  return 0;
}

/* changes MARKER BINARY COMMAND DEVICE: loads, runs a command, loads again with the same cache. */
static int changes(char **words) {
  void *marker = marker_of(words[0]);
  if (k_cache_create(&cache)) return 3;
  for (int round = 0; round < 2; round++) {
    int size = 0;
    unsigned long long hash = 0;
    int code = load_one(marker, words[1], 0, words + 3, &size, &hash);
    printf("%d %d %llx\n", code, size, hash);
    if (!round && system(words[2])) return 3;
  }
  k_cache_destroy(cache);
  return 0;
}

/* denials MARKER BINARY COUNT DEVICE...: each allocation of a first load is denied in turn. */
static int denials(char **words) {
  void *marker = marker_of(words[0]);
  int count = 0, refused = 0, other = 0;
  for (long n = 0; n < 500; n++) {
    int size;
    unsigned long long hash;
    cache = 0;
    atomic_store(&left_to_deny, n);
    int code = k_cache_create(&cache);
    if (!code) code = load_one(marker, words[1], 0, words + 3, &size, &hash);
    long rest = atomic_exchange(&left_to_deny, -1);
    k_cache_destroy(cache);
    if (rest >= 0) break;
    count++;
    refused += code == 7;
    other += code != 7 && code != 0;
  }
  printf("%d denials, %d other codes, %s\n", count, other, refused ? "some 7" : "never 7");
  return 0;
}

/* ---- any bytes ---- */

static unsigned long long random_state;
static unsigned next_random(unsigned limit) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(random_state >> 33) % limit;
}

static void damage(unsigned char *bytes, size_t size) {
  static const unsigned char odd[] = {0, 0xff, 0x7f, 0x80, 0xc1, 0xcf, 0xd3, 0xdb, 0xdd, 0xdf};
  for (unsigned left = 1 + next_random(4); left; left--) {
    unsigned at = next_random((unsigned)size);
    /* The tables at the end are damaged more often than frames. */
    if (next_random(2)) at = (unsigned)size - 1 - next_random((unsigned)(size < 600 ? size : 600));
    bytes[at] = next_random(2) ? odd[next_random(sizeof odd)] : bytes[at] ^ (1u << next_random(8));
  }
}

/* Loads the rows of all keys and targets until one fails. */
static int load_all_rows(kpack_archive_t archive) {
  size_t keys = 0, targets = 0, size;
  k_get_binary_count(archive, &keys);
  k_get_architecture_count(archive, &targets);
  for (size_t row = 0; row < keys * targets; row++) {
    const char *key, *target;
    void *data;
    k_get_binary(archive, row / targets, &key);
    k_get_architecture(archive, row % targets, &target);
    int code = k_get_kernel(archive, key, target, &data, &size);
    if (code) return code;
    k_free_kernel(data);
  }
  return 0;
}

/* fuzz ARCHIVE MARKER COUNT SEED: damaged archives and markers; only a crash is a fault. */
static int fuzz(char **words) {
  static unsigned char whole[1 << 20], copy[1 << 20], marker[1 << 17];
  FILE *file = fopen(words[0], "rb");
  size_t size = file ? fread(whole, 1, sizeof whole, file) : 0, marker_size;
  FILE *second = fopen(words[1], "rb");
  marker_size = second ? fread(copy, 1, 1 << 16, second) : 0;
  int memory = memfd_create("x", 0), codes[16] = {0}, bad = 0, count = atoi(words[2]);
  if (!size || !marker_size || memory < 0) return 3;
  memcpy(marker, copy, marker_size);
  unsigned char marker_whole[4096];
  memcpy(marker_whole, marker, sizeof marker_whole);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
  random_state = strtoull(words[3], 0, 10);
  const char *devices[] = {"gfx1100:sramecc+:xnack-", "gfx1100"};
  setenv("ROCM_KPACK_PATH_PREFIX", path, 1), setenv("ROCM_KPACK_QUIET", "1", 1);
  for (int at = 0; at < count; at++) {
    memcpy(copy, whole, size);
    size_t cut = next_random(8) ? size : 1 + next_random((unsigned)size);
    damage(copy, cut);
    if (ftruncate(memory, 0) || pwrite(memory, copy, cut, 0) != (ssize_t)cut) return 3;
    kpack_archive_t archive;
    int code = k_open(path, &archive);
    if (!code) {
      code = load_all_rows(archive);
      k_close(archive);
    }
    bad += code < 0 || code > 14 || (code && !*text());
    codes[code & 15]++;
    memcpy(marker, marker_whole, sizeof marker_whole);
    if (next_random(2)) damage(marker, marker_size);
    void *data;
    size_t got;
    if (k_cache_create(&cache)) return 3;
    code = k_load_code_object(cache, marker, "/nowhere/x", next_random(3), devices, 2, &data, &got);
    if (!code) k_free_code_object(data);
    bad += code < 0 || code > 14 || (code && !*text());
    codes[code & 15]++;
    k_cache_destroy(cache);
  }
  printf("%d bad", bad);
  for (int code = 0; code < 16; code++)
    if (codes[code]) printf(" %d:%d", code, codes[code]);
  printf("\n");
  return 0;
}

/* ---- arguments ---- */

static int nulls(char **words) {
  kpack_archive_t archive = 0, none = 0;
  size_t size;
  const char *name;
  void *data;
  char path[4096];
  const char *devices[] = {"gfx1100", 0};
  if (k_open(words[0], &archive) || k_cache_create(&cache)) return 3;
  int codes[] = {
      k_open(0, &archive), k_open(words[0], 0), k_get_architecture_count(none, &size),
      k_get_architecture_count(archive, 0), k_get_architecture(none, 0, &name),
      k_get_architecture(archive, 0, 0), k_get_binary_count(none, &size), k_get_binary_count(archive, 0),
      k_get_binary(none, 0, &name), k_get_binary(archive, 0, 0),
      k_get_kernel(none, "a", "b", &data, &size), k_get_kernel(archive, 0, "b", &data, &size),
      k_get_kernel(archive, "a", 0, &data, &size), k_get_kernel(archive, "a", "b", 0, &size),
      k_get_kernel(archive, "a", "b", &data, 0), k_cache_create(0),
      k_load_code_object(0, "\x80", "x", 0, devices, 1, &data, &size),
      k_load_code_object(cache, 0, "x", 0, devices, 1, &data, &size),
      k_load_code_object(cache, "\x80", 0, 0, devices, 1, &data, &size),
      k_load_code_object(cache, "\x80", "x", 0, 0, 1, &data, &size),
      k_load_code_object(cache, "\x80", "x", 0, devices, 0, &data, &size),
      k_load_code_object(cache, "\x80", "x", 0, devices, 1, 0, &size),
      k_load_code_object(cache, "\x80", "x", 0, devices, 1, &data, 0),
      k_discover_binary_path(0, path, 4096, &size), k_discover_binary_path((const void *)&text, 0, 4096, &size),
      k_discover_binary_path((const void *)&text, path, 0, &size), k_discover_binary_path((const void *)&text, path, 2, &size)};
  int wrong = 0;
  for (size_t at = 0; at < sizeof codes / sizeof *codes; at++) wrong += codes[at] != 1;
  k_close(0), k_cache_destroy(0), k_free_kernel(0), k_free_code_object(0);
  printf("%d wrong\n", wrong);
  int code = k_discover_binary_path((const void *)&text, path, sizeof path, &size);
  printf("%d %s\n", code, path);
  printf("%d heap, %d unmapped\n", k_discover_binary_path(&wrong, path, sizeof path, 0),
         k_discover_binary_path((void *)16, path, sizeof path, 0));
  k_close(archive), k_cache_destroy(cache);
  return 0;
}

int main(int count, char **words) {
  setvbuf(stdout, 0, _IONBF, 0);
  void *library = count > 2 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : 0;
  if (!library) return fprintf(stderr, "program LIBRARY COMMAND ...: %s\n", dlerror()), 3;
#define FIND(name) *(void **)&k_##name = dlsym(library, "kpack_" #name);
  ALL(FIND)
  static const struct { const char *name; int (*run)(char **); int words; } commands[] = {
      {"open", open_one, 1}, {"get", get, 3}, {"arches", arches, 1},
      {"load", load, 4}, {"threads", threads, 4}, {"forks", forks, 4}, {"changes", changes, 4},
      {"denials", denials, 4}, {"nulls", nulls, 1}, {"fuzz", fuzz, 4}};
  for (size_t at = 0; at < sizeof commands / sizeof *commands; at++)
    if (!strcmp(words[2], commands[at].name) && count >= 3 + commands[at].words)
      return commands[at].run(words + 3);
  return fprintf(stderr, "no command %s\n", words[2]), 3;
}
