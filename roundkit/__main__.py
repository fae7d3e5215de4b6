"""``python -m roundkit``."""

from roundkit.cli import main

if __name__ == "__main__":
    main()
