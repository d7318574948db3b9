// libexblas, second translation unit: its bundle is compressed.
#include "hip.h"
EXAMPLE_TAG("gemm")

__global__ void exblas_gemm_kernel(int n, const double *a, const double *b, double *c) {
  int row = __builtin_amdgcn_workgroup_id_x();
  int column = __builtin_amdgcn_workitem_id_x();
  double sum = 0;
  for (int k = 0; k < n; k++)
    sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

extern "C" int exblas_gemm(int n, const double *a, const double *b, double *c) {
  exblas_gemm_kernel<<<n, n>>>(n, a, b, c);
  return hipGetLastError();
}
