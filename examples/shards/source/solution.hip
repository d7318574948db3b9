// The device code of the kernel database: what a Tensile-like library loads by file name.
#include "hip.h"
EXAMPLE_TAG(UNIT)

extern "C" __global__ void SOLUTION(int n, const float *a, float *d) {
  int i = __builtin_amdgcn_workitem_id_x();
  if (i < n)
    d[i] = a[i] * FACTOR;
}
