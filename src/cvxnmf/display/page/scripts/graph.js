// The drawing: the node under the pointer, its neighbours, and the chosen cluster.
const drawing = document.querySelector('[data-plot="graph"]');

function nodeParts(node) {
  const strength = strengths ? `, strength ${amount(strengths[node])}` : '';
  const share = percent(shares[node] / 10000);
  return [...nodeAndCluster(node), `\nshare ${share}, degree ${degrees[node]}${strength}`];
}

if (drawing && nodeCount) {
  const marks = [...drawing.querySelectorAll('.node')];
  const near = drawing.querySelector('.near');
  const readout = drawing.closest('figure').querySelector('.readout');
  const place = marks.map((mark) => mark.getAttribute('transform').match(/-?[\d.]+/g).join(' '));
  let cursor = -1;

  const leave = () => {
    hideTip();
    near.setAttribute('d', '');
    for (const mark of marks) mark.classList.remove('here');
  };
  const show = (node, x, y) => {
    leave();
    marks[node].classList.add('here');
    let path = '';
    edges.first.forEach((first, index) => {
      const second = edges.second[index];
      if (first === node || second === node) path += `M${place[first]}L${place[second]}`;
    });
    near.setAttribute('d', path);
    const parts = nodeParts(node);
    readout.textContent = parts.map((part) => part.textContent ?? part).join('').replaceAll('\n', ' · ');
    showTip(x, y, parts);
  };
  const walk = (step) => {
    cursor = (cursor + step + nodeCount) % nodeCount;
    const node = order[cursor];
    const box = marks[node].getBoundingClientRect();
    show(node, box.left + box.width / 2, box.top + box.height / 2);
  };

  // The nearest mark within a finger's width counts, since marks are small on a phone.
  const under = (event) => {
    let [best, least] = [-1, 22];
    marks.forEach((mark, node) => {
      const box = mark.firstElementChild.getBoundingClientRect();
      const away = Math.hypot(event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2);
      if (away < least) [best, least] = [node, away];
    });
    if (best >= 0) show(best, event.clientX, event.clientY); else leave();
  };
  drawing.addEventListener('pointermove', under);
  drawing.addEventListener('pointerdown', under);
  drawing.addEventListener('pointerleave', leave);
  drawing.addEventListener('blur', leave);
  drawing.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    if (cursor < 0 && step < 0) cursor = 0;
    walk(step);
  });
}

for (const mark of document.querySelectorAll('.graph .node, .graph .edges')) {
  onChoice(() => mark.classList.toggle('faint', state.cluster !== null && Number(mark.dataset.cluster) !== state.cluster));
}
