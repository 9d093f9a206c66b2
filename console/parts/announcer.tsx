import { useEffect, useState } from 'preact/hooks';
import { line, ready, totals, waiting } from '../state/state.ts';

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
