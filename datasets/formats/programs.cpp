#include "datasets/formats/programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/document.h"
#include "base/error.h"
#include "base/text.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/candidate.h"
#include "datasets/formats/lines.h"

namespace graft::datasets::formats {
namespace {

constexpr std::string_view every_platform = "*";
constexpr std::int64_t most_bytes = std::int64_t(1) << 27;

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum((unsigned char)(c)) || c == '_' || c == '.' || c == '-';
  });
}

std::string text_of(std::string_view name, codegen::DType dtype, const std::vector<std::int64_t>& shape,
                    codegen::Role role) {
  std::vector<std::string> extents;
  for (const std::int64_t extent : shape) extents.push_back(fmt::format("{}", extent));
  return fmt::format("{} {} [{}] {}", name, codegen::name_of(dtype), base::join(extents, ","), codegen::name_of(role));
}

// Names are ignored, and weights may be passed like any input.
bool fits(const codegen::Buffer& buffer, const codegen::Tensor& tensor) {
  const auto is_read = [](codegen::Role role) { return role != codegen::Role::output; };
  return buffer.dtype == tensor.dtype && is_read(buffer.role) == is_read(tensor.role) &&
         (!buffer.layout.is_plain() || buffer.shape == tensor.shape);
}

// Times of programs that compute something else would be compared with ours.
void check_parameters(const codegen::LoopProgram& program, const codegen::Workload& workload, std::string_view place) {
  const codegen::Computation computation = workload.computation();
  std::vector<std::string> wanted, given;
  std::vector<const codegen::Tensor*> tensors;
  for (const codegen::Tensor& tensor : computation.tensors) {
    if (tensor.role == codegen::Role::temporary) continue;
    tensors.push_back(&tensor);
    wanted.push_back(text_of(tensor.name, tensor.dtype, tensor.shape, tensor.role));
  }
  bool good = true;
  for (const codegen::Buffer& buffer : program.buffers) {
    if (buffer.role == codegen::Role::temporary) continue;
    good = good && given.size() < tensors.size() && fits(buffer, *tensors[given.size()]);
    given.push_back(text_of(buffer.name, buffer.dtype, buffer.shape, buffer.role));
  }
  if (good && given.size() == wanted.size()) return;
  throw base::UserError(place, fmt::format("the program's parameters are {}; those of {} are {}, in this order",
                                           base::join(given, ", "), workload.text(), base::join(wanted, ", ")));
}

struct KnownWorkload {
  codegen::Workload workload;
  bool is_computation = false;
};

KnownWorkload workload_of(const base::Document& text) {
  try {
    return {codegen::parse_workload(text.as_string()), true};
  } catch (const base::UserError& error) {
    if (is_name(text.as_string())) return {codegen::Workload(text.as_string()), false};
    throw base::UserError(text.place(), error.what());
  }
}

// "mine:17: <document's place>" and the rest: the line is what a user looks for.
base::Document line_document(const LineReader& lines) {
  base::Document document = base::parse_json(lines.text(), lines.place());
  document.only_keys(
      {"platform", "workload", "name", "program", "status", "reason", "seconds", "clock", "reference_ratio", "check"});
  return document;
}

class ProgramLines {
 public:
  explicit ProgramLines(Import& import) : import_(import) {}

  void read(const std::filesystem::path& path) {
    for (LineReader lines(path); import_.next_record(lines);) import_.record(lines, [&] { line(lines); });
  }
  // UserError where all records are of other platforms.
  void check() {
    if (others_.empty() || import_.dataset().counts().rows > 0) return;
    throw base::UserError(import_.settings().files.front().string(),
                          fmt::format("holds no record of platform {}, but of {}; give its name, or '*'",
                                      import_.settings().platform, fmt::join(others_, ", ")));
  }

 private:
  void line(const LineReader& lines) {
    // The programs of all lines are kept until the end.
    bytes_ += std::int64_t(lines.text().size());
    if (bytes_ > most_bytes)
      throw TooMuch(lines.place(), fmt::format("more than {} MiB of programs; import fewer at once", most_bytes >> 20));
    const base::Document document = line_document(lines);
    std::string platform = import_.settings().platform;
    if (const base::Document* named = document.find("platform")) {
      const std::string_view own = platform_name(named->as_string());
      if (platform == every_platform) {
        platform = own;
      } else if (own != platform) {
        import_.dataset().drop("of another platform");
        if (others_.size() < most_named) others_.emplace(own);
        return;
      }
    } else if (platform == every_platform) {
      document.at("platform");
    }
    const KnownWorkload& workload = known_workload(document.at("workload"));
    const base::Document& program_document = document.at("program");
    codegen::LoopProgram program = program_document.is_string()
                                       ? codegen::parse_program(program_document.as_string(), program_document.place())
                                       : codegen::program_from(program_document);
    if (workload.is_computation) check_parameters(program, workload.workload, program_document.place());

    base::Document measurement = base::Document::map();
    measurement.set_place(document.place());
    for (const auto& [key, value] : document.as_map()) {
      if (key == "status" || key == "reason" || key == "seconds" || key == "clock" || key == "reference_ratio" ||
          key == "check")
        measurement.set(key, value);
    }
    if (document.find("status") == nullptr) measurement.set("status", std::string(name_of(Status::ok)));
    const base::Document* name = document.find("name");
    const std::uint64_t hash = codegen::hash(program);
    const auto sketch = std::make_shared<const codegen::Sketch>(
        codegen::Sketch::of_program(name == nullptr ? "program" : name->as_string(), std::move(program)));
    ImportedDataset& dataset = import_.dataset(platform);
    dataset.add(
        {dataset.position_of(workload.workload), dataset.position_of(sketch), {}, hash, measurement_from(measurement)},
        "program");
  }

  const KnownWorkload& known_workload(const base::Document& text) {
    const auto found = workloads_.find(text.as_string());
    if (found != workloads_.end()) return found->second;
    return workloads_.emplace(text.as_string(), workload_of(text)).first->second;
  }

  Import& import_;
  static constexpr std::size_t most_named = 4;

  std::map<std::string, KnownWorkload> workloads_;
  std::set<std::string> others_;  // platforms of records that were left out
  std::int64_t bytes_ = 0;
};

}  // namespace

void import_programs(Import& import) {
  ProgramLines lines(import);
  for (const std::filesystem::path& file : import.settings().files) lines.read(file);
  lines.check();
}

Counts export_programs(const DatasetFile& from, const TextSink& to) {
  const Dataset& head = from.head();
  Counts counts;
  constexpr std::int64_t piece = 1024;
  for (std::int64_t begin = 0; begin < from.size(); begin += piece) {
    for (const Dataset::Row& row : from.rows(begin, std::min(piece, from.size() - begin))) {
      ++counts.records;
      const codegen::Candidate candidate = head.candidate(row);
      if (!codegen::names_computation(candidate.workload) && candidate.sketch->program == nullptr) {
        ++counts.dropped["a row of a table has no program"];
        continue;
      }
      const base::Result<codegen::LoopProgram> program = codegen::program(candidate, head.target);
      if (!program) {
        ++counts.dropped["does not lower"];
        continue;
      }
      base::Document line = base::Document::map();
      line.set("platform", std::string(platform_name(head.platform)))
          .set("workload", candidate.workload.text())
          .set("name", candidate.sketch->name)
          .set("program", codegen::to_text(*program));
      const base::Document measurement = to_document(row.measurement);
      for (const auto& [key, value] : measurement.as_map()) line.set(key, value);
      to(line.to_json() + "\n");
      ++counts.rows;
    }
  }
  return counts;
}

}  // namespace graft::datasets::formats
