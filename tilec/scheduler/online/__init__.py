"""Online reductions: dependent reductions fused into one loop, with update rules derived from their bodies' algebra."""
