/**
 * A page with its generated part replaced.
 * @param command the npm script that writes it
 * @throws Error if the page has no marks
 */
export function withGeneratedPart(name: string, page: string, command: string, part: string): string {
  const [begin, end] = [`<!-- begin: npm run ${command} -->`, '<!-- end -->'];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${name}: the marks of its generated part are missing`);
  return `${page.slice(0, from + begin.length)}\n\n${part}\n${page.slice(to)}`;
}
