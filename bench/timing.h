// Several ways to the same result, timed in turn: repetition 1 of each, repetition 2 of each, ... so that a drifting
// clock or a busy neighbour affects all of them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/document.h"
#include "bench/settings.h"

namespace graft::bench {

// Interquartile range / median; NaN of fewer than base::least_for_interval values, which have no quartiles.
double spread_of(std::span<const double> values);
std::string spread_text(double spread);  // "12.3%", "-" for NaN

struct Timing {
  double best = 0, median = 0, worst = 0;  // seconds of one call, over all repetitions
  double spread = 0;                       // spread_of all repetitions
  int repetitions = 0;
  bool right = false;  // outputs within the tolerance of the reference
};

double now(const TimingSettings& settings);

struct Contender {
  std::string name;
  std::function<void()> call;        // the timed call
  std::function<bool()> check;       // whether the results of the last call are right; not timed
  std::function<void()> clear = {};  // makes an old result wrong, before the checked call
  std::string how = {};              // "jit:avx512_core, nChw16c": the library's choice
  Timing timing = {};
};

// Each is called once and checked, then timed. One that is wrong is not timed.
void measure_in_turn(std::vector<Contender>& contenders, const TimingSettings& settings);

base::Document to_document(const Timing& timing);

}  // namespace graft::bench
