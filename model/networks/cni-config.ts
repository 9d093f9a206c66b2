import * as z from 'zod';

/** Plugins that modify an interface which another plugin of the list has created. */
const CHAINED = new Set(['dpu-gate', 'plumbline-gate', 'tuning', 'sbr', 'portmap', 'bandwidth', 'firewall', 'vrf']);

/** Characters of a configuration that is parsed; multus and the API server accept more. */
const LONGEST = 256 * 1024;
/** Plugins of a list that is parsed; real lists have up to five. */
const MOST_PLUGINS = 64;
/** Characters of a field; names of networks, bridges and interfaces are not longer. */
const LONGEST_FIELD = 253;

const text = z.string().max(LONGEST_FIELD).optional().catch(undefined);
const plugin = z.object({
  type: text,
  name: text,
  topology: text,
  transport: text,
  physicalNetworkName: text,
  role: text,
  uplink: text,
  bridge: text,
  master: text,
  linkInContainer: z.boolean().optional().catch(undefined),
  provider: text,
});
/** A gate that wraps another plugin contains that plugin's configuration. */
const wrapping = plugin.extend({ delegate: z.unknown().optional() });
const config = wrapping.extend({ plugins: z.array(wrapping).optional().catch(undefined) });

/** The parsed fields of one plugin's configuration. Fields with an unexpected type or length count as absent. */
export type Plugin = z.infer<typeof plugin>;

/** An object in JSON; undefined if the text is none, or longer than what is parsed. */
export function parseCniJson(json: string): { readonly plugins?: unknown; readonly name?: unknown } | undefined {
  if (json.length > LONGEST) return undefined;
  try {
    const data: unknown = JSON.parse(json);
    const isObject = typeof data === 'object' && data !== null && !Array.isArray(data);
    return isObject && pluginsIn(data) <= MOST_PLUGINS ? data : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The plugin of a CNI configuration (single or list) that creates the interface, with the network's name; or why there
 * is none.
 */
export function mainPlugin(json: string): Plugin | 'invalid-json' | 'no-config' {
  if (json.length <= LONGEST && json.trim() === '') return 'no-config';
  const parsed = config.safeParse(parseCniJson(json));
  if (!parsed.success) return 'invalid-json';
  const { plugins, ...single } = parsed.data;
  if (plugins === undefined) return unwrapped(single);
  const main = plugins.map(unwrapped).find(({ type }) => type !== undefined && !CHAINED.has(type));
  if (main === undefined) return 'no-config';
  return { ...main, name: single.name ?? main.name };
}

/** Counts the plugins before they are parsed. */
function pluginsIn({ plugins }: { readonly plugins?: unknown }): number {
  return Array.isArray(plugins) ? plugins.length : 0;
}

/** The delegate of a wrapping gate, with the name of the whole configuration if the delegate has none. */
function unwrapped({ delegate, ...conf }: z.infer<typeof wrapping>): Plugin {
  if (conf.type === undefined || !CHAINED.has(conf.type)) return conf;
  const inner = plugin.safeParse(delegate);
  return inner.success && inner.data.type !== undefined ? { ...inner.data, name: inner.data.name ?? conf.name } : conf;
}
