"""Instruments for steps of inference: what a strategy for the output's memory costs and risks."""
