// libexblas, first translation unit: also compiled for gfx906, the compiler's fallback.
#include "hip.h"
EXAMPLE_TAG("axpy")

__global__ void exblas_axpy_kernel(int n, float a, const float *x, float *y) {
  int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  if (i < n)
    y[i] += a * x[i];
}

__global__ void exblas_scal_kernel(int n, float a, float *x) {
  int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  if (i < n)
    x[i] *= a;
}

extern "C" int exblas_axpy(int n, float a, const float *x, float *y) {
  exblas_axpy_kernel<<<(n + 255) / 256, 256>>>(n, a, x, y);
  return hipGetLastError();
}

extern "C" int exblas_scal(int n, float a, float *x) {
  exblas_scal_kernel<<<(n + 255) / 256, 256>>>(n, a, x);
  return hipGetLastError();
}
