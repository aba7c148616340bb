// Every picture as a PNG or SVG file, in the colours and at the place that are shown.
const STYLES = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linejoin', 'opacity', 'transform',
  'font-size', 'font-family', 'font-weight', 'text-anchor', 'paint-order'];
const SVG = 'http://www.w3.org/2000/svg';

function sized(width, height, content) {
  const ground = `<rect x="-100000" y="-100000" width="200000" height="200000" fill="${resolved('--card')}"/>`;
  return `<svg xmlns="${SVG}" xmlns:xlink="http://www.w3.org/1999/xlink" width="${width}" height="${height}" ${content.box}>${ground}${content.body}</svg>`;
}

// The drawing with its styles written into it, since a file has no style sheet.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const originals = svg.querySelectorAll('*');
  copy.querySelectorAll('*').forEach((part, index) => {
    const style = getComputedStyle(originals[index]);
    part.setAttribute('style', STYLES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(';'));
    part.removeAttribute('class');
  });
  const size = svg.getBoundingClientRect();
  const box = `viewBox="${svg.getAttribute('viewBox')}"`;
  const body = Array.from(copy.childNodes, (part) => new XMLSerializer().serializeToString(part)).join('');
  return { width: size.width, height: size.height, text: sized(size.width, size.height, { box, body }) };
}

function painted(canvas) {
  const whole = element('canvas', { width: canvas.width, height: canvas.height });
  const context = whole.getContext('2d');
  context.fillStyle = resolved('--card');
  context.fillRect(0, 0, whole.width, whole.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0);
  return whole;
}

function asSvg(picture) {
  if (picture.localName === 'svg') return standalone(picture).text;
  const { width, height } = picture;
  const body = `<image width="${width}" height="${height}" style="image-rendering:pixelated" href="${painted(picture).toDataURL()}"/>`;
  return sized(width, height, { box: `viewBox="0 0 ${width} ${height}"`, body });
}

async function asPng(picture) {
  if (picture.localName !== 'svg') return new Promise((resolve) => painted(picture).toBlob(resolve));
  const { width, height, text } = standalone(picture);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = element('canvas', { width: 2 * width, height: 2 * height });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

function saveButtons(picture, name) {
  const png = element('button', { type: 'button', 'data-save': 'png' }, 'PNG');
  const svg = element('button', { type: 'button', 'data-save': 'svg' }, 'SVG');
  png.addEventListener('click', async () => save(`${name}.png`, await asPng(picture)));
  svg.addEventListener('click', () => save(`${name}.svg`, new Blob([asSvg(picture)], { type: 'image/svg+xml' })));
  return element('p', { class: 'save', 'aria-label': `Save the picture ${name}` }, 'Save as ', png, svg);
}

document.querySelectorAll('svg.graph, svg.chart, .plot canvas').forEach((picture) => {
  const host = picture.closest('figure') ?? picture.parentElement;
  const name = picture.closest('[data-plot]')?.dataset.plot ?? picture.closest('section').id;
  host.append(saveButtons(picture, name));
});
