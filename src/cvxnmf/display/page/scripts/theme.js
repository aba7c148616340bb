// Light or dark: what the system prefers until a person chooses.
const themeButton = document.getElementById('theme');
const systemDark = matchMedia('(prefers-color-scheme: dark)');
const redraws = [];

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : systemDark.matches;
}

// The button names what it does.
function nameTheme() {
  themeButton.textContent = isDark() ? 'Light theme' : 'Dark theme';
}

function themed() {
  nameTheme();
  for (const redraw of redraws) redraw();
}

function remembered() {
  try { return localStorage.getItem('cvxnmf-theme'); } catch { return null; }
}

function remember(theme) {
  try { localStorage.setItem('cvxnmf-theme', theme); } catch { /* storage may be closed to files */ }
}

themeButton.addEventListener('click', () => {
  document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
  remember(document.documentElement.dataset.theme);
  themed();
});
systemDark.addEventListener('change', themed);
const kept = remembered();
if (kept === 'dark' || kept === 'light') document.documentElement.dataset.theme = kept;
nameTheme();

// Paper is light: canvases are drawn anew for it, since style alone does not reach them.
let beforePrint = null;
addEventListener('beforeprint', () => {
  beforePrint = document.documentElement.dataset.theme ?? '';
  document.documentElement.dataset.theme = 'light';
  themed();
});
addEventListener('afterprint', () => {
  if (beforePrint) document.documentElement.dataset.theme = beforePrint;
  else delete document.documentElement.dataset.theme;
  themed();
});
