"""The GPUs, by the CUDA driver and NVML."""
