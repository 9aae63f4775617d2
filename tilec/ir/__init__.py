"""The compiler's data structures, frozen and with verifiers: types, tensor expressions, graph, plan, tile program."""
