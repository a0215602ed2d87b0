"""Replays the schedule of a training step against a model of machines and networks."""
