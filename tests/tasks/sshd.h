// A board that is this machine: a separate sshd on a port of the loopback, with keys made for it.
#pragma once

#include <string>
#include <vector>

#include "tests/base/support.h"

namespace graft::tasks::test {

class Sshd {
 public:
  explicit Sshd(const std::string& more_configuration = "");
  ~Sshd();
  Sshd(const Sshd&) = delete;
  Sshd& operator=(const Sshd&) = delete;

  bool works() const { return why_not_.empty(); }
  const std::string& why_not() const { return why_not_; }
  std::string config() const;                                        // for ssh -F; the host is called "board"
  std::string folder() const { return (folder_ / "tmp").string(); }  // for executables
  std::string host_entry(const std::string& name) const;             // of such a file
  void start();
  void stop();  // it, and all connections
  bool is_connected() const { return !children().empty(); }
  void cut();                                  // the connections only
  std::vector<std::string> leftovers() const;  // files of graft on the "board"

 private:
  std::vector<int> children() const;  // of connections, by process number

  base::Folder folder_;
  std::string why_not_;
  int port_ = 0, process_ = -1;
};

}  // namespace graft::tasks::test
