#include "codegen/space/parameter_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "base/text.h"
#include "codegen/space/table_schema.h"

namespace graft::codegen {
namespace {

constexpr std::size_t most_parameters = 512, most_values = 1 << 20, most_values_in_all = 1 << 20;
constexpr std::size_t longest_name = 128, longest_value = 4096;
constexpr std::size_t most_constraints = 4096;
constexpr double most_combinations = 1e300;      // a double can count them
constexpr std::size_t most_words = 16384;        // values of a parameter that are not all integers
constexpr std::size_t few_values = 16;           // more integers are plain numbers of the sketch (sketch.h)
constexpr std::int64_t most_listing = 64 << 20;  // operations on values to list all components
constexpr std::size_t most_entries = 16 << 20;   // of lists of rows that are kept
constexpr std::size_t most_compared = 65536;     // rows of a list, to find the nearest
constexpr std::int64_t most_search = 200000;     // operations of one try to find a point
constexpr std::int64_t most_operations = 65536;  // of all constraints together: a try looks at all of them
constexpr int most_tries = 32;                   // to draw a point, each with other random choices
constexpr int most_tries_near = 4;

using Rows = std::vector<std::size_t>;  // by parameter: the position of its value

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > longest_name) return false;
  if (!std::isalpha((unsigned char)name.front()) && name.front() != '_') return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum((unsigned char)c) || c == '_' || c == '.'; });
}

bool is_number(const Scalar& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

// On the scale on which values are near: the logarithm of numbers.
double coordinate(double number) {
  return std::copysign(std::log2(1 + std::abs(number)), number);
}

// Parameters that constraints connect.
struct Group {
  std::vector<int> parameters;  // in the order in which they are given values
  std::vector<int> constraints;
  std::optional<std::int64_t> count;  // of its points, if they could be counted
  std::vector<std::uint32_t> list;    // of its points, consecutive, in the order of `parameters`; or none
};

}  // namespace

class ParameterSpace::Resolved final : public Resolver {
 public:
  Resolved(Workload its_workload, std::vector<Tunable> its_parameters, std::vector<Constraint> its_constraints,
           std::string_view place)
      : workload(std::move(its_workload)),
        parameters(std::move(its_parameters)),
        constraints(std::move(its_constraints)) {
    check_parameters(place);
    make_sketch();
    make_checks();
    make_groups();
    list_groups(place);
  }

  std::string violated(std::span<const std::int64_t> arguments) const override {
    const std::optional<Rows> rows = rows_of(arguments);
    if (!rows) return "a value that the parameter does not have";
    const std::vector<const Scalar*> values = values_at(*rows);
    for (const Constraint& constraint : constraints) {
      if (!constraint.holds(values)) return constraint.text();
    }
    return "";
  }

  base::Result<std::vector<std::int64_t>> sample(base::Stream& stream) const override {
    Rows rows(parameters.size(), 0);
    for (const Group& group : groups_) {
      if (!draw(group, rows, stream)) return not_found(group);
    }
    return arguments_of(rows);
  }

  base::Result<std::vector<std::int64_t>> near(std::span<const std::int64_t> arguments, int kept,
                                               base::Stream& stream) const override {
    std::optional<Rows> rows = rows_of(arguments);
    if (!rows) return base::Reason{"a value that the parameter does not have"};
    if (!nearest(*rows, kept, stream)) return base::Reason{"no point near to it meets the constraints"};
    return arguments_of(*rows);
  }

  std::uint64_t hash() const override {
    std::uint64_t value = constraints.size();
    for (const Constraint& constraint : constraints)
      value = base::hash_combine(value, base::hash_bytes(constraint.text()));
    return value;
  }

  std::vector<std::int64_t> arguments_of(const Rows& rows) const {
    std::vector<std::int64_t> arguments;
    for (std::size_t p = 0; p < rows.size(); ++p) arguments.push_back(argument_at(p, rows[p]));
    return arguments;
  }

  std::int64_t argument_at(std::size_t parameter, std::size_t row) const {
    return is_plain_[parameter] ? std::get<std::int64_t>(parameters[parameter].values[row]) : std::int64_t(row);
  }

  std::optional<Rows> rows_of(std::span<const std::int64_t> arguments) const {
    if (arguments.size() != parameters.size()) return std::nullopt;
    Rows rows;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::vector<Scalar>& values = parameters[p].values;
      std::size_t row = std::size_t(arguments[p]);
      if (is_plain_[p]) {
        const auto found = std::lower_bound(
            values.begin(), values.end(), arguments[p],
            [](const Scalar& value, std::int64_t wanted) { return std::get<std::int64_t>(value) < wanted; });
        if (found == values.end() || std::get<std::int64_t>(*found) != arguments[p]) return std::nullopt;
        row = std::size_t(found - values.begin());
      } else if (arguments[p] < 0 || row >= values.size()) {
        return std::nullopt;
      }
      rows.push_back(row);
    }
    return rows;
  }

  // Moves the rows to a point that meets all constraints; false if none was found.
  bool nearest(Rows& rows, int kept, base::Stream& stream) const {
    const Rows wanted = rows;
    for (const Group& group : groups_) {
      if (group.constraints.empty() || meets(group, rows)) continue;
      if (!nearest_in(group, wanted, kept, rows, stream)) return false;
    }
    return true;
  }

  double combinations() const {
    double all = 1;
    for (const Tunable& parameter : parameters) all *= double(parameter.values.size());
    return all;
  }

  std::optional<double> size() const {
    double all = 1;
    for (const Group& group : groups_) {
      if (!group.count) return std::nullopt;
      all *= double(*group.count);
    }
    return all;
  }

  // Calls `visit` for every point; each group must have a list or no constraint.
  template <class Visit>
  void for_each(Visit visit) const {
    Rows rows(parameters.size(), 0);
    const std::function<void(std::size_t)> walk = [&](std::size_t g) {
      if (g == groups_.size()) return visit(rows);
      for (std::int64_t i = 0; i < *groups_[g].count; ++i) {
        put(groups_[g], i, rows);
        walk(g + 1);
      }
    };
    walk(0);
  }
  bool is_listed() const {
    return std::all_of(groups_.begin(), groups_.end(), [](const Group& group) {
      return group.count && (group.constraints.empty() || !group.list.empty());
    });
  }

  const Workload workload;
  std::vector<Tunable> parameters;
  const std::vector<Constraint> constraints;
  std::shared_ptr<const Sketch> sketch;

 private:
  void check_parameters(std::string_view place) {
    const auto refuse = [&](const std::string& what) { throw base::UserError(place, what); };
    check_counts(parameters.size(), constraints.size(), place);
    std::set<std::string_view> names;
    std::size_t all = 0;
    for (Tunable& parameter : parameters) {
      const std::string name = base::shortened(parameter.name);
      if (!is_name(parameter.name))
        refuse(fmt::format("'{}' is not a name of a parameter: letters, digits and '_'", name));
      if (!names.insert(parameter.name).second) refuse(fmt::format("parameter '{}' is there twice", name));
      if (parameter.values.empty()) refuse(fmt::format("parameter '{}' has no value", name));
      if (parameter.values.size() > most_values)
        refuse(fmt::format("parameter '{}' has {} values; at most {} are taken", name, parameter.values.size(),
                           most_values));
      if ((all += parameter.values.size()) > most_values_in_all)
        refuse(fmt::format("more than {} values of parameters", most_values_in_all));
      const bool integers = std::all_of(parameter.values.begin(), parameter.values.end(), [](const Scalar& value) {
        return std::holds_alternative<std::int64_t>(value);
      });
      if (!integers && parameter.values.size() > most_words)
        refuse(fmt::format("parameter '{}' has {} values that are not all integers; at most {} are taken", name,
                           parameter.values.size(), most_words));
      std::set<std::string> texts;
      for (const Scalar& value : parameter.values) {
        const std::string text = scalar_text(value);
        if (text.size() > longest_value)
          refuse(fmt::format("parameter '{}': a value of {} characters", name, text.size()));
        if (!texts.insert(text).second)
          refuse(fmt::format("parameter '{}' has the value {} twice", name, base::shortened(text)));
      }
      sort_numbers(parameter);
    }
    std::int64_t operations = 0;
    for (const Constraint& constraint : constraints) operations += constraint.operations();
    if (operations > most_operations)
      refuse(fmt::format("constraints of {} operations in all; at most {} are taken", operations, most_operations));
    if (!(combinations() < most_combinations)) refuse("more than 10^300 combinations of values");
  }

  static void sort_numbers(Tunable& parameter) {
    if (!std::all_of(parameter.values.begin(), parameter.values.end(), is_number)) return;
    const auto less = [](const Scalar& a, const Scalar& b) { return *scalar_number(a) < *scalar_number(b); };
    std::optional<Scalar> standard;
    if (parameter.standard) standard = parameter.values[*parameter.standard];
    std::stable_sort(parameter.values.begin(), parameter.values.end(), less);
    if (standard)
      parameter.standard = std::size_t(std::find(parameter.values.begin(), parameter.values.end(), *standard) -
                                       parameter.values.begin());
  }

  void make_sketch() {
    std::vector<Sketch::Column> columns;
    for (const Tunable& parameter : parameters) {
      const bool integers = std::all_of(parameter.values.begin(), parameter.values.end(), [](const Scalar& value) {
        return std::holds_alternative<std::int64_t>(value);
      });
      is_plain_.push_back(integers && parameter.values.size() > few_values);
      Sketch::Column column{parameter.name, {}};
      std::vector<double>& coordinates = coordinates_.emplace_back();
      const bool numbers = std::all_of(parameter.values.begin(), parameter.values.end(), is_number);
      for (const Scalar& value : parameter.values) {
        if (!is_plain_.back()) column.alternatives.push_back(scalar_text(value));
        if (numbers) coordinates.push_back(coordinate(*scalar_number(value)));
      }
      columns.push_back(std::move(column));
    }
    sketch = std::make_shared<const Sketch>(Sketch::of_columns("parameters", columns));
  }

  // The constraints, and what follows from them for fewer parameters. That of one parameter leaves fewer of its values.
  void make_checks() {
    checks_ = constraints;
    for (const Constraint& constraint : constraints) {
      const bool integers = std::all_of(constraint.parameters().begin(), constraint.parameters().end(), [&](int p) {
        const std::vector<Scalar>& values = parameters[std::size_t(p)].values;
        return std::all_of(values.begin(), values.end(),
                           [](const Scalar& value) { return std::holds_alternative<std::int64_t>(value); });
      });
      for (Constraint& implied : constraint.implied(integers)) checks_.push_back(std::move(implied));
    }
    Rows rows(parameters.size(), 0);
    std::vector<const Scalar*> values = values_at(rows);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      std::vector<std::uint32_t>& allowed = allowed_.emplace_back();
      std::vector<const Constraint*> own;
      for (const Constraint& check : checks_)
        if (check.parameters() == std::vector<int>{int(p)}) own.push_back(&check);
      for (std::uint32_t row = 0; row < parameters[p].values.size(); ++row) {
        values[p] = &parameters[p].values[row];
        const bool is_allowed =
            std::all_of(own.begin(), own.end(), [&](const Constraint* check) { return check->holds(values); });
        if (is_allowed) allowed.push_back(row);
      }
    }
  }

  void make_groups() {
    std::vector<int> parent(parameters.size());
    std::iota(parent.begin(), parent.end(), 0);
    const std::function<int(int)> root = [&](int p) {
      while (parent[std::size_t(p)] != p) p = parent[std::size_t(p)] = parent[std::size_t(parent[std::size_t(p)])];
      return p;
    };
    for (const Constraint& constraint : checks_) {
      for (const int p : constraint.parameters()) parent[std::size_t(root(p))] = root(constraint.parameters().front());
    }
    std::vector<int> group(parameters.size(), -1);
    for (int p = 0; p < int(parameters.size()); ++p) {
      int& at = group[std::size_t(root(p))];
      if (at < 0) at = int(groups_.size()), groups_.emplace_back();
      groups_[std::size_t(at)].parameters.push_back(p);
    }
    for (int c = 0; c < int(checks_.size()); ++c)
      groups_[std::size_t(group[std::size_t(root(checks_[std::size_t(c)].parameters().front()))])]
          .constraints.push_back(c);
    for (Group& each : groups_) order(each);
  }

  // So that constraints are complete early: always the one next whose open parameters have the fewest combinations.
  void order(Group& group) const {
    std::vector<int> ordered;
    std::vector<bool> given(parameters.size(), false);
    std::vector<int> open = group.constraints;
    while (!open.empty()) {
      std::size_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < open.size(); ++i) {
        double combinations = 1;
        for (const int p : checks_[std::size_t(open[i])].parameters()) {
          if (!given[std::size_t(p)]) combinations *= double(all_of(p).size());
        }
        if (combinations < least) least = combinations, best = i;
      }
      for (const int p : checks_[std::size_t(open[best])].parameters()) {
        if (!given[std::size_t(p)]) given[std::size_t(p)] = true, ordered.push_back(p);
      }
      open.erase(open.begin() + std::ptrdiff_t(best));
    }
    if (!ordered.empty()) group.parameters = std::move(ordered);
  }

  std::vector<const Scalar*> values_at(const Rows& rows) const {
    std::vector<const Scalar*> values;
    for (std::size_t p = 0; p < rows.size(); ++p) values.push_back(&parameters[p].values[rows[p]]);
    return values;
  }

  bool meets(const Group& group, const Rows& rows) const {
    const std::vector<const Scalar*> values = values_at(rows);
    return std::all_of(group.constraints.begin(), group.constraints.end(),
                       [&](int c) { return checks_[std::size_t(c)].holds(values); });
  }

  // Depth first through the group's points: `ordered` are its parameters, `choices` the values to try of each, and
  // every constraint is looked at when the last of its parameters has a value. `found` returns whether to go on. False
  // if `budget`, of values looked at, was spent before the end.
  template <class Found>
  bool walk(const Group& group, const std::vector<int>& ordered, const std::vector<std::vector<std::uint32_t>>& choices,
            Rows& rows, std::int64_t& budget, Found found) const {
    std::vector<std::size_t> place(parameters.size(), 0);
    for (std::size_t i = 0; i < ordered.size(); ++i) place[std::size_t(ordered[i])] = i;
    std::vector<std::vector<int>> closing(ordered.size());
    for (const int c : group.constraints) {
      std::size_t last = 0;
      for (const int p : checks_[std::size_t(c)].parameters()) last = std::max(last, place[std::size_t(p)]);
      closing[last].push_back(c);
    }
    std::vector<const Scalar*> values = values_at(rows);
    std::vector<std::size_t> next(ordered.size(), 0);
    for (std::size_t level = 0;;) {
      if (next[level] == choices[level].size()) {
        if (level == 0) return true;
        next[level--] = 0;
        continue;
      }
      if (--budget < 0) return false;
      const auto p = std::size_t(ordered[level]);
      rows[p] = choices[level][next[level]++];
      values[p] = &parameters[p].values[rows[p]];
      const bool possible = std::all_of(closing[level].begin(), closing[level].end(), [&](int c) {
        budget -= checks_[std::size_t(c)].operations();
        return checks_[std::size_t(c)].holds(values);
      });
      if (!possible) continue;
      if (level + 1 < ordered.size()) {
        ++level;
      } else if (!found(rows)) {
        return true;
      }
    }
  }

  const std::vector<std::uint32_t>& all_of(int parameter) const { return allowed_[std::size_t(parameter)]; }

  void list_groups(std::string_view place) {
    std::int64_t budget = most_listing;
    std::size_t entries = 0;
    for (Group& group : groups_) {
      if (group.constraints.empty()) {
        group.count = std::int64_t(parameters[std::size_t(group.parameters.front())].values.size());
        continue;
      }
      std::vector<std::vector<std::uint32_t>> choices;
      for (const int p : group.parameters) choices.push_back(all_of(p));
      Rows rows(parameters.size(), 0);
      std::int64_t count = 0;
      bool keeps = true;
      const bool all = walk(group, group.parameters, choices, rows, budget, [&](const Rows& found) {
        ++count;
        keeps = keeps && entries + group.list.size() + group.parameters.size() <= most_entries;
        if (keeps) {
          for (const int p : group.parameters) group.list.push_back(std::uint32_t(found[std::size_t(p)]));
        }
        return true;
      });
      if (all) group.count = count;
      if (!all || !keeps) group.list = {};
      group.list.shrink_to_fit();
      entries += group.list.size();
      base::Stream stream(1, "first point");
      if ((all && count == 0) || (!all && !draw(group, rows, stream)))
        throw base::UserError(place, all ? "contradictory: no point meets " + texts(group) : not_found(group).text);
    }
  }

  std::string texts(const Group& group) const {
    std::vector<std::string> all;
    for (const int c : group.constraints)
      if (c < int(constraints.size())) all.push_back(constraints[std::size_t(c)].text());
    return base::shortened(base::join(all, "; "));
  }
  base::Reason not_found(const Group& group) const {
    return {fmt::format("no point was found that meets {}", texts(group))};
  }

  void put(const Group& group, std::int64_t row, Rows& rows) const {
    if (group.constraints.empty()) {
      rows[std::size_t(group.parameters.front())] = std::size_t(row);
      return;
    }
    const std::uint32_t* const from = group.list.data() + std::size_t(row) * group.parameters.size();
    for (std::size_t i = 0; i < group.parameters.size(); ++i) rows[std::size_t(group.parameters[i])] = from[i];
  }

  bool draw(const Group& group, Rows& rows, base::Stream& stream) const {
    if (group.constraints.empty() || !group.list.empty()) {
      put(group, stream.below(*group.count), rows);
      return true;
    }
    for (int attempt = 0; attempt < most_tries; ++attempt) {
      std::vector<std::vector<std::uint32_t>> choices;
      for (const int p : group.parameters) {
        choices.push_back(all_of(p));
        stream.shuffle(choices.back());
      }
      std::int64_t budget = most_search;
      bool any = false;
      walk(group, group.parameters, choices, rows, budget, [&](const Rows&) { return !(any = true); });
      if (any) return true;
    }
    return false;
  }

  double apart(int parameter, std::size_t a, std::size_t b) const {
    const std::vector<double>& coordinates = coordinates_[std::size_t(parameter)];
    return coordinates.empty() ? double(a != b) : std::abs(coordinates[a] - coordinates[b]);
  }

  // The group's parameters in random order, each connected with one before it, so that constraints are complete early;
  // `first` first, if it is one of them.
  std::vector<int> from_one(const Group& group, int first, base::Stream& stream) const {
    std::vector<int> constraints_left = group.constraints, ordered;
    stream.shuffle(constraints_left);
    std::vector<bool> taken(parameters.size(), false);
    const auto take = [&](int p) {
      if (!taken[std::size_t(p)]) taken[std::size_t(p)] = true, ordered.push_back(p);
    };
    const bool is_here = std::find(group.parameters.begin(), group.parameters.end(), first) != group.parameters.end();
    take(is_here ? first : group.parameters[std::size_t(stream.below(std::int64_t(group.parameters.size())))]);
    while (!constraints_left.empty()) {
      const auto next = std::find_if(constraints_left.begin(), constraints_left.end(), [&](int c) {
        const std::vector<int>& own = checks_[std::size_t(c)].parameters();
        return std::any_of(own.begin(), own.end(), [&](int p) { return taken[std::size_t(p)]; });
      });
      for (const int p : checks_[std::size_t(*next)].parameters()) take(p);
      constraints_left.erase(next);
    }
    return ordered;
  }

  bool nearest_in(const Group& group, const Rows& wanted, int kept, Rows& rows, base::Stream& stream) const {
    const std::size_t width = group.parameters.size();
    if (!group.list.empty() && group.list.size() / width <= most_compared) {
      std::size_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t at = 0; at < group.list.size(); at += width) {
        double distance = 0;
        for (std::size_t i = 0; i < width && distance < least; ++i) {
          const int p = group.parameters[i];
          const double own = apart(p, wanted[std::size_t(p)], group.list[at + i]);
          distance = p == kept && own > 0 ? std::numeric_limits<double>::infinity() : distance + own;
        }
        if (distance < least) least = distance, best = at;
      }
      if (!std::isfinite(least)) return false;
      put(group, std::int64_t(best / width), rows);
      return true;
    }
    for (int attempt = 0; attempt < most_tries_near; ++attempt) {
      const std::vector<int> ordered = from_one(group, kept, stream);
      std::vector<std::vector<std::uint32_t>> choices;
      for (const int p : ordered) {
        const std::size_t here = wanted[std::size_t(p)];
        if (p == kept) {
          choices.push_back({std::uint32_t(here)});
          continue;
        }
        std::vector<std::uint32_t>& own = choices.emplace_back(all_of(p));
        stream.shuffle(own);  // ties
        std::stable_sort(own.begin(), own.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return apart(p, here, a) < apart(p, here, b); });
      }
      std::int64_t budget = most_search;
      bool any = false;
      walk(group, ordered, choices, rows, budget, [&](const Rows&) { return !(any = true); });
      if (any) return true;
    }
    return false;
  }

  std::vector<bool> is_plain_;                    // by parameter: its argument is the value itself
  std::vector<std::vector<double>> coordinates_;  // by parameter and value; none for texts
  std::vector<Constraint> checks_;
  std::vector<std::vector<std::uint32_t>> allowed_;  // by parameter: values that checks of it alone leave
  std::vector<Group> groups_;
};

Scalar scalar_of(const base::Document& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_integer()) return value.as_integer();
  if (value.is_number()) {
    if (!std::isfinite(value.as_number())) throw base::UserError(value.place(), "expected a finite number");
    return value.as_number();
  }
  return value.as_string();
}

void ParameterSpace::check_counts(std::size_t parameters, std::size_t constraints, std::string_view place) {
  const auto refuse = [&](const std::string& what) { throw base::UserError(place, what); };
  if (parameters == 0) refuse("no parameter");
  if (parameters > most_parameters)
    refuse(fmt::format("{} parameters; at most {} are taken", parameters, most_parameters));
  if (constraints > most_constraints)
    refuse(fmt::format("{} constraints; at most {} are taken", constraints, most_constraints));
}

ParameterSpace::ParameterSpace(Workload workload, std::vector<Tunable> parameters, std::vector<Constraint> constraints,
                               std::string_view place)
    : resolved_(std::make_shared<const Resolved>(std::move(workload), std::move(parameters), std::move(constraints),
                                                 place)) {}
ParameterSpace::~ParameterSpace() = default;
ParameterSpace::ParameterSpace(ParameterSpace&&) noexcept = default;
ParameterSpace& ParameterSpace::operator=(ParameterSpace&&) noexcept = default;

const Workload& ParameterSpace::workload() const {
  return resolved_->workload;
}
const std::vector<Tunable>& ParameterSpace::parameters() const {
  return resolved_->parameters;
}
const std::vector<Constraint>& ParameterSpace::constraints() const {
  return resolved_->constraints;
}
const std::shared_ptr<const Sketch>& ParameterSpace::sketch() const {
  return resolved_->sketch;
}
std::optional<double> ParameterSpace::size() const {
  return resolved_->size();
}
double ParameterSpace::combinations() const {
  return resolved_->combinations();
}

std::vector<Domain> ParameterSpace::domains() const {
  std::vector<Domain> domains;
  for (std::size_t p = 0; p < parameters().size(); ++p) {
    Domain& domain = domains.emplace_back(Domain{parameters()[p].name, {int(p)}, {}});
    for (std::size_t row = 0; row < parameters()[p].values.size(); ++row)
      domain.values.push_back({resolved_->argument_at(p, row)});
  }
  return domains;
}

Space ParameterSpace::space(Judge& judge) const {
  SketchSpace part{resolved_->sketch, domains()};
  if (!constraints().empty()) part.resolver = resolved_;
  Space space(workload(), {std::move(part)});
  const std::optional<double> count = size();
  if (!count || *count > most_listed || !resolved_->is_listed()) return space;
  std::vector<Candidate> points;
  resolved_->for_each([&](const Rows& rows) {
    points.push_back({workload(), resolved_->sketch, resolved_->arguments_of(rows)});
  });
  return space.only(points, judge);
}

std::vector<Scalar> ParameterSpace::values_of(const Candidate& candidate) const {
  std::vector<Scalar> values;
  const std::optional<Rows> rows = resolved_->rows_of(candidate.arguments);
  if (!rows) throw base::UserError(base::shortened(workload().text()), "a point of another space");
  for (std::size_t p = 0; p < rows->size(); ++p) values.push_back(parameters()[p].values[(*rows)[p]]);
  return values;
}

base::Result<Candidate> ParameterSpace::point(const base::Document& values) const {
  Rows rows;
  std::vector<std::string_view> names;
  for (const Tunable& parameter : parameters()) names.push_back(parameter.name);
  values.only_keys(names);
  for (const Tunable& parameter : parameters()) {
    const base::Document& value = values.at(parameter.name);
    const std::string text = scalar_text(scalar_of(value));
    const auto found = std::find_if(parameter.values.begin(), parameter.values.end(),
                                    [&](const Scalar& each) { return scalar_text(each) == text; });
    if (found == parameter.values.end())
      throw base::UserError(value.place(),
                            fmt::format("{} is not a value of '{}'", base::shortened(text), parameter.name));
    rows.push_back(std::size_t(found - parameter.values.begin()));
  }
  std::vector<std::int64_t> arguments = resolved_->arguments_of(rows);
  if (const std::string what = resolved_->violated(arguments); !what.empty()) return base::Reason{"not met: " + what};
  return Candidate{workload(), resolved_->sketch, std::move(arguments)};
}

base::Document ParameterSpace::to_document(const Candidate& candidate) const {
  base::Document out = base::Document::map();
  const std::vector<Scalar> values = values_of(candidate);
  for (std::size_t p = 0; p < values.size(); ++p)
    std::visit([&](const auto& value) { out.set(parameters()[p].name, value); }, values[p]);
  return out;
}

Candidate ParameterSpace::standard() const {
  Rows rows;
  for (const Tunable& parameter : parameters()) rows.push_back(parameter.standard.value_or(0));
  base::Stream stream(1, "standard");
  if (!resolved_->nearest(rows, -1, stream)) return {workload(), resolved_->sketch, resolved_->sample(stream).value()};
  return {workload(), resolved_->sketch, resolved_->arguments_of(rows)};
}

std::string ParameterSpace::not_met_by_default() const {
  Rows rows;
  for (const Tunable& parameter : parameters()) {
    if (!parameter.standard) return "";
    rows.push_back(*parameter.standard);
  }
  return resolved_->violated(resolved_->arguments_of(rows));
}

std::optional<Candidate> ParameterSpace::same_point(const Candidate& other) const {
  if (!is_row_of_table(other)) return std::nullopt;
  Rows rows;
  for (std::size_t p = 0; p < parameters().size(); ++p) {
    const std::size_t count = parameters()[p].values.size();
    const int column = other.sketch->argument_named(resolved_->sketch->arguments[p].name);
    if (column < 0 && count > 1) return std::nullopt;
    std::size_t row = 0;
    if (column >= 0) {
      const std::string text = column_value(*other.sketch, std::size_t(column), other.arguments[std::size_t(column)]);
      while (row < count && column_value(*resolved_->sketch, p, resolved_->argument_at(p, row)) != text) ++row;
      if (row == count) return std::nullopt;
    }
    rows.push_back(row);
  }
  std::vector<std::int64_t> arguments = resolved_->arguments_of(rows);
  if (!resolved_->violated(arguments).empty()) return std::nullopt;
  return Candidate{workload(), resolved_->sketch, std::move(arguments)};
}

}  // namespace graft::codegen
