"""Faults, each of which the judge of pages has to find in an otherwise good page (page_sample.html)."""

# The rule, and a text of the sample with what takes its place; at the end of <main> where no text is given.
FAULTS = [
    ("console", None, "<script>console.error('bad')</script>"),
    ("script", None, "<script>missing()</script>"),
    ("request", None, "<script>new Image().src = 'https://example.org/pixel.gif'</script>"),
    ("request", None, "<script>setTimeout(() => fetch('other.json').catch(() => 0), 20)</script>"),
    ("request", None, "<script>new WebSocket('ws://127.0.0.1:9')</script>"),
    ("request", None, "<img alt='' src='page_sample.html'>"),
    ("reference", None, "<img alt='' loading='lazy' src='page_sample.html'>"),
    ("reference", "<title>", "<link rel='preconnect' href='https://example.org'><title>"),
    ("reference", "<title>", "<script src='page_sample.html'></script><title>"),
    ("reference", "svg {", "@media print { body { background: url(paper.png) } } svg {"),
    ("link", 'href="page_sample.html"', "href='nowhere.html'"),
    ("anchor", 'href="#plot"', "href='#nowhere'"),
    ("declaration", '<meta charset="utf-8">', ""),
    ("declaration", '<meta name="viewport" content="width=device-width, initial-scale=1">', ""),
    ("axe-color-contrast", "--text: #222", "--text: #999"),
    ("axe-color-contrast", "--text: #eee", "--text: #555"),
    ("contrast", "svg {", "#first { background: linear-gradient(#fff, #222) } svg {"),
    ("axe-image-alt", None, "<img src='data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'>"),
    ("axe-heading-order", None, "<h4>Too deep</h4>"),
    ("axe-html-has-lang", ' lang="en"', ""),
    ("contrast", "--bar: #246", "--bar: #cde"),
    ("contrast", "svg text {", "svg text { opacity: 0.4;"),
    ("overlap", 'x="5" y="45"', 'x="25" y="25"'),
    ("small-text", None, "<p style='font-size: 9px'>Small</p>"),
    ("small-text", 'width="300" height="60"', 'viewBox="0 0 900 180"'),
    ("overflow", None, "<div style='width: 500px'>Wide</div>"),
    ("overflow", "<summary>More</summary><p>", "<summary>More</summary><p style='width: 500px'>"),
    ("outside", None, "<style>html { overflow-x: hidden }</style><div style='width: 500px'>Wide</div>"),
    ("cut-off", None, "<p style='width: 9em; overflow: hidden; white-space: nowrap; text-overflow: ellipsis'>Too long for its box</p>"),
    ("narrow-cell", None, "<table style='width: 4em'><tr><td>A text that has to be read word by word, one below the other</td></tr></table>"),
    ("cut-off", 'x="5" y="45"', 'x="270" y="45"'),
    ("written-by-script", None, "<script>document.getElementById('copied').textContent = 'Written'</script>"),
    ("hidden", None, "<p hidden id='shown'>Shown by a script</p><script>document.getElementById('shown').hidden = false</script>"),
    ("hidden", "#second:checked ~ .chosen", "#third:checked ~ .chosen"),
]


def faulty(sample, text, fault):
    """The sample with a fault."""
    place = text or "</main>"
    if sample.count(place) != 1:
        raise ValueError(f"the sample has {place!r} {sample.count(place)} times")
    return sample.replace(place, fault if text else f"{fault}\n</main>")
