"""The stubs and the module name the same things."""

import ast
import importlib.resources
import unittest

import graft
import graft._graft as module

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
    """The same of a function of the module, whose docstring begins with it."""
    line = function.__doc__.splitlines()[0]
    return signature(ast.parse(f"def {line}: ...").body[0])


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

    def test_have_its_parameters(self):
        for name, node in self.functions.items():
            self.assertEqual(plain(signature(node)), plain(said(getattr(module, name))), name)
        for name, node in self.classes.items():
            for method in node.body:
                if not isinstance(method, ast.FunctionDef) or method.name in ("__eq__", "__hash__"):
                    continue
                if any(isinstance(each, ast.Name) and each.id == "property" for each in method.decorator_list):
                    self.assertIsInstance(vars(getattr(module, name))[method.name], property, f"{name}.{method.name}")
                    continue
                self.assertEqual(plain(signature(method)), plain(said(getattr(getattr(module, name), method.name))),
                                 f"{name}.{method.name}")

    def test_are_for_all_that_is_public(self):
        for name in graft.__all__:
            if getattr(graft, name).__module__ == "graft._graft":
                self.assertIn(name, {*self.functions, *self.classes})
        self.assertTrue((importlib.resources.files("graft") / "py.typed").is_file())


if __name__ == "__main__":
    unittest.main()
