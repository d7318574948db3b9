#!/usr/bin/python3
"""Fits a line through the generated sets of benches/RESULTS.md, and draws benches/linear.svg.

    linear.py           writes the plot, prints the fit
    linear.py --check   fails where the plot is not that of the table

The sets are rows of the first table whose name is a size (50M, 20G). The line is that of least squares of
relative errors, so that the small sets count as much as the large ones.
"""

import math
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 400, 70, 50, 40, 20
# Powers of ten at the ends of both axes: MB and seconds.
MEGABYTES, SECONDS = (1, 5), (0, 3)


def points():
    """(MB of input, CPU seconds) of every generated set."""
    found = []
    for row in (HERE / "RESULTS.md").read_text().splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if len(cells) > 5 and re.fullmatch(r"\d+[MG]", cells[0]):
            found.append((float(cells[1]), sum(float(part) for part in cells[3].split("+"))))
    return sorted(found)


def fit(found):
    """Slope and intercept of the line with the least sum of squared relative errors."""
    weights = [1 / cpu ** 2 for _, cpu in found]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, found)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, found)) / total
    above = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, found))
    slope = above / sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, found))
    return slope, mean_y - slope * mean_x


def place(x, y):
    """The place of a point in the picture; both axes are logarithmic."""
    across = (math.log10(x) - MEGABYTES[0]) / (MEGABYTES[1] - MEGABYTES[0])
    up = (math.log10(y) - SECONDS[0]) / (SECONDS[1] - SECONDS[0])
    return (LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - TOP))


def text(x, y, words, anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def grid():
    for power in range(MEGABYTES[0], MEGABYTES[1] + 1):
        x, low = place(10 ** power, 10 ** SECONDS[0])
        yield f'<path d="M{x:.1f} {low:.1f}V{TOP}" class="grid"/>'
        yield text(x, low + 18, f"{10 ** power}")
    for power in range(SECONDS[0], SECONDS[1] + 1):
        x, y = place(10 ** MEGABYTES[0], 10 ** power)
        yield f'<path d="M{x:.1f} {y:.1f}H{WIDTH - RIGHT}" class="grid"/>'
        yield text(x - 8, y + 4, f"{10 ** power}", "end")
    yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "MB of input")
    yield f'<g transform="rotate(-90 18 {HEIGHT / 2:.0f})">{text(18, HEIGHT / 2, "CPU seconds")}</g>'


def picture(found, slope, start):
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">'
    yield "<style>.grid{stroke:#ccc}.fit{stroke:#06c;fill:none}text{fill:#333}</style>"
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    yield from grid()
    line = [place(x, slope * x + start) for x, _ in found]
    yield f'<polyline class="fit" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in line)}"/>'
    for x, y in found:
        across, down = place(x, y)
        yield f'<circle cx="{across:.1f}" cy="{down:.1f}" r="4"/>'
        yield text(across + 8, down + 14, f"{y:.1f}", "start")
    yield text(WIDTH / 2, 22, f"{words(slope, start)}, through {len(found)} sets")
    yield "</svg>"


def words(slope, start):
    return f"{slope * 1000:.1f} s a GB {start:+.2f} s"


def main():
    found = points()
    slope, start = fit(found)
    svg, place_of = "\n".join(picture(found, slope, start)) + "\n", HERE / "linear.svg"
    worst = max(abs(cpu / (slope * size + start) - 1) for size, cpu in found)
    print(f"{words(slope, start)}; no set is more than {worst * 100:.1f} % from it")
    if "--check" not in sys.argv:
        place_of.write_text(svg)
    elif place_of.read_text() != svg:
        sys.exit(f"{place_of} is not of the table: run benches/linear.py")


main()
