// Units of what programs print, by their names as people write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace graft::base {

struct Unit {
  // What it measures: "s", "B", "J", "FLOP/s"; numbers of one quantity can be compared.
  std::string quantity;
  double scale = 1;  // what one of it is in that quantity
  bool operator==(const Unit&) const = default;
};

// Times ("ms", "usec", "Milliseconds", "ns/op"), work and sizes ("FLOP", "cycles", "kB", "GiB"), energy, power,
// frequency, "%", and rates: "GFLOPS", "GB/s", "img/s", "fps". nullopt for other words; "min" is one of them, since it
// mostly says minimum.
std::optional<Unit> unit_named(std::string_view name);

}  // namespace graft::base
