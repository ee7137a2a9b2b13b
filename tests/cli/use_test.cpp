// Help, exit codes, and refusals: one line on standard error that names place, value and remedy; nothing on standard
// output.
#include <algorithm>

#include "base/shortened.h"
#include "codegen/schedule/rules.h"
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

TEST(Help, ListsEveryCommand) {
  const base::Finished finished = graft({"--help"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
  for (const char* name : {"doctor", "platform list", "platform show", "platform probe", "platform validate", "collect",
                           "clean", "compare", "train", "adapt", "evaluate", "tune", "inspect", "report"}) {
    EXPECT_NE(finished.out.find(name), std::string::npos) << name;
    const base::Finished own = graft({"help", std::string(name).substr(0, std::string(name).find(' '))});
    if (std::string(name).find(' ') == std::string::npos) {
      EXPECT_EQ(own.exit_code, 0) << name << own.err;
      for (const char* flag : {"--json", "--seed", "--threads", "--quiet"})
        EXPECT_NE(own.out.find(flag), std::string::npos) << name;
    }
  }
  EXPECT_EQ(graft({"platform", "list", "--help"}).exit_code, 0);
}

TEST(Help, WithoutACommandIsWrongUse) {
  EXPECT_EQ(graft({}).exit_code, 2);
}

TEST(Help, ShowsDefaultsAndExamples) {
  const std::string out = graft({"tune", "--help"}).out;
  EXPECT_NE(out.find("256"), std::string::npos);
  EXPECT_NE(out.find("graft tune 'matmul"), std::string::npos);
}

TEST(Version, ComesFromTheBuild) {
  const std::string out = graft({"--version"}).out;
  EXPECT_TRUE(out.starts_with(std::string("graft ") + GRAFT_VERSION + "\n")) << out;
  for (const char* part : {"\ncommit: ", "\ncompiler: ", "\nLLVM: 19.", "\nHDF5: 1."})
    EXPECT_NE(out.find(part), std::string::npos) << part << " in " << out;
}

struct Refused {
  std::vector<std::string> arguments;
  std::vector<std::string> words;  // that the line must contain
};

class Refusal : public ::testing::TestWithParam<Refused> {};

TEST_P(Refusal, IsOneLineThatSaysWhereWhatAndHow) {
  const base::Finished finished = graft(GetParam().arguments);
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(lines_in(finished.err), 1u) << finished.err;
  EXPECT_TRUE(finished.err.starts_with("error: ")) << finished.err;
  for (const std::string& word : GetParam().words)
    EXPECT_NE(finished.err.find(word), std::string::npos) << word << " in " << finished.err;
}

const std::vector<Refused> kRefused = {
    {{"tunne"}, {"unknown command 'tunne'", "did you mean 'tune'"}},
    {{"platform", "lst"}, {"unknown command 'lst'", "did you mean 'list'"}},
    {{"platform"}, {"list|show|probe"}},
    {{"--json", "tune"}, {"the command comes first"}},
    {{"tune", small, "--trails", "5"}, {"unknown flag '--trails'", "did you mean '--trials'"}},
    {{"tune", small, "--trials", "five"}, {"--trials", "expected an integer", "'five'"}},
    {{"tune", small, "--trials", "1.5"}, {"--trials", "expected an integer", "'1.5'"}},
    {{"tune", small, "--trials", "0"}, {"--trials", "at least 1", "got 0"}},
    {{"tune", small, "--trials", "-3"}, {"--trials", "at least 1", "got -3"}},
    {{"tune", small, "--trials", "99999999999999999999"}, {"--trials", "out of range"}},
    {{"tune", small, "--trials", "5", "--trials", "6"}, {"--trials", "more than once"}},
    {{"tune", small, "--trials"}, {"--trials", "needs a value"}},
    {{"tune", small, "--minimum-ms", "nan"}, {"--minimum-ms", "expected a number", "'nan'"}},
    {{"tune", small, "--repetitions", "65"}, {"--repetitions", "at most 64"}},
    {{"tune"}, {"missing WORKLOAD", "see graft tune --help"}},
    {{"tune", small, "another"}, {"another", "graft tune does not take this"}},
    {{"collect", small}, {"--out is missing"}},
    {{"tune", "matmull(m=1,n=1,k=1)"}, {"unknown operator 'matmull'", "did you mean 'matmul'"}},
    {{"tune", "matmul(m=1,n=1,q=1)"}, {"no parameter 'q'"}},
    {{"tune", "matmul(m=0,n=1,k=1)"}, {"m must be at least 1", "got 0"}},
    {{"tune", "matmul(m=1,n=1)"}, {"missing parameter 'k'"}},
    {{"tune", "resnet18.C13"}, {"resnet18.C1"}},
    {{"tune", small, "--platform", "native:v33"}, {"native:v33", "did you mean 'native:v3'"}},
    {{"tune", small, "--platform", "nothing.yaml"}, {"nothing.yaml"}},
    {{"tune", small, "--explorer", "anealing"}, {"unknown explorer 'anealing'", "did you mean 'annealing'"}},
    {{"tune", small, "--acquisition", "ei"}, {"unknown flag '--acquisition'"}},
    {{"tune", small, "--layouts", "fre"}, {"--layouts", "'fre' is not given, free or default"}},
    {{"tune", small, "--model", "nothing.h5"}, {"--model", "'nothing.h5' is neither a file nor one of scratch"}},
    {{"tune", small, "--again"}, {"--again", "--library"}},
    {{"tune", "resnet18"}, {"resnet18.C1 to resnet18.C12", "graft tune-all suite:resnet18"}},
    {{"tune", "suite:resnet18"}, {"a list of workloads", "graft tune-all"}},
    {{"tune", GRAFT_SOURCE_DIR "/README.md"}, {"a file, and a workload is expected here", "$(cat "}},
    {{"inspect", GRAFT_SOURCE_DIR "/CMakeLists.txt"}, {"a file, and a workload is expected here", "$(cat "}},
    {{"tune-all", GRAFT_SOURCE_DIR "/docs", "--out", "x"}, {"a folder, and a workload is expected here"}},
    {{"tune", small, "--platform", "native:threads=2"}, {"native,threads=2"}},
    {{"tune", small, "--platform", "native,native:v3"}, {"several platforms, and one is expected here"}},
    {{"tune", small, "--platform", "cortex-a72"}, {"did you mean 'model:cortex-a72'?"}},
    {{"adapt", "--model", "m.h5", "--workloads", small, "--shots", "4", "--out", "x.h5"},
     {"--model", "MODEL.h5 has no flag; write graft adapt MODEL.h5"}},
    {{"inspect", "suite:shiped"}, {"unknown suite", "did you mean 'shipped'"}},
    {{"inspect", GRAFT_SOURCE_DIR "/models/base.h5", "--workload", small}, {"go with a run or a workload"}},
    {{"report", GRAFT_SOURCE_DIR "/models/base.h5", "--out", "x.html"}, {"an HDF5 file, and JSON is expected here"}},
    {{"inspect", GRAFT_SOURCE_DIR "/docs"}, {"no run of graft"}},
    {{"tune", small, "--space", "nothing.space"}, {"nothing.space"}},
    {{"collect", small, small, "--out", "twice.h5"}, {"twice"}},
    {{"collect", "suite:resnet18", "resnet18.C2", "--out", "twice.h5"}, {"twice"}},
    {{"collect", "suite:shiped", "--out", "x.h5"}, {"unknown suite", "did you mean 'shipped'"}},
    {{"collect", "--out", "x.h5"}, {"WORKLOAD", "nothing to collect"}},
    {{"collect", small, "--platform", "native:v2,native:v2", "--out", "."}, {"--platform", "native:v2", "twice"}},
    {{"collect", "--programs", "missing.h5", "--out", "x.h5"}, {"missing.h5"}},
    {{"collect", "--programs", "x.h5", "--explorer", "annealing", "--out", "y.h5"}, {"--explorer", "--programs"}},
    {{"clean", "missing.h5", "--out", "x.h5"}, {"missing.h5"}},
    {{"clean", "missing.h5"}, {"--out is missing"}},
    {{"compare", "missing.h5", "other.h5"}, {"missing.h5"}},
    {{"collect", small, "--out", "no/such/folder/x.h5"}, {"--out", "no/such/folder", "does not exist"}},
    {{"train", "nothing.h5", "--out", "m.h5", "--learner", "mamml"},
     {"unknown learner 'mamml'", "did you mean 'maml'"}},
    {{"train", "nothing.h5", "--out", "m.h5", "--encoding", "context_relatoin"},
     {"unknown encoding", "did you mean 'context_relation'"}},
    {{"train", "nothing.h5", "--out", "m.h5", "--model", "mpl"}, {"--model", "did you mean 'mlp'"}},
    {{"train", "nothing.h5", "--out", "m.h5", "--model", "treegru", "--encoding", "context_relation"},
     {"--model, --encoding", "context_relation makes no trees", "use encoding tree"}},
    {{"train", "nothing.h5", "--out", "m.h5", "--encoding", "tree"}, {"--model, --encoding", "use treegru"}},
    {{"evaluate", "nothing.h5", "--model", "treegru", "--encoding", "context_relation"}, {"makes no trees"}},
    {{"train", "nothing.h5", "--out", "m.h5", "--model", "treegru", "--slots", "0"}, {"--slots", "at least 1"}},
    {{"train", "nothing.h5", "--out", "m.h5", "--hidden", "64,0"}, {"--hidden", "at least 1", "got 0"}},
    {{"train", "nothing.h5", "--out", "m.h5"}, {"nothing.h5"}},
    {{"train", "nothing.h5", "--out", "m.h5", "--base", "b.h5", "--guard"},
     {"--members, --guard", "cannot be combined with --base"}},
    {{"evaluate", "nothing.h5", "--regime", "in-domain", "--support", "kmeans"}, {"--support", "in-domain"}},
    {{"evaluate", "nothing.h5", "--methods", "riddge"}, {"unknown method 'riddge'", "did you mean 'ridge'"}},
    {{"evaluate", "nothing.h5", "--shots", "0,,5"}, {"--shots", "separated by commas"}},
    {{"evaluate", "nothing.h5", "--regime", "sen"}, {"--regime", "seen, alone, unseen or in-domain", "'sen'"}},
    {{"inspect", "nothing"}, {"nothing", "neither a file, a run, a platform or an encoding"}},
    {{"report", "nothing.json", "--out", "x.html"}, {"nothing.json"}},
};

INSTANTIATE_TEST_SUITE_P(Cli, Refusal, ::testing::ValuesIn(kRefused));

// Help is given for groups of commands, too.
TEST(Help, OfAGroupListsItsCommands) {
  for (const std::vector<std::string>& asked :
       std::vector<std::vector<std::string>>{{"bench", "--help"}, {"help", "bench"}, {"bench", "-h"}}) {
    const base::Finished finished = graft(asked);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(finished.out.find("  bench kernels "), 0u) << finished.out;
    EXPECT_EQ(finished.out.find("  collect "), std::string::npos) << finished.out;
  }
  EXPECT_EQ(graft({"help", "--help"}).out, graft({"--help"}).out);
}

// No result replaces what took long to measure or to train.
TEST(Outputs, DoNotReplaceFilesOfAnotherKind) {
  const base::Folder folder;
  const std::string data = (folder / "data.h5").string(), model = (folder / "model.h5").string();
  const std::string source = std::string(GRAFT_SOURCE_DIR);
  std::filesystem::copy_file(source + "/datasets/shipped/model-haswell.h5", data);
  std::filesystem::copy_file(source + "/models/base.h5", model);
  const std::string before = base::read_file(data);
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"train", data, "--out", data, "--steps", "5"},
           {"train", source + "/datasets/shipped/model-znver4.h5", "--out", data, "--steps", "5"},
           {"train", data, "--base", model, "--out", model},
           {"adapt", model, "--workloads", small, "--shots", "4", "--out", data},
           {"adapt", model, "--workloads", small, "--shots", "4", "--out", model},
           {"evaluate", data, "--out", data},
           {"export", "autotvm", data, "--out", data},
           {"clean", data, "--out", data},
           {"clean", source + "/datasets/shipped/model-znver4.h5", "--out", data},
           {"collect", small, "--out", model},
           {"report", folder / "nothing", "--out", data},
           {"compare", data, data, "--out", model}}) {
    const base::Finished finished = graft(command);
    EXPECT_EQ(finished.exit_code, 2) << command[0] << finished.err;
    EXPECT_NE(finished.err.find("choose another name"), std::string::npos) << command[0] << finished.err;
  }
  EXPECT_EQ(base::read_file(data), before);
  // Cleaned again, it is replaced.
  const std::vector<std::string> clean = {"clean", data, "--out", (folder / "cleaned.h5").string()};
  EXPECT_EQ(graft(clean).exit_code, 0);
  EXPECT_EQ(graft(clean).exit_code, 0);
}

// The examples are texts of several lines, in lists, too.
TEST(Lists, HoldExpressionsOfSeveralLines) {
  const std::string source = GRAFT_SOURCE_DIR;
  int texts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source + "/examples/expressions")) {
    if (entry.path().extension() != ".txt") continue;
    ++texts;
    const base::Finished finished =
        graft({"train", source + "/datasets/shipped/model-haswell.h5", "--out", "never.h5", "--workloads",
               "resnet18.C2, " + base::read_file(entry.path()) + ", resnet18.C3"});
    EXPECT_NE(finished.err.find("--workloads: no row is of 'input "), std::string::npos)
        << entry.path() << finished.err;
  }
  EXPECT_GE(texts, 6);
}

TEST(Lists, OfAFlagGivenSeveralTimesAreOne) {
  const std::string data = std::string(GRAFT_SOURCE_DIR) + "/datasets/shipped/model-haswell.h5";
  const base::Finished finished = graft({"train", data, "--out", "never.h5", "--workloads", "resnet18.C2,resnet18.C3",
                                         "--workloads", "matmul(m=3,n=5,k=7)"});
  EXPECT_NE(finished.err.find("--workloads: no row is of 'matmul(m=3,n=5,k=7"), std::string::npos) << finished.err;
}

// A message is read by people: what they wrote comes back, but not 4 kB of it.
TEST(Refusals, DoNotEchoLongWorkloads) {
  const std::string name(4000, 'f');
  std::string sum = "input A[8]; output B[i] = A[i]";
  for (int i = 0; i < 500; ++i) sum += " + A[i]";
  sum += " where i=8";
  const base::Folder folder;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"tune", name},
                                             {"tune", name + "(m=8)"},
                                             {"tune", "matmul(m=8," + name + "=8)"},
                                             {"tune", "input A[4]; output B[i] = " + name + "(A[i]) where i=4"},
                                             {"tune", "input A[4]; output B[i] = " + name + "[i] where i=4"},
                                             {"tune", sum + " " + name},
                                             {"tune", small, "--trials", name},
                                             {"inspect", name},
                                             {"collect", sum, sum, "--out", folder / "twice.h5"},
                                             {"collect", "suite:" + name, "--out", folder / "suite.h5"}}) {
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_LT(finished.err.size(), 500u) << finished.err;
    EXPECT_EQ(lines_in(finished.err), 1u) << finished.err;
  }
  // Another workload than that of the run.
  const std::string run = folder / "run";
  EXPECT_EQ(graft({"tune", sum, "--platform", "model:cortex-a53", "--trials", "1", "--model", "random", "--out", run})
                .exit_code,
            0);
  const base::Finished finished =
      graft({"tune", small, "--platform", "model:cortex-a53", "--trials", "1", "--model", "random", "--out", run});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_LT(finished.err.size(), 600u) << finished.err;
  EXPECT_NE(finished.err.find("more characters"), std::string::npos) << finished.err;
}

TEST(RefusedFiles, NameFilePlaceAndRemedy) {
  const base::Folder folder;
  const auto refused = [&](const std::string& name, const std::string& content, std::vector<std::string> arguments) {
    const std::string path = (folder / name).string();
    base::replace_file(path, content);
    for (std::string& argument : arguments) {
      if (argument == "FILE") argument = path;
    }
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(lines_in(finished.err), 1u) << finished.err;
    EXPECT_NE(finished.err.find(name), std::string::npos) << finished.err;
    return finished.err;
  };
  refused("text.h5", "this is not an HDF5 file", {"inspect", "FILE"});
  refused("text.h5", "this is not an HDF5 file", {"train", "FILE", "--out", (folder / "m.h5").string()});
  refused("text.h5", "this is not an HDF5 file",
          {"tune", small, "--model", "FILE", "--out", (folder / "run").string()});
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  EXPECT_NE(
      refused("broken.json", "{\"schema\": 1,\n", {"report", "FILE", "--out", (folder / "x.html").string()}).find(":"),
      std::string::npos);
  refused("strange.json", "{\"schema\": 1, \"colour\": 2}", {"report", "FILE", "--out", (folder / "x.html").string()});
  refused("foreign.json", "{\"a\": 2}", {"report", "FILE", "--out", (folder / "x.html").string()});
  const std::string run = (folder / "run").string();
  EXPECT_NE(refused("typo.space", "sketch s\ntiel C i 4\n", {"tune", small, "--space", "FILE", "--out", run})
                .find("typo.space:2:1: unknown word 'tiel'; did you mean 'tile'?"),
            std::string::npos);
  // Refused for every schedule, with the reason, before there is a run.
  EXPECT_NE(refused("none.space", "sketch s\ntile C q 4\n", {"tune", small, "--space", "FILE", "--out", run})
                .find("tile C q 4: C has no axis q (10000 times)"),
            std::string::npos);
  refused("some.space", "from rules\n", {"inspect", "FILE"});
  EXPECT_FALSE(std::filesystem::exists(run));
  const std::string yaml = graft({"platform", "show", "native"}).out;
  EXPECT_NE(refused("board.yaml", yaml + "colour: red\n", {"inspect", "FILE"}).find("unknown key 'colour'"),
            std::string::npos);
  EXPECT_NE(
      refused("broken.jsonl", "{\"journal\":1,\"request\":{}}\n{\"trial\":0,\n{}\n", {"inspect", "FILE"}).find(":2"),
      std::string::npos);
}

const std::string intrinsics_folder = GRAFT_SOURCE_DIR "/examples/intrinsics/";

TEST(Intrinsics, ThatCannotBeUsedAreRefused) {
  const base::Folder folder;
  const auto refused = [&](const std::string& workload, const std::string& platform, const std::string& file) {
    const base::Finished finished =
        graft({"tune", workload, "--platform", platform, "--intrinsics", file, "--out", (folder / "run").string()});
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(finished.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
    return finished.err;
  };
  EXPECT_NE(refused(small, "native", "nothing.txt").find("nothing.txt"), std::string::npos);
  const std::string floats = refused("matmul(m=24,n=32,k=16,dtype=f64)", "native", intrinsics_folder + "outer_4x4.txt");
  EXPECT_NE(floats.find("outer_4x4 computes no part of 'matmul(m=24,n=32,k=16,dtype=f64)'"), std::string::npos)
      << floats;
  const std::string old = refused(small, "native:v3", intrinsics_folder + "dot_u8i8.txt");
  EXPECT_NE(old.find("intrinsic dot_u8i8 needs +avx512vnni, which x86-64-v3 does not have"), std::string::npos) << old;
  const std::string broken = (folder / "broken.txt").string();
  base::replace_file(broken, "intrinsic a\ncomputes nothing\n");
  EXPECT_NE(refused(small, "native", broken).find("broken.txt"), std::string::npos);
}

TEST(Intrinsics, AreTunedAndRecorded) {
  const base::Folder folder;
  const std::string run = (folder / "run").string();
  const std::vector<std::string> command = quick({"tune", small, "--intrinsics", intrinsics_folder + "outer_4x4.txt",
                                                  "--explorer", "random", "--trials", "40", "--out", run});
  const base::Document result = json_of(command);
  EXPECT_EQ(result.at("statuses").find("wrong_result"), nullptr);
  EXPECT_EQ(result.at("statuses").find("does_not_compile"), nullptr);
  EXPECT_NE(base::read_file(run + "/journal.jsonl").find("tensorize C outer_4x4"), std::string::npos);
  // A record is self-contained.
  EXPECT_EQ(json_of({"inspect", run, "--program"}).at("workload").as_string(), result.at("workload").as_string());
  EXPECT_EQ(json_of(command).at("best").at("program"), result.at("best").at("program"));
  // Without the file it is another request.
  const base::Finished other_request = graft(quick({"tune", small, "--explorer", "random", "--out", run}));
  EXPECT_EQ(other_request.exit_code, 2) << other_request.err;
}

TEST(Expressions, OfTheExamplesAreTuned) {
  const base::Folder folder;
  for (const char* name : {"rms_norm", "gelu", "conv2d_strides_pads", "matmul_broadcast", "softmax", "layer_norm"}) {
    SCOPED_TRACE(name);
    const std::string text = base::read_file(std::string(GRAFT_SOURCE_DIR) + "/examples/expressions/" + name + ".txt");
    const base::Document result =
        json_of(quick({"tune", text, "--platform", "native", "--explorer", "random", "--trials", "4", "--rebuild", "0",
                       "--out", (folder / name).string()}));
    EXPECT_EQ(result.at("statuses").find("wrong_result"), nullptr);
    EXPECT_GE(result.at("statuses").at("ok").as_integer(), 1);
  }
}

TEST(Layouts, AreChosenAndRecorded) {
  const base::Folder folder;
  const std::string run = (folder / "run").string();
  const auto tune = [&](const std::string& layouts) {
    return quick({"tune", "conv2d(c=16,h=6,w=6,k=64,r=3,s=3,pad=1)", "--platform", "native:v3", "--layouts", layouts,
                  "--explorer", "random", "--trials", "24", "--rebuild", "0", "--out", run});
  };
  const base::Finished wrong = graft(tune("blocked"));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("--layouts: 'blocked' is not given, free or default"), std::string::npos) << wrong.err;
  const base::Document result = json_of(tune("free"));
  EXPECT_EQ(result.at("statuses").find("wrong_result"), nullptr);
  EXPECT_GE(result.at("statuses").at("ok").as_integer(), 20);
  EXPECT_NE(base::read_file(run + "/journal.jsonl").find("layout X 0 1/8 2 3 1%8"), std::string::npos);
  EXPECT_EQ(graft(tune("given")).exit_code, 2);  // another request
}

TEST(Platforms, AreListedShownAndProbed) {
  const base::Folder folder;
  const base::Document list = json_of({"platform", "list"});
  std::vector<std::string> ids;
  for (const base::Document& platform : list.at("platforms").as_list()) ids.push_back(platform.at("id").as_string());
  EXPECT_EQ(ids.front(), "native");
  EXPECT_NE(std::find(ids.begin(), ids.end(), "model:sifive-p450"), ids.end());
  const std::string text = graft({"platform", "list"}).out;
  for (const std::string& id : ids) EXPECT_NE(text.find(id), std::string::npos) << id;

  // What probe writes is a platform.
  const std::string file = (folder / "here.yaml").string();
  EXPECT_EQ(graft({"platform", "probe", "--out", file}).exit_code, 0);
  EXPECT_EQ(json_of({"inspect", file}).at("platform").as_string(), "native");
}

TEST(Doctor, FindsThisBuildWell) {
  const base::Document result = json_of({"doctor"});
  EXPECT_TRUE(result.at("ok").as_bool());
  EXPECT_GE(result.at("checks").as_list().size(), 10u);
}

// A copy of the program alone has neither worker nor platforms next to it.
TEST(Doctor, SaysWhatIsMissing) {
  const base::Folder folder;
  const std::string copy = (folder / "graft").string();
  std::filesystem::copy_file(GRAFT_PROGRAM, copy);
  const base::Finished finished = base::run_process({copy, "doctor"}, std::chrono::minutes(1));
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.out.find("FAILS"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("graft-worker"), std::string::npos) << finished.out;
}

TEST(Output, AFullDiskIsAFailure) {
  for (const std::string command : {"platform list", "platform list --json", "--help"}) {
    const base::Finished finished = base::run_process(
        {"sh", "-c", std::string(GRAFT_PROGRAM) + " " + command + " > /dev/full"}, std::chrono::minutes(1));
    EXPECT_EQ(finished.exit_code, 1) << command;
    EXPECT_EQ(finished.err, "error: standard output cannot be written\n") << command;
  }
}

TEST(Inspect, EncodingsShowTheirLists) {
  const base::Document all = json_of({"inspect", "encodings"});
  ASSERT_GE(all.at("encodings").as_list().size(), 9u);
  for (const base::Document& encoding : all.at("encodings").as_list()) {
    const base::Document shown = json_of({"inspect", encoding.at("name").as_string()});
    EXPECT_EQ(shown.at("kind").as_string(), "encoding");
    EXPECT_EQ(shown.at("encoding_hash").as_string(), encoding.at("hash").as_string());
    EXPECT_EQ(std::int64_t(shown.at("features").as_list().size()), encoding.at("columns").as_integer());
    for (const char* key : {"name", "unit", "definition", "example"})
      EXPECT_NE(shown.at("features").as_list().front().find(key), nullptr) << key;
  }
}

}  // namespace
}  // namespace graft::cli
