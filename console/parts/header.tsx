import { line, status } from '../state/state.ts';
import { applyZone, ZONES, type Zone, zone } from '../state/time-zone.ts';

const LINE = {
  connecting: 'Connecting',
  live: 'Live',
  broken: 'Reconnecting',
  outdated: 'Outdated page',
} as const;

const ZONE_TEXT: Readonly<Record<Zone, string>> = { local: 'Local', utc: 'UTC' };

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
      <fieldset class="choice">
        <legend class="unseen">Times</legend>
        {ZONES.map((one) => (
          <label key={one}>
            <input type="radio" name="zone" value={one} checked={zone.value === one} onChange={() => applyZone(one)} />
            <span>{ZONE_TEXT[one]}</span>
          </label>
        ))}
      </fieldset>
    </header>
  );
}
