#include "codegen/schedule/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "codegen/schedule/lower.h"
#include "codegen/schedule/rules.h"
#include "codegen/schedule/splits.h"

namespace graft::codegen {
namespace {

using base::Cursor;
using Rows = std::vector<std::vector<std::int64_t>>;

constexpr std::size_t most_rows = 200'000;                      // of one domain
constexpr std::int64_t largest_extent = std::int64_t(1) << 24;  // that is split
constexpr std::size_t most_shown = 24;                          // values in an error
const std::vector<std::string> statements = {"sketch", "from", "domain", "fix", "forbid"};

constexpr std::array policy_names = {
#define X(name) std::string_view(#name),
    GRAFT_SPLIT_POLICIES(X)
#undef X
};

struct Statement {
  std::string word;
  Cursor start, rest;  // at the word, after it
};

// From one `sketch` or `from rules` to the next, as read.
struct Block {
  Cursor start;
  std::string rule;  // of `from rules NAME`
  bool from_rules = false;
  std::string steps;  // the file without all other lines, so that line numbers hold
  std::vector<Statement> statements;
};

// A sketch whose domains are being settled.
struct Draft {
  std::shared_ptr<const Sketch> sketch;
  std::vector<Domain> domains;
  std::vector<Condition> forbids;
  std::set<int> settled;  // arguments with a `domain`
};

Domain* domain_of(Draft& draft, int argument) {
  for (Domain& domain : draft.domains) {
    if (std::find(domain.arguments.begin(), domain.arguments.end(), argument) != domain.arguments.end()) return &domain;
  }
  return nullptr;
}

std::string normalised(std::string_view text) {
  std::string result;
  for (const std::string_view word : base::words(text)) (result += result.empty() ? "" : " ") += word;
  return result;
}

std::vector<std::string> argument_names(const std::vector<Draft>& drafts) {
  std::vector<std::string> names;
  for (const Draft& draft : drafts) {
    for (const Sketch::Argument& argument : draft.sketch->arguments) {
      if (std::find(names.begin(), names.end(), argument.name) == names.end()) names.push_back(argument.name);
    }
  }
  return names;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view place, const Workload& workload, const Target& target,
         std::span<const IntrinsicPointer> intrinsics)
      : text_(text),
        place_(place),
        workload_(workload),
        target_(target),
        intrinsics_(intrinsics),
        computation_(workload.padded()) {
    for (const Stage& stage : computation_.stages) {
      for (const Axis& axis : stage.axes) {
        constants_[computation_.tensors[std::size_t(stage.tensor)].name + "." + axis.name] = axis.extent;
      }
    }
    constants_["lanes"] = target.lanes(bytes_of(computation_.tensors[0].dtype));
    constants_["registers"] = target.vector_registers;
  }

  Space space() {
    std::vector<SketchSpace> sketches;
    for (const Block& block : blocks()) {
      for (Draft& draft : settled(block)) {
        const auto same = [&](const SketchSpace& other) { return other.sketch->name == draft.sketch->name; };
        if (std::any_of(sketches.begin(), sketches.end(), same)) {
          block.start.fail(fmt::format("a second sketch '{}'", draft.sketch->name));
        }
        sketches.push_back({std::move(draft.sketch), std::move(draft.domains), std::move(draft.forbids)});
      }
    }
    if (sketches.empty()) throw base::UserError(place_, "no sketch; begin with 'sketch NAME' or 'from rules'");
    return Space(workload_, std::move(sketches));
  }

 private:
  // ---- lines ----

  std::vector<Block> blocks() {
    std::vector<Block> result;
    Cursor cursor(text_, place_);
    std::size_t line_number = 0;
    bool in_intrinsic = false;  // whose lines are the sketch's to read
    for (const std::string_view raw : base::split(text_, '\n')) {
      ++line_number;
      Cursor line = cursor.line('#');
      if (line.at_end()) continue;
      const Cursor start = line;
      const std::string word = line.at_identifier() ? line.identifier() : "";
      in_intrinsic |= word == "intrinsic";
      const bool begins = !in_intrinsic && (word == "sketch" || word == "from");
      if (begins) {
        result.push_back({start, "", word == "from", "", {}});
        if (word == "from") rules_named(line, result.back());
      }
      if (result.empty()) start.fail("expected 'sketch NAME' or 'from rules' first");
      if (begins && word == "from") continue;
      if (!in_intrinsic && !begins && std::find(statements.begin(), statements.end(), word) != statements.end()) {
        result.back().statements.push_back({word, start, line});
        continue;
      }
      if (!in_intrinsic) check_step(word, start);
      std::string& steps = result.back().steps;
      steps.append(line_number - 1 - std::size_t(std::count(steps.begin(), steps.end(), '\n')), '\n');
      steps += std::string(raw) + "\n";
      in_intrinsic &= base::trim(raw) != "end";
    }
    return result;
  }

  static void rules_named(Cursor& line, Block& block) {
    if (line.identifier() != "rules") block.start.fail("expected 'from rules' or 'from rules SKETCH'");
    if (!line.at_end()) block.rule = line.identifier();
    if (!line.at_end()) line.fail("expected the end of the line");
  }

  // Steps are read when sketches are filled; what begins a line can be told now.
  static void check_step(const std::string& word, const Cursor& start) {
    Cursor ahead = start;
    if (ahead.peek() == '$' || word == "sketch") return;
    std::vector<std::string> known = step_names();
    if (std::find(known.begin(), known.end(), word) != known.end()) return;
    known.insert(known.end(), statements.begin(), statements.end());
    start.fail(word.empty() ? "expected a step or a statement"
                            : fmt::format("unknown word '{}'{}", word, base::did_you_mean(word, known)));
  }

  // ---- blocks ----

  std::vector<Draft> settled(const Block& block) {
    std::vector<Draft> drafts = started(block);
    for (const char* const word : {"domain", "", "fix", "forbid"}) {
      if (*word == '\0') {
        for (Draft& draft : drafts) add_defaults(draft, block);
      }
      for (const Statement& statement : block.statements) {
        if (statement.word != word) continue;
        if (statement.word == "forbid") {
          forbid(statement, drafts);
        } else {
          assign(statement, drafts);
        }
      }
    }
    return drafts;
  }

  std::vector<Draft> started(const Block& block) const {
    std::vector<Draft> drafts;
    if (!block.from_rules) {
      drafts.push_back({std::make_shared<const Sketch>(parse_sketch(block.steps, place_)), {}, {}, {}});
      return drafts;
    }
    std::vector<std::string> names;
    for (SketchSpace& derived : derive_sketches(computation_, target_, intrinsics_)) {
      names.push_back(derived.sketch->name);
      if (!block.rule.empty() && derived.sketch->name != block.rule) continue;
      if (!block.steps.empty()) {
        derived.sketch = std::make_shared<const Sketch>(with_lines(*derived.sketch, block.steps, place_));
      }
      drafts.push_back({std::move(derived.sketch), std::move(derived.domains), std::move(derived.forbids), {}});
    }
    if (drafts.empty()) {
      block.start.fail(
          fmt::format("{} has no sketch '{}'{}", workload_.text(), block.rule, base::did_you_mean(block.rule, names)));
    }
    return drafts;
  }

  // domain A B ... = VALUES and fix A = VALUES.
  void assign(const Statement& statement, std::vector<Draft>& drafts) {
    Cursor cursor = statement.rest;
    std::vector<std::string> names;
    while (cursor.at_identifier()) names.push_back(cursor.identifier());
    if (names.empty()) cursor.fail("expected an argument's name");
    const bool fixes = statement.word == "fix";
    if (fixes && names.size() > 1) statement.start.fail("fix takes one argument; for several, use domain or forbid");
    cursor.expect("=");
    bool concerned = false;
    for (Draft& draft : drafts) {
      std::vector<int> arguments;
      for (const std::string& name : names) {
        if (const int argument = draft.sketch->argument_named(name); argument >= 0) arguments.push_back(argument);
      }
      if (arguments.size() != names.size()) continue;
      concerned = true;
      Rows rows = values(cursor, *draft.sketch, arguments);
      if (fixes) {
        fix(statement, draft, arguments[0], rows);
      } else {
        replace_domain(statement, draft, arguments, names, std::move(rows));
      }
    }
    if (!concerned) unknown_argument(statement, names, drafts);
  }

  [[noreturn]] static void unknown_argument(const Statement& statement, const std::vector<std::string>& names,
                                            const std::vector<Draft>& drafts) {
    const std::vector<std::string> known = argument_names(drafts);
    for (const std::string& name : names) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        statement.start.fail(
            fmt::format("no sketch here has an argument '{}'{}", name, base::did_you_mean(name, known)));
      }
    }
    statement.start.fail(fmt::format("no sketch here has all of {}", base::join(names, ", ")));
  }

  static void replace_domain(const Statement& statement, Draft& draft, const std::vector<int>& arguments,
                             const std::vector<std::string>& names, Rows rows) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!draft.settled.insert(arguments[i]).second) {
        statement.start.fail(fmt::format("a second domain of '{}'", names[i]));
      }
      const Domain* const old = domain_of(draft, arguments[i]);
      if (old == nullptr) continue;
      for (const int other : old->arguments) {
        if (std::find(arguments.begin(), arguments.end(), other) == arguments.end()) {
          statement.start.fail(fmt::format("'{}' and '{}' have one domain: name all of its arguments, or use fix",
                                           names[i], draft.sketch->arguments[std::size_t(other)].name));
        }
      }
      draft.domains.erase(draft.domains.begin() + (old - draft.domains.data()));
    }
    draft.domains.push_back({base::join(names, " "), arguments, std::move(rows)});
  }

  static void fix(const Statement& statement, Draft& draft, int argument, const Rows& wanted) {
    Domain& domain = *domain_of(draft, argument);
    const std::size_t at =
        std::size_t(std::find(domain.arguments.begin(), domain.arguments.end(), argument) - domain.arguments.begin());
    std::set<std::int64_t> possible;
    for (const auto& row : domain.values) possible.insert(row[at]);
    std::erase_if(domain.values, [&](const auto& row) {
      return std::find(wanted.begin(), wanted.end(), std::vector<std::int64_t>{row[at]}) == wanted.end();
    });
    if (!domain.values.empty()) return;
    std::vector<std::string> shown;
    for (const std::int64_t value : possible) {
      if (shown.size() == most_shown) {
        shown.push_back("...");
        break;
      }
      shown.push_back(std::to_string(value));
    }
    statement.start.fail(fmt::format("sketch {}: '{}' is none of these; possible: {}", draft.sketch->name,
                                     draft.sketch->arguments[std::size_t(argument)].name, base::join(shown, " ")));
  }

  void forbid(const Statement& statement, std::vector<Draft>& drafts) {
    Cursor cursor = statement.rest;
    cursor.peek();  // after the spaces
    const std::string_view text = base::trim(cursor.rest());
    const std::vector<std::string> names = Condition::names_in(text);
    if (names.empty()) cursor.fail("a condition over no argument ('$name') forbids everything or nothing");
    bool concerned = false;
    for (Draft& draft : drafts) {
      std::optional<Condition> own = condition_on(*draft.sketch, text, cursor);
      if (!own) continue;
      concerned = true;
      Domain& domain = *domain_of(draft, own->arguments().front());
      const bool inside = std::all_of(own->arguments().begin(), own->arguments().end(),
                                      [&](int argument) { return domain_of(draft, argument) == &domain; });
      if (!inside) {
        draft.forbids.push_back(std::move(*own));
        continue;
      }
      std::vector<std::int64_t> arguments(draft.sketch->arguments.size());
      std::erase_if(domain.values, [&](const auto& row) {
        for (std::size_t i = 0; i < row.size(); ++i) arguments[std::size_t(domain.arguments[i])] = row[i];
        return own->forbids(arguments);
      });
      if (domain.values.empty()) {
        statement.start.fail(
            fmt::format("sketch {}: forbids everything that is left of domain {}", draft.sketch->name, domain.name));
      }
    }
    if (!concerned) unknown_argument(statement, names, drafts);
  }

  std::optional<Condition> condition_on(const Sketch& sketch, std::string_view text, const Cursor& place) const {
    const std::vector<std::pair<std::string, std::int64_t>> constants(constants_.begin(), constants_.end());
    try {
      return Condition::on(sketch, text, "condition", constants);
    } catch (const base::UserError& error) {
      place.fail(error.what());
    }
  }

  // ---- values ----

  Rows values(Cursor cursor, const Sketch& sketch, const std::vector<int>& arguments) const {
    Rows rows;
    cursor.peek();
    const Cursor start = cursor;
    const std::string word = cursor.at_identifier() ? cursor.identifier() : "";
    if (word == "all") {
      rows = all(sketch, arguments, start);
    } else if (word == "splits") {
      rows = splits(cursor, arguments.size(), start);
    } else {
      cursor = start;
      while (!cursor.at_end()) {
        if (rows.size() == most_rows) cursor.fail(fmt::format("more than {} values", most_rows));
        rows.push_back(row(cursor, sketch, arguments));
      }
      if (rows.empty()) cursor.fail("expected values");
    }
    if (!cursor.at_end()) cursor.fail("expected the end of the line");
    return rows;
  }

  std::vector<std::int64_t> row(Cursor& cursor, const Sketch& sketch, const std::vector<int>& arguments) const {
    if (arguments.size() == 1) return {value(cursor, sketch, arguments[0])};
    std::vector<std::int64_t> result;
    cursor.expect("(");
    for (const int argument : arguments) {
      if (!result.empty()) cursor.accept(",");
      if (cursor.peek() == ')') cursor.fail(fmt::format("expected {} values in a row", arguments.size()));
      result.push_back(value(cursor, sketch, argument));
    }
    cursor.expect(")");
    return result;
  }

  std::int64_t value(Cursor& cursor, const Sketch& sketch, int argument) const {
    cursor.peek();
    const Cursor start = cursor;
    const Sketch::Argument& declared = sketch.arguments[std::size_t(argument)];
    if (!cursor.accept("{")) {
      const std::int64_t number = cursor.at_identifier() ? constant(cursor) : cursor.integer();
      if (declared.alternatives > 0 && (number < 0 || number >= declared.alternatives)) {
        start.fail(fmt::format("'{}' has the alternatives 0 to {}", declared.name, declared.alternatives - 1));
      }
      return number;
    }
    const std::size_t end = cursor.rest().find('}');
    if (end == std::string_view::npos) start.fail("'{' is never closed");
    const std::string text = normalised(cursor.rest().substr(0, end));
    cursor.accept(cursor.rest().substr(0, end));
    cursor.expect("}");
    std::vector<std::string> known;
    for (const Sketch::Line& line : sketch.lines) {
      for (const Sketch::Token& token : line) {
        if (token.argument != argument) continue;
        for (std::size_t i = 0; i < token.alternatives.size(); ++i) {
          known.push_back(normalised(token.alternatives[i]));
          if (known.back() == text) return std::int64_t(i);
        }
      }
    }
    start.fail(fmt::format("'{}' has no alternative '{}'{}", declared.name, text, base::did_you_mean(text, known)));
  }

  static Rows all(const Sketch& sketch, const std::vector<int>& arguments, const Cursor& start) {
    if (arguments.size() > 1) start.fail("'all' is for one argument");
    const Sketch::Argument& argument = sketch.arguments[std::size_t(arguments[0])];
    if (argument.alternatives == 0) {
      start.fail(
          fmt::format("'{}' is a number without alternatives; list its values, or use splits(...)", argument.name));
    }
    return all(argument);
  }
  static Rows all(const Sketch::Argument& argument) {
    Rows rows;
    for (std::int64_t i = 0; i < argument.alternatives; ++i) rows.push_back({i});
    return rows;
  }

  Rows splits(Cursor& cursor, std::size_t sizes, const Cursor& start) const {
    cursor.expect("(");
    cursor.peek();
    const Cursor at_extent = cursor;
    const std::int64_t extent = cursor.at_number() ? cursor.integer() : constant(cursor);
    if (extent < 1 || extent > largest_extent) at_extent.fail(fmt::format("an extent must be 1 to {}", largest_extent));
    SplitPolicy policy = SplitPolicy::usual;
    if (cursor.accept(";")) {
      cursor.peek();
      const Cursor at_policy = cursor;
      const std::string word = cursor.identifier();
      const auto known = std::find(policy_names.begin(), policy_names.end(), word);
      if (known == policy_names.end()) {
        const std::vector<std::string> names(policy_names.begin(), policy_names.end());
        at_policy.fail(fmt::format("unknown policy '{}'{}", word, base::did_you_mean(word, names)));
      }
      policy = SplitPolicy(known - policy_names.begin());
    }
    cursor.expect(")");
    return chains_of(extent, std::vector<std::optional<std::int64_t>>(sizes), policy, start);
  }

  std::int64_t constant(Cursor& cursor) const {
    const Cursor start = cursor;
    const std::string name = cursor.identifier();
    const auto known = constants_.find(name);
    if (known != constants_.end()) return known->second;
    std::vector<std::string> names;
    for (const auto& [other, value] : constants_) names.push_back(other);
    start.fail(fmt::format("unknown constant '{}'{}", name, base::did_you_mean(name, names)));
  }

  static Rows chains_of(std::int64_t extent, const std::vector<std::optional<std::int64_t>>& given, SplitPolicy policy,
                        const Cursor& place) {
    Rows rows = chains(extent, given, policy, most_rows);
    if (rows.size() > most_rows) {
      place.fail(fmt::format("more than {} chains of {} sizes split {}; use fewer sizes or another policy", most_rows,
                             given.size(), extent));
    }
    return rows;
  }

  // ---- defaults ----

  void add_defaults(Draft& draft, const Block& block) const {
    for (const Sketch::Line& line : draft.sketch->lines) add_tile_default(draft, line, block);
    for (int a = 0; a < int(draft.sketch->arguments.size()); ++a) {
      if (domain_of(draft, a) != nullptr) continue;
      const Sketch::Argument& argument = draft.sketch->arguments[std::size_t(a)];
      if (argument.alternatives == 0) {
        block.start.fail(fmt::format("'{0}' of sketch {1} has no domain; add 'domain {0} = ...'", argument.name,
                                     draft.sketch->name));
      }
      draft.domains.push_back({argument.name, {a}, all(argument)});
    }
  }

  // A tile step whose arguments all lack a domain: chains around the sizes that it gives.
  void add_tile_default(Draft& draft, const Sketch::Line& line, const Block& block) const {
    if (line.size() < 4 || line[0].literal != name_of(StepKind::tile)) return;
    const auto axis = constants_.find(line[1].literal + "." + line[2].literal);
    if (axis == constants_.end()) return;
    Domain domain{line[1].literal + "_" + line[2].literal, {}, {}};
    std::vector<std::optional<std::int64_t>> given;
    for (std::size_t i = 3; i < line.size(); ++i) {
      const Sketch::Token& token = line[i];
      if (token.argument < 0) {
        Cursor size(token.literal, place_);
        if (!size.at_number()) return;  // no size: filling reports it
        given.emplace_back(std::max<std::int64_t>(1, size.integer()));
        continue;
      }
      const bool free =
          token.alternatives.empty() && domain_of(draft, token.argument) == nullptr &&
          std::find(domain.arguments.begin(), domain.arguments.end(), token.argument) == domain.arguments.end();
      if (!free) return;
      given.emplace_back();
      domain.arguments.push_back(token.argument);
    }
    if (domain.arguments.empty()) return;
    for (std::vector<std::int64_t>& chain : chains_of(axis->second, given, SplitPolicy::usual, block.start)) {
      std::vector<std::int64_t> row;
      for (std::size_t i = 0; i < given.size(); ++i) {
        if (!given[i]) row.push_back(chain[i]);
      }
      domain.values.push_back(std::move(row));
    }
    if (domain.values.empty()) {
      block.start.fail(
          fmt::format("no sizes fit 'tile {} {}' of sketch {}", line[1].literal, line[2].literal, draft.sketch->name));
    }
    draft.domains.push_back(std::move(domain));
  }

  std::string_view text_;
  std::string place_;
  const Workload& workload_;
  const Target& target_;
  std::span<const IntrinsicPointer> intrinsics_;
  Computation computation_;
  std::map<std::string, std::int64_t> constants_;
};

}  // namespace

Space parse_space(std::string_view text, std::string_view place, const Workload& workload, const Target& target,
                  std::span<const IntrinsicPointer> intrinsics) {
  return Reader(text, place, workload, target, intrinsics).space();
}

}  // namespace graft::codegen
