/** Default number of strings in a table. */
const MOST = 50_000;

/**
 * Creates a function that keeps one copy of each string that many objects share (label keys, node kinds); without it
 * every decoded object has its own copy. Above `most` strings it starts again with an empty table.
 */
export function createInterning(most = MOST): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    if (known.size >= most) known.clear();
    known.set(text, text);
    return text;
  };
}
