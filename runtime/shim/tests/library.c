/* A library, or with PROGRAM a program, with wrappers that it registers as code that clang makes does, but with
 * the shim: in a constructor, and until a handler of `atexit`.
 *
 *   MARKER          a file; its bytes, MARKER_SIZE of them, are directly before memory that cannot be read
 *   WRAPPERS        by default two wrappers with that marker
 *   ONLY_WRAPPERS   no other function of the HIP runtime is imported */
#include <stdint.h>
#include <stdlib.h>

#define HIPK 0x4b504948
#define HIPF 0x48495046

struct wrapper {
  uint32_t magic, version;
  const void *data;
  uint64_t index;
};

void **rocm_kpack_register_fat_binary(const void *wrapper);
void rocm_kpack_unregister_fat_binary(void **handle);
void __hipRegisterFunction(void **handle, const void *function, const char *name);

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)
/* The linker puts the two sections at addresses far apart, and the loader lets nobody read what is between. */
__asm__(".pushsection .rocm_kpack_ref, \"a\"\n.balign 4096\n.zero 4096 - " TEXT(MARKER_SIZE) "\n"
        ".globl marker\n.hidden marker\nmarker: .incbin \"" MARKER "\"\n.popsection\n"
        ".pushsection .beyond, \"a\"\n.zero 8\n.popsection\n");
extern const char marker[] __attribute__((visibility("hidden")));

/* An ordinary bundle. */
static const struct __attribute__((packed, aligned(4096), unused)) {
  char magic[24];
  uint64_t count, host[3];
  char host_id[27];
  uint64_t code[3];
  char id[31], room[4096 - 24 - 8 - 24 - 27 - 24 - 31], content[16];
} bundle = {
    "__CLANG_OFFLOAD_BUNDLE__", 2, {4096, 0, 27}, "host-x86_64-unknown-linux--", {4096, 16, 31},
    "hipv4-amdgcn-amd-amdhsa--gfx900", "", "own device code"};

#ifndef WRAPPERS
#define WRAPPERS {HIPK, 1, marker, 0}, {HIPK, 1, marker, 1}
#endif
__attribute__((section(".hipFatBinSegment"))) static struct wrapper wrappers[] = {WRAPPERS};
#define COUNT (sizeof wrappers / sizeof *wrappers)
static void **handles[COUNT];

static void unregister(void) {
  for (unsigned at = 0; at < COUNT; at++) rocm_kpack_unregister_fat_binary(handles[at]);
}

__attribute__((constructor)) static void register_all(void) {
  for (unsigned at = 0; at < COUNT; at++) {
    handles[at] = rocm_kpack_register_fat_binary(&wrappers[at]);
#ifndef ONLY_WRAPPERS
    __hipRegisterFunction(handles[at], wrappers, "kernel");
#endif
  }
  atexit(unregister);
}

/* Registers the first wrapper once more, and unregisters it. */
int again(void) {
  void **handle = rocm_kpack_register_fat_binary(&wrappers[0]);
  if (!handle) return 1;
  rocm_kpack_unregister_fat_binary(handle);
  return 0;
}

#ifdef PROGRAM
int main(void) { return 0; }
#endif
