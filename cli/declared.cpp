#include "cli/declared.h"

#include <fmt/format.h>

#include <functional>

#include "base/text.h"
#include "cli/common_flags.h"

namespace graft::cli {
namespace {

class Recorder final : public Options {
 public:
  void flag(const std::string& name, bool& value, const std::string& help) override {
    add({name, Declared::flag, help, value ? "true" : ""});
  }
  void integer(const std::string& name, std::int64_t& value, std::int64_t, const std::string& help) override {
    add({name, Declared::integer, help, std::to_string(value)});
  }
  void number(const std::string& name, double& value, double, const std::string& help) override {
    add({name, Declared::number, help, fmt::format("{}", value)});
  }
  void text(const std::string& name, std::string& value, const std::string& help, Need need) override {
    add({name, Declared::text, help, value, need == required});
  }
  void list(const std::string& name, std::vector<std::string>& value, const std::string& help, Need need) override {
    add({name, Declared::list, help, base::join(value, ","), need == required});
  }
  void text(const std::string& name, const std::string& standard, std::function<void(const std::string&)>,
            const std::string& help) override {
    add({name, Declared::text, help, standard});
  }
  void texts(const std::string& name, std::function<void(const std::vector<std::string>&)>,
             const std::string& help) override {
    add({name, Declared::text, help});
  }
  void list(const std::string& name, const std::string& standard, std::function<void(const std::vector<std::string>&)>,
            const std::string& help) override {
    add({name, Declared::list, help, standard});
  }
  void positional(const std::string& name, std::string&, const std::string& help, Need need) override {
    add({name, Declared::positional, help, "", need == required});
  }
  void positionals(const std::string& name, std::vector<std::string>&, const std::string& help, Need need) override {
    add({name, Declared::positionals, help, "", need == required});
  }

  std::vector<Declared> taken() { return std::move(all_); }

 private:
  void add(Declared entry) { all_.push_back(std::move(entry)); }
  std::vector<Declared> all_;
};

}  // namespace

std::vector<Declared> declared(const Command& command) {
  Recorder recorder;
  // The action owns the variables that the flags are bound to.
  const Action action = command.declare(recorder);
  return recorder.taken();
}

std::vector<Declared> common_flags() {
  Recorder recorder;
  CommonFlags common;
  common.declare(recorder);
  common.declare_threads(recorder);
  std::vector<Declared> all = recorder.taken();
  all.back().standard.clear();  // of --threads: it is this machine's
  all.push_back({"help", Declared::flag, "print the command's flags, their defaults and examples"});
  return all;
}

}  // namespace graft::cli
