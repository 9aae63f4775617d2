"""Design studies: workloads on machines of many sizes, as rows, CSV, JSON and pictures."""
