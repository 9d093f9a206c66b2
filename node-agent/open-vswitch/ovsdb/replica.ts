import { PlumblineError } from '../../../model/errors.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';

export type Row = JsonObject;

export type Tables = ReadonlyMap<string, ReadonlyMap<string, Row>>;

export class ReplicaError extends PlumblineError {
  constructor(why: string) {
    super('ovsdb-replica', why);
  }
}

/** Rows of all tables, and their characters as JSON: 20,000 tunnels fit the agent's heap (40 MB). */
const LIMITS = { rows: 32_768, characters: 4 * 1024 * 1024 };

/** Columns to keep, by table. */
export type Columns = Readonly<Record<string, readonly string[]>>;

/** A copy of some tables. Owner: the database. Age: as new as the last update. End: its connection's end. */
export class OvsdbReplica {
  readonly #columns: Columns;
  readonly #limits: typeof LIMITS;
  readonly #tables = new Map<string, Map<string, Row>>();
  /** Characters of each row as JSON, and of all. */
  readonly #sizes = new Map<string, number>();
  #characters = 0;

  /** Other tables and columns are ignored. */
  constructor(columns: Columns, limits = LIMITS) {
    this.#columns = columns;
    this.#limits = limits;
  }

  /** The current tables; `apply` changes them in place. */
  get tables(): Tables {
    return this.#tables;
  }

  /**
   * Applies a reply or an update, at a cost that depends on it only. Source: ovsdb-server(7), 4.1.12 and 4.1.14.
   * @throws ReplicaError if it is none, or leads to more than a node can have
   */
  apply(updates: unknown): void {
    if (updates === undefined || updates === null) return;
    if (!isObject(updates)) throw new ReplicaError('an update is not an object');
    for (const [table, columns] of Object.entries(this.#columns))
      if (updates[table] !== undefined) this.#change(table, columns, updates[table]);
  }

  #change(table: string, columns: readonly string[], changes: unknown): void {
    if (!isObject(changes)) throw new ReplicaError(`an update of ${table} is not an object`);
    const rows = this.#tables.get(table) ?? new Map<string, Row>();
    this.#tables.set(table, rows);
    for (const [id, update] of Object.entries(changes)) {
      if (!isObject(update)) throw new ReplicaError(`an update of a row of ${table} is not an object`);
      const { initial, insert = initial, modify } = update;
      const row = insert ?? modify;
      if (row !== undefined && !isObject(row)) throw new ReplicaError(`a row of ${table} is not an object`);
      const content = row && pick(row, columns);
      const next = modify === undefined ? content : { ...rows.get(id), ...changed(rows.get(id), content) };
      this.#count(`${table} ${id}`, next);
      if (next === undefined) rows.delete(id);
      else rows.set(id, next);
    }
  }

  /** @throws ReplicaError beyond a limit */
  #count(key: string, row: Row | undefined): void {
    const size = row === undefined ? 0 : JSON.stringify(row).length;
    this.#characters += size - (this.#sizes.get(key) ?? 0);
    if (row === undefined) this.#sizes.delete(key);
    else this.#sizes.set(key, size);
    const { rows, characters } = this.#limits;
    const over = (most: string) => new ReplicaError(`Open vSwitch has more than ${most}; networks are not located`);
    if (this.#sizes.size > rows) throw over(`${rows} rows of bridges, ports and interfaces`);
    if (this.#characters > characters) throw over(`${characters} characters of configuration`);
  }
}

export function rowsOf(tables: Tables, table: string): ReadonlyMap<string, Row> {
  return tables.get(table) ?? new Map();
}

/** Columns whose sets may have several elements, all of them ids of rows. */
const SETS: ReadonlySet<string> = new Set(['ports', 'interfaces']);

/** A modified map or set has what was added or removed; a map also what was changed. */
function changed(before: Row = {}, difference: Row = {}): Row {
  return Object.fromEntries(
    Object.entries(difference).map(([column, value]) => [column, changedValue(column, before[column], value)]),
  );
}

function changedValue(column: string, before: unknown, difference: unknown): unknown {
  if (Array.isArray(difference) && difference[0] === 'map') {
    const pairs = new Map(mapOf(before));
    for (const [key, value] of mapOf(difference)) {
      if (pairs.get(key) === value) pairs.delete(key);
      else pairs.set(key, value);
    }
    return ['map', [...pairs]];
  }
  if (!SETS.has(column)) return difference;
  const ids = new Set(setOf(before));
  for (const id of setOf(difference)) if (!ids.delete(id)) ids.add(id);
  return ['set', [...ids].map((id) => ['uuid', id])];
}

function pick(row: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.flatMap((column) => (column in row ? [[column, row[column]]] : [])));
}

/**
 * Values in OVSDB's notation: an atom (text, number, boolean, or a pair of "uuid" and an id), a set (`["set", […]]`; a
 * single element may stand alone) or a map (`["map", [[key, value], …]]`). An absent column has its default: the empty
 * set or map, or the empty text.
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
  const pairs = (value[1] as unknown[]).filter((pair) => Array.isArray(pair) && pair.length === 2) as unknown[][];
  return new Map(pairs.map(([key, text]) => [String(key), String(text)]));
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
