// The table of nodes: searched, sorted, and shown a piece at a time so that ten thousand rows stay quick.
const nodesTable = document.querySelector('table.nodes');

if (nodesTable) {
  const FIRST = 25;
  const MORE = 200;
  const collator = new Intl.Collator('en', { numeric: true });
  const search = document.getElementById('search');
  const shownNote = document.getElementById('shown');
  const more = document.getElementById('more');
  const body = nodesTable.tBodies[0];
  const lowered = data.names.map((name) => name.toLowerCase());
  const keys = {
    name: (one, other) => collator.compare(data.names[one], data.names[other]),
    cluster: (one, other) => labels[one] - labels[other],
    share: (one, other) => shares[one] - shares[other],
    degree: (one, other) => degrees[one] - degrees[other],
    strength: (one, other) => strengths[one] - strengths[other],
  };
  let sorting = null;
  let rows = [];
  let visible = FIRST;

  const clusterMark = (cluster) => {
    const made = document.querySelector(`.chip[data-cluster="${cluster}"] .mark`);
    return made ? made.cloneNode(true) : '';
  };
  const bar = (node) => {
    const filled = element('i');
    filled.style.width = `${shares[node] / 100}%`;
    const whole = element('span', { class: 'bar', 'aria-hidden': 'true' }, filled);
    whole.style.setProperty('--c', `var(--c${labels[node] % PALETTE})`);
    return whole;
  };
  const row = (node) => {
    const cells = [
      [quoted(data.names[node])],
      [clusterMark(labels[node]), ` ${labels[node]}`],
      [`${(shares[node] / 100).toFixed(1)}%`, bar(node)],
      [degrees[node].toLocaleString('en')],
    ];
    if (strengths) cells.push([amount(strengths[node])]);
    const made = element('tr', node === state.node ? { class: 'pinned' } : {}, ...cells.map((cell) => element('td', {}, ...cell)));
    made.addEventListener('click', () => pin(node));
    return made;
  };

  const tell = () => {
    const seen = Math.min(visible, rows.length);
    const part = seen < rows.length ? `, the first ${seen.toLocaleString('en')} listed` : '';
    const only = state.cluster === null ? '' : ` in cluster ${state.cluster}`;
    shownNote.textContent = `${rows.length.toLocaleString('en')} of ${nodeCount.toLocaleString('en')} nodes${only}${part}.`;
    more.hidden = seen >= rows.length;
    more.textContent = `Show ${Math.min(MORE, rows.length - seen).toLocaleString('en')} more`;
  };
  const append = (from, to) => {
    const piece = document.createDocumentFragment();
    for (const node of rows.slice(from, to)) piece.append(row(node));
    body.append(piece);
  };
  const refresh = () => {
    const wanted = search.value.trim().toLowerCase();
    rows = Array.from(order).filter((node) => lowered[node].includes(wanted) && (state.cluster === null || labels[node] === state.cluster));
    if (sorting) {
      const compare = keys[sorting.key];
      rows.sort((one, other) => sorting.sign * compare(one, other) || one - other);
    }
    if (state.node !== null) rows = [state.node, ...rows.filter((node) => node !== state.node)];
    visible = FIRST;
    body.replaceChildren();
    append(0, visible);
    tell();
  };

  for (const button of nodesTable.querySelectorAll('[data-sort]')) {
    button.addEventListener('click', () => {
      const key = button.dataset.sort;
      // Names and clusters are looked up from the start, numbers from the largest.
      const first = key === 'name' || key === 'cluster' ? 1 : -1;
      sorting = { key, sign: sorting && sorting.key === key ? -sorting.sign : first };
      for (const head of nodesTable.querySelectorAll('th')) head.setAttribute('aria-sort', 'none');
      button.closest('th').setAttribute('aria-sort', sorting.sign > 0 ? 'ascending' : 'descending');
      refresh();
    });
  }
  search.addEventListener('input', refresh);
  more.addEventListener('click', () => {
    const from = visible;
    visible += MORE;
    append(from, visible);
    tell();
    if (more.hidden) search.focus();
  });
  onChoice(refresh);
  onPin(refresh);
  refresh();
}
