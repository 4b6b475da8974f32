"""PyTorch: tensors on the host and on CUDA devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from dlprof.probes.base import (
    ANY_DEVICE,
    ARRAY,
    BITS,
    BUFFER,
    CAPSULE,
    CPU,
    CUDA,
    CUDA_ARRAY,
    DLPACK,
    DTYPES,
    HOST_MEMORY,
    LIST,
    NATIVE,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Probe,
    copies,
    corners,
    laid_out,
    numbers,
    one_row,
    views,
)


class Torch(Probe):
    name = "torch"
    aliases: ClassVar[tuple[str, ...]] = ("pytorch",)
    module = "torch"
    distributions: ClassVar[tuple[str, ...]] = ("torch",)
    setup = "import torch"
    devices: ClassVar[tuple[str, ...]] = ANY_DEVICE
    flags: ClassVar[tuple[str, ...]] = ("requires-grad", "conjugated", "negated", "pinned")
    missing = {"readonly": "torch has no read-only tensors"}  # pytorch#44027
    array_type = "torch.Tensor"
    settings = {
        "default dtype": "torch.get_default_dtype()",
        "default device": "torch.get_default_device()",
        "number of threads": "torch.get_num_threads()",
        "grad mode": "torch.is_grad_enabled()",
        "inference mode": "torch.is_inference_mode_enabled()",
        "deterministic algorithms": "torch.are_deterministic_algorithms_enabled()",
    }
    exports: ClassVar[tuple[Export, ...]] = (
        Export("tensor", DLPACK, "{x}"),
        Export("to_dlpack", CAPSULE, "torch.utils.dlpack.to_dlpack({x})"),
        Export("array", ARRAY, "{x}", CPU),
        Export("numpy", NUMPY, "{x}.numpy()", CPU, "view"),
        Export("numpy_force", NUMPY, "{x}.numpy(force=True)"),
        Export("cpu_numpy", NUMPY, "{x}.cpu().numpy()", CUDA, "copy"),
        Export("cpu_non_blocking", NUMPY, "{x}.to('cpu', non_blocking=True).numpy()", CUDA, "copy"),
        Export("capsule", CAPSULE, "{x}.__dlpack__()", CUDA, "view"),
        Export("cuda_array", CUDA_ARRAY, "{x}", CUDA),
        Export("itself", NATIVE, "{x}"),
    )
    imports: ClassVar[tuple[Import, ...]] = (
        Import("from_dlpack", (DLPACK, CAPSULE), "torch.from_dlpack({x})"),
        copies("from_dlpack_copy", (DLPACK,), "torch.from_dlpack({x}, copy=True)"),
        views("from_dlpack_nocopy", (DLPACK,), "torch.from_dlpack({x}, copy=False)"),
        views("from_numpy", (NUMPY,), "torch.from_numpy({x})", CPU),
        copies("from_numpy_cuda", (NUMPY,), "torch.from_numpy({x}).cuda()", result_device="cuda"),
        copies(
            "from_numpy_non_blocking",
            (NUMPY,),
            "torch.from_numpy({x}).to('cuda', non_blocking=True)",
            CPU,
            result_device="cuda",
        ),
        Import("asarray", (NUMPY, DLPACK, CAPSULE, ARRAY), "torch.asarray({x})"),
        copies("asarray_copy", (NUMPY, DLPACK, ARRAY), "torch.asarray({x}, copy=True)"),
        views("asarray_nocopy", (NUMPY, DLPACK, ARRAY), "torch.asarray({x}, copy=False)"),
        views(
            "frombuffer", (BUFFER,), "torch.frombuffer({x}, dtype=torch.{dtype}).reshape({shape})"
        ),
        Import(
            "asarray_buffer",
            (BUFFER,),
            "torch.asarray({x}, dtype=torch.{dtype}).reshape({shape})",
            producers=HOST_MEMORY,
        ),
        copies(
            "asarray_buffer_copy",
            (BUFFER,),
            "torch.asarray({x}, dtype=torch.{dtype}, copy=True).reshape({shape})",
            producers=HOST_MEMORY,
        ),
        Import("as_tensor", (ARRAY, NUMPY), "torch.as_tensor({x})", CPU),
        Import("as_tensor_cuda", (CUDA_ARRAY,), "torch.as_tensor({x}, device='cuda')", CUDA),
        copies("tensor", (ARRAY, NUMPY), "torch.tensor({x})", CPU),
        copies("tensor_list", (NATIVE,), "torch.tensor({x})", producers=LIST),
        copies("as_tensor_list", (NATIVE,), "torch.as_tensor({x})", producers=LIST),
        copies("array_first", (NATIVE,), "torch.from_numpy(numpy.array({x}))", producers=LIST),
        copies(
            "stack",
            (NATIVE,),
            "torch.stack([torch.from_numpy(item) for item in {x}])",
            producers=LIST,
        ),
        Import("polars_to_torch", (NATIVE,), "{x}.to_torch()", producers=("polars",)),
        views("warp_to_torch", (NATIVE,), "warp.to_torch({x})", producers=("warp",)),
        copies(
            "tensor_cuda",
            (CUDA_ARRAY, NUMPY),
            "torch.tensor({x}, device='cuda')",
            result_device="cuda",
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        self.check_spec(spec)
        if spec.layout == "aligned" and spec.device == "cpu":
            return _aligned(spec)
        if spec.layout == "broadcast":
            return f"x = {one_row(spec, values)}.expand({spec.shape})"
        plain = laid_out(spec, values)  # a negative stride torch refuses itself
        if spec.layout == "F":
            axes = tuple(reversed(range(len(spec.shape))))
            return f"{plain}\nx = x.permute({axes}).contiguous().permute({axes})"
        return plain + FLAGGED.get(spec.layout, "")

    def ready(self, device: str) -> None:
        import torch

        if device == "cuda":
            torch.cuda.init()

    def pointer(self, array: Any) -> int | None:
        return int(array.data_ptr()) or None

    def to_numpy(self, array: Any) -> Any:
        import torch

        host = array.detach().cpu().resolve_conj().resolve_neg()
        bits = BITS.get(str(self.dtype(host)))
        if bits is None:
            return host.numpy().copy()
        signed = getattr(torch, bits.removeprefix("u"))  # torch views as signed integers only
        return host.view(signed).numpy().copy().view(bits)

    def device(self, array: Any) -> str:
        return str(array.device.type)

    def wait(self, device: str) -> str:
        return (
            "torch.cuda.current_stream({x}.device.index).synchronize()" if device == "cuda" else ""
        )

    def write(self, array: Any, value: int) -> Any:
        import torch

        with torch.no_grad():
            array.fill_(value)
        if array.device.type == "cuda":
            torch.cuda.current_stream(array.device).synchronize()

    def releases(self, dtype: str) -> Mapping[str, str]:
        graph = (
            "weight = torch.ones((), requires_grad=True)\nloss = (y * weight).sum()\n"
            "del y\nloss.backward()\ndel loss, weight"
        )
        ways = {"y.set_()": "y.set_()"}
        return {**ways, "a backward pass": graph} if dtype.startswith("float") else ways

    def use(self, device: str) -> str:
        return "torch.add({x}, 1)"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        host = "{x}.detach().cpu().resolve_conj().resolve_neg()"
        host += ".float()" if dtype in BITS else ""
        wait = "\ntorch.cuda.synchronize()" if device == "cuda" else ""
        return {
            "values": f"{host}.numpy().copy()",
            "address": "{x}.data_ptr()",
            "copy": "{x}.clone()",
            "shape": "tuple({x}.shape)",
            "dtype": "str({x}.dtype).removeprefix('torch.')",
            "write": f"{{x}}.fill_(1){wait}",
            "own_stream": "torch.cuda.stream(torch.cuda.Stream())",
            "memory": "torch.cuda.memory_allocated()",
        }

    def enqueue(self, spec: ArraySpec) -> str | None:
        if spec.device != "cuda":
            return None  # eager CPU operations have run when they return
        step = "~x" if spec.dtype == "bool" else "x + 1"  # x + 1 would be integers
        # One kernel: no more than about a thousand wait in a queue. It takes half a millisecond for
        # each unit at 2 GHz.
        sleep = "with torch.cuda.device(x.device):\n    torch.cuda._sleep(work * 1_000_000)"
        return f"{sleep}\ny = {step}"

    def current_stream(self, device: str) -> int | None:
        import torch

        return int(torch.cuda.current_stream().cuda_stream) if device == "cuda" else None

    @contextmanager
    def repeat_warnings(self) -> Iterator[None]:
        import torch

        before = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        try:
            yield
        finally:
            torch.set_warn_always(before)

    def on_device(self, ordinal: int) -> Any:
        import torch

        return torch.cuda.device(ordinal)

    def on_stream(self, handle: int) -> Any:
        import torch

        return torch.cuda.stream(torch.cuda.ExternalStream(handle))


def values(elements: int, spec: ArraySpec) -> str:
    """Return source text of ``elements`` values, one-dimensional, on the device."""
    if spec.corners:
        return _corners(elements, spec)
    pattern = numbers(spec)
    # Many dtypes lack arithmetic in torch, so the values are made in 64 bits and then cast.
    wide = "int64" if spec.is_integer else "float64"
    # One period, repeated: a large array costs little more than its memory.
    length = min(elements, pattern.modulus)
    period = f"torch.arange({length}, dtype=torch.{wide}, device='{spec.device}')"
    if pattern.offset:
        period += f".add_({pattern.offset!r})"
    period = f"({period}{pattern.times})" if pattern.times else period
    return f"{period}.to(torch.{spec.dtype}){_repeated(elements, length)}"


def _repeated(count: int, length: int) -> str:
    """Return source text that repeats a period of ``length`` values to ``count`` values."""
    return "" if count == length else f".repeat({-(-count // length)})[:{count}]"


FLAGGED = {
    "requires-grad": "\nx.requires_grad_()",
    "conjugated": "\nx = x.conj()",
    "pinned": "\nx = x.pin_memory()",
    "negated": "\nx = torch.complex(x, x).conj().imag",  # as a user meets it: every second number
}


def _corners(elements: int, spec: ArraySpec) -> str:
    found = corners(spec.dtype)
    top = 1 << (found.word - 1)
    # torch computes with few unsigned dtypes, so the words are signed integers of the same bits.
    words = [(bits ^ top) - top for bits in found.bits]
    count = elements * found.words
    text = (
        f"torch.tensor({words}, dtype=torch.int{found.word}, device='{spec.device}')"
        f"{_repeated(count, len(words))}"
    )
    # A view of larger elements needs an aligned offset, as a slice at 0 has.
    return f"{text}.view(torch.{spec.dtype})"


def _aligned(spec: ArraySpec) -> str:
    # torch allocates at multiples of 64 bytes. An odd multiple: a view of it needs 64 bytes and no
    # more.
    item = DTYPES[spec.dtype]
    return (
        f"memory = torch.empty({spec.elements + 128 // item}, dtype=torch.{spec.dtype})\n"
        f"x = memory[(64 - memory.data_ptr()) % 128 // {item}:][:{spec.elements}]"
        f".reshape({spec.shape})\n"
        f"x.copy_({values(spec.elements, spec)}.reshape({spec.shape}))"
    )
