// graft from C++: find fast schedules of a workload on a platform, and make a C library of the results.
//
//   const graft::Workload workload("matmul(m=64,n=64,k=64)");
//   const graft::Answer answer = graft::tune(workload, graft::Platform("native"), {.trials = 64});
//   graft::write(graft::compile({answer}), "lib");
//
// Values only: arguments are copied, results hold nothing open. The requests are those of the program: a
// run that `graft tune` began is continued here, and the other way round. Calls may come from several threads, but
// measure one thing at a time, because anything else that runs disturbs times. Nothing is printed. All failures throw
// Error. A whole project that uses it: docs/guides/use-as-a-library.md. Needs C++20; the libraries that compile makes
// need C99 or C++17.
#pragma once

#if __cplusplus < 202002L
#error "graft/graft.h needs C++20: compile with -std=c++20, or link graft::graft of find_package(graft), which says so"
#endif

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#define GRAFT_API __attribute__((visibility("default")))

namespace graft {

// One line: "<place>: <value>, <next action>", lower case.
class GRAFT_API Error : public std::runtime_error {
 public:
  enum class Kind {
    mistake,  // of the caller: a text, a file, or settings that do not go together
    failure,  // of the world: a full disk, a dead child, no schedule that works
    stopped   // as Watch::stop asked for
  };
  Error(Kind kind, const std::string& message);
  ~Error() override;
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

GRAFT_API std::string_view version();  // "0.1.0"

// What a long call says while it runs, and how it is asked to stop. These calls never overlap, may come from other
// threads, and must not throw.
struct Watch {
  std::function<void(std::string_view what, std::int64_t done, std::int64_t total)> progress = {};
  std::function<void(std::string_view line)> note = {};
  std::function<bool()> stop = {};  // true: ends soon, keeps what was measured
};

// An operator with its shapes, or an index expression (codegen/expression/README.md), as on the command line.
class GRAFT_API Workload {
 public:
  explicit Workload(std::string_view text);
  const std::string& text() const { return text_; }  // canonical: parameters in order, defaults filled in
  double flops() const;
  bool operator==(const Workload&) const = default;

 private:
  std::string text_;
};

// Where schedules run. Copies share one description, which never changes.
class GRAFT_API Platform {
 public:
  explicit Platform(const std::string& id);            // one of platforms(), or the path of a YAML file
  static Platform from_yaml(const std::string& yaml);  // the content of such a file
  const std::string& name() const;
  const std::string& source() const;  // of its times: "native", "remote", "emulated" or "modelled"
  const std::string& yaml() const;    // its full description

  struct Description;  // for the library itself
  const Description& description() const { return *description_; }

 private:
  explicit Platform(std::shared_ptr<const Description> description) : description_(std::move(description)) {}
  std::shared_ptr<const Description> description_;
};
GRAFT_API std::vector<std::string> platforms();  // ids that are known here

// What guides a search, and predicts: a file that is read whenever the model is used.
class GRAFT_API Model {
 public:
  Model() = default;  // graft's own, installed with it
  // A file of graft train or graft adapt, or one without a file: "scratch", "trees", "mlp", "treegru",
  // "black-box", "analytic", "random" (graft tune --help).
  explicit Model(const std::string& name);
  const std::string& name() const { return name_; }  // "" for graft's own

 private:
  std::string name_;
};

// Settings of a call by keyword. The fields of the structs below are those that are used most; `more` takes all of
// docs/reference/settings.md, and wins over the fields. Mistake for a keyword that the call lacks, a value of another
// type, and one beyond its range.
using Value =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, std::vector<std::int64_t>,
                 std::map<std::string, std::vector<std::int64_t>>, std::map<std::string, std::vector<double>>>;
using Settings = std::map<std::string, Value>;
struct SettingInfo {
  std::string keyword;
  Value usual;           // the default
  bool is_path = false;  // of a file or folder; "": none
  std::string help;
};
// For "tune", "tune_network", "adapt", "train" or "evaluate"; mistake for another call.
GRAFT_API std::vector<SettingInfo> settings_of(const std::string& call);

// How a candidate is timed.
struct Timing {
  std::int64_t repetitions = 3;
  double repetition_seconds = 1e-3;  // least duration of one
  double timeout_seconds = 10;       // for one candidate in total
};

struct TuneSettings {
  std::int64_t trials = 256;    // in total: a larger number continues a run
  double budget_seconds = 0;    // of wall time, after which the search ends; 0: none
  std::int64_t stop_after = 0;  // trials in a row without a gain of 1 %, after which it ends; 0: never
  std::uint64_t seed = 1;
  int threads = 1;  // for search and compilation; no result depends on it
  Model model = {};
  std::vector<std::string> start = {};  // schedules to measure first: texts as in Answer::schedule
  std::filesystem::path out = {};       // the run's folder; run again to continue; "": runs/tune-...
  std::filesystem::path library = {};   // folder of known answers (graft tune --library); "": none
  bool again = false;                   // search even if the library has an answer
  Timing timing = {};
  Watch watch = {};
  Settings more = {};
};

// The fastest program of a run, its results checked.
struct Answer {
  std::string workload, platform;
  std::string source;    // of its time, as Platform::source
  std::string schedule;  // its steps, a line each
  double seconds = 0;    // least of the repetitions
  double gflops = 0;
  std::string check;          // of its results: "host", "remote", "qemu"; "none" if nothing could run it
  std::int64_t trials = 0;    // measured by the run
  bool complete = false;      // false: stopped; the same call continues it
  std::string known_since;    // date of an answer from the library; "" if it was searched for
  std::filesystem::path run;  // its folder; "" if the answer is the library's
  std::vector<std::pair<std::int64_t, double>> curve = {};  // (trials, best seconds so far), one for each improvement

  struct Program;
  std::shared_ptr<const Program> program;  // for compile
};

// Searches, or continues a search. Failure if no schedule worked; stopped if there is no answer yet.
GRAFT_API Answer tune(const Workload& workload, const Platform& platform, const TuneSettings& settings = {});

// The answer of a run of tune, from its folder. Mistake for a folder without one.
GRAFT_API Answer answer_of(const std::filesystem::path& run);
// An answer as text, and back, also in another process: it refers to the folder of its run, which compile reads.
GRAFT_API std::string to_text(const Answer& answer);
GRAFT_API Answer answer_from(const std::string& text);

struct SearchSettings {
  Model model = {};
  std::vector<std::string> start = {};  // schedules that are asked for first: texts as Answer::schedule
  std::uint64_t seed = 1;
  int threads = 1;  // no result depends on it
};

// A schedule and what became of it.
struct Measured {
  std::string schedule;       // or a configuration
  double seconds = 0;         // of one run; counts only where ok, the lower bound for "slower_than_limit"
  std::string status = "ok";  // docs/reference/statuses.md
};

// The search of tune, for whoever measures by other means: ask, measure, tell, and again. Asked for 32 schedules at a
// time and told what tune measured, it asks for what tune measures. Deterministic in seed, in what was told, and in
// what was asked for since: a search is continued by telling another one what it was told, without asking. Calls from
// several threads wait for each other.
class GRAFT_API Search {
 public:
  Search(const Workload& workload, const Platform& platform, const SearchSettings& settings = {});
  ~Search();
  Search(Search&& other) noexcept;
  Search& operator=(Search&& other) noexcept;

  // Distinct schedules, at most `count`, none that was asked for before; fewer where the space has no more, or once
  // `stop` says true.
  std::vector<std::string> ask(std::int64_t count = 1, const std::function<bool()>& stop = {});
  // Schedules of the workload in the order of measurement, asked for or not. All of them are taken, or none: mistake
  // for a text that is not a schedule, for a status that is unknown, and for what is ok but has no time above 0 or
  // cannot be applied.
  void tell(const std::vector<Measured>& measured);
  std::vector<Measured> trials() const;  // all that was told
  std::optional<Measured> best() const;  // the fastest ok one

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ConfigurationSettings {
  // What other devices measured, as files: datasets, caches of Kernel Tuner, T4 results; folders of runs.
  std::vector<std::string> from = {};
  std::string model = {};  // or a model's file, or an untrained one's name; "": scratch
  std::uint64_t seed = 1;
  int threads = 1;  // no result depends on it
};

// The search of `graft tune SPACE --run` among the configurations of a program that graft did not make, for whoever
// measures by other means: as Search, with configurations as JSON, {"tile":16,"unroll":true}, in place of schedules.
class GRAFT_API ConfigurationSearch {
 public:
  // `space`: the text of a file of parameters and constraints (docs/guides/tune-your-own-program.md).
  explicit ConfigurationSearch(const std::string& space, const ConfigurationSettings& settings = {});
  ~ConfigurationSearch();
  ConfigurationSearch(ConfigurationSearch&& other) noexcept;
  ConfigurationSearch& operator=(ConfigurationSearch&& other) noexcept;

  // Distinct configurations, at most `count`, none that was asked for before; the default first if the space has one.
  // Fewer where the space has no more, or once `stop` says true.
  std::vector<std::string> ask(std::int64_t count = 1, const std::function<bool()>& stop = {});
  // Configurations asked for or not. All of them are taken, or none: mistake for one that is not in the space, for a
  // status that is unknown, and for what is ok but has no time above 0.
  void tell(const std::vector<Measured>& measured);
  std::vector<Measured> trials() const;  // all that was told
  std::optional<Measured> best() const;  // the fastest ok one

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A score for each schedule, higher is faster, without running any; comparable within one call. -infinity for a
// schedule that cannot be applied; mistake for a text that is not a schedule.
GRAFT_API std::vector<double> predict(const Model& model, const Workload& workload, const Platform& platform,
                                      const std::vector<std::string>& schedules);

// The encodings that encode takes: those with one row for each program, made of its steps.
GRAFT_API std::vector<std::string> encodings();
// The columns in order (docs/reference/encodings.md). Mistake for an encoding that encode does not take.
GRAFT_API std::vector<std::string> feature_names(const std::string& encoding);
// Schedules as numbers, for models that are made elsewhere: a row of feature_names(encoding).size() numbers for each,
// consecutive; NaN for a schedule that cannot be applied.
GRAFT_API std::vector<float> encode(const Workload& workload, const Platform& platform,
                                    const std::vector<std::string>& schedules,
                                    const std::string& encoding = "context_relation", int threads = 1);

// The measurements of one platform, as a file of graft collect, import or clean holds them
// (docs/reference/dataset-format.md).
struct Dataset {
  std::string platform, source;
  std::string yaml;  // the platform's description, Platform::yaml; "" for times that were imported
  std::vector<std::string> workloads, sketches;  // distinct texts
  struct Row {
    int workload = 0, sketch = 0;          // positions above
    std::vector<std::int64_t> arguments;   // of the sketch
    std::string schedule;                  // as Answer::schedule; "" where no steps are known, as of a table's row
    std::uint64_t program = 0;             // hash: equal programs have equal ones; 0: it cannot be applied
    std::string status, reason;            // "ok", "crashed", ... (docs/reference/statuses.md); "" where ok
    double seconds = 0;                    // least of the repetitions; NaN unless ok
    std::vector<double> repetitions = {};  // in order; the lower bound for "slower_than_limit"
  };
  std::vector<Row> rows;
};
GRAFT_API Dataset read_dataset(const std::filesystem::path& file);

// Which rows of datasets are learnt from, and which kind of model learns.
struct Learning {
  std::string model = {};                // "mlp", "treegru", "gbt"; "": for train trees where the learner can have
                                         // them, for evaluate an MLP
  std::string encoding = {};             // docs/reference/encodings.md; "": what is usual for the model
  std::int64_t steps = 0;                // outer steps, or trees; 0: the learner's own number
  std::vector<Workload> workloads = {};  // the rows of these alone; none: all
  std::int64_t rows = 0;                 // at most that many programs of each workload in each file; 0: all
};

struct TrainSettings {
  std::string learner = "residual";  // docs/reference/methods.md
  Learning learning = {};
  std::string hold_out = {};        // platform to leave out; "": none
  std::filesystem::path base = {};  // a trained model that learns of these platforms, too; "": a new one
  std::uint64_t seed = 1;
  int threads = 1;  // no result depends on it
  Watch watch = {};
  Settings more = {};
};

struct Trained {
  Model model;          // the file
  std::string learner;  // what it was made by: with trees, what took the place of the one asked for
  std::int64_t programs = 0;
  std::vector<std::string> platforms;
};

// Meta-trains a cost model on files of datasets, and writes it to `out`. Mistake for what does not go together;
// stopped, and the same call continues.
GRAFT_API Trained train(const std::vector<std::filesystem::path>& datasets, const std::filesystem::path& out,
                        const TrainSettings& settings = {});

struct EvaluateSettings {
  std::vector<std::string> methods = {"scratch", "zero-shot", "residual"};  // docs/reference/methods.md
  std::vector<std::int64_t> shots = {0, 10, 50};  // measurements of each workload on the target
  std::int64_t draws = 20;                        // of these measurements, the same for all methods
  std::vector<std::string> targets = {};          // platforms to judge on; none: each in turn
  std::string regime = "seen";                    // or "unseen", "alone", "in-domain": where the measurements are from
  Learning learning = {};
  std::filesystem::path out = {};  // file of the table, after each target; the same call continues from it; "": none
  std::uint64_t seed = 1;
  int threads = 1;  // no result depends on it
  Watch watch = {};
  Settings more = {};
};

// A method on a target that it was not trained on. Means over draws and workloads, with 95 % intervals.
struct Evaluated {
  struct Estimate {
    double mean = 0, low = 0, high = 0;  // low and high NaN: the mean alone is known
  };
  std::string target, method;
  std::int64_t shots = 0, draws = 0, workloads = 0;
  Estimate spearman;    // of predicted and measured speed
  Estimate top1, top5;  // least time / least time among the programs predicted first; 1: the fastest was among them
};

// Judges methods on each target, trained on the other platforms of the files (docs/explanation/evaluation-protocol.md).
// Errors as train.
GRAFT_API std::vector<Evaluated> evaluate(const std::vector<std::filesystem::path>& datasets,
                                          const EvaluateSettings& settings = {});

struct AdaptSettings {
  std::int64_t shots = 20;  // measurements of each workload
  std::uint64_t seed = 1;
  int threads = 1;
  std::filesystem::path run = {};  // the run's folder; "": <out>.run. Run again to continue
  Timing timing = {};
  Watch watch = {};
  Settings more = {};
};

// A model adapted to a platform by a few measurements there.
struct Adapted {
  Model model;  // the file
  // Spearman correlations of predicted and measured speed; NaN if too little was measured.
  struct Quality {
    std::string workload;
    std::int64_t programs = 0;     // measured with status ok
    double before = 0, after = 0;  // by the model before adaptation; adapted, cross-validated
  };
  std::vector<Quality> workloads;
};

// Measures a support that the model chooses, and writes the adapted model. Failure if no program of a workload works;
// stopped if interrupted; the same call then continues.
GRAFT_API Adapted adapt(const Model& model, const Platform& platform, const std::vector<Workload>& workloads,
                        const std::filesystem::path& out, const AdaptSettings& settings = {});

struct CompileSettings {
  enum class Format { library, object, bench };  // as graft compile --format
  Format format = Format::library;
  std::string name = "kernels";                   // of the library; all that a program sees of it begins with NAME_
  std::map<std::string, std::string> names = {};  // of functions, by Workload::text; others are named for their shapes
  std::int64_t variants = 1;                      // distinct programs per workload, the fastest of its run
  // File of numpy.savez with arrays "FUNCTION/TENSOR": constants that become part of the library; "": none.
  std::filesystem::path constants = {};
  int threads = 1;
  Watch watch = {};
  bool exported = false;  // its functions are visible outside of a shared object that it is linked into
};

struct Compiled {
  struct Function {
    std::string name, workload;  // its name in C has the library's before it: NAME_name
    std::string check;           // of this exact code, as Answer::check
    // Memory that it needs: for prepared constants, as scratch while they are prepared, as scratch of calls.
    std::int64_t prepared_bytes = 0, prepare_scratch_bytes = 0, scratch_bytes = 0;
  };
  std::vector<Function> functions;
  std::map<std::string, std::string> files;  // contents by name
  bool executable = false;                   // the files are programs
};

// Answers as a library without dependencies: an archive, a C header, files for pkg-config and CMake
// (docs/guides/deploy.md). Nothing is written. Answers to one workload for several platforms of one architecture become
// one function, which chooses where it runs.
GRAFT_API Compiled compile(const std::vector<Answer>& answers, const CompileSettings& settings = {});
// ---- networks ----

struct NetworkSettings {
  // Shapes of inputs by name, or extents of named dimensions; an input may have several shapes, one after another, a
  // dimension several extents.
  std::map<std::string, std::vector<std::int64_t>> shapes = {};
  std::map<std::string, std::vector<double>> constants = {};  // inputs that are always the same
  // How numbers between kernels, and weights, are stored: "f32", "f16" or "bf16"; sums are f32. "s4:32": weights of
  // products have four bits, in blocks of 32.
  std::string storage = "f32";
  std::string activations = "f32";    // of products with weights of few bits: "f32", or "i8", in bytes with scales
  std::string effort = "normal";      // "quick", "normal" or "thorough": 12, 64 or 256 trials for each kernel
  std::int64_t trials = 0;            // in total; 0: trials_by_kernel for each kernel
  std::int64_t trials_by_kernel = 0;  // on average; 0: as `effort` says
  double budget_seconds = 0;          // of wall time in total; 0: none
  std::uint64_t seed = 1;
  int threads = 1;
  Model model = {};
  std::filesystem::path out = {};      // the network's folder; run again to continue; "": runs/network-...
  std::filesystem::path library = {};  // folder of known answers; "": none
  Timing timing = {};
  Watch watch = {};
  Settings more = {};
};

struct TunedNetwork {
  struct Kernel {
    std::string label, workload;  // of its first call: "conv1 (Conv, Relu)"
    std::int64_t calls = 0;       // in one run of the network
    double seconds = 0;           // of one call, alone; NaN if no program of it works yet
    std::int64_t trials = 0;      // 0: known before
  };
  std::filesystem::path folder;
  std::vector<Kernel> kernels;
  double seconds = 0;     // the sum of all calls; infinite while a kernel has no program
  bool complete = false;  // false: stopped; the same call continues it
  // Where `shapes` give several: a network for each, in a folder within this one. Then `kernels` are theirs, and
  // `seconds` are of one run of each.
  std::string shape = "";  // of one of them: "batch=4"
  std::vector<TunedNetwork> shapes = {};
};

// Tunes all kernels of an ONNX file (graft tune MODEL.onnx). A kernel that has no program does not end the others.
GRAFT_API TunedNetwork tune_network(const std::filesystem::path& model, const Platform& platform,
                                    const NetworkSettings& settings = {});

struct CompileNetworkSettings {
  CompileSettings::Format format = CompileSettings::Format::library;
  std::string name = "";         // of the library, whose function is NAME_run; "": as the model's file
  bool weights_in_file = false;  // NAME.weights, instead of data of the code
  Watch watch = {};
  bool exported = false;  // as CompileSettings::exported
};

// The folder of a tuned network as a library with one function, its results checked here or under qemu. Failure if they
// are wrong.
GRAFT_API Compiled compile_network(const std::filesystem::path& folder, const CompileNetworkSettings& settings = {});

// Creates the folder, replaces files in it.
GRAFT_API void write(const Compiled& compiled, const std::filesystem::path& folder);

}  // namespace graft
