// The drawing: zoom and move, names where they fit, the node under the pointer, and the pinned one.
const drawing = document.querySelector('[data-plot="graph"]');
const LETTER = 0.56; // the width of a letter in units of its height, about
const LONGEST = 22;
const HUBS = 8;

function nodeParts(node) {
  const strength = strengths ? `, strength ${amount(strengths[node])}` : '';
  const share = percent(shares[node] / 10000);
  return [...nodeAndCluster(node), `\nshare ${share}, degree ${degrees[node]}${strength}`];
}

class Drawing {
  constructor(host) {
    this.host = host;
    this.svg = host.querySelector('svg');
    this.marks = [...host.querySelectorAll('.node')];
    this.near = host.querySelector('.near');
    this.names = host.querySelector('.names');
    this.readout = host.closest('figure').querySelector('.readout');
    this.places = this.marks.map((mark) => mark.getAttribute('transform').match(/-?[\d.]+/g).map(Number));
    this.radii = this.marks.map((mark) => mark.firstElementChild.getBBox().height / 2);
    this.whole = this.svg.getAttribute('viewBox').split(' ').map(Number);
    this.byDegree = Array.from(order).sort((one, other) => degrees[other] - degrees[one] || one - other);
    Object.assign(this, { view: [...this.whole], cursor: -1, here: null, drag: null });
    this.listen();
    new ResizeObserver(() => this.writeNames()).observe(this.svg);
    onPin(() => { this.mark(state.node); this.writeNames(); });
  }

  listen() {
    const { host } = this;
    host.addEventListener('pointermove', (event) => this.move(event));
    host.addEventListener('pointerdown', (event) => this.press(event));
    host.addEventListener('pointerup', (event) => this.release(event));
    host.addEventListener('pointerleave', () => { if (!this.drag) this.leave(); });
    host.addEventListener('blur', () => this.leave());
    host.addEventListener('keydown', (event) => this.key(event));
    host.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && document.activeElement !== host) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, this.point(event));
    }, { passive: false });
    for (const button of host.closest('figure').querySelectorAll('[data-zoom]')) {
      const factors = { in: 1.5, out: 1 / 1.5, whole: 0 };
      button.addEventListener('click', () => this.zoom(factors[button.dataset.zoom]));
    }
  }

  // The pointer's place in the units of the drawing.
  point(event) {
    const inverse = this.svg.getScreenCTM().inverse();
    return [event.clientX * inverse.a + inverse.e, event.clientY * inverse.d + inverse.f];
  }

  get scale() { return this.whole[2] / this.view[2]; }

  // Zoom around a point by a factor; 0 shows all.
  zoom(factor, [x, y] = [this.view[0] + this.view[2] / 2, this.view[1] + this.view[3] / 2]) {
    const wanted = factor ? Math.min(Math.max(this.scale * factor, 1), 40) : 1;
    const by = this.scale / wanted;
    const [left, top, width, height] = this.view;
    this.look([x - (x - left) * by, y - (y - top) * by, width * by, height * by]);
  }

  // Show a part of the drawing, never beyond its edges.
  look([left, top, width, height]) {
    const [x, y, all, tall] = this.whole;
    this.view = [Math.min(Math.max(left, x), x + all - width), Math.min(Math.max(top, y), y + tall - height), width, height];
    this.svg.setAttribute('viewBox', this.view.map((number) => number.toFixed(2)).join(' '));
    this.svg.style.setProperty('--k', (this.scale ** -0.65).toFixed(4)); // marks and lines grow more slowly than distances
    this.host.classList.toggle('zoomed', this.scale > 1);
    this.writeNames();
  }

  nearest(event) {
    const [x, y] = this.point(event);
    const reach = 22 / this.svg.getScreenCTM().a; // a finger's width, since marks are small on a phone
    let [best, least] = [null, reach];
    this.places.forEach((place, node) => {
      const away = Math.hypot(x - place[0], y - place[1]);
      if (away < least) [best, least] = [node, away];
    });
    return best;
  }

  press(event) {
    this.drag = { from: [event.clientX, event.clientY], view: [...this.view], moved: false };
    this.move(event);
  }

  move(event) {
    if (this.drag) {
      const away = [event.clientX - this.drag.from[0], event.clientY - this.drag.from[1]];
      this.drag.moved = this.drag.moved || Math.hypot(...away) > 5;
      if (this.drag.moved && this.scale > 1) {
        const unit = this.svg.getScreenCTM().a;
        const [left, top, width, height] = this.drag.view;
        this.look([left - away[0] / unit, top - away[1] / unit, width, height]);
        hideTip();
        return;
      }
    }
    const node = this.nearest(event);
    if (node === null) this.leave(); else this.show(node, event.clientX, event.clientY);
  }

  release(event) {
    const clicked = this.drag && !this.drag.moved;
    this.drag = null;
    if (clicked) pin(this.nearest(event));
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const zoom = { '+': 1.3, '=': 1.3, '-': 1 / 1.3, 0: 0 }[event.key];
    if (step && event.shiftKey) this.pan(event.key);
    else if (step) this.walk(step);
    else if (zoom !== undefined) this.zoom(zoom);
    else if (event.key === 'Enter' && this.cursor >= 0) pin(order[this.cursor]);
    else return;
    event.preventDefault();
  }

  pan(key) {
    const [right, down] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
    const [left, top, width, height] = this.view;
    this.look([left + (right * width) / 8, top + (down * height) / 8, width, height]);
  }

  walk(step) {
    if (this.cursor < 0 && step < 0) this.cursor = 0;
    this.cursor = (this.cursor + step + nodeCount) % nodeCount;
    const node = order[this.cursor];
    const [x, y] = this.places[node];
    const [left, top, width, height] = this.view;
    if (x < left || y < top || x > left + width || y > top + height) this.look([x - width / 2, y - height / 2, width, height]);
    const box = this.marks[node].getBoundingClientRect();
    this.show(node, box.left + box.width / 2, box.top + box.height / 2);
  }

  // Outline a node and the edges to its neighbours.
  mark(node) {
    if (this.here !== null) this.marks[this.here].classList.remove('here');
    this.here = node;
    let path = '';
    if (node !== null) {
      this.marks[node].classList.add('here');
      edges.first.forEach((first, index) => {
        const second = edges.second[index];
        if (first === node || second === node) path += `M${this.places[first].join(' ')}L${this.places[second].join(' ')}`;
      });
    }
    this.near.setAttribute('d', path);
  }

  show(node, x, y) {
    if (this.here !== node) this.mark(node);
    const parts = nodeParts(node);
    this.readout.textContent = parts.map((part) => part.textContent ?? part).join('').replaceAll('\n', ' · ');
    showTip(x, y, parts);
  }

  leave() {
    hideTip();
    if (this.here !== state.node) this.mark(state.node);
  }

  // Names below the marks, those of the pinned node and of large degrees first, wherever they cover no other name.
  writeNames() {
    const unit = 1 / (this.svg.getScreenCTM()?.a || 1);
    const size = 12 * unit;
    const taken = [];
    const texts = [];
    const grown = 0.8 * this.scale ** -0.65;
    const spots = this.places.map(([x, y], node) => [x - grown * this.radii[node], y - grown * this.radii[node], x + grown * this.radii[node], y + grown * this.radii[node]]);
    const [left, top, width, height] = this.view;
    const first = state.node === null ? [] : [state.node];
    for (const node of [...first, ...this.byDegree]) {
      if (texts.length >= 160) break;
      const [x, y] = this.places[node];
      const name = data.names[node].trim();
      if (!name || this.marks[node].querySelector('.in') || x < left || y < top || x > left + width || y > top + height) continue;
      if (state.cluster !== null && labels[node] !== state.cluster && node !== state.node) continue;
      const shown = name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
      const half = (shown.length * LETTER * size) / 2;
      const line = y + this.radii[node] * this.scale ** -0.65 + size;
      const box = [x - half, line - size, x + half, line + 0.3 * size];
      if (box[0] < left || box[2] > left + width || box[3] > top + height) continue;
      const covers = (other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3];
      // The names of the largest degrees may stand on marks, since those lie where the crowd is.
      const alone = taken.length < HUBS || !spots.some((other, at) => at !== node && covers(other));
      if (node !== state.node && (taken.some(covers) || !alone)) continue;
      taken.push(box);
      const text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
      text.setAttribute('x', x.toFixed(1));
      text.setAttribute('y', line.toFixed(1));
      text.setAttribute('font-size', size.toFixed(2));
      text.textContent = shown;
      texts.push(text);
    }
    this.names.replaceChildren(...texts);
  }
}

const graphDrawing = drawing && nodeCount ? new Drawing(drawing) : null;

for (const mark of document.querySelectorAll('.graph .node, .graph .edges')) {
  onChoice(() => mark.classList.toggle('faint', state.cluster !== null && Number(mark.dataset.cluster) !== state.cluster));
}
if (graphDrawing) onChoice(() => graphDrawing.writeNames());
