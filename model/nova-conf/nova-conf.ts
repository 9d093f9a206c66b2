import { cpusAre } from '../amounts.ts';
import { CpuSet } from '../cpu-set.ts';
import { ParseError, quote } from '../errors.ts';
import type { NetworkMapEntry } from '../networks/network-map.ts';

export interface NovaHost {
  /** As an entry of the agent's network map. */
  readonly networks: NetworkMapEntry;
  readonly cpus: NovaCpus;
  /** Settings without a counterpart, and settings with which Nova would not start. */
  readonly warnings: readonly string[];
}

export interface NovaCpus {
  /** `[compute] cpu_dedicated_set`, or `vcpu_pin_set` before Nova 20.0. */
  readonly dedicated: CpuSet | undefined;
  /** CPUs for all other guests. */
  readonly shared: CpuSet | undefined;
}

const PHYSNET_SECTION = 'neutron_physnet_';
const HIGHEST_NUMA_NODE = 1023;

/**
 * A listed physnet without `numa_nodes`, with which Nova does not start, has no affinity here and a warning.
 * Sources: blueprint numa-aware-vswitches; nova/conf/neutron.py, nova/conf/compute.py. @throws ParseError
 */
export function readNovaConf(config: OsloConfig): NovaHost {
  const warnings: string[] = [];
  const listed = listOf(optionOf(config, 'neutron', 'physnets') ?? '');
  const physnets: [string, { numaNodes: number[] }][] = [...new Set(listed)].map((name) => {
    const numaNodes = numaNodesOf(config, `${PHYSNET_SECTION}${name}`);
    if (numaNodes.length === 0) {
      warnings.push(
        `physnet ${name} has no [${PHYSNET_SECTION}${name}] numa_nodes: Nova does not start with this setting; the map gives the physnet no NUMA node`,
      );
    }
    return [name, { numaNodes }];
  });
  const knownSections = new Set(listed.map((name) => sectionKey(`${PHYSNET_SECTION}${name}`)));
  for (const section of config.keys()) {
    if (section.startsWith(PHYSNET_SECTION) && !knownSections.has(section)) {
      warnings.push(
        `[${section}] is left out: [neutron] physnets does not list ${section.slice(PHYSNET_SECTION.length)}`,
      );
    }
  }
  const tunnel = numaNodesOf(config, 'neutron_tunnel');
  const cpus = cpusOf(config, warnings);
  return {
    networks: {
      ...(physnets.length > 0 && { physnets: Object.fromEntries(physnets) }),
      ...(tunnel.length > 0 && { tunnel: { numaNodes: tunnel } }),
    },
    cpus,
    warnings,
  };
}

function cpusOf(config: OsloConfig, warnings: string[]): NovaCpus {
  const dedicated = cpuSpec(config, 'compute', 'cpu_dedicated_set');
  const shared = cpuSpec(config, 'compute', 'cpu_shared_set');
  const old = cpuSpec(config, 'DEFAULT', 'vcpu_pin_set');
  if (dedicated && old) warnings.push('[DEFAULT] vcpu_pin_set is ignored: cpu_dedicated_set replaces it');
  const both = dedicated && shared && dedicated.intersect(shared);
  if (both && !both.isEmpty) {
    warnings.push(`${cpusAre(both)} in cpu_dedicated_set and in cpu_shared_set: Nova does not start with this setting`);
  }
  if (/^(?:true|1|yes|on)$/i.test(optionOf(config, 'libvirt', 'cpu_power_management') ?? '')) {
    warnings.push(
      '[libvirt] cpu_power_management has no counterpart: keep every CPU online, since the kubelet counts those that are online when it starts',
    );
  }
  return { dedicated: dedicated ?? old, shared };
}

function numaNodesOf(config: OsloConfig, section: string): number[] {
  const text = optionOf(config, section, 'numa_nodes');
  const nodes = listOf(text ?? '').map((item) => {
    if (/^\d{1,4}$/.test(item) && Number(item) <= HIGHEST_NUMA_NODE) return Number(item);
    const why = /^-\d/.test(item)
      ? `${quote(item)} means that the NUMA node of the NIC is unknown; name the NUMA node, or leave the list empty`
      : `${quote(item)} is not a NUMA node`;
    throw new ParseError(`[${section}] numa_nodes`, text ?? '', why);
  });
  return [...new Set(nodes)].sort((a, b) => a - b);
}

function listOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** Parses Nova's CPU lists: ids and ranges; `^` excludes. */
function cpuSpec(config: OsloConfig, section: string, option: string): CpuSet | undefined {
  const text = optionOf(config, section, option);
  if (text === undefined || text.trim() === '') return undefined;
  const items = listOf(text);
  const of = (chosen: readonly string[]) => CpuSet.parse(chosen.join(','));
  try {
    const included = of(items.filter((item) => !item.startsWith('^')));
    const without = of(items.filter((item) => item.startsWith('^')).map((item) => item.slice(1)));
    const cpus = included.minus(without);
    if (!cpus.isEmpty) return cpus;
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    throw new ParseError(`[${section}] ${option}`, text, 'expected CPUs as 2-15,^8', { cause: error });
  }
  throw new ParseError(`[${section}] ${option}`, text, 'it leaves no CPU');
}

/** From the last file that sets it. */
export type OsloConfig = ReadonlyMap<string, ReadonlyMap<string, string>>;

export interface ConfigFile {
  readonly name: string;
  readonly text: string;
}

/**
 * As oslo.config does, with values that continue on lines with a leading blank. Later files take precedence. Section
 * names are case-insensitive, except DEFAULT. References (`$name`) stay: only an option's reader knows whether it has
 * one.
 * Source: oslo.config 9.0, iniparser.py and cfg.py. @throws ParseError with the file, the line and the expected syntax
 */
export function parseOsloConfig(files: readonly ConfigFile[]): OsloConfig {
  const sections = new Map<string, Map<string, string>>();
  for (const { name, text } of files) {
    const reader = new Reader(name, sections);
    for (const [index, line] of text.split(/\r\n|\r|\n/).entries()) reader.read(line.trimEnd(), index + 1);
  }
  return sections;
}

/** Undefined if no file sets it. */
export function optionOf(config: OsloConfig, section: string, option: string): string | undefined {
  return config.get(sectionKey(section))?.get(option);
}

/** The key of a section in `OsloConfig`. */
export function sectionKey(name: string): string {
  return name === 'DEFAULT' ? name : name.toLowerCase();
}

/** Sections accumulate over all files. */
class Reader {
  readonly #file: string;
  readonly #sections: Map<string, Map<string, string>>;
  #section: Map<string, string> | undefined;
  /** The option that the next line may continue. */
  #option: string | undefined;

  constructor(file: string, sections: Map<string, Map<string, string>>) {
    this.#file = file;
    this.#sections = sections;
  }

  read(line: string, number: number): void {
    try {
      if (line === '' || line[0] === '#' || line[0] === ';') this.#option = undefined;
      else if (line[0] === ' ' || line[0] === '\t') this.#goOn(line);
      else if (line[0] === '[') this.#begin(line);
      else this.#assign(line);
    } catch (error) {
      if (!(error instanceof Unexpected)) throw error;
      throw new ParseError(`${this.#file}, line ${number}:`, line.trim(), error.message);
    }
  }

  #goOn(line: string): void {
    if (this.#section === undefined || this.#option === undefined) {
      throw new Unexpected('a line that begins with a blank continues the value above it, and there is none');
    }
    this.#section.set(this.#option, `${this.#section.get(this.#option)}\n${line.trimStart()}`);
  }

  #begin(line: string): void {
    if (!line.endsWith(']') || line.length < 3) throw new Unexpected('a section is its name in brackets, as [neutron]');
    const key = sectionKey(line.slice(1, -1));
    this.#option = undefined;
    this.#section = this.#sections.get(key) ?? new Map();
    this.#sections.set(key, this.#section);
  }

  #assign(line: string): void {
    const at = line.search(/[=:]/);
    if (at < 0) throw new Unexpected('neither a section nor name = value');
    if (this.#section === undefined) throw new Unexpected('it precedes the first [section]');
    const option = line.slice(0, at).trim();
    if (option === '') throw new Unexpected('the option has no name');
    this.#option = option;
    this.#section.set(option, unquoted(line.slice(at + 1).trim()));
  }
}

class Unexpected extends Error {}

function unquoted(value: string): string {
  const quote = value[0];
  return (quote === '"' || quote === "'") && value.endsWith(quote) ? value.slice(1, -1) : value;
}
