"""What is compiled, as frozen data with verifiers: types, tensor expressions, graph, plan, tile program."""
