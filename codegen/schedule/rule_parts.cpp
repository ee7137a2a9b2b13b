#include "codegen/schedule/rule_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>

namespace graft::codegen {
namespace {

constexpr std::size_t few_choices = 4;  // fewer sizes that divide an extent are joined by others
constexpr std::int64_t long_axis = 64;  // from here on the rest of a tile is small

// Every dimension follows at most one axis of extent > 1 (or, with `parts`, axes that are parts of it), and no axis
// serves two dimensions: packing copies no element twice.
bool is_packable(const Stage& stage, const Access& access, bool parts) {
  if (!access.gathered.empty()) return false;
  std::set<int> seen;
  for (const Affine& form : access.index) {
    std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // how far one element moves, and extents
    for (const Term& term : form.terms) {
      const std::int64_t extent = stage.axes[std::size_t(term.variable)].extent;
      if (extent == 1) continue;
      axes.emplace_back(std::abs(term.coefficient), extent);
      if (!seen.insert(term.variable).second) return false;
    }
    if (axes.size() > 1 && !parts) return false;
    std::sort(axes.begin(), axes.end());
    std::int64_t reach = 0;
    for (const auto& [step, extent] : axes) {
      if (step <= reach) return false;
      reach += step * (extent - 1);
    }
  }
  return true;
}

}  // namespace

bool moves(const Access& access, int axis) {
  return std::any_of(access.index.begin(), access.index.end(),
                     [&](const Affine& form) { return form.coefficient(axis) != 0; });
}

bool is_along_memory(const Computation& computation, const Stage& stage, int axis) {
  return std::all_of(stage.value.loads.begin(), stage.value.loads.end(), [&](const Access& access) {
    const std::int64_t stride = stride_along(computation, access, axis);
    return stride == 0 || stride == 1;
  });
}

std::vector<int> packable_tensors(const Computation& computation, const Stage& stage, bool parts) {
  std::vector<int> result;
  for (const Access& access : stage.value.loads) {
    if (std::find(result.begin(), result.end(), access.tensor) != result.end()) continue;
    const bool one_way = std::all_of(stage.value.loads.begin(), stage.value.loads.end(), [&](const Access& other) {
      return other.tensor != access.tensor || other == access;
    });
    const Role role = computation.tensors[std::size_t(access.tensor)].role;
    if (one_way && role != Role::output && is_packable(stage, access, parts)) result.push_back(access.tensor);
  }
  return result;
}

std::vector<std::int64_t> register_tiles(std::int64_t extent, std::int64_t largest) {
  std::set<std::int64_t> result;
  for (std::int64_t size = 1; size <= std::min(extent, largest); ++size) {
    if (extent % size == 0) result.insert(size);
  }
  if (extent > largest && (result.size() < few_choices || extent >= long_axis)) {
    for (const std::int64_t size : {2, 3, 4, 6, 8, 12, 14, 16}) {
      if (size <= largest) result.insert(size);
    }
  }
  return {result.begin(), result.end()};
}

std::vector<std::vector<std::int64_t>> each(const std::vector<std::int64_t>& sizes) {
  std::vector<std::vector<std::int64_t>> result;
  for (const std::int64_t size : sizes) result.push_back({size});
  return result;
}

std::vector<std::vector<std::int64_t>> powers_of_two(std::int64_t unit, std::int64_t extent, std::int64_t most) {
  std::vector<std::vector<std::int64_t>> result;
  for (std::int64_t count = 1; count <= most && (count == 1 || count * unit <= extent); count *= 2)
    result.push_back({count * unit});
  return result;
}

int whole_dimension(const std::vector<Affine>& index, int axis) {
  int found = -1;
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (index[d].coefficient(axis) == 0) continue;
    if (found >= 0 || !(index[d] == Affine::variable(axis))) return -1;
    found = int(d);
  }
  return found;
}

bool is_known_ahead(const Computation& computation, const Stage& stage) {
  if (computation.tensors[std::size_t(stage.tensor)].role != Role::temporary) return false;
  return std::all_of(stage.value.loads.begin(), stage.value.loads.end(), [&](const Access& access) {
    const Tensor& tensor = computation.tensors[std::size_t(access.tensor)];
    const int writer = computation.stage_writing(access.tensor);
    return writer < 0 ? tensor.role == Role::constant || tensor.is_literal()
                      : is_known_ahead(computation, computation.stages[std::size_t(writer)]);
  });
}

std::vector<int> reductions(const Computation& computation) {
  std::vector<int> result;
  for (std::size_t i = 0; i < computation.stages.size(); ++i) {
    const Stage& stage = computation.stages[i];
    if (computation.is_reduction(stage) && !is_known_ahead(computation, stage)) result.push_back(int(i));
  }
  return result;
}

int fusable_consumer(const Computation& computation, int stage, int head) {
  const int tensor = computation.stages[std::size_t(stage)].tensor;
  if (computation.tensors[std::size_t(tensor)].role != Role::temporary) return -1;
  if (stage != head && !computation.stages[std::size_t(stage)].index.empty()) return -1;
  int consumer = -1;
  for (std::size_t s = 0; s < computation.stages.size(); ++s) {
    for (const Access& access : computation.stages[s].value.loads) {
      if (access.tensor == tensor && int(s) != consumer) {
        if (consumer >= 0) return -1;
        consumer = int(s);
      }
    }
  }
  if (consumer < 0) return -1;
  const Stage& reader = computation.stages[std::size_t(consumer)];
  const std::size_t rank = computation.tensors[std::size_t(tensor)].shape.size();
  if (reader.combine != Combine::none || reader.axes.size() != rank) return -1;
  const auto type_of = [&](const Stage& s) { return computed_in(computation.tensors[std::size_t(s.tensor)].dtype); };
  if (stage != head && type_of(reader) != type_of(computation.stages[std::size_t(stage)])) return -1;
  for (const Access& access : reader.value.loads) {
    if (access.tensor != tensor) {
      if (computation.stage_writing(access.tensor) >= head) return -1;
      continue;
    }
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      if (!(access.index[d] == Affine::variable(int(d)))) return -1;
    }
  }
  return consumer;
}

bool pads_along(const Computation& computation, const Stage& producer, const Stage& reader, int axis) {
  for (const Access& padded : producer.value.loads) {
    if (!padded.padded) continue;
    for (const Access& read : reader.value.loads) {
      if (read.tensor != producer.tensor) continue;
      for (std::size_t d = 0; d < padded.index.size(); ++d) {
        std::vector<Interval> whole;
        for (const Axis& a : producer.axes) whole.push_back({0, a.extent - 1});
        const Interval reach = range(padded.index[d], whole);
        const bool leaves = reach.low < 0 || reach.high >= computation.tensors[std::size_t(padded.tensor)].shape[d];
        if (leaves && substitute(padded.index[d], read.index).coefficient(axis) != 0) return true;
      }
    }
  }
  return false;
}

bool is_window(const Computation& computation, const Stage& stage, int axis) {
  const int spatial = computation.spatial_axes(stage);
  return std::any_of(stage.value.loads.begin(), stage.value.loads.end(), [&](const Access& access) {
    return std::any_of(access.index.begin(), access.index.end(), [&](const Affine& form) {
      return form.coefficient(axis) != 0 && std::any_of(form.terms.begin(), form.terms.end(),
                                                        [&](const Term& term) { return term.variable < spatial; });
    });
  });
}

bool share_rows(const Computation& computation, std::span<const int> chain, int rows) {
  const Stage& last = computation.stages[std::size_t(chain.back())];
  for (const int number : chain) {
    const Stage& here = computation.stages[std::size_t(number)];
    if (!here.index.empty() || computation.spatial_axes(here) < rows) return false;
    if (number != chain.back() && computation.tensors[std::size_t(here.tensor)].role != Role::temporary) return false;
    for (std::size_t d = 0; d < std::size_t(rows); ++d) {
      if (here.axes[d].extent != last.axes[d].extent) return false;
    }
    for (const Access& access : here.value.loads) {
      if (access.padded) return false;
      const int writer = computation.stage_writing(access.tensor);
      if (std::find(chain.begin(), chain.end(), writer) == chain.end()) continue;
      for (std::size_t d = 0; d < std::size_t(rows); ++d) {
        if (!(access.index[d] == Affine::variable(int(d)))) return false;
      }
    }
  }
  return true;
}

std::vector<Step> winograd_steps(const Computation& computation) {
  constexpr std::int64_t least_channels = 8;  // that the products sum over
  std::vector<Step> result;
  for (const int number : reductions(computation)) {
    const Stage& stage = computation.stages[std::size_t(number)];
    std::int64_t channels = 1;
    for (int axis = computation.spatial_axes(stage); axis < int(stage.axes.size()); ++axis) {
      if (!is_window(computation, stage, axis)) channels *= stage.axes[std::size_t(axis)].extent;
    }
    if (channels < least_channels) continue;
    for (const std::int64_t tile : {4, 2})
      result.push_back({StepKind::winograd, name_of(computation, stage), "", {}, {tile}});
  }
  return result;
}

std::string name_of(const Computation& computation, const Stage& stage) {
  return computation.tensors[std::size_t(stage.tensor)].name;
}

std::string argument_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() || word.empty() ? "" : " ") + word;
  return text;
}

std::int64_t lanes_of(const Computation& computation, const Stage& stage, const Target& target) {
  return target.lanes(bytes_of(computed_in(computation.tensors[std::size_t(stage.tensor)].dtype)));
}

std::string SketchBuilder::sizes(const std::string& name, std::vector<std::vector<std::int64_t>> values) {
  std::string words;
  Named domain{name, {}, std::move(values)};
  for (std::size_t i = 0; i < domain.values[0].size(); ++i) {
    domain.arguments.push_back(fmt::format("{}_{}", name, i + 1));
    words += " $" + domain.arguments.back();
  }
  domains_.push_back(std::move(domain));
  return words;
}

std::string SketchBuilder::choice(const std::string& name, const std::vector<std::string>& alternatives) {
  if (alternatives.size() == 1) return alternatives[0];
  Named domain{name, {name}, {}};
  for (std::size_t i = 0; i < alternatives.size(); ++i) domain.values.push_back({std::int64_t(i)});
  domains_.push_back(std::move(domain));
  return again(name, alternatives);
}

std::string SketchBuilder::again(const std::string& name, const std::vector<std::string>& alternatives) {
  std::string text = "$" + name + "{";
  for (std::size_t i = 0; i < alternatives.size(); ++i) text += (i > 0 ? "|" : "") + alternatives[i];
  return text + "}";
}

SketchSpace SketchBuilder::finish(const std::string& name) const {
  SketchSpace space;
  auto sketch = std::make_shared<Sketch>(parse_sketch("sketch " + name + "\n" + text_, name));
  for (const Named& named : domains_) {
    Domain domain{named.name, {}, named.values};
    for (const std::string& argument : named.arguments) {
      const auto at = std::find_if(sketch->arguments.begin(), sketch->arguments.end(),
                                   [&](const Sketch::Argument& known) { return known.name == argument; });
      assert(at != sketch->arguments.end());  // a line has each argument
      domain.arguments.push_back(int(at - sketch->arguments.begin()));
    }
    space.domains.push_back(std::move(domain));
  }
  space.sketch = std::move(sketch);
  return space;
}

void fuse_consumers(const Computation& computation, int number, const std::string& where, SketchBuilder& builder) {
  for (int from = number, to = fusable_consumer(computation, number, number); to >= 0;) {
    const std::string fuse = fmt::format("fuse {} {}", name_of(computation, computation.stages[std::size_t(from)]),
                                         name_of(computation, computation.stages[std::size_t(to)]));
    builder.line(where.empty() ? fuse : SketchBuilder::again(where, {fuse, ""}));
    from = to;
    to = fusable_consumer(computation, from, number);
  }
}

}  // namespace graft::codegen
