/* Generates tokens with the decoder of examples/networks/write_networks.py, greedily, from a library of graft:
 *
 *   graft compile runs/decoder --name decoder --weights file --out decoder
 *   cc -O2 -I decoder examples/networks/language/generate.c decoder/libdecoder.a -o generate
 *   ./generate decoder/decoder.weights 64 3 1 4 1 5       64 tokens after these
 *
 * Tokens are numbers. The caches are read and written in one place (decoder.h says which output may be the memory of
 * which input), so that a step appends to them and copies nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder.h"

enum { layers = 4, groups = 2, size = 64, words = 8192, room = 256, most = 64 };

static float caches[2 * layers][groups * room * size] __attribute__((aligned(64)));
static float logits[most * words] __attribute__((aligned(64)));
static int64_t ids[most] __attribute__((aligned(64))), mask[room] __attribute__((aligned(64)));
static void *weights, *arena;

/* Aligned to 64 bytes, as graft wants memory. */
static void* memory(size_t bytes) {
  void* const found = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (found == NULL) exit(1);
  return found;
}

/* The token after `count` tokens, which take the places from `begin` on. */
static int64_t step(const int64_t* tokens, int64_t begin, int64_t count) {
  int64_t length = count, best = 0;
  if (decoder_fit(&length) != 0) exit(1);
  memset(ids, 0, sizeof ids); /* what follows the tokens is computed and not used: later tokens take its places */
  memcpy(ids, tokens, (size_t)count * sizeof *ids);
  for (int64_t place = 0; place < room; ++place) mask[place] = place < begin + count;
  decoder_run(length, ids, mask, caches[0], caches[1], caches[2], caches[3], caches[4], caches[5], caches[6], caches[7],
              logits, caches[0], caches[1], caches[2], caches[3], caches[4], caches[5], caches[6], caches[7], weights,
              arena, NULL, NULL);
  const float* const last = logits + (count - 1) * words;
  for (int64_t word = 1; word < words; ++word)
    if (last[word] > last[best]) best = word;
  return best;
}

int main(int argc, char** argv) {
  int64_t tokens[room], count = 0, next = 0;
  if (argc < 4 || argc - 3 > room) {
    fprintf(stderr, "usage: %s WEIGHTS HOW_MANY TOKEN...\n", argv[0]);
    return 2;
  }
  FILE* const file = fopen(argv[1], "rb");
  weights = memory(DECODER_WEIGHTS_BYTES);
  arena = memory(DECODER_ARENA_BYTES);
  if (file == NULL || fread(weights, 1, DECODER_WEIGHTS_BYTES, file) != DECODER_WEIGHTS_BYTES) {
    fprintf(stderr, "%s: is not the weights of this decoder\n", argv[1]);
    return 1;
  }
  fclose(file);
  for (int a = 3; a < argc; ++a) tokens[count++] = atoll(argv[a]);
  for (int64_t begin = 0; begin < count; begin += most) {
    /* The last part may repeat some tokens: it gives them the same places. */
    const int64_t from = begin + most <= count ? begin : count > most ? count - most : 0;
    next = step(tokens + from, from, count - from < most ? count - from : most);
  }
  for (int left = atoi(argv[2]);; --left) {
    printf("%lld%s", (long long)next, left > 1 ? " " : "\n");
    if (left <= 1 || count == room) return 0;
    tokens[count++] = next;
    next = step(&tokens[count - 1], count - 1, 1);
  }
}
