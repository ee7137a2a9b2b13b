"""What is wrong with a call is said as the guide promises: by an error of graft that names the call and the argument."""

import unittest

import numpy as np

import graft
from support import MODELLED, SMALL, InFolder

SPACE = {"parameters": {"x": [1, 2]}}


class Errors(InFolder):
    def test_of_another_type_name_the_argument(self):
        search = graft.Search(SMALL, MODELLED, model="scratch")
        own = graft.Configurations(SPACE)
        for call, why in (
                (lambda: graft.tune(3, MODELLED), r"tune\(\): workload: expected a graft.Workload or its text, got 3"),
                (lambda: graft.tune(SMALL, None), r"tune\(\): platform: expected"),
                (lambda: graft.tune(SMALL), r"tune\(\): missing a required argument: 'platform'"),
                (lambda: graft.tune(SMALL, MODELLED, start="x"), r"tune\(\): start: expected a list of str, got 'x'"),
                (lambda: graft.tune(SMALL, MODELLED, model=3), r"tune\(\): model: expected"),
                (lambda: graft.tune(SMALL, MODELLED, out=3), r"tune\(\): out: expected a path"),
                (lambda: graft.tune(SMALL, MODELLED, progress=3), r"tune\(\): progress: expected a function"),
                (lambda: graft.tune_network("x.onnx", MODELLED, foo=1), r"tune_network\(\): .*'foo'"),
                (lambda: graft.tune_network("x.onnx", MODELLED, shapes={"x": 3}), r"tune_network\(\): shapes: expected"),
                (lambda: graft.tune_network("x.onnx", MODELLED, seed=-1), r"tune_network\(\): seed: .*, got -1"),
                (lambda: graft.compile([3]), r"compile\(\): answers: expected"),
                (lambda: graft.compile([], names={"x": 3}), r"names: expected|unknown operator"),
                (lambda: graft.Workload(), r"Workload\(\): missing a required argument: 'text'"),
                (lambda: graft.Platform.from_yaml(3), "yaml: expected a str"),
                (lambda: graft.Answer(), r"Answer\(\): calls of graft return these"),
                (lambda: graft.Search(SMALL, MODELLED, foo=1), r"Search\(\): .*'foo'"),
                (lambda: search.ask(2.5), r"Search.ask\(\): count: expected an int, got 2.5"),
                (lambda: search.tell(["x"], [object()]), r"Search.tell\(\): seconds: expected a number"),
                (lambda: graft.predict(None, SMALL, MODELLED, "x"), r"predict\(\): schedules: expected a list of str"),
                (lambda: graft.encode(SMALL, MODELLED, [], threads="x"), r"encode\(\): threads: expected an int"),
                (lambda: graft.read_dataset(3), r"read_dataset\(\): file: expected a path"),
                (lambda: graft.train("one.h5", "x"), r"train\(\): datasets: expected a list of paths, got 'one.h5'"),
                (lambda: graft.adapt(None, MODELLED, SMALL.text, "x"), r"adapt\(\): workloads: expected a list"),
                (lambda: graft.write(3, "x"), r"write\(\): compiled: expected"),
                (lambda: graft.load(3), "folder: expected a path"),
                (lambda: graft.Kernel(3), "source: expected a path"),
                (lambda: graft.version(3), r"version\(\): too many positional arguments"),
                (lambda: graft.Configurations(3), "space: expected a dict or a path"),
                (lambda: graft.Configurations(SPACE, prior=3), "prior: expected"),
                (lambda: graft.Configurations({"parameters": {"x": object()}}), "space: "),
                (lambda: own.ask("x"), "count: expected an int"),
                (lambda: own.tell(3, 3), "configurations: expected"),
                (lambda: own.tell({"x": 1}, [3]), "outcome: expected"),
                (lambda: graft.tune_function(SPACE, 3), "f: expected a function")):
            with self.assertRaisesRegex(graft.Mistake, why) as raised:
                call()
            self.assertTrue(isinstance(raised.exception, (TypeError, ValueError)))
            self.assertNotIn("incompatible", str(raised.exception))

    def test_a_missing_folder_or_file_is_named_as_given(self):
        for name in ("./none/", "none"):
            for call in (graft.load, graft.Kernel, graft.Network, graft.kernels):
                with self.assertRaisesRegex(graft.Mistake, f"^{name}: no such folder"):
                    call(name)
        with self.assertRaisesRegex(graft.Mistake, "^./none.json: cannot be read"):
            graft.Configurations("./none.json")

    def test_numbers_of_numpy_are_numbers(self):
        answer = graft.tune(SMALL, MODELLED, trials=np.int64(2), seed=np.int32(3), random_share=np.float32(0.5),
                            model="random", out=self.folder / "run")
        self.assertEqual(answer.trials, 2)


if __name__ == "__main__":
    unittest.main()
