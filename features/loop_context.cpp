#include "features/loop_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "features/declared.h"
#include "features/part_columns.h"

namespace graft::features {
namespace {

constexpr int version = 1;  // raised when values change though the list does not

std::vector<Feature> declared_features() {
  std::vector<Feature> list;
  list.push_back({"loops", "loops", "loops of run, those that are not kept included"});
  for (int loop = 0; loop < kept_loops; ++loop) declare_part(list, fmt::format("l{:02}.", loop));
  return list;
}

Encoded encode_program(const Subject& subject) {
  const Nest nest = features::nest(*subject.program);
  std::vector<std::size_t> loops;
  for (std::size_t p = 0; p < nest.parts.size(); ++p) {
    if (nest.parts[p].is_loop) loops.push_back(p);
  }
  base::Matrix row(1, 1 + kept_loops * std::int64_t(part_columns()));
  row.at(0, 0) = float(loops.size());
  if (loops.size() > std::size_t(kept_loops)) {
    std::stable_sort(loops.begin(), loops.end(),
                     [&](std::size_t a, std::size_t b) { return nest.parts[a].executions > nest.parts[b].executions; });
    loops.resize(std::size_t(kept_loops));
    std::sort(loops.begin(), loops.end());
  }
  for (std::size_t l = 0; l < loops.size(); ++l)
    write_part(*subject.program, nest.parts[loops[l]], row.row(0).subspan(1 + l * part_columns(), part_columns()));
  return one_row_each(std::move(row));
}

}  // namespace

Encoding loop_context() {
  return encoding_of("loop_context",
                     fmt::format("the {} loops of run with the most executions in them, in order: extent, kind, "
                                 "products of extents, arithmetic, control, and what each does to the largest "
                                 "buffers; log2 stands for log2(1 + count)",
                                 kept_loops),
                     Shape::row, declared_features(), version, encode_program);
}

}  // namespace graft::features
