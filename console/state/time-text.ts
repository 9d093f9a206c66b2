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
