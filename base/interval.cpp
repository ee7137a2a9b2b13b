#include "base/interval.h"

#include <limits>

namespace graft::base {

Document to_document(const Interval& value) {
  return Document::map().set("mean", value.mean).set("low", value.low).set("high", value.high);
}

Interval interval_from(const Document& document) {
  const auto number = [&](const char* key) {
    const Document& value = document.at(key);
    return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.as_number();
  };
  return {number("mean"), number("low"), number("high")};
}

}  // namespace graft::base
