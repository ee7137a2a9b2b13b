import os
import subprocess
import sys
import unittest
import zipfile

from support import PROJECT, InFolder

BUILD = os.environ.get("GRAFT_BUILD")


@unittest.skipUnless(BUILD and sys.version_info >= (3, 11), "no build folder, or no tomllib")
class Wheel(InFolder):
    def test_is_all_that_python_needs(self):
        made = subprocess.run([PROJECT / "scripts" / "wheel", self.folder / "dist", BUILD], check=True,
                              capture_output=True, text=True).stdout.strip()
        with zipfile.ZipFile(made) as wheel:
            self.assertEqual(wheel.testzip(), None)
            wheel.extractall(self.folder / "site")
            record = next(name for name in wheel.namelist() if name.endswith("RECORD"))
            listed = {line.split(",")[0] for line in wheel.read(record).decode().splitlines()}
            self.assertEqual(listed, set(wheel.namelist()))
        worker = self.folder / "site" / "graft" / "bin" / "graft-worker"
        worker.chmod(0o755)  # as pip does by the archive's modes, which zipfile leaves out
        code = ("import graft; answer = graft.tune('matmul(m=4,n=4,k=4)', 'native', trials=2, out='run');"
                "print(graft.__file__, answer.check)")
        said = subprocess.run([sys.executable, "-c", code], cwd=self.folder, check=True, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(self.folder / "site")}).stdout
        self.assertEqual(said.split(), [str(self.folder / "site" / "graft" / "__init__.py"), "host"])


if __name__ == "__main__":
    unittest.main()
