// libexsuitesparse: a library that has nothing to do with GPUs.
int exsuitesparse_nonzeros(int n, const double *values) {
  int count = 0;
  for (int i = 0; i < n; i++)
    count += values[i] != 0;
  return count;
}
