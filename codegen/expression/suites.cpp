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

// Beside ResNet-18: squares of three sizes and two products whose extents no power of two divides; the projections of a
// transformer with 768 channels and 12 heads (Vaswani et al. 2017; Devlin et al. 2019); a depthwise layer of stride 1
// and one of stride 2 (Howard et al. 2017); ResNeXt's 32 groups (Xie et al. 2017); ResNet's pooling; convolutions of
// other ranks and strides; rows normalised.
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

}  // namespace

const std::vector<Suite>& suites() {
  static const std::vector<Suite> table = {
      suite("resnet18", "the convolutional layers of ResNet-18, batch 1", resnet18()),
      suite("shipped", "what the datasets of graft are made of", shipped()),
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
