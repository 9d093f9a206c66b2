import { signal } from '@preact/signals';

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'plumbline-theme';

export const theme = signal<Theme>(remembered());

/** Without the attribute the style sheet follows the system. */
export function applyTheme(to: Theme): void {
  theme.value = to;
  if (to === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = to;
  try {
    localStorage.setItem(KEY, to);
  } catch {
    // Without storage, the next page follows the system.
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
