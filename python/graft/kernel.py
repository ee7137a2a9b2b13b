"""Calls kernels of a library that graft compiled, and whole networks, on numpy arrays. Needs numpy and a C compiler as linker; nothing of
graft but the library's files, so that it works where they were copied to, too."""

import copy
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from ._graft import Answer, Failure, Mistake, compile as _compile, compile_network as _compile_network, write as _write

_SCHEMA = 1  # of NAME.json: docs/reference/library-json.md, sequence-json.md
_KINDS = {"library": "library of graft compile", "sequence": "network of graft"}  # `kind` of NAME.json
_DTYPES = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32, "i8": np.int8, "u8": np.uint8,
           "f16": np.float16, "bf16": np.uint16}  # bf16: its bits, numpy has no such type


def _dtype_of(tensor: Dict[str, Any]) -> np.dtype:
    """Of booleans, bytes of 0 and 1, numpy's own type."""
    return np.dtype(np.bool_ if tensor.get("declared") == "bool" else _DTYPES[tensor["dtype"]])


@dataclass(frozen=True)
class Parameter:
    """A tensor that a kernel or a network takes: an array of this dtype and shape, row-major."""

    name: str
    role: str  # "input", "constant" or "output"
    dtype: np.dtype
    shape: Tuple[int, ...]
    layout: str = ""  # how the shape stores the workload's tensor; "": as the workload says


def _library_in(folder: pathlib.Path, kinds: Tuple[str, ...] = ("library",)) -> Dict[str, Any]:
    """What the one library of these kinds in a folder says of itself."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            library = json.loads(path.read_text())
        except ValueError:
            continue
        if isinstance(library, dict) and library.get("kind") in kinds:
            found.append((path, library))
    if len(found) != 1:
        what = "several libraries" if found else f"no {' or '.join(_KINDS[kind] for kind in kinds)}"
        raise Mistake(f"{folder}: {what}, give a folder with one")
    path, library = found[0]
    if library.get("schema") != _SCHEMA:
        raise Mistake(f"{path}: schema {library.get('schema')}, this module reads {_SCHEMA}; compile the library again")
    return library


class _Linked:
    """The code as a shared object of this process; its file is gone once it is loaded."""

    def __init__(self, library: ctypes.CDLL, symbols: Sequence[str]) -> None:
        table = (ctypes.c_void_p * len(symbols)).in_dll(library, "graft_functions")
        self._library = library  # the code is there as long as this is
        self._places = dict(zip(symbols, table))

    def function(self, symbol: str, arguments: int, result: Any = None) -> Callable[..., Any]:
        """The function that takes this number of pointers."""
        return ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * arguments)(self._places[symbol])


def _linked(code: pathlib.Path, symbols: Sequence[str], cc: str) -> _Linked:
    """The code with these functions, which are hidden in the shared object: a table shows where they are."""
    with tempfile.TemporaryDirectory(prefix="graft-") as folder:
        shared, table = os.path.join(folder, code.stem + ".so"), os.path.join(folder, "table.c")
        names = ", ".join(symbols)
        pathlib.Path(table).write_text(f"extern char {names};\nchar* const graft_functions[] = "
                                       f"{{{', '.join('&' + each for each in symbols)}}};\n")
        command = [cc, "-shared", "-fPIC", "-nostdlib", "-o", shared, table, str(code)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
            return _Linked(ctypes.CDLL(shared), symbols)
        except FileNotFoundError:
            raise Failure(f"{cc}: not found, install a C compiler or name one by cc=") from None
        except subprocess.CalledProcessError as error:
            raise Failure(f"{code}: cannot be linked here: {error.stderr.strip().splitlines()[-1]}") from None
        except OSError as error:
            raise Failure(f"{code}: cannot be loaded here: {error}") from None


class _Callable:
    """What is called on arrays by parameter."""

    _is: Dict[str, Any]  # what NAME.json says of it
    _alignment: int
    _local: threading.local  # memory that one call at a time uses, by its name

    @property
    def name(self) -> str:
        """Of the C function, or of the network."""
        return self._is["name"]

    def _aligned(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        count = int(np.prod(shape, dtype=np.int64))
        buffer = np.empty(count * dtype.itemsize + self._alignment, np.uint8)
        begin = -buffer.ctypes.data % self._alignment
        return buffer[begin:begin + count * dtype.itemsize].view(dtype).reshape(shape)

    def _own(self, name: str, size: int) -> np.ndarray:
        """Memory of the calling thread alone, of `size` bytes."""
        memory = getattr(self._local, name, None)
        if memory is None:
            memory = self._aligned((size,), np.dtype(np.uint8))
            setattr(self._local, name, memory)
        return memory

    def __deepcopy__(self, memo: Dict[int, Any]) -> "_Callable":
        return copy.copy(self)  # nothing that both have is ever changed

    def _is_aligned(self, array: np.ndarray) -> bool:
        return array.flags.c_contiguous and array.ctypes.data % self._alignment == 0

    def _check(self, parameter: Parameter, array: np.ndarray) -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{self.name}: {parameter.name}: no numpy array")
        if array.dtype != parameter.dtype:
            raise TypeError(f"{self.name}: {parameter.name}: {array.dtype}, give {parameter.dtype}")
        if array.shape != parameter.shape:
            raise ValueError(f"{self.name}: {parameter.name}: shape {array.shape}, give {parameter.shape}")

    def _matched(self, wanted: List[Parameter], arrays: Sequence[np.ndarray],
                 named: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
        """Arrays by parameter, as the kernel can read them."""
        names = [parameter.name for parameter in wanted]
        if len(arrays) > len(names):
            raise TypeError(f"{self.name}: {len(arrays)} arrays, it takes {', '.join(names) or 'none'}")
        given = dict(zip(names, arrays))
        for name, array in named.items():
            if name not in names or name in given:
                raise TypeError(f"{self.name}: {name}: " + ("given twice" if name in given else
                                                            f"not taken, it takes {', '.join(names) or 'none'}"))
            given[name] = array
        for parameter in wanted:
            if parameter.name not in given:
                raise TypeError(f"{self.name}: {parameter.name}: missing, it takes {', '.join(names)}")
            array = given[parameter.name]
            self._check(parameter, array)
            if not self._is_aligned(array):
                given[parameter.name] = self._aligned(parameter.shape, parameter.dtype)
                given[parameter.name][...] = array
        return given

    def _places(self, outputs: List[Parameter], out: Optional[Union[np.ndarray, Sequence[np.ndarray]]],
                read: Sequence[np.ndarray]) -> Tuple[List[np.ndarray], List[np.ndarray]]:
        """Where each output goes, and what the code writes: the same if it can write there while it reads `read`."""
        results = [self._aligned(parameter.shape, parameter.dtype) for parameter in outputs] if out is None else \
            [out] if isinstance(out, np.ndarray) else list(out)
        if len(results) != len(outputs):
            raise TypeError(f"{self.name}: out: {len(results)} arrays, {len(outputs)} are written")
        written: List[np.ndarray] = []
        for parameter, result in zip(outputs, results):
            self._check(parameter, result)
            if not result.flags.writeable:
                raise ValueError(f"{self.name}: {parameter.name}: the array cannot be written")
            overlaps = any(np.may_share_memory(result, each) for each in (*read, *written))
            in_place = self._is_aligned(result) and not overlaps
            written.append(result if in_place else self._aligned(parameter.shape, parameter.dtype))
        return results, written

    @staticmethod
    def _returned(results: List[np.ndarray], written: List[np.ndarray]) -> Union[np.ndarray, Tuple[np.ndarray, ...]]:
        for result, buffer in zip(results, written):
            if result is not buffer:
                result[...] = buffer
        return results[0] if len(results) == 1 else tuple(results)


class Kernel(_Callable):
    """One function of a compiled library, called on numpy arrays.

    source: an Answer (compiled here and now), or the folder that graft compile or graft.write() made. function: its
    name, where the library has several. cc: the C compiler that links.

    A call takes the inputs and constants in the order of `parameters`, or by name, and returns the output (a tuple
    where there are several). Arrays must have the parameter's very shape and dtype. Those that are not contiguous or
    not aligned to 64 bytes are copied; empty() gives arrays that need no copy. Calls run on the calling thread alone,
    without the interpreter's lock; several threads may call one Kernel, each with scratch memory of its own.
    """

    def __init__(self, source: Union[Answer, str, "os.PathLike[str]"], function: Optional[str] = None, *,
                 cc: str = "cc") -> None:
        if isinstance(source, Answer):
            folder = pathlib.Path(tempfile.mkdtemp(prefix="graft-"))
            try:
                _write(_compile([source], format="object"), folder)
                self._open(folder, function, cc)
            finally:
                shutil.rmtree(folder)
        else:
            self._open(pathlib.Path(source), function, cc)

    def _open(self, folder: pathlib.Path, function: Optional[str], cc: str) -> None:
        library = _library_in(folder)
        functions = {each["name"]: each for each in library["functions"]}
        if function is None and len(functions) == 1:
            function = next(iter(functions))
        if function not in functions:
            raise Mistake(f"{folder}: {'no function ' + repr(function) if function else 'several functions'}, "
                          f"give one of {', '.join(functions)}")
        self._is = functions[function]
        self._alignment = library["alignment"]
        self._parameters = tuple(
            Parameter(each["name"], each["role"], np.dtype(_DTYPES[each["dtype"]]),
                      tuple(dimension["extent"] for dimension in each["stored"]), each["layout"])
            for each in self._is["tensors"] if "argument" in each)
        calls = {each: self._is[each] for each in ("run", "prepare") if self._is[each]}
        linked = _linked(folder / library["code"], [call["symbol"] for call in calls.values()], cc)
        self._linked = linked
        self._functions: Dict[str, Callable[..., None]] = {
            each: linked.function(call["symbol"], len(call["arguments"])) for each, call in calls.items()}
        self._local = threading.local()
        # Constants that were given, and what was prepared of them: always replaced together.
        self._kept: Tuple[Dict[str, np.ndarray], np.ndarray] = {}, self._new_prepared()

    def _new_prepared(self) -> np.ndarray:
        return self._aligned((self._is["prepared_bytes"],), np.dtype(np.uint8))

    def _call(self, name: str, tensors: Dict[str, np.ndarray], prepared: np.ndarray) -> None:
        scratch_bytes = max(self._is["scratch_bytes"], self._is["prepare_scratch_bytes"])
        memory = {"prepared": prepared, "scratch": self._own("scratch", scratch_bytes)}
        arrays = (tensors[each["tensor"]] if each["kind"] == "tensor" else memory[each["kind"]]
                  for each in self._is[name]["arguments"])
        self._functions[name](*(array.ctypes.data for array in arrays))

    @property
    def workload(self) -> str:
        """Its canonical text."""
        return self._is["workload"]

    @property
    def parameters(self) -> Tuple[Parameter, ...]:
        """Inputs, constants and outputs, in order."""
        return self._parameters

    def empty(self, parameter: str) -> np.ndarray:
        """An array for the parameter of this name, aligned, its content undefined."""
        for each in self.parameters:
            if each.name == parameter:
                return self._aligned(each.shape, each.dtype)
        raise Mistake(f"{self.name}: no parameter {parameter!r}, "
                      f"give one of {', '.join(each.name for each in self.parameters)}")

    def prepare(self, *arrays: np.ndarray, **named: np.ndarray) -> None:
        """Takes the constants (weights), once: calls then take the inputs alone. They are copied."""
        wanted = [parameter for parameter in self.parameters if parameter.role == "constant"]
        given = self._matched(wanted, arrays, named)
        constants = {parameter.name: self._aligned(parameter.shape, parameter.dtype) for parameter in wanted}
        for name, kept in constants.items():
            kept[...] = given[name]
        prepared = self._new_prepared()
        if "prepare" in self._functions:
            self._call("prepare", constants, prepared)
        self._kept = constants, prepared

    def __call__(self, *arrays: np.ndarray, out: Optional[Union[np.ndarray, Sequence[np.ndarray]]] = None,
                 **named: np.ndarray) -> Union[np.ndarray, Tuple[np.ndarray, ...]]:
        """Runs it. out: where the output goes (a sequence where there are several); None: new arrays."""
        constants, prepared = self._kept
        taken = ("input",) if constants else ("input", "constant")
        wanted = [parameter for parameter in self.parameters if parameter.role in taken]
        given = self._matched(wanted, arrays, named)
        if constants:
            given.update(constants)
        elif "prepare" in self._functions:
            prepared = self._own("prepared", self._is["prepared_bytes"])
            self._call("prepare", given, prepared)
        outputs = [parameter for parameter in self.parameters if parameter.role == "output"]
        results, written = self._places(outputs, out, list(given.values()))
        given.update((parameter.name, array) for parameter, array in zip(outputs, written))
        self._call("run", given, prepared)
        return self._returned(results, written)

    def __repr__(self) -> str:
        return f"<graft.Kernel {self.name}: {self.workload}>"


class Network(_Callable):
    """A whole network of a compiled library, called on numpy arrays.

    folder: with NAME.json and the files next to it. cc: the C compiler that links.

    A call takes the inputs in the order of `inputs`, or by name (`network(**{"input.1": x})`), and returns the output (a
    tuple where there are several). As with Kernel, arrays must have the very shape and dtype, calls run on the
    calling thread alone, without the interpreter's lock; several threads may call one Network, each with memory of
    its own.
    """

    def __init__(self, folder: Union[str, "os.PathLike[str]"], *, cc: str = "cc") -> None:
        folder = pathlib.Path(folder)
        self._is = _library_in(folder, ("sequence",))
        self._alignment = self._is["alignment"]
        self._inputs, self._outputs = (
            tuple(Parameter(each["name"], role, _dtype_of(each), tuple(each["shape"]))
                  for each in self._is[role + "s"]) for role in ("input", "output"))
        symbol = self._is["run"]["symbol"]
        self._linked = _linked(folder / self._is["code"], [symbol], cc)
        self._run = self._linked.function(symbol, len(self._is["run"]["arguments"]))
        self._local = threading.local()
        self._weights: Optional[np.ndarray] = None
        if self._is["weights"] is not None:
            path = folder / self._is["weights"]
            if not path.is_file() or path.stat().st_size != self._is["weights_bytes"]:
                raise Mistake(f"{path}: not the weights of {self.name}, put the file of {self._is['weights_bytes']} "
                              "bytes there that was made with the library")
            self._weights = np.memmap(path, np.uint8, "r")

    @property
    def inputs(self) -> Tuple[Parameter, ...]:
        """In order."""
        return self._inputs

    @property
    def outputs(self) -> Tuple[Parameter, ...]:
        """In order."""
        return self._outputs

    def __call__(self, *arrays: np.ndarray, out: Optional[Union[np.ndarray, Sequence[np.ndarray]]] = None,
                 **named: np.ndarray) -> Union[np.ndarray, Tuple[np.ndarray, ...]]:
        """Runs it. out: where the output goes (a sequence where there are several); None: new arrays."""
        given = self._matched(list(self.inputs), arrays, named)
        read = [given[parameter.name] for parameter in self.inputs]
        results, written = self._places(list(self.outputs), out, read)
        tensors = iter(read + written)
        memory = {"arena": self._own("arena", self._is["arena_bytes"]), "weights": self._weights}
        arrays = (next(tensors) if each["kind"] == "tensor" else memory.get(each["kind"])
                  for each in self._is["run"]["arguments"])
        self._run(*(None if array is None else array.ctypes.data for array in arrays))
        return self._returned(results, written)

    def __repr__(self) -> str:
        return f"<graft.Network {self.name}: {len(self._is['calls'])} calls>"


def load(folder: Union[str, "os.PathLike[str]"], function: Optional[str] = None, *,
         cc: str = "cc") -> Union[Kernel, Network]:
    """What a folder has that graft made for C: a Network, or the Kernel of a library (`function`, where there are
    several). Of the folder of a tuned network (graft tune MODEL.onnx, tune_network()) the Network that it is compiled
    to, here and now."""
    tuned = pathlib.Path(folder) / "network.json"
    if tuned.is_file() and json.loads(tuned.read_text()).get("kind") == "network":
        with tempfile.TemporaryDirectory(prefix="graft-") as made:
            _write(_compile_network(folder), made)
            return load(made, function, cc=cc)
    library = _library_in(pathlib.Path(folder), ("library", "sequence"))
    if library["kind"] == "library":
        return Kernel(folder, function, cc=cc)
    if function is not None:
        raise Mistake(f"{folder}: a network has no function {function!r}, leave it out")
    return Network(folder, cc=cc)


def kernels(folder: Union[str, "os.PathLike[str]"]) -> List[str]:
    """Names of the functions of the library in a folder, for Kernel(folder, name)."""
    return [each["name"] for each in _library_in(pathlib.Path(folder))["functions"]]
