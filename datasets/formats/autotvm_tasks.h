// Private to this folder: the workload that an AutoTVM record measured, from its "input".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/document.h"
#include "codegen/expression/workload.h"

namespace graft::datasets::formats {

// Sizes by our operators' names; those that an operator lacks are 0.
struct Shape {
  enum class Operator { unknown, conv2d, depthwise_conv2d, dense, batch_matmul };
  Operator op = Operator::unknown;
  std::int64_t n = 0, c = 0, h = 0, w = 0, k = 0, r = 0, s = 0;  // images: k output channels, windows of r x s
  std::int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;  // padding
  std::int64_t out_h = 0, out_w = 0;
  std::int64_t b = 0, m = 0, columns = 0, depth = 0;  // matrices: [b] m x columns, sums of `depth` products
  bool is_transposed = false;                         // dense: weights are columns x depth
  bool is_padded() const { return top + left + bottom + right > 0; }
};

// Template names of our own rows begin with this; their only argument is the workload's text.
constexpr std::string_view exported_prefix = "graft.";
constexpr std::size_t longest_template = 100;  // characters of a template's name

struct Task {
  std::string name;  // of the template
  codegen::Workload workload;
  Shape shape;
};

// `input`: [target, template, arguments, {}]. The workload is an operator's or an index expression if the template's
// name denotes an operator and form that we know, else "table(name=<template>,...)" with the sizes of the
// tensors, any integers after them, and a hash of all arguments. UserError at `place`, also for tensors of
// more than 2^40 elements.
Task task_of(const base::Document& input, const std::string& place);

// Letters, digits, '_', '.' and '-'.
bool is_plain_name(std::string_view name);

}  // namespace graft::datasets::formats
