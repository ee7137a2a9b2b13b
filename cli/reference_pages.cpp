#include "cli/reference_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/hash.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/declared.h"
#include "cli/markdown.h"
#include "cli/settings_texts.h"
#include "codegen/expression/suites.h"
#include "codegen/schedule/step_forms.h"
#include "datasets/formats/format.h"
#include "datasets/status_texts.h"
#include "features/encoding.h"
#include "meta/evaluate.h"
#include "meta/methods/methods.h"
#include "search/explorer.h"

namespace graft::cli {
namespace {

// A line of help as a sentence.
std::string sentence(std::string text) {
  text[0] = char(std::toupper(static_cast<unsigned char>(text[0])));
  return text + ".";
}

const char* yes_no(bool value) {
  return value ? "yes" : "no";
}

const char* type_of(Declared::Kind kind) {
  switch (kind) {
    case Declared::integer:
      return " INTEGER";
    case Declared::number:
      return " NUMBER";
    case Declared::text:
      return " TEXT";
    case Declared::list:
      return " A,B,...";
    default:
      return "";
  }
}

std::string spelled(const Declared& entry) {
  return entry.is_positional() ? entry.name : fmt::format("--{}{}", entry.name, type_of(entry.kind));
}

std::string usage(const Command& command, const std::vector<Declared>& entries) {
  std::string text = "graft " + command.name;
  for (const Declared& entry : entries) {
    if (!entry.is_positional() && !entry.required) continue;
    const std::string word = spelled(entry) + (entry.kind == Declared::positionals ? "..." : "");
    text += entry.required ? " " + word : " [" + word + "]";
  }
  return text + " [FLAGS]";
}

std::vector<std::vector<std::string>> rows_of(const std::vector<Declared>& entries) {
  std::vector<std::vector<std::string>> rows;
  for (const Declared& entry : entries)
    rows.push_back({code(spelled(entry)), entry.required ? "required" : code(entry.standard), entry.help});
  return rows;
}

std::string cli_page() {
  Page page("The command line");
  page.paragraph(
      "Results go to standard output, everything else (progress, notes, errors) to standard error. An error is one "
      "line, `error: place: value, next action`. Nothing is coloured, so `NO_COLOR` has nothing to switch off; on a "
      "terminal, progress is a bar on one line of standard error, elsewhere (and in a file) a line now and then.");
  page.table({"exit code", "meaning"}, {{"0", "done"},
                                        {"1", "failed"},
                                        {"2", "the flags or files given are wrong"},
                                        {"3", "a requested gate was not met"},
                                        {"130", "interrupted; safe to repeat, and the command continues"}});
  page.paragraph(
      "`graft help COMMAND` prints what `graft COMMAND --help` prints. `graft --version` prints the version and what "
      "the program was built with. Lists are separated by commas; commas in parentheses, in brackets and in an index "
      "expression separate nothing. `graft completion SHELL` makes the shell complete all of this.");
  page.heading("Flags of every command").table({"flag", "default", "meaning"}, rows_of(common_flags()));
  page.paragraph("The default of `--threads` is the number of this machine's threads.");
  for (const Command& command : commands()) {
    const std::vector<Declared> entries = declared(command);
    page.heading("graft " + command.name).paragraph(sentence(command.help)).code(usage(command, entries));
    std::string also;
    if (command.stops) also += "Can be interrupted: the first SIGINT or SIGTERM ends it at a safe place. ";
    if (command.shares) also += "Under `mpirun` its ranks share the work.";
    if (!also.empty()) page.paragraph(base::trim(also));
    if (!entries.empty()) page.table({"argument", "default", "meaning"}, rows_of(entries));
    if (!command.examples.empty()) page.paragraph("Examples:").code(base::join(command.examples, "\n"));
  }
  return page.take();
}

std::string steps_page() {
  Page page("Steps of a schedule");
  page.paragraph(
      "A schedule is a list of steps, one a line. STAGE is the name of the tensor that the stage fills. The loops of a "
      "stage are named `AXIS.LEVEL`, outermost level first; before any `tile` an axis has one loop, `AXIS.0`. "
      "`graft inspect RUN` prints the steps of a run's best schedule, `graft tune --start FILE` measures the schedule "
      "of a file first, and a [space file](space-file.md) is made of steps with arguments.");
  page.paragraph(
      "Order: `absorb`, `rfactor`, `winograd` and `layout` come before all other steps, `tile` and `order` before the "
      "other steps of their stage, and the steps of a stage that is computed within another one after that "
      "`compute`.");
  page.paragraph(
      "Names are versions: what a step of a name does never changes, because datasets and journals store steps as "
      "text. A step that is to do something else gets a new name.");
  std::vector<std::vector<std::string>> rows;
  for (const codegen::StepForm& form : codegen::step_forms())
    rows.push_back({code(form.form), code(form.example), std::string(form.meaning)});
  return page.table({"form", "example", "meaning"}, rows).take();
}

std::string statuses_page() {
  Page page("Statuses of a measurement");
  page.paragraph(
      "Every candidate that is measured becomes a trial with a status, in journals, datasets and `--json` always by "
      "name. A trial that is not `ok` costs one trial, never the run. `graft inspect` counts the reasons.");
  std::vector<std::vector<std::string>> rows;
  for (const datasets::StatusText& text : datasets::status_texts())
    rows.push_back({code(datasets::name_of(text.status)), std::string(text.meaning), std::string(text.reason),
                    std::string(text.remedy)});
  page.table({"status", "meaning", "its reason says", "where nearly all candidates end like this"}, rows);
  return page.take();
}

std::string formats_page() {
  namespace formats = datasets::formats;
  Page page("Formats and their options");
  page.paragraph(
      "What each format of `graft import` takes by `--options NAME=VALUE,...`; an error that says \"option unit=ms\" "
      "means `--options unit=ms`. What is read of each file, and what is refused: "
      "[files of others](files-of-others.md).");
  for (const formats::Importer& importer : formats::importers()) {
    page.heading(importer.name).paragraph(sentence(importer.help));
    std::vector<std::vector<std::string>> rows;
    for (const formats::Option& option : importer.options) rows.push_back({code(option.name), option.help});
    if (!rows.empty()) page.table({"option", "meaning"}, rows);
  }
  page.heading("graft export");
  std::vector<std::vector<std::string>> rows;
  for (const formats::Exporter& exporter : formats::exporters()) rows.push_back({code(exporter.name), exporter.help});
  return page.table({"format", "what is written"}, rows).take();
}

std::string operators_page() {
  Page page("Operators");
  page.paragraph(
      "An operator is a name for an index expression with parameters ([workload-language.md](workload-language.md)); "
      "nothing else in graft knows operators by name. `dtype` is a parameter of each: f32 (the default), f64, i32, i8, "
      "u8, f16 or bf16 (stored so, sums in f32). Parameters without a default must be given.");
  for (const codegen::Operator& op : codegen::operators()) {
    std::vector<std::string> call;
    std::vector<std::vector<std::string>> rows;
    for (const codegen::Operator::Parameter& parameter : op.parameters) {
      call.push_back(parameter.has_default ? fmt::format("{}={}", parameter.name, parameter.value) : parameter.name);
      rows.push_back({code(parameter.name), parameter.has_default ? std::to_string(parameter.value) : "required",
                      std::to_string(parameter.least)});
    }
    std::string expression;
    for (std::size_t i = 0; i < op.expression.size(); ++i) {  // a statement a line
      expression += op.expression[i];
      if (op.expression[i] != ';') continue;
      expression += '\n';
      while (i + 1 < op.expression.size() && op.expression[i + 1] == ' ') ++i;
    }
    page.heading(op.name)
        .paragraph(sentence(op.description))
        .code(fmt::format("{}({})", op.name, base::join(call, ",")));
    page.table({"parameter", "default", "at least"}, rows).code(expression);
  }
  page.heading("Suites").paragraph(
      "A suite is a list of workloads under one name, `suite:NAME`, wherever several workloads may be given. The "
      "layers "
      "of ResNet-18 have names of their own, `resnet18.C1` to `resnet18.C12`.");
  for (const codegen::Suite& suite : codegen::suites()) {
    std::vector<std::string> texts;
    for (const codegen::Workload& workload : suite.workloads) texts.push_back(workload.text());
    page.paragraph(fmt::format("`suite:{}`: {}.", suite.name, suite.description)).code(base::join(texts, "\n"));
  }
  return page.take();
}

std::string explorers_page() {
  Page page("Explorers");
  page.paragraph(
      "An explorer decides which candidates are measured next (`--explorer` of `tune`, `collect` and `replay`). One "
      "that "
      "asks no model proposes the same with any model, and takes neither `acquisition` nor `selection`.");
  std::vector<std::vector<std::string>> offered, compared;
  for (const search::ExplorerEntry& entry : search::explorers())
    (entry.for_comparison ? compared : offered)
        .push_back({code(entry.name), yes_no(entry.asks_model), entry.description});
  const std::vector<std::string> head{"explorer", "asks the model", "what it does"};
  page.table(head, offered);
  page.paragraph(
      "These are kept for the [comparison of explorers](../../experiments/explorers/page.md), where none of them was "
      "reliably faster than `random`. They are accepted by name, and not in the help of commands.");
  return page.table(head, compared).take();
}

const char* name_of(meta::MadeOf made_of) {
  switch (made_of) {
    case meta::MadeOf::networks:
      return "networks";
    case meta::MadeOf::trees:
      return "trees";
    case meta::MadeOf::either:
      return "trees or networks";
    case meta::MadeOf::neither:
      break;
  }
  return "neither";
}

std::string methods_page() {
  Page page("Methods");
  page.paragraph(
      "A method (learner) makes a cost model from the datasets of many platforms: `--learner` of `train`, `--methods` "
      "of "
      "`evaluate`. Made of: whether its models are networks (`--model mlp`, `treegru`), boosted trees (`--model gbt`), "
      "either, or neither. Informed: whether its models rank the programs of a new platform better than at random "
      "before anything is measured there. Continues: whether `train --base` can add platforms to its models.");
  std::vector<std::vector<std::string>> rows;
  for (const meta::Method& method : meta::methods()) {
    std::string description = method.description;
    if (!method.with_trees.empty())
      description += fmt::format("; where trees are asked for: {}", code(method.with_trees));
    rows.push_back(
        {code(method.name), name_of(method.made_of), yes_no(method.informed), yes_no(method.continues), description});
  }
  page.table({"method", "made of", "informed", "continues", "what it is"}, rows);
  page.heading("Settings of methods")
      .paragraph("Behind the method's name: `--learner maml:inner_steps=5,inner_rate=0.05`, and so in `--methods`.");
  rows.clear();
  for (const meta::Method& method : meta::methods())
    for (const meta::MethodSetting& setting : method.settings)
      rows.push_back({code(method.name), code(setting.name), fmt::format("{:g}", setting.otherwise),
                      fmt::format("{:g} to {:g}", setting.least, setting.most), setting.help});
  page.table({"method", "setting", "default", "range", "what it is"}, rows);
  page.heading("Names in `graft evaluate`").paragraph("What `--methods` takes, and which learner is used, and how.");
  rows.clear();
  for (const meta::EvaluatedMethod& method : meta::evaluated_methods())
    rows.push_back({code(method.name), code(method.learner),
                    method.adapts ? "adapted to the support" : "as trained, without adaptation"});
  page.table({"name", "learner", "scored"}, rows);
  page.heading("Models without a file")
      .paragraph("What `--model` of `tune` and `replay` takes besides a file: models that are trained on no dataset.");
  rows.clear();
  for (const meta::UntrainedModel& model : meta::untrained_models())
    rows.push_back({code(model.name), code(model.learner), code(model.encoding)});
  return page.table({"name", "learner", "encoding"}, rows).take();
}

// Features whose names differ by numbers only, which most do by buffer, loop or threshold.
struct Family {
  const features::Feature* first;
  std::size_t count = 0;
};

std::string without_numbers(std::string_view name) {
  std::string pattern;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) pattern += c;
    if (digit && !pattern.ends_with('#')) pattern += '#';
  }
  return pattern;
}

std::string encodings_page() {
  Page page("Encodings");
  page.paragraph(
      "An encoding turns a loop program into numbers (`--encoding`). Its hash names the encoding, the version of what "
      "it "
      "computes and its list of features: a model keeps the hash, and is refused where the encoding is another one. "
      "Shape: `row`, one row for each program; `rows`, one for each of its parts; `tree`, one for each node of the "
      "loop tree. `graft inspect ENCODING` prints every feature with its value on an example program. An encoding "
      "`A+B` has the columns of A, then those of B.");
  std::vector<std::vector<std::string>> rows;
  for (const features::Encoding& encoding : features::encodings())
    rows.push_back({code(encoding.name), std::string(features::name_of(encoding.shape)),
                    std::to_string(encoding.features.size()), code(base::to_hex(encoding.hash)), encoding.description});
  page.table({"encoding", "shape", "columns", "hash", "what it is"}, rows);
  page.paragraph(
      "Below, features whose names differ in numbers only are one line: `#` is a number (of a buffer, a loop, a "
      "threshold), and the definition is that of the first.");
  for (const features::Encoding& encoding : features::encodings()) {
    if (encoding.name.find('+') != std::string::npos) continue;  // its parts say it
    std::vector<std::string> order;
    std::map<std::string, Family> families;
    for (const features::Feature& feature : encoding.features) {
      const std::string pattern = without_numbers(feature.name);
      Family& family = families[pattern];
      if (family.count++ > 0) continue;
      family.first = &feature;
      order.push_back(pattern);
    }
    rows.clear();
    for (const std::string& pattern : order) {
      const Family& family = families.at(pattern);
      rows.push_back({code(family.count == 1 ? family.first->name : pattern), std::to_string(family.count),
                      family.first->unit, family.first->definition});
    }
    page.heading(encoding.name).table({"feature", "columns", "unit", "definition"}, rows);
  }
  return page.take();
}

}  // namespace

std::vector<ReferencePage> reference_pages() {
  return {{"cli.md", cli_page()},
          {"steps.md", steps_page()},
          {"encodings.md", encodings_page()},
          {"statuses.md", statuses_page()},
          {"formats.md", formats_page()},
          {"methods.md", methods_page()},
          {"operators.md", operators_page()},
          {"explorers.md", explorers_page()},
          {"settings.md", settings_page()}};
}

}  // namespace graft::cli
