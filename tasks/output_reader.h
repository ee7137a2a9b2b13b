// What a run of a command of the user's prints, by what the command's flags look for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "tasks/command.h"
#include "tasks/compared.h"
#include "tasks/printed.h"

namespace graft::tasks {

// What is compared with the default configuration's output: "NAME", "NAME:RELATIVE:ABSOLUTE", or "*" in place of NAME.
struct Check {
  std::optional<PrintedName> name = {};  // nullopt: all but the lines with measures
  std::optional<Tolerance> tolerance = {};
  std::string text = {};  // for messages
};

class OutputReader {
 public:
  explicit OutputReader(const Command& command);  // UserError

  bool has_goal() const { return goal_.has_value(); }  // otherwise the wall time is it
  bool keeps_more() const { return !also_.empty(); }
  const std::optional<Check>& check() const { return check_; }

  struct Read {
    std::vector<double> seconds = {};       // of a measure of which more is better: its reciprocals
    std::vector<double> also = {};          // one value of each
    std::string problem = {};               // why there are none
    std::string note = {};                  // which of several numbers was read
    std::vector<std::string> checked = {};  // what is compared
  };
  // From standard output, or, for what that has not, from standard error. A measure must have the quantity that it had
  // in the runs before.
  Read read(std::string_view out, std::string_view err, double wall_seconds);

  // What an answer says in place of printing it, in the units of the command: the search's "seconds" for a value of its
  // goal, and the other measures by name. UserError for one that is missing.
  double seconds_for(double value) const;
  std::vector<std::pair<std::string, double>> also_in(const base::Document& answer) const;

  // The other measures of several runs.
  std::vector<std::pair<std::string, double>> medians(const std::vector<std::vector<double>>& runs) const;
  // Which of them is beyond its bound, "energy is 6 J, above 5"; "": none.
  std::string beyond_bounds(const std::vector<std::pair<std::string, double>>& also) const;

 private:
  struct Measure {
    PrintedMeasure printed;
    std::optional<std::string> quantity = {};  // that it had
    char bound_sign = 0;                       // '<' or '>'; 0: no bound
    double bound = 0;
    std::string bound_text = {};
  };
  struct Lines {
    std::vector<PrintedLine> out, err;
    std::vector<PrintedPart> measured_out, measured_err;
  };
  static Measure bounded(const std::string& text);
  std::vector<double> values(Measure& measure, Lines& lines, Read& read) const;
  std::vector<std::string> checked_in(const std::vector<PrintedLine>& lines,
                                      const std::vector<PrintedPart>& measured) const;

  std::optional<Measure> goal_;
  bool is_time_ = true, more_is_better_ = false, by_name_ = true;
  std::vector<Measure> also_;
  std::optional<Check> check_;
};

}  // namespace graft::tasks
