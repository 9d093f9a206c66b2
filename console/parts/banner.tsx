import { useEffect, useState } from 'preact/hooks';
import { brokenSince, line, replica } from '../state.ts';

/** What one has to know before believing the page. Nothing where all is well. */
export function Banner() {
  const about = replica.value;
  if (line.value === 'outdated') {
    return (
      <p class="banner is-warning" role="alert">
        The extender was updated and speaks another version than this page.{' '}
        <button type="button" onClick={() => location.reload()}>
          Load the page anew
        </button>
      </p>
    );
  }
  if (line.value === 'broken') return <Broken />;
  if (about?.missing !== undefined) {
    return <p class="banner">The extender has just started and has not seen everything: {about.missing}.</p>;
  }
  if (about && !about.active) return <Standby holder={about.holder} />;
  return null;
}

function Standby({ holder }: { readonly holder: string | undefined }) {
  // The identity is the pod's name and a number of this start.
  const pod = holder?.replace(/_[0-9a-f]+$/, '');
  return (
    <p class="banner is-warning">
      This replica is a standby: what it sees is true, but it decides nothing and knows no decisions.{' '}
      {pod === undefined ? (
        'No replica is active at this moment.'
      ) : (
        <>
          The active one is <strong>{pod}</strong>: <code>kubectl -n plumbline-system port-forward pod/{pod} 8083</code>
        </>
      )}
    </p>
  );
}

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
      There is no line to the extender. What you see is {seconds} s old; it is tried again. Is{' '}
      <code>kubectl port-forward</code> still running?
    </p>
  );
}
