"""Calls kernels of OpenCL that graft compiled on numpy arrays, through a context and a queue of their own. Needs numpy
and libOpenCL.so.1; nothing of graft but the library's files."""

import ctypes
import os
import weakref
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt

from ._graft import Answer, Failure, Mistake, answer_of as _answer_of, compile as _compile
from .kernel import Parameter, _array_of, _by_name, _folder_of, _function_in, _library_in, _parameter_of, _path, _PathLike

_Array = npt.NDArray[Any]
_Handle = ctypes.c_void_p


class _Driver:
    """The system's OpenCL. Every call that gives an error is a Failure."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libOpenCL.so.1")
        except OSError:
            raise Failure("libOpenCL.so.1 cannot be loaded; install ocl-icd-libopencl1 and the device's driver") from None

    def call(self, name: str, *arguments: Any) -> None:
        error = int(getattr(self._library, name)(*arguments))
        if error != 0:
            raise Failure(f"{name} gives {error}")

    def made(self, name: str, *arguments: Any) -> _Handle:
        function, error = getattr(self._library, name), ctypes.c_int(0)
        function.restype = ctypes.c_void_p
        handle = function(*arguments, ctypes.byref(error))
        if error.value != 0:
            raise Failure(f"{name} gives {error.value}")
        return _Handle(handle)

    def release(self, made: List[Tuple[str, _Handle]]) -> None:
        while made:
            kind, handle = made.pop()
            getattr(self._library, "clRelease" + kind)(handle)

    def devices(self) -> List[int]:
        count, found = ctypes.c_uint(0), []
        self._library.clGetPlatformIDs(0, None, ctypes.byref(count))
        platforms = (ctypes.c_void_p * max(1, count.value))()
        if count.value > 0:
            self.call("clGetPlatformIDs", count, platforms, None)
        for platform in list(platforms)[:count.value]:
            here, kind = ctypes.c_uint(0), ctypes.c_uint64(0xFFFFFFFF)
            if self._library.clGetDeviceIDs(_Handle(platform), kind, 0, None, ctypes.byref(here)) != 0:
                continue
            devices = (ctypes.c_void_p * here.value)()
            self.call("clGetDeviceIDs", _Handle(platform), kind, here, devices, None)
            found += list(devices)
        return found

    def log(self, program: _Handle, device: _Handle) -> str:
        text = ctypes.create_string_buffer(4096)
        self._library.clGetProgramBuildInfo(program, device, 0x1183, ctypes.c_size_t(4095), text, None)
        return " ".join(text.value.decode(errors="replace").split())


class OpenclKernel:
    """One function of a library of OpenCL (graft compile, of a run on a platform opencl:N), called on numpy arrays.

    source: an Answer, the folder of its run, or that of a library. function: its name, where there are several. device:
    its number among this host's. A call takes the inputs and constants in the order of `parameters`, or by name, as
    arrays of the very shape and dtype, and returns the output (a tuple where there are several) when the device has
    computed it. It copies all arrays to the device and prepares constants: programs that keep them there call the
    library from C.
    """

    def __init__(self, source: Union[Answer, _PathLike], function: Optional[str] = None, *, device: int = 0) -> None:
        if not isinstance(source, Answer):
            shown = _path("source", source)
            is_run = os.path.isfile(os.path.join(shown, "run.json"))
            files = _compile([_answer_of(source)]).files if is_run else shown
        else:
            shown, files = source.workload, _compile([source]).files
        with _folder_of(files) as folder:
            self._is = _function_in(_library_in(folder, ("opencl",), shown), function, shown)
            with open(os.path.join(folder, self._is["source"]), encoding="utf-8") as file:
                self._source = file.read()
        self._all = tuple(_parameter_of(each, each["role"], 1) for each in self._is["tensors"])
        self._driver = _Driver()
        devices = self._driver.devices()
        if not 0 <= device < len(devices):
            raise Mistake(f"device: there is no device {device}, this host has {len(devices)}")
        self._made: List[Tuple[str, _Handle]] = []  # what is released with this
        weakref.finalize(self, self._driver.release, self._made)
        self._build(_Handle(devices[device]))

    @property
    def name(self) -> str:
        """Of the C function."""
        return str(self._is["name"])

    @property
    def workload(self) -> str:
        """Its canonical text."""
        return str(self._is["workload"])

    @property
    def parameters(self) -> Tuple[Parameter, ...]:
        """What a call takes and returns, in the order of the workload."""
        return self._all

    def _new(self, kind: str, name: str, *arguments: Any) -> _Handle:
        self._made.append((kind, self._driver.made(name, *arguments)))
        return self._made[-1][1]

    def _build(self, device: _Handle) -> None:
        driver = self._driver
        self._context = self._new("Context", "clCreateContext", None, 1, ctypes.byref(device), None, None)
        self._queue = self._new("CommandQueue", "clCreateCommandQueue", self._context, device, ctypes.c_uint64(0))
        text = ctypes.c_char_p(self._source.encode())
        program = self._new("Program", "clCreateProgramWithSource", self._context, 1, ctypes.byref(text), None)
        try:
            driver.call("clBuildProgram", program, 1, ctypes.byref(device), b"-cl-mad-enable -w", None, None)
        except Failure:
            raise Failure(f"{self.name}: the driver cannot build it: {driver.log(program, device)}") from None
        self._memory: Dict[int, _Handle] = {
            number: self._buffer(max(1, int(np.prod(each.shape)) * each._stored.itemsize))
            for number, each in enumerate(self._all)}
        self._launches: List[Tuple[str, _Handle, Any, Any]] = []
        for line in self._source.splitlines():
            words = line.split()
            if line.startswith("// buffer "):
                self._memory[int(words[2])] = self._buffer(int(words[3]))
            elif line.startswith("// launch "):
                groups, items = [int(each) for each in words[4:7]], [int(each) for each in words[7:10]]
                kernel = self._new("Kernel", "clCreateKernel", program, words[3].encode())
                for position, number in enumerate(words[10:]):
                    driver.call("clSetKernelArg", kernel, position, ctypes.c_size_t(ctypes.sizeof(_Handle)),
                                ctypes.byref(self._memory[int(number)]))
                sizes = (ctypes.c_size_t * 3)(*(g * max(1, i) for g, i in zip(groups, items)))
                self._launches.append((words[2], kernel, sizes, (ctypes.c_size_t * 3)(*items) if items[0] else None))
            elif not line.startswith("// "):
                break

    def _buffer(self, size: int) -> _Handle:
        return self._new("MemObject", "clCreateBuffer", self._context, ctypes.c_uint64(1), ctypes.c_size_t(size), None)

    def _enqueue(self, body: str) -> None:
        for of, kernel, sizes, items in self._launches:
            if of == body:
                self._driver.call("clEnqueueNDRangeKernel", self._queue, kernel, 3, None, sizes, items, 0, None, None)

    def _copy(self, name: str, number: int, array: _Array) -> None:
        self._driver.call(name, self._queue, self._memory[number], 1, ctypes.c_size_t(0), ctypes.c_size_t(array.nbytes),
                          ctypes.c_void_p(array.ctypes.data), 0, None, None)

    def __call__(self, /, *arrays: Any, **named: Any) -> Any:
        taken = [each for each in self._all if each.role != "output"]
        given = _by_name(self.name, taken, arrays, named)
        for number, each in enumerate(self._all):
            if each.role != "output":
                array = np.ascontiguousarray(_array_of(self.name, each, given[each.name]))
                self._copy("clEnqueueWriteBuffer", number, array)
        self._enqueue("prepare")
        self._enqueue("run")
        self._driver.call("clFinish", self._queue)
        results = []
        for number, each in enumerate(self._all):
            if each.role == "output":
                results.append(np.empty(each.shape, each._stored))
                self._copy("clEnqueueReadBuffer", number, results[-1])
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self) -> str:
        return f"<graft.OpenclKernel {self.name}: {self.workload}>"
