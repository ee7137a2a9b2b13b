"""Calls kernels of a library that graft compiled, and whole networks, on numpy arrays. Needs numpy and a C compiler;
nothing of graft but the library's files, so that it works where they were copied to, too."""

import contextlib
import ctypes
import json
import os
import pathlib
import platform
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from ._graft import (Answer, Failure, Mistake, WrongType, _Caller, _Code, answer_of as _answer_of, compile as _compile,
                     compile_network as _compile_network)

if TYPE_CHECKING:
    from .opencl import OpenclKernel

_PathLike = Union[str, "os.PathLike[str]"]
_Array = npt.NDArray[Any]
_Files = Dict[str, bytes]

_SCHEMA = 1  # of NAME.json: docs/reference/library-json.md, sequence-json.md
_KINDS = {"library": "library of graft compile", "sequence": "network of graft",  # `kind` of NAME.json
          "opencl": "library of OpenCL"}
_DTYPES = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32, "i8": np.int8, "u8": np.uint8,
           "f16": np.float16, "bf16": np.uint16}  # bf16: its bits, numpy has no such type
# Types of models that have less or other values than those of the code. Booleans are bytes of 0 and 1.
_DECLARED = {"bool": np.bool_, "int16": np.int16, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64}
# Of a target's triple, by what Python calls a machine.
_ARCHITECTURES = {"AMD64": "x86_64", "arm64": "aarch64", "ppc64le": "powerpc64le"}


def _parameter_of(tensor: Dict[str, Any], role: str, alignment: int) -> "Parameter":
    """Of a network, with the type that its model declares."""
    memory = np.dtype(_DTYPES[tensor["dtype"]])
    declared = np.dtype(_DECLARED.get(tensor.get("declared", ""), memory))
    return Parameter(tensor["name"], role, declared, tuple(tensor["shape"]), "", tensor.get("alignment", alignment),
                     memory if memory.itemsize != declared.itemsize else None, tensor.get("overwrites", ""))


@dataclass(frozen=True)
class Parameter:
    """A tensor that a kernel or a network takes: an array of this dtype and shape, row-major."""

    name: str
    role: str  # "input", "constant" or "output"
    dtype: "np.dtype[Any]"
    shape: Tuple[int, ...]
    layout: str = ""  # how the shape stores the workload's tensor; "": as the workload says
    alignment: int = 64  # in bytes, of memory that is used as it is
    memory: "Optional[np.dtype[Any]]" = None  # what the code has in place of dtype: arrays are converted
    overwrites: str = ""  # of an output: the input whose memory it may be, which spares a copy

    @property
    def _stored(self) -> "np.dtype[Any]":
        return self.dtype if self.memory is None else self.memory


def _path(name: str, given: Any) -> str:
    try:
        return os.fsdecode(given)
    except TypeError:
        raise WrongType(f"{name}: expected a path (str or os.PathLike), got {given!r}") from None


def _library_in(folder: str, kinds: Tuple[str, ...] = ("library",), shown: Optional[str] = None) -> Dict[str, Any]:
    """What the one library of these kinds in a folder says of itself."""
    shown = folder if shown is None else shown
    found = []
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        try:
            library = json.loads(path.read_text())
        except ValueError:
            continue
        if isinstance(library, dict) and library.get("kind") in kinds:
            found.append((path, library))
    if len(found) != 1:
        what = "several libraries" if found else f"no {' or '.join(_KINDS[kind] for kind in kinds)}"
        if not os.path.isdir(folder):
            what = "no such folder"
        raise Mistake(f"{shown}: {what}, give a folder with one")
    path, library = found[0]
    if library.get("schema") != _SCHEMA:
        raise Mistake(f"{os.path.join(shown, path.name)}: schema {library.get('schema')}, this module reads {_SCHEMA}; "
                      "compile the library again")
    return library


def _function_in(library: Dict[str, Any], function: Optional[str], shown: str) -> Dict[str, Any]:
    """What a library says of the function of this name; of the only one, where none is named."""
    functions: Dict[str, Dict[str, Any]] = {each["name"]: each for each in library["functions"]}
    if function is None and len(functions) == 1:
        function = next(iter(functions))
    if function not in functions:
        raise Mistake(f"{shown}: {'no function ' + repr(function) if function else 'several functions'}, "
                      f"give one of {', '.join(functions)}")
    return functions[function]


def _check_machine(library: Dict[str, Any], shown: str) -> None:
    architecture, here = library["target"]["triple"].split("-")[0], platform.machine()
    if architecture != _ARCHITECTURES.get(here, here):
        raise Failure(f"{shown}: its code is for {architecture} ({library['platform']}), this machine is {here}; "
                      "compile a run on a platform of this machine")


def _wrappers(calls: Mapping[str, Dict[str, Any]], runs_here: Optional[str], threads: int) -> str:
    """C functions of one type around those of a library, which need not be visible outside of it."""
    text, given = "", {}
    if threads > 1:
        text = (f'#include "graft_pool.h"\nstatic graft_pool* pool;\n'
                f"long graft_start(void** p) {{ pool = graft_pool_start({threads}); return pool != 0; }}\n"
                f"long graft_stop(void** p) {{ graft_pool_stop(pool); return 0; }}\n")
        given = {"parallel_for": "(void*)graft_pool_for", "context": "pool"}
    for name, call in calls.items():
        of = ["long long" if each["kind"] in ("budget_ns", "extent") else "void*" for each in call["arguments"]]
        passed = [str(each["value"]) if each["kind"] == "extent" else given.get(each["kind"], f"({kind})p[{i}]")
                  for i, (kind, each) in enumerate(zip(of, call["arguments"]))]
        returns = "int" if name == "select" else "void"
        body = f"{call['symbol']}({', '.join(passed)})"
        text += (f"extern {returns} {call['symbol']}({', '.join(of)});\n"
                 f"long graft_{name}(void** p) {{ {f'return {body};' if returns == 'int' else f'{body}; return 0;'} }}\n")
    if runs_here is not None:
        text += f"extern int {runs_here}(void);\nlong graft_runs_here(void** p) {{ return {runs_here}(); }}\n"
    return text


def _linked(folder: str, library: Dict[str, Any], calls: Mapping[str, Dict[str, Any]], threads: int, cc: str,
            shown: str) -> _Code:
    """The code as a shared object of this process; its file is gone once it is loaded."""
    _check_machine(library, shown)
    pool = os.path.join(folder, "graft_pool.c")
    if threads > 1 and not os.path.isfile(pool):
        raise Mistake(f"{shown}: threads: its code is for one; tune on a platform with several, such as native,threads=2")
    runs_here = library.get("runs_here")
    code = os.path.join(folder, library["code"])
    with tempfile.TemporaryDirectory(prefix="graft-") as made:
        source, shared = os.path.join(made, "calls.c"), os.path.join(made, "calls.so")
        with open(source, "w", encoding="ascii") as file:
            file.write(_wrappers(calls, runs_here, threads))
        command = [_path("cc", cc), "-shared", "-fPIC", "-O2", "-w", "-fno-builtin", "-fno-stack-protector", "-I", folder,
                   "-o", shared, source, *(["-pthread", pool] if threads > 1 else ["-nostdlib"]), code]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
            linked = _Code(shared)
        except FileNotFoundError:
            raise Failure(f"{cc}: not found, install a C compiler or name one by cc=") from None
        except subprocess.CalledProcessError as error:
            lines = error.stderr.strip().splitlines() or [f"{cc} failed"]
            raise Failure(f"{shown}: {library['code']} cannot be linked here: {lines[-1]}") from None
        except ValueError as error:
            raise Failure(f"{shown}: {library['code']} cannot be loaded here: {error}") from None
    if runs_here is not None and linked.number("graft_runs_here") == 0:
        needs = " or ".join(" ".join(each["needs"]) for each in library.get("platforms", [library]))
        raise Failure(f"{shown}: its code is for {library['platform']} and needs {needs}, which this machine lacks; "
                      "compile a run on a platform of this machine")
    if threads > 1 and linked.number("graft_start") == 0:
        raise Failure(f"{shown}: threads: the system does not give {threads}")
    return linked


def compile_with(answers: Any, *, constants: Any = None, **settings: Any) -> Any:
    """compile() with constants as arrays by name, too."""
    if not isinstance(constants, Mapping):
        return _compile(answers, constants=constants, **settings)
    with tempfile.TemporaryDirectory(prefix="graft-") as folder:
        file = os.path.join(folder, "constants.npz")
        np.savez(file, **{str(name): np.asarray(array) for name, array in constants.items()})
        return _compile(answers, constants=file, **settings)


@contextlib.contextmanager
def _folder_of(source: Union[str, _Files]) -> Iterator[str]:
    """A folder with these files."""
    if isinstance(source, str):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="graft-") as folder:
        for name, content in source.items():
            pathlib.Path(folder, name).write_bytes(content)
        yield folder


def _own_files(files: _Files) -> _Files:
    """Those that this module reads."""
    return {name: content for name, content in files.items()
            if name.startswith("graft_pool") or not name.endswith((".h", ".pc", ".cmake"))}


def _restored(kind: Any, state: Dict[str, Any]) -> Any:
    made = kind.__new__(kind)
    made._set(**state)
    return made


def _by_name(name: str, wanted: Sequence[Parameter], arrays: Sequence[Any], named: Mapping[str, Any]) -> Dict[str, Any]:
    """What was given for each of these parameters of a call."""
    names = [parameter.name for parameter in wanted]
    takes = f"it takes {', '.join(names) or 'none'}"
    if len(arrays) > len(names):
        raise WrongType(f"{name}: {len(arrays)} arrays, {takes}")
    given = dict(zip(names, arrays))
    for each, array in named.items():
        if each not in names or each in given:
            raise WrongType(f"{name}: {each}: " + ("given twice" if each in given else f"not taken, {takes}"))
        given[each] = array
    for each in names:
        if each not in given:
            raise WrongType(f"{name}: {each}: missing, {takes}")
    return given


def _array_of(name: str, parameter: Parameter, given: Any) -> _Array:
    """As an array of numpy that shares the memory; an error for one of another type or shape."""
    array = given
    if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__"):
        try:
            array = np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise WrongType(f"{name}: {parameter.name}: {error}") from None
    if not isinstance(array, np.ndarray):
        raise WrongType(f"{name}: {parameter.name}: no array of numpy or DLPack, got {type(given).__name__}")
    if array.dtype != parameter.dtype:
        raise WrongType(f"{name}: {parameter.name}: {array.dtype}, give {parameter.dtype}")
    if array.shape != parameter.shape:
        raise Mistake(f"{name}: {parameter.name}: shape {array.shape}, give {parameter.shape}")
    is_direct = array.flags.c_contiguous and array.nbytes > 0
    if parameter.role == "output" and array is not given and not array.flags.writeable and is_direct:
        # numpy takes memory of others only to read it.
        memory: Any = (ctypes.c_byte * array.nbytes).from_address(array.ctypes.data)
        array = np.frombuffer(memory, parameter.dtype).reshape(parameter.shape)
    return array if type(array) is np.ndarray and array.dtype is parameter.dtype else \
        np.asarray(array).view(parameter.dtype)


class _Callable:
    """What is called on arrays by parameter."""

    _is: Dict[str, Any]  # what NAME.json says of it
    _source: Union[str, _Files]  # the folder it was loaded from, absolute, or what was compiled here
    _shown: str  # as what errors name that
    _threads: int
    _cc: str
    _code: _Code
    _alignment: int
    _taken: Tuple[Parameter, ...]  # what a call takes, in order
    _written: Tuple[Parameter, ...]
    _caller: _Caller
    _call: Callable[..., Any]

    @property
    def name(self) -> str:
        """Of the C function, or of the network."""
        return str(self._is["name"])

    def _new(self, shape: Sequence[int], dtype: Any) -> _Array:
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        buffer = np.empty(size + self._alignment, np.uint8)
        begin = -buffer.ctypes.data % self._alignment
        array: _Array = buffer[begin:begin + size].view(dtype).reshape(shape)
        return array

    def _made_caller(self, steps: Sequence[Tuple[str, Dict[str, Any]]], parameters: Sequence[Parameter],
                     fixed: Mapping[str, Optional[_Array]], blocks: Mapping[str, int], *, key: str = "name",
                     number: bool = False, budget_ns: int = 0) -> _Caller:
        """`fixed`: memory by the names of tensors, or by kinds of arguments; so `blocks`, that a call has for itself."""
        tensors = [parameter.name if key == "name" else self._argument(i) for i, parameter in enumerate(parameters)]
        there = {name: array for name, array in fixed.items() if array is not None}
        kinds = [*there, "budget_ns", *blocks]
        null = len(tensors) + len(kinds)
        names = [parameter.name for parameter in parameters]

        def place(argument: Dict[str, Any]) -> int:
            name = argument["tensor" if key == "name" else "argument"] if argument["kind"] == "tensor" else None
            if name is not None and name in tensors:
                return tensors.index(name)
            name = argument["kind"] if name is None else "tensor " + name
            return len(tensors) + kinds.index(name) if name in kinds else null

        return _Caller(self._code,
                       [("graft_" + name, [place(each) for each in call["arguments"]]) for name, call in steps],
                       [(each.name, each.role == "output", each._stored, each.shape, each.alignment,
                         names.index(each.overwrites) if each.overwrites else -1) for each in parameters],
                       [*(array.ctypes.data for array in there.values()), budget_ns], list(blocks.values()), number,
                       list(there.values()))

    def _argument(self, position: int) -> str:
        raise NotImplementedError

    def _use(self, taken: Tuple[Parameter, ...], caller: _Caller) -> None:
        self._taken, self._caller = taken, caller
        has_others = any(each.memory is not None for each in (*taken, *self._written))
        self._call = (lambda *_: NotImplemented) if has_others else caller.call

    def _is_direct(self, parameter: Parameter, array: _Array) -> bool:
        is_aligned = array.flags.c_contiguous and array.ctypes.data % parameter.alignment == 0
        return parameter.memory is None and is_aligned

    def _matched(self, wanted: Sequence[Parameter], arrays: Sequence[Any], named: Mapping[str, Any]) -> List[_Array]:
        """Arrays in the order of these parameters, as the code can read them."""
        given = _by_name(self.name, wanted, arrays, named)
        found = []
        for parameter in wanted:
            array = _array_of(self.name, parameter, given[parameter.name])
            if not self._is_direct(parameter, array):
                copied = self._new(parameter.shape, parameter._stored)
                copied[...] = array
                array = copied
            found.append(array)
        return found

    def _outputs(self, out: Any) -> List[_Array]:
        given = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(given) != len(self._written):
            raise WrongType(f"{self.name}: out: {len(given)} arrays, {len(self._written)} are written")
        results = [_array_of(self.name, parameter, array) for parameter, array in zip(self._written, given)]
        for parameter, result in zip(self._written, results):
            if not result.flags.writeable:
                raise Mistake(f"{self.name}: {parameter.name}: the array cannot be written")
        return results

    def _declared(self, results: Any) -> Any:
        """Outputs of the code in their dtype: the lower bytes of integers that have more there."""
        arrays = [array if each.memory is None else array.astype(each.dtype)
                  for each, array in zip(self._written, results if isinstance(results, tuple) else (results,))]
        return tuple(arrays) if isinstance(results, tuple) else arrays[0]

    def _called(self, arrays: Tuple[Any, ...], named: Dict[str, Any], out: Any) -> Any:
        """What the extension does not do itself: arrays that are converted, copied or refused."""
        is_input = any(each.name == "out" for each in self._taken) and len(arrays) + len(named) < len(self._taken)
        if out is not None and is_input:
            named, out = {**named, "out": out}, None
        read = self._matched(self._taken, arrays, named)
        if out is None:
            return self._declared(self._caller.call(tuple(read), None, None))
        results = self._outputs(out)
        written: List[_Array] = []
        names = [each.name for each in self._taken]
        for parameter, result in zip(self._written, results):
            source = read[names.index(parameter.overwrites)] if parameter.overwrites else None
            is_source = source is not None and source.ctypes.data == result.ctypes.data
            overlaps = any(np.may_share_memory(result, each) for each in (*read, *written)
                           if not (is_source and each is source))
            in_place = self._is_direct(parameter, result) and not overlaps
            written.append(result if in_place else self._new(parameter.shape, parameter._stored))
        self._caller.call(tuple(read), None, tuple(written))
        for result, buffer in zip(results, written):
            if result is not buffer:
                result[...] = buffer
        return out if not isinstance(out, list) else tuple(out)

    def __call__(self, /, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Runs it. out: where the output goes (a sequence where there are several); None: new arrays."""
        result = self._call(arrays, named, out)
        return self._called(arrays, named, out) if result is NotImplemented else result

    def bind(self, /, *arrays: Any) -> Callable[[], Any]:
        """A function without arguments that runs it on these very arrays, inputs and then outputs, as often as it is
        called, and returns the outputs: the cheapest call. The arrays are read and written where they are, so they must
        be contiguous, aligned (Parameter.alignment; what numpy makes is), and apart, but for Parameter.overwrites."""
        inputs = len(self._taken)
        if len(arrays) != inputs + len(self._written):
            names = ", ".join(each.name for each in (*self._taken, *self._written))
            raise WrongType(f"{self.name}: bind: {len(arrays)} arrays, give {names}")
        wanted = (*self._taken, *self._written)
        found = [_array_of(self.name, parameter, array) for parameter, array in zip(wanted, arrays)]
        for parameter, array in zip(wanted, found):
            if parameter.memory is not None:
                raise Mistake(f"{self.name}: {parameter.name}: {parameter.dtype} is converted to {parameter.memory}, "
                              "which bind() cannot do, call it without")
            if not self._is_direct(parameter, array):
                raise Mistake(f"{self.name}: {parameter.name}: not contiguous or not aligned to {parameter.alignment} bytes, "
                              "give a copy")
        self._outputs(tuple(found[inputs:]))
        results = arrays[inputs:] if len(self._written) != 1 else arrays[inputs]
        bound: Any = self._caller.bind(tuple(found[:inputs]), tuple(found[inputs:]), results)
        if bound is NotImplemented:
            raise Mistake(f"{self.name}: an output shares memory with another array, give a copy")
        function: Callable[[], Any] = bound
        return function

    def __copy__(self) -> "_Callable":
        made: _Callable = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: Dict[int, Any]) -> "_Callable":
        return self.__copy__()  # nothing that both have is ever changed


class Kernel(_Callable):
    """One function of a compiled library, called on numpy arrays.

    source: an Answer (compiled here and now), the folder of a run of tune() (the same), or the folder that graft
    compile or graft.write() made. function: its name, where the library has several. variants: how many distinct
    programs of an answer are compiled, for select(). threads: that a call may use, of code that was tuned for several.
    cc: the C compiler.

    A call takes the inputs and constants in the order of `parameters`, or by name, and returns the output (a tuple
    where there are several). Arrays are numpy's, or such as DLPack takes (torch), of the parameter's very shape and
    dtype. Those that are not contiguous, or less aligned than their Parameter says, are copied. Calls run without
    the interpreter's lock; several threads may call one Kernel, each with memory of its own. A kernel can be pickled: as
    the path of its folder, or with its code if it was compiled here.
    """

    def __init__(self, source: Union[Answer, _PathLike], function: Optional[str] = None, *, variants: int = 1,
                 threads: int = 1, cc: str = "cc") -> None:
        if isinstance(source, Answer):
            self._compiled(source, function, variants, threads, cc, source.workload)
        elif os.path.isfile(os.path.join(_path("source", source), "run.json")):
            self._compiled(_answer_of(source), function, variants, threads, cc, _path("source", source))
        elif variants != 1:
            raise Mistake("variants: of a library that is compiled already; it has those that it was made with")
        else:
            folder = _path("source", source)
            self._set(folder, folder, function, threads, cc, None)

    def _compiled(self, answer: Answer, function: Optional[str], variants: int, threads: int, cc: str, shown: str) -> None:
        if answer.source == "opencl":
            raise Mistake(f"{shown}: its kernels are of OpenCL, give it to load() or OpenclKernel")
        files = _compile([answer], format="object", variants=variants).files
        self._set(_own_files(files), shown, function, threads, cc, None)

    def _set(self, source: Union[str, _Files], shown: str, function: Optional[str], threads: int, cc: str,
             constants: Optional[Dict[str, _Array]]) -> None:
        with _folder_of(source) as folder:
            library = _library_in(folder, shown=shown)
            self._is = _function_in(library, function, shown)
            calls = {"run": self._is["parallel" if threads > 1 and self._is["parallel"] else "run"],
                     "prepare": self._is["prepare"], "select": self._is["select"]}
            self._calls = {name: call for name, call in calls.items() if call}
            self._code = _linked(folder, library, self._calls, threads, cc, shown)
        self._source = os.path.abspath(source) if isinstance(source, str) else source
        self._shown, self._threads, self._cc, self._alignment = shown, threads, cc, library["alignment"]
        self._parameters = tuple(
            Parameter(each["name"], each["role"], np.dtype(_DTYPES[each["dtype"]]),
                      tuple(dimension["extent"] for dimension in each["stored"]), each["layout"],
                      each.get("alignment", self._alignment))
            for each in self._is["tensors"] if "argument" in each)
        self._written = self._of("output")
        self._constants = constants
        if constants is None:
            blocks = {"scratch": max(self._is["scratch_bytes"], self._is["prepare_scratch_bytes"]),
                      "prepared": self._is["prepared_bytes"]}
            steps = [(name, self._calls[name]) for name in ("prepare", "run") if name in self._calls]
            taken = self._of("input", "constant")
            self._use(taken, self._made_caller(steps, (*taken, *self._written), {}, blocks))
        else:
            self.prepare(**constants)

    def _of(self, *roles: str) -> Tuple[Parameter, ...]:
        return tuple(parameter for parameter in self._parameters if parameter.role in roles)

    @property
    def workload(self) -> str:
        """Its canonical text."""
        return str(self._is["workload"])

    @property
    def parameters(self) -> Tuple[Parameter, ...]:
        """Inputs, constants and outputs, in order."""
        return self._parameters

    def empty(self, parameter: str) -> _Array:
        """An array for the parameter of this name, aligned to 64 bytes, its content undefined."""
        for each in self.parameters:
            if each.name == parameter:
                return self._new(each.shape, each.dtype)
        raise Mistake(f"{self.name}: no parameter {parameter!r}, "
                      f"give one of {', '.join(each.name for each in self.parameters)}")

    def prepare(self, /, *arrays: Any, **named: Any) -> None:
        """Takes the constants (weights), once: calls then take the inputs alone. They are copied."""
        wanted = self._of("constant")
        constants = {}
        for parameter, array in zip(wanted, self._matched(wanted, arrays, named)):
            constants[parameter.name] = self._new(parameter.shape, parameter.dtype)
            constants[parameter.name][...] = array
        prepared = self._new((self._is["prepared_bytes"],), np.uint8)
        if "prepare" in self._calls:
            caller = self._made_caller([("prepare", self._calls["prepare"])], wanted, {"prepared": prepared},
                                       {"scratch": self._is["prepare_scratch_bytes"]}, number=True)
            caller.call(tuple(constants.values()), None, None)
        fixed = {"tensor " + name: array for name, array in constants.items()}
        taken = self._of("input")
        self._constants = constants
        self._use(taken, self._made_caller([("run", self._calls["run"])], (*taken, *self._written),
                                           {**fixed, "prepared": prepared}, {"scratch": self._is["scratch_bytes"]}))

    def select(self, /, *arrays: Any, budget_seconds: float = 0.1, **named: Any) -> int:
        """Times the variants on these arrays, at least five times each, and keeps the fastest for this and all later
        calls of what was loaded with it: its number, as of NAME.json's `variants`. Constants are prepared again."""
        if "select" not in self._calls:
            return 0
        wanted = self._of("input", "constant") if self._constants is None else self._taken
        given = self._matched(wanted, arrays, named)
        inputs = {parameter.name: array for parameter, array in zip(wanted, given)}
        fixed = {"tensor " + name: array for name, array in {**(self._constants or {}), **inputs}.items()}
        caller = self._made_caller(
            [("select", self._calls["select"])], self._written, fixed,
            {"prepared": self._is["prepared_bytes"],
             "scratch": max(self._is["scratch_bytes"], self._is["prepare_scratch_bytes"])},
            number=True, budget_ns=int(budget_seconds * 1e9))
        number: int = caller.call((), None, None)
        if self._constants is not None:
            self.prepare(**self._constants)
        return number

    def __reduce__(self) -> Tuple[Any, ...]:
        return _restored, (type(self), {"source": self._source, "shown": self._shown, "function": self.name,
                                        "threads": self._threads, "cc": self._cc, "constants": self._constants})

    def __repr__(self) -> str:
        return f"<graft.Kernel {self.name}: {self.workload}>"


class Network(_Callable):
    """A whole network of a compiled library, called on numpy arrays.

    source: the folder of a tuned network (graft tune MODEL.onnx, tune_network()), which is compiled here and now; or the
    one that graft compile or graft.write() made, with NAME.json and the files next to it. threads, cc: as of Kernel.

    A call takes the inputs in the order of `inputs`, or by name (`network(**{"input.1": x})`), and returns the output (a
    tuple where there are several); run() is the call of ONNX Runtime. All else is as with Kernel.
    """

    def __init__(self, source: _PathLike, *, threads: int = 1, cc: str = "cc") -> None:
        self._set(*_network_of(source), threads, cc)

    def _set(self, source: Union[str, _Files], shown: str, threads: int, cc: str) -> None:
        with _folder_of(source) as folder:
            library = _library_in(folder, ("sequence",), shown)
            if "shapes" in library:
                raise Mistake(f"{shown}: a network for several shapes, which load() and ShapedNetwork take")
            code = _linked(folder, library, {"run": library["run"]}, threads, cc, shown)
            self._bind(library, code, _read_weights(library, folder, shown), "run", library["run"])
        self._source, self._shown, self._threads, self._cc = _kept(source, library), shown, threads, cc

    def _bind(self, library: Dict[str, Any], code: _Code, weights: Optional[_Array], name: str,
              run: Dict[str, Any]) -> None:
        self._is, self._code, self._weights, self._alignment = library, code, weights, library["alignment"]
        self._taken, self._written = (
            tuple(_parameter_of(each, role, self._alignment) for each in library[role + "s"])
            for role in ("input", "output"))
        self._use(self._taken, self._made_caller([(name, run)], (*self._taken, *self._written), {"weights": weights},
                                                 {"arena": library["arena_bytes"]}, key="argument"))

    def _argument(self, position: int) -> str:
        return [*self._is["inputs"], *self._is["outputs"]][position]["argument"]  # type: ignore[no-any-return]

    @property
    def inputs(self) -> Tuple[Parameter, ...]:
        """In order."""
        return self._taken

    @property
    def outputs(self) -> Tuple[Parameter, ...]:
        """In order."""
        return self._written

    def run(self, output_names: Optional[Sequence[str]], inputs: Mapping[str, Any]) -> List[_Array]:
        """As the call of ONNX Runtime's InferenceSession: a list of the outputs of these names (None: all), of inputs by
        name."""
        names = [each.name for each in self.outputs]
        for name in output_names or ():
            if name not in names:
                raise Mistake(f"{self.name}: no output {name!r}, give of {', '.join(names)}")
        arrays = tuple(inputs[each.name] for each in self.inputs if each.name in inputs)
        results = self._call(arrays, None, None) if len(arrays) == len(inputs) == len(self.inputs) else NotImplemented
        if results is NotImplemented:
            results = self._called((), dict(inputs), None)
        found = [results] if len(names) == 1 else list(results)
        return found if output_names is None else [found[names.index(name)] for name in output_names]

    def __reduce__(self) -> Tuple[Any, ...]:
        return _restored, (type(self), _state(self))

    def __repr__(self) -> str:
        return f"<graft.Network {self.name}: {len(self._is['calls'])} calls>"


class ShapedNetwork:
    """A network that was tuned for several shapes (graft tune --shape batch=1,4), called as a Network: the shapes of the
    arrays say for which.

    source, threads, cc: as of Network. Calls of several threads at once as with Network.
    """

    _source: Union[str, _Files]
    _weights: Optional[_Array]

    def __init__(self, source: _PathLike, *, threads: int = 1, cc: str = "cc") -> None:
        self._set(*_network_of(source), threads, cc)

    def _set(self, source: Union[str, _Files], shown: str, threads: int, cc: str) -> None:
        with _folder_of(source) as folder:
            self._is = _library_in(folder, ("sequence",), shown)
            if "shapes" not in self._is:
                raise Mistake(f"{shown}: a network for one shape, which load() and Network take")
            calls = {f"run{s}": self._call_of(shape["extents"]) for s, shape in enumerate(self._is["shapes"])}
            code = _linked(folder, self._is, calls, threads, cc, shown)
            self._weights = _read_weights(self._is, folder, shown)
        self._source, self._shown, self._threads, self._cc = _kept(source, self._is), shown, threads, cc
        self._networks: List[Network] = []
        for (name, call), shape in zip(calls.items(), self._is["shapes"]):
            network = Network.__new__(Network)
            network._bind({**self._is, **shape}, code, self._weights, name, call)
            network._source, network._shown, network._threads, network._cc = self._source, shown, threads, cc
            self._networks.append(network)

    def _call_of(self, extents: Sequence[int]) -> Dict[str, Any]:
        values = iter(extents)
        return {"symbol": self._is["run"]["symbol"],
                "arguments": [{**each, "value": next(values)} if each["kind"] == "extent" else each
                              for each in self._is["run"]["arguments"]]}

    @property
    def name(self) -> str:
        """Of the network."""
        return str(self._is["name"])

    @property
    def shapes(self) -> List[Dict[str, int]]:
        """The extents that it has, by name."""
        return [dict(zip(self._is["extents"], shape["extents"])) for shape in self._is["shapes"]]

    def at(self, /, **extents: int) -> Network:
        """The network for exactly these extents."""
        if extents not in self.shapes:
            raise Mistake(f"{self.name}: {extents}: give one of {', '.join(map(str, self.shapes))}")
        return self._networks[self.shapes.index(extents)]

    def fit(self, /, **extents: int) -> Dict[str, int]:
        """The extents of the smallest shape that has as many or more of each, for a caller that fills its inputs up with
        what the model masks."""
        fitting = [(sum(int(np.prod(each.shape)) * each.dtype.itemsize for each in network.inputs), s)
                   for s, (network, shape) in enumerate(zip(self._networks, self.shapes))
                   if extents.keys() == shape.keys() and all(shape[name] >= extents[name] for name in shape)]
        if not fitting:
            raise Mistake(f"{self.name}: {extents}: none of {', '.join(map(str, self.shapes))} holds them")
        return self.shapes[min(fitting)[1]]

    def _for(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> Network:
        given = {**dict(zip((each.name for each in self._networks[0].inputs), arrays)), **named}
        shapes = {name: tuple(getattr(array, "shape", ())) for name, array in given.items()}
        for network in self._networks:
            if all(shapes.get(each.name, each.shape) == each.shape for each in network.inputs):
                return network
        raise Mistake(f"{self.name}: inputs of the shapes {shapes}: give those of {', '.join(map(str, self.shapes))}")

    def __call__(self, /, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """As a call of the Network for the shapes of these arrays."""
        return self._for(arrays, named)(*arrays, out=out, **named)

    def run(self, output_names: Optional[Sequence[str]], inputs: Mapping[str, Any]) -> List[_Array]:
        """As Network.run."""
        return self._for((), inputs).run(output_names, inputs)

    def __reduce__(self) -> Tuple[Any, ...]:
        return _restored, (type(self), _state(self))

    def __repr__(self) -> str:
        return f"<graft.ShapedNetwork {self.name}: {len(self._networks)} shapes>"


def _network_of(source: _PathLike) -> Tuple[Union[str, _Files], str]:
    """The folder of a compiled network, or what that of a tuned one is compiled to; and as what errors name it."""
    folder = _path("source", source)
    if not _is_tuned_network(folder):
        return folder, folder
    return _own_files(_compile_network(source, format="object", weights_in_file=True).files), folder


def _read_weights(library: Dict[str, Any], folder: str, shown: str) -> Optional[_Array]:
    if library["weights"] is None:
        return None
    path, size = os.path.join(folder, library["weights"]), library["weights_bytes"]
    if not os.path.isfile(path) or os.path.getsize(path) != size:
        raise Mistake(f"{os.path.join(shown, library['weights'])}: not the weights of {library['name']}, put the file of "
                      f"{size} bytes there that was made with the library")
    # A file that is mapped stays as long as the mapping, also when its folder is gone.
    return np.memmap(path, np.uint8, "r") if size > 0 else None


def _kept(source: Union[str, _Files], library: Dict[str, Any]) -> Union[str, _Files]:
    if isinstance(source, str):
        return os.path.abspath(source)
    return {name: content for name, content in source.items() if name != library["weights"]}


def _state(network: Union[Network, ShapedNetwork]) -> Dict[str, Any]:
    """What a network is made again of."""
    source = network._source
    if not isinstance(source, str) and network._weights is not None:
        source = {**source, network._is["weights"]: network._weights.tobytes()}
    return {"source": source, "shown": network._shown, "threads": network._threads, "cc": network._cc}


def _is_tuned_network(folder: str) -> bool:
    tuned = pathlib.Path(folder, "network.json")
    if not tuned.is_file():
        return False
    said = json.loads(tuned.read_text())
    return isinstance(said, dict) and said.get("kind") in ("network", "networks")


def _is_shaped(folder: str) -> bool:
    tuned = pathlib.Path(folder, "network.json")
    if _is_tuned_network(folder):
        return bool(json.loads(tuned.read_text())["kind"] == "networks")
    return "shapes" in _library_in(folder, ("sequence",))


def load(folder: _PathLike, function: Optional[str] = None, *, threads: int = 1, cc: str = "cc",
         device: int = 0) -> "Union[Kernel, Network, ShapedNetwork, OpenclKernel]":
    """What a folder has: of a compiled library the Kernel (`function`, where there are several), the Network or the
    ShapedNetwork; of a run of tune() or tune_network() what it is compiled to, here and now; of either, where it is for
    OpenCL, the OpenclKernel on the host's device of that number."""
    path = _path("folder", folder)
    if os.path.isfile(os.path.join(path, "run.json")):
        kind = "opencl" if _answer_of(path).source == "opencl" else "library"
    else:
        kind = "" if _is_tuned_network(path) else _library_in(path, tuple(_KINDS))["kind"]
    if kind == "opencl":
        from .opencl import OpenclKernel
        return OpenclKernel(path, function, device=device)
    if kind == "library":
        return Kernel(path, function, threads=threads, cc=cc)
    if function is not None:
        raise Mistake(f"{path}: a network has no function {function!r}, leave it out")
    return (ShapedNetwork if _is_shaped(path) else Network)(path, threads=threads, cc=cc)


def kernels(folder: _PathLike) -> List[str]:
    """Names of the functions of the library in a folder, for Kernel(folder, name)."""
    return [each["name"] for each in _library_in(_path("folder", folder), ("library", "opencl"))["functions"]]
