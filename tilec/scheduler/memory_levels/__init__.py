"""Groups on devices with explicit levels below a core's: host memory, SSD, memory of a chip."""
