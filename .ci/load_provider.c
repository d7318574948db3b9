/* Loads the ROCm provider of ONNX Runtime that is named on the command line, as load.c does. It has to be loaded by the
 * core, which lies beside it and asks for an executable stack. While it is loaded, it wants the properties of a GPU.
 * Afterwards it needs the GPU, and throws an exception that nothing catches. */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hipGetDevicePropertiesR0600(void *properties, int device) { return properties ? 0 : device; }

static sigjmp_buf loaded;

static void leave(int signal) { siglongjmp(loaded, signal); }

int main(int count, char **arguments) {
  char core[4096];
  if (count != 2) return 1;
  snprintf(core, sizeof core, "%.*s/libonnxruntime.so.1.22.2", (int)(strrchr(arguments[1], '/') - arguments[1]), arguments[1]);
  void *library = dlopen(core, RTLD_NOW);
  if (!library) return puts(dlerror()), 2;
  void *(*append)(void *, int) = dlsym(library, "OrtSessionOptionsAppendExecutionProvider_ROCM");
  signal(SIGABRT, leave);
  if (!sigsetjmp(loaded, 1)) append(calloc(1, 1 << 16), 0);
  if (dlopen(arguments[1], RTLD_NOW)) printf("ok %s\n", arguments[1]);
  else printf("failed %s\n", dlerror());
  return 0;
}
