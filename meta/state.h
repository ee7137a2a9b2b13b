// Reading a model's state back: every access checks, because a state may come from a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/arrays.h"
#include "meta/network.h"

namespace graft::meta {

void put_values(base::Arrays& arrays, const std::string& name, const std::vector<float>& values);
// UserError "array 'theta' is missing" / "array 'theta': 10 values, expected 12". expected < 0: any number.
const std::vector<float>& values_of(const base::Arrays& arrays, const std::string& name, std::int64_t expected = -1);
// Whether an array's value is a whole number, low <= value < high.
bool whole_number(float value, std::int64_t low, std::int64_t high);
// Readers of attributes: UserError if one is missing, is not of the type in the reader's name, or is less than `least`.
const std::string& attribute_of(const base::Arrays& arrays, const std::string& name);
std::int64_t integer_of(const base::Arrays& arrays, const std::string& name, std::int64_t least);
double number_of(const base::Arrays& arrays, const std::string& name);
void put_integers(base::Arrays& arrays, const std::string& name, const std::vector<std::int64_t>& values);
std::vector<std::int64_t> integers_of(const base::Arrays& arrays, const std::string& name, std::int64_t least);

// 64-bit hashes as an array: four numbers of 16 bits each.
void put_hashes(base::Arrays& arrays, const std::string& name, const std::vector<std::uint64_t>& hashes);
std::vector<std::uint64_t> hashes_of(const base::Arrays& arrays, const std::string& name, std::int64_t expected = -1);

// The arrays and attributes of a part under names with a prefix, and back.
void put_under(const std::string& array_prefix, const std::string& attribute_prefix, const base::Arrays& part,
               base::Arrays& arrays);
base::Arrays arrays_under(const std::string& array_prefix, const std::string& attribute_prefix,
                          const base::Arrays& arrays);

// A network's shape except its inputs. A state without a kind is of an MLP, as in early versions.
void put(const NetworkShape& shape, base::Arrays& arrays);
NetworkShape shape_from(const base::Arrays& arrays, std::int64_t inputs);
// The same for a network that scores: UserError also for several outputs.
NetworkShape scoring_shape_from(const base::Arrays& arrays, std::int64_t inputs);

}  // namespace graft::meta
