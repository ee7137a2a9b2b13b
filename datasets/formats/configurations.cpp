#include "datasets/formats/configurations.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/text_file.h"

namespace graft::datasets::formats {
namespace {

using Kind = JsonReader::Kind;

constexpr std::size_t most_kernels = 1000, most_open = 200, longest_kernel = 200;

const std::string* value_of(const Configuration& configuration, std::string_view parameter) {
  for (const auto& [name, value] : configuration.values) {
    if (name == parameter) return &value;
  }
  return nullptr;
}

// One kernel's parameters, then its rows.
struct Kernel {
  std::vector<std::string> parameters;
  std::optional<Columns> columns;
  Dataset::Row row;  // workload and sketch, once all values are known
};

void check(const Configuration& configuration, const Kernel& kernel) {
  for (std::size_t c = 0; c < kernel.parameters.size(); ++c) {
    const std::string* value = value_of(configuration, kernel.parameters[c]);
    if (value == nullptr) {
      throw base::UserError(fmt::format("a configuration without '{}'", kernel.parameters[c]));
    }
    if (const std::string problem = kernel.columns->problem(int(c), *value); !problem.empty()) {
      throw base::UserError(problem);
    }
  }
  if (configuration.values.size() != kernel.parameters.size()) {
    throw base::UserError(fmt::format("a configuration of {} parameters; others have {}", configuration.values.size(),
                                      kernel.parameters.size()));
  }
}

}  // namespace

ConfigurationsDocument::ConfigurationsDocument(Import& import, const std::filesystem::path& path,
                                               std::initializer_list<std::string_view> keys)
    : import_(import), path_(path.string()), text_(read_document(import, path)), keys_(keys.begin(), keys.end()) {
  mend();
}

void ConfigurationsDocument::mend() {
  std::vector<char> open;           // what closes the lists and maps that are open
  std::string_view key;             // the last string of the outermost map
  std::size_t whole = 0;            // after the last entry
  std::vector<char> open_at_whole;  // there
  const std::string_view text = text_;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      const std::size_t begin = ++at;
      while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
      if (at >= text.size()) break;
      if (open.size() == 1) key = text.substr(begin, at - begin);
    } else if (c == '[' || c == '{') {
      if (open.size() == most_open) return;  // the reader reports it
      open.push_back(c == '[' ? ']' : '}');
    } else if (c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return;
      open.pop_back();
      if (open.empty()) return;  // whole
      if (open.size() == 2 && std::find(keys_.begin(), keys_.end(), key) != keys_.end()) {
        whole = at + 1;
        open_at_whole = open;
      }
    }
  }
  if (whole == 0) return;
  const bool is_among_entries = open.size() > 1 && std::find(keys_.begin(), keys_.end(), key) != keys_.end();
  std::string_view rest = base::trim(text.substr(whole));
  if (rest.starts_with(',')) rest = base::trim(rest.substr(1));
  if (is_among_entries && !rest.empty()) {
    const std::int64_t line = 1 + std::count(text.begin(), text.begin() + (rest.data() - text.data()), '\n');
    import_.skip(base::UserError(fmt::format("{}:{}", path_, line), "the file ends in the middle of this entry"), path_,
                 true);
  } else {
    import_.monitor().note(
        fmt::format("{}: the document is not closed, as while its run goes on or was stopped", path_));
  }
  text_.resize(whole);
  text_.append(open_at_whole.rbegin(), open_at_whole.rend());
}

void ConfigurationsDocument::for_each_entry(const Visit& visit) const {
  JsonReader reader = this->reader();
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) {
      reader.skip();
      continue;
    }
    if (reader.at(Kind::map)) {
      reader.begin_map();
      for (bool is_twice = false; reader.next_key(key, is_twice);) {
        const std::string twice(is_twice ? key : "");
        JsonReader entry = reader.apart();
        visit(entry, twice);
      }
    } else {
      for (reader.begin_list(); reader.next_item();) {
        JsonReader entry = reader.apart();
        visit(entry, "");
      }
    }
  }
  reader.end();
}

namespace {

// The rows of one document: columns are made of all entries, then rows of those that are good.
class Entries {
 public:
  Entries(Import& import, const std::string& path, std::string own_name,
          const std::function<Configuration(JsonReader&)>& read)
      : import_(import), path_(path), own_name_(std::move(own_name)), read_(read) {}

  // Values that are seen before the entries, so that every device has the same sketch.
  void begin(const ConfigurationsHead& head) {
    if (head.parameters.empty()) return;
    Columns& columns = *add_kernel(own_name_, head.parameters)->second.columns;
    for (const auto& [parameter, value] : head.values) {
      const int column = columns.named(parameter);
      if (column < 0) continue;
      if (const std::string problem = columns.problem(column, value); !problem.empty())
        throw base::UserError(path_, problem);
      columns.see(column, value);
    }
  }

  void see(JsonReader& entry, std::string_view twice) {
    good_.push_back(is_good(entry, [&] {
      const Configuration each = configuration(entry, twice);
      auto known = kernels_.find(each.kernel);
      if (known == kernels_.end()) {
        std::vector<std::string> parameters;
        for (const auto& [parameter, value] : each.values) parameters.push_back(parameter);
        known = add_kernel(each.kernel, std::move(parameters));
      }
      Kernel& kernel = known->second;
      check(each, kernel);
      for (std::size_t c = 0; c < kernel.parameters.size(); ++c)
        kernel.columns->see(int(c), *value_of(each, kernel.parameters[c]));
    }));
  }

  // Once all are seen.
  void add_sketches(const ConfigurationsHead& head) {
    ImportedDataset& dataset = import_.dataset();
    for (auto& [name, kernel] : kernels_) {
      std::vector<int> all;
      for (int c = 0; c < int(kernel.parameters.size()); ++c) all.push_back(c);
      kernel.row.workload = dataset.position_of(table_workload(name, head.sizes));
      kernel.row.sketch = dataset.position_of(kernel.columns->sketch(name, all));
    }
  }

  void add_row(JsonReader& entry, std::string_view twice) {
    if (!good_[next_++]) return;
    is_good(entry, [&] {
      const Configuration each = configuration(entry, twice);
      const Kernel& kernel = kernels_.at(each.kernel);
      Dataset::Row row = kernel.row;
      for (std::size_t c = 0; c < kernel.parameters.size(); ++c)
        row.arguments.push_back(kernel.columns->argument(int(c), *value_of(each, kernel.parameters[c])));
      row.measurement.clock = "imported";
      row.measurement.status = each.status;
      row.measurement.reason = each.reason;
      row.measurement.seconds = each.seconds;
      import_.dataset().add(row, each.kernel, "a kernel of parameters");
    });
  }

 private:
  std::map<std::string, Kernel>::iterator add_kernel(const std::string& name, std::vector<std::string> parameters) {
    if (kernels_.size() == most_kernels) throw TooMuch(path_, fmt::format("more than {} kernels", most_kernels));
    Kernel kernel;
    kernel.columns.emplace(parameters, path_);
    kernel.parameters = std::move(parameters);
    return kernels_.emplace(name, std::move(kernel)).first;
  }

  Configuration configuration(JsonReader& entry, std::string_view twice) const {
    if (!twice.empty()) entry.fail(fmt::format("key '{}' is there twice", twice));
    Configuration result = read_(entry);
    entry.end();
    if (result.kernel.empty()) result.kernel = own_name_;
    if (result.values.empty()) entry.fail("a configuration without parameters");
    if (result.kernel.size() > longest_kernel)
      entry.fail(fmt::format("the name of a kernel has more than {} characters", longest_kernel));
    return result;
  }

  // False if the entry is skipped.
  template <class Work>
  bool is_good(JsonReader& entry, const Work& work) {
    try {
      formats::located(entry, path_, work);
    } catch (const TooMuch&) {
      throw;
    } catch (const base::UserError& error) {
      import_.skip(error, path_);
      return false;
    }
    return true;
  }

  Import& import_;
  const std::string& path_;
  const std::string own_name_;  // of a kernel that no entry names
  const std::function<Configuration(JsonReader&)>& read_;
  std::map<std::string, Kernel> kernels_;
  std::vector<bool> good_;  // by entry
  std::size_t next_ = 0;    // of `good_`
};

}  // namespace

void ConfigurationsDocument::import(const ConfigurationsHead& head,
                                    const std::function<Configuration(JsonReader&)>& read) {
  const std::string said(import_.option("name"));
  Entries entries(import_, path_,
                  !head.kernel.empty() ? head.kernel
                  : !said.empty()      ? said
                                       : std::filesystem::path(path_).stem().stem().string(),
                  read);
  entries.begin(head);
  for_each_entry([&](JsonReader& entry, std::string_view twice) { entries.see(entry, twice); });
  if (!head.device.empty()) import_.dataset().head().provenance.set("device", head.device);
  formats::located(reader(), path_, [&] { entries.add_sketches(head); });
  for_each_entry([&](JsonReader& entry, std::string_view twice) { entries.add_row(entry, twice); });
}

std::string read_document(Import& import, const std::filesystem::path& path) {
  constexpr std::size_t piece = std::size_t(1) << 20;
  TextFile file(path);
  std::string text;
  try {
    for (std::size_t used = 0, got = 1; got > 0; used += got) {
      if (used > std::size_t(largest_document)) {
        throw TooMuch(path.string(), fmt::format("is larger than {} bytes", largest_document));
      }
      text.resize(used + piece);
      got = file.read({text.data() + used, piece});
      text.resize(used + got);
    }
  } catch (const TooMuch&) {
    throw;
  } catch (const base::UserError& error) {
    text.resize(text.size() - piece);  // the one that could not be read
    if (import.settings().strict || text.empty()) throw;
    import.monitor().note(fmt::format("{}; what comes before that is read", error.what()));
  }
  return text;
}

std::string scalar_text(JsonReader& reader) {
  switch (reader.kind()) {
    case Kind::string:
      return std::string(reader.string());
    case Kind::list:
    case Kind::map:
      reader.fail("expected a number, a word, true or false");
    default:
      return std::string(reader.raw());
  }
}

std::optional<double> number_in(std::string_view text) {
  text = base::trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double number_or_text(JsonReader& reader) {
  if (!reader.at(Kind::string)) return reader.any_number();
  const std::string_view text = reader.string();
  const std::optional<double> value = number_in(text);
  if (!value) reader.fail(fmt::format("expected a number, got '{}'", text.substr(0, 24)));
  return *value;
}

double time_value(JsonReader& reader) {
  const double value = number_or_text(reader);
  if (std::isfinite(value) && value <= 0) reader.fail(fmt::format("a time of {}", value));
  return value;
}

}  // namespace graft::datasets::formats
