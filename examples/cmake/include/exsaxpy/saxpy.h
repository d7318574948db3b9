#pragma once
#ifdef __cplusplus
extern "C" {
#endif

/* Starts y = a * x + y for `count` values in GPU memory; returns the HIP runtime's error, 0 for none. */
int exsaxpy(unsigned count, float a, const float *x, float *y);

#ifdef __cplusplus
}
#endif
