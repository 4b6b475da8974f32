"""Small programs with the expected trace of their lines: ``#: calls conversion result``.

A line without such a comment converts nothing. Each function is one program.
"""

# fmt: off
# ruff: noqa: I001, PT017
import asyncio
import concurrent.futures
import copy
import functools
import gc
import itertools
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
import weakref

import numpy as np
import torch
import torch as pytorch
import torch.utils.data
from numpy import asarray as as_numpy
from torch import from_numpy, from_numpy as view_of

X = np.arange(12, dtype="float32").reshape(3, 4)
T = torch.arange(12.0).reshape(3, 4)


def a_view_and_a_copy():
    torch.from_numpy(X)  #: 1 torch.from_numpy(x) view
    torch.tensor(X)  #: 1 torch.tensor(x) copy
    T.numpy()  #: 1 x.numpy() view
    np.asarray(T)  #: 1 numpy.asarray(x) view
    np.array(T)  #: 1 numpy.array(x) copy


def own_arrays_and_numbers_convert_nothing():
    np.asarray(X)
    np.array([1, 2, 3])
    torch.tensor([1.0, 2.0])
    torch.asarray(3)
    np.asarray(np.float32(3))
    assert torch.as_tensor(T) is T
    assert T.cpu() is T


def two_conversions_on_one_line():
    torch.from_numpy(X), torch.tensor(X)  #: 1 torch.from_numpy(x) view; 1 torch.tensor(x) copy


def one_inside_the_other():
    np.asarray(torch.from_numpy(X))  #: 1 torch.from_numpy(x) view; 1 numpy.asarray(x) view


def the_outermost_call_counts():
    np.asarray(T.detach())  #: 1 numpy.asarray(x) view
    torch.from_dlpack(X)  #: 1 torch.from_dlpack(x) view
    np.from_dlpack(T)  #: 1 numpy.from_dlpack(x) view


def imported_by_another_name():
    from_numpy(X)  #: 1 torch.from_numpy(x) view
    view_of(X)  #: 1 torch.from_numpy(x) view
    pytorch.from_numpy(X)  #: 1 torch.from_numpy(x) view
    as_numpy(T)  #: 1 numpy.asarray(x) view


def stored_in_a_name():
    convert = torch.from_numpy
    convert(X)  #: 1 torch.from_numpy(x) view
    vars(torch)["tensor"](X)  #: 1 torch.tensor(x) copy


def a_partial():
    convert = functools.partial(torch.tensor, dtype=torch.float64)
    convert(X)  #: 1 torch.tensor(x) copy


def an_argument_by_name():
    torch.tensor(data=X)  #: 1 torch.tensor(x) copy
    np.array(object=T)  #: 1 numpy.array(x) copy


def tensors_without_memory():
    T.to("meta")
    for device in ("cpu", "meta", "cpu", "meta"):
        torch.tensor(X, device=device)  #: 2 torch.tensor(x) copy
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.tensor([X, X], device="meta")


def a_tensor_that_stays_on_its_device():
    T.to("cpu")
    T.to(torch.float64)
    T.to(T.double())


def callbacks_from_c():
    list(map(torch.from_numpy, [X, X, X]))  #: 3 torch.from_numpy(x) view
    sorted([X, X], key=lambda x: torch.from_numpy(x).sum())  #: 2 torch.from_numpy(x) view; 1 bool(x) read
    functools.reduce(lambda _, x: torch.tensor(x), [X, X, X])  #: 2 torch.tensor(x) copy
    list(itertools.starmap(torch.from_numpy, [(X,), (X,)]))  #: 2 torch.from_numpy(x) view


def calls_by_threads_of_asyncio():
    async def both():
        await asyncio.gather(
            asyncio.to_thread(torch.tensor, X),  #: 1 torch.tensor(x) copy
            asyncio.to_thread(T.numpy),  #: 1 x.numpy() view
        )

    asyncio.run(both())


def an_own_class_of_arrays():
    class Batch:
        def __array__(self, dtype=None, copy=None):
            return T.numpy()  #: 1 x.numpy() view

    class Rows(Batch):
        def __array__(self, dtype=None, copy=None):
            return T.numpy()[::2].repeat(2)  #: 1 x.numpy() view

    class Plain(Batch):
        def __array__(self, dtype=None, copy=None):
            return X

    np.asarray(Batch())
    np.asarray(Rows())  #: 1 numpy.asarray(x) copy
    np.asarray(Plain())  #: 1 numpy.asarray(x) unknown


def calls_inside_the_call_of_a_class():
    class Passed:
        @property
        def __array__(self):
            return T.__array__

    class Foreign:
        def __dlpack__(self, **how):
            return T.__dlpack__(**how)

        def __array__(self, dtype=None, copy=None):
            return np.asarray(Passed())

    for _ in range(3):
        np.asarray(Foreign())  #: 3 numpy.asarray(x) unknown


def methods_of_classes():
    class Loader:
        convert = torch.from_numpy
        static = staticmethod(torch.tensor)

        @property
        def batch(self):
            return torch.from_numpy(X)  #: 1 torch.from_numpy(x) view

        def __call__(self):
            return self.convert(X)  #: 1 torch.from_numpy(x) view

    loader = Loader()
    loader(), loader.batch
    loader.static(X)  #: 1 torch.tensor(x) copy


def subclasses():
    class MyTensor(torch.Tensor):
        pass

    class MyArray(np.ndarray):
        pass

    np.asarray(T.as_subclass(MyTensor))  #: 1 numpy.asarray(x) view
    torch.from_numpy(X.view(MyArray))  #: 1 torch.from_numpy(x) view
    torch.nn.Parameter(T).detach().numpy()  #: 1 x.numpy() view


def a_method_that_is_overridden():
    class Verbose(torch.Tensor):
        def numpy(self):
            return super().numpy()  #: 1 x.numpy() view

    T.as_subclass(Verbose).numpy()


def expressions_over_several_lines():
    torch.tensor(  #: 1 torch.tensor(x) copy
        np.stack(
            [X, X],
        ),
    )


def an_exception_in_the_middle():
    try:
        torch.from_numpy("no array")
    except TypeError:
        torch.from_numpy(X)  #: 1 torch.from_numpy(x) view
    try:
        T.clone().requires_grad_().numpy()  #: 0 x.numpy() unknown
    except RuntimeError as error:
        assert "detach" in str(error)


def tracebacks_have_no_frame_of_the_tracer():
    for convert in (
        lambda: torch.from_numpy("no"),
        lambda: T.clone().requires_grad_().numpy(),  #: 0 x.numpy() unknown
    ):
        try:
            convert()
        except (TypeError, RuntimeError) as error:
            frames = traceback.extract_tb(error.__traceback__)
            assert [frame.filename for frame in frames] == [__file__] * 2, frames
            assert error.__context__ is None


def threads():
    def work():
        for _ in range(50):
            torch.from_numpy(X)  #: 400 torch.from_numpy(x) view

    many = [threading.Thread(target=work) for _ in range(8)]
    [one.start() for one in many]
    [one.join() for one in many]


def a_pool_of_threads():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: np.asarray(T), range(40)))  #: 40 numpy.asarray(x) view
        list(pool.map(torch.from_numpy, [X] * 5))


def executed_text():
    exec("torch.from_numpy(X)\ntorch.from_numpy(X)")
    eval("T.numpy()")


def a_finalizer():
    class Last:
        def __del__(self):
            torch.from_numpy(X)  #: 1 torch.from_numpy(x) view

    Last()
    gc.collect()


def a_signal_handler():
    def handler(*_):
        torch.from_numpy(X)  #: 1 torch.from_numpy(x) view

    before = signal.signal(signal.SIGUSR1, handler)
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def sometimes_a_copy():
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.as_tensor(X, dtype=dtype)  #: 3 torch.as_tensor(x) mixed


def strided_arrays():
    torch.from_numpy(X[:, ::2])  #: 1 torch.from_numpy(x) view
    torch.from_numpy(X.T)  #: 1 torch.from_numpy(x) view
    torch.tensor(X[:, 1::2])  #: 1 torch.tensor(x) copy
    np.asarray(T[1:])  #: 1 numpy.asarray(x) view
    np.asarray(X[::-1])


def empty_arrays_and_scalars():
    torch.from_numpy(np.zeros((0, 3)))  #: 1 torch.from_numpy(x) unknown
    torch.from_numpy(np.array(1.0))  #: 1 torch.from_numpy(x) view
    for x in (X, X[:0], X):
        torch.from_numpy(x)  #: 3 torch.from_numpy(x) view
        torch.tensor(x)  #: 3 torch.tensor(x) copy


def lists_of_arrays():
    np.array([T, T])  #: 1 numpy.array(x) copy
    np.stack([T, T, T])  #: 1 numpy.stack(x) copy
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.tensor([X, X])  #: 1 torch.tensor(x) copy


def plain_memory():
    np.frombuffer(b"12345678", "uint8")  #: 1 numpy.frombuffer(x) view
    torch.frombuffer(bytearray(b"1234"), dtype=torch.uint8)  #: 1 torch.frombuffer(x) view
    np.asarray(memoryview(b"1234"))


def a_capsule_counts_where_it_is_consumed():
    torch.from_dlpack(torch.utils.dlpack.to_dlpack(T))  #: 1 torch.from_dlpack(x) view
    made = [T.__dlpack__() for _ in range(3)]
    for one in made:
        torch.from_dlpack(one)  #: 3 torch.from_dlpack(x) view


def a_capsule_for_its_own_framework_converts_nothing():
    torch.from_dlpack(T)
    torch.from_dlpack(ext_tensor=T)
    np.from_dlpack(X)


def a_capsule_of_an_untraced_producer():
    torch.from_dlpack(X.__dlpack__())  #: 1 torch.from_dlpack(x) view


def a_capsule_that_nobody_consumes():
    T.__dlpack__()  #: 1 x.__dlpack__() unknown


def the_loader_of_torch():
    data = [(X, 0)] * 6
    for _ in torch.utils.data.DataLoader(data, batch_size=2):  #: 6 torch.as_tensor(x) view; 1 x.item() read
        pass


def no_array_is_kept():
    x = np.zeros(5)
    before = sys.getrefcount(x)
    t = torch.from_numpy(x)  #: 1 torch.from_numpy(x) view
    made, source = weakref.ref(t), weakref.ref(x)
    assert sys.getrefcount(t) == 2
    del t
    assert made() is None
    assert sys.getrefcount(x) == before
    del x
    assert source() is None


def functions_can_be_pickled():
    assert pickle.loads(pickle.dumps(torch.Tensor.numpy)) is torch.Tensor.numpy
    assert pickle.loads(pickle.dumps(os._exit)) is os._exit
    assert pickle.loads(pickle.dumps(torch.from_numpy)) is torch.from_numpy
    assert pickle.loads(pickle.dumps(np.asarray)) is np.asarray
    assert copy.deepcopy(torch.from_numpy) is torch.from_numpy


def a_warning_names_the_users_line():
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        torch.from_numpy(read_only)  #: 1 torch.from_numpy(x) view
    assert [one.filename for one in found] in ([__file__], []), found  # torch warns once


def functions_keep_their_words():
    assert torch.from_numpy.__name__ == "from_numpy"
    assert "ndarray" in torch.from_numpy.__doc__
    assert repr(np.asarray).startswith("<built-in")
    assert torch.Tensor.numpy.__doc__
    assert np.frombuffer.__text_signature__.startswith("(buffer")


def a_compiled_function():
    @functools.partial(torch.compile, backend="eager")
    def add(x):
        return x + 1

    add(T)
    np.asarray(add(T))  #: 1 numpy.asarray(x) view


def numpy_in_a_compiled_function():
    @functools.partial(torch.compile, backend="eager", fullgraph=True)
    def double(x):
        return torch.from_numpy(np.asarray(x.numpy()) * 2)

    assert torch.equal(double(T), T * 2)


def a_whole_graph_is_compiled():
    @functools.partial(torch.compile, backend="eager", fullgraph=True)
    def add(x):
        return x + torch.tensor(1.0)

    assert torch.equal(add(T), T + 1)


if __name__ == "__main__":
    programs = [one for one in globals().values() if getattr(one, "__module__", None) == __name__]
    for one in programs:
        one()
    print(f"ran {len(programs)} programs")
