import { PlumblineError } from '../../../model/errors.ts';

/** A row's monitored columns, as on the wire. */
export type Row = Readonly<Record<string, unknown>>;

/** Rows by table and row id. */
export type Tables = ReadonlyMap<string, ReadonlyMap<string, Row>>;

/** The database contains something that no configuration of a node has. */
export class ReplicaError extends PlumblineError {
  constructor(why: string) {
    super('ovsdb-replica', why);
  }
}

/** Limits of a replica. A node has a few hundred pods, each with a port or a few. */
export interface ReplicaLimits {
  /** Rows of all tables. */
  readonly rows: number;
  /** Characters of all rows as JSON. */
  readonly characters: number;
}

const LIMITS: ReplicaLimits = { rows: 65_536, characters: 32 * 1024 * 1024 };

export interface Replica {
  /**
   * Applies an update of a plain monitor. Its `new` is the whole row, so a column or a map's key that it lacks is
   * removed here too. The cost depends on the update, not on the number of rows.
   *
   * Source: RFC 7047, section 4.1.6.
   *
   * @throws ReplicaError if it is not an update, or leads to more than a node can have
   */
  apply(updates: unknown): void;
  /** The current tables; `apply` changes them in place. */
  readonly tables: Tables;
}

/** @param columns the columns to keep, by table; other tables and columns are ignored */
export function createReplica(
  columns: Readonly<Record<string, readonly string[]>>,
  { rows: mostRows, characters: mostCharacters }: ReplicaLimits = LIMITS,
): Replica {
  const tables = new Map<string, Map<string, Row>>();
  const sizes = new Map<string, number>();
  let characters = 0;

  const put = (table: string, rows: Map<string, Row>, id: string, row: Row | undefined) => {
    const key = `${table} ${id}`;
    const kept = row === undefined ? undefined : pick(row, columns[table] ?? []);
    const size = kept === undefined ? 0 : JSON.stringify(kept).length;
    characters += size - (sizes.get(key) ?? 0);
    if (kept === undefined) {
      sizes.delete(key);
      rows.delete(id);
      return;
    }
    sizes.set(key, size);
    rows.set(id, kept);
    if (sizes.size > mostRows) throw new ReplicaError(`the database has more than ${mostRows} rows`);
    if (characters > mostCharacters) throw new ReplicaError(`the rows have more than ${mostCharacters} characters`);
  };

  const change = (table: string, changes: unknown) => {
    if (!isObject(changes)) throw new ReplicaError(`an update of ${table} is not an object`);
    const rows = tables.get(table) ?? new Map<string, Row>();
    tables.set(table, rows);
    for (const [id, one] of Object.entries(changes)) {
      const now = isObject(one) ? (one['new'] ?? undefined) : null;
      if (now !== undefined && !isObject(now)) throw new ReplicaError(`a row of ${table} is not an object`);
      put(table, rows, id, now);
    }
  };

  return {
    tables,
    apply(updates) {
      if (updates === undefined || updates === null) return;
      if (!isObject(updates)) throw new ReplicaError('an update is not an object');
      for (const table of Object.keys(columns)) if (updates[table] !== undefined) change(table, updates[table]);
    },
  };
}

/** The rows of a table by id; empty where the table is absent. */
export function rowsOf(tables: Tables, table: string): ReadonlyMap<string, Row> {
  return tables.get(table) ?? new Map();
}

function pick(row: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.flatMap((column) => (column in row ? [[column, row[column]]] : [])));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Values in OVSDB's notation: an atom (text, number, boolean, or a pair of "uuid" and an id), a set (`["set", […]]`; a
 * single element may stand alone) or a map (`["map", [[key, value], …]]`). An absent column has its default: the empty
 * set or map, or the empty text.
 *
 * Source: RFC 7047, section 5.1.
 */

/** The elements of a set, ids of rows as plain text. */
export function setOf(value: unknown): readonly (string | number | boolean)[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) return [atom(value)];
  const [tag, content] = value as [unknown, unknown];
  if (tag === 'set') return Array.isArray(content) ? content.map(atom) : [];
  return tag === 'uuid' ? [String(content)] : [];
}

/** A map from text to text; all maps read here have this type. */
export function mapOf(value: unknown): ReadonlyMap<string, string> {
  if (!Array.isArray(value) || value[0] !== 'map' || !Array.isArray(value[1])) return new Map();
  return new Map((value[1] as unknown[]).filter(isPair).map(([key, one]) => [String(key), String(one)]));
}

/** The text, or the only text of a set of at most one; '' for an empty set. */
export function textOf(value: unknown): string {
  const [first] = setOf(value);
  return first === undefined ? '' : String(first);
}

function atom(value: unknown): string | number | boolean {
  if (Array.isArray(value)) return String(value[1]);
  return typeof value === 'number' || typeof value === 'boolean' ? value : String(value);
}

function isPair(value: unknown): value is [unknown, unknown] {
  return Array.isArray(value) && value.length === 2;
}
