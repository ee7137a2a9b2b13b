"""graft: find fast schedules of tensor programs, and call the kernels made of them on numpy arrays.

    import graft
    answer = graft.tune("matmul(m=64,n=64,k=64)", "native", trials=64)
    kernel = graft.Kernel(answer)
    c = kernel(a, b)

A workload or platform may be given as its text wherever a function takes one, a model as its file's path. Times are
seconds. Long calls release the interpreter's lock and end tidily on KeyboardInterrupt; run again, they continue.
"""

from . import _graft
from ._graft import (
    Adapted,
    Answer,
    Compiled,
    Error,
    Failure,
    Function,
    Measured,
    Mistake,
    Model,
    Platform,
    Quality,
    Search,
    Stopped,
    Trained,
    Workload,
    WrongType,
)
from ._public import publish_class, published
from .configurations import Configurations, tune_function
from .data import Dataset, read_dataset
from .kernel import Kernel, Network, Parameter, ShapedNetwork, compile_with as _compile_with, kernels, load
from .opencl import OpenclKernel

for _kind in (Adapted, Answer, Compiled, Function, Measured, Model, Platform, Quality, Search, Trained, Workload):
    publish_class(_kind)
for _own in (Configurations, Dataset, Kernel, Network, Parameter, OpenclKernel, ShapedNetwork, kernels, load, read_dataset, tune_function):
    setattr(_own, "__module__", "graft")
adapt = published(_graft.adapt)
answer_of = published(_graft.answer_of)
compile = published(_graft.compile, by=_compile_with)
compile_network = published(_graft.compile_network)
encode = published(_graft.encode)
encodings = published(_graft.encodings)
evaluate = published(_graft.evaluate)
feature_names = published(_graft.feature_names)
platforms = published(_graft.platforms)
predict = published(_graft.predict)
train = published(_graft.train)
tune = published(_graft.tune)
tune_network = published(_graft.tune_network)
version = published(_graft.version)
write = published(_graft.write)

__version__ = version()
__all__ = [
    "Adapted", "Answer", "Compiled", "Configurations", "Dataset", "Error", "Failure", "Function", "Kernel", "Measured", "Mistake",
    "Model", "Network", "OpenclKernel", "Parameter", "Platform", "Quality", "Search", "ShapedNetwork", "Stopped", "Trained", "Workload", "WrongType", "adapt",
    "answer_of", "compile", "compile_network", "encode", "encodings", "evaluate", "feature_names", "kernels", "load", "platforms",
    "predict", "read_dataset", "train", "tune", "tune_function", "tune_network", "version", "write",
]
