// Measures points of a space of parameters (codegen/space/parameter_space.h) by a command of the user's: started
// once for every repetition with the values in its arguments, or once for all, to answer one JSON line with another.
// What it does is its own; a configuration that crashes, hangs, leaves processes behind or prints without end costs one
// trial.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/space/parameter_space.h"
#include "tasks/device.h"
#include "tasks/measurer.h"

namespace graft::tasks {

// `{NAME}` in a word is replaced by the parameter's value, a word `{NAME:words}` by the words of the value (none for an
// empty one), `{dir}` by a folder that is empty for each configuration; other braces stay. Words are separated as in a
// shell, with quotes and backslashes, but no shell reads them.
struct Command {
  std::string run;
  std::string build = {};  // runs once before `run`; its failure is does_not_compile
  bool shell = false;      // both are texts for sh -c; values are quoted for it
  // `run` is started without values, and gets a line of JSON for each configuration:
  //   {"schema":1,"request":7,"configuration":{"tile":16,"unroll":true},"repetitions":3}
  // It answers with one: {"request":7,"seconds":[0.011,0.010]}, {"request":7,"seconds":0.01,"check":"4711"} or
  // {"request":7,"status":"unsupported","reason":"too many threads"} with a status of trials (datasets/trial.h). Lines
  // that do not begin with '{' are its own. With `maximize` or `minimize` "value" is in place of "seconds", and with
  // `also` "also":{"energy":0.35} has the others, in the units of these. In place of the request's number its
  // configuration may be repeated; where answers have neither, a second line for a request is noticed only if it comes
  // soon. What answers another request, or is a second line, is a Failure. One that ends, or does not answer in time,
  // is started again.
  bool persistent = false;
  // What it prints its time as (tasks/printed.h): "NAME" or "NAME:UNIT" for lines such as "NAME: 1.5 ms", "NAME = 1.5"
  // or {"NAME": [1.5, 1.6]}, each number a repetition; or "/REGEX/:UNIT" with the number as its first group, line by
  // line. On standard output, or else on standard error. "": wall time from start to end.
  std::string time = {};
  // In place of its time another measure, of which more or less is better, of any unit: the search's times are its
  // reciprocals, or its values, in base units.
  std::string maximize = {}, minimize = {};
  // Other measures that are kept with the times; with a bound, "energy:J<=5" or "accuracy>=0.9", a configuration beyond
  // it is not_allowed.
  std::vector<std::string> also = {};
  // What must be as for the default configuration: "NAME" for what follows it on its line, or with
  // "NAME:RELATIVE:ABSOLUTE" numbers within tolerances (tasks/compared.h); "*": all that it prints except lines with
  // its times.
  std::string check = {};
};

// A measure in place of the time, of a configuration with these "seconds" (`maximize`, `minimize`).
struct Goal {
  std::string name, unit;  // "": none is said in the command
  double value = 0;        // in this unit
  bool more_is_better = false;
};
// nullopt for a time.
std::optional<Goal> goal_of(const Command& command, double seconds);

// The source of its times.
inline constexpr const char* command_source = "command";

// A device whose programs are points of `space`, which must outlive its measurers; null where none is made, for a run
// that is over. Repetitions, timeout (of one configuration in total, wall time), memory limit and abort_factor are
// those of the settings. UserError for an unknown or missing placeholder, and for what is not a time, unit, tolerance
// or regular expression; `measure` throws Failure if the command cannot be started, or if the default fails where
// `check` needs it, which is measured first then, or prints what nothing can be compared with: NaN, nothing, or another
// thing in each of two runs.
std::shared_ptr<const Device> command_device(Command command = {}, const codegen::ParameterSpace* space = nullptr);

// `build` and `run` for a configuration, as a shell takes them, with DIR for the folder; for a persistent command its
// configuration as JSON.
std::string command_line(const Command& command, const codegen::ParameterSpace& space,
                         const codegen::Candidate& candidate);

}  // namespace graft::tasks
