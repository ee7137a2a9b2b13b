#include "study/flows/network_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "base/deadline.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "codegen/program/constants.h"
#include "codegen/schedule/candidate_program.h"
#include "search/run_directory.h"
#include "study/flows/compile.h"
#include "study/flows/effort.h"
#include "study/flows/settings.h"
#include "study/inputs/field_error.h"
#include "study/inputs/request.h"
#include "study/knowledge/answer.h"

namespace graft::study {
namespace {

namespace fs = std::filesystem;

const char *const file_name = "network.json", *const answers_name = "answers", *const kind = "networks";

base::Document read(const fs::path& folder) {
  const fs::path file = folder / file_name;
  return base::parse_json(base::read_file(file), file.string());
}

template <class Number>
bool reads(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// "sequence=1:100,64:1": by name and extent. FieldError.
using Uses = std::map<std::string, std::map<std::int64_t, double>, std::less<>>;
Uses uses_from(const std::vector<std::string>& texts) {
  Uses uses;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const auto fail = [&] { throw FieldError("use", fmt::format("'{}': expected NAME=EXTENT:HOW_OFTEN,...", text)); };
    if (equals == std::string::npos) fail();
    for (const std::string_view each : base::split(std::string_view(text).substr(equals + 1), ',')) {
      const std::size_t colon = each.find(':');
      std::int64_t extent = 0;
      double often = 0;
      if (colon == std::string_view::npos || !reads(base::trim(each.substr(0, colon)), extent) ||
          !reads(base::trim(each.substr(colon + 1)), often) || !(often > 0) || !std::isfinite(often))
        fail();
      uses[text.substr(0, equals)][extent] = often;
    }
  }
  return uses;
}

// By shape: their sum is the number of shapes.
std::vector<double> shares_of(const Extents& extents, const std::vector<std::string>& texts) {
  const Uses uses = uses_from(texts);
  std::vector<double> shares(extents.by_shape.size(), 1);
  for (const auto& [name, by_extent] : uses) {
    const auto at = std::find(extents.names.begin(), extents.names.end(), name);
    if (at == extents.names.end())
      throw FieldError("use",
                       fmt::format("'{}' has not several extents{}", name, base::did_you_mean(name, extents.names)));
    const std::size_t e = std::size_t(at - extents.names.begin());
    for (const auto& [extent, often] : by_extent) {
      bool is_there = false;
      for (std::size_t s = 0; s < shares.size(); ++s) {
        if (extents.by_shape[s][e] != extent) continue;
        shares[s] *= often;
        is_there = true;
      }
      if (!is_there) throw FieldError("use", fmt::format("'{}' has not the extent {}", name, extent));
    }
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share *= double(shares.size()) / sum;
  return shares;
}

// Trials of one shape, of what each has on average; a shape that is rare still finds something.
std::int64_t part_of(std::int64_t trials, double share) {
  constexpr std::int64_t least = 12;
  return trials == 0 ? 0 : std::max(std::min(trials, least), std::int64_t(std::llround(double(trials) * share)));
}

// The request of each shape without its part of what is shared: with the answers of the others.
NetworkRequest common_of(const NetworkRequest& asked, const fs::path& folder) {
  NetworkRequest request = with_effort(asked);
  const auto& own = request.each.space;
  if (request.each.library.empty() && own.file.empty() && own.intrinsics.empty())
    request.each.library = folder / answers_name;
  return request;
}

std::string folder_of(const Extents& extents, std::size_t shape) {
  std::vector<std::string> parts;
  for (std::size_t e = 0; e < extents.names.size(); ++e)
    parts.push_back(fmt::format("{}-{}", extents.names[e], extents.by_shape[shape][e]));
  return short_name(base::join(parts, "-"));
}

// What the folder has, of other shapes, too.
void read_before(const NetworkRequest& request, ShapedNetworks& all) {
  if (!fs::exists(all.folder / file_name)) return;
  if (!is_shaped(all.folder))
    throw base::UserError(all.folder.string(), "holds a network for one shape; give another folder");
  all.parts = read_networks(all.folder).parts;
  for (const auto& [network, use] : all.parts) {
    if (network.model_hash != file_hash(request.model) ||
        platform_hash(network.platform) != platform_hash(request.each.platform))
      throw base::UserError(all.folder.string(),
                            "holds the result of another model or another platform; give another folder");
  }
}

void write(const ShapedNetworks& all) {
  base::Document kept = base::Document::map().set("schema", 1);
  for (const auto& [key, value] : to_document(all).as_map()) kept.set(key, value);
  write_files({{file_name, kept.to_pretty_json() + "\n"}}, false, all.folder);
}

// What programs make of their constants before they run, by its hash.
class Prepared {
 public:
  explicit Prepared(const codegen::Target& target) : target_(target) {}

  void add(const TunedNetwork& network) {
    for (const NetworkKernel& kernel : network.kernels)
      if (kernel.answer) known_.insert(of(kernel.answer->candidate));
  }

  // Takes programs that are nearly as fast and make of their constants what others do, so that a library has it once.
  // Whether any was taken.
  bool share(TunedNetwork& network) {
    bool any = false;
    for (NetworkKernel& kernel : network.kernels) {
      if (!kernel.answer || kernel.run.empty()) continue;
      if (const std::uint64_t own = of(kernel.answer->candidate); own == 0 || known_.contains(own)) continue;
      const double most = share_slowdown * datasets::seconds_of(kernel.answer->measurement);
      for (const Answer& answer : answers_of(search::read_run(kernel.run), kernel.workload, most_answers)) {
        if (answer.seconds() > most) break;
        if (!known_.contains(of(answer.candidate))) continue;
        kernel.answer->candidate = answer.candidate;
        kernel.answer->program_hash = answer.program_hash;
        kernel.answer->pipeline = answer.pipeline;
        kernel.answer->measurement = answer.measurement;
        any = true;
        break;
      }
    }
    return any;
  }

 private:
  static constexpr double share_slowdown = 1.02;  // less than two measurements of one program often differ
  static constexpr std::size_t most_answers = 64;

  // 0: nothing is prepared.
  std::uint64_t of(const codegen::Candidate& candidate) const {
    const auto program = codegen::program(candidate, target_);
    if (!program) return 0;
    const codegen::WithoutPrepare halves = codegen::without_prepare(*program);
    return halves.prepared.empty() ? 0 : codegen::hash(halves.prepare);
  }

  const codegen::Target& target_;
  std::set<std::uint64_t> known_;
};

void put(ShapedNetworks::Part part, ShapedNetworks& all) {
  const auto same = std::find_if(all.parts.begin(), all.parts.end(), [&](const ShapedNetworks::Part& each) {
    return each.network.folder == part.network.folder;
  });
  if (same == all.parts.end())
    all.parts.push_back(std::move(part));
  else
    *same = std::move(part);
}

}  // namespace

ShapedNetworks tune_networks(const NetworkRequest& asked, base::Monitor& monitor) {
  check_settings(asked);
  const std::vector<graph::Shapes> shapes = graph::each_shape(asked.model, asked.options.shapes);
  const Extents extents = extents_of(shapes);
  const std::vector<double> shares = shares_of(extents, asked.use);
  ShapedNetworks all{network_folder(asked), {}, true};
  if (shapes.size() == 1 && !is_shaped(all.folder)) {
    all.parts.push_back({tune_network(asked, monitor), 1});
    all.complete = all.parts.front().network.complete;
    return all;
  }
  if (shapes.size() == 1)
    throw base::UserError(all.folder.string(), "holds networks for several shapes; give several, or another folder");
  read_before(asked, all);
  const NetworkRequest common = common_of(asked, all.folder);
  const base::Deadline deadline(asked.budget_seconds);
  double left = double(shapes.size());
  Prepared prepared(asked.each.platform.target);
  for (std::size_t s = 0; s < shapes.size() && all.complete; ++s) {
    NetworkRequest request = common;
    request.options.shapes = shapes[s];
    request.each.out = all.folder / folder_of(extents, s);
    if (common.trials > 0)  // none at all would mean: by effort
      request.trials = part_of(std::max<std::int64_t>(1, common.trials / std::int64_t(shapes.size())), shares[s]);
    request.trials_by_kernel = part_of(common.trials_by_kernel, shares[s]);
    if (deadline.exists()) request.budget_seconds = std::max(1e-3, deadline.left() * shares[s] / left);
    left -= shares[s];
    monitor.note(fmt::format("{} ({} of {}):", to_text(extents.names, extents.by_shape[s]), s + 1, shapes.size()));
    ShapedNetworks::Part part{tune_network(request, monitor), shares[s]};
    all.complete = part.network.complete;
    if (prepared.share(part.network)) keep_kernels(part.network);
    prepared.add(part.network);
    put(std::move(part), all);
    write(all);
  }
  std::vector<TunedNetwork> networks;
  for (const ShapedNetworks::Part& part : all.parts) networks.push_back(part.network);
  if (all.complete) share_constants(networks);
  return all;
}

bool is_shaped(const fs::path& folder) {
  return is_network_folder(folder) && read(folder).at("kind").as_string() == kind;
}

std::vector<fs::path> networks_in(const fs::path& folder) {
  if (!is_shaped(folder)) return {folder};
  std::vector<fs::path> folders;
  const base::Document document = read(folder);
  for (const base::Document& each : document.at("networks").as_list()) {
    const std::string& name = each.at("folder").as_string();
    if (name != short_name(name)) throw base::UserError(each.at("folder").place(), "is not a folder within this one");
    folders.push_back(folder / name);
  }
  if (folders.empty()) throw base::UserError(document.at("networks").place(), "is empty");
  return folders;
}

ShapedNetworks read_networks(const fs::path& folder) {
  ShapedNetworks all{folder, {}, true};
  const std::vector<fs::path> folders = networks_in(folder);
  const base::Document document = read(folder);
  for (std::size_t n = 0; n < folders.size(); ++n)
    all.parts.push_back({read_tuned_network(folders[n]), document.at("networks").as_list()[n].at("use").as_number()});
  all.complete = document.at("complete").as_bool();
  return all;
}

Extents extents_of(const std::vector<graph::Shapes>& shapes) {
  Extents extents;
  extents.by_shape.resize(shapes.size());
  for (const auto& [name, first] : shapes.front())
    for (std::size_t at = 0; at < first.size(); ++at) {
      const auto of = [&, &name = name](const graph::Shapes& each) { return each.at(name).at(at); };
      if (std::all_of(shapes.begin(), shapes.end(), [&](const auto& each) { return of(each) == of(shapes.front()); }))
        continue;
      extents.names.push_back(first.size() == 1 ? name : fmt::format("{}_{}", name, at));
      for (std::size_t s = 0; s < shapes.size(); ++s) extents.by_shape[s].push_back(of(shapes[s]));
    }
  return extents;
}

std::string to_text(const std::vector<std::string>& names, const std::vector<std::int64_t>& extents) {
  std::vector<std::string> texts;
  for (std::size_t e = 0; e < names.size(); ++e) texts.push_back(fmt::format("{}={}", names[e], extents[e]));
  return base::join(texts, " ");
}

base::Document to_document(const ShapedNetworks& all) {
  if (!is_shaped(all.folder) && all.parts.size() == 1 && all.parts.front().network.folder == all.folder)
    return to_document(all.parts.front().network);
  base::Document networks = base::Document::list();
  for (const auto& [network, use] : all.parts) {
    base::Document shapes = base::Document::map();
    for (const auto& [name, shape] : network.options.shapes) {
      base::Document list = base::Document::list();
      for (const std::int64_t extent : shape) list.push(extent);
      shapes.set(name, std::move(list));
    }
    base::Document each = base::Document::map()
                              .set("folder", network.folder.filename().string())
                              .set("shapes", std::move(shapes))
                              .set("use", use);
    if (std::isfinite(network.seconds)) each.set("seconds", network.seconds);
    if (network.in_place_seconds) each.set("in_place_seconds", *network.in_place_seconds);
    networks.push(std::move(each));
  }
  const TunedNetwork& first = all.parts.front().network;
  return base::Document::map()
      .set("kind", kind)
      .set("model", first.model.string())
      .set("platform", first.platform.name)
      .set("source", first.platform.device->source())
      .set("networks", std::move(networks))
      .set("complete", all.complete);
}

}  // namespace graft::study
