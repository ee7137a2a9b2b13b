// Text form of index expressions, both ways.
//
//   input A[512,512]; input B[512,512]; output C[i,j] += A[i,l] * B[l,j] where i=512, j=512, l=512
//
// Statements, separated by ';':
//   input|constant NAME[extent, ...] [: dtype]          an operand of the operator
//   literal NAME[extent, ...] [: dtype] = {number, ...}  a tensor of known elements, row-major
//   [output] NAME[axis, ...] [: dtype] (=|+=|max=|min=) value [where axis=extent, ...]
//                                                        a stage; without `output` its tensor is a temporary; the axes
//                                                        on the left are spatial, further ones in value are reduced, in
//                                                        order of first appearance, or as listed: C[i,j | l]. Forms of
//                                                        axes may take their place, which reach every element once:
//                                                        Y[2*i + a]
// Values: + - * / % << >> ( ) numbers, axes, functions (GRAFT_OPS in value.h), select(a < b, c, d), loads
// NAME[index, ...], pad(NAME[index, ...]) for a load that is zero outside, pad(NAME[index, ...], number) for one that
// is that number outside (or -inf, or inf: of an integer the end of its range). An index is a form, or an integer
// value: one of these outside of its dimension counts as the nearest inside. Forms and extents are affine in axes and
// may use parameters and integer arithmetic of parameters: `stride*y + u - pad`, `(h + 2*pad - r)/stride + 1` (division
// rounds down; exact(a, b) refuses a remainder). `where` gives the axes of all stages since the last `where` their
// extents; the last stage has one. README.md has the grammar and examples.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/expression/computation.h"

namespace graft::codegen {

using Parameters = std::map<std::string, std::int64_t>;

// Checked computation; throws UserError "<place>:<line>:<column>: ..." for anything wrong. `dtype` is the default type;
// sums of i8 and u8, and what is made of them, are then i32. `out`: of outputs without a type, in place of that.
Computation parse_computation(std::string_view text, const Parameters& parameters, DType dtype, std::string_view place,
                              std::optional<DType> out = {});

// Text that parses back, without parameters and with default type f32, to an equal computation. Two things are not
// kept: nodes that one value uses twice are written twice, and tensors are numbered in the order of operands and
// stages. A stage with its own `index` is written with forms on the left, which are for people only and do not parse.
std::string to_text(const Computation& computation);

}  // namespace graft::codegen
