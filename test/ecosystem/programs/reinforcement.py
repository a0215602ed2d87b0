"""A policy learns by REINFORCE to walk to the end of a corridor."""

import torch
from torch import nn
from torch.distributions import Categorical

LENGTH = 6


def episode(policy):
    place, logs, entropy, rewards = 0, [], 0.0, []
    for _ in range(20):
        state = torch.nn.functional.one_hot(torch.tensor(place), LENGTH).float()
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        logs.append(choice.log_prob(action))
        entropy = entropy + choice.entropy()
        place = max(0, place + 2 * action.item() - 1)
        rewards.append(-0.1)
        if place == LENGTH - 1:
            rewards[-1] = 1.0
            break
    return torch.stack(logs), entropy, rewards


torch.manual_seed(3)
policy = nn.Sequential(nn.Linear(LENGTH, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.RMSprop(policy.parameters(), lr=0.01)
for index in range(25):
    logs, entropy, rewards = episode(policy)
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(logs * (returns - returns.mean())).sum() - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if index % 4 == 0:
        print(f"episode {index} steps {len(rewards)} loss {loss.item():.4g}")
with torch.no_grad():
    print(policy(torch.eye(LENGTH)).softmax(-1))
