"""Bounds against the curves of the Orojenesis tool and against brute force over element sets."""
