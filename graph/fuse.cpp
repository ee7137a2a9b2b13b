#include "graph/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "codegen/expression/padding.h"
#include "codegen/expression/parse.h"
#include "codegen/schedule/rules.h"
#include "graph/literals.h"
#include "graph/merge.h"
#include "graph/operators.h"
#include "graph/pieces.h"
#include "graph/storage.h"

namespace graft::graph {
namespace {

constexpr std::int64_t alignment = 64;  // of what kernels take

// A node of more stages, which no space takes together, is several groups.
constexpr std::size_t most_stages = 8;

// Values that one kernel puts together, at most: it may have 64 operands.
constexpr std::size_t most_copied = 32;

// A value of which at least this number of rows are read one by one, as by the rounds of a loop, is stored with rows
// that begin at multiples of the alignment: each is a view then, and equal rounds are one kernel.
constexpr std::int64_t least_rows = 4;

struct Working {
  Part part;
  std::vector<int> nodes;
  std::shared_ptr<const codegen::Foreign> foreign = nullptr;
  std::vector<int> parts = {};  // that it is made of, by number
  bool is_by_choice = false;    // some of them became one by choice
};

// Parts of the graph in the making.
class Parts {
 public:
  Parts(const Graph& graph, const codegen::Target& target, std::string_view place, codegen::DType storage)
      : target_(target), storage_(storage), values_(graph.values), readers_(graph.values.size()) {
    for (std::size_t v = 0; v < values_.size(); ++v) source_.push_back({int(v), 0});
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) add(graph, int(n), place);
    for (const int output : graph.outputs) outputs_.insert(source_[std::size_t(output)].value);
    for (const std::optional<Working>& working : parts_)
      if (working->foreign)
        for (const int value : working->part.values) outputs_.insert(source_[std::size_t(value)].value);
    for (std::size_t p = 0; p < parts_.size(); ++p)
      if (Value& value = values_[std::size_t(result(int(p)))]; !outputs_.contains(result(int(p))))
        value.type = stored(*value.type);
    place_pieces();
    for (Groups::Source& source : source_) source = rooted(source);
    for (const int output : outputs_) in_memory(output);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      parts_[p]->parts = {int(p)};
      for (const int value : operands(int(p))) {
        readers_[std::size_t(value)].push_back(int(p));
        if (is_part(value)) in_memory(source_[std::size_t(value)].value);
      }
      if (is_part(result(int(p)))) in_memory(result(int(p)));
    }
  }

  Groups made() {
    const std::vector<std::optional<Working>> parts = parts_;
    const std::vector<std::vector<int>> readers = readers_;
    merge();
    std::vector<std::optional<Working>> apart = std::move(parts_), together(parts.size());
    if (has_choice_) {
      parts_ = parts;
      readers_ = readers;
      fuses_by_choice_ = true;
      merge();
      together = std::move(parts_);
    }
    return placed(std::move(apart), std::move(together));
  }

 private:
  // Merges parts into their only readers as long as the space can take the result.
  void merge() {
    writer_.assign(source_.size(), -1);
    for (std::size_t p = 0; p < parts_.size(); ++p) writer_[std::size_t(result(int(p)))] = int(p);
    for (int reader = 0; reader < int(parts_.size()); ++reader) {
      for (bool found = true; found;) {
        found = false;
        const std::vector<int> values = operands(reader);
        // The last one first: of two branches that meet, the longer one.
        for (std::size_t v = values.size(); v-- > 0 && !found;) {
          const std::vector<int>& all = readers_[std::size_t(values[v])];
          const int from = writer_[std::size_t(values[v])];
          if (from < 0 || is_foreign(from) || is_foreign(reader) ||
              std::any_of(all.begin(), all.end(), [&](int r) { return r != reader; }))
            continue;
          found = take(from, reader) || take_through(from, reader);
        }
      }
    }
  }

  // Groups of which one list has a part that the other one has elsewhere are one place, where its last one is: nothing
  // outside of it reads what the others give.
  Groups placed(std::vector<std::optional<Working>> apart, std::vector<std::optional<Working>> together) {
    std::vector<int> later(apart.size());  // a later part of the same place; itself for the last one
    std::iota(later.begin(), later.end(), 0);
    const auto last_of = [&](int part) {
      while (later[std::size_t(part)] != part) part = later[std::size_t(part)];
      return part;
    };
    for (const auto* const list : {&apart, &together})
      for (std::size_t p = 0; p < list->size(); ++p)
        for (const int part : (*list)[p] ? (*list)[p]->parts : std::vector<int>()) {
          const int one = last_of(part), other = last_of(int(p));
          later[std::size_t(std::min(one, other))] = std::max(one, other);
        }
    std::vector<std::array<std::vector<std::size_t>, 2>> members(apart.size());
    for (std::size_t p = 0; p < apart.size(); ++p) {
      if (apart[p]) members[std::size_t(last_of(int(p)))][0].push_back(p);
      if (together[p]) members[std::size_t(last_of(int(p)))][1].push_back(p);
    }
    Groups result;
    const auto add = [&](std::vector<std::optional<Working>>& list, const std::vector<std::size_t>& groups) {
      std::vector<int>& numbers = result.places.back().emplace_back();
      for (const std::size_t group : groups) {
        numbers.push_back(int(result.groups.size()));
        result.groups.push_back(finished(std::move(*list[group])));
      }
    };
    for (const auto& [several, fewer] : members) {
      if (several.empty()) continue;
      result.places.emplace_back();
      add(apart, several);
      if (several.size() > 1 || fewer.size() > 1) add(together, fewer);
    }
    result.values = std::move(values_);
    result.source = std::move(source_);
    return result;
  }

  Group finished(Working working) {
    Group group;
    const Part part =
        working.foreign ? std::move(working.part) : as_stored(renamed(flattened(std::move(working.part))));
    group.computation = part.computation;
    for (std::size_t t = 0; t < part.values.size(); ++t) {
      if (part.values[t] < 0) continue;
      if (int(t) == part.output())
        group.result = part.values[t];
      else
        group.operands.push_back(part.values[t]);
    }
    group.foreign = std::move(working.foreign);
    group.nodes = std::move(working.nodes);
    std::sort(group.nodes.begin(), group.nodes.end());
    return group;
  }

  void add(const Graph& graph, int number, std::string_view place) {
    const Node& node = graph.nodes[std::size_t(number)];
    const auto refuse = [&](const std::string& reason) {
      throw base::UserError(place, fmt::format("{}: {}", label(graph, node), reason));
    };
    const auto operands = operands_of(graph, node);
    if (!operands) refuse("shapes are not known");
    const auto results = results_of(graph, node, *operands, place);
    if (!results) refuse(results.reason().text);
    // Results of one node have stages in common, which are then computed once.
    const auto is_wanted = [](int value) { return value >= 0; };
    const bool is_alone = std::count_if(node.results.begin(), node.results.end(), is_wanted) == 1;
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const int value = node.results[r];
      if (value < 0) continue;
      const Result& result = (*results)[r];
      if (result.same_as >= 0) {
        source_[std::size_t(value)] = source_[std::size_t(node.operands[std::size_t(result.same_as)])];
        continue;
      }
      if (!result.computation) refuse("its result is a constant that folding did not make");
      Part part{*result.computation, {}};
      for (const codegen::Tensor& tensor : part.computation.tensors) {
        const int operand = operand_of(tensor);
        part.values.push_back(operand >= 0 ? source_[std::size_t(node.operands[std::size_t(operand)])].value
                              : tensor.role == codegen::Role::output ? value
                                                                     : -1);
      }
      if (result.foreign)
        parts_.push_back(Working{std::move(part), {number}, result.foreign});
      else if ((is_alone && part.computation.stages.size() <= most_stages) || is_schedulable(part.computation))
        parts_.push_back(Working{std::move(part), {number}});
      else
        divide(part, number);
    }
  }

  bool is_foreign(int part) const { return parts_[std::size_t(part)]->foreign != nullptr; }
  bool is_part(int value) const { return source_[std::size_t(value)].value != value; }
  // No reader may take what computes the value.
  void in_memory(int value) { readers_[std::size_t(value)].push_back(-1); }
  Groups::Source rooted(Groups::Source source) const {
    for (Groups::Source next; (next = source_[std::size_t(source.value)]).value != source.value;)
      source = {next.value, source.offset + next.offset};
    return source;
  }

  // What only copies whole runs of elements becomes a matter of memory: a part of another value is a view, and what is
  // put together of values is where these are computed. Values that must be elsewhere are copied.
  void place_pieces() {
    std::set<int> computed;
    std::vector<std::optional<Working>> parts;
    std::vector<std::optional<std::vector<Piece>>> all_pieces;
    for (const std::optional<Working>& working : parts_) {
      all_pieces.push_back(pieces_of(working->part.computation));
      if (all_pieces.back() && all_pieces.back()->size() == 1) count_row(working->part, all_pieces.back()->front());
    }
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      std::optional<Working>& working = parts_[p];
      const Part& part = working->part;
      const int whole = part.values[std::size_t(part.output())];
      const std::optional<std::vector<Piece>>& pieces = all_pieces[p];
      if (!pieces || !place(part, *pieces, working->nodes, computed, parts)) parts.push_back(std::move(working));
      computed.insert(whole);
    }
    parts_ = std::move(parts);
  }

  // Elements of a value from one on.
  struct Run {
    int value = -1;
    std::int64_t from = 0, elements = 0;
  };

  bool place(const Part& part, const std::vector<Piece>& pieces, const std::vector<int>& nodes,
             const std::set<int>& computed, std::vector<std::optional<Working>>& parts) {
    const int whole = part.values[std::size_t(part.output())];
    const std::int64_t bytes = codegen::bytes_of(*values_[std::size_t(whole)].type);
    const auto value_of = [&](const Piece& piece) { return part.values[std::size_t(piece.tensor)]; };
    if (pieces.size() == 1) {
      const int from = value_of(pieces.front());
      const std::int64_t offset = pieces.front().from * bytes;
      if (outputs_.contains(whole) || values_[std::size_t(from)].known) return false;
      if (rooted({from, offset}).offset % alignment == 0) {
        source_[std::size_t(whole)] = {from, offset};
      } else {
        const auto row = row_of(from, pieces.front(), nodes, parts);
        if (!row) return false;
        source_[std::size_t(whole)] = *row;
      }
      values_[std::size_t(whole)].type = values_[std::size_t(from)].type;
      return true;
    }
    std::vector<Run> runs;
    for (const Piece& piece : pieces) runs.push_back({value_of(piece), piece.from, piece.elements});
    runs = with_wholes(std::move(runs));
    std::vector<std::int64_t> first;  // bytes of the result before each
    std::set<int> placed;             // values that can be computed where they belong
    bool is_aligned = true;
    for (const Run& run : runs) {
      first.push_back(first.empty() ? 0 : first.back() + runs[first.size() - 1].elements * bytes);
      is_aligned = is_aligned && first.back() % alignment == 0;
      if (run.from == 0 && run.elements == elements_of(*values_[std::size_t(run.value)].shape) &&
          values_[std::size_t(run.value)].type == values_[std::size_t(whole)].type && computed.contains(run.value) &&
          !is_part(run.value) && !outputs_.contains(run.value))
        placed.insert(run.value);
    }
    if (is_aligned && !placed.empty()) {
      for (std::size_t p = 0; p < runs.size(); ++p) {
        const Groups::Source source{whole, first[p]};
        if (placed.erase(runs[p].value) > 0) {
          source_[std::size_t(runs[p].value)] = source;
          continue;
        }
        const int copy = new_value({.name = values_[std::size_t(runs[p].value)].name,
                                    .type = values_[std::size_t(whole)].type,
                                    .shape = Shape{runs[p].elements}},
                                   source);
        copy_runs({runs[p]}, copy, nodes, parts);
      }
      return true;
    }
    std::set<int> distinct;
    for (const Run& run : runs) distinct.insert(run.value);
    if (distinct.size() <= most_copied) return false;
    if (placed.size() == runs.size() && place_rows(runs, whole, nodes, parts)) return true;
    copy_runs(std::move(runs), whole, nodes, parts);
    return true;
  }

  // All parts of a value, in order, are the value: what was split, and is put together again with others.
  std::vector<Run> with_wholes(std::vector<Run> runs) const {
    std::vector<Run> result;
    for (std::size_t begin = 0; begin < runs.size();) {
      const int whole = rooted({runs[begin].value, 0}).value;
      const std::int64_t all = elements_of(*values_[std::size_t(whole)].shape),
                         bytes = codegen::bytes_of(*values_[std::size_t(whole)].type);
      std::int64_t elements = 0;
      std::size_t end = begin;
      for (; end < runs.size() && elements < all; ++end) {
        const Groups::Source part = rooted({runs[end].value, runs[end].from * bytes});
        if (part.value != whole || part.offset != elements * bytes) break;
        elements += runs[end].elements;
      }
      if (end > begin && elements == all) {
        result.push_back({whole, 0, all});
        begin = end;
      } else {
        result.push_back(runs[begin++]);
      }
    }
    return result;
  }

  // ---- rows that begin at multiples of the alignment

  struct Rows {
    std::int64_t readers = 0;
    int value = -1;  // with such rows; -1: not made yet
  };

  // The elements of a row in memory, with what nothing reads after it.
  std::int64_t in_memory_of_row(std::int64_t elements, codegen::DType type) const {
    const std::int64_t aligned = alignment / codegen::bytes_of(type);
    return (elements + aligned - 1) / aligned * aligned;
  }

  bool is_row(int value, const Piece& piece) const {
    return piece.from % piece.elements == 0 && elements_of(*values_[std::size_t(value)].shape) % piece.elements == 0;
  }

  void count_row(const Part& part, const Piece& piece) {
    const int value = part.values[std::size_t(piece.tensor)];
    if (is_row(value, piece)) ++rows_[{value, piece.elements}].readers;
  }

  // Where a row is, if enough of them are read.
  std::optional<Groups::Source> row_of(int value, const Piece& piece, const std::vector<int>& nodes,
                                       std::vector<std::optional<Working>>& parts) {
    const auto found = rows_.find({value, piece.elements});
    if (!is_row(value, piece) || found == rows_.end() || found->second.readers < least_rows) return std::nullopt;
    const Value& whole = values_[std::size_t(value)];
    const codegen::DType type = *whole.type;
    const std::int64_t rows = elements_of(*whole.shape) / piece.elements,
                       stride = in_memory_of_row(piece.elements, type);
    int& made = found->second.value;
    if (made < 0) {
      made = new_value({.name = whole.name, .type = type, .shape = Shape{rows, stride}}, {-1, 0});
      copy_rows(value, {rows, piece.elements}, made, {rows, stride}, nodes, parts);
    }
    return Groups::Source{made, piece.from / piece.elements * stride * codegen::bytes_of(type)};
  }

  // Values that are the rows of another one are computed as such rows, which one kernel puts together.
  bool place_rows(const std::vector<Run>& runs, int whole, const std::vector<int>& nodes,
                  std::vector<std::optional<Working>>& parts) {
    const std::int64_t elements = runs.front().elements, rows = std::int64_t(runs.size());
    for (const Run& run : runs)
      if (run.elements != elements) return false;
    const codegen::DType type = *values_[std::size_t(whole)].type;
    const std::int64_t stride = in_memory_of_row(elements, type);
    const int made =
        new_value({.name = values_[std::size_t(whole)].name, .type = type, .shape = Shape{rows, stride}}, {-1, 0});
    for (std::int64_t r = 0; r < rows; ++r)
      source_[std::size_t(runs[std::size_t(r)].value)] = {made, r * stride * codegen::bytes_of(type)};
    copy_rows(made, {rows, stride}, whole, {rows, elements}, nodes, parts);
    return true;
  }

  // Rows of one length from rows of another one.
  void copy_rows(int from, const Shape& shape, int to, const Shape& result, const std::vector<int>& nodes,
                 std::vector<std::optional<Working>>& parts) {
    const bool is_longer = result[1] > shape[1];
    const std::string text =
        fmt::format("input x0[{0},{1}] : {4}; output y[i0,i1] : {4} = {5} where i0={2}, i1={3}", shape[0], shape[1],
                    result[0], result[1], codegen::name_of(codegen::computed_in(*values_[std::size_t(to)].type)),
                    is_longer ? "pad(x0[i0,i1])" : "x0[i0,i1]");
    parts.push_back(Working{{codegen::parse_computation(text, {}, codegen::DType::f32, "a copy"), {from, to}}, nodes});
  }

  // Runs in order as one value: a kernel copies a few of them, so that many are put together in several steps.
  void copy_runs(std::vector<Run> runs, int result, const std::vector<int>& nodes,
                 std::vector<std::optional<Working>>& parts) {
    const codegen::DType stored_as = *values_[std::size_t(result)].type, type = codegen::computed_in(stored_as);
    while (runs.size() > most_copied) {
      std::vector<Run> together;
      for (std::size_t begin = 0; begin < runs.size(); begin += most_copied) {
        const std::vector<Run> some(runs.begin() + std::ptrdiff_t(begin),
                                    runs.begin() + std::ptrdiff_t(std::min(begin + most_copied, runs.size())));
        std::int64_t elements = 0;
        for (const Run& run : some) elements += run.elements;
        const int value = new_value(
            {.name = values_[std::size_t(result)].name, .type = stored_as, .shape = Shape{elements}}, {-1, 0});
        copy_runs(some, value, nodes, parts);
        together.push_back({value, 0, elements});
      }
      runs = std::move(together);
    }
    Part part;
    std::string declarations, value;
    std::int64_t end = 0;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const Value& from = values_[std::size_t(runs[r].value)];
      declarations += fmt::format("{} x{}[{}] : {}; ", from.known ? "constant" : "input", r, elements_of(*from.shape),
                                  codegen::name_of(type));
      const std::string load = fmt::format("x{}[i0 + {}]", r, runs[r].from - end);
      end += runs[r].elements;
      value += r + 1 == runs.size() ? (runs.size() == 1 ? load : fmt::format("pad({})", load))
                                    : fmt::format("select(i0 < {}, pad({}), ", end, load);
      part.values.push_back(runs[r].value);
    }
    value += std::string(runs.size() - 1, ')');
    const std::string text =
        fmt::format("{}output y[i0] : {} = {} where i0={}", declarations, codegen::name_of(type), value, end);
    part.computation = codegen::parse_computation(text, {}, codegen::DType::f32, "a copy");
    part.values.push_back(result);
    parts.push_back(Working{std::move(part), nodes});
  }

  int new_value(Value value, Groups::Source source) {
    const int number = int(values_.size());
    values_.push_back(std::move(value));
    source_.push_back(source.value < 0 ? Groups::Source{number, 0} : source);
    readers_.emplace_back();
    return number;
  }

  codegen::DType stored(codegen::DType type) const { return type == codegen::computed_in(storage_) ? storage_ : type; }

  // The part with operands and output in the types in which its values are stored. Parts are computed in single
  // precision until they are whole, so that nothing is rounded within them.
  Part as_stored(Part part) {
    if (storage_ == codegen::computed_in(storage_)) return part;
    const auto type_of = [&](int tensor) { return *values_[std::size_t(part.values[std::size_t(tensor)])].type; };
    for (int t = 0; t < int(part.values.size()); ++t)
      if (part.values[std::size_t(t)] >= 0 && type_of(t) == storage_) store_as(part, t, storage_);
    store_copies(part.computation, storage_);
    for (const int t : factors_to_store(part.computation, storage_)) {
      part.values[std::size_t(t)] = stored_constant(part.values[std::size_t(t)]);
      store_as(part, t, storage_);
    }
    return part;
  }

  int stored_constant(int value) {
    const auto [known, is_new] = stored_.try_emplace(value, -1);
    if (is_new) {
      Value made = values_[std::size_t(value)];
      made.type = storage_;
      made.known = graph::known(storage_, *made.shape, made.known->elements());
      known->second = new_value(std::move(made), {-1, 0});
    }
    return known->second;
  }

  // Its stages by themselves, each once: results of one node have most of them in common.
  void divide(const Part& part, int node) {
    std::map<int, int> within;  // values, by tensor
    const auto value_of = [&](int tensor) {
      const auto [known, is_new] = within.emplace(tensor, -1);
      if (is_new) {
        const codegen::Tensor& own = part.computation.tensors[std::size_t(tensor)];
        known->second = new_value(
            {.name = fmt::format("{}.{}", node, own.name), .type = stored(own.dtype), .shape = own.shape}, {-1, 0});
      }
      return known->second;
    };
    for (Part& stage : stages_of(part, value_of)) {
      for (std::size_t t = 0; t < stage.values.size(); ++t) {
        if (const auto same = same_.find(stage.values[t]); same != same_.end()) stage.values[t] = same->second;
        slice(stage, int(t));
      }
      const int result = stage.values[std::size_t(stage.output())];
      std::string key = codegen::to_text(stage.computation);
      for (const int value : stage.values)
        if (value != result) key += fmt::format(" {}", value);
      const auto [known, is_new] = stages_.emplace(key, result);
      if (!is_new && std::size_t(result) >= first_within_) {
        same_.emplace(result, known->second);
        continue;
      }
      parts_.push_back(Working{std::move(stage), {node}});
    }
  }

  // Reads only the part of a tensor that it needs, so that steps that read one part after the other are one kernel.
  void slice(Part& part, int tensor) {
    const int value = part.values[std::size_t(tensor)];
    if (value < 0 || tensor == part.output()) return;
    const auto slice = sliced(part, tensor);
    if (!slice) return;
    const Value& whole = values_[std::size_t(value)];
    const codegen::Tensor& own = slice->part.computation.tensors[std::size_t(tensor)];
    const std::int64_t bytes = codegen::bytes_of(*whole.type);
    const Groups::Source source{source_[std::size_t(value)].value,
                                source_[std::size_t(value)].offset + slice->first * bytes};
    if (!whole.known && source.offset % alignment != 0) return;
    const auto [known, is_new] = slices_.emplace(std::tuple(value, slice->first, own.shape), -1);
    if (is_new) {
      Value made{.name = fmt::format("{}[{}]", whole.name, slice->first), .type = whole.type, .shape = own.shape};
      if (whole.known) {
        made.origin = Value::Origin::constant;
        made.known = std::make_shared<const Array>(
            Array{*whole.type, own.shape,
                  whole.known->bytes.substr(std::size_t(slice->first * bytes), std::size_t(own.elements() * bytes))});
      }
      known->second = new_value(std::move(made), whole.known ? Groups::Source{-1, 0} : source);
    }
    part = slice->part;
    part.values[std::size_t(tensor)] = known->second;
  }

  int result(int part) const {
    const Part& own = parts_[std::size_t(part)]->part;
    return own.values[std::size_t(own.output())];
  }
  // Distinct values that it reads.
  std::vector<int> operands(int part) const {
    const Part& own = parts_[std::size_t(part)]->part;
    std::vector<int> values;
    for (std::size_t t = 0; t < own.values.size(); ++t)
      if (own.values[t] >= 0 && int(t) != own.output() &&
          std::find(values.begin(), values.end(), own.values[t]) == values.end())
        values.push_back(own.values[t]);
    return values;
  }

  bool is_schedulable(const codegen::Computation& computation) const {
    return codegen::schedules_together(codegen::with_padding_stages(computation), target_);
  }

  // Whether a part and its reader become one: the space can take it, and where that is a choice, it is made so.
  bool decide_fusion(int from, int reader, const codegen::Computation& both) {
    if (!is_schedulable(both)) return false;
    bool& is_by_choice = parts_[std::size_t(reader)]->is_by_choice;
    if (is_by_choice || parts_[std::size_t(from)]->is_by_choice ||
        !codegen::is_fused_by_choice(codegen::with_padding_stages(both), target_))
      return true;
    has_choice_ = true;
    return is_by_choice = fuses_by_choice_;
  }

  bool take(int from, int reader) {
    std::optional<Part> both = merged(parts_[std::size_t(from)]->part, parts_[std::size_t(reader)]->part);
    if (!both || !decide_fusion(from, reader, both->computation)) return false;
    become(std::move(*both), from, reader);
    return true;
  }

  // The part between two others, with both: the softmax between the two products of attention, which no space takes
  // with one of them alone.
  bool take_through(int between, int reader) {
    for (const int value : operands(between)) {
      const int first = writer_[std::size_t(value)];
      const std::vector<int>& all = readers_[std::size_t(value)];
      if (first < 0 || is_foreign(first) || all.size() != 1 || all.front() != between) continue;
      std::optional<Part> two = merged(parts_[std::size_t(between)]->part, parts_[std::size_t(reader)]->part);
      std::optional<Part> three = two ? merged(parts_[std::size_t(first)]->part, divided_last(*two)) : std::nullopt;
      if (!three || !decide_fusion(between, reader, (three = without_copies(*three))->computation)) continue;
      become(std::move(*two), between, reader);
      become(std::move(*three), first, reader);
      return true;
    }
    return false;
  }

  // The reader computes what another part has computed for it.
  void become(Part both, int from, int reader) {
    for (const int value : operands(from)) {
      std::vector<int>& readers = readers_[std::size_t(value)];
      std::erase(readers, from);
      if (std::find(readers.begin(), readers.end(), reader) == readers.end()) readers.push_back(reader);
    }
    Working& result = *parts_[std::size_t(reader)];
    result.part = std::move(both);
    const Working& taken = *parts_[std::size_t(from)];
    result.nodes.insert(result.nodes.end(), taken.nodes.begin(), taken.nodes.end());
    result.parts.insert(result.parts.end(), taken.parts.begin(), taken.parts.end());
    result.is_by_choice |= taken.is_by_choice;
    parts_[std::size_t(from)].reset();
  }

  const codegen::Target& target_;
  const codegen::DType storage_;
  bool fuses_by_choice_ = false, has_choice_ = false;
  std::vector<Value> values_;
  std::vector<Groups::Source> source_;
  std::vector<std::optional<Working>> parts_;
  std::vector<std::vector<int>> readers_;  // by value: parts, each once, and -1 for others
  std::vector<int> writer_;                // by value: the part that computes it; -1: none
  const std::size_t first_within_ = values_.size();
  std::map<std::pair<int, std::int64_t>, Rows> rows_;  // by value and elements of a row
  // Values that are stored as they are: outputs of the graph, what these are views of, and what foreign kernels take
  // and give.
  std::set<int> outputs_;
  std::map<std::string, int> stages_;  // of divided nodes: values, by what computes them
  std::map<int, int> same_;            // values that are computed already
  std::map<std::tuple<int, std::int64_t, Shape>, int> slices_;
  std::map<int, int> stored_;  // constants in the type of storage, by constant
};

}  // namespace

Groups grouped(const Graph& graph, const codegen::Target& target, std::string_view place, codegen::DType storage) {
  Groups groups = Parts(graph, target, place, storage).made();
  share_kernels(groups);
  return groups;
}

}  // namespace graft::graph
