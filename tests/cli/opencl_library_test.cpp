// graft compile of what was tuned on a device of OpenCL, end to end, on a device of this host.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/support.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/support/npz.h"

namespace graft::cli {
namespace {

class OpenclLibrary : public testing::Test {
 protected:
  void SetUp() override {
    if (graft({"platform", "show", "opencl:0"}).exit_code != 0)
      GTEST_SKIP() << "OpenCL has no device here (pocl-opencl-icd is one)";
    base::replace_file(folder / "include.c", "#include <CL/cl.h>\n");
    if (built({"-c", (folder / "include.c").string(), "-o", (folder / "include.o").string()}).exit_code != 0)
      GTEST_SKIP() << "OpenCL's headers are not installed (opencl-c-headers)";
  }

  std::string tuned(const std::string& workload, const std::string& name, int trials = 2) {
    const std::string run = (folder / name).string();
    json_of(quick({"tune", workload, "--platform", "opencl:0", "--model", "random", "--explorer", "random", "--trials",
                   std::to_string(trials), "--out", run}));
    return run;
  }
  static base::Finished built(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "cc");
    return base::run_process(arguments, std::chrono::minutes(1));
  }
  // A program of the library's own source and another.
  base::Finished result_of(const std::string& library, const std::string& name, const std::string& source,
                           const std::vector<std::string>& flags) {
    const std::string program = (folder / "program").string();
    std::vector<std::string> arguments = {"-Wall", "-Wextra", "-Werror", "-pedantic",
                                          "-I",    library,   source,    library + "/" + name + ".c",
                                          "-o",    program,   "-lm"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    // Where only the loader is installed, its name has a number.
    for (const char* const loader : {"-lOpenCL", "-l:libOpenCL.so.1"}) {
      arguments.push_back(loader);
      const base::Finished made = built(arguments);
      if (made.exit_code == 0) return base::run_process({program}, std::chrono::minutes(2));
      if (loader[2] == ':') ADD_FAILURE() << made.err;
      arguments.pop_back();
    }
    return {};
  }
  base::Folder folder;
};

TEST_F(OpenclLibrary, IsCThatChecksItself) {
  const std::string out = (folder / "lib").string();
  const base::Document made =
      json_of({"compile", tuned(small, "a"), tuned("conv2d(n=1,c=8,h=6,w=6,k=8,r=3,s=3,stride=1,pad=1)", "b"),
               tuned("input A[24,20] : i8; constant B[20,16] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] "
                     "where i=24, j=16, l=20",
                     "c"),
               "--out", out, "--name", "gpu", "--function", small + "=mine"});
  ASSERT_EQ(made.at("functions").as_list().size(), 3u);
  EXPECT_EQ(made.at("platform").as_string(), "opencl:0");
  const base::Document& mine = made.at("functions").as_list()[0];
  EXPECT_EQ(mine.at("symbol").as_string(), "gpu_mine");
  EXPECT_EQ(mine.at("variants").as_list()[0].at("check").as_string(), "host");
  for (const char* const file : {"gpu.h", "gpu.c", "gpu.json", "gpu_check.c", "gpu_mine.cl", "graft_opencl.h"})
    EXPECT_TRUE(std::filesystem::exists(folder / "lib" / file)) << file;
  const base::Finished right = result_of(out, "gpu", out + "/gpu_check.c", {"-std=c11"});
  EXPECT_EQ(right.exit_code, 0) << right.out << right.err;
  EXPECT_EQ(lines_in(right.out), 3u) << right.out;
  EXPECT_NE(right.out.find("mine: right, "), std::string::npos) << right.out;
  // gpu.c has the sources, too: sums that begin with another number.
  std::string source = base::read_file(folder / "lib/gpu.c");
  for (std::size_t at = 0; (at = source.find("0.0f", at)) != std::string::npos;) source[at] = '1';
  base::replace_file(folder / "lib/gpu.c", source);
  const base::Finished wrong = result_of(out, "gpu", out + "/gpu_check.c", {"-std=c11"});
  EXPECT_EQ(wrong.exit_code, 1) << wrong.out << wrong.err;
  EXPECT_NE(wrong.out.find("mine: WRONG, "), std::string::npos) << wrong.out;
}

TEST_F(OpenclLibrary, IsCalledByTheExample) {
  const std::string out = (folder / "lib-gpu").string();
  json_of({"compile", tuned("matmul(m=256,n=256,k=256)", "a"), "--out", out});
  const base::Finished finished =
      result_of(out, "gpu", std::string(GRAFT_SOURCE_DIR) + "/examples/deploy/opencl.c", {"-std=c99"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "0 of 65536 results are wrong\n");
}

TEST_F(OpenclLibrary, NamesMayMeanSomethingElseInC) {
  const std::string out = (folder / "lib").string();
  const std::string odd =
      tuned("input kernel[16]; input cl_mem[16]; output all[i] = kernel[i] - cl_mem[i] where i=16", "a");
  json_of({"compile", odd, "--out", out, "--name", "k"});
  const base::Finished right = result_of(out, "k", out + "/k_check.c", {"-std=c11"});
  EXPECT_EQ(right.exit_code, 0) << right.out << right.err;
  EXPECT_NE(base::read_file(folder / "lib/k.h").find(" * kernel_: f32 [16], 64 bytes\n"), std::string::npos);
  const std::string first = tuned(small, "b"), second = tuned(other, "c");
  for (const auto& [names, words] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--name", "math"}, "math"},
           {{"--function", small + "=9x"}, "'9x' is not a C identifier"},
           {{"--function", small + "=x", "--function", other + "=x"}, "'x' occurs twice"},
           {{"--name", "k", "--function", small + "=x", "--function", other + "=x_create"},
            "what two functions need"}}) {
    std::vector<std::string> arguments = {"compile", first, second, "--out", (folder / "none").string()};
    arguments.insert(arguments.end(), names.begin(), names.end());
    const base::Finished refused = graft(arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_NE(refused.err.find(words), std::string::npos) << refused.err;
  }
}

TEST_F(OpenclLibrary, IsFoundByCMake) {
  json_of({"compile", tuned(small, "a"), "--out", (folder / "lib-gpu").string()});
  base::replace_file(folder / "main.c",
                     "#include \"gpu.h\"\nint main(void) { return gpu_matmul_m24_n32_k16_create == 0; }\n");
  base::replace_file(
      folder / "CMakeLists.txt",
      "cmake_minimum_required(VERSION 3.16)\nproject(user LANGUAGES C)\nfind_package(gpu CONFIG REQUIRED)\n"
      "add_executable(user main.c)\ntarget_link_libraries(user PRIVATE gpu::gpu)\n");
  const std::string build = (folder / "build").string();
  std::vector<std::string> configure = {"cmake", "-S",  folder.path().string(),
                                        "-B",    build, "-Dgpu_DIR=" + (folder / "lib-gpu").string()};
  const auto run = [](const std::vector<std::string>& arguments) {
    return base::run_process(arguments, std::chrono::minutes(1));
  };
  if (run(configure).exit_code != 0) GTEST_SKIP() << "CMake does not find OpenCL (ocl-icd-opencl-dev)";
  const base::Finished made = run({"cmake", "--build", build});
  EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
  EXPECT_EQ(run({build + "/user"}).exit_code, 0);
}

TEST_F(OpenclLibrary, SaysWhatItHas) {
  const std::string interface = (folder / "lib/lib.json").string();
  json_of({"compile", tuned(small, "a"), "--out", (folder / "lib").string(), "--name", "lib"});
  const base::Document inspected = json_of({"inspect", interface});
  EXPECT_EQ(inspected.at("kind").as_string(), "opencl");
  EXPECT_EQ(inspected.at("library"), base::parse_json(base::read_file(interface), "lib.json"));
  EXPECT_NE(graft({"inspect", interface}).out.find("library lib of 1 function of OpenCL for opencl:0"),
            std::string::npos);
  const base::Document& function = inspected.at("library").at("functions").as_list()[0];
  EXPECT_EQ(function.at("create").as_string(), "lib_matmul_m24_n32_k16_create");
  EXPECT_EQ(base::read_file(folder / "lib" / function.at("source").as_string()).rfind("// launch run ", 0), 0u);
  // Every key is in the page, and the page's keys that are always there are here.
  const std::string page = base::read_file(std::filesystem::path(GRAFT_SOURCE_DIR) / "docs/reference/library-json.md");
  const std::string part = page.substr(page.find("## Kernels of OpenCL"));
  for (const auto& [key, value] : inspected.at("library").as_map())
    EXPECT_NE(part.find("`" + key), std::string::npos) << key;
  for (const auto& [key, value] : function.as_map())
    EXPECT_NE(part.find("`" + (key == "name" ? key : "functions[]." + key)), std::string::npos) << key;
}

TEST_F(OpenclLibrary, RefusesWhatItCannotBe) {
  const std::string run = tuned(small, "a");
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "compile");
    arguments.insert(arguments.end(), {"--out", (folder / "none").string()});
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 2) << finished.out;
    EXPECT_EQ(lines_in(finished.err), 1u) << finished.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "none"));
    return finished.err;
  };
  for (const char* const format : {"object", "bench"})
    EXPECT_NE(refused({run, "--format", format}).find("kernels of OpenCL are a library"), std::string::npos) << format;
  EXPECT_NE(refused({run, "--variants", "2"}).find("one variant"), std::string::npos);
  write_npz(folder / "weights.npz", {{"matmul_m24_n32_k16/B.npy", npy({16, 32}, std::vector<float>(512, 1))}});
  EXPECT_NE(refused({run, "--constants", (folder / "weights.npz").string()}).find("are passed their constants"),
            std::string::npos);
  const std::string native = (folder / "native").string();
  json_of(quick({"tune", other, "--platform", "native:v2", "--model", "random", "--explorer", "random", "--trials", "2",
                 "--rebuild", "0", "--out", native}));
  EXPECT_NE(refused({run, native}).find("for one platform"), std::string::npos);
  base::replace_file(folder / "net.onnx",
                     graph::file::GraphFile().input("x", {2, 3}).node("Exp", {"x"}, {"y"}).output("y").model());
  const base::Finished network = graft({"tune", (folder / "net.onnx").string(), "--platform", "opencl:0", "--trials",
                                        "1", "--out", (folder / "net").string()});
  EXPECT_EQ(network.exit_code, 2) << network.out;
  EXPECT_NE(network.err.find("networks for GPUs"), std::string::npos) << network.err;
}

}  // namespace
}  // namespace graft::cli
