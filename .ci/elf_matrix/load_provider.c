/*
 * Has ONNX Runtime of the wheel load its provider for ROCm: the library needs its real host, which it
 * asks for before it registers anything. The provider is that of the working directory, where
 * libonnxruntime.so.1 must be, too.
 */
#include <dlfcn.h>
#include <stdio.h>

/* From onnxruntime_c_api.h, whose table of functions only ever grows at its end. */
enum { VERSION = 22, GET_ERROR_MESSAGE = 2, CREATE_ENV = 3, CREATE_SESSION_OPTIONS = 10, LOG_WARNINGS = 2 };
typedef void function(void);
struct base {
  function *const *(*api)(unsigned);
  const char *(*version)(void);
};

static void *failed(function *const *api, void *status) {
  if (status) printf("failed: %s\n", ((const char *(*)(void *))api[GET_ERROR_MESSAGE])(status));
  return status;
}

int main(void) {
  setvbuf(stdout, 0, _IONBF, 0);
  void *runtime = dlopen("./libonnxruntime.so.1", RTLD_NOW);
  if (!runtime) {
    printf("dlopen failed: %s\n", dlerror());
    return 1;
  }
  const struct base *base = ((const struct base *(*)(void))dlsym(runtime, "OrtGetApiBase"))();
  function *const *api = base->api(VERSION);
  void *environment = 0, *options = 0;
  void *(*append)(void *, int) = (void *(*)(void *, int))dlsym(runtime, "OrtSessionOptionsAppendExecutionProvider_ROCM");
  if (failed(api, ((void *(*)(int, const char *, void **))api[CREATE_ENV])(LOG_WARNINGS, "load", &environment))
      || failed(api, ((void *(*)(void **))api[CREATE_SESSION_OPTIONS])(&options)) || failed(api, append(options, 0)))
    return 1;
  printf("ONNX Runtime %s has the provider\n", base->version());
  return 0;
}
