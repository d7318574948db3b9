/* Runs steps in one process. FLAGS of dlopen: `l` RTLD_LAZY in place of RTLD_NOW, `g` RTLD_GLOBAL, `d`
 * RTLD_DEEPBIND, `-` none.
 *
 *   open FLAGS PATH            loads a library
 *   close NUMBER               unloads the library that so many were loaded before
 *   repeat COUNT PATH          loads and unloads; prints by how many KiB the process grew after the first 20
 *   threads ROUNDS PATH...     a thread for each library loads it, registers a wrapper again and again, and
 *                              now and then loads it anew; prints the faults
 *   forks COUNT PATH OTHER     a thread registers a wrapper of PATH again and again, while children load OTHER;
 *                              prints how many of them failed
 *   stack KIB PATH             a thread with so small a stack loads a library
 *   daemon COUNT               closes all descriptors from 3 on, and opens so many files
 *   files                      writes and reads those files; prints how many are as they were
 *   maps                       prints the number of mappings
 *   alarm SECONDS              the process ends by a signal unless it is over by then
 *   private                    prints the private memory in KiB: no pages of files, even if those are dirty
 *   stderr closed|unread       closes the standard error, or nobody reads it
 *   run COMMAND                runs a shell command
 *   privileged                 prints AT_SECURE */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int again_function(void);

static void *opened[256];
static int opened_count;
static atomic_int faults, is_over;
static pthread_barrier_t barrier;
static int rounds;

static void *load(const char *flags, const char *path) {
  int mode = strchr(flags, 'l') ? RTLD_LAZY : RTLD_NOW;
  mode |= strchr(flags, 'g') ? RTLD_GLOBAL : 0;
  mode |= strchr(flags, 'd') ? RTLD_DEEPBIND : 0;
  void *library = dlopen(path, mode);
  if (!library) printf("failed: %s\n", dlerror()), faults++;
  return library;
}

static again_function *again_of(void *library) {
  return library ? (again_function *)dlsym(library, "again") : 0;
}

static long resident(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) exit(3);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void repeat(int count, const char *path) {
  long before = 0;
  for (int at = 0; at < count; at++) {
    if (at == 20) before = resident();
    void *library = load("-", path);
    if (!library || dlclose(library)) exit(3);
  }
  printf("grew %ld\n", resident() - before);
}

static void *work(void *path) {
  pthread_barrier_wait(&barrier);
  void *library = load("-", path);
  for (int round = 1; library && round <= rounds; round++) {
    if (again_of(library)()) faults++;
    if (round % 8) continue;
    dlclose(library);
    library = load("-", path);
  }
  return 0;
}

static void threads(char **paths, int count) {
  pthread_t started[64];
  pthread_barrier_init(&barrier, 0, count);
  for (int at = 0; at < count; at++) pthread_create(&started[at], 0, work, paths[at]);
  for (int at = 0; at < count; at++) pthread_join(started[at], 0);
  printf("%d faults\n", faults);
}

static void *registers(void *again) {
  while (!is_over) ((again_function *)again)(), usleep(200);
  return 0;
}

static void forks(int count, const char *path, const char *other) {
  int bad = 0, status;
  pthread_t started;
  again_function *again = again_of(load("-", path));
  if (!again || pthread_create(&started, 0, registers, (void *)again)) exit(3);
  for (int at = 0; at < count; at++) {
    usleep(at * 37 % 500);
    pid_t child = fork();
    if (!child) {
      alarm(20);
      again_function *own = again_of(load("-", other));
      _exit(!own || own());
    }
    bad += waitpid(child, &status, 0) != child || status;
  }
  is_over = 1;
  pthread_join(started, 0);
  printf("%d bad children\n", bad);
}

static void *load_plainly(void *path) { return load("-", path); }

static void on_stack(int size, void *path) {
  pthread_t started;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, size * 1024)) exit(3);
  if (pthread_create(&started, &attributes, load_plainly, path)) exit(3);
  pthread_join(started, 0);
}

static int files[64], file_count;

static void become_daemon(int count) {
  for (int at = 3; at < 1024; at++) close(at);
  for (file_count = 0; file_count < count && file_count < 64; file_count++)
    if ((files[file_count] = memfd_create("own", 0)) < 0) exit(3);
}

static void use_files(void) {
  int sound = 0, read;
  for (int at = 0; at < file_count; at++) {
    int is_written = pwrite(files[at], &at, sizeof at, 0) == sizeof at;
    sound += is_written && pread(files[at], &read, sizeof read, 0) == sizeof read && read == at &&
             lseek(files[at], 0, SEEK_END) == sizeof at;
  }
  printf("%d own files\n", sound);
}

static void mappings(void) {
  int count = 0, byte;
  FILE *file = fopen("/proc/self/maps", "r");
  while (file && (byte = getc(file)) != EOF) count += byte == '\n';
  fclose(file);
  printf("maps %d\n", count);
}

static void private_memory(void) {
  char line[256];
  long size;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "Anonymous: %ld", &size) == 1) printf("private %ld\n", size);
  fclose(file);
}

static void lose_stderr(const char *how) {
  int ends[2];
  close(2);
  if (!strcmp(how, "unread") && (pipe(ends) || close(ends[0]) || dup2(ends[1], 2) != 2)) exit(3);
}

static void step(char *text) {
  char *words[64] = {0};
  int count = 0;
  if (!strncmp(text, "run ", 4)) {
    if (system(text + 4)) exit(3);
    return;
  }
  for (char *word = strtok(text, " "); word && count < 63; word = strtok(0, " ")) words[count++] = word;
  if (!strcmp(words[0], "open")) opened[opened_count++] = load(words[1], words[2]);
  else if (!strcmp(words[0], "close")) dlclose(opened[atoi(words[1])]);
  else if (!strcmp(words[0], "repeat")) repeat(atoi(words[1]), words[2]);
  else if (!strcmp(words[0], "threads")) rounds = atoi(words[1]), threads(words + 2, count - 2);
  else if (!strcmp(words[0], "forks")) forks(atoi(words[1]), words[2], words[3]);
  else if (!strcmp(words[0], "stack")) on_stack(atoi(words[1]), words[2]);
  else if (!strcmp(words[0], "daemon")) become_daemon(atoi(words[1]));
  else if (!strcmp(words[0], "files")) use_files();
  else if (!strcmp(words[0], "maps")) mappings();
  else if (!strcmp(words[0], "alarm")) alarm(atoi(words[1]));
  else if (!strcmp(words[0], "private")) private_memory();
  else if (!strcmp(words[0], "stderr")) lose_stderr(words[1]);
  else if (!strcmp(words[0], "privileged")) printf("%lu\n", getauxval(AT_SECURE));
  else exit(3);
}

int main(int count, char **steps) {
  setvbuf(stdout, 0, _IOLBF, 0);
  alarm(240); /* a deadlock ends */
  for (int at = 1; at < count; at++) step(steps[at]);
  return faults != 0;
}
