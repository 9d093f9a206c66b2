import { line, status } from '../state/state.ts';
import { applyTheme, THEMES, type Theme, theme } from '../state/theme.ts';

const LINE = {
  connecting: 'Connecting',
  live: 'Live',
  broken: 'Reconnecting',
  outdated: 'Outdated page',
} as const;

const THEME_TEXT: Readonly<Record<Theme, string>> = { auto: 'Auto', light: 'Light', dark: 'Dark' };

export function Header() {
  const about = status.value;
  return (
    <header class="header">
      <div class="brand">
        <img src="/icon.svg" alt="" width="28" height="28" />
        <span class="brand-name">Plumbline</span>
        {about && <span class="version">{about.version}</span>}
      </div>
      <div class="status">
        <span class={`line is-${line.value}`}>{LINE[line.value]}</span>
        {about && <span class="leader">{about.leader ? `${about.leader} decides` : ''}</span>}
      </div>
      <fieldset class="themes">
        <legend class="unseen">Colours</legend>
        {THEMES.map((one) => (
          <label key={one}>
            <input
              type="radio"
              name="theme"
              value={one}
              checked={theme.value === one}
              onChange={() => applyTheme(one)}
            />
            <span>{THEME_TEXT[one]}</span>
          </label>
        ))}
      </fieldset>
    </header>
  );
}
