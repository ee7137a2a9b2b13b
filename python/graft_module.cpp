// The extension module graft._graft: the values and functions of graft/graft.h. What Python adds to them is in
// graft/*.py; what both promise to users of Python is said in the docstrings.
#include <pybind11/numpy.h>
#include <pybind11/operators.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "graft/graft.h"
#include "python/code.h"
#include "python/given.h"
#include "python/waiting.h"

namespace py = pybind11;

namespace graft::python {
namespace {

std::vector<Workload> given_workloads(const py::handle& objects) {
  if (py::isinstance<py::str>(objects) || !py::isinstance<py::iterable>(objects))
    refuse("workloads", "a list of workloads or their texts", objects);
  std::vector<Workload> workloads;
  for (const py::handle object : objects) workloads.push_back(given_or_text<Workload>("workloads", object));
  return workloads;
}

// By its shape: from a count, pybind11 before 2.12 asks the dtype for the size of an element where NumPy 2 has another.
template <class Number>
py::array_t<Number> array_of(const std::vector<Number>& values) {
  return py::array_t<Number>(py::array::ShapeContainer{py::ssize_t(values.size())}, values.data());
}

py::array_t<double> curve_of(const Answer& answer) {
  py::array_t<double> curve({py::ssize_t(answer.curve.size()), py::ssize_t(2)});
  auto points = curve.mutable_unchecked<2>();
  for (std::size_t i = 0; i < answer.curve.size(); ++i) {
    points(py::ssize_t(i), 0) = double(answer.curve[i].first);
    points(py::ssize_t(i), 1) = answer.curve[i].second;
  }
  return curve;
}

std::string text_of(const Answer& answer) {
  const bool is_measured = answer.source != "modelled" && answer.source != "emulated";
  char numbers[128];
  std::snprintf(numbers, sizeof numbers, "%.4g s%s, %.4g GFLOP/s, %lld trials", answer.seconds,
                is_measured ? "" : (" (" + answer.source + ")").c_str(), answer.gflops,
                static_cast<long long>(answer.trials));
  return "<graft.Answer " + answer.workload + " on " + answer.platform + ": " + numbers + ">";
}

// Pickles a struct by these members of it.
template <class Struct, class... Members>
auto pickled(Members Struct::*... members) {
  return py::pickle([members...](const Struct& value) { return py::make_tuple(value.*members...); },
                    [members...](const py::tuple& state) {
                      Struct value;
                      std::size_t i = 0;
                      ((value.*members = state[i++].cast<Members>()), ...);
                      return value;
                    });
}

// A model's file, from any working directory; or the name of one without a file.
std::string absolute_name(const Model& model) {
  const bool is_file = !model.name().empty() && std::filesystem::exists(model.name());
  return is_file ? std::filesystem::absolute(model.name()).string() : model.name();
}

CompileSettings::Format given_format(const py::object& format) {
  const auto name = given<std::string>("format", format);
  if (name == "library") return CompileSettings::Format::library;
  if (name == "object") return CompileSettings::Format::object;
  if (name == "bench") return CompileSettings::Format::bench;
  throw Error(Error::Kind::mistake, "format: '" + name + "', give library, object or bench");
}

// Names of functions by any text of their workload, or the workload itself.
std::map<std::string, std::string> given_names(const py::object& object) {
  if (!py::isinstance<py::dict>(object)) refuse("names", "a dict of str by workload", object);
  std::map<std::string, std::string> names;
  for (const auto& [workload, name] : py::reinterpret_borrow<py::dict>(object))
    names[given_or_text<Workload>("names", workload).text()] = given<std::string>("names", name);
  return names;
}

// graft.Error and one subclass for each kind; a mistake is a ValueError, one of a type is a TypeError, too.
void add_errors(py::module_& module) {
  static py::object error, mistake, failure, stopped, wrong_type;
  const auto add = [&](const char* name, const py::handle& bases, const char* doc) {
    const std::string full = std::string("graft.") + name;
    auto type = py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr));
    if (!type) throw py::error_already_set();
    module.add_object(name, type);
    return type;
  };
  error = add("Error", PyExc_RuntimeError, "Whatever fails in graft: one line, '<place>: <value>, <next action>'.");
  mistake = add("Mistake", py::make_tuple(error, py::handle(PyExc_ValueError)),
                "A text, a file or settings that do not go together.");
  wrong_type = add("WrongType", py::make_tuple(mistake, py::handle(PyExc_TypeError)),
                   "An argument of another type, one that is missing, or one that the call does not have.");
  failure = add("Failure", error, "A full disk, a dead child, no schedule that works.");
  stopped =
      add("Stopped", error, "The callback `stop` asked for it before there was an answer; the same call continues.");
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& e) {
      const py::object& type = e.kind() == Error::Kind::mistake   ? mistake
                               : e.kind() == Error::Kind::failure ? failure
                                                                  : stopped;
      PyErr_SetString(type.ptr(), e.what());
    } catch (const WrongType& e) {
      PyErr_SetString(wrong_type.ptr(), e.what());
    }
  });
}

void add_workload_and_platform(py::module_& module) {
  py::class_<Workload>(module, "Workload",
                       "An operator with its shapes, 'matmul(m=64,n=64,k=64)', or an index expression.")
      .def(py::init([](const py::object& text) { return given_or_text<Workload>("text", text); }), py::arg("text"))
      .def_property_readonly("text", &Workload::text, "Canonical: parameters in order, defaults filled in.")
      .def_property_readonly("flops", &Workload::flops, "Floating-point operations of one run.")
      .def(py::self == py::self)
      .def("__hash__", [](const Workload& workload) { return std::hash<std::string>()(workload.text()); })
      .def("__str__", &Workload::text)
      .def("__repr__", [](const Workload& workload) { return "graft.Workload('" + workload.text() + "')"; })
      .def(py::pickle([](const Workload& workload) { return workload.text(); },
                      [](const std::string& text) { return Workload(text); }));

  py::class_<Platform>(module, "Platform",
                       "Where schedules run: one of platforms(), or the path of a YAML file that describes it.")
      .def(py::init([](const py::object& id) { return given_or_text<Platform>("id", id); }), py::arg("id"))
      .def_static(
          "from_yaml", [](const py::object& yaml) { return Platform::from_yaml(given<std::string>("yaml", yaml)); },
          py::arg("yaml"), "The content of such a file.")
      .def_property_readonly("name", &Platform::name)
      .def_property_readonly("source", &Platform::source, "Of its times: 'native', 'remote', 'emulated' or 'modelled'.")
      .def_property_readonly("yaml", &Platform::yaml, "The platform's full description.")
      .def("__repr__", [](const Platform& platform) { return "<graft.Platform " + platform.name() + ">"; })
      .def(py::pickle([](const Platform& platform) { return platform.yaml(); }, &Platform::from_yaml));
}

void add_model_and_answer(py::module_& module) {
  py::class_<Model>(module, "Model",
                    "What guides a search, and predicts. Without a name the model that graft ships; else a file of "
                    "graft train or graft adapt, or 'scratch', 'black-box', 'analytic', 'random'.")
      .def(py::init([](const py::object& name) { return given_model(name, "name"); }), py::arg("name") = py::none())
      .def_property_readonly("name", &Model::name, "'' for graft's own.")
      .def("__repr__", [](const Model& model) { return "graft.Model('" + model.name() + "')"; })
      .def(py::pickle(&absolute_name, [](const std::string& name) { return name.empty() ? Model() : Model(name); }));

  py::class_<Answer>(module, "Answer", "The fastest program of a run, its results checked.")
      .def_readonly("workload", &Answer::workload)
      .def_readonly("platform", &Answer::platform)
      .def_readonly("source", &Answer::source, "Of its time, as Platform.source.")
      .def_readonly("schedule", &Answer::schedule, "Its steps, a line each.")
      .def_readonly("seconds", &Answer::seconds,
                    "Of one run, as `source` says: modelled and emulated times are not measured; the least of the "
                    "repetitions.")
      .def_readonly("gflops", &Answer::gflops, "10^9 floating-point operations per second.")
      .def_readonly("check", &Answer::check,
                    "Of its results: 'host', 'remote', 'qemu'; 'none' where nothing could run it.")
      .def_readonly("trials", &Answer::trials, "That the run measured.")
      .def_readonly("complete", &Answer::complete, "False: stopped; the same call continues it.")
      .def_readonly("known_since", &Answer::known_since,
                    "Date of an answer of the library; '' for one that was searched.")
      .def_property_readonly(
          "run", [](const Answer& answer) { return answer.run.empty() ? std::nullopt : std::optional(answer.run); },
          "The run's folder; None if it is the library's.")
      .def_property_readonly("curve", &curve_of,
                             "float64, shape (improvements, 2): trials so far, least seconds so far.")
      .def("__repr__", &text_of)
      .def(py::pickle(&to_text, &answer_from));
}

void add_adapted_and_trained(py::module_& module) {
  py::class_<Adapted::Quality>(module, "Quality",
                               "Spearman correlations of predicted and measured speed of a workload; NaN where too "
                               "little was measured.")
      .def_readonly("workload", &Adapted::Quality::workload)
      .def_readonly("programs", &Adapted::Quality::programs, "That were measured, and went well.")
      .def_readonly("before", &Adapted::Quality::before, "By the model as it was.")
      .def_readonly("after", &Adapted::Quality::after, "Adapted, cross-validated.")
      .def(pickled(&Adapted::Quality::workload, &Adapted::Quality::programs, &Adapted::Quality::before,
                   &Adapted::Quality::after));
  py::class_<Adapted>(module, "Adapted", "A model that knows a platform from a few measurements of its own.")
      .def_readonly("model", &Adapted::model, "The file that was written.")
      .def_readonly("workloads", &Adapted::workloads, "A Quality for each workload.")
      .def(pickled(&Adapted::model, &Adapted::workloads));

  py::class_<Trained>(module, "Trained", "A model that train() wrote.")
      .def_readonly("model", &Trained::model, "The file.")
      .def_readonly("learner", &Trained::learner,
                    "What it was made by: with trees, what replaced the one that was asked for.")
      .def_readonly("programs", &Trained::programs, "That it has learnt from.")
      .def_readonly("platforms", &Trained::platforms)
      .def(pickled(&Trained::model, &Trained::learner, &Trained::programs, &Trained::platforms));
}

void add_compiled(py::module_& module) {
  py::class_<Compiled::Function>(module, "Function", "A function of a compiled library.")
      .def_readonly("name", &Compiled::Function::name)
      .def_readonly("workload", &Compiled::Function::workload)
      .def_readonly("check", &Compiled::Function::check, "Of this very code, as Answer.check.")
      .def_readonly("prepared_bytes", &Compiled::Function::prepared_bytes, "For the constants, prepared once.")
      .def_readonly("prepare_scratch_bytes", &Compiled::Function::prepare_scratch_bytes,
                    "That preparing needs meanwhile.")
      .def_readonly("scratch_bytes", &Compiled::Function::scratch_bytes, "That a call needs for itself.")
      .def(pickled(&Compiled::Function::name, &Compiled::Function::workload, &Compiled::Function::check,
                   &Compiled::Function::prepared_bytes, &Compiled::Function::prepare_scratch_bytes,
                   &Compiled::Function::scratch_bytes));
  py::class_<Compiled>(module, "Compiled", "A library as files in memory; write() makes a folder of them.")
      .def_readonly("functions", &Compiled::functions)
      .def_property_readonly(
          "files",
          [](const Compiled& compiled) {
            py::dict files;
            for (const auto& [name, content] : compiled.files) files[py::str(name)] = py::bytes(content);
            return files;
          },
          "Contents (bytes) by name.")
      .def_readonly("executable", &Compiled::executable, "The files are programs.")
      .def(py::pickle(
          [](const py::object& compiled) {
            return py::make_tuple(compiled.attr("functions"), compiled.attr("files"), compiled.attr("executable"));
          },
          [](const py::tuple& state) {
            return Compiled{state[0].cast<std::vector<Compiled::Function>>(),
                            state[1].cast<std::map<std::string, std::string>>(), state[2].cast<bool>()};
          }));
}

void add_values(py::module_& module) {
  add_workload_and_platform(module);
  add_model_and_answer(module);
  add_adapted_and_trained(module);
  add_compiled(module);
}

const char* const tune_doc =
    "Searches fast schedules of a workload on a platform, or continues the run in `out` with more trials.\n\n"
    "start: schedules that are measured first, texts as Answer.schedule.\n\n"
    "Callbacks: progress(what, done, total), note(line), stop() -> bool, which is asked all the time; True ends the\n"
    "search with the best so far. They may be called on another thread. KeyboardInterrupt is raised once the search\n"
    "has ended tidily; what was measured is kept, and the same call continues.\n\n"
    "Raises Mistake, Failure if no schedule worked, Stopped if there is no answer yet.";

Measured measured_from(std::string schedule, const py::handle& outcome) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  if (py::isinstance<py::str>(outcome)) return {std::move(schedule), none, outcome.cast<std::string>()};
  if (py::isinstance<py::tuple>(outcome) && py::len(outcome) == 2) {
    const py::tuple bound = py::reinterpret_borrow<py::tuple>(outcome);
    return {std::move(schedule), given<double>("seconds", bound[1]), given<std::string>("seconds", bound[0])};
  }
  const double seconds = outcome.is_none() ? none : given<double>("seconds", outcome);
  return {std::move(schedule), seconds, std::isfinite(seconds) ? "ok" : "crashed"};
}

const char* const search_doc =
    "The search of tune(), for whoever measures by other means: ask, measure, tell, and again.\n\n"
    "Asked for 32 schedules at a time and told what tune() measured, it asks for what tune() measures. Deterministic "
    "in\n"
    "the seed and in what was asked and told, so that a search is continued by telling another one the same. start:\n"
    "schedules that are asked for first. threads: no result depends on it. Errors as tune().";

const char* const tell_doc =
    "What became of schedules of the workload, in the order of measurement, whether they were asked for or not.\n\n"
    "seconds: for each schedule its time, or what failed: None or NaN for 'crashed', or a status (str,\n"
    "docs/reference/statuses.md). All are taken, or none: Mistake for a text that is not a schedule, a time that is "
    "not\n"
    "above 0, an unknown status, and a time of a schedule that cannot be applied.";

const char* const adapt_doc =
    "Measures `shots` programs of each workload, which the model chooses, on the platform, and writes the adapted\n"
    "model to the file `out`. Callbacks, KeyboardInterrupt and errors as tune().";

const char* const predict_doc =
    "A score for each schedule (texts as Answer.schedule), higher is faster, without running any; comparable within\n"
    "one call. float64, shape (schedules,); -inf for a schedule that cannot be applied.";

const char* const encode_doc =
    "Schedules (texts as Answer.schedule) as numbers, for models that are made elsewhere: float32, shape (schedules,\n"
    "columns), NaN in the row of a schedule that cannot be applied. feature_names(encoding) names the columns.\n\n"
    "encoding: one of encodings(). threads: no result depends on it.";

const char* const train_doc =
    "Meta-trains a cost model on files of datasets (paths, one or several for each platform), and writes it to the "
    "file\n"
    "`out`.\n\n"
    "Callbacks, KeyboardInterrupt and errors as tune(); the same call continues from checkpoints in `out`.checkpoints.";

const char* const evaluate_doc =
    "Judges methods on each target platform, trained on the other platforms of the files of datasets\n"
    "(docs/explanation/evaluation-protocol.md).\n\n"
    "Returns columns of equal length, a row for each target, method and number of shots; pandas.DataFrame takes them:\n"
    "target, method, shots (measurements of each workload on the target), draws, workloads, and for each of the "
    "figures\n"
    "spearman, top1, top5 its mean and 95 % interval, float64: spearman, spearman_low, spearman_high, ... top1: least\n"
    "time / time of the program predicted first, in (0, 1].\n\n"
    "Callbacks, KeyboardInterrupt and errors as train().";

const char* const tune_network_doc =
    "Tunes all kernels of an ONNX file, as `graft tune MODEL.onnx` does.\n\n"
    "guide: the model that guides. Returns a dict: folder, seconds (the sum of all calls), source (of all times, as "
    "Platform.source), complete (False: stopped, the same call continues it), kernels (a list of dicts: label, "
    "workload, "
    "calls, seconds, trials). Of several shapes (shapes={'batch': [1, 4]}) also shapes: such dicts, each with its "
    "shape.";

const char* const compile_network_doc =
    "Compiles the folder of a tuned network into a library whose function is NAME_run, and checks its results.\n\n"
    "format: library, object or bench; name: default, the model's; weights_in_file: NAME.weights instead of data of "
    "the code. write() writes it, "
    "load() calls it.";

const char* const compile_doc =
    "Answers for one platform, of distinct workloads, as a library that needs nothing but itself. Nothing is\n"
    "written; write() does that.\n\n"
    "format: 'library' (an archive, a C header, files for pkg-config and CMake), 'object' (one relocatable object and\n"
    "the header) or 'bench' (programs that check and time themselves). name: of the library. names: of functions, by\n"
    "the canonical text of their workloads. variants: distinct programs of each workload, the fastest of its run.\n"
    "constants: arrays by 'FUNCTION/TENSOR', or a file of numpy.savez with them, that become part of the library.\n"
    "Callbacks, KeyboardInterrupt and errors as tune().";

// What graft.read_dataset makes columns of: lists and arrays of one element per row, and texts that rows refer to.
py::dict content_of(const Dataset& dataset) {
  const std::size_t count = dataset.rows.size();
  std::vector<std::int64_t> workload(count), sketch(count);
  std::vector<std::uint64_t> program(count);
  std::vector<double> seconds(count);
  py::list arguments, schedule, status, reason, repetitions;
  for (std::size_t r = 0; r < count; ++r) {
    const Dataset::Row& row = dataset.rows[r];
    workload[r] = row.workload;
    sketch[r] = row.sketch;
    program[r] = row.program;
    seconds[r] = row.seconds;
    arguments.append(py::tuple(py::cast(row.arguments)));
    schedule.append(row.schedule);
    status.append(row.status);
    reason.append(row.reason);
    repetitions.append(py::tuple(py::cast(row.repetitions)));
  }
  py::dict content;
  content["platform"] = dataset.platform;
  content["source"] = dataset.source;
  content["yaml"] = dataset.yaml;
  content["workloads"] = dataset.workloads;
  content["sketches"] = dataset.sketches;
  content["workload"] = array_of(workload);
  content["sketch"] = array_of(sketch);
  content["arguments"] = arguments;
  content["schedule"] = schedule;
  content["program"] = array_of(program);
  content["status"] = status;
  content["reason"] = reason;
  content["seconds"] = array_of(seconds);
  content["repetitions"] = repetitions;
  return content;
}

py::dict dict_of(const TunedNetwork& tuned) {
  py::list kernels;
  for (const TunedNetwork::Kernel& kernel : tuned.kernels) {
    py::dict one;
    one["label"] = kernel.label, one["workload"] = kernel.workload, one["calls"] = kernel.calls;
    one["seconds"] = kernel.seconds, one["trials"] = kernel.trials;
    kernels.append(one);
  }
  py::dict result;
  result["folder"] = tuned.folder, result["seconds"] = tuned.seconds, result["complete"] = tuned.complete;
  result["kernels"] = kernels;
  return result;
}

py::dict columns_of(const std::vector<Evaluated>& rows) {
  py::dict columns;
  const auto add = [&](const std::string& name, const auto& value_of) {
    using Value = std::decay_t<decltype(value_of(rows.front()))>;
    std::vector<Value> values;
    for (const Evaluated& row : rows) values.push_back(value_of(row));
    if constexpr (std::is_arithmetic_v<Value>) {
      columns[py::str(name)] = array_of(values);
    } else {
      columns[py::str(name)] = values;
    }
  };
  const auto add_estimate = [&](const std::string& name, Evaluated::Estimate Evaluated::*estimate) {
    add(name, [&](const Evaluated& row) { return (row.*estimate).mean; });
    add(name + "_low", [&](const Evaluated& row) { return (row.*estimate).low; });
    add(name + "_high", [&](const Evaluated& row) { return (row.*estimate).high; });
  };
  add("target", [](const Evaluated& row) { return row.target; });
  add("method", [](const Evaluated& row) { return row.method; });
  add("shots", [](const Evaluated& row) { return row.shots; });
  add("draws", [](const Evaluated& row) { return row.draws; });
  add("workloads", [](const Evaluated& row) { return row.workloads; });
  add_estimate("spearman", &Evaluated::spearman);
  add_estimate("top1", &Evaluated::top1);
  add_estimate("top5", &Evaluated::top5);
  return columns;
}

template <class AnySearch>
std::vector<std::string> asked(AnySearch& search, const py::object& object) {
  const auto count = given<std::int64_t>("count", object);
  Waiting waiting{py::none(), py::none(), py::none()};
  return waiting.run([&] { return search.ask(count, waiting.watch().stop); });
}

// `schedules` and `seconds` of tell: lists of equal length, or one of each.
std::vector<Measured> told_from(const py::object& schedules, const py::object& seconds) {
  if (py::isinstance<py::str>(schedules)) return {measured_from(schedules.cast<std::string>(), seconds)};
  const auto texts = given<std::vector<std::string>>("schedules", schedules);
  if (py::isinstance<py::str>(seconds) || !py::isinstance<py::iterable>(seconds))
    refuse("seconds", "a list with an outcome for each schedule", seconds);
  std::vector<Measured> measured;
  for (const py::handle outcome : seconds) {
    if (measured.size() == texts.size())
      throw Error(Error::Kind::mistake, "seconds: more than schedules, give one for each");
    measured.push_back(measured_from(texts[measured.size()], outcome));
  }
  if (measured.size() < texts.size())
    throw Error(Error::Kind::mistake, "seconds: fewer than schedules, give one for each");
  return measured;
}

void add_search(py::module_& module) {
  py::class_<Measured>(module, "Measured", "A schedule, and what became of it.")
      .def_readonly("schedule", &Measured::schedule, "Its steps, a line each.")
      .def_readonly("seconds", &Measured::seconds, "Of one run; NaN unless the status is 'ok'.")
      .def_readonly("status", &Measured::status, "'ok', or how it failed.")
      .def(pickled(&Measured::schedule, &Measured::seconds, &Measured::status));

  py::class_<Search>(module, "Search", search_doc)
      .def(py::init([](const py::object& workload, const py::object& platform, const py::object& model,
                       const py::object& seed, const py::object& threads, const py::object& start) {
             const auto what = given_or_text<Workload>("workload", workload);
             const auto where = given_or_text<Platform>("platform", platform);
             const SearchSettings settings{given_model(model), given<std::vector<std::string>>("start", start),
                                           given<std::uint64_t>("seed", seed), given<int>("threads", threads)};
             return Waiting(py::none(), py::none(), py::none()).run([&] { return Search(what, where, settings); });
           }),
           py::arg("workload"), py::arg("platform"), py::kw_only(), py::arg("model") = py::none(), py::arg("seed") = 1,
           py::arg("threads") = 1, py::arg("start") = py::tuple())
      .def(
          "ask", [](Search& search, const py::object& count) { return asked(search, count); }, py::arg("count") = 1,
          "Distinct schedules to measure next, at most `count`, none that was asked for before, best guess first; "
          "fewer\n"
          "where the space has no more. Learns from what was told.")
      .def(
          "tell",
          [](Search& search, const py::object& schedules, const py::object& seconds) {
            const std::vector<Measured> measured = told_from(schedules, seconds);
            const Unlocked unlocked;
            search.tell(measured);
          },
          py::arg("schedules"), py::arg("seconds"), tell_doc)
      .def("best", &Search::best, py::call_guard<Unlocked>(), "The fastest that was told; None before any was ok.")
      .def("trials", &Search::trials, py::call_guard<Unlocked>(), "All that was told, in order: a list of Measured.");
}

void add_configurations(py::module_& module) {
  py::class_<ConfigurationSearch>(module, "_Configurations",
                                  "The search of tune_function; configurations are texts of JSON.")
      .def(py::init([](const std::string& space, const std::vector<std::string>& prior, const std::string& model,
                       const py::object& seed, const py::object& threads) {
             const ConfigurationSettings settings{prior, model, given<std::uint64_t>("seed", seed),
                                                  given<int>("threads", threads)};
             return Waiting(py::none(), py::none(), py::none()).run([&] {
               return ConfigurationSearch(space, settings);
             });
           }),
           py::arg("space"), py::arg("prior"), py::arg("model"), py::arg("seed"), py::arg("threads"))
      .def(
          "ask", [](ConfigurationSearch& search, const py::object& count) { return asked(search, count); },
          py::arg("count"))
      .def(
          "tell",
          [](ConfigurationSearch& search, const std::vector<std::tuple<std::string, double, std::string>>& outcomes) {
            std::vector<Measured> measured;
            for (const auto& [configuration, seconds, status] : outcomes)
              measured.push_back({configuration, seconds, status});
            const Unlocked unlocked;
            search.tell(measured);
          },
          py::arg("outcomes"))
      .def("best", &ConfigurationSearch::best, py::call_guard<Unlocked>());
}

using Shapes = std::map<std::string, std::vector<std::int64_t>>;
using Numbers = std::map<std::string, std::vector<double>>;

// Arrays of any shape, lists or numbers by name.
Numbers numbers_from(const py::handle& given) {
  Numbers numbers;
  for (const auto& [name, value] : given.cast<py::dict>()) {
    const auto array = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(value);
    if (!array) throw py::cast_error();
    numbers[name.cast<std::string>()].assign(array.data(), array.data() + array.size());
  }
  return numbers;
}

Value value_from(const py::handle& given, const SettingInfo& setting) {
  if (std::holds_alternative<bool>(setting.usual)) return given.cast<bool>();
  if (std::holds_alternative<std::int64_t>(setting.usual)) return given.cast<std::int64_t>();
  if (std::holds_alternative<double>(setting.usual)) return given.cast<double>();
  if (setting.is_path) return given.cast<std::filesystem::path>().string();
  if (std::holds_alternative<std::string>(setting.usual)) return given.cast<std::string>();
  if (std::holds_alternative<Shapes>(setting.usual)) return given.cast<Shapes>();
  if (std::holds_alternative<Numbers>(setting.usual)) return numbers_from(given);
  if (py::isinstance<py::str>(given)) throw py::cast_error();
  std::vector<std::string> words;
  std::vector<std::int64_t> numbers;
  for (const py::handle each : py::reinterpret_borrow<py::iterable>(given)) {
    if (py::isinstance<py::int_>(each)) {
      numbers.push_back(each.cast<std::int64_t>());
    } else if (py::isinstance<Workload>(each)) {
      words.push_back(each.cast<Workload>().text());
    } else if (py::isinstance<py::str>(each)) {
      words.push_back(each.cast<std::string>());
    } else {
      words.push_back(each.cast<std::filesystem::path>().string());
    }
  }
  if (!numbers.empty() && words.empty()) return numbers;
  return words;
}

// The settings of a call by keyword; None is the default.
Settings settings_from(const py::kwargs& keywords, const std::string& call) {
  const std::vector<SettingInfo> known = settings_of(call);
  Settings settings;
  for (const auto& [key, value] : keywords) {
    const auto keyword = key.cast<std::string>();
    const auto setting =
        std::find_if(known.begin(), known.end(), [&](const SettingInfo& each) { return each.keyword == keyword; });
    if (setting == known.end()) throw WrongType("got an unexpected keyword argument '" + keyword + "'");
    if (value.is_none()) continue;
    try {
      settings[keyword] = value_from(value, *setting);
    } catch (const py::cast_error&) {
      refuse(keyword,
             setting->is_path                                 ? words<std::filesystem::path>()
             : std::holds_alternative<Shapes>(setting->usual) ? words<Shapes>()
             : std::holds_alternative<Numbers>(setting->usual)
                 ? words<Numbers>()
                 : "a value such as " + py::repr(py::cast(setting->usual)).cast<std::string>(),
             value);
    }
  }
  return settings;
}

// "tune(workload, platform, *, model=None, trials=256, ...)", and what the settings are.
std::string doc_of(const std::string& call, const std::string& given, const char* doc) {
  std::string line = call + "(" + given, settings;
  for (const SettingInfo& setting : settings_of(call)) {
    line += ", " + setting.keyword + "=" +
            (setting.is_path ? "None" : py::repr(py::cast(setting.usual)).cast<std::string>());
    settings += "\n    " + setting.keyword + ": " + setting.help;
  }
  return line + ")\n\n" + doc + "\n\nSettings:" + settings;
}

// The callbacks of a call that takes time, as its docstring names them.
const std::string callbacks = "progress=None, note=None, stop=None";

void add_tune(py::module_& module) {
  const auto none = py::none();
  module.def(
      "tune",
      [](const py::object& workload, const py::object& platform, const py::object& model, const py::object& start,
         const py::object& progress, const py::object& note, const py::object& stop, const py::kwargs& more) {
        Waiting waiting(progress, note, stop);
        const auto what = given_or_text<Workload>("workload", workload);
        const auto where = given_or_text<Platform>("platform", platform);
        TuneSettings settings;
        settings.model = given_model(model);
        settings.start = given<std::vector<std::string>>("start", start);
        settings.watch = waiting.watch();
        settings.more = settings_from(more, "tune");
        return waiting.run([&] { return tune(what, where, settings); });
      },
      doc_of("tune", "workload, platform, *, model=None, start=(), " + callbacks, tune_doc).c_str(),
      py::arg("workload"), py::arg("platform"), py::kw_only(), py::arg("model") = none, py::arg("start") = py::tuple(),
      py::arg("progress") = none, py::arg("note") = none, py::arg("stop") = none);
}

void add_adapt(py::module_& module) {
  const auto none = py::none();
  module.def(
      "adapt",
      [](const py::object& model, const py::object& platform, const py::object& workloads, const py::object& out,
         const py::object& progress, const py::object& note, const py::object& stop, const py::kwargs& more) {
        Waiting waiting(progress, note, stop);
        const Model which = given_model(model);
        const auto where = given_or_text<Platform>("platform", platform);
        const std::vector<Workload> what = given_workloads(workloads);
        AdaptSettings settings;
        settings.watch = waiting.watch();
        settings.more = settings_from(more, "adapt");
        const auto file = given<std::filesystem::path>("out", out);
        return waiting.run([&] { return adapt(which, where, what, file, settings); });
      },
      doc_of("adapt", "model, platform, workloads, out, *, " + callbacks, adapt_doc).c_str(), py::arg("model"),
      py::arg("platform"), py::arg("workloads"), py::arg("out"), py::kw_only(), py::arg("progress") = none,
      py::arg("note") = none, py::arg("stop") = none);
}

void add_train(py::module_& module) {
  const auto none = py::none();
  module.def(
      "train",
      [](const py::object& datasets, const py::object& out, const py::object& progress, const py::object& note,
         const py::object& stop, const py::kwargs& more) {
        Waiting waiting(progress, note, stop);
        TrainSettings settings;
        settings.watch = waiting.watch();
        settings.more = settings_from(more, "train");
        const auto files = given<std::vector<std::filesystem::path>>("datasets", datasets);
        const auto file = given<std::filesystem::path>("out", out);
        return waiting.run([&] { return train(files, file, settings); });
      },
      doc_of("train", "datasets, out, *, " + callbacks, train_doc).c_str(), py::arg("datasets"), py::arg("out"),
      py::kw_only(), py::arg("progress") = none, py::arg("note") = none, py::arg("stop") = none);
}

void add_evaluate(py::module_& module) {
  const auto none = py::none();
  module.def(
      "evaluate",
      [](const py::object& datasets, const py::object& progress, const py::object& note, const py::object& stop,
         const py::kwargs& more) {
        Waiting waiting(progress, note, stop);
        EvaluateSettings settings;
        settings.watch = waiting.watch();
        settings.more = settings_from(more, "evaluate");
        const auto files = given<std::vector<std::filesystem::path>>("datasets", datasets);
        return columns_of(waiting.run([&] { return evaluate(files, settings); }));
      },
      doc_of("evaluate", "datasets, *, " + callbacks, evaluate_doc).c_str(), py::arg("datasets"), py::kw_only(),
      py::arg("progress") = none, py::arg("note") = none, py::arg("stop") = none);
}

void add_tune_network(py::module_& module) {
  const auto none = py::none();
  module.def(
      "tune_network",
      [](const py::object& model, const py::object& platform, const py::object& guide, const py::object& progress,
         const py::object& note, const py::object& stop, const py::kwargs& more) {
        Waiting waiting(progress, note, stop);
        const auto file = given<std::filesystem::path>("model", model);
        const auto where = given_or_text<Platform>("platform", platform);
        NetworkSettings settings;
        settings.model = given_model(guide, "guide");
        settings.watch = waiting.watch();
        settings.more = settings_from(more, "tune_network");
        const TunedNetwork tuned = waiting.run([&] { return tune_network(file, where, settings); });
        py::dict result = dict_of(tuned);
        result["source"] = where.source();
        if (tuned.shapes.empty()) return result;
        py::list shapes;
        for (const TunedNetwork& shape : tuned.shapes) {
          shapes.append(dict_of(shape));
          shapes[shapes.size() - 1]["shape"] = shape.shape;
        }
        result["shapes"] = shapes;
        return result;
      },
      doc_of("tune_network", "model, platform, *, guide=None, " + callbacks, tune_network_doc).c_str(),
      py::arg("model"), py::arg("platform"), py::kw_only(), py::arg("guide") = none, py::arg("progress") = none,
      py::arg("note") = none, py::arg("stop") = none);
}

void add_settled_calls(py::module_& module) {
  py::options described;  // their docstrings begin with what a table says
  described.disable_function_signatures();
  add_tune(module);
  add_adapt(module);
  add_train(module);
  add_evaluate(module);
  add_tune_network(module);
}

void add_encodings(py::module_& module) {
  module.def(
      "predict",
      [](const py::object& model, const py::object& workload, const py::object& platform, const py::object& schedules) {
        const auto texts = given<std::vector<std::string>>("schedules", schedules);
        const Model which = given_model(model);
        const auto what = given_or_text<Workload>("workload", workload);
        const auto where = given_or_text<Platform>("platform", platform);
        return array_of(
            Waiting(py::none(), py::none(), py::none()).run([&] { return predict(which, what, where, texts); }));
      },
      predict_doc, py::arg("model"), py::arg("workload"), py::arg("platform"), py::arg("schedules"));

  module.def("encodings", &encodings, "Names for encode(): encodings with one row for each program.");
  module.def(
      "feature_names",
      [](const py::object& encoding) { return feature_names(given<std::string>("encoding", encoding)); },
      "Names of an encoding's columns, in order; docs/reference/encodings.md defines them.", py::arg("encoding"));
  module.def(
      "encode",
      [](const py::object& workload, const py::object& platform, const py::object& schedules,
         const py::object& encoding, const py::object& threads) {
        const auto texts = given<std::vector<std::string>>("schedules", schedules);
        const auto name = given<std::string>("encoding", encoding);
        const int count = given<int>("threads", threads);
        const auto what = given_or_text<Workload>("workload", workload);
        const auto where = given_or_text<Platform>("platform", platform);
        const std::vector<float> rows =
            Waiting(py::none(), py::none(), py::none()).run([&] { return encode(what, where, texts, name, count); });
        const std::size_t columns = feature_names(name).size();
        return py::array_t<float>({py::ssize_t(texts.size()), py::ssize_t(columns)}, rows.data());
      },
      encode_doc, py::arg("workload"), py::arg("platform"), py::arg("schedules"),
      py::arg("encoding") = "context_relation", py::kw_only(), py::arg("threads") = 1);
}

void add_compile(py::module_& module) {
  const auto none = py::none();
  module.def(
      "compile",
      [](const py::object& answers, const py::object& format, const py::object& name, const py::object& names,
         const py::object& variants, const py::object& constants, const py::object& threads, const py::object& progress,
         const py::object& note, const py::object& stop) {
        Waiting waiting(progress, note, stop);
        CompileSettings settings;
        settings.format = given_format(format);
        settings.name = given<std::string>("name", name);
        settings.names = given_names(names);
        settings.variants = given<std::int64_t>("variants", variants);
        settings.constants = given_path_or_none("constants", constants);
        settings.threads = given<int>("threads", threads);
        settings.watch = waiting.watch();
        const auto all = given<std::vector<Answer>>("answers", answers);
        return waiting.run([&] { return compile(all, settings); });
      },
      compile_doc, py::arg("answers"), py::kw_only(), py::arg("format") = "library", py::arg("name") = "kernels",
      py::arg("names") = py::dict(), py::arg("variants") = 1, py::arg("constants") = none, py::arg("threads") = 1,
      py::arg("progress") = none, py::arg("note") = none, py::arg("stop") = none);

  module.def(
      "compile_network",
      [](const py::object& folder, const py::object& format, const py::object& name, const py::object& weights_in_file,
         const py::object& progress, const py::object& note, const py::object& stop) {
        Waiting waiting(progress, note, stop);
        const CompileNetworkSettings settings{given_format(format), given<std::string>("name", name),
                                              given<bool>("weights_in_file", weights_in_file), waiting.watch()};
        const auto path = given<std::filesystem::path>("folder", folder);
        return waiting.run([&] { return compile_network(path, settings); });
      },
      compile_network_doc, py::arg("folder"), py::kw_only(), py::arg("format") = "library", py::arg("name") = "",
      py::arg("weights_in_file") = false, py::arg("progress") = none, py::arg("note") = none, py::arg("stop") = none);
}

void add_files(py::module_& module) {
  module.def(
      "answer_of",
      [](const py::object& run) {
        const auto folder = given<std::filesystem::path>("run", run);
        const Unlocked unlocked;
        return answer_of(folder);
      },
      "The answer of a run of tune(), from its folder. Raises Mistake for a folder without one.", py::arg("run"));

  module.def(
      "dataset_content",
      [](const py::object& object) {
        const auto file = given<std::filesystem::path>("file", object);
        return content_of([&] {
          const Unlocked unlocked;
          return read_dataset(file);
        }());
      },
      "What graft.read_dataset() makes columns of.", py::arg("file"));

  module.def(
      "write",
      [](const py::object& compiled, const py::object& folder) {
        const auto what = given<Compiled>("compiled", compiled);
        const auto where = given<std::filesystem::path>("folder", folder);
        const Unlocked unlocked;
        write(what, where);
      },
      "Makes the folder, replaces files there.", py::arg("compiled"), py::arg("folder"));
}

void add_calls(py::module_& module) {
  module.def(
      "version", [] { return std::string(version()); }, "Of graft: '0.1.0'.");
  module.def("platforms", &platforms, "Ids of platforms that are known here.");
  add_settled_calls(module);
  add_encodings(module);
  add_compile(module);
  add_files(module);
}

}  // namespace
}  // namespace graft::python

PYBIND11_MODULE(_graft, module) {
  module.doc() = "graft from Python; import graft, which adds to this.";
  graft::python::add_errors(module);
  graft::python::Running::end_with_python();
  graft::python::add_values(module);
  graft::python::add_search(module);
  graft::python::add_configurations(module);
  graft::python::add_calls(module);
  graft::python::add_code(module);
}
