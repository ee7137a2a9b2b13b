#include "codegen/program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "codegen/program/check.h"
#include "codegen/program/intrinsic.h"

namespace graft::codegen {
namespace {

using base::hash_bytes;
using base::hash_combine;

bool is_identifier(std::string_view name) {
  const auto begins = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto continues = [&](char c) { return begins(c) || (c >= '0' && c <= '9') || c == '.'; };
  return !name.empty() && begins(name.front()) && std::all_of(name.begin(), name.end(), continues);
}

// Numbers that the loops of `body` get in its order; loops may be stored in any order without being another program.
void number_loops(const Body& body, std::vector<int>& numbers, int& next) {
  for (const Node& node : body)
    if (node.kind == Node::Kind::loop) numbers[std::size_t(node.item)] = next++;
}

std::uint64_t hash_of(const Affine& form, const std::vector<int>& numbers) {
  // A sum: the order of terms follows the positions of loops, which do not count.
  std::uint64_t sum = base::hash_mix(std::uint64_t(form.constant));
  for (const Term& term : form.terms)
    sum += hash_combine(std::uint64_t(numbers[std::size_t(term.variable)]), std::uint64_t(term.coefficient));
  return base::hash_mix(sum);
}

std::uint64_t hash_of(const Access& access, const std::vector<int>& numbers) {
  std::uint64_t hash = hash_combine(std::uint64_t(access.tensor), access.index.size());
  for (const Affine& form : access.index) hash = hash_combine(hash, hash_of(form, numbers));
  for (const int dimension : access.gathered) hash = hash_combine(hash, std::uint64_t(dimension));
  return hash;
}

std::uint64_t hash_of(const Store& store, const std::vector<int>& numbers) {
  std::uint64_t hash = hash_combine(hash_of(store.target, numbers), hash_bytes(name_of(store.combine)));
  for (const ValueNode& node : store.value.nodes) {
    hash = hash_combine(hash, hash_bytes(name_of(node.op)));
    if (node.op == Op::constant) hash = hash_combine(hash, std::bit_cast<std::uint64_t>(node.number + 0.0));  // -0 is 0
    if (node.op == Op::position)
      hash = hash_combine(hash, hash_of(store.value.positions[std::size_t(node.load)], numbers));
    if (node.op == Op::load) hash = hash_combine(hash, hash_of(store.value.loads[std::size_t(node.load)], numbers));
    if (node.op != Op::load || node.a >= 0)
      hash = hash_combine(hash_combine(hash, std::uint64_t(node.a + 1)), std::uint64_t(node.b + 1));
    if (node.c >= 0) hash = hash_combine(hash, std::uint64_t(node.c + 1));
  }
  return hash;
}

class Comparison {
 public:
  Comparison(const LoopProgram& a, const LoopProgram& b) : a_(a), b_(b) {
    numbers_a_.assign(a.loops.size(), -1);
    numbers_b_.assign(b.loops.size(), -1);
  }

  bool same(const Body& a, const Body& b) {
    if (a.size() != b.size()) return false;
    number_loops(a, numbers_a_, next_a_);
    number_loops(b, numbers_b_, next_b_);
    for (std::size_t n = 0; n < a.size(); ++n) {
      if (a[n].kind != b[n].kind || a[n].end != b[n].end) return false;
      if (a[n].kind == Node::Kind::loop) {
        const Loop& x = a_.loops[std::size_t(a[n].item)];
        const Loop& y = b_.loops[std::size_t(b[n].item)];
        if (x.extent != y.extent || x.kind != y.kind || (x.intrinsic < 0) != (y.intrinsic < 0)) return false;
        if (!same(x.prefetches, y.prefetches)) return false;
        if (x.intrinsic >= 0 && !(*a_.intrinsics[std::size_t(x.intrinsic)] == *b_.intrinsics[std::size_t(y.intrinsic)]))
          return false;
      } else if (!same(a_.stores[std::size_t(a[n].item)], b_.stores[std::size_t(b[n].item)])) {
        return false;
      }
    }
    return true;
  }

 private:
  bool same(const Store& a, const Store& b) const {
    return a.combine == b.combine && same(a.target, b.target) && a.value.nodes == b.value.nodes &&
           same(a.value.loads, b.value.loads) &&
           std::equal(a.value.positions.begin(), a.value.positions.end(), b.value.positions.begin(),
                      b.value.positions.end(), [this](const Affine& x, const Affine& y) { return same(x, y); });
  }
  bool same(const std::vector<Access>& a, const std::vector<Access>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [this](const Access& x, const Access& y) { return same(x, y); });
  }
  bool same(const Access& a, const Access& b) const {
    return a.tensor == b.tensor && a.padded == b.padded && a.gathered == b.gathered &&
           std::equal(a.index.begin(), a.index.end(), b.index.begin(), b.index.end(),
                      [this](const Affine& x, const Affine& y) { return same(x, y); });
  }
  bool same(const Affine& a, const Affine& b) const {
    if (a.constant != b.constant || a.terms.size() != b.terms.size()) return false;
    return std::all_of(a.terms.begin(), a.terms.end(), [&](const Term& x) {
      return std::any_of(b.terms.begin(), b.terms.end(), [&](const Term& y) {
        return x.coefficient == y.coefficient &&
               numbers_a_[std::size_t(x.variable)] == numbers_b_[std::size_t(y.variable)];
      });
    });
  }

  const LoopProgram& a_;
  const LoopProgram& b_;
  std::vector<int> numbers_a_, numbers_b_;
  int next_a_ = 0, next_b_ = 0;
};

class Checker {
 public:
  Checker(const LoopProgram& program, const Places& places) : program_(program), places_(places) {}

  void run() {
    check_buffers();
    seen_loops_.assign(program_.loops.size(), false);
    seen_stores_.assign(program_.stores.size(), false);
    open_.assign(program_.loops.size(), false);
    check_body(program_.prepare, true);
    check_body(program_.run, false);
    if (program_.run.empty()) fail(places_.whole, "'run' is empty; a program has at least one store");
    if (const auto unused = first_unseen(seen_loops_); unused >= 0)
      fail(loop_place(unused), "a loop outside of any body");
    if (const auto unused = first_unseen(seen_stores_); unused >= 0)
      fail(store_place(unused), "a store outside of any body");
  }

 private:
  [[noreturn]] static void fail(const std::string& place, const std::string& message) {
    throw base::UserError(place, message);
  }
  static int first_unseen(const std::vector<bool>& seen) {
    const auto found = std::find(seen.begin(), seen.end(), false);
    return found == seen.end() ? -1 : int(found - seen.begin());
  }
  const std::string& place_of(const std::vector<std::string>& places, int item) const {
    return std::size_t(item) < places.size() ? places[std::size_t(item)] : places_.whole;
  }
  const std::string& buffer_place(int buffer) const { return place_of(places_.buffers, buffer); }
  const std::string& loop_place(int loop) const { return place_of(places_.loops, loop); }
  const std::string& store_place(int store) const { return place_of(places_.stores, store); }

  void check_buffers() const {
    std::set<std::string_view> names;
    bool temporaries = false;
    for (int b = 0; b < int(program_.buffers.size()); ++b) {
      const Buffer& buffer = program_.buffers[std::size_t(b)];
      const std::string& place = buffer_place(b);
      if (!is_identifier(buffer.name))
        fail(place, fmt::format("'{}' cannot name a buffer; use letters, digits, '_' and '.'", buffer.name));
      if (!names.insert(buffer.name).second) fail(place, fmt::format("a second buffer named '{}'", buffer.name));
      if (buffer.shape.size() > most_dimensions)
        fail(place, fmt::format("buffer '{}' has {} dimensions; at most {} are possible", buffer.name,
                                buffer.shape.size(), most_dimensions));
      std::int64_t elements = 1;
      for (const std::int64_t extent : buffer.shape) {
        if (extent <= 0) fail(place, fmt::format("extent {} of buffer '{}' must be at least 1", extent, buffer.name));
        if (extent > largest_count / elements)
          fail(place, fmt::format("buffer '{}' has more than 2^50 elements", buffer.name));
        elements *= extent;
      }
      if (buffer.scope != Scope::memory && buffer.role != Role::temporary)
        fail(place, fmt::format("{} buffer '{}' cannot be in {}; only temporaries can", name_of(buffer.role),
                                buffer.name, buffer.scope == Scope::group ? "group memory" : "registers"));
      if (buffer.is_literal()) check_literal(buffer, elements, place);
      if (!buffer.layout.is_plain()) check_layout(buffer, place);
      if (buffer.role != Role::temporary && temporaries)
        fail(place, fmt::format("{} buffer '{}' comes after a temporary one; parameters come first",
                                name_of(buffer.role), buffer.name));
      temporaries = temporaries || buffer.role == Role::temporary;
    }
  }

  static void check_layout(const Buffer& buffer, const std::string& place) {
    if (buffer.role == Role::temporary)
      fail(place, fmt::format("temporary buffer '{}' has a layout; only parameters can", buffer.name));
    if (buffer.layout.parts.size() != buffer.shape.size())
      fail(place, fmt::format("the layout of '{}' has {} dimensions instead of {}", buffer.name,
                              buffer.layout.parts.size(), buffer.shape.size()));
    const auto stored = stored_shape(buffer.layout, logical_shape(buffer.layout, buffer.shape));
    if (!stored) fail(place, fmt::format("the layout of '{}': {}", buffer.name, stored.reason().text));
    if (*stored != buffer.shape) fail(place, fmt::format("the layout of '{}' is of another shape", buffer.name));
  }

  static void check_literal(const Buffer& buffer, std::int64_t elements, const std::string& place) {
    if (buffer.role != Role::temporary || buffer.scope != Scope::memory)
      fail(place, fmt::format("literal '{}' must be a temporary in memory", buffer.name));
    if (std::int64_t(buffer.values.size()) != elements)
      fail(place, fmt::format("{} values for the {} elements of '{}'", buffer.values.size(), elements, buffer.name));
    for (const double value : buffer.values)
      if (!std::isfinite(value) ||
          kept(std::round(value), buffer.dtype) != (is_floating(buffer.dtype) ? std::round(value) : value))
        fail(place,
             fmt::format("{} in literal '{}' is not a number of type {}", value, buffer.name, name_of(buffer.dtype)));
  }

  void check_body(const Body& body, bool prepare) {
    if (body.size() > std::size_t(1) << 24) fail(places_.whole, "too many nodes");
    path_.clear();
    std::vector<int> ends;
    std::vector<std::int64_t> trips{1};
    for (int n = 0; n < int(body.size()); ++n) {
      while (!ends.empty() && ends.back() == n) close_loop(ends, trips);
      const Node& node = body[std::size_t(n)];
      const bool is_loop = node.kind == Node::Kind::loop;
      const int limit = ends.empty() ? int(body.size()) : ends.back();
      const std::size_t items = is_loop ? program_.loops.size() : program_.stores.size();
      if (node.item < 0 || std::size_t(node.item) >= items || node.end <= n || node.end > limit ||
          (!is_loop && node.end != n + 1))
        fail(places_.whole, fmt::format("node {} of '{}' is malformed", n, prepare ? "prepare" : "run"));
      std::vector<bool>& seen = is_loop ? seen_loops_ : seen_stores_;
      if (seen[std::size_t(node.item)])
        fail(places_.whole, fmt::format("{} {} stands in two places", is_loop ? "loop" : "store", node.item));
      seen[std::size_t(node.item)] = true;
      if (is_loop) {
        check_loop(node, n);
        const std::int64_t extent = program_.loops[std::size_t(node.item)].extent;
        if (extent > largest_count / trips.back())
          fail(loop_place(node.item), "the loops from the outermost to this one run more than 2^50 times");
        trips.push_back(trips.back() * extent);
        ends.push_back(node.end);
        path_.push_back(node.item);
        open_[std::size_t(node.item)] = true;
        check_prefetches(body, n);
      } else {
        check_store(node.item, prepare);
      }
    }
    while (!ends.empty()) close_loop(ends, trips);
    check_nests(body);
  }

  void close_loop(std::vector<int>& ends, std::vector<std::int64_t>& trips) {
    ends.pop_back();
    trips.pop_back();
    open_[std::size_t(path_.back())] = false;
    path_.pop_back();
  }

  void check_loop(const Node& node, int position) const {
    const Loop& loop = program_.loops[std::size_t(node.item)];
    const std::string& place = loop_place(node.item);
    if (!is_identifier(loop.name))
      fail(place, fmt::format("'{}' cannot name a loop; use letters, digits, '_' and '.'", loop.name));
    if (loop.extent <= 0) fail(place, fmt::format("extent {} of loop '{}' must be at least 1", loop.extent, loop.name));
    if (node.end == position + 1) fail(place, fmt::format("loop '{}' has no body", loop.name));
    if (path_.size() >= deepest_nest) fail(place, fmt::format("more than {} loops in each other", deepest_nest));
    for (const int outer : path_) {
      const Loop& around = program_.loops[std::size_t(outer)];
      if (around.name == loop.name) fail(place, fmt::format("loop '{}' stands inside a loop of that name", loop.name));
      if (around.kind == LoopKind::vector)
        fail(place, fmt::format("loop '{}' stands inside vector loop '{}', which may only hold stores", loop.name,
                                around.name));
    }
  }

  // Once every loop and store of the body is known to be well formed.
  void check_nests(const Body& body) const {
    for (int n = 0; n < int(body.size()); ++n) {
      if (body[std::size_t(n)].kind != Node::Kind::loop) continue;
      const int item = body[std::size_t(n)].item;
      const int intrinsic = program_.loops[std::size_t(item)].intrinsic;
      if (intrinsic == -1) continue;
      if (intrinsic < 0 || std::size_t(intrinsic) >= program_.intrinsics.size())
        fail(loop_place(item), fmt::format("there is no intrinsic {}", intrinsic));
      const base::Result<Match> found = match(program_, body, n, *program_.intrinsics[std::size_t(intrinsic)]);
      if (!found) fail(loop_place(item), found.reason().text);
      for (const int inner : found->loops) {
        const Loop& loop = program_.loops[std::size_t(inner)];
        if (loop.kind != LoopKind::unrolled)
          fail(loop_place(inner),
               fmt::format("loop '{}' of an intrinsic's nest is {}, not unrolled", loop.name, name_of(loop.kind)));
        if (inner != item && loop.intrinsic != -1)
          fail(loop_place(inner), fmt::format("loop '{}' stands inside an intrinsic's nest", loop.name));
        if (!loop.prefetches.empty())
          fail(loop_place(inner), fmt::format("loop '{}' of an intrinsic's nest prefetches", loop.name));
      }
    }
  }

  void check_prefetches(const Body& body, int at) const {
    const int item = body[std::size_t(at)].item;
    const Loop& loop = program_.loops[std::size_t(item)];
    const std::string& place = loop_place(item);
    if (loop.prefetches.size() > longest_value)
      fail(place, fmt::format("loop '{}' has {} prefetches; at most {} are possible", loop.name, loop.prefetches.size(),
                              longest_value));
    if (!loop.prefetches.empty() && loop.kind != LoopKind::serial && loop.kind != LoopKind::unrolled)
      fail(place,
           fmt::format("{} loop '{}' prefetches; only serial and unrolled ones can", name_of(loop.kind), loop.name));
    for (const Access& access : loop.prefetches) {
      check_access(access, place, true);
      const Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
      if (buffer.scope != Scope::memory || buffer.is_literal())
        fail(place, fmt::format("a prefetch of '{}', which is not in memory", buffer.name));
      if (!touches(program_, body, at, access.tensor))
        fail(place, fmt::format("a prefetch of '{}', which loop '{}' does not touch", buffer.name, loop.name));
    }
  }

  void check_store(int item, bool prepare) const {
    const Store& store = program_.stores[std::size_t(item)];
    const std::string& place = store_place(item);
    check_access(store.target, place);
    const Buffer& target = program_.buffers[std::size_t(store.target.tensor)];
    if (target.role == Role::input || target.role == Role::constant)
      fail(place, fmt::format("{} buffer '{}' is written", name_of(target.role), target.name));
    if (target.is_literal()) fail(place, fmt::format("literal '{}' is written", target.name));
    if (prepare && target.role == Role::output)
      fail(place, fmt::format("output buffer '{}' is written in 'prepare'", target.name));
    for (const Access& load : store.value.loads) {
      check_access(load, place);
      const Buffer& source = program_.buffers[std::size_t(load.tensor)];
      if (prepare && (source.role == Role::input || source.role == Role::output))
        fail(place, fmt::format("'prepare' reads {} buffer '{}'; it may depend on constants only", name_of(source.role),
                                source.name));
      for (std::size_t g = 0; g < load.gathered.size(); ++g) {
        const int d = load.gathered[g];
        if (d < 0 || std::size_t(d) >= load.index.size() || (g > 0 && d <= load.gathered[g - 1]) ||
            load.index[std::size_t(d)] != Affine(0))
          fail(place, fmt::format("a malformed load of '{}' at indices that are values", source.name));
        if (source.scope == Scope::registers)
          fail(place, fmt::format("register buffer '{}' is indexed by a value", source.name));
      }
    }
    check_value(store.value, target.dtype, place);
  }

  void check_value(const Value& value, DType target, const std::string& place) const {
    if (value.nodes.empty() || value.nodes.size() > longest_value)
      fail(place, fmt::format("a value of {} operations; 1 to {} are possible", value.nodes.size(), longest_value));
    if (const auto problem = nodes_problem(value)) fail(place, *problem);
    const std::vector<NodeType> types = types_of(
        value, target, [&](const Access& access) { return program_.buffers[std::size_t(access.tensor)].dtype; });
    for (const Affine& form : value.positions) check_loops(form, "a position", place);
    for (std::size_t n = 0; n < value.nodes.size(); ++n) {
      const ValueNode& node = value.nodes[n];
      const DType type = types[n].result;
      if (node.op != Op::constant) continue;
      if (std::isnan(node.number)) fail(place, "a constant that is not a number");
      // An infinity is the end of an integer's range: what a maximum starts from.
      if (!is_floating(type) && std::isfinite(node.number) && std::abs(node.number) > 0x1p31)
        fail(place, fmt::format("constant {} does not fit {}", node.number, name_of(type)));
    }
  }

  // `ahead`: of a prefetch.
  void check_access(const Access& access, const std::string& place, bool ahead = false) const {
    if (access.tensor < 0 || std::size_t(access.tensor) >= program_.buffers.size())
      fail(place, fmt::format("there is no buffer {}", access.tensor));
    const Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
    if (access.padded) fail(place, fmt::format("a padded load of '{}'; programs have none", buffer.name));
    if (access.index.size() != buffer.shape.size())
      fail(place, fmt::format("{} indices for buffer '{}' of {} dimensions", access.index.size(), buffer.name,
                              buffer.shape.size()));
    for (std::size_t d = 0; d < access.index.size(); ++d) check_index(access.index[d], buffer, d, ahead, place);
  }

  // `what` names the form in an error.
  void check_loops(const Affine& form, const std::string& what, const std::string& place) const {
    int previous = -1;
    for (const Term& term : form.terms) {
      if (term.variable <= previous || term.coefficient == 0) fail(place, fmt::format("{} is malformed", what));
      previous = term.variable;
      if (std::size_t(term.variable) >= program_.loops.size() || !open_[std::size_t(term.variable)])
        fail(place, fmt::format("{} uses loop {}, which is not around the store", what,
                                std::size_t(term.variable) < program_.loops.size()
                                    ? fmt::format("'{}'", program_.loops[std::size_t(term.variable)].name)
                                    : fmt::format("{}", term.variable)));
    }
  }

  void check_index(const Affine& form, const Buffer& buffer, std::size_t dimension, bool ahead,
                   const std::string& place) const {
    __int128 low = form.constant, high = form.constant;
    check_loops(form, fmt::format("index {} of buffer '{}'", dimension, buffer.name), place);
    for (const Term& term : form.terms) {
      const Loop& loop = program_.loops[std::size_t(term.variable)];
      if (buffer.scope == Scope::registers && loop.kind != LoopKind::unrolled && loop.kind != LoopKind::vector &&
          !is_thread(loop.kind) && loop.kind != LoopKind::virtual_thread)
        fail(place, fmt::format("register buffer '{}' is indexed by {} loop '{}'; only unrolled, vector and thread "
                                "loops can",
                                buffer.name, name_of(loop.kind), loop.name));
      const __int128 reach = __int128(term.coefficient) * (loop.extent - 1);
      (reach < 0 ? low : high) += reach;
    }
    const std::int64_t extent = buffer.shape[dimension];
    const std::int64_t first = ahead ? 1 - extent : 0, last = ahead ? 2 * (extent - 1) : extent - 1;
    if (low < first || high > last)
      fail(place, fmt::format("index {} of buffer '{}' reaches {}, outside of {} .. {}", dimension, buffer.name,
                              spelled(low < first ? low : high), first, last));
  }

  static std::string spelled(__int128 number) {
    constexpr __int128 limit = __int128(1) << 62;
    if (number >= limit) return "beyond 2^62";
    if (number <= -limit) return "below -2^62";
    return fmt::format("{}", std::int64_t(number));
  }

  const LoopProgram& program_;
  const Places& places_;
  std::vector<bool> seen_loops_, seen_stores_, open_;
  std::vector<int> path_;
};

}  // namespace

std::string_view name_of(LoopKind kind) {
  switch (kind) {
#define X(name)        \
  case LoopKind::name: \
    return #name;
    GRAFT_LOOP_KINDS(X)
#undef X
  }
  assert(false);
  return {};
}

bool is_block(LoopKind kind) {
  return kind == LoopKind::block_x || kind == LoopKind::block_y || kind == LoopKind::block_z;
}

bool is_thread(LoopKind kind) {
  return kind == LoopKind::thread_x || kind == LoopKind::thread_y || kind == LoopKind::thread_z;
}

std::string_view name_of(Scope scope) {
  switch (scope) {
    case Scope::memory:
      return "memory";
    case Scope::registers:
      return "registers";
    case Scope::group:
      break;
  }
  return "group";
}

std::int64_t Buffer::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::vector<std::int64_t> Buffer::strides() const {
  std::vector<std::int64_t> result(shape.size());
  std::int64_t product = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    result[d] = product;
    product *= shape[d];
  }
  return result;
}

bool operator==(const LoopProgram& a, const LoopProgram& b) {
  const auto same_buffer = [](const Buffer& x, const Buffer& y) {
    return x.dtype == y.dtype && x.shape == y.shape && x.role == y.role && x.scope == y.scope && x.values == y.values &&
           x.layout == y.layout;
  };
  if (!std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(), same_buffer)) return false;
  Comparison comparison(a, b);
  return comparison.same(a.prepare, b.prepare) && comparison.same(a.run, b.run);
}

std::uint64_t hash(const LoopProgram& program) {
  std::uint64_t result = program.buffers.size();
  for (const Buffer& buffer : program.buffers) {
    result = hash_combine(result, hash_bytes(name_of(buffer.dtype)));
    result = hash_combine(result, hash_bytes(name_of(buffer.role)));
    result = hash_combine(result, hash_bytes(name_of(buffer.scope)));
    result = hash_combine(result, buffer.shape.size());
    for (const std::int64_t extent : buffer.shape) result = hash_combine(result, std::uint64_t(extent));
    for (const double value : buffer.values)
      result = hash_combine(result, std::bit_cast<std::uint64_t>(value + 0.0));  // -0 is 0
    if (!buffer.layout.is_plain()) result = hash_combine(result, hash_bytes(to_text(buffer.layout)));
  }
  std::vector<int> numbers(program.loops.size(), -1);
  int next = 0;
  for (const Body* body : {&program.prepare, &program.run}) {
    number_loops(*body, numbers, next);
    result = hash_combine(result, body->size());
    for (const Node& node : *body) {
      result = hash_combine(result, std::uint64_t(node.end));
      if (node.kind == Node::Kind::loop) {
        const Loop& loop = program.loops[std::size_t(node.item)];
        result = hash_combine(hash_combine(result, hash_bytes(name_of(loop.kind))), std::uint64_t(loop.extent));
        if (loop.intrinsic >= 0) result = hash_combine(result, hash(*program.intrinsics[std::size_t(loop.intrinsic)]));
        if (!loop.prefetches.empty()) result = hash_combine(result, hash_bytes("prefetch"));
        for (const Access& access : loop.prefetches) result = hash_combine(result, hash_of(access, numbers));
      } else {
        result = hash_combine(result, hash_of(program.stores[std::size_t(node.item)], numbers));
      }
    }
  }
  return result;
}

bool touches(const LoopProgram& program, const Body& body, int at, int buffer, bool writes_only) {
  for (int n = at; n < body[std::size_t(at)].end; ++n) {
    if (body[std::size_t(n)].kind != Node::Kind::store) continue;
    const Store& store = program.stores[std::size_t(body[std::size_t(n)].item)];
    if (store.target.tensor == buffer) return true;
    if (!writes_only && std::any_of(store.value.loads.begin(), store.value.loads.end(),
                                    [&](const Access& load) { return load.tensor == buffer; }))
      return true;
  }
  return false;
}

Affine offset(const LoopProgram& program, const Access& access) {
  const Buffer& buffer = program.buffers[std::size_t(access.tensor)];
  assert(access.index.size() == buffer.shape.size());
  Affine result;
  std::int64_t stride = 1;
  for (std::size_t d = access.index.size(); d-- > 0;) {
    result.add(access.index[d], stride);
    stride *= buffer.shape[d];
  }
  return result;
}

void check(const LoopProgram& program, const Places& places) {
  Checker(program, places).run();
}

void check(const LoopProgram& program, std::string_view place) {
  Places places;
  places.whole = place;
  check(program, places);
}

}  // namespace graft::codegen
