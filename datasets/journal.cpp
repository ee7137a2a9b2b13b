#include "datasets/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/document.h"
#include "base/error.h"
#include "base/hash.h"
#include "codegen/space/sketch.h"

namespace graft::datasets {
namespace {

using base::Document;
using base::UserError;

constexpr int format_version = 1;
constexpr std::string_view version_key = "journal";

// The first line: the version, then the head's own keys. Going through text makes equal what reads back equal (NaN is
// null, a place is none).
Document head_of(const Document& given) {
  Document head = Document::map();
  for (const auto& [key, value] : given.as_map()) {
    if (key != version_key) head.set(key, value);
  }
  return base::parse_json(head.to_json(), "head");
}

std::string head_line(const Document& head) {
  Document line = Document::map();
  line.set(std::string(version_key), format_version);
  for (const auto& [key, value] : head.as_map()) line.set(key, value);
  return line.to_json() + "\n";
}

Document read_head(std::string_view line, const std::string& place) {
  Document document;
  try {
    document = base::parse_json(line, place);
  } catch (const UserError&) {
    // It is not a head; the position of the JSON error would not help.
  }
  const Document* version = document.is_map() ? document.find(version_key) : nullptr;
  if (version == nullptr) {
    throw UserError(place, "not the first line of a journal; name another file, or restore this one");
  }
  if (version->as_integer() != format_version) {
    throw UserError(place,
                    fmt::format("journal version {}, but this graft reads version {}; use the graft that wrote it",
                                version->as_integer(), format_version));
  }
  return head_of(document);
}

// Lines after the head, which must come in the order of the file.
class Reader {
 public:
  explicit Reader(JournalContent& content) : content_(content) {}

  void line(std::string_view text, const std::string& place) {
    const Document document = base::parse_json(text, place);
    if (!document.is_map()) throw UserError(place, "expected a map");
    if (document.find("trial") != nullptr) {
      content_.trials.push_back(trial(document));
    } else if (document.find("text") != nullptr) {
      sketch(document);
    } else {
      throw UserError(place, "neither a trial nor a sketch");
    }
  }

 private:
  void sketch(const Document& document) {
    document.only_keys({"sketch", "text"});
    const Document& number = document.at("sketch");
    if (number.as_integer() != std::int64_t(content_.sketches.size())) {
      throw UserError(number.place(), fmt::format("sketch {} out of order; expected {}", number.as_integer(),
                                                  content_.sketches.size()));
    }
    const Document& text = document.at("text");
    content_.sketches.push_back(
        std::make_shared<const codegen::Sketch>(codegen::parse_sketch(text.as_string(), text.place())));
  }

  Trial trial(const Document& document) {
    Trial trial;
    Document measurement = Document::map();
    measurement.set_place(document.place());
    for (const auto& [key, value] : document.as_map()) {
      if (key == "trial") {
        trial.index = value.as_integer();
      } else if (key == "workload") {
        // Trials of one workload share what is read from its text.
        if (workload_.text() != value.as_string()) workload_ = codegen::Workload(value.as_string());
        trial.candidate.workload = workload_;
      } else if (key == "sketch") {
        const std::int64_t number = value.as_integer();
        if (number < 0 || number >= std::int64_t(content_.sketches.size())) {
          throw UserError(value.place(), fmt::format("sketch {} is not written above", number));
        }
        trial.candidate.sketch = content_.sketches[std::size_t(number)];
      } else if (key == "arguments") {
        for (const Document& each : value.as_list()) trial.candidate.arguments.push_back(each.as_integer());
      } else if (key == "program") {
        trial.program_hash = base::from_hex(value.as_string());
      } else {
        measurement.set(key, value);
      }
    }
    for (const std::string_view key : {"workload", "sketch", "arguments", "program"}) document.at(key);
    if (trial.candidate.workload.text().empty()) throw UserError(document.place(), "an empty workload");
    const std::int64_t last_index = content_.trials.empty() ? -1 : content_.trials.back().index;
    if (trial.index <= last_index) {
      throw UserError(document.place(), fmt::format("trial {} comes after trial {}", trial.index, last_index));
    }
    trial.measurement = measurement_from(measurement);
    return trial;
  }

  JournalContent& content_;
  codegen::Workload workload_;  // of the last trial
};

// Whether this is what a kill during the very first write leaves (or nothing at all).
bool is_torn_head(std::string_view text) {
  constexpr std::string_view beginning = "{\"journal\":";
  const std::size_t common = std::min(text.size(), beginning.size());
  return text.find('\n') == std::string_view::npos && text.substr(0, common) == beginning.substr(0, common);
}

JournalContent parse_journal(std::string_view text, const std::string& path) {
  JournalContent content;
  Reader reader(content);
  std::int64_t number = 1;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string_view::npos;
       begin = end + 1, ++number) {
    const std::string_view line = text.substr(begin, end - begin);
    const std::string place = fmt::format("{}:{}", path, number);
    if (number == 1) {
      content.head = read_head(line, place);
    } else {
      try {
        reader.line(line, place);
      } catch (const UserError& error) {
        // Some errors know the value, but not its place.
        const std::string where = std::string_view(error.what()).starts_with(place) ? "" : place + ": ";
        throw UserError(
            fmt::format("{}{}; the file was changed after it was written: restore it, or keep only the {} "
                        "lines before this one",
                        where, error.what(), number - 1));
      }
    }
    content.intact_bytes = std::int64_t(end) + 1;
  }
  if (number == 1) throw UserError(path + ":1", "no journal: its first line is not complete; remove the file");
  return content;
}

// Where two heads differ, and how, for the message.
std::string difference(const Document& there, const Document& now, const std::string& key) {
  if (there.is_map() && now.is_map()) {
    const auto inner = [&](const std::string& name) { return key.empty() ? name : key + "." + name; };
    const auto shown_missing = [&](const std::string& name, bool in_file) {
      return fmt::format("'{}' is given only {}", inner(name), in_file ? "there" : "now");
    };
    for (const auto& [name, value] : there.as_map()) {
      const Document* other = now.find(name);
      if (other == nullptr) return shown_missing(name, true);
      if (value == *other) continue;
      if (const std::string differs = difference(value, *other, inner(name)); !differs.empty()) return differs;
    }
    for (const auto& [name, value] : now.as_map()) {
      if (there.find(name) == nullptr) return shown_missing(name, false);
    }
    return "";  // at most the order of keys differs
  }
  const auto shown = [](const Document& value) {
    const std::string text = value.to_json();
    return text.size() <= 80 ? text : text.substr(0, 77) + "...";
  };
  return fmt::format("'{}' is {} there and {} now", key, shown(there), shown(now));
}

// The line of a trial that is not in the file by itself: its sketch.
std::string sketch_line(int number, const codegen::Sketch& sketch) {
  Document line = Document::map();
  line.set("sketch", number).set("text", codegen::to_text(sketch));
  return line.to_json() + "\n";
}

std::string trial_line(const Trial& trial, int sketch) {
  const std::vector<std::int64_t>& arguments = trial.candidate.arguments;
  Document line = Document::map();
  line.set("trial", trial.index)
      .set("workload", trial.candidate.workload.text())
      .set("sketch", sketch)
      .set("arguments", Document::List(arguments.begin(), arguments.end()))
      .set("program", base::to_hex(trial.program_hash));
  const Document measurement = to_document(trial.measurement);
  for (const auto& [key, value] : measurement.as_map()) line.set(key, value);
  return line.to_json() + "\n";
}

}  // namespace

JournalContent read_journal(const std::filesystem::path& path) {
  return parse_journal(base::read_file(path), path.string());
}

Journal::Journal(const std::filesystem::path& path, const base::Document& head) : file_(path) {
  const std::string text = base::read_file(path);
  if (text.size() != std::filesystem::file_size(path)) {
    throw UserError(path.string(), "is compressed; unpack it to continue the run");
  }
  const Document wanted = head_of(head);
  if (is_torn_head(text)) {
    if (!text.empty()) file_.truncate(0);
    file_.append(head_line(wanted));
    return;
  }
  JournalContent content = parse_journal(text, path.string());
  if (const std::string differs = difference(content.head, wanted, ""); !differs.empty()) {
    throw UserError(path.string() + ":1",
                    fmt::format("written by a run with other settings: {}; repeat its command, or "
                                "choose another place",
                                differs));
  }
  if (content.intact_bytes != std::int64_t(text.size())) file_.truncate(content.intact_bytes);
  trials_ = std::move(content.trials);
  for (const auto& sketch : content.sketches) sketches_.emplace(codegen::hash(*sketch), sketch_count_++);
}

void Journal::append(const Trial& trial) {
  const auto refuse = [&](std::string_view why) {
    // Written down, it would make the whole journal unreadable.
    throw base::Failure(fmt::format("trial {} cannot be recorded: {}", trial.index, why));
  };
  if (const std::string problem = contradiction(trial.measurement); !problem.empty()) refuse(problem);
  const std::int64_t last = trials_.empty() ? -1 : trials_.back().index;
  if (trial.index <= last) refuse(fmt::format("trial {} is the last one", last));

  const std::uint64_t hash = codegen::hash(*trial.candidate.sketch);
  const auto known = sketches_.find(hash);
  const int number = known != sketches_.end() ? known->second : sketch_count_;
  std::string record;
  if (known == sketches_.end()) record = sketch_line(number, *trial.candidate.sketch);
  record += trial_line(trial, number);
  file_.append(record);
  // Only what is on the disk counts as known: a failed append leaves no trace.
  if (known == sketches_.end()) {
    sketches_.emplace(hash, number);
    ++sketch_count_;
  }
  trials_.push_back(trial);
}

}  // namespace graft::datasets
