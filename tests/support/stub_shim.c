/* A stand-in for librocm_kpack_shim that passes everything on, so that the stand-in for the HIP runtime prints it. */
void **__hipRegisterFatBinary(const void *wrapper);
void __hipUnregisterFatBinary(void **handle);

void **rocm_kpack_register_fat_binary(const void *wrapper) { return __hipRegisterFatBinary(wrapper); }
void rocm_kpack_unregister_fat_binary(void **handle) { __hipUnregisterFatBinary(handle); }
