/* Loads each library named on the command line, every symbol bound at once, and unloads them in
 * reverse when it ends. Exit status 1 if one does not load. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
  int failed = 0;
  for (int i = 1; i < count; i++) {
    void *library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
    if (library) printf("ok %s\n", arguments[i]);
    else printf("failed %s\n", dlerror());
    fflush(stdout);
    failed |= !library;
  }
  return failed;
}
