"""Print the table; with the names of forms as arguments, also the paths that are missing on either side."""

from __future__ import annotations

import sys

from tests.whole_pages.forms import FORMS, Compared


def main(names: list[str]) -> int:
    """Print the figures of all forms, or those of some with their paths. Return 0."""
    print(f"{'form':30} {'capture':14} paths compared  ours have | ours  recorded")
    for form in FORMS:
        if names and form.name not in names:
            continue
        compared = Compared(form)
        extra, number = compared.has()
        other = f"{number:5} {1 - len(extra) / number:8.1%}"
        for capture in form.captures:
            missing, seen = compared.lacks(capture)
            figures = f"{len(compared.real[capture]):5} {seen:8} {1 - len(missing) / seen:10.1%}"
            print(f"{form.name:30} {capture:14} {figures} | {other}")
            for path in sorted(missing) if names else ():
                print("  lacks", path)
            other = ""
        for path in sorted(extra) if names else ():
            print("  has", path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
