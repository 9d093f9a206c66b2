import { signal } from '@preact/signals';

export const ZONES = ['local', 'utc'] as const;
export type Zone = (typeof ZONES)[number];

const KEY = 'plumbline-time-zone';

/** The time zone of displayed times. */
export const zone = signal<Zone>(remembered());

export function applyZone(to: Zone): void {
  zone.value = to;
  try {
    localStorage.setItem(KEY, to);
  } catch {
    // Without storage, the next page shows local times.
  }
}

/** `2026-05-04 10:00:00`, with `UTC` or the offset; unchanged if the text is not a time. */
export function timeText(
  time: string,
  { withZone = true, in: at = zone.value }: { withZone?: boolean; in?: Zone } = {},
): string {
  const millis = Date.parse(time);
  if (Number.isNaN(millis)) return time;
  const ahead = at === 'utc' ? 0 : -new Date(millis).getTimezoneOffset();
  const written = new Date(millis + ahead * 60_000).toISOString().slice(0, 19).replace('T', ' ');
  return withZone ? `${written} ${at === 'utc' ? 'UTC' : distance(ahead)}` : written;
}

/** `+02:00` */
function distance(minutes: number): string {
  const two = (value: number) => String(Math.trunc(value)).padStart(2, '0');
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '−' : '+'}${two(size / 60)}:${two(size % 60)}`;
}

function remembered(): Zone {
  try {
    const known = localStorage.getItem(KEY);
    return ZONES.find((one) => one === known) ?? 'local';
  } catch {
    return 'local';
  }
}
