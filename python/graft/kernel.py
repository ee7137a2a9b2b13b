"""Calls kernels of a library that graft compiled on numpy arrays. Needs numpy and a C compiler as linker; nothing of
graft but the library's files, so that it works where they were copied to, too."""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from ._graft import Answer, Failure, Mistake, compile as _compile, write as _write

_ALIGNMENT = 64  # of every pointer that a kernel takes: docs/guides/deploy.md
_DTYPES = {"float": np.float32, "double": np.float64, "int32_t": np.int32, "int8_t": np.int8, "uint8_t": np.uint8,
           "int64_t": np.int64}


@dataclass(frozen=True)
class Parameter:
    """A tensor that a kernel takes: an array of this dtype and shape, row-major."""

    name: str
    role: str  # "input", "constant" or "output"
    dtype: np.dtype
    shape: Tuple[int, ...]
    layout: str = ""  # how the shape stores the workload's tensor; "": as the workload says


@dataclass(frozen=True)
class _Described:
    """A function as the library's header describes it."""

    name: str
    workload: str
    parameters: Tuple[Parameter, ...]
    workspace_bytes: int
    prepares: bool


_FUNCTION = re.compile(
    r"/\* (?P<workload>[^\n]+)\n(?P<lines>(?: \* [^\n]*\n)+) \*/\n#define \w+_WORKSPACE_BYTES (?P<bytes>\d+)\n"
    r"(?:/\*[^/]*\*/\nvoid (?P<prepare>\w+)_prepare\([^)]*\);\n)?void (?P<name>\w+)\([^)]*\);"
)
_PARAMETER = re.compile(
    r" \*   (?P<name>\S+) \((?P<role>input|constant|output)\): (?P<type>\w+)(?P<shape>(?:\[\d*\])*)"
    r"(?:, parameter \w+)?(?:, stored as '(?P<layout>[^']*)'.*)?"
)


def _described(header: str) -> List[_Described]:
    functions = []
    for match in _FUNCTION.finditer(header):
        parameters = []
        for line in match["lines"].splitlines():
            found = _PARAMETER.fullmatch(line)
            if found is None:
                break  # the schedule begins
            shape = tuple(int(extent) for extent in re.findall(r"\d+", found["shape"]))
            dtype = np.dtype(_DTYPES[found["type"]])
            parameters.append(Parameter(found["name"], found["role"], dtype, shape, found["layout"] or ""))
        functions.append(
            _Described(match["name"], match["workload"], tuple(parameters), int(match["bytes"]),
                       match["prepare"] is not None)
        )
    return functions


def _library_in(folder: pathlib.Path) -> Tuple[pathlib.Path, pathlib.Path]:
    """The header and the code of the one library in a folder."""
    found = []
    for header in sorted(folder.glob("*.h")):
        for code in (folder / f"lib{header.stem}.a", folder / f"{header.stem}.o"):
            if code.exists():
                found.append((header, code))
                break
    if len(found) != 1:
        what = "several libraries" if found else "no library of graft compile"
        raise Mistake(f"{folder}: {what}, give a folder with one")
    return found[0]


def _linked(code: pathlib.Path, cc: str) -> ctypes.CDLL:
    """The code as a shared object of this process; its file is gone once it is loaded."""
    with tempfile.TemporaryDirectory(prefix="graft-") as folder:
        shared = os.path.join(folder, code.stem + ".so")
        command = [cc, "-shared", "-nostdlib", "-o", shared, "-Wl,--whole-archive", str(code), "-Wl,--no-whole-archive"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
            return ctypes.CDLL(shared)
        except FileNotFoundError:
            raise Failure(f"{cc}: not found, install a C compiler or name one by cc=") from None
        except subprocess.CalledProcessError as error:
            raise Failure(f"{code}: cannot be linked here: {error.stderr.strip().splitlines()[-1]}") from None
        except OSError as error:
            raise Failure(f"{code}: cannot be loaded here: {error}") from None


def _aligned(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    count = int(np.prod(shape, dtype=np.int64))
    buffer = np.empty(count * dtype.itemsize + _ALIGNMENT, np.uint8)
    begin = -buffer.ctypes.data % _ALIGNMENT
    return buffer[begin:begin + count * dtype.itemsize].view(dtype).reshape(shape)


def _is_aligned(array: np.ndarray) -> bool:
    return array.flags.c_contiguous and array.ctypes.data % _ALIGNMENT == 0


class Kernel:
    """One function of a compiled library, called on numpy arrays.

    source: an Answer (compiled here and now), or the folder that graft compile or graft.write() made. function: its
    name, where the library has several. cc: the C compiler that links.

    A call takes the inputs and constants in the order of `parameters`, or by name, and returns the output (a tuple
    where there are several). Arrays must have the parameter's very shape and dtype. Those that are not contiguous or
    not aligned to 64 bytes are copied; empty() gives arrays that need no copy. Calls run on the calling thread alone,
    without the interpreter's lock; one Kernel has one workspace, so one call at a time.
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
        header, code = _library_in(folder)
        functions = {each.name: each for each in _described(header.read_text())}
        if function is None and len(functions) == 1:
            function = next(iter(functions))
        if function not in functions:
            raise Mistake(f"{folder}: {'no function ' + repr(function) if function else 'several functions'}, "
                          f"give one of {', '.join(functions)}")
        self._is = functions[function]
        library = _linked(code, cc)
        self._run = getattr(library, function)
        self._run.argtypes, self._run.restype = [ctypes.c_void_p] * (len(self.parameters) + 1), None
        self._prepare = None
        if self._is.prepares:
            self._prepare = getattr(library, function + "_prepare")
            constants = sum(parameter.role == "constant" for parameter in self.parameters)
            self._prepare.argtypes, self._prepare.restype = [ctypes.c_void_p] * (constants + 1), None
        self._workspace = _aligned((self._is.workspace_bytes,), np.dtype(np.uint8))
        self._constants: Dict[str, np.ndarray] = {}

    @property
    def name(self) -> str:
        """Of the C function."""
        return self._is.name

    @property
    def workload(self) -> str:
        """Its canonical text."""
        return self._is.workload

    @property
    def parameters(self) -> Tuple[Parameter, ...]:
        """Inputs, constants and outputs, in order."""
        return self._is.parameters

    def empty(self, parameter: str) -> np.ndarray:
        """An array for the parameter of this name, aligned, its content undefined."""
        for each in self.parameters:
            if each.name == parameter:
                return _aligned(each.shape, each.dtype)
        raise Mistake(f"{self.name}: no parameter {parameter!r}, "
                      f"give one of {', '.join(each.name for each in self.parameters)}")

    def prepare(self, *arrays: np.ndarray, **named: np.ndarray) -> None:
        """Takes the constants (weights), once: calls then take the inputs alone. They are copied."""
        wanted = [parameter for parameter in self.parameters if parameter.role == "constant"]
        given = self._matched(wanted, arrays, named)
        self._constants = {}
        for parameter in wanted:
            kept = _aligned(parameter.shape, parameter.dtype)
            kept[...] = given[parameter.name]
            self._constants[parameter.name] = kept
        self._run_prepare(self._constants)

    def __call__(self, *arrays: np.ndarray, out: Optional[Union[np.ndarray, Sequence[np.ndarray]]] = None,
                 **named: np.ndarray) -> Union[np.ndarray, Tuple[np.ndarray, ...]]:
        """Runs it. out: where the output goes (a sequence where there are several); None: new arrays."""
        taken = ("input",) if self._constants else ("input", "constant")
        wanted = [parameter for parameter in self.parameters if parameter.role in taken]
        given = self._matched(wanted, arrays, named)
        if self._constants:
            given.update(self._constants)
        else:
            self._run_prepare(given)
        outputs = [parameter for parameter in self.parameters if parameter.role == "output"]
        results = [_aligned(parameter.shape, parameter.dtype) for parameter in outputs] if out is None else \
            [out] if isinstance(out, np.ndarray) else list(out)
        if len(results) != len(outputs):
            raise TypeError(f"{self.name}: out: {len(results)} arrays, {len(outputs)} are written")
        written = []
        for parameter, result in zip(outputs, results):
            self._check(parameter, result)
            if not result.flags.writeable:
                raise ValueError(f"{self.name}: {parameter.name}: the array cannot be written")
            overlaps = any(np.may_share_memory(result, each) for each in given.values())
            in_place = _is_aligned(result) and not overlaps
            written.append(result if in_place else _aligned(parameter.shape, parameter.dtype))
            given[parameter.name] = written[-1]
        self._run(*(given[parameter.name].ctypes.data for parameter in self.parameters), self._workspace.ctypes.data)
        for result, buffer in zip(results, written):
            if result is not buffer:
                result[...] = buffer
        return results[0] if len(results) == 1 else tuple(results)

    def _run_prepare(self, constants: Dict[str, np.ndarray]) -> None:
        if self._prepare is not None:
            self._prepare(*(constants[parameter.name].ctypes.data for parameter in self.parameters
                            if parameter.role == "constant"), self._workspace.ctypes.data)

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
            if not _is_aligned(array):
                given[parameter.name] = _aligned(parameter.shape, parameter.dtype)
                given[parameter.name][...] = array
        return given

    def __repr__(self) -> str:
        return f"<graft.Kernel {self.name}: {self.workload}>"


def kernels(folder: Union[str, "os.PathLike[str]"]) -> List[str]:
    """Names of the functions of the library in a folder, for Kernel(folder, name)."""
    return [each.name for each in _described(_library_in(pathlib.Path(folder))[0].read_text())]
