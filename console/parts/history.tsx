import type { HistoryAnswer as Found, HistoryEntry } from '../data/wire.ts';
import { useAnswer } from '../state/ask.ts';
import { Ago, timeText } from './ago.tsx';

const REFRESH_MILLISECONDS = 30_000;
const FIRST_ROWS = 12;

/** Events and conditions of a node or VM, the newest first. */
export function History({ of, name }: { readonly of: 'node' | 'vm'; readonly name: string }) {
  const answer = useAnswer<Found>(`/history?${of}=${encodeURIComponent(name)}`, REFRESH_MILLISECONDS);
  return (
    <section class="history" aria-labelledby="history" aria-busy={answer === undefined}>
      <h3 id="history">History</h3>
      {answer === undefined && <p class="about">Asking the API server …</p>}
      {answer !== undefined && 'failed' in answer && <p class="problem">{answer.failed}</p>}
      {answer !== undefined && 'data' in answer && <Entries history={answer.data} />}
    </section>
  );
}

function Entries({ history: { entries, notes } }: { readonly history: Found }) {
  const more = entries.length - FIRST_ROWS;
  return (
    <>
      {entries.length === 0 && (
        <p class="about">No Events or conditions. By default, the API server keeps Events for an hour.</p>
      )}
      <List entries={entries.slice(0, FIRST_ROWS)} />
      {more > 0 && (
        <details>
          <summary>{more} older</summary>
          <List entries={entries.slice(FIRST_ROWS)} />
        </details>
      )}
      {notes.map((note) => (
        <p key={note} class="about">
          {note}
        </p>
      ))}
    </>
  );
}

function List({ entries }: { readonly entries: readonly HistoryEntry[] }) {
  return (
    <ol class="entries">
      {entries.map((entry, index) => (
        <li key={`${entry.time} ${entry.reason} ${index}`} class={entry.isWarning ? 'is-warning' : undefined}>
          <span class="when">
            <time dateTime={entry.time}>{timeText(entry.time)}</time>
            <span class="about">
              <Ago time={entry.time} /> ago
            </span>
          </span>
          <span class="what">
            <b>{entry.reason}</b> {entry.text}
            <span class="about">{origin(entry)}</span>
          </span>
        </li>
      ))}
    </ol>
  );
}

function origin({ from, about, count, since, isWarning }: HistoryEntry): string {
  const kind = { event: isWarning ? 'warning' : 'Event', condition: 'condition', phase: 'KubeVirt' }[from];
  return [
    kind,
    ...(about === undefined ? [] : [`of ${about}`]),
    ...(count === undefined ? [] : [`${count} times${since ? ` since ${timeText(since)}` : ''}`]),
  ].join(', ');
}
