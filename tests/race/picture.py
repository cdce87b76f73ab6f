"""Pictures of a race: panels with lines, in SVG that needs nothing else and is the same for the same figures."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

COLOURS = {"OpenStack": "#c0392b", "Martlet": "#2e86c1", "in proportion": "#909497"}
MARGIN = 56  # left of a panel, for the numbers of its axis
GAP, TOP, BELOW = 18, 64, 40


@dataclass
class Axis:
    """What lies between two ends; `ticks` are where a number stands, by `label`."""

    low: float
    high: float
    ticks: list
    is_log: bool = False
    label: object = "{:g}".format

    def share(self, value):
        """Where a value lies, from 0 to 1; what lies outside is at the end."""
        value = min(max(value, self.low), self.high)
        low, high, value = map(math.log, (self.low, self.high, value)) if self.is_log else (self.low, self.high, value)
        return (value - low) / (high - low)


def decades(values):
    """A logarithmic axis that holds all of them."""
    values = [value for value in values if value > 0] or [1]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    return Axis(10.0 ** low, 10.0 ** high, [10.0 ** power for power in range(low, high + 1)], is_log=True)


@dataclass
class Panel:
    """Lines by name, each a list of points (x, y); a y of None leaves a gap. `bands` are (from, until) of x."""

    title: str
    across: Axis
    up: Axis
    lines: dict
    bands: list = field(default_factory=list)

    def svg(self, x, y, width, height):
        """Its elements, with the upper left corner of its area at x, y."""
        def at(value, axis, first, length):
            return f"{first + length * axis.share(value):.1f}"

        def place(point):
            return at(point[0], self.across, x, width), at(point[1], self.up, y + height, -height)
        parts = [f'<text x="{x}" y="{y - 6}" font-weight="bold">{escape(self.title)}</text>']
        for first, last in self.bands:
            left, right = at(first, self.across, x, width), at(last, self.across, x, width)
            parts.append(f'<rect x="{left}" y="{y}" width="{float(right) - float(left):.1f}" height="{height}" fill="#f9e79f"/>')
        for tick in self.up.ticks:
            line = at(tick, self.up, y + height, -height)
            parts.append(f'<line x1="{x}" x2="{x + width}" y1="{line}" y2="{line}" stroke="#e5e7e9"/>'
                         f'<text x="{x - 5}" y="{float(line) + 4:.1f}" text-anchor="end">{self.up.label(tick)}</text>')
        for tick in self.across.ticks:
            parts.append(f'<text x="{at(tick, self.across, x, width)}" y="{y + height + 15}" text-anchor="middle">{self.across.label(tick)}</text>')
        parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="#909497"/>')
        for name, points in self.lines.items():
            dashes = ' stroke-dasharray="4 3"' if name not in ("OpenStack", "Martlet") else ""
            for piece in pieces(points):
                path = " ".join(",".join(place(point)) for point in piece)
                parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="1.6"{dashes}/>')
        return parts


def pieces(points):
    """Runs of points without a gap; a single one becomes a line of no length, which a viewer shows as a dot."""
    runs = [[]]
    for point in points:
        if point[1] is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run * 2 if len(run) == 1 else run for run in runs if run]


def picture(title, rows, *, width=1100, height=170):
    """SVG of panels in rows, with a legend of all lines."""
    columns = max(map(len, rows))
    wide = (width - columns * (MARGIN + GAP)) // columns
    names = list(dict.fromkeys(name for row in rows for panel in row for name in panel.lines))
    whole = TOP + len(rows) * (height + BELOW) + 4
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" font-family="sans-serif" font-size="12">',
             f"<title>{escape(title)}</title>", f'<rect width="{width}" height="{whole}" fill="white"/>',
             f'<text x="{MARGIN}" y="20" font-size="16">{escape(title)}</text>']
    for number, name in enumerate(names):
        left = MARGIN + 130 * number
        parts.append(f'<rect x="{left}" y="28" width="10" height="10" fill="{COLOURS[name]}"/><text x="{left + 14}" y="37">{escape(name)}</text>')
    for down, row in enumerate(rows):
        for along, panel in enumerate(row):
            parts += panel.svg(MARGIN + along * (wide + MARGIN + GAP), TOP + down * (height + BELOW), wide, height)
    return "\n".join([*parts, "</svg>", ""])


def write(path, title, rows):
    """Writes the picture into a file, whose folder is made where it is missing."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(picture(title, rows))
