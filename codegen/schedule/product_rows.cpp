#include "codegen/schedule/product_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "codegen/schedule/restructure.h"

namespace graft::codegen {
namespace {

constexpr std::int64_t largest_block = 128;         // rows
constexpr std::int64_t block_bytes = 1 << 19;       // what they may keep between their stages
constexpr std::int64_t largest_register_tile = 14;  // of what is not in vectors
constexpr std::int64_t largest_vectors = 4;         // side by side
constexpr std::int64_t largest_unroll = 4;

}  // namespace

ProductRows::ProductRows(const Computation& computation, const Target& target)
    : computation_(computation), target_(target) {
  for (int number = 0; number < int(computation.stages.size()); ++number)
    if (!is_known_ahead(computation, stage(number))) chain_.push_back(number);
  if (chain_.size() < 3) return;
  lanes_ = lanes_of(computation, stage(last()), target);
  if (lanes_ > 1 && finds_rows()) block_ = block_axis();
}

// The rows are the axes of the last stage but the innermost one; those of a stage that it reads follow.
bool ProductRows::finds_rows() {
  const Tensor& output = computation_.tensors[std::size_t(stage(last()).tensor)];
  const int rank = int(stage(last()).axes.size());
  if (output.role != Role::output || !is_floating(output.dtype) || computation_.is_reduction(stage(last())) ||
      !is_along_memory(computation_, stage(last()), rank - 1))
    return false;
  for (int a = 0; a + 1 < rank; ++a)
    if (axis(last(), a).extent > 1) rows_.push_back(a);
  if (rows_.empty()) return false;
  axes_[last()] = rows_;
  for (auto number = chain_.rbegin(); number != chain_.rend(); ++number) {
    const Stage& here = stage(*number);
    const Tensor& tensor = computation_.tensors[std::size_t(here.tensor)];
    if (!axes_.contains(*number) || !here.index.empty() || tensor.dtype != output.dtype) return false;
    if (*number != last() && tensor.role != Role::temporary) return false;
    for (const Access& access : here.value.loads)
      if (access.padded || !access.gathered.empty() || !follows(*number, access)) return false;
  }
  return true;
}

// Whether a stage of the chain reads of another one the present row only; notes the other one's axes for the rows.
bool ProductRows::follows(int number, const Access& access) {
  const int writer = computation_.stage_writing(access.tensor);
  if (std::find(chain_.begin(), chain_.end(), writer) == chain_.end()) return true;
  const std::vector<int>& own = axes_.at(number);
  std::vector<int> found(rows_.size(), -1);
  for (int d = 0; d < int(access.index.size()); ++d) {
    const Affine& form = access.index[std::size_t(d)];
    for (std::size_t r = 0; r < own.size(); ++r) {
      if (form.coefficient(own[r]) == 0) continue;
      if (found[r] >= 0 || !(form == Affine::variable(own[r])) || axis(writer, d).extent != axis(number, own[r]).extent)
        return false;
      found[r] = d;
    }
  }
  if (std::find(found.begin(), found.end(), -1) != found.end()) return false;
  return axes_.emplace(writer, found).first->second == found;
}

// Results of a sum of products with axes besides the rows: operands are used several times.
bool ProductRows::is_product_of_rows(int number) const {
  const Stage& here = stage(number);
  const int rank = computation_.spatial_axes(here);
  const std::vector<int>& rows = axes_.at(number);
  bool has_columns = false;
  for (int a = 0; a < rank; ++a)
    has_columns |= axis(number, a).extent > 1 && std::find(rows.begin(), rows.end(), a) == rows.end();
  return has_columns && here.combine == Combine::sum && is_product(here.value);
}

// Known before the run, and packed then by a kernel of its own.
bool ProductRows::is_constant(int tensor) const {
  const int writer = computation_.stage_writing(tensor);
  return writer < 0 ? computation_.tensors[std::size_t(tensor)].role == Role::constant
                    : is_known_ahead(computation_, stage(writer));
}

// The longest of the rows along which each product has an operand that stays; -1 if there is none of a vector's length,
// or stages that cannot be computed so.
int ProductRows::block_axis() const {
  if (!is_product_of_rows(product())) return -1;
  int products = 0;
  std::vector<bool> stays(rows_.size(), true);
  for (const int number : chain_) {
    if (!computation_.is_reduction(stage(number)) || !is_product_of_rows(number)) continue;
    ++products;
    for (const Access& load : stage(number).value.loads)
      if (is_constant(load.tensor)) return -1;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const std::vector<Access>& loads = stage(number).value.loads;
      stays[r] = stays[r] && std::any_of(loads.begin(), loads.end(),
                                         [&](const Access& load) { return !moves(load, axes_.at(number)[r]); });
    }
  }
  const auto extent = [&](int r) { return axis(last(), rows_[std::size_t(r)]).extent; };
  int block = -1;
  for (int r = 0; r < int(rows_.size()); ++r)
    if (stays[std::size_t(r)] && extent(r) >= lanes_ && (block < 0 || extent(r) > extent(block))) block = r;
  // The last product's results lie along the output's last axis.
  const int columns = computation_.spatial_axes(stage(product())) - 1;
  const std::vector<int>& own = axes_.at(product());
  if (block < 0 || products < 2 || std::find(own.begin(), own.end(), columns) != own.end() ||
      axis(product(), columns).extent < shortest_vector_axis ||
      !is_along_memory(computation_, stage(product()), columns))
    return -1;
  for (const int number : chain_) {
    if (number == last() || number == product()) continue;
    const std::vector<int> packable = packable_tensors(computation_, stage(number), true);
    for (const Access& access : stage(number).value.loads) {
      const int writer = computation_.stage_writing(access.tensor);
      if (axes_.contains(writer)) continue;  // stored with the rows innermost
      const std::int64_t stride = stride_along(computation_, access, axes_.at(number)[std::size_t(block)]);
      if (stride == 0 || stride == 1) continue;
      if (std::find(packable.begin(), packable.end(), access.tensor) == packable.end()) return -1;
    }
  }
  return block;
}

// The step that stores what a stage computes with the rows innermost; "" if it is so.
std::string ProductRows::layout(int number) const {
  const int rank = computation_.spatial_axes(stage(number)), block = axes_.at(number)[std::size_t(block_)];
  if (block == rank - 1) return "";
  std::string text = "layout " + name(number);
  for (int d = 0; d < rank; ++d)
    if (d != block) text += fmt::format(" {}", d);
  return text + fmt::format(" {}", block);
}

// Splits an axis of more than one element; returns the loops of all levels but the outermost one.
std::string ProductRows::tile(int number, int which, const std::vector<std::vector<std::int64_t>>& sizes,
                              const std::string& more, SketchBuilder& builder) const {
  const auto& [along, extent] = axis(number, which);
  if (extent == 1) return "";
  const std::string domain = argument_name(name(number)) + "_" + along;
  builder.line(fmt::format("tile {} {}{}{}", name(number), along, builder.sizes(domain, sizes), more));
  return along + ".1";
}

// The step by which the output is multiplied with one number for each row instead of divided by it; "" for none.
std::string ProductRows::reciprocal() const {
  const Axis& along = stage(last()).axes.back();
  const Step step{StepKind::reciprocal, name(last()), along.name, {}, {}};
  const base::Result<Restructured> form = restructured(computation_, {step});
  return form && form->computation.stages.size() == computation_.stages.size() + 1 ? to_text(step) : "";
}

void ProductRows::lines_of_last(SketchBuilder& builder, bool divides_once) const {
  const Stage& here = stage(last());
  const std::string own = name(last());
  const int columns = int(here.axes.size()) - 1, block = rows_[std::size_t(block_)];
  std::int64_t rows = axis(last(), block).extent, bytes = 0;
  for (const int number : chain_)
    if (number != last()) bytes += computation_.tensors[std::size_t(stage(number).tensor)].bytes();
  for (const int row : rows_) bytes /= axis(last(), row).extent;
  std::vector<std::int64_t> sizes;
  for (const std::int64_t count : {1, 2, 3, 4, 6, 8}) {
    const std::int64_t size = count * lanes_;
    if (sizes.empty() || (size <= std::min(rows, largest_block) && size * bytes <= block_bytes)) sizes.push_back(size);
  }
  std::vector<std::string> outer, inner;
  for (int a = 0; a < columns; ++a)
    if (a != block) outer.push_back(axis(last(), a).name + ".0");
  outer.push_back(axis(last(), block).name + ".0");
  inner.push_back(tile(last(), block, each(sizes), "", builder));
  const std::string within = inner.back();
  const std::string& along = here.axes.back().name;
  const std::int64_t width = std::min(lanes_, here.axes.back().extent);
  const bool vector = here.axes.back().extent > 1;
  inner.push_back(along + ".0");
  if (vector) {
    tile(last(), columns, powers_of_two(width, here.axes.back().extent, largest_vectors), fmt::format(" {}", width),
         builder);
    inner.push_back(along + ".1");
    inner.push_back(along + ".2");
  }
  builder.line(fmt::format("order {} {} {}", own, joined(outer), joined(inner)));
  if (target_.threads > 1) builder.line(fmt::format("parallel {} {}", own, joined(outer)));
  if (vector) {
    builder.line(fmt::format("vector {} {}.2", own, along));
    builder.line(fmt::format("unroll {} {}.1", own, along));
  }
  if (divides_once)
    builder.line(SketchBuilder::again(argument_name(own) + "_reciprocal",
                                      {"", fmt::format("compute {0} {0}.reciprocal above {1}", own, within)}));
  for (std::size_t c = chain_.size() - 1; c-- > 0;)
    builder.line(fmt::format("compute {} {} above {}", own, name(chain_[c]), within));
}

// Register tiles of some rows and vectors along the output's last axis.
void ProductRows::lines_of_product(SketchBuilder& builder) const {
  const Stage& here = stage(product());
  const std::string own = name(product()), label = argument_name(own);
  const int rank = computation_.spatial_axes(here), columns = rank - 1;
  const int block = axes_.at(product())[std::size_t(block_)];
  const std::int64_t width = std::min(lanes_, axis(product(), columns).extent);
  const std::string rows =
      tile(product(), block, each(register_tiles(axis(product(), block).extent, largest_register_tile)), "", builder);
  tile(product(), columns, powers_of_two(width, axis(product(), columns).extent, largest_vectors),
       fmt::format(" {}", width), builder);
  std::vector<std::string> outer, summed, unrolled;
  for (int a = 0; a < rank; ++a)
    if (a != block && a != columns) outer.push_back(axis(product(), a).name + ".0");
  for (int a = rank; a < int(here.axes.size()); ++a) summed.push_back(axis(product(), a).name + ".0");
  unrolled.push_back(tile(product(), int(here.axes.size()) - 1,
                          powers_of_two(1, here.axes.back().extent, largest_unroll), "", builder));
  unrolled.push_back(rows);
  const std::string i = axis(product(), block).name + ".0", d = axis(product(), columns).name;
  unrolled.push_back(d + ".1");
  const std::string order = builder.choice(label + "_order", {i + " " + d + ".0", d + ".0 " + i});
  builder.line(
      fmt::format("order {} {}", own, joined({joined(outer), order, joined(summed), joined(unrolled), d + ".2"})));
  builder.line(fmt::format("vector {} {}.2", own, d));
  builder.line(fmt::format("unroll {} {}", own, joined(unrolled)));
  builder.line(fmt::format("accumulate {} above {}", own, joined(summed)));
  for (const int tensor : packable_tensors(computation_, here, true)) {
    if (axes_.contains(computation_.stage_writing(tensor))) continue;
    const std::string& operand = computation_.tensors[std::size_t(tensor)].name;
    const std::string pack = fmt::format("pack {} {} above {} {}.0", own, operand, i, d);
    builder.line(builder.choice(label + "_pack_" + argument_name(operand), {"", pack}));
  }
}

// Vectors along the rows; products in register tiles of some columns.
void ProductRows::lines_along_rows(int number, SketchBuilder& builder) const {
  const Stage& here = stage(number);
  const std::string own = name(number), label = argument_name(own);
  const int rank = computation_.spatial_axes(here), block = axes_.at(number)[std::size_t(block_)];
  const bool reduces = computation_.is_reduction(here), product = reduces && is_product_of_rows(number);
  const std::vector<int>& rows = axes_.at(number);
  std::vector<std::string> outer, summed, unrolled;
  std::string columns;  // the loop outside of a register tile
  if (reduces) {
    for (int a = rank; a < int(here.axes.size()); ++a) summed.push_back(axis(number, a).name + ".0");
    unrolled.push_back(tile(number, int(here.axes.size()) - 1,
                            powers_of_two(1, here.axes.back().extent, largest_unroll), "", builder));
  }
  for (int a = 0; a < rank; ++a) {
    if (a == block) continue;
    const bool is_row = std::find(rows.begin(), rows.end(), a) != rows.end();
    if (product && !is_row && columns.empty() && axis(number, a).extent > 1) {
      columns = axis(number, a).name + ".0";
      unrolled.push_back(
          tile(number, a, each(register_tiles(axis(number, a).extent, largest_register_tile)), "", builder));
    } else {
      outer.push_back(axis(number, a).name + ".0");
    }
  }
  const std::string along = axis(number, block).name;
  tile(number, block, powers_of_two(lanes_, axis(number, block).extent, largest_vectors), fmt::format(" {}", lanes_),
       builder);
  unrolled.push_back(along + ".1");
  const std::string vectors = along + ".0";
  const std::string order =
      product ? builder.choice(label + "_order", {columns + " " + vectors, vectors + " " + columns}) : vectors;
  builder.line(
      fmt::format("order {} {}", own, joined({joined(outer), order, joined(summed), joined(unrolled), along + ".2"})));
  builder.line(fmt::format("vector {} {}.2", own, along));
  builder.line(fmt::format("unroll {} {}", own, joined(unrolled)));
  if (reduces) builder.line(fmt::format("accumulate {} above {}", own, joined(summed)));
  std::set<int> packed;
  for (const Access& access : here.value.loads) {
    if (axes_.contains(computation_.stage_writing(access.tensor)) || !packed.insert(access.tensor).second) continue;
    const std::string& operand = computation_.tensors[std::size_t(access.tensor)].name;
    const std::string above = joined({joined(outer), columns, vectors});
    const std::int64_t stride = stride_along(computation_, access, block);
    if (stride != 0 && stride != 1) {
      builder.line(fmt::format("pack {} {} by {} above {}", own, operand, lanes_, above));
    } else if (product) {
      // What stays along the rows is copied together, several neighbours at once.
      const std::string by = stride == 0 ? fmt::format(" by {}", lanes_) : "";
      const std::string pack = fmt::format("pack {} {}{} above {}", own, operand, by, above);
      builder.line(builder.choice(label + "_pack_" + argument_name(operand), {"", pack}));
    }
  }
}

SketchSpace ProductRows::sketch() const {
  SketchBuilder builder;
  std::string label = "product_rows";
  for (const int number : chain_) {
    if (number == last() || number == product()) continue;
    if (const std::string step = layout(number); !step.empty()) builder.line(step);
  }
  const std::string inverse = reciprocal();
  if (!inverse.empty()) builder.line(builder.choice(argument_name(name(last())) + "_reciprocal", {"", inverse}));
  lines_of_last(builder, !inverse.empty());
  for (const int number : chain_) {
    if (computation_.is_reduction(stage(number))) label += "_" + name(number);
    if (number == product())
      lines_of_product(builder);
    else if (number != last())
      lines_along_rows(number, builder);
  }
  return builder.finish(argument_name(label));
}

}  // namespace graft::codegen
