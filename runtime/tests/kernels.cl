// kernels.co: clang -x cl -cl-std=CL2.0 -O1 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib \
//     -Xclang -finclude-default-header kernels.cl -o kernels.co   (clang 19)
__kernel void first(__global int *x) { *x = 1; }
__kernel void second(__global int *x) { *x = 2; }
