"""The command ``weightedshap``, as ``python -m weightedshap``."""

from weightedshap.jobs.cli import main

# Processes of the local engine import the main module again, and are not to run the command.
if __name__ == "__main__":
    main()
