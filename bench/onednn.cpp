#include "bench/onednn.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "bench/shapes.h"
#include "codegen/schedule/rules.h"

namespace graft::bench {
namespace {

using Tag = dnnl::memory::format_tag;
using Dims = dnnl::memory::dims;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

struct Reorder {
  dnnl::memory from, to;
  dnnl::reorder primitive{from, to};
};

// A primitive with its operands.
struct Job {
  std::vector<std::unique_ptr<Memory>> memory;
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
  std::optional<Reorder> before, after;  // of the input and of the output
  dnnl::stream stream{engine()};

  dnnl::memory tensor(const dnnl::memory::desc& desc) {
    memory.push_back(std::make_unique<Memory>(std::int64_t(desc.get_size())));
    return {desc, engine(), memory.back()->data()};
  }
  void run() {
    if (before) before->primitive.execute(stream, before->from, before->to);
    primitive.execute(stream, arguments);
    if (after) after->primitive.execute(stream, after->from, after->to);
    stream.wait();
  }
  void reorder(dnnl::memory& from, dnnl::memory& to) {
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }
};

// Sets of instructions are sets of bits.
bool has_avx512() {
  const auto wanted = unsigned(dnnl::cpu_isa::avx512_core);
  return (unsigned(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

dnnl::memory::desc f32(const Dims& dims, Tag tag) {
  return {dims, dnnl::memory::data_type::f32, tag};
}

std::string layout_name(const dnnl::memory::desc& desc) {
  if (desc.data.ndims != 4) return "?";
  const Dims dims = desc.dims();
  for (const auto& [tag, name] : {std::pair(Tag::nchw, "nchw"), std::pair(Tag::nhwc, "nhwc"),
                                  std::pair(Tag::nChw8c, "nChw8c"), std::pair(Tag::nChw16c, "nChw16c")}) {
    if (desc == f32(dims, tag)) return name;
  }
  return "other";
}

// Ours [n,c/block,h,w,block] <-> plain [n,c,h,w]; depthwise weights [c/block,r,s,block] are the same with n = 1.
template <class Move>
void walk_blocked(std::int64_t n, std::int64_t c, std::int64_t pixels, std::int64_t block, const Move& move) {
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t i = 0; i < c; ++i) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        move(((b * (c / block) + i / block) * pixels + p) * block + i % block, (b * c + i) * pixels + p);
      }
    }
  }
}

std::vector<float> plain_activations(const Convolution& conv, const float* x) {
  std::vector<float> plain(std::size_t(conv.n * conv.c * conv.h * conv.w));
  walk_blocked(conv.n, conv.c, conv.h * conv.w, conv.c_block(),
               [&](std::int64_t ours, std::int64_t theirs) { plain[std::size_t(theirs)] = x[ours]; });
  return plain;
}

// Ours [k/kb,c/cb,r,s,cb,kb] -> plain [k,c,r,s], c within the group.
std::vector<float> plain_weights(const Convolution& conv, const float* w) {
  const std::int64_t taps = conv.r * conv.s, c = conv.c / conv.groups, cb = conv.c_block(), kb = conv.k_block();
  std::vector<float> plain(std::size_t(conv.k * c * taps));
  if (c == 1 && conv.groups == conv.c) {
    walk_blocked(1, conv.k, taps, kb,
                 [&](std::int64_t ours, std::int64_t theirs) { plain[std::size_t(theirs)] = w[ours]; });
    return plain;
  }
  for (std::int64_t o = 0; o < conv.k; ++o) {
    for (std::int64_t i = 0; i < c; ++i) {
      for (std::int64_t t = 0; t < taps; ++t) {
        const std::int64_t ours = ((((o / kb) * (c / cb) + i / cb) * taps + t) * cb + i % cb) * kb + o % kb;
        plain[std::size_t((o * c + i) * taps + t)] = w[ours];
      }
    }
  }
  return plain;
}

// What the library's kernel reads and writes, and what is reordered into it and out of it with each call.
struct Layouts {
  Tag source, destination;
  std::optional<Tag> outside{};
};

// nullopt if the library does not have it, or has only its reference code, which nobody would call.
std::optional<Contender> convolution_contender(const Problem& problem, const Convolution& conv, std::string name,
                                               dnnl::algorithm algorithm, const Layouts& layouts) {
  const Dims x_dims{conv.n, conv.c, conv.h, conv.w}, y_dims{conv.n, conv.k, conv.out_h(), conv.out_w()};
  Dims w_dims{conv.k, conv.c / conv.groups, conv.r, conv.s};
  if (conv.groups > 1) w_dims = {conv.groups, conv.k / conv.groups, conv.c / conv.groups, conv.r, conv.s};
  dnnl::convolution_forward::primitive_desc how;
  try {
    how = dnnl::convolution_forward::primitive_desc(
        {dnnl::prop_kind::forward_inference, algorithm, f32(x_dims, layouts.source), f32(w_dims, Tag::any),
         f32(y_dims, layouts.destination), Dims{conv.stride, conv.stride}, Dims{conv.dilation - 1, conv.dilation - 1},
         Dims{conv.pad, conv.pad}, Dims{conv.pad, conv.pad}},
        engine());
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
  if (std::string_view(how.impl_info_str()).starts_with("ref")) return std::nullopt;

  const auto job = std::make_shared<Job>();
  job->primitive = dnnl::convolution_forward(how);
  dnnl::memory source = job->tensor(how.src_desc()), weights = job->tensor(how.weights_desc()),
               destination = job->tensor(how.dst_desc());
  std::vector<float> x = plain_activations(conv, problem.values(0)), w = plain_weights(conv, problem.values(1));
  dnnl::memory plain_x(f32(x_dims, Tag::nchw), engine(), x.data()),
      plain_w(f32(w_dims, conv.groups > 1 ? Tag::goihw : Tag::oihw), engine(), w.data());
  job->reorder(plain_w, weights);
  job->arguments = {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, destination}};
  dnnl::memory given = source, result = destination;
  if (layouts.outside) {
    given = job->tensor(f32(x_dims, *layouts.outside));
    result = job->tensor(f32(y_dims, *layouts.outside));
    job->before = Reorder{given, source};
    job->after = Reorder{destination, result};
  }
  job->reorder(plain_x, given);

  const auto check = [job, &problem, conv, y_dims, result]() mutable {
    std::vector<float> y(std::size_t(problem.tensor(2).elements()));
    dnnl::memory plain(f32(y_dims, Tag::nchw), engine(), y.data());
    job->reorder(result, plain);
    walk_blocked(conv.n, conv.k, conv.out_h() * conv.out_w(), conv.k_block(),
                 [&](std::int64_t ours, std::int64_t theirs) { problem.values(2)[ours] = y[std::size_t(theirs)]; });
    return problem.outputs_right();
  };
  return Contender{.name = std::move(name),
                   .call = [job] { job->run(); },
                   .check = check,
                   .how = fmt::format("{}, {} to {}{}", how.impl_info_str(), layout_name(how.src_desc()),
                                      layout_name(how.dst_desc()), layouts.outside ? ", reordered" : "")};
}

std::vector<Contender> convolution_contenders(const Problem& problem, const Convolution& conv) {
  const Tag block = has_avx512() ? Tag::nChw16c : Tag::nChw8c;
  std::vector<Contender> found;
  const auto add = [&](const char* name, dnnl::algorithm algorithm, const Layouts& layouts) {
    auto contender = convolution_contender(problem, conv, name, algorithm, layouts);
    const bool known = contender && std::any_of(found.begin(), found.end(),
                                                [&](const Contender& other) { return other.how == contender->how; });
    if (contender && !known) found.push_back(std::move(*contender));
  };
  // A network's first layer has too few channels for blocks: the library's kernels for it read NCHW.
  for (const Layouts& layouts : {Layouts{block, block}, Layouts{Tag::nchw, block}}) {
    if (found.empty()) add("onednn_direct", dnnl::algorithm::convolution_direct, layouts);
  }
  add("onednn_winograd", dnnl::algorithm::convolution_winograd, {block, block});
  add("onednn_any", dnnl::algorithm::convolution_direct, {Tag::any, Tag::any});
  if (conv.block == 1) {
    const Tag outside = conv.channels_last ? Tag::nhwc : Tag::nchw;
    add("onednn_plain", dnnl::algorithm::convolution_direct, {outside, outside});
    add("onednn_reordered", dnnl::algorithm::convolution_direct, {block, block, outside});
  }
  return found;
}

// nullopt for types that the library does not multiply.
std::optional<dnnl::memory::data_type> data_type(codegen::DType type) {
  switch (type) {
    case codegen::DType::f32:
      return dnnl::memory::data_type::f32;
    case codegen::DType::i32:
      return dnnl::memory::data_type::s32;
    case codegen::DType::i8:
      return dnnl::memory::data_type::s8;
    case codegen::DType::u8:
      return dnnl::memory::data_type::u8;
    default:
      return std::nullopt;
  }
}

// nullopt if the library does not have the product of these types, or has only its reference code. Products of bytes
// are exact in both: into i32, from i8 or u8 by i8.
std::optional<Contender> product_contender(const Problem& problem, const MatrixProduct& product) {
  const auto job = std::make_shared<Job>();
  const auto tensor = [&](int of) { return problem.computation().tensors[std::size_t(of)]; };
  const auto of_a = data_type(tensor(product.a).dtype), of_b = data_type(tensor(product.b).dtype),
             of_c = data_type(tensor(product.c).dtype);
  using Type = dnnl::memory::data_type;
  const bool bytes = (of_a == Type::s8 || of_a == Type::u8) && of_b == Type::s8 && of_c == Type::s32;
  if (!problem.is_f32() && !bytes) return std::nullopt;
  // Three dimensions always: a batch of one costs nothing.
  const auto desc = [&](std::int64_t rows, std::int64_t columns, bool transposed, Type type) {
    return dnnl::memory::desc({product.batch, rows, columns}, type, transposed ? Tag::acb : Tag::abc);
  };
  const auto a = desc(product.m, product.k, product.a_transposed, *of_a),
             b = desc(product.k, product.n, product.b_transposed, *of_b), c = desc(product.m, product.n, false, *of_c);
  dnnl::matmul::primitive_desc how;
  try {
    how = dnnl::matmul::primitive_desc({a, b, c}, engine());
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
  if (std::string_view(how.impl_info_str()).starts_with("ref")) return std::nullopt;
  job->primitive = dnnl::matmul(how);
  const auto at = [&](const dnnl::memory::desc& layout, int of) {
    return dnnl::memory(layout, engine(), problem.buffers()[std::size_t(problem.parameter_of(of))]);
  };
  job->arguments = {
      {DNNL_ARG_SRC, at(a, product.a)}, {DNNL_ARG_WEIGHTS, at(b, product.b)}, {DNNL_ARG_DST, at(c, product.c)}};
  return Contender{.name = "onednn",
                   .call = [job] { job->run(); },
                   .check = [&problem] { return problem.outputs_right(); },
                   .clear = [&problem] { problem.clear_outputs(); },
                   .how = how.impl_info_str()};
}

}  // namespace

std::vector<Contender> onednn_contenders(const Problem& problem, int threads) {
  omp_set_num_threads(threads);
  try {
    if (const auto product = matrix_product(problem.computation())) {
      auto contender = product_contender(problem, *product);
      if (contender) return {std::move(*contender)};
      return {};
    }
    const auto conv = convolution(problem.workload());
    if (conv && problem.is_f32()) return convolution_contenders(problem, *conv);
  } catch (const dnnl::error& error) {
    throw base::Failure(fmt::format("oneDNN: {}: {}", problem.workload().text(), error.what()));
  }
  return {};
}

base::Document onednn_context() {
  const dnnl::version_t& version = *dnnl::version();
  base::Document context = base::Document::map();
  context.set("version", fmt::format("{}.{}.{}", version.major, version.minor, version.patch));
  context.set("avx512", has_avx512());
  return context;
}

}  // namespace graft::bench
