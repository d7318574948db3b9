/* Writes the code object of an entry of an offload bundle that AMD's comgr finds: comgr FILE ENTRY. The HIP runtime has
 * comgr open files for hipModuleLoad in this way, and trusts the size in the header of a compressed bundle. It cannot
 * be asked itself: without a GPU, hipModuleLoad returns hipErrorNoDevice before it opens the file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in amd_comgr.h of comgr 3.3. */
typedef struct { uint64_t handle; } Handle;
enum { KIND_EXECUTABLE = 0x8, KIND_OBJECT_BUNDLE = 0x14, ACTION_UNBUNDLE = 0xf };
int amd_comgr_create_data(int kind, Handle *data);
int amd_comgr_set_data(Handle data, size_t size, const char *bytes);
int amd_comgr_set_data_name(Handle data, const char *name);
int amd_comgr_get_data(Handle data, size_t *size, char *bytes);
int amd_comgr_create_data_set(Handle *set);
int amd_comgr_data_set_add(Handle set, Handle data);
int amd_comgr_create_action_info(Handle *info);
int amd_comgr_action_info_set_bundle_entry_ids(Handle info, const char *entries[], size_t count);
int amd_comgr_do_action(int action, Handle info, Handle input, Handle result);
int amd_comgr_action_data_get_data(Handle set, int kind, size_t index, Handle *data);

static void check(int status, const char *call) {
  if (!status) return;
  fprintf(stderr, "%s: status %d\n", call, status);
  exit(1);
}
#define CHECK(call) check(call, #call)

static char bytes[1 << 24];

int main(int count, char **arguments) {
  FILE *file = count == 3 ? fopen(arguments[1], "rb") : NULL;
  if (!file) return 2;
  size_t size = fread(bytes, 1, sizeof bytes, file);
  uint32_t total;
  memcpy(&total, bytes + 8, sizeof total);
  if (!memcmp(bytes, "CCOB", 4)) size = total;

  Handle bundle, input, result, info, code;
  const char *entries[] = {arguments[2]};
  CHECK(amd_comgr_create_data(KIND_OBJECT_BUNDLE, &bundle));
  CHECK(amd_comgr_set_data(bundle, size, bytes));
  CHECK(amd_comgr_set_data_name(bundle, "bundle"));
  CHECK(amd_comgr_create_data_set(&input));
  CHECK(amd_comgr_data_set_add(input, bundle));
  CHECK(amd_comgr_create_data_set(&result));
  CHECK(amd_comgr_create_action_info(&info));
  CHECK(amd_comgr_action_info_set_bundle_entry_ids(info, entries, 1));
  CHECK(amd_comgr_do_action(ACTION_UNBUNDLE, info, input, result));
  CHECK(amd_comgr_action_data_get_data(result, KIND_EXECUTABLE, 0, &code));
  CHECK(amd_comgr_get_data(code, &size, NULL));
  if (size > sizeof bytes) return 2;
  CHECK(amd_comgr_get_data(code, &size, bytes));
  return fwrite(bytes, 1, size, stdout) == size ? 0 : 2;
}
