#include "datasets/formats/auto_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/candidate.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/lines.h"
#include "datasets/formats/times.h"

namespace graft::datasets::formats {
namespace {

using base::Reason;
using base::Result;
using Kind = JsonReader::Kind;

constexpr std::size_t most_steps = 1000, most_numbers = 4096;

// --- what a line says

struct Step {
  std::string kind;                   // "SP"
  std::vector<std::int64_t> numbers;  // single ones, in order; null is left out
  std::vector<std::int64_t> list;     // of the one list that a step has
  std::string text;
};

struct Record {
  std::string key, target;
  std::vector<std::int64_t> hardware;  // TVM's HardwareParams
  std::vector<Step> steps;
  std::vector<double> seconds;
  std::int64_t error = 0;
};

std::vector<std::int64_t> read_numbers(JsonReader& reader) {
  std::vector<std::int64_t> numbers;
  for (reader.begin_list(); reader.next_item();) {
    if (reader.at(Kind::number)) {
      numbers.push_back(reader.integer());
    } else {
      reader.skip();
    }
    if (numbers.size() > most_numbers) reader.fail("a list of more numbers than any real one");
  }
  return numbers;
}

Step read_step(JsonReader& reader) {
  Step step;
  reader.begin_list();
  if (!reader.next_item()) reader.fail("an empty step");
  step.kind = reader.string();
  while (reader.next_item()) {
    switch (reader.kind()) {
      case Kind::number:
        step.numbers.push_back(reader.integer());
        break;
      case Kind::boolean:
        step.numbers.push_back(reader.boolean());
        break;
      case Kind::string:
        step.text = reader.string();
        break;
      case Kind::null:
        reader.null();
        break;
      case Kind::list:
        step.list = read_numbers(reader);
        break;
      case Kind::map:
        reader.fail("a map in a step");
    }
    if (step.numbers.size() + step.list.size() > most_numbers) reader.fail("a step of more numbers than any real one");
  }
  return step;
}

void expect_item(JsonReader& reader) {
  if (!reader.next_item()) reader.fail("a record that ends too early");
}

Record read_record(JsonReader reader) {
  Record record;
  bool has_input = false, has_result = false;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (key == "i") {
      has_input = true;
      reader.begin_list();
      expect_item(reader);
      reader.begin_list();
      expect_item(reader);
      record.key = reader.string();
      expect_item(reader);
      record.target = reader.string();
      for (bool is_first = true; reader.next_item(); is_first = false) {
        if (is_first && reader.at(Kind::list))
          record.hardware = read_numbers(reader);
        else
          reader.skip();
      }
      expect_item(reader);
      reader.begin_list();
      expect_item(reader);
      reader.skip();
      expect_item(reader);
      for (reader.begin_list(); reader.next_item();) {
        if (record.steps.size() == most_steps) reader.fail("more steps than any real record has");
        record.steps.push_back(read_step(reader));
      }
      while (reader.next_item()) reader.skip();
      while (reader.next_item()) reader.skip();
    } else if (key == "r") {
      has_result = true;
      reader.begin_list();
      expect_item(reader);
      for (reader.begin_list(); reader.next_item();) {
        const double seconds = reader.any_number();
        if (seconds <= 0) reader.fail(fmt::format("a time of {} seconds", seconds));
        record.seconds.push_back(seconds);
      }
      expect_item(reader);
      record.error = reader.integer();
      while (reader.next_item()) reader.skip();
    } else {
      reader.skip();
    }
  }
  reader.end();
  if (!has_input || !has_result) reader.fail("no record of auto_scheduler: 'i' and 'r' are expected");
  return record;
}

Measurement measurement_of(const Record& record) {
  struct Error {
    Status status;
    std::string_view name;
  };
  // TVM's MeasureErrorNo, from 1 on.
  static constexpr Error errors[] = {{Status::does_not_lower, "INSTANTIATION_ERROR"},
                                     {Status::does_not_compile, "COMPILE_HOST"},
                                     {Status::does_not_compile, "COMPILE_DEVICE"},
                                     {Status::crashed, "RUNTIME_DEVICE"},
                                     {Status::wrong_result, "WRONG_ANSWER"},
                                     {Status::timed_out, "BUILD_TIMEOUT"},
                                     {Status::timed_out, "RUN_TIMEOUT"},
                                     {Status::crashed, "UNKNOWN_ERROR"}};
  Measurement measurement;
  measurement.clock = "imported";
  if (record.error != 0) {
    const bool known = record.error > 0 && record.error <= std::int64_t(std::size(errors));
    const Error& error = known ? errors[record.error - 1] : errors[std::size(errors) - 1];
    measurement.status = error.status;
    measurement.reason = error.name;
  } else {
    Times times = times_in(record.seconds);
    measurement.seconds = std::move(times.seconds);
    measurement.reason = std::move(times.mark);
    if (!measurement.reason.empty()) measurement.status = Status::crashed;
  }
  return measurement;
}

// A workload's key is JSON, too: a name, then numbers, lists of numbers, texts.
struct Key {
  std::string name;
  std::vector<std::vector<std::int64_t>> shapes;  // a number by itself is a list of one
  std::vector<bool> is_list;
  std::vector<std::string> words;
};

Key read_key(const Record& record, const LineReader& lines) {
  Key key;
  JsonReader reader(record.key, lines.file(), lines.number());
  if (!reader.at(Kind::list)) {
    key.name = record.key;  // the hash of a whole graph
    return key;
  }
  reader.begin_list();
  expect_item(reader);
  key.name = reader.string();
  while (reader.next_item()) {
    if (reader.at(Kind::number)) {
      key.shapes.push_back({reader.integer()});
      key.is_list.push_back(false);
    } else if (reader.at(Kind::list)) {
      key.shapes.emplace_back();
      key.is_list.push_back(true);
      for (reader.begin_list(); reader.next_item();) {
        if (reader.at(Kind::number)) {
          key.shapes.back().push_back(reader.integer());
        } else {
          reader.skip();
        }
      }
    } else if (reader.at(Kind::string)) {
      key.words.emplace_back(reader.string());
    } else {
      reader.skip();
    }
  }
  return key;
}

codegen::Workload named_workload(const Key& key) {
  std::string name = key.name;
  for (const std::string& word : key.words) name += "_" + word;
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  for (const auto& shape : key.shapes) {
    for (const std::int64_t extent : shape) sizes.emplace_back(fmt::format("a{}", sizes.size()), extent);
  }
  return table_workload(name, sizes);
}

// --- what of it is one of ours

enum class Role { input, padding, main, writer, copy };

struct Known {
  codegen::Workload workload;
  std::vector<Role> stages;  // as TVM counts them
};

// N of "auto_unroll_max_step$N".
std::optional<std::int64_t> unroll_steps_of(std::string_view pragma) {
  constexpr std::string_view begin = "auto_unroll_max_step$";
  if (!pragma.starts_with(begin)) return std::nullopt;
  const char* const end = pragma.data() + pragma.size();
  std::int64_t steps = 0;
  const auto [behind, error] = std::from_chars(pragma.data() + begin.size(), end, steps);
  if (error != std::errc() || behind != end) return std::nullopt;
  return steps;
}

// Extents that the record splits, in order of its steps: those of the main stage's axes.
std::vector<std::int64_t> split_extents(const Record& record) {
  std::vector<std::int64_t> extents;
  for (const Step& step : record.steps) {
    if (step.kind == "SP" && step.numbers.size() >= 3) extents.push_back(step.numbers[2]);
  }
  return extents;
}

// Stride and padding are not in the key, but follow from the output's extents.
std::optional<std::pair<std::int64_t, std::int64_t>> window_of(std::int64_t in, std::int64_t out, std::int64_t window) {
  constexpr std::int64_t largest = std::int64_t(1) << 20;
  for (const std::int64_t size : {in, out, window}) {
    if (size < 1 || size > largest) return std::nullopt;
  }
  for (const std::int64_t stride : {1, 2, 4}) {
    // The least padding of both sides with which `out` windows fit in; one more must not.
    const std::int64_t missing = (out - 1) * stride + window - in;
    const std::int64_t pad = missing > 0 ? (missing + 1) / 2 : 0;
    if (pad < window && 2 * pad - missing < stride) return {{stride, pad}};
  }
  return std::nullopt;
}

// The shapes of the data and of the kernel: two lists, or the numbers N, C, H, W, [K,] R, S, stride and maybe padding.
std::optional<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> convolution_of(const Key& key,
                                                                                              bool depthwise) {
  const std::size_t lists = std::size_t(std::count(key.is_list.begin(), key.is_list.end(), true));
  if (lists == 2 && key.shapes.size() == 2 && key.shapes[0].size() == 4 && key.shapes[1].size() == 4)
    return {{key.shapes[0], key.shapes[1]}};
  const std::size_t least = depthwise ? 7 : 8;
  if (lists > 0 || key.shapes.size() < least || key.shapes.size() > least + 1) return std::nullopt;
  std::vector<std::int64_t> all;
  for (const std::vector<std::int64_t>& number : key.shapes) all.push_back(number.front());
  if (depthwise) return {{{all[0], all[1], all[2], all[3]}, {all[1], 1, all[4], all[5]}}};
  return {{{all[0], all[1], all[2], all[3]}, {all[4], all[1], all[5], all[6]}}};
}

std::optional<Known> known_of(const Key& key, const std::vector<std::int64_t>& extents) {
  const auto is = [&](std::string_view word) { return key.name.find(word) != std::string::npos; };
  const auto shape = [&](std::size_t i, std::size_t dimensions) {
    return i < key.shapes.size() && key.is_list[i] == (dimensions > 1) && key.shapes[i].size() == dimensions;
  };
  std::string text;
  std::vector<Role> stages{Role::input, Role::padding, Role::input, Role::main};
  if ((is("mm") || is("matmul")) && key.shapes.size() == 3 && shape(0, 1) && shape(1, 1) && shape(2, 1)) {
    text = fmt::format("matmul(m={},k={},n={})", key.shapes[0][0], key.shapes[1][0], key.shapes[2][0]);
    stages = {Role::input, Role::input, Role::main};
  } else if ((is("conv2d") || is("depthwise")) && extents.size() >= 4) {
    const auto shapes = convolution_of(key, is("depthwise"));
    if (!shapes) return std::nullopt;
    const auto& [data, kernel] = *shapes;
    const auto window = window_of(data[2], extents[2], kernel[2]);
    if (!window) return std::nullopt;
    const bool depthwise = is("depthwise");
    text =
        fmt::format("{}(n={},c={},h={},w={},{}r={},s={},stride={},pad={})", depthwise ? "depthwise_conv2d" : "conv2d",
                    data[0], data[1], data[2], data[3], depthwise ? "" : fmt::format("k={},", kernel[0]), kernel[2],
                    kernel[3], window->first, window->second);
    if (kernel[1] != (depthwise ? 1 : data[1]) || (depthwise && kernel[0] != data[1])) return std::nullopt;
  } else {
    return std::nullopt;
  }
  for (const std::string& word : key.words) {
    if (word != "float32" && word != "SAME" && word != "VALID") return std::nullopt;
  }
  try {
    return Known{codegen::parse_workload(text), stages};
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

// A sketch's text with open tile sizes, and those.
struct Replayed {
  std::string lines;
  std::vector<std::int64_t> arguments;
};

// Follows the loops of the stages through the steps, then writes ours.
class Replay {
 public:
  Replay(const Known& known, const codegen::Computation& computation, bool is_gpu)
      : stages_(known.stages), computation_(computation), is_gpu_(is_gpu) {
    // What is padded is read through its padding.
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const bool is_read = stages_[s] == Role::padding ||
                           (stages_[s] == Role::input && (s + 1 == stages_.size() || stages_[s + 1] != Role::padding));
      loads_.push_back(is_read ? reads_++ : -1);
    }
    for (std::size_t s = 0; s < computation.stages.size(); ++s) {
      (computation.is_reduction(computation.stages[s]) ? main_stage_ : padding_stage_) = int(s);
    }
    const codegen::Stage& main = computation.stages[std::size_t(main_stage_)];
    for (int axis = 0; axis < int(main.axes.size()); ++axis) main_.push_back({{axis, 0}});
    lengths_.resize(main.axes.size());
    for (int axis = 0; axis < computation.spatial_axes(main); ++axis) writer_.push_back({{axis, 0}});
  }

  Result<Replayed> replayed(const std::vector<Step>& steps) {
    steps_ = steps;
    for (const Step& step : steps) {
      if (const std::string problem = take(step); !problem.empty())
        return Reason{fmt::format("{}: {}", step.kind, problem)};
    }
    return is_gpu_ ? written_in_groups() : written();
  }

 private:
  // A loop of the main stage, or of the copy of its cached result, whose level is a part: the last one covers
  // all remaining levels.
  struct Ref {
    int axis = 0, level = 0;
    bool operator==(const Ref&) const = default;
    auto operator<=>(const Ref&) const = default;
  };
  static constexpr std::int64_t largest_tile = std::int64_t(1) << 40;  // elements
  using Group = std::vector<Ref>;                                      // several once fused
  // A part of what the main stage reads, in memory that a group's work-items share.
  struct Copy {
    Group around;  // loops of the main stage
    bool is_fused = false, is_shared_out = false;
    std::int64_t part = 1, items = 0;  // elements that an item takes at a time; items that share them
  };

  const codegen::Stage& main() const { return computation_.stages[std::size_t(main_stage_)]; }
  const std::string& axis_name(int axis) const { return main().axes[std::size_t(axis)].name; }
  std::string loop_name(const Ref& ref) const { return fmt::format("{}.{}", axis_name(ref.axis), ref.level); }
  const std::string& stage_name(int stage) const {
    return computation_.tensors[std::size_t(computation_.stages[std::size_t(stage)].tensor)].name;
  }

  Role role_at(std::int64_t stage) const {
    return stage >= 0 && stage < std::int64_t(stages_.size()) ? stages_[std::size_t(stage)] : Role::input;
  }
  // Null for stages whose loops are not followed.
  std::vector<Group>* loops_at(std::int64_t stage) { return loops_at(role_at(stage)); }
  std::vector<Group>* loops_at(Role role) {
    return role == Role::main ? &main_ : role == Role::writer ? &writer_ : nullptr;
  }

  // "" or why it cannot be said.
  std::string take(const Step& step) {
    if (step.numbers.empty()) return "a step without a stage";
    const std::int64_t stage = step.numbers[0];
    const Role role = role_at(stage);
    if (role == Role::copy) return take(step, copies_.at(loads_[std::size_t(stage)]));
    if (step.kind == "CHR" && is_gpu_) return cache_read(step, role);
    if (step.kind == "CHW") return cache_write(role, stage);
    if (step.kind == "SP") return split(step, role);
    if (step.kind == "FSP") return follow(step, role);
    if (step.kind == "RE") return reorder(step, role);
    if (step.kind == "FU") return fuse(step, role);
    if (step.kind == "AN") return annotate(step, role);
    if (step.kind == "PR") return pragma(step, role);
    if (step.kind == "CA") return compute_at(step, role);
    if (step.kind == "CI") {
      if (role != Role::padding) return "a stage other than the padding is inlined";
      padding_inlined_ = true;
      return "";
    }
    if (step.kind == "CR") return role == Role::padding ? "" : "a stage other than the padding at the root";
    return "has no counterpart";
  }

  std::string cache_write(Role role, std::int64_t stage) {
    if (role != Role::main || has_writer_) return "not of the main stage, or twice";
    stages_.insert(stages_.begin() + stage + 1, Role::writer);
    loads_.insert(loads_.begin() + stage + 1, -1);
    has_writer_ = true;
    return "";
  }

  // The main stage reads what it reads of a stage from a copy.
  std::string cache_read(const Step& step, Role role) {
    const std::int64_t stage = step.numbers[0];
    if (role != Role::input && role != Role::padding) return "not of what the main stage reads";
    if (step.text != "shared") return "into memory that a group does not share";
    if (step.list.size() != 1 || role_at(step.list.front()) != Role::main) return "for another stage than the main one";
    const int load = stage >= 0 && stage < std::int64_t(loads_.size()) ? loads_[std::size_t(stage)] : -1;
    if (load < 0 || load >= int(main().value.loads.size()) || !copies_.try_emplace(load).second)
      return "not of what the main stage reads, or twice";
    stages_.insert(stages_.begin() + stage + 1, Role::copy);
    loads_.insert(loads_.begin() + stage + 1, load);
    return "";
  }

  // Work-items share out a copy's elements, in their order and in parts.
  std::string take(const Step& step, Copy& copy) {
    if (step.kind == "CA") {
      if (step.numbers.size() < 3 || role_at(step.numbers[1]) != Role::main) return "of another stage";
      const std::optional<Group> around = loops_around(main_, step.numbers[2]);
      if (!around) return "no such loop";
      copy.around = *around;
    } else if (step.kind == "FU") {
      for (std::size_t i = 0; i < step.list.size(); ++i)
        if (step.list[i] != std::int64_t(i)) return "not of all loops of a copy";
      copy.is_fused = true;
    } else if (step.kind == "SP") {
      if (!copy.is_fused || step.list.size() != 1 || step.list[0] < 1 || step.list[0] > std::int64_t(most_numbers))
        return "not of a fused copy, or out of range";
      copy.part = step.list[0];
    } else if (step.kind == "FFSP") {
      const std::optional<std::int64_t> items = followed(step);
      if (!items) return "of no such splits";
      copy.items = *items;
    } else if (step.kind == "AN") {
      enum { vectorize = 2, thread_x = 6 };
      const bool of_part = step.numbers.size() == 3 && step.numbers[1] == 1;
      copy.is_shared_out |= of_part && step.numbers[2] == thread_x && copy.items > 0;
      if (!of_part || (step.numbers[2] != thread_x && step.numbers[2] != vectorize)) return "of a loop of a copy";
    } else {
      return "of a copy";
    }
    return "";
  }

  // The product of the lengths of the steps that it follows.
  std::optional<std::int64_t> followed(const Step& step) const {
    if (step.numbers.size() < 3 || step.list.empty()) return std::nullopt;
    std::int64_t product = 1;
    for (const std::int64_t id : step.list) {
      if (id < 0 || id >= std::int64_t(steps_.size()) || steps_[std::size_t(id)].kind != "SP") return std::nullopt;
      const std::vector<std::int64_t>& lengths = steps_[std::size_t(id)].list;
      const std::int64_t level = step.numbers[2];
      if (level < 0 || level >= std::int64_t(lengths.size())) return std::nullopt;
      const std::int64_t length = lengths[std::size_t(level)];
      if (length < 1 || length > largest_tile / product) return std::nullopt;
      product *= length;
    }
    return product;
  }

  std::string split(const Step& step, Role role) {
    if (role != Role::main || step.numbers.size() < 3) return "not of the main stage";
    const std::int64_t at = step.numbers[1], extent = step.numbers[2];
    if (at < 0 || at >= std::int64_t(main_.size()) || main_[std::size_t(at)].size() != 1) return "no such loop";
    const Ref ref = main_[std::size_t(at)].front();
    if (!lengths_[std::size_t(ref.axis)].empty() || step.list.empty()) return "a loop that is split already";
    if (main().axes[std::size_t(ref.axis)].extent != extent) return "other extents than those of the workload";
    if (step.numbers.size() > 3 && step.numbers[3] != 1) return "from the outside in";
    if (std::any_of(step.list.begin(), step.list.end(), [](std::int64_t l) { return l < 1 || l > (1 << 20); }))
      return "a length out of range";
    lengths_[std::size_t(ref.axis)] = step.list;
    for (std::size_t level = 1; level <= step.list.size(); ++level)
      main_.insert(main_.begin() + at + std::int64_t(level), {{ref.axis, int(level)}});
    return "";
  }

  std::string follow(const Step& step, Role role) {
    if (role != Role::writer || step.numbers.size() < 4) return "not of the copy of a cached result";
    const std::int64_t at = step.numbers[1], parts = step.numbers[3];
    if (at < 0 || at >= std::int64_t(writer_.size()) || writer_[std::size_t(at)].size() != 1) return "no such loop";
    const Ref ref = writer_[std::size_t(at)].front();
    if (parts < 1 || parts > std::int64_t(lengths_[std::size_t(ref.axis)].size())) return "more parts than the split";
    for (std::int64_t part = 1; part <= parts; ++part)
      writer_.insert(writer_.begin() + at + part, {{ref.axis, int(part)}});
    writer_parts_[ref.axis] = int(parts);
    return "";
  }

  std::string reorder(const Step& step, Role role) {
    std::vector<Group>* const loops = loops_at(step.numbers[0]);
    if (loops == nullptr) return role == Role::padding ? "" : "of another stage";
    if (step.list.size() != loops->size()) return "not of all loops";
    std::vector<Group> ordered;
    std::set<std::int64_t> used;
    for (const std::int64_t at : step.list) {
      if (at < 0 || at >= std::int64_t(loops->size()) || !used.insert(at).second) return "no permutation";
      ordered.push_back((*loops)[std::size_t(at)]);
    }
    *loops = std::move(ordered);
    return "";
  }

  std::string fuse(const Step& step, Role role) {
    std::vector<Group>* const loops = loops_at(step.numbers[0]);
    if (role == Role::padding) padding_fused_ = std::int64_t(step.list.size());
    if (loops == nullptr) return role == Role::padding ? "" : "of another stage";
    if (step.list.size() < 2) return "";
    const std::int64_t first = step.list.front(), count = std::int64_t(step.list.size());
    const std::int64_t most = std::int64_t(loops->size());
    if (first < 0 || count > most || first > most - count) return "no such loop";
    const std::int64_t last = first + count - 1;
    Group all;
    for (std::int64_t at = first; at <= last; ++at) {
      if (step.list[std::size_t(at - first)] != at) return "loops that are not adjacent";
      const Group& group = (*loops)[std::size_t(at)];
      all.insert(all.end(), group.begin(), group.end());
    }
    loops->erase(loops->begin() + first, loops->begin() + last + 1);
    loops->insert(loops->begin() + first, std::move(all));
    return "";
  }

  std::string annotate(const Step& step, Role role) {
    if (step.numbers.size() < 3) return "without a loop";
    const std::int64_t at = step.numbers[1], what = step.numbers[2];
    enum { none, unroll, vectorize, parallel };
    if (what > parallel) return is_gpu_ ? bind(role, at, what - parallel - 1) : "GPU threads";
    if (what == none) return "";
    if (role == Role::padding) {
      if (what == parallel && at == 0) padding_parallel_ = std::max<std::int64_t>(padding_fused_, 1);
      return "";
    }
    std::vector<Group>* const loops = loops_at(step.numbers[0]);
    if (loops == nullptr || at < 0 || at >= std::int64_t(loops->size())) return "no such loop";
    const Group& group = (*loops)[std::size_t(at)];
    if (what == parallel) {
      if (at != 0) return "parallel loops inside of others";
      if (has_writer_ && role == Role::main) return "parallel loops of a cached result";
      parallel_ = group;
    } else if (role == Role::main) {
      if (group.size() != 1 && what == vectorize) return "a vector of fused loops";
      if (what == vectorize) vector_ = group.front();
      if (what == unroll) unrolled_.insert(group.begin(), group.end());
    }
    return "";
  }

  // By TVM's numbers, from virtual threads on.
  std::string bind(Role role, std::int64_t at, std::int64_t kind) {
    static constexpr std::string_view kinds[] = {"virtual_thread", "block_x", "thread_x", "block_y",
                                                 "thread_y",       "block_z", "thread_z"};
    if (kind >= std::int64_t(std::size(kinds))) return "tensor cores";
    const std::vector<Group>* const loops = loops_at(role);
    if (loops == nullptr || at < 0 || at >= std::int64_t(loops->size())) return "no such loop";
    const Group& group = (*loops)[std::size_t(at)];
    if (std::any_of(group.begin(), group.end(),
                    [&](const Ref& ref) { return ref.axis >= computation_.spatial_axes(main()); }))
      return "a reduction across work-items";
    bound_.push_back({kinds[kind], group});
    return "";
  }

  std::string pragma(const Step& step, Role role) {
    const std::optional<std::int64_t> steps = unroll_steps_of(step.text);
    if (!steps) return "another pragma";
    if (role == Role::main) unroll_steps_ = *steps;
    return "";
  }

  // The outermost loops up to the one at a position.
  static std::optional<Group> loops_around(const std::vector<Group>& loops, std::int64_t at) {
    if (at < 0 || at >= std::int64_t(loops.size())) return std::nullopt;
    Group around;
    for (std::int64_t i = 0; i <= at; ++i) {
      const Group& group = loops[std::size_t(i)];
      around.insert(around.end(), group.begin(), group.end());
    }
    return around;
  }

  std::string compute_at(const Step& step, Role role) {
    if (step.numbers.size() < 3) return "without a loop";
    const Role target = role_at(step.numbers[1]);
    const std::int64_t at = step.numbers[2];
    const std::vector<Group>* const loops = loops_at(step.numbers[1]);
    const std::optional<Group> around = loops == nullptr ? std::nullopt : loops_around(*loops, at);
    if (!around) return "no such loop";
    Group outer = *around;
    if (role == Role::main && target == Role::writer) {
      for (const Ref& ref : outer) {
        const auto parts = writer_parts_.find(ref.axis);
        if (parts == writer_parts_.end() || ref.level >= parts->second) return "inside of what the copy does not split";
      }
      kept_outside_ = std::move(outer);
    } else if (role == Role::padding) {
      padding_outside_ = std::move(outer);
    } else {
      return "of another stage";
    }
    return "";
  }

  // --- written as ours

  std::int64_t trips(const Ref& ref) const {
    const std::vector<std::int64_t>& lengths = lengths_[std::size_t(ref.axis)];
    if (ref.level > 0) return lengths[std::size_t(ref.level - 1)];
    std::int64_t inside = 1;
    for (const std::int64_t length : lengths) inside *= length;
    const std::int64_t extent = main().axes[std::size_t(ref.axis)].extent;
    return (extent + inside - 1) / inside;
  }

  // By level, the outermost first; beyond `largest_tile` they are cut.
  std::vector<std::int64_t> tile_sizes(std::size_t axis) const {
    std::vector<std::int64_t> sizes;
    std::int64_t size = 1;
    for (std::size_t l = lengths_[axis].size(); l-- > 0;) {
      if (size <= largest_tile) size *= lengths_[axis][l];
      sizes.insert(sizes.begin(), size);
    }
    return sizes;
  }

  // "" or why there are none.
  std::string write_tiles(Replayed& out) const {
    // Ansor's rules split all of them: only their extents confirm the assumed workload.
    if (std::any_of(lengths_.begin(), lengths_.end(), [](const auto& each) { return each.empty(); }))
      return "axes that are not split";
    for (std::size_t axis = 0; axis < lengths_.size(); ++axis) {
      const std::vector<std::int64_t> sizes = tile_sizes(axis);
      if (sizes.front() > largest_tile) return "a tile out of range";
      out.lines += fmt::format("tile {} {}", stage_name(main_stage_), axis_name(int(axis)));
      for (const std::int64_t each : sizes) {
        out.lines += fmt::format(" ${}{}", axis_name(int(axis)), out.arguments.size());
        out.arguments.push_back(each);
      }
      out.lines += "\n";
    }
    return "";
  }

  Result<Replayed> written() const {
    if (has_writer_ && kept_outside_.empty()) return Reason{"a cached result of the whole tensor"};
    Replayed out;
    const std::string name = stage_name(main_stage_);
    const auto line = [&](std::string text) { out.lines += text + "\n"; };
    if (padding_inlined_ && padding_stage_ >= 0) line(fmt::format("absorb {} {}", name, stage_name(padding_stage_)));
    if (const std::string problem = write_tiles(out); !problem.empty()) return Reason{problem};

    Group order = kept_outside_;
    for (const Group& group : main_) {
      for (const Ref& ref : group) {
        if (std::find(kept_outside_.begin(), kept_outside_.end(), ref) == kept_outside_.end()) order.push_back(ref);
      }
    }
    line(fmt::format("order {} {}", name, names(order)));
    if (!parallel_.empty()) line(fmt::format("parallel {} {}", name, names(parallel_)));
    if (vector_) line(fmt::format("vector {} {}", name, loop_name(*vector_)));
    if (const Group unrolled = unrolled_loops(order, 1); !unrolled.empty())
      line(fmt::format("unroll {} {}", name, names(unrolled)));
    if (has_writer_) {
      if (kept_outside_.size() >= order.size()) return Reason{"a cached result of nothing"};
      line(fmt::format("accumulate {} above {}", name, loop_name(order[kept_outside_.size()])));
    }
    if (padding_stage_ >= 0 && !padding_inlined_) {
      const std::string padding = stage_name(padding_stage_);
      if (!padding_outside_.empty()) {
        // The innermost loop that it is computed in; loops inside of it read the tile.
        std::size_t inside = 0;
        for (std::size_t i = 0; i < order.size(); ++i) {
          if (std::find(padding_outside_.begin(), padding_outside_.end(), order[i]) != padding_outside_.end())
            inside = i + 1;
        }
        if (inside >= order.size()) return Reason{"padding computed for a single element"};
        line(fmt::format("compute {} {} above {}", name, padding, loop_name(order[inside])));
      } else if (padding_parallel_ > 0) {
        const codegen::Stage& stage = computation_.stages[std::size_t(padding_stage_)];
        if (padding_parallel_ > std::int64_t(stage.axes.size())) return Reason{"padding of other loops"};
        std::vector<std::string> loops;
        for (std::int64_t i = 0; i < padding_parallel_; ++i) loops.push_back(stage.axes[std::size_t(i)].name + ".0");
        line(fmt::format("parallel {} {}", padding, base::join(loops, " ")));
      }
    }
    return out;
  }

  // TVM's UnrollLoop: from the inside out, as long as a body stays within this many steps; vectors are one step.
  Group unrolled_loops(const Group& order, std::int64_t steps) const {
    Group result;
    bool automatic = unroll_steps_ > 0;
    for (std::size_t i = order.size(); i-- > 0;) {
      const Ref& ref = order[i];
      const bool is_parallel = std::find(parallel_.begin(), parallel_.end(), ref) != parallel_.end();
      if ((vector_ && ref == *vector_) || is_parallel) continue;
      const std::int64_t count = trips(ref);
      automatic = automatic && count <= unroll_steps_ / steps;
      if (automatic) steps *= count;
      if (count > 1 && (automatic || unrolled_.contains(ref))) result.insert(result.begin(), ref);
    }
    return result;
  }

  // --- written for a GPU: a nest is fissioned where a group's work-items wait for each other

  static bool has(const Group& group, const Ref& ref) {
    return std::find(group.begin(), group.end(), ref) != group.end();
  }

  // All loops that are bound to kinds that begin with this word, outermost first.
  Group bound_to(std::string_view kind) const {
    Group result;
    for (const auto& [name, group] : bound_)
      if (name.starts_with(kind)) result.insert(result.end(), group.begin(), group.end());
    return result;
  }

  std::int64_t trips(const Group& group) const {
    std::int64_t product = 1;
    for (const Ref& ref : group) product = std::min(product, largest_tile) * std::min(trips(ref), largest_tile >> 20);
    return product;
  }

  Result<Replayed> written_in_groups() const {
    const Group blocks = bound_to("block"), virtuals = bound_to("virtual"), items = bound_to("thread");
    Group order = blocks;
    if (items.empty() || blocks.empty()) return Reason{"no loops of groups, or none of work-items"};
    if (!has_writer_) return Reason{"results that are not kept in registers"};
    const auto is_bound = [&](const Ref& ref) { return has(blocks, ref) || has(virtuals, ref) || has(items, ref); };
    if (blocks.size() + virtuals.size() + items.size() != kept_outside_.size() ||
        !std::all_of(kept_outside_.begin(), kept_outside_.end(), is_bound))
      return Reason{"results that are kept inside of other loops than those of work-items"};
    const Group all = flat(main_);
    for (const Ref& ref : all) {
      const auto is_around = [&](const auto& copy) { return has(copy.second.around, ref); };
      if (!is_bound(ref) && std::any_of(copies_.begin(), copies_.end(), is_around)) order.push_back(ref);
    }
    const Group around_copies = order;
    order.insert(order.end(), virtuals.begin(), virtuals.end());
    order.insert(order.end(), items.begin(), items.end());
    const std::size_t inside = order.size();
    for (const Ref& ref : all)
      if (!has(order, ref)) order.push_back(ref);
    if (inside == order.size()) return Reason{"a cached result of nothing"};

    Replayed out;
    const std::string name = stage_name(main_stage_);
    const auto line = [&](std::string text) { out.lines += text + "\n"; };
    for (const auto& [load, copy] : copies_) line(fmt::format("copy {} {}", name, read_name(load)));
    if (const std::string problem = write_tiles(out); !problem.empty()) return Reason{problem};
    line(fmt::format("order {} {}", name, names(order)));
    for (const auto& [kind, group] : bound_) line(fmt::format("bind {} {} {}", name, kind, names(group)));
    Group sequential(around_copies.begin() + std::ptrdiff_t(blocks.size()), around_copies.end());
    sequential.insert(sequential.end(), order.begin() + std::ptrdiff_t(inside), order.end());
    if (const Group unrolled = unrolled_in_items(sequential, trips(virtuals)); !unrolled.empty())
      line(fmt::format("unroll {} {}", name, names(unrolled)));
    line(fmt::format("accumulate {} above {}", name, loop_name(order[copies_.empty() ? inside : blocks.size()])));
    for (const auto& [load, copy] : copies_)
      line(fmt::format("compute {0} {0}.{1} above {2}", name, read_name(load), loop_name(order[around_copies.size()])));
    for (const auto& [load, copy] : copies_) {
      if (!copy.is_shared_out || copy.items != trips(items)) return Reason{"a copy that other work-items make"};
      write_copy(load, copy.part, around_copies, out);
    }
    return out;
  }

  static Group flat(const std::vector<Group>& loops) {
    Group all;
    for (const Group& group : loops) all.insert(all.end(), group.begin(), group.end());
    return all;
  }

  const std::string& read_name(int load) const {
    return computation_.tensors[std::size_t(main().value.loads[std::size_t(load)].tensor)].name;
  }

  // Registers have no index: the loops of a work-item's results are unrolled, whatever the record says.
  Group unrolled_in_items(const Group& order, std::int64_t steps) const {
    const Group automatic = unrolled_loops(order, steps);
    Group result;
    for (const Ref& ref : order)
      if (has(automatic, ref) || (ref.axis < computation_.spatial_axes(main()) && trips(ref) > 1))
        result.push_back(ref);
    return result;
  }

  // By dimension: how much of an operand is read inside of these loops.
  std::vector<std::int64_t> region(int load, const Group& around) const {
    std::vector<std::int64_t> inside(main().axes.size(), 1);
    for (const Ref& ref : flat(main_))
      if (!has(around, ref)) inside[std::size_t(ref.axis)] *= trips(ref);
    std::vector<std::int64_t> extents;
    for (const codegen::Affine& form : main().value.loads[std::size_t(load)].index) {
      extents.push_back(1);
      for (const codegen::Term& term : form.terms)
        extents.back() += std::abs(term.coefficient) * (inside[std::size_t(term.variable)] - 1);
    }
    return extents;
  }

  // The elements of a copy, in order, in parts that are each an item's: loops of items, then those of a part, if such
  // loops make it.
  void write_copy(int load, std::int64_t part, const Group& around, Replayed& out) const {
    const std::vector<std::int64_t> extents = region(load, around);
    const std::string name = fmt::format("{}.{}", stage_name(main_stage_), read_name(load));
    std::size_t shared = extents.size();  // dimensions that are not whole in a part
    std::int64_t left = part;
    while (shared > 0 && left > 1 && left % extents[shared - 1] == 0) left /= extents[--shared];
    if (shared == 0 || extents[shared - 1] % left != 0) {
      shared = extents.size();
      left = 1;
    }
    std::vector<std::string> items, inner;
    for (std::size_t d = 0; d < shared; ++d) items.push_back(fmt::format("d{}.0", d));
    std::vector<std::string> order = items;
    if (left > 1) {
      out.lines += fmt::format("tile {} d{} $part{}\n", name, shared - 1, out.arguments.size());
      out.arguments.push_back(left);
      inner.push_back(fmt::format("d{}.1", shared - 1));
    }
    for (std::size_t d = shared; d < extents.size(); ++d)
      (extents[d] == 1 ? order : inner).push_back(fmt::format("d{}.0", d));
    order.insert(order.end(), inner.begin(), inner.end());
    out.lines += fmt::format("order {} {}\n", name, base::join(order, " "));
    out.lines += fmt::format("bind {} thread_x {}\n", name, base::join(items, " "));
    if (!inner.empty()) out.lines += fmt::format("vector {} {}\n", name, inner.back());
  }

  std::string names(const Group& loops) const {
    std::vector<std::string> all;
    for (const Ref& ref : loops) all.push_back(loop_name(ref));
    return base::join(all, " ");
  }

  std::vector<Role> stages_;
  std::vector<int> loads_;  // by stage: which of the main stage's loads reads it; -1: none
  int reads_ = 0;
  const codegen::Computation& computation_;
  bool is_gpu_;
  std::span<const Step> steps_;
  std::map<int, Copy> copies_;                             // by load of the main stage
  std::vector<std::pair<std::string_view, Group>> bound_;  // by kind, as the record binds them
  int main_stage_ = -1, padding_stage_ = -1;
  std::vector<Group> main_, writer_;
  std::vector<std::vector<std::int64_t>> lengths_;  // by axis of the main stage
  std::map<int, int> writer_parts_;
  bool has_writer_ = false, padding_inlined_ = false;
  Group parallel_, kept_outside_, padding_outside_;
  std::optional<Ref> vector_;
  std::set<Ref> unrolled_;
  std::int64_t unroll_steps_ = 0, padding_fused_ = 0, padding_parallel_ = 0;
};

constexpr std::size_t longest_reason = 100;

class Log {
 public:
  explicit Log(Import& import) : import_(import), dataset_(import.dataset()) {}

  void read(const std::filesystem::path& path) {
    for (LineReader lines(path); import_.next_record(lines);) {
      import_.record(lines, [&] {
        const Record record = read_record(lines.json());
        add(record, read_key(record, lines));
      });
    }
  }

 private:
  void add(const Record& record, const Key& key) {
    Dataset::Row row;
    row.measurement = measurement_of(record);
    std::string reason;
    if (const auto replayed = this->replayed(record, key, row); !replayed) reason = replayed.reason().text;
    if (!reason.empty()) numbers_only(record, key, row);
    dataset_.add(row, key.name, reason);
  }

  // All programs of a dataset are of one device. "" or why it is none.
  std::string set_limits(const Record& record, bool is_gpu) {
    enum { group_bytes = 3, group_items = 5 };
    codegen::Target limits;
    if (is_gpu) {
      const std::vector<std::string_view> words = base::words(record.target);
      if (words.empty()) return "a GPU without a name";
      limits.triple = words.front();  // "cuda"
      limits.cpu = limits.triple;
      if (record.hardware.size() <= group_items) return "a GPU whose limits are not told";
      limits.group_items = record.hardware[group_items];
      limits.group_bytes = record.hardware[group_bytes];
      if (limits.group_items < 1 || limits.group_items > most_items) return "a GPU whose limits are not told";
      if (limits.group_bytes < 1 || limits.group_bytes > most_bytes) return "a GPU whose limits are not told";
    }
    if (!has_limits_) dataset_.head().target = limits;
    has_limits_ = true;
    return dataset_.head().target == limits ? "" : "a device of other limits than those of the records before";
  }

  // Fills the row, or says why it cannot.
  Result<bool> replayed(const Record& record, const Key& key, Dataset::Row& row) {
    const bool is_gpu = !base::trim(record.target).starts_with("llvm");
    const auto known = known_of(key, split_extents(record));
    if (!known) return Reason{"an unknown workload"};
    if (const std::string problem = set_limits(record, is_gpu); !problem.empty()) return Reason{problem};
    Result<Replayed> steps =
        Replay(*known, workloads_.try_emplace(known->workload.text(), known->workload).first->second.padded(), is_gpu)
            .replayed(record.steps);
    if (!steps) return steps.reason();
    auto sketch = sketches_.find(steps->lines);
    if (sketch == sketches_.end()) {
      sketch = sketches_
                   .emplace(steps->lines, std::make_shared<const codegen::Sketch>(
                                              codegen::parse_sketch("sketch ansor\n" + steps->lines, "auto_scheduler")))
                   .first;
    }
    const codegen::Candidate candidate{known->workload, sketch->second, steps->arguments};
    const auto program = codegen::program(candidate, dataset_.head().target);
    if (!program) return Reason{base::without_numbers(program.reason().text).substr(0, longest_reason)};
    row.workload = dataset_.position_of(known->workload);
    row.sketch = dataset_.position_of(sketch->second);
    row.arguments = std::move(steps->arguments);
    row.program_hash = codegen::hash(*program);
    return true;
  }

  // Every number of every step is a column, or is what makes the sketch: which steps there are, in which order, of
  // which stages and loops.
  void numbers_only(const Record& record, const Key& key, Dataset::Row& row) {
    std::vector<codegen::Sketch::Column> columns;
    std::uint64_t form = base::hash_bytes(key.name);
    row.arguments.clear();
    for (std::size_t s = 0; s < record.steps.size(); ++s) {
      const Step& step = record.steps[s];
      const auto number = [&](std::int64_t value) {
        columns.push_back({fmt::format("{}{}_{}", step.kind, s, columns.size()), {}});
        row.arguments.push_back(value);
      };
      const auto fixed = [&](std::int64_t value) { form = base::hash_combine(form, std::uint64_t(value)); };
      const std::optional<std::int64_t> unroll_steps = unroll_steps_of(step.text);
      form = base::hash_combine(form, base::hash_bytes(step.kind));
      form = base::hash_combine(form, base::hash_bytes(unroll_steps ? std::string() : step.text));
      for (std::size_t i = 0; i < step.numbers.size(); ++i) {
        // Which stage and loop it is belongs to the form, but for where something is computed.
        const bool open = i > 0 && (step.kind == "CA" || step.kind == "FSP" || step.kind == "AN");
        // An extent that is split may follow from tile sizes before it.
        if (open || (step.kind == "SP" && i == 2)) {
          number(step.numbers[i]);
        } else {
          fixed(step.numbers[i]);
        }
      }
      if (step.kind == "FU") number(std::int64_t(step.list.size()));
      for (std::size_t i = 0; i < step.list.size(); ++i) {
        const std::int64_t value = step.list[i];
        if (step.kind == "SP") {
          number(value);
        } else if (step.kind != "FU") {
          fixed(value);
        } else if (i == 0 || std::uint64_t(value) != std::uint64_t(step.list[i - 1]) + 1) {
          fixed(std::int64_t(i));  // neighbours follow from the first of them and their number
          fixed(value);
        }
      }
      if (unroll_steps) number(*unroll_steps);
      form = base::hash_combine(form, columns.size());
    }
    if (columns.empty()) {
      columns.push_back({"none", {}});
      row.arguments.push_back(0);
    }
    const auto [sketch, is_new] = forms_.try_emplace(form);
    if (is_new) {
      sketch->second = std::make_shared<const codegen::Sketch>(
          codegen::Sketch::of_columns(fmt::format("{}_{}", key.name, base::to_hex(form).substr(0, 8)), columns));
    }
    row.workload = dataset_.position_of(named_workload(key));
    row.sketch = dataset_.position_of(sketch->second);
    row.program_hash = 0;
  }

  static constexpr std::int64_t most_items = 1 << 12, most_bytes = 1 << 24;  // of any real GPU's group
  Import& import_;
  ImportedDataset& dataset_;
  bool has_limits_ = false;
  std::map<std::string, codegen::Workload> workloads_;  // by text: each is read once
  std::map<std::string, std::shared_ptr<const codegen::Sketch>> sketches_;
  std::map<std::uint64_t, std::shared_ptr<const codegen::Sketch>> forms_;
};

}  // namespace

void import_auto_scheduler(Import& import) {
  Log log(import);
  for (const std::filesystem::path& file : import.settings().files) log.read(file);
}

}  // namespace graft::datasets::formats
