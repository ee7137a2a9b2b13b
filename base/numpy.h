// Arrays that NumPy wrote with numpy.savez or numpy.savez_compressed (".npz": a ZIP archive of ".npy" files).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace graft::base {

struct NumpyArray {
  std::vector<std::int64_t> shape;  // empty: a number
  std::vector<double> values;       // row-major, whatever order the file has
  // The same numbers of a file of integers, exactly: double precision is not beyond 2^53. uint64 is modulo 2^64.
  std::vector<std::int64_t> integers = {};
};

// One ".npy" file, formats 1.0 to 3.0: booleans, integers of up to 64 bits, floats of 16, 32 and 64 bits, either byte
// order. UserError naming `place` for anything else, and for a file that is shorter or longer than it says.
NumpyArray parse_npy(std::string_view bytes, std::string_view place);

// A ".npy" file of format 1.0: `type` as NumPy writes it ("<f4"), `bytes` row-major.
std::string npy_of(const std::vector<std::int64_t>& shape, std::string_view type, std::string_view bytes);

// All arrays of a ".npz" file by name, without ".npy". UserError "<file>: ..." if it is not such a file, and for arrays
// of more than `most_bytes` in all.
std::map<std::string, NumpyArray> read_npz(const std::filesystem::path& path, std::int64_t most_bytes = std::int64_t(1)
                                                                                                        << 32);

}  // namespace graft::base
