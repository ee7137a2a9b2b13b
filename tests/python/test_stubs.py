"""The stubs and the module name the same things."""

import ast
import importlib.resources
import importlib.util
import inspect
import os
import subprocess
import sys
import unittest

import graft
import graft._graft as module
from support import PROJECT

# The stub's text as it is installed.
FOLDER = importlib.resources.files("graft")
STUB = [node for name in ("_graft.pyi", "_calls.pyi") for node in ast.parse((FOLDER / name).read_text()).body]


def public(names):
    return {name for name in names if not name.startswith("_")}


def signature(function):
    """Parameters by name: whether each must be named, and its default (None: it has none, or it is None)."""
    given, arguments = {}, function.args
    positional = arguments.posonlyargs + arguments.args
    without = len(positional) - len(arguments.defaults)
    for i, argument in enumerate(positional):
        given[argument.arg] = (False, arguments.defaults[i - without] if i >= without else None)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        given[argument.arg] = (True, default)
    return {name: (named, default and ast.literal_eval(default)) for name, (named, default) in given.items()}


def said(function):
    """The same of what users see."""
    return {parameter.name: (parameter.kind is inspect.Parameter.KEYWORD_ONLY,
                             None if parameter.default is inspect.Parameter.empty else parameter.default)
            for parameter in inspect.signature(function).parameters.values()}


def shown(name):
    """Of the extension, as users see it."""
    return getattr(graft, name) if name in graft.__all__ else getattr(module, name)


def plain(signature):
    return {name: (named, list(default) if isinstance(default, tuple) else default)
            for name, (named, default) in signature.items() if name != "self"}


class Stubs(unittest.TestCase):
    maxDiff = None
    functions = {node.name: node for node in STUB if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in STUB if isinstance(node, ast.ClassDef)}

    def test_name_what_the_module_has(self):
        self.assertEqual(public(self.functions) | public(self.classes), public(vars(module)))
        for name, node in self.classes.items():
            members = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            self.assertEqual(public(members), public(vars(getattr(module, name))), name)
            if name in graft.__all__:
                self.assertEqual(getattr(module, name).__module__, "graft", name)

    def test_have_its_parameters(self):
        for name, node in self.functions.items():
            if name not in graft.__all__:
                continue
            self.assertEqual(plain(signature(node)), plain(said(shown(name))), name)
        for name, node in self.classes.items():
            for method in node.body if name in graft.__all__ else ():
                overloaded = [each for each in getattr(method, "decorator_list", ()) if getattr(each, "id", "") == "overload"]
                if not isinstance(method, ast.FunctionDef) or method.name in ("__eq__", "__hash__") or overloaded:
                    continue
                if any(isinstance(each, ast.Name) and each.id == "property" for each in method.decorator_list):
                    self.assertIsInstance(vars(getattr(module, name))[method.name], property, f"{name}.{method.name}")
                    continue
                self.assertEqual(plain(signature(method)), plain(said(getattr(shown(name), method.name))),
                                 f"{name}.{method.name}")

    def test_are_seen_by_completion_and_help(self):
        for name in graft.__all__:
            public = getattr(graft, name)
            self.assertEqual(public.__module__, "graft", name)
            if not isinstance(public, type) or "__signature__" in vars(public):
                self.assertGreaterEqual(len(inspect.signature(public).parameters), 0, name)
        self.assertIn("explorer", inspect.signature(graft.tune_network).parameters)
        self.assertEqual(list(inspect.signature(graft.Search).parameters)[:2], ["workload", "platform"])
        self.assertNotIn("MB of constants", graft.tune.__doc__)

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "no mypy here")
    def test_are_strict(self):
        examples = sorted((PROJECT / "examples" / "python").glob("*.py"))
        checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, *examples],
                                 capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(PROJECT / "python")})
        lines = [line for line in checked.stdout.splitlines() if ": error:" in line and "optuna" not in line]
        self.assertEqual(lines, [])

    def test_are_for_all_that_is_public(self):
        for name in graft.__all__:
            if hasattr(module, name):
                self.assertIn(name, {*self.functions, *self.classes})
        self.assertTrue((importlib.resources.files("graft") / "py.typed").is_file())


if __name__ == "__main__":
    unittest.main()
