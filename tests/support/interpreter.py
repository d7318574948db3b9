#!/usr/bin/python3
"""Runs Python code, one text after another. Each line of standard input is JSON: the code, its arguments and its
standard input. Each answer is a line of JSON: what the code printed as "Ok", or how it failed as "Err"."""

import contextlib
import io
import json
import sys
import traceback

# No compiled files beside the sources.
sys.dont_write_bytecode = True


def answer(code, arguments, given):
    sys.argv, sys.stdin, printed = ["-", *arguments], io.StringIO(given), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "<script>", "exec"), {"__name__": "__main__"})
    except BaseException:
        return {"Err": traceback.format_exc()}
    return {"Ok": printed.getvalue()}


for line in sys.stdin.buffer:
    print(json.dumps(answer(*json.loads(line))), flush=True)
