"""Writes the 7-point Laplacian of an N x N x N grid as a Rutherford-Boeing file, the input of symPACK:
python3 laplacian.py 50 laplacian50.rb"""

import sys


def lower_triangle(n):
    """The columns' starts, and the rows and values of the lower triangle, counted from 1."""
    starts, rows, values = [1], [], []
    for cell in range(n**3):
        rows.append(cell + 1)
        values.append("6.0E+00")
        for step in (1, n, n * n):
            if cell // step % n < n - 1:
                rows.append(cell + 1 + step)
                values.append("-1.0E+00")
        starts.append(len(rows) + 1)
    return starts, rows, values


def lines(items, in_line=8, width=10):
    """The items in lines, each item in a column of the file's format."""
    texts = [str(item).rjust(width) for item in items]
    return ["".join(texts[at : at + in_line]) for at in range(0, len(texts), in_line)]


def write(n, path):
    starts, rows, values = lower_triangle(n)
    parts = [lines(starts), lines(rows), lines(values)]
    counts = [len(part) for part in parts]
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{f'7-point Laplacian {n}^3':<72}{f'lap{n}':<8}\n")
        file.write("".join(f"{count:14d}" for count in [sum(counts), *counts]) + "\n")
        file.write(f"{'rsa':<14}" + "".join(f"{count:14d}" for count in [n**3, n**3, len(rows), 0]) + "\n")
        file.write(f"{'(8I10)':<16}{'(8I10)':<16}{'(8E10.1)':<20}\n")
        for part in parts:
            file.write("\n".join(part) + "\n")


if __name__ == "__main__":
    write(int(sys.argv[1]), sys.argv[2])
