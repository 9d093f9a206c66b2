/**
 * Texts from other parties (a switch's configuration, names in the kernel, an annotation), shortened for a log line, an
 * Event or a condition. The length of such a message must not depend on its subject.
 */

/** Returns the text, or its first `most` characters and an ellipsis. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = isHighSurrogate(text.charCodeAt(most - 2)) ? most - 2 : most - 1;
  return `${text.slice(0, end)}…`;
}

/** Returns the first texts, each cut to `longest` characters, and the number of further ones. */
export function few(texts: readonly string[], most: number, longest: number): string[] {
  const shown = texts.slice(0, most).map((text) => cut(text, longest));
  return texts.length > most ? [...shown, `and ${texts.length - most} more`] : shown;
}

/** Whether a code unit is the first half of a surrogate pair, which a cut must not separate from the second. */
function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
