import os
import subprocess
import sys
import unittest

from support import PROJECT, InFolder


class Example(InFolder):
    def test_transfer(self):
        command = [sys.executable, "-B", PROJECT / "examples" / "python" / "transfer.py", "--trials", "8", "--runs",
                   self.folder / "runs", "--out", self.folder / "transfer.png"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        table = run.stdout.splitlines()[-4:]
        self.assertEqual([line.split()[0] for line in table], ["1", "2", "4", "8"], run.stdout)
        for column in (1, 2):
            times = [float(line.split()[column]) for line in table]
            self.assertEqual(times, sorted(times, reverse=True), run.stdout)
        # Drawn, or it is said why not.
        self.assertIn("transfer.png: " + ("written" if os.path.exists(self.folder / "transfer.png") else "not drawn"),
                      run.stderr)


if __name__ == "__main__":
    unittest.main()
