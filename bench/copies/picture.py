# SPDX-License-Identifier: Apache-2.0
"""Pictures of measurements as SVG: dots with intervals, stacks, and maps of heat.

Each function returns the text of a file of 920 units' width, on white, whose colours the colour-blind tell apart (Okabe and
Ito) and a printer in grey, too: no meaning is in a colour alone.
"""

import html
import math

WIDTH = 920
ROW = 24
TOP = 74
BOTTOM = 44
SERIES = ("#0072b2", "#d55e00", "#007a5a", "#a0468a", "#8a6d00", "#56606b")
CSS = """text { font: 12px system-ui, sans-serif; fill: #1b1f24; } .heading { font-size: 15px; font-weight: 600; }
.note { fill: #57606a; } .grid { stroke: #e8ebef; } .axis { stroke: #7b8794; } .whisker { stroke-width: 2; }
.cell { stroke: #fff; } .inside { font-size: 10px; }"""


def text(x, y, words, anchor="start", style="", colour=""):
    style = f' class="{style}"' if style else ""
    colour = f' style="fill:{colour}"' if colour else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}{colour}>{html.escape(str(words))}</text>'


def line(x1, y1, x2, y2, style, colour=""):
    colour = f' stroke="{colour}"' if colour else ""
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{colour}/>'


def box(x, y, width, height, colour, title="", style="cell"):
    title = f"<title>{html.escape(title)}</title>" if title else ""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}"'
    return f'<rect class="{style}" {place} fill="{colour}">{title}</rect>'


def document(heading, note, height, parts):
    return "\n".join(
        [
            "<!-- SPDX-License-Identifier: Apache-2.0 -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"',
            f' aria-label="{html.escape(heading)}">',
            f"<style>{CSS}</style>",
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            text(8, 22, heading, style="heading"),
            text(8, 40, note, style="note"),
            *parts,
            "</svg>",
            "",
        ]
    )


def number(value):
    """With at most three digits that count."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "-"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text_of = f"{value:,.{digits}f}"
    return text_of.rstrip("0").rstrip(".") if "." in text_of else text_of


def ticks(low, high, log):
    """Round numbers from low to high: on a long logarithmic scale 1, 2 and 5 of each power, else steps of these."""
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        found = [at for at in found if low * 0.999 <= at <= high * 1.001]
        if len(found) > 2:
            return found
    step = 10.0 ** math.floor(math.log10((high - low) / 5))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 6)
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class Scale:
    """Where values lie between two edges."""

    def __init__(self, low, high, left, right, log):
        self.log, self.left, self.right = log, left, right
        self.low, self.high = (low, high) if high > low else (low, low * 2 or 1)

    def at(self, value):
        of = math.log if self.log else float
        low, high = of(self.low), of(self.high)
        share = (of(max(value, 1e-12)) - low) / (high - low) if self.log else (value - low) / (high - low)
        return self.left + min(max(share, 0), 1) * (self.right - self.left)

    def drawn(self, top, bottom, title):
        parts = []
        for tick in ticks(self.low, self.high, self.log):
            parts += [
                line(self.at(tick), top, self.at(tick), bottom, "grid"),
                text(self.at(tick), bottom + 16, number(tick), "middle"),
            ]
        return parts + [
            line(self.left, bottom, self.right, bottom, "axis"),
            text((self.left + self.right) / 2, bottom + 34, title, "middle"),
        ]


def legend(names, swatch):
    """The names in lines above the plot, and how much lower that begins for it."""
    parts, x, y = [], 8, 57
    for i, name in enumerate(names):
        width = 30 + 6.7 * len(name)
        if x + width > WIDTH:
            x, y = 8, y + 18
        parts += [swatch(i, x + 6, y), text(x + 18, y + 4, name)]
        x += width
    return parts, y - 57


def mark(series, x, y, title=""):
    """Circle, square, triangle, diamond and so on, each with a colour of its own."""
    colour, title = SERIES[series % len(SERIES)], f"<title>{html.escape(title)}</title>" if title else ""
    if series % 4 == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}">{title}</circle>'
    points = {1: "-4,-4 4,-4 4,4 -4,4", 2: "0,-5.5 5,4 -5,4", 3: "0,-5.5 5.5,0 0,5.5 -5.5,0"}[series % 4]
    return f'<polygon transform="translate({x:.1f} {y:.1f})" points="{points}" fill="{colour}">{title}</polygon>'


def dots(heading, note, axis, series, rows, log=False, base=None, names=150):
    """A row for each (name, values), with a value or None for each of the series: (middle, low, high)."""
    shown = [value for _, values in rows for value in values if value]
    least, most = min(low for _, low, _ in shown), max(high for _, _, high in shown)
    step = ROW if len(series) == 1 else 8 + 11 * len(series)
    bottom = TOP + step * len(rows)
    scale = Scale(least / 1.15 if log else min(0, least), most * (1.15 if log else 1.05), names, WIDTH - 24, log)
    parts = scale.drawn(TOP, bottom, axis)
    if base is not None:
        parts.append(line(scale.at(base), TOP, scale.at(base), bottom, "axis"))
    for i, (name, values) in enumerate(rows):
        y = TOP + step * i
        parts.append(text(names - 10, y + step / 2 + 4, name, "end"))
        if i % 2:
            parts.insert(0, box(0, y, WIDTH, step, "#f6f8fa", style=""))
        for k, value in enumerate(values):
            if not value:
                continue
            at = y + step * (k + 1) / (len(series) + 1)
            middle, low, high = value
            title = f"{name}, {series[k]}: {number(middle)} ({number(low)} to {number(high)})"
            parts += [
                line(scale.at(low), at, scale.at(high), at, "whisker", SERIES[k % len(SERIES)]),
                mark(k, scale.at(middle), at, title),
            ]
    if len(series) > 1:
        parts += legend(series, mark)[0]
    return document(heading, note, bottom + BOTTOM, parts)


def stacks(heading, note, axis, series, rows, names=190):
    """A bar for each (name, values), its parts one after the other, of which the great ones are numbered as the legend is."""
    palette = SERIES + tuple(colour + "88" for colour in SERIES)
    numbered = [f"{k + 1} {name}" for k, name in enumerate(series)]
    parts, lower = legend(numbered, lambda k, x, y: box(x - 5, y - 5, 10, 10, palette[k % len(palette)]))
    top = TOP + lower
    bottom = top + ROW * len(rows)
    scale = Scale(0, max(sum(values) for _, values in rows), names, WIDTH - 60, False)
    parts += scale.drawn(top, bottom, axis)
    for i, (name, values) in enumerate(rows):
        y, so_far = top + ROW * i, 0.0
        parts.append(text(names - 10, y + 16, name, "end"))
        for k, value in enumerate(values):
            left, right = scale.at(so_far), scale.at(so_far + value)
            so_far += value
            title = f"{name}, {series[k]}: {number(value)}"
            parts.append(box(left, y + 3, right - left, ROW - 6, palette[k % len(palette)], title))
            if right - left > 16:
                ink = "#fff" if k < len(SERIES) else ""
                parts.append(text((left + right) / 2, y + 16, k + 1, "middle", "inside", ink))
        parts.append(text(scale.at(so_far) + 6, y + 16, number(so_far)))
    return document(heading, note, bottom + BOTTOM, parts)


def shade(share):
    """From almost white to dark blue, and the colour of words upon it."""
    share = min(max(share, 0), 1)
    light, dark = (240, 246, 252), (8, 48, 107)
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(light, dark))
    return f"#{red:02x}{green:02x}{blue:02x}", "#fff" if share > 0.5 else "#1b1f24"


def heat(heading, note, rows, columns, cells, share, names=150):
    """`cells` has the values of each row, or None, which stand in their cells; share(row, column) is how dark a cell is."""
    width, head = (WIDTH - names - 44) / len(columns), 118
    parts = []
    for k, column in enumerate(columns):
        x, y = names + width * (k + 0.5) + 4, TOP + head - 26
        parts.append(f'<text transform="translate({x:.1f} {y:.1f}) rotate(-60)">{html.escape(column)}</text>')
    for i, row in enumerate(rows):
        y = TOP + head - 18 + ROW * i
        parts.append(text(names - 8, y + 16, row, "end"))
        for k, column in enumerate(columns):
            value = cells[i][k]
            colour, ink = ("#eee", "") if value is None else shade(share(i, k))
            x = names + width * k
            parts.append(box(x, y, width, ROW, colour, f"{row}, {column}: {'-' if value is None else number(value)}"))
            if value is not None:
                parts.append(
                    text(
                        x + width / 2, y + 16, f"{value:.0f}" if value >= 9.95 else f"{value:.1f}", "middle", "inside", ink
                    )
                )
    return document(heading, note, round(TOP + head - 18 + ROW * len(rows) + 14), parts)
