// The adjacency matrix, as given and cluster by cluster.
const labels = unpacked(data.labels);
const order = unpacked(data.order);
const shares = unpacked(data.share);
const degrees = unpacked(data.degree);
const strengths = unpacked(data.strength);
const edges = data.edges && {
  first: unpacked(data.edges.first), second: unpacked(data.edges.second), weights: unpacked(data.edges.weights),
};
const nodeCount = data.names.length;

function weightAt(lookup, i, j) {
  return lookup.get(Math.min(i, j) * nodeCount + Math.max(i, j));
}

function edgeLookup() {
  const lookup = new Map();
  edges.first.forEach((first, place) => lookup.set(first * nodeCount + edges.second[place], edges.weights ? edges.weights[place] : 1));
  return lookup;
}

function nodeAndCluster(node) {
  return [bdi(data.names[node]), ` in cluster ${labels[node]}`];
}

// Inside a dense picture a pointer rarely meets an edge to the pixel, so it snaps to one close by.
function snapped(lookup, at) {
  return ([column, row], box) => {
    const reach = Math.min(6, Math.ceil((2.5 * nodeCount) / box.width));
    if (box.width / nodeCount > 5) return [column, row];
    for (let ring = 0; ring <= reach; ring += 1) {
      for (let down = -ring; down <= ring; down += 1) {
        for (let right = -ring; right <= ring; right += 1) {
          if (Math.max(Math.abs(down), Math.abs(right)) !== ring) continue;
          const [c, r] = [column + right, row + down];
          if (c < 0 || r < 0 || c >= nodeCount || r >= nodeCount) continue;
          if (weightAt(lookup, at[r], at[c]) !== undefined) return [c, r];
        }
      }
    }
    return [column, row];
  };
}

function clusterLines(context, size) {
  context.fillStyle = resolved('--soft');
  for (let place = 1; place < nodeCount; place += 1) {
    if (labels[order[place]] === labels[order[place - 1]]) continue;
    const offset = Math.round((place / nodeCount) * size);
    context.globalAlpha = 0.35;
    context.fillRect(offset, 0, 1, size);
    context.fillRect(0, offset, size, 1);
  }
  context.globalAlpha = 1;
}

// The row and the column of the pinned node.
function pinnedLines(context, size, place, across) {
  if (state.node === null) return;
  const cell = size / across;
  const start = Math.floor((place[state.node] * across) / nodeCount) * cell;
  const width = Math.max(cell, 2 * (devicePixelRatio || 1));
  context.fillStyle = resolved('--accent');
  context.globalAlpha = 0.35;
  context.fillRect(start + (cell - width) / 2, 0, width, size);
  context.fillRect(0, start + (cell - width) / 2, size, width);
  context.globalAlpha = 1;
}

function drawEdges(context, size, place) {
  const cell = size / nodeCount;
  const side = Math.max(cell, 1.3 * (devicePixelRatio || 1) * Math.min(1, 0.45 + 40 / Math.sqrt(edges.first.length + 1)));
  const shift = (cell - side) / 2;
  const colours = Array.from({ length: PALETTE }, (_, c) => resolved(`--c${c}`));
  const between = resolved('--between');
  const heaviest = edges.weights ? edges.weights.reduce((most, weight) => Math.max(most, weight), 0) : 1;
  edges.first.forEach((first, index) => {
    const second = edges.second[index];
    const same = labels[first] === labels[second];
    const chosen = state.cluster === null || labels[first] === state.cluster || labels[second] === state.cluster;
    context.fillStyle = same ? colours[labels[first] % PALETTE] : between;
    const weight = edges.weights ? 0.3 + 0.7 * Math.sqrt(Math.max(edges.weights[index], 0) / (heaviest || 1)) : 1;
    context.globalAlpha = (chosen ? 1 : 0.12) * weight * (same ? 1 : 0.75);
    context.fillRect(place[second] * cell + shift, place[first] * cell + shift, side, side);
    if (first !== second) context.fillRect(place[first] * cell + shift, place[second] * cell + shift, side, side);
  });
  context.globalAlpha = 1;
}

function drawGrid(context, size, values) {
  const across = data.grid.size;
  const image = new ImageData(across, across);
  const ink = channels(resolved('--c0'));
  values.forEach((value, index) => image.data.set([...ink, value], 4 * index));
  const small = element('canvas', { width: across, height: across });
  small.getContext('2d').putImageData(image, 0, 0);
  context.imageSmoothingEnabled = size < across;
  context.drawImage(small, 0, 0, size, size);
}

function pairParts(lookup, i, j) {
  if (i === j) {
    const own = weightAt(lookup, i, i);
    return [...nodeAndCluster(i), `\n${own === undefined ? 'no self-loop' : 'self-loop'}`];
  }
  const weight = weightAt(lookup, i, j);
  const link = weight === undefined ? 'no edge' : `edge${edges.weights ? ` of weight ${amount(weight)}` : ''}`;
  return [...nodeAndCluster(i), '\n', ...nodeAndCluster(j), `\n${link}`];
}

function rangeParts(at, cell) {
  const across = data.grid.size;
  // A place p lies in cell floor(p * across / n), so a cell begins at the first p that reaches it.
  const begin = Math.ceil((cell * nodeCount) / across);
  const end = Math.max(begin, Math.ceil(((cell + 1) * nodeCount) / across) - 1);
  const parts = nodeAndCluster(at[begin]);
  return end > begin ? [...parts, ' to ', ...nodeAndCluster(at[end])] : parts;
}

function matrix(name, at, place, sorted) {
  const host = document.querySelector(`[data-plot="matrix-${name}"]`);
  if (!host || !nodeCount) return;
  const values = data.grid && bytes(data.grid[name]);
  const draw = (context, width) => {
    context.clearRect(0, 0, width, width);
    if (edges) drawEdges(context, width, place); else drawGrid(context, width, values);
    if (sorted) clusterLines(context, width);
    pinnedLines(context, width, place, edges ? nodeCount : data.grid.size);
  };
  if (!edges) {
    const across = data.grid.size;
    new Plot(host, across, across, draw, (column, row) => [...rangeParts(at, row), '\n', ...rangeParts(at, column)]);
    return;
  }
  const lookup = edgeLookup();
  new Plot(host, nodeCount, nodeCount, draw, (column, row) => pairParts(lookup, at[row], at[column]), snapped(lookup, at),
    (column, row) => at[row]);
}

if (order) {
  const natural = Uint32Array.from({ length: nodeCount }, (_, place) => place);
  const inverse = new Uint32Array(nodeCount);
  order.forEach((node, place) => { inverse[node] = place; });
  matrix('before', natural, natural, false);
  matrix('after', order, inverse, true);
}
