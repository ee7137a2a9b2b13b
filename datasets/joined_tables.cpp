#include "datasets/joined_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace graft::datasets {
namespace {

constexpr std::size_t most_numbers = 4096;  // of one column that are kept
constexpr std::size_t few_words = 16;       // up to this many are values, not names of rows

// A column in all tables.
struct Column {
  std::set<std::pair<double, std::string>> numbers;
  std::set<std::string> words;
  bool too_many = false;  // numbers to keep
  bool names_rows = true;
  double sum = 0, count = 0;
  struct Kinds {
    bool numbers = false;
    std::set<std::string> words;
  };
  std::map<std::string, Kinds> platforms;
};

// A workload's rows on one platform.
struct Rows {
  std::vector<codegen::Candidate> rows;
  std::vector<std::string> columns;  // of all of them, sorted
};

// A workload: by platform.
struct Kernel {
  std::vector<std::string> workloads;
  std::map<std::string, Rows> platforms;
};

std::vector<std::string> columns_of(const codegen::Sketch& sketch) {
  std::vector<std::string> names;
  for (const codegen::Sketch::Argument& argument : sketch.arguments) names.push_back(argument.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> common(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

std::vector<std::string> columns_of(const Kernel& kernel) {
  std::vector<std::string> names = kernel.platforms.begin()->second.columns;
  for (const auto& [platform, rows] : kernel.platforms) names = common(names, rows.columns);
  return names;
}

// "table(name=NAME,REST": what of a table's workload is not its name; the text itself for other workloads.
std::string without_name(const std::string& workload) {
  constexpr std::string_view begin = "table(name=";
  if (!workload.starts_with(begin)) return workload;
  return workload.substr(std::min(workload.find_first_of(",)", begin.size()), workload.size()));
}

using Hashes = std::unordered_set<std::uint64_t>;
Hashes hashes_of(const Rows& rows, const std::vector<std::string>& columns) {
  Hashes out;
  for (const codegen::Candidate& row : rows.rows) out.insert(codegen::hash_by_name(row, columns));
  return out;
}

// Whether the kernels, of different platforms, have the same rows: at least half of those of the smaller one.
bool are_alike(const Kernel& a, const Kernel& b) {
  if (without_name(a.workloads.front()) != without_name(b.workloads.front())) return false;
  for (const auto& [platform, rows] : a.platforms) {
    if (b.platforms.contains(platform)) return false;
  }
  const Rows &left = a.platforms.begin()->second, &right = b.platforms.begin()->second;
  const std::vector<std::string> columns = common(left.columns, right.columns);
  if (columns.empty()) return false;
  const Hashes in_left = hashes_of(left, columns), in_right = hashes_of(right, columns);
  // Columns that say which row is which.
  if (10 * in_left.size() < 9 * left.rows.size() || 10 * in_right.size() < 9 * right.rows.size()) return false;
  const auto both = std::size_t(
      std::count_if(in_left.begin(), in_left.end(), [&](std::uint64_t hash) { return in_right.contains(hash); }));
  return both >= 2 && 2 * both >= std::min(in_left.size(), in_right.size());
}

class Joining {
 public:
  explicit Joining(std::span<const Dataset> datasets) {
    for (const Dataset& dataset : datasets) add(dataset);
  }

  JoinedTables result() && {
    if (kernels_.empty()) return {};
    refuse_strangers();
    join_kernels();
    for (const std::string& name : order_) out_.schema.columns.push_back(joined(name, columns_.at(name)));
    for (const Kernel& kernel : kernels_) out_.schema.kernels.push_back({kernel.workloads, columns_of(kernel)});
    return std::move(out_);
  }

 private:
  void add(const Dataset& dataset) {
    std::map<std::pair<std::size_t, int>, std::unordered_set<std::string>> values;  // by kernel and column's place
    std::map<std::size_t, std::map<std::string, std::set<std::string>>> words;      // by kernel
    std::map<std::size_t, std::int64_t> rows;                                       // by kernel
    std::vector<std::vector<std::string>> sketch_columns;
    for (const auto& sketch : dataset.sketches) sketch_columns.push_back(columns_of(*sketch));
    // One look at every value, however many rows have it.
    struct Seen {
      std::map<std::int64_t, std::int64_t> counts;  // argument -> rows
    };
    std::map<std::pair<int, std::size_t>, Seen> seen;  // by sketch and column
    for (const Dataset::Row& row : dataset.rows) {
      const codegen::Candidate candidate = dataset.candidate(row);
      if (!codegen::is_row_of_table(candidate)) continue;
      for (std::size_t c = 0; c < row.arguments.size(); ++c) ++seen[{row.sketch, c}].counts[row.arguments[c]];
      const std::size_t k = kernel_of(candidate.workload.text());
      Rows& own = kernels_[k].platforms[dataset.platform];
      const std::vector<std::string>& columns = sketch_columns[std::size_t(row.sketch)];
      own.columns = own.rows.empty() ? columns : own.columns == columns ? own.columns : common(own.columns, columns);
      own.rows.push_back(candidate);
      ++rows[k];
      for (std::size_t c = 0; c < row.arguments.size(); ++c) {
        const std::vector<std::string>& alternatives = candidate.sketch->columns[c].alternatives;
        if (alternatives.size() > few_words && row.arguments[c] >= 0 &&
            row.arguments[c] < std::int64_t(alternatives.size()))
          words[k][candidate.sketch->arguments[c].name].insert(alternatives[std::size_t(row.arguments[c])]);
      }
    }
    for (const auto& [place, values_seen] : seen) {
      const codegen::Sketch& sketch = *dataset.sketches[std::size_t(place.first)];
      const std::string& name = sketch.arguments[place.second].name;
      if (!columns_.contains(name)) order_.push_back(name);
      Column& column = columns_[name];
      Column::Kinds& kinds = column.platforms[dataset.platform];
      for (const auto& [argument, count] : values_seen.counts) {
        const std::string value = codegen::column_value(sketch, place.second, argument);
        const std::optional<double> number = codegen::number_in(value);
        if (!number) {
          column.words.insert(value);
          kinds.words.insert(value);
          continue;
        }
        kinds.numbers = true;
        column.sum += *number * double(count);
        column.count += double(count);
        if (!column.too_many) column.numbers.emplace(*number, value);
        if (column.numbers.size() > most_numbers) column.too_many = true, column.numbers.clear();
      }
    }
    for (auto& [name, column] : columns_) {
      for (const auto& [k, count] : rows) {
        const std::vector<std::string>& own = kernels_[k].platforms.at(dataset.platform).columns;
        if (!std::binary_search(own.begin(), own.end(), name)) continue;
        const auto distinct = words[k].find(name);
        if (distinct == words[k].end() || 2 * std::int64_t(distinct->second.size()) <= count) column.names_rows = false;
      }
    }
  }

  std::size_t kernel_of(const std::string& workload) {
    const auto [known, is_new] = positions_.emplace(workload, kernels_.size());
    if (is_new) kernels_.push_back({{workload}, {}});
    return known->second;
  }

  std::string names(const std::vector<std::string>& all) const {
    constexpr std::size_t most = 12;
    if (all.size() <= most) return base::join(all, ", ");
    return fmt::format("{} and {} more", base::join({all.begin(), all.begin() + most}, ", "), all.size() - most);
  }

  std::set<std::string> platforms() const {
    std::set<std::string> all;
    for (const auto& [name, column] : columns_) {
      for (const auto& [platform, kinds] : column.platforms) all.insert(platform);
    }
    return all;
  }

  void refuse_strangers() const {
    const std::set<std::string> all = platforms();
    if (all.size() < 2) return;
    for (const std::string& platform : all) {
      std::vector<std::string> own, others;
      bool shares = false;
      for (const auto& [name, column] : columns_) {
        const bool is_own = column.platforms.contains(platform);
        shares |= is_own && column.platforms.size() > 1;
        (is_own ? own : others).push_back(name);
      }
      if (!shares)
        throw base::UserError(platform, fmt::format("no column in common with the tables of other platforms ({}; there "
                                                    "{}); columns are joined by name: rename them and import again",
                                                    names(own), names(others)));
    }
  }

  void join_kernels() {
    const auto is_alone = [](const Kernel& kernel) { return kernel.platforms.size() == 1; };
    const auto same_platform = [](const Kernel& a, const Kernel& b) {
      return b.platforms.contains(a.platforms.begin()->first);
    };
    std::set<std::string> in_doubt;
    for (std::size_t i = 0; i < kernels_.size();) {
      std::vector<std::size_t> candidates;
      for (std::size_t j = 0; is_alone(kernels_[i]) && j < kernels_.size(); ++j) {
        if (j != i && are_alike(kernels_[i], kernels_[j])) candidates.push_back(j);
      }
      // Two workloads of one platform that could be the same one of another are in doubt.
      const bool is_ambiguous = std::any_of(candidates.begin(), candidates.end(), [&](std::size_t j) {
        for (std::size_t other = 0; other < kernels_.size(); ++other) {
          const bool rivals =
              other != i && other != j && is_alone(kernels_[other]) &&
              (same_platform(kernels_[other], kernels_[i]) || same_platform(kernels_[other], kernels_[j]));
          if (rivals &&
              are_alike(kernels_[other], same_platform(kernels_[other], kernels_[i]) ? kernels_[j] : kernels_[i]))
            return true;
        }
        return false;
      });
      if (is_ambiguous && in_doubt.insert(kernels_[i].workloads.front()).second) {
        out_.notes.push_back(fmt::format(
            "{} of {} has the rows of several workloads of other platforms, and is joined with none; name the "
            "workloads alike when importing (option workload=NAME)",
            kernels_[i].workloads.front(), kernels_[i].platforms.begin()->first));
      }
      if (candidates.empty() || is_ambiguous) {
        ++i;
        continue;
      }
      const std::size_t first = std::min(i, candidates.front()), second = std::max(i, candidates.front());
      Kernel &to = kernels_[first], &from = kernels_[second];
      out_.notes.push_back(fmt::format("{} of {} and {} of {} have the same rows and are taken for one workload",
                                       to.workloads.front(), to.platforms.begin()->first, from.workloads.front(),
                                       from.platforms.begin()->first));
      to.workloads.insert(to.workloads.end(), from.workloads.begin(), from.workloads.end());
      to.platforms.merge(from.platforms);
      kernels_.erase(kernels_.begin() + std::ptrdiff_t(second));
      i = 0;  // others may be alike now
    }
  }

  codegen::TableSchema::Column joined(const std::string& name, const Column& column) {
    note(name, column);
    codegen::TableSchema::Column result;
    result.name = name;
    for (const auto& [number, text] : column.numbers) result.numbers.push_back(text);
    result.words.assign(column.words.begin(), column.words.end());
    result.has_numbers = column.count > 0;
    if (column.count > 0) result.middle = column.sum / column.count;
    result.names_rows = column.names_rows && !result.has_numbers && result.words.size() > few_words;
    return result;
  }

  void note(const std::string& name, const Column& column) {
    std::vector<std::string> with, without, of_numbers, of_words;
    for (const std::string& platform : platforms())
      (column.platforms.contains(platform) ? with : without).push_back(platform);
    for (const auto& [platform, kinds] : column.platforms) {
      if (kinds.numbers && kinds.words.empty()) of_numbers.push_back(platform);
      if (!kinds.numbers) of_words.push_back(platform);
    }
    if (!without.empty()) out_.notes.push_back(fmt::format("column '{}' is in tables of {} only", name, names(with)));
    if (!of_numbers.empty() && !of_words.empty()) {
      out_.notes.push_back(fmt::format("column '{}' holds numbers on {} and words on {}: they have no value in common",
                                       name, names(of_numbers), names(of_words)));
    }
    for (const std::string& platform : of_words) {
      const std::set<std::string>& own = column.platforms.at(platform).words;
      const bool is_apart =
          of_words.size() > 1 && std::all_of(column.platforms.begin(), column.platforms.end(), [&](const auto& other) {
            return other.first == platform || std::none_of(own.begin(), own.end(), [&](const std::string& word) {
                     return other.second.words.contains(word);
                   });
          });
      if (is_apart)
        out_.notes.push_back(
            fmt::format("column '{}': no value of {} occurs on another platform ({})", name, platform, *own.begin()));
    }
  }

  std::map<std::string, Column> columns_;
  std::vector<std::string> order_;  // of the columns
  std::vector<Kernel> kernels_;
  std::map<std::string, std::size_t> positions_;
  JoinedTables out_;
};

}  // namespace

JoinedTables joined_tables(std::span<const Dataset> datasets) {
  return Joining(datasets).result();
}

}  // namespace graft::datasets
