import { useEffect, useState } from 'preact/hooks';
import { line, ready, totals, waiting } from '../state/state.ts';

/** Milliseconds that things must have settled for before they are said aloud. */
const SETTLED = 2000;

/** Says to screen readers what others see in the corner of an eye: only the sums, and only when they have settled. */
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
