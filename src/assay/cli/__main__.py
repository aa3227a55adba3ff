"""So that `python -m assay.cli` is the command line; processes that train beside it read this file as well."""

from assay.cli import main

if __name__ == "__main__":
    main()
