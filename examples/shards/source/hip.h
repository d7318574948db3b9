// What HIP host and device code needs of the HIP headers, so that no ROCm is needed to compile it.
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
extern "C" hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, __SIZE_TYPE__ shared = 0, hipStream_t stream = nullptr);
extern "C" hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, __SIZE_TYPE__ *shared, hipStream_t *stream);
extern "C" hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, __SIZE_TYPE__ shared, hipStream_t stream);
extern "C" hipError_t hipGetLastError();

// A line of text in every code object that says which shard, translation unit and arch it was
// compiled for. `used` keeps it through every optimisation; `__amdgcn_processor__` is the
// compiler's own name of the arch, so the tag cannot disagree with the code around it.
#ifdef __HIP_DEVICE_COMPILE__
#define EXAMPLE_TAG(unit) \
  extern "C" __device__ __attribute__((used)) const char example_tag[] = \
      "rockpack-example shard=" SHARD " tu=" unit " arch=" __amdgcn_processor__;
#else
#define EXAMPLE_TAG(unit)
#endif
