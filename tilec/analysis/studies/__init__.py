"""Design studies: workloads on machines of many sizes."""
