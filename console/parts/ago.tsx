import { now, oldSince } from '../state/state.ts';

export function Ago({ time }: { readonly time: string }) {
  const seconds = Math.max(0, Math.round((now.value - Date.parse(time)) / 1000));
  return (
    <time dateTime={time} title={timeText(time)}>
      {inWords(seconds)}
    </time>
  );
}

export function OldAge() {
  const since = oldSince.value;
  if (since === undefined) return null;
  return (
    <>
      {' '}
      <Ago time={new Date(since).toISOString()} /> ago
    </>
  );
}

export function DataAge({ since }: { readonly since: string | undefined }) {
  if (since === undefined) return null;
  return (
    <span class="data-age about">
      data: <Ago time={since} /> old
    </span>
  );
}

function inWords(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** `2026-05-04 12:00:00 +02:00`, in the time zone of the browser; unchanged if the text is not a time. */
export function timeText(time: string): string {
  const millis = Date.parse(time);
  if (Number.isNaN(millis)) return time;
  const minutesAhead = -new Date(millis).getTimezoneOffset();
  const local = new Date(millis + minutesAhead * 60_000).toISOString().slice(0, 19).replace('T', ' ');
  const two = (value: number) => String(Math.trunc(value)).padStart(2, '0');
  const size = Math.abs(minutesAhead);
  return `${local} ${minutesAhead < 0 ? '−' : '+'}${two(size / 60)}:${two(size % 60)}`;
}
