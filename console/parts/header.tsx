import { line, status } from '../state/state.ts';

const LINE = {
  connecting: 'Connecting',
  live: 'Live',
  broken: 'Reconnecting',
  outdated: 'Outdated page',
} as const;

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
    </header>
  );
}
