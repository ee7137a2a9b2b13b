#include "meta/networks/packed_trees.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "meta/networks/numbers.h"

namespace graft::meta {
namespace {

// Hashes of each row's bytes; equal rows have equal hashes, and collisions are cheap (they are checked).
template <class T>
void hash_rows(std::span<const T> x, std::int64_t rows, std::int64_t columns, std::uint64_t* hashes) {
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr std::int64_t lanes = 16;  // side by side, so that the loops below are vectors
  constexpr Word odd = Word(0x9e3779b97f4a7c15ull);
  with_wide_vectors([&]() GRAFT_INLINED {
    for (std::int64_t r = 0; r < rows; ++r) {
      Word lane[lanes] = {};
      for (std::int64_t j = 0; j < columns; j += lanes) {
        Word words[lanes] = {};
        std::memcpy(words, x.data() + r * columns + j, sizeof(T) * std::size_t(std::min(lanes, columns - j)));
        for (std::int64_t l = 0; l < lanes; ++l) {
          const Word mixed = (lane[l] ^ words[l]) * odd;
          lane[l] = mixed ^ (mixed >> (sizeof(Word) * 4 - 1));
        }
      }
      std::uint64_t hash = 0;
      for (std::int64_t l = 0; l < lanes; ++l)
        hash += (std::uint64_t(lane[l]) + std::uint64_t(l + 1)) * (0xbf58476d1ce4e5b9ull + 2 * std::uint64_t(l * l));
      hashes[r] = hash ^ (hash >> 29);
    }
  });
}

}  // namespace

template <class T>
PackedTrees pack(const Inputs<T>& programs, std::int64_t columns, bool share_equal) {
  const std::int64_t rows = programs.rows();
  assert(std::int64_t(programs.parents.size()) == rows);
  // Children of the rows, offset by program: parents are in front of their children, so a count and one pass suffice.
  std::vector<std::int64_t> begins(std::size_t(rows) + 1, 0);
  std::vector<std::int32_t> below(static_cast<std::size_t>(rows));
  std::vector<std::int64_t> parent(static_cast<std::size_t>(rows));
  for (std::int64_t p = 0; p < programs.programs(); ++p) {
    const std::int64_t first = programs.begins[p];
    for (std::int64_t r = first; r < programs.begins[p + 1]; ++r) {
      const std::int32_t up = programs.parents[r];
      assert(up < r - first);
      parent[r] = up < 0 ? -1 : first + up;
      if (up >= 0) ++begins[parent[r] + 1];
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) begins[r + 1] += begins[r];
  std::vector<std::int64_t> next(begins.begin(), begins.end() - 1);
  for (std::int64_t r = 0; r < rows; ++r) {
    if (parent[r] >= 0) below[next[parent[r]]++] = std::int32_t(r);
  }

  // From the leaves up: the row that represents this one, and its height. `same` maps rows to the first of their
  // equals.
  std::vector<std::int32_t> same(static_cast<std::size_t>(rows)), height(std::size_t(rows), 0);
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(rows));
  std::vector<std::int32_t> table;
  std::size_t mask = 0;
  if (share_equal) {
    hash_rows(programs.x, rows, columns, hashes.data());
    table.assign(std::bit_ceil(std::size_t(rows) * 2 + 1), -1);
    mask = table.size() - 1;
  }
  const auto equal = [&](std::int64_t a, std::int64_t b) {
    const std::int64_t count = begins[a + 1] - begins[a];
    if (count != begins[b + 1] - begins[b]) return false;
    for (std::int64_t i = 0; i < count; ++i) {
      if (same[below[begins[a] + i]] != same[below[begins[b] + i]]) return false;
    }
    return std::memcmp(programs.x.data() + a * columns, programs.x.data() + b * columns,
                       sizeof(T) * std::size_t(columns)) == 0;
  };
  std::vector<std::int64_t> counts;
  for (std::int64_t r = rows; r-- > 0;) {
    std::uint64_t hash = hashes[r];
    for (std::int64_t i = begins[r]; i < begins[r + 1]; ++i) {
      height[r] = std::max(height[r], height[below[i]] + 1);
      hash = std::rotl((hash ^ std::uint64_t(same[below[i]] + 1)) * 0x94d049bb133111ebull, 27);
    }
    same[r] = std::int32_t(r);
    if (share_equal) {
      hash ^= hash >> 32;
      std::size_t slot = std::size_t(hash) & mask;
      while (table[slot] >= 0 && !(hashes[table[slot]] == hash && equal(r, table[slot]))) slot = (slot + 1) & mask;
      if (table[slot] >= 0) {
        same[r] = table[slot];
        continue;
      }
      table[slot] = std::int32_t(r);
      hashes[r] = hash;  // from here on including its children
    }
    counts.resize(std::max(counts.size(), std::size_t(height[r]) + 1));
    ++counts[height[r]];
  }

  PackedTrees packed;
  packed.levels.assign(counts.size() + 1, 0);
  for (std::size_t h = 0; h < counts.size(); ++h) packed.levels[h + 1] = packed.levels[h] + counts[h];
  packed.rows.resize(std::size_t(packed.levels.back()));
  packed.node_of_row.resize(std::size_t(rows));
  std::vector<std::int64_t> place(packed.levels.begin(), packed.levels.end());
  for (std::int64_t r = 0; r < rows; ++r) {
    if (same[r] != r) continue;
    const std::int64_t node = place[height[r]]++;
    packed.rows[node] = r;
    packed.node_of_row[r] = std::int32_t(node);
  }
  for (std::int64_t r = 0; r < rows; ++r) packed.node_of_row[r] = packed.node_of_row[same[r]];
  packed.child_begins.reserve(packed.rows.size() + 1);
  packed.child_begins.push_back(0);
  for (const std::int64_t r : packed.rows) {
    for (std::int64_t i = begins[r]; i < begins[r + 1]; ++i) packed.children.push_back(packed.node_of_row[below[i]]);
    packed.child_begins.push_back(std::int64_t(packed.children.size()));
  }
  return packed;
}
template PackedTrees pack(const Inputs<float>&, std::int64_t, bool);
template PackedTrees pack(const Inputs<double>&, std::int64_t, bool);

}  // namespace graft::meta
