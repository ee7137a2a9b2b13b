#include "features/encoding.h"

#include <fmt/format.h>

#include <cassert>

#include "base/error.h"
#include "base/parallel.h"
#include "features/context_relation.h"

namespace graft::features {

const std::vector<Encoding>& encodings() {
  static const std::vector<Encoding> all{context_relation()};
  return all;
}

const Encoding& encoding_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Encoding& encoding : encodings()) {
    if (encoding.name == name) return encoding;
    known.push_back(encoding.name);
  }
  throw base::UserError(fmt::format("unknown encoding '{}'{}", name, base::did_you_mean(name, known)));
}

base::Matrix encode(const Encoding& encoding, std::span<const codegen::LoopProgram> programs, int threads) {
  assert(encoding.encode != nullptr);
  base::Matrix matrix(std::int64_t(programs.size()), std::int64_t(encoding.features.size()));
  base::parallel_for(matrix.rows, threads,
                     [&](std::int64_t row) { encoding.encode(programs[std::size_t(row)], matrix.row(row)); });
  return matrix;
}

}  // namespace graft::features
