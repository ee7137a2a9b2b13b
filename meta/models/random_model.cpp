#include <string>

#include "base/hash.h"
#include "meta/models/models.h"
#include "meta/models/state.h"

namespace graft::meta {
namespace {

class RandomModel final : public CostModel {
 public:
  explicit RandomModel(std::uint64_t seed) : seed_(seed) {}

  Scores score(const base::Matrix& features) const override {
    Scores out{std::vector<float>(std::size_t(features.rows)), std::vector<float>(std::size_t(features.rows), 0.0f)};
    for (std::int64_t r = 0; r < features.rows; ++r) {
      const auto row = features.row(r);
      const std::string_view bytes(reinterpret_cast<const char*>(row.data()), row.size_bytes());
      out.mean[std::size_t(r)] = float(base::hash_combine(seed_, base::hash_bytes(bytes)) >> 40) * 0x1p-24f;
    }
    return out;
  }
  std::unique_ptr<CostModel> adapted(std::span<const Examples>) const override {
    return std::make_unique<RandomModel>(seed_);
  }
  std::string_view kind() const override { return "random"; }
  base::Arrays state() const override {
    base::Arrays out;
    out.attributes["seed"] = base::to_hex(seed_);
    return out;
  }

 private:
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<CostModel> make_random_model(std::uint64_t seed) {
  return std::make_unique<RandomModel>(seed);
}

std::unique_ptr<CostModel> random_model_from(const base::Arrays& state) {
  return make_random_model(base::from_hex(attribute_of(state, "seed")));
}

}  // namespace graft::meta
