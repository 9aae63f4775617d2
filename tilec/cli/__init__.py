"""The command line: one file per verb. Parse, call, print."""


def main() -> None:
    """Entry point of `tilec`."""
    from tilec.cli.app import run

    run()
