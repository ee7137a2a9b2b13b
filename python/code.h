// Compiled code in this process, called on numpy arrays: what a call costs in addition to the code is in here.
#pragma once

#include <pybind11/pybind11.h>

namespace graft::python {

// The classes _Code and _Caller.
void add_code(pybind11::module_& module);

}  // namespace graft::python
