/* A plug-in for qemu-user 7.2 and its like: what one function of the guest really does. Exact numbers of executed
 * instructions and data accesses per call, and the lines that a first cache would miss of them; the checker of
 * core_timing (codegen) and of modelled/caches. Not a source of times.
 *
 *   qemu-riscv64 -plugin libgraft_counters.so,function=NAME,out=FILE[,bytes=B,ways=W,line=L][,trace=FILE]
 *                                            [,move=FROM:BYTES:TO]... PROGRAM
 *
 * `function`: a symbol of the guest program. `out`: a JSON line for each of its calls. The cache (32768 bytes, 8 ways,
 * lines of 64 bytes unless said otherwise) replaces the least recently used line, allocates on writes, and is kept from
 * call to call. `trace`: each access as "L|S bytes address". `move`: the BYTES from FROM on count as if they lay at TO
 * (hexadecimal all three), to compare with another layout of memory.
 *
 * The declarations below are those of version 1 of the interface that qemu exports to its plug-ins. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;
enum { inline_add = 0, no_registers = 0, reads_and_writes = 3 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn* instruction);
const char* qemu_plugin_insn_symbol(const struct qemu_plugin_insn* instruction);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*call)(qemu_plugin_id_t id, struct qemu_plugin_tb* block));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* instruction,
                                            void (*call)(unsigned cpu, void* data), int registers, void* data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn* instruction, int operation, void* place,
                                                uint64_t number);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn* instruction,
                                      void (*call)(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address,
                                                   void* data),
                                      int registers, int direction, void* data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*call)(qemu_plugin_id_t id, void* data), void* data);

EXPORTED int qemu_plugin_version = 1;
EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t* info, int count, char** words);

static char function[256];
static FILE* out;
static FILE* trace;

/* All that is counted, since the start of the guest. */
struct Counts {
  uint64_t instructions, loads, stores, misses;
};
static struct Counts counts, at_entry;
static uint64_t calls;
static uint64_t entry; /* address of the function; 0: not seen yet */

struct Move {
  uint64_t from, bytes, to;
};
enum { most_moves = 32 };
static struct Move moves[most_moves];
static int move_count;

static uint64_t cache_bytes = 32768, ways = 8, line_bytes = 64, sets;
static uint64_t* lines; /* set by set, the most recently used first; address / line_bytes + 1, 0: none */

static void touch(uint64_t line) {
  uint64_t* set = lines + line % sets * ways;
  const uint64_t key = line + 1;
  uint64_t way = 0;
  while (way + 1 < ways && set[way] != key) ++way;
  counts.misses += set[way] != key;
  memmove(set + 1, set, way * sizeof *set);
  set[0] = key;
}

static uint64_t moved(uint64_t address) {
  for (int i = 0; i < move_count; ++i)
    if (address - moves[i].from < moves[i].bytes) return address - moves[i].from + moves[i].to;
  return address;
}

static void accessed(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void* data) {
  (void)cpu, (void)data;
  const uint64_t bytes = UINT64_C(1) << qemu_plugin_mem_size_shift(info);
  const bool store = qemu_plugin_mem_is_store(info);
  if (store)
    ++counts.stores;
  else
    ++counts.loads;
  const uint64_t first = moved(address);
  touch(first / line_bytes);
  if ((first + bytes - 1) / line_bytes != first / line_bytes) touch((first + bytes - 1) / line_bytes);
  if (trace) fprintf(trace, "%c %" PRIu64 " %" PRIx64 "\n", store ? 'S' : 'L', bytes, address);
}

static void report_call(void) {
  fprintf(out,
          "{\"call\":%" PRIu64 ",\"instructions\":%" PRIu64 ",\"loads\":%" PRIu64 ",\"stores\":%" PRIu64
          ",\"misses\":%" PRIu64 "}\n",
          calls, counts.instructions - at_entry.instructions, counts.loads - at_entry.loads,
          counts.stores - at_entry.stores, counts.misses - at_entry.misses);
}

static void entered(unsigned cpu, void* data) {
  (void)cpu, (void)data;
  if (calls > 0) report_call();
  ++calls;
  at_entry = counts;
  ++counts.instructions; /* the one at hand; all others are counted inline */
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  const size_t count = qemu_plugin_tb_n_insns(block);
  for (size_t i = 0; i < count; ++i) {
    struct qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, i);
    const char* symbol = qemu_plugin_insn_symbol(instruction);
    if (!symbol || strcmp(symbol, function) != 0) continue;
    const uint64_t address = qemu_plugin_insn_vaddr(instruction);
    if (entry == 0) entry = address; /* what is translated first runs first */
    if (address == entry)
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, entered, no_registers, NULL);
    else
      qemu_plugin_register_vcpu_insn_exec_inline(instruction, inline_add, &counts.instructions, 1);
    qemu_plugin_register_vcpu_mem_cb(instruction, accessed, no_registers, reads_and_writes, NULL);
  }
}

static void finished(qemu_plugin_id_t id, void* data) {
  (void)id, (void)data;
  if (calls > 0) report_call();
  fclose(out);
  if (trace) fclose(trace);
}

static const char* value_of(const char* word, const char* key) {
  const size_t length = strlen(key);
  return strncmp(word, key, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static bool read_word(const char* word) {
  const char* value;
  if ((value = value_of(word, "function"))) {
    const int length = snprintf(function, sizeof function, "%s", value);
    return length > 0 && (size_t)length < sizeof function;
  }
  if ((value = value_of(word, "out"))) return (out = fopen(value, "w")) != NULL;
  if ((value = value_of(word, "trace"))) return (trace = fopen(value, "w")) != NULL;
  if ((value = value_of(word, "bytes"))) return (cache_bytes = strtoull(value, NULL, 10)) > 0;
  if ((value = value_of(word, "ways"))) return (ways = strtoull(value, NULL, 10)) > 0;
  if ((value = value_of(word, "line"))) return (line_bytes = strtoull(value, NULL, 10)) > 0;
  if ((value = value_of(word, "move")) && move_count < most_moves) {
    struct Move* move = &moves[move_count++];
    return sscanf(value, "%" SCNx64 ":%" SCNx64 ":%" SCNx64, &move->from, &move->bytes, &move->to) == 3;
  }
  return false;
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t* info, int count, char** words) {
  (void)info;
  for (int i = 0; i < count; ++i) {
    if (read_word(words[i])) continue;
    fprintf(stderr, "graft_counters: cannot use '%s'\n", words[i]);
    return 1;
  }
  sets = cache_bytes / ways / line_bytes;
  if (!function[0] || !out || sets == 0) {
    fprintf(stderr, "graft_counters: needs function=NAME, out=FILE and a cache of at least ways * line bytes\n");
    return 1;
  }
  lines = calloc(sets * ways, sizeof *lines);
  if (!lines) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, finished, NULL);
  return 0;
}
