// A canvas of cells with a cursor, moved by pointer or arrow keys, that says what lies under it.
class Plot {
  // columns and rows are the numbers of cells; draw(context, width, height) paints;
  // describe(column, row) returns the parts of a tooltip.
  // pinned(column, row) says which node a click pins, if any.
  constructor(host, columns, rows, draw, describe, adjust = (cell) => cell, pinned = null) {
    Object.assign(this, { host, columns, rows, draw, describe, adjust, pinned, cell: [0, 0] });
    this.canvas = host.querySelector('canvas');
    this.readout = host.closest('figure').querySelector('.readout');
    this.lines = [element('div', { class: 'cross', hidden: '' }), element('div', { class: 'cross', hidden: '' })];
    host.append(...this.lines);
    host.addEventListener('pointermove', (event) => this.point(event));
    host.addEventListener('pointerdown', (event) => this.point(event));
    host.addEventListener('click', (event) => { this.point(event); this.pinCell(); });
    host.addEventListener('pointerleave', () => this.leave());
    host.addEventListener('blur', () => this.leave());
    host.addEventListener('focus', () => { if (host.matches(':focus-visible')) this.show(this.cell); });
    host.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.paint()).observe(host);
    redraws.push(() => this.paint());
    onChoice(() => this.paint());
    onPin(() => this.paint());
  }

  paint() {
    const box = this.host.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.host.clientWidth * scale);
    this.canvas.height = Math.round(this.host.clientHeight * scale);
    this.draw(this.canvas.getContext('2d'), this.canvas.width, this.canvas.height);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * this.columns);
    const row = Math.floor(((event.clientY - box.top) / box.height) * this.rows);
    if (column < 0 || row < 0 || column >= this.columns || row >= this.rows) { this.leave(); return; }
    this.show(this.adjust([column, row], box), [event.clientX, event.clientY]);
  }

  pinCell() {
    const node = this.pinned?.(...this.cell);
    if (node !== null && node !== undefined) pin(node);
  }

  key(event) {
    if (event.key === 'Enter') this.pinCell();
    const far = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, -far], ArrowDown: [0, far] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const column = Math.min(Math.max(this.cell[0] + move[0], 0), this.columns - 1);
    const row = Math.min(Math.max(this.cell[1] + move[1], 0), this.rows - 1);
    this.show([column, row]);
  }

  show(cell, at = null) {
    this.cell = cell;
    const box = this.canvas.getBoundingClientRect();
    const x = ((cell[0] + 0.5) / this.columns) * box.width;
    const y = ((cell[1] + 0.5) / this.rows) * box.height;
    this.lines[0].style.cssText = `left:${x}px;top:0;width:1px;height:${box.height}px`;
    this.lines[1].style.cssText = `left:0;top:${y}px;height:1px;width:${box.width}px`;
    for (const line of this.lines) line.hidden = false;
    const [left, top] = at ?? [box.left + x, box.top + y];
    const parts = this.describe(...cell);
    this.readout.textContent = parts.map((part) => part.textContent ?? part).join('').replaceAll('\n', ' · ');
    showTip(left, top, parts);
  }

  leave() {
    hideTip();
    for (const line of this.lines) line.hidden = true;
  }
}
