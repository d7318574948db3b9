// libexcblas: a host-only library on top of libexblas.
int exblas_axpy(int n, float a, const float *x, float *y);
int exblas_gemm(int n, const double *a, const double *b, double *c);

int excblas_saxpy(int n, float a, const float *x, float *y) { return exblas_axpy(n, a, x, y); }
int excblas_dgemm(int n, const double *a, const double *b, double *c) { return exblas_gemm(n, a, b, c); }
