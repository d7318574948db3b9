/*
 * A stand-in for libamdhip64 that prints what is registered: for every fat binary wrapper its
 * address and the pointer's target relative to the load address of the object that holds it, its
 * magic and its index, the name of that object, and the marker as MessagePack decodes it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct wrapper {
  uint32_t magic, version;
  const unsigned char *target;
  uint64_t reserved;
};

static const unsigned char *text(const unsigned char *at, const char *label) {
  unsigned length;
  if ((*at & 0xe0) == 0xa0) length = *at++ & 0x1f;
  else if (*at == 0xd9) length = at[1], at += 2;
  else if (*at == 0xda) length = at[1] << 8 | at[2], at += 3;
  else { printf(" %s?%02x", label, *at); return at; }
  printf(" %s%.*s", label, (int)length, (const char *)at);
  return at + length;
}

static void marker(const unsigned char *at) {
  if (*at++ != 0x82) { printf(" marker=broken"); return; }
  at = text(at, "");
  at = text(at, "=");
  at = text(at, "");
  unsigned count = *at++ & 0x0f;
  for (unsigned i = 0; i < count; i++) at = text(at, "=");
}

void **__hipRegisterFatBinary(const struct wrapper *wrapper) {
  Dl_info info;
  struct link_map *map = 0;
  dladdr1(wrapper, &info, (void **)&map, RTLD_DL_LINKMAP);
  uintptr_t base = map ? map->l_addr : 0;
  const char *object = map && *map->l_name ? map->l_name : "-"; /* the program has no name */
  const char *slash = strrchr(object, '/');
  printf("register object=%s wrapper=%#lx magic=%08x version=%u target=%#lx reserved=%#lx",
         slash ? slash + 1 : object, (unsigned long)((uintptr_t)wrapper - base), wrapper->magic, wrapper->version,
         (unsigned long)((uintptr_t)wrapper->target - base), (unsigned long)wrapper->reserved);
  if (wrapper->magic == 0x4b504948) marker(wrapper->target);
  else printf(" bundle=%.4s", (const char *)wrapper->target);
  printf("\n");
  return (void **)wrapper;
}

void __hipUnregisterFatBinary(void **handle) {}
void __hipRegisterFunction(void **modules, const void *f, char *device, const char *name, int limit,
                           void *tid, void *bid, void *block, void *grid, int *size) {
  printf("function %s\n", name);
}
void __hipRegisterVar(void **modules, void *v, char *host, char *name, int e, int s, int c, int g) {}
void __hipRegisterManagedVar(void *m, void **p, void *init, const char *n, size_t s, unsigned a) {}
void __hipRegisterSurface(void **m, void *v, char *h, char *n, int t, int e) {}
void __hipRegisterTexture(void **m, void *v, char *h, char *n, int t, int r, int e) {}
int __hipPushCallConfiguration() { return 0; }
int __hipPopCallConfiguration() { return 0; }
int hipLaunchKernel() { return 0; }
