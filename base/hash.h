// 64-bit hashes that are equal on every machine and in every release: identities of workloads, programs, encodings.
// Not cryptographic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace graft::base {

// FNV-1a over the bytes, finished with splitmix64's mixer.
std::uint64_t hash_bytes(std::string_view bytes);

// Order-dependent combination of two hashes.
std::uint64_t hash_combine(std::uint64_t first, std::uint64_t second);

// splitmix64's finaliser: a bijection of 64-bit numbers.
std::uint64_t hash_mix(std::uint64_t value);

// 16 lower-case hex digits, and back (throws UserError naming the text if it is not 16 hex digits).
std::string to_hex(std::uint64_t hash);
std::uint64_t from_hex(std::string_view text);

}  // namespace graft::base
