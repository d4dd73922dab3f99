#!/usr/bin/env python3
"""The HTML page in a real browser: no errors, nothing overflows or overlaps, and people see what the library says.

    browser_test.py REPRISE

REPRISE is the command that was built. Makes pages with it and opens each in headless Chromium at three widths, light and
dark. Exit code 77 if there is no Chromium.
"""

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTHS = [360, 800, 1400]
SCHEMES = {"light": "1", "dark": "0"}  # as Chromium numbers them
SKIPPED = 77

# Runs first in every page: what goes wrong while it loads is remembered.
COLLECT_ERRORS = """
window.problems = [];
window.addEventListener('error', (event) => problems.push('error: ' + event.message));
window.addEventListener('unhandledrejection', (event) => problems.push('rejection: ' + event.reason));
document.addEventListener('securitypolicyviolation', (event) => problems.push('refused by the policy: ' + event.effectiveDirective + ' ' + event.blockedURI));
for (const kind of ['error', 'warn']) console[kind] = (...words) => problems.push('console: ' + words.join(' '));
"""

# Runs when all is loaded, and what the policy refused is reported: looks at the page as a person would, and reports to the page around it.
LOOK = """
window.addEventListener('load', () => setTimeout(() => {
  const root = document.documentElement;
  const visible = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 ? box : null;
  };
  if (root.scrollWidth > root.clientWidth) {
    problems.push('it is ' + root.scrollWidth + ' wide in a window of ' + root.clientWidth);
  }
  const texts = [];
  for (const element of document.querySelectorAll('svg text, .tile dt, .tile data, .tile small, h1, h2, h3')) {
    const box = visible(element);
    if (!box) continue;
    if (box.left < -1 || box.right > root.clientWidth + 1) problems.push('outside: ' + element.textContent);
    texts.push([element.textContent, box]);
  }
  for (let i = 0; i < texts.length; ++i) {
    for (let j = 0; j < i; ++j) {
      const [first, a] = texts[i], [second, b] = texts[j];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 1) problems.push('overlap: "' + first + '" and "' + second + '"');
    }
  }
  const light = (colour) => {
    const part = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
        .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  for (const element of document.querySelectorAll('p, th, td, dt, dd, small, figcaption, .plot text, summary')) {
    if (!visible(element)) continue;
    const ink = light(getComputedStyle(element)[element instanceof SVGElement ? 'fill' : 'color']);
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) problems.push('contrast ' + contrast.toFixed(1) + ': ' + element.textContent.slice(0, 40));
  }
  for (const figure of document.querySelectorAll('figure.memory')) {
    const frame = figure.querySelector('.frame'), readout = figure.querySelector('.readout');
    const box = frame.getBoundingClientRect(), quiet = readout.textContent;
    frame.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2, clientY: box.top + 5}));
    if (!/ live at [\\d.]+ %/.test(readout.textContent)) problems.push('no details: ' + readout.textContent);
    if (root.scrollWidth > root.clientWidth) problems.push('details make it too wide');
    frame.dispatchEvent(new PointerEvent('pointerleave', {}));
    if (readout.textContent !== quiet) problems.push('details stay: ' + readout.textContent);
    frame.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
    if (readout.textContent === quiet) problems.push('no details by key');
    frame.dispatchEvent(new Event('blur'));
  }
  const numbers = [...document.querySelectorAll('data')].map((data) => [data.dataset.key, data.value, data.innerText]);
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  parent.postMessage({page: name, problems, numbers, dark, paper, texts: texts.length}, '*');
}, 100));
"""

HARNESS = """<!DOCTYPE html><meta charset="utf-8"><body>
<script>
const seen = {};
addEventListener('message', (event) => {
  seen[event.data.page] = event.data;
  document.getElementById('seen').textContent = JSON.stringify(seen);
});
</script>
<pre id="seen"></pre>
%s
"""


def run(command, *arguments):
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command} {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def awkward_trace():
    """Names that are long, hostile or empty, modules, a tier, an operator that may not be replayed."""
    names = ["</script><script>throw 1</script>", "aten::" + "scaled_dot_product_" * 8, "", "änderung <b>&amp;"]
    operators, values, moments = [], [{"bytes": 5 << 20, "held": [0, 15]}], []
    for i in range(8):
        operators.append({"name": names[i % 4], "inputs": [i], "outputs": [i + 1], "cost": 1 + i % 3,
                          "workspace": 1 << 18, "replayable": i != 4, "module": f"net.layers.{i}." + "deep." * 12})
        values.append({"bytes": (i + 1) << 20, "maker": i})
        moments.append({"runs": i, "other": 3 << 20})
    for i in reversed(range(8)):
        moments.append({"name": f"backward {i} {names[0]}", "needs": [i + 1], "cost": 2, "other": (12 - i) << 20})
    tiers = [{"name": "bits", "in_budget": True, "values": [[6, 1 << 16, 0.1, 0.1]]}]
    return {"format": "reprise-trace", "version": 1, "name": "awkward " + names[0] + " name" * 30,
            "operators": operators, "values": values, "moments": moments, "tiers": tiers}


def training_step():
    """A step as a session records it: 40 layers of four operators, packed masks, gradients that grow."""
    mebibyte, layers = 1 << 20, 40
    operators, values, moments, tiers = [], [{"bytes": 8 * mebibyte}], [], []
    for layer in range(layers):
        for name, size, cost in [("aten::native_layer_norm", 8, 1), ("aten::mm", 24, 9), ("aten::gelu", 24, 2),
                                 ("aten::native_dropout", 8, 2)]:
            operators.append({"name": name, "inputs": [len(values) - 1], "outputs": [len(values)], "cost": cost,
                              "module": f"blocks.{layer}"})
            values.append({"bytes": size * mebibyte, "maker": len(operators) - 1})
            moments.append({"runs": len(operators) - 1, "other": 400 * mebibyte})
        tiers.append([len(values) - 1, mebibyte // 4, 0.2, 0.2])
    for i in reversed(range(len(operators))):
        moments.append({"name": operators[i]["name"] + " backward", "needs": [i, i + 1], "cost": 6,
                        "other": (408 + 2 * (len(operators) - i)) * mebibyte})
    return {"format": "reprise-trace", "version": 1, "name": "a training step", "operators": operators,
            "values": values, "moments": moments,
            "tiers": [{"name": "packed", "in_budget": True, "values": tiers}]}


def make_pages(reprise, folder):
    """Pages and what the command says about their plans: {name: (page, simulation)}."""
    awkward, graph, step = folder / "awkward.json", folder / "graph.json", folder / "step.json"
    step.write_text(json.dumps(training_step()))
    awkward.write_text(json.dumps(awkward_trace()))
    graph.write_text(json.dumps({"cost": [1] * 30, "size": [1000 + i for i in range(30)],
                                 "edges": [[i, i + 1] for i in range(29)] + [[i, 29 - i] for i in range(14)]}))
    pages = {}
    for trace, budget, more in [(step, "0.5x", []), (awkward, "0.8x", []), (graph, "1x", ["--no-curve"])]:
        plan, page = trace.with_suffix(".plan"), trace.with_suffix(".html")
        planned = json.loads(run(reprise, "plan", trace, "--budget", budget, "--time-limit", 0.5, "--json", "--output", plan))
        run(reprise, "report", trace, plan, "--time-limit", 1, "--output", page, *more)
        proven = json.loads(run(reprise, "simulate", trace, plan, "--json"))
        for key in ["peak_bytes", "budget_bytes", "replays", "puts", "cost"]:
            assert planned[key] == proven[key], key
        pages[trace.stem] = (page.read_text(), planned)
    return pages


def embedded(page):
    return json.loads(re.search(r'id="reprise-numbers">(.*?)</script>', page, re.S).group(1))


def compare_with_command(name, page, planned):
    numbers = embedded(page)
    for mine, theirs in [("budget_bytes", "budget_bytes"), ("peak_before_bytes", "keep_everything_peak_bytes"),
                         ("peak_after_bytes", "peak_bytes"), ("replays", "replays"), ("puts", "puts"),
                         ("floor_bytes", "floor_bytes")]:
        assert numbers[mine] == planned[theirs], (name, mine, numbers[mine], planned[theirs])
    assert abs(numbers["overhead"] - planned["overhead"]) < 1e-9, name


def check_policy(name, page):
    """The page's policy names what is inline by its hash, and nothing is there that it refuses."""
    policy = re.search(r'http-equiv="Content-Security-Policy" content="(.*?)"', page).group(1)
    problems = [f"{name}: the policy allows 'unsafe-inline'"] if "unsafe-inline" in policy else []
    for kind, text in re.findall(r"<(script|style)>(.*?)</\1>", page, re.S):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        if not re.search(rf"{kind}-src [^;]*'sha256-{re.escape(digest)}'", policy):
            problems.append(f"{name}: the policy does not have this {kind}: sha256-{digest}")
    for tag in re.findall(r'<[a-z][^<>]* (?:style|on[a-z]+)="[^<>]*>', re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)):
        problems.append(f"{name}: the policy refuses {tag}")
    return problems


def amount(text):
    """The number that a person reads: "1.50 GiB", "3.1 %", "12"."""
    number, _, unit = text.partition(" ")
    factor = {"": 1, "B": 1, "%": 0.01, **{u: 1024 ** (i + 1) for i, u in enumerate(["KiB", "MiB", "GiB", "TiB"])}}
    return float(number.lstrip("<")) * factor[unit]


def look(chromium, folder, pages, scheme):
    frames = ""
    for name, (page, _) in pages.items():
        copy = folder / f"{name}.copy.html"
        # In front of the page's content policy, which refuses other scripts than the page's own.
        copy.write_text(page.replace("<head>", f"<head><script>{COLLECT_ERRORS}{LOOK}</script>", 1))
        for width in WIDTHS:
            frames += f'<iframe name="{name} {width}" width="{width}" height="900" src="{copy.name}"></iframe>\n'
    harness = folder / "harness.html"
    harness.write_text(HARNESS % frames)
    profile = folder / f"profile-{scheme}"
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
               "--no-first-run", "--disable-extensions", "--disable-background-networking", f"--user-data-dir={profile}",
               f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", "--virtual-time-budget=4000",
               "--window-size=1600,1000", "--dump-dom", harness.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.S)
    if not found or not found.group(1):
        sys.exit(f"Chromium showed nothing ({done.returncode}): {done.stderr[-2000:]}")
    return json.loads(html.unescape(found.group(1)))


def check(seen, pages, scheme):
    problems = []
    for name, (page, _) in pages.items():
        numbers = embedded(page)
        for width in WIDTHS:
            where = f"{name} at {width} pixels, {scheme}"
            result = seen.get(f"{name} {width}")
            if not result:
                problems.append(f"{where}: nothing was seen")
                continue
            problems += [f"{where}: {problem}" for problem in result["problems"]]
            if result["dark"] != (scheme == "dark") or (result["paper"] < 0.1) != result["dark"]:
                problems.append(f"{where}: the colours are wrong")
            if result["texts"] < 20:
                problems.append(f"{where}: only {result['texts']} words were found")
            for key, value, text in result["numbers"]:
                if float(value) != float(numbers[key]):
                    problems.append(f"{where}: {key} is {numbers[key]}, shown is {value}")
                if abs(amount(text) - float(value)) > 0.06 * abs(float(value)) + 0.001:
                    problems.append(f"{where}: {key} is {value}, a person reads {text}")
    return problems


def main():
    chromium = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
    with tempfile.TemporaryDirectory(prefix="reprise-browser-") as name:
        folder = Path(name)
        pages = make_pages(sys.argv[1], folder)
        for page_name, (page, planned) in pages.items():
            compare_with_command(page_name, page, planned)
        problems = [problem for page_name, (page, _) in pages.items() for problem in check_policy(page_name, page)]
        if not chromium and not problems:
            print("SKIPPED report.browser: there is no Chromium (Debian: apt-get install chromium)")
            return SKIPPED
        for scheme in SCHEMES if chromium else []:
            problems += check(look(chromium, folder, pages, scheme), pages, scheme)
    for problem in problems:
        print(problem)
    print(f"{len(pages)} pages, {len(WIDTHS)} widths, {len(SCHEMES)} colour schemes: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())
