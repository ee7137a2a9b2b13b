#include "meta/methods/random.h"

#include <string>

#include "base/hash.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

class RandomModel final : public CostModel {
 public:
  explicit RandomModel(std::uint64_t seed) : seed_(seed) {}

  Scores score(const features::Encoded& programs) const override {
    const std::size_t count = std::size_t(programs.programs());
    Scores out{std::vector<float>(count), std::vector<float>(count, 0.0f)};
    for (std::size_t p = 0; p < count; ++p) {
      const std::size_t columns = std::size_t(programs.rows.columns);
      const auto numbers = std::span(programs.rows.values)
                               .subspan(std::size_t(programs.begins[p]) * columns,
                                        std::size_t(programs.begins[p + 1] - programs.begins[p]) * columns);
      const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
      out.mean[p] = float(base::hash_combine(seed_, base::hash_bytes(bytes)) >> 40) * 0x1p-24f;
    }
    return out;
  }
  std::unique_ptr<CostModel> fitted(std::span<const Examples>) const override {
    return std::make_unique<RandomModel>(seed_);
  }
  std::unique_ptr<CostModel> clone() const override { return std::make_unique<RandomModel>(*this); }
  bool is_informed() const override { return false; }
  bool takes(const features::Encoding&) const override { return true; }
  std::string_view kind() const override { return "random"; }
  base::Arrays state() const override {
    base::Arrays out;
    out.attributes["seed"] = base::to_hex(seed_);
    return out;
  }

 private:
  std::uint64_t seed_;
};

class RandomLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet&, const LearnerSettings& settings, base::Monitor&) const override {
    return make_random_model(settings.seed);
  }
};

}  // namespace

std::unique_ptr<CostModel> make_random_model(std::uint64_t seed) {
  return std::make_unique<RandomModel>(seed);
}

std::unique_ptr<CostModel> random_model_from(const base::Arrays& state) {
  return make_random_model(base::from_hex(attribute_of(state, "seed")));
}

std::unique_ptr<Learner> make_random_learner() {
  return std::make_unique<RandomLearner>();
}

}  // namespace graft::meta
