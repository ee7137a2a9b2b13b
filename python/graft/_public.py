"""Functions and classes of the extension as users see them: with a signature, in the module graft, and with errors that
name the call and the parameter."""

import ast
import functools
import inspect
import reprlib
from typing import Any, Callable, Optional, TypeVar, cast

from ._graft import Mistake, WrongType

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)


def _signature(line: str) -> inspect.Signature:
    """Of the first line of a docstring: "tune(workload, platform, *, model=None)"."""
    function = ast.parse(f"def {line}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    kinds = [*((each, inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in given.posonlyargs + given.args),
             *((each, inspect.Parameter.KEYWORD_ONLY) for each in given.kwonlyargs)]
    missing = [None] * (len(given.posonlyargs) + len(given.args) - len(given.defaults))
    defaults = [*missing, *given.defaults, *given.kw_defaults]
    return inspect.Signature([
        inspect.Parameter(each.arg, kind, default=inspect.Parameter.empty if default is None else
                          ast.literal_eval(default)) for (each, kind), default in zip(kinds, defaults)])


def published(function: _F, name: str = "", by: Optional[Callable[..., Any]] = None) -> _F:
    """The function with a signature, and errors that name it. `by`: what is called in its place."""
    line, _, text = (function.__doc__ or "").partition("\n")
    signature = _signature(line)
    name = name or function.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise WrongType(f"{name}(): {error}") from None
        try:
            return (by or function)(*args, **kwargs)
        except Mistake as error:
            if isinstance(error, WrongType) or str(error).partition(":")[0] in signature.parameters:
                raise type(error)(f"{name}(): {error}") from None
            raise

    call.__doc__ = text.strip()
    call.__module__ = "graft"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return cast(_F, call)


def _not_made(self: object, *args: Any, **kwargs: Any) -> None:
    raise WrongType(f"{type(self).__name__}(): calls of graft return these, they are not made otherwise")


def _shown(self: Any) -> str:
    """Of a result, its properties; of a search, how much it was told."""
    kind = type(self)
    short = reprlib.Repr()
    short.maxstring = short.maxother = 60
    if hasattr(kind, "trials"):
        return f"<graft.{kind.__name__}: {len(self.trials())} trials>"
    names = [name for name, member in vars(kind).items() if isinstance(member, property)]
    return f"<graft.{kind.__name__} " + ", ".join(f"{name}={short.repr(getattr(self, name))}" for name in names) + ">"


def publish_class(kind: _C) -> None:
    """The same for its methods and its constructor."""
    for name, member in list(vars(kind).items()):
        is_static = isinstance(member, staticmethod)
        function = member.__func__ if is_static else member
        line = (getattr(function, "__doc__", None) or "").partition("\n")[0]
        if name.startswith("_") and name != "__init__" or not line.startswith(name + "("):
            continue
        call = published(function, kind.__name__ if name == "__init__" else f"{kind.__name__}.{name}")
        setattr(kind, name, staticmethod(call) if is_static else call)
    init = getattr(vars(kind)["__init__"], "__signature__", None)
    if init is None:
        setattr(kind, "__init__", _not_made)
    else:
        own = [parameter for parameter in init.parameters.values() if parameter.name != "self"]
        kind.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    if "__repr__" not in vars(kind):
        setattr(kind, "__repr__", _shown)
    kind.__module__ = "graft"
