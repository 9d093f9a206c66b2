import { PlumblineError, quote } from '../errors.ts';
import { isObject, type JsonObject } from '../json.ts';

/** The plugin's name: the file name of the shim, and the `type` that calls it. */
export const GATE_PLUGIN = 'plumbline-gate';

/**
 * File names of the gate's own configuration: one for a primary that is a single plugin and one for a list of plugins.
 *
 * Both sort before `00-multus.conf`. The configuration for a single plugin, such as multus, goes into a `.json` file,
 * which runtimes read and multus ignores: multus looks for the network to wrap in every `.conf` and `.conflist` file of
 * the directory, and would choose the gate's file, which is derived from its own. The prefix has the same effect for
 * versions of multus that filter by name.
 */
export const GATE_FILES = {
  plugin: '00-multus-plumbline-gate.json',
  list: '00-multus-plumbline-gate.conflist',
} as const;

export type GateFile = (typeof GATE_FILES)[keyof typeof GATE_FILES];

/** Largest configuration that is read, in characters. The gate itself accepts 1 MiB. */
export const MAX_CONF_BYTES = 1024 * 1024;

/** CNI versions that the gate supports, oldest first. */
export const CNI_VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;

/** A configuration that cannot be gated; the message states the reason. */
export class ConflistError extends PlumblineError {
  constructor(file: string, why: string) {
    super('conflist', `${file}: ${why}`);
  }
}

/**
 * Makes the gate's configuration from the runtime's primary. It keeps the name and version (plugins store their state
 * of a pod under the network's name) and the plugins, and puts the gate around the first of them. It removes an existing
 * gate, so that each sandbox makes one request.
 *
 * @param text the primary: a list, or a single plugin's configuration
 * @returns the name and content of the file
 * @throws ConflistError if the primary is malformed or has an unsupported version
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

/** Converts the configuration of a single plugin into a list of one; name and version move to the list. */
function asList(plugin: JsonObject): JsonObject {
  const { cniVersion, name, ...rest } = plugin;
  return { cniVersion, name, plugins: [rest] };
}

/** Moves capabilities to the wrapper: the runtime passes their arguments to the plugin that it calls. */
function wrap({ capabilities, ...delegate }: JsonObject): JsonObject {
  return { type: GATE_PLUGIN, ...(capabilities === undefined ? {} : { capabilities }), delegate };
}

function withoutGate(plugin: JsonObject): JsonObject[] {
  if (plugin['type'] !== GATE_PLUGIN) return [plugin];
  const { delegate, capabilities } = plugin;
  if (!isObject(delegate)) return [];
  return [{ ...delegate, ...(capabilities === undefined ? {} : { capabilities }) }];
}

function asPlugin(file: string, plugin: unknown): JsonObject {
  if (isObject(plugin) && typeof plugin['type'] === 'string' && plugin['type'] !== '') return plugin;
  throw new ConflistError(file, 'a plugin in it has no type');
}

/** A value of the configuration, for a message. */
function describeValue(value: unknown): string {
  return typeof value === 'string' ? quote(value) : typeof value === 'object' ? 'no text' : String(value);
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
}

/** The changes to the gate's own files; `remove` names existing files to delete. */
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
const OWN: readonly string[] = Object.values(GATE_FILES);
/** The last of the gate's own names: the runtime would choose a primary that sorts before it instead of the gate. */
const LAST_OWN = GATE_FILES.plugin;

/** The file that a runtime would choose without the gate: the first name in byte order. */
export function choosePrimary(files: readonly ConfFile[]): ConfFile | undefined {
  return files
    .filter(({ name }) => !OWN.includes(name) && EXTENSIONS.some((extension) => name.endsWith(extension)))
    .sort((a, b) => (a.name < b.name ? -1 : 1))[0];
}

/**
 * Plans the changes for the files in the directory. If the primary cannot be read or gated, the gate's file stays: some
 * tools do not replace files atomically, and removing a configuration makes the node NotReady.
 */
export function planConflist(files: readonly ConfFile[]): ConflistPlan {
  const primary = choosePrimary(files);
  const present = files.filter(({ name }) => OWN.includes(name)) as (ConfFile & { name: GateFile })[];
  if (primary === undefined) {
    const remove = present.map(({ name }) => name);
    return remove.length === 0 ? { kind: 'keep', problem: undefined } : { kind: 'remove', remove };
  }
  if (primary.name < LAST_OWN) {
    return { kind: 'keep', problem: `${primary.name} sorts before ${LAST_OWN}: the runtime bypasses the gate` };
  }
  if (primary.text === undefined) return { kind: 'keep', problem: `${primary.name} cannot be read` };
  try {
    const { name, text } = gateConflist(primary.name, primary.text);
    const remove = present.map((one) => one.name).filter((one) => one !== name);
    const current = present.find((one) => one.name === name)?.text;
    if (text === current && remove.length === 0) return { kind: 'keep', problem: undefined };
    return { kind: 'write', name, text, primary: primary.name, remove };
  } catch (error) {
    if (error instanceof ConflistError) return { kind: 'keep', problem: error.message };
    throw error;
  }
}
