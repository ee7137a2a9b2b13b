#include "meta/networks/packed_trees.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <span>

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

// The children of every row, offset by program.
struct Children {
  std::vector<std::int64_t> begins;  // by row, and the end
  std::vector<std::int32_t> rows;

  std::span<const std::int32_t> of(std::int64_t row) const {
    return {rows.data() + begins[row], std::size_t(begins[row + 1] - begins[row])};
  }
};

// Parents are in front of their children, so a count and one pass suffice.
template <class T>
Children children_of(const Inputs<T>& programs) {
  const std::int64_t rows = programs.rows();
  Children out{std::vector<std::int64_t>(std::size_t(rows) + 1, 0), std::vector<std::int32_t>(std::size_t(rows))};
  std::vector<std::int64_t> parent(static_cast<std::size_t>(rows));
  for (std::int64_t p = 0; p < programs.programs(); ++p) {
    const std::int64_t first = programs.begins[p];
    for (std::int64_t r = first; r < programs.begins[p + 1]; ++r) {
      const std::int32_t up = programs.parents[r];
      assert(up < r - first);
      parent[r] = up < 0 ? -1 : first + up;
      if (up >= 0) ++out.begins[parent[r] + 1];
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) out.begins[r + 1] += out.begins[r];
  std::vector<std::int64_t> next(out.begins.begin(), out.begins.end() - 1);
  for (std::int64_t r = 0; r < rows; ++r) {
    if (parent[r] >= 0) out.rows[next[parent[r]]++] = std::int32_t(r);
  }
  return out;
}

// The row that represents each (the first met of its equals, or itself), and the heights of those.
struct Representatives {
  std::vector<std::int32_t> same, height;
  std::vector<std::int64_t> counts;  // of representatives, by height
};

// From the leaves up.
template <class T>
Representatives representatives_of(const Inputs<T>& programs, std::int64_t columns, const Children& children,
                                   bool share_equal) {
  const std::int64_t rows = programs.rows();
  Representatives out{
      std::vector<std::int32_t>(std::size_t(rows)), std::vector<std::int32_t>(std::size_t(rows), 0), {}};
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(rows));
  std::vector<std::int32_t> table;
  std::size_t mask = 0;
  if (share_equal) {
    hash_rows(programs.x, rows, columns, hashes.data());
    table.assign(std::bit_ceil(std::size_t(rows) * 2 + 1), -1);
    mask = table.size() - 1;
  }
  const auto equal = [&](std::int64_t a, std::int64_t b) {
    const std::span<const std::int32_t> below_a = children.of(a), below_b = children.of(b);
    return std::equal(below_a.begin(), below_a.end(), below_b.begin(), below_b.end(),
                      [&](std::int32_t x, std::int32_t y) { return out.same[x] == out.same[y]; }) &&
           std::memcmp(programs.x.data() + a * columns, programs.x.data() + b * columns,
                       sizeof(T) * std::size_t(columns)) == 0;
  };
  for (std::int64_t r = rows; r-- > 0;) {
    std::uint64_t hash = hashes[r];
    for (const std::int32_t child : children.of(r)) {
      out.height[r] = std::max(out.height[r], out.height[child] + 1);
      hash = std::rotl((hash ^ std::uint64_t(out.same[child] + 1)) * 0x94d049bb133111ebull, 27);
    }
    out.same[r] = std::int32_t(r);
    if (share_equal) {
      hash ^= hash >> 32;
      std::size_t slot = std::size_t(hash) & mask;
      while (table[slot] >= 0 && !(hashes[table[slot]] == hash && equal(r, table[slot]))) slot = (slot + 1) & mask;
      if (table[slot] >= 0) {
        out.same[r] = table[slot];
        continue;
      }
      table[slot] = std::int32_t(r);
      hashes[r] = hash;  // from here on including its children
    }
    out.counts.resize(std::max(out.counts.size(), std::size_t(out.height[r]) + 1));
    ++out.counts[out.height[r]];
  }
  return out;
}

}  // namespace

template <class T>
PackedTrees pack(const Inputs<T>& programs, std::int64_t columns, bool share_equal) {
  const std::int64_t rows = programs.rows();
  assert(std::int64_t(programs.parents.size()) == rows);
  const Children children = children_of(programs);
  const auto [same, height, counts] = representatives_of(programs, columns, children, share_equal);
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
    for (const std::int32_t child : children.of(r)) packed.children.push_back(packed.node_of_row[child]);
    packed.child_begins.push_back(std::int64_t(packed.children.size()));
  }
  return packed;
}
template PackedTrees pack(const Inputs<float>&, std::int64_t, bool);
template PackedTrees pack(const Inputs<double>&, std::int64_t, bool);

}  // namespace graft::meta
