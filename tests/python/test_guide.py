"""The Python of docs/guides/python.md runs as it is written, block after block."""

import contextlib
import io
import os
import re
import shutil
import unittest

from support import PROJECT, InFolder

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@unittest.skipUnless(shutil.which("cc"), "no C compiler links the kernels here")
class Guide(InFolder):
    def test_runs(self):
        text = (PROJECT / "docs" / "guides" / "python.md").read_text()
        blocks = BLOCK.findall(text)
        self.assertGreaterEqual(len(blocks), 6)
        (self.folder / "datasets").symlink_to(PROJECT / "datasets")  # the guide begins in the project's folder
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        names = {"__name__": "guide"}
        for block in blocks:
            line = text[:text.index(block)].count("\n")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile("\n" * line + block, "docs/guides/python.md", "exec"), names)


if __name__ == "__main__":
    unittest.main()
