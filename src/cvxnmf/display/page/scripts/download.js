// Labels and factors as CSV files, made in the browser so that they work from a file too.
function field(value) {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csv(lines) {
  return lines.map((line) => line.map(field).join(',')).join('\r\n') + '\r\n';
}

function save(name, content) {
  const blob = content instanceof Blob ? content : new Blob([content], { type: 'text/csv;charset=utf-8' });
  const address = URL.createObjectURL(blob);
  const link = element('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

document.getElementById('download')?.addEventListener('click', () => {
  const lines = data.names.map((name, node) => [name, labels[node], shares[node] / 10000]);
  save('labels.csv', csv([['node', 'cluster', 'share'], ...lines]));
});

for (const button of document.querySelectorAll('[data-factor]')) {
  button.addEventListener('click', () => {
    const place = Number(button.dataset.factor);
    const columns = data.heat[place].rows;
    const lines = Array.from({ length: data.heat[place].items }, (_, item) => Array.from(factors[place].subarray(item * columns, (item + 1) * columns)));
    const head = Array.from({ length: columns }, (_, component) => `component_${component}`);
    save(`${'UV'[place]}.csv`, csv([head, ...lines]));
  });
}
