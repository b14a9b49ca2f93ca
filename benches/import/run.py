"""An export of any size, imported, and imported again: `python3 benches/import/run.py CONVO FOLDER [MEGABYTES]`.

CONVO is the program. FOLDER gets the export and the store; both are removed at the end. The export is one of ChatGPT: conversations of
40 messages of 2 KB, in no order of time; in each tenth one an answer was regenerated, which becomes a fork. Printed are the time and
the peak of memory of the first run, of a second one, of one without a store (it only reads), and of a plain read by this script. At the
end the list of the store is compared with the times of the source.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import time

MESSAGES, BYTES, FORKED = 40, 2_000, 10
BEGAN, APART = 1_600_000_000, 7_000
WORDS = ("the build fails when a cache is cold and nobody looks at it until the release, so we pin the compiler; "
         "then \"tests\" pass\nagain: größer, 名前, and a path like C:\\work. ").split(" ")


def text(rng):
    words, size = [], 0
    while size < BYTES:
        words.append(rng.choice(WORDS))
        size += len(words[-1]) + 1
    return " ".join(words)


def conversation(rng, number):
    """A conversation as ChatGPT exports it, and when its last message was written."""
    began, mapping, last = BEGAN + number * APART, {}, None

    def node(name, parent, at):
        role = "user" if at % 2 == 0 else "assistant"
        message = {"id": name, "author": {"role": role}, "create_time": began + at * 60.5, "status": "finished_successfully",
                   "content": {"content_type": "text", "parts": [text(rng)]}, "metadata": {"model_slug": "gpt-4o"}}
        mapping[name] = {"id": name, "parent": parent, "children": [], "message": message}
        if parent:
            mapping[parent]["children"].append(name)

    for at in range(MESSAGES):
        name = f"{number:06}-{at:02}"
        node(name, last, at)
        if number % FORKED == 0 and at == MESSAGES - 1:
            node(f"{name}-again", last, at)
        last = name
    written = {"title": f"Conversation {number}", "create_time": began, "update_time": began + MESSAGES * 60.5,
               "mapping": mapping, "current_node": last, "conversation_id": f"{number:06}"}
    return json.dumps(written)


def export(path, megabytes):
    """Writes the export, and returns the numbers of its conversations in the order of the file."""
    rng = random.Random(7)
    each = len(conversation(rng, 0))
    numbers = list(range(max(1, megabytes * 1_000_000 // each)))
    rng.shuffle(numbers)
    with path.open("w") as out:
        for place, number in enumerate(numbers):
            out.write("[" if place == 0 else ",\n")
            out.write(conversation(rng, number))
        out.write("]\n")
    return numbers


def measured(title, *command):
    """Runs a command; prints seconds of the clock and of the processor, and the most memory that it had."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    last = ""
    for line in process.stdout:
        last = line
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    assert os.waitstatus_to_exitcode(status) == 0, f"{title}: {status}"
    used = usage.ru_utime + usage.ru_stime
    print(f"{title:<28} {seconds:7.1f} s  {used:7.1f} s of a processor  {usage.ru_maxrss / 1024:6.0f} MiB  {last.strip()}", flush=True)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    megabytes = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000
    folder.mkdir(parents=True, exist_ok=True)
    path, store = folder / "conversations.json", f"sled:{folder / 'store'}"
    numbers = export(path, megabytes)
    print(f"{path.stat().st_size / 1e6:.0f} MB, {len(numbers)} conversations")
    measured("read by this script", sys.executable, "-c", f"with open({str(path)!r}, 'rb') as f:\n while f.read(1 << 20): pass")
    measured("dry run", program, "import", "--json", "--dry-run", str(path))
    measured("first run", program, "--store", store, "import", "--json", str(path))
    measured("second run", program, "--store", store, "import", "--json", str(path))
    listed = subprocess.run([program, "--store", store, "list", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    keys = [json.loads(line)["key"] for line in listed.stdout.splitlines()]
    wanted = [f"chatgpt:{number:06}" for number in sorted(numbers, reverse=True)]
    assert [key for key in keys if key.count(":") == 1] == wanted, "the list is not in the order of the source's times"
    assert len(keys) == len(numbers) + len([number for number in numbers if number % FORKED == 0]), "forks are missing"
    print(f"list: {len(keys)} conversations and forks, in the order of the source's times")


if __name__ == "__main__":
    main()
