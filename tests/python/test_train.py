import unittest

import numpy as np

import graft
from support import SHIPPED, SMALL, InFolder

FILES = [SHIPPED / f"model-{name}.h5" for name in ("sifive-u54", "cortex-a53", "haswell")]


class Train(InFolder):
    def test_a_model_is_trained_and_predicts(self):
        told = []
        trained = graft.train(FILES, self.folder / "model.h5", rows=16, hold_out="model:haswell",
                              progress=lambda what, done, total: told.append(what))
        self.assertEqual(trained.platforms, ["model:sifive-u54", "model:cortex-a53"])
        self.assertGreater(trained.programs, 100)
        self.assertEqual(trained.model.name, str(self.folder / "model.h5"))
        self.assertTrue(told)
        scores = graft.predict(trained.model, SMALL, "model:haswell", ["tile C i 8", "order C l.0 j.0 i.0"])
        self.assertTrue(np.isfinite(scores).all())
        again = graft.train(FILES[2:], self.folder / "more.h5", rows=16, base=trained.model.name)
        self.assertEqual(again.platforms, ["model:haswell"])

    def test_a_stop_is_said(self):
        with self.assertRaises(graft.Stopped):
            graft.train(FILES, self.folder / "model.h5", rows=16, stop=lambda: True)
        self.assertFalse((self.folder / "model.h5").exists())

    def test_mistakes_name_the_setting(self):
        for settings, why in (({"learner": "residuall"}, "did you mean 'residual'"), ({"model": "mlpp"}, "model"),
                              ({"hold_out": "model:none"}, "model:none"), ({"rows": -1}, "rows: must be at least 0, got -1"),
                              ({"workloads": [SMALL]}, "workloads: no row is of 'matmul")):
            with self.assertRaisesRegex(graft.Mistake, why):
                graft.train(FILES[:2], self.folder / "model.h5", **settings)
        with self.assertRaisesRegex(graft.Mistake, "datasets: there is none"):
            graft.train([], self.folder / "model.h5")


class Evaluate(InFolder):
    def test_gives_columns(self):
        table = graft.evaluate(FILES, methods=["scratch", "gbt-zero-shot"], shots=[0, 8], draws=3, rows=40,
                               targets=["model:haswell"], model="gbt", steps=20, out=self.folder / "table.json")
        self.assertEqual(list(zip(table["method"], table["shots"])),
                         [("scratch", 0), ("scratch", 8), ("gbt-zero-shot", 0), ("gbt-zero-shot", 8)])
        self.assertEqual(set(table["target"]), {"model:haswell"})
        for name in ("spearman", "spearman_low", "spearman_high", "top1", "top5_high"):
            self.assertEqual((table[name].dtype, table[name].shape), (np.float64, (4,)), name)
        self.assertGreater(table["spearman"][2], table["spearman"][0])
        self.assertTrue((table["top1"] <= table["top5"]).all())
        self.assertTrue((self.folder / "table.json").exists())

    def test_mistakes_name_the_setting(self):
        for settings, why in (({"methods": []}, "methods: there is none"), ({"shots": [-1]}, "shots: must be at least 0, got -1"),
                              ({"regime": "sen"}, "regime"), ({"targets": ["model:none"]}, "model:none")):
            with self.assertRaisesRegex(graft.Mistake, why):
                graft.evaluate(FILES, **settings)


if __name__ == "__main__":
    unittest.main()
