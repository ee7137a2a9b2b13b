"""What the tests of the Python module share."""

import pathlib
import tempfile
import unittest

import graft

SMALL = graft.Workload("matmul(m=8,n=16,k=8)")
PROJECT = pathlib.Path(__file__).resolve().parents[2]
SHIPPED = PROJECT / "datasets" / "shipped"
MODELLED = "model:sifive-u54"  # equal calls give equal times


class InFolder(unittest.TestCase):
    """A folder of its own for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="graft-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
