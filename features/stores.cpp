#include "features/stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "codegen/program/analysis.h"
#include "features/buffers.h"
#include "features/declared.h"
#include "features/operations.h"

namespace graft::features {
namespace {

using codegen::AccessSite;
using codegen::Analysis;
using codegen::LoopKind;
using codegen::LoopProgram;
using codegen::StoreContext;

constexpr int version = 1;  // raised when values change though the lists below do not

// --- the declared lists, in the order of the columns

#define GRAFT_WORK(X)                                                    \
  X(mad, "log2", "executed multiply-adds")                               \
  X(addsub, "log2", "other executed additions, subtractions, negations") \
  X(mul, "log2", "other executed multiplications")                       \
  X(divmod, "log2", "executed divisions")                                \
  X(cmp, "log2", "executed maxima and minima")                           \
  X(mathfunc, "log2", "executed exponentials and square roots")          \
  X(otherfunc, "log2", "other functions: there are none")

#define GRAFT_CONDITIONAL(X)                      \
  X(bool_op, "log2", "operations on bools: none") \
  X(select_op, "log2", "selections by a bool: none")

#define GRAFT_ANNOTATION(X)                                                                     \
  X(num, "log2", "number of loops of the kind around the store")                                \
  X(prod, "log2", "product of their extents")                                                   \
  X(len, "log2", "extent of the innermost")                                                     \
  X(none, "1", "1 without any")                                                                 \
  X(inner_spatial, "1", "1 if it is the innermost loop that moves the target")                  \
  X(middle_spatial, "1", "1 if it moves the target and is neither the innermost nor outermost") \
  X(outer_spatial, "1", "1 if it is the outermost loop that moves the target")                  \
  X(inner_reduce, "1", "1 if it is the innermost loop that does not move the target")           \
  X(middle_reduce, "1", "1 if it does not move the target and is neither of both")              \
  X(outer_reduce, "1", "1 if it is the outermost loop that does not move the target")           \
  X(mixed, "1", "1 if there are several in different positions")

#define GRAFT_GPU(X)                                            \
  X(is_gpu, "1", "1 with block or thread loops")                \
  X(block_x_len, "log2", "product of extents of block_x loops") \
  X(block_y_len, "log2", "of block_y loops")                    \
  X(block_z_len, "log2", "of block_z loops")                    \
  X(thread_x_len, "log2", "of thread_x loops")                  \
  X(thread_y_len, "log2", "of thread_y loops")                  \
  X(thread_z_len, "log2", "of thread_z loops")                  \
  X(vthread_len, "log2", "of virtual_thread loops")

#define GRAFT_BUFFER(X)                                                                                \
  X(read, "1", "1 if the store only reads the buffer")                                                 \
  X(write, "1", "1 if it only writes it")                                                              \
  X(read_write, "1", "1 if it does both")                                                              \
  X(bytes, "log2", "bytes of all executed accesses")                                                   \
  X(unique_bytes, "log2", "bytes touched in all of run, at most the buffer's")                         \
  X(lines, "log2",                                                                                     \
    "requested lines of 64 bytes: one an access, what loops repeat that do not move it counted once, " \
    "and for strides below a line that share of one")                                                  \
  X(unique_lines, "log2", "lines touched in all of run")                                               \
  X(loop_reuse, "1", "1 if the innermost reuse is by a loop that does not move the access")            \
  X(serial_reuse, "1", "1 if it is by another access in a loop")                                       \
  X(no_reuse, "1", "1 without reuse")                                                                  \
  X(reuse_dis_iter, "log2", "executions of the store between two uses")                                \
  X(reuse_dis_bytes, "log2", "bytes touched in the loop of the reuse, by one iteration")               \
  X(reuse_ct, "log2", "how often: the loop's extent, or the number of other accesses")                 \
  X(bytes_d_reuse_ct, "log2", "bytes / reuse_ct, twice the bytes without reuse")                       \
  X(unique_bytes_d_reuse_ct, "log2", "unique_bytes / reuse_ct, twice them without reuse")              \
  X(lines_d_reuse_ct, "log2", "lines / reuse_ct, twice them without reuse")                            \
  X(unique_lines_d_reuse_ct, "log2", "unique_lines / reuse_ct, twice them without reuse")              \
  X(stride, "signed log2", "elements that the innermost loop moves the access")

#define GRAFT_OUTER(X)                                                                   \
  X(alloc_size, "log2", "bytes of the target if it is a temporary")                      \
  X(alloc_prod, "log2", "alloc_size times alloc_outer_prod")                             \
  X(alloc_outer_prod, "log2", "product of extents of the loops around all its accesses") \
  X(alloc_inner_prod, "log2", "executions of the store for each of these iterations")    \
  X(outer_prod, "log2", "executions of the store")                                       \
  X(num_loops, "loops", "loops around the store")                                        \
  X(unrolled_copies, "log2",                                                             \
    "copies of the store in straight line: product of extents of the unrolled "          \
    "loops next to it, a vector loop between")

struct OfWork {
  enum { GRAFT_WORK(GRAFT_COLUMN) count };
};
struct OfConditional {
  enum { GRAFT_CONDITIONAL(GRAFT_COLUMN) count };
};
struct OfAnnotation {
  enum { GRAFT_ANNOTATION(GRAFT_COLUMN) count };
};
struct OfGpu {
  enum { GRAFT_GPU(GRAFT_COLUMN) count };
};
struct OfBuffer {
  enum { GRAFT_BUFFER(GRAFT_COLUMN) count };
};
struct OfOuter {
  enum { GRAFT_OUTER(GRAFT_COLUMN) count };
};
constexpr Declared work[] = {GRAFT_WORK(GRAFT_DECLARED)};
constexpr Declared conditional[] = {GRAFT_CONDITIONAL(GRAFT_DECLARED)};
constexpr Declared annotation[] = {GRAFT_ANNOTATION(GRAFT_DECLARED)};
constexpr Declared gpu[] = {GRAFT_GPU(GRAFT_DECLARED)};
constexpr Declared buffer_list[] = {GRAFT_BUFFER(GRAFT_DECLARED)};
constexpr Declared outer_list[] = {GRAFT_OUTER(GRAFT_DECLARED)};
constexpr std::array annotated{LoopKind::vector, LoopKind::unrolled, LoopKind::parallel};

constexpr int curve_samples = 10;
constexpr std::size_t integer_begin = OfWork::count, conditional_begin = 2 * OfWork::count;
constexpr std::size_t annotation_begin(std::size_t kind) {
  return conditional_begin + OfConditional::count + kind * OfAnnotation::count;
}
constexpr std::size_t gpu_begin = annotation_begin(annotated.size());
constexpr std::size_t buffer_begin(std::size_t slot) {
  return gpu_begin + OfGpu::count + slot * OfBuffer::count;
}
constexpr std::size_t curve_begin = buffer_begin(buffer_slots);
constexpr std::size_t outer_begin = curve_begin + curve_samples;
constexpr std::size_t columns = outer_begin + OfOuter::count;
static_assert(columns == 164);

std::vector<Feature> declared_features() {
  std::vector<Feature> list;
  declare(list, "float_", work);
  declare(list, "int_", work);
  declare(list, "", conditional);
  for (const LoopKind kind : annotated) declare(list, std::string(codegen::name_of(kind)) + "_", annotation);
  declare(list, "", gpu);
  for (int slot = 0; slot < buffer_slots; ++slot) declare(list, fmt::format("b{}.", slot), buffer_list);
  for (int i = 0; i < curve_samples; ++i)
    list.push_back({fmt::format("arith_intensity_curve_{}", i), "log2",
                    fmt::format("operations per byte of memory touched, where {} % of log2(1 + operations) are in the "
                                "loops around the store, counted from the innermost; between two loops a straight line",
                                100 * (i + 1) / curve_samples)});
  declare(list, "", outer_list);
  assert(list.size() == columns);
  return list;
}

// --- a program's stores together

// Accesses and bytes of one iteration of each loop, and where each temporary lives.
class Surroundings {
 public:
  Surroundings(const LoopProgram& program, const Analysis& analysis)
      : buffers_(program.buffers.size()),
        sites_in_(program.loops.size() * buffers_, 0),
        bytes_in_(program.loops.size(), 0),
        common_(buffers_, -1),
        path_of_(buffers_, nullptr) {
    std::size_t site = 0;
    for (const StoreContext& store : analysis.stores) {
      for (; site < analysis.sites.size() && analysis.sites[site].store == store.store; ++site)
        add(program, store, analysis.sites[site]);
    }
  }

  // Access sites of the buffer within the loop.
  int sites_in(int loop, int buffer) const { return sites_in_[std::size_t(loop) * buffers_ + std::size_t(buffer)]; }
  // Bytes of memory that one iteration of the loop touches.
  double bytes_in(int loop) const { return bytes_in_[std::size_t(loop)]; }
  // How many loops are around all accesses of the buffer; -1 for one that run does not access.
  int common_loops(int buffer) const { return common_[std::size_t(buffer)]; }

 private:
  void add(const LoopProgram& program, const StoreContext& store, const AccessSite& site) {
    const codegen::Buffer& buffer = program.buffers[std::size_t(site.buffer)];
    const std::int64_t element = codegen::bytes_of(buffer.dtype);
    for (std::size_t level = 0; level < store.loops.size(); ++level) {
      const std::size_t loop = std::size_t(store.loops[level]);
      ++sites_in_[loop * buffers_ + std::size_t(site.buffer)];
      if (buffer.scope != codegen::Scope::memory) continue;
      bytes_in_[loop] += double(level + 1 < site.touches.size() ? site.touches[level + 1].bytes : element);
    }
    int& common = common_[std::size_t(site.buffer)];
    if (common < 0) {
      common = int(store.loops.size());
      path_of_[std::size_t(site.buffer)] = &store;
    } else {
      const auto &first = path_of_[std::size_t(site.buffer)]->loops, &here = store.loops;
      int equal = 0;
      while (equal < common && equal < int(here.size()) && first[std::size_t(equal)] == here[std::size_t(equal)])
        ++equal;
      common = equal;
    }
  }

  std::size_t buffers_;
  std::vector<int> sites_in_;                 // [loop][buffer]
  std::vector<double> bytes_in_;              // by loop
  std::vector<int> common_;                   // by buffer
  std::vector<const StoreContext*> path_of_;  // by buffer: its first access
};

// --- one store

struct View {
  const LoopProgram& program;
  const StoreContext& store;
  std::span<const AccessSite> sites;  // target first
  const Surroundings& around;

  const codegen::Loop& loop(std::size_t level) const { return program.loops[std::size_t(store.loops[level])]; }
  const codegen::Buffer& buffer(const AccessSite& site) const { return program.buffers[std::size_t(site.buffer)]; }
  bool in_memory(const AccessSite& site) const { return buffer(site).scope == codegen::Scope::memory; }
  std::int64_t element(const AccessSite& site) const { return codegen::bytes_of(buffer(site).dtype); }
};

void write_work(const View& view, const Operations& once, std::span<float> row) {
  static_assert(int(OfWork::mad) == int(Operations::mad) && int(OfWork::mathfunc) == int(Operations::special));
  for (std::size_t kind = 0; kind < Operations::kinds; ++kind) {
    row[kind] = log_count(double(once.floating[kind]) * double(view.store.executions));
    row[integer_begin + kind] = log_count(double(once.integer[kind]) * double(view.store.executions));
  }
}

// The column of GRAFT_ANNOTATION for the loop's position among those that move the target as it does.
int position_of(const View& view, std::size_t level) {
  const AccessSite& target = view.sites.front();
  const auto moves = [&](std::size_t other) { return target.touches[other].stride != 0; };
  const bool spatial = moves(level);
  bool inner = true, outer = true;
  for (std::size_t other = 0; other < view.store.loops.size(); ++other) {
    if (other == level || moves(other) != spatial) continue;
    (other < level ? outer : inner) = false;
  }
  if (inner) return spatial ? OfAnnotation::inner_spatial : OfAnnotation::inner_reduce;
  if (outer) return spatial ? OfAnnotation::outer_spatial : OfAnnotation::outer_reduce;
  return spatial ? OfAnnotation::middle_spatial : OfAnnotation::middle_reduce;
}

void write_annotation(const View& view, LoopKind kind, std::span<float> out) {
  double number = 0, product = 1, innermost = 0;
  int position = OfAnnotation::none;
  for (std::size_t level = 0; level < view.store.loops.size(); ++level) {
    if (view.loop(level).kind != kind) continue;
    const int here = position_of(view, level);
    position = number == 0 || position == here ? here : int(OfAnnotation::mixed);
    innermost = double(view.loop(level).extent);
    product *= innermost;
    ++number;
  }
  out[OfAnnotation::num] = log_count(number);
  out[OfAnnotation::prod] = number > 0 ? log_count(product) : 0;
  out[OfAnnotation::len] = log_count(innermost);
  out[std::size_t(position)] = 1;
}

void write_gpu(const View& view, std::span<float> out) {
  constexpr std::array kinds{LoopKind::block_x,  LoopKind::block_y,  LoopKind::block_z,       LoopKind::thread_x,
                             LoopKind::thread_y, LoopKind::thread_z, LoopKind::virtual_thread};
  static_assert(kinds.size() + 1 == OfGpu::count);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    double product = 0;
    for (std::size_t level = 0; level < view.store.loops.size(); ++level) {
      if (view.loop(level).kind == kinds[k]) product = std::max(product, 1.0) * double(view.loop(level).extent);
    }
    out[k + 1] = log_count(product);
    if (product > 0 && kinds[k] != LoopKind::virtual_thread) out[OfGpu::is_gpu] = 1;
  }
}

struct BufferAccess {
  const AccessSite* first = nullptr;  // of the store's accesses
  int sites = 0;
  bool reads = false, writes = false;
  double bytes = 0, unique_bytes = 0, lines = 0, unique_lines = 0;
};

// Requested lines of one access in all executions.
double requested_lines(const View& view, const AccessSite& site) {
  double lines = double(view.store.executions);
  for (std::size_t level = view.store.loops.size(); level-- > 0;) {
    const std::int64_t stride = site.touches[level].stride;
    if (stride != 0) {
      const double share = std::abs(double(stride)) * double(view.element(site)) / double(codegen::line_bytes);
      return std::max(1.0, lines * std::min(1.0, share));
    }
    lines /= double(view.loop(level).extent);
  }
  return 1;
}

// Buffers in memory, most lines first.
std::vector<BufferAccess> buffer_accesses(const View& view) {
  std::vector<BufferAccess> accesses;
  const bool combines = view.program.stores[std::size_t(view.store.store)].combine != codegen::Combine::none;
  for (const AccessSite& site : view.sites) {
    if (!view.in_memory(site)) continue;
    auto found = std::find_if(accesses.begin(), accesses.end(),
                              [&](const BufferAccess& access) { return access.first->buffer == site.buffer; });
    if (found == accesses.end()) {
      accesses.emplace_back().first = &site;
      found = accesses.end() - 1;
    }
    const bool twice = site.writes && combines;  // read and written
    ++found->sites;
    found->writes = found->writes || site.writes;
    found->reads = found->reads || !site.writes || twice;
    found->bytes += (twice ? 2 : 1) * double(view.store.executions * view.element(site));
    found->lines += requested_lines(view, site);
    found->unique_bytes += double(site.touches.empty() ? view.element(site) : site.touches.front().bytes);
    found->unique_lines += double(site.touches.empty() ? 1 : site.touches.front().lines);
  }
  for (BufferAccess& access : accesses) {
    const double bytes = double(view.buffer(*access.first).bytes());
    access.unique_bytes = std::min(access.unique_bytes, bytes);
    access.unique_lines = std::min(access.unique_lines, std::ceil(bytes / double(codegen::line_bytes)));
  }
  std::stable_sort(accesses.begin(), accesses.end(), [](const BufferAccess& a, const BufferAccess& b) {
    return a.lines != b.lines ? a.lines > b.lines : a.bytes > b.bytes;
  });
  return accesses;
}

struct Reuse {
  int column = OfBuffer::no_reuse;
  double iterations = 0, bytes = 0, count = 0;
};

Reuse innermost_reuse(const View& view, const BufferAccess& access) {
  double inside = 1;  // executions of the store in one iteration of the loop
  for (std::size_t level = view.store.loops.size(); level-- > 0;) {
    const int loop = view.store.loops[level];
    const double extent = double(view.loop(level).extent);
    const bool moves = std::any_of(view.sites.begin(), view.sites.end(), [&](const AccessSite& site) {
      return site.buffer == access.first->buffer && site.touches[level].stride != 0;
    });
    if (!moves && extent > 1) return {OfBuffer::loop_reuse, inside, view.around.bytes_in(loop), extent};
    const int others = view.around.sites_in(loop, access.first->buffer) - 1;
    if (others > 0) return {OfBuffer::serial_reuse, inside, view.around.bytes_in(loop), double(others)};
    inside *= extent;
  }
  return {};
}

void write_buffer(const View& view, const BufferAccess& access, std::span<float> out) {
  out[access.reads && access.writes ? OfBuffer::read_write : access.writes ? OfBuffer::write : OfBuffer::read] = 1;
  const Reuse reuse = innermost_reuse(view, access);
  const double factor = reuse.count > 0 ? 1 / reuse.count : 2;
  const std::array values{access.bytes, access.unique_bytes, access.lines, access.unique_lines};
  for (std::size_t v = 0; v < values.size(); ++v) {
    out[OfBuffer::bytes + v] = log_count(values[v]);
    out[OfBuffer::bytes_d_reuse_ct + v] = log_count(values[v] * factor);
  }
  out[std::size_t(reuse.column)] = 1;
  out[OfBuffer::reuse_dis_iter] = log_count(reuse.iterations);
  out[OfBuffer::reuse_dis_bytes] = log_count(reuse.bytes);
  out[OfBuffer::reuse_ct] = log_count(reuse.count);
  const auto& touches = access.first->touches;
  out[OfBuffer::stride] = touches.empty() ? 0 : signed_log(double(touches.back().stride));
}

void write_curve(const View& view, double operations_once, std::span<float> out) {
  // From the store itself outwards.
  std::vector<double> done, intensity;
  for (std::size_t level = view.store.loops.size() + 1; level-- > 0;) {
    const bool inside = level < view.store.loops.size();
    const double operations = operations_once * (inside ? double(view.store.bottom_up[level]) : 1);
    double bytes = 0;
    for (const AccessSite& site : view.sites) {
      if (view.in_memory(site)) bytes += double(inside ? site.touches[level].bytes : view.element(site));
    }
    done.push_back(std::log2(1 + operations));
    intensity.push_back(std::log2(1 + operations / std::max(bytes, 1.0)));
  }
  std::size_t point = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double x = done.back() * double(i + 1) / double(out.size());
    while (point + 1 < done.size() && done[point] < x) ++point;
    if (point == 0 || done[point] <= done[point - 1]) {
      out[i] = float(intensity[point]);
    } else {
      const double share = std::min(1.0, (x - done[point - 1]) / (done[point] - done[point - 1]));
      out[i] = float(intensity[point - 1] + share * (intensity[point] - intensity[point - 1]));
    }
  }
}

void write_outer(const View& view, std::span<float> out) {
  const AccessSite& target = view.sites.front();
  const double executions = double(view.store.executions);
  if (const codegen::Buffer& buffer = view.buffer(target); buffer.role == codegen::Role::temporary) {
    const int common = view.around.common_loops(target.buffer);
    const double outside = common > 0 ? double(view.store.top_down[std::size_t(common - 1)]) : 1;
    out[OfOuter::alloc_size] = log_count(double(buffer.bytes()));
    out[OfOuter::alloc_prod] = log_count(double(buffer.bytes()) * outside);
    out[OfOuter::alloc_outer_prod] = log_count(outside);
    out[OfOuter::alloc_inner_prod] = log_count(executions / outside);
  }
  double copies = 1;
  for (std::size_t level = view.store.loops.size(); level-- > 0;) {
    const codegen::Loop& loop = view.loop(level);
    if (loop.kind != LoopKind::vector && loop.kind != LoopKind::unrolled) break;
    if (loop.kind == LoopKind::unrolled) copies *= double(loop.extent);
  }
  out[OfOuter::outer_prod] = log_count(executions);
  out[OfOuter::num_loops] = float(view.store.loops.size());
  out[OfOuter::unrolled_copies] = log_count(copies);
}

Encoded encode_program(const Subject& subject) {
  const LoopProgram& program = *subject.program;
  const Analysis analysis = codegen::analyse(program, codegen::Lines::counted);
  const Surroundings around(program, analysis);
  Encoded encoded;
  encoded.rows = base::Matrix(std::int64_t(analysis.stores.size()), std::int64_t(columns));
  encoded.begins.push_back(encoded.rows.rows);
  std::size_t site = 0;
  for (std::size_t s = 0; s < analysis.stores.size(); ++s) {
    const StoreContext& store = analysis.stores[s];
    const std::size_t first = site;
    while (site < analysis.sites.size() && analysis.sites[site].store == store.store) ++site;
    const View view{program, store, std::span(analysis.sites).subspan(first, site - first), around};
    const Operations once = operations(program, program.stores[std::size_t(store.store)]);

    const std::span<float> row = encoded.rows.row(std::int64_t(s));
    write_work(view, once, row);
    for (std::size_t kind = 0; kind < annotated.size(); ++kind)
      write_annotation(view, annotated[kind], row.subspan(annotation_begin(kind), OfAnnotation::count));
    write_gpu(view, row.subspan(gpu_begin, OfGpu::count));
    const std::vector<BufferAccess> accesses = buffer_accesses(view);
    for (std::size_t slot = 0; slot < accesses.size() && slot < std::size_t(buffer_slots); ++slot)
      write_buffer(view, accesses[slot], row.subspan(buffer_begin(slot), OfBuffer::count));
    write_curve(view, double(once.total()), row.subspan(curve_begin, curve_samples));
    write_outer(view, row.subspan(outer_begin, OfOuter::count));
  }
  return encoded;
}

}  // namespace

Encoding stores() {
  return encoding_of(
      "stores", "Ansor's features of each store of run, computed as their names say; log2 stands for log2(1 + count)",
      Shape::rows, declared_features(), version, encode_program);
}

}  // namespace graft::features
