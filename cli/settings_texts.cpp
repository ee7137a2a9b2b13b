#include "cli/settings_texts.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "cli/markdown.h"
#include "cli/setting_flags.h"
#include "study/flows/settings.h"

namespace graft::cli {
namespace {

using study::Setting;

std::string literal(const base::Document& value) {
  if (value.is_bool()) return value.as_bool() ? "True" : "False";
  if (value.is_string()) return '"' + value.as_string() + '"';
  return value.to_json();
}

std::string range_of(const Setting& setting) {
  std::string text;
  if (setting.least > -std::numeric_limits<double>::infinity()) text = fmt::format("at least {:g}", setting.least);
  if (setting.most < std::numeric_limits<double>::infinity())
    text += fmt::format("{}at most {:g}", text.empty() ? "" : ", ", setting.most);
  return text;
}

bool has_numbers(const Setting& setting) {
  return std::holds_alternative<std::vector<std::int64_t>*>(setting.place);
}

// The type of an argument in Python, with its default.
std::string annotation(const Setting& setting) {
  const base::Document usual = setting.usual_by_keyword();
  if (setting.is_path()) return "Optional[_PathLike] = None";
  if (usual.is_map())
    return fmt::format("Mapping[str, {}] = {{}}",
                       std::holds_alternative<std::map<std::string, std::vector<std::int64_t>>*>(setting.place)
                           ? "Sequence[int]"
                           : "Union[Sequence[float], npt.NDArray[Any]]");
  if (usual.is_list()) {
    const char* const type = has_numbers(setting)         ? "Iterable[int]"
                             : setting.key == "workloads" ? "Iterable[_Workload]"
                                                          : "Iterable[_PathLike]";
    return fmt::format("{} = {}", type, usual.to_json());
  }
  const char* const type = usual.is_bool() ? "bool" : usual.is_integer() ? "int" : usual.is_number() ? "float" : "str";
  return fmt::format("{} = {}", type, literal(usual));
}

// A function of the module: what it is given besides settings, and what it returns.
struct Function {
  const char *name, *given, *result;
};
constexpr Function functions[] = {
    {"tune",
     "    workload: _Workload,\n    platform: _Platform,\n    *,\n    model: _Model = None,\n"
     "    start: Sequence[str] = (),\n",
     "Answer"},
    {"tune_network", "    model: _PathLike,\n    platform: _Platform,\n    *,\n    guide: _Model = None,\n",
     "Dict[str, Any]"},
    {"adapt",
     "    model: _Model,\n    platform: _Platform,\n    workloads: Iterable[_Workload],\n"
     "    out: _PathLike,\n    *,\n",
     "Adapted"},
    {"train", "    datasets: Sequence[_PathLike],\n    out: _PathLike,\n    *,\n", "Trained"},
    {"evaluate", "    datasets: Sequence[_PathLike],\n    *,\n", "Dict[str, Any]"},
};

bool in_python(const std::string& call) {
  for (const Function& function : functions) {
    if (call == function.name) return true;
  }
  return false;
}

}  // namespace

std::string settings_page() {
  Page page("Settings");
  page.paragraph(
      "What can be set, by the commands that take it: as a flag of the program, as the key of a method (or model, or "
      "of "
      "`evaluation`) in an [experiment's definition](../guides/run-an-experiment.md), and by keyword in Python and, as "
      "`more`, in `graft/graft.h`. A run is continued under equal settings only, apart from those that do not decide "
      "its result.");
  for (const study::SettledCall& call : study::settled_calls()) {
    page.heading(call.name);
    std::vector<std::vector<std::string>> rows;
    for (const Setting& setting : call.settings) {
      const bool by_keyword = setting.is(study::in_calls) && in_python(call.name);
      rows.push_back({code(setting.key),
                      code(setting.usual.is_string() ? setting.usual.as_string() : setting.usual.to_json()),
                      range_of(setting), setting.is(study::as_flag) ? code("--" + setting.flag_name()) : "",
                      call.by_experiments && setting.is(study::in_experiments) ? "yes" : "",
                      by_keyword ? code(setting.keyword_name()) : "",
                      setting.decides == study::Decides::nothing ? "" : "yes", setting.help});
    }
    page.table({"setting", "default", "range", "flag", "in experiments", "keyword", "identity", "what it is"}, rows);
  }
  return page.take();
}

std::string python_stubs() {
  std::string text =
      "\"\"\"Types of the functions that have settings. Written by `graft reference --stubs python/graft` from the "
      "tables of\n"
      "settings; do not edit.\"\"\"\n\n"
      "from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Union\n\n"
      "import numpy.typing as npt\n\n"
      "from ._graft import Adapted, Answer, Trained, _Model, _Note, _PathLike, _Platform, _Progress, _Stop, "
      "_Workload\n";
  for (const Function& function : functions) {
    text += fmt::format("\ndef {}(\n{}", function.name, function.given);
    for (const study::SettledCall& call : study::settled_calls()) {
      if (call.name != function.name) continue;
      for (const Setting& setting : call.settings) {
        if (setting.is(study::in_calls))
          text += fmt::format("    {}: {},\n", setting.keyword_name(), annotation(setting));
      }
    }
    text += fmt::format(
        "    progress: Optional[_Progress] = None,\n    note: Optional[_Note] = None,\n"
        "    stop: Optional[_Stop] = None,\n) -> {}: ...\n",
        function.result);
  }
  return text;
}

}  // namespace graft::cli
