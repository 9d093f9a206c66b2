/**
 * Texts that are made of other parties' words (a switch's configuration, a kernel's names, an annotation) as they may
 * stand in a log line, an Event or a condition: none of these may grow with what it is about.
 */

/** The text, or its first characters and a sign that there are more. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = isHighSurrogate(text.charCodeAt(most - 2)) ? most - 2 : most - 1;
  return `${text.slice(0, end)}…`;
}

/** The first texts, each cut, and how many more there are. */
export function few(texts: readonly string[], most: number, longest: number): string[] {
  const shown = texts.slice(0, most).map((text) => cut(text, longest));
  return texts.length > most ? [...shown, `and ${texts.length - most} more`] : shown;
}

/** Half of a character that the cut would leave without its other half. */
function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
