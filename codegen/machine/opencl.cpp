#include "codegen/machine/opencl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "codegen/program/analysis.h"
#include "codegen/program/groups.h"

namespace graft::codegen {
namespace {

constexpr int most_statements = 8000;

struct Refused {
  std::string text;
};

// Names in OpenCL C; types of storage alone have that of their bits.
struct TypeNames {
  const char *stored, *computed, *bits;
};
TypeNames names_of(DType type) {
  switch (type) {
    case DType::f32:
      return {"float", "float", ""};
    case DType::f64:
      return {"double", "double", ""};
    case DType::i32:
      return {"int", "int", "uint"};
    case DType::i8:
      return {"char", "char", "uchar"};
    case DType::u8:
      return {"uchar", "uchar", "uchar"};
    case DType::i64:
      return {"long", "long", "ulong"};
    case DType::f16:
      return {"half", "float", ""};
    case DType::bf16:
      return {"ushort", "float", ""};
  }
  return {};
}

// What kernels call; only the parts in use are written.
constexpr std::pair<const char*, const char*> helpers[] = {
    {"graft_max", "#define graft_max(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))\n"},
    {"graft_min", "#define graft_min(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))\n"},
    {"graft_quotient",
     "long graft_quotient(long a, long b) {\n"
     "  if (b == 0) return 0;\n"
     "  if (b == -1) return (long)(0 - (ulong)a);\n"
     "  return a / b - (a % b != 0 && (a < 0) != (b < 0));\n"
     "}\n"},
    {"graft_remainder",
     "long graft_remainder(long a, long b) {\n"
     "  if (b == 0 || b == -1) return 0;\n"
     "  const long rest = a % b;\n"
     "  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n"
     "}\n"},
    {"graft_from_bf16", "float graft_from_bf16(ushort a) {\n  return as_float((uint)a << 16);\n}\n"},
    {"graft_to_bf16",
     "ushort graft_to_bf16(float a) {\n"
     "  const uint bits = as_uint(a);\n"
     "  return isnan(a) ? 0x7fc0 : (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n"
     "}\n"},
};

std::string integer(std::int64_t number, DType type) {
  if (type == DType::i64) {
    if (number == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807L - 1)";
    return number < 0 ? fmt::format("({}L)", number) : fmt::format("{}L", number);
  }
  if (number == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
  return number < 0 ? fmt::format("({})", number) : fmt::format("{}", number);
}

std::string constant(double number, DType type) {
  if (!is_floating(type)) {
    if (std::isinf(number)) number = number < 0 ? lowest(type) : highest(type);
    if (type == DType::i64 && number >= 0x1p63) return "9223372036854775807L";
    return integer(std::int64_t(number), type);
  }
  if (std::isinf(number)) return number < 0 ? "(-INFINITY)" : "INFINITY";
  const bool is_double = type == DType::f64;
  std::string text = is_double ? fmt::format("{}", number) : fmt::format("{}", float(number));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!is_double) text += "f";
  return number < 0 ? "(" + text + ")" : text;
}

// Writes the kernels of one program.
class Writer {
 public:
  Writer(const LoopProgram& program, const Target& target, const std::string& symbol)
      : program_(program), target_(target), symbol_(symbol), fixed_(program.loops.size()) {}

  std::string write() {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& here = program_.buffers[b];
      if (here.elements() > std::numeric_limits<std::int32_t>::max())
        throw Refused{fmt::format("opencl: '{}' has more elements than an int counts", here.name)};
      if (here.is_literal()) literal(int(b));
      if (here.role == Role::temporary && here.scope == Scope::memory && !here.is_literal())
        head_ += fmt::format("// buffer {} {}\n", b, here.bytes());
    }
    body(program_.prepare, "prepare");
    body(program_.run, "run");
    std::string text = head_;
    if (kernels_.find("double") != std::string::npos) {
      if (target_.features.find("fp64") == std::string::npos)
        throw Refused{"opencl: f64 on a device without double precision (target.features has no fp64)"};
      text += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    }
    for (const auto& [name, definition] : helpers)
      if (kernels_.find(std::string(name) + "(") != std::string::npos) text += fmt::format("\n{}", definition);
    return text + literals_ + kernels_;
  }

 private:
  const Buffer& buffer(int b) const { return program_.buffers[std::size_t(b)]; }
  const Loop& loop(int l) const { return program_.loops[std::size_t(l)]; }

  static std::string as_identifier(std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
  }
  std::string name_of_buffer(int b) const { return fmt::format("{}_b{}", as_identifier(buffer(b).name), b); }
  std::string name_of_loop(int l) const { return fmt::format("{}_l{}", as_identifier(loop(l).name), l); }

  void line(const std::string& text) { kernels_ += std::string(std::size_t(2 * depth_), ' ') + text + "\n"; }
  void open(const std::string& text) {
    line(text.empty() ? "{" : text + " {");
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }

  void literal(int b) {
    std::vector<std::string> values;
    for (const double value : buffer(b).values) {
      if (buffer(b).dtype == DType::f16 || buffer(b).dtype == DType::bf16)
        throw Refused{fmt::format("opencl: literal '{}' is of 16 bits", buffer(b).name)};
      values.push_back(constant(value, buffer(b).dtype));
    }
    literals_ += fmt::format("\n__constant {} {}[{}] = {{{}}};\n", names_of(buffer(b).dtype).stored, name_of_buffer(b),
                             values.size(), base::join(values, ", "));
  }

  void body(const Body& nodes, const std::string& which) {
    const auto all = launches(program_, nodes, target_);
    if (!all) throw Refused{all.reason().text};
    body_ = &nodes;
    for (std::size_t l = 0; l < all->size(); ++l) kernel((*all)[l], which, fmt::format("{}_{}_{}", symbol_, which, l));
  }

  void kernel(const Launch& launch, const std::string& which, const std::string& name) {
    std::map<int, bool> touched;  // written?
    for (int n = launch.begin; n < launch.end; ++n) {
      if ((*body_)[std::size_t(n)].kind != Node::Kind::store) continue;
      const Store& store = program_.stores[std::size_t((*body_)[std::size_t(n)].item)];
      touched[store.target.tensor] = true;
      for (const Access& load : store.value.loads) touched.emplace(load.tensor, false);
    }
    std::vector<std::string> parameters, numbers;
    for (const auto& [b, written] : touched) {
      if (buffer(b).scope != Scope::memory || buffer(b).is_literal()) continue;
      parameters.push_back(fmt::format("__global {}{}* restrict {}", written ? "" : "const ",
                                       names_of(buffer(b).dtype).stored, name_of_buffer(b)));
      numbers.push_back(fmt::format("{}", b));
    }
    const auto [ix, iy, iz] = launch.has_groups ? launch.items : std::array<std::int64_t, 3>{0, 0, 0};
    head_ += fmt::format("// launch {} {} {} {} {} {} {} {} {}\n", which, name, launch.groups[0], launch.groups[1],
                         launch.groups[2], ix, iy, iz, base::join(numbers, " "));
    kernels_ += "\n__kernel ";
    if (launch.has_groups) kernels_ += fmt::format("__attribute__((reqd_work_group_size({}, {}, {})))\n", ix, iy, iz);
    open(fmt::format("void {}({})", name, base::join(parameters, ", ")));
    for (const int b : launch.shared)
      line(
          fmt::format("__local {} {}[{}];", names_of(buffer(b).dtype).stored, name_of_buffer(b), buffer(b).elements()));
    launch_ = &launch;
    find_registers(touched);
    digits(launch.band, launch.has_groups ? "get_group_id" : "get_global_id", {});
    if (launch.has_groups)
      uniform(launch.inside, launch.end);
    else
      nodes(launch.inside, launch.end);
    close();
  }

  // The values of loops whose iterations are numbered by `id` of their dimensions, or, where `number` has a name for
  // the dimension, by that; loops of one dimension are digits of it.
  void digits(const std::vector<int>& loops, const char* id, const std::map<int, std::string>& number) {
    std::map<int, std::int64_t> inner;  // by dimension: iterations of the loops inside
    std::vector<std::string> lines;
    for (std::size_t i = loops.size(); i-- > 0;) {
      const int l = loops[i], d = std::max(0, dimension_of(loop(l).kind));
      const std::int64_t below = inner.emplace(d, 1).first->second;
      const bool is_outermost = std::none_of(loops.begin(), loops.begin() + std::ptrdiff_t(i), [&](int other) {
        return std::max(0, dimension_of(loop(other).kind)) == d;
      });
      const auto named = number.find(d);
      std::string value = named != number.end() ? named->second : fmt::format("(int){}({})", id, d);
      if (below > 1) value += fmt::format(" / {}", below);
      if (!is_outermost) value = fmt::format("({}) % {}", value, loop(l).extent);
      fixed_[std::size_t(l)].reset();
      lines.push_back(fmt::format("const int {} = {};", name_of_loop(l), value));
      inner[d] *= loop(l).extent;
    }
    for (std::size_t i = lines.size(); i-- > 0;) line(lines[i]);
  }

  // ---- registers: one variable for `grain` neighbours each

  struct Registers {
    std::int64_t grain = 1;
    std::set<std::int64_t> written;  // elements
  };

  static bool is_width(std::int64_t lanes) { return lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16; }

  // The position within an item's own part of a register buffer.
  Affine place_in_registers(const Access& access) const {
    const std::vector<std::int64_t> strides = buffer(access.tensor).strides();
    Affine place;
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      const bool tells_item = std::any_of(access.index[d].terms.begin(), access.index[d].terms.end(),
                                          [&](const Term& term) { return is_thread(loop(term.variable).kind); });
      if (!tells_item) place.add(access.index[d], strides[d]);
    }
    return place;
  }

  void find_registers(const std::map<int, bool>& touched) {
    registers_.clear();
    for (const auto& [b, written] : touched)
      if (buffer(b).scope == Scope::registers) registers_[b];
    std::map<int, std::set<std::int64_t>> widths;  // 1: not a whole vector
    std::vector<std::pair<int, int>> vectors;      // end of a vector loop, the loop
    for (int n = launch_->begin; n < launch_->end; ++n) {
      const Node& node = (*body_)[std::size_t(n)];
      while (!vectors.empty() && vectors.back().first <= n) vectors.pop_back();
      if (node.kind == Node::Kind::loop) {
        if (loop(node.item).kind == LoopKind::vector) vectors.emplace_back(node.end, node.item);
        continue;
      }
      const Store& store = program_.stores[std::size_t(node.item)];
      const auto note = [&](const Access& access) {
        if (!registers_.contains(access.tensor) || vectors.empty()) return;
        const int lanes_loop = vectors.back().second;
        const Affine place = place_in_registers(access);
        const std::int64_t width = loop(lanes_loop).extent;
        if (place.coefficient(lanes_loop) == 0) return;
        bool whole = place.coefficient(lanes_loop) == 1 && is_width(width) && place.constant % width == 0;
        for (const Term& term : place.terms) whole &= term.variable == lanes_loop || term.coefficient % width == 0;
        widths[access.tensor].insert(whole ? width : 1);
      };
      note(store.target);
      for (const Access& load : store.value.loads) note(load);
    }
    for (auto& [b, registers] : registers_) {
      if (buffer(b).dtype == DType::f32 && widths.contains(b) && widths[b].size() == 1)
        registers.grain = *widths[b].begin();
      std::set<std::int64_t> variables;
      // Dimensions that tell the item have no part in an item's own places.
      std::int64_t places = 1;
      for (int n = launch_->begin; n < launch_->end; ++n) {
        if ((*body_)[std::size_t(n)].kind != Node::Kind::store) continue;
        const Store& store = program_.stores[std::size_t((*body_)[std::size_t(n)].item)];
        if (store.target.tensor == b) collect(place_in_registers(store.target), registers.grain, variables);
        for (const Access& load : store.value.loads)
          if (load.tensor == b) collect(place_in_registers(load), registers.grain, variables);
        places = std::int64_t(variables.size());
        if (places > most_statements) throw Refused{fmt::format("registers: '{}' is too large", buffer(b).name)};
      }
      std::vector<std::string> names;
      for (const std::int64_t place : variables) names.push_back(fmt::format("{}_{}", name_of_buffer(b), place));
      const std::string type = names_of(buffer(b).dtype).computed;
      if (!names.empty())
        line(fmt::format("{}{} {};", type, registers.grain > 1 ? fmt::format("{}", registers.grain) : "",
                         base::join(names, ", ")));
    }
  }

  // The numbers of the variables that a place can be in.
  void collect(const Affine& place, std::int64_t grain, std::set<std::int64_t>& variables) const {
    std::set<std::int64_t> places{place.constant};
    for (const Term& term : place.terms) {
      std::set<std::int64_t> more;
      for (const std::int64_t at : places)
        for (std::int64_t i = 0; i < loop(term.variable).extent; ++i) more.insert(at + i * term.coefficient);
      places = std::move(more);
      if (places.size() > std::size_t(16 * most_statements)) throw Refused{"registers: a buffer is too large"};
    }
    for (const std::int64_t at : places) variables.insert(at / grain);
  }

  // ---- nodes

  // Those that all items of a group go through.
  void uniform(int begin, int end) {
    for (int n = begin; n < end; n = (*body_)[std::size_t(n)].end) {
      if (launch_->barriers.contains(n)) line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
      const auto nest = std::find_if(launch_->nests.begin(), launch_->nests.end(),
                                     [&](const ItemNest& each) { return each.begin == n; });
      if (nest != launch_->nests.end())
        items(*nest);
      else
        repeat((*body_)[std::size_t(n)], [&] { uniform(n + 1, (*body_)[std::size_t(n)].end); });
    }
  }

  // Whether it makes no difference that an iteration is run twice, by different items.
  bool is_repeatable(const ItemNest& nest) const {
    std::set<int> written;
    bool repeatable = true;
    for_each_access(program_, *body_, nest.begin, nest.end, [&](int b, const Access&, bool writes) {
      if (writes) written.insert(b);
      repeatable &= buffer(b).scope != Scope::registers;
    });
    for (int n = nest.begin; n < nest.end; ++n) {
      if ((*body_)[std::size_t(n)].kind != Node::Kind::store) continue;
      const Store& store = program_.stores[std::size_t((*body_)[std::size_t(n)].item)];
      repeatable &= store.combine == Combine::none;
      for (const Access& access : store.value.loads) repeatable &= !written.contains(access.tensor);
    }
    return repeatable;
  }

  // Where a nest has fewer iterations than the group has items, those without one repeat the last one if they may: a
  // condition between barriers costs more, and PoCL 3.1 fails to compile some.
  void items(const ItemNest& nest) {
    const bool repeats = !nest.threads.empty() && is_repeatable(nest);
    std::vector<std::string> conditions;
    std::map<int, std::string> number;
    open("");
    int loops = 0;
    for (int d = 0; d < group_dimensions; ++d) {
      const std::int64_t iterations = nest.iterations[std::size_t(d)], items = launch_->items[std::size_t(d)];
      if (iterations == items) continue;
      const std::string name = fmt::format("item_{}", "xyz"[d]);
      if (iterations > items) {
        open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", name,
                         repeats ? "0" : fmt::format("get_local_id({})", d), iterations, items));
        ++loops;
        number[d] = name;
        if (!repeats) continue;
        number[d] = iterations % items == 0
                        ? fmt::format("({} + (int)get_local_id({}))", name, d)
                        : fmt::format("min({} + (int)get_local_id({}), {})", name, d, iterations - 1);
      } else if (repeats) {
        number[d] = fmt::format("min((int)get_local_id({}), {})", d, iterations - 1);
      } else {
        conditions.push_back(fmt::format("get_local_id({}) < {}", d, iterations));
      }
    }
    if (!conditions.empty()) {
      open(fmt::format("if ({})", base::join(conditions, " && ")));
      ++loops;
    }
    digits(nest.threads, "get_local_id", number);
    nodes(nest.inside, nest.end);
    for (; loops > 0; --loops) close();
    close();
  }

  void nodes(int begin, int end) {
    for (int n = begin; n < end; n = (*body_)[std::size_t(n)].end) {
      const Node& node = (*body_)[std::size_t(n)];
      if (node.kind == Node::Kind::store)
        statement(node.item);
      else if (loop(node.item).kind == LoopKind::vector && loop(node.item).extent > 1)
        vector(n);
      else
        repeat(node, [&] { nodes(n + 1, node.end); });
    }
  }

  template <class Inside>
  void repeat(const Node& node, const Inside& inside) {
    const Loop& here = loop(node.item);
    std::optional<std::int64_t>& value = fixed_[std::size_t(node.item)];
    if (here.extent == 1 || here.kind == LoopKind::unrolled || here.kind == LoopKind::virtual_thread) {
      for (std::int64_t i = 0; i < here.extent; ++i) {
        value = i;
        inside();
      }
      return;
    }
    value.reset();
    open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name_of_loop(node.item), here.extent));
    inside();
    close();
  }

  void vector(int n) {
    const Node& node = (*body_)[std::size_t(n)];
    for (int inner = n + 1; inner < node.end; ++inner) {
      const int item = (*body_)[std::size_t(inner)].item;
      if (goes_by_vectors(program_.stores[std::size_t(item)], node.item)) {
        fixed_[std::size_t(node.item)] = 0;
        lanes_loop_ = node.item;
        statement(item);
        lanes_loop_ = -1;
      } else {
        for (std::int64_t lane = 0; lane < loop(node.item).extent; ++lane) {
          fixed_[std::size_t(node.item)] = lane;
          statement(item);
        }
      }
    }
  }

  std::int64_t moves(const Access& access, int lanes_loop) const {
    if (buffer(access.tensor).scope == Scope::registers) return place_in_registers(access).coefficient(lanes_loop);
    return offset(program_, access).coefficient(lanes_loop);
  }

  bool goes_by_vectors(const Store& store, int lanes_loop) const {
    const auto suits = [&](const Access& access) {
      const std::int64_t stride = moves(access, lanes_loop);
      if (buffer(access.tensor).dtype != DType::f32 || !access.gathered.empty()) return false;
      if (buffer(access.tensor).is_literal() && stride != 0) return false;
      return stride == 0 || stride == 1;
    };
    if (!is_width(loop(lanes_loop).extent) || !suits(store.target) || moves(store.target, lanes_loop) != 1)
      return false;
    const Value& value = store.value;
    if (!std::all_of(value.loads.begin(), value.loads.end(), suits) || !value.positions.empty()) return false;
    const std::vector<NodeType> types =
        types_of(value, DType::f32, [&](const Access& access) { return buffer(access.tensor).dtype; });
    return std::all_of(types.begin(), types.end(),
                       [](const NodeType& type) { return type.operands == DType::f32 && type.result == DType::f32; });
  }

  // ---- accesses

  std::string text_of(const Affine& form) const {
    std::int64_t known = form.constant;
    std::string text;
    for (const Term& term : form.terms) {
      if (const std::optional<std::int64_t>& value = fixed_[std::size_t(term.variable)]) {
        known += *value * term.coefficient;
        continue;
      }
      if (loop(term.variable).extent == 1) continue;
      const std::string name = name_of_loop(term.variable);
      const std::int64_t factor = std::abs(term.coefficient);
      if (text.empty())
        text = term.coefficient < 0 ? "-" : "";
      else
        text += term.coefficient < 0 ? " - " : " + ";
      text += factor == 1 ? name : fmt::format("{} * {}", factor, name);
    }
    if (text.empty()) return fmt::format("{}", known);
    if (known != 0) text += fmt::format(" {} {}", known < 0 ? '-' : '+', std::abs(known));
    return text;
  }

  std::int64_t fixed_place(const Access& access) const {
    const Affine place = place_in_registers(access);
    std::int64_t known = place.constant;
    for (const Term& term : place.terms) {
      const std::optional<std::int64_t>& value = fixed_[std::size_t(term.variable)];
      if (!value && loop(term.variable).extent > 1)
        throw Refused{fmt::format("registers: '{}' is indexed by the loop '{}', which is not unrolled",
                                  buffer(access.tensor).name, loop(term.variable).name)};
      known += value.value_or(0) * term.coefficient;
    }
    return known;
  }

  std::int64_t lanes() const { return lanes_loop_ < 0 ? 1 : loop(lanes_loop_).extent; }

  std::string variable(int b, std::int64_t place) const {
    const std::int64_t grain = registers_.at(b).grain;
    const std::string name = fmt::format("{}_{}", name_of_buffer(b), place / grain);
    return grain == 1 ? name : fmt::format("{}.s{:x}", name, place % grain);
  }

  std::string load(const Access& access, const std::vector<std::string>& gathered) {
    const int b = access.tensor;
    const bool wide = lanes_loop_ >= 0, moved = wide && moves(access, lanes_loop_) != 0;
    std::string text;
    if (buffer(b).scope == Scope::registers) {
      const std::int64_t place = fixed_place(access);
      for (std::int64_t i = 0; i < (moved ? lanes() : 1); ++i)
        if (!registers_.at(b).written.contains(place + i))
          throw Refused{fmt::format("registers: '{}' is read before it is written", buffer(b).name)};
      if (moved && registers_.at(b).grain == lanes()) return fmt::format("{}_{}", name_of_buffer(b), place / lanes());
      std::vector<std::string> parts;
      for (std::int64_t i = 0; i < (moved ? lanes() : 1); ++i) parts.push_back(variable(b, place + i));
      text = base::join(parts, ", ");
      return wide ? fmt::format("(float{})({})", lanes(), text) : text;
    }
    Affine form = offset(program_, access);
    std::string at = text_of(form);
    for (std::size_t g = 0; g < gathered.size(); ++g) {
      const std::size_t d = std::size_t(access.gathered[g]);
      at += fmt::format(" + {} * (int)clamp((long)({}), 0L, {}L)", buffer(b).strides()[d], gathered[g],
                        buffer(b).shape[d] - 1);
    }
    const std::string name = name_of_buffer(b);
    if (moved) return fmt::format("vload{}(0, {} + {})", lanes(), name, at);
    if (buffer(b).dtype == DType::f16) return fmt::format("vload_half({}, {})", at, name);
    if (buffer(b).dtype == DType::bf16) return fmt::format("graft_from_bf16({}[{}])", name, at);
    text = fmt::format("{}[{}]", name, at);
    return wide ? fmt::format("(float{})({})", lanes(), text) : text;
  }

  void assign(const Access& access, const std::string& value) {
    const int b = access.tensor;
    const std::string name = name_of_buffer(b);
    if (buffer(b).scope == Scope::registers) {
      Registers& registers = registers_.at(b);
      const std::int64_t place = fixed_place(access);
      for (std::int64_t i = 0; i < lanes(); ++i) registers.written.insert(place + i);
      if (lanes() == 1) return line(fmt::format("{} = {};", variable(b, place), value));
      if (registers.grain == lanes()) return line(fmt::format("{}_{} = {};", name, place / lanes(), value));
      const std::string all = fmt::format("t{}", temporaries_++);
      line(fmt::format("const float{} {} = {};", lanes(), all, value));
      for (std::int64_t i = 0; i < lanes(); ++i) line(fmt::format("{} = {}.s{:x};", variable(b, place + i), all, i));
      return;
    }
    const std::string at = text_of(offset(program_, access));
    if (lanes() > 1) return line(fmt::format("vstore{}({}, 0, {} + {});", lanes(), value, name, at));
    if (buffer(b).dtype == DType::f16) return line(fmt::format("vstore_half_rte({}, {}, {});", value, at, name));
    if (buffer(b).dtype == DType::bf16) return line(fmt::format("{}[{}] = graft_to_bf16({});", name, at, value));
    line(fmt::format("{}[{}] = {};", name, at, value));
  }

  // ---- values

  static std::string converted(const std::string& text, DType from, DType to, bool saturate = false) {
    if (computed_in(from) == computed_in(to)) return text;
    const char* const type = names_of(to).computed;
    if (is_floating(to)) return fmt::format("({})({})", type, text);
    if (is_floating(from)) return fmt::format("convert_{}_sat_rtz({})", type, text);
    return saturate ? fmt::format("convert_{}_sat({})", type, text) : fmt::format("({})({})", type, text);
  }

  static std::string arithmetic(const char* sign, const std::string& a, const std::string& b, DType type) {
    if (is_floating(type)) return fmt::format("({} {} {})", a, sign, b);
    const TypeNames names = names_of(type);  // without a sign, as it wraps around
    return fmt::format("({0})(({1})({2}) {3} ({1})({4}))", names.computed, names.bits, a, sign, b);
  }

  std::string applied(Op op, const std::string& a, const std::string& b, const std::string& c, DType type) const {
    const char* const computed = names_of(type).computed;
    switch (op) {
      case Op::add:
        return arithmetic("+", a, b, type);
      case Op::sub:
        return arithmetic("-", a, b, type);
      case Op::mul:
        return arithmetic("*", a, b, type);
      case Op::div:
        if (is_floating(type)) return fmt::format("({} / {})", a, b);
        return fmt::format("({})graft_quotient({}, {})", computed, a, b);
      case Op::modulo:
        return fmt::format("({})graft_remainder({}, {})", computed, a, b);
      case Op::neg:
        return is_floating(type) ? fmt::format("(-({}))", a) : arithmetic("-", "0", a, type);
      case Op::max:
      case Op::min:
        return fmt::format("graft_{}({}, {})", name_of(op), a, b);
      case Op::abs:
        if (is_floating(type)) return fmt::format("fabs({})", a);
        return fmt::format("({})abs({})", computed, a);
      case Op::sigmoid:
        return fmt::format("(1.0f / (1.0f + exp(-({}))))", a);
      case Op::round:
        return fmt::format("rint({})", a);
      case Op::select:
        return fmt::format("({} ? {} : {})", a, b, c);
      case Op::shift_left:
        return fmt::format("({0})(({1})({2}) << clamp((int)({3}), 0, {4}))", computed, names_of(type).bits, a, b,
                           8 * bytes_of(type) - 1);
      case Op::shift_right:
        return fmt::format("({})(({}) >> clamp((int)({}), 0, {}))", computed, a, b, 8 * bytes_of(type) - 1);
      case Op::bit_and:
        return fmt::format("({})({} & {})", computed, a, b);
      case Op::bit_or:
        return fmt::format("({})({} | {})", computed, a, b);
      case Op::bit_xor:
        return fmt::format("({})({} ^ {})", computed, a, b);
      default:
        break;
    }
    if (is_comparison(op)) return fmt::format("({} {} {})", a, sign_of(op), b);
    return fmt::format("{}({}{})", name_of(op), a, operands_of(op) == 2 ? ", " + b : "");
  }

  // Nodes that are used twice, and operands that a macro repeats, get variables.
  std::string value_of(const Value& value, DType target) {
    const std::vector<NodeType> types =
        types_of(value, target, [&](const Access& access) { return buffer(access.tensor).dtype; });
    std::vector<int> users(value.nodes.size(), 0);
    for (const ValueNode& node : value.nodes) {
      const int each = node.op == Op::max || node.op == Op::min ? 2 : 1;
      for (const int operand : {node.a, node.b, node.c})
        if (operand >= 0) users[std::size_t(operand)] += each;
    }
    std::vector<std::string> texts;
    for (std::size_t n = 0; n < value.nodes.size(); ++n) {
      const ValueNode& node = value.nodes[n];
      const auto operand = [&](int o) {
        if (o < 0) return std::string();
        const std::string& text = texts[std::size_t(o)];
        if (is_comparison(value.nodes[std::size_t(o)].op)) return text;
        return converted(text, types[std::size_t(o)].result, types[n].operands);
      };
      const std::string a = operand(node.a), b = operand(node.b), c = operand(node.c);
      std::string text;
      if (node.op == Op::constant) {
        text = constant(node.number, types[n].result);
        if (lanes() > 1) text = fmt::format("(float{})({})", lanes(), text);
      } else if (node.op == Op::position) {
        text = "(" + text_of(value.positions[std::size_t(node.load)]) + ")";
      } else if (node.op == Op::load) {
        std::vector<std::string> gathered;
        for (const std::string& each : {a, b, c})
          if (gathered.size() < value.loads[std::size_t(node.load)].gathered.size()) gathered.push_back(each);
        text = load(value.loads[std::size_t(node.load)], gathered);
      } else if (converts_to(node.op)) {
        text = converted(a, types[n].operands, types[n].result, saturates(node.op));
      } else {
        text = applied(node.op, a, b, c, types[n].operands);
      }
      const bool is_simple = node.op == Op::constant || node.op == Op::position || is_comparison(node.op);
      if (users[n] > 1 && !is_simple) {
        const std::string name = fmt::format("t{}", temporaries_++);
        line(fmt::format("const {}{} {} = {};", names_of(types[n].result).computed,
                         lanes() > 1 ? fmt::format("{}", lanes()) : "", name, text));
        text = name;
      }
      texts.push_back(std::move(text));
    }
    return converted(texts.back(), types.back().result, target);
  }

  void statement(int item) {
    if (++statements_ > most_statements)
      throw Refused{fmt::format("unrolled: more than {} statements", most_statements)};
    const Store& store = program_.stores[std::size_t(item)];
    const DType type = buffer(store.target.tensor).dtype;
    std::string right = value_of(store.value, type);
    if (store.combine != Combine::none) {
      const std::string before = load(store.target, {});
      if (is_extreme(store.combine)) {
        const std::string value = fmt::format("t{}", temporaries_++);
        line(fmt::format("const {}{} {} = {};", names_of(type).computed, lanes() > 1 ? fmt::format("{}", lanes()) : "",
                         value, right));
        right = fmt::format("graft_{}({}, {})", store.combine == Combine::max ? "max" : "min", before, value);
      } else {
        right = arithmetic(store.combine == Combine::sum ? "+" : "*", before, right, type);
      }
    }
    assign(store.target, right);
  }

  const LoopProgram& program_;
  const Target& target_;
  const std::string symbol_;
  const Body* body_ = nullptr;
  const Launch* launch_ = nullptr;
  std::vector<std::optional<std::int64_t>> fixed_;  // by loop: its value where it is unrolled
  std::map<int, Registers> registers_;              // of the launch
  int lanes_loop_ = -1;                             // of the statement, if it goes by vectors
  int depth_ = 0, temporaries_ = 0, statements_ = 0;
  std::string head_, literals_, kernels_;
};

}  // namespace

base::Result<std::string> opencl_source(const LoopProgram& program, const Target& target, const std::string& symbol) {
  try {
    return Writer(program, target, symbol).write();
  } catch (const Refused& refused) {
    return base::Reason{refused.text};
  }
}

}  // namespace graft::codegen
