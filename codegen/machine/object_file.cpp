#include "codegen/machine/object_file.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/raw_ostream.h>

#include <cassert>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace graft::codegen {
namespace {

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

std::string hidden(std::string object) {
  auto parsed = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(object, "graft"));
  if (!parsed) throw base::Failure("no ELF file: " + llvm::toString(parsed.takeError()));
  const auto* const file = llvm::dyn_cast<llvm::object::ELF64LEObjectFile>(parsed->get());
  if (file == nullptr) throw base::Failure("no 64-bit little-endian ELF file");
  for (const llvm::object::ELFSymbolRef symbol : file->symbols()) {
    if (symbol.getBinding() != llvm::ELF::STB_GLOBAL || symbol.getFlags().get() & llvm::object::SymbolRef::SF_Undefined)
      continue;
    const auto* const entry = llvm::cantFail(file->getSymbol(symbol.getRawDataRefImpl()));
    const auto at = std::size_t(reinterpret_cast<const char*>(&entry->st_other) - object.data());
    object[at] = char((object[at] & ~3) | llvm::ELF::STV_HIDDEN);
  }
  return object;
}

std::string archive(const std::string& name, const std::string& object) {
  std::vector<llvm::NewArchiveMember> members;
  members.emplace_back(llvm::MemoryBufferRef(object, name));
  std::string bytes;
  bytes.reserve(object.size() + object.size() / 64 + 4096);
  llvm::raw_string_ostream stream(bytes);
  if (auto error = llvm::writeArchiveToStream(stream, members, llvm::SymtabWritingMode::NormalSymtab,
                                              llvm::object::Archive::K_GNU, true, false))
    throw base::Failure("archive: " + llvm::toString(std::move(error)));
  return bytes;
}

DataObject data_object(std::string_view like, const std::string& symbol, std::int64_t bytes) {
  static_assert(sizeof(llvm::ELF::Elf64_Ehdr) == 64);  // so that the data, which follow it, are aligned
  llvm::ELF::Elf64_Ehdr header;
  assert(like.size() >= sizeof header);
  std::memcpy(&header, like.data(), sizeof header);  // the machine and its flags, which are those of its ABI
  assert(header.e_ident[llvm::ELF::EI_CLASS] == llvm::ELF::ELFCLASS64 &&
         header.e_ident[llvm::ELF::EI_DATA] == llvm::ELF::ELFDATA2LSB);
  std::string names(1, '\0');
  const auto name = [&](std::string_view text) {
    const auto at = llvm::ELF::Elf64_Word(names.size());
    names.append(text).push_back('\0');
    return at;
  };
  enum { none, data, symbols, strings, stack, count };
  llvm::ELF::Elf64_Shdr sections[count] = {};
  sections[data].sh_name = name(".rodata");
  sections[data].sh_type = llvm::ELF::SHT_PROGBITS;
  sections[data].sh_flags = llvm::ELF::SHF_ALLOC;
  sections[data].sh_offset = sizeof header;
  sections[data].sh_size = llvm::ELF::Elf64_Xword(bytes);
  sections[data].sh_addralign = 64;
  llvm::ELF::Elf64_Sym table[2] = {};
  table[1].st_name = name(symbol);
  table[1].st_info = (llvm::ELF::STB_GLOBAL << 4) | llvm::ELF::STT_OBJECT;
  table[1].st_other = llvm::ELF::STV_HIDDEN;
  table[1].st_shndx = data;
  table[1].st_size = llvm::ELF::Elf64_Xword(bytes);
  DataObject object;
  const std::size_t begin = sizeof header + std::size_t(bytes);
  object.after.assign((8 - begin % 8) % 8, '\0');
  const auto place = [&] { return begin + object.after.size(); };
  sections[symbols].sh_name = name(".symtab");
  sections[symbols].sh_type = llvm::ELF::SHT_SYMTAB;
  sections[symbols].sh_offset = place();
  sections[symbols].sh_size = sizeof table;
  sections[symbols].sh_link = strings;
  sections[symbols].sh_info = 1;  // the first global one
  sections[symbols].sh_addralign = 8;
  sections[symbols].sh_entsize = sizeof table[0];
  object.after.append(bytes_of(table));
  sections[strings].sh_name = name(".strtab");
  sections[stack].sh_name = name(".note.GNU-stack");  // the stack is not executable
  sections[stack].sh_type = llvm::ELF::SHT_PROGBITS;
  sections[stack].sh_addralign = 1;
  names.resize((names.size() + 7) / 8 * 8);
  sections[strings].sh_type = llvm::ELF::SHT_STRTAB;
  sections[strings].sh_offset = sections[stack].sh_offset = place();
  sections[strings].sh_size = names.size();
  sections[strings].sh_addralign = 1;
  object.after.append(names);
  header.e_shoff = place();
  header.e_shnum = count;
  header.e_shstrndx = strings;
  object.after.append(bytes_of(sections));
  object.before = bytes_of(header);
  return object;
}

}  // namespace graft::codegen
