#include "exsaxpy/saxpy.h"

// No values, and so no memory of a GPU: it starts if the library loads.
int main() { return exsaxpy(0, 1.0f, nullptr, nullptr); }
