// How the page looks: calm, the same words everywhere, colours that people with any kind of sight can tell apart (after
// Okabe and Ito), readable from 320 pixels on, in the dark and on paper.
#include "report/page_parts.h"

namespace reprise::internal {

std::string_view page_style() {
  return R"css(
:root {
  --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --rule: #d8dee4; --card: #f6f8fa; --accent: #0a63b5;
  --parameters: #6e7781; --gradients: #b0558d; --kept: #0072b2; --packed: #e69f00; --replayed: #009e73; --other: #b4bdc7; --outside: #8a6d3b;
  --budget: #b3261e;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --rule: #30363d; --card: #161b22; --accent: #62b0ff;
    --parameters: #7d8590; --gradients: #cc79a7; --kept: #3d9bd9; --packed: #e69f00; --replayed: #1fb98a; --other: #5b6672; --outside: #b8975a;
    --budget: #ff8a80;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2rem 1rem 3rem; max-width: 66rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere;
}
h1 { margin: 0; font-size: clamp(1.5rem, 4.5vw, 2.1rem); line-height: 1.2; letter-spacing: -0.01em; }
h2 { margin: 3rem 0 0.75rem; font-size: 1.3rem; line-height: 1.3; }
h3 { margin: 2.25rem 0 0.5rem; font-size: 1.05rem; }
p { margin: 0.5rem 0; max-width: 44rem; }
ul { margin: 0.5rem 0; padding-left: 1.25rem; }
small { font-size: 0.8125rem; color: var(--soft); font-weight: 400; }
.soft { color: var(--soft); font-size: 0.875rem; }
.over { margin: 0 0 0.25rem; color: var(--accent); font-size: 0.8125rem; font-weight: 600; letter-spacing: 0.08em; text-transform: uppercase; }
.verdict { margin: 1.75rem 0 1.25rem; font-size: clamp(1.15rem, 2.8vw, 1.4rem); line-height: 1.4; }

.tiles { display: grid; grid-template-columns: repeat(6, 1fr); gap: 0.625rem; margin: 0; }
.tile { padding: 0.75rem 0.875rem; border: 1px solid var(--rule); border-radius: 0.625rem; background: var(--card); }
.tile dt { color: var(--soft); font-size: 0.8125rem; }
.tile dd { margin: 0; font-size: 1.2rem; font-weight: 600; line-height: 1.35; }
.tile data { white-space: nowrap; }
.tile small { display: block; line-height: 1.3; }

.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding: 0; list-style: none; font-size: 0.875rem; }
figure { margin: 1rem 0 0.75rem; }
figcaption { margin-bottom: 0.5rem; }
.plot { position: relative; margin: 0 0.5rem 1.75rem 4.25rem; height: clamp(10rem, 30vw, 15rem); font-size: 0.75rem; color: var(--soft); }
.frame { position: absolute; inset: 0; border-bottom: 1px solid var(--soft); cursor: crosshair; }
.frame:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; }
.frame svg { display: block; width: 100%; height: 100%; }
.frame .grid { stroke: var(--rule); stroke-width: 1; vector-effect: non-scaling-stroke; }
.frame .budget { fill: none; stroke: var(--budget); stroke-width: 2; stroke-dasharray: 6 4; vector-effect: non-scaling-stroke; }
.frame .backward { fill: none; stroke: var(--soft); stroke-width: 1; stroke-dasharray: 2 3; vector-effect: non-scaling-stroke; }
.limit { position: absolute; right: 0.25rem; margin-bottom: 0.25rem; padding: 0 0.3rem; line-height: 1.3; border-radius: 0.25rem; background: var(--paper); color: var(--budget); font-weight: 600; pointer-events: none; }
.cursor { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--ink); pointer-events: none; }
.y, .x { position: absolute; line-height: 1; white-space: nowrap; }
.y { right: calc(100% + 0.5rem); transform: translateY(50%); }
.x { top: calc(100% + 0.5rem); transform: translateX(-50%); }
.lane { position: relative; margin: 0 0.5rem 1rem 4.25rem; height: 4rem; border-bottom: 1px solid var(--soft); }
.lane svg { display: block; width: 100%; height: 100%; }
.readout { min-height: 2.9em; margin: 0 0 0 4.25rem; max-width: none; color: var(--soft); font-size: 0.8125rem; line-height: 1.45; }
path.parameters { fill: var(--parameters); } path.gradients { fill: var(--gradients); } path.kept { fill: var(--kept); }
path.outside { fill: var(--outside); } path.packed { fill: var(--packed); } path.replayed { fill: var(--replayed); } path.other { fill: var(--other); }
.swatch { display: inline-block; width: 0.75em; height: 0.75em; margin-right: 0.5em; border-radius: 0.2em; }
.swatch.parameters { background: var(--parameters); } .swatch.gradients { background: var(--gradients); }
.swatch.kept { background: var(--kept); } .swatch.packed { background: var(--packed); }
.swatch.outside { background: var(--outside); } .swatch.replayed { background: var(--replayed); } .swatch.other { background: var(--other); }

table { width: 100%; border-collapse: collapse; font-size: 0.875rem; line-height: 1.4; }
caption { padding: 0.25rem 0; text-align: left; font-weight: 600; }
th, td { padding: 0.45rem 0.5rem; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top; }
th:first-child, td:first-child { padding-left: 0; }
th { font-weight: 400; }
thead th { color: var(--soft); font-size: 0.8125rem; white-space: nowrap; }
tfoot th, tfoot td { font-weight: 600; border-bottom: 0; }
.key { max-width: 32rem; margin: 1.25rem 0 0; }
.key td, .key thead th + th, .numbers td, .numbers thead th + th { text-align: right; }
.key td, .numbers td, .numbers th { white-space: nowrap; }
.marked { background: var(--card); font-weight: 600; }
.marked th { font-weight: 600; }
.values .module { display: block; }
.values td { white-space: nowrap; }
.values .why { white-space: normal; min-width: 14rem; }
.values tbody th { min-width: 13rem; }
.share { min-width: 6rem; }
.bar { display: block; height: 4px; margin-top: 3px; border-radius: 2px; background: var(--accent); }
.reprise { display: block; width: 100%; height: auto; }
.beside { display: grid; grid-template-columns: minmax(0, 1.35fr) minmax(0, 1fr); gap: 1.5rem 2.5rem; align-items: start; margin-top: 1rem; }
.narrow { display: none; }
footer { margin-top: 3rem; border-top: 1px solid var(--rule); font-size: 0.875rem; }
footer h2 { margin-top: 1.5rem; font-size: 1rem; }
.words dt { font-weight: 600; }
.words dd { margin: 0 0 0.6rem; max-width: 48rem; color: var(--soft); }

@media screen and (max-width: 60rem) {
  .tiles { grid-template-columns: repeat(3, 1fr); }
  .values thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .values, .values tbody { display: block; }
  .values tr { display: grid; grid-template-columns: repeat(3, 1fr); gap: 0.3rem 1rem; padding: 0.75rem 0; border-bottom: 1px solid var(--rule); }
  .values th, .values td { display: block; padding: 0; border: 0; white-space: normal; min-width: 0; }
  .values tbody th, .values .why { grid-column: 1 / -1; }
  .values tbody th { font-weight: 600; }
  .values td::before { content: attr(data-label); display: block; color: var(--soft); font-size: 0.75rem; }
  .values .why::before { content: none; }
  .beside { grid-template-columns: minmax(0, 40rem); }
}
@media screen and (max-width: 32rem) {
  .tiles, .values tr { grid-template-columns: repeat(2, 1fr); }
  .wide { display: none; }
  .narrow { display: block; }
  th, td { padding-left: 0.25rem; padding-right: 0.25rem; }
  th:last-child, td:last-child { padding-right: 0; }
  .numbers { font-size: 0.8125rem; }
  .numbers thead th { font-size: 0.75rem; }
  .numbers small { display: none; }
  .plot, .readout { margin-left: 3.9rem; }
}
@media print {
  @page { margin: 14mm; }
  html { font-size: 8.5pt; }
  body { max-width: none; padding: 0; }
  h2 { margin-top: 2rem; }
  figure, tr, .tile, .key, .beside, .words dd { break-inside: avoid; }
  h2, h3, thead, .words dt { break-after: avoid; }
  .values .why { min-width: 0; }
  .values tbody th { min-width: 12rem; }
  path, .swatch, .bar, .tile { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
)css";
}

std::string_view page_script() {
  return R"js(
'use strict';
(() => {
  const numbers = JSON.parse(document.getElementById('reprise-numbers').textContent);
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  const amount = (bytes) => {
    let unit = 0;
    for (; bytes >= 1024 && unit < 6; ++unit) bytes /= 1024;
    return (unit === 0 ? bytes : bytes.toFixed(2)) + ' ' + units[unit];
  };
  const longest = Math.max(1, numbers.before.cost_ratio, numbers.after ? numbers.after.cost_ratio : 1);

  for (const figure of document.querySelectorAll('figure.memory')) {
    const side = numbers[figure.dataset.side];
    const count = side.columns.length;
    if (count === 0) continue;
    const frame = figure.querySelector('.frame');
    const cursor = figure.querySelector('.cursor');
    const readout = figure.querySelector('.readout');
    const peak = readout.textContent;
    let at = -1;

    const show = (column) => {
      at = Math.max(0, Math.min(count - 1, column));
      const share = side.cost_ratio * (at + 0.5) / count;
      const layers = side.columns[at];
      const parts = [];
      for (let i = layers.length - 1; i >= 0; --i) {
        if (layers[i] > 0) parts.push(numbers.layers[i] + ' ' + amount(layers[i]));
      }
      const total = layers.reduce((sum, bytes) => sum + bytes, 0);
      const doing = side.labels[at] ? ', ' + side.labels[at] : '';
      readout.textContent = amount(total) + ' live at ' + (100 * share).toFixed(1) + ' %' + doing + ': ' + parts.join(', ') + '.';
      cursor.style.left = 100 * share / longest + '%';
      cursor.hidden = false;
    };
    const hide = () => {
      at = -1;
      cursor.hidden = true;
      readout.textContent = peak;
    };
    frame.addEventListener('pointermove', (event) => {
      const box = frame.getBoundingClientRect();
      show(Math.floor((event.clientX - box.left) / box.width * longest / side.cost_ratio * count));
    });
    frame.addEventListener('pointerleave', hide);
    frame.addEventListener('blur', hide);
    frame.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      show(at < 0 ? 0 : at + step);
    });
  }
})();
)js";
}

}  // namespace reprise::internal
