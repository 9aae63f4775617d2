"""What a device file and a cost model are calibrated by: rates, bandwidths and latencies of small kernels."""
