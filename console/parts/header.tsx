import { line, status } from '../state/state.ts';
import { applyTheme, THEMES, type Theme, theme } from '../state/theme.ts';
import { applyZone, ZONES, type Zone, zone } from '../state/time-zone.ts';
import { ShortcutsButton } from './shortcuts.tsx';

const LINE = {
  connecting: 'Connecting',
  live: 'Live',
  broken: 'Reconnecting',
  outdated: 'Outdated page',
} as const;

const ZONE_TEXT: Readonly<Record<Zone, string>> = { local: 'Local', utc: 'UTC' };
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
        {about && <span class="leader">{about.leader ? `leader: ${about.leader}` : ''}</span>}
      </div>
      <Choice name="zone" legend="Times" texts={ZONE_TEXT} of={ZONES} chosen={zone.value} choose={applyZone} />
      <Choice name="theme" legend="Colours" texts={THEME_TEXT} of={THEMES} chosen={theme.value} choose={applyTheme} />
      <ShortcutsButton />
    </header>
  );
}

interface ChoiceProps<T extends string> {
  readonly name: string;
  readonly legend: string;
  readonly of: readonly T[];
  readonly texts: Readonly<Record<T, string>>;
  readonly chosen: T;
  readonly choose: (one: T) => void;
}

function Choice<T extends string>({ name, legend, of, texts, chosen, choose }: ChoiceProps<T>) {
  return (
    <fieldset class="choice">
      <legend class="unseen">{legend}</legend>
      {of.map((one) => (
        <label key={one}>
          <input type="radio" name={name} value={one} checked={chosen === one} onChange={() => choose(one)} />
          <span>{texts[one]}</span>
        </label>
      ))}
    </fieldset>
  );
}
