"""torchrl: a world, policies, replay, and the losses of four algorithms."""

import logging

import torch
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torchrl.data import (
    Bounded,
    Composite,
    LazyTensorStorage,
    OneHot,
    ReplayBuffer,
    TensorDictReplayBuffer,
    Unbounded,
)
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.envs import Compose, EnvBase, RewardSum, StepCounter, TransformedEnv
from torchrl.envs.utils import ExplorationType, set_exploration_type
from torchrl.modules import (
    MLP,
    ProbabilisticActor,
    QValueActor,
    TanhNormal,
    ValueOperator,
)
from torchrl.objectives import ClipPPOLoss, DQNLoss, SACLoss, SoftUpdate
from torchrl.objectives.value import GAE

logging.getLogger("torchrl").setLevel("WARNING")
torch.manual_seed(0)


class Sled(EnvBase):
    """A sled on a line, pushed to and fro; it is paid for being in the middle."""

    def __init__(self):
        super().__init__(batch_size=torch.Size([]))
        self.observation_spec = Composite(observation=Unbounded((2,)))
        self.action_spec = Bounded(-1, 1, (1,))
        self.reward_spec = Unbounded((1,))

    def _reset(self, tensordict=None, **options):
        return TensorDict({"observation": torch.rand(2) * 2 - 1}, [])

    def _step(self, tensordict):
        x, v = tensordict["observation"].unbind(-1)
        v = v + 0.1 * tensordict["action"].squeeze(-1)
        x = x + 0.1 * v
        found = {
            "observation": torch.stack([x, v], -1),
            "reward": -(x * x).unsqueeze(-1),
            "done": (x.abs() > 3).unsqueeze(-1),
        }
        return TensorDict(found, [])

    def _set_seed(self, seed):
        torch.manual_seed(seed or 0)


env = TransformedEnv(Sled(), Compose(StepCounter(max_steps=20), RewardSum()))
print(env.action_spec, env.observation_spec, env.rollout(8))
net = torch.nn.Sequential(
    MLP(in_features=2, out_features=2, num_cells=[16]), NormalParamExtractor()
)
actor = ProbabilisticActor(
    TensorDictModule(net, ["observation"], ["loc", "scale"]),
    in_keys=["loc", "scale"],
    spec=env.action_spec,
    distribution_class=TanhNormal,
    distribution_kwargs={"low": -1.0, "high": 1.0},
    return_log_prob=True,
)
critic = ValueOperator(
    MLP(in_features=2, out_features=1, num_cells=[16]), in_keys=["observation"]
)
with set_exploration_type(ExplorationType.DETERMINISTIC), torch.no_grad():
    print(env.rollout(10, actor)["next", "reward"].sum())
with torch.no_grad():
    data = env.rollout(40, actor, break_when_any_done=False)

advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
loss = ClipPPOLoss(actor, critic)
optimizer = torch.optim.Adam(loss.parameters(), 1e-2)
for _ in range(3):
    advantage(data)
    parts = loss(data)
    optimizer.zero_grad()
    sum(v for k, v in parts.items() if k.startswith("loss_")).backward()
    optimizer.step()
    print(sorted(parts.keys()), round(parts["loss_critic"].item(), 3))

replay = TensorDictReplayBuffer(storage=LazyTensorStorage(100), batch_size=8)
replay.extend(data.reshape(-1))
print(len(replay), replay.sample()["observation"].shape)
once = ReplayBuffer(
    storage=LazyTensorStorage(100), sampler=SamplerWithoutReplacement(), batch_size=16
)
once.extend(data.reshape(-1))
print(sum(1 for _ in once))

choice = QValueActor(
    MLP(in_features=2, out_features=3, num_cells=[8]),
    in_keys=["observation"],
    spec=OneHot(3),
)
print(choice(TensorDict({"observation": torch.randn(5, 2)}, [5])))
never = torch.zeros(5, 1, dtype=torch.bool)
after = {"observation": torch.randn(5, 2), "reward": torch.randn(5, 1)}
batch = TensorDict(
    {
        "observation": torch.randn(5, 2),
        "action": torch.nn.functional.one_hot(torch.arange(5) % 3, 3),
        "next": TensorDict({**after, "done": never, "terminated": never}, [5]),
    },
    [5],
)
loss = DQNLoss(choice, action_space="one_hot", delay_value=True)
target = SoftUpdate(loss, eps=0.9)
parts = loss(batch)
parts["loss"].backward()
target.step()
print(round(parts["loss"].item(), 4))

batch["action"] = torch.rand(5, 1) * 1.6 - 0.8
value = ValueOperator(
    MLP(in_features=3, out_features=1, num_cells=[8]),
    in_keys=["observation", "action"],
)
loss = SACLoss(actor, value, num_qvalue_nets=2, action_spec=env.action_spec)
parts = loss(batch)
sum(v for k, v in parts.items() if k.startswith("loss_")).backward()
print(sorted(parts.keys()), round(parts["loss_qvalue"].item(), 3))
