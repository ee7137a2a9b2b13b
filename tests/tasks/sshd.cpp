#include "tests/tasks/sshd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"

namespace graft::tasks::test {
namespace {

constexpr const char* program = "/usr/sbin/sshd";

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

std::string user() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? "root" : entry->pw_name;
}

// The parent of a process, 0 if it is gone.
int parent_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(text.substr(name_end + 2));
  std::string state;
  int parent = 0;
  rest >> state >> parent;
  return parent;
}

}  // namespace

Sshd::Sshd(const std::string& more_configuration) {
  if (!std::filesystem::exists(program)) {
    why_not_ = "there is no /usr/sbin/sshd; install openssh-server";
    return;
  }
  if (::getuid() == 0) std::filesystem::create_directories("/run/sshd");
  port_ = free_port();
  for (const char* key : {"host", "user"})
    base::run_process({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", (folder_ / key).string()},
                      std::chrono::seconds(20));
  base::replace_file(
      folder_ / "sshd_config",
      fmt::format("Port {}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n"
                  "UsePAM no\nPidFile none\nPasswordAuthentication no\nPermitRootLogin yes\n"
                  "MaxStartups 100\n{}",
                  port_, (folder_ / "host").string(), (folder_ / "user.pub").string(), more_configuration));
  base::replace_file(config(), host_entry("board"));
  std::filesystem::create_directories(folder_ / "tmp");
  start();
  const base::Finished hello = base::run_process({"ssh", "-o", "BatchMode=yes", "-F", config(), "board", "echo hello"},
                                                 std::chrono::seconds(20));
  if (hello.out != "hello\n" && more_configuration.empty())
    why_not_ = "an sshd of our own does not let us in: " + hello.err;
}

Sshd::~Sshd() {
  stop();
}

std::string Sshd::config() const {
  return (folder_ / "ssh_config").string();
}

std::string Sshd::host_entry(const std::string& name) const {
  return fmt::format(
      "Host {}\n  HostName 127.0.0.1\n  Port {}\n  User {}\n  IdentityFile {}\n  IdentitiesOnly yes\n"
      "  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n  LogLevel ERROR\n",
      name, port_, user(), (folder_ / "user").string());
}

void Sshd::start() {
  process_ = ::fork();
  if (process_ == 0) {
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int stream : {0, 1, 2}) ::dup2(nothing, stream);
    const std::string configuration = (folder_ / "sshd_config").string();
    ::execl(program, program, "-D", "-f", configuration.c_str(), nullptr);
    ::_exit(127);
  }
  for (int tries = 0; tries < 100; ++tries) {  // until it listens
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(std::uint16_t(port_));
    const bool listens = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (listens) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::vector<int> Sshd::children() const {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos && parent_of(name) == process_)
      found.push_back(std::stoi(name));
  }
  return found;
}

void Sshd::cut() {
  for (const int child : children()) ::kill(child, SIGKILL);
}

void Sshd::stop() {
  if (process_ <= 0) return;
  const std::vector<int> connections = children();
  ::kill(process_, SIGKILL);
  for (const int child : connections) ::kill(child, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

std::vector<std::string> Sshd::leftovers() const {
  std::vector<std::string> names;
  for (int tries = 0; tries < 40; ++tries) {  // the shell there may need a moment
    names.clear();
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "tmp"))
      names.push_back(entry.path().string());
    if (names.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return names;
}

}  // namespace graft::tasks::test
