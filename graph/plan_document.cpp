#include "graph/plan_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "graph/operators.h"

namespace graft::graph {
namespace {

using base::Document;
using codegen::DType;
using Where = Plan::Buffer::Where;

constexpr std::size_t alignment = 64;  // of constants in their file
constexpr std::pair<Where, std::string_view> places[] = {
    {Where::input, "input"}, {Where::output, "output"}, {Where::constant, "constant"}, {Where::arena, "arena"}};

Document numbers(const auto& all) {
  Document list = Document::list();
  for (const std::int64_t each : all) list.push(each);
  return list;
}

std::int64_t bytes_of(const Shape& shape, DType type) {
  return elements_of(shape) * codegen::bytes_of(type);
}

Document to_document(const Plan::Tensor& tensor, bool is_input) {
  Document out = Document::map()
                     .set("name", tensor.name)
                     .set("type", std::string(codegen::name_of(tensor.type)))
                     .set("shape", numbers(tensor.shape));
  if (!tensor.declared.empty()) out.set("declared", tensor.declared);
  if (!is_input) return out;
  const Draw &draw = tensor.draw, usual;
  if (draw.low != usual.low) out.set("low", draw.low);
  if (draw.width != usual.width) out.set("width", draw.width);
  if (draw.is_whole) out.set("is_whole", true);
  if (draw.indexed != 0) out.set("indexed", draw.indexed);
  if (draw.indexed_directly != 0) out.set("indexed_directly", draw.indexed_directly);
  return out;
}

Document to_document(const Plan::Buffer& buffer, StoredConstants& constants) {
  Document out = Document::map().set("type", std::string(codegen::name_of(buffer.type)));
  out.set("shape", numbers(buffer.shape));
  for (const auto& [where, name] : places)
    if (where == buffer.where) out.set("where", std::string(name));
  if (buffer.number >= 0) out.set("number", buffer.number);
  if (buffer.part_of >= 0) out.set("part_of", buffer.part_of).set("offset", buffer.offset);
  if (buffer.known) out.set("constant", constants.add(buffer.known->bytes));
  return out;
}

Document to_document(const Plan::Call& call) {
  Document layers = Document::list();
  for (const std::string& layer : call.layers) layers.push(layer);
  return Document::map()
      .set("kernel", call.kernel)
      .set("operands", numbers(call.operands))
      .set("result", call.result)
      .set("label", call.label)
      .set("layers", std::move(layers));
}

[[noreturn]] void fail(const Document& at, const std::string& what) {
  throw base::UserError(at.place(), what);
}

DType type_in(const Document& document) {
  const Document& name = document.at("type");
  const std::optional<DType> type = codegen::dtype_of(name.as_string());
  if (!type) fail(name, fmt::format("'{}' is not a type", name.as_string()));
  return *type;
}

Shape shape_in(const Document& document) {
  Shape shape;
  const Document& list = document.at("shape");
  for (const Document& extent : list.as_list()) {
    shape.push_back(extent.as_integer());
    if (shape.back() < 0) fail(extent, "an extent below 0");
  }
  if (elements_of(shape) < 0) fail(list, "a shape that is too large");
  return shape;
}

// A number below `count`.
int number_in(const Document& number, std::size_t count) {
  const std::int64_t value = number.as_integer();
  if (value < 0 || value >= std::int64_t(count)) fail(number, fmt::format("{} where there are {}", value, count));
  return int(value);
}

Plan::Tensor tensor_from(const Document& document) {
  Plan::Tensor tensor{document.at("name").as_string(), type_in(document), shape_in(document)};
  if (const Document* const declared = document.find("declared")) tensor.declared = declared->as_string();
  if (const Document* const low = document.find("low")) tensor.draw.low = low->as_number();
  if (const Document* const width = document.find("width")) tensor.draw.width = width->as_number();
  if (const Document* const whole = document.find("is_whole")) tensor.draw.is_whole = whole->as_bool();
  if (const Document* const indexed = document.find("indexed")) tensor.draw.indexed = indexed->as_integer();
  if (const Document* const indexed = document.find("indexed_directly"))
    tensor.draw.indexed_directly = indexed->as_integer();
  return tensor;
}

// Reads and checks; a fault is an error at its place in the document.
class Reader {
 public:
  Reader(const Document& document, std::vector<Plan::Kernel> kernels, std::string_view constants,
         std::string_view constants_file)
      : document_(document), constants_(constants), constants_file_(constants_file) {
    plan_.kernels = std::move(kernels);
    for (const Plan::Kernel& kernel : plan_.kernels) {
      check(document, kernel.workload.computation());
      if (kernel.foreign) check_foreign(document, kernel);
    }
  }

  Plan made() && {
    plan_.inputs = inputs_from(document_);
    for (const Document& output : document_.at("outputs").as_list()) plan_.outputs.push_back(tensor_from(output));
    const Document::List& buffers = document_.at("buffers").as_list();
    for (const Document& buffer : buffers) plan_.buffers.push_back(buffer_from(buffer, buffers.size()));
    for (std::size_t b = 0; b < buffers.size(); ++b) check_part(buffers[b], plan_.buffers[b]);
    written_.resize(buffers.size());
    for (const Document& call : document_.at("calls").as_list()) plan_.calls.push_back(call_from(call));
    for (std::size_t b = 0; b < buffers.size(); ++b)
      if (plan_.buffers[b].where == Where::output && !written_[b] && plan_.buffers[b].part_of < 0 &&
          elements_of(plan_.buffers[b].shape) > 0 && !has_written_parts(int(b)))
        fail(buffers[b], "an output that no call writes");
    return std::move(plan_);
  }

 private:
  static void check(const Document& at, const codegen::Computation& kernel) {
    int outputs = 0;
    for (const codegen::Tensor& tensor : kernel.tensors) {
      const bool is_output = tensor.role == codegen::Role::output;
      if (is_output ? ++outputs > 1 || tensor.name != "y"
                    : tensor.role != codegen::Role::temporary && operand_of(tensor) < 0)
        fail(at, fmt::format("a kernel with a tensor {}; its operands are x0, x1, ..., its result is y",
                             in_quotes(tensor.name)));
    }
    if (outputs == 0) fail(at, "a kernel without a result y");
  }

  // The function may be called on tensors of these sizes.
  static void check_foreign(const Document& at, const Plan::Kernel& kernel) {
    const auto wanted = codegen::computation_of(*kernel.foreign);
    if (!wanted) fail(at, wanted.reason().text);
    const auto &own = kernel.workload.computation().tensors, &all = wanted->tensors;
    const bool fits = std::equal(own.begin(), own.end(), all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.name == b.name && a.role == b.role && a.dtype == b.dtype && a.elements() == b.elements();
    });
    if (!fits) fail(at, fmt::format("'{}' takes other tensors", kernel.foreign->function));
  }

  Plan::Buffer buffer_from(const Document& document, std::size_t count) const {
    Plan::Buffer buffer;
    buffer.type = type_in(document);
    buffer.shape = shape_in(document);
    const Document& where = document.at("where");
    const auto* const found = std::find_if(std::begin(places), std::end(places),
                                           [&](const auto& place) { return place.second == where.as_string(); });
    if (found == std::end(places)) fail(where, fmt::format("'{}' is not a place of buffers", where.as_string()));
    buffer.where = found->first;
    if (const Document* const number = document.find("number")) {
      const bool is_input = buffer.where == Where::input;
      const std::vector<Plan::Tensor>& tensors = is_input ? plan_.inputs : plan_.outputs;
      buffer.number = number_in(*number, tensors.size());
      const Plan::Tensor& tensor = tensors[std::size_t(buffer.number)];
      if (tensor.type != buffer.type || bytes_of(tensor.shape, tensor.type) != buffer.bytes())
        fail(*number, "a buffer that is not as its input or output");
    }
    if (const Document* const whole = document.find("part_of")) {
      buffer.part_of = number_in(*whole, count);
      buffer.offset = document.at("offset").as_integer();
    } else if ((buffer.where == Where::input || buffer.where == Where::output) && buffer.number < 0) {
      fail(document, "which input or output this is, is not said");
    }
    if (const Document* const constant = document.find("constant")) buffer.known = constant_from(*constant, buffer);
    if (buffer.where == Where::constant && !buffer.known && buffer.part_of < 0) fail(document, "no constant is named");
    return buffer;
  }

  Known constant_from(const Document& document, const Plan::Buffer& buffer) const {
    const std::int64_t offset = document.at("offset").as_integer(), bytes = buffer.bytes();
    if (offset < 0 || offset > std::int64_t(constants_.size()) || bytes > std::int64_t(constants_.size()) - offset)
      throw base::UserError(constants_file_, fmt::format("has {}, and a constant of the plan ends beyond that",
                                                         base::counted(constants_.size(), "byte")));
    Array array{buffer.type, buffer.shape, std::string(constants_.substr(std::size_t(offset), std::size_t(bytes)))};
    if (base::to_hex(base::hash_bytes(array.bytes)) != document.at("hash").as_string())
      throw base::UserError(constants_file_, "is not what the plan was made with; run graft tune again");
    return std::make_shared<const Array>(std::move(array));
  }

  void check_part(const Document& document, const Plan::Buffer& own) const {
    if (own.part_of < 0) return;
    const Plan::Buffer& whole = plan_.buffers[std::size_t(own.part_of)];
    if (whole.part_of >= 0 || whole.where != own.where)
      fail(document, "a part of what is a part itself, or is elsewhere");
    if (own.offset < 0 || own.offset > whole.bytes() || own.bytes() > whole.bytes() - own.offset)
      fail(document, "a part that ends beyond its buffer");
  }

  bool has_written_parts(int whole) const {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b)
      if (plan_.buffers[b].part_of == whole && written_[b]) return true;
    return false;
  }

  // What a kernel takes or gives must be what the buffer has.
  void check_fits(const Document& at, const codegen::Tensor& tensor, int buffer) const {
    const Plan::Buffer& own = plan_.buffers[std::size_t(buffer)];
    if (own.type != tensor.dtype || own.bytes() != tensor.bytes())
      fail(at, fmt::format("buffer {} is {}{}, and the kernel's {} is {}{}", buffer, codegen::name_of(own.type),
                           to_text(own.shape), tensor.name, codegen::name_of(tensor.dtype), to_text(tensor.shape)));
    if (tensor.role == codegen::Role::constant && !own.known) fail(at, "the kernel takes a constant here");
  }

  Plan::Call call_from(const Document& document) {
    Plan::Call call;
    call.kernel = number_in(document.at("kernel"), plan_.kernels.size());
    for (const Document& operand : document.at("operands").as_list()) {
      const int buffer = call.operands.emplace_back(number_in(operand, plan_.buffers.size()));
      const std::size_t whole = whole_of(plan_, buffer);
      const Where where = plan_.buffers[std::size_t(buffer)].where;
      const bool is_made = where == Where::input || where == Where::constant || written_[std::size_t(buffer)] ||
                           written_[whole] || has_written_parts(int(whole));
      if (!is_made) fail(operand, fmt::format("buffer {} is read before a call writes it", buffer));
    }
    call.result = number_in(document.at("result"), plan_.buffers.size());
    const Plan::Buffer& result = plan_.buffers[std::size_t(call.result)];
    if (result.where == Where::input || result.where == Where::constant || result.known)
      fail(document.at("result"), "an input or a constant that a call would write");
    written_[std::size_t(call.result)] = true;
    for (const codegen::Tensor& tensor : plan_.kernels[std::size_t(call.kernel)].workload.computation().tensors) {
      if (tensor.role == codegen::Role::output) check_fits(document.at("result"), tensor, call.result);
      if (const int number = operand_of(tensor); number >= 0) {
        if (std::size_t(number) >= call.operands.size()) fail(document.at("operands"), "fewer than the kernel takes");
        check_fits(document.at("operands"), tensor, call.operands[std::size_t(number)]);
      }
    }
    call.label = document.at("label").as_string();
    for (const Document& layer : document.at("layers").as_list()) call.layers.push_back(layer.as_string());
    return call;
  }

  const Document& document_;
  const std::string_view constants_, constants_file_;
  Plan plan_;
  std::vector<bool> written_;  // by buffer, by the calls that are read
};

}  // namespace

Document StoredConstants::add(const std::string& content) {
  const std::uint64_t hash = base::hash_bytes(content);
  const auto [known, is_new] = places_.try_emplace({hash, content.size()}, 0);
  if (is_new) {
    all_.resize((all_.size() + alignment - 1) / alignment * alignment);
    known->second = std::int64_t(all_.size());
    all_ += content;
  }
  return Document::map().set("offset", known->second).set("hash", base::to_hex(hash));
}

Document stored(const Plan& plan, StoredConstants& constants) {
  Document inputs = Document::list(), outputs = Document::list(), buffers = Document::list(), calls = Document::list();
  for (const Plan::Tensor& tensor : plan.inputs) inputs.push(to_document(tensor, true));
  for (const Plan::Tensor& tensor : plan.outputs) outputs.push(to_document(tensor, false));
  for (const Plan::Buffer& buffer : plan.buffers) buffers.push(to_document(buffer, constants));
  for (const Plan::Call& call : plan.calls) calls.push(to_document(call));
  return Document::map()
      .set("inputs", std::move(inputs))
      .set("outputs", std::move(outputs))
      .set("buffers", std::move(buffers))
      .set("calls", std::move(calls));
}

std::vector<Plan::Tensor> inputs_from(const Document& document) {
  std::vector<Plan::Tensor> inputs;
  for (const Document& input : document.at("inputs").as_list()) inputs.push_back(tensor_from(input));
  return inputs;
}

Plan plan_from(const Document& document, std::vector<Plan::Kernel> kernels, std::string_view constants,
               std::string_view constants_file) {
  return Reader(document, std::move(kernels), constants, constants_file).made();
}

}  // namespace graft::graph
