#include "bench/c_source.h"

#include <fmt/format.h>

#include <cassert>

namespace graft::bench {
namespace {

using namespace codegen;

std::string_view c_type(DType type) {
  switch (type) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::i32:
      return "int";
    case DType::i8:
      return "signed char";
    case DType::u8:
      return "unsigned char";
  }
  return "";
}

class Printer {
 public:
  explicit Printer(const LoopProgram& program) : program_(program) {
    for (std::size_t i = 0; i < program.loops.size(); ++i) variables_.push_back(fmt::format("i{}", i));
  }

  std::string function(const std::string& name) {
    assert(program_.prepare.empty());
    std::string parameters, arguments, temporaries;
    int position = 0;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (buffer.role == Role::temporary) {
        temporaries += fmt::format("static {} b{}[{}];\n", c_type(buffer.dtype), b, buffer.elements());
      } else {
        parameters += fmt::format("{}{}* restrict b{}", position == 0 ? "" : ", ", c_type(buffer.dtype), b);
        arguments += fmt::format("{}p[{}]", position == 0 ? "" : ", ", position);
        ++position;
      }
    }
    std::string text = "#include <math.h>\n" + temporaries +
                       fmt::format("__attribute__((noinline)) static void loops({}) {{\n", parameters);
    walk(0, int(program_.run.size()), 1, text);
    return text + fmt::format("}}\nvoid {}(void* const* p) {{\n  loops({});\n}}\n", name, arguments);
  }

 private:
  std::string element(const Access& access) const {
    return fmt::format("b{}[{}]", access.tensor, to_text(offset(program_, access), variables_));
  }

  std::string value(const Value& value, int at) const {
    const ValueNode& node = value.nodes[std::size_t(at)];
    const auto a = [&] { return this->value(value, node.a); };
    const auto b = [&] { return this->value(value, node.b); };
    switch (node.op) {
      case Op::constant:
        return fmt::format("{:#}f", node.number);
      case Op::load:
        return element(value.loads[std::size_t(node.load)]);
      case Op::add:
        return fmt::format("({} + {})", a(), b());
      case Op::sub:
        return fmt::format("({} - {})", a(), b());
      case Op::mul:
        return fmt::format("{} * {}", a(), b());
      case Op::div:
        return fmt::format("({} / {})", a(), b());
      case Op::max:
        return fmt::format("fmaxf({}, {})", a(), b());
      case Op::min:
        return fmt::format("fminf({}, {})", a(), b());
      case Op::neg:
        return fmt::format("(-{})", a());
      case Op::exp:
        return fmt::format("expf({})", a());
      case Op::sqrt:
        return fmt::format("sqrtf({})", a());
      case Op::rsqrt:
        return fmt::format("(1.0f / sqrtf({}))", a());
      case Op::log:
        return fmt::format("logf({})", a());
      case Op::pow:
        return fmt::format("powf({}, {})", a(), b());
      case Op::tanh:
        return fmt::format("tanhf({})", a());
      case Op::sigmoid:
        return fmt::format("(1.0f / (1.0f + expf(-{})))", a());
      case Op::erf:
        return fmt::format("erff({})", a());
      case Op::abs:
        return fmt::format("fabsf({})", a());
      case Op::floor:
        return fmt::format("floorf({})", a());
      case Op::select:
        return fmt::format("({} ? {} : {})", a(), b(), this->value(value, node.c));
      case Op::less:
      case Op::less_or_equal:
      case Op::greater:
      case Op::greater_or_equal:
      case Op::equal:
      case Op::not_equal:
        return fmt::format("({} {} {})", a(), sign_of(node.op), b());
    }
    return "";
  }

  void walk(int at, int end, int level, std::string& text) const {
    const std::string indent(std::size_t(2 * level), ' ');
    while (at < end) {
      const Node& node = program_.run[std::size_t(at)];
      if (node.kind == Node::Kind::loop) {
        text += fmt::format("{0}for (long i{1} = 0; i{1} < {2}; ++i{1}) {{\n", indent, node.item,
                            program_.loops[std::size_t(node.item)].extent);
        walk(at + 1, node.end, level + 1, text);
        text += indent + "}\n";
      } else {
        const Store& store = program_.stores[std::size_t(node.item)];
        const std::string target = element(store.target);
        const std::string right = value(store.value, int(store.value.nodes.size()) - 1);
        switch (store.combine) {
          case Combine::none:
            text += fmt::format("{}{} = {};\n", indent, target, right);
            break;
          case Combine::sum:
            text += fmt::format("{}{} += {};\n", indent, target, right);
            break;
          case Combine::max:
            text += fmt::format("{0}{1} = fmaxf({1}, {2});\n", indent, target, right);
            break;
          case Combine::min:
            text += fmt::format("{0}{1} = fminf({1}, {2});\n", indent, target, right);
            break;
        }
      }
      at = node.end;
    }
  }

  const LoopProgram& program_;
  std::vector<std::string> variables_;
};

}  // namespace

std::string to_c(const LoopProgram& program, const std::string& name) {
  return Printer(program).function(name);
}

}  // namespace graft::bench
