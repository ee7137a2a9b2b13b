#include "datasets/formats/metaschedule.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "codegen/expression/parse.h"
#include "codegen/import/tir.h"
#include "codegen/import/tir_trace.h"
#include "codegen/program/forms.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/lines.h"
#include "datasets/formats/metaschedule_trace.h"
#include "datasets/formats/times.h"

namespace graft::datasets::formats {
namespace {

using base::Reason;
using base::Result;
using Kind = JsonReader::Kind;

constexpr std::string_view too_early = "a record that ends too early";
constexpr std::size_t longest_name = 80, longest_reason = 100, longest_workload = 2000, most_workloads = 100'000;
constexpr std::int64_t most_bytes = std::int64_t(1) << 27;    // of programs, and of modules
constexpr std::int64_t longest_line = std::int64_t(1) << 26;  // a module of constants is one line

struct Record {
  std::int64_t workload = 0;
  codegen::TirTrace trace;
  std::vector<double> seconds;
  std::string target;  // its kind: "llvm"
};

// {"kind": "llvm", ...}, or a line of options.
std::string read_target(JsonReader& reader) {
  std::string kind;
  if (reader.at(Kind::string)) {
    kind = reader.string();
    kind = kind.substr(0, kind.find(' '));
  } else if (reader.at(Kind::map)) {
    reader.begin_map();
    for (std::string_view key; reader.next_key(key);) {
      if (key == "kind" && reader.at(Kind::string)) {
        kind = reader.string();
      } else {
        reader.skip();
      }
    }
  } else {
    reader.skip();
  }
  return kind.substr(0, longest_name);
}

Record read_record(JsonReader& reader) {
  Record record;
  record.workload = reader.integer();
  reader.expect_item(too_early);
  reader.begin_list();
  reader.expect_item(too_early);
  record.trace = read_trace(reader);
  reader.expect_item(too_early);
  if (reader.at(Kind::null)) {
    reader.null();
  } else {
    for (reader.begin_list(); reader.next_item();) {
      const double seconds = reader.any_number();
      if (seconds <= 0) reader.fail(fmt::format("a time of {} seconds", seconds));
      record.seconds.push_back(seconds);
    }
  }
  if (reader.next_item()) {
    record.target = read_target(reader);
    while (reader.next_item()) reader.skip();
  }
  while (reader.next_item()) reader.skip();
  reader.end();
  return record;
}

// What a function computes: an operator of ours if there is one, else its index expressions.
struct Known {
  codegen::Workload workload;
  codegen::Computation computation;  // of the function, with the operator's constants
};

// Extents of a tensor, by letter: "nchw".
bool takes_shape(std::string_view letters, const std::vector<std::int64_t>& shape,
                 std::map<char, std::int64_t>& extents) {
  if (letters.size() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto [known, is_new] = extents.try_emplace(letters[d], shape[d]);
    if (!is_new && known->second != shape[d]) return false;
  }
  return true;
}

// The operators that two operands of these shapes may belong to.
std::vector<std::string> candidates(const codegen::Computation& computation) {
  struct Form {
    std::string_view name, first, second, result;  // extents by parameter; y, x: of the result of a window
  };
  static constexpr Form forms[] = {{"matmul", "mk", "kn", "mn"},
                                   {"batch_matmul", "bmk", "bkn", "bmn"},
                                   {"conv2d", "nchw", "kcrs", "nkyx"},
                                   {"conv2d_nhwc", "nhwc", "rsck", "nyxk"},
                                   {"depthwise_conv2d", "nchw", "crs", "ncyx"},
                                   {"depthwise_conv2d_nhwc", "nhwc", "rsc", "nyxc"}};
  constexpr std::int64_t most_stride = 4;
  std::vector<std::string> texts;
  std::vector<const codegen::Tensor*> operands;
  const codegen::Tensor* result = nullptr;
  for (const codegen::Tensor& tensor : computation.tensors) {
    if (tensor.role == codegen::Role::output) result = &tensor;
    if (tensor.role == codegen::Role::input || tensor.role == codegen::Role::constant) operands.push_back(&tensor);
  }
  if (operands.size() != 2 || result == nullptr) return texts;
  for (const Form& form : forms) {
    std::map<char, std::int64_t> extents;
    if (!takes_shape(form.first, operands[0]->shape, extents) ||
        !takes_shape(form.second, operands[1]->shape, extents) || !takes_shape(form.result, result->shape, extents))
      continue;
    const bool has_window = extents.contains('y');
    for (std::int64_t stride = 1; stride <= (has_window ? most_stride : 1); ++stride) {
      for (std::int64_t pad = 0; pad <= (has_window ? extents['r'] / 2 + 1 : 0); ++pad) {
        if (has_window && (extents['h'] + 2 * pad - extents['r']) / stride + 1 != extents['y']) continue;
        std::string text(form.name);
        for (const auto& [letter, extent] : extents) {
          if (letter == 'y' || letter == 'x') continue;
          text += fmt::format("{}{}={}", text.size() == form.name.size() ? "(" : ",", letter, extent);
        }
        if (has_window) text += fmt::format(",stride={},pad={}", stride, pad);
        texts.push_back(text + ")");
      }
    }
  }
  return texts;
}

Result<Known> known_of(const codegen::Computation& computation) {
  try {
    codegen::Computation packed = computation;  // weights that the caller may pack
    bool is_first = true;
    for (codegen::Tensor& tensor : packed.tensors) {
      if (tensor.role == codegen::Role::input && !std::exchange(is_first, false)) tensor.role = codegen::Role::constant;
    }
    const codegen::Workload own = codegen::parse_workload(codegen::to_text(computation));
    const std::uint64_t packed_key = codegen::parse_workload(codegen::to_text(packed)).key();
    for (const std::string& text : candidates(computation)) {
      const codegen::Workload workload = codegen::parse_workload(text);
      if (workload.key() == own.key()) return Known{workload, computation};
      if (workload.key() == packed_key) return Known{workload, packed};
    }
    if (own.text().size() > longest_workload) return Reason{"a function of more stages than a workload's text holds"};
    return Known{own, computation};
  } catch (const base::UserError&) {
    return Reason{"a function beyond index expressions"};
  }
}

class Database {
 public:
  explicit Database(Import& import) : import_(import), dataset_(import.dataset()) {}

  void read() {
    std::vector<std::filesystem::path> of_records;
    for (const std::filesystem::path& file : import_.settings().files) {
      if (!read_workloads(file)) of_records.push_back(file);
    }
    for (const std::filesystem::path& file : of_records) read_records(file);
  }

 private:
  // A line of workloads begins with a string, one of records with a number.
  static bool begins_workload(JsonReader& reader) {
    reader.begin_list();
    reader.expect_item(too_early);
    return reader.at(Kind::string);
  }

  // By the first line that says it.
  static bool is_of_workloads(const std::filesystem::path& path) {
    for (LineReader lines(path, longest_line);;) {
      try {
        if (!lines.next()) return false;
        JsonReader reader = lines.json();
        return begins_workload(reader);
      } catch (const base::UserError&) {  // a comment, or broken
      }
    }
  }

  // False, and nothing is read, if this is another kind of file.
  bool read_workloads(const std::filesystem::path& path) {
    if (!is_of_workloads(path)) return false;
    for (LineReader lines(path, longest_line); import_.next_record(lines);) {
      std::string module;
      std::string hash;  // stays empty for a workload that cannot be read: the next ones keep their numbers
      import_.record(lines, [&] {
        JsonReader reader = lines.json();
        if (!begins_workload(reader)) lines.fail("a tuning record among workloads");
        const std::string read(reader.string());
        if (read.empty() || read.size() > longest_name) lines.fail("no hash of a workload");
        while (reader.next_item()) {
          if (!module.empty() || !reader.at(Kind::string)) {
            reader.skip();
            continue;
          }
          const std::string_view text = reader.string();
          module_bytes_ += std::int64_t(text.size());
          if (module_bytes_ <= most_bytes) module = text;
        }
        reader.end();
        hash = read;
      });
      Workload& workload = workloads_.emplace_back();
      workload.hash = std::move(hash);
      workload.module = std::move(module);
      if (workloads_.size() > most_workloads) {
        throw TooMuch(lines.place(), fmt::format("more than {} workloads; import fewer files", most_workloads));
      }
    }
    return true;
  }

  void read_records(const std::filesystem::path& path) {
    for (LineReader lines(path, longest_line); import_.next_record(lines);) {
      import_.record(lines, [&] {
        JsonReader reader = lines.json();
        if (begins_workload(reader)) lines.fail("a workload among tuning records");
        const Record record = read_record(reader);
        if (record.workload < 0 || record.workload >= std::int64_t(workloads_.size())) {
          lines.fail(fmt::format("workload {}, but there are {}; give the database's file of workloads, too",
                                 record.workload, workloads_.size()));
        }
        if (workloads_[std::size_t(record.workload)].hash.empty()) {
          lines.fail(fmt::format("workload {}, which could not be read", record.workload));
        }
        row(record);
      });
    }
  }

  struct Workload {
    std::string hash, module;
    std::string name;  // of the blocks of its first trace
    bool is_read = false;
    Result<codegen::TirFunction> function = Reason{};
    Result<Known> known = Reason{};
  };

  void row(const Record& record) {
    Workload& workload = workloads_[std::size_t(record.workload)];
    if (workload.name.empty()) workload.name = name_of(record.trace);
    Dataset::Row row;
    Measurement& measurement = row.measurement;
    measurement.clock = "imported";
    Times times = times_in(record.seconds);
    measurement.seconds = std::move(times.seconds);
    measurement.reason = std::move(times.mark);
    if (!measurement.reason.empty()) measurement.status = Status::crashed;
    std::string reason;
    if (const Result<bool> done = replayed_row(record, workload, row); !done) {
      reason = done.reason().text;
      decisions_only(record.trace, workload, row);
    }
    dataset_.add(row, workload.name, reason);
  }

  static std::string name_of(const codegen::TirTrace& trace) {
    std::string name;
    for (std::size_t i = 0; i < trace.size_without_postprocessing(); ++i) {
      const codegen::TirTrace::Instruction& instruction = trace.instructions[i];
      const bool is_block = instruction.name == "GetBlock" || instruction.name == "GetSBlock";
      if (!is_block || instruction.attributes.empty() || instruction.attributes[0].text == "root") continue;
      name += (name.empty() ? "" : "_") + instruction.attributes[0].text;
    }
    return name.substr(0, longest_name);
  }

  // Fills the row, or says why it cannot.
  Result<bool> replayed_row(const Record& record, Workload& workload, Dataset::Row& row) {
    if (record.target != "llvm") return Reason{"not a CPU's schedule"};
    if (!workload.is_read) {
      workload.is_read = true;
      workload.function = workload.module.empty() ? Result<codegen::TirFunction>(Reason{"no module"})
                                                  : codegen::tir_function(workload.module);
      workload.module = {};
      workload.known =
          workload.function ? known_of(workload.function->computation) : Result<Known>(workload.function.reason());
    }
    if (!workload.known) return workload.known.reason();
    Result<codegen::LoopProgram> program =
        codegen::replayed(*workload.function, workload.known->computation, record.trace);
    if (!program) return Reason{base::without_numbers(program.reason().text).substr(0, longest_reason)};
    row.program_hash = codegen::hash(*program);
    auto sketch = programs_.find(row.program_hash);
    if (sketch == programs_.end()) {
      program_bytes_ += std::int64_t(codegen::to_text(*program).size());
      if (program_bytes_ > most_bytes)
        throw TooMuch(fmt::format("more than {} MiB of programs; import fewer records", most_bytes >> 20));
      sketch = programs_
                   .emplace(row.program_hash, std::make_shared<const codegen::Sketch>(
                                                  codegen::Sketch::of_program("metaschedule", std::move(*program))))
                   .first;
    }
    row.workload = dataset_.position_of(workload.known->workload);
    row.sketch = dataset_.position_of(sketch->second);
    return true;
  }

  // Tile sizes, numbers of categories and of places as columns.
  void decisions_only(const codegen::TirTrace& trace, const Workload& workload, Dataset::Row& row) {
    std::vector<codegen::Sketch::Column> columns;
    row.arguments.clear();
    const std::size_t size = trace.size_without_postprocessing();
    for (const auto& [at, decision] : trace.decisions) {
      if (at >= size) continue;
      for (const std::int64_t value : decision) {
        columns.push_back({fmt::format("{}{}_{}", trace.instructions[at].name, at, columns.size()), {}});
        row.arguments.push_back(value);
      }
    }
    if (columns.empty()) {
      columns.push_back({"none", {}});
      row.arguments.push_back(0);
    }
    const std::uint64_t form = trace.form();
    const auto [sketch, is_new] = forms_.try_emplace({form, columns.size()});
    if (is_new) {
      sketch->second = std::make_shared<const codegen::Sketch>(
          codegen::Sketch::of_columns(fmt::format("{}_{}", workload.name, base::to_hex(form).substr(0, 8)), columns));
    }
    row.workload = dataset_.position_of(table_workload(fmt::format("{}_{}", workload.name, workload.hash)));
    row.sketch = dataset_.position_of(sketch->second);
    row.program_hash = 0;
  }

  Import& import_;
  ImportedDataset& dataset_;
  std::vector<Workload> workloads_;
  std::map<std::pair<std::uint64_t, std::size_t>, std::shared_ptr<const codegen::Sketch>> forms_;
  std::map<std::uint64_t, std::shared_ptr<const codegen::Sketch>> programs_;
  std::int64_t module_bytes_ = 0, program_bytes_ = 0;
};

}  // namespace

void import_metaschedule(Import& import) {
  Database(import).read();
}

}  // namespace graft::datasets::formats
