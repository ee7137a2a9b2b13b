import unittest

import numpy as np

import graft
from support import MODELLED, SHIPPED, SMALL, InFolder

try:
    import pandas
except ImportError:
    pandas = None


class Datasets(InFolder):
    def test_are_columns(self):
        data = graft.read_dataset(SHIPPED / "model-sifive-u54.h5")
        count = len(data["seconds"])
        self.assertGreater(count, 1000)
        for name, column in data.items():
            self.assertEqual(column.shape, (count,), name)
        self.assertEqual((data["seconds"].dtype, data["program"].dtype), (np.float64, np.uint64))
        self.assertEqual(set(data["platform"]), {"model:sifive-u54"})
        self.assertEqual(set(data["source"]), {"modelled"})
        ok = data["status"] == "ok"
        self.assertTrue(ok.any())
        np.testing.assert_array_equal(np.isnan(data["seconds"]), ~ok)
        self.assertEqual(data["seconds"][ok][0], min(data["repetitions"][ok][0]))
        self.assertTrue(data["sketch"][0].startswith("sketch "))
        self.assertIsInstance(data["arguments"][0][0], int)
        self.assertEqual(graft.Platform.from_yaml(data.yaml).source, "modelled")
        self.assertIn(str(count), repr(data))

    def test_schedules_are_those_that_are_predicted(self):
        data = graft.read_dataset(SHIPPED / "model-sifive-u54.h5")
        workload = data["workload"][0]
        rows = np.flatnonzero((data["workload"] == workload) & (data["status"] == "ok"))[:100]
        scores = graft.predict(None, workload, "model:sifive-u54", list(data["schedule"][rows]))
        self.assertTrue(np.isfinite(scores).all())
        # The shipped model has learned from this platform.
        self.assertLess(np.corrcoef(scores, np.log(data["seconds"][rows]))[0, 1], -0.5)

    def test_are_a_table_of_pandas(self):
        if pandas is None:
            self.skipTest("no pandas here")
        frame = pandas.DataFrame(graft.read_dataset(SHIPPED / "model-sifive-u54.h5"))
        self.assertIn("schedule", frame.columns)
        self.assertGreater(frame.groupby("workload").seconds.min().min(), 0)

    def test_other_files_are_refused(self):
        with self.assertRaisesRegex(graft.Mistake, "none.h5"):
            graft.read_dataset(self.folder / "none.h5")
        (self.folder / "text.h5").write_text("no dataset")
        with self.assertRaisesRegex(graft.Mistake, "text.h5"):
            graft.read_dataset(self.folder / "text.h5")


class Encodings(unittest.TestCase):
    schedules = ["tile C i 8", "tile C q 4", "order C l.0 j.0 i.0"]  # the second cannot be applied

    def test_are_rows_of_schedules(self):
        for encoding in ("context_relation", "analytic", "loop_context+facts"):
            rows = graft.encode(SMALL, MODELLED, self.schedules, encoding)
            self.assertEqual(rows.dtype, np.float32)
            self.assertEqual(rows.shape, (3, len(graft.feature_names(encoding))), encoding)
            self.assertTrue(np.isnan(rows[1]).all())
            self.assertTrue(np.isfinite(rows[[0, 2]]).all())
            np.testing.assert_array_equal(graft.encode(SMALL, MODELLED, self.schedules[2:], encoding, threads=2)[0],
                                          rows[2])
        self.assertEqual(graft.encode(SMALL, MODELLED, []).shape, (0, len(graft.feature_names("context_relation"))))
        self.assertEqual(graft.feature_names("analytic")[0], "cycles")

    def test_that_are_no_vector_are_refused(self):
        self.assertIn("context_relation", graft.encodings())
        for other in ("tree", "stores", "knobs", "columns"):
            self.assertNotIn(other, graft.encodings())
        with self.assertRaisesRegex(graft.Mistake, "encoding: tree has several rows for each program"):
            graft.encode(SMALL, MODELLED, self.schedules, "tree")
        with self.assertRaisesRegex(graft.Mistake, "encoding: knobs looks at a sketch's arguments"):
            graft.encode(SMALL, MODELLED, self.schedules, "knobs")
        with self.assertRaisesRegex(graft.Mistake, "did you mean 'analytic'"):
            graft.feature_names("analitic")
        with self.assertRaisesRegex(graft.Mistake, "schedule 1"):
            graft.encode(SMALL, MODELLED, ["tiel C i 8"])


if __name__ == "__main__":
    unittest.main()
