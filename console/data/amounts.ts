/** `1 node`, `3 nodes`, as in the command. The page may import nothing outside console/. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
