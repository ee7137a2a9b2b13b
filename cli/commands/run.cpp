#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/numpy.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/print/compiled_network.h"
#include "cli/setting_flags.h"
#include "cli/texts.h"
#include "codegen/machine/library.h"
#include "study/flows/compile_network.h"
#include "study/flows/settings.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string network, out;
  std::vector<std::string> inputs;
  study::RunNetworkRequest request;  // what flags set directly
};

// How NumPy names an element's type; that of the model, if there is one.
std::string_view numpy_type(const codegen::Sequence::Tensor& tensor) {
  constexpr std::pair<std::string_view, std::string_view> declared[] = {
      {"bool", "|b1"}, {"int16", "<i2"}, {"uint16", "<u2"}, {"uint32", "<u4"}, {"uint64", "<u8"}};
  for (const auto& [name, numpy] : declared)
    if (tensor.declared == name) return numpy;
  switch (tensor.dtype) {
    case codegen::DType::f32:
      return "<f4";
    case codegen::DType::f64:
      return "<f8";
    case codegen::DType::i32:
      return "<i4";
    case codegen::DType::i8:
      return "|i1";
    case codegen::DType::u8:
      return "|u1";
    case codegen::DType::i64:
      return "<i8";
    case codegen::DType::f16:
      return "<f2";
    case codegen::DType::bf16:
      return "<u2";  // NumPy has no such type: its bits
  }
  return "";
}

// An output as NumPy has it: the lower bytes of integers that have more bits here are the model's.
std::string npy_of(const codegen::Sequence::Tensor& tensor, std::string_view bytes) {
  const std::string_view type = numpy_type(tensor);
  const std::size_t width = std::size_t(type.back() - '0'), from = std::size_t(codegen::bytes_of(tensor.dtype));
  std::string narrow;
  for (std::size_t at = 0; at < bytes.size(); at += from) narrow += bytes.substr(at, width);
  return base::npy_of(tensor.shape, type, narrow);
}

study::RunNetworkRequest request_of(const Flags& flags, const Session& session) {
  study::RunNetworkRequest request = flags.request;
  request.folder = flags.network;
  request.seed = session.seed;
  for (const std::string& each : flags.inputs) {
    const std::size_t equals = each.rfind('=');
    if (equals == std::string::npos)
      throw base::UserError("--input", fmt::format("'{}': expected NAME=FILE.npy", each));
    const std::string file = each.substr(equals + 1);
    request.inputs[each.substr(0, equals)] = base::parse_npy(base::read_file(file), file);
  }
  return request;
}

int run(const Flags& flags, Session& session) {
  const study::NetworkRun result = study::run_network(request_of(flags, session), session.progress);
  Table table({"output", "type", "shape", "least", "largest", "file"});
  base::Document outputs = base::Document::list();
  std::map<std::string, std::string> files;
  for (std::size_t o = 0; o < result.tensors.size(); ++o) {
    const codegen::Sequence::Tensor& tensor = result.tensors[o];
    const std::vector<double> numbers = codegen::numbers_from(result.outputs[o], tensor.dtype);
    std::string file;
    if (!flags.out.empty()) {
      file = fmt::format("{}.npy", codegen::identifier(tensor.name));
      if (files.contains(file)) file = fmt::format("{}_{}.npy", codegen::identifier(tensor.name), o);
      files[file] = npy_of(tensor, result.outputs[o]);
    }
    const auto [least, largest] = std::minmax_element(numbers.begin(), numbers.end());
    const auto text = [&](auto at) { return numbers.empty() ? std::string() : fmt::format("{:.6g}", *at); };
    table.row({graph::in_quotes(tensor.name), std::string(codegen::name_of(tensor.dtype)), graph::to_text(tensor.shape),
               text(least), text(largest), file});
    base::Document shape = base::Document::list();
    for (const std::int64_t extent : tensor.shape) shape.push(extent);
    outputs.push(base::Document::map()
                     .set("name", tensor.name)
                     .set("dtype", std::string(codegen::name_of(tensor.dtype)))
                     .set("shape", std::move(shape))
                     .set("file", file));
  }
  if (!files.empty()) study::write_files(files, false, flags.out);
  session.output.table(table);
  if (flags.request.repetitions > 0) {
    print_time(result, session.output);
    session.output.json().set("seconds", result.median_seconds);
  }
  if (result.results) print(*result.results, session.output);
  base::Document seconds = base::Document::list();
  for (const double each : result.seconds) seconds.push(each);
  session.output.json()
      .set("where", result.where)
      .set("outputs", std::move(outputs))
      .set("repetitions", std::move(seconds));
  if (!result.results) return done;
  session.output.json().set("results", to_document(*result.results));
  if (result.results->right()) return done;
  session.output.finish();
  throw base::Failure(fmt::format("wrong results: {}: {}", result.results->call, result.results->difference));
}

}  // namespace

Command run_command() {
  return {.name = "run",
          .help = "a tuned network on inputs, on this machine or under qemu",
          .examples = {"graft run runs/resnet18 --input x=x.npy --out outputs",
                       "graft run runs/resnet18 --repetitions 20 --check"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positional("NETWORK", flags->network, "folder that graft tune MODEL.onnx made");
            options.list("input", flags->inputs,
                         "NAME=FILE.npy: an input; those that are not given are random numbers of the seed");
            options.text("out", flags->out, "folder for the outputs, a .npy file each");
            declare(options, study::settings_of(flags->request));
            return [flags](Session& session) { return run(*flags, session); };
          },
          .stops = true};
}

}  // namespace graft::cli
