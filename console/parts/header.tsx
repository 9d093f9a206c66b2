import { useEffect, useState } from 'preact/hooks';
import { brokenSince, line, ready, status, totals, waiting } from '../state/state.ts';

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

/** Limits of the data on the page; nothing if all is well. */
export function Banner() {
  const about = status.value;
  if (line.value === 'outdated') {
    return (
      <p class="banner is-warning" role="alert">
        The console was updated; this page is from another version.{' '}
        <button type="button" onClick={() => location.reload()}>
          Reload the page
        </button>
      </p>
    );
  }
  if (line.value === 'broken') return <Broken />;
  if (about === undefined) return null;
  const { missing, problem, leader, without } = about;
  if (problem !== undefined) {
    return (
      <p class="banner is-warning">The API server does not answer, so this data may be old; retrying. {problem}</p>
    );
  }
  if (missing !== undefined) return <p class="banner">Loading the cluster: {missing}.</p>;
  if (leader === null) {
    return (
      <p class="banner is-warning">
        Plumbline’s scheduler has no leader: new VMs stay pending. <code>kubectl plumbline doctor</code> shows the
        reason.
      </p>
    );
  }
  if (without.length > 0) {
    return (
      <p class="banner">
        You may not read {without.join(' and ')}: {without.map((kind) => UNKNOWN[kind] ?? kind).join('; ')}.
      </p>
    );
  }
  return null;
}

/** The data that is missing without permission to read a kind. */
const UNKNOWN: Readonly<Record<string, string>> = {
  leases: 'the page cannot show silent agents and a missing scheduler',
  virtualmachineinstances: 'the page shows paused guests as running',
  resourceslices: 'the page cannot show nodes where dra.cpu gives CPUs to claims',
};

const AFTER = 1500;

/** Short interruptions are not shown. */
function Broken() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const since = brokenSince.value ?? performance.now();
    const timer = setInterval(() => setSeconds(Math.round((performance.now() - since) / 1000)), 1000);
    return () => clearInterval(timer);
  }, []);
  if (seconds * 1000 < AFTER) return null;
  return (
    <p class="banner is-warning" role="alert">
      There is no connection to the console. The data is {seconds} s old; retrying. Check that{' '}
      <code>plumbline console</code> or <code>kubectl port-forward</code> still runs.
    </p>
  );
}

/** Milliseconds without a change before the summary is announced. */
const SETTLED = 2000;

/** Announces the totals to screen readers, once they are stable. */
export function Announcer() {
  const [said, setSaid] = useState('');
  const text = !ready.value
    ? 'Loading the cluster'
    : [
        line.value === 'live' ? '' : 'No connection to the console.',
        `${totals.value.nodes} nodes, ${totals.value.withProblems} need attention, ${waiting.value.length} waiting.`,
      ]
        .join(' ')
        .trim();
  useEffect(() => {
    const timer = setTimeout(() => setSaid(text), SETTLED);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <p class="unseen" role="status">
      {said}
    </p>
  );
}
