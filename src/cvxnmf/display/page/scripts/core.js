// Data, elements and colours that every part of the page uses.
const data = JSON.parse(document.getElementById('data').textContent);
const state = { cluster: null, node: null, listeners: [], pinListeners: [] };
const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };
const PALETTE = 12;

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function unpacked(packed) {
  return packed ? new ARRAYS[packed.type](bytes(packed.data).buffer) : null;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Canvas needs colours resolved for the theme in force, which only a styled element can tell.
const probe = element('span', { hidden: '' });
document.body.append(probe);

function resolved(variable) {
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}

function channels(colour) {
  return colour.match(/[\d.]+/g).slice(0, 3).map(Number);
}

function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 1) return 'below 1%';
  return `${value > 99 && value < 100 ? 99 : Math.round(value)}%`;
}

function amount(value) {
  return Number(value.toPrecision(6)).toLocaleString('en');
}

function quoted(name) {
  return name.trim() === '' ? '(no name)' : name;
}

// A name in text of mixed direction, isolated so that it cannot turn its surroundings around.
function bdi(name) {
  return element('bdi', {}, quoted(name));
}

function choose(cluster) {
  state.cluster = cluster;
  for (const listener of state.listeners) listener();
}

function onChoice(listener) {
  state.listeners.push(listener);
}

// Pin a node in every picture and the table; the same node again, or none, takes the pin out.
function pin(node) {
  state.node = node === state.node ? null : node;
  for (const listener of state.pinListeners) listener();
}

function onPin(listener) {
  state.pinListeners.push(listener);
}

const tip = document.getElementById('tip');

function showTip(x, y, parts) {
  tip.replaceChildren(...parts);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth - 8 ? x - 16 - box.width : x + 16;
  const top = y + 16 + box.height > innerHeight - 8 ? y - 16 - box.height : y + 16;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - box.width - 8))}px`;
  tip.style.top = `${Math.max(8, top)}px`;
}

function hideTip() {
  tip.hidden = true;
}

addEventListener('keydown', (event) => { if (event.key !== 'Escape') return; if (tip.hidden && state.node !== null) pin(null); hideTip(); });
addEventListener('scroll', hideTip, { passive: true });

for (const chip of document.querySelectorAll('.chip')) {
  const cluster = Number(chip.dataset.cluster);
  chip.addEventListener('click', () => choose(state.cluster === cluster ? null : cluster));
  onChoice(() => chip.setAttribute('aria-pressed', String(state.cluster === cluster)));
}
