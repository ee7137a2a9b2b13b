// A workload is one operator with its shapes and type, by its canonical text:
//   matmul(m=512,n=512,k=512,dtype=f32)
// or an index expression with extents (parse.h). Operators are a table of parameter names and index expressions; no
// code anywhere else knows an operator's name.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/expression/computation.h"

namespace graft::codegen {

class Workload {
 public:
  Workload() : Workload(std::string()) {}
  // `text` as it is: canonical, or only a name, as tables and imported records have.
  explicit Workload(std::string text);

  const std::string& text() const { return content_->text; }
  // What it computes, made of the text once and shared by copies. UserError if the text is only a name.
  const Computation& computation() const&;
  Computation computation() && { return std::as_const(*this).computation(); }
  // The same with_padding_stages (padding.h): the form that schedules refer to.
  const Computation& padded() const&;
  Computation padded() && { return std::as_const(*this).padded(); }
  // Equal for workloads that compute the same under other letters, or of which one is written as an operator and the
  // other as its index expression: a hash of the computation without its names. Of a text that is only a name, its
  // hash.
  std::uint64_t key() const;

  bool operator==(const Workload& other) const { return content_ == other.content_ || text() == other.text(); }

 private:
  struct Content {
    std::string text;
    std::uint64_t hash = 0;
    // Made when first asked for, once.
    mutable std::once_flag read;
    mutable std::optional<Computation> computation, padded;
    mutable std::string problem;  // why the text computes nothing
    mutable std::uint64_t key = 0;
  };
  const Content& content() const;  // read
  friend std::uint64_t hash(const Workload& workload);
  friend bool names_computation(const Workload& workload);

  std::shared_ptr<const Content> content_;
};

// Reads any spelling (order of parameters, spaces, defaults left out) into the canonical one. Throws UserError for an
// unknown operator or parameter (did you mean), a missing or repeated one, a value <= 0 (pad may be 0), a type that is
// not known, an output extent <= 0. ResNet-18's layers may be named: `resnet18.C1` .. `resnet18.C12` (batch 1).
Workload parse_workload(std::string_view text);

// False if a workload is only a name: nothing is known of what tables and imported records compute.
bool names_computation(const Workload& workload);
std::int64_t flops(const Workload& workload);
std::uint64_t hash(const Workload& workload);  // of the text

struct Operator {
  std::string name;
  struct Parameter {
    std::string name;
    std::int64_t least = 1;
    bool has_default = false;
    std::int64_t value = 0;  // the default
    // Added after texts had been stored: left out of the canonical text where it has its default.
    bool later = false;
  };
  std::vector<Parameter> parameters;
  std::string expression;  // over the parameters (parse.h)
  std::string description;
  // For parameters that `expression`, which stored programs were made of, does not take: a later one that differs from
  // its default, or extents that do not divide. Empty: there are none.
  std::string general = {};
};
const std::vector<Operator>& operators();

}  // namespace graft::codegen
