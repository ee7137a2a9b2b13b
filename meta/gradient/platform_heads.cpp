#include "meta/gradient/platform_heads.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <string>
#include <utility>

#include "base/statistics.h"

namespace graft::meta {
namespace {

// Replaces inputs by 0, their mean, and stretches the others so that sums keep their mean.
void hide_inputs(std::vector<float>& x, double share, base::Stream& stream) {
  if (share <= 0) return;
  const auto threshold = std::uint64_t(share * 65536);
  const auto stretch = float(1 / (1 - share));
  for (std::size_t i = 0; i < x.size(); i += 4) {
    std::uint64_t bits = stream.bits();
    for (std::size_t j = i; j < std::min(i + 4, x.size()); ++j, bits >>= 16)
      x[j] = (bits & 65535) < threshold ? 0 : x[j] * stretch;
  }
}

}  // namespace

std::vector<PreparedGroup> in_equal_units(std::span<const PreparedGroup> groups) {
  std::vector<double> spreads;
  for (const PlatformGroups& platform : by_platform(groups)) {
    std::vector<std::span<const double>> labels;
    for (const PreparedGroup* const group : platform.groups) labels.push_back(group->log_seconds);
    const double spread = base::deviation_within(labels);
    spreads.push_back(spread > 0 ? spread : 1);
  }
  const double usual = base::mean(spreads);
  const std::vector<std::size_t> positions = platform_positions(groups);
  std::vector<PreparedGroup> out(groups.begin(), groups.end());
  for (std::size_t g = 0; g < out.size(); ++g) {
    for (double& label : out[g].log_seconds) label *= usual / spreads[positions[g]];
  }
  return out;
}

std::int64_t heads_steps(std::span<const PreparedGroup> groups) {
  std::int64_t rows = 0;
  for (const PreparedGroup& group : groups) rows += group.programs->programs();
  return std::clamp<std::int64_t>(rows * 170 / 512, 100, 4000);
}

std::vector<float> train_platform_heads(const NetworkShape& shape, std::uint64_t seed,
                                        std::span<const PreparedGroup> groups, const HeadsSettings& settings,
                                        Stage stage) {
  assert(shape.outputs == 1);
  NetworkShape many = shape;
  many.outputs = std::int64_t(by_platform(groups).size());
  const auto heads = std::size_t(many.outputs);
  const auto network = make_network(many);
  const std::vector<PreparedGroup> scaled = in_equal_units(groups);
  const std::vector<std::size_t> head_of = platform_positions(groups);
  std::vector<float> theta = initial_parameters(many, seed);
  RunningMean mean{theta, settings.average};
  const bool wants_loss = stage.record != nullptr;
  const std::string noise = stage.name + ", hidden inputs";
  const auto gradient_of = [&](std::span<const Selection> rows, Batch<float> batch, std::int64_t number,
                               std::span<float> gradient) {
    base::Stream stream(seed, noise, std::uint64_t(number));
    hide_inputs(batch.x, settings.hidden, stream);
    std::vector<std::size_t> own;  // by row: where its head's score is
    for (const Selection& selection : rows) {
      const std::size_t head = head_of[std::size_t(selection.group - scaled.data())];
      for (std::size_t p = 0; p < selection.programs.size(); ++p) own.push_back(own.size() * heads + head);
    }
    std::vector<float> all(own.size() * heads), scores(own.size()), by_scores(own.size()), by_all(all.size(), 0.0f);
    const auto tape = network->forward(theta, batch.inputs(), all);
    for (std::size_t r = 0; r < own.size(); ++r) scores[r] = all[own[r]];
    batch.objective.gradient<float>(scores, by_scores);
    for (std::size_t r = 0; r < own.size(); ++r) by_all[own[r]] = by_scores[r];
    network->backward(theta, *tape, by_all, gradient);
    return wants_loss ? batch.objective.value<float>(scores) : 0.0f;
  };
  train_in_batches(theta, scaled, settings.batches, std::move(stage), gradient_of, &mean);

  // The mean of the heads: the last weight is width x heads, the last bias heads.
  const std::vector<ParameterBlock> blocks = layout_of(many);
  const ParameterBlock &weight = blocks[blocks.size() - 2], &bias = blocks.back();
  std::vector<float> out(mean.values.begin(), mean.values.begin() + weight.offset);
  for (const ParameterBlock* const block : {&weight, &bias}) {
    for (std::int64_t i = 0; i < block->size; i += many.outputs) {
      const auto first = mean.values.begin() + block->offset + i;
      out.push_back(std::accumulate(first, first + many.outputs, 0.0f) / float(many.outputs));
    }
  }
  return out;
}

}  // namespace graft::meta
