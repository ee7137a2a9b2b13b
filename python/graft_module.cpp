// The extension module graft._graft: the values and functions of graft/graft.h. What Python adds to them is in
// graft/*.py; what both promise to users of Python is said in the docstrings.
#include <pybind11/numpy.h>
#include <pybind11/operators.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/graft.h"
#include "python/waiting.h"

namespace py = pybind11;

namespace graft::python {
namespace {

// Texts stand for values wherever a function takes one. Not pybind11's implicit conversions: these hide why a text is
// refused.
template <class Value>
Value value_from(const py::object& object) {
  if (py::isinstance<Value>(object)) return object.cast<Value>();
  return Value(object.cast<std::string>());
}

Model model_from(const py::object& object) {
  if (object.is_none()) return {};
  if (py::isinstance<Model>(object)) return object.cast<Model>();
  return Model(object.cast<std::filesystem::path>().string());
}

std::vector<Workload> workloads_from(const py::iterable& objects) {
  std::vector<Workload> workloads;
  for (const py::handle object : objects)
    workloads.push_back(value_from<Workload>(py::reinterpret_borrow<py::object>(object)));
  return workloads;
}

template <class Number>
py::array_t<Number> array_of(const std::vector<Number>& values) {
  return py::array_t<Number>(py::ssize_t(values.size()), values.data());
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
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "%.4g s, %.4g GFLOP/s, %lld trials", answer.seconds, answer.gflops,
                static_cast<long long>(answer.trials));
  return "<graft.Answer " + answer.workload + " on " + answer.platform + ": " + numbers + ">";
}

CompileSettings::Format format_from(const std::string& name) {
  if (name == "library") return CompileSettings::Format::library;
  if (name == "object") return CompileSettings::Format::object;
  if (name == "bench") return CompileSettings::Format::bench;
  throw Error(Error::Kind::mistake, "format: '" + name + "', give library, object or bench");
}

// graft.Error and one subclass for each kind; a mistake is a ValueError, too.
void add_errors(py::module_& module) {
  static py::object error, mistake, failure, stopped;
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
    }
  });
}

void add_values(py::module_& module) {
  py::class_<Workload>(module, "Workload",
                       "An operator with its shapes, 'matmul(m=64,n=64,k=64)', or an index expression.")
      .def(py::init([](const std::string& text) { return Workload(text); }), py::arg("text"))
      .def_property_readonly("text", &Workload::text, "Canonical: parameters in order, defaults filled in.")
      .def_property_readonly("flops", &Workload::flops, "Floating-point operations of one run.")
      .def(py::self == py::self)
      .def("__hash__", [](const Workload& workload) { return std::hash<std::string>()(workload.text()); })
      .def("__str__", &Workload::text)
      .def("__repr__", [](const Workload& workload) { return "graft.Workload('" + workload.text() + "')"; });

  py::class_<Platform>(module, "Platform",
                       "Where schedules run: one of platforms(), or the path of a YAML file that describes it.")
      .def(py::init<const std::string&>(), py::arg("id"))
      .def_static("from_yaml", &Platform::from_yaml, py::arg("yaml"), "The content of such a file.")
      .def_property_readonly("name", &Platform::name)
      .def_property_readonly("source", &Platform::source, "Of its times: 'native', 'remote', 'emulated' or 'modelled'.")
      .def_property_readonly("yaml", &Platform::yaml, "The platform's full description.")
      .def("__repr__", [](const Platform& platform) { return "<graft.Platform " + platform.name() + ">"; });

  py::class_<Model>(module, "Model",
                    "What guides a search, and predicts. Without a name the model that graft ships; else a file of "
                    "graft train or graft adapt, or 'scratch', 'black-box', 'analytic', 'random'.")
      .def(py::init(&model_from), py::arg("name") = py::none())
      .def_property_readonly("name", &Model::name, "'' for graft's own.")
      .def("__repr__", [](const Model& model) { return "graft.Model('" + model.name() + "')"; });

  py::class_<Answer>(module, "Answer", "The fastest program of a run, its results checked.")
      .def_readonly("workload", &Answer::workload)
      .def_readonly("platform", &Answer::platform)
      .def_readonly("source", &Answer::source, "Of its time, as Platform.source.")
      .def_readonly("schedule", &Answer::schedule, "Its steps, a line each.")
      .def_readonly("seconds", &Answer::seconds, "Of one run; the least of the repetitions.")
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
      .def("__repr__", &text_of);

  py::class_<Adapted::Quality>(module, "Quality",
                               "Spearman correlations of predicted and measured speed of a workload; NaN where too "
                               "little was measured.")
      .def_readonly("workload", &Adapted::Quality::workload)
      .def_readonly("programs", &Adapted::Quality::programs, "That were measured, and went well.")
      .def_readonly("before", &Adapted::Quality::before, "By the model as it was.")
      .def_readonly("after", &Adapted::Quality::after, "Adapted, cross-validated.");
  py::class_<Adapted>(module, "Adapted", "A model that knows a platform from a few measurements of its own.")
      .def_readonly("model", &Adapted::model, "The file that was written.")
      .def_readonly("workloads", &Adapted::workloads, "A Quality for each workload.");

  py::class_<Compiled::Function>(module, "Function", "A function of a compiled library.")
      .def_readonly("name", &Compiled::Function::name)
      .def_readonly("workload", &Compiled::Function::workload)
      .def_readonly("check", &Compiled::Function::check, "Of this very code, as Answer.check.")
      .def_readonly("workspace_bytes", &Compiled::Function::workspace_bytes, "That a call needs.");
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
      .def_readonly("executable", &Compiled::executable, "The files are programs.");
}

const char* const tune_doc =
    "Searches fast schedules of a workload on a platform, or continues the run in `out` with more trials.\n\n"
    "trials: in all. budget_seconds: of wall time, after which the search ends; 0: none. stop_after: trials in a row\n"
    "without a gain of 1 %, after which it ends; 0: never. threads: that search and compile; no result depends on\n"
    "it. start: schedules that are measured first, texts as Answer.schedule. out: the run's folder;\n"
    "None: runs/tune-.... library: folder of known answers; again: search though it has one. repetitions,\n"
    "repetition_seconds, timeout_seconds: how a candidate is timed.\n\n"
    "Callbacks: progress(what, done, total), note(line), stop() -> bool, which is asked all the time; True ends the\n"
    "search with the best so far. They may be called on another thread. KeyboardInterrupt is raised once the search\n"
    "has ended tidily; what was measured is kept, and the same call continues.\n\n"
    "Raises Mistake, Failure if no schedule worked, Stopped if there is no answer yet.";

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

const char* const compile_doc =
    "Answers for one platform, of distinct workloads, as a library that needs nothing but itself. Nothing is\n"
    "written; write() does that.\n\n"
    "format: 'library' (an archive, a C header, files for pkg-config and CMake), 'object' (one relocatable object and\n"
    "the header) or 'bench' (programs that check and time themselves). name: of the library. names: of functions, by\n"
    "the canonical text of their workloads. variants: distinct programs of each workload, the fastest of its run.\n"
    "constants: file of numpy.savez with arrays 'FUNCTION/TENSOR' that become part of the library.\n"
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

using Path = std::optional<std::filesystem::path>;

void add_calls(py::module_& module) {
  const auto none = py::none();
  module.def(
      "version", [] { return std::string(version()); }, "Of graft: '0.1.0'.");
  module.def("platforms", &platforms, "Ids of platforms that are known here.");

  module.def(
      "tune",
      [](const py::object& workload, const py::object& platform, std::int64_t trials, double budget_seconds,
         std::int64_t stop_after, std::uint64_t seed, int threads, const py::object& model,
         const std::vector<std::string>& start, const Path& out, const Path& library, bool again,
         std::int64_t repetitions, double repetition_seconds, double timeout_seconds, const py::object& progress,
         const py::object& note, const py::object& stop) {
        Waiting waiting(progress, note, stop);
        const auto what = value_from<Workload>(workload);
        const auto where = value_from<Platform>(platform);
        const TuneSettings settings{trials,
                                    budget_seconds,
                                    stop_after,
                                    seed,
                                    threads,
                                    model_from(model),
                                    start,
                                    out.value_or(""),
                                    library.value_or(""),
                                    again,
                                    {repetitions, repetition_seconds, timeout_seconds},
                                    waiting.watch()};
        return waiting.run([&] { return tune(what, where, settings); });
      },
      tune_doc, py::arg("workload"), py::arg("platform"), py::kw_only(), py::arg("trials") = 256,
      py::arg("budget_seconds") = 0., py::arg("stop_after") = 0, py::arg("seed") = 1, py::arg("threads") = 1,
      py::arg("model") = none, py::arg("start") = std::vector<std::string>(), py::arg("out") = none,
      py::arg("library") = none, py::arg("again") = false, py::arg("repetitions") = 3,
      py::arg("repetition_seconds") = 1e-3, py::arg("timeout_seconds") = 10., py::arg("progress") = none,
      py::arg("note") = none, py::arg("stop") = none);

  module.def(
      "adapt",
      [](const py::object& model, const py::object& platform, const py::iterable& workloads,
         const std::filesystem::path& out, std::int64_t shots, std::uint64_t seed, int threads, const Path& run,
         std::int64_t repetitions, double repetition_seconds, double timeout_seconds, const py::object& progress,
         const py::object& note, const py::object& stop) {
        Waiting waiting(progress, note, stop);
        const Model which = model_from(model);
        const auto where = value_from<Platform>(platform);
        const std::vector<Workload> what = workloads_from(workloads);
        const AdaptSettings settings{
            shots,          seed, threads, run.value_or(""), {repetitions, repetition_seconds, timeout_seconds},
            waiting.watch()};
        return waiting.run([&] { return adapt(which, where, what, out, settings); });
      },
      adapt_doc, py::arg("model"), py::arg("platform"), py::arg("workloads"), py::arg("out"), py::kw_only(),
      py::arg("shots") = 20, py::arg("seed") = 1, py::arg("threads") = 1, py::arg("run") = none,
      py::arg("repetitions") = 3, py::arg("repetition_seconds") = 1e-3, py::arg("timeout_seconds") = 10.,
      py::arg("progress") = none, py::arg("note") = none, py::arg("stop") = none);

  module.def(
      "predict",
      [](const py::object& model, const py::object& workload, const py::object& platform,
         const std::vector<std::string>& schedules) {
        const Model which = model_from(model);
        const auto what = value_from<Workload>(workload);
        const auto where = value_from<Platform>(platform);
        return array_of(
            Waiting(py::none(), py::none(), py::none()).run([&] { return predict(which, what, where, schedules); }));
      },
      predict_doc, py::arg("model"), py::arg("workload"), py::arg("platform"), py::arg("schedules"));

  module.def("encodings", &encodings, "Names for encode(): encodings with one row for each program.");
  module.def("feature_names", &feature_names,
             "Names of an encoding's columns, in order; docs/reference/encodings.md defines them.",
             py::arg("encoding"));
  module.def(
      "encode",
      [](const py::object& workload, const py::object& platform, const std::vector<std::string>& schedules,
         const std::string& encoding, int threads) {
        const auto what = value_from<Workload>(workload);
        const auto where = value_from<Platform>(platform);
        const std::vector<float> rows = Waiting(py::none(), py::none(), py::none()).run([&] {
          return encode(what, where, schedules, encoding, threads);
        });
        const std::size_t columns = feature_names(encoding).size();
        return py::array_t<float>({py::ssize_t(schedules.size()), py::ssize_t(columns)}, rows.data());
      },
      encode_doc, py::arg("workload"), py::arg("platform"), py::arg("schedules"),
      py::arg("encoding") = "context_relation", py::kw_only(), py::arg("threads") = 1);

  module.def(
      "compile",
      [](const std::vector<Answer>& answers, const std::string& format, const std::string& name,
         const std::map<std::string, std::string>& names, std::int64_t variants, const Path& constants, int threads,
         const py::object& progress, const py::object& note, const py::object& stop) {
        Waiting waiting(progress, note, stop);
        const CompileSettings settings{format_from(format),    name,    names,          variants,
                                       constants.value_or(""), threads, waiting.watch()};
        return waiting.run([&] { return compile(answers, settings); });
      },
      compile_doc, py::arg("answers"), py::kw_only(), py::arg("format") = "library", py::arg("name") = "kernels",
      py::arg("names") = std::map<std::string, std::string>(), py::arg("variants") = 1, py::arg("constants") = none,
      py::arg("threads") = 1, py::arg("progress") = none, py::arg("note") = none, py::arg("stop") = none);

  module.def(
      "dataset_content",
      [](const std::filesystem::path& file) {
        return content_of([&] {
          const py::gil_scoped_release release;
          return read_dataset(file);
        }());
      },
      "What graft.read_dataset() makes columns of.", py::arg("file"));

  module.def("write", &write, "Makes the folder, replaces files there.", py::arg("compiled"), py::arg("folder"),
             py::call_guard<py::gil_scoped_release>());
}

}  // namespace
}  // namespace graft::python

PYBIND11_MODULE(_graft, module) {
  module.doc() = "graft from Python; import graft, which adds to this.";
  graft::python::add_errors(module);
  graft::python::add_values(module);
  graft::python::add_calls(module);
}
