"""The built-in model: two dense layers of 64 units, the same for every framework.

``relu(x @ weight) @ weight`` with a weight that each framework computes by itself when the model
is loaded: ``cos(index) / 8`` for the indices of 64 rows and 64 columns. So a model file of a few
hundred bytes is a real one. The number of rows is free.
"""

from __future__ import annotations

UNITS = 64

TORCH = f"""\
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        index = torch.arange({UNITS * UNITS}, dtype=torch.float32)
        self.register_buffer("weight", (torch.cos(index) / 8).reshape({UNITS}, {UNITS}))

    def forward(self, x, out=None):
        return torch.mm(torch.relu(torch.mm(x, self.weight)), self.weight, out=out)


model = Model().eval().to(x.device, x.dtype)"""

# ONNX, opset 17. tests/integration/test_steps_model.py writes the same with onnx.helper.
ONNX_BASE64 = (
    "CAg6zwIKIwoFc3RhcnQKBWxpbWl0CgVkZWx0YRIFaW5kZXgiBVJhbmdlChIKBWluZGV4EgR3YXZlIgNDb3MKHgoE"
    "d2F2ZQoFc2hhcGUSBnNxdWFyZSIHUmVzaGFwZQocCgZzcXVhcmUKBXNjYWxlEgZ3ZWlnaHQiA011bAoYCgF4CgZ3"
    "ZWlnaHQSA3N1bSIGTWF0TXVsChMKA3N1bRIGaGlkZGVuIgRSZWx1ChsKBmhpZGRlbgoGd2VpZ2h0EgF5IgZNYXRN"
    "dWwSA21scCoPEAEiBAAAAABCBXN0YXJ0Kg8QASIEAACARUIFbGltaXQqDxABIgQAAIA/QgVkZWx0YSoPCAIQBzoC"
    "QEBCBXNoYXBlKg8QASIEAAAAPkIFc2NhbGVaFwoBeBISChAIARIMCgYSBHJvd3MKAghAYhcKAXkSEgoQCAESDAoG"
    "EgRyb3dzCgIIQEIECgAQEQ=="
)
