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
export const MOST_CONF = 1024 * 1024;

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
    throw new ConflistError(file, `cniVersion ${shown(cniVersion)}: the gate supports ${spoken}`);
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
function shown(value: unknown): string {
  return typeof value === 'string' ? quote(value) : typeof value === 'object' ? 'no text' : String(value);
}

function parse(file: string, text: string): JsonObject {
  if (text.length > MOST_CONF) throw new ConflistError(file, `longer than ${MOST_CONF} characters`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ConflistError(file, `not JSON: ${(error as Error).message}`);
  }
  if (!isObject(value)) throw new ConflistError(file, 'not a JSON object');
  return value;
}
