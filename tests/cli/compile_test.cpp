// graft compile, end to end.
#include <cmath>
#include <cstring>
#include <filesystem>

#include "tests/cli/support.h"
#include "tests/support/npz.h"

namespace graft::cli {
namespace {

class Compile : public testing::Test {
 protected:
  std::string tuned(const std::string& workload, const std::string& platform, const std::string& name) {
    const std::string run = (folder / name).string();
    json_of(quick({"tune", workload, "--platform", platform, "--model", "random", "--explorer", "random", "--trials",
                   "12", "--rebuild", "1", "--out", run}));
    return run;
  }
  base::Folder folder;
};

TEST_F(Compile, ALibraryHoldsWhatTuneFound) {
  const std::string first = tuned(small, "native:v2", "a"), second = tuned(other, "native:v2", "b");
  const std::string out = (folder / "lib").string();
  const base::Document made = json_of(
      {"compile", first, second, "--out", out, "--name", "two", "--variants", "2", "--function", small + "=mine"});
  ASSERT_EQ(made.at("functions").as_list().size(), 2u);
  const base::Document& mine = made.at("functions").as_list()[0];
  EXPECT_EQ(mine.at("name").as_string(), "mine");
  EXPECT_EQ(made.at("functions").as_list()[1].at("name").as_string(), "matmul_m16_n48_k24");
  const base::Document best = base::parse_json(base::read_file(folder / "a/best.json"), "best.json").at("best");
  EXPECT_EQ(mine.at("variants").as_list()[0].at("seconds").as_number(), best.at("seconds").as_number());
  EXPECT_EQ(mine.at("variants").as_list()[0].at("check").as_string(), "host");
  for (const char* const file : {"libtwo.a", "two.h", "two.json", "two.pc", "twoConfig.cmake", "graft_parallel.h"})
    EXPECT_TRUE(std::filesystem::exists(folder / "lib" / file)) << file;
  EXPECT_NE(base::read_file(folder / "lib/two.h").find("two_mine_select("), std::string::npos);
  const std::string interface = (folder / "lib/two.json").string();
  const base::Document inspected = json_of({"inspect", interface});
  EXPECT_EQ(inspected.at("kind").as_string(), "library");
  EXPECT_EQ(inspected.at("library"), base::parse_json(base::read_file(interface), "two.json"));
  EXPECT_NE(graft({"inspect", interface}).out.find("library two of 2 functions for native:v2"), std::string::npos);
}

TEST_F(Compile, SeveralPlatformsAreOneLibrary) {
  const std::string narrow = tuned(small, "native:v2", "a"), wide = tuned(small, "native:v3", "b"),
                    one = tuned(other, "native:v2", "c");
  const base::Document made = json_of({"compile", narrow, one, wide, "--out", (folder / "lib-both").string()});
  EXPECT_EQ(made.at("platform").as_string(), "native:v3, native:v2");
  const base::Document::List& functions = made.at("functions").as_list();
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].at("symbol").as_string(), "both_matmul_m24_n32_k16");
  ASSERT_EQ(functions[0].at("variants").as_list().size(), 2u);
  EXPECT_EQ(functions[0].at("variants").as_list()[0].at("platform").as_string(), "native:v3");
  EXPECT_EQ(functions[1].at("variants").as_list().size(), 1u);
  const base::Document library = base::parse_json(base::read_file(folder / "lib-both/both.json"), "both.json");
  EXPECT_EQ(library.at("use_platform").as_string(), "both_use_platform");
  const base::Document::List& platforms = library.at("platforms").as_list();
  ASSERT_EQ(platforms.size(), 2u);
  EXPECT_EQ(platforms[1].at("needs").to_json(), R"(["sse3","ssse3","sse4.1","sse4.2","popcnt"])");
  const std::string user = (folder / "user").string();
  base::replace_file(folder / "user.c", "#include \"both.h\"\nint main(void) { return !both_runs_here(); }\n");
  const base::Finished built =
      base::run_process({"cc", "-o", user, "-I", (folder / "lib-both").string(), (folder / "user.c").string(),
                         (folder / "lib-both/libboth.a").string()},
                        std::chrono::minutes(1));
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_EQ(base::run_process({user}, std::chrono::minutes(1)).exit_code, 0);
}

TEST_F(Compile, ProgramsCheckThemselves) {
  const std::string run = tuned(small, "native:v2", "a");
  json_of({"compile", run, "--out", (folder / "bin").string(), "--format", "bench", "--variants", "2"});
  const base::Finished finished =
      base::run_process({(folder / "bin/matmul_m24_n32_k16").string()}, std::chrono::minutes(1));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(lines_in(finished.out), 2u);
  EXPECT_NE(finished.out.find("(variant 1): "), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find(" ns, results right\n"), std::string::npos) << finished.out;
  // With other input data than it was made with, it says that the results are wrong.
  std::string bytes = base::read_file(folder / "bin/matmul_m24_n32_k16");
  bool changed = false;
  for (std::size_t at = 0; at + 64 <= bytes.size() && !changed; at += 64) {
    float first = 0;
    std::memcpy(&first, bytes.data() + at, sizeof first);
    int plausible = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + at + 4 * i, sizeof value);
      plausible += std::abs(value) > 1e-3f && std::abs(value) <= 1;
    }
    if (plausible < 15) continue;
    const float wrong = 0.75f - first;
    std::memcpy(bytes.data() + at, &wrong, sizeof wrong);
    changed = true;
  }
  ASSERT_TRUE(changed);
  base::replace_file(folder / "bin/wrong", bytes);
  std::filesystem::permissions(folder / "bin/wrong", std::filesystem::perms::owner_all);
  const base::Finished found = base::run_process({(folder / "bin/wrong").string()}, std::chrono::minutes(1));
  EXPECT_EQ(found.exit_code, 1);
  EXPECT_NE(found.out.find("results WRONG"), std::string::npos) << found.out;
}

const std::string conv = "conv2d(c=8,h=10,w=10,k=16,r=3,s=3,pad=1)";

std::vector<float> weights() {
  std::vector<float> all;
  for (int i = 0; i < 16 * 8 * 9; ++i) all.push_back(float(i * 7 % 11 - 5));
  return all;
}

// Sixteen programs of a space that stores weights in several ways, under sanitizers, against a plain loop.
TEST_F(Compile, ConstantsBecomePartOfTheLibrary) {
  const std::string run = (folder / "a").string(), out = (folder / "lib").string();
  json_of(quick({"tune", conv, "--platform", "native:v2", "--model", "random", "--explorer", "random", "--trials", "24",
                 "--rebuild", "1", "--out", run}));
  write_npz(folder / "w.npz", {{"cv/weights.npy", npy({16, 8, 3, 3}, weights())}});
  const auto compiled = [&](const std::string& archive, const std::string& format = "library") {
    return graft({"compile", run, "--out", out, "--name", "kernels", "--function", conv + "=cv", "--variants", "16",
                  "--constants", (folder / archive).string(), "--format", format});
  };
  const base::Finished missing = compiled("w.npz");
  EXPECT_EQ(missing.exit_code, 2);
  const std::size_t named = missing.err.find("no array 'cv/");
  ASSERT_NE(named, std::string::npos) << missing.err;  // which says what its name and shape are
  EXPECT_NE(missing.err.find("of shape [16, 8, 3, 3]"), std::string::npos) << missing.err;
  const std::string name = missing.err.substr(named + 10, missing.err.find('\'', named + 10) - named - 10);
  write_npz(folder / "shape.npz", {{name + ".npy", npy({16, 72}, weights())}});
  EXPECT_NE(compiled("shape.npz").err.find("has shape [16, 72], expected [16, 8, 3, 3]"), std::string::npos);
  write_npz(folder / "more.npz", {{name + ".npy", npy({16, 8, 3, 3}, weights())}, {"x.npy", npy({1}, {1})}});
  EXPECT_NE(compiled("more.npz").err.find("array 'x' is not a constant of these functions"), std::string::npos);
  write_npz(folder / "w.npz", {{name + ".npy", npy({16, 8, 3, 3}, weights())}});
  EXPECT_NE(compiled("w.npz", "bench").err.find("a program that checks itself brings its own"), std::string::npos);

  const base::Finished made = compiled("w.npz");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("right (host)"), std::string::npos) << made.out;
  const std::string header = base::read_file(folder / "lib/kernels.h");
  EXPECT_EQ(header.find("cv_prepare"), std::string::npos);
  base::replace_file(folder / "user.c", R"(
#include <stdio.h>
#include "kernels.h"
static float x[8 * 10 * 10] __attribute__((aligned(64))), y[16 * 10 * 10] __attribute__((aligned(64)));
#if KERNELS_CV_SCRATCH_BYTES
static char scratch[KERNELS_CV_SCRATCH_BYTES] __attribute__((aligned(64)));
#define MEMORY , scratch
#else
#define MEMORY
#endif
int main(void) {
  int wrong = 0, o, i, j, l, u, v;
  for (i = 0; i < 800; ++i) x[i] = (float)(i * 5 % 7 - 3);
  kernels_cv(x, y MEMORY);
  printf("%f\n", y[0]);
  for (i = 0; i < 1600; ++i) y[i] = -1e9f;
  if (kernels_cv_select(x, y MEMORY, 0, NULL, NULL) > 15) return 3;
  kernels_cv(x, y MEMORY);
  for (o = 0; o < 16; ++o) for (i = 0; i < 10; ++i) for (j = 0; j < 10; ++j) {
    float sum = 0;
    for (l = 0; l < 8; ++l) for (u = 0; u < 3; ++u) for (v = 0; v < 3; ++v) {
      const int p = i + u - 1, q = j + v - 1;
      if (p >= 0 && q >= 0 && p < 10 && q < 10)
        sum += x[(l * 10 + p) * 10 + q] * (float)((((o * 8 + l) * 3 + u) * 3 + v) * 7 % 11 - 5);
    }
    sum -= y[(o * 10 + i) * 10 + j];
    wrong += !(sum < 1e-2f && sum > -1e-2f);
  }
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
)");
  const std::string user = (folder / "user").string();
  const base::Finished built =
      base::run_process({"cc", "-g", "-fsanitize=address,undefined", "-o", user, (folder / "user.c").string(), "-I",
                         out, (folder / "lib/libkernels.a").string()},
                        std::chrono::minutes(1));
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const base::Finished used = base::run_process({user}, std::chrono::minutes(1));
  EXPECT_EQ(used.exit_code, 0) << used.out << used.err;
  EXPECT_NE(used.out.find("\n0 wrong\n"), std::string::npos) << used.out;
}

// For another architecture constants are prepared here and checked there.
TEST_F(Compile, ConstantsOfOtherArchitecturesAreChecked) {
  const std::string run = (folder / "a").string();
  json_of({"tune", conv, "--platform", "model:sifive-p670", "--model", "random", "--explorer", "random", "--trials",
           "16", "--rebuild", "1", "--out", run});
  write_npz(folder / "w.npz", {{"conv2d_c8_h10_w10_k16_r3_s3_pad1/W.npy", npy({16, 8, 3, 3}, weights())}});
  const base::Document made = json_of({"compile", run, "--out", (folder / "lib").string(), "--variants", "4",
                                       "--constants", (folder / "w.npz").string()});
  for (const base::Document& variant : made.at("functions").as_list()[0].at("variants").as_list())
    EXPECT_EQ(variant.at("check").as_string(), "qemu");
}

TEST_F(Compile, RefusesWhatIsNoRunAndWhatDoesNotGoTogether) {
  const std::string first = tuned(small, "native:v2", "a"), second = tuned(small, "native:v3", "b");
  const std::string third = tuned(other, "native:v3", "c"), out = (folder / "lib").string();
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "compile");
    arguments.insert(arguments.end(), {"--out", out});
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(out));
    return finished.err;
  };
  EXPECT_NE(refused({folder.path().string()}).find("a folder of runs; name one"), std::string::npos);
  EXPECT_NE(refused({first, first}).find("a second run of"), std::string::npos);
  EXPECT_NE(refused({first, third, "--format", "bench"}).find("is for one platform"), std::string::npos);
  EXPECT_NE(refused({first, "--format", "exe"}).find("'exe' is neither library, object nor bench"), std::string::npos);
  EXPECT_NE(refused({first, "--function", "matmul"}).find("expected WORKLOAD=NAME"), std::string::npos);
  EXPECT_NE(refused({first, "--function", other + "=x"}).find("no run of this workload"), std::string::npos);
  EXPECT_NE(refused({first, "--function", small + "=9"}).find("'9' is not a C identifier"), std::string::npos);
}

}  // namespace
}  // namespace graft::cli
