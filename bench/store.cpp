#include "bench/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/statistics.h"
#include "base/temporary_folder.h"
#include "datasets/dataset.h"
#include "datasets/groups.h"

namespace graft::bench {
namespace {

// Each row as often as needed, with new hashes, so that each is a separate program; a workload's rows are
// adjacent, as graft collect writes them.
datasets::Dataset repeated(datasets::Dataset dataset, std::int64_t count) {
  const std::vector<datasets::Dataset::Row> rows = std::move(dataset.rows);
  dataset.rows.clear();
  dataset.rows.reserve(std::size_t(count));
  const std::int64_t known = std::int64_t(rows.size());
  for (std::int64_t i = 0; i < count; ++i) {
    datasets::Dataset::Row row = rows[std::size_t(i * known / count)];
    row.program_hash = base::hash_combine(row.program_hash, std::uint64_t(i));
    dataset.rows.push_back(std::move(row));
  }
  return dataset;
}

double seconds_of(const std::function<void()>& call) {
  const double begin = base::wall_seconds();
  call();
  return base::wall_seconds() - begin;
}

}  // namespace

StoreBench bench_store(const StoreSettings& settings, const std::function<void(std::string)>& note) {
  datasets::Dataset some = datasets::read_dataset(settings.file);
  if (some.rows.empty()) throw base::UserError(settings.file, "has no rows to repeat");
  const datasets::Dataset dataset = repeated(std::move(some), settings.rows);
  const base::TemporaryFolder folder("bench");
  const std::filesystem::path path = folder / "rows.h5", again = folder / "again.h5";
  StoreRow written{"written, fsync included", "rows/s", {}}, read{"read whole", "rows/s", {}};
  StoreRow opened{"opened", "ms", {}}, grouped{"groups found", "ms", {}}, episode{"an episode read", "ms", {}};
  StoreBench bench;
  for (std::int64_t repetition = 0; repetition < settings.repetitions; ++repetition) {
    note(fmt::format("repetition {} of {}", repetition + 1, settings.repetitions));
    written.values.push_back(double(settings.rows) / seconds_of([&] { datasets::write_dataset(dataset, path); }));
    datasets::Dataset back;
    read.values.push_back(double(settings.rows) / seconds_of([&] { back = datasets::read_dataset(path); }));
    if (repetition > 0) continue;
    datasets::write_dataset(back, again);  // equal datasets give equal files
    bench.equal = base::read_file(path) == base::read_file(again);
  }

  std::optional<datasets::DatasetFile> file;
  opened.values.push_back(1e3 * seconds_of([&] { file.emplace(path); }));
  std::vector<datasets::Group> groups;
  grouped.values.push_back(1e3 * seconds_of([&] { groups = datasets::groups(*file); }));
  const std::size_t size = std::size_t(settings.support) + std::size_t(settings.query);
  std::erase_if(groups, [&](const datasets::Group& group) { return group.rows.size() < size; });
  if (groups.empty()) throw base::Failure(fmt::format("no workload has {} rows; give more --rows", size));
  base::Stream stream(settings.seed, "bench store");
  for (std::int64_t e = 0; e < settings.episodes; ++e) {
    const datasets::Group& group = groups[std::size_t(e) % groups.size()];
    std::vector<std::int64_t> positions;
    for (const std::int64_t row : stream.choose(std::int64_t(group.rows.size()), std::int64_t(size)))
      positions.push_back(group.rows[std::size_t(row)]);
    episode.values.push_back(1e3 * seconds_of([&] { (void)file->rows(positions); }));
  }
  const StoreRow bytes{"in the file", "bytes/row", {double(std::filesystem::file_size(path)) / double(settings.rows)}};
  bench.rows = {written, read, bytes, opened, grouped, episode};
  return bench;
}

base::Document to_document(const StoreBench& bench, const StoreSettings& settings) {
  base::Document context = base::Document::map();
  context.set("file", settings.file).set("rows", settings.rows).set("clock", "wall");
  context.set("support", settings.support).set("query", settings.query).set("seed", std::int64_t(settings.seed));
  base::Document list = base::Document::list();
  for (const StoreRow& row : bench.rows) {
    base::Document entry = base::Document::map();
    entry.set("name", row.what).set("value", base::median(row.values)).set("unit", row.unit);
    entry.set("baselines", base::Document::map()).set("least", base::quantile(row.values, 0));
    list.push(entry.set("p90", base::quantile(row.values, 0.9)).set("greatest", base::quantile(row.values, 1)));
  }
  return base::Document::map().set("schema", 1).set("context", context).set("equal", bench.equal).set("rows", list);
}

std::string to_text(const StoreBench& bench, const StoreSettings& settings) {
  std::string text = fmt::format("{} rows of {}; episodes of {} + {} rows; wall time\n", settings.rows, settings.file,
                                 settings.support, settings.query);
  text += fmt::format("  {:<26} {:>12} {:>12} {:>12} {:>12}\n", "", "median", "least", "p90", "greatest");
  for (const StoreRow& row : bench.rows) {
    text += fmt::format("  {:<26}", row.what);
    for (const double value : {base::median(row.values), base::quantile(row.values, 0), base::quantile(row.values, 0.9),
                               base::quantile(row.values, 1)})
      text += fmt::format(" {:>12}", value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3f}", value));
    text += fmt::format(" {}\n", row.unit);
  }
  return text + (bench.equal ? "what was read is what was written\n" : "");
}

}  // namespace graft::bench
