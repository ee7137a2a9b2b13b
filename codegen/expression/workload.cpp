#include "codegen/expression/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "base/text.h"
#include "codegen/expression/check.h"
#include "codegen/expression/padding.h"
#include "codegen/expression/parse.h"

namespace graft::codegen {

namespace {

using Parameter = Operator::Parameter;

Parameter required(std::string name) {
  return {.name = std::move(name)};
}
Parameter optional(std::string name, std::int64_t value, std::int64_t least = 1) {
  return {.name = std::move(name), .least = least, .has_default = true, .value = value};
}

Parameter later(std::string name, std::int64_t value, std::int64_t least = 1) {
  return {.name = std::move(name), .least = least, .has_default = true, .value = value, .later = true};
}

std::vector<Parameter> joined(std::initializer_list<std::vector<Parameter>> lists) {
  std::vector<Parameter> all;
  for (const std::vector<Parameter>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// The convolutional layers of ResNet-18 at batch 1, 224x224 (He et al., CVPR 2016), numbered as in Chen et al., NeurIPS
// 2018, table 1: input channels, height = width, output channels, kernel, stride, padding.
struct Layer {
  std::string_view name;
  std::int64_t c, hw, k, rs, stride, pad;
};
constexpr Layer layers[] = {
    {"resnet18.C1", 3, 224, 64, 7, 2, 3},    {"resnet18.C2", 64, 56, 64, 3, 1, 1},
    {"resnet18.C3", 64, 56, 64, 1, 1, 0},    {"resnet18.C4", 64, 56, 128, 3, 2, 1},
    {"resnet18.C5", 64, 56, 128, 1, 2, 0},   {"resnet18.C6", 128, 28, 128, 3, 1, 1},
    {"resnet18.C7", 128, 28, 256, 3, 2, 1},  {"resnet18.C8", 128, 28, 256, 1, 2, 0},
    {"resnet18.C9", 256, 14, 256, 3, 1, 1},  {"resnet18.C10", 256, 14, 512, 3, 2, 1},
    {"resnet18.C11", 256, 14, 512, 1, 2, 0}, {"resnet18.C12", 512, 7, 512, 3, 1, 1},
};

// What a workload's text says, before its expression is looked at.
struct Call {
  const Operator* op = nullptr;
  Parameters values;
  DType dtype = DType::f32;
  std::optional<DType> out;  // of the output, where it is another one than by itself
};

std::string unknown_workload(std::string_view name) {
  std::vector<std::string> known;
  for (const Operator& op : operators()) known.push_back(op.name);
  std::string near = base::did_you_mean(name, known);
  if (near.starts_with("; did") || !name.starts_with("resnet"))
    return fmt::format("unknown operator '{}'{}", name, near);
  std::vector<std::string> names;
  for (const Layer& layer : layers) names.emplace_back(layer.name);
  if (names.front().starts_with(fmt::format("{}.", name)))
    return fmt::format(
        "'{0}' is a list of layers, {1} to {2}; name one of them, or search all by graft tune-all "
        "suite:{0}",
        name, names.front(), names.back());
  return fmt::format("unknown layer '{}'{}", name, base::did_you_mean(name, names));
}

std::string canonical(const Call& call) {
  std::vector<std::string> arguments;
  for (const Parameter& parameter : call.op->parameters)
    if (!parameter.later || call.values.at(parameter.name) != parameter.value)
      arguments.push_back(fmt::format("{}={}", parameter.name, call.values.at(parameter.name)));
  return fmt::format("{}({},dtype={}{})", call.op->name, fmt::join(arguments, ","), name_of(call.dtype),
                     call.out ? fmt::format(",out={}", name_of(*call.out)) : "");
}

// The computation with numbers for the names of its tensors and axes.
Computation without_names(Computation computation) {
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) computation.tensors[t].name = fmt::format("t{}", t);
  for (Stage& stage : computation.stages) {
    for (std::size_t a = 0; a < stage.axes.size(); ++a) stage.axes[a].name = fmt::format("a{}", a);
  }
  return computation;
}

// OPERATOR(name=value, ..., dtype=type), or nothing when the text does not begin like that.
std::optional<Call> parse_call(std::string_view text) {
  base::Cursor cursor(text, "workload");
  if (!cursor.at_identifier()) return std::nullopt;
  const base::Cursor start = cursor;
  const std::string name = cursor.identifier();
  const bool arguments = cursor.accept("(");
  if (!arguments && !cursor.at_end()) return std::nullopt;
  Call call;
  for (const Layer& layer : layers)
    if (!arguments && layer.name == name) {
      call.values = {{"n", 1},        {"c", layer.c},  {"h", layer.hw},          {"w", layer.hw},   {"k", layer.k},
                     {"r", layer.rs}, {"s", layer.rs}, {"stride", layer.stride}, {"pad", layer.pad}};
      call.op = &*std::find_if(operators().begin(), operators().end(),
                               [](const Operator& op) { return op.name == "conv2d"; });
      return call;
    }
  for (const Operator& op : operators())
    if (op.name == name) call.op = &op;
  if (!call.op) start.fail(unknown_workload(name));

  std::vector<std::string> known{"dtype", "out"};
  for (const Parameter& parameter : call.op->parameters) known.push_back(parameter.name);
  bool typed = false;
  while (arguments && !cursor.accept(")")) {
    if (!call.values.empty() || typed || call.out) cursor.expect(",");
    cursor.peek();
    const base::Cursor at = cursor;
    const std::string key = cursor.identifier();
    cursor.expect("=");
    if (key == "dtype" || key == "out") {
      if (key == "dtype" ? typed : call.out.has_value()) at.fail(fmt::format("parameter '{}' is given twice", key));
      cursor.peek();
      const base::Cursor value = cursor;
      const std::string type = cursor.identifier();
      const auto found = dtype_of(type);
      if (!found) value.fail(unknown_dtype(type));
      if (key == "out") {
        call.out = found;
      } else {
        call.dtype = *found;
        typed = true;
      }
      continue;
    }
    const auto parameter = std::find_if(call.op->parameters.begin(), call.op->parameters.end(),
                                        [&](const Parameter& p) { return p.name == key; });
    if (parameter == call.op->parameters.end())
      at.fail(fmt::format("{} has no parameter '{}'{}", name, key, base::did_you_mean(key, known)));
    const std::int64_t value = cursor.integer();
    if (value < parameter->least) at.fail(fmt::format("{} must be at least {}, got {}", key, parameter->least, value));
    if (!call.values.emplace(key, value).second) at.fail(fmt::format("parameter '{}' is given twice", key));
  }
  if (!cursor.at_end()) cursor.fail("unexpected text after the workload");
  for (const Parameter& parameter : call.op->parameters) {
    if (call.values.contains(parameter.name)) continue;
    if (!parameter.has_default)
      start.fail(fmt::format("{} is missing parameter '{}'; write '{}=...'", name, parameter.name, parameter.name));
    call.values.emplace(parameter.name, parameter.value);
  }
  return call;
}

// Whether every point of the stage copies the element of the same place, all of the tensor read, types alike.
bool is_copy(const Computation& computation, const Stage& stage) {
  if (stage.combine != Combine::none || stage.value.nodes.size() != 1 || stage.value.root().op != Op::load)
    return false;
  const Access& access = stage.value.loads.front();
  const Tensor& to = computation.tensors[std::size_t(stage.tensor)];
  const Tensor& from = computation.tensors[std::size_t(access.tensor)];
  if (!stage.index.empty() || to.shape != from.shape || to.dtype != from.dtype) return false;
  for (std::size_t d = 0; d < access.index.size(); ++d)
    if (access.index[d] != Affine::variable(int(d))) return false;
  return true;
}

bool is_identity(const Computation& computation, const Stage& stage) {
  return computation.tensors[std::size_t(stage.tensor)].role == Role::temporary && is_copy(computation, stage);
}

// Removes a tensor that no stage writes; its readers read `instead`.
void without_tensor(Computation& computation, int gone, int instead) {
  computation.tensors.erase(computation.tensors.begin() + gone);
  const auto renumbered = [&](int tensor) {
    if (tensor == gone) tensor = instead;
    return tensor > gone ? tensor - 1 : tensor;
  };
  for (Stage& stage : computation.stages) {
    stage.tensor = renumbered(stage.tensor);
    for (Access& access : stage.value.loads) access.tensor = renumbered(access.tensor);
  }
}

// An output that is a copy of a temporary takes its place.
Computation without_copied_output(Computation computation) {
  const Stage& last = computation.stages.back();
  if (is_copy(computation, last)) {
    const int output = last.tensor, source = last.value.loads.front().tensor;
    const Tensor& from = computation.tensors[std::size_t(source)];
    const auto reads_source = [&](const Stage& stage) {
      return std::any_of(stage.value.loads.begin(), stage.value.loads.end(),
                         [&](const Access& access) { return access.tensor == source; });
    };
    const std::ptrdiff_t readers = std::count_if(computation.stages.begin(), computation.stages.end(), reads_source);
    const int writer = computation.stage_writing(source);
    if (from.role == Role::temporary && writer >= 0 && readers == 1) {
      computation.stages[std::size_t(writer)].tensor = output;
      computation.stages.pop_back();
      without_tensor(computation, source, output);
    }
  }
  return computation;
}

// A padding of 0 leaves a stage that only copies; its readers read the source instead.
Computation without_identities(Computation computation) {
  for (std::size_t s = 0; s < computation.stages.size();) {
    if (!is_identity(computation, computation.stages[s])) {
      ++s;
      continue;
    }
    const int gone = computation.stages[s].tensor, source = computation.stages[s].value.loads.front().tensor;
    computation.stages.erase(computation.stages.begin() + std::ptrdiff_t(s));
    without_tensor(computation, gone, source);
  }
  return computation;
}

// Whether the operator's first expression takes these parameters.
bool is_plain(const Call& call) {
  const auto is_default = [&](const Parameter& parameter) {
    return !parameter.later || call.values.at(parameter.name) == parameter.value;
  };
  if (!std::all_of(call.op->parameters.begin(), call.op->parameters.end(), is_default)) return false;
  try {
    (void)parse_computation(call.op->expression, call.values, call.dtype, "plain", call.out);
    return true;
  } catch (const base::UserError&) {
    return false;
  }
}

Computation computation_of(const Call& call) {
  const std::string place = canonical(call);
  const std::string& text = call.op->general.empty() || is_plain(call) ? call.op->expression : call.op->general;
  try {
    Computation whole = without_identities(parse_computation(text, call.values, call.dtype, place, call.out));
    // Expressions typed by users, and those that stored schedules name the stages of, keep all their outputs.
    return &text == &call.op->general ? without_copied_output(std::move(whole)) : whole;
  } catch (const base::UserError& error) {
    // Line and column inside the table's expression would say nothing to who wrote the call.
    std::string_view message = std::string_view(error.what()).substr(place.size());
    message.remove_prefix(std::min(message.find(' '), message.size()));
    throw base::UserError(place, base::trim(message));
  }
}

// A transposed convolution by the rows and columns that it gives, p = stride*y + f: for each f, those taps of the
// filter that meet an element of X are `stride` apart, j of them. Filters with zeros between their taps are made of a
// dilated one. `first`: pad over stride, rounded up.
std::string transposed_conv2d() {
  const std::string first = "(pad + stride - 1)/stride";
  const auto taps = [&](std::string_view r) {
    return fmt::format("((dilation*({} - 1) + stride*({}) - pad)/stride + 1)", r, first);
  };
  const auto rows = [](std::string_view h, std::string_view r) {
    return fmt::format("(({} - 1)*stride - 2*pad + dilation*({} - 1) + output_padding + 1)", h, r);
  };
  const auto whole = [&](std::string_view h, std::string_view r) {
    return fmt::format("(({} + stride - 1)/stride)", rows(h, r));
  };
  return "input X[n,c,h,w]; constant W[c,exact(k,groups),r,s];"
         "D[i,o,dilation*u + d,dilation*v + t] = select(d < 1, select(t < 1, W[i,o,u,v], 0), 0)"
         "  where i=c, o=k/groups, u=r, v=s, d=dilation, t=dilation;" +
         fmt::format(
             "V[i,o,j,f,l,m] = pad(D[i,o,stride*j + f + pad - stride*({0}),stride*l + m + pad - stride*({0})])"
             "  where i=c, o=k/groups, j={1}, f=stride, l={2}, m=stride;",
             first, taps("r"), taps("s")) +
         fmt::format(
             "P[b,i,p,q] = pad(X[b,i,p - {1} + 1 + {0},q - {2} + 1 + {0}])"
             "  where b=n, i=c, p={3} + {1} - 1, q={4} + {2} - 1;",
             first, taps("r"), taps("s"), whole("h", "r"), whole("w", "s")) +
         fmt::format(
             "Z[b,(k/groups)*g + o,stride*y + f,stride*x + m | i,j,l] +="
             "  P[b,exact(c,groups)*g + i,y - j + {0} - 1,x - l + {1} - 1] * V[(c/groups)*g + i,o,j,f,l,m]"
             "  where b=n, g=groups, o=k/groups, y={2}, f=stride, x={3}, m=stride, i=c/groups, j={0}, l={1};",
             taps("r"), taps("s"), whole("h", "r"), whole("w", "s")) +
         fmt::format("output Y[b,o,p,q] = Z[b,o,p,q] where b=n, o=k, p={}, q={}", rows("h", "r"), rows("w", "s"));
}

}  // namespace

const std::vector<Operator>& operators() {
  // What windows over images share: of one channel after the other, or of channels in blocks (d).
  const std::string padded = "P[b,i,p,q] = pad(X[b,i,p - pad,q - pad]);";
  const std::string blocks_padded = "P[b,i,p,q,d] = pad(X[b,i,p - pad,q - pad,d]);";
  const std::string channels_last_padded = "P[b,p,q,i] = pad(X[b,p - pad,q - pad,i]);";
  const std::string frame = "p=h + 2*pad, q=w + 2*pad, ";
  const std::string windows = "y=(h + 2*pad - r)/stride + 1, x=(w + 2*pad - s)/stride + 1, u=r, v=s";
  const std::vector<Parameter> matrices = {required("m"), required("n"), required("k")};
  const std::vector<Parameter> image = {optional("n", 1), required("c"), required("h"), required("w")};
  const std::vector<Parameter> window = {required("r"), required("s"), optional("stride", 1), optional("pad", 0, 0)};
  const std::vector<Parameter> rows = {required("m"), required("n")};
  static const std::vector<Operator> table = {
      {.name = "matmul",
       .parameters = matrices,
       .expression = "input A[m,k]; input B[k,n]; output C[i,j] += A[i,l] * B[l,j] where i=m, j=n, l=k",
       .description = "matrix product C[m,n] = A[m,k] B[k,n]"},
      {.name = "batch_matmul",
       .parameters = joined({{required("b")}, matrices}),
       .expression = "input A[b,m,k]; input B[b,k,n];"
                     "output C[z,i,j] += A[z,i,l] * B[z,l,j] where z=b, i=m, j=n, l=k",
       .description = "b matrix products C[b,m,n] = A[b,m,k] B[b,k,n]"},
      {.name = "dense",
       .parameters = matrices,
       .expression = "input X[m,k]; constant W[n,k]; constant bias[n];"
                     "T[i,j] += X[i,l] * W[j,l];"
                     "output Y[i,j] = max(T[i,j] + bias[j], 0) where i=m, j=n, l=k",
       .description = "fully connected layer with bias and ReLU, Y[m,n] = max(X[m,k] W[n,k]' + bias[n], 0)"},
      {.name = "conv1d",
       .parameters = {optional("n", 1), required("c"), required("w"), required("k"), required("s"),
                      optional("stride", 1), optional("pad", 0, 0)},
       .expression = "input X[n,c,w]; constant W[k,c,s];"
                     "P[b,i,q] = pad(X[b,i,q - pad]);"
                     "output Y[b,o,x] += P[b,i,stride*x + v] * W[o,i,v]"
                     "  where b=n, i=c, q=w + 2*pad, o=k, x=(w + 2*pad - s)/stride + 1, v=s",
       .description = "1-d convolution, NCW activations, KCS weights"},
      {.name = "conv2d",
       .parameters = joined({image, {required("k")}, window}),
       .expression = "input X[n,c,h,w]; constant W[k,c,r,s];" + padded +
                     "output Y[b,o,y,x] += P[b,i,stride*y + u,stride*x + v] * W[o,i,u,v]"
                     "  where b=n, i=c, o=k, " +
                     frame + windows,
       .description = "2-d convolution, NCHW activations, KCRS weights"},
      {.name = "conv2d_clamp",
       .parameters = joined({image, {required("k")}, window, {optional("limit", 6)}}),
       .expression = "input X[n,c,h,w]; constant W[k,c,r,s]; constant bias[k];" + padded +
                     "T[b,o,y,x] += P[b,i,stride*y + u,stride*x + v] * W[o,i,u,v];"
                     "output Y[b,o,y,x] = min(max(T[b,o,y,x] + bias[o], 0), limit)"
                     "  where b=n, i=c, o=k, " +
                     frame + windows,
       .description = "2-d convolution with bias, clamped to 0..limit"},
      {.name = "conv2d_residual",
       .parameters = joined({image, {required("k")}, window}),
       .expression = "input X[n,c,h,w]; constant W[k,c,r,s]; constant bias[k];"
                     "input Z[n,k,(h + 2*pad - r)/stride + 1,(w + 2*pad - s)/stride + 1];" +
                     padded +
                     "T[b,o,y,x] += P[b,i,stride*y + u,stride*x + v] * W[o,i,u,v];"
                     "S[b,o,y,x] = T[b,o,y,x] + bias[o];"
                     "output Y[b,o,y,x] = max(S[b,o,y,x] + Z[b,o,y,x], 0)"
                     "  where b=n, i=c, o=k, " +
                     frame + windows,
       .description = "2-d convolution with bias, sum with Z[n,k,y,x], and ReLU"},
      {.name = "conv2d_nchwc",
       .parameters = joined({image, {required("k")}, window, {optional("block", 16)}}),
       .expression = "input X[n,exact(c,block),h,w,block];"
                     "constant W[exact(k,block),exact(c,block),r,s,block,block];" +
                     blocks_padded +
                     "output Y[b,o,y,x,e] += P[b,i,stride*y + u,stride*x + v,d] * W[o,i,u,v,d,e]"
                     "  where b=n, i=c/block, d=block, o=k/block, e=block, " +
                     frame + windows,
       .description = "2-d convolution with channels in blocks: activations NC/bHWb, weights K/b C/b R S b(c) b(k)"},
      {.name = "grouped_conv2d",
       .parameters = joined({image, {required("k")}, window, {required("groups")}}),
       .expression = "input X[n,groups,exact(c,groups),h,w]; constant W[groups,exact(k,groups),c/groups,r,s];"
                     "P[b,g,i,p,q] = pad(X[b,g,i,p - pad,q - pad]);"
                     "output Y[b,g,o,y,x] += P[b,g,i,stride*y + u,stride*x + v] * W[g,o,i,u,v]"
                     "  where b=n, g=groups, i=c/groups, o=k/groups, " +
                     frame + windows,
       .description = "2-d convolution of each group of channels by itself, NCHW activations, K C/groups R S weights"},
      {.name = "dilated_conv2d",
       .parameters = joined({image, {required("k")}, window, {optional("dilation", 2)}}),
       .expression = "input X[n,c,h,w]; constant W[k,c,r,s];" + padded +
                     "output Y[b,o,y,x] += P[b,i,stride*y + dilation*u,stride*x + dilation*v] * W[o,i,u,v]"
                     "  where b=n, i=c, o=k, " +
                     frame +
                     "y=(h + 2*pad - dilation*(r - 1) - 1)/stride + 1,"
                     "x=(w + 2*pad - dilation*(s - 1) - 1)/stride + 1, u=r, v=s",
       .description = "2-d convolution with its taps `dilation` apart, NCHW activations, KCRS weights"},
      // Row f of every `stride` rows of the result has the taps f, f + stride, ... of the filter to itself.
      {.name = "transposed_conv2d",
       .parameters = joined({image,
                             {required("k"), required("r"), required("s"), optional("stride", 2), later("pad", 0, 0),
                              later("output_padding", 0, 0), later("groups", 1), later("dilation", 1)}}),
       .expression = "input X[n,c,h,w]; constant W[c,k,exact(r,stride),stride,exact(s,stride),stride];"
                     "P[b,i,p,q] = pad(X[b,i,p - r/stride + 1,q - s/stride + 1]);"
                     "output Y[b,o,y,f,x,g] += P[b,i,y - u + r/stride - 1,x - v + s/stride - 1] * W[i,o,u,f,v,g]"
                     "  where b=n, i=c, o=k, p=h + 2*(r/stride - 1), q=w + 2*(s/stride - 1),"
                     "  y=h + r/stride - 1, x=w + s/stride - 1, f=stride, g=stride, u=r/stride, v=s/stride",
       .description = "2-d transposed convolution, NCHW activations, CKRS weights",
       .general = transposed_conv2d()},
      {.name = "depthwise_conv2d",
       .parameters = joined({image, window}),
       .expression = "input X[n,c,h,w]; constant W[c,r,s];" + padded +
                     "output Y[b,i,y,x] += P[b,i,stride*y + u,stride*x + v] * W[i,u,v]"
                     "  where b=n, i=c, " +
                     frame + windows,
       .description = "2-d convolution of each channel with its own filter, NCHW activations, CRS weights"},
      {.name = "depthwise_conv2d_nchwc",
       .parameters = joined({image, window, {optional("block", 16)}}),
       .expression = "input X[n,exact(c,block),h,w,block]; constant W[c/block,r,s,block];" + blocks_padded +
                     "output Y[b,i,y,x,d] += P[b,i,stride*y + u,stride*x + v,d] * W[i,u,v,d]"
                     "  where b=n, i=c/block, d=block, " +
                     frame + windows,
       .description = "depthwise 2-d convolution with channels in blocks: activations NC/bHWb, weights C/b R S b"},
      {.name = "conv3d",
       .parameters = {optional("n", 1), required("c"), required("t"), required("h"), required("w"), required("k"),
                      required("a"), required("r"), required("s"), optional("stride", 1), optional("pad", 0, 0)},
       .expression = "input X[n,c,t,h,w]; constant W[k,c,a,r,s];"
                     "P[b,i,f,p,q] = pad(X[b,i,f - pad,p - pad,q - pad]);"
                     "output Y[b,o,z,y,x] += P[b,i,stride*z + e,stride*y + u,stride*x + v] * W[o,i,e,u,v]"
                     "  where b=n, i=c, o=k, f=t + 2*pad, z=(t + 2*pad - a)/stride + 1, e=a, " +
                     frame + windows,
       .description = "3-d convolution, NCTHW activations, KCARS weights"},
      {.name = "max_pool2d",
       .parameters = joined({image, window}),
       .expression = "input X[n,c,h,w];"
                     "P[b,i,p,q] = pad(X[b,i,p - pad,q - pad], -inf);"
                     "output Y[b,i,y,x] max= P[b,i,stride*y + u,stride*x + v]"
                     "  where b=n, i=c, " +
                     frame + windows,
       .description = "largest element of each window, NCHW"},
      {.name = "avg_pool2d",
       .parameters = joined({image, window}),
       .expression = "input X[n,c,h,w];" + padded +
                     "T[b,i,y,x] += P[b,i,stride*y + u,stride*x + v];"
                     "output Y[b,i,y,x] = T[b,i,y,x] / (r*s)"
                     "  where b=n, i=c, " +
                     frame + windows,
       .description = "mean of each window, padding included, NCHW"},
      {.name = "conv2d_nhwc",
       .parameters = joined({image, {required("k")}, window}),
       .expression = "input X[n,h,w,c]; constant W[r,s,c,k];" + channels_last_padded +
                     "output Y[b,y,x,o] += P[b,stride*y + u,stride*x + v,i] * W[u,v,i,o]"
                     "  where b=n, i=c, o=k, " +
                     frame + windows,
       .description = "2-d convolution, NHWC activations, RSCK weights"},
      {.name = "depthwise_conv2d_nhwc",
       .parameters = joined({image, window}),
       .expression = "input X[n,h,w,c]; constant W[r,s,c];" + channels_last_padded +
                     "output Y[b,y,x,i] += P[b,stride*y + u,stride*x + v,i] * W[u,v,i]"
                     "  where b=n, i=c, " +
                     frame + windows,
       .description = "2-d convolution of each channel with its own filter, NHWC activations, RSC weights"},
      {.name = "max_pool2d_nhwc",
       .parameters = joined({image, window}),
       .expression = "input X[n,h,w,c];"
                     "P[b,p,q,i] = pad(X[b,p - pad,q - pad,i], -inf);"
                     "output Y[b,y,x,i] max= P[b,stride*y + u,stride*x + v,i]"
                     "  where b=n, i=c, " +
                     frame + windows,
       .description = "largest element of each window, NHWC"},
      {.name = "avg_pool2d_nhwc",
       .parameters = joined({image, window}),
       .expression = "input X[n,h,w,c];" + channels_last_padded +
                     "T[b,y,x,i] += P[b,stride*y + u,stride*x + v,i];"
                     "output Y[b,y,x,i] = T[b,y,x,i] / (r*s)"
                     "  where b=n, i=c, " +
                     frame + windows,
       .description = "mean of each window, padding included, NHWC"},
      {.name = "softmax",
       .parameters = rows,
       .expression = "input X[m,n];"
                     "largest[i] max= X[i,l];"
                     "E[i,j] = exp(X[i,j] - largest[i]);"
                     "total[i] += E[i,l];"
                     "output Y[i,j] = E[i,j] / total[i] where i=m, j=n, l=n",
       .description = "softmax of each row of X[m,n]"},
      {.name = "layer_norm",
       .parameters = rows,
       .expression = "input X[m,n]; constant gamma[n]; constant beta[n];"
                     "total[i] += X[i,l];"
                     "D[i,j] = X[i,j] - total[i] / n;"
                     "square[i] += D[i,l] * D[i,l];"
                     "output Y[i,j] = D[i,j] / sqrt(square[i] / n + 1e-5) * gamma[j] + beta[j] where i=m, j=n, l=n",
       .description = "each row of X[m,n] with mean 0 and variance 1, times gamma[n] plus beta[n]"},
  };
  return table;
}

Workload parse_workload(std::string_view text) {
  if (text.starts_with("suite:"))
    throw base::UserError("workload", fmt::format("'{}' is a list of workloads, and one is expected here; "
                                                  "graft tune-all searches all of a list",
                                                  base::shortened(text)));
  if (const auto call = parse_call(text)) {
    const Computation computation = computation_of(*call);  // refuses extents that do not fit together
    Call plain = *call;
    plain.out.reset();
    return Workload(canonical(call->out && computation_of(plain) == computation ? plain : *call));
  }
  return Workload(to_text(without_identities(parse_computation(text, {}, DType::f32, "workload"))));
}

Workload::Workload(std::string text) {
  auto content = std::make_shared<Content>();
  content->hash = base::hash_bytes(text);
  content->text = std::move(text);
  content_ = std::move(content);
}

const Workload::Content& Workload::content() const {
  const Content& content = *content_;
  std::call_once(content.read, [&] {
    try {
      const auto call = parse_call(content.text);
      content.computation = call ? computation_of(*call)
                                 : without_identities(parse_computation(content.text, {}, DType::f32, "workload"));
      content.padded = with_padding_stages(*content.computation);
      content.key = base::hash_bytes(to_text(without_names(*content.computation)));
    } catch (const base::UserError& error) {
      content.problem = error.what();
      content.key = content.hash;
    }
  });
  return content;
}

const Computation& Workload::computation() const& {
  const Content& read = content();
  if (!read.computation) throw base::UserError(read.problem);
  return *read.computation;
}

const Computation& Workload::padded() const& {
  (void)computation();
  return *content_->padded;
}

std::uint64_t Workload::key() const {
  return content().key;
}

bool names_computation(const Workload& workload) {
  return workload.content().computation.has_value();
}

std::int64_t flops(const Workload& workload) {
  return flops(workload.computation());
}

std::uint64_t hash(const Workload& workload) {
  return workload.content_->hash;
}

}  // namespace graft::codegen
