// A setting of a request, said once: its key, where the request holds it, its default and range, whether it decides the
// result, and its help. The tables study/inputs/settings/*.def declare the fields of requests with all of that, and
// these read them: flags of the program, keys of experiments, settings of graft.h and of Python by key, checks, the
// identity of runs, and the reference page.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/document.h"

namespace graft::study {

// An enumerator as its name. `set` throws UserError for an unknown name.
struct Named {
  std::function<std::string()> get;
  std::function<void(const std::string& name)> set;
};

// Whether a setting is part of a run's identity: then a run is continued with an equal value only.
enum class Decides {
  nothing,
  result,
  unless_usual,  // the default is left out, so that runs from before the setting existed continue
  by_content,    // the same; the value is a file, and its hash is stored
  in_own_form    // the request's identity puts it itself
};

// Where a setting is offered to users; in C++ each is a field.
enum Offered : unsigned {
  as_flag = 1,         // of the program, with its name of dashes
  in_experiments = 2,  // key of a method of experiment.yaml
  in_calls = 4,        // by key in graft.h, and as an argument in Python
  everywhere = as_flag | in_experiments | in_calls
};

// What a table says of a setting besides its field and default.
struct About {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  Decides decides = Decides::nothing;
  unsigned offered = everywhere;
  std::string flag = {};     // without dashes; "": the key
  std::string keyword = {};  // in calls; "": the key
  double unit = 1;           // of the keyword's value, in that of the field
  bool repeats = false;      // of texts: the flag is given for each, which may have commas
  std::string help = {};
};

struct Setting : About {
  using Place = std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*, std::filesystem::path*,
                             std::vector<std::string>*, std::vector<std::int64_t>*, std::vector<std::filesystem::path>*,
                             std::map<std::string, std::vector<std::int64_t>>*,
                             std::map<std::string, std::vector<double>>*, Named>;
  std::string key;       // of errors and experiments
  Place place;           // in the request, which must outlive this
  base::Document usual;  // the default

  bool is(Offered where) const { return (offered & where) != 0; }
  std::string flag_name() const;     // "stop-after"
  std::string keyword_name() const;  // "stop_after"
  bool is_path() const { return std::holds_alternative<std::filesystem::path*>(place); }
  base::Document value() const;
  bool is_usual() const { return value() == usual; }
  // UserError at the value's place, or FieldError (naming the key) if it has none: for another type, and beyond the
  // range.
  void set(const base::Document& value) const;
  // The same in the keyword's unit; errors name the keyword.
  void set_by_keyword(const base::Document& value) const;
  base::Document usual_by_keyword() const;
  void check() const;  // FieldError for a value beyond the range

 private:
  std::optional<std::string> fault(const base::Document& value, double in_unit) const;
  void take(const base::Document& value) const;  // UserError for another type
};
using Settings = std::vector<Setting>;

// null if there is none.
const Setting* setting_of(const Settings& settings, std::string_view key);
// FieldError for the first value beyond its range.
void check(const Settings& settings);
// Adds those that decide the result to a request's identity. Lists are words separated by commas.
void put_deciding(const Settings& settings, base::Document& identity);

// The names of an enumeration's values: name(value), and named(name), a UserError for an unknown one. Of another type,
// those of the values that a setting can have.
template <class Value>
struct NamesOf;

template <class Value>
Setting::Place place_of(Value& value) {
  if constexpr (requires { NamesOf<Value>::name(value); }) {
    return Named{[&value] { return std::string(NamesOf<Value>::name(value)); },
                 [&value](const std::string& name) { value = NamesOf<Value>::named(name); }};
  } else {
    return &value;
  }
}

// `usual`: the default of the same type.
template <class Value>
Setting make_setting(std::string key, Value& value, Value usual, About about) {
  Setting setting{std::move(about), std::move(key), place_of(usual), {}};
  setting.usual = setting.value();
  setting.place = place_of(value);
  return setting;
}

}  // namespace graft::study

// How requests declare the fields of their tables; settings.cpp makes Settings of the same.
#define GRAFT_SETTING(type, field, standard, ...) type field = standard;
#define GRAFT_PART(type, field, standard) type field = standard;
