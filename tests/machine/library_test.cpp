// Libraries as C programs see them: the header, what is defined, right results, the fastest variant, kernels by shape.
#include "codegen/machine/library.h"

#include <cstdint>
#include <set>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/space.h"
#include "tests/base/support.h"
#include "tests/machine/support.h"
#include "tests/support/judged_space.h"
#include "tests/support/refusal.h"

namespace graft::codegen {
namespace {

using test::expect_right;
using test::parsed;

Target host(std::int64_t threads = 1) {
  Target target = host_target();
  target.threads = threads;
  return target;
}

LibraryVariant variant(const LoopProgram& program, const Target& target, const std::string& symbol) {
  auto object = compile(program, target, search_pipeline(target), symbol);
  EXPECT_TRUE(object) << object.reason().text;
  return {std::move(object).value(), {{"drawn at random */ and so on"}, "O3", 1e-6, "host", ""}};
}

// Schedules drawn from the space of a workload.
LibraryFunction function_of(const std::string& workload, const std::string& name, int variants, const Target& target) {
  LibraryFunction function{name, parse_workload(workload), {}};
  const JudgedSpace space = judged_space(function.workload, target);
  base::Stream stream(7, name);
  for (int v = 0; v < variants; ++v)
    function.variants.push_back(
        variant(*program(space.sample(stream), target), target, "small_" + name + std::to_string(v)));
  return function;
}

Library small(int variants = 1, const Target& target = host()) {
  Library library{"small", {{"this host", target}}, "1.2.3", {}};
  library.functions.push_back(function_of("matmul(m=24,n=32,k=16)", "mm", variants, target));
  library.functions.push_back(function_of("matmul(m=8,n=8,k=8)", "mm8", 1, target));
  library.functions.push_back(function_of("conv2d(c=8,h=10,w=10,k=16,r=3,s=3,pad=1)", "cv", variants, target));
  return library;
}

void write(const std::map<std::string, std::string>& files, const base::Folder& folder) {
  for (const auto& [name, content] : files) base::replace_file(folder / name, content);
}

base::Finished run(const std::vector<std::string>& command) {
  base::Finished finished = base::run_process(command, std::chrono::minutes(2));
  EXPECT_EQ(finished.exit_code, 0) << command[0] << ": " << finished.out << finished.err;
  return finished;
}

// A program that uses the library `small`, and checks what it gives.
const char* const user = R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "small.h"

/* Functions take no memory of 0 bytes; kernels share the scratch. */
#if SMALL_MM_SCRATCH_BYTES
#define MM_MEMORY , scratch
#else
#define MM_MEMORY
#endif
#if SMALL_CV_SCRATCH_BYTES
#define CV_SCRATCH , scratch
#else
#define CV_SCRATCH
#endif
#if SMALL_CV_PREPARE_SCRATCH_BYTES
#define CV_PREPARE_SCRATCH , scratch
#else
#define CV_PREPARE_SCRATCH
#endif
#if SMALL_CV_PREPARED_BYTES
#define CV_MEMORY , prepared CV_SCRATCH
#else
#define CV_MEMORY CV_SCRATCH
#endif

static float* floats(long long count) {
  float* const all = (float*)aligned_alloc(64, (size_t)((4 * count + 127) / 64 * 64));
  long long i;
  for (i = 0; i < count; ++i) all[i] = (float)(i * 7 % 11 - 5);
  return all;
}

int main(void) {
  float *a = floats(24 * 16), *b = floats(16 * 32), *c = floats(24 * 32);
  float *x = floats(8 * 10 * 10), *w = floats(16 * 8 * 9), *y = floats(16 * 10 * 10);
  const long long scratch_bytes = SMALL_MM_SCRATCH_BYTES + SMALL_CV_SCRATCH_BYTES + SMALL_CV_PREPARE_SCRATCH_BYTES;
  void *scratch = floats(scratch_bytes / 4), *prepared = floats(SMALL_CV_PREPARED_BYTES / 4);
  int wrong = 0, i, j, l, u, v, o, repeat;
  for (repeat = 0; repeat < REPEATS; ++repeat) {
#ifdef SELECTS
    const long long chosen = small_mm_select(a, b, c MM_MEMORY, 0, NULL, NULL);
    if (chosen < 0 || chosen > 2) return 3;
    small_cv_select(x, w, y
#if SMALL_CV_PREPARED_BYTES
              , prepared
#endif
#if SMALL_CV_SCRATCH_BYTES || SMALL_CV_PREPARE_SCRATCH_BYTES
              , scratch
#endif
              , 0, NULL, NULL);
#endif
#if SMALL_CV_PREPARED_BYTES
    small_cv_prepare(w, prepared CV_PREPARE_SCRATCH);
#endif
    memset(c, 255, 4 * 24 * 32);
    memset(scratch, 255, (size_t)scratch_bytes);
    RUN(small_mm, a, b, c MM_MEMORY);
    RUN(small_cv, x, w, y CV_MEMORY);
    for (i = 0; i < 24; ++i) for (j = 0; j < 32; ++j) {
      float sum = 0;
      for (l = 0; l < 16; ++l) sum += a[i * 16 + l] * b[l * 32 + j];
      wrong += !(c[i * 32 + j] - sum < 1e-3f && sum - c[i * 32 + j] < 1e-3f);
    }
    for (o = 0; o < 16; ++o) for (i = 0; i < 10; ++i) for (j = 0; j < 10; ++j) {
      float sum = 0, difference;
      for (l = 0; l < 8; ++l) for (u = 0; u < 3; ++u) for (v = 0; v < 3; ++v) {
        const int p = i + u - 1, q = j + v - 1;
        if (p >= 0 && q >= 0 && p < 10 && q < 10) sum += x[(l * 10 + p) * 10 + q] * w[((o * 8 + l) * 3 + u) * 3 + v];
      }
      difference = y[(o * 10 + i) * 10 + j] - sum;
      wrong += !(difference < 1e-1f && difference > -1e-1f);
    }
  }
  if (small_matmul_for(24, 32, 16) == NULL || small_matmul_for(24, 32, 17) != NULL) return 4;
  if (small_matmul_for(24, 32, 16)->scratch_bytes != SMALL_MM_SCRATCH_BYTES) return 5;
  if (small_conv2d_for(1, 8, 10, 10, 16, 3, 3, 1, 1)->prepared_bytes != SMALL_CV_PREPARED_BYTES) return 6;
  memset(c, 255, 4 * 24 * 32);
  small_matmul_for(24, 32, 16)->run(a, b, c, NULL, scratch);
  for (j = 0; j < 32; ++j) {
    float sum = 0;
    for (l = 0; l < 16; ++l) sum += a[l] * b[l * 32 + j];
    wrong += !(c[j] - sum < 1e-3f && sum - c[j] < 1e-3f);
  }
  free(a), free(b), free(c), free(x), free(w), free(y), free(scratch), free(prepared);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
)";

// Compiled and run with the flags; must end with all right.
void use(const Library& library, const std::vector<std::string>& flags, const std::string& language = "c") {
  const base::Folder folder;
  write(library_files(library, LibraryFormat::library), folder);
  base::replace_file(folder / ("user." + language), user);
  std::vector<std::string> command = {language == "c" ? "cc" : "c++", "-Wall", "-Wextra", "-Werror", "-pedantic",
                                      "-I" + folder.path().string()};
  for (const std::string& flag : flags) command.push_back(flag.ends_with(".c") ? (folder / flag).string() : flag);
  command.insert(command.end(), {"-o", (folder / "user").string()});
  command.push_back((folder / ("user." + language)).string());
  command.push_back((folder / "libsmall.a").string());
  run(command);
  EXPECT_EQ(run({(folder / "user").string()}).out, "0 wrong\n");
}

const std::string plain = "-DRUN(f,...)=f(__VA_ARGS__)";

TEST(Library, RunsInCAndInCpp) {
  use(small(), {"-std=c11", "-DREPEATS=1", plain});
  use(small(), {"-std=c++17", "-DREPEATS=1", plain, "-Wno-variadic-macros"}, "cpp");
}

TEST(Library, SelectsAmongVariantsUnderSanitizers) {
  use(small(3), {"-std=c11", "-DREPEATS=2", "-DSELECTS", plain, "-fsanitize=address,undefined"});
}

TEST(Library, RunsOnThreadsOfTheCallers) {
  const Target two = host(2);
  Library library = small(1, two);
  const bool parallel =
      library_files(library, LibraryFormat::library).at("small.h").find("small_mm_parallel") != std::string::npos;
  EXPECT_TRUE(parallel);
  for (const std::string way : {"graft::threads_for", "graft_serial_for", "NULL"})
    use(library, {"-std=c++17", "-DREPEATS=2", "-DRUN(f,...)=f##_parallel(__VA_ARGS__," + way + ",NULL)", "-pthread"},
        "cpp");
  use(library, {"-std=c11", "-DREPEATS=2", "-include", "graft_pool.h",
                "-DRUN(f,...)={graft_pool* p = graft_pool_start(2); f##_parallel(__VA_ARGS__,graft_pool_for,p); "
                "graft_pool_stop(p);}",
                "-pthread", "graft_pool.c"});
  use(library, {"-std=c11", "-DREPEATS=2", "-DRUN(f,...)=f##_parallel(__VA_ARGS__,graft_openmp_for,NULL)", "-fopenmp"});
}

TEST(Library, NeedsNothingAndShowsWhatIsCalledAlone) {
  const base::Folder folder;
  const std::string object = (folder / "small.o").string(), shared = (folder / "small.so").string();
  // A shared object shows nothing of a library unless it was asked to, and then the functions of the header alone.
  Library library = small(3);
  write(library_files(library, LibraryFormat::object), folder);
  EXPECT_EQ(run({"nm", "-u", object}).out, "");
  run({"cc", "-shared", "-nostdlib", object, "-o", shared});
  EXPECT_EQ(run({"nm", "-D", "--defined-only", shared}).out, "");
  const std::string global = run({"nm", "-g", "--defined-only", object}).out;
  for (const std::string_view line : base::split(global, '\n'))
    EXPECT_TRUE(line.empty() || base::words(line).at(2).starts_with("small_")) << line;
  library.exported = true;
  write(library_files(library, LibraryFormat::object), folder);
  run({"cc", "-shared", "-nostdlib", object, "-o", shared});
  std::set<std::string> shown;
  const std::string lines = run({"nm", "-D", "--defined-only", shared}).out;
  for (const std::string_view line : base::split(lines, '\n')) {
    const auto words = base::words(line);
    if (words.size() == 3) shown.insert(std::string(words[2]));
  }
  const std::string header = base::read_file(folder / "small.h");
  for (const std::string& name : shown) EXPECT_NE(header.find(" " + name + "("), std::string::npos) << name;
  EXPECT_EQ(shown.contains("small_mm_select"), true);
  EXPECT_EQ(shown.contains("small_mm8_select"), false);
  EXPECT_EQ(shown.contains("small_conv2d_for"), true);
}

// Linked with nothing at all, for another machine: no start files, no libc.
TEST(Library, RunsWithoutAnyLibrary) {
  Target target;
  target.triple = "riscv64-unknown-linux-gnu", target.cpu = "sifive-p670";
  target.vector_bits = 128, target.vector_registers = 32;
  const base::Folder folder;
  write(library_files(small(2, target), LibraryFormat::object), folder);
  base::replace_file(folder / "user.c", R"(
#include "small.h"
static float a[24 * 16] __attribute__((aligned(64))), b[16 * 32] __attribute__((aligned(64)));
static float c[24 * 32] __attribute__((aligned(64)));
#if SMALL_MM_SCRATCH_BYTES
static char scratch[SMALL_MM_SCRATCH_BYTES] __attribute__((aligned(64)));
#define MEMORY , scratch
#else
#define MEMORY
#endif
void _start(void) {
  long wrong = 0, i, j, l;
  for (i = 0; i < 24 * 16; ++i) a[i] = (float)(i * 7 % 11 - 5);
  for (i = 0; i < 16 * 32; ++i) b[i] = (float)(i * 5 % 13 - 6);
  wrong += small_mm_select(a, b, c MEMORY, 0, 0, 0) > 1;
  for (i = 0; i < 24 * 32; ++i) c[i] = -1e9f;
  small_mm(a, b, c MEMORY);
  for (i = 0; i < 24; ++i) for (j = 0; j < 32; ++j) {
    float sum = 0;
    for (l = 0; l < 16; ++l) sum += a[i * 16 + l] * b[l * 32 + j];
    wrong += !(c[i * 32 + j] - sum < 1e-3f && sum - c[i * 32 + j] < 1e-3f);
  }
  register long code asm("a0") = wrong ? 1 : 42;
  register long call asm("a7") = 93;
  asm volatile("ecall" : : "r"(code), "r"(call));
  for (;;) {}
}
)");
  run({"clang-19", "--target=riscv64-linux-gnu", "-march=rv64gc", "-O1", "-ffreestanding", "-c",
       (folder / "user.c").string(), "-o", (folder / "user.o").string()});
  const std::string own = base::read_file(folder / "user.o"), kernels = base::read_file(folder / "small.o");
  const auto program = link_program({own, kernels});
  ASSERT_TRUE(program) << program.reason().text;
  base::replace_file(folder / "user", *program);
  std::filesystem::permissions(folder / "user", std::filesystem::perms::owner_all);
  EXPECT_EQ(base::run_process({"qemu-riscv64", "-cpu", "rv64,v=true,vlen=128", (folder / "user").string()},
                              std::chrono::minutes(1))
                .exit_code,
            42);
}

// Programs that use libraries of one operator, which the macros F, BYTES, SCALE and PLACE distinguish.
const char* const product = R"(
#if BYTES
static char PLACE(scratch)[BYTES + 64] __attribute__((aligned(64)));
#define MEMORY , PLACE(scratch)
#else
#define MEMORY
#endif
static int PLACE(wrong)(void) {
  static float a[24 * 16] __attribute__((aligned(64))), b[16 * 32] __attribute__((aligned(64)));
  static float c[24 * 32] __attribute__((aligned(64)));
  int wrong = 0, i, j, l;
  for (i = 0; i < 24 * 16; ++i) a[i] = (float)(i * 7 % 11 - 5);
  for (i = 0; i < 16 * 32; ++i) b[i] = (float)(i * 5 % 13 - 6);
#if BYTES
  for (i = 0; i < 64; ++i) PLACE(scratch)[BYTES + i] = 77;
#endif
  F(a, b, c MEMORY);
  for (i = 0; i < 24; ++i) for (j = 0; j < 32; ++j) {
    float sum = 0;
    for (l = 0; l < 16; ++l) sum += a[i * 16 + l] * b[l * 32 + j];
    wrong += c[i * 32 + j] != SCALE * sum; /* small integers: exact in any order */
  }
#if BYTES
  for (i = 0; i < 64; ++i) wrong += PLACE(scratch)[BYTES + i] != 77;
#endif
  return wrong;
}
#undef MEMORY
)";

// A product whose results are `scale` times what they should be: which code ran can be seen by them.
LibraryVariant scaled(int scale, const Target& target, const std::string& symbol, int platform = 0) {
  LoopProgram program = parsed(
      "buffer A f32 [24,16] input\nbuffer B f32 [16,32] input\nbuffer C f32 [24,32] output\n"
      "buffer sum f32 [" +
      std::to_string(1024 * scale) +
      "] temporary\nrun\n  for i 24\n    for j 32\n"
      "      sum[" +
      std::to_string(1024 * scale - 1) + "] = 0\n      for l 16\n        sum[" + std::to_string(1024 * scale - 1) +
      "] += A[i,l] * B[l,j]\n      C[i,j] = sum[" + std::to_string(1024 * scale - 1) + "] * " + std::to_string(scale) +
      "\n");
  LibraryVariant made = variant(program, target, symbol);
  made.platform = platform;
  return made;
}

Library scaled_library(const std::string& name, int scale) {
  Library library{name, {{"this host", host()}}, "1.2.3", {}};
  library.functions.push_back({"mm", parse_workload("matmul(m=24,n=32,k=16)"), {scaled(scale, host(), name + "_0")}});
  return library;
}

TEST(Library, TwoOfOneOperatorArePartOfOneProgram) {
  const base::Folder folder;
  for (const auto& [name, scale] : {std::pair{"one", 1}, {"two", 2}})
    write(library_files(scaled_library(name, scale), LibraryFormat::library), folder);
  base::replace_file(folder / "product.h", product);
  base::replace_file(folder / "user.c", R"(
#include <stdio.h>
#include "one.h"
#include "two.h"
#define F one_mm
#define BYTES ONE_MM_SCRATCH_BYTES
#define SCALE 1
#define PLACE(name) name##_1
#include "product.h"
#undef F
#undef BYTES
#undef SCALE
#undef PLACE
#define F two_mm
#define BYTES TWO_MM_SCRATCH_BYTES
#define SCALE 2
#define PLACE(name) name##_2
#include "product.h"
int main(void) {
  printf("%d %d wrong, scratch %d\n", wrong_1(), wrong_2(), TWO_MM_SCRATCH_BYTES > ONE_MM_SCRATCH_BYTES);
  return !(one_runs_here() && two_runs_here() && one_matmul_for(24, 32, 16)->run != two_matmul_for(24, 32, 16)->run);
}
)");
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"libone.a", "libtwo.a"}, {"libtwo.a", "libone.a"}}) {
    std::vector<std::string> command = {
        "cc", "-Wall", "-Werror", "-fsanitize=address", "-o", (folder / "user").string(), (folder / "user.c").string()};
    for (const std::string& archive : order) command.push_back((folder / archive).string());
    run(command);
    EXPECT_EQ(run({(folder / "user").string()}).out, "0 0 wrong, scratch 1\n");
  }
}

// Both have one name, and are loaded so that each could see the symbols of the other.
TEST(Library, TwoPluginsHaveOneEach) {
  const base::Folder folder;
  std::string plugins;
  for (const int scale : {1, 2}) {
    const std::string number = std::to_string(scale), own = (folder / ("in" + number)).string();
    std::filesystem::create_directory(own);
    for (const auto& [name, content] : library_files(scaled_library("one", scale), LibraryFormat::library))
      base::replace_file(std::filesystem::path(own) / name, content);
    base::replace_file(folder / "product.h", product);
    base::replace_file(folder / "plugin.c", R"(
#include "one.h"
#define F one_mm
#define BYTES ONE_MM_SCRATCH_BYTES
#define PLACE(name) name
#include "product.h"
int check(void) { return wrong(); }
)");
    run({"cc", "-shared", "-fPIC", "-DSCALE=" + number, "-I" + own, "-I" + folder.path().string(), "-o",
         (folder / ("plugin" + number + ".so")).string(), (folder / "plugin.c").string(), own + "/libone.a"});
  }
  base::replace_file(folder / "user.c", R"(
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** plugins) {
  int wrong = count != 3, i;
  for (i = 1; i < count; ++i) {
    void* const plugin = dlopen(plugins[i], RTLD_NOW | RTLD_GLOBAL);
    wrong += plugin == NULL || ((int (*)(void))dlsym(plugin, "check"))();
  }
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
)");
  run({"cc", "-o", (folder / "user").string(), (folder / "user.c").string(), "-ldl"});
  EXPECT_EQ(run({(folder / "user").string(), (folder / "plugin1.so").string(), (folder / "plugin2.so").string()}).out,
            "0 wrong\n");
}

// A target of this host's architecture that it is not.
Target another_machine() {
  Target target = host();
  target.cpu = "x86-64-v2", target.features = "+xop", target.vector_bits = 128, target.vector_registers = 16;
  return target;
}

TEST(Library, RunsTheCodeOfThePlatformThatItIsOn) {
  if (!host().triple.starts_with("x86_64")) GTEST_SKIP() << "the target that is not here is one of x86-64";
  const base::Folder folder;
  base::replace_file(folder / "product.h", product);
  Library library{"both", {{"not here", another_machine()}, {"here", host()}, {"here, too", host()}}, "1.2.3", {}};
  library.functions.push_back(
      {"mm",
       parse_workload("matmul(m=24,n=32,k=16)"),
       {scaled(1, another_machine(), "both_0", 0), scaled(2, host(), "both_1", 1), scaled(3, host(), "both_2", 2)}});
  write(library_files(library, LibraryFormat::library), folder);
  base::replace_file(folder / "user.c", R"(
#include <stdio.h>
#include "both.h"
static int scale;
#define F both_mm
#define BYTES BOTH_MM_SCRATCH_BYTES
#define SCALE (float)scale
#define PLACE(name) name
#include "product.h"
int main(void) {
  long long chosen;
  static float a[24 * 16] __attribute__((aligned(64))), b[16 * 32] __attribute__((aligned(64)));
  static float c[24 * 32] __attribute__((aligned(64)));
  printf("%d", both_runs_here());
  scale = 2, printf(" %d", wrong());
  printf(" %d", both_use_platform(0));
  scale = 2, printf(" %d", wrong());
  printf(" %d", both_use_platform(2));
  scale = 3, printf(" %d", wrong());
  printf(" %d", both_use_platform(-1));
  scale = 2, printf(" %d", wrong());
  printf(" %d %d", both_use_platform(3), both_use_platform(-2));
  chosen = both_mm_select(a, b, c, scratch, 0, NULL, NULL);
  scale = (int)chosen + 1, printf(" %d %d\n", chosen == 1 || chosen == 2, wrong());
  return 0;
}
)");
  run({"cc", "-Wall", "-Werror", "-fsanitize=address,undefined", "-o", (folder / "user").string(),
       (folder / "user.c").string(), (folder / "libboth.a").string()});
  EXPECT_EQ(run({(folder / "user").string()}).out, "1 0 -1 0 2 0 1 0 -1 -1 1 0\n");
  const std::string header = base::read_file(folder / "both.h");
  EXPECT_TRUE(contains(header, " *   platform 0, not here: sse3 ssse3 sse4.1 sse4.2 popcnt avx sse4a xop fma4\n"))
      << header;
}

// What a program that returns what NAME_runs_here says ends with under an emulator.
int runs_on(const Target& target, const std::vector<std::string>& emulator, const std::string& clang,
            const std::string& leave) {
  const base::Folder folder;
  Library library{"net", {{"there", target}}, "1.2.3", {}};
  library.functions.push_back({"mm", parse_workload("matmul(m=24,n=32,k=16)"), {scaled(1, target, "net_0")}});
  write(library_files(library, LibraryFormat::object), folder);
  base::replace_file(
      folder / "user.c",
      "#include \"net.h\"\nvoid _start(void) {\n  const long is = 40 + net_runs_here();\n" + leave + "}\n");
  run({"clang-19", "--target=" + clang, "-O1", "-ffreestanding", "-fPIC", "-c", (folder / "user.c").string(), "-o",
       (folder / "user.o").string()});
  const auto program = link_program({base::read_file(folder / "user.o"), base::read_file(folder / "net.o")});
  EXPECT_TRUE(program) << program.reason().text;
  base::replace_file(folder / "user", *program);
  std::filesystem::permissions(folder / "user", std::filesystem::perms::owner_all);
  std::vector<std::string> command = emulator;
  command.push_back((folder / "user").string());
  return base::run_process(command, std::chrono::minutes(1)).exit_code;
}

TEST(Library, AsksMachinesOfEveryArchitecture) {
  const auto target = [](const char* triple, const char* cpu, const char* features = "") {
    Target made;
    made.triple = triple, made.cpu = cpu, made.features = features;
    made.vector_bits = 128, made.vector_registers = 32;
    return made;
  };
  const auto on_arm = [&](const Target& of, const char* cpu) {
    return runs_on(of, {"qemu-aarch64", "-cpu", cpu}, "aarch64-linux-gnu",
                   "  register long a asm(\"x0\") = is;\n  register long n asm(\"x8\") = 93;\n"
                   "  asm volatile(\"svc #0\" : : \"r\"(a), \"r\"(n));\n");
  };
  const char* const arm = "aarch64-unknown-linux-gnu";
  EXPECT_EQ(on_arm(target(arm, "cortex-a72"), "cortex-a72"), 41);
  EXPECT_EQ(on_arm(target(arm, "cortex-a76"), "cortex-a72"), 40);
  EXPECT_EQ(on_arm(target(arm, "cortex-a76"), "max"), 41);
  Target wide = target(arm, "generic", "+sve");
  wide.vector_bits = 512;
  EXPECT_EQ(on_arm(wide, "max,sve512=on"), 41);
  EXPECT_EQ(on_arm(wide, "max,sve-max-vq=2"), 40);
  const auto on_power = [&](const Target& of, const char* cpu) {
    return runs_on(of, {"qemu-ppc64le", "-cpu", cpu}, "powerpc64le-linux-gnu",
                   "  register long a asm(\"r3\") = is;\n  register long n asm(\"r0\") = 1;\n"
                   "  asm volatile(\"sc\" : : \"r\"(a), \"r\"(n));\n");
  };
  const char* const power = "powerpc64le-unknown-linux-gnu";
  EXPECT_EQ(on_power(target(power, "pwr9"), "power9"), 41);
  EXPECT_EQ(on_power(target(power, "pwr9"), "power8"), 40);
  const auto on_riscv = [&](const Target& of) {  // this qemu answers no riscv_hwprobe: it does not tell
    return runs_on(of, {"qemu-riscv64", "-cpu", "rv64,v=true,vlen=128"}, "riscv64-linux-gnu",
                   "  register long a asm(\"a0\") = is;\n  register long n asm(\"a7\") = 93;\n"
                   "  asm volatile(\"ecall\" : : \"r\"(a), \"r\"(n));\n");
  };
  const char* const riscv = "riscv64-unknown-linux-gnu";
  EXPECT_EQ(on_riscv(target(riscv, "sifive-u54")), 41);
  EXPECT_EQ(on_riscv(target(riscv, "sifive-p670")), 40);
}

TEST(Library, RefusesPlatformsOfTwoArchitectures) {
  Library library = small();
  Target arm;
  arm.triple = "aarch64-unknown-linux-gnu", arm.cpu = "cortex-a72", arm.vector_bits = 128, arm.vector_registers = 32;
  library.platforms.push_back({"a board", arm});
  if (host().triple.starts_with("aarch64")) GTEST_SKIP() << "both are of this host's architecture";
  const std::string refused = refusal([&] { return library_files(library, LibraryFormat::library); });
  EXPECT_TRUE(contains(refused, "a library is for one architecture")) << refused;
}

TEST(Library, BuildsForEveryArchitecture) {
  for (const auto& [triple, cpu] : {std::pair{"riscv64-unknown-linux-gnu", "sifive-p670"},
                                    {"aarch64-unknown-linux-gnu", "cortex-a72"},
                                    {"powerpc64le-unknown-linux-gnu", "pwr9"}}) {
    Target target;
    target.triple = triple, target.cpu = cpu, target.vector_bits = 128, target.vector_registers = 32;
    const auto files = library_files(small(2, target), LibraryFormat::library);
    EXPECT_EQ(files.size(), 6u) << cpu;
    const base::Folder folder;
    write(files, folder);
    // POWER's linkers make the table of contents themselves.
    const std::string lines = run({"nm", "-u", (folder / "libsmall.a").string()}).out;
    for (const std::string_view line : base::split(lines, '\n'))
      EXPECT_TRUE(line.find(" U ") == std::string_view::npos || line.ends_with(" U .TOC.")) << cpu << line;
  }
}

TEST(Library, RefusesWhatIsNoNameOrOccursTwice) {
  Library library = small();
  const auto refused = [&] { return refusal([&] { return library_files(library, LibraryFormat::library); }); };
  library.functions[1].name = "mm";
  EXPECT_EQ(refused(), "function name: 'mm' occurs twice");
  library.functions[1].name = "8mm";
  EXPECT_EQ(refused(), "function name: '8mm' is not a C identifier");
  library.functions[1].name = "mm8";
  library.name = "a-b";
  EXPECT_EQ(refused(), "library name: 'a-b' is not a C identifier");
  library.name = "small";
  library.functions[0].variants.push_back(library.functions[1].variants.front());
  EXPECT_TRUE(contains(refused(), "store their parameters differently"));
}

// A library whose function has parameters of these names, and the header's line about each.
Library with_tensors(const std::vector<std::string>& inputs, const std::string& output, const std::string& function,
                     const Target& target = host()) {
  std::string text, sum;
  for (const std::string& name : inputs) {
    text += "input " + name + "[64] : f32; ";
    sum += (sum.empty() ? "" : " + ") + name + "[i]";
  }
  Library library{"words", {{"this host", target}}, "1.2.3", {}};
  library.functions.push_back(
      function_of(text + "output " + output + "[i] : f32 = " + sum + " where i=64", function, 2, target));
  return library;
}

TEST(Library, HeadersCompileWhateverTensorsAreCalled) {
  const std::vector<std::vector<std::string>> all = {
      {"int", "double", "restrict", "class", "new", "this", "inline", "typename", "register", "bool", "true"},
      {"prepared", "scratch", "context", "parallel_for", "budget_ns", "words_f", "words_f_select",
       "WORDS_F_SCRATCH_BYTES", "WORDS_H"},
      {"int32_t", "graft_parallel_for", "NULL", "linux", "unix", "errno", "stdin", "INT32_MAX", "GRAFT_PARALLEL_H"},
      {"a.b", "a_b", "a_b_", "_a_b", "_Bool", "__int128", "and", "xor_eq", "char8_t", "concept", "co_await"},
      {"A", "a", "Int", "INT", "int", "int_", "int_2", "I", "sin", "y0", "max", "min"},
  };
  const Target two = host(2);
  for (const std::vector<std::string>& inputs : all) {
    const base::Folder folder;
    write(library_files(with_tensors(inputs, "for", "f", two), LibraryFormat::library), folder);
    const std::string header = base::read_file(folder / "words.h");
    for (const std::string& name : inputs)
      EXPECT_TRUE(contains(header, " *   " + name + " (input): float[64]")) << name;
    EXPECT_TRUE(contains(header, " *   for (output): float[64], parameter for_\n")) << header;
    // After other headers, too, and in the dialects that define `linux`.
    const std::string uses =
        "#include <math.h>\n#include <errno.h>\n#include <stdio.h>\n#include <stdbool.h>\n"
        "#include \"words.h\"\n#include \"words.h\"\n#include \"graft_pool.h\"\nint main(void) { (void)words_f; return "
        "0; }\n";
    for (const std::string language : {"c", "cpp"}) base::replace_file(folder / ("uses." + language), uses);
    for (const char* standard : {"-std=c99", "-std=gnu99", "-std=c11", "-std=c2x"})
      run({"gcc", standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", (folder / "uses.c").string()});
    for (const char* standard : {"-std=c++17", "-std=gnu++17", "-std=c++20"})
      run({"g++", standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only",
           (folder / "uses.cpp").string()});
  }
}

TEST(Library, ParametersHaveReadableNamesThatStay) {
  const auto header_of = [](const std::vector<std::string>& inputs) {
    return library_files(with_tensors(inputs, "Y", "f"), LibraryFormat::library).at("words.h");
  };
  EXPECT_TRUE(contains(header_of({"int", "B"}), "void words_f(const float* int_, const float* B, float* Y);"));
  EXPECT_TRUE(contains(header_of({"scratch", "a.b", "a_b"}),
                       "void words_f(const float* scratch_, const float* a_b, const float* a_b_, float* Y);"));
  EXPECT_TRUE(contains(header_of({"int", "int_"}), "const float* int_, const float* int_2, "));
  EXPECT_TRUE(contains(header_of({"int", "int_"}), " *   int_ (input): float[64], parameter int_2\n"));
  EXPECT_FALSE(contains(header_of({"A", "B"}), ", parameter "));
}

TEST(Library, FunctionsThatDifferInCaseHaveMacrosOfTheirOwn) {
  Library library{"small", {{"this host", host()}}, "1.2.3", {}};
  for (const char* name : {"mm", "MM", "Mm"})
    library.functions.push_back(function_of("matmul(m=8,n=8,k=" + std::string(name[0] == 'm' ? "8" : "9") + ")", name,
                                            1, library.platforms[0].target));
  const base::Folder folder;
  write(library_files(library, LibraryFormat::library), folder);
  base::replace_file(folder / "uses.c",
                     "#include \"small.h\"\nint all[] = {SMALL_MM_SCRATCH_BYTES, SMALL_MM_SCRATCH_BYTES_, "
                     "SMALL_MM_SCRATCH_BYTES_2};\n");
  run({"gcc", "-std=c99", "-Wall", "-Werror", "-fsyntax-only", (folder / "uses.c").string()});
}

TEST(Library, RefusesNamesThatMeanSomethingElse) {
  const auto refused = [](const std::string& library, const std::string& first, const std::string& second = "g") {
    Library made{library, {{"this host", host()}}, "1.2.3", {}};
    for (const std::string& name : {first, second})
      made.functions.push_back(
          function_of("matmul(m=8,n=8,k=" + std::to_string(name.size()) + ")", name, 2, made.platforms[0].target));
    return refusal([&] { return library_files(made, LibraryFormat::library); });
  };
  EXPECT_EQ(refused("thread", "local"),
            "function name: 'thread_local' means something else in C or C++; choose another");
  EXPECT_EQ(refused("math", "f"), "library name: 'math': math.h is another header; choose another");
  EXPECT_EQ(refused("small", "g_select", "g"),
            "function name: 'small_g_select' is what two functions need; choose another");
  EXPECT_EQ(refused("small", "matmul_for"),
            "function name: 'small_matmul_for' is what two functions need; choose another");
  EXPECT_EQ(refused("small", "runs_here"),
            "function name: 'small_runs_here' is what two functions need; choose another");
  // Names of the code inside of libraries are free.
  Library made{"small", {{"this host", host()}}, "1.2.3", {}};
  for (const char* name : {"int", "exp", "now", "timed", "serial_for", "fastest"})
    made.functions.push_back(function_of("matmul(m=8,n=8,k=" + std::to_string(std::string(name).size()) + ")", name, 2,
                                         made.platforms[0].target));
  EXPECT_TRUE(library_files(made, LibraryFormat::library).contains("small.h"));
}

// A product with a matrix of weights that is doubled in two steps first, and sums that go through memory.
const char* const prepares = R"(buffer A f32 [4,8] input
buffer B f32 [8,16] constant
buffer C f32 [4,16] output
buffer twice f32 [8,16] temporary
buffer kept f32 [16,8] temporary
buffer sum f32 [16] temporary
prepare
  for l 8
    for j 16
      twice[l,j] = B[l,j] + B[l,j]
  for l.1 8
    for j.1 16
      kept[j.1,l.1] = twice[l.1,j.1]
run
  for i 4
    for j.2 16
      sum[j.2] = 0
    for l.2 8
      for j.3 16
        sum[j.3] += A[i,l.2] * kept[j.3,l.2]
    for j.4 16
      C[i,j.4] = sum[j.4] * 0.5
)";

Library preparing() {
  Library library{"weights", {{"this host", host()}}, "1.2.3", {}};
  library.functions.push_back(
      {"product",
       parse_workload("input A[4,8]; constant B[8,16]; output C[i,j] += A[i,l] * B[l,j] where i=4, j=16, l=8"),
       {variant(parsed(prepares), library.platforms[0].target, "product0")}});
  return library;
}

base::Document interface_document(const Library& library) {
  return base::parse_json(library_files(library, LibraryFormat::library).at(library.name + ".json"), "interface");
}

TEST(Interface, PreparedConstantsAndScratchAreSizesOfTheirOwn) {
  const Signature is = signature(parsed(prepares));
  EXPECT_EQ(is.prepared_bytes, 16 * 8 * 4);
  EXPECT_EQ(is.prepare_scratch_bytes, 8 * 16 * 4);
  EXPECT_EQ(is.scratch_bytes, 16 * 4);
  expect_right(prepares);
}

TEST(Interface, SaysToProgramsWhatTheHeaderSays) {
  const base::Document document = interface_document(preparing());
  EXPECT_EQ(document.at("schema").as_integer(), 1);
  EXPECT_EQ(document.at("kind").as_string(), "library");
  EXPECT_EQ(document.at("graft").as_string(), "1.2.3");
  EXPECT_EQ(document.at("code").as_string(), "libweights.a");
  EXPECT_EQ(document.at("header").as_string(), "weights.h");
  EXPECT_EQ(document.at("alignment").as_integer(), 64);
  EXPECT_EQ(target_from(document.at("target")), preparing().platforms[0].target);
  const base::Document& function = document.at("functions").as_list().at(0);
  EXPECT_EQ(function.at("name").as_string(), "product");
  EXPECT_EQ(function.at("prepared_bytes").as_integer(), 512);
  EXPECT_EQ(function.at("prepare_scratch_bytes").as_integer(), 512);
  EXPECT_EQ(function.at("scratch_bytes").as_integer(), 64);
  EXPECT_EQ(function.at("tensors").as_list().at(1),
            base::parse_json(R"({"name": "B", "role": "constant", "dtype": "f32", "shape": [8, 16], "argument": "B",
  "layout": "", "stored": [{"axis": 0, "extent": 8, "stride": 16, "step": 1},
                           {"axis": 1, "extent": 16, "stride": 1, "step": 1}], "alignment": 16, "bytes": 512,
                 "only_prepared": true})",
                             "expected"));
  EXPECT_EQ(function.at("prepare").to_json(),
            R"({"symbol":"weights_product_prepare","arguments":[{"kind":"tensor","tensor":"B"},{"kind":"prepared"},)"
            R"({"kind":"scratch"}]})");
  EXPECT_EQ(function.at("run").to_json(),
            R"({"symbol":"weights_product","arguments":[{"kind":"tensor","tensor":"A"},{"kind":"tensor","tensor":"B"},)"
            R"({"kind":"tensor","tensor":"C"},{"kind":"prepared"},{"kind":"scratch"}]})");
  EXPECT_TRUE(function.at("parallel").is_null());
  EXPECT_TRUE(function.at("select").is_null());
  EXPECT_EQ(
      function.at("variants").to_json(),
      R"([{"schedule":["drawn at random */ and so on"],"pipeline":"O3","seconds":1e-06,"check":"host","platform":0}])");
  const std::string header = library_files(preparing(), LibraryFormat::library).at("weights.h");
  for (const char* line :
       {"void weights_product_prepare(const float* B, void* prepared, void* scratch);",
        "void weights_product(const float* A, const float* B, float* C, const void* prepared, void* scratch);",
        " *   B (constant): float[8][16], for its preparation alone\n", "#define WEIGHTS_PRODUCT_PREPARED_BYTES 512",
        "#define WEIGHTS_PRODUCT_PREPARE_SCRATCH_BYTES 512", "#define WEIGHTS_PRODUCT_SCRATCH_BYTES 64"})
    EXPECT_TRUE(contains(header, line)) << header;
}

TEST(Interface, PreparesOnceAndRunsWithoutConstants) {
  const base::Folder folder;
  write(library_files(preparing(), LibraryFormat::library), folder);
  base::replace_file(folder / "user.c", R"(
#include <stdio.h>
#include <string.h>
#include "weights.h"
static float a[4 * 8] __attribute__((aligned(64))), b[8 * 16] __attribute__((aligned(64)));
static float c[4 * 16] __attribute__((aligned(64)));
static char prepared[WEIGHTS_PRODUCT_PREPARED_BYTES] __attribute__((aligned(64)));
static char scratch[WEIGHTS_PRODUCT_SCRATCH_BYTES] __attribute__((aligned(64)));
static char more[WEIGHTS_PRODUCT_PREPARE_SCRATCH_BYTES] __attribute__((aligned(64)));
int main(void) {
  int wrong = 0, call, i, j, l;
  for (i = 0; i < 8 * 16; ++i) b[i] = (float)(i * 5 % 13 - 6);
  weights_product_prepare(b, prepared, more);
  for (call = 0; call < 2; ++call) {
    for (i = 0; i < 4 * 8; ++i) a[i] = (float)(i * 7 % 11 - 5 - call);
    memset(scratch, 255, sizeof scratch);
    weights_product(a, NULL, c, prepared, scratch);
    for (i = 0; i < 4; ++i) for (j = 0; j < 16; ++j) {
      float sum = 0;
      for (l = 0; l < 8; ++l) sum += a[i * 8 + l] * b[l * 16 + j];
      wrong += c[i * 16 + j] != sum;
    }
  }
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
)");
  run({"cc", "-Wall", "-Werror", "-fsanitize=address,undefined", "-o", (folder / "user").string(),
       (folder / "user.c").string(), (folder / "libweights.a").string()});
  EXPECT_EQ(run({(folder / "user").string()}).out, "0 wrong\n");
}

// Threads have scratch and outputs of their own, and share what was prepared.
TEST(Interface, ThreadsMayCallAtTheSameTime) {
  const base::Folder folder;
  write(library_files(preparing(), LibraryFormat::library), folder);
  base::replace_file(folder / "user.c", R"(
#include <pthread.h>
#include <stdio.h>
#include "weights.h"
static float b[8 * 16] __attribute__((aligned(64)));
static char prepared[WEIGHTS_PRODUCT_PREPARED_BYTES] __attribute__((aligned(64)));
static char more[WEIGHTS_PRODUCT_PREPARE_SCRATCH_BYTES] __attribute__((aligned(64)));
static struct Own {
  float a[4 * 8] __attribute__((aligned(64)));
  float c[4 * 16] __attribute__((aligned(64)));
  char scratch[WEIGHTS_PRODUCT_SCRATCH_BYTES] __attribute__((aligned(64)));
  int wrong;
} own[4];
static void* use(void* argument) {
  struct Own* const it = (struct Own*)argument;
  int call, i, j, l;
  for (call = 0; call < 2000; ++call) {
    for (i = 0; i < 4 * 8; ++i) it->a[i] = (float)((i * 7 + call + (int)(it - own)) % 11 - 5);
    weights_product(it->a, NULL, it->c, prepared, it->scratch);
    for (i = 0; i < 4; ++i) for (j = 0; j < 16; ++j) {
      float sum = 0;
      for (l = 0; l < 8; ++l) sum += it->a[i * 8 + l] * b[l * 16 + j];
      it->wrong += it->c[i * 16 + j] != sum;
    }
  }
  return NULL;
}
int main(void) {
  pthread_t threads[4];
  int t, wrong = !weights_runs_here();
  for (t = 0; t < 8 * 16; ++t) b[t] = (float)(t * 5 % 13 - 6);
  weights_product_prepare(b, prepared, more);
  for (t = 0; t < 4; ++t) pthread_create(&threads[t], NULL, use, &own[t]);
  for (t = 0; t < 4; ++t) pthread_join(threads[t], NULL), wrong += own[t].wrong;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
)");
  const auto built = base::run_process({"cc", "-Wall", "-Werror", "-fsanitize=thread", "-o", (folder / "user").string(),
                                        (folder / "user.c").string(), (folder / "libweights.a").string(), "-pthread"},
                                       std::chrono::minutes(1));
  if (built.exit_code != 0) GTEST_SKIP() << "cc does not link ThreadSanitizer here: " << built.err;
  const auto used = base::run_process({(folder / "user").string()}, std::chrono::minutes(2));
  if (contains(used.err, "unexpected memory mapping"))
    GTEST_SKIP() << "ThreadSanitizer does not run under this kernel: " << used.err;
  EXPECT_EQ(used.exit_code, 0) << used.err;
  EXPECT_EQ(used.out, "0 wrong\n");
}

TEST(Interface, KernelsWithoutMemoryTakeNone) {
  const base::Document document = interface_document(with_tensors({"A", "B"}, "Y", "f"));
  const base::Document& function = document.at("functions").as_list().at(0);
  EXPECT_EQ(function.at("run").to_json(),
            R"({"symbol":"words_f","arguments":[{"kind":"tensor","tensor":"A"},{"kind":"tensor","tensor":"B"},)"
            R"({"kind":"tensor","tensor":"Y"}]})");
  EXPECT_EQ(function.at("select").at("arguments").as_list().size(), 6u);
  EXPECT_TRUE(function.at("prepare").is_null());
}

TEST(Interface, LayoutsAreStoredDimensions) {
  LoopProgram program = parsed(
      "buffer A f32 [2,4,16] input\nbuffer C f32 [32,4] output\nrun\n  for i 2\n    for j 4\n      for v 16\n"
      "        C[16*i + v,j] = A[i,j,v]\n");
  const std::vector<std::string> words = {"0/16", "1", "0%16"};
  program.buffers[0].layout = parse_layout(words, "layout");
  Library library{"blocks", {{"this host", host()}}, "1.2.3", {}};
  library.functions.push_back({"copy",
                               parse_workload("input A[32,4]; output C[i,j] = A[i,j] where i=32, j=4"),
                               {variant(program, library.platforms[0].target, "copy0")}});
  const base::Document document = interface_document(library);
  const base::Document& tensor = document.at("functions").as_list().at(0).at("tensors").as_list().at(0);
  EXPECT_EQ(tensor.at("shape").to_json(), "[32,4]");
  EXPECT_EQ(tensor.at("layout").as_string(), "0/16 1 0%16");
  EXPECT_EQ(tensor.at("stored").to_json(),
            R"([{"axis":0,"extent":2,"stride":64,"step":16},{"axis":1,"extent":4,"stride":16,"step":1},)"
            R"({"axis":0,"extent":16,"stride":1,"step":1,"within":16}])");
}

TEST(Interface, ShapesOfAnOperatorAreCalledAlike) {
  const base::Document document = interface_document(small());
  const base::Document& family = document.at("shapes").as_list().at(0);
  EXPECT_EQ(family.at("symbol").as_string(), "small_matmul_for");
  EXPECT_EQ(family.at("extents").to_json(), R"(["m","n","k"])");
  EXPECT_EQ(family.at("functions").to_json(),
            R"([{"extents":[24,32,16],"function":"mm"},{"extents":[8,8,8],"function":"mm8"}])");
}

TEST(Interface, RefusesARunThatWritesWhatPrepareLeft) {
  std::string text = prepares;
  text += "  for j.5 16\n    kept[j.5,0] = 0\n";
  const auto object = compile(parsed(text), host());
  ASSERT_FALSE(object);
  EXPECT_EQ(object.reason().text, "prepare: 'run' writes 'kept', which 'prepare' has left for it");
}

TEST(Library, IdentifiersAreMadeOfAnyText) {
  EXPECT_EQ(identifier("resnet18.C2"), "resnet18_C2");
  EXPECT_EQ(identifier("--a  b--"), "a_b");
  EXPECT_EQ(identifier("2d"), "kernel_2d");
  EXPECT_EQ(identifier(""), "kernel_");
}

}  // namespace
}  // namespace graft::codegen
