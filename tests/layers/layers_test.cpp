// Holds every #include of the project against the table of rooms: with one include root any file could include any
// other, and link edges alone would not stop it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path kRoot = GRAFT_SOURCE_DIR;

using Parts = std::set<std::string>;
Parts with(Parts all, const Parts& more) {
  all.insert(more.begin(), more.end());
  return all;
}
const Parts below_study = {
    "base",     "codegen/expression", "codegen/program", "codegen/space", "codegen/schedule", "codegen/machine",
    "datasets", "features",           "tasks",           "meta",          "search",           "graph"};
const Parts study = {"study/inputs", "study/knowledge", "study/flows", "study/experiments"};

// A part of the project (the longest matching folder counts) and the parts that it may include.
const std::map<std::string, Parts> kMayInclude = {
    {"base", {}},
    {"codegen/expression", {"base", "codegen/deployed"}},
    {"codegen/program", {"base", "codegen/expression"}},
    {"codegen/import", {"base", "codegen/expression", "codegen/program"}},
    {"codegen/space", {"base", "codegen/expression", "codegen/program"}},
    {"codegen/schedule", {"base", "codegen/expression", "codegen/program", "codegen/space"}},
    {"codegen/machine", {"base", "codegen/expression", "codegen/program"}},
    {"codegen/deployed", {}},
    {"features", {"base", "codegen/expression", "codegen/program", "codegen/space", "codegen/schedule"}},
    {"datasets",
     {"base", "codegen/expression", "codegen/program", "codegen/import", "codegen/space", "codegen/schedule"}},
    {"graph", {"base", "codegen/expression", "codegen/program", "codegen/space", "codegen/schedule", "datasets"}},
    {"tasks",
     {"base", "codegen/expression", "codegen/program", "codegen/space", "codegen/schedule", "codegen/machine",
      "datasets"}},
    {"tasks/worker", {"codegen/deployed"}},
    {"meta",
     {"base", "codegen/expression", "codegen/program", "codegen/space", "codegen/schedule", "datasets", "features",
      "meta/networks", "meta/methods"}},
    {"meta/networks", {"base", "meta"}},
    {"meta/gradient", {"base", "features", "meta"}},
    {"meta/forests", {"base", "features", "meta", "meta/gradient"}},
    {"meta/sources", {"base", "features", "meta", "meta/gradient", "meta/forests"}},
    {"meta/methods",
     {"base", "datasets", "features", "meta", "meta/networks", "meta/gradient", "meta/forests", "meta/sources"}},
    {"search",
     {"base", "codegen/expression", "codegen/program", "codegen/space", "codegen/schedule", "datasets", "features",
      "tasks", "meta"}},
    {"study/inputs", with(below_study, {})},
    {"study/knowledge", with(below_study, {"study/inputs"})},
    {"study/flows", with(below_study, {"study/inputs", "study/knowledge"})},
    {"study/experiments", with(below_study, {"study/inputs", "study/knowledge", "study/flows"})},
    {"graft", with(study, {"base", "codegen/expression", "codegen/space", "codegen/schedule", "tasks"})},
    {"cli", with(below_study, study)},
    {"bench", with(with(below_study, study), {"meta/networks", "meta/gradient", "meta/forests", "cli"})},
    {"python", {"graft"}},
};

// Exceptions, with their reasons: a program and the one that it starts share one file that describes what they say to
// each other (the parent and its worker; graft and graft-bench), the worker compares numbers of 16 bits by a header of
// the language alone, kernels run on deployed threads everywhere, and of the methods others see their table alone.
const std::set<std::pair<std::string, std::string>> kAlsoAllowed = {{"tasks", "tasks/worker/wire.h"},
                                                                    {"tasks/worker", "base/float16.h"},
                                                                    {"tasks/worker", "base/within.h"},
                                                                    {"bench", "codegen/deployed/graft_pool.h"},
                                                                    {"cli", "bench/settings.h"},
                                                                    {"cli", "meta/methods/methods.h"},
                                                                    {"study/inputs", "meta/methods/methods.h"},
                                                                    {"study/knowledge", "meta/methods/methods.h"},
                                                                    {"study/flows", "meta/methods/methods.h"}};

// Heavy packages: include prefix, and where it may be included (folder prefix, and `.cpp` files only).
const std::vector<std::pair<std::string, std::vector<std::string>>> kHeavy = {
    {"nlohmann/", {"base"}},
    {"yaml-cpp/", {"base"}},
    {"zlib.h", {"base"}},
    {"mpi.h", {"base/mpi"}},
    {"llvm/", {"codegen/machine"}},
    {"lld/", {"codegen/machine"}},
    {"hdf5", {"datasets"}},
    {"Eigen/", {"meta", "features"}},
    {"dnnl", {"meta", "bench"}},
    {"oneapi/", {"meta", "bench"}},
    {"torch/", {}},
    {"ATen/", {}},
    {"CLI/", {"cli", "bench"}},
    {"cblas.h", {"bench"}},
    {"pybind11/", {"python"}},
};

std::string part_of(const std::string& file) {
  std::string best;
  for (const auto& [part, allowed] : kMayInclude) {
    if (file.rfind(part + "/", 0) == 0 && part.size() > best.size()) best = part;
  }
  return best;
}

struct Include {
  std::string file, header;
  int line = 0;
};

std::vector<Include> includes() {
  std::vector<Include> found;
  for (const auto& [part, allowed] : kMayInclude) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / part)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      const std::string file = fs::relative(entry.path(), kRoot);
      if (part_of(file) != part) continue;
      std::ifstream stream(entry.path());
      std::string line;
      for (int number = 1; std::getline(stream, line); ++number) {
        if (line.rfind("#include ", 0) != 0 || line.size() < 12) continue;
        const std::size_t end = line.find_first_of("\">", 10);
        found.push_back({file, line.substr(10, end - 10), number});
      }
    }
  }
  return found;
}

TEST(Layers, EveryFileIsInARoom) {
  const auto all = includes();
  EXPECT_GT(all.size(), 300u) << "the walk found too few includes to mean anything";
}

TEST(Layers, RoomsIncludeOnlyWhatTheTableAllows) {
  for (const Include& include : includes()) {
    const std::string from = part_of(include.file), to = part_of(include.header);
    if (to.empty() || from == to) continue;
    const bool allowed = kMayInclude.at(from).count(to) != 0 || kAlsoAllowed.count({from, include.header}) != 0;
    EXPECT_TRUE(allowed) << include.file << ":" << include.line << " includes " << include.header << ", but " << from
                         << " may not use " << to;
  }
}

// It is installed alone.
TEST(Layers, ThePublicHeaderIncludesTheStandardLibraryAlone) {
  int headers = 0;
  for (const Include& include : includes()) {
    if (include.file != "graft/graft.h") continue;
    EXPECT_EQ(include.header.find_first_of("/."), std::string::npos) << include.header;
    ++headers;
  }
  EXPECT_GT(headers, 5);
}

// meta's own folder has headers at its bottom (cost_model.h) and at its top (evaluate.h), so its table of parts alone
// would let a lower part reach the methods through it.
TEST(Layers, NothingBelowTheMethodsReachesThem) {
  const std::vector<std::string> below = {"meta/networks", "meta/gradient", "meta/forests", "meta/sources"};
  std::multimap<std::string, std::string> direct;
  for (const Include& include : includes()) direct.emplace(include.file, include.header);
  int walked = 0;
  for (const auto& [file, header] : direct) {
    if (std::find(below.begin(), below.end(), part_of(file)) == below.end()) continue;
    std::set<std::string> reached;
    std::vector<std::string> open{header};
    while (!open.empty()) {
      const std::string at = open.back();
      open.pop_back();
      if (!reached.insert(at).second) continue;
      EXPECT_NE(part_of(at), "meta/methods") << file << " reaches " << at << " through " << header;
      for (auto [next, end] = direct.equal_range(at); next != end; ++next) open.push_back(next->second);
      if (at.ends_with(".h")) open.push_back(at.substr(0, at.size() - 1) + "cpp");  // the header's source file
    }
    ++walked;
  }
  EXPECT_GT(walked, 50);
}

// A command makes a request of flags and prints a result: what is computed is in the room study, without a process.
TEST(Layers, CommandsComputeNothing) {
  const std::set<std::string> forbidden = {"base/statistics.h", "base/random.h", "search/tuning.h"};
  std::multimap<std::string, std::string> direct;
  std::set<std::string> commands;
  for (const Include& include : includes()) {
    direct.emplace(include.file, include.header);
    if (include.file.rfind("cli/commands/", 0) == 0) commands.insert(include.file);
  }
  EXPECT_GT(commands.size(), 20u);
  for (const std::string& command : commands) {
    std::set<std::string> reached;
    std::vector<std::string> open{command};
    while (!open.empty()) {  // through headers of the program, too
      const std::string at = open.back();
      open.pop_back();
      for (auto [next, end] = direct.equal_range(at); next != end; ++next) {
        EXPECT_FALSE(forbidden.contains(next->second)) << command << " reaches " << next->second << " in " << at;
        if (part_of(next->second) == "cli" && reached.insert(next->second).second) open.push_back(next->second);
      }
    }
  }
}

TEST(Layers, CommandsAreShort) {
  constexpr std::ptrdiff_t most = 150;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "cli/commands")) {
    std::ifstream stream(entry.path());
    const auto lines = std::count(std::istreambuf_iterator<char>(stream), {}, '\n');
    EXPECT_LE(lines, most) << entry.path() << ": what is computed belongs to study, what is printed to cli";
  }
}

// Only the program has flags: messages of libraries name fields, in back quotes (study/inputs/field_error.h).
TEST(Layers, LibrariesNameNoFlags) {
  const std::set<std::string> of_other_programs = {"codegen/machine/link.cpp",        "tasks/board.cpp",
                                                   "tasks/modelled/modelled.cpp",     "study/flows/collect.cpp",
                                                   "study/experiments/run.cpp",       "study/flows/user_function.cpp",
                                                   "datasets/formats/table_rules.cpp"};
  const std::set<std::string> of_command_lines = {"codegen/machine/cpuinfo.cpp",
                                                  "datasets/status_texts.cpp",  // "graft inspect WORKLOAD --space FILE"
                                                  "study/flows/rounds.cpp"};
  const std::regex flag("\"([^\"]*[ (`])?--[a-z][^\"]*\"");
  for (const char* const room :
       {"base", "codegen", "features", "datasets", "graph", "tasks", "meta", "search", "study"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / room)) {
      const std::string extension = entry.path().extension().string();
      const std::string file = fs::relative(entry.path(), kRoot).string();
      if (extension != ".cpp" && extension != ".def") continue;
      if (of_other_programs.contains(file) || of_command_lines.contains(file)) continue;
      std::ifstream stream(entry.path());
      for (std::string line; std::getline(stream, line);)
        EXPECT_FALSE(std::regex_search(line, flag)) << file << ": " << line;
    }
  }
}

// What a device is, only its own file knows; all others ask it (tasks/device.h).
TEST(Layers, NobodyAsksWhichDeviceItIs) {
  const std::set<std::string> own = {"tasks/modelled/modelled.cpp", "tasks/modelled/modelled.h",
                                     "tasks/modelled/twin.cpp"};
  const std::regex question(
      "<const (\\w+::)*\\w*Device\\*>|\\bprofile_of\\(|source\\(\\) [!=]= \"(native|remote|modelled)");
  int files = 0;
  for (const Include& include : includes()) {
    if (include.header != "tasks/device.h" && include.header != "tasks/platform.h") continue;
    std::ifstream stream(kRoot / include.file);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    EXPECT_TRUE(own.contains(include.file) || !std::regex_search(text, question)) << include.file;
    ++files;
  }
  EXPECT_GT(files, 20);
}

// How many threads work is the caller's choice (--threads): only these ask the machine.
TEST(Layers, OnlyDefaultsAskForTheThreadsOfThisMachine) {
  const std::set<std::string> allowed = {
      "base/parallel.h",
      "base/parallel.cpp",
      "cli/command.cpp",                  // the default of --threads
      "tasks/measurer.h",                 // the default of a setting
      "codegen/machine/backend.cpp",      // the cores of this host as a target
      "cli/commands/platform_probe.cpp",  // which are shown
      "bench/measure.cpp",                // and there
  };
  std::set<std::string> asking;
  for (const Include& include : includes()) {
    std::ifstream stream(kRoot / include.file);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    for (const char* const name : {"hardware_threads(", "hardware_concurrency("}) {
      if (text.find(name) != std::string::npos) asking.insert(include.file);
    }
  }
  for (const std::string& file : asking)
    EXPECT_TRUE(allowed.contains(file)) << file << " asks the machine for its threads; take them from the caller";
  EXPECT_TRUE(asking.contains("cli/command.cpp")) << "the walk found nothing";
}

TEST(Layers, HeavyPackagesStayInTheSourceFilesOfTheirRoom) {
  for (const Include& include : includes()) {
    for (const auto& [prefix, places] : kHeavy) {
      if (include.header.rfind(prefix, 0) != 0) continue;
      const bool right_place = std::any_of(places.begin(), places.end(), [&](const std::string& place) {
        return include.file.rfind(place + "/", 0) == 0;
      });
      // Private headers of one part may hold them; a header that another part includes may not.
      EXPECT_TRUE(right_place) << include.file << ":" << include.line << " includes " << include.header;
    }
  }
}

// Deadlines and times are of clocks that nobody sets: a jump of the wall clock changes neither. Dates of provenance
// are its only use.
TEST(Layers, NothingIsTimedByAClockThatCanBeSet) {
  const std::set<std::string> dates = {"study/inputs/request.cpp"};
  int read = 0;
  for (const auto& [part, allowed] : kMayInclude) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / part)) {
      const std::string extension = entry.path().extension(), file = fs::relative(entry.path(), kRoot);
      if ((extension != ".h" && extension != ".cpp" && extension != ".c") || dates.count(file) != 0) continue;
      std::ifstream stream(entry.path());
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      ++read;
      for (const char* const clock : {"system_clock", "CLOCK_REALTIME", "gettimeofday", "time(nullptr)", "time(NULL)"})
        EXPECT_EQ(text.find(clock), std::string::npos) << file << " asks " << clock;
    }
  }
  EXPECT_GT(read, 300);
}

TEST(Layers, HeadersThatOtherPartsIncludeHoldNoHeavyPackage) {
  const auto all = includes();
  std::set<std::string> shared;
  for (const Include& include : all) {
    const std::string to = part_of(include.header);
    if (!to.empty() && to != part_of(include.file)) shared.insert(include.header);
  }
  for (bool grown = true; grown;) {  // and what those include in turn
    grown = false;
    for (const Include& include : all) {
      if (shared.count(include.file) != 0 && !part_of(include.header).empty())
        grown |= shared.insert(include.header).second;
    }
  }
  for (const Include& include : all) {
    if (shared.count(include.file) == 0) continue;
    for (const auto& [prefix, places] : kHeavy) {
      EXPECT_NE(include.header.rfind(prefix, 0), 0u)
          << include.file << ":" << include.line << " is included by other rooms and must not include "
          << include.header;
    }
  }
}

}  // namespace
