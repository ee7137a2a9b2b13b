// The context-relation encoding: for each buffer, the reuse of data volumes at each height of the nest, as curves
// sampled at fixed thresholds, so that it has one length for any program, operator and loop structure ("Learning to
// Optimize Tensor Programs", Chen et al. 2018, section 3 and its appendix on context relation features:
// R_t^(ij) = max over loops k with Z_kj < beta_t of Z_ki). In addition to the curves it has strides, kinds of loops
// and arithmetic, which the published feature lacks.
//
// The points of a curve stay paired per loop: sorting the two quantities independently, as published, pairs the
// innermost loop's touched elements with the outermost loop's product. It does not know any operator, schedule or
// target.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "features/buffers.h"
#include "features/encoding.h"

namespace graft::features {

inline constexpr int thresholds = 32;  // beta_t = 2^t, t = 0 .. 31

// One loop around accesses of a buffer: elements touched by the loop and all inside, their reuse (both the maximum over
// the buffer's access sites in it), and the product of extents from the outermost loop down to it.
struct ContextPoint {
  std::int64_t touched = 1, reuse = 1, top_down = 1;
};
using Quantity = std::int64_t ContextPoint::*;

// R_t for all thresholds: the largest `to` among points whose `from` is below 2^t; 0 if there is none.
std::array<std::int64_t, thresholds> relation(std::span<const ContextPoint> points, Quantity from, Quantity to);

// Version 1. Buffers are those in memory that `run` uses, in the order of buffers.h; those after the first
// buffer_slots are summed into one more slot. Counts enter as log2(1 + count); missing values are 0.
Encoding context_relation();

}  // namespace graft::features
