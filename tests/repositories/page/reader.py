"""Prints what the page of a repository on standard input says, as JSON: its title, its keys, and the parts for
clients, each with its text and with the commands by the target of a GPU, or by the words above them."""

import json
import sys
from html.parser import HTMLParser


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.said = {"title": "", "keys": [], "parts": {}}
        self.open = []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link"):
            self.open.append(tag)
        if tag == "h2":
            self.part = {"text": "", "commands": {}}
            self.said["parts"][dict(attributes)["id"]] = self.part
        elif tag == "details":
            self.commands = ""

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise ValueError(f"</{tag}> does not end the last element")
        if tag == "details":
            self.part["commands"].update(dict.fromkeys(self.names, self.commands.strip()))

    def handle_data(self, data):
        if "h1" in self.open:
            self.said["title"] += data
        elif "b" in self.open:
            self.names = data.split() if data.startswith("gfx") else [data]
        elif "pre" in self.open:
            self.commands += data
        elif "code" in self.open:
            self.said["keys"].append(data)
        elif self.said["parts"] and "details" not in self.open:
            self.part["text"] += data


page = Page()
page.feed(sys.stdin.read())
page.close()
if page.open:
    raise ValueError(f"{page.open} are not closed")
print(json.dumps(page.said))
