"""Adds the numbers from 1 to the first argument and prints the sum. It saves its state when the
site wants one, and goes on from there when it is started again, here or on another machine."""

import os
import sys

DIR = os.environ.get("MRS_CKPT_DIR")


def load():
    """The state that an earlier attempt has saved: how far it is, and the sum."""
    if not DIR or not os.path.exists(os.path.join(DIR, "state")):
        return 0, 0
    with open(os.path.join(DIR, "state"), encoding="ascii") as file:
        i, total = file.read().split()
    return int(i), int(total)


def wanted():
    """Whether the site wants a new state now."""
    return bool(DIR) and os.path.exists(os.path.join(DIR, "wanted"))


def save(i, total, percent):
    """Put a state in the place of the one before. Never write it in place: it may be read."""
    if percent > 0:
        with open(os.path.join(DIR, "percent"), "w", encoding="ascii") as file:
            file.write(f"{percent}\n")
    with open(os.path.join(DIR, "next"), "w", encoding="ascii") as file:
        file.write(f"{i} {total}\n")
    os.replace(os.path.join(DIR, "next"), os.path.join(DIR, "state"))


def main():
    last = int(sys.argv[1])
    i, total = load()
    while i < last:
        i += 1
        total += i
        if i % 1000 == 0 and wanted():  # a look at a file takes longer than an addition
            save(i, total, 100 * i // last)
    print(total)


main()
