#include "meta/gradient/adam.h"

#include <gtest/gtest.h>

#include <vector>

namespace graft::meta {
namespace {

TEST(Clip, ShortensLongGradientsAlone) {
  std::vector<float> shorter{0.6f, -0.7f}, longer{30.0f, -40.0f}, none;
  const std::vector<float> same = shorter;
  clip(shorter);
  clip(longer);
  clip(none);
  EXPECT_EQ(shorter, same);
  EXPECT_FLOAT_EQ(longer[0], 0.6f);
  EXPECT_FLOAT_EQ(longer[1], -0.8f);
}

// The first step goes as far as the rate, for any length of the gradient; worked by hand.
TEST(Adam, StepsAndGoesOnFromItsMoments) {
  std::vector<float> theta{1.0f, 1.0f};
  Adam adam(2);
  const std::vector<float> gradient{100.0f, -0.01f};
  adam.step(theta, gradient, 0.5);
  EXPECT_NEAR(theta[0], 0.5f, 1e-5);
  EXPECT_NEAR(theta[1], 1.5f, 1e-5);
  std::vector<float> again = theta;
  Adam resumed(2);
  resumed.resume(adam.first(), adam.second(), 1);
  adam.step(theta, gradient, 0.5);
  resumed.step(again, gradient, 0.5);
  EXPECT_EQ(theta, again);
}

}  // namespace
}  // namespace graft::meta
