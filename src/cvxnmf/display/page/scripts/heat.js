// Heat maps: memberships of nodes, or entries of factors; items across, clusters or components down.
function rowHeight(rows) {
  return Math.max(3, Math.min(28, 520 / rows));
}

function drawHeat(map, values) {
  return (context, width, height) => {
    const tones = Array.from({ length: PALETTE }, (_, c) => channels(resolved(`--c${c}`)));
    const strip = element('canvas', { width: map.bins, height: 1 }); // one row at a time, or smoothing would mix neighbours
    context.clearRect(0, 0, width, height);
    context.imageSmoothingEnabled = width < map.bins;
    const each = height / map.rows;
    const gap = each > 8 ? 2 : 0;
    for (let row = 0; row < map.rows; row += 1) {
      const tone = tones[row % PALETTE];
      const faint = state.cluster !== null && state.cluster !== row ? 0.2 : 1;
      const image = new ImageData(map.bins, 1);
      for (let bin = 0; bin < map.bins; bin += 1) {
        const share = values[row * map.bins + bin] / 255;
        image.data.set([...tone, Math.round(faint * (8 + share * 247))], 4 * bin);
      }
      strip.getContext('2d').putImageData(image, 0, 0);
      context.drawImage(strip, 0, 0, map.bins, 1, 0, row * each, width, each - gap);
    }
    if (order && state.node !== null) {
      const bin = Math.floor((order.indexOf(state.node) * map.bins) / map.items);
      context.fillStyle = resolved('--accent');
      context.fillRect(((bin + 0.5) / map.bins) * width - 1, 0, 2 * (devicePixelRatio || 1), height);
    }
  };
}

function shareParts(map, values, bin) {
  const begin = Math.floor((bin * map.items) / map.bins);
  const end = Math.floor(((bin + 1) * map.items) / map.bins) - 1;
  const listed = Array.from({ length: map.rows }, (_, row) => [values[row * map.bins + bin] / 255, row])
    .sort((one, other) => other[0] - one[0] || one[1] - other[1])
    .filter(([share], rank) => rank === 0 || share > 0.004).slice(0, 4)
    .map(([share, row]) => `\ncluster ${row}: ${percent(share)}`);
  const who = end > begin ? [`${end - begin + 1} nodes from `, ...nodeAndCluster(order[begin])] : nodeAndCluster(order[begin]);
  return [...who, ...listed];
}

// The item of a factor at a place: of several that share a column, the one with the largest entry.
function entryParts(map, index, bin, row) {
  const begin = Math.floor((bin * map.items) / map.bins);
  const end = Math.floor(((bin + 1) * map.items) / map.bins) - 1;
  const sorted = factorOrders[index];
  const factor = factors[index];
  let item = sorted[begin];
  for (let at = begin; factor && at <= end; at += 1) {
    if (factor[sorted[at] * map.rows + row] > factor[item * map.rows + row]) item = sorted[at];
  }
  const names = data.itemNames[index];
  const others = end > begin ? ` and ${end - begin} more` : '';
  const value = factor ? `: ${amount(factor[item * map.rows + row])}` : '';
  return [bdi(names ? names[item] : `item ${item}`), `${others}\ncomponent ${row}${value}`];
}

const factors = (data.factors ?? []).map(unpacked);
const factorOrders = (data.orders ?? []).map(unpacked);
(data.heat ?? []).forEach((map, index) => {
  const host = document.querySelector(`[data-plot="heat-${index}"]`);
  if (!host || !map.bins || !map.rows) return;
  const values = bytes(map.data);
  host.style.height = `${rowHeight(map.rows) * map.rows}px`;
  const names = host.parentElement.querySelector('.rows');
  names.style.height = host.style.height; // the names must not stretch the picture
  const every = Math.ceil(15 / rowHeight(map.rows));
  [...names.children].forEach((name, row) => name.classList.toggle('left-out', row % every > 0));
  const describe = order ? (bin) => shareParts(map, values, bin) : (bin, row) => entryParts(map, index, bin, row);
  const pinned = order && map.bins === map.items ? (bin) => order[bin] : null;
  new Plot(host, map.bins, map.rows, drawHeat(map, values), describe, (cell) => cell, pinned);
});

// Components as images, the largest entry darkest on light ground and lightest on dark.
function paintImages() {
  const { height, width } = data.images;
  const values = bytes(data.images.data);
  const ink = channels(resolved('--ink'));
  for (const canvas of document.querySelectorAll('[data-image]')) {
    Object.assign(canvas, { width, height });
    const image = new ImageData(width, height);
    const start = Number(canvas.dataset.image) * width * height;
    for (let pixel = 0; pixel < width * height; pixel += 1) image.data.set([...ink, values[start + pixel]], 4 * pixel);
    canvas.getContext('2d').putImageData(image, 0, 0);
  }
}

if (data.images) {
  paintImages();
  redraws.push(paintImages);
}
