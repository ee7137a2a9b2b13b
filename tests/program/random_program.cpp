#include "random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/random.h"

namespace graft::codegen {
namespace {

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : stream_(seed, "random_program") {}

  LoopProgram program() {
    constexpr std::array roles{Role::input, Role::constant, Role::output, Role::temporary, Role::temporary};
    for (const Role role : roles) buffer(role, Scope::memory);
    buffer(Role::temporary, Scope::registers);
    if (stream_.below(2) == 0) {
      in_prepare_ = true;
      body(program_.prepare, 0);
    }
    in_prepare_ = false;
    body(program_.run, 0);
    return std::move(program_);
  }

 private:
  void buffer(Role role, Scope scope) {
    constexpr std::array types{DType::f32, DType::f64, DType::i32, DType::i8, DType::u8};
    Buffer result;
    result.name = fmt::format("t{}_{}", program_.buffers.size(), name_of(role));
    result.dtype = types[std::size_t(stream_.below(types.size()))];
    result.shape.assign(std::size_t(stream_.below(4)), 1);  // grows with its accesses
    result.role = role;
    result.scope = scope;
    program_.buffers.push_back(result);
  }

  void body(Body& body, int depth) {
    const std::int64_t statements = 1 + stream_.below(2);
    for (std::int64_t s = 0; s < statements; ++s) {
      const bool in_vector = !path_.empty() && program_.loops[std::size_t(path_.back())].kind == LoopKind::vector;
      const int position = int(body.size());
      if (!in_vector && depth < 4 && stream_.below(3) > 0) {
        constexpr std::array kinds{LoopKind::serial,   LoopKind::serial,  LoopKind::unrolled, LoopKind::vector,
                                   LoopKind::parallel, LoopKind::block_x, LoopKind::thread_y, LoopKind::virtual_thread};
        const int loop = int(program_.loops.size());
        program_.loops.push_back(
            {fmt::format("l{}.{}", depth, s), 1 + stream_.below(4), kinds[std::size_t(stream_.below(kinds.size()))]});
        body.push_back({Node::Kind::loop, loop, 0});
        path_.push_back(loop);
        this->body(body, depth + 1);
        prefetch(program_.loops[std::size_t(loop)]);
        path_.pop_back();
      } else {
        body.push_back({Node::Kind::store, int(program_.stores.size()), 0});
        constexpr std::array combines{Combine::none, Combine::sum, Combine::max, Combine::min};
        const Combine combine = combines[std::size_t(stream_.below(4))];
        Access target = access(true);
        Value source = value(0);
        program_.stores.push_back({target, combine, source});
      }
      body[std::size_t(position)].end = int(body.size());
    }
  }

  // Elements written by the last statement in the loop.
  void prefetch(Loop& loop) {
    if (loop.kind != LoopKind::serial && loop.kind != LoopKind::unrolled) return;
    Access access = program_.stores.back().target;
    const Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
    if (buffer.scope != Scope::memory || stream_.below(2) == 0) return;
    for (Affine& form : access.index) {
      Affine outside;
      for (const int around : path_) outside += Affine::variable(around, form.coefficient(around));
      form = std::move(outside);
    }
    loop.prefetches.push_back(std::move(access));
  }

  Access access(bool written) {
    for (;;) {
      const int number = int(stream_.below(std::int64_t(program_.buffers.size())));
      Buffer& buffer = program_.buffers[std::size_t(number)];
      if (written && (buffer.role == Role::input || buffer.role == Role::constant)) continue;
      if (in_prepare_ && (buffer.role == Role::input || buffer.role == Role::output)) continue;
      Access result{.tensor = number, .index = {}};
      for (std::int64_t& extent : buffer.shape) {
        Affine form;
        std::int64_t low = 0, high = 0;
        for (const int loop : path_) {
          const LoopKind kind = program_.loops[std::size_t(loop)].kind;
          if (buffer.scope == Scope::registers && kind != LoopKind::unrolled && kind != LoopKind::vector) continue;
          const std::int64_t coefficient = std::max<std::int64_t>(stream_.below(7) - 3, -1) * (1 + stream_.below(2));
          form += Affine::variable(loop, coefficient);
          const std::int64_t reach = coefficient * (program_.loops[std::size_t(loop)].extent - 1);
          (reach < 0 ? low : high) += reach;
        }
        form += Affine(stream_.below(3) - low);
        extent = std::max(extent, form.constant + high + 1);
        result.index.push_back(form);
      }
      return result;
    }
  }

  Value value(int depth) {
    if (depth < 4 && stream_.below(2) == 0) {
      const Op op = Op(std::int64_t(Op::add) + stream_.below(std::int64_t(Op::select) - std::int64_t(Op::add) + 1));
      Value a = value(depth + 1);
      if (op == Op::select) {
        const Op comparison = Op(std::int64_t(Op::less) + stream_.below(6));
        a = Value::apply(comparison, std::move(a), value(depth + 1));
        Value b = value(depth + 1);
        return Value::apply(op, std::move(a), std::move(b), value(depth + 1));
      }
      return operands_of(op) == 1 ? Value::apply(op, a) : Value::apply(op, a, value(depth + 1));
    }
    if (stream_.below(3) > 0) return Value::load(access(false));
    constexpr std::array numbers{0.0, 1.0, -1.0, 0.1, -2.5e-30};
    return Value::constant(numbers[std::size_t(stream_.below(5))]);
  }

  base::Stream stream_;
  LoopProgram program_;
  std::vector<int> path_;
  bool in_prepare_ = false;
};

}  // namespace

LoopProgram random_program(std::uint64_t seed) {
  return Drawing(seed).program();
}

}  // namespace graft::codegen
