#include "codegen/machine/link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/raw_ostream.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "base/files.h"
#include "base/one_line.h"
#include "base/temporary_folder.h"
#include "base/text.h"
#include "codegen/machine/backend.h"
#include "codegen/machine/fatal.h"
#include "codegen/machine/harness.h"

LLD_HAS_DRIVER(elf)

// Symbols of a link that lld (19.1) keeps in globals and clears nowhere: after a link for POWER or RISC-V the next one
// for another machine would write through dangling pointers. Its header that declares them is not installed.
namespace lld::elf {
class Defined;
struct ElfSym {
  static Defined *globalOffsetTable, *relaIpltStart, *relaIpltEnd, *riscvGlobalPointer, *tlsModuleBase;
};
}  // namespace lld::elf

namespace graft::codegen {
namespace {

// A file in memory only, which lld can open by its path.
class MemoryFile {
 public:
  explicit MemoryFile(const Pieces& content) : descriptor_(memfd_create("graft", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw base::Failure(fmt::format("cannot make a file in memory: {}", std::strerror(errno)));
    for (std::string_view piece : content.all()) {
      while (!piece.empty()) {
        const ssize_t written = ::write(descriptor_, piece.data(), piece.size());
        if (written < 0) {
          const int error = errno;
          close(descriptor_);
          throw base::Failure(fmt::format("cannot write a file in memory: {}", std::strerror(error)));
        }
        piece.remove_prefix(std::size_t(written));
      }
    }
  }
  MemoryFile(MemoryFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

// What a program does at signals. lld has files removed that it is writing, by handlers that stay, and by an alternate
// stack, which LLVM does not make if there is a large one.
class SignalsKept {
 public:
  SignalsKept() {
    stack_t ours{};
    ours.ss_sp = stack_.get(), ours.ss_size = stack_bytes;
    has_stack_ = sigaltstack(&ours, &before_) == 0;
    for (std::size_t s = 1; s < actions_.size(); ++s) known_[s] = sigaction(int(s), nullptr, &actions_[s]) == 0;
  }
  SignalsKept(const SignalsKept&) = delete;
  SignalsKept& operator=(const SignalsKept&) = delete;
  ~SignalsKept() {
    for (std::size_t s = 1; s < actions_.size(); ++s)
      if (known_[s]) sigaction(int(s), &actions_[s], nullptr);
    if (has_stack_) sigaltstack(&before_, nullptr);
  }

 private:
  static constexpr std::size_t stack_bytes = 256 << 10;
  const std::unique_ptr<char[]> stack_ = std::make_unique_for_overwrite<char[]>(stack_bytes);
  std::array<struct sigaction, NSIG> actions_;
  std::array<bool, NSIG> known_ = {};
  stack_t before_{};
  bool has_stack_ = false;
};

std::string content_of(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status) != 0) {
    if (descriptor >= 0) close(descriptor);
    throw base::Failure(fmt::format("cannot read what the linker wrote: {}", std::strerror(errno)));
  }
  std::string bytes(std::size_t(status.st_size), '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = ::read(descriptor, bytes.data() + got, bytes.size() - got);
    if (n <= 0) break;
    got += std::size_t(n);
  }
  close(descriptor);
  if (got < bytes.size()) throw base::Failure("cannot read what the linker wrote: it is cut short");
  return bytes;
}

// lld keeps its state in globals: one link at a time. After a crash inside it (canRunAgain is false) it must not be
// called again in this process.
base::Result<std::string> link(const std::vector<Pieces>& objects, std::vector<std::string> options) {
  static std::mutex one_at_a_time;
  static bool usable = true;
  std::vector<MemoryFile> files;
  for (const Pieces& object : objects) files.emplace_back(object);
  // For what lld writes to a temporary file and renames.
  const base::TemporaryFolder folder("link", base::TemporaryFolder::Where::memory);
  const std::string output = folder / "out";
  std::vector<std::string> words = {"ld.lld", "--threads=1", "--build-id=none", "-z", "norelro", "-o", output};
  words.insert(words.end(), options.begin(), options.end());
  for (const MemoryFile& file : files) words.push_back(file.path());
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::string messages;
  initialise_llvm();
  {
    const std::lock_guard guard(one_at_a_time);
    if (!usable) throw base::Failure("the linker crashed earlier in this process and cannot be used again");
    llvm::raw_string_ostream stream(messages);
    using lld::elf::ElfSym;
    for (lld::elf::Defined** const stale : {&ElfSym::globalOffsetTable, &ElfSym::relaIpltStart, &ElfSym::relaIpltEnd,
                                            &ElfSym::riscvGlobalPointer, &ElfSym::tlsModuleBase})
      *stale = nullptr;
    const SignalsKept signals;
    lld::Result result{1, false};
    const auto said = last_words([&] {
      result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
    });
    usable = result.canRunAgain;
    if (said) throw base::Failure(fmt::format("link: LLVM {} gave up: {}", LLVM_VERSION_STRING, *said));
    if (result.retCode != 0) return base::Reason{fmt::format("link: {}", base::one_line(messages))};
  }
  files.clear();  // large data would be held once more
  return content_of(output);
}

std::vector<Pieces> pieces_of(const std::vector<const Code*>& objects) {
  assert(!objects.empty());
  std::vector<Pieces> all;
  for (const Code* object : objects) {
    assert(object->form == CodeForm::object_file);
    all.emplace_back(object->bytes);
  }
  return all;
}

}  // namespace

base::Result<std::string> link_shared(const std::vector<const Code*>& objects) {
  return link_shared_pieces(pieces_of(objects));
}

base::Result<std::string> link_shared_pieces(const std::vector<Pieces>& objects) {
  return link(objects, {"-shared", "--hash-style=gnu"});
}

base::Result<std::string> link_executable(const std::vector<const Code*>& objects, const Target& target,
                                          const Computation& computation, const Reference& reference,
                                          const RunSettings& settings) {
  const auto operands = [&] { return operands_of(objects, computation, reference); };
  auto around = guarded(target, [&] { return harness(objects, target, operands, settings); });
  if (!around) return around.reason();
  std::vector<Pieces> all = pieces_of(objects);
  all.emplace_back(*around);
  return link_program(all);
}

base::Result<std::string> link_program(const std::vector<Pieces>& objects) {
  // Without relaxation nothing is addressed by the global pointer.
  return link(objects, {"-static", "--no-relax", "-e", "_start"});
}

base::Result<std::string> link_relocatable(const std::vector<Pieces>& objects) {
  return link(objects, {"-r"});
}

std::map<std::string, Symbol> symbols_of(const std::string& elf) {
  auto parsed = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(elf, "elf"));
  if (!parsed) throw base::Failure("no ELF file: " + llvm::toString(parsed.takeError()));
  std::map<std::string, Symbol> found;
  for (const llvm::object::ELFSymbolRef symbol : llvm::cast<llvm::object::ELFObjectFileBase>(**parsed).symbols()) {
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    llvm::Expected<std::uint64_t> address = symbol.getAddress();
    if (name && address && !name->empty()) found[name->str()] = {*address, symbol.getSize()};
    if (!name) llvm::consumeError(name.takeError());
    if (!address) llvm::consumeError(address.takeError());
  }
  return found;
}

}  // namespace graft::codegen
