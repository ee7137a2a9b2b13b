#include "python/code.h"

#include <dlfcn.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace graft::python {
namespace {

constexpr std::size_t memory_alignment = 64;  // of what is allocated here

std::size_t rounded(std::size_t bytes) {
  return (bytes + memory_alignment - 1) / memory_alignment * memory_alignment;
}

void* allocated(std::size_t bytes) {
  return std::aligned_alloc(memory_alignment, std::max(rounded(bytes), memory_alignment));
}

// A shared object, until the last that refers to it is gone.
class Code {
 public:
  // The type of functions `long f(void** pointers)`.
  using Function = long (*)(void**);

  explicit Code(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw py::value_error(dlerror());
  }
  ~Code() {
    if (void* const stop = dlsym(handle_, "graft_stop")) reinterpret_cast<Function>(stop)(nullptr);  // its threads
    dlclose(handle_);
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  Function function(const std::string& symbol) const {
    void* const found = dlsym(handle_, symbol.c_str());
    if (found == nullptr) throw py::value_error(symbol + ": not in the code");
    return reinterpret_cast<Function>(found);
  }

 private:
  void* const handle_;
};

struct Parameter {
  py::object name, dtype;
  std::vector<Py_intptr_t> shape;
  std::size_t alignment = 1, bytes = 0;
  bool is_output = false;
  int overwrites = -1;  // of an output: the parameter whose memory it may be
};

// Functions of the code that are called in order. Their pointers have places in one list: those of the
// parameters (inputs first), of memory that never changes, of memory that one call at a time needs; the last is null.
struct Caller {
  struct Step {
    Code::Function function;
    std::vector<std::size_t> places;
  };

  std::shared_ptr<Code> code;
  std::vector<Step> steps;
  std::vector<Parameter> parameters;
  std::size_t inputs = 0;
  std::vector<std::uintptr_t> fixed;
  std::vector<std::size_t> blocks;  // offsets in the memory of a call
  std::size_t bytes = 0;            // of that memory
  bool gives_number = false;        // a call returns what the last step does, not the outputs
  py::object kept;                  // what `fixed` points into
  std::vector<void*> free;          // memory that no call uses; under the interpreter's lock

  ~Caller() {
    for (void* const memory : free) std::free(memory);
  }

  std::size_t most_arguments = 0;  // of a step
  std::size_t places() const { return parameters.size() + fixed.size() + blocks.size() + 1; }
  std::size_t outputs() const { return parameters.size() - inputs; }
};

// Room for pointers that needs no memory of its own for most functions.
template <class Pointer>
class List {
 public:
  explicit List(std::size_t count) : more_(count > few ? count : 0), begin_(count > few ? more_.data() : some_) {}
  Pointer& operator[](std::size_t i) { return begin_[i]; }
  Pointer* begin() { return begin_; }

 private:
  static constexpr std::size_t few = 32;
  Pointer some_[few] = {};
  std::vector<Pointer> more_;
  Pointer* const begin_;
};

const char* const capsule_name = "graft.caller";

py::detail::npy_api& numpy() {
  static py::detail::npy_api& api = py::detail::npy_api::get();
  return api;
}

bool fits(const Parameter& parameter, PyObject* object) {
  if (Py_TYPE(object) != numpy().PyArray_Type_) return false;
  const auto* const array = py::detail::array_proxy(object);
  constexpr int contiguous = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_;
  constexpr int writeable = py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  const int wanted = parameter.is_output ? contiguous | writeable : contiguous;
  return array->descr == parameter.dtype.ptr() && (array->flags & wanted) == wanted &&
         std::size_t(array->nd) == parameter.shape.size() &&
         std::equal(parameter.shape.begin(), parameter.shape.end(), array->dimensions) &&
         reinterpret_cast<std::uintptr_t>(array->data) % parameter.alignment == 0;
}

char* data_of(PyObject* array) {
  return py::detail::array_proxy(array)->data;
}

// Whether an output shares memory with an input or another output, where it may not.
bool overlaps(const Caller& caller, PyObject* const* arrays) {
  for (std::size_t o = caller.inputs; o < caller.parameters.size(); ++o) {
    const char* const begin = data_of(arrays[o]);
    const char* const end = begin + caller.parameters[o].bytes;
    for (std::size_t i = 0; i < o; ++i) {
      const char* const other = data_of(arrays[i]);
      const bool may_be_there = caller.parameters[o].overwrites == int(i) && begin == other;
      if (!may_be_there && begin < other + caller.parameters[i].bytes && other < end) return true;
    }
  }
  return false;
}

// A new reference; null with an error set.
PyObject* new_array(const Parameter& parameter) {
  void* const memory = allocated(parameter.bytes);
  if (memory == nullptr) return PyErr_NoMemory();
  PyObject* const owner =
      PyCapsule_New(memory, nullptr, [](PyObject* capsule) { std::free(PyCapsule_GetPointer(capsule, nullptr)); });
  if (owner == nullptr) {
    std::free(memory);
    return nullptr;
  }
  Py_INCREF(parameter.dtype.ptr());  // which the next call takes
  PyObject* const array = numpy().PyArray_NewFromDescr_(numpy().PyArray_Type_, parameter.dtype.ptr(),
                                                        int(parameter.shape.size()), parameter.shape.data(), nullptr,
                                                        memory, py::detail::npy_api::NPY_ARRAY_WRITEABLE_, nullptr);
  if (array == nullptr) {
    Py_DECREF(owner);
    return nullptr;
  }
  if (numpy().PyArray_SetBaseObject_(array, owner) != 0) {
    Py_DECREF(array);
    return nullptr;
  }
  return array;
}

// With pointers to the arrays in place; the others are filled in here. False: there is no memory. No destructor of this
// needs the interpreter's lock: taking it ends the thread when the interpreter ends.
bool run(Caller& caller, void** pointers, long* number) {
  void* memory = nullptr;
  if (caller.bytes > 0) {
    if (caller.free.empty()) {
      memory = allocated(caller.bytes);
      if (memory == nullptr) return false;
    } else {
      memory = caller.free.back();
      caller.free.pop_back();
    }
  }
  void** at = pointers + caller.parameters.size();
  for (const std::uintptr_t fixed : caller.fixed) *at++ = reinterpret_cast<void*>(fixed);
  for (const std::size_t offset : caller.blocks) *at++ = static_cast<char*>(memory) + offset;
  *at = nullptr;
  PyThreadState* const state = PyEval_SaveThread();
  List<void*> arguments(caller.most_arguments);
  for (const Caller::Step& step : caller.steps) {
    for (std::size_t i = 0; i < step.places.size(); ++i) arguments[i] = pointers[step.places[i]];
    *number = step.function(arguments.begin());
  }
  PyEval_RestoreThread(state);
  if (memory != nullptr) caller.free.push_back(memory);
  return true;
}

PyObject* new_reference(PyObject* object) {  // Py_NewRef of Python 3.10
  Py_INCREF(object);
  return object;
}

PyObject* not_so() {
  return new_reference(Py_NotImplemented);
}

// A tuple of references, or its only one.
PyObject* results_of(PyObject* const* arrays, std::size_t count) {
  if (count == 1) return new_reference(arrays[0]);
  PyObject* const tuple = PyTuple_New(Py_ssize_t(count));
  for (std::size_t i = 0; tuple != nullptr && i < count; ++i)
    PyTuple_SET_ITEM(tuple, Py_ssize_t(i), new_reference(arrays[i]));
  return tuple;
}

// The inputs, borrowed, from a tuple in order and a dict by name; false where they are not just what is needed.
bool take_inputs(const Caller& caller, PyObject* given, PyObject* named, PyObject** arrays) {
  const std::size_t in_order = std::size_t(PyTuple_GET_SIZE(given));
  const std::size_t by_name = named == Py_None ? 0 : std::size_t(PyDict_GET_SIZE(named));
  if (in_order + by_name != caller.inputs) return false;
  for (std::size_t i = 0; i < caller.inputs; ++i) {
    arrays[i] =
        i < in_order ? PyTuple_GET_ITEM(given, Py_ssize_t(i)) : PyDict_GetItem(named, caller.parameters[i].name.ptr());
    if (arrays[i] == nullptr || !fits(caller.parameters[i], arrays[i])) return false;
  }
  return true;
}

// The outputs, borrowed, from an array or a tuple of them.
bool take_outputs(const Caller& caller, PyObject* out, PyObject** arrays) {
  const bool several = PyTuple_CheckExact(out);
  if ((several ? std::size_t(PyTuple_GET_SIZE(out)) : 1) != caller.outputs()) return false;
  for (std::size_t o = caller.inputs; o < caller.parameters.size(); ++o) {
    arrays[o] = several ? PyTuple_GET_ITEM(out, Py_ssize_t(o - caller.inputs)) : out;
    if (!fits(caller.parameters[o], arrays[o])) return false;
  }
  return !overlaps(caller, arrays);
}

// call(arrays: tuple, named: dict or None, out: array, tuple or None): the outputs; NotImplemented for what has to be
// converted, copied or refused.
PyObject* call(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  Caller& caller = **static_cast<std::shared_ptr<Caller>*>(PyCapsule_GetPointer(self, capsule_name));
  List<PyObject*> arrays(caller.places());
  if (count != 3 || !PyTuple_CheckExact(given[0]) || !take_inputs(caller, given[0], given[1], arrays.begin()))
    return not_so();
  const bool makes = given[2] == Py_None;
  if (!makes && !take_outputs(caller, given[2], arrays.begin())) return not_so();
  bool good = true;
  for (std::size_t o = caller.inputs; makes && good && o < caller.parameters.size(); ++o) {
    arrays[o] = new_array(caller.parameters[o]);
    good = arrays[o] != nullptr;
  }
  List<void*> pointers(caller.places());
  long number = 0;
  if (good) {
    for (std::size_t i = 0; i < caller.parameters.size(); ++i) pointers[i] = data_of(arrays[i]);
    good = run(caller, pointers.begin(), &number);
    if (!good) PyErr_NoMemory();
  }
  PyObject* const result = !good                 ? nullptr
                           : caller.gives_number ? PyLong_FromLong(number)
                                                 : results_of(arrays.begin() + caller.inputs, caller.outputs());
  for (std::size_t o = caller.inputs; makes && o < caller.parameters.size(); ++o) Py_XDECREF(arrays[o]);
  return result;
}

// What bind returns is a function without arguments.
struct Bound {
  std::shared_ptr<Caller> caller;
  std::vector<void*> pointers;
  py::object arrays, result;
};
const char* const bound_name = "graft.bound";

PyObject* call_bound(PyObject* self, PyObject*) {
  Bound& bound = *static_cast<Bound*>(PyCapsule_GetPointer(self, bound_name));
  List<void*> pointers(bound.pointers.size());
  std::copy(bound.pointers.begin(), bound.pointers.end(), pointers.begin());
  long number = 0;
  if (!run(*bound.caller, pointers.begin(), &number)) return PyErr_NoMemory();
  return new_reference(bound.result.ptr());
}

template <class Value>
py::capsule capsule_of(Value* value, const char* name) {
  return py::reinterpret_steal<py::capsule>(PyCapsule_New(value, name, [](PyObject* capsule) {
    delete static_cast<Value*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
  }));
}

PyMethodDef call_definition = {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)),
                               METH_FASTCALL, nullptr};
PyMethodDef bound_definition = {"bound", &call_bound, METH_NOARGS,
                                "Runs it on the arrays that were bound, and returns those of the outputs."};

// `result`: what the function returns; it keeps the arrays' memory, too. NotImplemented as `call`.
py::object bind(const std::shared_ptr<Caller>& caller, const py::tuple& inputs, const py::tuple& outputs,
                const py::object& result) {
  List<PyObject*> arrays(caller->places());
  if (!take_inputs(*caller, inputs.ptr(), Py_None, arrays.begin()) ||
      !take_outputs(*caller, outputs.ptr(), arrays.begin()))
    return py::reinterpret_borrow<py::object>(Py_NotImplemented);
  auto bound = std::make_unique<Bound>(Bound{caller, std::vector<void*>(caller->places()), inputs + outputs, result});
  for (std::size_t i = 0; i < caller->parameters.size(); ++i) bound->pointers[i] = data_of(arrays[i]);
  const py::capsule self = capsule_of(bound.release(), bound_name);
  return py::reinterpret_steal<py::object>(PyCFunction_NewEx(&bound_definition, self.ptr(), nullptr));
}

using Described = std::tuple<py::object, bool, py::dtype, std::vector<Py_intptr_t>, std::size_t, int>;
using Steps = std::vector<std::pair<std::string, std::vector<std::size_t>>>;

std::shared_ptr<Caller> make_caller(const std::shared_ptr<Code>& code, const Steps& steps,
                                    const std::vector<Described>& parameters, const std::vector<std::uintptr_t>& fixed,
                                    const std::vector<std::size_t>& blocks, bool gives_number, const py::object& kept) {
  auto caller = std::make_shared<Caller>();
  caller->code = code;
  caller->fixed = fixed;
  caller->gives_number = gives_number;
  caller->kept = kept;
  for (const auto& [name, is_output, dtype, shape, alignment, overwrites] : parameters) {
    auto bytes = dtype.attr("itemsize").cast<std::size_t>();  // py::dtype has it at NumPy 1's place
    for (const Py_intptr_t extent : shape) bytes *= std::size_t(extent);
    caller->parameters.push_back({name, dtype, shape, alignment, bytes, is_output, overwrites});
    caller->inputs += is_output ? 0 : 1;
  }
  for (const std::size_t bytes : blocks) {
    caller->blocks.push_back(caller->bytes);
    caller->bytes += rounded(bytes);
  }
  for (const auto& [symbol, places] : steps) {
    for (const std::size_t place : places)
      if (place >= caller->places()) throw py::value_error("a place beyond the last");
    caller->most_arguments = std::max(caller->most_arguments, places.size());
    caller->steps.push_back({code->function(symbol), places});
  }
  return caller;
}

}  // namespace

void add_code(py::module_& module) {
  py::class_<Code, std::shared_ptr<Code>>(module, "_Code", "A shared object, unloaded with the last reference to it.")
      .def(py::init<const std::string&>(), py::arg("path"))
      .def(
          "number", [](const Code& code, const std::string& symbol) { return code.function(symbol)(nullptr); },
          py::arg("symbol"), "What a function without arguments returns.");

  py::class_<Caller, std::shared_ptr<Caller>>(module, "_Caller", "Functions of code, called on arrays.")
      .def(py::init(&make_caller), py::arg("code"), py::arg("steps"), py::arg("parameters"), py::arg("fixed"),
           py::arg("blocks"), py::arg("gives_number"), py::arg("kept"))
      .def("bind", &bind, py::arg("inputs"), py::arg("outputs"), py::arg("result"))
      .def_property_readonly("call", [](const std::shared_ptr<Caller>& caller) {
        const py::capsule self = capsule_of(new std::shared_ptr<Caller>(caller), capsule_name);
        return py::reinterpret_steal<py::object>(PyCFunction_NewEx(&call_definition, self.ptr(), nullptr));
      });
}

}  // namespace graft::python
