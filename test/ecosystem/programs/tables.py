"""pytorch-tabnet: a classifier of rows of a table."""

import numpy as np
from pytorch_tabnet.tab_model import TabNetClassifier

x = np.random.RandomState(0).randn(64, 5).astype("float32")
y = (x.sum(1) > 0).astype(int)
net = TabNetClassifier(seed=0, verbose=0, device_name="cpu")
net.fit(
    x,
    y,
    max_epochs=3,
    batch_size=32,
    virtual_batch_size=16,
    eval_set=[(x, y)],
    drop_last=False,
)
print([f"{loss:.3f}" for loss in net.history["loss"]])
print(np.round(net.predict_proba(x[:4]), 3))
print(np.round(net.feature_importances_, 2))
