import { signal } from '@preact/signals';

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'plumbline-theme';

export const theme = signal<Theme>(remembered());

/** The style sheet follows the system where the attribute is absent. */
export function applyTheme(to: Theme): void {
  theme.value = to;
  if (to === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = to;
  try {
    localStorage.setItem(KEY, to);
  } catch {
    // A browser that keeps nothing follows the system with the next page.
  }
}

function remembered(): Theme {
  try {
    const known = localStorage.getItem(KEY);
    return THEMES.find((one) => one === known) ?? 'auto';
  } catch {
    return 'auto';
  }
}
