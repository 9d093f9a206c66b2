import * as z from 'zod';

/** A row's monitored columns, as on the wire. */
export type Row = Readonly<Record<string, unknown>>;

/** Rows by table and row id. */
export type Tables = ReadonlyMap<string, ReadonlyMap<string, Row>>;

export const NO_TABLES: Tables = new Map();

const row = z.record(z.string(), z.unknown());
/** A row as it is now; without `new` it is gone. What it was before is not looked at. */
const rowUpdate = z.object({ new: row.nullish() });
const tableUpdates = z.record(z.string(), z.record(z.string(), rowUpdate));

/**
 * The tables after an update of a plain monitor. Its `new` is the whole row, so a column or a map's key that is gone is
 * gone here too.
 *
 * Source: RFC 7047, section 4.1.6.
 * @throws z.ZodError if it is no such update
 */
export function applyUpdates(tables: Tables, updates: unknown): Tables {
  const next = new Map(tables);
  for (const [table, rows] of Object.entries(tableUpdates.parse(updates ?? {}))) {
    const changed = new Map(next.get(table));
    for (const [id, { new: now }] of Object.entries(rows)) {
      if (now === undefined || now === null) changed.delete(id);
      else changed.set(id, now);
    }
    next.set(table, changed);
  }
  return next;
}

export function rowsOf(tables: Tables, table: string): ReadonlyMap<string, Row> {
  return tables.get(table) ?? new Map();
}
