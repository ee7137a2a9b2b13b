#include "datasets/formats/autotvm_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace graft::datasets::formats {
namespace {

using base::UserError;
using Operator = Shape::Operator;

constexpr std::int64_t most_elements = std::int64_t(1) << 40;
constexpr std::size_t most_arguments = 32, most_dimensions = 8;

// Task functions by how their names begin, longest first.
constexpr std::pair<std::string_view, Operator> operators[] = {{"depthwise_conv2d_n", Operator::depthwise_conv2d},
                                                               {"conv2d_n", Operator::conv2d},
                                                               {"conv2d_N", Operator::conv2d},
                                                               {"depthwise_conv2d_N", Operator::depthwise_conv2d},
                                                               {"dense", Operator::dense},
                                                               {"batch_matmul", Operator::batch_matmul}};

struct Tensor {
  std::vector<std::int64_t> shape;
  std::string dtype;
  bool is_plain = true;  // nothing is said of it but shape and type
};

struct Arguments {
  std::vector<Tensor> tensors;       // in front
  std::vector<base::Document> rest;  // the remaining items
};

std::int64_t size_of(const base::Document& value) {
  const std::int64_t size = value.as_integer();
  if (size < 1 || size > most_elements) throw UserError(value.place(), fmt::format("a size of {}", size));
  return size;
}

Tensor tensor_of(const base::Document& value) {
  const base::Document::List& parts = value.as_list();
  if (parts.size() < 3) throw UserError(value.place(), "expected [\"TENSOR\", shape, type]");
  Tensor tensor;
  tensor.is_plain = parts.size() == 3;  // an offset within a buffer may follow
  if (parts[1].as_list().size() > most_dimensions) {
    throw UserError(parts[1].place(), fmt::format("a tensor of more than {} dimensions", most_dimensions));
  }
  std::int64_t elements = 1;
  for (const base::Document& extent : parts[1].as_list()) {
    tensor.shape.push_back(size_of(extent));
    if (tensor.shape.back() > most_elements / elements) {
      throw UserError(value.place(), "a tensor of more than 2^40 elements");
    }
    elements *= tensor.shape.back();
  }
  tensor.dtype = parts[2].as_string();
  if (!is_plain_name(tensor.dtype)) throw UserError(parts[2].place(), "expected a type");
  return tensor;
}

bool is_tensor(const base::Document& value) {
  return value.is_list() && !value.as_list().empty() && value.as_list()[0].is_string() &&
         value.as_list()[0].as_string() == "TENSOR";
}

Arguments arguments_of(const base::Document& list) {
  const base::Document::List& all = list.as_list();
  if (all.size() > most_arguments) throw UserError(list.place(), fmt::format("more than {} arguments", most_arguments));
  Arguments arguments;
  for (const base::Document& value : all) {
    if (arguments.rest.empty() && is_tensor(value)) {
      arguments.tensors.push_back(tensor_of(value));
    } else {
      arguments.rest.push_back(value);
    }
  }
  return arguments;
}

// An integer, or two: [h, w]. False if it is neither.
bool pair_of(const base::Document& value, std::int64_t& h, std::int64_t& w) {
  if (value.is_integer()) {
    h = w = value.as_integer();
    return h >= 1 && h <= most_elements;
  }
  if (!value.is_list() || value.as_list().size() != 2) return false;
  for (const base::Document& each : value.as_list()) {
    if (!each.is_integer() || each.as_integer() < 1 || each.as_integer() > most_elements) return false;
  }
  h = value.as_list()[0].as_integer();
  w = value.as_list()[1].as_integer();
  return true;
}

// As TVM's get_pad_tuple: an integer, [h, w], [top, left, bottom, right], "VALID", or "SAME".
bool padding_of(const base::Document& value, Shape& shape) {
  std::vector<std::int64_t> sizes;
  if (value.is_string()) {
    const std::string& word = value.as_string();
    if (word != "SAME" && word != "VALID") return false;
    const std::int64_t h = word == "SAME" ? shape.dilation_h * (shape.r - 1) : 0;
    const std::int64_t w = word == "SAME" ? shape.dilation_w * (shape.s - 1) : 0;
    sizes = {(h + 1) / 2, (w + 1) / 2, h - (h + 1) / 2, w - (w + 1) / 2};
  } else if (value.is_integer()) {
    sizes.assign(4, value.as_integer());
  } else if (value.is_list()) {
    for (const base::Document& each : value.as_list()) {
      if (!each.is_integer()) return false;
      sizes.push_back(each.as_integer());
    }
    if (sizes.size() == 2) sizes = {sizes[0], sizes[1], sizes[0], sizes[1]};
  }
  if (sizes.size() != 4) return false;
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > most_elements) return false;
  }
  shape.top = sizes[0];
  shape.left = sizes[1];
  shape.bottom = sizes[2];
  shape.right = sizes[3];
  return true;
}

// data NCHW, weights, strides, padding, dilation, then layouts and types.
bool read_convolution(const Arguments& from, Shape& shape) {
  if (from.tensors.size() != 2 || from.rest.size() < 3) return false;
  const std::vector<std::int64_t>&data = from.tensors[0].shape, &weights = from.tensors[1].shape;
  if (data.size() != 4 || weights.size() != 4) return false;
  for (const base::Document& value : from.rest) {
    const bool is_text = value.is_string() && &value - from.rest.data() >= 3;
    if (is_text && value.as_string().starts_with("N") && value.as_string() != "NCHW") return false;
  }
  shape.n = data[0];
  shape.c = data[1];
  shape.h = data[2];
  shape.w = data[3];
  shape.r = weights[2];
  shape.s = weights[3];
  if (shape.op == Operator::conv2d) {
    shape.k = weights[0];
    if (weights[1] != shape.c) return false;
  } else {
    shape.k = shape.c;
    if (weights[0] != shape.c || weights[1] != 1) return false;
  }
  if (!pair_of(from.rest[0], shape.stride_h, shape.stride_w) ||
      !pair_of(from.rest[2], shape.dilation_h, shape.dilation_w) || !padding_of(from.rest[1], shape)) {
    return false;
  }
  const std::int64_t rows = shape.h + shape.top + shape.bottom - shape.dilation_h * (shape.r - 1) - 1;
  const std::int64_t columns = shape.w + shape.left + shape.right - shape.dilation_w * (shape.s - 1) - 1;
  if (rows < 0 || columns < 0) return false;
  shape.out_h = rows / shape.stride_h + 1;
  shape.out_w = columns / shape.stride_w + 1;
  return true;
}

std::string convolution_text(const Shape& shape) {
  const bool depthwise = shape.op == Operator::depthwise_conv2d;
  const bool even = shape.stride_h == shape.stride_w && shape.top == shape.left && shape.top == shape.bottom &&
                    shape.top == shape.right && shape.dilation_h == 1 && shape.dilation_w == 1;
  if (even && depthwise) {
    return fmt::format("depthwise_conv2d(n={},c={},h={},w={},r={},s={},stride={},pad={})", shape.n, shape.c, shape.h,
                       shape.w, shape.r, shape.s, shape.stride_h, shape.top);
  }
  if (even) {
    return fmt::format("conv2d(n={},c={},h={},w={},k={},r={},s={},stride={},pad={})", shape.n, shape.c, shape.h,
                       shape.w, shape.k, shape.r, shape.s, shape.stride_h, shape.top);
  }
  // As the operators' expressions, with what differs by direction.
  return fmt::format(
      "input X[{n},{c},{h},{w}]; constant W[{weights}{r},{s}];"
      "P[b,i,p,q] = pad(X[b,i,p - {top},q - {left}]);"
      "output Y[b,{out},y,x] += P[b,i,{sh}*y + {dh}*u,{sw}*x + {dw}*v] * W[{filter}u,v]"
      " where b={n}, i={c}, {o}p={ph}, q={pw}, y={oh}, x={ow}, u={r}, v={s}",
      fmt::arg("n", shape.n), fmt::arg("c", shape.c), fmt::arg("h", shape.h), fmt::arg("w", shape.w),
      fmt::arg("weights", depthwise ? fmt::format("{},", shape.c) : fmt::format("{},{},", shape.k, shape.c)),
      fmt::arg("r", shape.r), fmt::arg("s", shape.s), fmt::arg("top", shape.top), fmt::arg("left", shape.left),
      fmt::arg("out", depthwise ? "i" : "o"), fmt::arg("filter", depthwise ? "i," : "o,i,"),
      fmt::arg("o", depthwise ? std::string() : fmt::format("o={}, ", shape.k)), fmt::arg("sh", shape.stride_h),
      fmt::arg("sw", shape.stride_w), fmt::arg("dh", shape.dilation_h), fmt::arg("dw", shape.dilation_w),
      fmt::arg("ph", shape.h + shape.top + shape.bottom), fmt::arg("pw", shape.w + shape.left + shape.right),
      fmt::arg("oh", shape.out_h), fmt::arg("ow", shape.out_w));
}

// data [m, depth], weights [columns, depth] or [depth, columns], no bias.
bool read_dense(const Arguments& from, Shape& shape) {
  if (from.tensors.size() != 2) return false;
  const std::vector<std::int64_t>&data = from.tensors[0].shape, &weights = from.tensors[1].shape;
  if (data.size() != 2 || weights.size() != 2) return false;
  if (!from.rest.empty() && !from.rest[0].is_null() && !from.rest[0].is_string()) return false;
  shape.m = data[0];
  shape.depth = data[1];
  shape.is_transposed = data[1] == weights[1];
  if (!shape.is_transposed && data[1] != weights[0]) return false;
  shape.columns = weights[shape.is_transposed ? 0 : 1];
  return true;
}

// [b, m, depth], [b, depth, columns]: the form with neither side transposed.
bool read_batch_matmul(const Arguments& from, Shape& shape) {
  if (from.tensors.size() != 2 || from.rest.size() < 4) return false;
  const std::vector<std::int64_t>&x = from.tensors[0].shape, &y = from.tensors[1].shape;
  if (x.size() != 3 || y.size() != 3 || x[0] != y[0] || x[2] != y[1]) return false;
  for (const base::Document& transposed : {from.rest[from.rest.size() - 2], from.rest.back()}) {
    const bool is_off =
        (transposed.is_integer() && transposed.as_integer() == 0) || (transposed.is_bool() && !transposed.as_bool());
    if (!is_off) return false;
  }
  shape.b = x[0];
  shape.m = x[1];
  shape.depth = x[2];
  shape.columns = y[2];
  return true;
}

// Empty where we do not know how the arguments are meant.
std::string expression_of(const Arguments& arguments, Shape& shape) {
  for (const Tensor& tensor : arguments.tensors) {
    if (tensor.dtype != "float32" || !tensor.is_plain) return "";
  }
  for (const base::Document& value : arguments.rest) {
    const bool is_type =
        value.is_string() && (value.as_string().starts_with("float") || value.as_string().starts_with("int") ||
                              value.as_string().starts_with("uint"));
    if (is_type && value.as_string() != "float32") return "";
  }
  switch (shape.op) {
    case Operator::conv2d:
    case Operator::depthwise_conv2d:
      return read_convolution(arguments, shape) ? convolution_text(shape) : "";
    case Operator::dense:
      if (!read_dense(arguments, shape)) return "";
      return fmt::format(
          "input X[{0},{2}]; constant W[{3}]; output Y[i,j] += X[i,l] * W[{4}] where i={0}, j={1}, l={2}", shape.m,
          shape.columns, shape.depth,
          shape.is_transposed ? fmt::format("{},{}", shape.columns, shape.depth)
                              : fmt::format("{},{}", shape.depth, shape.columns),
          shape.is_transposed ? "j,l" : "l,j");
    case Operator::batch_matmul:
      if (!read_batch_matmul(arguments, shape)) return "";
      return fmt::format("batch_matmul(b={},m={},n={},k={})", shape.b, shape.m, shape.columns, shape.depth);
    case Operator::unknown:
      break;
  }
  return "";
}

void append_integers(const base::Document& value, int depth, std::vector<std::int64_t>& to) {
  if (value.is_integer()) to.push_back(value.as_integer());
  if (!value.is_list() || depth > 3) return;
  for (const base::Document& each : value.as_list()) append_integers(each, depth + 1, to);
}

// "table(name=dense_tensorcore.cuda.float16,t0_0=65536,...,a0=1,all=<hash of the arguments>)": other values distinguish
// workloads, too.
std::string opaque_text(const std::string& name, const Arguments& arguments, const base::Document& all) {
  std::string text = fmt::format("table(name={}", name);
  if (!arguments.tensors.empty()) text += "." + arguments.tensors.front().dtype;
  for (std::size_t t = 0; t < arguments.tensors.size(); ++t) {
    const std::vector<std::int64_t>& shape = arguments.tensors[t].shape;
    for (std::size_t d = 0; d < shape.size(); ++d) text += fmt::format(",t{}_{}={}", t, d, shape[d]);
  }
  std::vector<std::int64_t> integers;
  for (const base::Document& value : arguments.rest) append_integers(value, 0, integers);
  for (std::size_t i = 0; i < integers.size(); ++i) text += fmt::format(",a{}={}", i, integers[i]);
  return text + fmt::format(",all={})", base::to_hex(base::hash_bytes(all.to_json())));
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  });
}

Task task_of(const base::Document& input, const std::string& place) {
  const base::Document::List& parts = input.as_list();
  if (parts.size() < 3) throw UserError(place, "'input' must be [target, template, arguments, ...]");
  Task task;
  task.name = parts[1].as_string();
  if (!is_plain_name(task.name) || task.name.size() > longest_template) {
    throw UserError(parts[1].place(), "the name of a template must be letters, digits, '_', '.' and '-'");
  }
  const Arguments arguments = arguments_of(parts[2]);
  if (task.name.starts_with(exported_prefix) && arguments.rest.size() == 1 && arguments.rest[0].is_string()) {
    task.workload = codegen::Workload(arguments.rest[0].as_string());
    return task;
  }
  for (const auto& [begin, op] : operators) {
    if (task.shape.op == Operator::unknown && task.name.starts_with(begin)) task.shape.op = op;
  }
  const std::string text = expression_of(arguments, task.shape);
  if (text.empty()) {
    task.shape = {};
    task.workload = codegen::Workload(opaque_text(task.name, arguments, parts[2]));
    return task;
  }
  try {
    task.workload = codegen::parse_workload(text);
  } catch (const UserError& error) {
    throw UserError(place, error.what());
  }
  return task;
}

}  // namespace graft::datasets::formats
