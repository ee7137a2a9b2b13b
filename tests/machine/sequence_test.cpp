// Sequences of kernels: as C programs see them, as executables, as one kernel.
#include "codegen/machine/sequence.h"

#include <cstring>
#include <functional>
#include <utility>

#include "base/document.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "tests/base/support.h"
#include "tests/machine/executables.h"
#include "tests/machine/support.h"
#include "tests/support/refusal.h"
#include "tests/support/sequences.h"

namespace graft::codegen {
namespace {

using namespace test;
using Where = Sequence::Where;
using Place = Sequence::Place;
base::Finished run(const std::vector<std::string>& command) {
  base::Finished finished = base::run_process(command, std::chrono::minutes(2));
  EXPECT_EQ(finished.exit_code, 0) << command[0] << ": " << finished.out << finished.err;
  return finished;
}

void write(const std::map<std::string, std::string>& files, const base::Folder& folder) {
  for (const auto& [name, content] : files) base::replace_file(folder / name, content);
}

// Prints all outputs as whole numbers.
const char* const user = R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

static void* memory(size_t bytes) {
  void* const all = aligned_alloc(64, (bytes + 63) / 64 * 64);
  memset(all, 255, (bytes + 63) / 64 * 64);
  return all;
}

int main(int count, char** arguments) {
  float *x = (float*)memory(12 * 20 * 4), *y = (float*)memory(12 * 16 * 4), *z = (float*)memory(12 * 16 * 4);
  void* arena = memory(NET_ARENA_BYTES);
  int i;
#ifdef NET_WEIGHTS_BYTES
  void* weights = memory(NET_WEIGHTS_BYTES);
  FILE* file = fopen(arguments[1], "rb");
  if (count != 2 || file == NULL || fread(weights, 1, NET_WEIGHTS_BYTES, file) != NET_WEIGHTS_BYTES) return 2;
  fclose(file);
#else
  (void)arguments;
  if (count != 1) return 2;
#endif
  for (i = 0; i < 12 * 20; ++i) x[i] = (float)(i * 7 % 11 - 5);
#ifdef NET_WEIGHTS_BYTES
  net_run(x, y, z, weights, arena, FOR);
  free(weights);
#else
  net_run(x, y, z, arena, FOR);
#endif
  for (i = 0; i < 12 * 16; ++i) printf("%.0f ", (double)y[i]);
  for (i = 0; i < 12 * 16; ++i) printf("%.0f ", (double)z[i]);
  free(x), free(y), free(z), free(arena);
  return 0;
}
)";

std::string expected_text() {
  std::string text;
  for (const float value : expected()) text += fmt::format("{:.0f} ", value == 0 ? 0.0 : double(value));
  return text;
}

void use(const Sequence& sequence, WeightsIn weights, const std::vector<std::string>& flags,
         const std::string& language = "c") {
  const base::Folder folder;
  write(sequence_files(sequence, LibraryFormat::library, weights), folder);
  base::replace_file(folder / ("user." + language), user);
  std::vector<std::string> command = {language == "c" ? "cc" : "c++", "-Wall", "-Wextra", "-Werror", "-pedantic"};
  for (const std::string& flag : flags) command.push_back(flag.ends_with(".c") ? (folder / flag).string() : flag);
  command.insert(command.end(), {"-I" + folder.path().string(), "-o", (folder / "user").string(),
                                 (folder / ("user." + language)).string(), (folder / "libnet.a").string()});
  run(command);
  std::vector<std::string> started = {(folder / "user").string()};
  if (weights == WeightsIn::file) started.push_back((folder / "net.weights").string());
  EXPECT_EQ(run(started).out, expected_text());
}

TEST(Sequence, RunsInCAndInCpp) {
  for (const WeightsIn weights : {WeightsIn::code, WeightsIn::file}) {
    use(net(host()), weights, {"-std=c11", "-DFOR=NULL,NULL", "-fsanitize=address,undefined"});
    use(net(host(2)), weights, {"-std=c++17", "-DFOR=graft::threads_for,NULL", "-pthread"}, "cpp");
    use(net(host(2)), weights, {"-std=c11", "-DFOR=NULL,NULL"});
    use(net(host(2)), weights, {"-std=c11", "-DFOR=graft_openmp_for,NULL", "-fopenmp"});
    use(net(host(2)), weights,
        {"-std=c11", "-include", "graft_pool.h", "-DFOR=graft_pool_for,graft_pool_start(2)", "graft_pool.c",
         "-pthread"});
  }
}

// Two shapes with the same kernels, of which the second has fewer calls: the extents say which runs.
ShapedSequences shaped() {
  ShapedSequences all;
  all.name = "net";
  all.extents = {"batch size", "length"};
  for (const std::int64_t length : {20, 40}) {
    Sequence sequence = net(host());
    sequence.name = fmt::format("net_{}", all.shapes.size());
    all.weights = std::exchange(sequence.weights, {});
    if (length == 40) sequence.inputs[0].shape = {2 * rows, inner};
    all.shapes.push_back({{1, length}, std::move(sequence)});
  }
  all.shapes[0].sequence.calls.pop_back();  // y is left alone
  all.shapes[0].sequence.calls.push_back(all.shapes[0].sequence.calls.front());
  all.shapes[0].sequence.calls.back().buffers[2] = Place{Where::output, 0};
  return all;
}

TEST(Sequence, OfSeveralShapesIsOneLibrary) {
  const base::Folder folder;
  auto files = sequence_files(shaped(), LibraryFormat::library, WeightsIn::file);
  write(files, folder);
  const std::string& header = files.at("net.h");
  EXPECT_TRUE(contains(header, "int net_run(int64_t batch_size, int64_t length, const float* input_0"));
  EXPECT_TRUE(contains(header, "With batch size=1, length=40"));
  const base::Document document = base::parse_json(files.at("net.json"), "net.json");
  EXPECT_EQ(document.at("shapes").as_list().size(), 2u);
  EXPECT_EQ(document.at("fit").as_string(), "net_fit");
  EXPECT_EQ(document.at("run").at("arguments").as_list().at(1).at("argument").as_string(), "length");
  EXPECT_EQ(document.find("inputs"), nullptr);
  base::replace_file(folder / "user.c", R"(
#include <stdio.h>
#include "net.h"
static _Alignas(64) float x[12 * 20], y[12 * 16], z[12 * 16], weights[NET_WEIGHTS_BYTES / 4], arena[NET_ARENA_BYTES / 4];
int main(int count, char** arguments) {
  long long batch[] = {1, 1, 1, 2, 0}, length[] = {20, 1, 21, 3, 41};
  int i;
  FILE* const file = fopen(arguments[count - 1], "rb");
  if (file == NULL || fread(weights, 1, NET_WEIGHTS_BYTES, file) != NET_WEIGHTS_BYTES) return 2;
  for (i = 0; i < 12 * 20; ++i) x[i] = (float)(i * 7 % 11 - 5);
  for (i = 0; i < 5; ++i) {
    int64_t b = batch[i], l = length[i];
    const int missing = net_fit(&b, &l);
    printf("%d %d %d; ", missing, (int)b, (int)l);
  }
  printf("%d; ", net_run(1, 30, x, y, z, weights, arena, NULL, NULL));
  printf("%.0f; ", (double)y[1]);
  printf("%d ", net_run(1, 20, x, y, z, weights, arena, NULL, NULL));
  printf("%.0f; ", (double)(z[1] - y[1]));
  printf("%d ", net_run(1, 40, x, y, z, weights, arena, NULL, NULL));
  printf("%.0f", (double)(y[1] - z[1]));
  return 0;
}
)");
  run({"cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I" + folder.path().string(),
       (folder / "user.c").string(), (folder / "libnet.a").string(), "-o", (folder / "user").string()});
  // y = x b without the second and third addition, then with them.
  const std::string difference = fmt::format("{:.0f}", double(test::bias[1]));
  EXPECT_EQ(run({(folder / "user").string(), (folder / "net.weights").string()}).out,
            fmt::format("0 1 20; 0 1 20; 0 1 40; 1 2 3; 1 0 41; 1; 0; 0 {0}; 0 {0}", difference));
  ShapedSequences same = shaped();
  same.shapes[1].extents = same.shapes[0].extents;
  EXPECT_THROW(sequence_files(same, LibraryFormat::library, WeightsIn::file), base::Failure);
  ShapedSequences other = shaped();
  other.shapes[1].sequence.inputs[0].name = "another";
  EXPECT_THROW(sequence_files(other, LibraryFormat::library, WeightsIn::file), base::Failure);
}

TEST(Sequence, NeedsNothingAndShowsItsFunctionAlone) {
  const base::Folder folder;
  Sequence sequence = net(host());
  for (const bool exported : {false, true}) {
    sequence.exported = exported;
    auto files = sequence_files(sequence, LibraryFormat::object, WeightsIn::code);
    EXPECT_EQ(files.size(), 4u);
    write(files, folder);
    const std::string object = (folder / "net.o").string(), shared = (folder / "net.so").string();
    EXPECT_EQ(run({"nm", "-u", object}).out, "");
    run({"cc", "-shared", "-nostdlib", object, "-Wl,--fatal-warnings", "-o", shared});
    std::string names;
    const std::string lines = run({"nm", "-D", "--defined-only", shared}).out;
    for (const std::string_view line : base::split(lines, '\n'))
      if (!line.empty()) names += " " + std::string(base::words(line).at(2));
    EXPECT_EQ(names, exported ? " net_run net_runs_here" : "");
  }
}

// Two in one program, whose kernels are the same.
TEST(Sequence, TwoArePartOfOneProgram) {
  const base::Folder folder;
  for (const char* name : {"net", "other"})
    write(sequence_files(net(host(), name), LibraryFormat::library, WeightsIn::code), folder);
  base::replace_file(folder / "both.c", R"(
#include "net.h"
#include "other.h"
int main(void) { return net_run == other_run || !net_runs_here(); }
)");
  run({"cc", (folder / "both.c").string(), (folder / "libnet.a").string(), (folder / "libother.a").string(), "-o",
       (folder / "both").string()});
  run({(folder / "both").string()});
}

TEST(Sequence, BuildsForEveryArchitecture) {
  for (const auto& [triple, cpu] : {std::pair{"riscv64-unknown-linux-gnu", "sifive-p670"},
                                    {"aarch64-unknown-linux-gnu", "cortex-a72"},
                                    {"powerpc64le-unknown-linux-gnu", "pwr9"},
                                    {"x86_64-unknown-linux-gnu", "x86-64-v3"}}) {
    const auto files = sequence_files(net(board(triple, cpu, "", 128)), LibraryFormat::library, WeightsIn::code);
    EXPECT_EQ(files.size(), 6u) << cpu;
    const base::Folder folder;
    write(files, folder);
    const std::string archive = (folder / "libnet.a").string();
    EXPECT_EQ(run({"ar", "t", archive}).out, "net.o\n");
    // POWER's linkers make the table of contents themselves.
    const std::string lines = run({"nm", "-u", archive}).out;
    for (const std::string_view line : base::split(lines, '\n'))
      EXPECT_TRUE(line.find(" U ") == std::string_view::npos || line.ends_with(" U .TOC.")) << cpu << line;
  }
}

TEST(Sequence, HeaderAndDocumentSayWhatIsCalled) {
  const auto files = sequence_files(net(host()), LibraryFormat::library, WeightsIn::file);
  const std::string& header = files.at("net.h");
  for (const char* part :
       {" *   input/0 (input): float[12][20], parameter input_0\n",
        " *   float (output): float[12][16], parameter float_\n",
        " *   input.0 (output): float[1][12][16], parameter input_0_\n", "#define NET_ARENA_BYTES 1536\n",
        "#define NET_WEIGHTS_BYTES 1344\n", "for a * / board",
        "void net_run(const float* input_0, float* float_, float* input_0_, const void* weights, void* arena, "
        "graft_parallel_for parallel_for, void* context);\n"})
    EXPECT_TRUE(contains(header, part)) << part << header;
  EXPECT_EQ(files.at("net.weights").size(), 1344u);
  const base::Document document = base::parse_json(files.at("net.json"), "net.json");
  EXPECT_EQ(document.at("kind").as_string(), "sequence");
  EXPECT_EQ(document.at("code").as_string(), "libnet.a");
  EXPECT_EQ(document.at("weights").as_string(), "net.weights");
  EXPECT_EQ(document.at("outputs").as_list()[1].at("name").as_string(), "input.0");
  EXPECT_EQ(document.at("outputs").as_list()[1].at("argument").as_string(), "input_0_");
  const auto& calls = document.at("calls").as_list();
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].at("label").as_string(), "layer 0");
  EXPECT_EQ(calls[0].at("kernel").as_string(), "net_multiply");
  EXPECT_TRUE(calls[0].at("buffers").as_list()[1].at("place").is_null());
  EXPECT_EQ(calls[1].at("buffers").as_list()[1].at("place").at("offset").as_integer(), 1280);
  EXPECT_EQ(calls[2].at("buffers").as_list()[0].at("place").at("number").as_integer(), 1);
  // Without a file nothing is passed.
  EXPECT_FALSE(contains(sequence_files(net(host()), LibraryFormat::library, WeightsIn::code).at("net.h"), "WEIGHTS"));
}

TEST(Sequence, HeadersCompileWhateverTensorsAreCalled) {
  for (const std::string name : {"", "/* */ // \\", "weights", "arena", "context", "net_run", "NET_ARENA_BYTES", "a\nb",
                                 "\xff\xc3", "int", "é"}) {
    SCOPED_TRACE(name);
    Sequence sequence = net(host());
    sequence.inputs[0].name = sequence.outputs[1].name = name;
    const base::Folder folder;
    write(sequence_files(sequence, LibraryFormat::object, WeightsIn::file), folder);
    base::replace_file(folder / "uses.c", "#include \"net.h\"\nint main(void) { (void)net_run; return 0; }\n");
    run({"gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", (folder / "uses.c").string()});
    run({"g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++",
         (folder / "uses.c").string()});
    (void)base::parse_json(base::read_file(folder / "net.json"), "net.json");
  }
}

// ---- executables

void expect_program_right_on(const Target& target, const std::vector<std::string>& prefix) {
  if (!prefix.empty() && !starts(prefix.front())) GTEST_SKIP() << prefix.front() << " is not installed";
  const std::string outputs = bytes_of(expected());
  const auto program = link_sequence_program(net(target), {bytes_of(x)}, {});
  ASSERT_TRUE(program.ok()) << program.reason().text;
  const base::Finished finished = run_program(*program, prefix);
  EXPECT_EQ(finished.exit_code, 0) << "signal " << finished.signal << finished.err;
  ASSERT_GT(finished.out.size(), outputs.size());
  EXPECT_EQ(finished.out.substr(finished.out.size() - outputs.size()), outputs);
  EXPECT_TRUE(contains(finished.out, "{\"graft\":1,\"kernels\":1}\n{\"begin\":0}\n{\"end\":0,\"first\":"));
  EXPECT_TRUE(contains(finished.out, fmt::format("\"bytes\":{}}}\n", outputs.size())));
  for (const bool right : {true, false}) {
    RunSettings settings;
    settings.self_checks = {{"net", base::hash_bytes(outputs) + (right ? 0 : 1)}};
    const auto checked = link_sequence_program(net(target), {bytes_of(x)}, settings);
    ASSERT_TRUE(checked.ok()) << checked.reason().text;
    const base::Finished said = run_program(*checked, prefix);
    EXPECT_EQ(said.exit_code, right ? 0 : 1);
    EXPECT_TRUE(said.out.starts_with("net: ") &&
                said.out.ends_with(right ? " ns, results right\n" : " ns, results WRONG\n"))
        << said.out;
  }
}

TEST(SequenceProgram, OnThisMachine) {
  expect_program_right_on(host(), {});
}
TEST(SequenceProgram, Riscv64) {
  expect_program_right_on(board("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v", 128),
                          {"qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=128"});
}
TEST(SequenceProgram, Aarch64) {
  expect_program_right_on(board("aarch64-unknown-linux-gnu", "cortex-a72", "", 128), {"qemu-aarch64"});
}
TEST(SequenceProgram, Powerpc64le) {
  expect_program_right_on(board("powerpc64le-unknown-linux-gnu", "pwr9", "", 128), {"qemu-ppc64le", "-cpu", "power9"});
}

TEST(SequenceProgram, RefusesOtherInputs) {
  EXPECT_EQ(link_sequence_program(net(host()), {}, {}).reason().text, "executable: 0 inputs, net has 1");
  EXPECT_EQ(link_sequence_program(net(host()), {"abc"}, {}).reason().text,
            "executable: input 0 has 3 bytes instead of 960");
}

// ---- as one kernel

TEST(SequenceKernel, CallByCallDoesTheSame) {
  const Sequence sequence = net(host());
  const auto shared = link_shared_sequence(sequence);
  ASSERT_TRUE(shared.ok()) << shared.reason().text;
  const test::Library library(*shared);
  const Signature is = signature(sequence);
  EXPECT_EQ(is.prepared_bytes, 1344);
  EXPECT_EQ(is.scratch_bytes, 1536);
  const std::vector<float> right = expected();
  for (const bool by_call : {false, true}) {
    alignas(64) static float in[rows * inner], y[rows * columns], z[rows * columns];
    alignas(64) static char weights[1344], arena[1536];
    std::memcpy(in, x.data(), sizeof in);
    std::memcpy(weights, sequence.weights.data(), sizeof weights);
    std::memset(y, 255, sizeof y), std::memset(z, 255, sizeof z), std::memset(arena, 255, sizeof arena);
    void* const buffers[] = {in, y, z};
    if (by_call) {
      test::Run* const* const calls = library.find<test::Run*>("net_calls");
      for (int c = 0; c < 3; ++c) calls[c](buffers, weights, arena, nullptr, nullptr);
    } else {
      library.find<test::Run>("net_run")(buffers, weights, arena, nullptr, nullptr);
    }
    for (std::size_t i = 0; i < std::size_t(rows * columns); ++i) {
      EXPECT_EQ(y[i], right[i]) << i;
      EXPECT_EQ(z[i], right[std::size_t(rows * columns) + i]) << i;
    }
  }
}

// ---- refusals

TEST(Sequence, RefusesNames) {
  const auto refused = [](const std::string& name) {
    Sequence sequence = net(host());
    sequence.name = name;
    return refusal([&] { return sequence_files(sequence, LibraryFormat::library, WeightsIn::code); });
  };
  EXPECT_EQ(refused("a-b"), "network name: 'a-b' is not a C identifier");
  EXPECT_EQ(refused("math"), "network name: 'math': math.h is another header; choose another");
}

TEST(Sequence, RefusesWhatContradictsItself) {
  const auto failure = [](const std::function<void(Sequence&)>& change) {
    Sequence sequence = net(host());
    change(sequence);
    return base::refusal<base::Failure>([&] { (void)link_shared_sequence(sequence); });
  };
  using S = Sequence;
  EXPECT_EQ(failure([](S& s) { s.arena_bytes = 1535; }),
            "sequence net: call 1 (1): scratch: 768 bytes from 768 on are outside of the arena, which has 1535");
  EXPECT_EQ(failure([](S& s) { s.calls[0].buffers[0]->number = 1; }),
            "sequence net: call 0 (layer 0): A: there is no input 1");
  EXPECT_EQ(failure([](S& s) { s.calls[0].buffers[0].reset(); }), "sequence net: call 0 (layer 0): A: has no place");
  EXPECT_EQ(failure([](S& s) { s.calls[0].buffers[2] = Place{Where::weights}; }),
            "sequence net: call 0 (layer 0): C: is written, but its place is constant");
  EXPECT_EQ(failure([](S& s) { s.calls[0].buffers.pop_back(); }),
            "sequence net: call 0 (layer 0): 2 buffers for 3 parameters");
  EXPECT_EQ(failure([](S& s) { s.calls[0].prepared.reset(); }),
            "sequence net: call 0 (layer 0): prepared: has no place");
  EXPECT_EQ(failure([](S& s) { s.calls[0].prepared->where = Where::arena; }),
            "sequence net: call 0 (layer 0): prepared: is not in the weights");
  EXPECT_EQ(failure([](S& s) { s.calls[1].scratch->offset = 8; }),
            "sequence net: call 1 (1): scratch: offset 8 is not aligned");
  EXPECT_EQ(failure([](S& s) { s.calls[1].kernel = 2; }), "sequence net: call 1 (1): there is no kernel 2");
  EXPECT_EQ(failure([](S& s) { s.calls.pop_back(); }), "sequence net: output 0: no call writes it");
  Sequence foreign = net(host());
  foreign.kernels[0].symbol = "k";
  EXPECT_EQ(
      base::refusal<base::Failure>([&] { (void)sequence_files(foreign, LibraryFormat::library, WeightsIn::code); }),
      "sequence net: kernel k: its symbol does not begin with net_");
  EXPECT_EQ(failure([](S& s) { s.kernels[0].symbol = s.kernels[1].symbol; }),
            "sequence net: kernel net_add: occurs twice");
}

}  // namespace
}  // namespace graft::codegen
