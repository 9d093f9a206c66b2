import { countWords } from '../data/shape.ts';
import type { HistoryAnswer, HistoryEntry } from '../data/wire.ts';
import { useAnswer } from '../state/ask.ts';
import { Ago, timeText } from './ago.tsx';
import { AnswerSection, Paragraphs } from './detail.tsx';

const FIRST_ROWS = 12;

interface HistoryProps {
  readonly of: 'node' | 'vm';
  readonly name: string;
  readonly above?: string | undefined;
}

export function History({ of, name, above = '' }: HistoryProps) {
  const answer = useAnswer<HistoryAnswer>(`/history?${of}=${encodeURIComponent(name)}`);
  return (
    <AnswerSection id="history" title="History" answer={answer} asking="Asking the API server …">
      {(history) => <Entries history={history} above={above} />}
    </AnswerSection>
  );
}

const isUsual = ({ from, isWarning }: HistoryEntry) => from === 'condition' && !isWarning;

function Entries({ history: { entries, notes }, above }: { readonly history: HistoryAnswer; readonly above: string }) {
  const usual = entries.filter(isUsual);
  const unusual = entries.filter((entry) => !isUsual(entry));
  const rows = withoutRepeats(unusual, above);
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
    const isRepeat = text.length >= MIN_REPEAT_CHARACTERS && texts.includes(text);
    if (isRepeat) return { ...entry, text: '(the same text as above)' };
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
  const times = count && `${count} times${since ? ` since ${timeText(since)}` : ''}`;
  return [kind, about && `of ${about}`, times].filter(Boolean).join(', ');
}
