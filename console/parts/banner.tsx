import { useEffect, useState } from 'preact/hooks';
import { brokenSince, line, status } from '../state/state.ts';

/** What one has to know before believing the page. Nothing where all is well. */
export function Banner() {
  const about = status.value;
  if (line.value === 'outdated') {
    return (
      <p class="banner is-warning" role="alert">
        The console was updated and speaks another version than this page.{' '}
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
    return <p class="banner is-warning">The API server does not answer, so this may be old; retrying. {problem}</p>;
  }
  if (missing !== undefined) return <p class="banner">Loading the cluster: {missing}.</p>;
  if (leader === null) {
    return (
      <p class="banner is-warning">
        No scheduler of Plumbline leads: nothing is placed now. <code>kubectl plumbline doctor</code> says why.
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

/** What is not known where a kind may not be read. */
const UNKNOWN: Readonly<Record<string, string>> = {
  leases: 'silent agents and a missing scheduler are not shown',
  virtualmachineinstances: 'paused guests are shown as running',
  resourceslices: 'nodes whose CPUs dra.cpu hands out too are not shown',
};

const AFTER = 1500;

/** Short breaks are not worth a word. */
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
      There is no connection to the console. What you see is {seconds} s old; retrying. Is{' '}
      <code>plumbline console</code> or <code>kubectl port-forward</code> still running?
    </p>
  );
}
