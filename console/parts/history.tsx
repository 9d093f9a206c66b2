import { countWords } from '../data/shape.ts';
import type { HistoryAnswer, HistoryEntry } from '../data/wire.ts';
import { useAnswer } from '../state/ask.ts';
import { Ago, timeText } from './ago.tsx';
import { Paragraphs } from './detail.tsx';

const REFRESH_MILLISECONDS = 30_000;
const FIRST_ROWS = 12;

interface HistoryProps {
  readonly of: 'node' | 'vm';
  readonly name: string;
  readonly above?: string | undefined;
}

export function History({ of, name, above = '' }: HistoryProps) {
  const answer = useAnswer<HistoryAnswer>(`/history?${of}=${encodeURIComponent(name)}`, REFRESH_MILLISECONDS);
  return (
    <section class="history" aria-labelledby="history" aria-busy={answer === undefined}>
      <h3 id="history">History</h3>
      {answer === undefined && <p class="about">Asking the API server …</p>}
      {answer !== undefined && 'failed' in answer && <p class="problem">{answer.failed}</p>}
      {answer !== undefined && 'data' in answer && <Entries history={answer.data} above={above} />}
    </section>
  );
}

const isUsual = ({ from, isWarning }: HistoryEntry) => from === 'condition' && !isWarning;

function Entries({ history: { entries, notes }, above }: { readonly history: HistoryAnswer; readonly above: string }) {
  const usual = entries.filter(isUsual);
  const rows = withoutRepeats(
    entries.filter((entry) => !isUsual(entry)),
    above,
  );
  return (
    <>
      {entries.length === 0 && (
        <p class="about">No Events or conditions. By default, the API server keeps Events for an hour.</p>
      )}
      <List entries={rows.slice(0, FIRST_ROWS)} />
      <Folded title={`${rows.length - FIRST_ROWS} older`} entries={rows.slice(FIRST_ROWS)} />
      <Folded title={`${countWords(usual.length, 'condition')} without a problem`} entries={usual} />
      <Paragraphs texts={notes} look="about" />
    </>
  );
}

function Folded({ title, entries }: { readonly title: string; readonly entries: readonly HistoryEntry[] }) {
  if (entries.length === 0) return null;
  return (
    <details>
      <summary>{title}</summary>
      <List entries={entries} />
    </details>
  );
}

/** Characters from which a text that repeats is left out. */
const MIN_REPEAT_CHARACTERS = 60;

function withoutRepeats(entries: readonly HistoryEntry[], above: string): HistoryEntry[] {
  let texts = above;
  return entries.map((entry) => {
    const { text } = entry;
    if (text.length >= MIN_REPEAT_CHARACTERS && texts.includes(text))
      return { ...entry, text: '(the same text as above)' };
    texts += `\n${text}`;
    return entry;
  });
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
