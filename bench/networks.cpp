#include "bench/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/team.h"
#include "base/text.h"
#include "bench/forest.h"
#include "codegen/schedule/space.h"
#include "features/encoding.h"
#include "meta/gradient/adam.h"
#include "meta/gradient/adaptation.h"
#include "meta/gradient/inner_loop.h"
#include "meta/networks/aligned.h"
#include "meta/networks/gemm.h"
#include "meta/networks/packed_trees.h"
#include "meta/networks/tree_gru.h"
#include "search/programs.h"
#include "tasks/platform.h"

namespace graft::bench {
namespace {

using Note = std::function<void(std::string)>;
using meta::NetworkKind;
using meta::NetworkShape;

const NetworkShape wide_mlp{164, {256, 256}};
NetworkShape tree_gru(std::int64_t inputs, std::int64_t width) {
  return {inputs, {64}, NetworkKind::treegru, {width, width, 8}};
}

std::string name_of(const NetworkShape& shape) {
  std::vector<std::string> widths;
  for (const std::int64_t width : shape.hidden) widths.push_back(std::to_string(width));
  if (shape.kind == NetworkKind::mlp) return fmt::format("mlp {}-{}-1", shape.inputs, base::join(widths, "-"));
  return fmt::format("treegru {}-{}-{}, {} slots, {}-1", shape.inputs, shape.tree.embedding, shape.tree.units,
                     shape.tree.slots, base::join(widths, "-"));
}

// Null without the plug-in.
std::shared_ptr<meta::Network> torch_network(const NetworkShape& shape, const Note& note) {
  try {
    return make_network(shape, "torch");
  } catch (const base::Failure& failure) {
    note(failure.what());
    return nullptr;
  }
}

features::Encoded random_rows(std::int64_t programs, std::int64_t columns, std::uint64_t seed) {
  base::Stream stream(seed, "bench rows");
  base::Matrix rows(programs, columns);
  for (float& value : rows.values) value = float(stream.normal());
  return features::one_row_each(std::move(rows));
}

// A batch of trees and its description.
struct Trees {
  std::string what;
  features::Encoded programs;
};

// The batches of a search: candidates of the workloads in equal shares, drawn at random, or small steps away from 32
// of those (`steps`). Normalised over themselves.
Trees candidates(const NetworkSettings& settings, bool steps) {
  constexpr std::size_t origins = 32;
  std::vector<std::string> workloads = settings.workloads;
  if (workloads.empty()) workloads = {"matmul(m=512,n=512,k=512)", "resnet18.C6"};
  const tasks::Platform platform = tasks::platform_named(settings.platform);
  const features::Encoding& encoding = features::encoding_named("tree");
  base::Stream stream(settings.seed, "bench trees");
  std::vector<codegen::Space> spaces;
  for (const std::string& workload : workloads)
    spaces.push_back(codegen::derive_space(codegen::parse_workload(workload), platform.target));
  search::Programs judge(platform.target);
  std::vector<codegen::Candidate> from;
  for (std::size_t i = 0; i < origins; ++i) from.push_back(spaces[i % spaces.size()].sample(stream, judge));
  meta::Examples examples;
  for (std::size_t next = 0; examples.features.programs() < settings.batch; ++next) {
    const codegen::Space& space = spaces[next % spaces.size()];
    const base::Result<codegen::Candidate> candidate =
        steps ? space.mutate(from[next % (origins - origins % spaces.size())], stream, judge)
              : space.sample(stream, judge);
    if (!candidate) continue;
    const base::Result<codegen::LoopProgram> program = codegen::program(*candidate, platform.target);
    if (!program) continue;
    features::append(examples.features, encoding.encode({&*program, &*candidate, &platform.target}));
  }
  return {steps ? fmt::format("mutants of {} candidates", origins) : "random candidates",
          meta::fit_normalisation({&examples, 1}).apply(examples.features)};
}

// Trees without programs, with which TreeGRUs are often timed: 5 to 40 nodes, mostly chains, no two nodes alike.
Trees small_trees(const NetworkSettings& settings) {
  base::Stream stream(settings.seed, "bench small trees");
  features::Encoded trees;
  trees.rows.columns = 64;
  for (std::int64_t p = 0; p < settings.batch; ++p) {
    const std::int64_t nodes = 5 + stream.below(36);
    for (std::int64_t i = 0; i < nodes; ++i)
      trees.parents.push_back(std::int32_t(i == 0 || stream.below(10) < 7 ? i - 1 : stream.below(i)));
    trees.rows.rows += nodes;
    trees.begins.push_back(trees.rows.rows);
  }
  for (std::int64_t i = 0; i < trees.rows.rows * trees.rows.columns; ++i)
    trees.rows.values.push_back(float(stream.normal()));
  return {"random trees", std::move(trees)};
}

std::vector<std::pair<NetworkShape, Trees>> tree_batches(const NetworkSettings& settings) {
  std::vector<std::pair<NetworkShape, Trees>> batches;
  for (const bool steps : {true, false}) {
    Trees trees = candidates(settings, steps);
    batches.emplace_back(tree_gru(trees.programs.rows.columns, 64), std::move(trees));
  }
  for (const std::int64_t width : {64, 128}) batches.emplace_back(tree_gru(64, width), small_trees(settings));
  return batches;
}

// Only the matrix products of a batch's forward pass: the least possible time. For a tree network,
// with every node computed.
struct Products {
  struct Product {
    std::int64_t m, n, k;
  };
  std::vector<Product> list;
  std::vector<float> a, b, c;

  void add(std::int64_t m, std::int64_t n, std::int64_t k) {
    list.push_back({m, n, k});
    a.resize(std::max(a.size(), std::size_t(m * k)), 0.5f);
    b.resize(std::max(b.size(), std::size_t(k * n)), 0.5f);
    c.resize(std::max(c.size(), std::size_t(m * n)));
  }
  void run() {
    for (const auto& [m, n, k] : list)
      meta::gemm(meta::Transposed::no, meta::Transposed::no, m, n, k, a.data(), k, b.data(), n, 0.0f, c.data(), n);
  }
};
Products products_of(const NetworkShape& shape, const features::Encoded& programs) {
  Products products;
  std::int64_t below = shape.inputs;
  if (shape.kind == NetworkKind::treegru) {
    const auto [embedding, units, slots] = shape.tree;
    const meta::PackedTrees packed = meta::pack(meta::inputs_of(programs), shape.inputs, false);
    for (std::size_t l = 0; l + 1 < packed.levels.size(); ++l) {
      const std::int64_t count = packed.levels[l + 1] - packed.levels[l], old = l == 0 ? 0 : units;
      products.add(count, embedding, shape.inputs);
      products.add(count, l == 0 ? units : 2 * units, embedding + old);
      products.add(count, units, embedding + old);
    }
    products.add(packed.nodes(), slots, units);
    below = slots * units;
  }
  for (const std::int64_t width : shape.hidden) {
    products.add(programs.programs(), width, below);
    below = width;
  }
  return products;
}

bool near(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= 1e-4f * std::max(1.0f, std::abs(b[i])))) return false;
  }
  return true;
}

NetworkRow row_of(const NetworkShape& shape, const features::Encoded& programs, std::string what) {
  NetworkRow row{.what = std::move(what), .programs = programs.programs(), .contenders = {}};
  if (shape.kind == NetworkKind::treegru) {
    const double count = double(programs.programs());
    row.nodes = double(programs.rows.rows) / count;
    row.shared = double(meta::pack(meta::inputs_of(programs), shape.inputs, true).nodes()) / count;
  }
  return row;
}

NetworkRow predict_row(const NetworkShape& shape, const features::Encoded& programs, const std::string& what,
                       const NetworkSettings& settings, const Note& note) {
  const std::int64_t count = programs.programs();
  NetworkRow row = row_of(shape, programs, fmt::format("{}, batch {}: {}", name_of(shape), count, what));
  note(row.what);
  const meta::Aligned aligned(initial_parameters(shape, settings.seed));  // as models hold them
  const std::span<const float> theta = aligned.values();
  const meta::Inputs<float> inputs = meta::inputs_of(programs);
  std::vector<float> reference(static_cast<std::size_t>(count));
  const auto scored = [&](std::string name, std::shared_ptr<meta::Network> network) {
    const auto scores = std::make_shared<std::vector<float>>(reference.size());
    row.contenders.push_back({.name = std::move(name),
                              .call = [&, scores, network] { network->score(theta, inputs, *scores); },
                              .check = [&, scores] { return near(*scores, reference); }});
  };
  const std::shared_ptr<meta::Network> torch = torch_network(shape, note);
  (torch != nullptr ? torch : std::shared_ptr<meta::Network>(make_network(shape)))->score(theta, inputs, reference);
  scored("graft", make_network(shape));
  if (torch != nullptr) scored("torch", torch);
  if (shape.kind == NetworkKind::treegru) scored("unshared", meta::make_native_tree_gru<float>(shape, false));
  const auto products = std::make_shared<Products>(products_of(shape, programs));
  row.contenders.push_back({.name = "onednn", .call = [products] { products->run(); }, .check = [] { return true; }});
  measure_in_turn(row.contenders, settings.timing);
  for (Contender& contender : row.contenders) contender.call = contender.clear = {}, contender.check = {};
  return row;
}

NetworkRow train_row(const NetworkShape& shape, const features::Encoded& programs, const std::string& what,
                     const NetworkSettings& settings, const Note& note) {
  const std::int64_t count = programs.programs();
  NetworkRow row = row_of(shape, programs, fmt::format("{}, batch {}: {}", name_of(shape), count, what));
  note(row.what);
  base::Stream stream(settings.seed, "bench times");
  std::vector<double> log_seconds;
  for (std::int64_t p = 0; p < count; ++p) log_seconds.push_back(stream.normal());
  std::vector<std::int64_t> groups(std::size_t((count + 63) / 64), 64);  // of 64 programs, as training draws them
  groups.back() = count - 64 * std::int64_t(groups.size() - 1);
  const meta::Batch<float> batch{programs.rows.values, programs.begins, programs.parents,
                                 meta::Objective(meta::Loss::rank, log_seconds, groups)};
  const std::vector<float> start = initial_parameters(shape, settings.seed);
  std::vector<float> reference(start.size());
  const auto trained = [&](std::string name, std::shared_ptr<meta::Network> network) {
    struct State {
      std::vector<float> theta, gradient;
      meta::Adam adam;
    };
    const auto state =
        std::make_shared<State>(State{start, std::vector<float>(start.size()), meta::Adam(start.size())});
    row.contenders.push_back({.name = std::move(name),
                              .call =
                                  [&, state, network] {
                                    meta::loss_gradient<float>(*network, state->theta, batch, state->gradient);
                                    state->adam.step(state->theta, state->gradient, 1e-4);
                                  },
                              .check = [&, state] { return near(state->gradient, reference); }});
  };
  const std::shared_ptr<meta::Network> torch = torch_network(shape, note);
  meta::loss_gradient<float>(torch != nullptr ? *torch : *make_network(shape), start, batch, reference);
  trained("graft", make_network(shape));
  if (torch != nullptr) trained("torch", torch);
  if (shape.kind == NetworkKind::treegru) trained("unshared", meta::make_native_tree_gru<float>(shape, false));
  measure_in_turn(row.contenders, settings.timing);
  for (Contender& contender : row.contenders) contender.call = contender.clear = {}, contender.check = {};
  return row;
}

// MAML's gradient of one meta-batch, exact second order, its tasks divided among threads as training divides them.
NetworkRow meta_step_row(const NetworkSettings& settings, int threads, const Note& note) {
  constexpr std::int64_t tasks = 8, support = 16, query = 256, inner_steps = 5;
  const NetworkShape& shape = wide_mlp;
  struct Task {
    meta::Batch<float> support, query;
  };
  const auto drawn = std::make_shared<std::vector<Task>>();
  for (std::int64_t t = 0; t < tasks; ++t) {
    base::Stream stream(settings.seed, "bench tasks", std::uint64_t(t));
    const auto batch = [&](std::int64_t count) {
      const features::Encoded rows = random_rows(count, shape.inputs, settings.seed + std::uint64_t(t));
      std::vector<double> log_seconds;
      for (std::int64_t p = 0; p < count; ++p) log_seconds.push_back(stream.normal());
      return meta::Batch<float>{rows.rows.values, rows.begins, rows.parents,
                                meta::Objective(meta::Loss::rank, log_seconds, std::vector<std::int64_t>{count})};
    };
    drawn->push_back({batch(support), batch(query)});
  }
  NetworkRow row;
  row.what = fmt::format("maml meta-step {}, {} tasks of {} + {} programs, {} inner steps", name_of(shape), tasks,
                         support, query, inner_steps);
  if (threads > 1) row.what += fmt::format(", {} threads", threads);
  row.threads = threads;
  row.programs = tasks * (support + query);
  note(row.what);
  const std::vector<float> theta = initial_parameters(shape, settings.seed);
  const meta::Rates<float> rates{inner_steps, false, std::vector<float>(layout_of(shape).size(), 0.01f)};
  const auto step = [=](const meta::Network& network, std::vector<float>& gradient) {
    base::Team alone;
    gradient = base::summed(alone, tasks, threads, [&](std::int64_t t) {
      const Task& task = (*drawn)[std::size_t(t)];
      return meta::meta_gradient<float>(network, meta::OuterRule::second_order, rates, theta, task.support, task.query,
                                        {}, meta::ByRates::no)
          .theta;
    });
    for (float& value : gradient) value /= float(tasks);
  };
  const std::shared_ptr<meta::Network> torch = torch_network(shape, note), native = make_network(shape);
  std::vector<float> reference;
  step(torch != nullptr ? *torch : *native, reference);
  const auto add = [&](std::string name, std::shared_ptr<meta::Network> network) {
    const auto gradient = std::make_shared<std::vector<float>>();
    row.contenders.push_back({.name = std::move(name),
                              .call = [=] { step(*network, *gradient); },
                              .check = [&reference, gradient] { return near(*gradient, reference); }});
  };
  add("graft", native);
  if (torch != nullptr) add("torch", torch);
  TimingSettings timing = settings.timing;
  timing.wall = threads > 1;
  measure_in_turn(row.contenders, timing);
  for (Contender& contender : row.contenders) contender.call = contender.clear = {}, contender.check = {};
  return row;
}

double per_second(const NetworkRow& row, const Contender& contender) {
  return double(row.programs) / contender.timing.best;
}

}  // namespace

std::vector<NetworkRow> bench_predict(const NetworkSettings& settings, const Note& note) {
  std::vector<NetworkRow> rows;
  for (const std::int64_t batch : {std::int64_t(1), settings.batch}) {
    rows.push_back(
        predict_row(wide_mlp, random_rows(batch, wide_mlp.inputs, settings.seed), "random rows", settings, note));
  }
  for (const auto& [shape, trees] : tree_batches(settings))
    rows.push_back(predict_row(shape, trees.programs, trees.what, settings, note));
  for (NetworkRow& row : forest_predict_rows(settings, note)) rows.push_back(std::move(row));
  return rows;
}

std::vector<NetworkRow> bench_train(const NetworkSettings& settings, const Note& note) {
  std::vector<NetworkRow> rows;
  rows.push_back(
      train_row(wide_mlp, random_rows(settings.batch, wide_mlp.inputs, settings.seed), "random rows", settings, note));
  for (const auto& [shape, trees] : tree_batches(settings))
    rows.push_back(train_row(shape, trees.programs, trees.what, settings, note));
  rows.push_back(meta_step_row(settings, 1, note));
  if (settings.threads > 1) rows.push_back(meta_step_row(settings, int(settings.threads), note));
  for (NetworkRow& row : forest_train_rows(settings, note)) rows.push_back(std::move(row));
  return rows;
}

bool all_right(const std::vector<NetworkRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const NetworkRow& row) {
    return std::all_of(row.contenders.begin(), row.contenders.end(),
                       [](const Contender& contender) { return contender.timing.right; });
  });
}

base::Document to_document(const std::vector<NetworkRow>& rows, const NetworkSettings& settings) {
  base::Document context = base::Document::map();
  context.set("platform", settings.platform).set("clock", "thread_cpu").set("seed", std::int64_t(settings.seed));
  base::Document list = base::Document::list();
  for (const NetworkRow& row : rows) {
    base::Document entry = base::Document::map(), baselines = base::Document::map(), timings = base::Document::map();
    for (const Contender& contender : row.contenders) {
      timings.set(contender.name, to_document(contender.timing));
      const base::Document value =
          contender.timing.right ? base::Document(per_second(row, contender)) : base::Document();
      if (&contender == &row.contenders.front()) {
        entry.set("name", row.what).set("value", value).set("unit", row.threads > 1 ? "programs/s" : "programs/s/core");
      } else {
        baselines.set(contender.name, value);
      }
    }
    entry.set("baselines", baselines).set("timings", timings).set("programs", row.programs);
    if (row.threads > 1) entry.set("threads", std::int64_t(row.threads)).set("clock", "wall");
    if (row.nodes > 0) entry.set("nodes", row.nodes).set("shared_nodes", row.shared);
    list.push(entry);
  }
  return base::Document::map().set("schema", 1).set("context", context).set("rows", list);
}

std::string to_text(const std::vector<NetworkRow>& rows, const NetworkSettings&) {
  std::string text =
      "thousands of programs per second on one core (thread CPU time; where threads are named, on that many by wall "
      "time; "
      "best repetition; +- spread: interquartile range / median)\n";
  for (const NetworkRow& row : rows) {
    text += "\n" + row.what;
    if (row.nodes > 0)
      text += fmt::format(" ({:.1f} nodes a program, {:.1f} of them different)", row.nodes, row.shared);
    text += "\n";
    for (const Contender& contender : row.contenders) {
      text += contender.timing.right
                  ? fmt::format("  {:<10} {:>9.1f} +- {}\n", contender.name, per_second(row, contender) / 1e3,
                                spread_text(contender.timing.spread))
                  : fmt::format("  {:<10} wrong result\n", contender.name);
    }
  }
  return text +
         "\nonednn: the matrix products of the forward pass alone; unshared: ours without sharing equal subtrees; "
         "xgboost: the same "
         "trees (training: its own squared error); of trained trees programs count once a tree\n";
}

}  // namespace graft::bench
