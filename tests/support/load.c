/* Loads a library and calls what it exports, so that its data, TLS and zeroed memory are used. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
  setvbuf(stdout, 0, _IONBF, 0);
  void *library = dlopen(arguments[1], RTLD_NOW);
  if (!library) {
    printf("dlopen failed: %s\n", dlerror());
    return 1;
  }
  int (*launch)(void *) = (int (*)(void *))dlsym(library, "first_launch");
  int (*state)(int) = (int (*)(int))dlsym(library, "first_state");
  if (launch) printf("launch=%d\n", launch(0));
  if (state) printf("state=%d\n", state(1));
  return dlclose(library);
}
