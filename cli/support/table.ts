import { cutText } from '../../runtime/printable.ts';

const MAX_CELL_CHARACTERS = 1024;

/** Rows of cells as aligned columns, separated by two blanks; the last column is not padded. */
export function tableLines(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows].map((row) => row.map((cell) => cutText(cell, MAX_CELL_CHARACTERS)));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}
