"""The frame of every report: one HTML file without anything from outside, light and dark, on paper and phones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from lakestream_pages.plots import STYLE as PLOT_STYLE

STYLE = """
:root{color-scheme:light dark;--text:#1f2328;--soft:#57606a;--back:#fff;--line:#d0d7de;--grid:#e4e8ec;--head:#f6f8fa;
--mark:#eef6fa;--ours:#0b6e99;--red:#d1495b;--violet:#8a5fbf;--amber:#b07800;--grey:#7d8590;--green:#2d8a4e;
--miss:#a40e26;--ok:#1a7f37;font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back)}
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--soft:#9198a1;--back:#0d1117;--line:#3d444d;--grid:#262c36;
--head:#151b23;--mark:#12283a;--ours:#4fb3dd;--red:#ff7b8a;--violet:#b392f0;--amber:#e3b341;--grey:#9198a1;
--green:#56d364;--miss:#ff7b72;--ok:#3fb950}}
body{max-width:1180px;margin:0 auto;padding:20px}a{color:var(--ours)}
h1{font-size:26px;margin:0}h2{font-size:19px;margin:36px 0 2px;border-top:1px solid var(--line);padding-top:20px}
h3{font-size:15px;margin:20px 0 2px}
p{margin:6px 0;max-width:80ch}.wide{overflow-x:auto}
table{border-collapse:collapse;margin:12px 0;font-variant-numeric:tabular-nums}
th,td{padding:3px 10px;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{font-weight:600;background:var(--head)}
tr.ours td{font-weight:600;background:var(--mark)}svg{width:100%;display:block}
.miss{color:var(--miss)}.ok{color:var(--ok)}.range{display:block;font-weight:400;font-size:11px;color:var(--soft)}
.key span{display:inline-block;margin-right:16px}.key i{display:inline-block;width:20px;height:3px;margin-right:6px;
vertical-align:middle}.small{font-size:13px}
caption{caption-side:bottom;text-align:left;font-size:12px;color:var(--soft);white-space:normal}
pre{overflow-x:auto;font-size:12px;background:var(--head);padding:8px}
.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:12px 24px}
.pair text{font-size:14px}.pair text.title{font-size:15px}
details ul{padding-left:18px;margin:4px 0;max-height:420px;overflow-y:auto}li{overflow-wrap:anywhere}
@media(max-width:900px){.pair{grid-template-columns:minmax(0,1fr)}}
@media(max-width:600px){.pair text{font-size:17px}.pair text.title{font-size:19px}}
@media(max-width:600px){body{padding:12px}th,td{padding:3px 5px}table{font-size:12px}
td:first-child{white-space:normal;min-width:11ch}caption{max-width:calc(100vw - 24px)}}
@media print{:root{color-scheme:light;--text:#000;--soft:#444;--back:#fff;--line:#bbb;--grid:#ddd;--head:#f4f4f4;
--mark:#eef6fa;--ours:#0b6e99;--red:#d1495b;--violet:#8a5fbf;--amber:#b07800;--grey:#7d8590;--green:#2d8a4e;
--miss:#a40e26;--ok:#1a7f37;font-size:11px}body{max-width:none;padding:0}h2{break-after:avoid}
svg,tr{break-inside:avoid}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
"""CSS of all reports; colours are variables, which plots name."""


def document(title: str, body: str, style: str = "") -> str:
    """The whole file; the body is HTML, the title text.

    Args:
        title: of the page and its first heading.
        body: what follows the heading.
        style: CSS of this report alone.
    """
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}{PLOT_STYLE}{style}</style></head><body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def key(colors: dict[str, str]) -> str:
    """A line that names colours."""
    spans = "".join(f'<span><i style="background:{color}"></i>{escape(name)}</span>' for name, color in colors.items())
    return f'<p class="key">{spans}</p>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """A table; the cells are HTML, and so is the caption, which names the place of the numbers in a file."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><caption>{caption}</caption><tr>{top}</tr>{lines}</table></div>'


def ranged(text: str) -> str:
    """A figure and, small below it, what stands in brackets behind it; as HTML."""
    median, _, span = text.partition(" ")
    return median + (f'<span class="range">{span.strip("()")}</span>' if span else "")
