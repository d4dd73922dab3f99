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
