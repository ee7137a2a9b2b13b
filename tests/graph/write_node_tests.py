"""Writes the tests that ONNX publishes with its operators, by the installed onnx package: write_node_tests.py FOLDER.

Debian's package has the programs that make them, and not what they make.
"""

import sys

import numpy

# Names that the package of 2022 uses and that numpy left out since.
for name, kind in {"bool": bool, "float": float, "int": int, "object": object}.items():
    if name not in numpy.__dict__:
        setattr(numpy, name, kind)
numpy.random.seed(0)

from onnx.backend.test import cmd_tools  # noqa: E402  (after the names are there)

sys.argv = ["write_node_tests", "generate-data", "--output", sys.argv[1]]
cmd_tools.main()
