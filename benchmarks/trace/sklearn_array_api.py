"""scikit-learn on tensors of PyTorch, by array API dispatch. Needs ``SCIPY_ARRAY_API=1``."""

import torch
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import MinMaxScaler

x, y = make_classification(n_samples=20_000, n_features=40, random_state=0)
x, y = torch.asarray(x, dtype=torch.float32), torch.asarray(y)
with config_context(array_api_dispatch=True):
    for _ in range(5):
        scaled = MinMaxScaler().fit_transform(x)
        reduced = PCA(n_components=10, svd_solver="full").fit_transform(scaled)
        found = LinearDiscriminantAnalysis().fit(reduced, y).predict(reduced)
        ridge = Ridge(solver="svd").fit(reduced, y.to(torch.float32))
        print(type(found).__name__, accuracy_score(y, found), tuple(ridge.coef_.shape))
print(reduced.numpy().mean(axis=0).round(3).shape)
