/* Runs steps in one process: calls of a librocm_kpack between changes of its environment.
 *
 *   steps LIBRARY STEP...
 *
 * Each step prints a line: the code, then the result, or the text of the error. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rocm_kpack/kpack.h>

#define API(name) static __typeof__(&kpack_##name) k_##name;
#define ALL(X) \
  X(cache_create) X(cache_destroy) X(load_code_object) X(free_code_object) X(open) X(close) \
  X(last_error) X(get_kernel)
ALL(API)

static char marker[1 << 17];
static kpack_cache_t cache;
static kpack_archive_t archive;

static unsigned long long digest(const void *data, size_t size) {
  unsigned long long hash = 0xcbf29ce484222325u;
  for (size_t at = 0; at < size; at++)
    hash = (hash ^ ((const unsigned char *)data)[at]) * 0x100000001b3u;
  return hash;
}

/* The words of a step after the first; `-` is NULL. */
static char *words[64];
static int split(char *step) {
  int count = 0;
  for (char *word = strtok(step, " "); word && count < 63; word = strtok(0, " ")) words[count++] = word;
  words[count] = 0;
  return count;
}

static void outcome(int code) {
  if (code) printf("%d %s\n", code, k_last_error());
  else printf("0\n");
}

/* load BINARY INDEX DEVICE... */
static void load(int count) {
  const char *devices[64];
  void *data = 0;
  size_t size = 0;
  for (int at = 3; at < count; at++) devices[at - 3] = strcmp(words[at], "-") ? words[at] : 0;
  int code = k_load_code_object(cache, marker, words[1], atoi(words[2]), devices, count - 3, &data, &size);
  if (code) return outcome(code);
  printf("0 %zu %llx\n", size, digest(data, size));
  k_free_code_object(data);
}

static atomic_int faults;
static unsigned long long wanted;

/* Loads the first wrapper for the device many times. */
static void *load_often(void *unused) {
  const char *devices[] = {words[3]};
  for (int round = 0; round < atoi(words[2]); round++) {
    void *data;
    size_t size;
    int code = k_load_code_object(cache, marker, words[1], 0, devices, 1, &data, &size);
    if (code) fprintf(stderr, "%d %s\n", code, k_last_error());
    if (code || digest(data, size) != wanted) faults++;
    if (!code) k_free_code_object(data);
  }
  return unused;
}

/* threads BINARY ROUNDS DEVICE DIGEST: four threads share the cache. */
static void threads(void) {
  pthread_t started[4];
  wanted = strtoull(words[4], 0, 16);
  for (int at = 0; at < 4; at++) pthread_create(&started[at], 0, load_often, 0);
  for (int at = 0; at < 4; at++) pthread_join(started[at], 0);
  printf("%d faults\n", faults);
}

static int descriptors(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

/* The bytes that the process has read. */
static long long bytes_read(void) {
  long long bytes = 0;
  FILE *file = fopen("/proc/self/io", "r");
  if (!file || fscanf(file, "rchar: %lld", &bytes) != 1) exit(3);
  fclose(file);
  return bytes;
}

static void step(char *text) {
  static long long before;
  char whole[8192];
  snprintf(whole, sizeof whole, "%s", text);
  int count = split(text), code;
  const char *name = words[0];
  if (!strcmp(name, "marker")) {
    FILE *file = fopen(words[1], "rb");
    if (!file || !fread(marker, 1, sizeof marker, file)) exit(3);
    fclose(file);
  } else if (!strcmp(name, "cache")) {
    k_cache_destroy(cache);
    if (k_cache_create(&cache)) exit(3);
  } else if (!strcmp(name, "load")) {
    load(count);
  } else if (!strcmp(name, "threads")) {
    threads();
  } else if (!strcmp(name, "cd")) {
    if (chdir(words[1])) exit(3);
  } else if (!strcmp(name, "run")) {
    if (system(whole + 4)) exit(3);
  } else if (!strcmp(name, "descriptors")) {
    printf("%d\n", descriptors());
  } else if (!strcmp(name, "exhaust")) {
    struct rlimit limit = {64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {}
  } else if (!strcmp(name, "privileged")) {
    printf("%lu\n", getauxval(AT_SECURE));
  } else if (!strcmp(name, "alarm")) {
    alarm(atoi(words[1]));
  } else if (!strcmp(name, "start")) {
    before = bytes_read();
  } else if (!strcmp(name, "read")) {
    printf("%lld\n", bytes_read() - before);
  } else if (!strcmp(name, "open")) {
    outcome(k_open(words[1], &archive));
  } else if (!strcmp(name, "close")) {
    k_close(archive);
  } else if (!strcmp(name, "get")) {
    void *data;
    size_t size;
    if ((code = k_get_kernel(archive, words[1], words[2], &data, &size))) return outcome(code);
    printf("0 %zu %llx\n", size, digest(data, size));
    k_free_code_object(data);
  } else if (!strcmp(name, "error")) {
    printf("%s\n", k_last_error());
  } else if (!strcmp(name, "pipe")) {
    /* The standard error has no reader, and SIGPIPE ends the process. */
    int ends[2];
    if (pipe(ends) || dup2(ends[1], 2) < 0) exit(3);
    close(ends[0]), close(ends[1]);
    signal(SIGPIPE, SIG_DFL);
  } else if (!strcmp(name, "full")) {
    /* The standard error is a file that may not grow, and SIGXFSZ ends the process. */
    struct rlimit limit = {0, 0};
    int file = open(words[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0 || dup2(file, 2) < 0 || setrlimit(RLIMIT_FSIZE, &limit)) exit(3);
    signal(SIGXFSZ, SIG_DFL);
  } else if (!strcmp(name, "pending")) {
    sigset_t pending;
    sigpending(&pending);
    printf("%d %d\n", sigismember(&pending, SIGPIPE), sigismember(&pending, SIGXFSZ));
  } else if (!strcmp(name, "lease")) {
    /* A child that has a lease on a file, and releases it some time after a request. */
    int ends[2], told = 0;
    if (pipe(ends)) exit(3);
    if (!fork()) {
      int file = open(words[1], O_RDWR);
      signal(SIGIO, SIG_IGN);
      int failed = fcntl(file, F_SETLEASE, F_WRLCK);
      if (write(ends[1], &failed, sizeof failed) < 0) _exit(3);
      usleep(300000);
      _exit(0);
    }
    if (read(ends[0], &told, sizeof told) < 0) exit(3);
    close(ends[0]), close(ends[1]);
    printf("%d\n", told);
  } else {
    fprintf(stderr, "no step %s\n", name), exit(3);
  }
}

int main(int count, char **arguments) {
  setvbuf(stdout, 0, _IONBF, 0);
  void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : 0;
  if (!library) return fprintf(stderr, "steps LIBRARY STEP...: %s\n", dlerror()), 3;
#define FIND(name) *(void **)&k_##name = dlsym(library, "kpack_" #name);
  ALL(FIND)
  for (int at = 2; at < count; at++) step(arguments[at]);
  return 0;
}
