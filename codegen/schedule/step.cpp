#include "codegen/schedule/step.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/text.h"
#include "codegen/expression/layout.h"

namespace graft::codegen {
namespace {

constexpr std::array names = {
#define X(name) std::string_view(#name),
    GRAFT_STEPS(X)
#undef X
};

std::int64_t size_from(std::string_view word, std::string_view place) {
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
  if (error != std::errc() || end != word.data() + word.size() || size < 1) {
    throw base::UserError(place, fmt::format("expected a size >= 1, got '{}'", word));
  }
  return size;
}

// The words after the stage; may be empty.
std::string_view subject_of(StepKind kind) {
  switch (kind) {
    case StepKind::tile:
    case StepKind::rfactor:
    case StepKind::reciprocal:
      return "an axis";
    case StepKind::pack:
    case StepKind::prefetch:
    case StepKind::copy:
    case StepKind::unsign:
      return "a tensor";
    case StepKind::bind:
      return "a kind of loop";
    case StepKind::fuse:
    case StepKind::absorb:
    case StepKind::compute:
      return "a stage";
    case StepKind::tensorize:
      return "an intrinsic";
    case StepKind::order:
    case StepKind::vector:
    case StepKind::unroll:
    case StepKind::parallel:
    case StepKind::accumulate:
    case StepKind::winograd:
    case StepKind::layout:
    case StepKind::block:
    case StepKind::lanes:
      break;
  }
  return "";
}

// How many sizes follow: none, one, or (2) as many as there are.
int sizes_of(StepKind kind) {
  if (kind == StepKind::tile) return 2;
  return kind == StepKind::rfactor || kind == StepKind::winograd || kind == StepKind::prefetch ? 1 : 0;
}

bool has_above(StepKind kind) {
  return kind == StepKind::accumulate || kind == StepKind::pack || kind == StepKind::compute;
}

// `1 / 16` is `1/16`: arguments of a sketch stand alone.
std::vector<std::string> joined_dimensions(const std::vector<std::string>& words) {
  std::vector<std::string> result;
  bool open = false;
  for (const std::string& word : words) {
    const bool is_sign = word == "/" || word == "%";
    if ((is_sign || open) && !result.empty()) {
      result.back() += word;
    } else {
      result.push_back(word);
    }
    open = is_sign;
  }
  return result;
}

}  // namespace

std::string_view name_of(StepKind kind) {
  return names[std::size_t(kind)];
}

std::vector<std::string> step_names() {
  return {names.begin(), names.end()};
}

Step step_from_words(const std::vector<std::string_view>& words, std::string_view place) {
  if (words.empty()) throw base::UserError(place, "expected a step, got an empty line");
  Step step;
  std::size_t kind = 0;
  while (kind < names.size() && names[kind] != words[0]) ++kind;
  if (kind == names.size()) {
    throw base::UserError(place,
                          fmt::format("unknown step '{}'{}", words[0], base::did_you_mean(words[0], step_names())));
  }
  step.kind = StepKind(kind);
  const std::string_view subject = subject_of(step.kind);
  std::size_t next = 1;
  auto word = [&](std::string_view what) {
    if (next >= words.size()) throw base::UserError(place, fmt::format("{}: expected {}, got the end", words[0], what));
    return words[next++];
  };
  step.stage = word("a stage");
  if (!subject.empty()) step.subject = word(subject);
  if (step.kind == StepKind::pack && next < words.size() && words[next] == "by") {
    ++next;
    step.sizes.push_back(size_from(word("a number of lanes"), place));
  }
  if (has_above(step.kind) && word("'above'") != "above") {
    throw base::UserError(place, fmt::format("{}: expected 'above', got '{}'", words[0], words[next - 1]));
  }
  if (step.kind == StepKind::prefetch) step.loops.emplace_back(word("a loop"));
  if (next < words.size() && step.kind != StepKind::tile) step.loops.reserve(words.size() - next);
  while (next < words.size()) {
    if (step.kind == StepKind::copy) {
      step.loops.emplace_back(words[next++]);
      step.sizes.push_back(size_from(word("a size"), place));
      continue;
    }
    if (sizes_of(step.kind) > 0) {
      step.sizes.push_back(size_from(words[next], place));
    } else {
      step.loops.emplace_back(words[next]);
    }
    ++next;
  }
  if (step.kind == StepKind::fuse || step.kind == StepKind::absorb || step.kind == StepKind::reciprocal ||
      step.kind == StepKind::unsign) {
    if (!step.loops.empty()) throw base::UserError(place, fmt::format("{}: unexpected '{}'", words[0], step.loops[0]));
  } else if (step.kind != StepKind::copy && (sizes_of(step.kind) > 0 ? step.sizes.empty() : step.loops.empty())) {
    throw base::UserError(
        place, fmt::format("{}: expected {}, got the end", words[0], sizes_of(step.kind) > 0 ? "a size" : "a loop"));
  }
  if (sizes_of(step.kind) == 1 && step.sizes.size() != 1) {
    throw base::UserError(place, fmt::format("{}: expected one size, got {}", words[0], step.sizes.size()));
  }
  if (step.kind == StepKind::layout || step.kind == StepKind::block) {
    step.loops = joined_dimensions(step.loops);
    parse_layout(step.loops, place);
  }
  const bool one_loop =
      step.kind == StepKind::vector || step.kind == StepKind::tensorize || step.kind == StepKind::lanes;
  if (one_loop && step.loops.size() != 1) {
    throw base::UserError(place, fmt::format("{}: expected one loop, got {}", words[0], step.loops.size()));
  }
  return step;
}

Step parse_step(std::string_view line, std::string_view place) {
  return step_from_words(base::words(line), place);
}

std::string to_text(const Step& step) {
  std::string text = fmt::format("{} {}", name_of(step.kind), step.stage);
  if (!step.subject.empty()) text += " " + step.subject;
  if (step.kind == StepKind::pack && !step.sizes.empty()) text += fmt::format(" by {}", step.sizes[0]);
  if (has_above(step.kind)) text += " above";
  for (std::size_t i = 0; i < step.loops.size(); ++i) {
    text += " " + step.loops[i];
    if (step.kind == StepKind::copy) text += fmt::format(" {}", step.sizes[i]);
  }
  if (sizes_of(step.kind) > 0) {
    for (const std::int64_t size : step.sizes) text += fmt::format(" {}", size);
  }
  return text;
}

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule) text += to_text(step) + "\n";
  return text;
}

}  // namespace graft::codegen
