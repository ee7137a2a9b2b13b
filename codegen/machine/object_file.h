// Private to this folder: relocatable objects and archives as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace graft::codegen {

// An object whose symbols no other part of a program sees but the library itself.
std::string hidden(std::string object);

// An archive with one member.
std::string archive(const std::string& name, const std::string& object);

// A relocatable object without its only content: read-only data of `bytes` bytes between the two parts, aligned to 64
// bytes, as the hidden symbol `symbol`. Weights of networks are too large for the copies that LLVM's streamers
// make. `like`: an object for the same target.
struct DataObject {
  std::string before, after;
};
DataObject data_object(std::string_view like, const std::string& symbol, std::int64_t bytes);

}  // namespace graft::codegen
