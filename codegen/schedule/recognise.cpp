#include "codegen/schedule/recognise.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/rules.h"

namespace graft::codegen {
namespace {

using Words = std::vector<std::string>;

// The signs of stored dimensions stand alone, as in sketches: `1/16` is `1 / 16` (step.h).
void append_words(std::string_view text, Words& words) {
  for (const std::string_view word : base::words(text)) {
    std::size_t begin = 0;
    for (std::size_t at = 0; at <= word.size(); ++at) {
      const bool is_sign = at < word.size() && (word[at] == '/' || word[at] == '%');
      if (at < word.size() && !is_sign) continue;
      if (at > begin) words.emplace_back(word.substr(begin, at - begin));
      if (is_sign) words.emplace_back(1, word[at]);
      begin = at + 1;
    }
  }
}

Words words_of(std::string_view text) {
  Words words;
  append_words(text, words);
  return words;
}

std::optional<std::int64_t> number_of(const std::string& word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(number) : std::nullopt;
}

// Lines of a sketch against the steps of a schedule, by trying: an argument that is not known yet takes what stands in
// its place, or one alternative after the other.
class Matcher {
 public:
  Matcher(const Schedule& schedule, const Sketch& sketch) : arguments_(sketch.arguments.size()) {
    for (const Step& step : schedule) steps_.push_back(words_of(to_text(step)));
    for (const Sketch::Line& line : sketch.lines) {
      auto& tokens = lines_.emplace_back();
      for (const Sketch::Token& token : line) {
        Token& own = tokens.emplace_back();
        own.argument = token.argument;
        if (token.argument < 0) {
          own.alternatives.push_back(words_of(token.literal));
        } else {
          for (const std::string& alternative : token.alternatives) own.alternatives.push_back(words_of(alternative));
        }
      }
    }
  }

  std::optional<std::vector<std::int64_t>> arguments() {
    if (!line(0, 0)) return std::nullopt;
    std::vector<std::int64_t> found;
    for (const std::optional<std::int64_t>& argument : arguments_) found.push_back(argument.value_or(0));
    return found;
  }
  std::size_t furthest() const { return furthest_; }  // steps that some lines gave

 private:
  struct Token {
    int argument = -1;                // -1: literal words
    std::vector<Words> alternatives;  // the literal's words; empty: a plain number
  };

  // The lines from this one on give the steps from that one on.
  bool line(std::size_t at, std::size_t step) {
    furthest_ = std::max(furthest_, step);
    if (at == lines_.size()) return step == steps_.size();
    return token(at, 0, step, 0);
  }

  // The line's tokens from this one on give the step's words from that one on; then the next line the next step. A line
  // without a word gives none of the steps.
  bool token(std::size_t at, std::size_t next, std::size_t step, std::size_t word) {
    if (next == lines_[at].size()) {
      if (word == 0) return line(at + 1, step);
      return word == steps_[step].size() && line(at + 1, step + 1);
    }
    const Token& own = lines_[at][next];
    const auto with = [&](std::int64_t value, std::size_t words) {
      std::optional<std::int64_t>& argument = arguments_[std::size_t(own.argument)];
      const bool was_known = argument.has_value();
      if (was_known && *argument != value) return false;
      argument = value;
      if (token(at, next + 1, step, word + words)) return true;
      if (!was_known) argument.reset();
      return false;
    };
    if (own.argument < 0) {
      const Words& words = own.alternatives.front();
      return stands_at(words, step, word) && token(at, next + 1, step, word + words.size());
    }
    if (own.alternatives.empty()) {
      if (step == steps_.size() || word == steps_[step].size()) return false;
      const std::optional<std::int64_t> number = number_of(steps_[step][word]);
      return number && with(*number, 1);
    }
    for (std::size_t a = 0; a < own.alternatives.size(); ++a) {
      if (stands_at(own.alternatives[a], step, word) && with(std::int64_t(a), own.alternatives[a].size())) return true;
    }
    return false;
  }

  bool stands_at(const Words& words, std::size_t step, std::size_t word) const {
    if (words.empty()) return true;
    if (step == steps_.size() || word + words.size() > steps_[step].size()) return false;
    return std::equal(words.begin(), words.end(), steps_[step].begin() + std::ptrdiff_t(word));
  }

  std::vector<Words> steps_;
  std::vector<std::vector<Token>> lines_;
  std::vector<std::optional<std::int64_t>> arguments_;
  std::size_t furthest_ = 0;
};

struct Found {
  std::optional<std::vector<std::int64_t>> arguments;
  std::size_t furthest = 0;
};

Found found_in(const Schedule& schedule, const Sketch& sketch) {
  if (sketch.program != nullptr || !sketch.columns.empty()) return {};
  Matcher matcher(schedule, sketch);
  Found found;
  found.arguments = matcher.arguments();
  found.furthest = matcher.furthest();
  return found;
}

base::Reason refusal(const Schedule& schedule, const Sketch& sketch, std::size_t furthest) {
  return {furthest < schedule.size()
              ? fmt::format("sketch {}: no line of it gives '{}'", sketch.name, to_text(schedule[furthest]))
              : fmt::format("sketch {}: it has further steps", sketch.name)};
}

// The program with numbers for the names of its buffers and loops.
LoopProgram nameless(LoopProgram program) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b) program.buffers[b].name = fmt::format("b{}", b);
  for (std::size_t l = 0; l < program.loops.size(); ++l) program.loops[l].name = fmt::format("l{}", l);
  return program;
}

}  // namespace

base::Result<std::vector<std::int64_t>> recognised(const Schedule& schedule, const Sketch& sketch) {
  Found found = found_in(schedule, sketch);
  if (!found.arguments) return refusal(schedule, sketch, found.furthest);
  return std::move(*found.arguments);
}

base::Result<Candidate> recognised(const Schedule& schedule, const Space& space) {
  const Sketch* nearest = space.sketches().front().sketch.get();
  std::size_t furthest = 0;
  for (const SketchSpace& part : space.sketches()) {
    Found found = found_in(schedule, *part.sketch);
    if (found.arguments) return Candidate{space.workload(), part.sketch, std::move(*found.arguments)};
    if (found.furthest > furthest) nearest = part.sketch.get(), furthest = found.furthest;
  }
  return refusal(schedule, *nearest, furthest);
}

base::Result<Candidate> renamed(const Candidate& candidate, const Space& space, const Target& target) {
  const base::Result<Schedule> steps = schedule(candidate);
  if (!steps) return steps.reason();
  const base::Result<LoopProgram> before = program(candidate, target);
  if (!before) return before.reason();
  std::string why;
  std::vector<IntrinsicPointer> intrinsics = candidate.sketch->intrinsics;
  for (const SketchSpace& part : space.sketches())
    for (const IntrinsicPointer& intrinsic : part.sketch->intrinsics)
      if (intrinsic_named(intrinsics, intrinsic->name) == nullptr) intrinsics.push_back(intrinsic);
  for (const Layouts layouts : {Layouts::given, Layouts::free}) {
    const Space own = derive_space(candidate.workload, target, intrinsics, layouts);
    const base::Result<Candidate> found = recognised(*steps, own);
    if (!found) {
      why = found.reason().text;
      continue;
    }
    const auto place = std::find_if(own.sketches().begin(), own.sketches().end(),
                                    [&](const SketchSpace& part) { return part.sketch == found->sketch; });
    const std::size_t at = std::size_t(place - own.sketches().begin());
    if (at >= space.sketches().size()) continue;
    const Candidate moved{space.workload(), space.sketches()[at].sketch, found->arguments};
    const base::Result<LoopProgram> after = program(moved, target);
    if (after && nameless(*after) == nameless(*before)) return moved;
    why = fmt::format("sketch {}: gives another program", moved.sketch->name);
  }
  return base::Reason{why};
}

}  // namespace graft::codegen
