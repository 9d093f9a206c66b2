/**
 * Keeps one copy of each of the strings that many objects share (label keys, node kinds), where every decoded object
 * would bring its own. Emptied when it has grown large, which costs sharing and nothing else.
 */
export function createInterning(most = 50_000): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    if (known.size >= most) known.clear();
    known.set(text, text);
    return text;
  };
}
