// How well modelled times agree with measured ones of the same programs. A constant factor between the two is not a
// disagreement: a model is used to rank programs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace graft::study {

struct Agreement {
  std::size_t programs = 0;
  double spread = 1;  // slowest / fastest, measured
  double spearman = 0;
  double kendall = 0;           // tau-b
  double spearman_of_best = 0;  // within the 30 % measured fastest
  double top1_regret = 1;       // measured time of the program modelled as fastest / of the fastest
  double top5_regret = 1;       // of the best of the five modelled as fastest / of the fastest
  double rms = 0;               // of ln(modelled / measured) around its mean
};

// Seconds of the same programs, all positive. With fewer than two programs all correlations are 0.
Agreement agreement(std::span<const double> modelled, std::span<const double> measured);

// ln(modelled / measured) of each program less the mean of them all: above 0 is modelled too slow.
std::vector<double> centred_log_ratios(std::span<const double> modelled, std::span<const double> measured);

}  // namespace graft::study
