// Loaded before libc, this makes one chosen call of a program fail, or does something just before
// it. Only calls on files below FAULT_UNDER count, in the order in which all threads make them.
//
//   FAULT_UNDER    a folder, without a slash at its end
//   FAULT_CALLS    the kinds that count, separated by commas: open create read write sync rename make
//                  remove link mode stat fstat list lock copy; and thread, on no file
//   FAULT_AT       the number of the chosen call, from 1; 0 chooses none
//   FAULT_DO       error:N     the call fails with errno N
//                  errors:N    the call, and all calls of these kinds after it, fail so
//                  short       a read or write does half of what it is asked to
//                  signal:N    the process gets the signal N before the call
//                  ignored:N   the same, in a process that was started to ignore that signal
//                  run:COMMAND a shell runs the command before the call
//                  clock:N     from the chosen reading of the clock on, it is N seconds off
//                  list        nothing: every call that counts is noted
//   FAULT_UNTYPED  if set, folders list names without file types
//   FAULT_LOG      a file: the kind and path of the chosen call, a line each
//   FAULT_COUNT    a file: the number of calls that counted, at the end of the program
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static const char *under, *kinds, *act, *log_file, *count_file, *untyped;
static long at;
static atomic_long counted;
static __thread int inside;

// libc's own function: faults do not strike this library's calls.
static long kernel(long number, ...);

static const char *take(const char *name) {
  const char *value = getenv(name);
  value = value ? strdup(value) : "";
  unsetenv(name);
  return value;
}

__attribute__((constructor)) static void begin(void) {
  under = take("FAULT_UNDER");
  untyped = getenv("FAULT_UNTYPED");
  kinds = take("FAULT_CALLS");
  act = take("FAULT_DO");
  log_file = take("FAULT_LOG");
  count_file = take("FAULT_COUNT");
  at = atol(take("FAULT_AT"));
  // As started from a terminal, even if the tests ignore these signals.
  signal(SIGHUP, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  if (!strncmp(act, "ignored:", 8)) signal(atoi(act + 8), SIG_IGN);
  unsetenv("LD_PRELOAD");
}

static void note(const char *file, const char *text) {
  if (!*file) return;
  int fd = kernel(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) return;
  if (kernel(SYS_write, fd, text, strlen(text)) < 0) abort();
  kernel(SYS_close, fd);
}

__attribute__((destructor)) static void end(void) {
  char text[32];
  snprintf(text, sizeof text, "%ld\n", (long)counted);
  note(count_file, text);
}

static int counts(const char *kind) {
  const char *found = strstr(kinds, kind);
  size_t len = strlen(kind);
  while (found) {
    int starts = found == kinds || found[-1] == ',';
    if (starts && (found[len] == ',' || !found[len])) return 1;
    found = strstr(found + 1, kind);
  }
  return 0;
}

enum { GO_ON = 0, FAIL, HALF };

static void note_call(const char *kind, const char *path) {
  char text[2 * PATH_MAX + 32];
  snprintf(text, sizeof text, "%s %s\n", kind, path);
  note(log_file, text);
}

static int chosen(const char *kind, const char *path) {
  size_t len = strlen(under);
  if (!len || strncmp(path, under, len) || (path[len] && path[len] != '/')) return GO_ON;
  if (!counts(kind)) return GO_ON;
  long number = ++counted;
  if (!strcmp(act, "list")) note_call(kind, path);
  int all = !strncmp(act, "errors:", 7);
  if (!at || number < at || (number > at && !all)) return GO_ON;
  if (number == at) note_call(kind, path);
  if (!strncmp(act, "error", 5)) {
    errno = atoi(strchr(act, ':') + 1);
    return FAIL;
  }
  if (!strcmp(act, "short")) return HALF;
  if (!strncmp(act, "signal:", 7)) kill(getpid(), atoi(act + 7));
  if (!strncmp(act, "ignored:", 8)) kill(getpid(), atoi(act + 8));
  if (!strncmp(act, "run:", 4)) {
    inside = 1;
    if (system(act + 4)) abort();
    inside = 0;
  }
  return GO_ON;
}

// Gets the kernel's path of an open file; 0 if it has none.
static int path_of(int fd, char path[PATH_MAX]) {
  char link[40];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  int saved = errno;
  long len = kernel(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  errno = saved;
  if (len < 0) return 0;
  path[len] = 0;
  return 1;
}

static int on_file(const char *kind, int fd) {
  char path[PATH_MAX];
  return inside || !path_of(fd, path) ? GO_ON : chosen(kind, path);
}

static int on_path(const char *kind, int dir, const char *path) {
  if (inside || !path) return GO_ON;
  if (path[0] == '/') return chosen(kind, path);
  char folder[PATH_MAX], whole[2 * PATH_MAX];
  if (dir == AT_FDCWD || !path_of(dir, folder)) return GO_ON;
  snprintf(whole, sizeof whole, "%s/%s", folder, path);
  return chosen(kind, whole);
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static long kernel(long number, ...) {
  static long (*real)(long, ...);
  if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  va_list more;
  va_start(more, number);
  long all[6];
  for (int n = 0; n < 6; n++) all[n] = va_arg(more, long);
  va_end(more);
  return real(number, all[0], all[1], all[2], all[3], all[4], all[5]);
}

#define ON_PATH(kind, name, dir, path, result, parameters, ...) \
  result name parameters { \
    REAL(name); \
    return on_path(kind, dir, path) == FAIL ? (result)-1 : real(__VA_ARGS__); \
  }
#define ON_FILE(kind, name, fd, result, parameters, ...) \
  result name parameters { \
    REAL(name); \
    return on_file(kind, fd) == FAIL ? (result)-1 : real(__VA_ARGS__); \
  }
#define MOVES(kind, name, buffer, with, more) \
  ssize_t name(int fd, buffer, size_t len with) { \
    REAL(name); \
    int what = on_file(kind, fd); \
    if (what == FAIL) return -1; \
    if (what == HALF && len > 1) len /= 2; \
    return real(fd, data, len more); \
  }

#define COMMA ,
MOVES("read", read, void *data, , )
MOVES("read", pread, void *data, COMMA off_t offset, COMMA offset)
MOVES("read", pread64, void *data, COMMA off64_t offset, COMMA offset)
MOVES("write", write, const void *data, , )
MOVES("write", pwrite, const void *data, COMMA off_t offset, COMMA offset)
MOVES("write", pwrite64, const void *data, COMMA off64_t offset, COMMA offset)

// An anonymous temporary file is created, too.
static const char *kind_of_open(int flags) {
  return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? "create" : "open";
}

#define OPENS(name) \
  int name(const char *path, int flags, ...) { \
    REAL(name); \
    va_list more; \
    va_start(more, flags); \
    mode_t mode = va_arg(more, mode_t); \
    va_end(more); \
    if (on_path(kind_of_open(flags), AT_FDCWD, path) == FAIL) return -1; \
    return real(path, flags, mode); \
  }
#define OPENS_AT(name) \
  int name(int dir, const char *path, int flags, ...) { \
    REAL(name); \
    va_list more; \
    va_start(more, flags); \
    mode_t mode = va_arg(more, mode_t); \
    va_end(more); \
    if (on_path(kind_of_open(flags), dir, path) == FAIL) return -1; \
    return real(dir, path, flags, mode); \
  }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t writev(int fd, const struct iovec *parts, int count) {
  REAL(writev);
  int what = on_file("write", fd);
  if (what == FAIL) return -1;
  return real(fd, parts, what == HALF && count > 1 ? count / 2 : count);
}

ON_FILE("sync", fsync, fd, int, (int fd), fd)
ON_FILE("sync", fdatasync, fd, int, (int fd), fd)
ON_FILE("sync", syncfs, fd, int, (int fd), fd)
ON_FILE("mode", fchmod, fd, int, (int fd, mode_t mode), fd, mode)
ON_PATH("mode", chmod, AT_FDCWD, path, int, (const char *path, mode_t mode), path, mode)
ON_PATH("rename", rename, AT_FDCWD, to, int, (const char *from, const char *to), from, to)
ON_PATH("rename", renameat, b, to, int, (int a, const char *from, int b, const char *to), a, from,
        b, to)
ON_PATH("make", mkdirat, dir, path, int, (int dir, const char *path, mode_t mode), dir, path, mode)
ON_PATH("make", mkdir, AT_FDCWD, path, int, (const char *path, mode_t mode), path, mode)
ON_PATH("remove", unlink, AT_FDCWD, path, int, (const char *path), path)
ON_PATH("remove", rmdir, AT_FDCWD, path, int, (const char *path), path)
ON_PATH("remove", unlinkat, dir, path, int, (int dir, const char *path, int f), dir, path, f)
ON_PATH("link", link, AT_FDCWD, to, int, (const char *from, const char *to), from, to)
ON_PATH("link", linkat, b, to, int, (int a, const char *from, int b, const char *to, int f), a,
        from, b, to, f)
ON_PATH("link", symlink, AT_FDCWD, path, int, (const char *text, const char *path), text, path)
ON_PATH("stat", readlink, AT_FDCWD, path, ssize_t, (const char *path, char *out, size_t len), path,
        out, len)
ON_FILE("lock", flock, fd, int, (int fd, int what), fd, what)
ON_FILE("write", ftruncate64, fd, int, (int fd, off64_t len), fd, len)

ON_FILE("mode", futimens, fd, int, (int fd, const struct timespec times[2]), fd,
        times)
ON_PATH("stat", lgetxattr, AT_FDCWD, path, ssize_t,
        (const char *path, const char *name, void *out, size_t len), path, name, out, len)

ssize_t copy_file_range(int in, off64_t *i, int out, off64_t *o, size_t len, unsigned flags) {
  int what = on_file("copy", out);
  if (what == FAIL) return -1;
  return kernel(SYS_copy_file_range, in, i, out, o, what == HALF && len > 1 ? len / 2 : len, flags);
}

// Some libraries make this system call by its number.
long syscall(long number, ...) {
  va_list more;
  va_start(more, number);
  long all[6];
  for (int n = 0; n < 6; n++) all[n] = va_arg(more, long);
  va_end(more);
  if (number == SYS_copy_file_range)
    return copy_file_range(all[0], (off64_t *)all[1], all[2], (off64_t *)all[3], all[4], all[5]);
  return kernel(number, all[0], all[1], all[2], all[3], all[4], all[5]);
}

// The standard library calls these if statx is missing.
ON_PATH("stat", stat64, AT_FDCWD, path, int, (const char *path, struct stat64 *out), path, out)
ON_PATH("stat", lstat64, AT_FDCWD, path, int, (const char *path, struct stat64 *out), path, out)
ON_PATH("stat", fstatat64, dir, path, int, (int dir, const char *path, struct stat64 *out, int f),
        dir, path, out, f)
ON_FILE("fstat", fstat64, fd, int, (int fd, struct stat64 *out), fd, out)

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *out) {
  REAL(statx);
  int what = *path ? on_path("stat", dir, path) : on_file("fstat", dir);
  return what == FAIL ? -1 : real(dir, path, flags, mask, out);
}

char *realpath(const char *path, char *out) {
  REAL(realpath);
  return on_path("stat", AT_FDCWD, path) == FAIL ? NULL : real(path, out);
}

DIR *opendir(const char *path) {
  REAL(opendir);
  return on_path("list", AT_FDCWD, path) == FAIL ? NULL : real(path);
}

struct dirent64 *readdir64(DIR *dir) {
  REAL(readdir64);
  int saved = errno;
  int what = on_file("list", dirfd(dir));
  if (what == FAIL) return NULL;
  errno = saved;
  struct dirent64 *entry = real(dir);
  if (entry && untyped) entry->d_type = DT_UNKNOWN;
  return entry;
}

int pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *with) {
  REAL(pthread_create);
  return chosen("thread", under) == FAIL ? errno : real(out, how, run, with);
}

int clock_gettime(clockid_t clock, struct timespec *out) {
  REAL(clock_gettime);
  int result = real(clock, out);
  if (clock == CLOCK_REALTIME && at && !strncmp(act, "clock:", 6) && ++counted >= at)
    out->tv_sec += atoll(act + 6);
  return result;
}
