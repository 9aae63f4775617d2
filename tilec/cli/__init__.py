"""The command line: one file a verb. Parse, call, print."""


def main() -> None:
    """Entry point of `tilec`."""
    from tilec.cli.app import run

    run()
