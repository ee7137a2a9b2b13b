#include "features/inside.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "codegen/program/analysis.h"

namespace graft::features {
namespace {

constexpr double page_bytes = 4096;

}  // namespace

void Spread::widen(double stride_bytes, std::int64_t extent) {
  if (stride_bytes == 0 || extent == 1) return;
  const double reach = stride_bytes * double(extent - 1);
  if (stride_bytes <= std::max(run_, double(codegen::line_bytes))) {
    run_ += reach;
  } else {
    runs_ *= double(extent);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      const std::int64_t step = std::gcd(std::int64_t(stride_bytes), windows[w]);
      places_[w] *= double(std::min(extent, windows[w] / step));
    }
  }
  if (stride_bytes <= std::max(page_run_, page_bytes))
    page_run_ += reach;
  else
    page_runs_ *= double(extent);
}

double Spread::pages() const {
  return page_runs_ * std::ceil(page_run_ / page_bytes);
}

double Spread::crowding(std::size_t window) const {
  const double lines = std::ceil(run_ / double(codegen::line_bytes));
  return runs_ * lines / std::min(places_[window] * lines, double(windows[window] / codegen::line_bytes));
}

std::vector<Inside> insides(const codegen::LoopProgram& program) {
  struct Most {
    std::int64_t lines = 0;
    double pages = 0;
  };
  const std::size_t loops = program.loops.size();
  std::vector<Most> most(loops * program.buffers.size());  // of a buffer in a loop
  std::vector<Inside> all(loops);
  codegen::StoreWalk walk(program, codegen::Lines::counted);
  while (walk.next()) {
    const std::span<const int> around = walk.context().loops;
    const auto add = [&](const codegen::Access& access) {
      const codegen::Buffer& buffer = program.buffers[std::size_t(access.tensor)];
      if (buffer.scope != codegen::Scope::memory) return;
      const std::span<const codegen::Touch> touches = walk.touches(access);
      const double element = double(codegen::bytes_of(buffer.dtype));
      Spread spread(element);
      for (std::size_t level = touches.size(); level-- > 0;) {
        const std::size_t loop = std::size_t(around[level]);
        spread.widen(std::abs(double(touches[level].stride)) * element, program.loops[loop].extent);
        Most& largest = most[std::size_t(access.tensor) * loops + loop];
        largest.lines = std::max(largest.lines, touches[level].lines);
        largest.pages = std::max(largest.pages, spread.pages());
        for (std::size_t w = 0; w < Spread::windows.size(); ++w)
          all[loop].crowding[w] = std::max(all[loop].crowding[w], spread.crowding(w));
      }
    };
    const codegen::Store& store = program.stores[std::size_t(walk.context().store)];
    add(store.target);
    for (const codegen::Access& load : store.value.loads) add(load);
  }
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    for (std::size_t l = 0; l < loops; ++l) {
      all[l].bytes += double(most[b * loops + l].lines * codegen::line_bytes);
      all[l].pages += most[b * loops + l].pages;
    }
  }
  return all;
}

}  // namespace graft::features
