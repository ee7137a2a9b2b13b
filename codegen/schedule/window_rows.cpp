#include "codegen/schedule/window_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/expression/padding.h"

namespace graft::codegen {
namespace {

constexpr std::int64_t largest_block = 8;           // rows
constexpr std::int64_t block_bytes = 1 << 19;       // what they may keep between the sums
constexpr std::int64_t largest_register_tile = 14;  // of what is not in vectors
constexpr std::int64_t largest_vectors = 4;         // side by side
constexpr std::int64_t largest_rows = 4;            // of windows, in a register tile
constexpr std::int64_t largest_unroll = 4;

}  // namespace

WindowRows::WindowRows(const Computation& computation, const Target& target)
    : computation_(computation), target_(target) {
  if (!finds_stages() || !finds_rows()) row_ = -1;
}

bool WindowRows::finds_stages() {
  const std::vector<int> reduced = reductions(computation_);
  if (reduced.size() != 2) return false;
  windows_ = reduced[0];
  product_ = reduced[1];
  std::vector<int> taken = reduced;
  for (int from = windows_; (from = fusable_consumer(computation_, from, windows_)) >= 0;) {
    between_.push_back(from);
    taken.push_back(from);
  }
  for (int from = product_; (from = fusable_consumer(computation_, from, product_)) >= 0;) taken.push_back(from);
  for (int s = 0; s < int(computation_.stages.size()); ++s) {
    if (is_known_ahead(computation_, stage(s)) || std::find(taken.begin(), taken.end(), s) != taken.end()) continue;
    if (pad_ >= 0 || !is_padding_copy(stage(s))) return false;
    pad_ = s;
  }
  const auto is_sum = [&](int number) {
    return stage(number).combine == Combine::sum && stage(number).index.empty() && is_product(stage(number).value) &&
           is_floating(computation_.tensors[std::size_t(stage(number).tensor)].dtype);
  };
  if (!is_sum(windows_) || !is_sum(product_)) return false;
  for (int a = rank(windows_); a < int(stage(windows_).axes.size()); ++a)
    if (axis(windows_, a).extent > 1 && !is_window(computation_, stage(windows_), a)) return false;
  const int given = stage(between_.empty() ? windows_ : between_.back()).tensor;
  if (computation_.tensors[std::size_t(given)].role != Role::temporary) return false;
  // Only the windows read what is padded, only the product what they give.
  for (int s = 0; s < int(computation_.stages.size()); ++s)
    for (const Access& access : stage(s).value.loads)
      if ((access.tensor == given && s != product_) ||
          (pad_ >= 0 && access.tensor == stage(pad_).tensor && s != windows_))
        return false;
  const auto& loads = stage(product_).value.loads;
  return std::count_if(loads.begin(), loads.end(), [&](const Access& load) { return load.tensor == given; }) == 1 &&
         !read().padded && read().gathered.empty();
}

const Access& WindowRows::read() const {
  const int given = stage(between_.empty() ? windows_ : between_.back()).tensor;
  const auto& loads = stage(product_).value.loads;
  return *std::find_if(loads.begin(), loads.end(), [&](const Access& load) { return load.tensor == given; });
}

// The axis of the windows that the product reads one element after the other along its own axis; -1: none.
int WindowRows::window_axis_of(int product_axis) const {
  int found = -1;
  for (int d = 0; d < int(read().index.size()); ++d) {
    const Affine& form = read().index[std::size_t(d)];
    if (form.coefficient(product_axis) == 0) continue;
    const bool is_alone = std::all_of(form.terms.begin(), form.terms.end(), [&](const Term& term) {
      return term.variable == product_axis ? term.coefficient == 1 : axis(product_, term.variable).extent == 1;
    });
    if (found >= 0 || form.constant != 0 || !is_alone ||
        axis(windows_, d).extent != axis(product_, product_axis).extent)
      return -1;
    found = d;
  }
  return found;
}

// Axes along which windows move: the first one is the rows', the last one the columns'.
bool WindowRows::finds_rows() {
  const auto moves_windows = [&](int along) {
    const auto& loads = stage(windows_).value.loads;
    return std::any_of(loads.begin(), loads.end(), [&](const Access& load) {
      return std::any_of(load.index.begin(), load.index.end(), [&](const Affine& form) {
        return form.coefficient(along) != 0 && std::any_of(form.terms.begin(), form.terms.end(), [&](const Term& term) {
                 return term.variable >= rank(windows_);
               });
      });
    });
  };
  for (int a = 0; a + 1 < rank(product_); ++a) {
    const int own = window_axis_of(a);
    if (axis(product_, a).extent == 1 || own < 0 || !moves_windows(own)) continue;
    (row_ < 0 ? row_ : column_) = a;
  }
  return row_ >= 0 && has_vectors(product_, 1) && has_vectors(windows_, 2);
}

// Whether the stage's results side by side are vectors.
bool WindowRows::has_vectors(int number, std::int64_t largest_stride) const {
  const int last = rank(number) - 1;
  if (lanes_of(computation_, stage(number), target_) <= 1 || axis(number, last).extent < shortest_vector_axis)
    return false;
  const auto& loads = stage(number).value.loads;
  return std::all_of(loads.begin(), loads.end(), [&](const Access& load) {
    const std::int64_t stride = stride_along(computation_, load, last);
    return stride >= 0 && stride <= largest_stride;
  });
}

// Vectors cannot run over a border: what they read is copied with its padding.
bool WindowRows::absorbs_padding() const {
  return pad_ >= 0 && !pads_along(computation_, stage(pad_), stage(windows_), rank(windows_) - 1);
}

std::vector<std::int64_t> WindowRows::block_sizes() const {
  const std::int64_t rows = axis(product_, row_).extent;
  const std::int64_t bytes = computation_.tensors[std::size_t(read().tensor)].bytes() / rows;
  std::vector<std::int64_t> sizes = register_tiles(rows, largest_block);
  std::sort(sizes.begin(), sizes.end());
  std::erase_if(sizes, [&](std::int64_t size) { return size > sizes.front() && size * bytes > block_bytes; });
  return sizes;
}

// Splits the last axis into vectors; returns its name.
std::string WindowRows::vectors(int number, std::int64_t most, SketchBuilder& builder) const {
  const auto& [along, extent] = axis(number, rank(number) - 1);
  const std::int64_t width = std::min(lanes_of(computation_, stage(number), target_), extent);
  builder.line(fmt::format("tile {} {}{} {}", name(number), along,
                           builder.sizes(argument_name(name(number)) + "_" + along, powers_of_two(width, extent, most)),
                           width));
  return along;
}

// Returns the loops within a block of rows, outermost first.
std::string WindowRows::lines_of_product(SketchBuilder& builder) const {
  const Stage& here = stage(product_);
  const std::string own = name(product_), label = argument_name(own);
  std::vector<std::string> outer, within, summed, unrolled;
  const auto tile = [&](int a, const std::vector<std::vector<std::int64_t>>& sizes) {
    const std::string& along = axis(product_, a).name;
    builder.line(fmt::format("tile {} {}{}", own, along, builder.sizes(label + "_" + along, sizes)));
    return along;
  };
  const std::string row = tile(row_, each(block_sizes()));
  for (int a = 0; a + 1 < rank(product_); ++a) {
    const auto& [along, extent] = axis(product_, a);
    if (a == row_ || extent == 1) continue;
    const bool is_read = moves(read(), a);
    if (is_read && a != column_) {
      outer.push_back(along + ".0");
      continue;
    }
    tile(a, each(register_tiles(extent, largest_register_tile)));
    within.push_back(along + ".0");
    // Each element of the windows is used with all results before the next one takes its register.
    unrolled.insert(is_read ? unrolled.begin() : unrolled.end(), along + ".1");
  }
  outer.push_back(row + ".0");
  const std::string vector = vectors(product_, largest_vectors, builder);
  unrolled.push_back(vector + ".1");
  within.push_back(vector + ".0");
  for (int a = rank(product_); a < int(here.axes.size()); ++a)
    if (axis(product_, a).extent > 1) summed.push_back(axis(product_, a).name + ".0");
  int last = int(here.axes.size()) - 1;
  while (last > rank(product_) && axis(product_, last).extent == 1) --last;
  if (axis(product_, last).extent > 1) {
    tile(last, powers_of_two(1, axis(product_, last).extent, largest_unroll));
    unrolled.insert(unrolled.begin(), axis(product_, last).name + ".1");
  }
  const std::string rows = row + ".1";
  std::vector<std::string> orders = {rows + " " + joined(within), joined(within) + " " + rows};
  if (within.size() > 1) {
    std::vector<std::string> turned = within;
    std::rotate(turned.begin(), turned.begin() + 1, turned.end());
    orders.push_back(rows + " " + joined(turned));
  }
  const std::string order = builder.choice(label + "_order", orders);
  builder.line(
      fmt::format("order {} {} {} {} {} {}.2", own, joined(outer), order, joined(summed), joined(unrolled), vector));
  if (target_.threads > 1) builder.line(fmt::format("parallel {} {}", own, joined(outer)));
  builder.line(fmt::format("vector {} {}.2", own, vector));
  builder.line(fmt::format("unroll {} {}", own, joined(unrolled)));
  builder.line(fmt::format("accumulate {} above {}", own, joined({joined(summed), joined(unrolled)})));
  for (int from = product_, to = 0; (to = fusable_consumer(computation_, from, product_)) >= 0; from = to)
    builder.line(fmt::format("fuse {} {}", name(from), name(to)));
  for (const int tensor : packable_tensors(computation_, here, true)) {
    if (computation_.tensors[std::size_t(tensor)].role != Role::constant) continue;
    const std::string& operand = computation_.tensors[std::size_t(tensor)].name;
    const std::string pack =
        fmt::format("pack {} {} above {} {} {}", own, operand, joined(outer), rows, joined(within));
    builder.line(builder.choice(label + "_pack_" + argument_name(operand), {"", pack}));
  }
  return joined({rows, joined(within)});
}

void WindowRows::lines_of_windows(SketchBuilder& builder) const {
  const Stage& here = stage(windows_);
  const std::string own = name(windows_), label = argument_name(own);
  const int column = column_ >= 0 ? window_axis_of(column_) : -1;
  std::vector<std::string> outer, summed, unrolled;
  std::string columns;
  const int rows = window_axis_of(row_);
  for (int a = 0; a + 1 < rank(windows_); ++a) {
    const auto& [along, extent] = axis(windows_, a);
    if (extent == 1) continue;
    (a == column ? columns : outer.emplace_back()) = along + ".0";
    if (a != column && a != rows) continue;
    const std::vector<std::vector<std::int64_t>> sizes =
        a == column ? each(register_tiles(extent, largest_register_tile)) : powers_of_two(1, extent, largest_rows);
    builder.line(fmt::format("tile {} {}{}", own, along, builder.sizes(label + "_" + along, sizes)));
    unrolled.push_back(along + ".1");
  }
  const std::string vector = vectors(windows_, largest_vectors, builder);
  unrolled.push_back(vector + ".1");
  for (int a = rank(windows_); a < int(here.axes.size()); ++a)
    if (axis(windows_, a).extent > 1) summed.push_back(axis(windows_, a).name + ".0");
  const std::string inner = joined({columns, vector + ".0"});
  builder.line(
      fmt::format("order {} {} {} {} {} {}.2", own, joined(outer), inner, joined(summed), joined(unrolled), vector));
  builder.line(fmt::format("vector {} {}.2", own, vector));
  std::vector<std::string> unrolls = {joined(summed)};
  if (summed.size() > 1) unrolls.push_back(summed.back());
  builder.line(
      fmt::format("unroll {} {}", own, joined({builder.choice(label + "_unroll", unrolls), joined(unrolled)})));
  builder.line(fmt::format("accumulate {} above {}", own, joined({joined(summed), joined(unrolled)})));
  for (std::size_t b = 0; b < between_.size(); ++b)
    builder.line(fmt::format("fuse {} {}", name(b == 0 ? windows_ : between_[b - 1]), name(between_[b])));
  if (pad_ >= 0 && !absorbs_padding())
    builder.line(fmt::format("compute {} {} above {} {}", own, name(pad_), outer.back(), inner));
}

SketchSpace WindowRows::sketch() const {
  SketchBuilder builder;
  if (absorbs_padding()) builder.line(fmt::format("absorb {} {}", name(windows_), name(pad_)));
  const std::string within = lines_of_product(builder);
  for (auto number = between_.rbegin(); number != between_.rend(); ++number)
    builder.line(fmt::format("compute {} {} above {}", name(product_), name(*number), within));
  builder.line(fmt::format("compute {} {} above {}", name(product_), name(windows_), within));
  lines_of_windows(builder);
  return builder.finish(argument_name(fmt::format("window_rows_{}_{}", name(windows_), name(product_))));
}

}  // namespace graft::codegen
