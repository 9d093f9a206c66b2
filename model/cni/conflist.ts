import { PlumblineError, quote } from '../errors.ts';
import { isObject, type JsonObject } from '../json.ts';

/** The plugin's name: the file name of the shim, and the `type` that calls it. */
export const GATE_PLUGIN = 'plumbline-gate';

/**
 * Both sort before `00-multus.conf`. A configuration for a single plugin goes into a `.json` file, which runtimes read
 * and multus ignores: multus wraps the first `.conf` or `.conflist` and would choose the gate's own file.
 */
export const GATE_FILES = {
  plugin: '00-multus-plumbline-gate.json',
  list: '00-multus-plumbline-gate.conflist',
} as const;

export type GateFile = (typeof GATE_FILES)[keyof typeof GATE_FILES];

/** The gate itself accepts 1 MiB. */
export const MAX_CONF_BYTES = 1024 * 1024;

/** CNI versions that the gate supports, oldest first. */
const CNI_VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;

/** A configuration that cannot be gated; the message states the reason. */
export class ConflistError extends PlumblineError {
  constructor(file: string, why: string) {
    super('conflist', `${file}: ${why}`);
  }
}

/**
 * Makes the gate's configuration from the runtime's primary: the gate around its first plugin, with the same name,
 * under which plugins store a pod's state. An existing gate is removed, so that each sandbox makes one request.
 * @param text a list, or a single plugin's configuration @throws ConflistError if malformed or of an unsupported
 * version
 */
export function gateConflist(file: string, text: string): { name: GateFile; text: string } {
  const primary = parse(file, text);
  const { cniVersion, name } = primary;
  if (!CNI_VERSIONS.some((version) => version === cniVersion)) {
    const spoken = `${CNI_VERSIONS[0]} to ${CNI_VERSIONS.at(-1)}`;
    throw new ConflistError(file, `cniVersion ${describeValue(cniVersion)}: the gate supports ${spoken}`);
  }
  if (typeof name !== 'string' || name === '') throw new ConflistError(file, 'it has no name');
  const { plugins: listed, ...list } = Array.isArray(primary['plugins']) ? primary : asList(primary);
  const plugins = (listed as unknown[]).map((plugin) => asPlugin(file, plugin)).flatMap(withoutGate);
  const [first, ...others] = plugins;
  if (first === undefined) throw new ConflistError(file, 'it has no plugins');
  if (others.length === 0 && Object.keys(list).every((key) => key === 'cniVersion' || key === 'name')) {
    return { name: GATE_FILES.plugin, text: print({ cniVersion, name, ...wrap(first) }) };
  }
  return { name: GATE_FILES.list, text: print({ ...list, plugins: [wrap(first), ...others] }) };
}

function print(value: JsonObject): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function asList(plugin: JsonObject): JsonObject {
  const { cniVersion, name, ...rest } = plugin;
  return { cniVersion, name, plugins: [rest] };
}

/** The runtime passes the arguments of capabilities to the plugin that it calls. */
function wrap({ capabilities, ...delegate }: JsonObject): JsonObject {
  return { type: GATE_PLUGIN, ...(capabilities === undefined ? {} : { capabilities }), delegate };
}

function withoutGate(plugin: JsonObject): JsonObject[] {
  if (plugin['type'] !== GATE_PLUGIN) return [plugin];
  const { delegate, capabilities } = plugin;
  return isObject(delegate) ? [{ ...delegate, ...(capabilities !== undefined && { capabilities }) }] : [];
}

function asPlugin(file: string, plugin: unknown): JsonObject {
  if (isObject(plugin) && typeof plugin['type'] === 'string' && plugin['type'] !== '') return plugin;
  throw new ConflistError(file, 'a plugin in it has no type');
}

function describeValue(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  return typeof value === 'object' ? 'no text' : String(value);
}

function parse(file: string, text: string): JsonObject {
  if (text.length > MAX_CONF_BYTES) throw new ConflistError(file, `longer than ${MAX_CONF_BYTES} characters`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ConflistError(file, `not JSON: ${(error as Error).message}`);
  }
  if (!isObject(value)) throw new ConflistError(file, 'not a JSON object');
  return value;
}

export interface ConfFile {
  readonly name: string;
  /** Undefined if the file could not be read. */
  readonly text: string | undefined;
  /** Why it could not be read. */
  readonly fault?: string;
}

/** `remove` names existing files to delete. */
export type ConflistPlan =
  | {
      readonly kind: 'write';
      readonly name: GateFile;
      readonly text: string;
      readonly primary: string;
      remove: GateFile[];
    }
  /** No primary exists: the network provider has not written one, so the network is not ready. */
  | { readonly kind: 'remove'; readonly remove: GateFile[] }
  /** The files are correct, or the state is unknown at present. */
  | { readonly kind: 'keep'; readonly problem: string | undefined };

const EXTENSIONS = ['.conf', '.conflist', '.json'];
const GATE_FILE_NAMES: readonly string[] = Object.values(GATE_FILES);
/** The last of the gate's own names: the runtime would choose a primary that sorts before it instead of the gate. */
const LAST_GATE_FILE_NAME = GATE_FILES.plugin;

/** The file that a runtime would choose without the gate: the first name in byte order. */
export function choosePrimary(files: readonly ConfFile[]): ConfFile | undefined {
  return files
    .filter(({ name }) => !GATE_FILE_NAMES.includes(name) && EXTENSIONS.some((extension) => name.endsWith(extension)))
    .sort((a, b) => (a.name < b.name ? -1 : 1))[0];
}

/** If the primary cannot be read or gated, the gate's file stays: some tools do not replace files atomically. */
export function planConflist(files: readonly ConfFile[]): ConflistPlan {
  const keep = (problem?: string): ConflistPlan => ({ kind: 'keep', problem });
  const primary = choosePrimary(files);
  const present = files.map(({ name }) => name).filter((name) => GATE_FILE_NAMES.includes(name)) as GateFile[];
  if (primary === undefined) return present.length === 0 ? keep() : { kind: 'remove', remove: present };
  if (primary.name < LAST_GATE_FILE_NAME)
    return keep(`${primary.name} sorts before ${LAST_GATE_FILE_NAME}: the runtime bypasses the gate`);
  if (primary.text === undefined) return keep(`${primary.name} cannot be read: ${primary.fault ?? 'no content'}`);
  try {
    const { name, text } = gateConflist(primary.name, primary.text);
    const remove = present.filter((file) => file !== name);
    const isCurrent = files.find((file) => file.name === name)?.text === text;
    return isCurrent && remove.length === 0 ? keep() : { kind: 'write', name, text, primary: primary.name, remove };
  } catch (error) {
    if (error instanceof ConflistError) return keep(error.message);
    throw error;
  }
}
