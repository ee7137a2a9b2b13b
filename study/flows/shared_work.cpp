#include "study/flows/shared_work.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "study/inputs/field_error.h"

namespace graft::study {
namespace {

// Everything of a piece, for the other ranks.
struct Outcome {
  enum Kind : int { done, skipped, mistake, field, failure, stopped };
  int kind = done;
  std::string result, names, message;  // names: of the fields of a FieldError
  std::vector<std::string> notes;
  template <class Bytes, class Self>
  static void fields(Bytes& bytes, Self& self) {
    bytes(self.kind), bytes(self.result), bytes(self.names), bytes(self.message), bytes(self.notes);
  }
};

// Progress and stops are the rank's own, notes are kept.
class PieceMonitor final : public base::Monitor {
 public:
  PieceMonitor(base::Monitor& own, std::vector<std::string>& notes) : own_(own), notes_(notes) {}
  void progress(std::string_view what, std::int64_t done, std::int64_t total) override {
    own_.progress(what, done, total);
  }
  void note(std::string_view line) override { notes_.emplace_back(line); }
  bool stop_requested() override { return own_.stop_requested(); }

 private:
  base::Monitor& own_;
  std::vector<std::string>& notes_;
};

template <class Piece>
Outcome outcome_of(const Piece& piece, base::Monitor& monitor) {
  Outcome outcome;
  PieceMonitor own(monitor, outcome.notes);
  const auto failed = [&](Outcome::Kind kind, const std::string& message) {
    outcome.kind = kind;
    outcome.message = message;
  };
  try {
    outcome.result = piece(own);
  } catch (const FieldError& error) {
    failed(Outcome::field, error.message());
    outcome.names = error.fields();
  } catch (const base::Stopped&) {
    failed(Outcome::stopped, "");
  } catch (const base::UserError& error) {
    failed(Outcome::mistake, error.what());
  } catch (const std::exception& error) {
    failed(Outcome::failure, error.what());
  }
  return outcome;
}

void throw_error(const Outcome& outcome) {
  switch (outcome.kind) {
    case Outcome::field:
      throw FieldError(outcome.names, outcome.message);
    case Outcome::mistake:
      throw base::UserError(outcome.message);
    case Outcome::failure:
      throw base::Failure(outcome.message);
    case Outcome::stopped:
      throw base::Stopped();
    default:
      break;
  }
}

}  // namespace

std::vector<std::string> shared_work(base::Team& team, std::int64_t count, base::Monitor& monitor,
                                     const std::function<std::string(std::int64_t, base::Monitor&)>& piece) {
  if (team.size() == 1) {
    std::vector<std::string> results;
    for (std::int64_t i = 0; i < count; ++i) results.push_back(piece(i, monitor));
    return results;
  }
  bool failed = false;
  std::vector<Outcome> all = base::divided(team, count, 1, [&](std::int64_t i) {
    Outcome outcome;
    outcome.kind = Outcome::skipped;
    if (failed) return outcome;
    outcome = outcome_of([&](base::Monitor& own) { return piece(i, own); }, monitor);
    failed = outcome.kind != Outcome::done;
    return outcome;
  });
  std::vector<std::string> results;
  std::vector<std::string> noted;
  for (Outcome& outcome : all) {
    for (const std::string& note : outcome.notes) {
      if (std::find(noted.begin(), noted.end(), note) != noted.end()) continue;
      monitor.note(noted.emplace_back(note));
    }
    results.push_back(std::move(outcome.result));
  }
  for (const Outcome& outcome : all) throw_error(outcome);
  return results;
}

std::string work_of_first(base::Team& team, base::Monitor& monitor,
                          const std::function<std::string(base::Monitor&)>& work) {
  return shared_work(team, 1, monitor, [&](std::int64_t, base::Monitor& own) { return work(own); }).front();
}

}  // namespace graft::study
