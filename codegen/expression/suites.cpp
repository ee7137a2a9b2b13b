#include "codegen/expression/suites.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/shortened.h"

namespace graft::codegen {
namespace {

constexpr std::string_view prefix = "suite:";

Suite suite(std::string name, std::string description, const std::vector<std::string>& texts) {
  Suite made{std::move(name), std::move(description), {}};
  for (const std::string& text : texts) made.workloads.push_back(parse_workload(text));
  return made;
}

std::vector<std::string> resnet18() {
  std::vector<std::string> layers;
  for (int layer = 1; layer <= 12; ++layer) layers.push_back(fmt::format("resnet18.C{}", layer));
  return layers;
}

// In addition to ResNet-18: squares of three sizes and two products whose extents no power of two divides; the
// projections of a transformer with 768 channels and 12 heads (Vaswani et al. 2017; Devlin et al. 2019); a depthwise
// layer of stride 1 and one of stride 2 (Howard et al. 2017); ResNeXt's 32 groups (Xie et al. 2017); ResNet's pooling;
// convolutions of other ranks and strides; rows normalised.
std::vector<std::string> shipped() {
  std::vector<std::string> texts = resnet18();
  for (const char* text : {
           "matmul(m=256,n=256,k=256)",
           "matmul(m=512,n=512,k=512)",
           "matmul(m=1024,n=1024,k=1024)",
           "matmul(m=127,n=509,k=387)",
           "matmul(m=1000,n=77,k=333)",
           "dense(m=64,n=768,k=768)",
           "batch_matmul(b=12,m=128,n=128,k=64)",
           "depthwise_conv2d(c=32,h=112,w=112,r=3,s=3,pad=1)",
           "grouped_conv2d(c=128,h=28,w=28,k=128,r=3,s=3,pad=1,groups=32)",
           "max_pool2d(c=64,h=112,w=112,r=3,s=3,stride=2,pad=1)",
           "softmax(m=512,n=1000)",
           "layer_norm(m=512,n=768)",
       })
    texts.emplace_back(text);
  return texts;
}

// What the shipped ones lack: depthwise layers of all sizes (MobileNet, EfficientNet), pointwise ones that widen and
// narrow, widths that no vector divides (Inception, detectors), other operators, tall and flat products, one row.
std::vector<std::string> wide() {
  return {
      "depthwise_conv2d(c=64,h=56,w=56,r=3,s=3,stride=2,pad=1)",
      "depthwise_conv2d(c=256,h=28,w=28,r=3,s=3,pad=1)",
      "depthwise_conv2d(c=512,h=14,w=14,r=3,s=3,pad=1)",
      "depthwise_conv2d(c=240,h=14,w=14,r=5,s=5,pad=2)",
      "depthwise_conv2d(c=1024,h=7,w=7,r=3,s=3,pad=1)",
      "depthwise_conv2d(c=24,h=75,w=75,r=3,s=3,pad=1)",
      "conv2d(c=32,h=112,w=112,k=16,r=1,s=1)",
      "conv2d(c=256,h=28,w=28,k=128,r=1,s=1)",
      "conv2d(c=512,h=14,w=14,k=128,r=1,s=1)",
      "conv2d(c=48,h=35,w=35,k=64,r=5,s=5,pad=2)",
      "conv2d(c=64,h=13,w=13,k=192,r=3,s=3,pad=1)",
      "conv2d(c=3,h=96,w=96,k=32,r=3,s=3,stride=2,pad=1)",
      "conv2d_residual(c=64,h=28,w=28,k=64,r=3,s=3,pad=1)",
      "conv2d_clamp(c=96,h=14,w=14,k=160,r=1,s=1)",
      "dilated_conv2d(c=32,h=33,w=33,k=32,r=3,s=3,pad=2)",
      "transposed_conv2d(c=32,h=16,w=16,k=32,r=4,s=4)",
      "conv1d(c=64,w=500,k=64,s=9,pad=4)",
      "conv3d(c=8,t=8,h=28,w=28,k=16,a=3,r=3,s=3,pad=1)",
      "matmul(m=1,n=1000,k=512)",
      "matmul(m=49,n=333,k=641)",
      "matmul(m=1536,n=96,k=96)",
      "dense(m=197,n=384,k=384)",
      "batch_matmul(b=6,m=197,n=64,k=197)",
      "softmax(m=384,n=197)",
      "layer_norm(m=197,n=384)",
      "avg_pool2d(c=64,h=35,w=35,r=3,s=3,pad=1)",
  };
}

}  // namespace

const std::vector<Suite>& suites() {
  static const std::vector<Suite> table = {
      suite("resnet18", "the convolutional layers of ResNet-18, batch 1", resnet18()),
      suite("shipped", "what the datasets of graft are made of", shipped()),
      suite("wide", "what they have of other operators and shapes", wide()),
  };
  return table;
}

std::vector<Workload> parse_workloads(std::string_view text) {
  if (!text.starts_with(prefix)) return {parse_workload(text)};
  const std::string_view name = text.substr(prefix.size());
  std::vector<std::string> known;
  for (const Suite& each : suites()) {
    if (each.name == name) return each.workloads;
    known.push_back(each.name);
  }
  throw base::UserError(fmt::format("unknown suite '{}'{}", base::shortened(name), base::did_you_mean(name, known)));
}

}  // namespace graft::codegen
