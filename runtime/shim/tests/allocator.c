/* An allocator for LD_PRELOAD, as those of profilers that record who allocates: whoever holds its lock asks for the
 * loaded objects. It begins with that once all libraries of the program are there. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int is_inside __attribute__((tls_model("initial-exec")));
static int has_begun;

static int look(struct dl_phdr_info *info, size_t size, void *data) {
  (void)info, (void)size, (void)data;
  return 0;
}

void *malloc(size_t size) {
  if (has_begun && !is_inside) {
    is_inside = 1;
    pthread_mutex_lock(&lock);
    dl_iterate_phdr(look, 0);
    pthread_mutex_unlock(&lock);
    is_inside = 0;
  }
  return __libc_malloc(size);
}

__attribute__((constructor)) static void begin(void) { has_begun = 1; }
