// The wire format of Protocol Buffers, as far as reading needs it: fields in order, no schema, nothing copied, nothing
// allocated by what a file claims. Groups (wire types 3 and 4) are refused; ONNX has none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace graft::graph {

// What broken bytes are refused with; the reader of the file names it.
struct Broken {
  const char* what;
};

// A field of a message, and its value in the form in which it is stored.
struct Field {
  int number = 0;
  int type = 0;                 // 0: varint, 1: 8 bytes, 2: length and bytes, 5: 4 bytes
  std::uint64_t integer = 0;    // of types 0, 1, 5
  std::string_view bytes = {};  // of type 2

  std::int64_t as_integer() const;    // type 0
  float as_float() const;             // type 5
  std::string_view as_bytes() const;  // type 2; texts and messages, too
  // One number, or several in one packed field.
  void append_to(std::vector<std::int64_t>& integers) const;
  void append_to(std::vector<float>& numbers) const;
  void append_to(std::vector<double>& numbers) const;
};

// Throws Broken for bytes that are not fields.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  bool next(Field& field);  // false at the end

 private:
  std::string_view rest_;
};

}  // namespace graft::graph
