"""A training loop of PyTorch with data in NumPy: batches are copied, losses are read as arrays."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
rng = np.random.default_rng(0)


class Rows(Dataset):
    def __init__(self, count):
        self.x = rng.random((count, 784), dtype="float32")
        self.y = rng.integers(0, 10, count)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, n):
        return self.x[n], self.y[n]


def collate(batch):
    x, y = zip(*batch, strict=True)
    return torch.tensor(np.stack(x)), torch.from_numpy(np.asarray(y))


model = torch.nn.Sequential(torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    losses = []
    for x, y in DataLoader(Rows(2048), batch_size=64, collate_fn=collate):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().numpy())
    print(epoch, f"{np.mean(losses):.3f}")
