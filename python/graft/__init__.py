"""graft: find fast schedules of tensor programs, and call the kernels made of them on numpy arrays.

    import graft
    answer = graft.tune("matmul(m=64,n=64,k=64)", "native", trials=64)
    kernel = graft.Kernel(answer)
    c = kernel(a, b)

A workload or platform may be given as its text wherever a function takes one, a model as its file's path. Times are
seconds. Long calls release the interpreter's lock and end tidily on KeyboardInterrupt; run again, they continue.
"""

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
    adapt,
    compile,
    compile_network,
    encode,
    encodings,
    evaluate,
    feature_names,
    platforms,
    predict,
    train,
    tune,
    tune_network,
    version,
    write,
)
from .data import Dataset, read_dataset
from .configurations import Configurations, tune_function
from .kernel import Kernel, Network, Parameter, kernels, load

__version__ = version()
__all__ = [
    "Adapted", "Answer", "Compiled", "Configurations", "Dataset", "Error", "Failure", "Function", "Kernel", "Measured", "Mistake",
    "Model", "Network", "Parameter", "Platform", "Quality", "Search", "Stopped", "Trained", "Workload", "adapt",
    "compile", "compile_network", "encode", "encodings", "evaluate", "feature_names", "kernels", "load", "platforms",
    "predict", "read_dataset", "train", "tune", "tune_function", "tune_network", "version", "write",
]
