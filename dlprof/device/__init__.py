"""What the driver and NVML say of the GPUs, by the standard library and what is installed."""
