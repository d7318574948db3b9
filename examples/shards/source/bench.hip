// A program with a kernel of its own that also calls the library's.
#include "hip.h"
EXAMPLE_TAG(UNIT)

extern "C" int printf(const char *format, ...);
extern "C" int exblas_axpy(int n, float a, const float *x, float *y);

__global__ void fill_kernel(float *x, float value) { x[__builtin_amdgcn_workitem_id_x()] = value; }

static float x[256], y[256];

int main() {
  fill_kernel<<<1, 256>>>(x, 1.0f);
  int error = hipGetLastError();
  if (error == 0)
    error = exblas_axpy(256, 2.0f, x, y);
  printf("%s: %s\n", UNIT, error == 0 ? "done" : "failed");
  return error != 0;
}
