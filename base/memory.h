// How much memory is available, before it is requested: an early refusal instead of a kill by the kernel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace graft::base {

// Bytes that this process can take now: the least of what the kernel calls available, what the limits of its control
// groups (versions 1 and 2) leave, and what its own limit on address space leaves. The largest number if none of them
// says anything about it.
std::int64_t available_memory();

// The same from another root folder (that contains "/proc" and "/sys") and without the limit on address space: for
// tests.
std::int64_t available_memory(const std::filesystem::path& root);

// a + b and a * b, at most the largest number; a and b are not negative.
std::int64_t capped_sum(std::int64_t a, std::int64_t b);
std::int64_t capped_product(std::int64_t a, std::int64_t b);

// "512 MB", "3.2 GB", "4 TB": powers of 1000, rounded.
std::string bytes_text(std::int64_t bytes);

}  // namespace graft::base
