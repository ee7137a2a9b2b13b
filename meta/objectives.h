// Ranking objectives: losses on the scores of programs that were measured in groups (one workload on one
// platform each), with their gradient and Hessian-vector product by the scores. Only programs of one group are ever
// compared, and nothing is normalised by a best time. Scores: higher is faster.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace graft::meta {

// rank: logistic loss of every pair: mean of w log(1 + exp(s_slow - s_fast)), w = min(|difference of log seconds|, 1).
// squared: half the mean squared error of scores against -log seconds, both centred within the group.
// lambda: LambdaRank (Burges 2010): the same pairs, w = |difference of gains| |difference of discounts| over the
// discounted gain of the right ranking; gain = seconds of the group's fastest / seconds, discount = 1 / log2(1 + place
// by score). Derivatives take the places as they are: the loss jumps where they change.
#define GRAFT_LOSSES(X) X(rank) X(squared) X(lambda)
enum class Loss {
#define X(name) name,
  GRAFT_LOSSES(X)
#undef X
};
std::string_view name_of(Loss loss);
Loss loss_named(std::string_view name);  // UserError if unknown

// The loss of rows that are stored group by group. Its value is the mean over the groups; a group in which all times
// are equal (or that has one row) does not count.
class Objective {
 public:
  Objective() = default;
  // `sizes[g]` rows of group g, in this order; together they are all of log_seconds.
  Objective(Loss loss, std::span<const double> log_seconds, std::span<const std::int64_t> sizes);

  std::int64_t rows() const { return std::int64_t(order_.size()); }
  std::int64_t counted() const { return counted_; }  // groups that count
  bool empty() const { return counted_ == 0; }       // value and derivatives are 0

  // T: float or double. In the losses of pairs, scores of one group that are further than 80 (float; 600 double) apart
  // are treated as that far apart: the loss is flat there.
  template <class T>
  T value(std::span<const T> scores) const;
  template <class T>
  void gradient(std::span<const T> scores, std::span<T> gradient) const;
  // product = H v.
  template <class T>
  void hessian_product(std::span<const T> scores, std::span<const T> v, std::span<T> product) const;
  // The gradient together with the diagonal of the Hessian (at least 0): the input of one step of boosting.
  template <class T>
  void newton(std::span<const T> scores, std::span<T> gradient, std::span<T> diagonal) const;

 private:
  struct Group {
    std::int64_t begin = 0, size = 0;
    double weight = 0;  // of one unit of loss in this group: 1 / (groups that count * total weight); 0: does not count
  };
  Loss loss_ = Loss::rank;
  std::vector<Group> groups_;
  std::int64_t counted_ = 0;
  std::vector<std::int64_t> order_;  // per group: row numbers, fastest first
  std::vector<double> log_seconds_;  // in that order
};

}  // namespace graft::meta
