// The pinned node: a line at the foot of the window, in every part of the page, until Escape or a second click.
const pinnedBar = document.getElementById('pinned');

if (nodeCount) {
  onPin(() => {
    pinnedBar.hidden = state.node === null;
    if (state.node === null) return;
    const release = element('button', { type: 'button', 'aria-label': 'Unpin' }, '×');
    release.addEventListener('click', () => pin(null));
    const text = element('span', {}, ...nodeParts(state.node).map((part) => (typeof part === 'string' ? part.replace('\n', ' · ') : part)));
    pinnedBar.replaceChildren(text, release);
  });
}

// Words that explain themselves.
for (const word of document.querySelectorAll('.term')) {
  const explain = () => {
    const box = word.getBoundingClientRect();
    showTip(box.left - 8, box.bottom - 8, [word.dataset.explains]);
  };
  word.addEventListener('pointerenter', explain);
  word.addEventListener('focus', explain);
  word.addEventListener('pointerleave', hideTip);
  word.addEventListener('blur', hideTip);
}
