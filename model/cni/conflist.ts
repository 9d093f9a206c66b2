import { PlumblineError, quote } from '../errors.ts';

/** The plugin's name: the shim's file and the `type` that calls it. */
export const GATE_PLUGIN = 'plumbline-gate';

/**
 * The file of the gate's own configuration, for a primary that is a lone plugin and for one that is a list of several.
 *
 * Both sort before `00-multus.conf`. A lone plugin, which multus is, goes into a `.json` file: runtimes read it, multus
 * does not, which looks for the network that it is to wrap in every `.conf` and `.conflist` of the directory. It would
 * take the gate's, which is made from multus's own. The prefix says the same to those of its versions that go by names.
 */
export const GATE_FILES = {
  plugin: '00-multus-plumbline-gate.json',
  list: '00-multus-plumbline-gate.conflist',
} as const;

export type GateFile = (typeof GATE_FILES)[keyof typeof GATE_FILES];

/** Characters of the longest configuration that is read; the gate itself takes a MiB. */
export const MOST_CONF = 1024 * 1024;

/** CNI versions that the gate speaks, the oldest first. */
export const CNI_VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;

/** How the gate stands in a list. Around a lone plugin it is always a wrapper. */
export type GateForm = 'chained' | 'wrapper';

export interface ConflistOptions {
  readonly form: GateForm;
}

/** The gate's settings file, in the directory of the program: a network configuration cannot set any of this. */
export const GATE_SETTINGS = `${GATE_PLUGIN}.conf`;

/** What the node's administrator sets. native/cni/settings.h is the other side of it. */
export interface GateSettings {
  readonly socket: string;
  readonly stateFile: string;
  readonly whenAbsent: 'open' | 'closed';
}

/** The text of the settings file. The gate takes the paths out as they stand: nothing in them may need an escape. */
export function formatGateSettings({ socket, stateFile, whenAbsent }: GateSettings): string {
  return print({ socket, stateFile, whenAbsent });
}

type Json = Readonly<Record<string, unknown>>;

/** A configuration that cannot be gated; the message says what about it. */
export class ConflistError extends PlumblineError {
  constructor(file: string, why: string) {
    super('conflist', `${file}: ${why}`);
  }
}

/**
 * Makes the gate's configuration from the runtime's primary: the same name and version (plugins keep what they know of
 * a pod under the network's name), the same plugins, and the gate before them or around the first of them. A gate that
 * is in there already is taken out: one sandbox asks once.
 *
 * @param text the primary: a list, or a single plugin's configuration
 * @returns the content of the file
 * @throws ConflistError
 */
export function gateConflist(file: string, text: string, options: ConflistOptions): { name: GateFile; text: string } {
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
  const gated = options.form === 'chained' ? [ENTRY, first, ...others] : [wrap(first), ...others];
  return { name: GATE_FILES.list, text: print({ ...list, plugins: gated }) };
}

function print(value: Json): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** A single plugin's configuration as a list of one; name and version are the list's. */
function asList(plugin: Json): Json {
  const { cniVersion, name, ...rest } = plugin;
  return { cniVersion, name, plugins: [rest] };
}

const ENTRY: Json = { type: GATE_PLUGIN };

/** Capabilities move outwards: the runtime gives what they ask for to the plugin that it calls. */
function wrap({ capabilities, ...delegate }: Json): Json {
  return { ...ENTRY, ...(capabilities === undefined ? {} : { capabilities }), delegate };
}

function withoutGate(plugin: Json): Json[] {
  if (plugin['type'] !== GATE_PLUGIN) return [plugin];
  const { delegate, capabilities } = plugin;
  if (!isObject(delegate)) return [];
  return [{ ...delegate, ...(capabilities === undefined ? {} : { capabilities }) }];
}

function asPlugin(file: string, plugin: unknown): Json {
  if (isObject(plugin) && typeof plugin['type'] === 'string' && plugin['type'] !== '') return plugin;
  throw new ConflistError(file, 'a plugin in it has no type');
}

/** A value of the configuration in a message. */
function shown(value: unknown): string {
  return typeof value === 'string' ? quote(value) : typeof value === 'object' ? 'no text' : String(value);
}

function parse(file: string, text: string): Json {
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

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
