// Learners of an embedding under a head in closed form (methods/heads.h). Three are trained in episodes through the
// head's own adaptation; `latent` with one head a source platform, whose distribution is the prior for a new one.
#include "meta/methods/embedding.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/team.h"
#include "meta/gradient/episodes.h"
#include "meta/gradient/training.h"
#include "meta/methods/embedding_model.h"
#include "meta/methods/heads.h"
#include "meta/metrics.h"

namespace graft::meta {

template <class T>
EmbeddingGradient<T> embedding_gradient(const NetworkOf<T>& network, std::span<const T> theta, const Head& prior,
                                        const Batch<T>& support, const Measured& measured, const Batch<T>& query) {
  EmbeddingGradient<T> out;
  out.theta.assign(theta.size(), T(0));
  out.mean.assign(prior.mean.size(), 0.0);
  const bool small =
      std::any_of(measured.sizes.begin(), measured.sizes.end(), [](std::int64_t size) { return size < 2; });
  if (small || measured.sizes.empty() || query.objective.empty()) return out;
  std::vector<T> embedded(std::size_t(support.objective.rows() * prior.width())),
      asked(std::size_t(query.objective.rows() * prior.width()));
  const auto support_tape = network.forward(theta, support.inputs(), embedded),
             query_tape = network.forward(theta, query.inputs(), asked);
  const Embedded known{prior.width(), {embedded.begin(), embedded.end()}, measured.log_seconds, measured.sizes};
  const std::vector<double> rows(asked.begin(), asked.end()), scores = adapted(prior, known).scores(rows);
  std::vector<double> by_scores(scores.size());
  query.objective.template gradient<double>(scores, by_scores);
  out.query_loss = T(query.objective.template value<double>(scores));
  HeadGradient head = head_gradient(prior, known, rows, by_scores);
  std::vector<T> gradient(theta.size());
  const auto add = [&](const auto& tape, const std::vector<double>& by_embedded) {
    network.backward(theta, tape, std::vector<T>(by_embedded.begin(), by_embedded.end()), gradient);
    for (std::size_t i = 0; i < gradient.size(); ++i) out.theta[i] += gradient[i];
  };
  add(*support_tape, head.support);
  add(*query_tape, head.query);
  out.mean = std::move(head.mean);
  out.log_scale = head.log_scale;
  return out;
}
template EmbeddingGradient<float> embedding_gradient(const NetworkOf<float>&, std::span<const float>, const Head&,
                                                     const Batch<float>&, const Measured&, const Batch<float>&);
template EmbeddingGradient<double> embedding_gradient(const NetworkOf<double>&, std::span<const double>, const Head&,
                                                      const Batch<double>&, const Measured&, const Batch<double>&);

namespace {

constexpr std::int64_t width = 32;  // of the embedding
constexpr std::int64_t warm_steps = 400, episode_steps = 250, tasks_per_step = 4;

// What embeds, and the vectors of `width` numbers whose product with an embedding is a score.
struct Embedding {
  NetworkShape shape;
  std::vector<float> theta, heads;  // heads: platforms (or one for all) x width
};

Embedding untrained_embedding(NetworkShape shape, std::int64_t heads, std::uint64_t seed) {
  shape.outputs = width;
  Embedding out{shape, initial_parameters(shape, seed), {}};
  base::Stream stream(seed, "initial heads");
  for (std::int64_t i = 0; i < heads * width; ++i)
    out.heads.push_back(float(stream.normal() / std::sqrt(double(width))));
  return out;
}

// Trains on groups of all platforms alike; group g is scored by head head_of[g].
void train_heads(const Network& network, Embedding& embedding, std::span<const PreparedGroup> groups,
                 const std::vector<std::size_t>& head_of, const PooledSettings& settings, Stage stage) {
  stage.steps = settings.steps;
  Adam adam(embedding.theta.size()), heads_adam(embedding.heads.size());
  const TrainedVector changing[] = {{&embedding.theta, &adam}, {&embedding.heads, &heads_adam}};
  std::vector<float> gradient(embedding.theta.size());
  run(stage, changing, [&](std::int64_t step) {
    base::Stream stream(stage.seed, stage.name, std::uint64_t(step));
    std::vector<Selection> selections;
    std::vector<std::size_t> offset_of_row;
    const std::vector<std::int64_t> drawn = stream.choose(std::int64_t(groups.size()), settings.groups_per_step);
    for (const std::int64_t g : drawn) {
      const PreparedGroup& group = groups[std::size_t(g)];
      selections.push_back(
          {&group, stream.choose(group.programs->programs(), settings.rows_per_step / std::int64_t(drawn.size()))});
      offset_of_row.insert(offset_of_row.end(), selections.back().programs.size(),
                           head_of[std::size_t(g)] * std::size_t(width));
    }
    const Batch<float> batch = batch_of(settings.loss, selections);
    const std::size_t rows = offset_of_row.size();
    std::vector<float> embedded(rows * std::size_t(width)), by_embedded(embedded.size()), scores(rows, 0.0f),
        by_scores(rows), by_heads(embedding.heads.size(), 0.0f);
    const auto tape = network.forward(embedding.theta, batch.inputs(), embedded);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < std::size_t(width); ++c)
        scores[r] += embedded[r * std::size_t(width) + c] * embedding.heads[offset_of_row[r] + c];
    }
    batch.objective.gradient<float>(scores, by_scores);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < std::size_t(width); ++c) {
        by_embedded[r * std::size_t(width) + c] = by_scores[r] * embedding.heads[offset_of_row[r] + c];
        by_heads[offset_of_row[r] + c] += by_scores[r] * embedded[r * std::size_t(width) + c];
      }
    }
    network.backward(embedding.theta, *tape, by_embedded, gradient);
    const double rate = rate_at(settings, step);
    for (std::vector<float>* const values : {&embedding.theta, &embedding.heads}) {
      for (float& value : *values) value *= float(1 - rate * settings.decay);
    }
    clip(gradient);
    adam.step(embedding.theta, gradient, rate);
    heads_adam.step(embedding.heads, by_heads, rate);
    return stage.record == nullptr ? 0.0f : batch.objective.value<float>(scores);
  });
}

Measured measured(std::span<const Selection> rows) {
  Measured out;
  for (const Selection& selection : rows) {
    out.sizes.push_back(std::int64_t(selection.programs.size()));
    for (const std::int64_t p : selection.programs)
      out.log_seconds.push_back(selection.group->log_seconds[std::size_t(p)]);
  }
  return out;
}

Head prior_of(HeadKind kind, const std::vector<float>& mean, float log_scale) {
  Head out;
  out.kind = kind;
  out.mean.assign(mean.begin(), mean.end());
  if (kind != HeadKind::ridge) {
    out.sharpness = std::exp(double(log_scale));
    return out;
  }
  out.covariance.assign(std::size_t(width * width), 0.0);
  for (std::int64_t c = 0; c < width; ++c) out.covariance[std::size_t(c * width + c)] = std::exp(double(log_scale));
  return out;
}

class EpisodicLearner final : public Learner {
 public:
  explicit EpisodicLearner(HeadKind kind) : kind_(kind) {}

  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    const NetworkState start = untrained_state(tasks, settings);
    const std::vector<PreparedGroup> groups = prepared(start.normalisation, tasks.groups);
    const std::vector<PlatformGroups> platforms = by_platform(groups);
    const Loss loss = settings.loss.value_or(Loss::rank);
    Embedding embedding = untrained_embedding(start.shape, 1, settings.seed);
    const auto network = make_network(embedding.shape);
    PooledSettings warm;
    warm.loss = loss;
    warm.steps = settings.steps > 0 ? settings.steps * warm_steps / episode_steps : warm_steps;
    train_heads(*network, embedding, groups, std::vector<std::size_t>(groups.size(), 0), warm,
                stage_of(settings, "embedding, pooled", monitor));

    // A new head's weights may move about as far as those of the pooled one.
    double squares = 0;
    for (const float value : embedding.heads) squares += double(value) * double(value) / double(width);
    std::vector<float> log_scale{kind_ == HeadKind::ridge ? float(std::log(squares + 1e-6)) : 0.0f};
    Adam adam(embedding.theta.size()), mean_adam(embedding.heads.size()), scale_adam(1);
    const TrainedVector changing[] = {
        {&embedding.theta, &adam}, {&embedding.heads, &mean_adam}, {&log_scale, &scale_adam}};
    Stage stage = shared_stage_of(settings, "episodes", monitor);
    stage.steps = settings.steps > 0 ? settings.steps : episode_steps;
    run(stage, changing, [&](std::int64_t step) {
      const Head prior = prior_of(kind_, embedding.heads, log_scale.front());
      // The mean over tasks: by theta, by the prior's mean, by its scale, and of the loss.
      std::vector<float> mean = base::summed(team_of(settings), tasks_per_step, settings.threads, [&](std::int64_t t) {
        base::Stream stream(settings.seed, stage.name, std::uint64_t(step * tasks_per_step + t));
        const Episode<std::vector<Selection>> rows = draw_episode(platforms, shots_of_step(step), stream);
        const Episode<Batch<float>> task = batches_of(loss, rows);
        EmbeddingGradient<float> part = embedding_gradient<float>(*network, embedding.theta, prior, task.support,
                                                                  measured(rows.support), task.query);
        for (const auto value : part.mean) part.theta.push_back(float(value));
        part.theta.push_back(float(part.log_scale));
        part.theta.push_back(part.query_loss);
        return std::move(part.theta);
      });
      for (float& value : mean) value /= float(tasks_per_step);
      const std::span all(mean);
      const std::span by_theta = all.first(embedding.theta.size());
      const std::span by_mean = all.subspan(by_theta.size(), embedding.heads.size());
      const std::span by_scale = all.subspan(by_theta.size() + by_mean.size(), 1);
      const double left = 1 - double(step) / double(stage.steps);
      clip(by_theta);
      adam.step(embedding.theta, by_theta, 3e-4 * left);
      mean_adam.step(embedding.heads, by_mean, 3e-4 * left);
      scale_adam.step(log_scale, by_scale, 0.03 * left);
      return mean.back();
    });
    return make_embedding_model({embedding.shape, start.normalisation, std::move(embedding.theta),
                                 prior_of(kind_, embedding.heads, log_scale.front())});
  }

 private:
  HeadKind kind_;
};

// Gaussian prior of a new platform's head, from the heads of the sources: their mean; their covariance, and `extra` of
// its mean variance in every direction, for what no source has.
Head prior_of(const std::vector<float>& heads, double extra, double noise) {
  const std::size_t size = std::size_t(width), platforms = heads.size() / size;
  Head out;
  out.noise = noise;
  out.mean.assign(size, 0.0);
  out.covariance.assign(size * size, 0.0);
  for (std::size_t p = 0; p < platforms; ++p) {
    for (std::size_t c = 0; c < size; ++c) out.mean[c] += double(heads[p * size + c]) / double(platforms);
  }
  double trace = 0;
  for (std::size_t p = 0; p < platforms; ++p) {
    for (std::size_t a = 0; a < size; ++a) {
      for (std::size_t b = 0; b < size; ++b) {
        out.covariance[a * size + b] += (double(heads[p * size + a]) - out.mean[a]) *
                                        (double(heads[p * size + b]) - out.mean[b]) /
                                        double(std::max<std::size_t>(1, platforms - 1));
      }
      // One source says nothing of how platforms differ: as much as it differs from nothing.
      if (platforms == 1) out.covariance[a * size + a] += out.mean[a] * out.mean[a];
    }
  }
  for (std::size_t a = 0; a < size; ++a) trace += out.covariance[a * size + a];
  for (std::size_t a = 0; a < size; ++a) out.covariance[a * size + a] += extra * trace / double(size) + 1e-9;
  return out;
}

class LatentLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    NetworkState start = untrained_state(tasks, settings);
    const std::vector<PreparedGroup> groups = prepared(start.normalisation, tasks.groups);
    start.shape = fitting_shape(start.shape, groups, settings, monitor);
    const Prior prior = chosen_prior(start.shape, groups, settings, monitor);
    Embedding embedding = train_on(start.shape, groups, settings, 1, "platforms' heads", monitor);
    return make_embedding_model({embedding.shape, start.normalisation, std::move(embedding.theta),
                                 prior_of(embedding.heads, prior.extra, prior.noise)});
  }

 private:
  struct Prior {
    double extra = 0.1, noise = 0.01;
  };

  static Embedding train_on(const NetworkShape& shape, std::span<const PreparedGroup> groups,
                            const LearnerSettings& settings, std::int64_t share, const std::string& name,
                            base::Monitor& monitor) {
    const std::vector<PlatformGroups> platforms = by_platform(groups);
    Embedding out = untrained_embedding(shape, std::int64_t(platforms.size()), settings.seed);
    const auto network = make_network(out.shape);
    PooledSettings pooled;
    pooled.loss = settings.loss.value_or(Loss::squared);
    pooled.steps = ((settings.steps > 0 ? settings.steps : default_steps) + share - 1) / share;
    train_heads(*network, out, groups, platform_positions(groups), pooled, stage_of(settings, name, monitor));
    return out;
  }

  // On up to two source platforms that a shorter training has not seen.
  static Prior chosen_prior(const NetworkShape& shape, std::span<const PreparedGroup> groups,
                            const LearnerSettings& settings, base::Monitor& monitor) {
    constexpr std::array<double, 4> extras = {0.01, 0.1, 0.3, 1};
    constexpr std::array<double, 8> noises = {1, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4};  // of squared log seconds
    std::vector<PlatformGroups> platforms = by_platform(groups);
    if (platforms.size() < 3) return {};
    base::Stream(settings.seed, "left-out platforms").shuffle(platforms);
    platforms.resize(2);
    std::array<std::array<double, noises.size()>, extras.size()> sums{};
    for (const PlatformGroups& left_out : platforms) {
      std::vector<PreparedGroup> others;
      for (const PreparedGroup& group : groups) {
        if (group.platform != left_out.platform) others.push_back(group);
      }
      const Embedding embedding =
          train_on(shape, others, settings, 2, "choosing the prior without " + left_out.platform, monitor);
      const auto network = make_network(embedding.shape);
      const auto embed = [&](std::span<const Selection> rows) {
        const Batch<float> batch = batch_of(Loss::squared, rows);
        std::vector<float> values(std::size_t(batch.objective.rows() * width));
        network->score(embedding.theta, batch.inputs(), values);
        Measured known = measured(rows);
        return Embedded{width, {values.begin(), values.end()}, std::move(known.log_seconds), std::move(known.sizes)};
      };
      for (std::int64_t draw = 0; draw < 8; ++draw) {
        base::Stream stream(settings.seed, "prior trial", std::uint64_t(draw));
        const PlatformGroups only[] = {left_out};
        const Episode<std::vector<Selection>> task = draw_episode(only, shots_of_step(draw), stream);
        const Embedded support = embed(task.support);
        for (std::size_t e = 0; e < extras.size(); ++e) {
          for (std::size_t n = 0; n < noises.size(); ++n) {
            const Head head = adapted(prior_of(embedding.heads, extras[e], noises[n]), support);
            for (const Selection& rows : task.query) {
              const Embedded query = embed({&rows, 1});
              const std::vector<double> scores = head.scores(query.values);
              sums[e][n] += rank_correlation(std::vector<float>(scores.begin(), scores.end()), query.log_seconds);
            }
          }
        }
      }
    }
    Prior best;
    double most = -1e9;
    for (std::size_t e = 0; e < extras.size(); ++e) {
      for (std::size_t n = 0; n < noises.size(); ++n) {
        if (sums[e][n] <= most) continue;
        most = sums[e][n];
        best = {extras[e], noises[n]};
      }
    }
    return best;
  }

  static constexpr std::int64_t default_steps = 800;
};

}  // namespace

std::unique_ptr<Learner> make_r2d2_learner() {
  return std::make_unique<EpisodicLearner>(HeadKind::ridge);
}
std::unique_ptr<Learner> make_matching_learner() {
  return std::make_unique<EpisodicLearner>(HeadKind::matching);
}
std::unique_ptr<Learner> make_proto_learner() {
  return std::make_unique<EpisodicLearner>(HeadKind::prototype);
}
std::unique_ptr<Learner> make_latent_learner() {
  return std::make_unique<LatentLearner>();
}

}  // namespace graft::meta
