"""An input pipeline of TensorFlow that feeds a training loop of PyTorch, with a copy per batch."""

import numpy as np
import tensorflow as tf
import torch

torch.manual_seed(0)
rng = np.random.default_rng(0)
images = rng.random((2048, 28, 28), dtype="float32")
labels = rng.integers(0, 10, 2048)


def batches():
    pipeline = tf.data.Dataset.from_tensor_slices((images, labels))
    pipeline = pipeline.map(lambda x, y: (tf.reshape(x, (-1,)) * 2 - 1, y))
    yield from pipeline.batch(64).prefetch(2)


def to_torch(x, y):
    return torch.tensor(x.numpy()), torch.from_dlpack(tf.experimental.dlpack.to_dlpack(y))


model = torch.nn.Sequential(torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    total = 0.0
    for batch in batches():
        x, y = to_torch(*batch)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach().numpy()
    print(epoch, f"{total:.3f}")
