// What a caller of Python gave for a parameter, as a value of C++; for what is of another type an error that names the
// parameter, says what is expected, and shows what was given.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "graft/graft.h"

namespace graft::python {

// graft.WrongType of Python.
struct WrongType : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void refuse(const std::string& name, const std::string& expected, const pybind11::handle& given) {
  constexpr std::size_t most = 80;
  auto shown = pybind11::repr(given).cast<std::string>();
  if (shown.size() > most) shown = shown.substr(0, most) + "...";
  throw WrongType(name + ": expected " + expected + ", got " + shown);
}

template <class Value>
std::string words() {
  if constexpr (std::is_same_v<Value, bool>) return "True or False";
  if constexpr (std::is_same_v<Value, double>) return "a number";
  if constexpr (std::is_integral_v<Value>) return std::is_unsigned_v<Value> ? "an int of 0 or more" : "an int";
  if constexpr (std::is_same_v<Value, std::string>) return "a str";
  if constexpr (std::is_same_v<Value, std::filesystem::path>) return "a path (str or os.PathLike)";
  if constexpr (std::is_same_v<Value, std::vector<std::string>>) return "a list of str";
  if constexpr (std::is_same_v<Value, std::vector<std::filesystem::path>>) return "a list of paths";
  if constexpr (std::is_same_v<Value, std::vector<Answer>>) return "a list of answers of tune()";
  if constexpr (std::is_same_v<Value, std::map<std::string, std::vector<std::int64_t>>>)
    return "a dict of lists of int by name";
  if constexpr (std::is_same_v<Value, std::map<std::string, std::vector<double>>>)
    return "a dict of arrays or lists of numbers by name";
  if constexpr (std::is_same_v<Value, Workload>) return "a graft.Workload or its text";
  if constexpr (std::is_same_v<Value, Platform>) return "a graft.Platform or its id";
  if constexpr (std::is_same_v<Value, Model>) return "a graft.Model, the path of its file, or None";
  if constexpr (std::is_same_v<Value, Compiled>) return "what compile() or compile_network() returned";
}

template <class Value>
Value given(const char* name, const pybind11::handle& object) {
  try {
    return object.cast<Value>();
  } catch (const pybind11::cast_error&) {
    refuse(name, words<Value>(), object);
  }
}

// Texts are accepted for values in all functions. Not by pybind11's implicit conversions: these hide why a text is
// refused.
template <class Value>
Value given_or_text(const char* name, const pybind11::handle& object) {
  if (pybind11::isinstance<Value>(object)) return object.cast<Value>();
  if (!pybind11::isinstance<pybind11::str>(object)) refuse(name, words<Value>(), object);
  return Value(object.cast<std::string>());
}

inline Model given_model(const pybind11::handle& object, const char* name = "model") {
  if (object.is_none()) return {};
  if (pybind11::isinstance<Model>(object)) return object.cast<Model>();
  try {
    return Model(object.cast<std::filesystem::path>().string());
  } catch (const pybind11::cast_error&) {
    refuse(name, words<Model>(), object);
  }
}

// "" for None.
inline std::filesystem::path given_path_or_none(const char* name, const pybind11::handle& object) {
  return object.is_none() ? std::filesystem::path() : given<std::filesystem::path>(name, object);
}

}  // namespace graft::python
