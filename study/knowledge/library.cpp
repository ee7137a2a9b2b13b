#include "study/knowledge/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "codegen/machine/dot_products.h"
#include "codegen/schedule/candidate_program.h"
#include "study/inputs/request.h"

namespace graft::study {
namespace {

constexpr std::int64_t most_bytes = 64 << 20;  // of a file
constexpr int most_waits = 200;                // for another process that records, of 50 ms each

// A text without its numbers, and these: "m=64,dtype=f32" is "m=#,dtype=f32" and 64.
struct Form {
  std::string text;
  std::vector<double> numbers;
};

Form form_of(std::string_view text) {
  const auto is = [](int (*test)(int), char c) { return test(static_cast<unsigned char>(c)) != 0; };
  Form form;
  for (std::size_t i = 0; i < text.size();) {
    const bool in_name = i > 0 && (is(std::isalnum, text[i - 1]) || text[i - 1] == '_');
    if (!is(std::isdigit, text[i]) || in_name) {
      form.text += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is(std::isdigit, text[end])) ++end;
    double number = 0;
    std::from_chars(text.data() + i, text.data() + end, number);
    form.numbers.push_back(number);
    form.text += '#';
    i = end;
  }
  return form;
}

// A process that records at the same moment is done soon.
base::FileLock lock_of(const std::filesystem::path& folder) {
  for (int wait = 0;; ++wait) {
    try {
      return base::FileLock(folder / "lock");
    } catch (const base::UserError&) {
      if (wait == most_waits) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// What `read` makes of the key's text; its refusal with the place of the text.
template <class Read>
auto value_at(const base::Document& document, std::string_view key, const Read& read) {
  const base::Document& value = document.at(key);
  const std::string& text = value.as_string();
  try {
    return read(text);
  } catch (const base::UserError& error) {
    throw base::UserError(value.place(), error.what());
  }
}

// Those whose workloads are other shapes of one operator, nearest first.
template <class Known, class WorkloadOf>
std::vector<Known> nearest(std::vector<Known> known, const WorkloadOf& workload_of, const codegen::Workload& workload,
                           std::size_t most) {
  std::vector<std::pair<double, Known>> found;
  for (Known& each : known) {
    if (workload_of(each).key() == workload.key()) continue;
    if (const auto distance = shape_distance(workload.text(), workload_of(each).text()))
      found.emplace_back(*distance, std::move(each));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (found.size() > most) found.erase(found.begin() + std::ptrdiff_t(most), found.end());
  std::vector<Known> out;
  for (auto& [distance, each] : found) out.push_back(std::move(each));
  return out;
}

KnownAnswer read_answer(const std::filesystem::path& file) {
  return known_answer_from(base::parse_json(base::read_file(file, most_bytes), file.string()));
}

}  // namespace

KnownAnswer known_answer(const Answer& answer, std::string platform_hash, std::int64_t trials,
                         std::string_view command_line) {
  const base::Document context = context_of(command_line);
  return {.platform = answer.platform,
          .platform_hash = std::move(platform_hash),
          .source = answer.source,
          .candidate = answer.candidate,
          .program_hash = answer.program_hash,
          .pipeline = answer.pipeline,
          .measurement = answer.measurement,
          .trials = trials,
          .date = context.at("date").as_string(),
          .graft = context.at("graft").as_string(),
          .host = context.at("host").at("cpu").as_string()};
}

base::Document to_document(const KnownAnswer& answer) {
  base::Document out = base::Document::map()
                           .set("answer", 1)
                           .set("platform", answer.platform)
                           .set("platform_hash", answer.platform_hash)
                           .set("source", answer.source);
  const base::Document candidate = to_document(answer.candidate);
  for (const auto& [key, value] : candidate.as_map()) out.set(key, value);
  if (answer.cold) out.set("cold", *answer.cold);
  return std::move(out)
      .set("program", base::to_hex(answer.program_hash))
      .set("pipeline", answer.pipeline)
      .set("measurement", datasets::to_document(answer.measurement))
      .set("trials", answer.trials)
      .set("date", answer.date)
      .set("graft", answer.graft)
      .set("host", answer.host);
}

KnownAnswer known_answer_from(const base::Document& document) {
  document.only_keys({"answer", "workload", "platform", "platform_hash", "source", "sketch", "arguments", "program",
                      "pipeline", "measurement", "trials", "date", "graft", "host", "cold"});
  if (document.at("answer").as_integer() != 1)
    throw base::UserError(document.at("answer").place(), "expected 1; written by a newer graft");
  KnownAnswer answer;
  answer.platform = document.at("platform").as_string();
  answer.platform_hash = document.at("platform_hash").as_string();
  answer.source = document.at("source").as_string();
  answer.candidate = codegen::measured_candidate_from(document);
  if (!codegen::are_dot_products(answer.candidate.sketch->intrinsics))
    throw base::UserError(document.at("sketch").place(), "expected a schedule without micro-kernels of its own");
  answer.program_hash = value_at(document, "program", base::from_hex);
  answer.pipeline = document.at("pipeline").as_string();
  answer.measurement = datasets::measurement_from(document.at("measurement"));
  if (answer.measurement.status != datasets::Status::ok)
    throw base::UserError(document.at("measurement").place(), "expected a measurement that is ok");
  answer.trials = document.at("trials").as_integer();
  answer.date = document.at("date").as_string();
  answer.graft = document.at("graft").as_string();
  answer.host = document.at("host").as_string();
  if (const base::Document* const cold = document.find("cold")) answer.cold = cold->as_bool();
  return answer;
}

bool holds(const KnownAnswer& answer, const codegen::Target& target) {
  const auto program = codegen::program(answer.candidate, target);
  if (!program || codegen::hash(*program) != answer.program_hash) return false;
  return std::all_of(program->buffers.begin(), program->buffers.end(), [](const codegen::Buffer& buffer) {
    return buffer.role == codegen::Role::temporary || buffer.layout.is_plain();
  });
}

std::optional<double> shape_distance(std::string_view a, std::string_view b) {
  const Form left = form_of(a), right = form_of(b);
  if (left.text != right.text || left.numbers.size() != right.numbers.size()) return std::nullopt;
  double distance = 0;
  for (std::size_t i = 0; i < left.numbers.size(); ++i)
    distance += std::abs(std::log2((1 + left.numbers[i]) / (1 + right.numbers[i])));
  return distance;
}

std::filesystem::path Library::file_of(const codegen::Workload& workload, std::string_view platform_hash,
                                       bool cold) const {
  const std::uint64_t key = base::hash_combine(codegen::hash(workload), base::hash_bytes(platform_hash));
  return folder_ / (base::to_hex(key) + (cold ? "-cold.json" : ".json"));
}

std::vector<KnownAnswer> Library::all() const {
  std::vector<KnownAnswer> answers;
  if (!std::filesystem::exists(folder_)) return answers;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path().extension() == ".json") answers.push_back(read_answer(entry.path()));
  }
  std::sort(answers.begin(), answers.end(), [](const KnownAnswer& a, const KnownAnswer& b) {
    return std::tie(a.platform, a.platform_hash, a.candidate.workload.text()) <
           std::tie(b.platform, b.platform_hash, b.candidate.workload.text());
  });
  return answers;
}

std::optional<KnownAnswer> Library::find(const codegen::Workload& workload, std::string_view platform_hash,
                                         bool cold) const {
  const std::filesystem::path file = file_of(workload, platform_hash, cold);
  if (std::filesystem::exists(file)) {
    KnownAnswer answer = read_answer(file);
    if (!(answer.candidate.workload == workload) || answer.platform_hash != platform_hash)
      throw base::UserError(file.string(),
                            fmt::format("holds an answer for {} on {}, which does not belong into a file of "
                                        "this name; remove it, or merge it with graft library merge",
                                        answer.candidate.workload.text(), answer.platform));
    return answer;
  }
  std::optional<KnownAnswer> unsaid;
  for (KnownAnswer& answer : all()) {
    if (answer.platform_hash != platform_hash || answer.candidate.workload.key() != workload.key()) continue;
    if (answer.cold == cold) return answer;
    if (!answer.cold) unsaid = std::move(answer);
  }
  return unsaid;
}

std::vector<codegen::Candidate> near_shapes(std::span<const codegen::Candidate> candidates,
                                            const codegen::Workload& workload, std::size_t most) {
  return nearest(
      std::vector<codegen::Candidate>(candidates.begin(), candidates.end()),
      [](const codegen::Candidate& candidate) -> auto& { return candidate.workload; }, workload, most);
}

std::vector<KnownAnswer> Library::near(const codegen::Workload& workload, std::string_view platform_hash,
                                       std::size_t most) const {
  std::vector<KnownAnswer> answers = all();
  std::erase_if(answers, [&](const KnownAnswer& answer) { return answer.platform_hash != platform_hash; });
  return nearest(
      std::move(answers), [](const KnownAnswer& answer) -> auto& { return answer.candidate.workload; }, workload, most);
}

bool Library::record(const KnownAnswer& answer) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw base::Failure(fmt::format("{}: cannot make the folder: {}", folder_.string(), error.message()));
  const base::FileLock lock = lock_of(folder_);
  const bool cold = answer.cold.value_or(false);
  const auto known = find(answer.candidate.workload, answer.platform_hash, cold);
  if (known && datasets::seconds_of(known->measurement) < datasets::seconds_of(answer.measurement)) return false;
  base::replace_file(file_of(answer.candidate.workload, answer.platform_hash, cold),
                     to_document(answer).to_pretty_json() + "\n");
  // One answer for all workloads that compute the same.
  if (known && !(known->candidate.workload == answer.candidate.workload))
    std::filesystem::remove(file_of(known->candidate.workload, answer.platform_hash, known->cold.value_or(false)),
                            error);
  return true;
}

std::string Library::exported() const {
  base::Document answers = base::Document::list();
  for (const KnownAnswer& answer : all()) answers.push(to_document(answer));
  return base::Document::map().set("graft_library", 1).set("answers", std::move(answers)).to_pretty_json() + "\n";
}

std::size_t Library::merge(std::string_view text, const std::string& place) const {
  const base::Document document = base::parse_json(std::string(text), place);
  document.only_keys({"graft_library", "answers"});
  if (document.at("graft_library").as_integer() != 1)
    throw base::UserError(document.at("graft_library").place(), "expected 1; written by a newer graft");
  std::vector<KnownAnswer> answers;
  for (const base::Document& each : document.at("answers").as_list()) answers.push_back(known_answer_from(each));
  return std::size_t(
      std::count_if(answers.begin(), answers.end(), [&](const KnownAnswer& each) { return record(each); }));
}

}  // namespace graft::study
