#include "exsaxpy/saxpy.h"
#include "hip.h"

static constexpr unsigned block = 256;

__global__ void saxpy(unsigned count, float a, const float *x, float *y) {
  unsigned i = __builtin_amdgcn_workgroup_id_x() * block + __builtin_amdgcn_workitem_id_x();
  if (i < count) y[i] += a * x[i];
}

extern "C" int exsaxpy(unsigned count, float a, const float *x, float *y) {
  saxpy<<<dim3((count + block - 1) / block), dim3(block)>>>(count, a, x, y);
  return hipGetLastError();
}
