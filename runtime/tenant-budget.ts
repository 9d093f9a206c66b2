/** Bytes of the bookkeeping for an entry, of the header of an object or text, and of a field or element. */
const ENTRY_BYTES = 128;

/**
 * Shares the memory of a cache among tenants, that is namespaces. An entry fits if its tenant then has at most as many
 * bytes as remain free. So one tenant gets at most half of the memory, n tenants get at most 1/(n + 1) each, and there
 * is always room for a tenant with little. An entry that does not grow always fits, and one that grows never loses its
 * place: no tenant can push out another.
 * Source: dynamic thresholds for the shared memory of switches (Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998).
 */
export class TenantBudget {
  readonly #maxBytes: number;
  readonly #tenants = new Map<string, { bytes: number; readonly entries: Map<string, number> }>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Records the new value of an entry. @returns false if it does not fit; the entry then keeps its last value */
  put(tenant: string, key: string, value: unknown): boolean {
    const bytes = ENTRY_BYTES + approximateBytes(value);
    const { bytes: tenantBytes, entries } = this.#tenants.get(tenant) ?? { bytes: 0, entries: undefined };
    const growth = bytes - (entries?.get(key) ?? 0);
    if (growth > 0 && tenantBytes + growth > this.#maxBytes - this.#bytes - growth) return false;
    this.#record(tenant, key, bytes);
    return true;
  }

  /** The same for a small value that must be kept, whether or not it fits. */
  keep(tenant: string, key: string, value: unknown): void {
    this.#record(tenant, key, ENTRY_BYTES + approximateBytes(value));
  }

  /** The entry of a tenant that has had its value for the longest time. */
  oldestOf(tenant: string): string | undefined {
    return this.#tenants.get(tenant)?.entries.keys().next().value;
  }

  /** @returns the bytes of the entry */
  delete(tenant: string, key: string): number {
    const account = this.#tenants.get(tenant);
    const bytes = account?.entries.get(key) ?? 0;
    if (account === undefined || !account.entries.delete(key)) return 0;
    account.bytes -= bytes;
    this.#bytes -= bytes;
    if (account.entries.size === 0) this.#tenants.delete(tenant);
    return bytes;
  }

  #record(tenant: string, key: string, bytes: number): void {
    this.delete(tenant, key);
    const account = this.#tenants.get(tenant) ?? { bytes: 0, entries: new Map<string, number>() };
    account.entries.set(key, bytes);
    account.bytes += bytes;
    this.#bytes += bytes;
    this.#tenants.set(tenant, account);
  }
}
const HEADER_BYTES = 16;
const FIELD_BYTES = 16;

/** The memory of plain data. A text counts as if it had two bytes for each character, a key one. */
function approximateBytes(value: unknown): number {
  if (typeof value === 'string') return HEADER_BYTES + 2 * value.length;
  if (typeof value !== 'object' || value === null) return 0;
  if (ArrayBuffer.isView(value)) return HEADER_BYTES + value.byteLength;
  const isCollection = value instanceof Map || value instanceof Set;
  let bytes = HEADER_BYTES;
  for (const [key, field] of isCollection ? value.entries() : Object.entries(value)) {
    bytes += FIELD_BYTES + key.length + approximateBytes(field);
  }
  return bytes;
}
