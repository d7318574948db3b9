// What hip/hip_runtime.h would declare of what this project uses, so that it compiles without ROCm.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
struct dim3 {
  unsigned x, y, z;
  constexpr __host__ __device__ dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
using hipError_t = int;
using hipStream_t = struct ihipStream_t *;
extern "C" {
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, __SIZE_TYPE__ shared = 0, hipStream_t stream = nullptr);
hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, __SIZE_TYPE__ *shared, hipStream_t *stream);
hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, __SIZE_TYPE__ shared, hipStream_t stream);
hipError_t hipGetLastError();
}
