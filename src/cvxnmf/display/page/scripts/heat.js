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
      const tone = order ? tones[row % PALETTE] : tones[0];
      const faint = order && state.cluster !== null && state.cluster !== row ? 0.2 : 1;
      const image = new ImageData(map.bins, 1);
      for (let bin = 0; bin < map.bins; bin += 1) {
        const share = values[row * map.bins + bin] / 255;
        image.data.set([...tone, Math.round(faint * (8 + share * 247))], 4 * bin);
      }
      strip.getContext('2d').putImageData(image, 0, 0);
      context.drawImage(strip, 0, 0, map.bins, 1, 0, row * each, width, each - gap);
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

function entryParts(map, factor, bin, row) {
  const begin = Math.floor((bin * map.items) / map.bins);
  const end = Math.floor(((bin + 1) * map.items) / map.bins) - 1;
  const who = end > begin ? `items ${begin} to ${end}` : `item ${begin}`;
  if (!factor) return [`${who}, component ${row}`];
  let largest = 0;
  for (let item = begin; item <= end; item += 1) largest = Math.max(largest, factor[item * map.rows + row]);
  return [`${who}, component ${row}: ${amount(largest)}`];
}

const factors = (data.factors ?? []).map(unpacked);
(data.heat ?? []).forEach((map, index) => {
  const host = document.querySelector(`[data-plot="heat-${index}"]`);
  if (!host || !map.bins || !map.rows) return;
  const values = bytes(map.data);
  host.style.height = `${rowHeight(map.rows) * map.rows}px`;
  const names = host.parentElement.querySelector('.rows');
  names.style.height = host.style.height; // the names must not stretch the picture
  const every = Math.ceil(15 / rowHeight(map.rows));
  [...names.children].forEach((name, row) => name.classList.toggle('left-out', row % every > 0));
  const describe = order ? (bin) => shareParts(map, values, bin) : (bin, row) => entryParts(map, factors[index], bin, row);
  new Plot(host, map.bins, map.rows, drawHeat(map, values), describe);
});
