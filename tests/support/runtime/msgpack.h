/* MessagePack, read by hand from a bounded range: what markers and archive tables of contents
 * need. A cursor that has met anything unexpected is `bad` and stays so. */
#pragma once
#include <stdint.h>
#include <string.h>

struct cursor {
  const unsigned char *at, *end;
  int bad;
};

struct text {
  const char *at;
  uint32_t length;
};

static uint64_t big_endian(struct cursor *c, unsigned bytes) {
  uint64_t value = 0;
  if (c->bad || (uint64_t)(c->end - c->at) < bytes) {
    c->bad = 1;
    return 0;
  }
  while (bytes--)
    value = value << 8 | *c->at++;
  return value;
}

/* The head of a value: its kind and its number (value, length or count). */
enum kind { NUMBER, NEGATIVE, TEXT, BINARY, ARRAY, MAP, OTHER };

static enum kind head(struct cursor *c, uint64_t *number) {
  unsigned byte = (unsigned)big_endian(c, 1);
  *number = 0;
  if (c->bad) return OTHER;
  if (byte < 0x80) return *number = byte, NUMBER;
  if (byte < 0x90) return *number = byte & 0x0f, MAP;
  if (byte < 0xa0) return *number = byte & 0x0f, ARRAY;
  if (byte < 0xc0) return *number = byte & 0x1f, TEXT;
  if (byte >= 0xe0) return NEGATIVE;
  switch (byte) {
  case 0xc0: case 0xc2: case 0xc3: return OTHER;
  case 0xc4: case 0xc5: case 0xc6: return *number = big_endian(c, 1u << (byte - 0xc4)), BINARY;
  case 0xca: big_endian(c, 4); return OTHER;
  case 0xcb: big_endian(c, 8); return OTHER;
  case 0xcc: case 0xcd: case 0xce: case 0xcf: return *number = big_endian(c, 1u << (byte - 0xcc)), NUMBER;
  case 0xd0: case 0xd1: case 0xd2: case 0xd3: big_endian(c, 1u << (byte - 0xd0)); return NEGATIVE;
  case 0xd9: case 0xda: case 0xdb: return *number = big_endian(c, 1u << (byte - 0xd9)), TEXT;
  case 0xdc: case 0xdd: return *number = big_endian(c, 2u << (byte - 0xdc)), ARRAY;
  case 0xde: case 0xdf: return *number = big_endian(c, 2u << (byte - 0xde)), MAP;
  }
  c->bad = 1; /* 0xc1 and the extension types */
  return OTHER;
}

static void advance(struct cursor *c, uint64_t bytes) {
  if (c->bad || (uint64_t)(c->end - c->at) < bytes) c->bad = 1;
  else c->at += bytes;
}

static void skip(struct cursor *c, unsigned depth) {
  uint64_t number;
  enum kind kind = head(c, &number);
  if (depth == 0) c->bad = 1;
  if (kind == TEXT || kind == BINARY) advance(c, number);
  if (kind == MAP) number *= 2;
  if (kind == MAP || kind == ARRAY)
    while (number-- && !c->bad)
      skip(c, depth - 1);
}

#define MAXIMUM_DEPTH 32 /* the deepest format read here has five levels */

static uint64_t count_of(struct cursor *c, enum kind wanted) {
  uint64_t number;
  if (head(c, &number) != wanted) c->bad = 1;
  return c->bad ? 0 : number;
}

static struct text text_of(struct cursor *c) {
  struct text text = {"", 0};
  uint64_t length = count_of(c, TEXT);
  const unsigned char *at = c->at;
  advance(c, length);
  if (!c->bad) text = (struct text){(const char *)at, (uint32_t)length};
  return text;
}

static int equals(struct text text, const char *with) {
  return text.length == strlen(with) && memcmp(text.at, with, text.length) == 0;
}

/* The value of `key` in the map at `c`; bad where there is none. */
static struct cursor member(struct cursor c, const char *key) {
  uint64_t pairs = count_of(&c, MAP);
  while (pairs-- && !c.bad) {
    if (equals(text_of(&c), key) && !c.bad) return c;
    skip(&c, MAXIMUM_DEPTH);
  }
  c.bad = 1;
  return c;
}

static uint64_t number_member(struct cursor map, const char *key, int *bad) {
  struct cursor c = member(map, key);
  uint64_t number = count_of(&c, NUMBER);
  *bad |= c.bad;
  return number;
}
