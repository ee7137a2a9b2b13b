import unittest

import graft
from support import MODELLED, SMALL


class Values(unittest.TestCase):
    def test_say_what_they_are(self):
        self.assertEqual(SMALL.text, "matmul(m=8,n=16,k=8,dtype=f32)")
        self.assertEqual(graft.Workload("matmul(k=8, n=16, m=8)"), SMALL)
        self.assertEqual(len({graft.Workload("matmul(k=8, n=16, m=8)"), SMALL}), 1)
        self.assertEqual(SMALL.flops, 2 * 8 * 16 * 8)
        self.assertIn(MODELLED, graft.platforms())
        platform = graft.Platform(MODELLED)
        self.assertEqual((platform.name, platform.source), (MODELLED, "modelled"))
        self.assertEqual(graft.Platform.from_yaml(platform.yaml).yaml, platform.yaml)
        self.assertEqual(graft.Model().name, "")
        self.assertEqual(graft.__version__, graft.version())

    def test_mistakes_are_value_errors_with_their_place(self):
        with self.assertRaisesRegex(graft.Mistake, "did you mean 'matmul'"):
            graft.Workload("matmull(m=8,n=8,k=8)")
        # A text in place of a value is refused for the same reason.
        with self.assertRaisesRegex(ValueError, "did you mean 'matmul'"):
            graft.tune("matmull(m=8,n=8,k=8)", MODELLED)
        with self.assertRaises(graft.Error):
            graft.Platform("nativ")
        with self.assertRaisesRegex(graft.Mistake, "trials: must be at least 1, got 0"):
            graft.tune(SMALL, MODELLED, trials=0, model="scratch")
        with self.assertRaisesRegex(graft.Mistake, "format: 'zip', give"):
            graft.compile([], format="zip")
        with self.assertRaisesRegex(graft.Mistake, "schedule 2"):
            graft.predict("analytic", SMALL, MODELLED, ["tile C i 8", "tiel C i 8"])
        with self.assertRaises(TypeError):
            graft.tune(SMALL, MODELLED, 4)  # settings are named

    def test_show_what_they_are(self):
        search = graft.Search(SMALL, MODELLED, model="scratch")
        search.tell(search.ask(1)[0], 2.5)
        for value, text in ((SMALL, "graft.Workload('matmul(m=8,n=16,k=8,dtype=f32)')"), (graft.Model(), "graft.Model('')"),
                            (graft.Platform(MODELLED), f"<graft.Platform {MODELLED}>"),
                            (search, "<graft.Search: 1 trials>"), (search.best(), "<graft.Measured schedule='"),
                            (graft.Configurations({"parameters": {"x": [1]}}), "<graft.Configurations: 0 trials>")):
            self.assertIn(text, repr(value))
        self.assertIn("seconds=2.5, status='ok'>", repr(search.best()))

    def test_every_name_has_a_docstring(self):
        for name in graft.__all__:
            self.assertTrue(getattr(graft, name).__doc__, name + " has no docstring")


if __name__ == "__main__":
    unittest.main()
